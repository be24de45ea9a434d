"""`fabric-rl rerun`: what is changed since then, and whether a run comes out the same."""

import json
from functools import partial
from types import SimpleNamespace

import pytest
import yaml

from fabric_rl.base.seeding import stream_seed
from fabric_rl.commands.rerun import _differences, _recorded
from fabric_rl.metrics.metrics_csv import read_rows

FLAGS = "--env_id CartPole-v1 --num_envs 2 --num_steps 16 --minibatch_size 16 --update_epochs 1 --accelerator cpu"


@pytest.fixture(scope="module")
def runs(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    words = [*FLAGS.split(), "--total_timesteps", 96, "--runs_dir", folder, "--run_id", "a", "--group", "g"]
    assert forks.wait([forks.start(*words)])[0] == [0]
    return SimpleNamespace(dir=folder, again=partial(again, forks, folder))


def again(forks, folder, *words):
    (status,), out, err = forks.wait([forks.start("rerun", *words, "--runs_dir", folder, program="fabric-rl")])
    return status, out, err


@pytest.mark.slow
def test_a_run_comes_out_the_same(runs):
    status, out, err = runs.again("a")
    assert status == 0, err
    assert "changed since that run\n  nothing\n" in out and "Next:" not in out
    assert out.endswith("\nbit-identical to a: weights after 96 steps and metrics, 3 rows\n")
    settings = [yaml.safe_load((runs.dir / name / "config.yaml").read_text()) for name in ("a", "a-rerun")]
    assert [each.pop("group", None) for each in settings] == ["g", None] and settings[0] == settings[1]
    streams = json.loads((runs.dir / "a/environment.json").read_text())["seeds"]
    assert streams.pop("scheme") == 2 and streams.pop("weights") == 0
    assert streams == {name: [stream_seed(0, name)] for name in ("environments", "actions", "minibatches")}


@pytest.mark.slow
def test_what_differs_is_told(runs):
    """Another version, another commit, another machine; a seed that was edited; the first row that is not the same."""
    about, config = runs.dir / "a/environment.json", runs.dir / "a/config.yaml"
    before, settings = about.read_text(), config.read_text()
    then = json.loads(before)
    then["installed"]["torch"], then["project"]["commit"], then["hardware"]["cores"] = "1.0", "abcdef0", 64
    about.write_text(json.dumps(then))
    config.write_text(settings.replace("seed: 0", "seed: 1"))
    try:
        status, out, err = runs.again("a", "--run_id", "other")
    finally:
        about.write_text(before)
        config.write_text(settings)
    assert status == 1, err
    for told in (
        "installed.torch: 1.0 -> ",
        "code (commit abcdef0 -> ",
        "git checkout abcdef0",
        "config.yaml: edited",
        "hardware.cores: 64 -> ",
    ):
        assert told in out
    assert "not identical to a\n" in out and "weights after 96 steps: 12 of 12 tensors differ by up to " in out
    first = read_rows(runs.dir / "a/metrics.csv")[0]["step"]
    assert f"metrics, 3 rows: from {first} steps on, " in out


def test_the_code_of_fabric_rl_counts_in_a_project_of_ones_own(runs, tmp_path):
    """Its commit of then is not there any more; and which of its files were not committed."""
    about = runs.dir / "a/environment.json"
    before = json.loads(about.read_text())
    own = before["git"]
    try:
        for git, told in (
            ({"commit": "abcdef0"}, "code of fabric-rl (commit abcdef0 -> "),
            ({"changed_files": " M fabric_rl/loop.py\n M notes.md\n"}, "changed: "),
        ):
            then = before | {"git": own | git, "project": before["project"] | {"folder": str(tmp_path)}}
            about.write_text(json.dumps(then))
            lines = list(_differences(runs.dir / "a"))
            found = [line for line in lines if line.startswith("code of fabric-rl")]
            assert len(found) == 1 and told in found[0] and "notes.md" not in found[0]
        assert "fabric_rl/loop.py" in found[0]
    finally:
        about.write_text(json.dumps(before))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "RUN nothing: no such checkpoint, run or milestone"),
        ("empty", "RUN empty has no checkpoints to compare with"),
        ("bare", "RUN bare has no config.yaml, so its settings are unknown"),
    ],
)
def test_bad_input_is_one_line(runs, name, message):
    for folder, files in (("empty", ["config.yaml"]), ("bare", [])):
        (runs.dir / folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        for file in files:
            (runs.dir / folder / file).write_text("seed: 0\n")
    status, _, err = runs.again(name)
    assert status == 2 and err.count("\n") == 1 and message in err


@pytest.mark.parametrize(
    ("forged", "name"),
    [
        ({"project": "abc"}, "project"),
        ({"git": [1]}, "git"),
        ({"earlier": 3}, "earlier"),
        ({"project": {"commit": "x; rm -rf ~"}}, "project.commit"),
    ],
)
def test_what_no_run_has_written_is_named(tmp_path, forged, name):
    file = tmp_path / "environment.json"
    file.write_text(json.dumps(forged))
    with pytest.raises(ValueError, match=rf"environment\.json: {name} cannot have been written by a run"):
        _recorded(file)
