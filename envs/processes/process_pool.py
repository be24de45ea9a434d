"""ProcessPool: any vector environment, in shards over worker processes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from envs.checks import as_actions, check_actions, check_seed, positive, whole_number
from envs.cores import available_threads
from envs.processes.factories import VectorEnvFactory, divisible, pickled
from envs.processes.infos import merged
from envs.processes.inspector import ProcessInspector
from envs.processes.protocol import HAS_FINAL, HAS_MASK, Failure, WorkerLostError
from envs.processes.supervision import SupervisedWorkers

Array = NDArray[Any]
Count = TypeVar("Count", int, float)


class ProcessPool(VectorEnv[Array, Array, Array]):
    """Vector environment whose parts run in separate processes, with observations in shared memory.

    The parts together are what `factory(seed=seed)` would be alone, bit-identical for any number of workers: a part
    that begins at arena `i` gets `seed + i`. A `RocketSimPool` part steps with one thread unless told otherwise.
    Arrays that `reset` and `step` return are the caller's to keep. Infos beside `final_obs` and `action_mask` are
    merged to arrays over all sub-environments, zero where a part has none.

    The parts' `state` and `arenas` live in the other processes and cannot be reached from here; what the pool can ask
    for are metrics, timers, states, `layout` and `reward_signals`. Actions outside the action space are refused before
    any worker sees them, so the pool can go on. A worker in which something fails closes the pool, or with `restart` is
    started again.

    Workers are started with `spawn`, as on Windows; they end with this object, or with this process however it ends.

    Attributes:
        timeout_seconds: How long a worker may take for one step.
        restart: Whether workers that fail are started again.
        group_rows: The sub-environments of each group.
        num_seeds: Consecutive seeds that `reset(seed=...)` uses.
        reward_signals: Names of the columns of `infos["reward_signals"]`, see the environment's own.
        headlines: Metrics that people look at first, see the environment's own.
        sides: See `RocketSimPool.sides`; None if the environment has none.
        layout: See `RocketSimPool.layout`; empty if the environment has none.
        inspector: What the callback `fabric_rl.callbacks.Debug` asks for.
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
            factory: The whole environment, with its `num_arenas` or `num_envs`: for example
                `functools.partial(RocketSimPool, num_arenas=64)`. It is sent to other processes, so it must be defined
                at the top level of a module.
            num_workers: Processes. Default: one for each core this process may use, at most one for each arena, and as
                many for every group.
            seed: As in `reset`.
            timeout_seconds: How long a worker may take for one step.
            restart: Start a worker that crashed, hung or failed again with new episodes, with a warning, instead of
                raising. One that fails more than 3 times without 1,000 good steps in between ends the pool.
            groups: Equal shares of the arenas that can be stepped on their own (`step_group`), each by separate
                workers: `fabric_rl.collect` decides for one group while the others are being stepped.

        Raises:
            ValueError: More workers than arenas, fewer than groups, or what the factory raised.
            TypeError: A factory that cannot be sent to another process or that has no size to divide.
            RuntimeError: A worker ended while it was built.
        """
        if num_workers is not None:
            whole_number("ProcessPool", "num_workers (--env.num_workers)", num_workers)
        whole_number("ProcessPool", "groups (--env.groups)", groups)
        positive("ProcessPool", "timeout_seconds", timeout_seconds)
        seed = check_seed("ProcessPool", seed)
        total, divide = divisible(factory)
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
        # The arenas of a group do not depend on the number of workers, so neither does what is played.
        self._groups = [range(workers * g // groups, workers * (g + 1) // groups) for g in range(groups)]
        self._starts = [0]
        for g, members in enumerate(self._groups):
            first, stop = total * g // groups, total * (g + 1) // groups
            self._starts += [first + (stop - first) * (k + 1) // len(members) for k in range(len(members))]
        factories = [
            pickled(divide(start, stop - start, seed + start))
            for start, stop in zip(self._starts, self._starts[1:], strict=False)
        ]
        self.timeout_seconds, self.restart = timeout_seconds, restart
        self._workers = SupervisedWorkers(factories, self._starts, seed, timeout_seconds, restart)
        self._specs = specs = self._workers.specs
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
        self.layout = specs[0].pool_layout
        sides = [(first + s.sides[0], s.sides[1]) for first, s in zip(self._starts, specs, strict=False) if s.sides]
        self.sides = tuple(np.concatenate(parts) for parts in zip(*sides, strict=True)) or None
        self.inspector = ProcessInspector(self.layout)
        self._obs: Array | None = None

    def __getattr__(self, name: str) -> NoReturn:
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
            seed = self._workers.seed = check_seed("ProcessPool", seed, "reset(seed=...)")
        self._workers.settle()
        for k, worker in enumerate(self._workers):
            worker.post("reset", None if seed is None else seed + self._starts[k], options)
        replies = self._workers.replies(range(self.num_workers))
        self._workers.raise_failures(replies)
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
        """Return the result of `step` for a group of sub-environments that was started. Raises the errors of `step`."""
        return self._step_results(self._groups[group])

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """The sums over the workers of what their environments have counted; nothing for one that counts nothing."""
        metrics = _added(self._workers.ask_all("drain_metrics"))
        if self.restart:
            metrics["game/worker_restarts"] = (float(self._workers.new_restarts), 1.0)
            self._workers.new_restarts = 0
        return metrics

    def drain_timers(self) -> dict[str, tuple[float, int]]:
        """The sums over the workers of where their time went, which passes in all of them at once."""
        return _added(self._workers.ask_all("drain_timers"))

    def check_phases(self, names: Sequence[str]) -> None:
        """See the environment's own; nothing for one that has no phases."""
        self._workers.ask_all("check_phases", list(names))

    def set_phase(self, name: str, number: int) -> None:
        """See the environment's own; nothing for one that has no phases."""
        self._workers.phase = (name, number)
        self._workers.ask_all("set_phase", name, number)

    def check_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """See the environment's own.

        Raises:
            ValueError: As the environment's own, or it has no parameters that could be set.
        """
        self._workers.ask_all("check_parameters", dict(values))

    def set_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """See `check_parameters`; a part that is started again gets them, too."""
        self._workers.ask_all("set_parameters", dict(values))
        self._workers.parameters = dict(values)

    def state_dict(self) -> dict[str, Any]:
        """The states of all parts; see the environment's own.

        Raises:
            TypeError: The environment has no `state_dict`, or a part of it cannot be saved.
        """
        if not all(spec.resumable for spec in self._specs):
            raise TypeError("ProcessPool: its environment has no state_dict and load_state_dict")
        obs = None if self._obs is None else self._obs.copy()
        return {"parts": self._workers.ask_all("state_dict"), "obs": obs, "seed": self._workers.seed}

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
        self._workers.settle()
        for worker, part in zip(self._workers, parts, strict=True):
            worker.post("load_state_dict", part)
        self._workers.raise_failures(self._workers.replies(range(self.num_workers)), stop=False)
        self._obs = None if state["obs"] is None else np.array(state["obs"])
        self._workers.seed = state["seed"]

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Ends the workers."""
        self._workers.stop()

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
        self._workers.settle(workers)
        for k in workers:
            own = self._rows(k)
            self._workers[k].post_step(actions[own.start - rows.start : own.stop - rows.start])

    def _step_results(self, workers: range) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        assert self._obs is not None
        replies = self._workers.replies(workers, self.timeout_seconds)
        lost = {k: reply for k, reply in replies.items() if isinstance(reply, Failure | WorkerLostError)}
        if lost and not self.restart:
            self._workers.raise_failures(replies)
        last = {k: self._obs[self._rows(k)].copy() for k in lost}
        for k, reply in lost.items():
            self._workers.start_again(k, reply)
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

    def _infos(self, replies: dict[int, Any], last: dict[int, Array] | None = None) -> dict[str, Any]:
        """Joins what these workers know; `last` are the last observations of those that were started again."""
        last = last or {}
        infos = merged([reply or {} for reply in replies.values()], [self._specs[k].num_envs for k in replies])
        flags = {k: self._workers[k].flags for k in replies}
        if last or any(flag & HAS_FINAL for flag in flags.values()):
            ended = {k: self._workers[k].arrays["_final_obs"] & bool(flag & HAS_FINAL) for k, flag in flags.items()}
            ended |= {k: np.ones(len(rows), np.bool_) for k, rows in last.items()}
            final = [last.get(k, self._workers[k].arrays["final_obs"]) for k in replies]
            infos |= {"final_obs": np.concatenate(final), "_final_obs": np.concatenate(list(ended.values()))}
        if all(flag & HAS_MASK for flag in flags.values()):
            infos["action_mask"] = self._joined("action_mask", replies)
        return infos


def _added(parts: Iterable[dict[str, tuple[float, Count]]]) -> dict[str, tuple[float, Count]]:
    """Name -> (sum, count) of all parts together."""
    found: dict[str, tuple[float, Count]] = {}
    for part in parts:
        for name, (total, count) in part.items():
            before = found.get(name)
            found[name] = (total, count) if before is None else (before[0] + total, before[1] + count)
    return found
