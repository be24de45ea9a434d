"""What holds for every observation builder: no colours, named columns, absent cars, pools, clear errors."""

import numpy as np
import pytest

from envs import GameState, RocketSimPool, TimeoutCondition
from envs.obs import (
    AdvancedObs,
    AdvancedObsPlus,
    DefaultObs,
    EntityObs,
    ObsBuilder,
    PrivilegedObs,
    RelativeObs,
    StackedObs,
    TeamRoleObs,
)
from tests.envs.comparing import build, random_play

BUILDERS = {
    "default": lambda room: DefaultObs(zero_padding=room),
    "advanced": lambda room: AdvancedObs(zero_padding=room),
    "plus": lambda room: AdvancedObsPlus(zero_padding=room),
    "relative": lambda room: RelativeObs(zero_padding=room),
    "entity": lambda room: EntityObs(room or 3, include_pads=True, include_goals=True),
    "stacked": lambda room: StackedObs(AdvancedObs(zero_padding=room), 2),
    "stacked entity": lambda room: StackedObs(EntityObs(room or 3), 3),
    "privileged": lambda room: PrivilegedObs(RelativeObs(zero_padding=room), AdvancedObs(zero_padding=room)),
}
every_builder = pytest.mark.parametrize("make", BUILDERS.values(), ids=BUILDERS)


def lively(team_size):
    state = random_play(6, team_size, 25)
    state.pad_timers[:, :3] = (1.0, 2.0, 3.0)
    state.pad_timers[::2, 20] = 4.0
    state.ticks_since_touch[:] = 100 * np.arange(6)
    state.invalidate()
    return state


@pytest.fixture(scope="module")
def two_vs_two():
    return lively(2)


@pytest.fixture(scope="module")
def three_vs_three():
    return lively(3)


def reordered(state, order, *, sides=slice(None)):
    """The same arenas with other cars in the slots, `sides=slice(None, None, -1)` seen from the other side."""
    other = state.select(np.arange(state.num_arenas))
    other.ball_rows[:] = state.ball_rows[:, sides]
    other.car_rows[:] = state.car_rows[:, order][:, :, sides]
    other.car_states[:] = state.car_states[:, order]
    other.controls[:] = state.controls[:, order]
    other.pad_timers[:] = state.pad_timers[:, sides]
    other.invalidate()
    return other


@every_builder
@pytest.mark.parametrize("room", [None, 3])
def test_blue_and_orange_see_the_same(make, room, two_vs_two):
    order = np.array([2, 3, 0, 1])
    swapped = reordered(two_vs_two, order, sides=slice(None, None, -1))
    obs = build(make(room), two_vs_two)
    np.testing.assert_array_equal(build(make(room), swapped), obs[:, order])
    assert not np.array_equal(obs[:, 0], obs[:, 2])


@every_builder
@pytest.mark.parametrize("teams", [(1, 1), (3, 3), (2, 1), (1, 0), (0, 2)])
def test_meanings_and_columns_cover_everything_once(make, teams):
    builder = make(None)
    start, groups = 0, {}
    for meaning in builder.meanings(*teams):
        assert meaning.width > 0 and meaning.text and np.size(meaning.factor) in (1, meaning.width)
        groups.setdefault(meaning.group, [start, 0])[1] = start + meaning.width
        start += meaning.width
    assert start == builder.space(*teams).shape[-1]
    assert builder.columns(*teams) == {name: slice(*ends) for name, ends in groups.items()} and len(groups) > 5


def test_a_builder_that_names_nothing_has_one_column_range():
    class Nothing(DefaultObs):
        meanings = ObsBuilder.meanings

    assert Nothing(zero_padding=None).columns(1, 1) == {"obs": slice(0, 92)}
    assert Nothing(zero_padding=None).meanings(1, 1)[0][:4] == ("obs", "", 92, "not described")


def test_a_builder_that_only_names_its_columns_keeps_the_names_inside_of_others():
    class Named(DefaultObs):
        meanings = ObsBuilder.meanings

        def columns(self, num_blue, num_orange):
            return {"first": slice(0, 2), "rest": slice(2, 92)}

    named = Named(zero_padding=None)
    assert [m[:3] for m in named.meanings(1, 1)] == [("first", "", 2), ("rest", "", 90)]
    stacked = StackedObs(PrivilegedObs(named, named), 2).columns(1, 1)
    assert stacked["frame_1/critic/first"] == slice(184 + 92, 184 + 94) and len(stacked) == 8


@pytest.mark.parametrize("builder", [DefaultObs(None), AdvancedObs(), AdvancedObsPlus(), RelativeObs()])
@pytest.mark.parametrize("car", [1, 2, 3])
def test_a_cars_block_changes_with_that_car_only(builder, car, two_vs_two):
    changed = two_vs_two.select(np.arange(6))
    changed.car_rows[:, car, :, 10] += 1  # boost
    changed.invalidate()
    differs = (build(builder, changed)[:, 0] != build(builder, two_vs_two)[:, 0]).any(axis=0)
    block = f"car_{car}" if isinstance(builder, DefaultObs) else f"other_{car - 1}"
    assert [name for name, at in builder.columns(2, 2).items() if differs[at].any()] == [block]


@pytest.mark.parametrize(("pads", "goals"), [(False, False), (True, False), (False, True), (True, True)])
def test_named_objects_cover_every_row_once(pads, goals):
    builder = EntityObs(2, include_pads=pads, include_goals=goals)
    covered = np.zeros(builder.space(1, 1).shape[0], int)
    for rows in builder.objects.values():
        covered[rows] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("room", [2, 3])
@every_builder
def test_absent_cars_look_like_padding(make, room, two_vs_two):
    arrays = two_vs_two.state_dict()
    arrays["present"][:3, [1, 3]] = False
    mixed = GameState(6, 2, 2)
    mixed.load_state_dict(arrays)
    for arena in range(3):
        mixed.clear_absent(arena)
    small = GameState(3, 1, 1)
    for name in ("ball_rows", "pad_timers", "episode_ticks", "ticks_since_touch"):
        vars(small)[name][:] = vars(mixed)[name][:3]
    for name in ("car_rows", "car_states", "controls"):
        vars(small)[name][:] = vars(mixed)[name][:3][:, [0, 2]]
    obs = build(make(room), mixed)
    np.testing.assert_array_equal(obs[:3, [0, 2]], build(make(room), small))
    assert (obs[:3, [1, 3]] == 0).all()
    np.testing.assert_array_equal(obs[3:], build(make(room), two_vs_two)[3:])


def test_an_absent_car_without_room_to_spare_is_zero(two_vs_two):
    arrays = two_vs_two.state_dict()
    arrays["present"][:, 3] = False
    mixed = GameState(6, 2, 2)
    mixed.load_state_dict(arrays)
    for arena in range(6):
        mixed.clear_absent(arena)
    for builder in (AdvancedObs(), AdvancedObsPlus(), RelativeObs()):
        obs, columns = build(builder, mixed), builder.columns(2, 2)
        assert (obs[:, 0, columns["other_2"]] == 0).all() and (obs[:, 0, columns["other_1"]] != 0).any()
        assert (obs[:, 2, columns["other_0"]] == 0).all() and (obs[:, 2, columns["other_2"]] != 0).any()


@every_builder
@pytest.mark.parametrize("teams", [1, 3, (1, 0), (0, 1), [(1, 1), (2, 1)]], ids=str)
def test_plays_in_a_pool(make, teams):
    pool = RocketSimPool(2, teams, obs=make(None), done=[TimeoutCondition(0.3)], num_threads=1, seed=1)
    obs, _ = pool.reset()
    space, rng = pool.single_observation_space, np.random.default_rng(0)
    assert obs.shape == (pool.num_envs, *space.shape) and space.dtype == np.float32
    ends = 0
    for _ in range(10):
        previous = obs
        obs, _, _, _, infos = pool.step(rng.integers(90, size=pool.num_envs))
        assert pool.observation_space.contains(obs) and np.isfinite(obs).all()
        assert not np.array_equal(obs, previous)
        ends += "final_obs" in infos
    assert ends >= 2
    present = build(pool.obs_builder, pool.state)[pool.state.present]
    np.testing.assert_array_equal(obs, present)
    pool.close()


@pytest.mark.parametrize("builder", [RelativeObs(), AdvancedObsPlus(), EntityObs(include_pads=True), AdvancedObs()])
def test_one_arena_reads_the_same_alone_and_among_others(builder, three_vs_three):
    everything = build(builder, three_vs_three)
    for arena in range(6):
        np.testing.assert_array_equal(build(builder, three_vs_three.select(np.array([arena])))[0], everything[arena])


def test_the_set_does_not_know_the_order_of_allies_and_enemies(three_vs_three):
    builder = EntityObs(max_cars_per_team=4, include_pads=True, include_goals=True)
    rows = builder.objects
    allies, enemies = np.r_[rows["allies"]], np.r_[rows["enemies"]]
    obs = build(builder, three_vs_three)[:, 0]
    other = build(builder, reordered(three_vs_three, np.array([0, 2, 1, 5, 3, 4])))[:, 0]
    expected = obs.copy()
    expected[:, allies[:3]] = obs[:, allies[[1, 0, 2]]]
    expected[:, enemies[:4]] = obs[:, enemies[[2, 0, 1, 3]]]
    np.testing.assert_array_equal(other, expected)
    assert not np.array_equal(other, obs)


def test_no_builder_writes_outside_its_columns(two_vs_two):
    """`PrivilegedObs` and callers with larger arrays hand out a part of the columns."""
    for make in BUILDERS.values():
        if make(None).space(2, 2).shape[1:]:
            continue
        obs = build(make(None), two_vs_two)
        wide = np.full((6, 4, obs.shape[-1] + 5), 7, np.float32)
        make(None).build(two_vs_two, wide[..., 2:-3])
        np.testing.assert_array_equal(wide[..., 2:-3], obs)
        assert (wide[..., :2] == 7).all() and (wide[..., -3:] == 7).all()


def test_widths():
    assert AdvancedObs().space(1, 1).shape == (107,)
    assert AdvancedObs().space(3, 3).shape == (231,)
    assert AdvancedObs(zero_padding=3).space(1, 1).shape == (231,)
    assert AdvancedObsPlus().space(1, 1).shape == (77 + 6 * 6 + 27,)
    assert AdvancedObsPlus(pads_near_car=0, pads_near_ball=0).space(1, 0).shape == (77,)
    assert RelativeObs(num_pads=34).space(1, 1).shape == (47 + 6 * 34 + 21,)
    assert EntityObs().space(1, 0).shape == (7, 35)
    assert EntityObs(2, include_pads=True, include_goals=True).space(2, 2).shape == (5 + 34 + 2, 35)
    assert StackedObs(EntityObs(), 4).space(1, 1).shape == (7, 140)
    assert PrivilegedObs(AdvancedObs(), DefaultObs(None)).space(1, 1).shape == (107 + 92,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdvancedObs(pos_coef=(1, 2)), "AdvancedObs: pos_coef must be one number or three"),
        (lambda: EntityObs(pos_coef=np.nan), "EntityObs: pos_coef must be a finite number"),
        (lambda: AdvancedObs(zero_padding=2).space(3, 1), "AdvancedObs: zero_padding=2 is too small for 3 cars"),
        (lambda: EntityObs(2).space(1, 3), "EntityObs: max_cars_per_team=2 is too small for 3 cars"),
        (lambda: RocketSimPool(1, 4, obs=DefaultObs()), "DefaultObs: zero_padding=3 is too small for 4 cars"),
        (lambda: PrivilegedObs(EntityObs(), AdvancedObs()).space(1, 1), "PrivilegedObs: actor must build flat"),
        (lambda: PrivilegedObs(AdvancedObs(), EntityObs()).space(1, 1), "PrivilegedObs: critic must build flat"),
        (lambda: TeamRoleObs(EntityObs()).space(1, 1), "TeamRoleObs: inner must build flat"),
    ],
)
def test_bad_input_is_one_clear_line(make, message):
    with pytest.raises(ValueError, match=rf"^{message}(?!.*\n)"):
        make()
