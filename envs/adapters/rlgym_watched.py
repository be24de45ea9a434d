"""What is measured in RLGym's environments: the parts of their rewards, and their states for loggers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rlgym.api import RewardFunction
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.reward_functions import CombinedReward

from envs.adapters.rlgym_rewards import SAME_NAMES
from envs.loggers import StateLogger
from envs.rewards.base import numbered
from envs.rewards.part_sums import PartSums
from envs.state.game_state import GameState
from envs.state.layout import BOOST, CAR_BASIS, ON_GROUND, TOUCHED, Bool


class WatchedReward(CombinedReward[Any]):  # type: ignore[misc]  # rlgym has no types
    """A reward function of RLGym, which pays what it paid, and adds up what each part of a `CombinedReward` pays.

    Attributes:
        parts: The sums, by the names of the classes.
    """

    def __init__(self, reward: RewardFunction) -> None:
        combined = type(reward) is CombinedReward
        super().__init__(*zip(reward.reward_fns, reward.weights, strict=True) if combined else [reward])
        self.parts = PartSums(numbered(type(function).__name__ for function in self.reward_fns))

    def get_rewards(
        self,
        agents: list[Any],
        state: Any,  # noqa: ANN401 - whatever the engine's state is
        is_terminated: dict[Any, bool],
        is_truncated: dict[Any, bool],
        shared_info: dict[str, Any],
    ) -> dict[Any, float]:
        """The weighted sum; a FloatingPointError that names the part which paid NaN or infinity."""
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
    """Shows loggers the games of several RLGym environments as one `GameState`.

    RLGym's states have no counters of goals, shots, saves, demolitions and boost pads, so these stay 0.
    """

    def __init__(self, loggers: Sequence[StateLogger], states: Sequence[Any]) -> None:
        """Takes the loggers and the first states.

        Raises:
            ValueError: An environment's state is no Rocket League game.
        """
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
        """Takes over the state of environment `index`."""
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
        """Tells the loggers that the environments of `mask [E]`, which were seen since, have begun new episodes."""
        self._state.last_touch_car[mask], self._state.ticks_since_touch[mask] = -1, 0
        self._state.complete()
        for logger in self._loggers:
            logger.reset(mask, self._state)

    def update(self, done: Bool) -> None:
        """Tells the loggers of a step after which `done [E]` ended."""
        self._state.complete()
        for logger in self._loggers:
            logger.update(self._state, done)
