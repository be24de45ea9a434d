"""How often cars lie on their roofs, and whether and how fast they get up."""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from envs.checks import whole_number
from envs.loggers.base import StateLogger
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import is_number

_READY, _LYING, _LEFT = 0, 1, 2
"""A car's part in the count: none yet, being timed, or given up (it has to stand on its wheels before it counts
again)."""


class TurtleRecoveryLogger(StateLogger):
    """Counts turtles, and times how they recover.

    A turtle is a car whose roof lies on the floor. That wheels touch nothing is not enough, for so it is with every car
    in the air: the vector out of its roof points down (`up_z < -0.7`, within 45 degrees), the lowest corner of the roof
    of its hitbox is within `CONTACT` of the floor, it is slower than `max_speed`, and neither on its wheels nor
    demolished.

    It has recovered when it stands on at least three wheels and upright (`up_z > 0.7`) within `window_ticks` after the
    step that found it lying; else it has failed, and counts again only after it has stood. A demolition and the end of
    the episode end the watch without a verdict; what was counted stays.

    Metrics: `turtle/started`, turtles per car since the last log; `turtle/recovery_rate`, recovered over recovered and
    failed, 0..1; `turtle/recovery_ticks`, mean physics ticks (1/120 s) of those that recovered, as exact as the steps.
    """

    ROOF_DOWN, UPRIGHT = -0.7, 0.7
    """z of the unit vector out of the roof."""
    CONTACT = 4.0
    """uu between roof and floor that still count as contact: what a body bounces and sinks in at rest, and more."""
    FRONT, BACK, SIDE, ROOF = 74.1, -46.4, 43.3, 40.1
    """uu, the roof of an Octane's hitbox in the car's frame: forward, backward, to both sides, up."""
    _in_state_dict: ClassVar = {"part": "_part", "since": "_since", "counts": "_counts"}

    def __init__(self, window_ticks: int = 360, max_speed: float = 500.0) -> None:
        """Creates the logger.

        Args:
            window_ticks: Physics ticks within which a car has to get up; 360 are 3 s.
            max_speed: uu/s; a car that slides on its roof faster than this is not counted yet.
        """
        self.window_ticks = whole_number("TurtleRecoveryLogger", "window_ticks", window_ticks)
        if not is_number(max_speed) or not 0 < max_speed < math.inf:
            raise ValueError(f"TurtleRecoveryLogger: max_speed must be a positive number, got {max_speed!r}")
        self.max_speed = float(max_speed)
        self._part: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._since: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._counts = np.zeros(4)  # started, recovered, failed, ticks of the recovered

    def update(self, state: GameState, done: Bool) -> None:
        part, ticks = self._part, state.episode_ticks[:, None]
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
        """`[A, C]` whether each car is a turtle."""
        world = state.world
        up = world.car_up[..., 2]
        might: Bool = (up < self.ROOF_DOWN) & ~state.on_ground
        if not might.any():
            return might
        forward, right = world.car_forward[..., 2], world.car_right[..., 2]
        corner = np.minimum(forward * self.FRONT, forward * self.BACK) - np.abs(right) * self.SIDE + up * self.ROOF
        slow = np.einsum("aci,aci->ac", world.car_vel, world.car_vel) < self.max_speed**2
        on_roof: Bool = (
            might & (world.car_pos[..., 2] + corner < self.CONTACT) & slow & ~state.is_demoed & state.present
        )
        return on_roof

    def reset(self, mask: Bool, state: GameState) -> None:
        if self._part.shape != state.present.shape:
            self._part, self._since = (np.zeros(state.present.shape, np.int64) for _ in range(2))
        self._part[mask] = _READY

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        started, recovered, failed, ticks = self._counts.tolist()
        self._counts[:] = 0
        return {
            "turtle/started": (started, float(self._part.size)),
            "turtle/recovery_rate": (recovered, recovered + failed),
            "turtle/recovery_ticks": (ticks, recovered),
        }
