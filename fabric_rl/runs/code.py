"""The user's code as it was when a run began: its commit, and everything that differs from that as one patch."""

import os
import re
import subprocess
from difflib import unified_diff
from io import StringIO
from pathlib import Path

MOST_BYTES = 1_000_000
"""Of a patch; what is beyond is cut off."""
_MOST_OF_A_FILE = 100_000
_SOURCES = {".py", ".pyi", ".yaml", ".yml", ".sh"}
"""Of files that git does not know: those that may be the experiment."""
_MADE = ({"environment.json", "checkpoints"}, {"study.journal"})
"""What the folder of a run holds, and that of a sweep."""
_CHANGE = re.compile(
    r"^(?:diff --git .*\n(?:(?!diff --git |--- |@@).*\n)*)?--- (?:a/(.+?)\t?|/dev/null)\n"
    r"\+\+\+ (?:b/(.+?)\t?|/dev/null)\n(?=@@)",
    re.MULTILINE,
)
"""What stands before the changes of a file, with its name before and after."""


def commit_of(folder: Path) -> dict[str, str | None]:
    """`folder` (that of the git repository around it), `commit`, `branch`, `changed_files`; None without git."""
    found = _git(folder, "rev-parse", "--show-toplevel", "HEAD", "--abbrev-ref", "HEAD")
    root, commit, branch = found.split("\n")[:3] if found else (str(folder), None, None)
    changed = _git(folder, "status", "--porcelain") if found else None
    return {"folder": root, "commit": commit, "branch": branch, "changed_files": changed}


def patch_of(folder: Path, besides: Path, commit: str = "HEAD") -> str:
    """What `git apply` needs to make of the commit the code as it is; without git, what makes it of an empty folder.

    Args:
        folder: That of a repository, or one without git, of which only the files right inside count.
        besides: What lies below is no code: the folder of all runs. Nor is what other runs and sweeps have written.
        commit: From which one on, of those that the repository has.
    """
    new = _git(folder, "ls-files", "--others", "--exclude-standard", "-z")
    names = [path.name for path in folder.glob("*.*")] if new is None else new.split("\0")
    runs = os.path.realpath(besides)  # unlike resolve() it takes links that lead to themselves
    paths = [folder / name for name in sorted(names) if not Path(os.path.realpath(folder / name)).is_relative_to(runs)]
    paths = [path for path in paths if not _is_made(path, folder)]
    patch = _git(folder, "-c", "core.quotepath=off", "diff", commit, "--no-color", "--no-ext-diff") or ""
    patch += "".join(_added(path, path.relative_to(folder).as_posix()) for path in paths)
    if len(patch) > MOST_BYTES:
        patch = patch[: patch.rindex("\n", 0, MOST_BYTES) + 1] + "... cut off: git apply does not take it\n"
    return patch


def sources_that_differ(patches: tuple[str, str]) -> list[str]:
    """Names of the source files that two patches of the same commit do not make the same."""
    made: list[dict[str, str]] = []
    for patch in patches:
        parts = _CHANGE.split(patch)[1:]
        names = [after or before for before, after in zip(parts[::3], parts[1::3], strict=True)]
        made.append({name: part for name, part in zip(names, parts[2::3], strict=True) if is_source(name)})
    return sorted(name for name in made[0].keys() | made[1].keys() if made[0].get(name) != made[1].get(name))


def changed_since(folder: Path, commit: str) -> list[str] | None:
    """Source files of the repository that are not as in that commit; None where it does not know the commit."""
    found = _git(folder, "-c", "core.quotepath=off", "diff", "--name-only", commit)
    return None if found is None else [name for name in found.splitlines() if is_source(name)]


def is_source(name: str) -> bool:
    """Whether a file may be the experiment."""
    return Path(name).suffix in _SOURCES


def _is_made(path: Path, folder: Path) -> bool:
    """Whether a run or a sweep below `folder` has written it."""
    above = (part for part in path.parents if part != folder and part.is_relative_to(folder))
    return any(all((part / name).exists() for name in made) for part in above for made in _MADE)


def _added(path: Path, name: str) -> str:
    """The part of a patch that adds a file; empty unless it is a source."""
    try:
        if not is_source(path.name) or path.stat().st_size > _MOST_OF_A_FILE:
            return ""
        lines = StringIO(path.read_bytes().decode("utf-8"), newline="\n").readlines()
    except (OSError, UnicodeDecodeError):
        return ""
    patch = "".join(unified_diff([], lines, "/dev/null", f"b/{name}"))
    return patch if patch.endswith("\n") or not patch else f"{patch}\n\\ No newline at end of file\n"


def _git(folder: Path, *command: str) -> str | None:
    """What git says there; None without git or outside of a repository."""
    try:
        done = subprocess.run(["git", *command], cwd=folder, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode("utf-8", errors="replace")
