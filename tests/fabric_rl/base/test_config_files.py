"""Configurations of runs, which may be a stranger's."""

import json
from itertools import pairwise

import pytest

from fabric_rl.base.config_files import refuse_code_beside


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A run in a folder of downloads, with a module in it, one beside it, and the user's own."""
    folder = tmp_path / "downloads" / "their-bot"
    folder.mkdir(parents=True)
    for file in (folder / "evil.py", folder.parent / "beside.py", tmp_path / "mine.py", folder / "config.yaml"):
        file.touch()
    monkeypatch.chdir(tmp_path)
    return folder / "config.yaml"


@pytest.mark.parametrize(
    "name",
    [
        "downloads.their-bot.evil.Agent",
        "downloads.beside.Agent",
        "fabric_rl.downloads.beside.Agent",
        "downloads.beside:Env-v0",
        json.dumps({"class_path": "downloads.beside.Agent"}),
        json.dumps(json.dumps({"class_path": "downloads.beside.Agent"})).replace("downloads", "\\x64ownloads"),
    ],
)
@pytest.mark.parametrize("place", [lambda name: name, lambda name: {"a": [{"b": name}]}, lambda name: {name: 1}])
def test_code_in_the_folder_that_holds_a_run_is_refused(config, name, place):
    with pytest.raises(ValueError, match=r"config\.yaml: (fabric_rl\.)?downloads\..* is not imported\. If it is yours"):
        refuse_code_beside(config, place(name))


def test_other_texts_are_left_alone(config):
    loop = [
        "agents.PPOLightningAgent",
        "mine.Agent",
        "downloads.other.Agent",
        "downloads/their-bot",
        "a.downloads.beside.B",
    ]
    loop.append(loop)
    refuse_code_beside(config, {"a": loop, "b": "downloads.beside", "c": "{not: [yaml", "d": 3})
    bomb = "\n".join(
        f"{name}: &{name} {{<<: [{', '.join(['*' + before] * 9)}], b: {before}}}"
        for before, name in pairwise("abcdefghi")
    )
    refuse_code_beside(config, f"a: &a {{x: 1}}\n{bomb}")
    refuse_code_beside(config.parents[1] / "config.yaml", "their-bot.evil.Agent")
