"""The numbers by which bot makers compare bots: speed, boost, air, touches, shots, saves, demolitions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.loggers.base import StateLogger
from envs.loggers.car_steps import COUNTED, CarSteps
from envs.state.game_state import GameState
from envs.state.layout import Bool

_SUMS = ("alive", "speed", "boost", "ground", "boost_used", *COUNTED, "touches", "touch_height", "car_ticks")


class GameMetrics(StateLogger):
    """Report statistics of the cars: means over all cars of all arenas.

    Metrics: `game/speed`, uu/s; `game/boost`, held, 0..100; `game/air_share`, of the time with fewer than three wheels
    in contact, 0..1 (these three of cars that are not demolished); `game/boost_used_per_minute`; `game/touch_height`,
    uu, of the ball when a contact with it begins; `game/shots_per_minute`, `game/saves_per_minute` and
    `game/demos_per_minute`, as the game counts them. Minutes are game time per car.
    """

    def __init__(self) -> None:
        self._sums = dict.fromkeys(_SUMS, 0.0)
        self._cars = CarSteps()

    def update(self, state: GameState, done: Bool) -> None:
        sums, step, velocity = self._sums, self._cars.update(state), state.world.car_vel
        sums["alive"] += float(step.alive.sum())
        sums["speed"] += _dot(step.alive, np.sqrt(np.einsum("aci,aci->ac", velocity, velocity)))
        sums["boost"] += _dot(step.alive, step.boost)
        sums["ground"] += _dot(step.alive, step.on_ground)
        sums["boost_used"] += float(step.boost_used.sum())
        if step.touches.any():
            sums["touches"] += float(step.touches.sum())
            sums["touch_height"] += float((step.touches * state.world.ball_pos[:, None, 2]).sum())
        if step.counted.any():
            for name, number in zip(COUNTED, step.counted.sum(axis=(0, 1)).tolist(), strict=True):
                sums[name] += number
        sums["car_ticks"] += float(np.einsum("ac,a->", state.present, step.ticks))

    def reset(self, mask: Bool, state: GameState) -> None:
        self._cars.reset(mask, state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        sums, self._sums = self._sums, dict.fromkeys(_SUMS, 0.0)
        minutes = sums["car_ticks"] / TICKS_PER_SECOND / 60
        metrics = {f"game/{name}": (sums[name], sums["alive"]) for name in ("speed", "boost")}
        metrics["game/air_share"] = (sums["alive"] - sums["ground"], sums["alive"])
        metrics |= {f"game/{name}_per_minute": (sums[name], minutes) for name in ("boost_used", *COUNTED)}
        return metrics | {"game/touch_height": (sums["touch_height"], sums["touches"])}

    def state_dict(self) -> dict[str, Any]:
        """Return the last state, which the next one is compared with, and the sums since `drain_metrics`."""
        return {**self._cars.state_dict(), "sums": dict(self._sums)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._cars.load_state_dict(state)
        self._sums = {name: float(state["sums"][name]) for name in _SUMS}


def _dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.einsum("ac,ac->", a, b))
