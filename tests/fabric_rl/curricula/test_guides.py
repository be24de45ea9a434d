"""The configuration of docs/from_rlgymbot_v2.md: one run through four phases, with drills, opponents and milestones."""

from pathlib import Path

import pytest
import yaml

import train_fabric
from fabric_rl.base.argv import PRESETS
from fabric_rl.metrics.metrics_csv import read_rows
from tests.docs_blocks import blocks, named

PHASES = ["BallTouching", "BronzeSkills1", "SilverSkills1", "SilverSkills2-GoldSkills1"]


@pytest.mark.slow
def test_the_run_of_the_guide_goes_through_all_four_phases(tmp_path):
    [own] = [block for block in blocks("docs/from_rlgymbot_v2.md") if named(block) == "bot_v2.yaml"]
    (tmp_path / "bot_v2.yaml").write_text(own.text, encoding="utf-8")
    school = yaml.safe_load((PRESETS / "bot_school.yaml").read_text(encoding="utf-8"))
    phases = school["callbacks"][0]["init_args"]["phases"]
    assert [phase["name"] for phase in phases] == PHASES
    for phase in phases[:-1]:
        phase |= {"promotions": [], "after_steps": 64}
    (tmp_path / "school.yaml").write_text(yaml.safe_dump(school), encoding="utf-8")
    small = {"env.num_arenas": 4, "num_steps": 8, "total_timesteps": 512, "devices": 1, "minibatch_size": 16}
    words = ["--config", tmp_path / "school.yaml", "--config", tmp_path / "bot_v2.yaml", "--runs_dir", tmp_path]
    words += ["--run_id", "bot", "--milestone_interval", 64, "--self_play.gate", "[]", "--plain"]
    words += [f"--{name}={value}" for name, value in small.items()]
    train_fabric.cli([str(word) for word in words])
    run = Path(tmp_path, "bot")
    folders = [f"Phase{number}-{name}" for number, name in enumerate(PHASES, start=1)]
    assert sorted(folder.name for folder in (run / "milestones").iterdir()) == folders
    *_, last = read_rows(run / "metrics.csv")
    assert float(last["selfplay/opponents"]) > 0
    assert (run / "final" / "weights.ckpt").is_file() and (run / "final" / "policy.onnx").is_file()
