"""Conversion of RLGym's reward functions and states to this project's, and back."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.api import RewardFunction
from rlgym.rocket_league.api import Car, GameConfig, PhysicsObject
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.common_values import OCTANE
from rlgym.rocket_league.reward_functions import CombinedReward

from envs.loggers import StateLogger
from envs.rewards import Reward
from envs.rewards.base import TermStatistics, unique_names
from envs.state.game_state import GameState
from envs.state.layout import BOOST, CAR_BASIS, ON_GROUND, ORANGE, TOUCHED, Bool, Float
from fabric_rl.base.settings import describe_value
from fabric_rl.base.state_schema import CannotBeSavedError

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
            raise TypeError(
                f"RLGymReward: needs an rlgym.api.RewardFunction, got {describe_value(self.reward_function)}"
            )
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
        """Compute the rewards; a ValueError if the function left out an agent."""
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


class WatchedReward(CombinedReward[Any]):  # type: ignore[misc]  # rlgym has no types
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
        """Return the weighted sum; a FloatingPointError that names a term with NaN or infinity."""
        total = dict.fromkeys(agents, 0.0)
        sums = np.zeros((2, len(self.reward_fns)))
        for number, (function, weight) in enumerate(zip(self.reward_fns, self.weights, strict=True)):
            for agent, paid in function.get_rewards(agents, state, is_terminated, is_truncated, shared_info).items():
                total[agent] += paid * weight
                sums[:, number] += (paid * weight, abs(paid * weight))
        if not np.isfinite(sums).all():
            wrong = [name for name, size in zip(self.parts.names, sums[1].tolist(), strict=True) if size - size != 0]
            raise FloatingPointError(f"RLGymPool: {', '.join(wrong)} returned NaN or infinity")
        self.parts.add(sums[0], sums[1], len(agents))
        return total


class WatchedGames:
    """Games of several RLGym environments, shown to loggers as one `GameState`.

    RLGym's states have no counters of goals, shots, saves, demolitions and boost pads, so these stay 0.
    """

    def __init__(self, loggers: Sequence[StateLogger], states: Sequence[Any]) -> None:
        """Set the loggers and the initial states; a ValueError if one is not a Rocket League game."""
        for state in states:
            if not isinstance(state, RLGymState):
                raise ValueError(
                    f"RLGymPool: loggers watch Rocket League games, this state is a {type(state).__name__}"
                )
        teams = [[car.team_num for car in state.cars.values()] for state in states]
        blue, orange = (max(team.count(number) for team in teams) for number in (0, 1))
        present = np.array([[*(np.arange(blue) < t.count(0)), *(np.arange(orange) < t.count(1))] for t in teams])
        self._loggers, self._state = loggers, GameState(len(states), blue, orange, present)
        self._state.clear(np.arange(len(states)))

    def see(self, index: int, game: Any) -> None:  # noqa: ANN401 - an RLGymState
        """Copy the state of environment `index`."""
        state, world, slots = self._state, self._state.world, [0, self._state.num_blue]
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
        """Reset the loggers for the environments of `mask [E]`; call `see` for their initial states first."""
        self._state.last_touch_car[mask], self._state.ticks_since_touch[mask] = -1, 0
        self._state.complete()
        for logger in self._loggers:
            logger.reset(mask, self._state)

    def update(self, done: Bool) -> None:
        """Update the loggers after a step, with which the episodes `done [E]` ended."""
        self._state.complete()
        for logger in self._loggers:
            logger.update(self._state, done)
