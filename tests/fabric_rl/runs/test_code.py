"""The user's code as a run keeps it: a patch that makes of the commit what was there."""

import json
import subprocess
import sys

import pytest

from fabric_rl import Run
from fabric_rl.runs import provenance as code
from fabric_rl.runs.provenance import commit_of, patch_of


def git(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "agent.py").write_text("lr = 1\n")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="links are for administrators there")
def test_a_link_to_itself_is_no_code(project, tmp_path):
    (project / "loop.yaml").symlink_to("loop.yaml")
    (project / "new.py").write_text("a = 1\n")
    assert "new.py" in patch_of(project, project / "runs")


def test_the_patch_makes_of_the_commit_what_was_there(project, tmp_path):
    (project / "agent.py").write_text("lr = 2\n")
    (project / "more").mkdir()
    files = {
        "more/env.py": "a = 1\r\nb = '\x0c'\nc = 2",
        "ünï.yaml": "é: 1\n",
        "big.py": "x" * 100_001,
        "secret.json": "{}",
    }
    for name, text in files.items():
        (project / name).write_bytes(text.encode())
    (project / "runs/r").mkdir(parents=True)
    (project / "runs/r/config.yaml").write_text("seed: 1\n")
    about = commit_of(project / "more")
    assert (about["folder"], about["commit"]) == (str(project), git(project, "rev-parse", "HEAD").strip())
    assert "agent.py" in about["changed_files"]
    patch = patch_of(project, besides=project / "runs")
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(project), str(copy))
    subprocess.run(["git", "apply"], cwd=copy, input=patch.encode(), check=True)
    paths = [path for path in copy.rglob("*") if path.is_file() and ".git" not in path.parts]
    there = {path.relative_to(copy).as_posix(): path.read_bytes().decode() for path in paths}
    assert there == {"agent.py": "lr = 2\n", "more/env.py": files["more/env.py"], "ünï.yaml": files["ünï.yaml"]}


def test_a_folder_without_git_has_its_sources(tmp_path):
    (tmp_path / "agent.py").write_text("lr = 1\n")
    assert commit_of(tmp_path) == {"folder": str(tmp_path), "commit": None, "branch": None, "changed_files": None}
    assert patch_of(tmp_path, tmp_path / "runs") == "--- /dev/null\n+++ b/agent.py\n@@ -0,0 +1 @@\n+lr = 1\n"


def test_a_long_patch_is_cut(project, monkeypatch):
    monkeypatch.setattr(code, "MOST_BYTES", 200)
    (project / "new.py").write_text("line\n" * 100)
    patch = patch_of(project, project / "runs")
    assert len(patch) < 300 and patch.endswith("git apply does not take it\n")


def test_a_run_keeps_its_code_and_each_start(project, tmp_path, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.setattr("sys.argv", ["train_fabric.py", "--seed", "3"])
    (project / "agent.py").write_text("lr = 2\n")
    run = Run.create(tmp_path / "runs", "r", config="seed: 3\n")
    run.provenance.write("seed: 3\n", {"ranks": 2})
    kept = json.loads((run.dir / "environment.json").read_text())
    assert kept["command"][1:] == ["train_fabric.py", "--seed", "3"] and kept["folder"] == str(project)
    assert kept["ranks"] == 2 and kept["earlier"] == [] and kept["installed"]["torch"] == kept["packages"]["torch"]
    assert kept["hardware"]["cores"] >= 1 and "+lr = 2" in (run.dir / "code.diff").read_text()
    run.release()
    (project / "agent.py").write_text("lr = 3\n")
    monkeypatch.setattr("sys.argv", ["train_fabric.py", "--resume"])
    Run(run.dir).provenance.write("seed: 3\n")
    again = json.loads((run.dir / "environment.json").read_text())
    assert [each["command"] for each in again["earlier"]] == [kept["command"]]
    assert "+lr = 2" in (run.dir / "code.diff").read_text() and "+lr = 3" in (run.dir / "code_2.diff").read_text()


def test_what_runs_and_sweeps_have_written_is_no_code(project, tmp_path):
    for name in ("sweeps/s/study.journal", "sweeps/s/best.yaml", "sweeps/s/runs/r/config.yaml", "old/r/config.yaml"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("a: 1\n")
    (project / "old/r/checkpoints").mkdir()
    (project / "old/r/environment.json").write_text("{}")
    (project / "old/mine.py").write_text("a = 1\n")
    patch = patch_of(project, tmp_path / "runs")
    assert patch.count("+++ ") == 1 and "+++ b/old/mine.py" in patch


def test_sources_differ_by_what_they_are_and_not_by_how_they_are_kept(project, tmp_path):
    """What was an untracked file and a change then is committed now: the same code."""
    runs, first = tmp_path / "runs", git(project, "rev-parse", "HEAD").strip()
    (project / "ü b.py").write_text("a = 1\n")
    (project / "agent.py").write_text("lr = 2\n")
    then = patch_of(project, runs)
    (project / "notes.md").write_text("words\n")
    git(project, "add", ".")
    git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "second")
    assert code.sources_that_differ((then, patch_of(project, runs, first))) == []
    (project / "agent.py").unlink()
    (project / "ü b.py").write_text("a = 2\n")
    assert code.sources_that_differ((then, patch_of(project, runs, first))) == ["agent.py", "ü b.py"]
    assert code.changed_since(project, first) == ["agent.py", "ü b.py"] and code.changed_since(project, "abc") is None
