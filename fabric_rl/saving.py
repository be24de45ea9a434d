"""When a run saves itself: checkpoints by timesteps and minutes, milestones."""

import time
import warnings
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from fabric_rl import checkpoint
from fabric_rl.live import Live
from fabric_rl.log import logger
from fabric_rl.run import Run, write_json


@dataclass(frozen=True)
class Saving:
    """How often a run saves itself."""

    checkpoint_every_timesteps: int | None = 1_000_000
    """Agent-steps (over all ranks) between checkpoints; a run resumed from one goes on bit for bit. None: only the last
    one."""
    checkpoint_every_minutes: float | None = None
    """Minutes between checkpoints; a run resumed from one of these is equivalent, not bit-identical."""
    keep_checkpoints: int = 3
    """How many of the newest checkpoints stay."""
    milestone_interval: int | None = None
    """Agent-steps between milestones: full copies that stay for good."""

    def __post_init__(self) -> None:
        """Rejects settings that cannot work."""
        for name in ("checkpoint_every_timesteps", "checkpoint_every_minutes", "milestone_interval"):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise ValueError(f"--{name} must be positive, got {number}")
        if self.keep_checkpoints < 1:
            raise ValueError(f"--keep_checkpoints must be at least 1, got {self.keep_checkpoints}")


class Saver:
    """Saves a live run when it is due. All ranks decide alike, rank 0 writes.

    A checkpoint that cannot be written is a warning: training goes on, and what was saved before stays.
    """

    def __init__(self, run: Run, saving: Saving, live: Live, exact: bool = True) -> None:
        """Starts the clock.

        Args:
            run: Where to.
            saving: When.
            live: What.
            exact: Whether the run began, or goes on, exactly as one without a break.

        Raises:
            TypeError: A callback remembers something that cannot be saved.
        """
        self.run, self.saving, self.live = run, saving, live
        self._last = time.monotonic()
        self._inexact = not exact
        self._collects_ahead = live.args.overlap or live.args.num_players > 0
        for callback in live.callbacks:
            try:
                checkpoint.to_primitives(callback.state_dict())
            except TypeError as error:
                raise TypeError(f"--callbacks {type(callback).__name__}.state_dict(): {error}") from error

    @property
    def minutes_due(self) -> bool:
        """Whether this rank's clock asks for a checkpoint."""
        minutes = self.saving.checkpoint_every_minutes
        return minutes is not None and time.monotonic() - self._last >= 60 * minutes

    def after_iteration(self, on_demand: bool, ending: bool) -> bool:
        """Saves what is due; every rank calls it with the same arguments.

        Args:
            on_demand: Somebody has asked for a checkpoint, or `minutes_due` of rank 0.
            ending: The loop ends here: the last checkpoint.

        Returns:
            Whether anything was due.
        """
        steps = self.live.state.steps
        by_steps = self._passed(self.saving.checkpoint_every_timesteps)
        milestone = self._passed(self.saving.milestone_interval)
        if not (by_steps or milestone or on_demand or ending):
            return False
        # What is written on demand changes the rest of the run (its arenas are restored), so that is not the same any
        # more as without it; what is due by steps happens in every run with these settings. With --overlap a longer run
        # would have collected its next rollout by now.
        self._inexact |= not (by_steps or milestone) or (ending and self._collects_ahead)
        state = self.live.save(ending)
        self._last = time.monotonic()
        if state is None:
            return True
        state["exact"] = not self._inexact
        try:
            if by_steps or on_demand or ending:
                path = self.run.checkpoints / checkpoint.file_name(steps)
                checkpoint.write(path, state)
                checkpoint.prune(self.run.checkpoints, self.saving.keep_checkpoints)
                logger.info("checkpoint %s", path)
            if milestone:
                self._write_milestone(state)
        except (OSError, checkpoint.CheckpointError) as error:
            warnings.warn(f"{error}; training goes on, older checkpoints stay", RuntimeWarning, stacklevel=2)
        return True

    def _passed(self, interval: int | None) -> bool:
        """Whether this iteration crossed a multiple of `interval` agent-steps."""
        steps = self.live.state.steps
        return interval is not None and steps // interval > (steps - self.live.steps_per_iteration) // interval

    def _write_milestone(self, state: dict[str, Any]) -> None:
        train_state = self.live.state
        folder = self.run.milestones / train_state.phase / f"{train_state.steps:012d}"
        checkpoint.write(folder / checkpoint.file_name(train_state.steps), state)
        write_json(folder / "meta.json", milestone_meta(self.live))  # last: a folder without it is not finished
        logger.info("milestone %s", folder)


def milestone_meta(live: Live) -> dict[str, Any]:
    """What a milestone says about itself."""
    metrics = live.state.metrics
    return {
        "steps": live.state.steps,
        "phase": live.state.phase,
        "mean_reward": metrics.get("reward/episode_return", metrics.get("reward/step")),
        "entropy": metrics.get("ppo/entropy"),
        "kl": metrics.get("ppo/approx_kl"),
        "rating": metrics.get("rating/elo"),
        "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
