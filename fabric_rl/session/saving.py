"""When a run saves itself: checkpoints by timesteps and minutes, milestones."""

import time
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from fabric_rl.args import Saving
from fabric_rl.metrics.log import logger
from fabric_rl.runs import checkpoint
from fabric_rl.runs.checkpoint_names import checkpoints, file_name, steps_of
from fabric_rl.runs.folder import Run, move_aside
from fabric_rl.runs.json_files import write_json
from fabric_rl.runs.records import SET_ASIDE
from fabric_rl.session.session import Live


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
        self._saved_steps = live.state.steps
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

    @property
    def unsaved_steps(self) -> int:
        """On rank 0, agent-steps since the newest good checkpoint; 0 if the last one that was due could be written."""
        if self._saved_steps == self.live.state.steps:
            return 0
        newest = self.newest_good
        return self.live.state.steps - (0 if newest is None else steps_of(newest))

    @property
    def newest_good(self) -> Path | None:
        """The newest checkpoint of the run whose checksum is right; reads it once, whole."""
        for path in reversed(checkpoints(self.run.checkpoints)):
            try:
                checkpoint.verify(path)
            except checkpoint.CheckpointError:
                continue
            return path
        return None

    def set_newer_milestones_aside(self) -> None:
        """Moves milestones of a time that this run does not go on from to `milestones/set_aside/<phase>/`; rank 0 only.

        They stay whole. One of the same phase and steps that lies there already keeps its name; the new one gets a
        number behind its own.
        """
        moved = 0
        aside = self.run.milestones / SET_ASIDE
        try:
            for folder in sorted(self.run.milestones.glob("*/*")):
                newer = folder.name.isdecimal() and int(folder.name) > self.live.state.steps
                if not newer or folder.parent.name == SET_ASIDE:
                    continue
                move_aside(folder, aside / folder.parent.name)
                moved += 1
        except OSError as error:
            message = f"newer milestones of {self.run.milestones} cannot be moved to {SET_ASIDE}: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        if moved:
            logger.info("newer milestones: %s moved to %s", moved, aside)

    def after_iteration(self, on_demand: bool, ending: bool, mean_return: float | None) -> bool:
        """Saves what is due; every rank calls it with the same arguments.

        Args:
            on_demand: Somebody has asked for a checkpoint, or `minutes_due` of rank 0.
            ending: The loop ends here: the last checkpoint.
            mean_return: Of the last episodes over all ranks, for a milestone; None if none has ended yet.

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
                path = self.run.checkpoints / file_name(steps)
                checkpoint.write(path, state)
                self._saved_steps = steps
                self.run.provenance.ensure()
                checkpoint.prune(self.run.checkpoints, self.saving.keep_checkpoints)
                logger.debug("checkpoint %s", path)
            if milestone:
                self._write_milestone(state, mean_return)
        except (OSError, checkpoint.CheckpointError) as error:
            what_next = "older checkpoints stay" if ending else "training goes on, older checkpoints stay"
            warnings.warn(f"{error}; {what_next}", RuntimeWarning, stacklevel=2)
        return True

    def _passed(self, interval: int | None) -> bool:
        """Whether this iteration crossed a multiple of `interval` agent-steps."""
        steps = self.live.state.steps
        return interval is not None and steps // interval > (steps - self.live.steps_per_iteration) // interval

    def _write_milestone(self, state: dict[str, Any], mean_return: float | None) -> None:
        train_state = self.live.state
        folder = self.run.milestones / train_state.phase / f"{train_state.steps:012d}"
        checkpoint.write(folder / file_name(train_state.steps), state)
        meta = milestone_meta(self.live, mean_return, state["fingerprint"])
        write_json(folder / "meta.json", meta)  # last: a folder without it is not finished
        logger.debug("milestone %s", folder)


def milestone_meta(live: Live, mean_return: float | None, fingerprint: dict[str, str]) -> dict[str, Any]:
    """What a milestone says about itself.

    Args:
        live: The run.
        mean_return: Of the last episodes over all ranks; None if none has ended yet.
        fingerprint: What a run must share with it to go on from it, see `fabric_rl.session.session.fingerprint`.
    """
    metrics = live.state.metrics
    return {
        "steps": live.state.steps,
        "phase": live.state.phase,
        "mean_reward": mean_return,
        "entropy": metrics.get("ppo/entropy"),
        "kl": metrics.get("ppo/approx_kl"),
        "rating": metrics.get("rating/elo"),
        "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "fingerprint": fingerprint,
    }
