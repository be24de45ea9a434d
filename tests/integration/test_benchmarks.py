"""The benchmarks are run by hand, for hours: that they begin is seen here."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from fabric_rl.commands.trainings import settings_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COMMANDS = sorted(file.name for file in BENCHMARKS.glob("*.py") if "ArgumentParser(" in file.read_text("utf-8"))


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_starts(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        import_module(name.removesuffix(".py")).main()
    assert "usage: " in capsys.readouterr().out


def test_what_benchmarks_train_is_there() -> None:
    presets = {word for name in COMMANDS for word in (BENCHMARKS / name).read_text("utf-8").split('"')}
    named = {word.partition("=")[2] or word for word in presets if word.endswith(".yaml") and "configs/" in word}
    assert "configs/bot_school.yaml" in named
    missing = [word for word in named if "{" not in word and not (BENCHMARKS.parent / word).exists()]
    assert not missing


def test_every_arm_of_the_ablations_is_a_training(tmp_path: Path) -> None:
    ablations = import_module("ablations")
    base = {}
    for phase, arms in ((2, ablations.GO_ON), (1, ablations.ANEW)):
        for name, change in arms.items():
            ablations.write_settings(tmp_path / f"{name}.yaml", change, phase)
            resolved = settings_of(["--config", str(tmp_path / f"{name}.yaml")], "tune").arguments["resolved_config"]
            settings = yaml.safe_load(resolved)
            assert settings["callbacks"][0]["init_args"]["start_phase"] == phase
            if name in ("base", "from_nothing"):
                base = settings
            else:
                assert settings != base, f"{name} changes nothing"
