"""The rules of the architecture, checked on the source of every module."""

import ast
import collections
import functools
import graphlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agents", "envs", "fabric_rl")
OUR_OWN = {*PACKAGES, "train_fabric", "notebooks", "benchmarks", "tests"}

# What each package may import besides the standard library and itself.
ENVS_MAY_IMPORT = {"ale_py", "numpy", "gymnasium", "pettingzoo", "rlbot", "rlgym", "rlgym_tools", "RocketSim"}
ENVS_MAY_IMPORT |= {"stable_baselines3"}
PLOTS = Path("envs/replays/plots.py")  # the one that may import matplotlib, when it is asked for Axes
AGENTS_MAY_IMPORT = {"torch", "lightning", "numpy", "gymnasium"}
COMMANDS = Path("fabric_rl/commands")  # a roof: nobody imports it
# Rooms of fabric_rl that may import agents and envs.
WITH_ROCKET_LEAGUE = {COMMANDS, *map(Path, ("fabric_rl/evaluation", "fabric_rl/rlbot", "fabric_rl/sweeps"))}
# The contracts and pure maths; a new loss file is added here.
AGENTS_MAY_IMPORT_FROM_FABRIC_RL = {"fabric_rl.base", "fabric_rl.types", "fabric_rl.learning", "fabric_rl.schedules"}
# Rooms (folders and files beside them) by floor: a room imports from lower floors, and from its own without a cycle.
FLOORS = {
    "fabric_rl": [
        "base types args schedules callback import_names",
        "ranks metrics",
        "learning",
        "rollouts",
        "signals imitation selfplay curricula",
        "runs session hooks dry_run",
        "loop sac roles",
        "export viewer callbacks analysis",
        "evaluation rlbot sweeps",
        "cli",
        "commands",
    ],
    "envs": [
        "checks component factories state",
        "sim obs actions rewards resets dones mechanics parameters loggers",
        "pool processes",
        "bots render adapters",
        "matches replays demonstrations",
        "search",
        "audit",
    ],
}
MOST_LINES, MOST_FLAT_FILES = 600, 10
# A docstring that begins like this is half a sentence.
CLIPPED = re.compile(r"(What|Who|Whose|Whether|Where|When|How|Of|Those|That|It|As|Once|Then|With|Without|Nothing)\b")
# Public names that several files may define: hooks and verbs of a contract ...
CONTRACT = {"main", "check", "build", "reset", "apply", "compute", "load", "save", "read", "write", "describe", "train"}
# ... and these, for the reason given.
SHARED = {
    "Constant": "a schedule and a sampler: users write them with their path",
    "Uniform": "a rule for opponents and a sampler: users write them with their path",
    "Policy": "an agent in this process, and the same without fabric_rl in the play.py of an export",
    "compare": "the library's function and the command",
    "export": "the library's function and the command",
    "play": "bots in a pool, and a person in a notebook",
}


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


def floor_violations(root: Path, package: str) -> list[str]:
    """Rooms without a floor, imports that point upwards, and rooms of one floor that import each other in a circle."""
    floor_of = {room: floor for floor, rooms in enumerate(FLOORS[package]) for room in rooms.split()}
    found, beside = set(), dict[str, set[str]]()
    for file in sorted((root / package).rglob("*.py")):
        room = file.relative_to(root / package).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in floor_of:
            found.add(f"{package}.{room}: has no floor")
            continue
        for line, name in imported_names(file, root, when_running=True):
            other = name.split(".")[1] if name.startswith(f"{package}.") else room
            if floor_of.get(other, -1) > floor_of[room]:
                found.add(f"{file.relative_to(root).as_posix()}:{line}: {package}.{other} is on a higher floor")
            elif other != room and floor_of.get(other) == floor_of[room]:
                beside.setdefault(room, set()).add(other)
    try:
        graphlib.TopologicalSorter(beside).prepare()
    except graphlib.CycleError as error:
        found.add(f"{package}: {' -> '.join(error.args[1])}")
    return sorted(found)


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


def clipped_docstrings(root: Path) -> list[str]:
    """Docstrings that begin in the middle of a sentence, as file, line and first words."""
    return [
        f"{file.relative_to(root).as_posix()}:{getattr(node, 'lineno', 1)}: {text[:40]}"
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and CLIPPED.match(text := ast.get_docstring(node) or "")
    ]


def shared_names(root: Path) -> dict[str, list[str]]:
    """Public names that several files define, with the files."""
    owners = collections.defaultdict(list)
    for file in (file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))):
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                owners[node.name].append(file.relative_to(root).as_posix())
    return {name: files for name, files in owners.items() if len(files) > 1 and name not in CONTRACT}


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


@pytest.mark.parametrize("package", FLOORS)
def test_imports_point_downwards(package):
    assert floor_violations(ROOT, package) == []


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


def test_docstrings_begin_with_a_sentence():
    assert clipped_docstrings(ROOT) == []


def test_a_name_has_one_owner():
    assert shared_names(ROOT).keys() == SHARED.keys()


BROKEN = {
    "envs/sub/a.py": "import os\n\ndef f():\n    from ...fabric_rl import types\n    import pandas",
    "envs/b.py": "import importlib, numpy\nimportlib.import_module('torch')",
    "envs/replays/plots.py": "import matplotlib\nimport torch",
    "agents/a.py": "from ..envs import obs\nfrom fabric_rl.loop import train\nfrom fabric_rl.types import Agent",
    "agents/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import agents.c",
    "agents/c.py": "import agents.b\ntry:\n    pass\nexcept (OSError, ValueError):\n    pass",
    "fabric_rl/a.py": "import agents, rich\ndef f():\n    import fabric_rl.c\nCOMMAND = 'fabric_rl.commands.evaluate'",
    "fabric_rl/c.py": "from .a import f\nfrom fabric_rl.commands import evaluate",
    "fabric_rl/commands/evaluate.py": "from fabric_rl.commands.output import console\nimport agents, envs",
    "fabric_rl/sub/utils.py": "try:\n    pass\nexcept:\n    pass",
    "envs/state/a.py": "def f():\n    from envs.pool import b",
    "envs/obs/a.py": "import envs.actions.b\n\ndef look():\n    'What it sees.'",
    "envs/actions/a.py": "from envs.obs import b\n\ndef look():\n    'Return what it sees.'",
    "fabric_rl/long.py": "x = 1\n" * 601,
}


def test_the_checkers_find_what_breaks_a_rule(tmp_path):
    """Once of every kind, beside what is allowed."""
    for file, source in BROKEN.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(source, encoding="utf-8")
    assert import_violations(tmp_path) == [
        "agents/a.py:1: agents must not import envs.obs",
        "agents/a.py:2: agents must not import fabric_rl.loop.train",
        "envs/b.py:2: envs must not import torch",
        "envs/replays/plots.py:2: envs must not import torch",
        "envs/sub/a.py:4: envs must not import fabric_rl.types",
        "envs/sub/a.py:5: envs must not import pandas",
        "fabric_rl/a.py:1: fabric_rl must not import agents",
    ]
    assert floor_violations(tmp_path, "fabric_rl") == [
        "fabric_rl.a: has no floor",
        "fabric_rl.c: has no floor",
        "fabric_rl.long: has no floor",
        "fabric_rl.sub: has no floor",
    ]
    assert floor_violations(tmp_path, "envs") == [
        "envs.b: has no floor",
        "envs.sub: has no floor",
        "envs/state/a.py:2: envs.pool is on a higher floor",
        "envs: actions -> obs -> actions",
    ]
    assert set(circle(tmp_path)) == {"fabric_rl/a.py", "fabric_rl/c.py"}
    assert [found.partition(": ")[0] for found in imports_of_commands(tmp_path, "fabric_rl")] == [
        "fabric_rl/a.py:4",
        "fabric_rl/c.py:2",
    ]
    assert clipped_docstrings(tmp_path) == ["envs/obs/a.py:3: What it sees."]
    assert shared_names(tmp_path) == {
        "f": ["envs/state/a.py", "envs/sub/a.py", "fabric_rl/a.py"],
        "look": ["envs/actions/a.py", "envs/obs/a.py"],
    }
    assert size_violations(tmp_path, "fabric_rl") == ["fabric_rl/long.py: 601 lines"]
    assert form_violations(tmp_path) == [
        "fabric_rl/sub/utils.py: name the file after its one purpose",
        "fabric_rl/sub/utils.py:3: bare except",
    ]
