"""RLGymPool and RLGymReward: environments and rewards written for RLGym v2; conversions of their states."""

import copy
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from rlgym.api import RewardFunction, RLGym
from rlgym.rocket_league.api import Car, GameConfig, PhysicsObject
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.common_values import OCTANE, TICKS_PER_SECOND
from rlgym.rocket_league.reward_functions import CombinedReward

from envs.checks import check_actions, check_seed
from envs.component import added_metrics, unique_names
from envs.loggers import StateLogger
from envs.rewards.base import Reward, TermStatistics
from envs.state.game_state import GameState
from envs.state.layout import BOOST, CAR_BASIS, ON_GROUND, ORANGE, TOUCHED, Bool, Float
from fabric_rl.base.settings import Count, check_value, describe_value
from fabric_rl.base.state_schema import CannotBeSavedError

Array = NDArray[Any]
AnyRLGym: TypeAlias = RLGym[Any, Any, Any, Any, Any, Any, Any, Any]


class _Generators:
    """Generators of one environment, in place of those of `random` and `numpy.random` while it runs."""

    def __init__(self, seed: int) -> None:
        self._python, self._numpy = random.Random(seed).getstate(), np.random.MT19937(seed)

    @classmethod
    def of(cls, seed: int, num_envs: int) -> "list[_Generators]":
        """Return those of `num_envs` environments, seeded with `seed`, `seed + 1`, ..."""
        return [cls(seed + index) for index in range(num_envs)]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Draw from these generators."""
        python, before = random.getstate(), np.random.get_bit_generator()
        random.setstate(self._python)
        np.random.set_bit_generator(self._numpy)
        try:
            yield
        finally:
            self._python = random.getstate()
            random.setstate(python)
            np.random.set_bit_generator(before)


class RLGymPool(VectorEnv[Array, Array, Array]):
    """Vector environment of RLGym environments, stepped one after another; every agent is one sub-environment.

    Use it for existing RLGym code. Because it runs Python code for every agent, `RocketSimPool` is several times
    faster. To use all cores, put it into a `ProcessPool`. Discrete actions are passed to the environment as arrays of
    shape `[1]`, as RLGym's learners do. An episode ends for all agents of an environment as soon as it ends for one;
    agents that are not done in RLGym are then truncated. The state cannot be saved, so a run that resumes from a
    checkpoint begins new episodes.

    RLGym has no seeds: its state mutators draw from `random` and `numpy.random`. Environment `i` has its own generators
    for both, seeded with `seed + i`. `num_seeds` is the number of consecutive seeds, one per environment.
    """

    def __init__(
        self, build_env: Callable[[], AnyRLGym], num_envs: int = 8, seed: int = 0, loggers: Sequence[StateLogger] = ()
    ) -> None:
        """Build and reset the environments.

        Args:
            build_env: Builds one `rlgym.api.RLGym`.
            num_envs: Number of RLGym environments; their agents are the sub-environments of this one.
            seed: Seed of the first environment.
            loggers: Components that observe the games and report metrics, for example `GameMetrics()`. RLGym's states
                have no controls, boost pickups, cooldowns of bumps, or counters of goals, shots, saves and demolitions,
                so these are 0.

        Raises:
            TypeError: `build_env` is not a function or built something else, or a logger has the wrong type.
            ValueError: There are no environments or no agents, the agents' spaces differ, or there are loggers but the
                game is not Rocket League.
        """
        check_value("RLGymPool: num_envs (--env.num_envs)", num_envs, Count)
        seed = check_seed("RLGymPool", seed)
        if not callable(build_env):
            raise TypeError(
                "RLGymPool: build_env (--env.build_env) must be a function that builds an RLGym, got "
                f"{describe_value(build_env)}" + (", which is already an RLGym" if isinstance(build_env, RLGym) else "")
            )
        self.num_seeds = num_envs
        self._generators = _Generators.of(seed, num_envs)
        self._envs: list[Any] = []
        for own in self._generators:
            with own.active():
                self._envs.append(build_env())
        for env in self._envs:
            if not isinstance(env, RLGym):
                raise TypeError(f"RLGymPool: build_env (--env.build_env) must build an RLGym, got {type(env).__name__}")
            env.reward_fn = RewardWithTermStatistics(env.reward_fn)
        self.loggers = check_value("RLGymPool: loggers (--env.loggers)", loggers, tuple[StateLogger, ...])
        first = [self._begin(index) for index in range(num_envs)]
        self._agents: list[list[Any]] = [list(env.agents) for env in self._envs]
        self._ends = np.cumsum([len(agents) for agents in self._agents])
        self.num_envs = int(self._ends[-1])
        if any(not agents for agents in self._agents):
            raise ValueError("RLGymPool: an environment has no agents")
        shape = np.asarray(first[0][self._agents[0][0]], np.float32).shape
        self.single_observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        pairs = zip(self._envs, self._agents, strict=True)
        self.single_action_space, *others = [_space(env.action_space(each)) for env, agents in pairs for each in agents]
        if any(space != self.single_action_space for space in others):
            raise ValueError("RLGymPool: all agents must have the same action space")
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self._touching: list[set[Any]] = [set() for _ in self._envs]
        self._counts = dict.fromkeys(("touches", "goals", "episodes", "car_ticks", "ticks"), 0)
        for index, obs in enumerate(first):
            self._stack(index, obs)
        self._games = LoggedGames(self.loggers, [env.state for env in self._envs]) if self.loggers else None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin new episodes and return observations `[N, D]` float32 and an empty dict.

        Environment `i` gets `seed + i`.
        """
        if seed is not None:
            self._generators = _Generators.of(check_seed("RLGymPool", seed, "reset(seed=...)"), len(self._envs))
        self._touching = [set() for _ in self._envs]
        obs = np.concatenate([self._reset(index) for index in range(len(self._envs))])
        self._watch_begin(np.ones(len(self._envs), np.bool_))
        return obs, {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step every environment once.

        Args:
            actions: `[N]` integers for discrete actions, else `[N, k]`.

        Returns:
            Observations `[N, D]` float32, rewards `[N]` float32, terminated `[N]`, truncated `[N]`, infos.

        Raises:
            ValueError: The actions have the wrong shape or are outside the action space, or an environment returned
                invalid data.
        """
        actions = check_actions("RLGymPool", actions, self.single_action_space, self.num_envs)
        rows = actions.reshape(self.num_envs, -1)
        obs = np.empty((self.num_envs, *(self.single_observation_space.shape or ())), np.float32)
        rewards = np.empty(self.num_envs, np.float32)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        final = np.zeros_like(obs)
        done = np.zeros(len(self._envs), np.bool_)
        for index, (env, agents) in enumerate(zip(self._envs, self._agents, strict=True)):
            own = self._rows(index)
            before = getattr(env.state, "tick_count", 0)
            with self._generators[index].active():
                results = env.step(dict(zip(agents, rows[own], strict=True)))
            obs[own] = self._stack(index, results[0])
            for out, values in zip((rewards, terminated, truncated), results[1:], strict=True):
                out[own] = [values[agent] for agent in agents]
            self._count(index, env.state, before)
            if self._games is not None:
                self._games.copy_state(index, env.state)
            if terminated[own].any() or truncated[own].any():
                truncated[own] |= ~terminated[own]
                final[own] = obs[own]
                obs[own] = self._reset(index)
                self._touching[index] = set()
                self._counts["episodes"] += 1
                done[index] = True
        if self._games is not None:
            self._games.update(done)
            if done.any():
                self._watch_begin(done)
        infos = {"final_obs": final, "_final_obs": terminated | truncated} if done.any() else {}
        return obs, rewards, terminated, truncated, infos

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of `RocketSimPool.drain_metrics`; touches and goals need Rocket League states.

        The terms of RLGym's `CombinedReward`, or the single reward, are named after their classes.
        """
        counts, per_minute = self._counts, 60 * TICKS_PER_SECOND
        self._counts = dict.fromkeys(counts, 0)
        metrics = {
            "game/touches_per_minute": (float(counts["touches"]), counts["car_ticks"] / per_minute),
            "game/goals_per_minute": (float(counts["goals"]), counts["ticks"] / per_minute),
            "game/episodes_per_minute": (float(counts["episodes"]), counts["ticks"] / per_minute),
        }
        metrics |= added_metrics(env.reward_fn.parts.drain() for env in self._envs)
        for logger in self.loggers:
            metrics |= logger.drain_metrics()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Raise a CannotBeSavedError: the parts of an RLGym environment cannot be saved."""
        raise CannotBeSavedError(
            "RLGymPool: RLGym environments cannot be saved; use a RocketSimPool for an exact resume"
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raise a TypeError; see `state_dict`."""
        raise TypeError("RLGymPool: RLGym environments cannot be restored; use a RocketSimPool for an exact resume")

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Close the environments."""
        for env in self._envs:
            env.close()

    def _watch_begin(self, begun: Array) -> None:
        """Show the loggers the initial states of the environments in `begun [E]`."""
        if self._games is not None:
            for index in np.flatnonzero(begun).tolist():
                self._games.copy_state(index, self._envs[index].state)
            self._games.begin(begun)

    def _rows(self, index: int) -> slice:
        return slice(int(self._ends[index]) - len(self._agents[index]), int(self._ends[index]))

    def _begin(self, index: int) -> dict[Any, Any]:
        with self._generators[index].active():
            obs: dict[Any, Any] = self._envs[index].reset()
        return obs

    def _reset(self, index: int) -> Array:
        env, obs = self._envs[index], self._begin(index)
        if list(env.agents) != self._agents[index]:
            raise ValueError(
                f"RLGymPool: environment {index} began with agents {self._agents[index]} and now has "
                f"{list(env.agents)}; agents must stay the same, so use a FixedTeamSizeMutator"
            )
        return self._stack(index, obs)

    def _stack(self, index: int, obs: dict[Any, Any]) -> Array:
        """Return the observations `[agents, D]` float32."""
        rows = np.array([np.asarray(obs[agent], np.float32) for agent in self._agents[index]])
        if rows.shape[1:] != self.single_observation_space.shape:
            raise ValueError(
                f"RLGymPool: environment {index} returned observations of shape {list(rows.shape[1:])}, but the first "
                f"has {list(self.single_observation_space.shape or ())}; set the observation builder's zero_padding"
            )
        if not np.isfinite(rows).all():
            raise FloatingPointError(
                f"RLGymPool: {type(self._envs[index].obs_builder).__name__} returned NaN or infinity"
            )
        return rows

    def _count(self, index: int, state: Any, ticks_before: int) -> None:  # noqa: ANN401 - whatever the engine's state is
        if not isinstance(state, RLGymState):
            return
        ticks = int(state.tick_count) - ticks_before
        touching = {agent for agent in self._agents[index] if state.cars[agent].ball_touches > 0}
        counts = self._counts
        counts["touches"] += len(touching - self._touching[index])
        counts["goals"] += bool(state.goal_scored)
        counts["ticks"] += ticks
        counts["car_ticks"] += ticks * len(self._agents[index])
        self._touching[index] = touching


def _space(space: Any) -> Space[Any]:  # noqa: ANN401 - RLGym leaves it to the parser
    """Convert a Gymnasium space, or RLGym's ("discrete", n), ("multidiscrete", sizes), ("continuous", n)."""
    if isinstance(space, Space):
        return space
    if isinstance(space, Sequence) and len(space) == 2:
        kind, size = str(space[0]).lower(), space[1]
        if kind == "discrete":
            return spaces.Discrete(int(size))
        if kind in ("multidiscrete", "multi-discrete", "multi_discrete"):
            return spaces.MultiDiscrete(np.asarray(size))
        if kind in ("continuous", "real", "box"):
            return spaces.Box(-1, 1, (int(size),), np.float32)
    raise ValueError(
        f"RLGymPool: the action parser's space is {space!r}; known: ('discrete', n), ('multidiscrete', sizes), "
        "('continuous', n) and Gymnasium spaces"
    )


COST_WARNING = (
    "RLGymReward builds RLGym's objects for every arena and step: about 75 us in 1v1, more than the physics takes; "
    "write the reward as an envs.Reward for training at full speed"
)

SAME_NAMES = (
    *("demo_respawn_timer", "supersonic_time", "boost_active_time", "handbrake", "jump_time", "air_time_since_jump"),
    *("flip_time", "is_jumping", "has_jumped", "is_holding_jump", "has_flipped", "has_double_jumped"),
)
"""Attributes of a car with the same name in RLGym's state and in `GameState`."""


@dataclass(eq=False, repr=False)
class RLGymReward(Reward):
    """A reward function written for RLGym, in the fast pool.

    Each arena has a copy of the function with its own `shared_info`. Agents have RLGym's names: blue-0, blue-1, ...,
    orange-0, ... Known differences from RLGym: `ball_touches` is 1 for any number of touches within a step;
    `is_terminated` is True if a goal was scored, and `is_truncated` is False, because rewards are computed before done
    conditions.
    """

    reward_function: RewardFunction
    """RLGym RewardFunction, which is copied for every arena."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.reward_function, RewardFunction):
            name = describe_value(self.reward_function)
            raise TypeError(f"RLGymReward: reward_function must be an rlgym.api.RewardFunction, got {name}")
        warnings.warn(COST_WARNING, UserWarning, stacklevel=3)
        self._functions: dict[int, Any] = {}
        self._shared: dict[int, dict[str, Any]] = {}

    def reset(self, mask: Bool, state: GameState) -> None:
        for arena in np.flatnonzero(mask).tolist():
            if arena not in self._functions:
                self._functions[arena] = copy.deepcopy(self.reward_function)
            self._shared[arena] = {}
            rlgym_state = to_rlgym(state, arena)
            self._functions[arena].reset(list(rlgym_state.cars), rlgym_state, self._shared[arena])

    def compute(self, state: GameState) -> Float:
        """Compute the rewards; raise a ValueError if the function left out an agent."""
        rewards = np.zeros((state.num_arenas, state.num_cars), np.float32)
        goals = state.goal_scored.tolist()
        for arena in range(state.num_arenas):
            rlgym_state = to_rlgym(state, arena)
            agents = list(rlgym_state.cars)
            terminated, truncated = dict.fromkeys(agents, goals[arena]), dict.fromkeys(agents, False)
            paid = self._functions[arena].get_rewards(agents, rlgym_state, terminated, truncated, self._shared[arena])
            missing = [agent for agent in agents if agent not in paid]
            if missing:
                name = type(self.reward_function).__name__
                raise ValueError(f"RLGymReward: {name}.get_rewards() returned nothing for {', '.join(missing)}")
            rewards[arena, state.present[arena]] = [paid[agent] for agent in agents]
        return rewards

    def state_dict(self) -> dict[str, Any]:
        """Raise a CannotBeSavedError: the state of an RLGym reward function is not known."""
        raise CannotBeSavedError(
            f"RLGymReward: {type(self.reward_function).__name__} cannot be saved; write it as an envs.Reward"
        )


def to_rlgym(state: GameState, arena: int) -> RLGymState[str]:
    """Return one arena of a `GameState` as RLGym's state, cars in RLGym's order."""
    world = state.world
    rlgym_state: RLGymState[str] = RLGymState()
    rlgym_state.tick_count = int(state.episode_ticks[arena])
    rlgym_state.goal_scored = bool(state.goal_scored[arena])
    rlgym_state.config = GameConfig()
    rlgym_state.config.gravity = rlgym_state.config.boost_consumption = 1.0
    rlgym_state.config.dodge_deadzone = 0.5
    ball = world.ball[arena]
    rlgym_state.ball = _physics(world.ball_pos[arena], world.ball_vel[arena], world.ball_ang_vel[arena], ball[13:22])
    rlgym_state.boost_pad_timers = state.pad_timers[arena].copy()
    rlgym_state.cars = {}
    slots = np.flatnonzero(state.present[arena]).tolist()
    names = {
        slot: f"orange-{slot - state.num_blue}" if state.team[slot] == ORANGE else f"blue-{slot}" for slot in slots
    }
    on_demand = state.wheels_with_contact, state.bump_victim  # also updates the other details
    for slot in slots:
        at = (arena, slot)
        car: Car[str] = Car()
        car.team_num, car.hitbox_type = int(state.team[slot]), OCTANE
        car.ball_touches = int(state.touched[at])
        car.bump_victim_id = names.get(int(on_demand[1][at]))
        car.wheels_with_contact = tuple(on_demand[0][at].tolist())
        car.boost_amount = float(state.boost[at])
        for name in SAME_NAMES:
            setattr(car, name, getattr(state, name)[at].item())
        car.flip_torque = state.flip_torque[at].copy()
        car.is_autoflipping = bool(state.is_auto_flipping[at])
        car.autoflip_timer = float(state.auto_flip_timer[at])
        car.autoflip_direction = float(state.auto_flip_direction[at])
        row = world.cars[at]
        car.physics = _physics(world.car_pos[at], world.car_vel[at], world.car_ang_vel[at], row[24:33])
        rlgym_state.cars[names[slot]] = car
    return rlgym_state


def _physics(pos: Float, vel: Float, ang_vel: Float, basis: NDArray[np.float32]) -> PhysicsObject:
    """Return RLGym's object; `basis [9]` is forward, right, up, which RLGym stores as the columns of a matrix."""
    physics = PhysicsObject()
    physics.position, physics.linear_velocity, physics.angular_velocity = pos.copy(), vel.copy(), ang_vel.copy()
    physics.rotation_mtx = np.ascontiguousarray(basis.reshape(3, 3).T)
    return physics


class RewardWithTermStatistics(CombinedReward[Any]):  # type: ignore[misc]  # rlgym has no types
    """Wrapper of an RLGym reward function that sums up each term of a `CombinedReward`.

    Attributes:
        parts: The sums, by class name.
    """

    def __init__(self, reward: RewardFunction) -> None:
        combined = type(reward) is CombinedReward
        super().__init__(*zip(reward.reward_fns, reward.weights, strict=True) if combined else [reward])
        self.parts = TermStatistics(unique_names(type(function).__name__ for function in self.reward_fns))

    def get_rewards(
        self,
        agents: list[Any],
        state: Any,  # noqa: ANN401 - whatever the engine's state is
        is_terminated: dict[Any, bool],
        is_truncated: dict[Any, bool],
        shared_info: dict[str, Any],
    ) -> dict[Any, float]:
        """Return the weighted sum; raise a FloatingPointError that names a term with NaN or infinity."""
        total = dict.fromkeys(agents, 0.0)
        sums, sizes = [], []
        for function, weight in zip(self.reward_fns, self.weights, strict=True):
            paid = function.get_rewards(agents, state, is_terminated, is_truncated, shared_info)
            terms = {agent: each * weight for agent, each in paid.items()}
            for agent, term in terms.items():
                total[agent] += term
            sums.append(float(sum(terms.values())))
            sizes.append(float(sum(map(abs, terms.values()))))
        if not all(map(math.isfinite, sizes)):
            wrong = [name for name, size in zip(self.parts.names, sizes, strict=True) if not math.isfinite(size)]
            raise FloatingPointError(f"RLGymPool: {', '.join(wrong)} returned NaN or infinity")
        self.parts.add(np.array(sums), np.array(sizes), len(agents))
        return total


class LoggedGames:
    """Games of several RLGym environments, shown to loggers as one `GameState`.

    RLGym's states have no counters of goals, shots, saves, demolitions and boost pads, so these stay 0.
    """

    def __init__(self, loggers: Sequence[StateLogger], states: Sequence[Any]) -> None:
        """Set the loggers and the initial states; raise a ValueError if a state is not from Rocket League."""
        for state in states:
            if not isinstance(state, RLGymState):
                raise ValueError(f"RLGymPool: loggers need Rocket League states, got a {type(state).__name__}")
        teams = [[car.team_num for car in state.cars.values()] for state in states]
        blue, orange = (max(team.count(number) for team in teams) for number in (0, 1))
        present = np.array([[*(np.arange(blue) < t.count(0)), *(np.arange(orange) < t.count(1))] for t in teams])
        self._loggers, self.state = loggers, GameState(len(states), blue, orange, present)
        self.state.clear(np.arange(len(states)))

    def copy_state(self, index: int, game: Any) -> None:  # noqa: ANN401 - an RLGymState
        """Copy the state of environment `index`."""
        state, world, slots = self.state, self.state.world, [0, self.state.num_blue]
        world.ball_pos[index], world.ball_vel[index] = game.ball.position, game.ball.linear_velocity
        world.ball_ang_vel[index] = game.ball.angular_velocity
        state.pad_timers[index] = game.boost_pad_timers
        passed, state.episode_ticks[index] = game.tick_count - state.episode_ticks[index], game.tick_count
        state.ticks_since_touch[index] = max(0, state.ticks_since_touch[index] + passed)
        for car in game.cars.values():
            at, body, row = (index, slots[car.team_num]), car.physics, state.car_rows[index, slots[car.team_num], 0]
            slots[car.team_num] += 1
            world.car_pos[at], world.car_vel[at], world.car_ang_vel[at] = (
                body.position,
                body.linear_velocity,
                body.angular_velocity,
            )
            row[CAR_BASIS] = body.rotation_mtx.T.reshape(9)
            row[BOOST], row[ON_GROUND], row[TOUCHED] = car.boost_amount, car.on_ground, car.ball_touches > 0
            for name in SAME_NAMES:
                getattr(state, name)[at] = getattr(car, name)
            detail = state.details[at]
            detail["wheels"], detail["flip_torque"] = car.wheels_with_contact, car.flip_torque
            detail["is_auto_flipping"], detail["auto_flip_timer"] = car.is_autoflipping, car.autoflip_timer
            detail["auto_flip_direction"] = car.autoflip_direction
            if car.ball_touches:
                state.last_touch_car[index], state.ticks_since_touch[index] = at[1], 0

    def begin(self, mask: Bool) -> None:
        """Reset the loggers for the environments of `mask [E]`; call `copy_state` for their initial states first."""
        self.state.last_touch_car[mask], self.state.ticks_since_touch[mask] = -1, 0
        self.state.complete()
        for logger in self._loggers:
            logger.reset(mask, self.state)

    def update(self, done: Bool) -> None:
        """Update the loggers after a step that ended the episodes in `done [E]`."""
        self.state.complete()
        for logger in self._loggers:
            logger.update(self.state, done)
