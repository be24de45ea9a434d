"""RocketSim itself: start-up, controls, and one arena with its cars.

Everything that calls the binding lives here and in `rocket_pool.py`, so its traps are handled in one place.
"""

import functools
import operator
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import RocketSim
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import (
    BALL_RADIUS,
    BALL_RESTING_HEIGHT,
    BOOST_CONSUMPTION_RATE,
    GRAVITY,
    TICKS_PER_SECOND,
)

from envs.game_state import (
    BALL_COLUMNS,
    CAR_BASIS,
    CAR_COLUMNS,
    CAR_DETAIL_ATTRIBUTES,
    CAR_FLAGS,
    CAR_STATE,
    CAR_STATE_FORMAT,
    CAR_TIMERS,
    MIRROR,
    NUM_PADS,
    GameState,
)

__all__ = [
    "BALL_RESTING_HEIGHT",
    "LARGEST_COMMON_BALL",
    "TICKS_PER_SECOND",
    "SimArena",
    "StateReader",
    "default_mutators",
    "init_rocketsim",
    "make_controls",
]

CONTROLS = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")

SET_SIZE = 65
"""Cars after which RocketSim's set of cars has at least 127 buckets (GNU's library) or 512 (Microsoft's)."""
MAX_ATTEMPTS = 64
LAST_OF_PAIR = 1 if sys.platform == "win32" else 0
"""Which of two cars comes last in that set: GNU's library puts new elements first, Microsoft's puts them last."""
BIG_PADS = (3, 4, 29, 30)
"""Pads in the corners of the field, further from each other than a car is long."""
LARGEST_COMMON_BALL = 100.0
"""uu, radius; one of 103 is larger than the cells in which RocketSim looks for contacts, which ends the process."""
ROOMY_CELLS = 1200.0
"""uu, diagonal of what fits into a roomy arena's cells: a ball with a radius of 300. Steps take a quarter longer."""

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


def default_mutators() -> RocketSim.MutatorConfig:
    """The settings of every arena that nobody changes."""
    mutators = RocketSim.MutatorConfig()
    mutators.gravity = RocketSim.Vec(0, 0, -GRAVITY)
    mutators.boost_used_per_second = BOOST_CONSUMPTION_RATE  # as in RLGym's engine; RocketSim's own is 100 / 3
    return mutators


class SimArena:
    """One live RocketSim arena, its cars (blue first, then orange) and its boost pads.

    Attributes:
        roomy: Whether balls larger than `LARGEST_COMMON_BALL` fit in.
    """

    __slots__ = ("arena", "ball_radius", "car_states", "cars", "idle", "pads", "roomy", "slot_of_id", "slots", "teams")

    def __init__(self, teams: Sequence[int], slots: Sequence[int] | None = None, roomy: bool = False) -> None:
        """Makes an empty arena, most of it with the GIL released; `set_state` adds the cars.

        Args:
            teams: Team of every car, 0 blue or 1 orange, blue first.
            slots: The column of each car in a `GameState`; default 0, 1, 2, ...
            roomy: For large balls.
        """
        config = RocketSim.ArenaConfig()
        if roomy:
            config.max_aabb_len = ROOMY_CELLS
        self.roomy = roomy
        self.arena = RocketSim.Arena(RocketSim.GameMode.SOCCAR, config=config)
        self.set_mutators(default_mutators())
        self.pads = self.arena.get_boost_pads()
        self.arena.step(1)  # an arena's first tick takes 20 ms; not in the first episode, please
        # RocketSim's set of cars grows with these and does not shrink: in a large set cars rarely collide (_in_order).
        for car in reversed([self.arena.add_car(RocketSim.Team.BLUE) for _ in range(SET_SIZE)]):
            self.arena.remove_car(car)
        self.teams = list(teams)
        self.slots = list(range(len(self.teams)) if slots is None else slots)
        self.slot_of_id: dict[int, int] = {}
        self.idle = RocketSim.CarControls()
        self.cars: list[Any] = []
        self.car_states: list[Callable[[], Any]] = []
        """Bound `get_state` of every car."""

    def set_mutators(self, mutators: RocketSim.MutatorConfig) -> None:
        """Sets the game's settings; `set_state` or `restore` has to follow, since only new bodies get all of them."""
        self.ball_radius = mutators.ball_radius
        self.arena.set_mutator_config(mutators)

    def set_state(self, state: GameState, index: int) -> None:
        """Puts the arena into the state that row `index` of `state` describes (world view).

        Ball and cars are made anew: old ones would keep suspension and contact caches, and the next episode would
        depend on the last one. So an episode is a function of its first state, to the bit. A ball of another size than
        the game's that would lie on the ground, or in it, is laid on the ground.
        """
        arena = self.arena
        self._renew()

        world = state.world
        ball = RocketSim.BallState()
        ball.pos = _vec(world.ball_pos[index])
        if self.ball_radius != BALL_RADIUS:
            on_ground = self.ball_radius + BALL_RESTING_HEIGHT - BALL_RADIUS
            if ball.pos.z < max(on_ground, BALL_RESTING_HEIGHT + 1):
                ball.pos = RocketSim.Vec(ball.pos.x, ball.pos.y, on_ground)
        ball.vel = _vec(world.ball_vel[index])
        ball.ang_vel = _vec(world.ball_ang_vel[index])
        arena.ball.set_state(ball)
        for slot, car in zip(self.slots, self.cars, strict=True):
            car.set_state(_car_state(state, index, slot))
            car.set_controls(self.idle)
        for pad, timer in zip(self.pads, state.pad_timers[index].tolist(), strict=True):
            pad_state = RocketSim.BoostPadState()
            pad_state.cooldown = timer
            pad_state.is_active = timer <= 0
            pad.set_state(pad_state)

    def _renew(self) -> None:
        """Replaces the ball and the cars by new ones, in an order that is always the same.

        What Bullet and RocketSim remember of the past hangs on these bodies: contacts with the impulses of the last
        tick, pairs of bodies that were close once (also the ball's with the walls), suspensions. Without any of them
        the arena is as good as new.
        """
        arena = self.arena
        for attempt in range(MAX_ATTEMPTS):
            for car in reversed(self.cars):  # last in, first out: every list and free list of the engine stays in order
                arena.remove_car(car)
            if attempt:
                _move_heap()
            config = arena.get_mutator_config()
            radius = config.ball_radius
            for config.ball_radius in (radius + 1, radius):  # another radius is another body
                arena.set_mutator_config(config)
            self.cars = [arena.add_car(RocketSim.Team.ORANGE if team else RocketSim.Team.BLUE) for team in self.teams]
            if self._in_order():
                break
        else:
            warnings.warn(
                f"RocketSimPool: RocketSim went through the cars in an unusual order {MAX_ATTEMPTS} times in a row; "
                "the episode that begins now may not be reproducible to the bit",
                RuntimeWarning,
                stacklevel=2,
            )
        self.car_states = [car.get_state for car in self.cars]
        self.slot_of_id = {car.id: slot for slot, car in zip(self.slots, self.cars, strict=True)}

    def _in_order(self) -> bool:
        """Whether RocketSim goes through the cars in the usual order, which takes a tick or two to see.

        It keeps them in a hash set of pointers, so the order may depend on where the heap had room for them. It
        matters: of two cars that touch each other the first one moves first, of two on a pad the last one gets it.
        Pads tell the order: they remember the last car that was over them, also when they are empty.
        """
        empty = RocketSim.BoostPadState()
        empty.is_active, empty.cooldown = False, 5.0
        for first in range(min(2, len(self.cars) - 1)):
            ball, state = RocketSim.BallState(), RocketSim.CarState()
            ball.pos = RocketSim.Vec(0, 0, 1500)
            self.arena.ball.set_state(ball)
            for index, car in enumerate(self.cars):
                state.pos = RocketSim.Vec(500 * index, 0, 1000)
                car.set_state(state)
            pairs = list(zip(self.cars[first::2], self.cars[first + 1 :: 2], BIG_PADS, strict=False))
            for *pair, pad in pairs:
                x, y, _ = self.pads[pad].get_pos().as_tuple()
                for car, dy in zip(pair, (-75, 75), strict=True):
                    state.pos = RocketSim.Vec(x, y + dy, 140)  # off the ground and off each other
                    car.set_state(state)
                self.pads[pad].set_state(empty)
            self.arena.step(1)
            for *pair, pad in pairs:
                if self.pads[pad].get_state().prev_locked_car_id != pair[LAST_OF_PAIR].id:
                    return False
        return True

    def snapshot(self) -> NDArray[np.float64]:
        """Everything that `restore` needs, as numbers: ball, every car with its controls, every pad."""
        arena, index_of_id = self.arena, {car.id: index for index, car in enumerate(self.cars)}
        ball = arena.ball.get_state()
        numbers = [*_flat(ball, _BALL_SNAPSHOT), index_of_id.get(ball.last_hit_car_id, -1)]
        for car in self.cars:
            state = car.get_state()
            numbers += _flat(state, _CAR_SNAPSHOT)
            numbers += _flat(car.get_controls(), _CONTROLS_SNAPSHOT)
            hit = state.ball_hit_info.tick_count_when_extra_impulse_applied
            numbers += (index_of_id.get(state.car_contact_id, -1), hit == arena.tick_count - 1)
        for pad in self.pads:
            pad_state = pad.get_state()
            numbers += _flat(pad_state, _PAD_SNAPSHOT)
            numbers.append(index_of_id.get(pad_state.prev_locked_car_id, -1))
        return np.array(numbers, np.float64)

    def restore(self, numbers: NDArray[np.float64]) -> None:
        """Puts the arena into the state of a `snapshot`.

        Every arena restored from the same numbers continues the same, to the bit, whatever it did before. The arena
        that was read does not, since contacts that the physics engine keeps are in no snapshot: restore that one too.
        Counters of goals, shots, saves, demos and pads, which nothing but the game's statistics depends on, begin at
        zero.

        Raises:
            ValueError: The snapshot is of an arena with another number of cars, or of another version.
        """
        self._renew()
        if len(numbers) != (expected := len(self.snapshot())):
            raise ValueError(
                f"RocketSimPool: the snapshot of an arena with {len(self.cars)} cars has {expected} numbers, this one "
                f"has {len(numbers)}; load it with the team sizes and the version that saved it"
            )
        arena, ids = self.arena, [*(car.id for car in self.cars), 0]  # 0, no car, for index -1
        values = iter(numbers.tolist())
        ball = RocketSim.BallState()
        _fill(ball, _BALL_SNAPSHOT, values)
        ball.last_hit_car_id = ids[int(next(values))]
        arena.ball.set_state(ball)
        for car in self.cars:
            state, controls = RocketSim.CarState(), RocketSim.CarControls()
            _fill(state, _CAR_SNAPSHOT, values)
            _fill(controls, _CONTROLS_SNAPSHOT, values)
            state.car_contact_id = ids[int(next(values))]
            if next(values):  # kicked the ball in the last tick: no second kick in this one
                hit = state.ball_hit_info
                hit.tick_count_when_extra_impulse_applied = arena.tick_count - 1
                state.ball_hit_info = hit
            car.set_state(state)
            car.set_controls(controls)
        for pad in self.pads:
            pad_state = RocketSim.BoostPadState()
            _fill(pad_state, _PAD_SNAPSHOT, values)
            pad_state.prev_locked_car_id = ids[int(next(values))]
            pad.set_state(pad_state)

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


class StateReader:
    """Reads arenas into the rows of a `GameState`, many at a time, which is far faster than one by one.

    Attributes:
        pads_active: `[A, 2, 34]` float32, 1 where a pad can be taken; world order, then mirrored.
    """

    def __init__(self, state: GameState, sims: list[SimArena]) -> None:
        """Prepares to write into `state`; `sims` is the pool's list, of which elements may be replaced."""
        self.state, self.sims = state, sims
        self.pads_active = np.ones((state.num_arenas, 2, NUM_PADS), np.float32)
        self._pads = self.pads_active.reshape(-1, NUM_PADS)
        self._balls = state.ball_rows.reshape(-1, BALL_COLUMNS)
        self._first_car = [0, *np.cumsum(state.present.sum(axis=1)).tolist()]
        self._slots = np.flatnonzero(state.present)
        # The rows of all slots; without gaps they are read into at once, with gaps by way of dense copies.
        self._all_cars = state.car_rows.reshape(-1, 2, CAR_COLUMNS)
        self._all_states = state.car_states.reshape(-1)
        dense = state.all_present
        self._cars = self._all_cars if dense else np.empty((len(self._slots), 2, CAR_COLUMNS), np.float32)
        self._states = self._all_states if dense else np.zeros(len(self._slots), CAR_STATE)
        self._bytes = self._states.view(np.uint8).data

    def read(self, start: int, stop: int) -> None:
        """Reads the arenas `start` to `stop - 1`: ball, cars and pads, without the pads' timers.

        Raises:
            RuntimeError: NaN physics in one of them; the rows are left as they were.
        """
        sims = self.sims[start:stop]
        first, last = self._first_car[start], self._first_car[stop]
        gym = [sim.arena.get_gym_state() for sim in sims]
        states = map(_read_car_state, [get() for sim in sims for get in sim.car_states])
        np.concatenate([g[1] for g in gym], out=self._pads[2 * start : 2 * stop])
        np.concatenate([g[2] for g in gym], out=self._balls[2 * start : 2 * stop])
        rows = self._cars[first:last].reshape(-1, CAR_COLUMNS)
        np.concatenate([car for g in gym for car in g[3:]], out=rows)
        _packer(last - first)(self._bytes, first * CAR_STATE.itemsize, *chain.from_iterable(states))
        if self._cars is not self._all_cars:
            slots = self._slots[first:last]
            self._all_cars[slots] = self._cars[first:last]
            self._all_states[slots] = self._states[first:last]

    def fix_demolished(self) -> None:
        """A demolished car's state is frozen, but the gym state's rotation is newer: writes the frozen one."""
        state = self.state
        timers = state.demo_respawn_timer
        if timers.any():
            for index, slot in zip(*(axis.tolist() for axis in np.nonzero(timers)), strict=True):
                sim = self.sims[index]
                basis = sim.car_states[sim.slots.index(slot)]().rot_mat.as_numpy()
                state.car_rows[index, slot, 0, CAR_BASIS] = basis.reshape(-1)
                state.car_rows[index, slot, 1, CAR_BASIS] = (basis * MIRROR).reshape(-1)

    def read_details(self, state: GameState) -> None:
        """Fills the stale rows of `details` and `last_touch_car` of the pool's state or of a part of it."""
        for row in np.flatnonzero(state.details_stale).tolist():
            sim = self.sims[int(state.arena_index[row])]
            for slot, get in zip(sim.slots, sim.car_states, strict=True):
                car = get()
                values = [tuple(v) if isinstance(v, RocketSim.Vec) else v for v in _read_car_details(car)]
                victim = sim.slot_of_id.get(car.car_contact_id, -1) if car.car_contact_cooldown_timer > 0 else -1
                state.details[row, slot] = (*values[:-1], victim, car.got_flip_reset())
            state.last_touch_car[row] = sim.slot_of_id.get(sim.arena.ball.get_state().last_hit_car_id, -1)
        state.details_stale[:] = False


# One call reads every attribute of a CarState that the gym state lacks.
_read_car_state = operator.attrgetter(*CAR_TIMERS, *CAR_FLAGS)
_read_car_details = operator.attrgetter(*CAR_DETAIL_ATTRIBUTES.values())

_BASIS = ("rot_mat.forward", "rot_mat.right", "rot_mat.up")
_BALL_SNAPSHOT = ("pos", "vel", "ang_vel", *_BASIS)
_CAR_SNAPSHOT = (
    *("pos", "vel", "ang_vel", *_BASIS, "flip_rel_torque", "world_contact_normal"),
    *("is_on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_flipping", "is_jumping", "is_supersonic"),
    *(
        "is_auto_flipping",
        "is_demoed",
        "has_world_contact",
        "jump_time",
        "flip_time",
        "air_time",
        "air_time_since_jump",
    ),
    *("boost", "time_spent_boosting", "supersonic_time", "handbrake_val", "auto_flip_timer"),
    *("auto_flip_torque_scale", "car_contact_cooldown_timer", "demo_respawn_timer", "wheels_with_contact"),
    *(f"last_controls.{name}" for name in CONTROLS),
)
_CONTROLS_SNAPSHOT = CONTROLS
_PAD_SNAPSHOT = ("is_active", "cooldown")


@functools.lru_cache(maxsize=1)
def _spare_arena() -> RocketSim.Arena:
    return RocketSim.Arena(RocketSim.GameMode.THE_VOID)


_heap_lock = threading.Lock()


def _move_heap() -> None:
    """Takes the memory that the next car would have got, so that it gets another."""
    with _heap_lock:
        arena = _spare_arena()
        for car in arena.get_cars() if len(arena.get_cars()) >= MAX_ATTEMPTS else ():
            arena.remove_car(car)
        arena.add_car(RocketSim.Team.BLUE)


@functools.lru_cache(maxsize=64)
def _packer(num_cars: int) -> Callable[..., None]:
    return struct.Struct("=" + CAR_STATE_FORMAT * num_cars).pack_into


def _flat(struct: Any, names: Sequence[str]) -> list[float]:  # noqa: ANN401 - any of RocketSim's structs
    """The named attributes as numbers, vectors and tuples flattened."""
    numbers: list[float] = []
    for value in operator.attrgetter(*names)(struct):
        numbers += value if isinstance(value, (RocketSim.Vec, tuple)) else (value,)
    return numbers


def _fill(struct: Any, names: Sequence[str], numbers: Iterator[float]) -> None:  # noqa: ANN401 - any of RocketSim's structs
    """Sets the named attributes from what `_flat` gave."""
    for name in names:
        *path, last = name.split(".")
        owner = functools.reduce(getattr, path, struct)
        old = getattr(owner, last)
        value: Any
        if isinstance(old, RocketSim.Vec):
            value = RocketSim.Vec(next(numbers), next(numbers), next(numbers))
        elif isinstance(old, tuple):
            value = tuple(bool(next(numbers)) for _ in old)
        else:
            value = type(old)(next(numbers))
        setattr(owner, last, value)


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
    wheels = tuple(state.details["wheels"][at].tolist())
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
    details = state.details[at]
    car.jump_time, car.air_time = float(details["jump_time"]), float(details["air_time"])
    car.flip_rel_torque = _vec(details["flip_torque"])
    car.is_auto_flipping = bool(details["is_auto_flipping"])
    car.auto_flip_timer = float(details["auto_flip_timer"])
    car.auto_flip_torque_scale = float(details["auto_flip_direction"])
    return car
