"""The rules of the architecture, checked on the source of every module, and on snippets that break them."""

import ast
import functools
import graphlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agents", "envs", "fabric_rl")
OUR_OWN = {*PACKAGES, "train_fabric", "notebooks", "benchmarks", "tests"}

# What each package may import besides the standard library and itself.
ENVS_MAY_IMPORT = {"ale_py", "imageio_ffmpeg", "numpy", "gymnasium", "rlbot", "rlgym", "rlgym_tools", "RocketSim"}
PLOTS = Path("envs/replays/plots.py")  # the one that may import matplotlib, when it is asked for Axes
AGENTS_MAY_IMPORT = {"torch", "lightning", "numpy", "gymnasium"}
COMMANDS = Path("fabric_rl/commands")  # a roof: nobody imports it
# Rooms of fabric_rl that may import agents and envs.
WITH_ROCKET_LEAGUE = {COMMANDS, *map(Path, ("fabric_rl/evaluation", "fabric_rl/rlbot", "fabric_rl/sweeps"))}
# The contracts and pure maths; a new loss file is added here.
AGENTS_MAY_IMPORT_FROM_FABRIC_RL = {
    "fabric_rl.base",
    "fabric_rl.types",
    "fabric_rl.learning",
    "fabric_rl.schedules",
    "fabric_rl.sac.loss",
}
MOST_LINES, MOST_FLAT_FILES = 600, 10


def parsed(file: Path) -> ast.Module:
    return parsed_source(file.read_text(encoding="utf-8"))


parsed_source = functools.cache(ast.parse)


def imported_names(file: Path, root: Path, when_running: bool = False) -> list[tuple[int, str]]:
    """Every name that a module imports anywhere, absolute, as (line, dotted name).

    `from a import b` counts as `a.b`, whether b is a module or not; `import_module` and `__import__` count when they
    are called with a literal. `when_running` leaves out what only type checkers import.
    """
    package = list(file.relative_to(root).parent.parts)
    found = []
    tree = parsed(file)
    left_out = only_for_types(tree) if when_running else set()
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.append((node.lineno, node.args[0].value))
    return found


def only_for_types(tree: ast.Module) -> set[ast.AST]:
    """Everything below an `if TYPE_CHECKING:`."""
    guards = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and "TYPE_CHECKING" in (getattr(node.test, "id", ""), getattr(node.test, "attr", ""))
    ]
    return {inner for guard in guards for statement in guard.body for inner in ast.walk(statement)}


def file_of(name: str, root: Path) -> Path | None:
    """The file of the project that defines a dotted name, None for a name from elsewhere."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = root.joinpath(*parts[:end])
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def circle(root: Path) -> list[str]:
    """Files of the packages that import one another in a circle, the first one again at the end; empty without one.

    A file imports the files that define the names it asks for, in a function, too, and with them the `__init__.py` of
    every package on the way that it does not lie in itself. Without a circle any module can be the first one that a
    process imports.
    """
    graph = {}
    for file in (file for package in PACKAGES for file in (root / package).rglob("*.py")):
        needed = {file_of(name, root) for _, name in imported_names(file, root, when_running=True)} - {None}
        entered = {folder for other in needed for folder in other.parents}.difference(file.parents)
        needed |= {init for folder in entered if (init := folder / "__init__.py").is_file()}
        graph[file] = needed - {file}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [file.relative_to(root).as_posix() for file in reversed(error.args[1])]
    return []


def imports_of_commands(root: Path, package: str) -> list[str]:
    """Who imports a command or has the name of its module in a string; commands may import each other."""
    commands, found = ".".join(COMMANDS.parts), []
    for file in sorted((root / package).rglob("*.py")):
        where = file.relative_to(root)
        if COMMANDS in where.parents:
            continue
        tree = parsed(file)
        strings = [(node.lineno, node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        for line, name in [*imported_names(file, root), *strings]:
            if isinstance(name, str) and (name == commands or name.startswith(f"{commands}.")):
                found.append(f"{where.as_posix()}:{line}: {name}")
    return found


def size_violations(root: Path, name: str) -> list[str]:
    """Long files, and too many files side by side at the top of a package."""
    path = root / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    found = [
        f"{file.relative_to(root).as_posix()}: {lines} lines" for file, lines in lengths.items() if lines > MOST_LINES
    ]
    flat = len(list(path.glob("*.py")))
    return [*found, f"{name}: {flat} files lie flat"] if flat > MOST_FLAT_FILES else found


def may_import(package: str, name: str) -> bool:
    """Whether a module of `package` may import the absolute dotted `name`."""
    top = name.partition(".")[0]
    if top == package or top in sys.stdlib_module_names:
        return True
    if package == "fabric_rl":
        return top not in OUR_OWN
    if package == "envs":
        return top in ENVS_MAY_IMPORT or name.startswith("fabric_rl.base.")
    if top == "fabric_rl":
        return any(name == allowed or name.startswith(f"{allowed}.") for allowed in AGENTS_MAY_IMPORT_FROM_FABRIC_RL)
    return top in AGENTS_MAY_IMPORT


def import_violations(root: Path) -> list[str]:
    return [
        f"{file.relative_to(root).as_posix()}:{line}: {package} must not import {name}"
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
        if WITH_ROCKET_LEAGUE.isdisjoint(file.relative_to(root).parents)
        for line, name in imported_names(file, root)
        if not may_import(package, name)
        and not (file.relative_to(root) == PLOTS and name.partition(".")[0] == "matplotlib")
    ]


def form_violations(root: Path) -> list[str]:
    """Files called utils.py and bare excepts, in every Python file of the project's own folders."""
    found = []
    files = [*root.glob("*.py"), *(file for folder in sorted(OUR_OWN) for file in (root / folder).rglob("*.py"))]
    for file in sorted(files):
        where = file.relative_to(root).as_posix()
        if file.name == "utils.py":
            found.append(f"{where}: name the file after its one purpose")
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                found.append(f"{where}:{node.lineno}: bare except")
    return found


def test_packages_keep_the_import_directions():
    assert all(any((ROOT / package).rglob("*.py")) for package in PACKAGES)
    assert import_violations(ROOT) == []


def test_no_files_import_one_another_in_a_circle():
    assert circle(ROOT) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_nobody_imports_a_command(package):
    assert imports_of_commands(ROOT, package) == []


@pytest.mark.parametrize("name", [*PACKAGES, "train_fabric.py"])
def test_files_are_short_and_folders_are_rooms(name):
    assert size_violations(ROOT, name) == []


def test_no_utils_file_and_no_bare_except():
    assert form_violations(ROOT) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("envs/a.py", "import torch"),
        ("envs/a.py", "import torch.nn as nn"),
        ("envs/a.py", "from lightning.fabric import Fabric"),
        ("envs/a.py", "def f():\n    import fabric_rl.types"),
        ("envs/a.py", "from agents import PPOLightningAgent"),
        ("envs/a.py", "from .. import agents"),
        ("envs/sub/a.py", "from ...fabric_rl import types"),
        ("envs/a.py", "if TYPE_CHECKING:\n    from torch import Tensor"),
        ("envs/a.py", "import importlib\nimportlib.import_module('torch')"),
        ("envs/a.py", "__import__('torch')"),
        ("envs/a.py", "import numpy, torch"),
        ("envs/a.py", "import pandas"),
        ("envs/a.py", "from rich.table import Table"),
        ("envs/a.py", "importlib.import_module('matplotlib.figure')"),
        ("envs/replays/plots.py", "import matplotlib\nimport torch"),
        ("agents/a.py", "import envs"),
        ("agents/a.py", "from envs.obs import DefaultObs"),
        ("agents/a.py", "from ..envs import obs"),
        ("agents/a.py", "import fabric_rl"),
        ("agents/a.py", "from fabric_rl import *"),
        ("agents/a.py", "from fabric_rl import ppo_loss"),
        ("agents/a.py", "from fabric_rl.loop import train"),
        ("agents/a.py", "from fabric_rl.learning_other import x"),
        ("agents/a.py", "import train_fabric"),
        ("agents/a.py", "import rlgym"),
        ("fabric_rl/a.py", "import agents"),
        ("fabric_rl/a.py", "from envs import RocketSimPool"),
        ("fabric_rl/a.py", "try:\n    from ..agents.ppo import x\nexcept ImportError:\n    pass"),
        ("fabric_rl/a.py", "from benchmarks import pool"),
        ("fabric_rl/analysis/a.py", "from envs import RocketSimPool"),
    ],
)
def test_checker_finds_a_forbidden_import(tmp_path, file, source):
    write(tmp_path, file, source)
    assert len(import_violations(tmp_path)) == 1


def test_checker_says_where_and_what(tmp_path):
    write(tmp_path, "envs/sub/a.py", "import os\n\ndef f():\n    from ...fabric_rl import types")
    assert import_violations(tmp_path) == ["envs/sub/a.py:4: envs must not import fabric_rl.types"]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("envs/a.py", "import os.path\nimport numpy as np\nfrom numpy.typing import NDArray\nimport gymnasium.vector"),
        (
            "envs/a.py",
            "import RocketSim\nfrom rlgym.api import Reward\nfrom rlgym_tools import x",
        ),
        ("envs/replays/plots.py", "importlib.import_module('matplotlib.pyplot')"),
        ("envs/sub/a.py", "from . import b\nfrom .b import c\nfrom ..obs import DefaultObs\nfrom envs.obs import x"),
        ("agents/a.py", "import torch\nfrom lightning import LightningModule\nimport gymnasium\nimport numpy"),
        (
            "agents/a.py",
            "from fabric_rl.types import Agent\nfrom fabric_rl import types\nimport fabric_rl.learning.ppo",
        ),
        (
            "agents/a.py",
            "from ..fabric_rl.learning.ppo import ppo_loss\nfrom .base import Agent\nfrom agents import base",
        ),
        ("fabric_rl/a.py", "import torch\nimport rich.live\nimport click\nfrom .types import Agent\nimport fabric_rl"),
        ("fabric_rl/evaluation/a.py", "from agents import RolesAgent\nfrom envs.bots import Bot"),
    ],
)
def test_checker_lets_allowed_imports_pass(tmp_path, file, source):
    write(tmp_path, file, source)
    assert import_violations(tmp_path) == []


@pytest.mark.parametrize(
    "back",
    [
        "from envs.a import x",
        "from envs import a",
        "from . import a",
        "import envs.a",
        "def f():\n    from .a import x",
        "try:\n    import envs.a\nexcept ImportError:\n    pass",
        "import importlib\nimportlib.import_module('envs.a')",
        "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    from envs.a import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    from envs.a import x",
    ],
)
def test_checker_finds_a_circle(tmp_path, back):
    write(tmp_path, "envs/__init__.py", "")
    write(tmp_path, "envs/a.py", "from envs.sub.b import y")
    write(tmp_path, "envs/sub/b.py", "from envs.c import z")
    write(tmp_path, "envs/c.py", back)
    found = circle(tmp_path)
    assert found[0] == found[-1] and set(found) == {"envs/a.py", "envs/sub/b.py", "envs/c.py"}
    assert found[found.index("envs/a.py") + 1] == "envs/sub/b.py"  # who imports comes first


def test_checker_counts_packages_in_circles_where_they_are_asked(tmp_path):
    write(tmp_path, "agents/__init__.py", "from agents.a import x")
    write(tmp_path, "agents/a.py", "import agents.b")
    write(tmp_path, "agents/b.py", "")
    assert circle(tmp_path) == []
    write(tmp_path, "agents/b.py", "from agents import x")
    assert set(circle(tmp_path)) == {"agents/__init__.py", "agents/a.py", "agents/b.py"}


def test_checker_counts_packages_that_a_module_lies_in(tmp_path):
    write(tmp_path, "fabric_rl/skills/__init__.py", "from fabric_rl.skills.a import x")
    write(tmp_path, "fabric_rl/skills/a.py", "from fabric_rl.phases.b import y\nfrom fabric_rl.skills.c import z")
    write(tmp_path, "fabric_rl/skills/c.py", "")
    write(tmp_path, "fabric_rl/phases/b.py", "")
    assert circle(tmp_path) == []
    write(tmp_path, "fabric_rl/phases/b.py", "from fabric_rl.skills.c import z")
    assert set(circle(tmp_path)) == {f"fabric_rl/{name}.py" for name in ("skills/__init__", "skills/a", "phases/b")}


@pytest.mark.parametrize(
    "back",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from envs.a import x",
        "import typing\nif typing.TYPE_CHECKING:\n    import envs.a",
        "'import envs.a'",
        "from elsewhere.envs import a",
    ],
)
def test_checker_lets_what_is_no_circle_pass(tmp_path, back):
    write(tmp_path, "envs/a.py", "from envs.b import y\nfrom envs.c import z")
    write(tmp_path, "envs/b.py", "from envs.c import z")
    write(tmp_path, "envs/c.py", back)
    assert circle(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "source", "count"),
    [
        ("fabric_rl/runs/a.py", "from fabric_rl.commands.evaluate import main", 1),
        ("fabric_rl/a.py", "def f():\n    from .commands import evaluate", 1),
        ("fabric_rl/a.py", "import importlib\nimportlib.import_module(NAMES['evaluate'])", 0),
        ("fabric_rl/a.py", "NAMES = {'evaluate': 'fabric_rl.commands.evaluate'}", 1),
        ("fabric_rl/a.py", "from fabric_rl.commands_other import x", 0),
        ("fabric_rl/commands/a.py", "from fabric_rl.commands.output import console", 0),
        ("fabric_rl/cli/launcher.py", "def f():\n    import fabric_rl.commands.evaluate", 1),
    ],
)
def test_checker_finds_who_imports_a_command(tmp_path, file, source, count):
    write(tmp_path, file, source)
    assert len(imports_of_commands(tmp_path, "fabric_rl")) == count


def test_checker_finds_long_files_and_crowded_folders(tmp_path):
    write(tmp_path, "envs/sub/a.py", "x = 1\n" * 601)
    write(tmp_path, "train_fabric.py", "x = 1\n" * 600)
    for number in range(10):
        write(tmp_path, f"envs/file_{number}.py", "")
    assert size_violations(tmp_path, "envs") == ["envs/sub/a.py: 601 lines"]
    assert size_violations(tmp_path, "train_fabric.py") == []
    write(tmp_path, "envs/__init__.py", "")
    assert size_violations(tmp_path, "envs")[1:] == ["envs: 11 files lie flat"]


def test_checker_finds_utils_and_bare_except(tmp_path):
    write(tmp_path, "fabric_rl/sub/utils.py", "")
    write(tmp_path, "train_fabric.py", "try:\n    pass\nexcept:\n    pass")
    write(tmp_path, "envs/a.py", "try:\n    pass\nexcept (OSError, ValueError):\n    pass")
    assert form_violations(tmp_path) == [
        "fabric_rl/sub/utils.py: name the file after its one purpose",
        "train_fabric.py:3: bare except",
    ]


def write(root: Path, file: str, source: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
