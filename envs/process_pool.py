"""ProcessPool: any vector environment, in shards over worker processes."""

import functools
import inspect
import logging
import pickle
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from envs.checks import as_actions, check_actions, check_seed, is_number, is_whole, whole_number
from envs.rocket_pool import available_threads
from envs.shard_worker import HAS_FINAL, HAS_MASK, START_SECONDS, Failure, ShardSpec, ShardWorker, WorkerLostError

Array = NDArray[Any]
logger = logging.getLogger(__name__)

_SIZES = ("num_arenas", "num_envs")
"""What says how large an environment is: the first of these parameters that the factory has is divided."""
_RESTART_SEED = 1_000_003
"""Added to a worker's seed with every restart, so that it does not play the same episodes again."""

MOST_RESTARTS = 3
"""Restarts of one worker without `GOOD_STEPS` steps in between; the next failure ends the pool."""
GOOD_STEPS = 1000


class VectorEnvFactory(Protocol):
    """Builds a vector environment; a class, or a `functools.partial` of one."""

    def __call__(self, *, seed: int) -> VectorEnv[Any, Any, Any]:
        """Builds it with its sub-environments' seeds counting from `seed`."""


class ProcessPool(VectorEnv[Array, Array, Array]):
    """One vector environment whose parts run in processes of their own, with observations in shared memory.

    The parts together are what `factory(seed=seed)` would be alone, to the bit, for every number of workers: a part
    that begins at arena `i` gets `seed + i`. A `RocketSimPool` part steps with one thread unless told otherwise.
    Arrays that `reset` and `step` return are the caller's to keep. Infos beside `final_obs` and `action_mask` are
    merged to arrays over all sub-environments, zero where a part has none.

    The parts' `state` and `arenas` live in the other processes and cannot be reached from here; what the pool can ask
    for are metrics, timers, states, `layout` and `reward_signals`. Actions outside the action space are refused before
    any worker sees them, so the pool can go on. A worker in which something fails closes the pool, or with `restart` is
    started again.

    Workers are started with `spawn`, as on Windows; they end with this object, or with this process however it ends.
    """

    def __init__(
        self,
        factory: VectorEnvFactory,
        num_workers: int | None = None,
        seed: int = 0,
        timeout_seconds: float = 60.0,
        restart: bool = False,
        groups: int = 1,
    ) -> None:
        """Starts the workers and waits for them.

        Args:
            factory: The whole environment, with `num_arenas` or `num_envs` of its own: for example
                `functools.partial(RocketSimPool, num_arenas=64)`. It is sent to other processes, so it must be defined
                at the top level of a module.
            num_workers: Processes. Default: one for each core this process may use, at most one for each arena, and as
                many for every group.
            seed: As in `reset`.
            timeout_seconds: How long a worker may take for one step.
            restart: Start a worker that crashed, hung or failed again with new episodes, with a warning, instead of
                raising. One that fails more than 3 times without 1,000 good steps in between ends the pool.
            groups: Equal shares of the arenas that can be stepped on their own (`step_group`), each by workers of its
                own: `fabric_rl.collect` decides for one group while the others are being stepped.

        Raises:
            ValueError: More workers than arenas, fewer than groups, or what the factory raised.
            TypeError: A factory that cannot be sent to another process or that has no size to divide.
            RuntimeError: A worker ended while it was built.
        """
        if num_workers is not None:
            whole_number("ProcessPool", "num_workers (--env.num_workers)", num_workers)
        whole_number("ProcessPool", "groups (--env.groups)", groups)
        if not is_number(timeout_seconds) or not timeout_seconds > 0:
            raise ValueError(f"ProcessPool: timeout_seconds must be positive, got {timeout_seconds!r}")
        seed = check_seed("ProcessPool", seed)
        total, divide = _divisible(factory)
        default = -(-available_threads() // groups) * groups
        workers = max(groups, min(default, total)) if num_workers is None else num_workers
        if workers > total:
            raise ValueError(
                f"ProcessPool: num_workers (--env.num_workers) is {workers}, but there are only {total} parts"
            )
        if workers < groups:
            raise ValueError(
                f"ProcessPool: groups (--env.groups) is {groups}, but there are only {workers} workers; every group "
                "needs one of its own (--env.num_workers)"
            )
        self.timeout_seconds, self.restart = timeout_seconds, restart
        # The arenas of a group do not depend on the number of workers, so neither does what is played.
        self._groups = [range(workers * g // groups, workers * (g + 1) // groups) for g in range(groups)]
        self._starts = [0]
        for g, members in enumerate(self._groups):
            first, stop = total * g // groups, total * (g + 1) // groups
            self._starts += [first + (stop - first) * (k + 1) // len(members) for k in range(len(members))]
        self._factories = [
            _pickled(divide(start, stop - start, seed + start))
            for start, stop in zip(self._starts, self._starts[1:], strict=False)
        ]
        self._workers: list[ShardWorker] = []
        self._stop = weakref.finalize(self, _stop_all, self._workers)
        try:
            self._workers += [ShardWorker(f"ProcessPool worker {k}", f) for k, f in enumerate(self._factories)]
            specs = [worker.connect() for worker in self._workers]
        except WorkerLostError as error:
            self._stop()
            raise RuntimeError(f"{error} while it was built") from None
        except BaseException:
            self._stop()
            raise
        self._specs: list[ShardSpec] = specs
        self._seed, self._restarts, self._new_restarts = seed, [0] * workers, 0
        self._phase: tuple[str, float | None] | None = None
        self._parameters: dict[str, Any] | None = None
        self._restarts_in_a_row = [0] * workers
        self._ends = np.cumsum([spec.num_envs for spec in specs])
        self.num_envs = int(self._ends[-1])
        self.num_workers = workers
        self.single_observation_space: Space[Any] = specs[0].observation_space
        self.single_action_space: Space[Any] = specs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self._obs: Array | None = None

    @property
    def group_rows(self) -> tuple[slice, ...]:
        """The sub-environments of each group."""
        return tuple(slice(self._rows(g[0]).start, self._rows(g[-1]).stop) for g in self._groups)

    @property
    def num_seeds(self) -> int:
        """Consecutive seeds that `reset(seed=...)` uses."""
        return sum(spec.num_seeds for spec in self._specs)

    @property
    def reward_signals(self) -> tuple[str, ...]:
        """Names of the columns of `infos["reward_signals"]`, see the environment's own."""
        return self._specs[0].reward_signals

    @property
    def layout(self) -> dict[str, str]:
        """See `RocketSimPool.layout`; empty if the environment has none."""
        return dict(self._specs[0].pool_layout)

    def __getattr__(self, name: str) -> NoReturn:
        """Says why there is no `state` and no `arenas`."""
        if name in ("state", "arenas"):
            raise AttributeError(
                f"ProcessPool: it has no {name}, its arenas live in other processes; use RocketSimPool to see them"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins new episodes everywhere; part `k` gets `seed` plus the number of its first arena.

        Returns:
            Observations `[N, ...]` and infos.
        """
        if seed is not None:
            seed = self._seed = check_seed("ProcessPool", seed, "reset(seed=...)")
        self._settle()
        for k, worker in enumerate(self._workers):
            worker.post("reset", None if seed is None else seed + self._starts[k], options)
        replies = {k: self._receive(k, START_SECONDS) for k in range(self.num_workers)}
        self._raise_failures(replies)
        obs = self._joined("obs", replies)
        self._obs = obs.copy()
        return obs, self._infos(replies)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Steps all parts at the same time.

        Args:
            actions: `[N, ...]`.

        Returns:
            Observations `[N, ...]`, rewards `[N]`, terminated `[N]`, truncated `[N]`, infos.

        Raises:
            ValueError: Actions of the wrong shape or dtype, or outside the action space; the pool stays as it was. Or
                a part of a worker is malformed, as where it would be raised without processes.
            FloatingPointError: NaN or infinity in a worker.
            RuntimeError: A worker failed otherwise (with its traceback), ended or did not answer in time.
        """
        everyone = range(self.num_workers)
        self._post_steps(everyone, slice(0, self.num_envs), actions)
        return self._step_results(everyone)

    def step_group(self, group: int, actions: Array) -> None:
        """Starts a step of one group and returns at once; `wait_group` waits for its end.

        Args:
            group: Its number.
            actions: `[n, ...]` for the group's sub-environments, see `group_rows`.

        Raises:
            ValueError: As `step` does.
        """
        self._post_steps(self._groups[group], self.group_rows[group], actions)

    def wait_group(self, group: int) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """What `step` returns, for the sub-environments of a group that was started; errors are those of `step`."""
        return self._step_results(self._groups[group])

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """The sums over the workers of what their environments have counted; nothing for one that counts nothing."""
        metrics: dict[str, tuple[float, float]] = {}
        for part in self._ask_all("drain_metrics"):
            for name, (total, count) in part.items():
                before = metrics.get(name, (0.0, 0.0))
                metrics[name] = (before[0] + total, before[1] + count)
        if self.restart:
            metrics["game/worker_restarts"] = (float(self._new_restarts), 1.0)
            self._new_restarts = 0
        return metrics

    def drain_timers(self) -> dict[str, tuple[float, int]]:
        """The sums over the workers of where their time went, which passes in all of them at once."""
        timers: dict[str, tuple[float, int]] = {}
        for part in self._ask_all("drain_timers"):
            for name, (seconds, count) in part.items():
                before = timers.get(name, (0.0, 0))
                timers[name] = (before[0] + seconds, before[1] + count)
        return timers

    def check_phases(self, names: Sequence[str]) -> None:
        """See the environment's own; nothing for one that has no phases."""
        self._ask_all("check_phases", list(names))

    def set_phase(self, name: str, mechanics_weight: float | None = None) -> None:
        """See the environment's own; nothing for one that has no phases."""
        self._phase = (name, mechanics_weight)
        self._ask_all("set_phase", *self._phase)

    def check_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """See the environment's own.

        Raises:
            ValueError: As the environment's own, or it has no parameters that could be set.
        """
        self._ask_all("check_parameters", dict(values))

    def set_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """See the environment's own; a part that is started again gets them, too.

        Raises:
            ValueError: See `check_parameters`.
        """
        self._ask_all("set_parameters", dict(values))
        self._parameters = dict(values)

    def state_dict(self) -> dict[str, Any]:
        """The states of all parts; see the environment's own.

        Raises:
            TypeError: The environment has no `state_dict`, or a part of it cannot be saved.
        """
        if not all(spec.resumable for spec in self._specs):
            raise TypeError("ProcessPool: its environment has no state_dict and load_state_dict")
        obs = None if self._obs is None else self._obs.copy()
        return {"parts": self._ask_all("state_dict"), "obs": obs, "seed": self._seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a `state_dict` of a pool with the same number of workers.

        Raises:
            ValueError: No state of a ProcessPool, one with another number of workers, or parts that do not fit.
        """
        if not isinstance(state, dict) or not state.keys() >= {"parts", "obs", "seed"}:
            raise ValueError("ProcessPool: this is no state of a ProcessPool, it lacks parts, obs or seed")
        parts = state["parts"]
        if len(parts) != self.num_workers:
            raise ValueError(f"ProcessPool: the state is of {len(parts)} workers, this pool has {self.num_workers}")
        self._settle()
        for worker, part in zip(self._workers, parts, strict=True):
            worker.post("load_state_dict", part)
        self._raise_failures({k: self._receive(k, START_SECONDS) for k in range(self.num_workers)}, stop=False)
        self._obs = None if state["obs"] is None else np.array(state["obs"])
        self._seed = state["seed"]

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Ends the workers."""
        self._stop()

    # ------------------------------------------------------------------ workers

    def _post_steps(self, workers: range, rows: slice, actions: Array) -> None:
        if self._obs is None:
            raise RuntimeError("ProcessPool: call reset() before step()")
        actions = as_actions("ProcessPool", actions)
        expected = (rows.stop - rows.start, *(self.single_action_space.shape or ()))
        if actions.shape != expected or not np.can_cast(actions.dtype, self.single_action_space.dtype, "same_kind"):
            raise ValueError(
                f"ProcessPool: actions must be {self.single_action_space.dtype} of shape {list(expected)}, got "
                f"{actions.dtype} of shape {list(actions.shape)}"
            )
        check_actions("ProcessPool", actions, self.single_action_space)
        self._settle(workers)
        for k in workers:
            own = self._rows(k)
            self._workers[k].post_step(actions[own.start - rows.start : own.stop - rows.start])

    def _step_results(self, workers: range) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        assert self._obs is not None
        replies = {k: self._receive(k, self.timeout_seconds) for k in workers}
        lost = {k: reply for k, reply in replies.items() if isinstance(reply, Failure | WorkerLostError)}
        if lost and not self.restart:
            self._raise_failures(replies)
        last = {k: self._obs[self._rows(k)].copy() for k in lost}
        for k, reply in lost.items():
            self._start_again(k, reply)
            replies[k] = None
        obs, infos = self._joined("obs", workers), self._infos(replies, last)
        dtypes = [self._workers[k].reward_dtype for k in workers if k not in lost]
        rewards = self._joined("rewards", workers).astype(dtypes[0] if dtypes else np.float32)
        terminated, truncated = self._joined("terminated", workers), self._joined("truncated", workers)
        first = self._rows(workers[0]).start
        for k in lost:
            own = slice(self._rows(k).start - first, self._rows(k).stop - first)
            rewards[own], terminated[own], truncated[own] = 0, False, True
        self._obs[first : first + len(obs)] = obs
        return obs, rewards, terminated, truncated, infos

    def _rows(self, k: int) -> slice:
        return slice(int(self._ends[k]) - self._specs[k].num_envs, int(self._ends[k]))

    def _joined(self, name: str, workers: Iterable[int]) -> Array:
        return np.concatenate([self._workers[k].arrays[name] for k in workers])

    def _settle(self, workers: Iterable[int] | None = None) -> None:
        """Waits for what an interrupted call has left behind."""
        if not self._workers:
            raise RuntimeError("ProcessPool: it is closed")
        for k in range(self.num_workers) if workers is None else workers:
            try:
                self._workers[k].settle(self.timeout_seconds)
            except WorkerLostError as error:
                if not self.restart:
                    self._fail(k, error)
                self._start_again(k, error)

    def _receive(self, k: int, timeout_seconds: float) -> Any:  # noqa: ANN401 - whatever the command returned
        try:
            return self._workers[k].receive(timeout_seconds)
        except WorkerLostError as error:
            return error

    def _ask_all(self, command: str, *arguments: Any) -> list[Any]:  # noqa: ANN401 - the command's
        self._settle()
        for worker in self._workers:
            worker.post(command, *arguments)
        replies = {k: self._receive(k, START_SECONDS) for k in range(self.num_workers)}
        self._raise_failures(replies, stop=False)
        return list(replies.values())

    def _raise_failures(self, replies: dict[int, Any], stop: bool = True) -> None:
        """Raises the first failure; with `stop` false the pool goes on if the workers could answer."""
        for k, reply in replies.items():
            if isinstance(reply, WorkerLostError) or (isinstance(reply, Failure) and stop):
                self._fail(k, reply)
        for k, reply in replies.items():
            if isinstance(reply, Failure):
                raise reply.as_error(self._name_of(k))

    def _name_of(self, k: int) -> str:
        return f"ProcessPool worker {k} (arenas {self._starts[k]} to {self._starts[k + 1] - 1})"

    def _fail(self, k: int, problem: Failure | WorkerLostError, given_up: str = "") -> NoReturn:
        where = f"{self._name_of(k)}{given_up}"
        self._stop()
        if isinstance(problem, Failure):
            raise problem.as_error(where)
        advice = given_up or "; restart=True (--env.restart true) would start it again"
        raise RuntimeError(f"{problem}{advice}") from None

    def _start_again(self, k: int, problem: Failure | WorkerLostError) -> None:
        what = problem.summary if isinstance(problem, Failure) else str(problem)
        logger.warning("%s failed: %s", self._name_of(k), problem.traceback if isinstance(problem, Failure) else what)
        if self._workers[k].steps >= GOOD_STEPS:
            self._restarts_in_a_row[k] = 0
        if self._restarts_in_a_row[k] >= MOST_RESTARTS:
            self._fail(k, problem, f" failed {MOST_RESTARTS + 1} times without {GOOD_STEPS:,} good steps in between")
        self._restarts_in_a_row[k] += 1
        warnings.warn(
            f"ProcessPool: started worker {k} again, its episodes are cut off: {what}", RuntimeWarning, stacklevel=3
        )
        self._workers[k].kill()
        self._workers[k].stop()
        self._restarts[k] += 1
        self._new_restarts += 1
        worker = self._workers[k] = ShardWorker(f"ProcessPool worker {k}", self._factories[k])
        try:
            worker.connect()
            if self._phase is not None:
                worker.post("set_phase", *self._phase)
                worker.receive(START_SECONDS)
            if self._parameters is not None:
                worker.post("set_parameters", self._parameters)
                worker.receive(START_SECONDS)
            worker.post("reset", self._seed + self._starts[k] + _RESTART_SEED * self._restarts[k], None)
            reply = worker.receive(START_SECONDS)
        except WorkerLostError as error:
            reply = error
        if isinstance(reply, Failure | WorkerLostError):
            self._fail(k, reply)

    def _infos(self, replies: dict[int, Any], last: dict[int, Array] | None = None) -> dict[str, Any]:
        """Joins what these workers know; `last` are the last observations of those that were started again."""
        last = last or {}
        infos = _merged([reply or {} for reply in replies.values()], [self._specs[k].num_envs for k in replies])
        flags = {k: self._workers[k].flags for k in replies}
        if last or any(flag & HAS_FINAL for flag in flags.values()):
            ended = {k: self._workers[k].arrays["_final_obs"] & bool(flag & HAS_FINAL) for k, flag in flags.items()}
            ended |= {k: np.ones(len(rows), np.bool_) for k, rows in last.items()}
            final = [last.get(k, self._workers[k].arrays["final_obs"]) for k in replies]
            infos |= {"final_obs": np.concatenate(final), "_final_obs": np.concatenate(list(ended.values()))}
        if all(flag & HAS_MASK for flag in flags.values()):
            infos["action_mask"] = self._joined("action_mask", replies)
        return infos


def _divisible(factory: VectorEnvFactory) -> tuple[int, Any]:
    """How many arenas `factory` builds, and a function (first, count, seed) -> factory of a part."""
    function: Any = factory
    args: tuple[Any, ...] = ()
    settings: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, settings = (*function.args, *args), function.keywords | settings
        function = function.func
    classes = [i for i, arg in enumerate(args) if inspect.isclass(arg)]
    if classes and not inspect.isclass(function):  # jsonargparse hands out functions of a class and its settings
        function, args = args[classes[0]], args[classes[0] + 1 :]
    parameters = inspect.signature(function).parameters
    given = dict(inspect.signature(function).bind_partial(*args, **settings).arguments)
    name = getattr(function, "__name__", str(function))
    size = next((size for size in _SIZES if size in parameters), None)
    total: Any = given.get(size, parameters[size].default) if size else None
    if size is None or not is_whole(total) or "seed" not in parameters:
        if size is not None and "seed" in parameters:
            whole_number("ProcessPool", f"{name}'s {size}", total)
        raise TypeError(
            f"ProcessPool: the factory must take seed and a number {' or '.join(_SIZES)} to divide over the workers; "
            f"{name} takes {', '.join(parameters)}"
        )
    if total < 1:
        raise ValueError(f"ProcessPool: {name}'s {size} must be at least 1, got {total}")

    def part(first: int, count: int, seed: int) -> Any:  # noqa: ANN401 - a partial
        arguments = given | {size: count, "seed": seed}
        if "num_threads" in parameters:
            arguments["num_threads"] = given.get("num_threads") or 1
        if "first_arena" in parameters:
            arguments["first_arena"] = given.get("first_arena", 0) + first
        return functools.partial(function, **arguments)

    return total, part


def _pickled(factory: Any) -> bytes:  # noqa: ANN401 - a partial
    try:
        return pickle.dumps(factory)
    except Exception as error:
        raise TypeError(
            f"ProcessPool: the factory cannot be sent to another process ({error}); define it and the classes it uses "
            "at the top level of a module file"
        ) from error


def _merged(infos: Sequence[dict[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """One dict of arrays over all sub-environments, zero in parts without the name."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        values = [info.get(name) for info in infos]
        known = [value for value in values if value is not None]
        if all(isinstance(value, dict) for value in known):
            merged[name] = _merged([value or {} for value in values], sizes)
            continue
        arrays = [np.asarray(value) for value in known]
        like = arrays[0]
        pairs = list(zip(values, sizes, strict=True))
        if any(np.shape(value)[:1] != (size,) for value, size in pairs if value is not None):
            continue  # not one entry for each sub-environment
        empty = [np.zeros((size, *like.shape[1:]), like.dtype) if value is None else value for value, size in pairs]
        merged[name] = np.concatenate(empty)
    return merged


def _stop_all(workers: list[ShardWorker]) -> None:
    for worker in workers:
        worker.request_close()
    for worker in workers:
        worker.stop()
    workers.clear()
