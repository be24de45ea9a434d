"""What holds for every observation builder: no colours, named columns, absent cars, pools, clear errors."""

import numpy as np
import pytest

from envs import ActionTable, GameState, RocketSimPool, TimeoutCondition
from envs.factories import from_class_path
from envs.obs import (
    AdvancedObs,
    AdvancedObsPlus,
    DefaultObs,
    EntityObs,
    ObsBuilder,
    PrivilegedObs,
    RelativeObs,
    StackedObs,
)
from envs.obs.__main__ import main
from envs.obs.base import factor_text
from envs.state.layout import CONTROL_NAMES
from tests.envs.fakes import build, random_play

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


def test_builders_that_name_less():
    class Nothing(DefaultObs):
        meanings = ObsBuilder.meanings

    assert Nothing(zero_padding=None).columns(1, 1) == {"obs": slice(0, 92)}
    assert Nothing(zero_padding=None).meanings(1, 1)[0][:4] == ("obs", "", 92, "not described")

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


def test_absent_cars_without_room_and_columns_of_others(two_vs_two):
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
    # `PrivilegedObs` and callers with larger arrays hand out a part of the columns.
    for make in BUILDERS.values():
        if make(None).space(2, 2).shape[1:]:
            continue
        obs = build(make(None), two_vs_two)
        wide = np.full((6, 4, obs.shape[-1] + 5), 7, np.float32)
        make(None).build(two_vs_two, wide[..., 2:-3])
        np.testing.assert_array_equal(wide[..., 2:-3], obs)
        assert (wide[..., :2] == 7).all() and (wide[..., -3:] == 7).all()


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


# ---------------------------------------------------------------- what the columns mean


NAMED = [
    DefaultObs(),
    DefaultObs.rlgym_guide(),
    AdvancedObs(pos_coef=(0.1, 0.2, 0.3), zero_padding=3),
    AdvancedObsPlus(lin_vel_coef=0.5, timer_coef=0.25),
    RelativeObs(boost_coef=0.125, num_pads=3),
    EntityObs(include_pads=True, include_goals=True),
    StackedObs(AdvancedObs(), 2),
]


@pytest.fixture(scope="module")
def seen_play() -> GameState:
    state = random_play(8, 2)
    state.pad_timers[:, 5] = 3.0
    return state


def raw_numbers(builder, state):
    """Name -> the columns without their factors, as the meanings tell where they are."""
    obs, raw, start = build(builder, state), {}, 0
    for meaning in builder.meanings(2, 2):
        name = f"{meaning.group}.{meaning.name}" if meaning.name else meaning.group
        assert name not in raw
        raw[name] = obs[..., start : start + meaning.width] / meaning.factor
        start += meaning.width
    assert start == obs.shape[-1]
    return raw


def true_numbers(state):
    """Name -> the quantity in the units of the game, from each car's own side."""
    own = state.own
    jumps = ("is_holding_jump", "has_jumped", "is_jumping", "has_flipped", "is_flipping", "has_double_jumped")
    jumps += ("can_flip", "handbrake", "air_time_since_jump")
    status = {"boost": "boost", "on_ground": "on_ground", "has_flip": "has_flip", "boosting": "is_boosting"}
    status |= {"supersonic": "is_supersonic", "timer": "demo_respawn_timer", "demo_timer": "demo_respawn_timer"}
    true = {f"previous_action.{name}": state.controls[..., i, None] for i, name in enumerate(CONTROL_NAMES)}
    for group in ("jumps", "self_flags"):
        true |= {f"{group}.{name}": getattr(state, name)[..., None] for name in jumps}
    for group in ("status", "car_0", "self"):
        true |= {f"{group}.{name}": getattr(state, source)[..., None] for name, source in status.items()}
    for group in ("", "car_0.", "self."):
        true |= {f"{group}{name}": getattr(own, f"car_{name}") for name in ("pos", "forward", "up", "vel", "ang_vel")}
    true |= {name: getattr(own, name) for name in ("ball_pos", "ball_vel", "ball_ang_vel", "pad_timers")}
    true["pads"] = own.pad_timers == 0
    true["self.to_ball"] = own.ball_pos - own.car_pos
    true["ball_distance"] = np.linalg.norm(own.ball_pos - own.car_pos, axis=-1, keepdims=True)
    return true


@pytest.mark.parametrize(("builder", "least"), list(zip(NAMED[:4], (22, 22, 21, 32), strict=True)))
def test_names_units_and_factors_are_those_of_the_game(builder, least, seen_play):
    raw, true = raw_numbers(builder, seen_play), true_numbers(seen_play)
    both = sorted(raw.keys() & true.keys())
    assert len(both) >= least, both
    for name in both:
        np.testing.assert_allclose(raw[name], true[name], rtol=2e-5, atol=2e-3, err_msg=name)


def test_local_columns_and_entities_are_named_right(seen_play):
    own = seen_play.own
    true = {"vel": own.car_vel, "ball_pos": own.ball_pos - own.car_pos, "ball_vel": own.ball_vel - own.car_vel}
    true["world_up"] = np.ones((8, 4, 1))
    for builder, names in ((RelativeObs(pos_coef=0.1), {n: n for n in true}), (NAMED[3], {"local_vel": "vel"})):
        raw = raw_numbers(builder, seen_play)
        for name, source in names.items():
            lengths, expected = np.linalg.norm(raw[name], axis=-1), np.linalg.norm(true[source], axis=-1)
            np.testing.assert_allclose(lengths, expected, rtol=1e-3, atol=1e-2, err_msg=name)
    raw = raw_numbers(NAMED[3], seen_play)
    for direction in ("local_own_goal.direction", "ball_to_opponent_goal.direction"):
        np.testing.assert_allclose(np.linalg.norm(raw[direction], axis=-1), 1, atol=1e-4)
    nearest = raw["pad_near_car_0.offset"]
    assert (np.linalg.norm(nearest, axis=-1) <= np.linalg.norm(raw["pad_near_car_3.offset"], axis=-1) + 1e-2).all()
    assert set(np.unique(raw["pad_near_ball_1.available"])) <= {0, 1}
    raw, builder = raw_numbers(NAMED[5], seen_play), NAMED[5]
    rows = builder.objects
    np.testing.assert_allclose(raw["pos"][:, :, 0], seen_play.own.car_pos, rtol=1e-5, atol=1e-2)
    np.testing.assert_allclose(raw["status.boost"][:, :, 0, 0], seen_play.boost, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(raw["status.timer"][:, :, rows["pads"], 0], seen_play.own.pad_timers, atol=1e-4)
    assert (raw["type.pad"][:, :, rows["pads"]] == 1).all() and (raw["team.self"][:, :, 0] == 1).all()
    assert (raw["team.enemy"][:, :, rows["goals"].start] == 1).all() and (raw["type.ball"][:, :, 1] == 1).all()


def test_where_columns_are():
    starts = {DefaultObs: ("car_0", 52), AdvancedObs: ("other_0", 76), RelativeObs: ("pad_0", 47)}
    for kind, (group, start) in (starts | {AdvancedObsPlus: ("pad_near_car_0", 77)}).items():
        assert kind().columns(1, 1)[group].start == start
    assert EntityObs().columns(1, 1)["status"] == EntityObs.STATUS == slice(EntityObs.BOOST, EntityObs.SUPERSONIC + 1)
    inside = [m.name for m in AdvancedObs().meanings(1, 1) if m.group == "self" for _ in range(m.width)]
    assert inside.index("boost") == 21 and inside.index("demoed") == 24
    first, second = (StackedObs(AdvancedObs(), 2).meanings(1, 1)[i] for i in (0, len(AdvancedObs().meanings(1, 1))))
    assert (first.group, second.group) == ("frame_0/ball_pos", "frame_1/ball_pos")
    assert second.text == f"{first.text} (1 steps earlier)"


@pytest.mark.parametrize(
    ("factor", "text"),
    [(1, "1"), (np.float32(1 / 2300), "1/2300"), ((1 / 4096, 0.5), "1/4096, 1/2"), ([0.1] * 3, "1/10"), (0, "0")],
)
def test_factors_in_words(factor, text):
    assert factor_text(factor) == text


@pytest.mark.parametrize("path", ["AdvancedObs", "envs.AdvancedObs", "envs.obs.AdvancedObs"])
def test_class_names_work_with_and_without_the_package(path):
    assert type(from_class_path(path, ObsBuilder)) is AdvancedObs
    assert (
        len(from_class_path(path.replace("AdvancedObs", "HybridTable").replace("obs", "actions"), ActionTable).table)
        == 128
    )
    assert type(from_class_path("StackedObs", ObsBuilder, path).inner) is AdvancedObs


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["Nothing"], "no class 'Nothing'"),
        (["envs.HybridTable"], "'envs.HybridTable' is not a subclass of ObsBuilder"),
        (["PrivilegedObs"], "cannot be built without arguments"),
        (["DefaultObs", "--team_size", "4"], "zero_padding=3 is too small"),
        (["--team_size", "9"], "team_size"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(arguments, why, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


def test_command_prints_every_column(capsys):
    main(["AdvancedObsPlus", "--team_size", "2", "1"])
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.strip()[:1].isdigit()]
    shown = np.zeros(AdvancedObsPlus().space(2, 1).shape[0], int)
    for row in rows:
        first, _, last = row[0].partition("-")
        shown[int(first) : int(last or first) + 1] += 1
    assert (shown == 1).all()
    assert "".join(lines[0].split()) == "AdvancedObsPlus:167float32,2against1"
    boost = next(row for row in rows if row[1] == "status.boost")
    assert boost == ["24", "status.boost", "boost", "left", "0..100", "1/100"]
