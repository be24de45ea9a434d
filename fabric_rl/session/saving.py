"""Saves a run when it is due: checkpoints by timesteps and minutes, milestones."""

import time
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from fabric_rl.args import Saving
from fabric_rl.base.files import read_json, write_json
from fabric_rl.metrics.log import logger
from fabric_rl.runs import checkpoint
from fabric_rl.runs.checkpoint import to_primitives
from fabric_rl.runs.folder import Run, move_aside
from fabric_rl.runs.records import BEST, SET_ASIDE, file_name, steps_of
from fabric_rl.session.monitor import Record
from fabric_rl.session.session import Session


class NoSaver:
    """Saves nothing, of a run that keeps nothing; its methods are those of `Saver`."""

    @property
    def minutes_due(self) -> bool:
        """Rank 0's clock asks for a checkpoint."""
        return False

    def begin(self, resumed: dict[str, Any] | None) -> None:
        """Called before the first iteration."""

    def after_iteration(self, on_demand: bool) -> None:
        """Called after each iteration."""

    def unsaved(self) -> dict[str, Any]:
        """Return what the summary says of steps that should have been saved and are not."""
        return {}


class Saver(NoSaver):
    """Saves a session when it is due. All ranks decide alike, rank 0 writes.

    A checkpoint that cannot be written is a warning: training continues, and what was saved before stays.
    """

    def __init__(self, run: Run, saving: Saving, session: Session, record: Record, exact: bool = True) -> None:
        """Starts the clock; `exact`: the run began, or goes on, exactly as one without a break.

        Raises:
            TypeError: A callback remembers something that cannot be saved.
        """
        self.run, self.saving, self._session, self._record = run, saving, session, record
        self._last = time.monotonic()
        self._saved_steps = session.state.steps
        self._inexact = not exact
        self._collects_ahead = session.args.overlap or session.args.num_players > 0
        for callback in session.hooks.callbacks:
            try:
                to_primitives(callback.state_dict())
            except TypeError as error:
                raise TypeError(f"--callbacks {type(callback).__name__}.state_dict(): {error}") from error

    @property
    def minutes_due(self) -> bool:
        minutes = self.saving.checkpoint_every_minutes
        return (
            self._session.fabric.is_global_zero
            and minutes is not None
            and time.monotonic() - self._last >= 60 * minutes
        )

    def unsaved(self) -> dict[str, Any]:
        """On rank 0 `unsaved_steps` and the newest good checkpoint, where one that was due could not be written."""
        steps = self._session.state.steps
        if self._saved_steps == steps or not self._session.fabric.is_global_zero:
            return {}
        newest = checkpoint.newest_verified(self.run.checkpoints)
        lost = steps - (0 if newest is None else steps_of(newest))
        logger.error("the last %s steps are not saved; newest good checkpoint: %s", f"{lost:,}", newest)
        return {"unsaved_steps": lost, "checkpoint": None if newest is None else str(newest)}

    def begin(self, resumed: dict[str, Any] | None) -> None:
        """Write the milestone that a resumed run was killed before, and move those of another time aside.

        The former was due with the checkpoint. The latter are of a time that the run does not go on from: they go to
        `milestones/set_aside/<phase>/` and stay whole. One of the same phase and steps that lies there already keeps
        its name; the new one gets a number behind its own. Best weights of such a time go to `set_aside/best`.

        Args:
            resumed: The checkpoint that it goes on from; None for a new run.
        """
        if resumed is None or not self._session.fabric.is_global_zero:
            return
        if self._passed(self.saving.milestone_interval) and not (self._milestone / "meta.json").exists():
            self._try([self._write_milestone], resumed)
        if self._session.state.done:
            return
        moved = 0
        aside = self.run.milestones / SET_ASIDE
        try:
            for folder in sorted(self.run.milestones.glob("*/*")):
                newer = folder.name.isdecimal() and int(folder.name) > self._session.state.steps
                if not newer or folder.parent.name == SET_ASIDE:
                    continue
                move_aside(folder, aside / folder.parent.name)
                moved += 1
            best = self.run.dir / BEST
            if (steps := read_json(best / "meta.json").get("steps") or 0) > self._session.state.steps:
                move_aside(best, self.run.dir / SET_ASIDE)
                logger.info("best weights, of %s steps: moved to %s", f"{steps:,}", self.run.dir / SET_ASIDE)
        except OSError as error:
            logger.warning("what %s has of newer steps cannot be moved to %s: %s", self.run.dir, SET_ASIDE, error)
        if moved:
            logger.info("newer milestones: %s moved to %s", moved, aside)

    def after_iteration(self, on_demand: bool) -> None:
        """Saves what is due; every rank calls it with the same argument.

        Args:
            on_demand: Somebody has asked for a checkpoint.
        """
        with self._session.timers("save"):
            saved = self._save_what_is_due(on_demand, self._session.state.done)
        if saved and self._session.fabric.is_global_zero:
            self.run.write_timers(self._session.timers)

    def _save_what_is_due(self, on_demand: bool, ending: bool) -> bool:
        """Saves what is due, and returns whether anything was; `ending`: the loop ends here, with a last checkpoint."""
        by_steps = self._passed(self.saving.checkpoint_every_timesteps)
        milestone = self._passed(self.saving.milestone_interval)
        if not (by_steps or milestone or on_demand or ending):
            return False
        # What is written on demand changes the rest of the run (its arenas are restored), so that is not the same any
        # more as without it; what is due by steps happens in every run with these settings. With --overlap a longer run
        # would have collected its next rollout by now.
        self._inexact |= not (by_steps or milestone) or (ending and self._collects_ahead)
        state = self._session.state_dict(new_episodes=self.saving.exact_resume and not ending)
        self._last = time.monotonic()
        if state is None:
            return True
        players = state["ranks"][-self._session.args.num_players :]  # with 0 of them, all play
        exact = self.saving.exact_resume or all(rank["env"] is not None for rank in players)
        exact &= all(rank.get("replay", {}) is not None for rank in state["ranks"])  # one that is not saved
        state |= {"exact": exact and not self._inexact} | self._record.state_dict()
        due = ((by_steps or on_demand or ending, self._write_checkpoint), (milestone, self._write_milestone))
        self._try([write for is_due, write in due if is_due], state)
        return True

    def _try(self, writes: Sequence[Callable[[dict[str, Any]], None]], state: dict[str, Any]) -> None:
        """Writes one after another, up to the first that cannot be written: a warning."""
        try:
            for write in writes:
                write(state)
        except (OSError, checkpoint.CheckpointError) as error:
            goes_on = "" if self._session.state.done else "training continues, "
            warnings.warn(f"{error}; {goes_on}older checkpoints stay", RuntimeWarning, stacklevel=2)

    def _passed(self, interval: int | None) -> bool:
        """Returns whether this iteration crossed a multiple of `interval` agent-steps."""
        steps = self._session.state.steps
        return (
            interval is not None and steps // interval > (steps - self._session.state.steps_per_iteration) // interval
        )

    def _write_checkpoint(self, state: dict[str, Any]) -> None:
        path = self.run.checkpoints / file_name(state["steps"])
        checkpoint.write(path, state)
        self._saved_steps = state["steps"]
        self.run.provenance.ensure()
        checkpoint.prune(self.run.checkpoints, self.saving.keep_checkpoints)
        logger.debug("checkpoint %s", path)

    @property
    def _milestone(self) -> Path:
        """Folder of the milestone after the steps that are done."""
        return self.run.milestones / self._session.state.phase / f"{self._session.state.steps:012d}"

    def _write_milestone(self, saved: dict[str, Any]) -> None:
        state, folder = self._session.state, self._milestone
        checkpoint.write(folder / file_name(state.steps), saved)
        meta = {
            "steps": state.steps,
            "phase": state.phase,
            "mean_reward": self._record.mean_return,
            "entropy": state.metrics.get("ppo/entropy", state.metrics.get("sac/entropy")),
            "kl": state.metrics.get("ppo/approx_kl"),
            "rating": state.metrics.get("selfplay/rating"),
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "fingerprint": saved["fingerprint"],
        }
        write_json(folder / "meta.json", meta)  # last: a folder without it is not finished
        logger.debug("milestone %s", folder)
