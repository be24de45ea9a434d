"""Provenance of a run: its settings, code, versions and initial weights."""

import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import unified_diff
from hashlib import sha256
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import yaml
from torch import Tensor

from fabric_rl.base.config_files import read_yaml
from fabric_rl.base.files import json_text, open_regular, read_json, write_json, write_text
from fabric_rl.base.processes import cores
from fabric_rl.base.settings import changed
from fabric_rl.import_names import INSTALLED, shipped
from fabric_rl.runs import checkpoint
from fabric_rl.runs.records import CONFIG as CONFIG
from fabric_rl.runs.records import DEFAULTS, flat_settings, modules_of
from fabric_rl.runs.records import ENVIRONMENT as ENVIRONMENT
from fabric_rl.types import CheckpointError

PACKAGES = (
    "fabric-rl",
    "torch",
    "lightning",
    "numpy",
    "rocketsim",
    "rlgym",
    "gymnasium",
    "tensorboard",
    "jsonargparse",
)
WEIGHTS, INITIAL = "weights.json", "initial.ckpt"
EXPORTED, METADATA = "weights.ckpt", "metadata.json"
"""Files of an exported agent, see `fabric_rl.runs.trained.export`."""
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED")
_OF_A_START = ("began", "command", "folder", "project", "steps", "modules")
_HOW_IT_BEGAN = ("initialize_from", "inference", "deterministic")
"""Settings that describe how a run began; a resumed run keeps the old values."""
MOST_BYTES = 1_000_000
"""Maximum size of a patch; the rest is cut off."""
_MOST_OF_A_FILE = 100_000
_PACKAGES_OF_SYSTEM = {"site-packages", "dist-packages"}
_NOT_OWN = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_OWN += [Path(__file__).parents[1], *map(shipped, ("agents", "envs", "train_fabric.py"))]
_SOURCES = {".py", ".pyi", ".yaml", ".yml", ".sh"}
"""Suffixes of source files, which a patch includes even if git does not track them."""
_MADE = ({"environment.json", "checkpoints"}, {"study.journal"})
"""Files that identify the folder of a run, and of a sweep."""
_BINARY = "-\t-\t"
"""Start of `git diff --numstat` for a binary file, before its name."""
_CHANGE = re.compile(
    r"^(?:diff --git .*\n(?:(?!diff --git |--- |@@).*\n)*)?--- (?:a/(.+?)\t?|/dev/null)\n"
    r"\+\+\+ (?:b/(.+?)\t?|/dev/null)\n(?=@@)",
    re.MULTILINE,
)
"""Header of one file in a patch, with its name before and after."""


@dataclass(frozen=True)
class Weights:
    """Weights of another run, with which a run begins."""

    path: Path
    """Checkpoint file that contains them."""
    agent: dict[str, Tensor]
    """The agent's state, CPU tensors by name."""
    inference: bool = False
    """True if the run only plays, without learning."""
    deterministic: bool = False
    """True if it takes the most probable actions."""


class Provenance:
    """Files in a run folder that record how the run began.

    These are `config.yaml` (all settings), `environment.json` (command, versions, commit, hardware, seeds) and
    `code.diff` (uncommitted code of the user). A run that begins with the weights of another also has `weights.json`
    (their path, and whether the run only plays) and `initial.ckpt` (a copy, so that the run can start again).

    Attributes:
        folder: Folder of the run.
        config: Path of its `config.yaml`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.config, self._initial = folder, folder / CONFIG, folder / INITIAL
        self._config: str | None = None
        self._environment: dict[str, Any] = {}
        self._code: dict[str, str] = {}
        self._begun_with: dict[str, Any] | None = None

    # ---------------------------------------------------------------- settings

    def write(self, config: str | None, more: Mapping[str, Any] | None = None) -> None:
        """Write `config.yaml`, `environment.json` and `code.diff`, and remember them for `rewrite_missing`.

        In a resumed run, `environment.json` describes this start and lists the previous ones in `earlier`; the code of
        the second start is saved in `code_2.diff`.

        Args:
            config: All settings as YAML; None if unknown.
            more: Additional entries of `environment.json`.
        """
        self._config = config
        if not self._environment:
            before = read_json(self.folder / ENVIRONMENT)
            past = {name: before[name] for name in _OF_A_START if name in before}
            earlier = [*before.get("earlier", []), past] if before else []
            self._environment = describe_environment() | {"earlier": earlier}
            if patch := git_patch(Path(self._environment["project"]["folder"]), besides=self.folder.parent):
                self._code = {patch_name(earlier): patch}
        self._environment |= more or {}
        self._begun_with = self._read_weights_json()
        for name, text in self._texts().items():
            write_text(self.folder / name, text)

    def add_modules(self, modules: Mapping[str, Any]) -> None:
        """Add modules that were imported after the start to `environment.json`."""
        known = self._environment.get("modules", {})
        if not modules.keys() <= known.keys():
            self.write(self._config, {"modules": {**modules, **known}})

    def rewrite_missing(self) -> None:
        """Rewrite the files of `write` that are missing; even the whole folder may be missing."""
        missing = [name for name in self._texts() if not (self.folder / name).exists()]
        if missing:
            self.folder.mkdir(parents=True, exist_ok=True)
        texts = self._texts() if missing else {}  # again, because `initial.ckpt` may just have been lost with them
        for name in missing:
            write_text(self.folder / name, texts[name])

    def changed_settings(self, config: str) -> list[str]:
        """Return lines `name: old -> new` for settings that differ between `config.yaml` and `config`."""
        if not self.config.exists():
            return []
        try:
            old, new = (flat_settings(settings or {}) for settings in (read_yaml(self.config), yaml.safe_load(config)))
        except (OSError, ValueError):
            return [f"unknown, because {self.config} is damaged"]
        differ = changed(old, new)
        came = {name for name in DEFAULTS if name not in old and new.get(name) == DEFAULTS[name]}
        came |= {"num_threads"}.difference(old)
        came |= {name for name in differ if old.get(name, new.get(name)) == [] and (name in old) != (name in new)}
        names = [name for name in differ if name not in came.union(_HOW_IT_BEGAN)]
        return [f"{name}: {old.get(name)} -> {new.get(name, 'gone')}" for name in names]

    def changed_modules(self, ever: bool = False) -> list[str]:
        """Return the user's own modules that the run used and that have changed since.

        A module that this process has imported is compared with the one of that name, and any other with its file.

        Args:
            ever: Also return modules that changed during the run, between two of its starts.
        """
        found = []
        for name, (file, versions) in modules_of(self.folder).items():
            now = _digest(_own_file(name) or Path(file))
            if now not in (None, versions[-1]) or (ever and len(versions) > 1):
                found.append(name)
        return found

    def _texts(self) -> dict[str, str]:
        """Return the content of each file by name; empty before `write`."""
        texts = dict(self._code)
        if self._begun_with is not None:
            texts[WEIGHTS] = json_text(self._begun_with)
        if self._config is not None:
            texts[CONFIG] = self._as_it_began(self._config)
        if self._environment:
            digest = {"config": config_digest(texts[CONFIG])} if CONFIG in texts else {}
            texts[ENVIRONMENT] = json_text(self._environment | digest)
        return texts

    def _as_it_began(self, config: str) -> str:
        """Return `config` with changes by which a new run begins with the same weights as this one."""
        if self._begun_with is None:
            return config
        path = str(self._initial.absolute()) if self._initial.exists() else str(self._begun_with.get("from"))
        began = {name: self._begun_with.get(name) is True for name in _HOW_IT_BEGAN} | {"initialize_from": path}
        for name, value in began.items():
            line = yaml.safe_dump({name: value}, width=1_000_000, allow_unicode=True).strip()
            replacement = line.replace("\\", r"\\")
            config, found = re.subn(rf"^{name}:.*$", replacement, config, flags=re.MULTILINE)
            if value and not found:
                config = f"{config.rstrip()}\n{line}\n"
        return config

    # ---------------------------------------------------------------- weights

    def save_initial_weights(self, weights: Weights) -> None:
        """Save the weights that the run begins with.

        Raises:
            CheckpointError: `initial.ckpt` cannot be written.
            OSError: `weights.json` cannot be written.
        """
        path = str(weights.path.absolute())
        checkpoint.write(self._initial, {"agent": weights.agent, "from": path})
        how = {"inference": weights.inference, "deterministic": weights.deterministic}
        write_json(self.folder / WEIGHTS, {"from": path} | how)

    def weights(self) -> Weights | None:
        """Return the weights with which a run without a checkpoint starts again; None for new ones.

        Raises:
            CheckpointError: The run only played, or its weights cannot be read.
        """
        kept = self._read_weights_json()
        if kept is None and not self._initial.exists():
            return None
        plays, whose = (kept or {}).get("inference") is True, (kept or {}).get("from")
        whose = self._initial.absolute() if plays and self._initial.exists() else whose
        again = f"start it again with --run_id {self.folder.name} --force --initialize_from {whose}"
        if plays:
            raise CheckpointError(f"--resume: run {self.folder.name} only played without learning; {again} --inference")
        try:
            return Weights(self._initial, read_initial(self._initial))
        except CheckpointError as error:
            raise CheckpointError(
                f"--resume: run {self.folder.name} has no checkpoint yet, and {error}; {again}"
            ) from error

    @property
    def begun_with(self) -> str | None:
        """Path of the checkpoint whose weights the run began with, or None."""
        found = (self._read_weights_json() or {}).get("from")
        return found if isinstance(found, str) else None

    def has_begun_with(self, weights: Mapping[str, Tensor] | None) -> bool:
        """Return whether the run began with these weights, or with new ones if None."""
        if weights is None or not self._initial.exists():
            return (weights is None) == (self.begun_with is None)
        own = read_initial(self._initial)
        return own.keys() == weights.keys() and all(torch.equal(own[name], weights[name]) for name in own)

    def _read_weights_json(self) -> dict[str, Any] | None:
        """Return the content of `weights.json`; None if it is missing, empty if it is damaged."""
        path = self.folder / WEIGHTS
        return read_json(path) if path.exists() else None


def find_config(path: Path) -> Path:
    """Return the `config.yaml` of the run or export that a file belongs to; raise a CheckpointError if it has none."""
    found = next((folder / CONFIG for folder in path.absolute().parents if (folder / CONFIG).is_file()), None)
    if found is None:
        raise CheckpointError(f"{path}: no {CONFIG} in the folders above it, so environment and agent are unknown")
    return found


def config_digest(config: str) -> str:
    """Return a digest to detect edits of a `config.yaml`."""
    return sha256(config.encode()).hexdigest()


def read_initial(path: Path) -> dict[str, Tensor]:
    """Return the agent's state in an `initial.ckpt`; raise a CheckpointError if it is missing, damaged or invalid."""
    agent = checkpoint.read(path).get("agent")
    if not isinstance(agent, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in agent.items()
    ):
        raise CheckpointError(f"checkpoint {path} was rejected: it contains no weights")
    return agent


def describe_environment() -> dict[str, Any]:
    """Describe this process: time, command, versions, hardware, and the git state of fabric-rl itself."""
    names = (path.stem for folder in sys.path for path in Path(folder).glob("*.dist-info"))
    found = (name.lower().rpartition("-") for name in sorted(names))
    installed = {name.replace("_", "-"): version for name, _, version in found}
    project, own = git_state(Path.cwd()), str(Path(__file__).parent)
    return {
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": [sys.executable, *sys.argv],
        "folder": str(Path.cwd()),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: installed[name] for name in PACKAGES if name in installed},
        "installed": installed,
        # If fabric-rl is installed, a repository around it belongs to another project.
        "git": dict.fromkeys(project, None) | {"folder": own} if INSTALLED else git_state(Path(own)),
        "project": project,
        "hardware": {"processor": _processor(), "cores": len(cores()), "cores_of_machine": os.cpu_count()},
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def own_modules() -> dict[str, dict[str, str]]:
    """Return `file` and `sha256` of each imported module of the user: outside of Python, its packages and fabric-rl."""
    tops = {name.partition(".")[0] for name in sys.modules}
    own = {name for name in tops if not _is_foreign(_file_of(name))}  # asked once for the thousands of modules of torch
    names = sorted(name for name in sys.modules if name.partition(".")[0] in own)
    files = {name: path for name in names if (path := _own_file(name))}
    digests = {name: digest for name, path in files.items() if (digest := _digest(path))}
    return {name: {"file": str(files[name]), "sha256": digest} for name, digest in digests.items()}


def _own_file(name: str) -> Path | None:
    """Return the file of an imported module; None if it is not imported, or not the user's.

    A part of another's package is not the user's, wherever its file is: `torch.compile` writes parts of torch to /tmp.
    """
    path, package = _file_of(name), _file_of(name.partition(".")[0])
    return path if path.suffix == ".py" and not _is_foreign(path) and not _is_foreign(package) else None


def _file_of(name: str) -> Path:
    """Return the file of an imported module; an empty path if there is none."""
    module = sys.modules.get(name)
    names = object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}
    file = names.get("__file__")  # a lazy module stays unloaded
    return Path(file).absolute() if isinstance(file, str) else Path()


def _is_foreign(path: Path) -> bool:
    """Return True for a file of Python, of an installed package or of fabric-rl."""
    installed = not _PACKAGES_OF_SYSTEM.isdisjoint(path.parts)
    return installed or any(path.is_relative_to(folder) for folder in _NOT_OWN)


def _digest(path: Path) -> str | None:
    """Return a digest of a file; None if it cannot be read."""
    try:
        with open_regular(path, MOST_BYTES) as file:
            return sha256(file.read()).hexdigest()
    except (OSError, ValueError):  # a forged path
        return None


def _processor() -> str:
    """Return the name of the processor."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor()


def patch_name(earlier: Sequence[Any]) -> str:
    """Return the file name of the code changes of a run's new start, given its earlier starts."""
    return f"code_{len(earlier) + 1}.diff" if earlier else "code.diff"


def git_state(folder: Path) -> dict[str, str | None]:
    """Return the `folder` (root), `commit`, `branch` and `changed_files` of a git repository.

    Without git, `folder` is the given folder, and the others are None.
    """
    found = _git(folder, "rev-parse", "--show-toplevel", "HEAD", "--abbrev-ref", "HEAD")
    root, commit, branch = found.split("\n")[:3] if found else (str(folder), None, None)
    changed = _git(folder, "status", "--porcelain") if found else None
    return {"folder": root, "commit": commit, "branch": branch, "changed_files": changed}


def git_patch(folder: Path, besides: Path, commit: str = "HEAD") -> str:
    """Return a `git apply` patch to the current code from a commit or, without git, from an empty folder.

    It leaves out binary files.

    Args:
        folder: Folder of a repository, or a folder without git; then only files directly in it are included.
        besides: Folder of all runs, which is left out, as are the files of other runs and sweeps.
        commit: Commit to start from.
    """
    kinds = ["--others"] if _git(folder, "rev-parse", "--verify", commit) else ["--cached", "--others"]  # no commit yet
    new = _git(folder, "ls-files", *kinds, "--exclude-standard", "-z")
    names = [path.name for path in folder.glob("*.*")] if new is None else new.split("\0")
    runs = os.path.realpath(besides)  # unlike resolve(), it accepts links that lead to themselves
    paths = [folder / name for name in sorted(names) if not Path(os.path.realpath(folder / name)).is_relative_to(runs)]
    paths = [path for path in paths if not _is_made(path, folder)]
    sizes = (_git(folder, "diff", "--numstat", "-z", "--no-renames", commit) or "").split("\0")
    binary = [":(exclude,literal)" + size[len(_BINARY) :] for size in sizes if size.startswith(_BINARY)]
    shown = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "-U3")
    patch = _git(folder, "-c", "core.quotepath=off", "diff", commit, *shown, "--", ".", *binary) or ""
    patch += "".join(_added(path, path.relative_to(folder).as_posix()) for path in paths)
    if len(patch) > MOST_BYTES:
        patch = patch[: patch.rindex("\n", 0, MOST_BYTES) + 1] + "... cut off: git apply will not accept it\n"
    return patch


def differing_sources(patches: tuple[str, str]) -> list[str]:
    """Return the source files in which two patches of the same commit differ."""
    made: list[dict[str, str]] = []
    for patch in patches:
        parts = _CHANGE.split(patch)[1:]
        names = [after or before for before, after in zip(parts[::3], parts[1::3], strict=True)]
        made.append({name: part for name, part in zip(names, parts[2::3], strict=True) if is_source(name)})
    return sorted(name for name in made[0].keys() | made[1].keys() if made[0].get(name) != made[1].get(name))


def files_changed_since(folder: Path, commit: str) -> list[str] | None:
    """Return the source files that differ from a commit; None if the repository does not contain it."""
    found = _git(folder, "-c", "core.quotepath=off", "diff", "--name-only", commit)
    return None if found is None else [name for name in found.splitlines() if is_source(name)]


def is_source(name: str) -> bool:
    """Return whether a file is source code or settings."""
    return Path(name).suffix in _SOURCES


def _is_made(path: Path, folder: Path) -> bool:
    above = (part for part in path.parents if part != folder and part.is_relative_to(folder))
    return any(all((part / name).exists() for name in made) for part in above for made in _MADE)


def _added(path: Path, name: str) -> str:
    """Return the part of a patch that adds a file; empty unless it is a source file."""
    try:
        if not is_source(path.name):
            return ""
        with open_regular(path, _MOST_OF_A_FILE) as file:
            lines = StringIO(file.read().decode("utf-8"), newline="\n").readlines()
    except (OSError, UnicodeDecodeError):
        return ""
    patch = "".join(unified_diff([], lines, "/dev/null", f"b/{name}"))
    return patch if patch.endswith("\n") or not patch else f"{patch}\n\\ No newline at end of file\n"


def _git(folder: Path, *command: str) -> str | None:
    """Return the output of git in a folder; None without git or outside of a repository."""
    try:
        done = subprocess.run(["git", *command], cwd=folder, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode("utf-8", errors="replace")
