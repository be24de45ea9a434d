"""The folder of a run: how it is made and taken, what it keeps of its beginning, and the user's code."""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
import yaml

from fabric_rl import Run
from fabric_rl.base.files import write_text
from fabric_rl.metrics.loggers import MetricsFile
from fabric_rl.runs import checkpoint
from fabric_rl.runs import provenance as code
from fabric_rl.runs.provenance import Weights, config_digest, git_patch, git_state
from fabric_rl.runs.records import checkpoint_name, flat_settings, modules_of
from fabric_rl.runs.start_or_resume import describe_env_differences, load_weights
from fabric_rl.types import CheckpointError

CONFIG = "seed: 3\ninitialize_from: null\ninference: false\nagent:\n  initialize_from: 7\n"


def half_made(folder, *files):
    """What a kill leaves before `checkpoints` is made, the last thing."""
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_text("cut sho")
    return folder


@pytest.mark.parametrize(
    "files", [(), (".lock",), (".lock", "config.yaml.tmp", "environment.json", "initial.ckpt.tmp")]
)
def test_a_folder_whose_start_was_killed_is_taken_by_the_next_start(tmp_path, files):
    folder = half_made(tmp_path / "r", *files)
    with pytest.raises(FileNotFoundError, match=r"^--run_id r: the run was killed before it began; start it"):
        Run.find(tmp_path, "r")
    assert Run.create(tmp_path, "r", config=CONFIG).dir == folder
    assert Run.find(tmp_path, "r").provenance.config.read_text() == CONFIG


def test_a_folder_that_holds_something_else_is_not_taken(tmp_path):
    half_made(tmp_path / "r", "notes.txt")
    with pytest.raises(FileExistsError, match=r"--run_id r: .* already exists"):
        Run.create(tmp_path, "r")
    assert (tmp_path / "r/notes.txt").exists()


def test_a_folder_that_another_process_makes_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr("fabric_rl.runs.folder._PATIENCE", 0.1)
    other = Run(half_made(tmp_path / "r"))
    other.claim()
    with pytest.raises(BlockingIOError, match="another process is using"):
        Run.create(tmp_path, "r")
    assert other.dir.is_dir()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_folder_that_cannot_be_written_is_said_before_anything_happens(tmp_path):
    run = Run.create(tmp_path, "r")
    run.check_writable()
    run.checkpoints.chmod(0o555)
    root = os.geteuid() == 0  # who may write anywhere
    try:
        if root:
            os.seteuid(65534)
        with pytest.raises(OSError, match=r"^--resume: cannot write to .*; make it writable, or start a new run"):
            run.check_writable()
    finally:
        if root:
            os.seteuid(0)
        run.checkpoints.chmod(0o755)


def test_a_file_is_written_beside_and_then_renamed(tmp_path, monkeypatch):
    """What a link points to stays, and a name that somebody has taken is not written through."""
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "a.json").symlink_to("victim")
    (tmp_path / "taken").mkdir()
    write_text(tmp_path / "a.json", "new")
    with pytest.raises(OSError, match=r"directory: '.*taken'$"):
        write_text(tmp_path / "taken", "new")
    monkeypatch.setattr("fabric_rl.base.files.secrets.token_hex", lambda size: "known")
    (tmp_path / "a.json.known.tmp").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "a.json", "newer")
    assert ((tmp_path / "victim").read_text(), (tmp_path / "a.json").read_text()) == ("kept", "new")
    assert not (tmp_path / "a.json").is_symlink()


def test_nothing_temporary_stays_where_the_disk_is_full(tmp_path, file_limit, capsys):
    write_text(tmp_path / "config.yaml", "old")
    file_limit(10)
    with pytest.raises(OSError):
        write_text(tmp_path / "config.yaml", "n" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    metrics = MetricsFile(tmp_path)
    metrics.log_metrics({"a": 1.0}, 1)
    assert "cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


@pytest.fixture
def file_limit():
    """Lets no file grow over so many bytes: the disk is full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


WEIGHTS = Weights(Path("runs/x/step.ckpt"), {"w": torch.tensor([1.5, -2.0])})


def texts(run):
    return {path.name: path.read_text() for path in run.dir.iterdir() if path.suffix in (".yaml", ".json")}


BAD_NAMES = {
    **dict.fromkeys(["", "  "], "--run_id is empty; set a name"),
    **dict.fromkeys(
        ["a:b", "what?", "-x", "n" * 101, "tab\there", "dot.", "a\u2028b"], "must not begin with a dash, be longer"
    ),
    **dict.fromkeys(["CON", "nul", "Aux.txt", "com1", "LPT9.tar.gz"], "is a device name on Windows"),
    "a\u202eb": r"^--run_id a\\u202eb must not",  # invisible: told, and not shown
}


@pytest.mark.parametrize(("name", "line"), BAD_NAMES.items())
def test_a_name_that_is_none_somewhere_is_refused(tmp_path, name, line):
    with pytest.raises(ValueError, match=line):
        Run.create(tmp_path, name)
    assert list(tmp_path.iterdir()) == []
    assert Run.create(tmp_path, "CCON").dir.is_dir()


def test_what_is_set_aside_stays_beside_what_was(tmp_path):
    run, state = Run.create(tmp_path, "r"), {"steps": 100, "x": 1}
    for _ in range(3):
        checkpoint.write(run.checkpoints / checkpoint_name(200), {"steps": 200})
        good = checkpoint.write(run.checkpoints / checkpoint_name(100), state)
        assert good is None and run.rewind_to(run.checkpoints / checkpoint_name(100), state) == 1
        run.write_summary({"total_steps": 200})
    assert not list((tmp_path / "r/set_aside").glob("*-3*"))  # two summaries were newer
    run.write_summary({"total_steps": 100})
    run.rewind_to(run.checkpoints / checkpoint_name(100), state)
    assert run.read_summary() == {"total_steps": 100}
    names = sorted(path.name for path in (run.checkpoints / "set_aside").iterdir())
    assert names == [f"step_000000000200{number}.ckpt" for number in ("-2", "-3", "")]


def test_a_new_run_keeps_its_settings_as_they_are(tmp_path):
    run = Run.create(tmp_path, "r")
    assert run.provenance.weights() is None
    run.provenance.write(CONFIG)
    assert run.provenance.config.read_text() == CONFIG
    assert set(texts(run)) == {"config.yaml", "environment.json"}


def test_a_run_keeps_a_copy_of_the_weights_it_begins_with(tmp_path):
    run = Run.create(tmp_path, "r [1] #2", weights=WEIGHTS)
    copy = run.dir / "initial.ckpt"
    run.provenance.write("seed: 3")  # without a word about weights
    assert yaml.safe_load(run.provenance.config.read_text())["initialize_from"] == str(copy)
    run.provenance.write(CONFIG)
    assert run.provenance.changed_settings(CONFIG.replace("3", "4")) == ["seed: 3 -> 4"]  # how it began is no setting
    expected = {"seed": 3, "initialize_from": str(copy), "inference": False, "agent": {"initialize_from": 7}}
    assert yaml.safe_load(run.provenance.config.read_text()) == expected
    kept = Run(run.dir).provenance.weights()
    assert kept.path == copy and kept.agent["w"].tolist() == [1.5, -2.0]
    assert load_weights(copy).agent["w"].tolist() == [1.5, -2.0]
    assert json.loads((run.dir / "weights.json").read_text())["from"] == str(WEIGHTS.path.absolute())


def test_a_run_that_plays_keeps_what_it_plays_with(tmp_path):
    weights = Weights(WEIGHTS.path, WEIGHTS.agent, inference=True, deterministic=True)
    run = Run.create(tmp_path, "r", weights=weights)
    run.provenance.write(CONFIG)
    settings = yaml.safe_load(run.provenance.config.read_text())
    assert settings["deterministic"] is True
    assert (settings["inference"], settings["initialize_from"]) == (True, str(run.dir / "initial.ckpt"))
    with pytest.raises(
        CheckpointError,
        match=r"^--resume: run r only played without learning; .*--initialize_from .*initial.ckpt --inference$",
    ):
        run.provenance.weights()


def test_damaged_weights_are_never_replaced_by_random_ones(tmp_path):
    run = Run.create(tmp_path, "r", weights=WEIGHTS)
    copy = run.dir / "initial.ckpt"
    copy.write_bytes(copy.read_bytes()[:-1])
    with pytest.raises(
        CheckpointError, match=r"no checkpoint yet, and checkpoint .*; start it again with --run_id r --fo"
    ):
        run.provenance.weights()
    copy.unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint yet, and checkpoint .*No such file"):
        run.provenance.weights()
    (run.dir / "weights.json").unlink()
    copy.mkdir()  # something else of that name
    with pytest.raises(CheckpointError, match="start it again"):
        run.provenance.weights()


def test_what_is_lost_is_written_again(tmp_path):
    run = Run.create(tmp_path, "r", weights=WEIGHTS)
    assert set(texts(run)) == {"weights.json", "environment.json"}  # the settings are not known
    run.provenance.write(CONFIG)
    before = texts(run)
    assert len(before) == 3
    run.provenance.config.unlink()
    (run.dir / "environment.json").write_text("edited")
    run.provenance.rewrite_missing()
    assert texts(run) == before | {"environment.json": "edited"}
    shutil.rmtree(run.dir)
    run.provenance.rewrite_missing()
    lost = str(run.dir / "initial.ckpt")
    # The copy is lost with the folder: the settings name where it was from.
    config = before["config.yaml"].replace(lost, str(WEIGHTS.path.absolute()))
    digests = config_digest(before["config.yaml"]), config_digest(config)
    assert texts(run) == {each: before[each].replace(*digests) for each in before} | {"config.yaml": config}


def test_a_folder_that_cannot_be_begun_is_removed_and_the_old_run_comes_back(tmp_path):
    old = Run.create(tmp_path, "r")
    (old.checkpoints / "kept").write_text("of worth")
    old.release()
    broken = Weights(WEIGHTS.path, {"w": object()})
    with pytest.raises(TypeError, match="cannot be loaded without executing"):
        Run.create(tmp_path, "r", force=True, weights=broken)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert (old.checkpoints / "kept").read_text() == "of worth"


def test_parts_that_come_and_go_are_told_as_such(tmp_path):
    with_parts = "sampling: {class_path: PFSPHard, init_args: {power: 2.0}}\ncallbacks: [{class_path: Video}]\n"
    without = "sampling: {class_path: Uniform}\ncallbacks: []\n"
    run = Run.create(tmp_path, "r", config=with_parts)
    lines = ["sampling.class_path: PFSPHard -> Uniform", "sampling.power: 2.0 -> gone"]
    assert run.provenance.changed_settings(without) == [*lines, "callbacks.1.class_path: Video -> gone"]
    run.provenance.write(without)
    lines = ["sampling.class_path: Uniform -> PFSPHard", "sampling.power: None -> 2.0"]
    assert sorted(run.provenance.changed_settings(with_parts)) == ["callbacks.1.class_path: None -> Video", *lines]
    run.provenance.write("callbacks: null\n")
    assert run.provenance.changed_settings("callbacks: []\n") == ["callbacks: None -> []"]


def test_settings_that_came_later_have_not_changed(tmp_path):
    """Those that were left open and are given now have."""
    run = Run.create(tmp_path, "r", config="seed: 1\nprecision: 32-true\n")
    new = "seed: 2\nprecision: 32-true\nexact_resume: false\nestimator:\n  class_path: fabric_rl.GAE\nnum_threads: 2\n"
    assert run.provenance.changed_settings(new) == ["seed: 1 -> 2"]
    changed = run.provenance.changed_settings("seed: 1\nprecision: 32-true\nexact_resume: true\nminibatch_size: 64\n")
    assert changed == ["exact_resume: None -> True", "minibatch_size: None -> 64"]


def pool(**settings):
    return {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": 8, "team_size": 1, "obs": None} | settings}


def obs(name, **settings):
    return {"class_path": f"envs.{name}", "init_args": settings}


IN_PROCESSES = {"class_path": "envs.ProcessPool", "init_args": {"factory": pool(team_size=2)}}
ADVANCED = pool(obs=obs("AdvancedObs", zero_padding=2))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (pool(num_arenas=64, obs=obs("AdvancedObs", zero_padding=2, came_later=1)), ""),
        (pool(obs=obs("DefaultObs", zero_padding=3)), "--env.obs envs.AdvancedObs (yours: envs.DefaultObs)"),
        (pool(obs=obs("AdvancedObs", zero_padding=3)), "--env.obs.zero_padding 2 (yours: 3)"),
        (IN_PROCESSES, "--env.team_size 1 (yours: 2), --env.obs envs.AdvancedObs (yours: the default)"),
        ({"class_path": "envs.GymnasiumEnvs"}, "--env envs.RocketSimPool (yours: envs.GymnasiumEnvs)"),
    ],
)
def test_what_gives_an_environment_other_spaces_is_told(own, said):
    assert describe_env_differences(flat_settings({"env": ADVANCED}), flat_settings({"env": own})) == said


def test_a_task_by_its_name_is_another_world():
    cartpole, acrobot = ({"env": None, "env_id": name} for name in ("CartPole-v1", "Acrobot-v1"))
    assert describe_env_differences(cartpole, acrobot) == "--env_id CartPole-v1 (yours: Acrobot-v1)"
    assert describe_env_differences(cartpole, cartpole) == ""


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
    assert "new.py" in git_patch(project, project / "runs")


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
    about = git_state(project / "more")
    assert (about["folder"], about["commit"]) == (str(project), git(project, "rev-parse", "HEAD").strip())
    assert "agent.py" in about["changed_files"]
    patch = git_patch(project, besides=project / "runs")
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(project), str(copy))
    subprocess.run(["git", "apply"], cwd=copy, input=patch.encode(), check=True)
    paths = [path for path in copy.rglob("*") if path.is_file() and ".git" not in path.parts]
    there = {path.relative_to(copy).as_posix(): path.read_bytes().decode() for path in paths}
    assert there == {"agent.py": "lr = 2\n", "more/env.py": files["more/env.py"], "ünï.yaml": files["ünï.yaml"]}


@pytest.mark.parametrize("setting", ["diff.noprefix", "diff.mnemonicPrefix"])
def test_a_patch_applies_with_any_settings_and_beside_changed_pictures(project, tmp_path, setting):
    (project / "picture.png").write_bytes(b"\0\1")
    git(project, "add", ".")
    git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "picture")
    git(project, "config", setting, "true")
    (project / "picture.png").write_bytes(b"\0\2")
    (project / "agent.py").write_text("lr = 2\n")
    patch, copy = git_patch(project, project / "runs"), tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(project), str(copy))
    subprocess.run(["git", "apply"], cwd=copy, input=patch.encode(), check=True)
    assert (copy / "agent.py").read_text() == "lr = 2\n" and (copy / "picture.png").read_bytes() == b"\0\1"
    assert code.differing_sources((patch, "")) == ["agent.py"]


def test_a_repository_without_a_commit_has_its_sources_staged_or_not(tmp_path):
    (tmp_path / "agent.py").write_text("lr = 1\n")
    (tmp_path / "env.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "agent.py")
    patch = git_patch(tmp_path, tmp_path / "runs")
    assert "+++ b/agent.py" in patch and "+++ b/env.py" in patch


def test_a_folder_without_git_has_its_sources(tmp_path):
    (tmp_path / "agent.py").write_text("lr = 1\n")
    assert git_state(tmp_path) == {"folder": str(tmp_path), "commit": None, "branch": None, "changed_files": None}
    assert git_patch(tmp_path, tmp_path / "runs") == "--- /dev/null\n+++ b/agent.py\n@@ -0,0 +1 @@\n+lr = 1\n"


def test_a_long_patch_is_cut(project, monkeypatch):
    monkeypatch.setattr(code, "MOST_BYTES", 200)
    (project / "new.py").write_text("line\n" * 100)
    patch = git_patch(project, project / "runs")
    assert len(patch) < 300 and patch.endswith("git apply will not accept it\n")


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
    patch = git_patch(project, tmp_path / "runs")
    assert patch.count("+++ ") == 1 and "+++ b/old/mine.py" in patch


def test_sources_differ_by_what_they_are_and_not_by_how_they_are_kept(project, tmp_path):
    """What was an untracked file and a change then is committed now: the same code."""
    runs, first = tmp_path / "runs", git(project, "rev-parse", "HEAD").strip()
    (project / "ü b.py").write_text("a = 1\n")
    (project / "agent.py").write_text("lr = 2\n")
    then = git_patch(project, runs)
    (project / "notes.md").write_text("words\n")
    git(project, "add", ".")
    git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "second")
    assert code.differing_sources((then, git_patch(project, runs, first))) == []
    (project / "agent.py").unlink()
    (project / "ü b.py").write_text("a = 2\n")
    assert code.differing_sources((then, git_patch(project, runs, first))) == ["agent.py", "ü b.py"]
    assert (
        code.files_changed_since(project, first) == ["agent.py", "ü b.py"]
        and code.files_changed_since(project, "abc") is None
    )


@pytest.mark.parametrize(
    "modules", [[], {"x": 3}, {"x": {"file": "/dev/zero"}}, {"x": {"file": "\0"}}, {"x": {"file": "\ud800"}}, {"x": {}}]
)
@pytest.mark.parametrize("earlier", [None, 3, [3], [{"modules": 3}]])
def test_forged_modules_are_no_changes(tmp_path, modules, earlier):
    (tmp_path / "environment.json").write_text(json.dumps({"modules": modules, "earlier": earlier}))
    assert Run(tmp_path).provenance.changed_modules() == []


def test_own_modules_are_those_of_the_user(tmp_path, monkeypatch):
    """Neither Python's, nor installed ones, nor fabric-rl's; packages, too; and edits are noticed."""
    package = tmp_path / "package_of_mine"
    package.mkdir()
    for path in (tmp_path / "module_of_mine.py", package / "__init__.py", package / "part.py"):
        path.write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import_module("module_of_mine"), import_module("package_of_mine.part")
    found = code.own_modules()
    assert {"module_of_mine", "package_of_mine", "package_of_mine.part"} <= found.keys()
    names = {name.partition(".")[0] for name in found}
    assert not names & {"json", "numpy", "torch", "fabric_rl", "agents", "envs", "pytest"}
    (tmp_path / "environment.json").write_text(json.dumps({"modules": found}))
    provenance = Run(tmp_path).provenance
    assert provenance.changed_modules() == []
    (package / "part.py").write_text("x = 2\n")
    (tmp_path / "module_of_mine.py").unlink()  # unknown, and so no change
    assert provenance.changed_modules() == ["package_of_mine.part"]


STARTS = [(0, "a"), (1024, "b"), (512, "a"), (512, "c")]


def test_starts_whose_steps_were_undone_do_not_count(tmp_path):
    """Trained with a, resumed with b, then resumed with a from a checkpoint before b: only a remains."""
    starts = [{"steps": at, "modules": {"x": {"file": "x.py", "sha256": code}}} for at, code in STARTS]
    for count, versions in enumerate((["a"], ["a", "b"], ["a"], ["a", "c"]), 1):
        *earlier, last = starts[:count]
        (tmp_path / "environment.json").write_text(json.dumps(last | {"earlier": earlier}))
        assert modules_of(tmp_path) == {"x": ("x.py", versions)}


def test_what_torch_compiles_is_not_the_users(tmp_path, monkeypatch):
    """torch.compile imports Python files from a folder for temporary files, with names of parts of torch."""
    path = tmp_path / "made.py"
    path.write_text("x = 1\n")
    for name in ("torch.made", "made"):
        spec = spec_from_file_location(name, path)
        monkeypatch.setitem(sys.modules, name, module_from_spec(spec))
    assert [name for name, module in code.own_modules().items() if module["file"] == str(path)] == ["made"]
