"""The benchmarks are run by hand, for hours: that they begin is seen here."""

import json
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fabric_rl.commands.seeds import training_settings

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COMMANDS = sorted(file.name for file in BENCHMARKS.glob("*.py") if "ArgumentParser(" in file.read_text("utf-8"))


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.slow
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


def resolved(path: Path, *flags: str) -> dict[str, Any]:
    """What the command line makes of a file and flags."""
    return yaml.safe_load(training_settings(["--config", str(path), *flags], "tune").arguments["resolved_config"])


@pytest.mark.slow
def test_every_arm_of_the_ablations_is_a_training(tmp_path: Path) -> None:
    """Those that go on set different things, or the same thing to different values: all at once are read in one go."""
    ablations = import_module("ablations")

    def written(name: str, change: Any, phase: int) -> Path:
        ablations.write_settings(tmp_path / f"{name}.yaml", change, phase)
        return tmp_path / f"{name}.yaml"

    base = resolved(written("base", ablations.GO_ON["base"], 2))
    for name, change in ablations.GO_ON.items():
        settings = yaml.safe_load(written(name, change, 2).read_text("utf-8"))
        assert shares(settings, base) == (name == "base"), f"{name} changes nothing"
    everything = resolved(written("all", lambda settings: [each(settings) for each in ablations.GO_ON.values()], 2))
    assert everything != base and everything["callbacks"][0]["init_args"]["start_phase"] == 2
    found = [resolved(written(name, change, 1)) for name, change in ablations.ANEW.items()]
    assert all(each["callbacks"][0]["init_args"]["start_phase"] == 1 for each in found)
    assert all(each != found[0] for each in found[1:])


def shares(part: Any, whole: Any) -> bool:
    """Whether all that `part` says is in `whole`, too."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and shares(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(shares, part, whole))
    return bool(part == whole)


@pytest.mark.slow
def test_one_core_learns_what_all_ranks_would() -> None:
    school = import_module("school")
    config = "configs/bot_school.yaml"
    found = [resolved(BENCHMARKS.parent / config, *flags) for flags in ([], school.one_core(config))]
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
    rows = [[step, 10_000, 1, 5, 0.5, 1] for step in (100_000, 300_000, 500_000, 700_000, 900_000, 1_100_000)]
    (tmp_path / "metrics.csv").write_text("\n".join(",".join(map(str, line)) for line in [names, *rows]), "utf-8")
    assert school.training_of(tmp_path)["step"].tolist() == [500_000, 1_000_000]  # of the third there is too little
    (tmp_path / "metrics.csv").write_text("\n".join(",".join(map(str, line)) for line in [names, rows[0]]), "utf-8")
    assert len(school.training_of(tmp_path)["step"]) == 1
    (tmp_path / "metrics.csv").write_text(",".join(names), "utf-8")
    with pytest.raises(SystemExit, match="no figures yet"):
        school.training_of(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "of_size"), [(1, ""), (2, "_2v2")])
def test_a_line_of_trainings_is_one_curve(tmp_path: Path, size: int, of_size: str) -> None:
    """Steps and minutes go on; the matches are those that have been played."""
    school = import_module("school")
    names = ["step", "speed/overall_steps_per_second", "phase/number", *school.TRAINING]
    result = {"difference": 1.5, "difference_interval_95": [1.0, 2.0], "wins": 30, "draws": 5, "losses": 5}
    for run, touches in (("first", 5), ("second", 9)):
        rows = [[507_904, 10_000, 3, touches, 0.5, 1], [1_007_616, 10_000, 3, touches + 1, 0.7, 1]]
        (tmp_path / run / "milestones/Phase3/000001007616").mkdir(parents=True)
        text = "\n".join(",".join(map(str, line)) for line in [names, *rows])
        (tmp_path / run / "metrics.csv").write_text(text, encoding="utf-8")
        (tmp_path / run / "matches").mkdir()
        for bot in school.OPPONENTS:
            (tmp_path / run / f"matches/000001007616_{bot}{of_size}_40.json").write_text(json.dumps(result), "utf-8")
    (tmp_path / f"shooter_chaser{of_size}_200.json").write_text(json.dumps(result), encoding="utf-8")

    found = school.line_of([tmp_path / "first", tmp_path / "second"], 4_000_000, 1_000_000, 40, size)
    assert found["training"]["step"] == [4.5e6, 5e6, 5.5e6, 6e6]
    assert found["training"]["game/touches_per_minute"] == [5, 6, 9, 10]
    assert found["training"]["minutes"][-1] == pytest.approx(2 * 1_007_616 / 10_000 / 60, abs=1e-3)
    assert list(found["matches"]) == [5_000_000, 6_000_000]
    school.plot({"mine": json.loads(json.dumps(found))}, tmp_path / "mine.png")
    told = school.report("mine", "configs/bot_school.yaml", {"mine": json.loads(json.dumps(found))}, "mine.png", size)
    assert f"{size}v{size}. " in told and "![curves](mine.png)" in told
    assert "| mine | 6 M, 3 min | - | 5 M steps, 2 min | +1.50 (+1.00 to +2.00)" in told


def test_what_people_have_read_in_results_stays(tmp_path: Path) -> None:
    reports = import_module("reports")
    reports.write_report(tmp_path / "a.md", "# A\n\n| 1 |\n")
    assert (tmp_path / "a.md").read_text("utf-8") == "# A\n\n| 1 |\n"
    (tmp_path / "a.md").write_text("# A\n\n| 1 |\n\n## Reading\n\nOne is little.\n", encoding="utf-8")
    reports.write_report(tmp_path / "a.md", "# A\n\n| 2 |\n")
    assert (tmp_path / "a.md").read_text("utf-8") == "# A\n\n| 2 |\n\n## Reading\n\nOne is little.\n"
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf## Reading  \r\n\r\nAs Windows writes it.\r\n")
    reports.write_report(tmp_path / "a.md", "# A\n\n| 3 |\n")
    assert "As Windows writes it." in (tmp_path / "a.md").read_text("utf-8")
    reports.write_report(tmp_path / "new" / "a.md", "# A\n")
    assert (tmp_path / "new" / "a.md").exists()


def test_arms_are_compared_with_the_base_all_at_once() -> None:
    """Half an interval is the quantile of the largest of six |t| with 14 degrees of freedom, found by drawing here."""
    ablations, rng = import_module("ablations"), np.random.default_rng(0)
    values = dict(zip(("base", "a", "b", "c", "d", "e", "f"), rng.standard_normal((7, 3)), strict=True))
    found = {arm: {"chaser": [{"difference": float(x)} for x in each]} for arm, each in values.items()}
    told = ablations.differences(found, "base", "chaser")
    low, high = (float(end) for end in told["c"].partition("(")[2].rstrip(")").split(" to "))

    draws = rng.standard_normal((50_000, 7, 3))
    spread = np.sqrt(draws.var(axis=2, ddof=1).mean(axis=1) * 2 / 3)
    apart = draws.mean(axis=2)
    largest = (np.abs(apart[:, 1:] - apart[:, :1]) / spread[:, None]).max(axis=1)
    own = np.sqrt(np.mean([each.var(ddof=1) for each in values.values()]) * 2 / 3)
    assert set(told) == set(values) - {"base"}
    assert (low + high) / 2 == pytest.approx(values["c"].mean() - values["base"].mean(), abs=0.01)
    assert (high - low) / 2 == pytest.approx(np.quantile(largest, 0.95) * own, rel=0.03)
    assert ablations.differences({"base": found["base"]}, "base", "chaser") == {}


@pytest.mark.slow
@pytest.mark.parametrize("contender", ["sb3", "cleanrl"])
def test_a_baseline_continues_from_its_newest_state(
    contender: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baselines, unfinished = import_module("baselines"), import_module("unfinished").Unfinished
    task, log = replace(baselines.TASKS["sac_pendulum"], steps=600), tmp_path / "episodes"
    whole = baselines.EpisodeLog.step

    def stops(self: Any, action: Any) -> Any:
        if baselines.EpisodeLog.steps == 320:
            raise KeyboardInterrupt
        return whole(self, action)

    def new_process() -> None:
        for name, value in {"steps": 0, "first": 0.0, "ended": False}.items():
            monkeypatch.setattr(baselines.EpisodeLog, name, value)

    new_process()
    monkeypatch.setenv(baselines.EPISODES, str(log))
    monkeypatch.setattr(baselines.EpisodeLog, "step", stops)
    monkeypatch.setenv(baselines.BEGUN, "0 0.0")
    with pytest.raises(KeyboardInterrupt):
        baselines.run_peer(task, contender, 0)

    log.write_text(log.read_text("utf-8") + "9.5 310 -1.0\n1.2", encoding="utf-8")  # after the state
    steps, seconds = unfinished(tmp_path).cut(log)
    first = float(log.read_text("utf-8").split()[0])
    assert steps == 300 and seconds == pytest.approx(1.5 * first)
    monkeypatch.setattr(baselines.EpisodeLog, "step", whole)
    monkeypatch.setenv(baselines.BEGUN, f"{steps} {seconds}")
    new_process()
    baselines.run_peer(task, contender, 0)
    rows = [line.split() for line in log.read_text("utf-8").splitlines()]
    assert [int(row[1]) for row in rows] == [200, 500] and float(rows[1][0]) > seconds
    assert [path.name for path in tmp_path.glob("state_*")] == ["state_600" if contender == "sb3" else "state_570"]
