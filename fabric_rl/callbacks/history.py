"""History: a run's metrics for a notebook."""

from fabric_rl.callback import Callback, TrainState
from fabric_rl.types import ActorCritic


class History(Callback):
    """Keeps the agent and the metrics of every iteration, for a notebook.

    Attributes:
        agent: The bare module.
        rows: One dict per iteration: `steps`, and every metric by its name.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.agent: ActorCritic | None = None

    def on_iteration_end(self, state: TrainState) -> None:
        """Keeps one iteration."""
        self.agent = state.agent
        self.rows.append({"steps": state.steps, **state.metrics})
