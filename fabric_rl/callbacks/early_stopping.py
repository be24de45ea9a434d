"""EarlyStopping, which stops a run when a metric is good enough or no longer improves."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from fabric_rl.base.settings import Count, Finite, check_settings
from fabric_rl.base.text import did_you_mean
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger


@dataclass(eq=False, repr=False)
class EarlyStopping(Callback):
    """Stop the run when a metric reaches a threshold, or no longer improves; the run ends as after Ctrl+C.

    Only iterations that measure the metric count. A resumed run continues with the counts of the checkpoint, unless
    `metric` or `mode` has changed.
    """

    metric: str
    """Name of a logged metric, for example `reward/episode_return` or `eval/return`."""
    threshold: Finite | None = None
    """Value that the metric must reach. Default: none."""
    for_iterations: Count = 10
    """Number of measurements in a row that must reach the threshold."""
    patience: Count | None = None
    """Number of measurements in a row without a new best value after which the run stops. Default: any number."""
    mode: Literal["max", "min"] = "max"
    """Whether higher ("max") or lower values ("min") are better."""

    _in_state_dict: ClassVar[dict[str, str]] = {
        "best": "_best",
        "reached": "_reached",
        "since_best": "_since_best",
        "metric": "metric",
        "mode": "mode",
    }

    def __post_init__(self) -> None:
        check_settings(self)
        if self.threshold is None and self.patience is None:
            raise ValueError("EarlyStopping: set threshold, patience or both")
        self._best = float("-inf")
        self._reached = self._since_best = 0

    def load_state_dict(self, state: dict[str, Any]) -> None:
        own = {"metric": self.metric, "mode": self.mode}
        state = own | state  # older checkpoints have neither
        if own == {name: state[name] for name in own}:
            super().load_state_dict(state)

    def on_iteration_end(self, state: TrainState) -> None:
        if self.metric not in state.metrics:
            return
        sign = 1 if self.mode == "max" else -1
        value = sign * state.metrics[self.metric]
        self._since_best = 0 if value > self._best else self._since_best + 1
        self._best = max(self._best, value)
        if self.threshold is not None:
            self._reached = self._reached + 1 if value >= sign * self.threshold else 0
            if self._reached >= self.for_iterations:
                self._stop(state, f"has reached {self.threshold:g} (for_iterations: {self._reached})")
        if self.patience is not None and self._since_best >= self.patience:
            best = f"has not improved on {sign * self._best:g}" if math.isfinite(self._best) else "was never a number"
            self._stop(state, f"{best} (patience: {self._since_best})")

    def _stop(self, state: TrainState, why: str) -> None:
        state.stop = True
        logger.info("EarlyStopping: %s %s; a resumed run may stop again", self.metric, why)

    def on_train_end(self, state: TrainState) -> None:
        if self._best == float("-inf") and not self._since_best and state.fabric.is_global_zero:
            hint = did_you_mean(self.metric, sorted(state.metrics))
            warnings.warn(f"EarlyStopping: no iteration has measured {self.metric}{hint}", RuntimeWarning, stacklevel=2)
