"""RocketSimPool: many RocketSim arenas as one Gymnasium vector environment."""

import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from envs.actions import ActionParser, LookupTable
from envs.dones import DoneCondition, default_dones
from envs.game_state import NUM_PADS, Bool, Float, GameState
from envs.obs import DefaultObs, ObsBuilder
from envs.physics import TICKS_PER_SECOND, SimArena, StateReader, init_rocketsim
from envs.resets import Kickoff, StateSetter
from envs.rewards import CombinedReward, Reward, default_reward

MAX_CARS_PER_TEAM = 4
ARENAS_PER_CHUNK = 8
ARENAS_PER_READ = 16
TICK_SECONDS = np.float32(1 / TICKS_PER_SECOND)


class RocketSimPool(VectorEnv[Float, NDArray[np.int64], NDArray[Any]]):
    """`num_arenas` games of real Rocket League physics; every car is one sub-environment.

    `num_envs` = N = arenas x cars. Sub-environment `i` is car `i % cars` of arena `i // cars`; blue cars come first.
    Autoreset is `SAME_STEP`: when an episode ends, `obs` already is the first one of the next episode and
    `infos["final_obs"]` (`[N, D]`, valid where `infos["_final_obs"]`) the last one of the old. All cars of an arena end
    together. Every car learns: opponents are sub-environments too.

    Threads step slices of the arenas with the GIL released. Each arena draws from its own generator and begins every
    episode with new cars, so trajectories do not depend on the number of threads or on earlier episodes.

    Attributes:
        state: The current `GameState`. Right after `step` the arenas that ended already hold their next episode.
    """

    def __init__(
        self,
        num_arenas: int = 64,
        team_size: int | tuple[int, int] = 1,
        obs: ObsBuilder | None = None,
        action: ActionParser | None = None,
        reward: Reward | None = None,
        state_setter: StateSetter | None = None,
        done: DoneCondition | Sequence[DoneCondition] | None = None,
        tick_skip: int = 8,
        action_delay_ticks: int = 1,
        num_threads: int | None = None,
        seed: int = 0,
        collision_meshes: str | None = None,
    ) -> None:
        """Builds the arenas. Components left out are those of RLGym's training guide.

        Args:
            num_arenas: Games that run side by side.
            team_size: Cars per team, or (blue, orange) to play without opponents or with uneven teams.
            obs: Default `DefaultObs.rlgym_guide()`.
            action: Default `LookupTable()`, 90 discrete actions.
            reward: Default in air 0.002, speed toward ball 0.01, ball velocity to goal 0.1, goal 10.
            state_setter: Default `Kickoff()`.
            done: One condition or several of which any ends the episode. Default: goal (terminates), 30 s without a
                touch and 300 s in all (both truncate).
            tick_skip: Physics ticks (1/120 s) per step; the action is held for all of them.
            action_delay_ticks: Ticks at the start of a step that still run the previous action. RLGym has 1.
            num_threads: Threads that step arenas. Default: the cores this process may use, shared evenly between the
                processes of this machine that `LOCAL_WORLD_SIZE` counts.
            seed: Arena `i` draws from `seed + i`.
            collision_meshes: Folder with `soccar/*.cmf`. Default: the meshes of `rlgym[rl-sim]`.

        Raises:
            ValueError: A size that cannot work.
            TypeError: A component of the wrong kind.
            FileNotFoundError: No collision meshes.
        """
        sizes = (team_size, team_size) if isinstance(team_size, int) else tuple(team_size)
        _check_sizes(num_arenas, sizes, tick_skip, action_delay_ticks, num_threads)
        blue, orange = sizes
        self.obs_builder = _component("obs", obs or DefaultObs.rlgym_guide(), ObsBuilder)
        self.action_parser = _component("action", action or LookupTable(), ActionParser)
        self.reward = _component("reward", reward or default_reward(), Reward)
        self.state_setter = _component("state_setter", state_setter or Kickoff(), StateSetter)
        conditions = default_dones() if done is None else (done if isinstance(done, Sequence) else (done,))
        self.done_conditions = tuple(_component("done", condition, DoneCondition) for condition in conditions)

        init_rocketsim(collision_meshes)
        self.num_arenas, self.num_cars = num_arenas, blue + orange
        self.num_envs = num_arenas * self.num_cars
        self.tick_skip, self.action_delay_ticks = tick_skip, action_delay_ticks
        self.single_observation_space: Space[Any] = self.obs_builder.space(blue, orange)
        self.single_action_space: Space[Any] = self.action_parser.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None

        self.state = GameState(num_arenas, blue, orange)
        self._seed(seed)
        self.num_threads = min(num_threads or available_threads(), num_arenas)
        self._chunk = max(1, min(ARENAS_PER_CHUNK, num_arenas // (2 * self.num_threads)))
        self._workers = ThreadPoolExecutor(self.num_threads - 1, "rocketsim") if self.num_threads > 1 else None
        with ThreadPoolExecutor(self.num_threads) as builders:
            self._sims = list(builders.map(lambda _: SimArena(blue, orange), range(num_arenas)))
        self._reader = StateReader(self.state, self._sims)
        self.state.read_wheels = self._reader.read_wheels
        self._broken = np.zeros(num_arenas, np.bool_)
        self._counts = dict.fromkeys(("touches", "goals", "physics_errors", "episodes", "steps"), 0)
        self._started = False

    # ------------------------------------------------------------------ the Gymnasium interface

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float, dict[str, Any]]:
        """Begins a new episode in every arena.

        Args:
            seed: Arena `i` draws from `seed + i` from now on. None goes on with the generators as they are.
            options: Not used.

        Returns:
            Observations `[N, D]` float32 and an empty dict.
        """
        if seed is not None:
            if not isinstance(seed, int):
                raise ValueError("RocketSimPool: reset(seed=...) takes one integer; arena i then draws from seed + i")
            self._seed(seed)
        everything = np.ones(self.num_arenas, np.bool_)
        self._begin_episodes(everything)
        self._started = True
        return self._observe(self.state), self._infos()

    def step(self, actions: NDArray[np.int64]) -> tuple[Float, NDArray[Any], Bool, Bool, dict[str, Any]]:
        """Holds `actions` for `tick_skip` ticks in every arena.

        Args:
            actions: `[N, ...]` one action per car, see the action parser.

        Returns:
            Observations `[N, D]` float32, rewards `[N]` float32, terminated `[N]` bool, truncated `[N]` bool, infos.

        Raises:
            ValueError: Actions that the parser refuses, or a component returned something malformed.
        """
        if not self._started:
            raise RuntimeError("RocketSimPool: call reset() before step()")
        actions = np.asarray(actions)
        if actions.shape[:1] != (self.num_envs,):
            raise ValueError(f"RocketSimPool: got {list(actions.shape)} actions for {self.num_envs} cars")
        state, cars = self.state, self.num_cars
        controls = self.action_parser.parse(actions, state)
        self._advance(controls.cars)
        state.controls.reshape(controls.rows.shape)[:] = controls.rows
        rewards = self._checked_rewards(self.reward.compute(state))
        terminated, truncated = np.zeros(self.num_arenas, np.bool_), self._broken.copy()
        for condition in self.done_conditions:
            (truncated if condition.truncates else terminated)[:] |= condition.check(state)
        if self._broken.any():  # what is left of a broken arena is its state one step earlier, which was paid for then
            rewards[self._broken], terminated[self._broken] = 0, False
        obs = self._observe(state)
        final: dict[str, Any] = {}
        done = terminated | truncated
        self._count(done)
        if done.any():
            final = {"final_obs": obs.copy(), "_final_obs": done.repeat(cars)}
            self._begin_episodes(done)
            fresh = np.flatnonzero(done)
            obs.reshape(self.num_arenas, cars, -1)[fresh] = self._observe(state.select(fresh)).reshape(
                len(fresh), cars, -1
            )
        return obs, rewards.reshape(-1), terminated.repeat(cars), truncated.repeat(cars), self._infos() | final

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Stops the threads."""
        if self._workers is not None:
            self._workers.shutdown()

    @property
    def arenas(self) -> list[Any]:
        """The live `RocketSim.Arena` objects. Reading them is free; what you write shows up in the next step."""
        return [sim.arena for sim in self._sims]

    @property
    def num_seeds(self) -> int:
        """Consecutive seeds that `reset(seed=...)` uses: one per arena."""
        return self.num_arenas

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics since the last call as name -> (sum, count).

        Touches count once per contact that lasts over several steps. Minutes are game time, per car for touches and
        per arena for the rest.
        """
        counts = self._counts
        arena_minutes = counts["steps"] * self.num_arenas * self.tick_skip / TICKS_PER_SECOND / 60
        metrics = {
            "game/touches_per_minute": (float(counts["touches"]), arena_minutes * self.num_cars),
            "game/goals_per_minute": (float(counts["goals"]), arena_minutes),
            "game/episodes_per_minute": (float(counts["episodes"]), arena_minutes),
            "game/physics_errors_per_minute": (float(counts["physics_errors"]), arena_minutes),
        }
        if isinstance(self.reward, CombinedReward):
            metrics |= self.reward.drain_metrics()
        self._counts = dict.fromkeys(counts, 0)
        return metrics

    # ------------------------------------------------------------------ physics

    def _seed(self, seed: int) -> None:
        self._rngs = [np.random.default_rng(seed + i) for i in range(self.num_arenas)]

    def _advance(self, controls: Sequence[Any]) -> None:
        """Steps every arena, then reads them all. Chunks are handed out on demand, which balances the threads.

        Reading needs the GIL. Done by one thread at the end it keeps nobody waiting; read by each thread after its own
        arenas, the threads wake each other so often that two of them are hardly faster than one.
        """
        self._touched_before = self.state.touched
        timers = self.state.demo_respawn_timer
        returning = (timers > 0) & (timers < (self.tick_skip + 0.5) / TICKS_PER_SECOND)
        self._respawning = returning.any(axis=1).tolist()
        starts = iter(range(0, self.num_arenas, self._chunk))
        if self._workers is None:
            self._work(starts, controls)
        else:
            others = [self._workers.submit(self._work, starts, controls) for _ in range(self.num_threads - 1)]
            self._work(starts, controls)
            for other in others:
                other.result()
        for start in range(0, self.num_arenas, ARENAS_PER_READ):
            self._read(start, min(start + ARENAS_PER_READ, self.num_arenas))
        self._reader.fix_demolished()
        state = self.state
        state.wheels_stale[:] = True
        self._update_pad_timers()
        state.invalidate()
        state.episode_ticks += self.tick_skip
        state.ticks_since_touch += self.tick_skip
        state.ticks_since_touch[state.touched.any(axis=1)] = 0

    def _work(self, starts: Iterator[int], controls: Sequence[Any]) -> None:
        for start in starts:
            stop = min(start + self._chunk, self.num_arenas)
            for index in range(start, stop):
                self._step_arena(index, controls)

    def _step_arena(self, index: int, controls: Sequence[Any]) -> None:
        """Steps one arena; most of it runs without the GIL."""
        sim = self._sims[index]
        step = sim.arena.step
        if self._respawning[index]:
            step = partial(sim.step_and_respawn, rng=self._rngs[index])
        first = index * self.num_cars
        if self.action_delay_ticks:
            step(self.action_delay_ticks)
        for slot, car in enumerate(sim.cars, first):
            car.set_controls(controls[slot])
        if self.action_delay_ticks < self.tick_skip:
            step(self.tick_skip - self.action_delay_ticks)

    def _read(self, start: int, stop: int) -> None:
        """Reads arenas into the state, or marks those as broken whose physics produced NaN."""
        try:
            self._reader.read(start, stop)
        except RuntimeError as error:  # RocketSim notices NaN here, not while it steps
            if "NaN" not in str(error):
                raise
            if stop - start == 1:
                self._broken[start] = True
            else:
                for index in range(start, stop):
                    self._read(index, index + 1)

    def _update_pad_timers(self) -> None:
        """Counts down the pads that were gone and are still, and reads the cooldown of the others that are gone.

        RocketSim subtracts a tick's length in float32 once a tick, and so does this, to the bit. A pad that may have
        come back during the step can have been taken again, so its cooldown is read.
        """
        timers = self.state.pad_timers.reshape(-1)
        gone = np.flatnonzero(self._reader.pads_active[:, 0] == 0)
        left = timers[gone]
        unknown = left < (self.tick_skip + 1) * TICK_SECONDS
        for _ in range(self.tick_skip):
            left -= TICK_SECONDS
        timers[:] = 0
        timers[gone] = left
        if unknown.any():
            self._read_pad_timers(gone[unknown])

    def _read_pad_timers(self, pads: NDArray[np.int64]) -> None:
        """Reads the cooldowns of some pads, numbered through all arenas."""
        sims = self._sims
        self.state.pad_timers.reshape(-1)[pads] = [
            sims[pad // NUM_PADS].pads[pad % NUM_PADS].get_state().cooldown for pad in pads.tolist()
        ]

    # ------------------------------------------------------------------ episodes

    def _begin_episodes(self, mask: Bool) -> None:
        state = self.state
        starting = np.flatnonzero(mask)
        for index in np.flatnonzero(self._broken).tolist():
            warnings.warn(
                f"RocketSim produced NaN physics in arena {index}; its episode was truncated and the arena rebuilt",
                RuntimeWarning,
                stacklevel=2,
            )
            self._sims[index] = SimArena(state.num_blue, state.num_orange)
            self._counts["physics_errors"] += 1
        self._broken[:] = False
        state.clear(starting)
        state.invalidate()
        one = np.zeros(self.num_arenas, np.bool_)
        for index in starting.tolist():
            one[index] = True
            self.state_setter.apply(state, one, self._rngs[index])
            one[index] = False
            sim = self._sims[index]
            sim.set_state(state, index)
            self._reader.read(index, index + 1)
            state.wheels_stale[index] = True
            gone = np.flatnonzero(self._reader.pads_active[index, 0] == 0)
            state.pad_timers[index] = 0
            self._read_pad_timers(index * NUM_PADS + gone)
        state.invalidate()
        for component in (self.action_parser, self.obs_builder, self.reward, *self.done_conditions):
            component.reset(mask, state)

    def _count(self, done: Bool) -> None:
        counts = self._counts
        counts["steps"] += 1
        counts["episodes"] += int(done.sum())
        counts["touches"] += int((self.state.touched & ~self._touched_before).sum())
        counts["goals"] += int(self.state.goal_scored.sum())

    def _infos(self) -> dict[str, Any]:
        mask = self.action_parser.mask(self.state)
        return {} if mask is None else {"action_mask": mask.reshape(self.num_envs, -1)}

    def _observe(self, state: GameState) -> Float:
        shape = self.single_observation_space.shape or ()
        obs = np.empty((state.num_arenas, self.num_cars, *shape), np.float32)
        self.obs_builder.build(state, obs)
        return obs.reshape(-1, *shape)

    def _checked_rewards(self, rewards: Float) -> Float:
        name = type(self.reward).__name__
        if rewards.shape != (self.num_arenas, self.num_cars):
            raise ValueError(
                f"{name}: compute() returned shape {list(rewards.shape)}, expected [arenas, cars] = "
                f"[{self.num_arenas}, {self.num_cars}]"
            )
        return rewards.astype(np.float32)  # a copy: a reward may hand out a buffer or a view of the state


def available_threads() -> int:
    """Cores this process may use, shared between the ranks on this machine (`LOCAL_WORLD_SIZE`)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))


def _component(name: str, value: Any, kind: type[Any]) -> Any:  # noqa: ANN401 - checked here
    if not isinstance(value, kind):
        given = getattr(value, "__name__", type(value).__name__)
        raise TypeError(f"RocketSimPool: {name} (--env.{name}) must be an envs {kind.__name__}, got {given}")
    return value


def _check_sizes(
    num_arenas: int, sizes: tuple[int, ...], tick_skip: int, action_delay_ticks: int, num_threads: int | None
) -> None:
    if num_arenas < 1:
        raise ValueError(f"RocketSimPool: num_arenas (--env.num_arenas) must be at least 1, got {num_arenas}")
    if len(sizes) != 2 or min(sizes) < 0 or sum(sizes) < 1 or max(sizes) > MAX_CARS_PER_TEAM:
        raise ValueError(
            "RocketSimPool: team_size (--env.team_size) must be one number or [blue, orange], 0 to "
            f"{MAX_CARS_PER_TEAM} cars a team and at least one in all, got {list(sizes)}"
        )
    if tick_skip < 1:
        raise ValueError(f"RocketSimPool: tick_skip (--env.tick_skip) must be at least 1, got {tick_skip}")
    if not 0 <= action_delay_ticks <= tick_skip:
        raise ValueError(
            "RocketSimPool: action_delay_ticks (--env.action_delay_ticks) must be between 0 and "
            f"tick_skip={tick_skip}, got {action_delay_ticks}"
        )
    if num_threads is not None and num_threads < 1:
        raise ValueError(f"RocketSimPool: num_threads (--env.num_threads) must be at least 1, got {num_threads}")
