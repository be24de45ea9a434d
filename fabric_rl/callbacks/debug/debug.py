"""Debug: tells what happens inside of a run, by topic."""

from fabric_rl.base.settings import Count, checks_arguments
from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.actions import DebugActions
from fabric_rl.callbacks.debug.checkpoints import DebugCheckpoints
from fabric_rl.callbacks.debug.learning import DebugLearning
from fabric_rl.callbacks.debug.lines import tell
from fabric_rl.callbacks.debug.probe import DebugProbe
from fabric_rl.callbacks.debug.resets import DebugResets
from fabric_rl.hooks import Callbacks


class Debug(Callbacks):
    """Print diagnostics on rank 0 and log them as `debug/...` during training.

    On the command line: `--callbacks+=fabric_rl.callbacks.Debug --callbacks.actions true`. See docs/debugging.md for
    the topics. If an environment does not support a topic, the log names it. Training stays bit-identical.
    """

    @checks_arguments
    def __init__(
        self,
        actions: bool = False,
        learning: bool = False,
        checkpoints: bool = False,
        resets: bool = False,
        probe: bool = False,
        everything: bool = False,
        every_iterations: Count = 10,
        episodes: Count = 64,
        folder: str | None = None,
    ) -> None:
        """Choose the topics.

        Args:
            actions: Report the action table at the start, which actions are used, and how many are replaced.
            learning: Report gradients, activations, advantages, value errors, and signs of problems.
            checkpoints: Report when checkpoints are written, and what was restored.
            resets: Write a table of initial states, and warn of impossible ones.
            probe: Run the environment's own test of the agent; a RocketSimPool tests if cars recover from their roofs.
            everything: Report all topics.
            every_iterations: Iterations between two printed reports; metrics are logged in every iteration.
            episodes: Number of initial states in the table.
            folder: Folder for the table; default: the folder of the run.

        Raises:
            ValueError: No topic is chosen.
        """
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
        """Print the topics and start them."""
        tell(state, "topics", f"{', '.join(self.parts)}; rank 0 of {state.fabric.world_size}")
        super().on_train_start(state)
