"""Save a run when it is due: checkpoints by timesteps and minutes, and milestones."""

import time
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from fabric_rl.args import Saving
from fabric_rl.base.files import write_json
from fabric_rl.metrics.log import logger
from fabric_rl.runs import checkpoint
from fabric_rl.runs.checkpoint import encode_state
from fabric_rl.runs.folder import Run, move_aside, move_newer_best
from fabric_rl.runs.records import SET_ASIDE, checkpoint_name, checkpoint_steps
from fabric_rl.session.monitor import TrainingMonitor
from fabric_rl.session.session import Session


class Saver:
    """Saver of a session; it does nothing without a run folder, or if the agent only plays.

    All ranks make the same decisions, and rank 0 writes. A checkpoint that cannot be written only causes a warning:
    training continues, and older checkpoints stay.
    """

    def __init__(self, session: Session, monitor: TrainingMonitor, saving: Saving, exact: bool) -> None:
        """Start the clock.

        Args:
            session: The session to save.
            monitor: The monitor, whose state is saved, too.
            saving: Settings for when to save.
            exact: True if the run is new, or continues exactly like an uninterrupted one.

        Raises:
            TypeError: The state of a callback cannot be saved.
        """
        self._session, self._monitor, self._saving = session, monitor, saving
        self._run = cast(Run, session.run)  # only used if enabled
        self._enabled = session.run is not None and not session.inference
        self._last = time.monotonic()
        self._saved_steps = session.state.steps
        self._inexact = not exact
        self._collects_ahead = session.args.overlap or session.args.num_players > 0
        for callback in session.hooks.callbacks if self._enabled else ():
            try:
                encode_state(callback.state_dict())
            except TypeError as error:
                raise TypeError(f"--callbacks {type(callback).__name__}.state_dict(): {error}") from error

    @property
    def minutes_due(self) -> bool:
        """True if rank 0's clock asks for a checkpoint."""
        minutes = self._saving.checkpoint_every_minutes
        writes = self._enabled and self._session.fabric.is_global_zero
        return writes and minutes is not None and time.monotonic() - self._last >= 60 * minutes

    def unsaved(self) -> dict[str, Any]:
        """Return `unsaved_steps` and the newest valid checkpoint on rank 0 if the last one could not be written."""
        steps = self._session.state.steps
        if not self._enabled or self._saved_steps == steps or not self._session.fabric.is_global_zero:
            return {}
        newest = checkpoint.latest_valid(self._run.checkpoints)
        lost = steps - (0 if newest is None else checkpoint_steps(newest))
        logger.error("the last %s steps were not saved; newest good checkpoint: %s", f"{lost:,}", newest)
        return {"unsaved_steps": lost, "checkpoint": None if newest is None else str(newest)}

    def begin(self, resumed: dict[str, Any] | None) -> None:
        """Write a milestone that was due with the checkpoint but is missing, and move newer milestones aside.

        Milestones after the checkpoint go to `milestones/set_aside/<phase>/`, unchanged. If the name is taken there,
        a number is appended. Newer best weights go to `set_aside/best`.

        Args:
            resumed: The checkpoint that the run resumes from; None for a new run.
        """
        if not self._enabled or resumed is None or not self._session.fabric.is_global_zero:
            return
        there = self._run.milestones.glob(f"*/{self._milestone.name}/meta.json")
        if self._passed(self._saving.milestone_interval) and not any(there):
            self._try([self._write_milestone], resumed)
        if self._session.state.done:
            return
        moved = 0
        aside = self._run.milestones / SET_ASIDE
        try:
            for folder in sorted(self._run.milestones.glob("*/*")):
                newer = folder.name.isdecimal() and int(folder.name) > self._session.state.steps
                if not newer or folder.parent.name == SET_ASIDE:
                    continue
                move_aside(folder, aside / folder.parent.name)
                moved += 1
            move_newer_best(self._run.dir, self._session.state.steps)
        except OSError as error:
            logger.warning("newer files of %s cannot be moved to %s: %s", self._run.dir, SET_ASIDE, error)
        if moved:
            logger.info("newer milestones: %s moved to %s", moved, aside)

    def after_iteration(self, on_demand: bool) -> None:
        """Save what is due; every rank calls it with the same argument.

        Args:
            on_demand: True if a checkpoint was requested.
        """
        if not self._enabled:
            return
        with self._session.timers("save"):
            saved = self._save_what_is_due(on_demand)
        if saved and self._session.fabric.is_global_zero:
            self._run.write_timers(self._session.timers)

    def _save_what_is_due(self, on_demand: bool) -> bool:
        """Save what is due, and return whether anything was due."""
        ending = self._session.state.done  # with a last checkpoint
        by_steps = self._passed(self._saving.checkpoint_every_timesteps)
        milestone = self._passed(self._saving.milestone_interval)
        if not (by_steps or milestone or on_demand or ending):
            return False
        # Saving on demand changes the rest of the run (its arenas are restored), so it differs from a run without that;
        # saving by steps happens in every run with these settings. With --overlap, a longer run would already have
        # collected its next rollout.
        self._inexact |= not (by_steps or milestone) or (ending and self._collects_ahead)
        state = self._session.state_dict(new_episodes=self._saving.exact_resume and not ending)
        self._last = time.monotonic()
        if state is None:
            return True
        players = state["ranks"][-self._session.args.num_players :]  # with 0 players, all ranks play
        exact = self._saving.exact_resume or all(rank["env"] is not None for rank in players)
        exact &= all(rank.get("replay", {}) is not None for rank in state["ranks"])  # a buffer that is not saved
        state |= {"exact": exact and not self._inexact} | self._monitor.state_dict()
        due = ((by_steps or on_demand or ending, self._write_checkpoint), (milestone, self._write_milestone))
        self._try([write for is_due, write in due if is_due], state)
        return True

    def _try(self, writes: Sequence[Callable[[dict[str, Any]], None]], state: dict[str, Any]) -> None:
        """Write the files one after another; warn and stop at the first that cannot be written."""
        try:
            for write in writes:
                write(state)
        except (OSError, checkpoint.CheckpointError) as error:
            goes_on = "" if self._session.state.done else "training continues, and "
            warnings.warn(f"{error}; {goes_on}older checkpoints are kept", RuntimeWarning, stacklevel=2)

    def _passed(self, interval: int | None) -> bool:
        """Return whether this iteration crossed a multiple of `interval` agent-steps."""
        steps, each = self._session.state.steps, self._session.state.steps_per_iteration
        return interval is not None and steps // interval > (steps - each) // interval

    def _write_checkpoint(self, state: dict[str, Any]) -> None:
        path = self._run.checkpoints / checkpoint_name(state["steps"])
        checkpoint.write(path, state)
        self._saved_steps = state["steps"]
        self._run.provenance.rewrite_missing()
        checkpoint.prune(self._run.checkpoints, self._saving.keep_checkpoints)
        logger.debug("checkpoint %s", path)

    @property
    def _milestone(self) -> Path:
        """Folder of the milestone at the current step."""
        return self._run.milestones / self._session.state.phase / f"{self._session.state.steps:012d}"

    def _write_milestone(self, saved: dict[str, Any]) -> None:
        state, folder = self._session.state, self._milestone
        checkpoint.write(folder / checkpoint_name(state.steps), saved)
        meta = {
            "steps": state.steps,
            "phase": state.phase,
            "mean_reward": self._monitor.mean_return(),
            "entropy": state.metrics.get(f"{state.agent.algorithm}/entropy"),
            "kl": state.metrics.get(f"{state.agent.algorithm}/approx_kl"),
            "rating": state.metrics.get("selfplay/rating"),
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "fingerprint": saved["fingerprint"],
        }
        write_json(folder / "meta.json", meta)  # last: a folder without it is not finished
        logger.debug("milestone %s", folder)
