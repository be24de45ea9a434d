"""RocketSim: start-up, controls, and one arena with its cars.

This module works around the pitfalls of the binding; `envs.sim.arenas` reads many arenas at once.
"""

import functools
import operator
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import RocketSim
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.state.game_state import GameState
from envs.state.layout import CAR_DETAIL_ATTRIBUTES, CAR_FLAGS, CAR_TIMERS, CONTROL_NAMES

LARGEST_COMMON_BALL = 100.0
"""Radius in uu; 103 exceeds RocketSim's contact cells, which ends the process."""
ROOMY_CELLS = 1200.0
"""Diagonal in uu of what fits into large cells: a ball with a radius of 300. Steps take 27 to 39 % longer."""

_started_with: Path | None = None


def init_rocketsim(collision_meshes: str | Path | None = None) -> None:
    """Start RocketSim in this process; later calls do nothing.

    Args:
        collision_meshes: Folder that contains `soccar/*.cmf`. Default: the meshes of `rlgym[rl-sim]`.

    Raises:
        FileNotFoundError: The folder contains no soccar meshes.
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
            "set --env.collision_meshes to a folder with soccar/*.cmf, or reinstall rlgym[rl-sim] and omit the flag"
        )
    if _started_with is not None:
        return
    try:
        RocketSim.init(str(folder))
    except RuntimeError as error:
        if "inited" not in str(error):  # already started, for example by RLGym's engine
            raise
    _started_with = folder


def make_controls(row: Sequence[float]) -> RocketSim.CarControls:
    """Convert throttle, steer, pitch, yaw, roll in -1..1, and jump, boost, handbrake (pressed above 0.5)."""
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    return RocketSim.CarControls(
        throttle=throttle,
        steer=steer,
        pitch=pitch,
        yaw=yaw,
        roll=roll,
        jump=jump > 0.5,
        boost=boost > 0.5,
        handbrake=handbrake > 0.5,
    )


def default_mutators() -> RocketSim.MutatorConfig:
    """Return the default physics settings of an arena."""
    mutators = RocketSim.MutatorConfig()
    mutators.gravity = RocketSim.Vec(0, 0, -game.GRAVITY)
    mutators.boost_used_per_second = game.BOOST_CONSUMPTION_RATE  # as in RLGym's engine; RocketSim's own is 100 / 3
    return mutators


class SimArena:
    """One live RocketSim arena, its cars (blue first, then orange) and its boost pads.

    Attributes:
        large_cells: True if there is room for balls larger than `LARGEST_COMMON_BALL`.
        step_tick: Simulates one tick; default None: `arena.step(1)`. For arenas that are played in real time.
    """

    step_tick: Callable[[], None] | None = None

    def __init__(self, teams: Sequence[int], slots: Sequence[int] | None = None, large_cells: bool = False) -> None:
        """Create an empty arena, mostly with the GIL released; `set_state` adds the cars.

        Args:
            teams: Team of every car, 0 blue or 1 orange, blue first.
            slots: Column of each car in a `GameState`; default 0, 1, 2, ...
            large_cells: Make room for large balls.
        """
        config = RocketSim.ArenaConfig()
        if large_cells:
            config.max_aabb_len = ROOMY_CELLS
        self.large_cells = large_cells
        self.arena = RocketSim.Arena(RocketSim.GameMode.SOCCAR, config=config)
        self.set_mutators(default_mutators())
        self.pads = self.arena.get_boost_pads()
        self.arena.step(1)  # an arena's first tick takes 20 ms; better here than in the first episode
        enlarge_car_set(self.arena)
        self.teams = list(teams)
        self.slots = list(range(len(self.teams)) if slots is None else slots)
        self.slot_of_id: dict[int, int] = {}
        self.cars: list[Any] = []
        self.car_states: list[Callable[[], Any]] = []
        """Bound `get_state` of every car."""

    def set_mutators(self, mutators: RocketSim.MutatorConfig) -> None:
        """Set the physics settings; call `set_state` or `restore` next, because only new bodies get all of them."""
        self.ball_radius = mutators.ball_radius
        self.arena.set_mutator_config(mutators)

    def set_state(self, state: GameState, index: int) -> None:
        """Set the arena to row `index` of `state` (world view).

        Ball and cars are replaced: old ones would keep suspension and contact caches, so the next episode would depend
        on the last one. An episode is therefore a function of its initial state, to the bit. A ball of unusual
        size that would start on the ground or below it is placed on the ground.
        """
        arena = self.arena
        self._replace_bodies()

        world = state.world
        ball = RocketSim.BallState()
        ball.pos = to_vec(world.ball_pos[index])
        if self.ball_radius != game.BALL_RADIUS:
            on_ground = self.ball_radius + game.BALL_RESTING_HEIGHT - game.BALL_RADIUS
            if ball.pos.z < max(on_ground, game.BALL_RESTING_HEIGHT + 1):
                ball.pos = RocketSim.Vec(ball.pos.x, ball.pos.y, on_ground)
        ball.vel = to_vec(world.ball_vel[index])
        ball.ang_vel = to_vec(world.ball_ang_vel[index])
        arena.ball.set_state(ball)
        for slot, car in zip(self.slots, self.cars, strict=True):
            car.set_state(car_state(state, index, slot))
            car.set_controls(RocketSim.CarControls())
        for pad, timer in zip(self.pads, state.pad_timers[index].tolist(), strict=True):
            pad_state = RocketSim.BoostPadState()
            pad_state.cooldown = timer
            pad_state.is_active = timer <= 0
            pad.set_state(pad_state)

    def _replace_bodies(self) -> None:
        """Replace the ball and the cars with new ones, always in the same order.

        Bullet and RocketSim attach their caches to these bodies: contacts with the impulses of the last tick, pairs of
        bodies that were once close (also ball and walls), suspensions. Without the old bodies, the arena is like new.
        """
        for attempt in range(MAX_ATTEMPTS):
            for car in reversed(self.cars):  # last in, first out: every list and free list of the engine stays in order
                self.arena.remove_car(car)
            config = self.arena.get_mutator_config()
            radius = config.ball_radius
            for config.ball_radius in (radius + 1, radius):  # a new radius creates a new body
                self.arena.set_mutator_config(config)
            self.cars = []
            for number, team in enumerate(self.teams):
                if (attempt >> (number % 6)) & 1:  # other distances: the same ones would make the hashes collide again
                    move_heap()
                self.cars.append(self.arena.add_car(RocketSim.Team.ORANGE if team else RocketSim.Team.BLUE))
            if has_usual_car_order(self.arena, self.cars, self.pads):
                break
        else:
            warnings.warn(
                f"RocketSimPool: RocketSim iterated over the cars in an unusual order {MAX_ATTEMPTS} times in a row; "
                "the episode that begins now may not be bit-for-bit reproducible",
                RuntimeWarning,
                stacklevel=2,
            )
        self.car_states = [car.get_state for car in self.cars]
        self.slot_of_id = {car.id: slot for slot, car in zip(self.slots, self.cars, strict=True)}

    def snapshot(self) -> NDArray[np.float64]:
        """Return everything that `restore` needs as numbers: ball, every car with its controls, every pad."""
        arena, index_of_id = self.arena, {car.id: index for index, car in enumerate(self.cars)}
        ball = arena.ball.get_state()
        numbers = [*read_attributes(ball, BALL_SNAPSHOT), index_of_id.get(ball.last_hit_car_id, -1)]
        for car in self.cars:
            state = car.get_state()
            numbers += read_attributes(state, CAR_SNAPSHOT)
            numbers += read_attributes(car.get_controls(), CONTROL_NAMES)
            hit = state.ball_hit_info.tick_count_when_extra_impulse_applied
            numbers += (index_of_id.get(state.car_contact_id, -1), hit == arena.tick_count - 1)
        for pad in self.pads:
            pad_state = pad.get_state()
            numbers += read_attributes(pad_state, PAD_SNAPSHOT)
            numbers.append(index_of_id.get(pad_state.prev_locked_car_id, -1))
        return np.array(numbers, np.float64)

    def check(self, numbers: NDArray[np.float64]) -> None:
        """Check that `numbers` can be a snapshot of an arena like this one; some numbers would crash the engine.

        Raises:
            ValueError: The number of cars or the version differs, or numbers are impossible in a game.
        """
        low, high, whole = snapshot_limits(len(self.teams), len(self.pads))
        if numbers.dtype != np.float64 or numbers.shape != low.shape:
            raise ValueError(
                f"RocketSimPool: the snapshot of an arena with {len(self.teams)} cars has {len(low)} numbers, but this "
                f"one has {numbers.size}; load it with the team sizes and the version that saved it"
            )
        wrong = ~((numbers >= low) & (numbers <= high)) | ((whole > 0) & (numbers != np.rint(numbers)))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"RocketSimPool: number {at} of the snapshot of an arena cannot be {numbers[at]}")

    def restore(self, numbers: NDArray[np.float64]) -> None:
        """Restore a `snapshot`.

        All arenas restored from the same numbers continue bit-identically, whatever they did before. The arena from
        which the snapshot was taken does not, because the contact caches of the physics engine are not part of it:
        restore that one too. The arena's counters of goals, shots, saves, demos and pads begin at zero; `Arenas` adds
        those of before.

        Args:
            numbers: A snapshot that passed `check`.
        """
        self._replace_bodies()
        arena, ids = self.arena, [*(car.id for car in self.cars), 0]  # 0, no car, for index -1
        values = iter(numbers.tolist())
        ball = RocketSim.BallState()
        write_attributes(ball, BALL_SNAPSHOT, values)
        ball.last_hit_car_id = ids[int(next(values))]
        arena.ball.set_state(ball)
        for car in self.cars:
            state, controls = RocketSim.CarState(), RocketSim.CarControls()
            write_attributes(state, CAR_SNAPSHOT, values)
            write_attributes(controls, CONTROL_NAMES, values)
            state.car_contact_id = ids[int(next(values))]
            if next(values):  # the car hit the ball in the last tick: no second impulse in this one
                hit = state.ball_hit_info
                hit.tick_count_when_extra_impulse_applied = arena.tick_count - 1
                state.ball_hit_info = hit
            car.set_state(state)
            car.set_controls(controls)
        for pad in self.pads:
            pad_state = RocketSim.BoostPadState()
            write_attributes(pad_state, PAD_SNAPSHOT, values)
            pad_state.prev_locked_car_id = ids[int(next(values))]
            pad.set_state(pad_state)

    def step_and_respawn(self, ticks: int, rng: np.random.Generator) -> None:
        """Step like `arena.step`, but draw the respawn positions of demolished cars from `rng`.

        RocketSim draws the position from its own generator, which cannot be seeded. Therefore this method respawns the
        car just before the tick in which RocketSim would.
        """
        for _ in range(ticks):
            for car in self.cars:
                state = car.get_state()
                if state.is_demoed and state.demo_respawn_timer < 1.5 / game.TICKS_PER_SECOND:
                    car.respawn(int(rng.integers(2**31 - 1)))
            if self.step_tick is None:
                self.arena.step(1)
            else:
                self.step_tick()


# Attributes of the ball, a car and a pad in a snapshot.

_BASIS = ("rot_mat.forward", "rot_mat.right", "rot_mat.up")
BALL_SNAPSHOT = ("pos", "vel", "ang_vel", *_BASIS)
CAR_SNAPSHOT = (
    *("pos", "vel", "ang_vel", *_BASIS, "flip_rel_torque", "world_contact_normal"),
    *("is_on_ground", "has_jumped", "has_double_jumped", "has_flipped", "is_flipping", "is_jumping", "is_supersonic"),
    *("is_auto_flipping", "is_demoed", "has_world_contact"),
    *("jump_time", "flip_time", "air_time", "air_time_since_jump"),
    *("boost", "time_spent_boosting", "supersonic_time", "handbrake_val", "auto_flip_timer"),
    *("auto_flip_torque_scale", "car_contact_cooldown_timer", "demo_respawn_timer", "wheels_with_contact"),
    *(f"last_controls.{name}" for name in CONTROL_NAMES),
)
PAD_SNAPSHOT = ("is_active", "cooldown")


_ROTATION, _LARGEST = 1.001, 1e7
_LIMITS = {
    **dict.fromkeys(("forward", "right", "up", "world_contact_normal"), (-_ROTATION, _ROTATION)),
    **dict.fromkeys(("pos", "vel", "ang_vel", "flip_rel_torque", *CONTROL_NAMES[:5]), (-_LARGEST, _LARGEST)),
    "auto_flip_torque_scale": (-_LARGEST, _LARGEST),
    "boost": (0, 100),
}
"""Range of an attribute; all others are times and shares, see `snapshot_limits`."""


@functools.cache
def snapshot_limits(num_cars: int, num_pads: int) -> NDArray[np.float64]:
    """Return `[3, n]`: minimum and maximum of each number in a snapshot, and 1 for whole numbers."""
    index = (-1.0, num_cars - 1.0, 1.0)
    car = [*_limits(RocketSim.CarState(), CAR_SNAPSHOT), *_limits(RocketSim.CarControls(), CONTROL_NAMES)]
    pad = [*_limits(RocketSim.BoostPadState(), PAD_SNAPSHOT), index]
    columns = [*_limits(RocketSim.BallState(), BALL_SNAPSHOT), index]
    columns += num_cars * [*car, index, (0.0, 1.0, 1.0)] + num_pads * pad
    return np.array(columns).T


def _limits(struct: Any, names: Sequence[str]) -> Iterator[tuple[float, float, float]]:  # noqa: ANN401
    for name in names:
        value = operator.attrgetter(name)(struct)
        several = isinstance(value, (RocketSim.Vec, tuple))
        flag = isinstance(value[0] if isinstance(value, tuple) else value, bool)
        low, high = (0, 1) if flag else _LIMITS.get(name.rpartition(".")[2], (-1, _LARGEST))
        for _ in value if several else (value,):
            yield low, high, float(flag)


def read_attributes(struct: Any, names: Sequence[str]) -> list[float]:  # noqa: ANN401 - any of RocketSim's structs
    """Return the named attributes as a flat list of numbers."""
    numbers: list[float] = []
    for value in operator.attrgetter(*names)(struct):
        numbers += value if isinstance(value, (RocketSim.Vec, tuple)) else (value,)
    return numbers


def write_attributes(struct: Any, names: Sequence[str], numbers: Iterator[float]) -> None:  # noqa: ANN401 - any of RocketSim's structs
    """Set the named attributes from the numbers of `read_attributes`."""
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


def to_vec(xyz: NDArray[np.float32]) -> RocketSim.Vec:
    """Convert `[3]` to a RocketSim vector."""
    return RocketSim.Vec(*xyz.tolist())


def car_state(state: GameState, index: int, slot: int) -> RocketSim.CarState:
    """Return the RocketSim state of the car in row `index` and column `slot` of `state` (world view)."""
    world = state.world
    at = (index, slot)
    car = RocketSim.CarState()
    car.pos = to_vec(world.car_pos[at])
    car.vel = to_vec(world.car_vel[at])
    car.ang_vel = to_vec(world.car_ang_vel[at])
    car.rot_mat = RocketSim.RotMat(to_vec(world.car_forward[at]), to_vec(world.car_right[at]), to_vec(world.car_up[at]))
    car.boost = float(state.boost[at])
    wheels = tuple(state.details["wheels"][at].tolist())
    car.wheels_with_contact = wheels
    car.is_on_ground = sum(wheels) >= 3
    write_attributes(car, CAR_TIMERS, iter(state.car_timers[at].tolist()))
    write_attributes(
        car, CAR_FLAGS[1:], iter(state.car_flags[at].tolist()[1:])
    )  # the first flag is a button, which the controls set
    car.is_demoed = car.demo_respawn_timer > 0
    car.is_flipping = bool(state.is_flipping[at])
    details = state.details[at]
    car.flip_rel_torque = to_vec(details["flip_torque"])
    for name in ("jump_time", "air_time", "is_auto_flipping", "auto_flip_timer", "auto_flip_direction"):
        setattr(car, CAR_DETAIL_ATTRIBUTES[name], details[name].item())
    return car


# The order in which RocketSim iterates over the cars of an arena must be the same in every episode: of two cars that
# touch each other, the first one moves first; of two cars on a pad, the last one gets it. RocketSim stores cars in a
# hash set of pointers, so the order may depend on their heap addresses.

SET_SIZE = 65
"""Cars after which RocketSim's set of cars has at least 127 buckets (GNU's library) or 512 (Microsoft's)."""
MAX_ATTEMPTS = 64
LAST_OF_PAIR = 1 if sys.platform == "win32" else 0
"""Which of two cars comes last in that set: GNU's library puts new elements first, Microsoft's puts them last."""
BIG_PADS = (3, 4, 29, 30)
"""Pads in the corners of the field, further from each other than a car is long."""


def enlarge_car_set(arena: RocketSim.Arena) -> None:
    """Enlarge RocketSim's hash set of cars, so that hash collisions are rare; it never shrinks."""
    for car in reversed([arena.add_car(RocketSim.Team.BLUE) for _ in range(SET_SIZE)]):
        arena.remove_car(car)


def has_usual_car_order(arena: RocketSim.Arena, cars: Sequence[Any], pads: Sequence[Any]) -> bool:
    """Return True if RocketSim iterates over new `cars` in the usual order; the test takes one or two ticks.

    Pads reveal the order of two neighbours: they store the last car that was on them, even while they are empty.
    """
    for first in range(min(2, len(cars) - 1)):
        _send_everything_away(arena, cars)
        pairs = list(zip(cars[first::2], cars[first + 1 :: 2], (pads[number] for number in BIG_PADS), strict=False))
        for *pair, pad in pairs:
            _put_onto(pad, pair)
        arena.step(1)
        if any(pad.get_state().prev_locked_car_id != pair[LAST_OF_PAIR].id for *pair, pad in pairs):
            return False
    return True


def _send_everything_away(arena: RocketSim.Arena, cars: Sequence[Any]) -> None:
    ball, state = RocketSim.BallState(), RocketSim.CarState()
    ball.pos = RocketSim.Vec(0, 0, 1500)
    arena.ball.set_state(ball)
    for index, car in enumerate(cars):
        state.pos = RocketSim.Vec(500 * index, 0, 1000)
        car.set_state(state)


def _put_onto(pad: Any, pair: Sequence[Any]) -> None:  # noqa: ANN401 - RocketSim's
    state, empty = RocketSim.CarState(), RocketSim.BoostPadState()
    x, y, _ = pad.get_pos().as_tuple()
    for car, dy in zip(pair, (-75, 75), strict=True):
        state.pos = RocketSim.Vec(x, y + dy, 140)  # above the ground and apart from each other
        car.set_state(state)
    empty.is_active, empty.cooldown = False, 5.0
    pad.set_state(empty)


@functools.lru_cache(maxsize=1)
def _spare_arena() -> RocketSim.Arena:
    return RocketSim.Arena(RocketSim.GameMode.THE_VOID)


_heap_lock = threading.Lock()


def move_heap() -> None:
    """Occupy the memory that the next car would get, so that it gets another address."""
    with _heap_lock:
        arena = _spare_arena()
        for car in arena.get_cars() if len(arena.get_cars()) >= MAX_ATTEMPTS else ():
            arena.remove_car(car)
        arena.add_car(RocketSim.Team.BLUE)
