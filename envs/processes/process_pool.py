"""ProcessPool: any vector environment, in shards over worker processes that are restarted when they fail."""

import copy
import functools
import inspect
import itertools
import logging
import pickle
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from envs.checks import check_actions, check_seed
from envs.component import added_metrics
from envs.factories import unwrap_partial
from envs.processes.worker import START_SECONDS, StepResult, WorkerError, WorkerProcess
from fabric_rl.base.processes import available_threads
from fabric_rl.base.settings import Count, Positive, check_value
from fabric_rl.base.state_schema import CannotBeSavedError
from fabric_rl.base.symmetry import Symmetry

Array = NDArray[Any]

logger = logging.getLogger(__name__)

_RESTART_SEED = 1_000_003
"""Added to a worker's seed with every restart, so that episodes are not repeated."""

MOST_RESTARTS = 3
"""Restarts of one worker without `GOOD_STEPS` steps in between; the next failure ends the pool."""
GOOD_STEPS = 1000


class VectorEnvFactory(Protocol):
    """Factory of a vector environment: a class, or a `functools.partial` of one."""

    def __call__(self, *, seed: int) -> VectorEnv[Any, Any, Any]:
        """Build the environment, whose sub-environments' seeds count from `seed`."""


class ProcessPool(VectorEnv[Array, Array, Array]):
    """Vector environment whose parts run in separate processes, with observations in shared memory.

    Together, the parts are bit-identical to `factory(seed=seed)` for any number of workers: a part that begins at arena
    `i` gets `seed + i`. A `RocketSimPool` in a worker uses one thread unless you set `num_threads`. `reset` and `step`
    return copies, which you can keep. Infos other than `final_obs` and `action_mask` are merged into arrays over all
    sub-environments, with zeros where a part has none.

    The `state` and `arenas` of the parts are in other processes and cannot be accessed; the pool can read metrics,
    timers, saved states, `layout` and `reward_signals`. Actions outside the action space are rejected before they reach
    a worker, so the pool stays usable. If a worker fails, the pool closes; with `restart`, the worker is restarted.

    Workers are started with `spawn` on all systems; they end with this object, or when this process ends for any
    reason.

    Attributes:
        timeout_seconds: Maximum time of a worker for one step.
        restart: True if failed workers are restarted.
        group_rows: The sub-environments of each group.
        num_seeds: Number of consecutive seeds that `reset(seed=...)` uses.
        reward_signals: As in `RocketSimPool`, like `headlines`, `layout` and `sides`; empty or None if the environment
            has none.
    """

    timers_are_parallel = True
    """The workers of `drain_timers` run at the same time."""

    def __init__(
        self,
        factory: VectorEnvFactory,
        num_workers: int | None = None,
        seed: int = 0,
        timeout_seconds: float = 60.0,
        restart: bool = False,
        groups: int = 1,
    ) -> None:
        """Start the workers and wait for them.

        Args:
            factory: Factory of the whole environment, with its `num_arenas` or `num_envs`: for example
                `functools.partial(RocketSimPool, num_arenas=64)`. It is sent to other processes, so it must be defined
                at the top level of a module.
            num_workers: Number of processes. Default: one for each core this process may use, at most one for each
                arena, and the same number for every group.
            seed: Seed of the first arena, as in `reset`.
            timeout_seconds: Maximum time of a worker for one step.
            restart: Restart a worker that crashed, hung or failed, with new episodes and a warning, instead of raising
                an error. A worker that fails more than 3 times without 1,000 good steps in between ends the pool.
            groups: Number of equal shares of the arenas that are stepped separately (`step_group`), each by its own
                workers: `fabric_rl.collect` chooses actions for one group while the others are being stepped.

        Raises:
            ValueError: There are more workers than arenas or fewer workers than groups, or the factory raised it.
            TypeError: The factory cannot be sent to another process, or has no size to divide.
            RuntimeError: A worker ended while its environment was built.
        """
        if num_workers is not None:
            check_value("ProcessPool: num_workers (--env.num_workers)", num_workers, Count)
        check_value("ProcessPool: groups (--env.groups)", groups, Count)
        check_value("ProcessPool: timeout_seconds", timeout_seconds, Positive)
        seed = check_seed("ProcessPool", seed)
        total, part = split_factory(factory)
        default = -(-available_threads() // groups) * groups
        workers = max(groups, min(default, total)) if num_workers is None else num_workers
        self._starts, self._groups = divide_arenas(total, workers, groups)
        self._factories = [part(start, stop - start, seed + start) for start, stop in itertools.pairwise(self._starts)]
        self.timeout_seconds, self.restart, self._seed = timeout_seconds, restart, seed
        self._settings: dict[str, tuple[Any, ...]] = {}  # commands that are repeated for a restarted worker
        self._restarts, self._restarts_in_a_row, self._new_restarts = [0] * workers, [0] * workers, 0
        self._workers: list[WorkerProcess] = []
        self._stop = weakref.finalize(self, _stop_all, self._workers)
        try:
            self._workers += [WorkerProcess(self._label(k), factory) for k, factory in enumerate(self._factories)]
            self._specs = specs = [worker.connect() for worker in self._workers]
        except BaseException:
            self._stop()
            raise
        self._ends = np.cumsum([spec.num_envs for spec in specs])
        self.num_envs = int(self._ends[-1])
        self.num_workers = workers
        self.single_observation_space: Space[Any] = specs[0].observation_space
        self.single_action_space: Space[Any] = specs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self.group_rows = tuple(slice(self._rows(g[0]).start, self._rows(g[-1]).stop) for g in self._groups)
        self.num_seeds = sum(spec.num_seeds for spec in specs)
        self.reward_signals, self.headlines = specs[0].reward_signals, specs[0].headlines
        self.layout, self.metrics_vary = specs[0].pool_layout, specs[0].metrics_vary
        sides = [(first + s.sides[0], s.sides[1]) for first, s in zip(self._starts, specs, strict=False) if s.sides]
        self.sides = tuple(np.concatenate(parts) for parts in zip(*sides, strict=True)) or None
        self._obs: Array | None = None
        self._begun: dict[int, StepResult] = {}  # of workers that were restarted between two steps
        self._steps = [0] * workers

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("state", "arenas"):
            raise AttributeError(
                f"ProcessPool has no {name}: its arenas are in other processes; use RocketSimPool to access them"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin new episodes in all parts; each part gets `seed` plus the index of its first arena.

        Returns:
            Observations `[N, ...]` and infos.
        """
        if seed is not None:
            seed = self._seed = check_seed("ProcessPool", seed, "reset(seed=...)")
        seeds = [None if seed is None else seed + start for start in self._starts[:-1]]
        infos = self._ask("reset", [(each, options) for each in seeds], stop=True)
        self._begun.clear()
        obs, *_, joined = _concatenated([w.result(each) for w, each in zip(self._workers, infos, strict=True)])
        self._obs = obs.copy()
        return obs, joined

    def step(self, actions: Array) -> StepResult:
        """Step all parts at the same time.

        Args:
            actions: `[N, ...]` actions of all sub-environments.

        Returns:
            Observations `[N, ...]`, rewards `[N]`, terminated `[N]`, truncated `[N]`, infos.

        Raises:
            ValueError: The actions have the wrong shape or dtype, or are outside the action space (the pool is then
                unchanged); or the environment in a worker raised it.
            FloatingPointError: Rewards or observations in a worker contain NaN or infinity.
            RuntimeError: A worker failed for another reason (with its traceback), ended, or did not answer in time.
        """
        everyone = range(self.num_workers)
        self._post_steps(everyone, slice(0, self.num_envs), actions)
        return self._step_results(everyone)

    def step_group(self, group: int, actions: Array) -> None:
        """Start a step of one group and return immediately; `wait_group` waits for its result.

        `actions [n, ...]` are for the group's sub-environments, see `group_rows`; raise a ValueError as in `step`.
        """
        self._post_steps(self._groups[group], self.group_rows[group], actions)

    def wait_group(self, group: int) -> StepResult:
        """Wait for the step of a group, and return its result as `step` does, with the same errors."""
        return self._step_results(self._groups[group])

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of the environment, summed over the workers; empty if it has none."""
        metrics = added_metrics(self._ask_all("drain_metrics"))
        if self.restart:
            metrics["game/worker_restarts"] = (float(self._new_restarts), 1.0)
            self._new_restarts = 0
        return metrics

    def drain_timers(self) -> dict[str, tuple[float, int]]:
        """Return the timers of the environment, summed over the workers, which run in parallel."""
        return added_metrics(self._ask_all("drain_timers"))

    def find_symmetry(self) -> Symmetry | str | None:
        """Return the symmetry of the environment, see `RocketSimPool.find_symmetry`; None if it cannot tell."""
        found: Symmetry | str | None = self._ask_all("find_symmetry")[0]
        return found

    def check_phases(self, names: Sequence[str]) -> None:
        """Raise a ValueError unless the environment has exactly the phases `names`, if it has any."""
        self._ask_all("check_phases", list(names))

    def set_phase(self, name: str, number: int) -> None:
        """Set the phase of the environment, if it has any."""
        self._settings["set_phase"] = (name, number)
        self._ask_all("set_phase", name, number)

    def enable_teacher(self, enabled: bool) -> None:
        """Choose whether infos contain the actions of the environment's teacher, if it has one."""
        self._settings["enable_teacher"] = (enabled,)
        self._ask_all("enable_teacher", enabled)

    def check_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """Raise a ValueError if the environment has no parameters that can be set, or rejects these values."""
        self._ask_all("check_parameters", dict(values))

    def set_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """Set parameters of all parts, also of parts that are restarted later; see `check_parameters`."""
        self._ask_all("set_parameters", dict(values))
        self._settings["set_parameters"] = (dict(values),)

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all parts; see the environment's own `state_dict`.

        Raises:
            CannotBeSavedError: The environment has no `state_dict`, or a part of it cannot be saved.
        """
        if not all(spec.resumable for spec in self._specs):
            raise CannotBeSavedError("ProcessPool: the environment has no state_dict or load_state_dict")
        obs = None if self._obs is None else self._obs.copy()
        parts = self._ask_all("state_dict")
        begun = {str(k): list(result) for k, result in self._begun.items()}
        counts = {"restarts": list(self._restarts), "steps": list(self._steps)}
        return {"parts": parts, "obs": obs, "seed": self._seed, "begun": begun} | counts

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the `state_dict` of a pool with the same number of workers.

        Raises:
            ValueError: This is not the state of a `ProcessPool`, it has a different number of workers, or a part does
                not fit.
        """
        if not isinstance(state, dict) or not state.keys() >= {"parts", "obs", "seed"}:
            raise ValueError("ProcessPool: this is not the state of a ProcessPool; it lacks parts, obs or seed")
        parts = state["parts"]
        if len(parts) != self.num_workers:
            raise ValueError(f"ProcessPool: the state has {len(parts)} workers, but this pool has {self.num_workers}")
        self._ask("load_state_dict", [(part,) for part in parts])
        self._obs = None if state["obs"] is None else np.array(state["obs"])
        self._seed = state["seed"]
        self._begun = {int(k): tuple(result) for k, result in state.get("begun", {}).items()}
        none = [0] * self.num_workers  # older states
        self._restarts, self._steps = list(state.get("restarts", none)), list(state.get("steps", none))

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Stop the workers."""
        self._stop()

    def _post_steps(self, workers: range, rows: slice, actions: Array) -> None:
        if self._obs is None:
            raise RuntimeError("ProcessPool: call reset() before step()")
        actions = check_actions("ProcessPool", actions, self.single_action_space, rows.stop - rows.start)
        self._settle(workers)
        for k in (k for k in workers if k not in self._begun):
            own = self._rows(k)
            self._workers[k].post_step(actions[own.start - rows.start : own.stop - rows.start])

    def _step_results(self, workers: range) -> StepResult:
        assert self._obs is not None
        replies = self._replies([k for k in workers if k not in self._begun], self.timeout_seconds)
        if not self.restart:
            self._raise_failures(replies)
        for k, reply in replies.items():
            if isinstance(reply, WorkerError):
                self._restart(k, reply)
        stepped = _concatenated(
            [self._begun.pop(k) if k in self._begun else self._workers[k].result(replies[k]) for k in workers]
        )
        for k in workers:
            self._steps[k] += 1
        self._obs[self._rows(workers[0]).start : self._rows(workers[-1]).stop] = stepped[0]
        return stepped

    def _rows(self, k: int) -> slice:
        return slice(int(self._ends[k]) - self._specs[k].num_envs, int(self._ends[k]))

    def _label(self, k: int) -> str:
        return f"ProcessPool worker {k} (arenas {self._starts[k]} to {self._starts[k + 1] - 1})"

    def _settle(self, workers: range) -> None:
        """Wait for the pending replies of an interrupted call to these workers."""
        if not self._workers:
            raise RuntimeError("ProcessPool: the pool is closed")
        for k in workers:
            try:
                self._workers[k].drain_pending(self.timeout_seconds)
            except WorkerError as error:
                if error.lost and not self.restart:
                    self._fail(k, error)
                if error.lost:  # otherwise the error belongs to the interrupted call
                    self._restart(k, error)

    def _replies(self, workers: Sequence[int], timeout_seconds: float) -> dict[int, Any]:
        """Return the reply of each worker to its posted command, or the exception of one that failed."""
        replies: dict[int, Any] = {}
        for k in workers:
            try:
                replies[k] = self._workers[k].receive(timeout_seconds)
            except WorkerError as error:
                replies[k] = error
        return replies

    def _ask_all(self, command: str, *arguments: Any) -> list[Any]:  # noqa: ANN401 - the command's
        return self._ask(command, [arguments] * self.num_workers)

    def _ask(self, command: str, arguments: Sequence[tuple[Any, ...]], stop: bool = False) -> list[Any]:
        """Return the replies of all workers to a command, each with its own arguments; see `_raise_failures`."""
        everyone = range(self.num_workers)
        self._settle(everyone)
        for worker, own in zip(self._workers, arguments, strict=True):
            worker.post(command, *own)
        replies = self._replies(everyone, START_SECONDS)
        for k, reply in replies.items():
            if self.restart and isinstance(reply, WorkerError) and reply.lost:
                self._restart(k, reply)
                self._workers[k].post(command, *arguments[k])
                replies |= self._replies([k], START_SECONDS)
        self._raise_failures(replies, stop)
        return list(replies.values())

    def _raise_failures(self, replies: dict[int, Any], stop: bool = True) -> None:
        """Raise the first failure; if `stop` is False, the workers continue, unless one is lost."""
        failures = {k: reply for k, reply in replies.items() if isinstance(reply, WorkerError)}
        for k, error in failures.items():
            if stop or error.lost:
                self._fail(k, error)
        for k, error in failures.items():
            raise error.raised_by(self._label(k))

    def _restart(self, k: int, problem: WorkerError) -> None:
        """Restart a worker after `problem`, with a warning; the result of its next step truncates all its episodes.

        Raises:
            RuntimeError: The worker has failed too often, or fails immediately.
        """
        self._count_failure(k, problem)
        last = None if self._obs is None else self._obs[self._rows(k)].copy()
        old, reward_dtype = self._workers[k], self._workers[k].reward_dtype
        old.kill()
        old.stop()
        worker = self._workers[k] = WorkerProcess(self._label(k), self._factories[k])
        try:
            worker.connect()
            for command, arguments in self._settings.items():
                worker.call(command, *arguments)
            worker.call("continue_from", self._steps[k] + 1)  # the step that gets the result below counts
            begun = worker.call("reset", self._seed + self._starts[k] + _RESTART_SEED * self._restarts[k], None)
        except WorkerError as error:
            self._fail(k, error)
        obs, *_, infos = worker.result(begun)
        none, every = np.zeros(len(obs), np.bool_), np.ones(len(obs), np.bool_)
        infos |= {"final_obs": obs if last is None else last, "_final_obs": every}
        if self.reward_signals:
            infos["reward_signals"] = np.zeros((len(obs), len(self.reward_signals)), np.float32)
        if self.sides is not None:
            infos["result"] = np.full(len(obs), 0.5, np.float32)
        self._begun[k] = copy.deepcopy((obs, np.zeros(len(obs), reward_dtype), none, every, infos))

    def _count_failure(self, k: int, problem: WorkerError) -> None:
        """Log a failure and warn; raise the problem if there are too many."""
        logger.warning("%s failed: %s", self._label(k), problem)
        if self._workers[k].steps >= GOOD_STEPS:
            self._restarts_in_a_row[k] = 0
        if self._restarts_in_a_row[k] >= MOST_RESTARTS:
            self._fail(k, problem, f"failed {MOST_RESTARTS + 1} times without {GOOD_STEPS:,} good steps in between")
        self._restarts_in_a_row[k] += 1
        self._restarts[k] += 1
        self._new_restarts += 1
        warnings.warn(
            f"ProcessPool: restarted worker {k} and truncated its episodes: {problem.summary}",
            RuntimeWarning,
            stacklevel=5,
        )

    def _fail(self, k: int, problem: WorkerError, given_up: str = "") -> NoReturn:
        """Stop all workers and raise the error of one of them."""
        self._stop()
        advice = "; restart=True (--env.restart true) would start it again" if problem.lost and not self.restart else ""
        raise problem.raised_by(f"{self._label(k)} {given_up}".rstrip(), advice)


def divide_arenas(arenas: int, workers: int, groups: int) -> tuple[list[int], list[range]]:
    """Divide arenas over workers, and workers into groups, as evenly as possible.

    Returns:
        `[workers + 1]` first arena of each worker, then the number of all arenas; and the workers of each group. The
        arenas of a group do not depend on the number of workers, so neither do trajectories.

    Raises:
        ValueError: There are more workers than arenas, or more groups than workers.
    """
    if workers > arenas:
        raise ValueError(
            f"ProcessPool: num_workers (--env.num_workers) is {workers}, but there are only {arenas} arenas"
        )
    if workers < groups:
        raise ValueError(
            f"ProcessPool: groups (--env.groups) is {groups}, but there are only {workers} workers; every group "
            "needs at least one (--env.num_workers)"
        )
    starts, members = [0], []
    for group in range(groups):
        members.append(range(workers * group // groups, workers * (group + 1) // groups))
        first, stop = arenas * group // groups, arenas * (group + 1) // groups
        count = len(members[group])
        starts += [first + (stop - first) * (k + 1) // count for k in range(count)]
    return starts, members


def split_factory(factory: VectorEnvFactory) -> tuple[int, Callable[[int, int, int], bytes]]:
    """Return the number of arenas that `factory` builds, and a function (first, count, seed) -> pickled factory.

    Raises:
        TypeError: The factory has no parameter for the seed or for the size, or cannot be pickled.
        ValueError: The size is less than 1.
    """
    call = unwrap_partial(factory)
    function, given = call.function, call.arguments()
    parameters = inspect.signature(function).parameters
    name = getattr(function, "__name__", str(function))
    size = next((size for size in ("num_arenas", "num_envs") if size in parameters), None)
    if size is None or "seed" not in parameters:
        raise TypeError(
            "ProcessPool: the factory must have a parameter seed, and num_arenas or num_envs as its size; "
            f"{name} has {', '.join(parameters)}"
        )
    total = check_value(f"ProcessPool: {name}'s {size}", given.get(size, parameters[size].default), Count)

    def part(first: int, count: int, seed: int) -> bytes:
        arguments = given | {size: count, "seed": seed}
        if "num_threads" in parameters:
            arguments["num_threads"] = given.get("num_threads") or 1
        if "first_arena" in parameters:
            arguments["first_arena"] = given.get("first_arena", 0) + first
        try:
            return pickle.dumps(functools.partial(function, **arguments))
        except Exception as error:
            raise TypeError(
                f"ProcessPool: the factory cannot be sent to another process ({error}); define it and the classes it "
                "uses at the top level of a module file"
            ) from error

    return total, part


def merge_infos(infos: Sequence[dict[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """Merge the infos of all parts into one dict of arrays over all sub-environments, zero in parts without the key.

    `sizes` are the parts' numbers of sub-environments. Values with a different number of entries are dropped.
    """
    joined: dict[str, Any] = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        values = [info.get(name) for info in infos]
        known = [value for value in values if value is not None]
        if all(isinstance(value, dict) for value in known):
            joined[name] = merge_infos([value or {} for value in values], sizes)
            continue
        like, pairs = np.asarray(known[0]), list(zip(values, sizes, strict=True))
        if all(value is None or np.shape(value)[:1] == (size,) for value, size in pairs):
            rows = [np.zeros((size, *like.shape[1:]), like.dtype) if value is None else value for value, size in pairs]
            joined[name] = np.concatenate(rows)
    return joined


def _concatenated(results: Sequence[StepResult]) -> StepResult:
    obs, rewards, terminated, truncated, infos = zip(*results, strict=True)
    merged = merge_infos(infos, [len(each) for each in obs])
    obs, rewards = np.concatenate(obs), np.concatenate(rewards)
    return obs, rewards, np.concatenate(terminated), np.concatenate(truncated), merged


def _stop_all(workers: list[WorkerProcess]) -> None:
    for worker in workers:
        worker.request_close()
    for worker in workers:
        worker.stop()
    workers.clear()
