"""RLGymReward: a reward function written for RLGym in the fast pool."""

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rlgym.api import RewardFunction
from rlgym.rocket_league.api import Car, GameConfig, PhysicsObject
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.common_values import OCTANE

from envs.game_state import CAR_BASIS, FORWARD, ORANGE, UP, Bool, Float, GameState
from envs.rewards import Reward

COST_WARNING = (
    "RLGymReward builds RLGym's objects in Python, on one core: about 25 us per arena and step in 1v1 and 55 us in 3v3 "
    "plus the function itself, where the whole pool takes 50 us and 100 us with one thread; write the reward as an "
    "envs.Reward to train at full speed"
)

# Fields of RLGym's Car that are one number or flag, and the arrays `[A, C]` of GameState that hold them.
CAR_FIELDS = {
    "demo_respawn_timer": "demo_respawn_timer",
    "supersonic_time": "supersonic_time",
    "boost_amount": "boost",
    "boost_active_time": "boost_active_time",
    "handbrake": "handbrake",
    "is_jumping": "is_jumping",
    "has_jumped": "has_jumped",
    "is_holding_jump": "is_holding_jump",
    "jump_time": "jump_time",
    "has_flipped": "has_flipped",
    "has_double_jumped": "has_double_jumped",
    "air_time_since_jump": "air_time_since_jump",
    "flip_time": "flip_time",
    "is_autoflipping": "is_auto_flipping",
    "autoflip_timer": "auto_flip_timer",
    "autoflip_direction": "auto_flip_direction",
}


class RLGymReward(Reward):
    """Pays what an RLGym reward function pays.

    Every arena has a function and a `shared_info` of its own; agents are called blue-0, blue-1, ..., orange-0, ... as
    RLGym calls them. What a function can see that differs from RLGym:

    - `ball_touches` is 1 for any number of touches within a step.
    - Rewards are paid before the end of an episode is decided, so `is_terminated` says whether a goal was scored and
      `is_truncated` is always False.
    - `shared_info` holds what the function itself put there; no other component of RLGym's writes to it.
    """

    def __init__(self, reward_function: RewardFunction | Callable[[], Any]) -> None:
        """Wraps a reward function, and warns of what that costs.

        Args:
            reward_function: An `rlgym.api.RewardFunction`, which is deep-copied for every arena; or a class or another
                function without arguments that makes one and is called for every arena.

        Raises:
            TypeError: Neither of them.
        """
        self._make: Callable[[], Any]
        if isinstance(reward_function, RewardFunction):
            self._make = functools.partial(copy.deepcopy, reward_function)
        elif callable(reward_function):
            self._make = reward_function
        else:
            raise TypeError(
                "RLGymReward: reward_function must be an rlgym.api.RewardFunction or make one, got "
                f"{type(reward_function).__name__}"
            )
        example = self._make()
        self.name = type(example).__name__
        if not isinstance(example, RewardFunction):
            raise TypeError(f"RLGymReward: reward_function must make an rlgym.api.RewardFunction, it made {self.name}")
        warnings.warn(COST_WARNING, UserWarning, stacklevel=2)
        self._functions: dict[int, Any] = {}
        self._shared: dict[int, dict[str, Any]] = {}

    def reset(self, mask: Bool, state: GameState) -> None:
        """Resets the functions of the arenas in `mask [A]`."""
        part = state.select(np.flatnonzero(mask))
        for arena, rlgym_state in zip(part.arena_index.tolist(), rlgym_states(part), strict=True):
            if arena not in self._functions:
                self._functions[arena], self._shared[arena] = self._make(), {}
            self._functions[arena].reset(list(rlgym_state.cars), rlgym_state, self._shared[arena])

    def compute(self, state: GameState) -> Float:
        """See `Reward.compute`.

        Raises:
            TypeError: The function returned something else than a dict of numbers.
            ValueError: The function left out an agent.
        """
        rewards = np.zeros((state.num_arenas, state.num_cars), np.float32)
        for row, (arena, rlgym_state) in enumerate(zip(state.arena_index.tolist(), rlgym_states(state), strict=True)):
            agents = list(rlgym_state.cars)
            terminated, truncated = dict.fromkeys(agents, rlgym_state.goal_scored), dict.fromkeys(agents, False)
            paid = self._functions[arena].get_rewards(agents, rlgym_state, terminated, truncated, self._shared[arena])
            if not isinstance(paid, dict):
                raise TypeError(f"RLGymReward: {self.name}.get_rewards() must return a dict, got {type(paid).__name__}")
            missing = [agent for agent in agents if agent not in paid]
            if missing:
                raise ValueError(f"RLGymReward: {self.name}.get_rewards() returned nothing for {', '.join(missing)}")
            try:
                rewards[row, state.present[row]] = [paid[agent] for agent in agents]
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"RLGymReward: {self.name}.get_rewards() must return one number per agent, got {paid}"
                ) from error
        return rewards

    def state_dict(self) -> dict[str, Any]:
        """Not available: nobody knows what a function of RLGym's remembers.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"RLGymReward: {self.name} cannot be saved; write it as an envs.Reward")


def rlgym_states(state: GameState) -> list[RLGymState]:
    """Every arena of a `GameState` as a state of RLGym's, cars in RLGym's order; copies that may be kept."""
    world, arenas = state.world, range(state.num_arenas)
    balls = _physics(world.ball_pos, world.ball_vel, world.ball_ang_vel, world.ball[:, FORWARD.start : UP.stop])
    cars = _cars(state)
    goals, ticks, pads = state.goal_scored.tolist(), state.episode_ticks.tolist(), state.pad_timers.copy()
    names = [
        f"orange-{slot - state.num_blue}" if team == ORANGE else f"blue-{slot}" for slot, team in enumerate(state.team)
    ]
    victims, present = state.bump_victim.tolist(), state.present.tolist()
    states = []
    for arena in arenas:
        rlgym_state: RLGymState = RLGymState()
        rlgym_state.tick_count, rlgym_state.goal_scored = ticks[arena], goals[arena]
        rlgym_state.config = GameConfig()
        rlgym_state.config.gravity = rlgym_state.config.boost_consumption = 1.0
        rlgym_state.config.dodge_deadzone = 0.5
        rlgym_state.ball, rlgym_state.boost_pad_timers = balls[arena], pads[arena]
        rlgym_state.cars = {}
        for slot, name in enumerate(names):
            if present[arena][slot]:
                car = cars[arena * len(names) + slot]
                victim = victims[arena][slot]
                car.bump_victim_id = None if victim < 0 else names[victim]
                rlgym_state.cars[name] = car
        states.append(rlgym_state)
    return states


def _cars(state: GameState) -> list[Car]:
    """All slots `[A * C]`, without `bump_victim_id`."""
    world = state.world
    physics = _physics(world.car_pos, world.car_vel, world.car_ang_vel, world.cars[..., CAR_BASIS])
    numbers = zip(*(getattr(state, ours).ravel().tolist() for ours in CAR_FIELDS.values()), strict=True)
    touched, wheels = state.touched.ravel().tolist(), state.wheels_with_contact.reshape(-1, 4).tolist()
    flip_torques = _rows(state.flip_torque)
    teams = state.team.tolist() * state.num_arenas
    cars = []
    for slot, values in enumerate(numbers):
        car: Car = Car()
        car.team_num, car.hitbox_type, car.ball_touches = teams[slot], OCTANE, int(touched[slot])
        car.wheels_with_contact, car.flip_torque = tuple(wheels[slot]), flip_torques[slot]
        car.physics = physics[slot]
        for name, value in zip(CAR_FIELDS, values, strict=True):
            setattr(car, name, value)
        cars.append(car)
    return cars


def _physics(pos: Float, vel: Float, ang_vel: Float, basis: Float) -> list[PhysicsObject]:
    """Objects for `[..., 3]` vectors; `basis [..., 9]` is forward, right, up, which RLGym keeps as columns."""
    rotations = np.ascontiguousarray(basis.reshape(-1, 3, 3).swapaxes(1, 2))
    objects = []
    for row in zip(_rows(pos), _rows(vel), _rows(ang_vel), rotations, strict=True):
        physics = PhysicsObject()
        physics.position, physics.linear_velocity, physics.angular_velocity, physics.rotation_mtx = row
        objects.append(physics)
    return objects


def _rows(vectors: Float) -> list[Float]:
    """`[..., 3]` as a list of copied rows."""
    return list(np.array(vectors, np.float32).reshape(-1, 3))
