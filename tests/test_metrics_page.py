"""docs/metrics.md has every metric: those that the code names, and those of trainings that use nearly all of it."""

import ast
import csv
import re
from pathlib import Path

import pytest

from train_fabric import cli

ROOT = Path(__file__).resolve().parents[1]
GROUPS = (
    "action|cloning|curiosity|debug|eval|game|gail|lane|lesson|parameters|phase|ppo|rating|reward|reward_percent"
    "|reward_weight|rnd|sac|selfplay|speed|turtle"
)
NAME = re.compile(rf"(?:{GROUPS})/[\w<>/]+")
SHORT = ["--accelerator", "cpu", "--devices", "1", "--num_threads", "1", "--plain", "--record_minutes", "null"]
FEW_ARENAS = ["--num_steps", "40", "--minibatch_size", "64", "--env.init_args.num_arenas", "4"]


def described(page):
    """Patterns of the names in the first column of the page's tables; `<...>` stands for a part's name."""
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = [name for cell in cells for name in re.findall(r"`([^`]+/[^`]+)`", cell)]
    return [re.compile("[^/]+".join(map(re.escape, re.split(r"<\w+>", name)))) for name in names]


@pytest.fixture(scope="module")
def patterns():
    found = described((ROOT / "docs/metrics.md").read_text(encoding="utf-8"))
    assert len(found) > 90
    return found


def unknown(names, patterns):
    return sorted(name for name in set(names) if not any(pattern.fullmatch(name) for pattern in patterns))


def test_placeholders_stand_for_one_part_of_a_name():
    patterns = described("| `a/<part>_b` | x |\n| `c/d`, `c/e` | `f/g` |\n")
    assert unknown(["a/x_b", "c/d", "c/e"], patterns) == []
    assert unknown(["a/x", "a/x/y_b", "c/f", "f/g"], patterns) == ["a/x", "a/x/y_b", "c/f", "f/g"]


def test_every_metric_that_the_code_names_is_on_the_page(patterns):
    names = []
    for package in ("agents", "envs", "fabric_rl"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                if isinstance(node, ast.JoinedStr):
                    parts = (str(part.value) if isinstance(part, ast.Constant) else "<part>" for part in node.values)
                    text = "".join(parts)
                names += [text] if NAME.fullmatch(text) else []
    names = [re.sub(r"<part>", "one", name) for name in names]
    assert len(set(names)) > 50
    seen_by_training = {"ppo/one", "sac/one", "game/one", "game/one_per_minute", "eval/onereturn", "eval/onelength"}
    seen_by_training |= {"rating/oneone", "speed/one_steps_per_second"}
    assert unknown(set(names) - seen_by_training, patterns) == []


def trained(folder, *words):
    cli([*words, *SHORT, "--runs_dir", str(folder), "--run_id", "one"])
    with open(folder / "one/metrics.csv", newline="", encoding="utf-8") as file:
        found = [name for name in next(csv.reader(file)) if name != "step"]
    return [name.removeprefix("keeper/").removeprefix("striker/") for name in found]  # roles


def test_the_metrics_of_a_small_training_are_on_the_page(patterns, tmp_path):
    names = trained(
        tmp_path, "--env_id", "CartPole-v1", *["--total_timesteps", "256", "--num_steps", "32", "--num_envs", "4"]
    )
    assert len(names) > 15 and unknown(names, patterns) == []


MANY = {
    "pool": (
        "--config configs/curriculum_1v1.yaml --total_timesteps 1280 --self_play SelfPlay --self_play.save_steps 320"
        " --signals+=fabric_rl.signals.RND --signals+=fabric_rl.signals.Curiosity"
        " --callbacks+=fabric_rl.callbacks.Debug --callbacks.everything true --env.init_args.action envs.HybridTable",
        ("curiosity/forward_loss", "debug/max_logit", "lesson/ball", "parameters/gravity", "rnd/loss", "selfplay/open"),
    ),
    "school": (
        "--config configs/bot_school.yaml --total_timesteps 1280 --callbacks.init_args.start_phase 4",
        ("lane/dribble_episodes", "phase/number", "turtle/started", "reward/EventReward/goal"),
    ),
    "roles": (
        "--config configs/keeper_striker.yaml --total_timesteps 640",
        ("reward/keeper/SaveReward", "ppo/entropy"),
    ),
    "sac": (
        "--config configs/sac_pendulum.yaml --total_timesteps 150 --buffer_init_steps 100 --per_alpha 0.6",
        ("sac/td_error", "sac/temperature"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_the_metrics_of_trainings_with_nearly_everything_are_on_the_page(name, patterns, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    flags, some = MANY[name]
    names = trained(tmp_path, *flags.split(), *([] if name == "sac" else FEW_ARENAS))
    assert set(some) <= set(names)
    assert unknown(names, patterns) == []
