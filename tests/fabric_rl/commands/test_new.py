"""`fabric-rl new`: the folder of a project, whose own tests pass."""

import json
import subprocess
import sys

import pytest

from tests.command import command
from tests.forks import environment


def test_it_makes_a_project_under_its_own_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command("new", "bots/striker") == 0
    assert "cd bots/striker\n  fabric-rl train --config striker.yaml" in capsys.readouterr().out.replace("\\", "/")
    project = tmp_path / "bots" / "striker"
    files = {path.relative_to(project).as_posix(): path for path in project.rglob("*") if path.is_file()}
    assert set(files) == {
        "README.md",
        "striker.yaml",
        "striker.ipynb",
        "striker/__init__.py",
        "striker/agent.py",
        "striker/rewards.py",
        "tests/test_striker.py",
    }
    assert not any("my_bot" in path.read_text(encoding="utf-8") for path in files.values())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my-bot", "my-bot is not a valid name for a Python package; use letters, digits and _"),
        ("class", "class is not a valid name for a Python package"),
        ("json", "json is reserved or used by another Python package; choose another name"),
        ("envs", "envs is reserved or used by another Python package"),
        ("numpy", "numpy is reserved or used by another Python package"),
        ("empty/json", "json is reserved or used by another Python package"),
        ("bots/empty", "empty is reserved or used by another Python package"),
        ("conftest", "conftest is reserved or used by another Python package"),
        ("runs", "runs is reserved or used by another Python package"),
        ("configs", "configs is reserved or used by another Python package"),
        ("__main__", "__main__ is reserved or used by another Python package"),
        ("\ufb01ne", "\ufb01ne is not a valid name for a Python package"),
        ("\uff4a\uff53\uff4f\uff4e", "\uff4a\uff53\uff4f\uff4e is not a valid name for a Python package"),
        ("", ". is not a valid name for a Python package"),
        (".", ". is not a valid name for a Python package"),
        ("full", "full is not empty; choose a new folder"),
    ],
)
def test_what_it_refuses(name, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for taken in ("full", "numpy", "empty"):
        (tmp_path / taken).mkdir()
    (tmp_path / "full" / "file").touch()
    assert command("new", name) == 2
    assert capsys.readouterr().err.startswith(f"fabric-rl new: error: {says}")
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "empty",
        "full",
        "full/file",
        "numpy",
    ]


def test_an_empty_folder_will_do_and_is_quoted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "striker").mkdir()
    assert command("new", "striker") == 0
    assert command("new", "my bots/keeper") == 0
    assert "cd 'my bots/keeper'\n" in capsys.readouterr().out


@pytest.mark.slow
def test_the_tests_and_the_notebook_of_a_project_pass(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("new", "striker") == 0
    cells = json.loads((tmp_path / "striker/striker.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (tmp_path / "striker/notebook.py").write_text(code.replace("50_000", "2_000"), encoding="utf-8")
    for words in (["-m", "pytest", "-q", "-p", "no:cacheprovider"], ["notebook.py"]):
        variables = environment()
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path / "striker", env=variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "steps a car is paid" in done.stdout
