"""RocketSim itself: start-up, controls, and one arena with its cars.

Everything that calls the binding lives here and in `rocket_pool.py`, so its traps are handled in one place.
"""

import operator
import struct
from pathlib import Path
from typing import Any

import numpy as np
import RocketSim
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT, BOOST_CONSUMPTION_RATE, GRAVITY, TICKS_PER_SECOND

from envs.game_state import CAR_BASIS, CAR_STATE_COLUMNS, MIRROR, NUM_EXTRA, GameState

__all__ = ["BALL_RESTING_HEIGHT", "TICKS_PER_SECOND", "SimArena", "StateRow", "init_rocketsim", "make_controls"]

_started_with: Path | None = None


def init_rocketsim(collision_meshes: str | Path | None = None) -> None:
    """Starts RocketSim in this process; later calls do nothing.

    Args:
        collision_meshes: Folder that holds `soccar/*.cmf`. Default: the meshes that `rlgym[rl-sim]` brings.

    Raises:
        FileNotFoundError: The folder holds no soccar meshes.
    """
    global _started_with
    if collision_meshes is None:
        import rlgym.rocket_league.sim as rlgym_sim

        folder = Path(str(rlgym_sim.__file__)).parent / "collision_meshes"
    else:
        folder = Path(collision_meshes)
    if not any((folder / "soccar").glob("*.cmf")):
        raise FileNotFoundError(
            f"RocketSimPool: no collision meshes at {folder / 'soccar'}; "
            "set --env.collision_meshes to a folder with soccar/*.cmf, or reinstall rlgym[rl-sim] and leave it out"
        )
    if _started_with is not None:
        return
    try:
        RocketSim.init(str(folder))
    except RuntimeError as error:
        if "inited" not in str(error):  # somebody else (RLGym's engine) has started it already: fine
            raise
    _started_with = folder


def make_controls(row: NDArray[Any]) -> RocketSim.CarControls:
    """One `RocketSim.CarControls`.

    Args:
        row: `[8]` throttle, steer, pitch, yaw, roll in -1..1, then jump, boost, handbrake (true when > 0.5).
    """
    controls = RocketSim.CarControls()
    controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll = (float(x) for x in row[:5])
    controls.jump, controls.boost, controls.handbrake = (bool(x > 0.5) for x in row[5:8])
    return controls


# One call reads every attribute of a CarState that the gym state lacks; wheels_with_contact is a tuple of four.
_read_car_state = operator.attrgetter(*CAR_STATE_COLUMNS, "wheels_with_contact")
_DEMO_TIMER = CAR_STATE_COLUMNS.index("demo_respawn_timer")
_pack_car_extra = struct.Struct(f"={NUM_EXTRA}f").pack_into


class StateRow:
    """Where one arena writes what it reads: views of its row of a `GameState`.

    Writing row by row into prepared views costs a fraction of collecting the arrays and joining them afterwards.
    """

    __slots__ = ("ball", "cars", "extra", "extra_offsets", "pads_active")

    def __init__(self, state: GameState, index: int, pads_active: NDArray[np.float32]) -> None:
        """Makes the views of row `index` of `state` and of `pads_active [A, 2, 34]` (1 where a pad can be taken)."""
        self.ball = state.ball_rows[index]
        self.cars = list(state.car_rows[index])
        self.extra = state.car_extra.data
        first, width = index * state.num_cars, state.car_extra.itemsize * NUM_EXTRA
        self.extra_offsets = [(first + slot) * width for slot in range(state.num_cars)]
        self.pads_active = pads_active[index]


class SimArena:
    """One live RocketSim arena, its cars (blue first, then orange) and its boost pads."""

    __slots__ = ("arena", "cars", "idle", "num_blue", "num_orange", "pads")

    def __init__(self, num_blue: int, num_orange: int) -> None:
        """Makes an empty arena; `set_state` adds the cars."""
        self.arena = RocketSim.Arena(RocketSim.GameMode.SOCCAR)
        mutators = RocketSim.MutatorConfig()
        mutators.gravity = RocketSim.Vec(0, 0, -GRAVITY)
        mutators.boost_used_per_second = BOOST_CONSUMPTION_RATE  # as in RLGym's engine; RocketSim's own is 100 / 3
        self.arena.set_mutator_config(mutators)
        self.pads = self.arena.get_boost_pads()
        self.num_blue, self.num_orange = num_blue, num_orange
        self.idle = RocketSim.CarControls()
        self.cars: list[Any] = []

    def set_state(self, state: GameState, index: int) -> None:
        """Puts the arena into the state that row `index` of `state` describes (world view).

        The cars are removed and added again: a car that keeps its identity also keeps suspension and contact caches,
        and the next episode would depend on the last one. With new cars an episode is a function of its first state,
        to the bit.
        """
        arena = self.arena
        for car in reversed(self.cars):  # in reverse, so that the new cars take the old ones' places in the broadphase
            arena.remove_car(car)
        self.cars = [arena.add_car(RocketSim.Team.BLUE) for _ in range(self.num_blue)]
        self.cars += [arena.add_car(RocketSim.Team.ORANGE) for _ in range(self.num_orange)]

        world = state.world
        ball = RocketSim.BallState()
        ball.pos = _vec(world.ball_pos[index])
        ball.vel = _vec(world.ball_vel[index])
        ball.ang_vel = _vec(world.ball_ang_vel[index])
        arena.ball.set_state(ball)
        for slot, car in enumerate(self.cars):
            car.set_state(_car_state(state, index, slot))
            car.set_controls(self.idle)
        for pad, timer in zip(self.pads, state.pad_timers[index].tolist(), strict=True):
            pad_state = RocketSim.BoostPadState()
            pad_state.cooldown = timer
            pad_state.is_active = timer <= 0
            pad.set_state(pad_state)

    def read(self, row: StateRow) -> None:
        """Writes the state of ball, cars and pads (without their timers) into `row`.

        Raises:
            RuntimeError: NaN physics; `row` is left as it was.
        """
        gym = self.arena.get_gym_state()
        row.pads_active[...] = gym[1]  # [...] is faster than [:] for arrays as small as these
        row.ball[...] = gym[2]
        slot = 3
        for car, view, offset in zip(self.cars, row.cars, row.extra_offsets, strict=True):
            view[...] = gym[slot]
            slot += 1
            state = car.get_state()
            extra = _read_car_state(state)
            _pack_car_extra(row.extra, offset, *extra[:-1], *extra[-1])
            if extra[_DEMO_TIMER]:  # a demolished car's CarState is frozen, but the gym state's rotation is newer
                basis = state.rot_mat.as_numpy()
                view[0, CAR_BASIS] = basis.reshape(-1)
                view[1, CAR_BASIS] = (basis * MIRROR).reshape(-1)

    def step_and_respawn(self, ticks: int, rng: np.random.Generator) -> None:
        """Steps like `arena.step`, but draws where demolished cars return from `rng`.

        RocketSim draws the spawn from a generator of its own that cannot be seeded. So the car is put back by hand just
        before the tick that would do it.
        """
        for _ in range(ticks):
            for car in self.cars:
                state = car.get_state()
                if state.is_demoed and state.demo_respawn_timer < 1.5 / TICKS_PER_SECOND:
                    car.respawn(int(rng.integers(2**31 - 1)))
            self.arena.step(1)


def _vec(xyz: NDArray[np.float32]) -> RocketSim.Vec:
    return RocketSim.Vec(*xyz.tolist())


def _car_state(state: GameState, index: int, slot: int) -> RocketSim.CarState:
    world = state.world
    at = (index, slot)
    car = RocketSim.CarState()
    car.pos = _vec(world.car_pos[at])
    car.vel = _vec(world.car_vel[at])
    car.ang_vel = _vec(world.car_ang_vel[at])
    car.rot_mat = RocketSim.RotMat(_vec(world.car_forward[at]), _vec(world.car_right[at]), _vec(world.car_up[at]))
    car.boost = float(state.boost[at])
    wheels = tuple(bool(w) for w in state.wheels_with_contact[at])
    car.wheels_with_contact = wheels
    car.is_on_ground = sum(wheels) >= 3
    car.demo_respawn_timer = float(state.demo_respawn_timer[at])
    car.is_demoed = bool(state.demo_respawn_timer[at] > 0)
    car.has_jumped = bool(state.has_jumped[at])
    car.is_jumping = bool(state.is_jumping[at])
    car.has_flipped = bool(state.has_flipped[at])
    car.has_double_jumped = bool(state.has_double_jumped[at])
    car.air_time_since_jump = float(state.air_time_since_jump[at])
    car.flip_time = float(state.flip_time[at])
    car.is_flipping = bool(state.is_flipping[at])
    car.handbrake_val = float(state.handbrake[at])
    car.supersonic_time = float(state.supersonic_time[at])
    car.time_spent_boosting = float(state.boost_active_time[at])
    return car
