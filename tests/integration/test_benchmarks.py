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


def test_one_core_learns_what_all_ranks_would() -> None:
    school = import_module("school")
    config = "configs/bot_school.yaml"
    found = [
        yaml.safe_load(
            settings_of(["--config", str(BENCHMARKS.parent / config), *flags], "tune").arguments["resolved_config"]
        )
        for flags in ([], school.one_core(config))
    ]
    arenas = [each["devices"] * each["env"]["init_args"]["num_arenas"] for each in found]
    minibatch = [each["devices"] * each["minibatch_size"] for each in found]
    assert arenas == [64, 64] and minibatch == [2048, 2048]
    assert found[1]["devices"] == found[1]["num_threads"] == found[1]["env"]["init_args"]["num_threads"] == 1


def test_the_curve_takes_a_row_for_the_steps_that_it_tells_of(tmp_path: Path) -> None:
    """Rows are written by the first iteration at or after a multiple of half a million steps."""
    school = import_module("school")
    names = ["step", "speed/overall_steps_per_second", "phase/number", *school.TRAINING]
    rows = [[507_904, 10_000, 1, 5, 0.5, 1], [1_007_616, 20_000, 1, 7, 0.7, 1], [1_015_808, 20_000, 2, 9, 0.9, 1]]
    lines = [names, *rows]
    (tmp_path / "metrics.csv").write_text("\n".join(",".join(map(str, line)) for line in lines), encoding="utf-8")
    found = school.training_of(tmp_path)
    assert found["step"].tolist() == [500_000, 1_000_000]
    assert found["game/touches_per_minute"].tolist() == [5, 8]
    assert found["minutes"][0] == pytest.approx(507_904 / 10_000 / 60)


def test_arms_are_told_apart_by_welchs_interval() -> None:
    ablations = import_module("ablations")
    base = {"chaser": [{"difference": value} for value in (0.0, 1.0, 2.0)]}
    # Variances 1 and 4, of three each: standard error sqrt(5 / 3) = 1.29099, 2.9412 degrees of freedom, t = 3.2193.
    assert ablations.apart([3.0, 5.0, 7.0], base, "chaser") == "+4.00 (-0.16 to +8.16)"
    assert ablations.apart([3.0, 5.0], base, "chaser") == ablations.apart([1.0] * 3, None, "chaser") == ""
