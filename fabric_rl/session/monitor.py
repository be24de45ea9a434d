"""`TrainingMonitor`, which measures, logs and shows a run, and summarizes it at the end."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from fabric_rl.metrics.console import TrainConsole
from fabric_rl.metrics.loggers import Loggers
from fabric_rl.metrics.metrics_csv import mean_of_last_tenth, parse_number, read_rows
from fabric_rl.ranks.collectives import Sums, all_reduce_sums, metric_means
from fabric_rl.rollouts.collect import EPISODE_RETURN, RECENT_RETURN
from fabric_rl.runs.announcement import Announcement
from fabric_rl.runs.folder import Run
from fabric_rl.runs.records import list_checkpoints
from fabric_rl.session.session import Session
from fabric_rl.types import HasHeadlines

START_STEPS, END_STEPS = 50_000, 200_000
"""Agent-steps over which the summary averages figures at the start and at the end (at least one iteration). In runs
that are shorter than both together, it averages the first and the last tenth of the rows."""


class TrainingMonitor:
    """Monitor that measures, reduces, logs and shows the metrics of a run, and continues after a `resumed` checkpoint.

    Attributes:
        seconds: Seconds of the whole run, including those before a resume: `wall`, `collect`, `learn`.
    """

    def __init__(self, session: Session, plain: bool | None, resumed: dict[str, Any] | None) -> None:
        fabric, state, run = session.fabric, session.state, session.run
        self._session = session
        self.seconds = dict.fromkeys(("wall", "collect", "learn"), 0.0) | (resumed["seconds"] if resumed else {})
        self._recent = (0.0, 0.0)  # sum and count of the returns of the last episodes
        self._since: Sums = {name: (pair[0], pair[1]) for name, pair in (resumed or {}).get("unpublished", {}).items()}
        self._took: dict[str, float] = {}
        self._speeds: Sums = {}
        envs = session.collector.envs
        headlines = envs.headlines if isinstance(envs, HasHeadlines) else {}
        self._headlines = tuple(headlines)
        self._history: dict[str, list[tuple[int, float]]] = {name: [] for name in (EPISODE_RETURN, *headlines)}
        self._loggers = Loggers(fabric.loggers if fabric.is_global_zero else ())
        if run is not None:
            self._loggers.use_run_folder(run.dir)
            if resumed is not None and fabric.is_global_zero:
                self._remember_earlier(run, state.steps - bool(self._since))
        if resumed is not None:
            if "returns" in resumed:  # not in older checkpoints
                self._history[EPISODE_RETURN] = [(int(step), value) for step, value in resumed["returns"].tolist()]
            local = session.all_names(session.collector.recent_returns())
            self._recent = all_reduce_sums(fabric, local).get(RECENT_RETURN, (0.0, 0.0))
        if not any(isinstance(each, Announcement) for each in session.hooks.callbacks):  # it knows all settings
            self._loggers.log_settings(session.settings, (), state.steps)
        total = state.steps + (state.iterations - state.iteration) * state.steps_per_iteration
        self._console = TrainConsole(total, fabric.is_global_zero, plain, state.steps, headlines)
        self._began = self._iteration_began = time.perf_counter()
        self._before_now = self.seconds["wall"]

    def __enter__(self) -> "TrainingMonitor":
        self._began = time.perf_counter()
        self._console.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._console.__exit__(*error)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Measure the time of a part of an iteration; `collect` is the first part."""
        began = time.perf_counter()
        if part == "collect":
            self._iteration_began = began
        with self._session.timers(part):
            yield
        self._took[part] = time.perf_counter() - began

    def reduce(self, losses: Mapping[str, float]) -> None:
        """Reduce the iteration's metrics over all ranks into `TrainState.sums` and `TrainState.metrics`.

        Args:
            losses: Metrics of learning; empty on ranks that do not learn.
        """
        session, state = self._session, self._session.state
        now, took = time.perf_counter(), session.collector.seconds
        self.seconds["collect"] += took
        self.seconds["learn"] += self._took["learn"]
        self.seconds["wall"] = self._before_now + now - self._began
        with session.timers("metrics"):
            local = session.collector.metrics | {name: (value, 1.0) for name, value in losses.items()}
            sums = all_reduce_sums(session.fabric, session.all_names(local | session.hooks.drain_metrics()))
            self._recent = sums.pop(RECENT_RETURN, (0.0, 0.0))
            state.sums, state.metrics = sums, metric_means(sums)
            speeds = {"collected": took, "overall": now - self._iteration_began}
            if losses:
                speeds["consumed"] = self._took["learn"]
            self._speeds = {
                f"speed/{name}_steps_per_second": (float(state.steps_per_iteration), max(seconds, 1e-9))
                for name, seconds in speeds.items()
            }
            state.metrics |= metric_means(self._speeds)

    def publish(self) -> None:
        """Add the iteration to the next row of metrics; log and show the row when it is due (`--summary_freq`)."""
        session, state = self._session, self._session.state
        with session.timers("metrics"):
            known = state.sums | self._speeds
            for name, value in state.metrics.items():
                total, count = known.get(name, (value, 1.0))
                if not count or total / count != value:  # set by a callback
                    total, count = value, 1.0
                before = self._since.get(name, (0.0, 0.0))
                self._since[name] = (before[0] + total, before[1] + count)
            every = session.args.summary_freq or state.steps_per_iteration
            if state.steps // every > (state.steps - state.steps_per_iteration) // every:
                self._publish()
                self._since = {}

    def _publish(self) -> None:
        steps, metrics = self._session.state.steps, metric_means(self._since)
        for name, history in self._history.items():
            if name in metrics:
                history.append((steps, metrics[name]))
        self._loggers.log(metrics, steps)
        self._console.show(steps, metrics)

    def state_dict(self) -> dict[str, Any]:
        """Return the run's elapsed seconds by part, the returns of its rows, and the sums of metrics not logged yet."""
        unpublished = {name: list(pair) for name, pair in self._since.items()}
        returns = np.array(self._history[EPISODE_RETURN]).reshape(-1, 2)
        return {"seconds": dict(self.seconds), "returns": returns, "unpublished": unpublished}

    def mean_return(self) -> float | None:
        """Return the mean of `reward/episode_return` over the last tenth of its rows; None if no episode has ended."""
        values = [value for _, value in self._history[EPISODE_RETURN]]
        if not values:  # the first row is not logged yet
            return metric_means(self._since).get(EPISODE_RETURN)
        return mean_of_last_tenth(np.array(values))

    def finish(self, unsaved: Mapping[str, Any]) -> dict[str, Any]:
        """Return the summary, and write it to the run's folder; every rank calls it.

        Args:
            unsaved: Entries about steps that could not be saved, see `Saver.unsaved`.
        """
        session, run, first = self._session, self._session.run, self._session.fabric.is_global_zero
        ran = bool(self._took)  # otherwise nothing was left to do
        if ran and self._since:
            self._publish()  # if resumed, the run replaces this row with a later one
        summary = self._summary() | dict(unsaved)
        kept = run.read_summary() if run is not None and not ran else {}
        if kept.get("total_steps") == session.state.steps:
            summary |= kept
        elif run is not None and first:  # also for a run that was killed after its last checkpoint
            run.write_summary(summary)
            if ran:
                run.write_timers(session.timers)
        return summary

    def close(self) -> None:
        """Let the loggers write their buffered metrics."""
        self._loggers.finalize()

    def _summary(self) -> dict[str, Any]:
        session, state, run = self._session, self._session.state, self._session.run
        speeds = {"collected": "collect", "consumed": "learn", "overall": "wall"}
        if session.inference:
            del speeds["consumed"]
        summary: dict[str, Any] = {
            "run_id": state.run_id,
            "total_steps": state.steps,
            "iterations": session.iterations_done,
            "world_size": session.fabric.world_size,
            "stopped_early": state.iteration < state.iterations,
            "wall_seconds": self.seconds["wall"],
        }
        for name, part in speeds.items():
            summary[f"{name}_steps_per_second"] = state.steps / max(self.seconds[part], 1e-9)
        if state.stopped_by is not None:
            summary["stopped_by"] = state.stopped_by
        if session.inference:
            summary["inference"] = True
        total, count = self._recent
        summary |= {"mean_return": self.mean_return(), "mean_return_last_20": total / count if count else None}
        for name in self._headlines:
            if history := self._history[name]:
                summary[name.rpartition("/")[2]] = _start_and_end(history)
        if run is not None and (saved := list_checkpoints(run.checkpoints)):
            summary["checkpoint"] = str(saved[-1])
        return summary

    def _remember_earlier(self, run: Run, steps: int) -> None:
        """Read the returns and headlines of a resumed run up to `steps`."""
        with suppress(OSError):
            for row in read_rows(run.dir / "metrics.csv"):
                step = parse_number(row.get("step"))
                for name, history in self._history.items():
                    value = parse_number(row.get(name))
                    if step is not None and step <= steps and value is not None:
                        history.append((int(step), value))


def _start_and_end(history: list[tuple[int, float]]) -> dict[str, float]:
    """Return the means of a metric over the first and the last iterations in which it has a value."""
    last, values = history[-1][0], np.array([value for _, value in history])
    if last < START_STEPS + END_STEPS:  # the two would overlap
        return {"start": mean_of_last_tenth(values, first=True), "end": mean_of_last_tenth(values)}
    start = [value for steps, value in history if steps <= START_STEPS] or [history[0][1]]
    end = [value for steps, value in history if steps > last - END_STEPS]
    return {"start": sum(start) / len(start), "end": sum(end) / len(end)}
