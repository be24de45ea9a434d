"""Mechanics lanes in real physics: the situations unfold, a scripted car succeeds, an idle one does not."""

import numpy as np
import pytest

from envs import (
    AirDribbleLane,
    DribbleLane,
    FlipResetLane,
    HalfFlipLane,
    JumpShotLane,
    KickoffLane,
    Lane,
    MechanicsLanes,
    PhasedStates,
    WallToAerialLane,
)
from envs.actions import LookupTable
from envs.dones import GoalCondition, TimeoutCondition
from envs.mechanics.base import Seen
from envs.mechanics.lanes import NO_LANE, default_lanes
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, MixedStates, RandomState, StateSetter, check_start
from envs.state.game_state import GameState
from tests.envs.fakes import Scene, configured, path_of
from tests.envs.mechanics import lane_drivers as drivers
from tests.envs.mechanics.lane_drivers import drive, pool_of

IDLE = int(np.flatnonzero(~LookupTable().table.any(axis=1))[0])
LANES = {lane.name: type(lane) for lane in default_lanes()}
SCRIPTS = {
    "wall_to_aerial": drivers.jump_off_the_wall,
    "air_dribble": drivers.carry_the_ball,
    "flip_reset": drivers.wheels_to_the_ball,
    "dribble": drivers.balance_ball,
    "half_flip": drivers.half_flip,
    "kickoff": drivers.rush,
}


def ticks_of(lane):
    return round(lane.time_limit_seconds * 120) - 1  # one tick before the limit ends the episode


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_scripted_car_succeeds(name):
    lane = LANES[name]()
    assert drive(pool_of(lane, 8), SCRIPTS[name], min(ticks_of(lane), 520)).mean() >= 0.8


@pytest.mark.slow
def test_a_car_that_jumps_in_time_shoots_on_target():
    lane = JumpShotLane()
    shots = [drive(pool_of(lane, 8), drivers.jump_at(ticks), 200) for ticks in (30, 40, 50)]
    assert np.any(shots, axis=0).mean() >= 0.5
    assert not drive(pool_of(lane, 8), drivers.jump_at(1000), 200).any()  # driving below it is no jump shot


@pytest.mark.slow
@pytest.mark.parametrize("name", LANES)
def test_an_idle_car_fails(name):
    lane = LANES[name]()
    assert not drive(pool_of(lane, 10, seed=5), drivers.idle, ticks_of(lane)).any()


# ---------------------------------------------------------------- the situations


@pytest.mark.slow
def test_driving_on_the_wall_and_below_the_ball():
    pool, contacts = pool_of(WallToAerialLane()), []
    drive(pool, drivers.idle, 30, lambda car, tick: contacts.append((car.on_ground, car.pos)))
    grounded, places = (np.array(x) for x in zip(*contacts, strict=True))
    assert grounded.all()
    np.testing.assert_allclose(np.abs(places[..., 0]), 4096 - 17, atol=3)
    assert (places[-1, :, 2] > places[0, :, 2] + 200).all()  # it drives up
    assert set(np.sign(places[0, :, 0])) == {-1, 1}  # on either side
    offsets = []
    drive(pool_of(DribbleLane()), drivers.hold_straight, 60, lambda car, tick: offsets.append(car.to_ball))
    heights, across = np.array(offsets)[..., 2], np.linalg.norm(np.array(offsets)[..., :2], axis=-1)
    assert (heights > 120).all() and (heights < 145).all()
    assert (across < 110).all()


@pytest.mark.parametrize("lane", [AirDribbleLane(), FlipResetLane()])
def test_ball_and_car_fly_freely_and_meet(lane):
    """z(t) = z + v t - 325 t^2 while nothing touches; the car has caught up with the ball within 0.9 s."""
    pool = pool_of(lane)
    start, speed = pool.state.world.ball_pos[:, 2].copy(), pool.state.world.ball_vel[:, 2].copy()
    seen = []
    drive(pool, drivers.idle, 110, lambda car, tick: seen.append((pool.state.world.ball_pos[:, 2].copy(), car.to_ball)))
    heights, to_ball = (np.array(x) for x in zip(*seen, strict=True))
    free = 30 if isinstance(lane, FlipResetLane) else 4  # the last tick before a car can be there
    t = (free + 1) / 120
    np.testing.assert_allclose(heights[free], start + speed * t - 325 * t**2, atol=2)
    assert (np.linalg.norm(to_ball, axis=-1).min(axis=0) < 180).all()


def test_the_flip_is_spent_until_the_ball_gives_it_back():
    pool = pool_of(FlipResetLane())
    at = np.arange(16), pool.state_setter.episodes.actor
    assert not pool.state.has_flip[at].any() and not pool.state.on_ground[at].any()
    assert not pool.state.is_flipping[at].any()
    drive(pool, drivers.wheels_to_the_ball, 120)
    assert pool.state.got_flip_reset[at].mean() > 0.5  # what RocketSim says


def test_the_ball_comes_down_in_front_of_the_car():
    """Where the car gets after 0.7 to 1 s: too high for a car on the ground, low enough for a jump."""
    gaps = []
    pool = pool_of(JumpShotLane())
    drive(pool, drivers.idle, 118, lambda car, tick: gaps.append(np.column_stack((car.to_ball, car.pos))))
    gaps = np.array(gaps)
    nearest = np.linalg.norm(gaps[..., :2], axis=-1).argmin(axis=0)
    heights = gaps[nearest, np.arange(16), 2] + gaps[nearest, np.arange(16), 5]
    assert (nearest > 70).all() and (heights > 140).all() and (heights < 330).all()


@pytest.mark.slow
def test_half_flips():
    car = drivers.Car(pool_of(HalfFlipLane()))
    along = drivers.dot(car.vel, car.forward)
    assert (along <= -500).all() and (along >= -900).all()
    assert (drivers.dot(drivers.unit(car.to_ball), car.forward) < -0.5).mean() > 0.9  # unless the wall is near
    assert not drive(pool_of(HalfFlipLane()), drivers.rush, ticks_of(HalfFlipLane())).any()


def kickoff_states(offset_share, count=200):
    state, lane, rng = GameState(count, 2, 2), KickoffLane(offset_share), np.random.default_rng(0)
    state.clear(np.arange(count))
    for arena in range(count):
        lane.place(state, arena, int(rng.integers(4)), rng)
    return state


def test_kickoffs_are_fair_on_their_spots_and_off_them():
    places = kickoff_states(0.0).world.car_pos
    assert {tuple(place) for place in places[:, :2].reshape(-1, 3)} == {tuple(spawn) for spawn in Kickoff.BLUE_POS}
    np.testing.assert_array_equal(places[:, 2:], places[:, :2] * (-1, -1, 1))
    world = kickoff_states(1.0).world
    nearest = np.linalg.norm(world.car_pos[:, :2, None] - Kickoff.BLUE_POS, axis=-1).min(axis=-1)
    assert 150 < nearest.max() <= 250 * 2**0.5 and nearest.mean() > 100
    for vectors in (world.car_pos, world.car_vel, world.car_forward):
        np.testing.assert_allclose(vectors[:, 2:], vectors[:, :2] * (-1, -1, 1), atol=1e-4)
    assert (np.linalg.norm(world.car_vel, axis=-1) <= 500.1).all()


@pytest.mark.parametrize("name", LANES)
@pytest.mark.parametrize("teams", [(1, 1), (1, 0), (3, 2)])
def test_every_start_is_possible_and_the_others_keep_away(name, teams):
    lane, state, rng = LANES[name](), GameState(60, *teams), np.random.default_rng(3)
    state.clear(np.arange(60))
    for arena in range(60):
        lane.place(state, arena, arena % sum(teams), rng)
        check_start(state, arena, name)
        if name == "kickoff":
            continue
        others = [slot for slot in range(sum(teams)) if slot != arena % sum(teams)]
        places = state.world.car_pos[arena, others]
        for centre in (state.world.ball_pos[arena], state.world.car_pos[arena, arena % sum(teams)]):
            assert (np.linalg.norm((places - centre)[:, :2], axis=-1) > 1200).all()
        assert (places[:, 1] * np.where(state.team[others] == 0, -1, 1) > 0).all()  # in their own halves
        assert state.on_ground[arena, others].all() and (state.world.car_pos[arena, others, 2] == 17).all()


def test_nothing_begins_on_a_ramp_or_in_the_floor():
    flip, shot, rng = HalfFlipLane(), JumpShotLane(), np.random.default_rng(0)
    sums = [np.abs(flip.set_up(rng).ball_pos[:2]).sum() for _ in range(3000)]
    assert 7499 < max(sums) < 7501
    assert min(shot.set_up(rng).ball_pos[2] for _ in range(1000)) > 93.14
    assert max(np.abs(flip._free_place([], [], 1, rng)[:2]).sum() for _ in range(1000)) <= 7500


@pytest.mark.parametrize("name", LANES)
def test_orange_begins_as_blue_rotated(name):
    lane, state = LANES[name](), GameState(2, 1, 1)
    state.clear(np.arange(2))
    for arena in (0, 1):
        lane.place(state, arena, arena, np.random.default_rng(7))
    world = state.world
    for vectors in (world.car_pos, world.car_vel, world.car_forward, world.car_right, world.car_up):
        np.testing.assert_allclose(vectors[1, ::-1], vectors[0] * (-1, -1, 1), atol=1e-3)
    np.testing.assert_allclose(world.ball_pos[1], world.ball_pos[0] * (-1, -1, 1), atol=1e-3)
    np.testing.assert_array_equal(state.boost[1, ::-1], state.boost[0])


@pytest.mark.parametrize("name", LANES)
def test_a_generator_always_draws_the_same(name):
    first, again, other = (pool_of(LANES[name](), 2, seed=seed).state.state_dict() for seed in (4, 4, 5))
    np.testing.assert_array_equal(first["car_rows"], again["car_rows"])
    np.testing.assert_array_equal(first["ball_rows"], again["ball_rows"])
    assert not np.array_equal(first["car_rows"], other["car_rows"])


def test_mirrored_set_ups_are_left_right_images():
    setup = WallToAerialLane().set_up(np.random.default_rng(0))
    mirrored = setup.mirrored()
    assert (setup.car_pos[0], setup.car_up[0], mirrored.car_up[0]) == (4079, -1, 1)
    for name in ("car_pos", "car_vel", "car_forward", "ball_pos", "ball_vel"):
        np.testing.assert_array_equal(getattr(mirrored, name), getattr(setup, name) * np.array([-1, 1, 1]))
    assert mirrored.boost == setup.boost


# ---------------------------------------------------------------- which arena is in which lane


def mixed_pool(weight, num_arenas, lanes=None, weights=None, **settings):
    setter = MechanicsLanes(RandomState(), lanes, weights, mechanics_weight=weight)
    pool = RocketSimPool(num_arenas, 1, state_setter=setter, **settings)
    pool.reset(seed=0)
    return pool


def test_the_share_of_lanes_and_their_weights():
    setter = MechanicsLanes(Kickoff(), [DribbleLane(), HalfFlipLane()], [3, 1], mechanics_weight=0.4)
    state, every = GameState(600, 1, 1), np.ones(600, bool)
    setter.apply(state, every, np.random.default_rng(0))
    setter.episodes.reset(every, state)
    lane = setter.episodes.lane
    assert np.mean(lane != NO_LANE) == pytest.approx(0.4, abs=0.06)  # 3 deviations of 600 draws
    assert np.mean(lane[lane != NO_LANE] == 0) == pytest.approx(0.75, abs=0.09)
    plain = RocketSimPool(4, 1, state_setter=RandomState())
    plain.reset(seed=0)
    off = mixed_pool(0.0, 4)
    np.testing.assert_array_equal(off.state.ball_rows, plain.state.ball_rows)
    assert (off.state_setter.episodes.lane == NO_LANE).all()


@pytest.mark.slow
def test_metrics_count_ended_episodes_and_time_limits_end_lanes_only():
    lane = KickoffLane(0.0, time_limit_seconds=5.0)
    pool = pool_of(lane, 4)
    won = drive(pool, drivers.rush, 599)
    assert pool.drain_metrics()["lane/kickoff_success"] == (0, 0)  # not ended yet
    drive(pool, drivers.rush, 1)
    metrics = pool.drain_metrics()
    assert won.any() and metrics["lane/kickoff_success"] == (won.sum(), 4)
    assert metrics["lane/kickoff_episodes"] == (4, 4)
    assert pool.drain_metrics()["lane/kickoff_success"] == (0, 0)
    pool = mixed_pool(0.5, 20, [HalfFlipLane(0.5)], done=GoalCondition())
    lane = pool.state_setter.episodes.lane.copy()
    for step in range(8):  # 0.5 s are 60 ticks: step 8 ends it
        truncated = pool.step(np.full(40, IDLE))[3].reshape(20, 2).all(axis=1)
        assert not truncated.any() or step == 7
        if step < 7:
            np.testing.assert_array_equal(pool.state_setter.episodes.lane, lane)
    np.testing.assert_array_equal(truncated, lane == 0)
    assert pool.drain_metrics()["lane/half_flip_episodes"] == (np.sum(lane == 0), 20)


@pytest.mark.slow
def test_episodes_end_their_notes_and_count_once():
    pool = pool_of(DribbleLane(), 4)
    drive(pool, drivers.balance_ball, 300)
    pool.reset()
    assert not pool.state_setter.episodes.succeeded.any()
    assert pool.drain_metrics()["lane/dribble_episodes"] == (0, 4)
    # An air dribble is over once the ball has come down; the next one is not.
    pool = pool_of(AirDribbleLane(), 8)
    assert not drive(pool, drivers.idle, 300).any()
    assert (pool.state.world.ball_pos[:, 2] < 300).any()
    pool.reset()
    assert drive(pool, drivers.carry_the_ball, ticks_of(AirDribbleLane())).mean() >= 0.8


@pytest.mark.slow
def test_snapshots_remember_success_and_refuse_other_lanes():
    pool, other = (pool_of(DribbleLane(), 4, done=GoalCondition()) for _ in range(2))
    drive(pool, drivers.balance_ball, 400)
    snapshot = pool.state_dict()
    other.load_state_dict(snapshot)
    assert other.state_setter.episodes.succeeded.all()
    for each in (pool, other):
        drive(each, drivers.balance_ball, 250)
    assert pool.drain_metrics() == other.drain_metrics()
    np.testing.assert_array_equal(pool.state.car_rows[..., 1:], other.state.car_rows[..., 1:])
    pool, other = pool_of(DribbleLane(), 4), pool_of(HalfFlipLane(), 4)
    pool.state_setter.episodes.load_state_dict(pool.state_setter.episodes.state_dict())
    with pytest.raises(ValueError, match=r"logger 0 LaneTracker does not fit .*\['notes'\] is float64 of shape"):
        other.load_state_dict(pool.state_dict())


@pytest.mark.slow
def test_lanes_inside_a_mixture_still_know_their_arenas():
    lanes = MechanicsLanes(Kickoff(), [HalfFlipLane()], mechanics_weight=1.0)
    pool = RocketSimPool(40, 1, state_setter=MixedStates([lanes, RandomState()], [1, 1]), done=TimeoutCondition(0.2))
    pool.reset(seed=0)
    first = lanes.episodes.lane.copy()
    assert 8 < (first == 0).sum() < 32
    for _ in range(3):
        pool.step(np.full(80, IDLE))
    assert pool.drain_metrics()["lane/half_flip_episodes"] == ((first == 0).sum(), 40)
    assert not np.array_equal(lanes.episodes.lane, first)


@pytest.mark.parametrize(("own", "expected"), [(None, [0.0, 0.0, 0.0, 0.5]), ({"b": 0.2}, [0.0, 0.2, 0.0, 0.5])])
def test_lanes_are_off_before_phase_4_unless_its_own_weights_say_otherwise(own, expected):
    setter = MechanicsLanes(Kickoff(), mechanics_weight=0.5, phase_weights=own)
    pool = RocketSimPool(1, state_setter=setter)
    assert setter.mechanics_weight == 0.5  # without phases
    pool.check_phases("abcd")
    seen = []
    for number, name in enumerate("abcd", 1):
        pool.set_phase(name, number)
        seen.append(setter.mechanics_weight)
    assert seen == expected


def test_weights_of_a_phase_that_training_does_not_have_are_refused():
    pool = RocketSimPool(1, state_setter=MechanicsLanes(Kickoff(), phase_weights={"late": 0.2, "a": 0.1}))
    with pytest.raises(ValueError, match="MechanicsLanes: phase_weights has late, but the training has a, b"):
        pool.check_phases(["a", "b"])


def test_a_lane_of_the_users_own_and_lanes_from_class_paths():
    class Mine(Lane):
        name = "mine"
        set_up, judge = DribbleLane.set_up, DribbleLane.judge

        def __init__(self, time_limit_seconds):
            super().__init__(time_limit_seconds)

    assert Mine(2.5).time_limit_seconds == 2.5
    with pytest.raises(ValueError, match="Mine: time_limit_seconds must be a number above 0, got 0"):
        Mine(0)
    lanes = [path_of(kind.__name__) for kind in LANES.values()]
    settings = {"lanes": lanes, "weights": [1] * 7, "mechanics_weight": 0.1}
    setter = configured(StateSetter, path_of("MechanicsLanes", inner=path_of("Kickoff"), **settings))
    assert [lane.name for lane in setter.lanes] == list(LANES) and setter.mechanics_weight == 0.1


# ---------------------------------------------------------------- what each lane takes for a success, in scenes by hand


FAR = (2000, 2000, 17)


class Judged:
    """A lane that looks at a scene; all is given as the lane's car sees it, which is blue or orange."""

    def __init__(self, lane, orange=False):
        self.lane, self.orange, self.scene = lane, orange, Scene()
        self.notes = np.zeros((1, lane.num_notes))

    def begin(self, **changes):
        self._put(0, changes)
        self.lane.begin(self._seen(), self.notes)
        return self

    def __call__(self, ticks=0, **changes):
        """Whether it is a success, `ticks` later."""
        self._put(ticks, changes)
        return bool(self.lane.judge(self._seen(), self.notes)[0])

    def _seen(self):
        return Seen(self.scene.state, np.array([0]), np.array([int(self.orange)]))

    def _put(self, ticks, changes):
        turned = np.array([-1, -1, 1]) if self.orange else np.ones(3)
        told = {"touched": changes.pop("touched", False), "by_other": changes.pop("by_other", False)}
        both = [told["by_other"], told["touched"]] if self.orange else [told["touched"], told["by_other"]]
        for name, value in changes.items():
            if name in ("ball", "ball_vel"):
                changes[name] = np.multiply(value, turned)
            elif name in ("pos", "vel", "up", "forward"):
                own, other = np.multiply(value, turned), FAR if name == "pos" else (0, 0, 1)
                changes[name] = [other, own] if self.orange else [own, other]
            else:
                changes[name] = [False, value] if self.orange else [value, False]
        self.scene.put(ticks, touched=both, **changes)


@pytest.fixture(params=[False, True], ids=["blue", "orange"])
def judged(request):
    return lambda lane: Judged(lane, request.param)


def test_wall_to_aerial(judged):
    look = judged(WallToAerialLane(min_height=500))
    wall, air, floor = (
        {"pos": pos, "on_ground": on} for pos, on in (((4079, 0, 900), 1), ((3000, 0, 900), 0), (FAR, 1))
    )
    high, low = {"ball": (2900, 0, 501), "touched": True}, {"ball": (2900, 0, 500), "touched": True}
    assert not look(**air, **high)  # it has not been on a wall
    assert not look(**wall, **high)
    assert not look(**wall) and not look(**wall, **high) and not look(**wall)
    assert not look(**air)
    assert not look(**air, **low)
    assert look(**air, **high)
    assert look(**(air | {"on_ground": 1}), **high)  # wheels on the ball are not a landing
    assert not look(**floor) and not look(**air)
    assert not look(**air, **high)  # off the floor
    assert not look(**wall) and not look(**air) and look(**air, **high)


def test_air_dribble(judged):
    def carried(look):
        """Touches after 0.5 s, 0.6 s (too soon to count), 1.5 s."""
        for ticks, touched in ((60, True), (12, True), (108, True)):
            assert not look(ticks, ball=(0, 0, 600), pos=(0, 0, 450), on_ground=0, touched=touched)
        return look

    look = carried(judged(AirDribbleLane()))
    assert not look(59)  # 1.99 s
    assert look(1)
    assert not look(0, ball=(0, 0, 350)) and look(0, ball=(0, 0, 351))
    assert look(18)  # 0.65 s after the last touch
    assert not look(12)
    look = judged(AirDribbleLane())
    for ticks in (200, 12):
        assert not look(ticks, ball=(0, 0, 600), pos=(0, 0, 450), on_ground=0, touched=True)  # that is one
    assert not look(30)
    assert look(0, touched=True)
    for down in ({"on_ground": 1}, {"ball": (0, 0, 94)}):
        look = carried(judged(AirDribbleLane()))
        assert not look(30, **down)
        assert not look(30, ball=(0, 0, 600), on_ground=0)


def test_flip_reset(judged):
    spent = {"has_flipped": True, "flip_time": 0.9, "on_ground": 0}
    above = {"pos": (0, 0, 1050), "ball": (0, 0, 900), "up": (0, 0, 1)}
    for changes, expected in (
        ({}, True),
        ({"up": (1, 0, 0)}, False),
        ({"up": (0, 0, -1)}, False),
        ({"up": (0.6, 0, 0.8)}, True),
        ({"up": (0.8, 0, 0.6)}, False),
        ({"pos": (0, 0, 1099)}, True),
        ({"pos": (0, 0, 1100)}, False),
        ({"pos": (0, 0, 300), "ball": (0, 0, 150)}, False),
        ({"pos": (0, 0, 301), "ball": (0, 0, 150)}, True),
    ):
        look = judged(FlipResetLane()).begin(**spent, **above)
        assert not look()
        assert look(has_flipped=False, **changes) is expected, changes
        assert not look(has_flipped=False, **above)  # it had it before


def test_jump_shot(judged):
    air = {"has_jumped": True, "on_ground": 0, "pos": (0, 3800, 250)}
    shot, away = ({"ball": (0, 4000, 300), "ball_vel": (0, speed, 0)} for speed in (2500, -2500))
    scored = {"ball": (0, 5300, 300), "ball_vel": (0, 2500, 0)}
    look = judged(JumpShotLane())
    assert not look(**air, **shot)  # nobody has touched it
    assert look(**air, **shot, touched=True)
    assert not look(**air, **away, touched=True)
    assert look(**air, **scored)  # by that touch
    assert not look(**air, **shot, by_other=True)
    assert not look(**air, **scored)
    assert not look(**(air | {"on_ground": 1}), **shot, touched=True) and not look(**scored)
    assert not look(**(air | {"has_jumped": False}), **shot, touched=True)
    assert not look(**air, **away, touched=True)
    assert not look(ball=(0, -5300, 300))  # an own goal


def test_dribble(judged):
    def ball(across, up):
        return {"ball": (across, 0, 17 + up), "pos": (0, 0, 17), "on_ground": 1}

    look = judged(DribbleLane(hold_seconds=2.0))
    assert not look(120, **ball(0, 130)) and not look(239)
    assert look(1) and look(1)
    assert not look(1, **ball(110, 130)) and not look(1, **ball(109, 130))  # it begins anew
    assert not look(239) and look(1)
    for off in (ball(0, 60), ball(0, 140), ball(0, 130) | {"on_ground": 0}):
        assert not look(0, **off)
        assert not look(0, **ball(0, 139))
        assert not look(239, **ball(0, 61)) and look(1)


def test_half_flip(judged):
    fast = {"vel": (0, -1000, 0), "forward": (0, -1, 0), "up": (0, 0, 1), "on_ground": 1}
    slanted = (0.45, -0.89, 0)
    for changes, expected in (
        ({}, True),
        ({"vel": (0, -999, 0)}, False),
        ({"vel": (0, 1500, 0)}, False),
        ({"up": (0, 0, 0.9)}, False),
        ({"on_ground": 0}, False),
        ({"forward": slanted, "vel": np.multiply(slanted, 1500)}, False),
        ({"forward": (0, 1, 0), "vel": (0, 1500, 0)}, False),
    ):
        look = judged(HalfFlipLane()).begin(forward=(0, 1, 0))
        assert look(**(fast | changes)) is expected, changes


def test_kickoff(judged):
    """The ball in the other half a second after the own touch, or a goal; looked at once."""
    theirs, ours = {"ball": (0, 1, 93)}, {"ball": (0, -1, 93)}
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs) and not look(0, touched=True) and not look(119)
    assert look(1)
    assert not look(1)  # not again
    assert look(1, ball=(0, 5300, 93))
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs, touched=True) and not look(120, **ours) and not look(1, **theirs)
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs, by_other=True) and not look(0, touched=True)
    assert not look(120) and not look(1, ball=(0, 5300, 93))
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs, touched=True, by_other=True)
    assert look(120)  # both at once is one's own


@pytest.mark.parametrize("mixed", [False, True])
def test_two_setters_with_the_same_drill_are_counted_together(mixed):
    lanes = [MechanicsLanes(Kickoff(), [HalfFlipLane()], mechanics_weight=1.0) for _ in range(2)]
    setter = MixedStates(lanes, [1, 1]) if mixed else PhasedStates({"a": lanes[0], "b": lanes[1]})
    pool = RocketSimPool(8, state_setter=setter, num_threads=1)
    pool.reset(seed=0)
    ended = 0
    for _ in range(100):
        _, _, terminated, truncated, _ = pool.step(np.full(pool.num_envs, 16))
        ended += int((terminated | truncated).sum()) // 2
    metrics = pool.drain_metrics()
    assert metrics["lane/half_flip_success"][1] == ended > 0
    assert metrics["lane/half_flip_episodes"] == (ended, 8)
