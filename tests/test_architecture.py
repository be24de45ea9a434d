"""The import directions of the architecture, checked on the source of every module, and on snippets that break them."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agents", "envs", "fabric_rl")
OUR_OWN = {*PACKAGES, "train_fabric", "notebooks", "benchmarks", "tests"}

# What each package may import besides the standard library and itself.
ENVS_MAY_IMPORT = {"numpy", "gymnasium", "rlgym", "rlgym_tools", "RocketSim"}
AGENTS_MAY_IMPORT = {"torch", "lightning", "numpy", "gymnasium"}
COMMANDS = Path("fabric_rl/commands")  # a roof: may import everything
# The contracts and pure maths; a new loss file is added here.
AGENTS_MAY_IMPORT_FROM_FABRIC_RL = {"fabric_rl.types", "fabric_rl.learning", "fabric_rl.schedules"}


def imported_names(file: Path, root: Path) -> list[tuple[int, str]]:
    """Every name that a module imports anywhere, absolute, as (line, dotted name).

    `from a import b` counts as `a.b`, whether b is a module or not; `import_module` and `__import__` count when they
    are called with a literal.
    """
    package = list(file.relative_to(root).parent.parts)
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
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


def may_import(package: str, name: str) -> bool:
    """Whether a module of `package` may import the absolute dotted `name`."""
    top = name.partition(".")[0]
    if top == package or top in sys.stdlib_module_names:
        return True
    if package == "fabric_rl":
        return top not in OUR_OWN
    if package == "envs":
        return top in ENVS_MAY_IMPORT
    if top == "fabric_rl":
        return any(name == allowed or name.startswith(f"{allowed}.") for allowed in AGENTS_MAY_IMPORT_FROM_FABRIC_RL)
    return top in AGENTS_MAY_IMPORT


def import_violations(root: Path) -> list[str]:
    return [
        f"{file.relative_to(root).as_posix()}:{line}: {package} must not import {name}"
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
        if COMMANDS not in file.relative_to(root).parents
        for line, name in imported_names(file, root)
        if not may_import(package, name)
    ]


def form_violations(root: Path) -> list[str]:
    """Files called utils.py and bare excepts, in every Python file of the project's own folders."""
    found = []
    files = [*root.glob("*.py"), *(file for folder in sorted(OUR_OWN) for file in (root / folder).rglob("*.py"))]
    for file in sorted(files):
        where = file.relative_to(root).as_posix()
        if file.name == "utils.py":
            found.append(f"{where}: name the file after its one purpose")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                found.append(f"{where}:{node.lineno}: bare except")
    return found


def test_packages_keep_the_import_directions():
    assert all(any((ROOT / package).rglob("*.py")) for package in PACKAGES)
    assert import_violations(ROOT) == []


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
    ],
)
def test_checker_lets_allowed_imports_pass(tmp_path, file, source):
    write(tmp_path, file, source)
    assert import_violations(tmp_path) == []


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
