"""The numbers by which bot makers compare bots: speed, boost, air, touches, shots, saves, demolitions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.loggers.base import StateLogger
from envs.saved import within
from envs.state.game_state import GameState
from envs.state.layout import BOOST, DEMOS, IS_DEMOED, ON_GROUND, SAVES, SHOTS, TOUCHED, Bool, Float

_COLUMNS = slice(SAVES, BOOST + 1)
"""Of a car's row, what is looked at; the game's counters come first."""
_COUNTERS = {"saves": SAVES, "shots": SHOTS, "demos": DEMOS}
_SUMS = ("alive", "speed", "boost", "ground", "boost_used", *_COUNTERS, "touches", "touch_height", "car_ticks")


class GameMetrics(StateLogger):
    """What cars do, as means over all cars of all arenas.

    Metrics: `game/speed`, uu/s; `game/boost`, held, 0..100; `game/air_share`, of the time with fewer than three wheels
    in contact, 0..1 (these three of cars that are not demolished); `game/boost_used_per_minute`; `game/touch_height`,
    uu, of the ball when a contact with it begins; `game/shots_per_minute`, `game/saves_per_minute` and
    `game/demos_per_minute`, as the game counts them. Minutes are game time per car.
    """

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._sums = dict.fromkeys(_SUMS, 0.0)
        self._rows: Float = np.zeros((0, 0, 0), np.float32)
        self._ticks: NDArray[np.int64] = np.zeros(0, np.int64)

    def update(self, state: GameState, done: Bool) -> None:
        """See `StateLogger.update`."""
        sums, before, velocity = self._sums, self._rows, state.world.car_vel
        now = state.car_rows[:, :, 0, _COLUMNS].copy()
        boost, touched = now[..., BOOST - SAVES], now[..., TOUCHED - SAVES]
        alive = state.present - now[..., IS_DEMOED - SAVES]
        sums["alive"] += float(alive.sum())
        sums["speed"] += _dot(alive, np.sqrt(np.einsum("aci,aci->ac", velocity, velocity)))
        sums["boost"] += _dot(alive, boost)
        sums["ground"] += _dot(alive, now[..., ON_GROUND - SAVES])
        drove = alive * (1 - before[..., IS_DEMOED - SAVES])  # one that returns has another amount
        sums["boost_used"] += _dot(drove, np.maximum(before[..., BOOST - SAVES] - boost, 0))
        if touched.any():
            begun = touched > before[..., TOUCHED - SAVES]
            sums["touches"] += int(np.count_nonzero(begun))
            sums["touch_height"] += float((begun * state.world.ball_pos[:, None, 2]).sum())
        if (now[..., : len(_COUNTERS)] != before[..., : len(_COUNTERS)]).any():
            for name, column in _COUNTERS.items():  # of a restored arena they begin anew
                old, new = before[..., column - SAVES], now[..., column - SAVES]
                sums[name] += float(np.where(new >= old, new - old, new).sum())
        sums["car_ticks"] += float(np.einsum("ac,a->", state.present, state.episode_ticks - self._ticks))
        self._rows, self._ticks = now, state.episode_ticks.copy()

    def reset(self, mask: Bool, state: GameState) -> None:
        """See `StateLogger.reset`."""
        now = state.car_rows[:, :, 0, _COLUMNS]
        if self._rows.shape != now.shape:
            self._rows, self._ticks = now.copy(), state.episode_ticks.copy()
        self._rows[mask], self._ticks[mask] = now[mask], state.episode_ticks[mask]

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """See `StateLogger.drain_metrics`."""
        sums, self._sums = self._sums, dict.fromkeys(_SUMS, 0.0)
        minutes = sums["car_ticks"] / TICKS_PER_SECOND / 60
        metrics = {f"game/{name}": (sums[name], sums["alive"]) for name in ("speed", "boost")}
        metrics["game/air_share"] = (sums["alive"] - sums["ground"], sums["alive"])
        metrics |= {f"game/{name}_per_minute": (sums[name], minutes) for name in ("boost_used", *_COUNTERS)}
        return metrics | {"game/touch_height": (sums["touch_height"], sums["touches"])}

    def state_dict(self) -> dict[str, Any]:
        """What it compares the next states with, and the sums since `drain_metrics`."""
        return {"rows": self._rows.copy(), "ticks": self._ticks.copy(), "sums": dict(self._sums)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave."""
        self._rows, self._ticks = (np.array(within(name, state[name])) for name in ("rows", "ticks"))
        self._sums = {name: float(within(name, state["sums"][name])) for name in _SUMS}


def _dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.einsum("ac,ac->", a, b))
