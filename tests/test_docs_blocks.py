"""Every code block of README.md and docs/ runs: with fewer steps, in a folder that has what the page speaks of.

Blocks that cannot run here say so in the page's source, in a comment above them: `<!-- not run: why -->`.
"""

import re
import shutil
import time
from importlib.util import find_spec

import pytest
import yaml
from click.testing import CliRunner
from lightning.fabric.cli import _main as launchers
from torch.distributed.run import get_args_parser

from tests.docs_blocks import PAGES, ROOT, Block, blocks, commands, named, perform, python, shortened
from tests.forks import Fork, kill

MOST_NOT_RUN = 26
"""So many blocks may say why they are not run. Every one of them is a promise that nobody checks."""
OTHERS = {"make", "pip", "tensorboard", "fabric", "lightning", "torchrun"}
"""Programs that are not ours; what we say to them is checked, but they are not run."""


def test_blocks_are_found_with_their_markers():
    assert [block.why for block in blocks("README.md") if block.why] == ["it installs; every test needs it"]
    assert sum(len(blocks(page)) for page in PAGES) > 140
    assert {block.language for page in PAGES for block in blocks(page)} <= {"", "python", "sh", "text", "yaml"}


def test_few_blocks_are_not_run():
    told = [f"{page}: {block.why}" for page in PAGES for block in blocks(page) if block.why]
    assert len(told) <= MOST_NOT_RUN, "\n".join(told)


def test_commands_of_a_block():
    block = Block("sh", 'A="-x 1"\nrun $A \\\n  "b c"  # no\n\nsay it | other\n', None)
    assert commands(block) == [["run", "-x", "1", "b c"], ["say", "it"]]
    assert commands(Block("", "$ run it\nits output\n", None)) == [["run", "it"]]


class Page:
    """A page's folder, and its commands as processes there."""

    def __init__(self, forks, folder):
        self.forks, self.folder, self.number = forks, folder, 0
        self.said = folder / ".said"
        self.said.mkdir(exist_ok=True)

    def start(self, words):
        folder = self.said / str(self.number)
        folder.mkdir()
        for name in ("out", "err"):
            (folder / name).touch()
        variables = {"PAGE": str(self.folder), "MPLBACKEND": "agg", "BROWSER": "true", "COLUMNS": "120"}
        pid = self.forks.ask([f"{perform.__module__}:perform", *words], str(folder), variables)
        self.forks.started.append(Fork(pid, folder))
        return self.forks.started[-1]

    def there(self, word):
        """A milestone that is there, for one of a page: its steps are others."""
        milestone = re.fullmatch(r"(runs/\w+/milestones/main)/\d+", word)
        return str(max((self.folder / milestone[1]).iterdir())) if milestone else word

    def run(self, words, statuses=(0,), more=()):
        """One command, to its end; `watch` and `play` serve until Ctrl+C."""
        self.number += 1
        fork = self.start([*shortened([self.there(word) for word in words], self.number), *more])
        if {"watch", "play"} & set(words[:2]):
            began = time.monotonic()
            while "http://" not in fork.out and self.forks.is_running(fork):
                assert time.monotonic() - began < 60, fork.err
                time.sleep(0.02)
            kill(fork.pid, 2)
        (status,), out, err = self.forks.wait([fork])
        assert status in statuses, f"{' '.join(words)}\n{out[-2000:]}{err[-2000:]}"
        return out + err


def needs_packs(words, folder):
    """Whether a command plays training packs: they are part of an extra."""
    files = [folder / word for word in words if word.endswith(".yaml")]
    return "exam" in words or any("TrainingPack" in file.read_text(encoding="utf-8") for file in files if file.exists())


def fewer_arenas(text):
    return re.sub(r"num_envs: \d+", "num_envs: 4", re.sub(r"num_arenas: \d+", "num_arenas: 2", text))


@pytest.fixture(scope="module")
def world(forks, tmp_path_factory):
    """What pages speak of: presets with few arenas, runs, a replay, demonstrations, files that other pages show."""
    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(ROOT / "configs", folder / "configs")
    for path in (folder / "configs").glob("*.yaml"):
        path.write_text(fewer_arenas(path.read_text(encoding="utf-8")))
    shutil.copy(folder / "configs/rocket_1v1.yaml", folder / "my.yaml")
    shutil.copy(ROOT / "tests/fixtures/replays/one_goal.frl", folder / "game.frl")
    for page in PAGES:
        for block in blocks(page):
            if name := named(block):
                (folder / name).write_text(fewer_arenas(block.text), encoding="utf-8")
    for name in ("my_file.py", "my_envs.py"):
        (folder / name).write_text(MY_FILE, encoding="utf-8")
    here = Page(forks, folder)
    for name, preset in (("NAME", "rocket_1v1"), ("first", "rocket_1v1_quickstart")):
        run = ["--config", f"configs/{preset}.yaml", "--milestone_interval", "64", "--run_id", name]
        here.run(["python", "train_fabric.py", *run], more=["--total_timesteps", "128"])
    here.run(["python", "train_fabric.py", "--config", "configs/two_policies.yaml", "--run_id", "TWO"])
    here.run(["python", "train_fabric.py", "--env_id", "CartPole-v1", "--num_envs", "4", "--run_id", "CARTPOLE"])
    here.run(["fabric-rl", "demos", "record", "chaser", "chaser.frd"])
    for seed in ("1", "2"):
        one = folder / f"runs/cartpole_seed{seed}"
        run = ["--group", "cartpole", "--seed", seed, "--run_id", one.name]
        here.run(
            ["python", "train_fabric.py", "--config", "configs/cartpole.yaml", *run], more=["--total_timesteps", "300"]
        )
        low = shutil.copytree(one, one.with_name(f"low_seed{seed}")) / "config.yaml"
        low.write_text(low.read_text(encoding="utf-8").replace("group: cartpole", "group: low"), encoding="utf-8")
    milestone = max((folder / "runs/NAME/milestones/main").iterdir())
    shutil.copytree(milestone, folder / "runs/NAME/best")
    for name in ("gae0", "gae1", "gae2", "vtrace0", "vtrace1", "vtrace2"):
        shutil.copytree(one, one.with_name(name))
    for name in ("OTHER", "RUN", "A", "B", "other"):
        shutil.copytree(folder / "runs/NAME", folder / "runs" / name)
    here.run(["fabric-rl", "export", "NAME", "downloads/their_bot"])
    shutil.rmtree(here.said)
    return folder


MY_FILE = """
import gymnasium

from envs import GymnasiumEnvs


class MyEnv(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 1, (3,)), gymnasium.spaces.Discrete(2)

    def __init__(self, size=3):
        self.size = size

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        return self.observation_space.sample() * 0, 1.0, False, False, {}


class MyVectorEnv(GymnasiumEnvs):
    def __init__(self, seed: int = 0):
        super().__init__("CartPole-v1", 4, seed)
"""


def not_ours(words):
    """Checks what a page says to a program that is not run here."""
    program = words[0]
    if program == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M)
    elif program == "pip":
        extras = re.findall(r"\[([\w,]+)\]", " ".join(words))
        project = (ROOT / "pyproject.toml").read_text()
        assert all(re.search(rf"^{extra} = \[", project, re.M) for some in extras for extra in some.split(","))
    elif program in ("fabric", "lightning", "torchrun"):
        script = words.index("train_fabric.py")
        if program == "torchrun":
            get_args_parser().parse_args(words[1 : script + 1])
        else:
            flags = words[2 if program == "fabric" else 3 : script]
            assert CliRunner().invoke(launchers, ["run", *flags, "--help"]).exit_code == 0
        return ["python", *words[script:]]
    return None


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, world, forks, tmp_path):
    folder = tmp_path / "page"
    shutil.copytree(world, folder)
    here, code = Page(forks, folder), []
    for block in blocks(page):
        if block.why:
            continue
        if block.language == "python":
            code.append(python(block.text))
        elif block.language == "yaml" and not named(block):
            settings = fewer_arenas(block.text)
            assert isinstance(yaml.safe_load(settings), dict)
            (folder / "block.yaml").write_text(settings, encoding="utf-8")
            here.run(
                [
                    "python",
                    "train_fabric.py",
                    "--config",
                    "configs/rocket_1v1.yaml",
                    "--config",
                    "block.yaml",
                    "--print_config",
                ]
            )
        elif block.language != "yaml":
            here.folder = folder
            for words in commands(block):
                if words[0] == "cd":
                    here.folder = here.folder / words[1]
                    continue
                words = not_ours(words) if words[0] in OTHERS or words[1:3] == ["-m", "pip"] else words
                if words is None or (needs_packs(words, folder) and not find_spec("rlgym_tools")):
                    continue
                wrong = re.search(r"^\S+: error: .*$", block.text, re.M)
                statuses = (2,) if wrong else (0, 1) if "audit-rewards" in words else (0,)
                said = here.run(words, statuses)
                assert wrong is None or wrong[0] in said
    if any(code):
        (folder / "blocks_of_page.py").write_text("\n".join(code), encoding="utf-8")
        here.run(["python", "blocks_of_page.py"])
