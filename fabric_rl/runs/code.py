"""The user's code as it was when a run began: its commit, and everything that differs from that as one patch."""

import subprocess
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

MOST_BYTES = 1_000_000
"""Of a patch; what is beyond is cut off."""
_MOST_OF_A_FILE = 100_000
_SOURCES = {".py", ".pyi", ".yaml", ".yml", ".sh"}
"""Of files that git does not know: those that may be the experiment."""
_CUT = "... cut off after a million bytes; git apply does not take it\n"


class Code(NamedTuple):
    """The state of a folder's code."""

    about: dict[str, Any]
    """`folder`: that of the repository, or the one that was asked for; `commit`, `branch` and `changed_files` (git's
    status): None without git."""
    patch: str
    """What `git apply` makes of the commit the code as it is, files that git does not know included; those are all that
    it has without git."""


def code_of(folder: Path, besides: Path | None = None) -> Code:
    """The code of the git repository around a folder; without one, of the folder itself.

    Args:
        folder: In it.
        besides: What lies below is no code: the folder of all runs.
    """
    about, entries = _state(folder, besides)
    root, new = Path(about["folder"]), sorted(entry[3:] for entry in entries if entry.startswith("?? "))
    if about["commit"] is None:
        new = sorted(path.name for path in folder.glob("*") if path.is_file())
    changed = _git(root, "diff", "HEAD", "--no-color", "--no-ext-diff") if len(new) < len(entries) else ""
    patch = (changed or "") + "".join(_added(root, new))
    if len(patch) > MOST_BYTES:
        patch = patch[: patch.rindex("\n", 0, MOST_BYTES) + 1] + _CUT
    return Code(about, patch)


def commit_of(folder: Path) -> dict[str, Any]:
    """`Code.about` alone."""
    return _state(folder, None)[0]


def _state(folder: Path, besides: Path | None) -> tuple[dict[str, Any], list[str]]:
    """`Code.about`, and each line of git's status."""
    found = _git(folder, "rev-parse", "--show-toplevel", "HEAD", "--abbrev-ref", "HEAD")
    if found is None:
        return {"folder": str(folder), "commit": None, "branch": None, "changed_files": None}, []
    root, commit, branch = found.split("\n")[:3]
    status = _git(Path(root), "status", "--porcelain", "--untracked-files=all", "-z") or ""
    runs = besides.resolve() if besides else Path(__file__)
    entries = [each for each in status.split("\0") if each and not Path(root, each[3:]).resolve().is_relative_to(runs)]
    return {"folder": root, "commit": commit, "branch": branch, "changed_files": "\n".join(entries)}, entries


def _added(root: Path, names: list[str]) -> Iterator[str]:
    """Parts of a patch that adds these files, as far as they are sources."""
    for name in names:
        path = root / name
        try:
            if path.suffix not in _SOURCES or path.stat().st_size > _MOST_OF_A_FILE:
                continue
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        except (OSError, UnicodeDecodeError):
            continue
        for line in unified_diff([], lines, "/dev/null", f"b/{name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _git(folder: Path, *command: str) -> str | None:
    """What git says there; None without git or outside of a repository."""
    try:
        done = subprocess.run(["git", *command], cwd=folder, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode("utf-8", errors="replace")
