"""History: a run's metrics for a notebook."""

from fabric_rl.callback import Callback, TrainState
from fabric_rl.types import ActorCritic


class History(Callback):
    """Keep the agent and the metrics of every iteration, for a notebook.

    Attributes:
        agent: The agent itself, not Fabric's wrapper; None before the first iteration.
        rows: One dict per iteration, with `steps` and every metric by its name.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.agent: ActorCritic | None = None

    def on_iteration_end(self, state: TrainState) -> None:
        """Store the agent and the metrics of the iteration."""
        self.agent = state.agent
        self.rows.append({"steps": state.steps, **state.metrics})
