"""DebugProbe: puts the agent to the test that its environment has for it."""

import torch

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.inspector import HasProbe
from fabric_rl.callbacks.debug.lines import tell
from fabric_rl.runs.trained import policy


class DebugProbe(Callback):
    """Prints the result of the environment's own test of the agent: at the start, then every so many iterations.

    A `RocketSimPool` tests whether cars get up from their roofs. The agent samples its actions, as in training, and
    torch's generators are put back afterwards.
    """

    def __init__(self, every_iterations: int = 10) -> None:
        self.every = every_iterations

    def on_train_start(self, state: TrainState) -> None:
        """The agent as the run begins."""
        self._test(state)

    def on_iteration_end(self, state: TrainState) -> None:
        """The agent now, when it is time."""
        if state.iteration % self.every == 0 or state.done:
            self._test(state)

    def _test(self, state: TrainState) -> None:
        if not state.fabric.is_global_zero:
            return
        inspector = getattr(state.env, "inspector", None)
        if not isinstance(inspector, HasProbe):
            tell(state, "probe", f"{type(state.env).__name__} has no test of its own")
            return
        device = state.agent.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(0)
            lines = inspector.probe(policy(state.agent, deterministic=False))
        tell(state, "probe", f"after {state.steps:,} steps", *lines)
