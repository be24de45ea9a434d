"""View: ball, cars and pads as seen from one side of the field."""

import numpy as np

from envs.state import layout
from envs.state.derived import Derived
from envs.state.layout import Float


def _ball(columns: slice) -> Derived[Float]:
    return Derived(lambda view: view.ball[..., columns])


def _cars(columns: slice) -> Derived[Float]:
    return Derived(lambda view: view.cars[..., columns])


class View:
    """Ball, cars and pads as seen from one side of the field.

    `GameState.world` is the field as it is, `GameState.mirrored` the same rotated by 180 degrees about z (orange's
    side: orange attacks +y in it), both with arrays `ball_* [A, 3]`, `car_* [A, C, 3]`, `pad_timers [A, 34]`.
    `GameState.own` holds for every car what it sees from its own side, where everybody attacks +y:
    `ball_* [A, C, 3]`, `car_* [A, C, 3]`, `pad_timers [A, C, 34]`.
    """

    __slots__ = ("ball", "cars", "pad_timers")

    def __init__(self, ball: Float, cars: Float, pad_timers: Float) -> None:
        """Wraps rows of RocketSim's gym state: `ball [..., 25]`, `cars [..., C, 36]`, `pad_timers [..., 34]`."""
        self.ball = ball
        self.cars = cars
        self.pad_timers = pad_timers
        """Seconds until each pad can be taken again, 0..10, 0 when it is there; order of rlgym's BOOST_LOCATIONS."""

    ball_pos = _ball(layout.POS)
    """Position, uu: |x| <= 4096, |y| <= 6000, 0 <= z <= 2044."""
    ball_vel = _ball(layout.VEL)
    """Linear velocity, uu/s, norm <= 6000."""
    ball_ang_vel = _ball(layout.ANG_VEL)
    """Angular velocity, rad/s, norm <= 6."""
    car_pos = _cars(layout.CAR_POS)
    """Position, uu."""
    car_vel = _cars(layout.CAR_VEL)
    """Linear velocity, uu/s, norm <= 2300."""
    car_ang_vel = _cars(layout.CAR_ANG_VEL)
    """Angular velocity, rad/s, norm <= 5.5."""
    car_quaternion = _cars(layout.CAR_QUATERNION)
    """Rotation as a unit quaternion w, x, y, z."""
    ball_quaternion = _ball(layout.QUATERNION)
    """Rotation as a unit quaternion w, x, y, z."""

    @property
    def car_pitch_yaw_roll(self) -> Float:
        """Euler angles, radians: pitch in -pi/2..pi/2 lifts the nose, yaw 0 faces +x, roll turns to the right."""
        forward, right, up = self.car_forward, self.car_right, self.car_up
        pitch = np.arcsin(np.clip(forward[..., 2], -1, 1))
        yaw = np.arctan2(forward[..., 1], forward[..., 0])
        return np.stack((pitch, yaw, np.arctan2(-right[..., 2], up[..., 2])), axis=-1)

    car_forward = _cars(layout.CAR_FORWARD)
    """Unit vector out of the car's nose."""
    car_right = _cars(layout.CAR_RIGHT)
    """Unit vector to the car's right (RocketSim's rotation matrix, middle column)."""
    car_up = _cars(layout.CAR_UP)
    """Unit vector out of the car's roof."""
