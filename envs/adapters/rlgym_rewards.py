"""RLGymReward: a reward function written for RLGym in the fast pool."""

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.api import RewardFunction
from rlgym.rocket_league.api import Car, GameConfig, PhysicsObject
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.common_values import OCTANE

from envs.rewards import Reward
from envs.state.game_state import GameState
from envs.state.layout import ORANGE, Bool, Float

COST_WARNING = (
    "RLGymReward builds RLGym's objects for every arena and step: about 75 us in 1v1, more than the physics takes; "
    "write the reward as an envs.Reward for training at full speed"
)

SAME_NAMES = (
    *("demo_respawn_timer", "supersonic_time", "boost_active_time", "handbrake", "jump_time", "air_time_since_jump"),
    *("flip_time", "is_jumping", "has_jumped", "is_holding_jump", "has_flipped", "has_double_jumped"),
)
"""What a car has under the same name in RLGym's state and in `GameState`."""


class RLGymReward(Reward):
    """Pays what an RLGym reward function pays.

    Each arena has a copy of the function with its own `shared_info`. Agents are called blue-0, blue-1, ..., orange-0,
    ... as RLGym calls them. Known differences from RLGym: `ball_touches` is 1 for any number of touches within a step;
    `is_terminated` is whether a goal was scored and `is_truncated` is False, since rewards are paid before the end of
    an episode is decided.
    """

    def __init__(self, reward_function: RewardFunction) -> None:
        """Wraps `reward_function`, which is copied for every arena.

        Raises:
            TypeError: Not an RLGym RewardFunction.
        """
        if not isinstance(reward_function, RewardFunction):
            raise TypeError(f"RLGymReward: needs an rlgym.api.RewardFunction, got {type(reward_function).__name__}")
        warnings.warn(COST_WARNING, UserWarning, stacklevel=2)
        self.reward_function = reward_function
        self._functions: dict[int, Any] = {}
        self._shared: dict[int, dict[str, Any]] = {}

    def reset(self, mask: Bool, state: GameState) -> None:
        """Resets the functions of the arenas in `mask [A]`."""
        for arena in np.flatnonzero(mask).tolist():
            if arena not in self._functions:
                self._functions[arena] = copy.deepcopy(self.reward_function)
            self._shared[arena] = {}
            rlgym_state = to_rlgym(state, arena)
            self._functions[arena].reset(list(rlgym_state.cars), rlgym_state, self._shared[arena])

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`; a ValueError if the function left out an agent."""
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
        """Always raises TypeError: nobody knows what a function of RLGym's remembers."""
        raise TypeError(
            f"RLGymReward: {type(self.reward_function).__name__} cannot be saved; write it as an envs.Reward"
        )


def to_rlgym(state: GameState, arena: int) -> RLGymState[str]:
    """One arena of a `GameState` as RLGym's state, cars in RLGym's order."""
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
    on_demand = state.wheels_with_contact, state.bump_victim  # also brings the rest of the second tier up to date
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
    """`basis [9]`: forward, right, up; RLGym keeps them as the columns of a matrix."""
    physics = PhysicsObject()
    physics.position, physics.linear_velocity, physics.angular_velocity = pos.copy(), vel.copy(), ang_vel.copy()
    physics.rotation_mtx = np.ascontiguousarray(basis.reshape(3, 3).T)
    return physics
