"""State loggers: observe every step of a pool, change nothing, and report metrics."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.component import Component, begin_rows
from envs.state.game_state import GameState
from envs.state.layout import BOOST, IS_DEMOED, ON_GROUND, SAVES, TOUCHED, Bool, Float
from fabric_rl.base.settings import Count, Positive

COUNTED = ("saves", "shots", "demos")
"""Columns of `CarChanges.new_counts`, in order."""
_COLUMNS = slice(SAVES, BOOST + 1)
"""Columns of a car's row that are compared; the game's counters come first."""
_SUMS = ("alive", "speed", "boost", "ground", "boost_used", *COUNTED, "touches", "touch_height", "car_ticks")
_READY, _LYING, _LEFT = 0, 1, 2
"""State of a car: not a turtle, being timed, or failed (it must stand before it counts again)."""


class StateLogger(Component, ABC):
    """Base class: observe all arenas, and report metrics by `drain_metrics`, always under the same names."""

    @abstractmethod
    def update(self, state: GameState, done: Bool) -> None:
        """Observe a step; called after every step.

        Args:
            state: The state after the step; in arenas whose episode ends, its last state.
            done: `[A]` bool, True if the episode ends with this step. `reset` is called for the next episode.
        """


class EpisodeRatios(StateLogger):
    """Report the share of finished episodes with a touch, and with a goal.

    Metrics: `game/touch_ratio`, the share of finished episodes in which any car touched the ball, 0..1;
    `game/goal_ratio`, the share that ended with a goal, 0..1. Use them, for example, to end phases of training.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"touched": "_touched", "counts": "_counts"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._touched = np.zeros(0, np.bool_)
        self._counts = np.zeros(3)  # episodes, those with a touch, those with a goal

    def update(self, state: GameState, done: Bool) -> None:
        self._touched |= state.touched.any(axis=1)
        if done.any():
            self._counts += (done.sum(), (done & self._touched).sum(), (done & state.goal_scored).sum())

    def reset(self, mask: Bool, state: GameState) -> None:
        self._touched = begin_rows(mask, np.zeros(state.num_arenas, np.bool_), self._touched)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        episodes, touched, goals = self._counts.tolist()
        self._counts[:] = 0
        return {"game/touch_ratio": (touched, episodes), "game/goal_ratio": (goals, episodes)}


class CarChanges(NamedTuple):
    """Actions and counters of each car in a step; `[A, C]` float32, zero in slots without a car."""

    alive: Float
    """1 where the car is not demolished."""
    boost: Float
    """Held after the step, 0..100."""
    on_ground: Float
    """1 with at least three wheels in contact."""
    boost_used: Float
    """Boost that the car lost in the step; 0 if it was demolished before or after the step."""
    touches: Float
    """1 where a contact with the ball begins, however long it lasts."""
    new_counts: Float
    """`[A, C, 3]` saves, shots and demolitions, as the game counts them."""
    ticks: NDArray[np.int64]
    """`[A]` physics ticks (1/120 s) of the step."""


class StepDifference(Component):
    """Comparison of each state with the previous one."""

    _in_state_dict: ClassVar[dict[str, str]] = {"rows": "_rows", "ticks": "_ticks"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rows: Float = np.zeros((0, 0, 0), np.float32)
        self._ticks: NDArray[np.int64] = np.zeros(0, np.int64)

    def update(self, state: GameState) -> CarChanges:
        """Return the changes since the last state, or since `reset`."""
        now, before = state.car_rows[:, :, 0, _COLUMNS].copy(), self._rows
        boost, touched, demoed = (now[..., column - SAVES] for column in (BOOST, TOUCHED, IS_DEMOED))
        alive = state.present - demoed
        drove = alive * (1 - before[..., IS_DEMOED - SAVES])  # a respawned car has a new amount
        used = drove * np.maximum(before[..., BOOST - SAVES] - boost, 0)
        begun = (touched > before[..., TOUCHED - SAVES]).astype(np.float32)
        new, old = now[..., : len(COUNTED)], before[..., : len(COUNTED)]
        counted = np.where(new >= old, new - old, new)  # counters restart in a restored arena
        ticks = state.episode_ticks - self._ticks
        step = CarChanges(alive, boost, now[..., ON_GROUND - SAVES], used, begun, counted, ticks)
        self._rows, self._ticks = now, state.episode_ticks.copy()
        return step

    def reset(self, mask: Bool, state: GameState) -> None:
        """Store the states of the arenas in `mask [A]`, to compare them with the next ones."""
        self._rows = begin_rows(mask, state.car_rows[:, :, 0, _COLUMNS], self._rows)
        self._ticks = begin_rows(mask, state.episode_ticks, self._ticks)


class GameMetrics(StateLogger):
    """Report statistics of the cars: means over all cars of all arenas.

    Metrics of cars that are not demolished: `game/speed`, uu/s; `game/boost`, amount of boost, 0..100;
    `game/air_share`, share of the time with fewer than three wheels in contact, 0..1. Metrics of all cars:
    `game/boost_used_per_minute`; `game/touch_height`, height of the ball when a contact begins, uu;
    `game/shots_per_minute`, `game/saves_per_minute` and `game/demos_per_minute`, as counted by the game. Minutes are
    game time per car.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"": "cars", "sums": "_sums"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sums = dict.fromkeys(_SUMS, 0.0)
        self.cars = StepDifference()

    def update(self, state: GameState, done: Bool) -> None:
        sums, step, velocity = self._sums, self.cars.update(state), state.world.car_vel
        sums["alive"] += float(step.alive.sum())
        sums["speed"] += _dot(step.alive, np.sqrt(np.einsum("aci,aci->ac", velocity, velocity)))
        sums["boost"] += _dot(step.alive, step.boost)
        sums["ground"] += _dot(step.alive, step.on_ground)
        sums["boost_used"] += float(step.boost_used.sum())
        if step.touches.any():
            sums["touches"] += float(step.touches.sum())
            sums["touch_height"] += float((step.touches * state.world.ball_pos[:, None, 2]).sum())
        if step.new_counts.any():
            for name, number in zip(COUNTED, step.new_counts.sum(axis=(0, 1)).tolist(), strict=True):
                sums[name] += number
        sums["car_ticks"] += float(np.einsum("ac,a->", state.present, step.ticks))

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        sums, self._sums = self._sums, dict.fromkeys(_SUMS, 0.0)
        minutes = sums["car_ticks"] / TICKS_PER_SECOND / 60
        metrics = {f"game/{name}": (sums[name], sums["alive"]) for name in ("speed", "boost")}
        metrics["game/air_share"] = (sums["alive"] - sums["ground"], sums["alive"])
        metrics |= {f"game/{name}_per_minute": (sums[name], minutes) for name in ("boost_used", *COUNTED)}
        return metrics | {"game/touch_height": (sums["touch_height"], sums["touches"])}


def _dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.einsum("ac,ac->", a, b))


@dataclass(eq=False, repr=False)
class TurtleRecoveryLogger(StateLogger):
    """Count cars that lie on their roofs (turtles), and time how they recover.

    A turtle is a car whose roof lies on the floor: its up vector points down (`up_z < -0.7`, within 45 degrees), the
    lowest corner of its hitbox's roof is within `CONTACT` of the floor, it is slower than `max_speed`, and it is
    neither on its wheels nor demolished.

    It has recovered if it stands upright (`up_z > 0.7`) on at least three wheels within `window_ticks` after the step
    in which it became a turtle; else it has failed, and can count again only after it has stood upright. A
    demolition or the end of the episode ends the measurement without a result.

    Metrics: `turtle/started`, turtles per car in an iteration; `turtle/recovery_rate`, recovered over recovered and
    failed, 0..1; `turtle/recovery_ticks`, mean physics ticks (1/120 s) until a recovery, rounded up to whole steps.
    """

    ROOF_DOWN, UPRIGHT = -0.7, 0.7
    """z of the unit vector out of the roof."""
    CONTACT = 4.0
    """Maximum distance in uu between roof and floor for contact; a resting body bounces and sinks by less."""
    FRONT, BACK, SIDE, ROOF = 74.1, -46.4, 43.3, 40.1
    """uu, the roof of an Octane's hitbox in the car's frame: forward, backward, to both sides, up."""
    _in_state_dict: ClassVar[dict[str, str]] = {"part": "_part", "since": "_since", "counts": "_counts"}

    window_ticks: Count = 360
    """Physics ticks within which a car must recover; 360 are 3 s."""
    max_speed: Positive = 500.0
    """uu/s; a car that slides on its roof faster than this is not counted yet."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._part: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._since: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._counts = np.zeros(4)  # started, recovered, failed, ticks until recovery
        self._cars = 0

    def update(self, state: GameState, done: Bool) -> None:
        part, ticks, self._cars = self._part, state.episode_ticks[:, None], int(state.present.sum())
        lying = self.lies_on_roof(state)
        fresh = lying & (part == _READY)
        stands = state.on_ground & (state.world.car_up[..., 2] > self.UPRIGHT) & state.present & ~state.is_demoed
        part[(part == _LYING) & state.is_demoed] = _READY
        took = ticks - self._since
        recovered = (part == _LYING) & stands & (took <= self.window_ticks)
        failed = (part == _LYING) & ~recovered & (took >= self.window_ticks)
        self._counts += (fresh.sum(), recovered.sum(), failed.sum(), took[recovered].sum())
        part[failed], part[stands] = _LEFT, _READY
        part[fresh] = _LYING
        self._since = np.where(fresh, ticks, self._since)

    def lies_on_roof(self, state: GameState) -> Bool:
        """Return `[A, C]`, True for every car that is a turtle."""
        world = state.world
        up = world.car_up[..., 2]
        might: Bool = (up < self.ROOF_DOWN) & ~state.on_ground
        if not might.any():
            return might
        forward, right = world.car_forward[..., 2], world.car_right[..., 2]
        corner = np.minimum(forward * self.FRONT, forward * self.BACK) - np.abs(right) * self.SIDE + up * self.ROOF
        slow = np.einsum("aci,aci->ac", world.car_vel, world.car_vel) < self.max_speed**2
        contact = world.car_pos[..., 2] + corner < self.CONTACT
        on_roof: Bool = might & contact & slow & ~state.is_demoed & state.present
        return on_roof

    def reset(self, mask: Bool, state: GameState) -> None:
        if self._part.shape != state.present.shape:
            self._part, self._since = (np.zeros(state.present.shape, np.int64) for _ in range(2))
        self._part[mask] = _READY

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        started, recovered, failed, ticks = self._counts.tolist()
        self._counts[:] = 0
        return {
            "turtle/started": (started, float(self._cars)),
            "turtle/recovery_rate": (recovered, recovered + failed),
            "turtle/recovery_ticks": (ticks, recovered),
        }
