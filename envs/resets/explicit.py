"""One exact state, written down by hand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.resets.base import BALL_MAX_ANG_VEL, EachArena, inside_field
from envs.state.game_state import GameState, stands
from envs.state.layout import NUM_PADS, Bool
from fabric_rl.base.settings import is_number

Vectors = Sequence[Sequence[float]]


class ExplicitState(EachArena):
    """The same state in every episode, for a notebook, a test or a drill. Draws nothing.

    Cars are given in the order of the slots: blue, then orange. With mixed team sizes there is one for every slot of
    the largest arena, and those of absent cars are left out.
    """

    def __init__(
        self,
        car_pos: Vectors,
        ball_pos: Sequence[float] = (0.0, 0.0, game.BALL_RESTING_HEIGHT),
        ball_vel: Sequence[float] = (0.0, 0.0, 0.0),
        ball_ang_vel: Sequence[float] = (0.0, 0.0, 0.0),
        car_yaw: Sequence[float] | None = None,
        car_rotation: Vectors | None = None,
        car_vel: Vectors | None = None,
        car_ang_vel: Vectors | None = None,
        boost: float | Sequence[float] = 100.0 / 3,
        on_ground: Sequence[bool] | None = None,
        pad_timers: Sequence[float] | None = None,
    ) -> None:
        """Creates the setter.

        Args:
            car_pos: `[C][3]` uu; a car that stands on its wheels has z = 17.
            ball_pos: uu. In the air, a ball without any velocity and spin hangs there until it is touched; to let it
                fall, give it a little, such as ball_vel (0, 0, -0.01).
            ball_vel: uu/s, at most 6000.
            ball_ang_vel: rad/s, at most 6.
            car_yaw: `[C]` radians for cars that are level, 0 faces +x, pi/2 faces +y. Default: everybody faces +x.
            car_rotation: `[C][3]` pitch (positive lifts the nose), yaw, roll in radians, instead of `car_yaw`.
            car_vel: `[C][3]` uu/s, at most 2300. Default: all at rest.
            car_ang_vel: `[C][3]` rad/s, at most 5.5. Default: none.
            boost: 0..100, one number for all or one per car.
            on_ground: `[C]` whether a car's wheels touch the ground. Default: where it is level and at most 20 uu high.
            pad_timers: `[34]` seconds until each pad is back, 0..10, order of rlgym's BOOST_LOCATIONS. Default: all 0.
        """
        self.car_pos = _array("car_pos", car_pos, (None, 3))
        cars = len(self.car_pos)
        self.ball_pos = _array("ball_pos", ball_pos, (3,))
        for name, spots in (("ball_pos", self.ball_pos[None]), ("car_pos", self.car_pos)):
            for spot in spots.tolist():
                if not inside_field(*spot):
                    raise ValueError(f"ExplicitState: {name} {tuple(spot)} is outside the field")
        self.ball_vel = _array("ball_vel", ball_vel, (3,), max_norm=game.BALL_MAX_SPEED)
        self.ball_ang_vel = _array("ball_ang_vel", ball_ang_vel, (3,), max_norm=BALL_MAX_ANG_VEL)
        rest = np.zeros((cars, 3))
        vel, spin, rotation = (rest if given is None else given for given in (car_vel, car_ang_vel, car_rotation))
        self.car_vel = _array("car_vel", vel, (cars, 3), max_norm=game.CAR_MAX_SPEED)
        self.car_ang_vel = _array("car_ang_vel", spin, (cars, 3), max_norm=game.CAR_MAX_ANG_VEL)
        if car_yaw is not None and car_rotation is not None:
            raise ValueError("ExplicitState: give car_yaw or car_rotation, not both")
        self.car_rotation = _array("car_rotation", rotation, (cars, 3))
        if car_yaw is not None:
            self.car_rotation[:, 1] = _array("car_yaw", car_yaw, (cars,))
        self.boost = _array("boost", [boost] * cars if is_number(boost) else boost, (cars,), between=(0, 100))
        timers = (0.0,) * NUM_PADS if pad_timers is None else pad_timers
        self.pad_timers = _array("pad_timers", timers, (NUM_PADS,), between=(0, game.BIG_PAD_RECHARGE_SECONDS))
        level = stands(self.car_pos, self.car_rotation)
        self.on_ground: Bool = level if on_ground is None else np.asarray(on_ground)
        if self.on_ground.shape != (cars,) or self.on_ground.dtype != np.bool_:
            raise ValueError(f"ExplicitState: on_ground must be {cars} times true or false, got {on_ground}")

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        if state.num_cars != len(self.car_pos):
            raise ValueError(
                f"ExplicitState: car_pos has {len(self.car_pos)} cars, but the pool's arenas have {state.num_cars} "
                f"({state.num_blue} blue, {state.num_orange} orange)"
            )
        world = state.world
        world.ball_pos[arena], world.ball_vel[arena] = self.ball_pos, self.ball_vel
        world.ball_ang_vel[arena] = self.ball_ang_vel
        world.car_pos[arena], world.car_vel[arena] = self.car_pos, self.car_vel
        world.car_ang_vel[arena] = self.car_ang_vel
        pitch, yaw, roll = self.car_rotation.T.astype(np.float32)
        state.set_car_rotation(arena, pitch, yaw, roll)
        state.set_on_ground(arena, self.on_ground)
        state.boost[arena] = self.boost
        state.pad_timers[arena] = self.pad_timers


def _array(
    name: str,
    values: object,
    shape: tuple[int | None, ...],
    max_norm: float | None = None,
    between: tuple[float, float] | None = None,
) -> NDArray[np.float64]:
    """`values` as a new float array of this shape (None: any length but 0); a ValueError if they do not fit."""
    given = " ".join(repr(values).split())
    wanted = " x ".join("cars" if n is None else str(n) for n in shape)
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"ExplicitState: {name} must be {wanted} numbers, got {given}") from None
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits or not array.size or not np.isfinite(array).all():
        raise ValueError(f"ExplicitState: {name} must be {wanted} finite numbers, got {given}")
    if max_norm is not None and (np.linalg.norm(array, axis=-1) > max_norm).any():
        raise ValueError(f"ExplicitState: {name} must not be longer than {max_norm}, got {given}")
    if between is not None and not ((array >= between[0]) & (array <= between[1])).all():
        raise ValueError(f"ExplicitState: {name} must be between {between[0]} and {between[1]}, got {given}")
    return array
