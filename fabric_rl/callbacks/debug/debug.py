"""Debug: tells what happens inside of a run, by topic."""

from collections.abc import Callable
from typing import Any

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.actions import DebugActions
from fabric_rl.callbacks.debug.checkpoints import DebugCheckpoints
from fabric_rl.callbacks.debug.learning import DebugLearning
from fabric_rl.callbacks.debug.parts import Inspector, NoInspector, tell
from fabric_rl.callbacks.debug.resets import DebugResets


class Debug(Callback):
    """Debugging while training, the flags of requirement 001, section 13; prints on rank 0 and logs `debug/...`.

    `--callbacks+=fabric_rl.callbacks.Debug --callbacks.actions true`. See docs/school.md for what each topic tells.
    What an environment cannot tell is said in one line; nothing of training changes, to the bit.
    """

    def __init__(
        self,
        actions: bool = False,
        learning: bool = False,
        checkpoints: bool = False,
        resets: bool = False,
        everything: bool = False,
        every_iterations: int = 10,
        episodes: int = 64,
        folder: str | None = None,
    ) -> None:
        """Chooses topics.

        Args:
            actions: The action table at the start; which actions are used, how many fall back to another one.
            learning: Gradients, activations, advantages, errors of the values, and signs of trouble.
            checkpoints: What is written when, and what was restored.
            resets: First states as a table, and warnings of impossible ones.
            everything: All of these.
            every_iterations: Iterations between two printed reports; metrics are logged in each.
            episodes: How many first states to write.
            folder: Where their table goes; default: the run's folder.

        Raises:
            ValueError: No topic, or numbers below 1.
        """
        chosen = {"actions": actions, "learning": learning, "checkpoints": checkpoints, "resets": resets}
        if not everything and not any(chosen.values()):
            raise ValueError(f"Debug: nothing is chosen; set one of {', '.join(chosen)} or everything to true")
        for name, number in (("every_iterations", every_iterations), ("episodes", episodes)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"Debug: {name} must be a whole number of at least 1, got {number!r}")
        self.topics = tuple(name for name, is_on in chosen.items() if is_on or everything)
        self.every_iterations, self.episodes, self.folder = every_iterations, episodes, folder
        self._parts: dict[str, Callback] = {}
        self._kept: dict[str, Any] = {}

    def on_train_start(self, state: TrainState) -> None:
        """Builds the topics and lets them begin."""
        own = getattr(state.env, "inspector", None)
        look = own if isinstance(own, Inspector) else NoInspector(state.env)
        build: dict[str, Callable[[], Callback]] = {
            "actions": lambda: DebugActions(look, self.every_iterations),
            "learning": lambda: DebugLearning(self.every_iterations),
            "checkpoints": DebugCheckpoints,
            "resets": lambda: DebugResets(look, self.episodes, self.folder),
        }
        self._parts = {name: build[name]() for name in self.topics}
        tell(state, "topics", f"{', '.join(self.topics)}; rank 0 of {state.fabric.world_size}")
        for name, part in self._parts.items():
            if name in self._kept:
                part.load_state_dict(self._kept[name])
            part.on_train_start(state)

    def on_iteration_start(self, state: TrainState) -> None:
        """Passes it on."""
        for part in self._parts.values():
            part.on_iteration_start(state)

    def on_learn_start(self, state: TrainState) -> None:
        """Passes it on."""
        for part in self._parts.values():
            part.on_learn_start(state)

    def on_iteration_end(self, state: TrainState) -> None:
        """Passes it on."""
        for part in self._parts.values():
            part.on_iteration_end(state)

    def on_train_end(self, state: TrainState) -> None:
        """Passes it on."""
        for part in self._parts.values():
            part.on_train_end(state)

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        """Passes it on."""
        for part in self._parts.values():
            part.on_exception(state, error)

    def state_dict(self) -> dict[str, Any]:
        """What the topics remember."""
        return self._kept | {name: part.state_dict() for name, part in self._parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave; topics that are not chosen now are kept for later."""
        self._kept = dict(state)
