"""GameState: everything the components read, as struct of arrays over all arenas.

Shapes: `A` arenas, `C` cars per arena (blue cars first, then orange). Lengths are in uu (1 uu is about 1 cm), speeds in
uu/s, angular velocities in rad/s, times in seconds. All floats are float32. Columns have
their names in `envs.state.layout`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rlgym.rocket_league import common_values as game

from envs.state import layout
from envs.state.arrays import StateArrays
from envs.state.derived import Derived
from envs.state.layout import Bool, Float
from envs.state.quantities import Quantities
from envs.state.rotations import quaternions
from fabric_rl.base.settings import is_whole

HIGHEST_ON_WHEELS = 20.0
"""uu: a level car whose centre is no higher stands on its wheels, unless something else is said."""


def _timer(name: str) -> Derived[Float]:
    column = layout.CAR_TIMERS.index(name)
    return Derived(lambda state: state.car_timers[:, :, column])


def _flag(name: str) -> Derived[Bool]:
    column = layout.CAR_FLAGS.index(name)
    return Derived(lambda state: state.car_flags[:, :, column])


def _counter(column: int) -> Derived[Float]:
    return Derived(lambda state: state.car_rows[:, :, 0, column])


def _detail(name: str) -> Derived[Any]:
    def read(state: StateArrays) -> NDArray[Any]:
        state.read_stale_details()
        return state.details[name]

    return Derived(read)


class GameState(StateArrays):
    """The state of all arenas after a step. Components read it; state setters write it.

    A slot of `[A, C]` without a car (`present` is False, in pools of mixed team sizes) is zero everywhere.

    Attributes:
        num_blue: Blue slots per arena.
        num_orange: Orange slots per arena.
        arena_index: `[A]` int64, the pool's number of each arena here (a pool also builds states of a few arenas).
        present: `[A, C]` bool, whether there is a car in the slot.
        all_present: Whether every slot has a car.
        team: `[C]` int8, 0 blue, 1 orange.
        world: The field as it is; writable by state setters.
        mirrored: The field rotated by 180 degrees about z.
        pad_timers: `[A, 34]` seconds until each pad can be taken again, as `world.pad_timers`.
        boost: `[A, C]` boost left, 0..100.
        controls: `[A, C, 8]` float32, what each car was told in this step: throttle, steer, pitch, yaw, roll in -1..1,
            jump, boost, handbrake 0 or 1; all zero when an episode begins.
        episode_ticks: `[A]` int64, ticks simulated since the episode began.
        ticks_since_touch: `[A]` int64, ticks since any car touched the ball or the episode began.
    """

    @classmethod
    def from_numbers(
        cls,
        car_pos: ArrayLike,
        num_blue: int | None = None,
        *,
        car_rotation: ArrayLike = 0.0,
        car_vel: ArrayLike = 0.0,
        car_ang_vel: ArrayLike = 0.0,
        boost: ArrayLike = 100.0 / 3,
        on_ground: ArrayLike | None = None,
        touched: ArrayLike = False,
        demo_respawn_timer: ArrayLike = 0.0,
        ball_pos: ArrayLike = (0.0, 0.0, game.BALL_RESTING_HEIGHT),
        ball_vel: ArrayLike = 0.0,
        ball_ang_vel: ArrayLike = 0.0,
        pad_timers: ArrayLike = 0.0,
        episode_ticks: ArrayLike = 0,
    ) -> "GameState":
        """A whole state, seen from both sides, from numbers of one arena or of many: for tests, notebooks, replays.

        Everything is of the field as it is and may have an axis `[A]` in front; what has fewer axes holds for all. What
        is no argument is zero (jumps, flips, counters of the game, controls) and can be written afterwards:
        `state.has_jumped[0, 1] = True`, `state.goals[0, 0] = 1`. Call `complete` after writing into `state.world`.

        Args:
            car_pos: `[C, 3]` or `[A, C, 3]` uu, blue cars first; a car that stands on its wheels has z = 17.
            num_blue: How many of the cars are blue; default: half of them, rounded up.
            car_rotation: `[C, 3]` pitch (positive lifts the nose), yaw (0 faces +x, pi/2 faces +y), roll in radians.
            car_vel: `[C, 3]` uu/s.
            car_ang_vel: `[C, 3]` rad/s.
            boost: `[C]` 0..100.
            on_ground: `[C]` bool; default: where a car is level and at most 20 uu high.
            touched: `[C]` bool, the car hit the ball in the step that led here.
            demo_respawn_timer: `[C]` seconds until a demolished car returns.
            ball_pos: `[3]` uu.
            ball_vel: `[3]` uu/s.
            ball_ang_vel: `[3]` rad/s.
            pad_timers: `[34]` seconds until each pad is back.
            episode_ticks: Ticks since the episode began.

        Raises:
            ValueError: NaN, infinity, or numbers that do not fit the cars; the message names the argument.
        """
        try:
            shape = np.shape(car_pos)
        except ValueError:  # rows of different lengths
            shape = ()
        if len(shape) not in (2, 3) or shape[-1] != 3 or not all(shape):
            raise ValueError(f"GameState: car_pos must be [C, 3] or [A, C, 3], got {list(shape)}")
        cars = shape[-2]
        blue = (cars + 1) // 2 if num_blue is None else num_blue
        if not is_whole(blue) or not 0 <= blue <= cars:
            raise ValueError(f"GameState: num_blue must be between 0 and the {cars} cars of car_pos, got {blue}")
        state = cls(shape[0] if len(shape) == 3 else 1, blue, cars - blue)
        state.clear(np.arange(state.num_arenas))
        every, each, vectors = slice(None), (state.num_arenas, cars), (state.num_arenas, cars, 3)
        world, ball = state.world, (state.num_arenas, 3)
        angles = _fitted("car_rotation", car_rotation, vectors)
        state.set_car_rotation(every, angles[..., 0], angles[..., 1], angles[..., 2])
        world.car_pos[:], world.car_vel[:] = _fitted("car_pos", car_pos, vectors), _fitted("car_vel", car_vel, vectors)
        world.car_ang_vel[:] = _fitted("car_ang_vel", car_ang_vel, vectors)
        world.ball_pos[:], world.ball_vel[:] = _fitted("ball_pos", ball_pos, ball), _fitted("ball_vel", ball_vel, ball)
        world.ball_ang_vel[:] = _fitted("ball_ang_vel", ball_ang_vel, ball)
        state.ball_rows[:, 0, layout.FORWARD.start : layout.UP.stop] = np.eye(3).reshape(9)  # nobody sees it
        state.boost[:] = _fitted("boost", boost, each)
        state.demo_respawn_timer[:] = _fitted("demo_respawn_timer", demo_respawn_timer, each)
        state.pad_timers[:] = _fitted("pad_timers", pad_timers, (state.num_arenas, layout.NUM_PADS))
        level = stands(world.car_pos, angles)
        state.set_on_ground(every, level if on_ground is None else _fitted("on_ground", on_ground, each) > 0)
        state.car_rows[..., layout.TOUCHED] = _fitted("touched", touched, each)[..., None]
        hit = state.touched.any(axis=1)
        state.last_touch_car[hit] = state.touched[hit].argmax(axis=1)
        state.episode_ticks[:] = _fitted("episode_ticks", episode_ticks, each[:1])
        state.ticks_since_touch[:] = np.where(hit, 0, state.episode_ticks)
        supersonic = np.linalg.norm(world.car_vel, axis=-1) >= game.SUPERSONIC_THRESHOLD
        state.supersonic_time[supersonic] = 1 / game.TICKS_PER_SECOND
        state.complete()
        return state

    def complete(self) -> None:
        """Fills in what follows from what somebody has written: the mirrored view, quaternions, flip resets.

        Slots without a car become zero. The states of a pool are read from its arenas instead.
        """
        self.details["got_flip_reset"] = ~self.on_ground & ~self.has_jumped
        self.car_rows[:, :, 0, layout.IS_DEMOED] = self.is_demoed
        for rows, first in ((self.ball_rows, 0), (self.car_rows, layout.CAR_PHYSICS)):
            rows[..., 1, :] = rows[..., 0, :]
            for columns in layout.VECTORS:
                rows[..., 1, first + columns.start : first + columns.stop] *= layout.MIRROR
            basis = rows[..., first + layout.FORWARD.start : first + layout.UP.stop]
            rows[..., first + layout.QUATERNION.start : first + layout.QUATERNION.stop] = quaternions(
                basis.reshape(*basis.shape[:-1], 3, 3)
            )
        self.car_rows[~self.present] = 0
        self.invalidate()

    def __repr__(self) -> str:
        text = f"GameState({self.num_arenas} arenas, {self.num_blue} blue and {self.num_orange} orange slots"
        if self.num_arenas:
            seconds = self.episode_ticks[0] / game.TICKS_PER_SECOND
            text += f"; arena {self.arena_index[0]} after {seconds:.2f} s: ball at {_place(self.world.ball_pos[0])}"
            for car in np.flatnonzero(self.present[0]).tolist():
                place, boost = _place(self.world.car_pos[0, car]), self.boost[0, car]
                text += f", {'orange' if self.team[car] else 'blue'} car {car} at {place} with boost {boost:.0f}"
        return f"{text})"

    @property
    def quantities(self) -> Quantities:
        """Distances, speeds, touches..., each computed once after a step, however many rewards read it."""
        if self._quantities is None:
            self._quantities = Quantities(self)
        return self._quantities

    def note_step(self, controls: Float, ticks: int) -> None:
        """Notes that a step of so many ticks has passed, in which the cars were told `controls [A * C, 8]`."""
        self.controls.reshape(controls.shape)[:] = controls
        if not self.all_present:
            self.controls[~self.present] = 0
        self.episode_ticks += ticks
        self.ticks_since_touch += ticks
        self.ticks_since_touch[self.touched.any(axis=1)] = 0

    touched: Derived[Bool] = Derived(lambda state: state.car_rows[:, :, 0, layout.TOUCHED] > 0)
    """`[A, C]` whether the car hit the ball since the previous step."""
    on_ground: Derived[Bool] = Derived(lambda state: state.car_rows[:, :, 0, layout.ON_GROUND] > 0)
    """`[A, C]` at least three wheels in contact (walls and ceiling count)."""
    is_holding_jump = _flag("last_controls.jump")
    """`[A, C]` jump was pressed on the last tick."""
    handbrake = _timer("handbrake_val")
    """`[A, C]` 0..1, rises and falls while the button is held and released."""
    has_jumped = _flag("has_jumped")
    """`[A, C]` after a jump until the car lands."""
    is_jumping = _flag("is_jumping")
    """`[A, C]` while the jump button still lifts the car."""
    has_flipped = _flag("has_flipped")
    """`[A, C]` after a flip until the car lands."""
    flip_time = _timer("flip_time")
    """`[A, C]` seconds since the flip began."""

    @property
    def is_flipping(self) -> Bool:
        """`[A, C]` flipped less than 0.65 s ago (RLGym's definition, not CarState.is_flipping)."""
        flipping: Bool = self.has_flipped & (self.flip_time < game.FLIP_TORQUE_TIME)
        return flipping

    has_double_jumped = _flag("has_double_jumped")
    """`[A, C]` after a double jump until the car lands."""
    air_time_since_jump = _timer("air_time_since_jump")
    """`[A, C]` seconds since the jump ended, 0 on the ground."""

    @property
    def has_flip(self) -> Bool:
        """`[A, C]` neither flipped nor double jumped, and at most 1.25 s since the jump."""
        in_time: Bool = self.air_time_since_jump < game.DOUBLEJUMP_MAX_DELAY
        return ~(self.has_double_jumped | self.has_flipped) & in_time

    @property
    def can_flip(self) -> Bool:
        """`[A, C]` in the air, jump released, flip unspent."""
        return ~self.on_ground & ~self.is_holding_jump & self.has_flip

    demo_respawn_timer = _timer("demo_respawn_timer")
    """`[A, C]` seconds until a demolished car returns, 0 when alive."""
    boost_active_time = _timer("time_spent_boosting")
    """`[A, C]` seconds since boosting began, 0 when not boosting."""
    supersonic_time = _timer("supersonic_time")
    """`[A, C]` seconds since the car became supersonic, 0 when it is not."""

    is_boosting: Derived[Bool] = Derived(lambda state: state.boost_active_time > 0)
    """`[A, C]` boost is burning."""
    is_supersonic: Derived[Bool] = Derived(lambda state: state.supersonic_time > 0)
    """`[A, C]` faster than 2200 uu/s, or a moment ago and still faster than 2100."""
    is_demoed: Derived[Bool] = Derived(lambda state: state.demo_respawn_timer > 0)
    """`[A, C]` demolished and not back yet; position and rotation stay what they were."""

    # Counters of the game, float32 `[A, C]`, since the episode began.

    goals = _counter(layout.GOALS)
    """`[A, C]` goals the car has scored in this episode."""
    shots = _counter(layout.SHOTS)
    """`[A, C]` shots on goal in this episode, as the game counts them."""
    saves = _counter(layout.SAVES)
    """`[A, C]` saves in this episode, as the game counts them."""
    demos = _counter(layout.DEMOS)
    """`[A, C]` opponents demolished in this episode."""
    boost_pickups = _counter(layout.BOOST_PICKUPS)
    """`[A, C]` boost pads taken in this episode."""

    # The second tier: read from the live arenas when first asked for after a step (about 2 us per car).

    wheels_with_contact: Derived[Bool] = _detail("wheels")
    """`[A, C, 4]` whether each wheel touches something: front left, front right, back left, back right."""
    jump_time: Derived[Float] = _detail("jump_time")
    """`[A, C]` seconds since the jump began, while it lifts the car."""
    air_time: Derived[Float] = _detail("air_time")
    """`[A, C]` seconds since the car left the ground, 0 on it."""
    flip_torque: Derived[Float] = _detail("flip_torque")
    """`[A, C, 3]` direction of the last flip in the car's frame: x rolls, y pitches; zero before the first."""
    is_auto_flipping: Derived[Bool] = _detail("is_auto_flipping")
    """`[A, C]` the car lies on its roof and turns itself over."""
    auto_flip_timer: Derived[Float] = _detail("auto_flip_timer")
    """`[A, C]` seconds that the auto-flip still turns the car."""
    auto_flip_direction: Derived[Float] = _detail("auto_flip_direction")
    """`[A, C]` the way the auto-flip rolls the car: 1, -1, or 0 when there was none."""
    got_flip_reset: Derived[Bool] = _detail("got_flip_reset")
    """`[A, C]` in the air with a flip won back by four wheels on the ball (or another surface), not by a jump."""
    bump_cooldown: Derived[Float] = _detail("bump_cooldown")
    """`[A, C]` seconds until the same car can be bumped again, 0 without a recent bump."""
    bump_victim: Derived[NDArray[np.int32]] = _detail("bump_victim")
    """`[A, C]` slot of the car that was bumped while `bump_cooldown` lasts, else -1."""
    has_world_contact: Derived[Bool] = _detail("has_world_contact")
    """`[A, C]` the car's body touches the field."""
    world_contact_normal: Derived[Float] = _detail("world_contact_normal")
    """`[A, C, 3]` unit normal of the surface that the body touches, world view; multiply by MIRROR for orange's."""

    @property
    def last_touch(self) -> NDArray[np.int64]:
        """`[A]` slot of the car that touched the ball last in this episode, -1 for none."""
        self.read_stale_details()
        return self.last_touch_car

    goal_scored: Derived[Bool] = Derived(lambda state: np.abs(state.world.ball_pos[:, 1]) > game.GOAL_THRESHOLD)
    """`[A]` the ball is behind a goal line (|y| > 5215.5, rlgym's threshold)."""

    @property
    def scoring_team(self) -> NDArray[np.int8]:
        """`[A]` 0 where blue has scored, 1 where orange has, -1 elsewhere."""
        team = np.where(self.world.ball_pos[:, 1] > 0, layout.BLUE, layout.ORANGE)
        return np.where(self.goal_scored, team, -1).astype(np.int8)


def stands(car_pos: NDArray[Any], car_rotation: NDArray[Any]) -> Bool:
    """`[...]` whether cars at `car_pos [..., 3]` with pitch, yaw, roll `[..., 3]` are level and low, so on wheels."""
    level: Bool = ~car_rotation[..., ::2].any(axis=-1) & (car_pos[..., 2] <= HIGHEST_ON_WHEELS)
    return level


def _fitted(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Float:
    """`values` as finite float32 of this shape, the same for all where an axis is missing."""
    try:
        numbers = np.broadcast_to(np.asarray(values, np.float32), shape)
    except (TypeError, ValueError):
        given = list(np.shape(values)) if isinstance(values, np.ndarray) else " ".join(repr(values).split())
        raise ValueError(f"GameState: {name} must be numbers that fit {list(shape)}, got {given}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"GameState: {name} has NaN or infinity in it")
    return numbers


def _place(xyz: Float) -> str:
    return f"({', '.join(f'{x:.0f}' for x in xyz.tolist())})"
