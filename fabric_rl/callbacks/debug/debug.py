"""Debug: tells what happens inside of a run, by topic."""

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.actions import DebugActions
from fabric_rl.callbacks.debug.checkpoints import DebugCheckpoints
from fabric_rl.callbacks.debug.learning import DebugLearning
from fabric_rl.callbacks.debug.lines import tell
from fabric_rl.callbacks.debug.probe import DebugProbe
from fabric_rl.callbacks.debug.resets import DebugResets
from fabric_rl.callbacks.several import Callbacks


class Debug(Callbacks):
    """Debugging while training: prints on rank 0 and logs `debug/...`.

    `--callbacks+=fabric_rl.callbacks.Debug --callbacks.actions true`. See docs/debugging.md for the topics.
    A line of the log names what an environment cannot report. Training stays bit-identical.
    """

    def __init__(
        self,
        actions: bool = False,
        learning: bool = False,
        checkpoints: bool = False,
        resets: bool = False,
        probe: bool = False,
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
            probe: The environment's own test of the agent; of a RocketSimPool, whether cars get up from their roofs.
            everything: All of these.
            every_iterations: Iterations between two printed reports; metrics are logged in each.
            episodes: Number of initial states to write.
            folder: Where their table goes; default: the run's folder.

        Raises:
            ValueError: No topic, or numbers below 1.
        """
        for name, number in (("every_iterations", every_iterations), ("episodes", episodes)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"Debug: {name} must be a whole number of at least 1, got {number!r}")
        topics: dict[str, tuple[bool, Callback]] = {
            "actions": (actions, DebugActions(every_iterations)),
            "learning": (learning, DebugLearning(every_iterations)),
            "checkpoints": (checkpoints, DebugCheckpoints()),
            "resets": (resets, DebugResets(episodes, folder)),
            "probe": (probe, DebugProbe(every_iterations)),
        }
        super().__init__({name: part for name, (chosen, part) in topics.items() if chosen or everything})
        if not self.parts:
            raise ValueError(f"Debug: nothing is chosen; set one of {', '.join(topics)} or everything to true")

    def on_train_start(self, state: TrainState) -> None:
        """Names the topics and lets them begin."""
        tell(state, "topics", f"{', '.join(self.parts)}; rank 0 of {state.fabric.world_size}")
        super().on_train_start(state)
