"""The wheel, built from the sdist and installed: in a project that has packages `agents` and `envs` of its own."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.forks import ROOT, environment

pytestmark = pytest.mark.slow

AGENTS = '''"""The project's own."""

from fabric_rl.agents import PPOLightningAgent


class MyAgent(PPOLightningAgent):
    """Mine."""
'''
ENVS = '''"""The project's own."""

from fabric_rl.envs import GymnasiumEnvs


class MyEnvs(GymnasiumEnvs):
    """Mine."""
'''
ONCE = """
import importlib, pkgutil, sys, fabric_rl, train_fabric
for found in pkgutil.walk_packages(fabric_rl.__path__, "fabric_rl."):
    if not found.name.endswith("__main__") and ".template" not in found.name and ".rlbot" not in found.name:
        importlib.import_module(found.name)
files = {}
for name, module in list(sys.modules.items()):
    if str(getattr(module, "__file__", None)).startswith(fabric_rl.__path__[0]):
        assert files.setdefault(module.__file__, module) is module, name
import agents, envs
print(agents.__name__, envs.__name__, len(files) > 200)
"""
AUTHOR = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
SIZE = ["--total_timesteps", "512", "--num_steps", "32", "--minibatch_size", "64", "--plain", "--accelerator", "cpu"]
SMALL = [*SIZE, "--env.num_arenas", "2"]


def outside():
    """Variables of a shell that knows nothing of the checkout."""
    return {name: value for name, value in environment().items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the sdist, as `python -m build` does it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "would be ignored" not in done.stderr
    return next(folder.glob("*.whl"))


def installed(what, folder):
    """The programs of a new environment that has `what`, and what it needs from this one."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "nt" if os.name == "nt" else "posix_prefix", paths))
    # A line of a path: the .pth files there, such as that of an editable fabric-rl, are not read.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--no-deps", "--no-index", "-q"]
    command += ["--ignore-installed", "--no-build-isolation", *map(str, what)]
    subprocess.run(command, env=outside(), check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


@pytest.fixture(scope="module")
def bin_folder(wheel, tmp_path_factory):
    """Of an environment in a repository that is not that of fabric-rl."""
    folder = tmp_path_factory.mktemp("venv")
    for words in (["init", "-q"], [*AUTHOR, "commit", "-qm", "not of fabric-rl", "--allow-empty"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return installed([wheel], folder)


@pytest.fixture
def project(tmp_path):
    for name, source in (("agents", AGENTS), ("envs", ENVS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
    for words in (["init", "-q"], ["add", "."], [*AUTHOR, "commit", "-qm", "mine"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def call(bin_folder, project):
    def call(*words, program="fabric-rl", status=0, folder=project):
        command = [bin_folder / program, *map(str, words)]
        done = subprocess.run(command, cwd=folder, env=outside(), capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return call


def test_what_is_in_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"fabric_rl", "train_fabric.py", f"fabric_rl-{version('fabric-rl')}.dist-info"}
    configs = {path.name for path in (ROOT / "configs").glob("*.yaml")}
    assert configs == {name.removeprefix("fabric_rl/configs/") for name in names if name.endswith(".yaml")} & configs
    for name in ("agents/py.typed", "configs/demonstrations/cartpole.frd", "template/tests/test_my_bot.py"):
        assert f"fabric_rl/{name}" in names
    sources = [ROOT / name for name in ("agents", "envs", "fabric_rl", "template")]
    modules = {path.relative_to(ROOT).as_posix() for source in sources for path in source.rglob("*.py")}
    assert {name.removeprefix("fabric_rl/") for name in modules} == {
        name.removeprefix("fabric_rl/") for name in names if name.endswith(".py") and "/" in name
    }


def test_every_module_exists_once(call, tmp_path):
    assert call("-c", ONCE, program="python").split() == ["agents", "envs", "True"]  # the project's own
    (tmp_path / "empty").mkdir()
    out = call("-c", ONCE, program="python", folder=tmp_path / "empty")
    assert out.split() == ["fabric_rl.agents", "fabric_rl.envs", "True"]


def test_a_preset_trains_on_two_ranks_and_goes_on(call, project):
    call("train", "--config", "rocket_1v1_quickstart", *SMALL, "--run_id", "quick")
    config = (project / "runs/quick/config.yaml").read_text()
    assert "class_path: fabric_rl.envs.RocketSimPool" in config
    began = json.loads((project / "runs/quick/environment.json").read_text())
    assert began["packages"]["fabric-rl"] == version("fabric-rl") and began["project"]["commit"] is not None
    assert began["git"]["commit"] is None and "--run_id" in began["command"]
    out = call("train", "--run_id", "quick", "--resume", "--total_timesteps", 1024)
    assert "2 ranks on cpu" in out and "resuming run quick after 512 steps" in out
    assert "settings that differ" not in out and re.search(r"env\S*: ", out) is None


def test_the_projects_own_classes_come_first(call, project):
    own = ["--agent", "agents.MyAgent", "--env", "envs.MyEnvs", "--env.env_id", "CartPole-v1", "--env.num_envs", 2]
    call("train", *own, *SIZE, "--run_id", "own")
    config = (project / "runs/own/config.yaml").read_text()
    assert "class_path: agents.MyAgent" in config and "class_path: envs.MyEnvs" in config
    out = call("train", "--agent", "agents.RecurrentPPOAgent", "--agent.sequence_length", 8, *SMALL, "--run_id", "lstm")
    assert "class_path: fabric_rl.agents.RecurrentPPOAgent" in (project / "runs/lstm/config.yaml").read_text()
    assert "there is no class agents.Nope" in call("train", "--agent", "agents.Nope", status=2)
    assert "goal difference per match" in call("evaluate", "lstm", "school_1v1", "--matches", 2, "--minutes", 0.05)
    assert out


def test_a_project_keeps_its_own_names_and_has_those_of_fabric_rl_too(call, project):
    (project / "envs" / "obs.py").write_text("MINE = 1\n")
    (project / "agents" / "__init__.py").unlink()  # a folder of modules
    (project / "agents" / "mine.py").write_text("from agents import PPOLightningAgent\n")
    code = """
import fabric_rl.envs
import agents, envs, envs.obs, envs.rewards
from agents.mine import PPOLightningAgent
from agents.ppo import PPOLightningAgent as same
from envs import RocketSimPool
assert envs.obs.MINE == 1 and envs.rewards is fabric_rl.envs.rewards and same is PPOLightningAgent
assert RocketSimPool is fabric_rl.envs.RocketSimPool and not hasattr(envs, "Nope") and not hasattr(envs, "__all__")
try:
    from agents import Nope
except ImportError as error:
    print(error)
"""
    assert "cannot import name 'Nope' from 'agents'" in call("-c", code, program="python")


def test_workers_are_processes_that_find_both(call, project):
    processes = ["--env", "envs.ProcessPool", "--env.num_workers", 2, "--env.factory", "envs.MyEnvs"]
    call("train", *processes, "--env.factory.env_id", "CartPole-v1", *SIZE, "--agent", "agents.MyAgent")


def test_a_run_of_a_checkout_goes_on_and_back(call, forks, project):
    start = ["--env_id", "CartPole-v1", *SIZE, "--run_id", "cart", "--runs_dir", project / "runs"]
    assert forks.wait([forks.start(*start)])[0] == [0]
    out = call("train", "--run_id", "cart", "--resume", "--total_timesteps", 1024, "--plain")
    assert "resuming run cart after 512 steps" in out and "class_path" not in out and "differ" not in out
    back = ["--run_id", "cart", "--resume", "--total_timesteps", 1536, "--runs_dir", project / "runs"]
    (status,), out, err = forks.wait([forks.start(*back)])
    assert status == 0 and "resuming run cart after 1,024 steps" in out, err


def test_a_bot_for_the_real_game_is_that_of_a_checkout(call, project, tmp_path):
    pytest.importorskip("rlbot")
    (project / "own.py").write_text(
        'from fabric_rl.envs import DefaultObs\n\n\nclass OwnObs(DefaultObs):\n    """Mine."""\n'
    )
    call("train", *SMALL, "--env.obs", "own.OwnObs", "--run_id", "envs.v2", "--agent", "agents.PPOLightningAgent")
    made, checkout = project / "my bot", tmp_path / "checkout" / "my bot"
    assert "fabric-rl flight 'my bot'" in call("export", "envs.v2", "my bot", "--format", "rlbot")
    assert "observations [" in call("bot.py", "--check", program="python", folder=made)
    here = "import sys; sys.path.insert(1, '.'); from fabric_rl.commands.main import main; main(sys.argv[1:])"
    words = ["export", project / "runs/envs.v2", checkout, "--format", "rlbot"]
    variables = environment() | {"PYTHONPATH": str(ROOT)}
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "own.py").write_text((project / "own.py").read_text())
    command = [sys.executable, "-c", here, *map(str, words)]
    done = subprocess.run(command, cwd=tmp_path / "elsewhere", env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def sources(folder):
        files = [
            path for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".txt") or path.name == "bot.json"
        ]
        return {path.relative_to(folder).as_posix(): path.read_text() for path in files}

    assert sources(made) == sources(checkout) and "lib/own.py" in sources(made)


def test_a_new_project_passes_its_tests(call, project):
    call("new", "striker")
    assert "2 passed" in call("-m", "pytest", "-q", program="python", folder=project / "striker")


def test_an_editable_installation_is_the_checkout(tmp_path):
    programs = installed(["-e", ROOT], tmp_path / "venv")
    code = "import agents, envs, fabric_rl.agents as a; print(a is agents, a.__name__, envs.__file__)"
    done = subprocess.run(
        [programs / "python", "-c", code], cwd=tmp_path, env=outside(), capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "agents", str(ROOT / "envs" / "__init__.py")], done.stderr
