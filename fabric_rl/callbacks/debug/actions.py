"""DebugActions: what is in the action table, and which of its actions are used."""

import math
from typing import ClassVar

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.inspector import inspector_of
from fabric_rl.callbacks.debug.lines import tell, warn

TOP = 10
FALLBACKS = "action/fallback_share"
"""Metric of action parsers in which an action may fall back to another one."""


class DebugActions(Callback):
    """Tells about the table at the start, then which actions are chosen.

    Metrics, of rank 0's rollout: `debug/action_entropy` (nats, of the distribution over all steps, so at least the mean
    of the policy's own entropies), `debug/actions_unused` (in this iteration), `debug/actions_never_used` (in the run),
    `debug/top_action_share`.
    """

    _in_state_dict: ClassVar = {"used": "_used"}

    def __init__(self, every_iterations: int = 10) -> None:
        self.every = every_iterations
        self._used: NDArray[np.int64] = np.zeros(0, np.int64)
        self._silent = False

    def on_train_start(self, state: TrainState) -> None:
        """Tells about the table, and what cannot be told."""
        tell(state, "actions", *inspector_of(state.env).describe_actions())
        space = state.env.single_action_space
        self._silent = not isinstance(space, gymnasium.spaces.Discrete)
        if not isinstance(space, gymnasium.spaces.Discrete):
            tell(state, "actions", f"shares of actions are counted for Discrete spaces, this one is {space}")
        elif len(self._used) != space.n or not state.iteration:
            self._used = np.zeros(int(space.n), np.int64)

    def on_iteration_end(self, state: TrainState) -> None:
        """Counts, and prints when it is time."""
        batch = state.batch
        if self._silent or batch is None:  # a trainer among players: the batch is shared, but this was never begun
            return
        first = int(state.env.single_action_space.start)  # type: ignore[attr-defined]  # Discrete
        chosen = torch.bincount(batch.action.flatten().cpu() - first, minlength=len(self._used)).numpy()
        self._used = self._used + chosen
        state.metrics |= action_metrics(chosen, self._used)
        if state.iteration % self.every == 1 or self.every == 1:
            tell(state, "actions", *self._lines(state, chosen))

    def _lines(self, state: TrainState, chosen: NDArray[np.int64]) -> list[str]:
        order = np.argsort(-chosen, kind="stable")[:TOP]
        shares = ", ".join(f"{n}: {chosen[n] / chosen.sum():.1%}" for n in order.tolist() if chosen[n])
        never = np.flatnonzero(self._used == 0).tolist()
        some = " ".join(map(str, never[:TOP])) + (" ..." if len(never) > TOP else "")
        lines = [f"most used {shares}", f"never used so far: {len(never)} of {len(self._used)} {some}".rstrip()]
        if FALLBACKS in state.metrics:
            lines.append(f"fell back to another one: {state.metrics[FALLBACKS]:.2%}")
        elif state.iteration <= self.every:
            lines.append("the environment counts no fallbacks")
        if chosen.max() == chosen.sum():
            warn(state, "actions", f"only action {order[0]} was chosen in {chosen.sum():,} steps")
        return lines


def action_metrics(chosen: NDArray[np.int64], used: NDArray[np.int64]) -> dict[str, float]:
    """Metrics of how often each action was chosen: `[n]` in an iteration, and `[n]` in the whole run."""
    shares = chosen[chosen > 0] / max(1, chosen.sum())
    return {
        "debug/action_entropy": float(-sum(p * math.log(p) for p in shares.tolist())),
        "debug/actions_unused": float((chosen == 0).sum()),
        "debug/actions_never_used": float((used == 0).sum()),
        "debug/top_action_share": float(shares.max(initial=0.0)),
    }
