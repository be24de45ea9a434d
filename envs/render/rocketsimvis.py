"""RocketSimVis: send games to the viewer RocketSimVis (https://github.com/ZealanL/RocketSimVis)."""

import json
import socket
import time
from contextlib import suppress
from typing import Any

from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES

ADDRESS = ("127.0.0.1", 9273)
"""Address of the viewer: UDP, one JSON object per packet."""
MOST_PACKETS_PER_SECOND = 60


class RocketSimVis:
    """Sender of states that never blocks, ignores a missing viewer, and drops states that come too fast."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._next = 0.0

    def send(self, state: GameState, arena: int = 0) -> None:
        """Send the present state of an arena."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1 / MOST_PACKETS_PER_SECOND
            with suppress(OSError):  # nobody listens, or the buffer is full
                self._socket.sendto(json.dumps(packet(state, arena)).encode(), ADDRESS)

    def close(self) -> None:
        """Close the socket; states sent later are lost."""
        self._socket.close()


def packet(state: GameState, arena: int = 0) -> dict[str, Any]:
    """Return a packet in the format of its `networking-format.md`: uu, uu/s, rad/s, boost 0..100, RLGym's pads.

    That page says 0..1 for boost, and `seer`, but the viewer's code reads 0..100 and `steer`. The ball's rotation is
    not sent; the viewer then rotates it by its angular velocity.
    """
    world = state.world
    ball = {"pos": world.ball_pos, "vel": world.ball_vel, "ang_vel": world.ball_ang_vel}
    body = {"pos": world.car_pos, "vel": world.car_vel, "ang_vel": world.car_ang_vel}
    body |= {"forward": world.car_forward, "up": world.car_up}
    cars = [
        {
            "team_num": int(state.team[car]),
            "phys": {name: vectors[arena, car].tolist() for name, vectors in body.items()},
            "controls": dict(zip(CONTROL_NAMES, state.controls[arena, car].tolist(), strict=True)),
            "boost_amount": float(state.boost[arena, car]),
            "on_ground": bool(state.on_ground[arena, car]),
            "has_flipped_or_double_jumped": bool((state.has_flipped | state.has_double_jumped)[arena, car]),
            "is_demoed": bool(state.is_demoed[arena, car]),
        }
        for car in state.present[arena].nonzero()[0]
    ]
    phys = {name: vectors[arena].tolist() for name, vectors in ball.items()}
    pads = (world.pad_timers[arena] <= 0).tolist()
    return {"gamemode": "soccar", "ball_phys": phys, "cars": cars, "boost_pad_states": pads}
