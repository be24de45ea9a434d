"""What the columns are said to mean is what the builders write; and `python -m envs.obs` prints it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from envs import ActionTable, GameState
from envs.checks import from_class_path
from envs.obs import AdvancedObs, AdvancedObsPlus, DefaultObs, EntityObs, ObsBuilder, RelativeObs, StackedObs
from envs.obs.__main__ import main
from envs.obs.base import factor_text
from envs.state.layout import CONTROL_NAMES
from tests.envs.comparing import build, random_play

BUILDERS = [
    DefaultObs(),
    DefaultObs.rlgym_guide(),
    AdvancedObs(pos_coef=(0.1, 0.2, 0.3), zero_padding=3),
    AdvancedObsPlus(lin_vel_coef=0.5, timer_coef=0.25),
    RelativeObs(boost_coef=0.125, num_pads=3),
    EntityObs(include_pads=True, include_goals=True),
    StackedObs(AdvancedObs(), 2),
]


@pytest.fixture(scope="module")
def played() -> GameState:
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


@pytest.mark.parametrize(("builder", "least"), list(zip(BUILDERS[:4], (22, 22, 21, 32), strict=True)))
def test_names_units_and_factors_are_those_of_the_game(builder, least, played):
    raw, true = raw_numbers(builder, played), true_numbers(played)
    both = sorted(raw.keys() & true.keys())
    assert len(both) >= least, both
    for name in both:
        np.testing.assert_allclose(raw[name], true[name], rtol=2e-5, atol=2e-3, err_msg=name)


def test_local_columns_keep_the_length_of_what_they_name(played):
    own = played.own
    true = {"vel": own.car_vel, "ball_pos": own.ball_pos - own.car_pos, "ball_vel": own.ball_vel - own.car_vel}
    true["world_up"] = np.ones((8, 4, 1))
    for builder, names in ((RelativeObs(pos_coef=0.1), {n: n for n in true}), (BUILDERS[3], {"local_vel": "vel"})):
        raw = raw_numbers(builder, played)
        for name, source in names.items():
            lengths, expected = np.linalg.norm(raw[name], axis=-1), np.linalg.norm(true[source], axis=-1)
            np.testing.assert_allclose(lengths, expected, rtol=1e-3, atol=1e-2, err_msg=name)
    raw = raw_numbers(BUILDERS[3], played)
    for direction in ("local_own_goal.direction", "ball_to_opponent_goal.direction"):
        np.testing.assert_allclose(np.linalg.norm(raw[direction], axis=-1), 1, atol=1e-4)
    nearest = raw["pad_near_car_0.offset"]
    assert (np.linalg.norm(nearest, axis=-1) <= np.linalg.norm(raw["pad_near_car_3.offset"], axis=-1) + 1e-2).all()
    assert set(np.unique(raw["pad_near_ball_1.available"])) <= {0, 1}


def test_entities_features_are_named_right(played):
    raw, builder = raw_numbers(BUILDERS[5], played), BUILDERS[5]
    rows = builder.objects
    np.testing.assert_allclose(raw["pos"][:, :, 0], played.own.car_pos, rtol=1e-5, atol=1e-2)
    np.testing.assert_allclose(raw["status.boost"][:, :, 0, 0], played.boost, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(raw["status.timer"][:, :, rows["pads"], 0], played.own.pad_timers, atol=1e-4)
    assert (raw["type.pad"][:, :, rows["pads"]] == 1).all() and (raw["team.self"][:, :, 0] == 1).all()
    assert (raw["team.enemy"][:, :, rows["goals"].start] == 1).all() and (raw["type.ball"][:, :, 1] == 1).all()


def test_the_classes_columns_are_where_the_tables_say():
    starts = {DefaultObs: ("CARS", "car_0"), AdvancedObs: ("OTHERS", "other_0"), RelativeObs: ("PADS", "pad_0")}
    for kind, (name, group) in (starts | {AdvancedObsPlus: ("PADS", "pad_near_car_0")}).items():
        assert getattr(kind, name).start == kind().columns(1, 1)[group].start
    assert EntityObs().columns(1, 1)["status"] == EntityObs.STATUS == slice(EntityObs.BOOST, EntityObs.SUPERSONIC + 1)
    inside = [m.name for m in AdvancedObs().meanings(1, 1) if m.group == "self" for _ in range(m.width)]
    assert inside.index("boost") == AdvancedObs.CAR_BOOST and inside.index("demoed") == AdvancedObs.CAR_DEMOED


def test_stacked_frames_say_how_old_they_are():
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
        (["envs.HybridTable"], "is no ObsBuilder"),
        (["PrivilegedObs"], "cannot be made without arguments"),
        (["DefaultObs", "--team_size", "4"], "zero_padding=3 is too small"),
        (["--team_size", "9"], "team_size"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(arguments, why, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


def test_command_prints_every_column(capsys):
    assert main(["AdvancedObsPlus", "--team_size", "2", "1"]) == 0
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


def test_command_runs_from_a_shell():
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "envs.obs"]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "DefaultObs: 92 float32, 1 against 1" in shown.stdout and "1/4096, 1/6000, 1/2044" in shown.stdout
    assert shown.stderr == ""
