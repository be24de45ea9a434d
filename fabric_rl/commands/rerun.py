"""`fabric-rl rerun`: repeats a run, lists what has changed since, and compares the results."""

import math
import os
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fabric_rl.base.files import read_json, read_text
from fabric_rl.base.settings import changed
from fabric_rl.base.text import escape_control_characters
from fabric_rl.metrics.metrics_csv import parse_number, read_rows
from fabric_rl.ranks import launched_by
from fabric_rl.runs import provenance
from fabric_rl.runs.checkpoint import load_checkpoint
from fabric_rl.runs.provenance import CONFIG, ENVIRONMENT, files_changed_since
from fabric_rl.runs.records import checkpoint_steps, flat_settings, list_checkpoints, modules_of
from fabric_rl.runs.start_or_resume import owning_run, resolve_checkpoint_path

_COMPARED = ("python", "system", "installed", "hardware", "variables")
_COMMIT = re.compile("[0-9a-f]{7,64}")
_NAMED = 8
"""Maximum number of files named in a line."""


def rerun(run: str, run_id: str | None = None, runs_dir: str = "runs") -> int:
    """Repeat a run as a new run, and check that the result is identical.

    At the start, the command lists how code, versions and machine differ from the original run. At the end, it reports
    whether weights and metrics are identical. It uses the settings in the run's config.yaml and does not change the
    run.

    Args:
        run: Run id or path of a run.
        run_id: Name of the new run. Default: RUN-rerun.
        runs_dir: Folder that contains all runs.

    Returns:
        0 if everything is identical, otherwise 1.
    """
    folder = owning_run(resolve_checkpoint_path("RUN", runs_dir, run)).dir
    config = provenance.Provenance(folder).config
    if not config.is_file() or not list_checkpoints(folder / "checkpoints"):
        lacks = "checkpoints to compare with" if config.is_file() else "config.yaml, so its settings are unknown"
        raise ValueError(f"RUN {run} has no {lacks}")
    names = (f"{folder.name}-rerun{'' if number == 1 else number}" for number in count(1))
    name = run_id or next(name for name in names if not (Path(runs_dir) / name).exists())
    if launched_by.is_rank_0():
        lines = [*map(escape_control_characters, _differences(folder))]
        print("\n  ".join(["changed since that run", *(lines or ["nothing"])]), flush=True)
    words = [f"--config={config}", f"--run_id={name}", f"--runs_dir={runs_dir}", "--group=null"]
    import_module("train_fabric").cli(words, again=True)
    if not launched_by.is_rank_0():
        return 0
    compared, unlike = _outcome(folder, Path(runs_dir, name))
    same = f"bit-identical to {folder.name}: {' and '.join(compared)}"
    outcome = "\n  ".join([f"not identical to {folder.name}", *unlike]) if unlike else same
    print(escape_control_characters(outcome, "\n"), flush=True)
    return 1 if unlike else 0


def _differences(folder: Path) -> Iterator[str]:
    """Yield what differs between this process and the last start of the run."""
    then, now = _recorded(folder / ENVIRONMENT), provenance.describe_environment()
    earlier = then.get("earlier") or []
    if earlier:
        times = "once" if len(earlier) == 1 else f"{len(earlier)} times"
        yield f"the run was resumed {times}; the settings are those of its last start"
    if then.get("config") not in (None, provenance.config_digest(read_text(folder / CONFIG))):
        yield f"{CONFIG}: edited since"
    project, own = (then.get(name) or {} for name in ("project", "git"))
    kept, here = folder / provenance.patch_name(earlier), Path(now["project"]["folder"])
    patch = read_text(kept, errors="replace") if kept.is_file() else ""
    commit = project.get("commit")
    names = None
    if commit is None or files_changed_since(here, commit) is not None:
        names = provenance.differing_sources((patch, provenance.git_patch(here, folder.parent, commit or "HEAD")))
    words = [f"git checkout {commit}"] if commit else []
    words += [f"git apply {shlex.quote(str(kept))}"] if patch else []
    for line in _code("code", commit, now["project"], names):
        where = "" if commit else " in an empty folder"
        yield f"{line}; to restore it{where}: {' && '.join(words)}" if words else line
    modules, told = modules_of(folder), {os.path.normpath(here / name) for name in names or ()}
    for name in provenance.Provenance(folder).changed_modules():
        if os.path.normpath(modules[name][0]) not in told:
            yield f"code of {name}: edited since"
    if own.get("folder") != project.get("folder") and (commit := own.get("commit")):
        edited = files_changed_since(Path(now["git"]["folder"]), commit)
        if edited is not None:  # changes uncommitted at that time are lost
            uncommitted = (line[3:] for line in (own.get("changed_files") or "").splitlines())
            edited = sorted({*edited, *filter(provenance.is_source, uncommitted)})
        yield from _code("code of fabric-rl", commit, now["git"], edited)
    old, new = ({name: each.get(name) for name in _COMPARED if name in then} for each in (then, now))
    differences = changed(flat_settings(old), flat_settings(new))
    yield from (f"{name}: {before} -> {after}" for name, (before, after) in differences.items())


def _recorded(file: Path) -> dict[str, Any]:
    """Return a run's record of its start; raise a ValueError for parts that no run writes, such as forged commits."""
    found = read_json(file)
    kinds = {"project": dict, "git": dict, "earlier": list}
    wrong = [name for name, kind in kinds.items() if not isinstance(found.get(name) or kind(), kind)]
    if not wrong:
        commits = {f"{name}.commit": (found.get(name) or {}).get("commit") for name in ("project", "git")}
        wrong = [name for name, id in commits.items() if id is not None and not _COMMIT.fullmatch(str(id))]
    if wrong:
        raise ValueError(f"{file}: {', '.join(wrong)} cannot have been written by a run")
    return found


def _code(title: str, commit: str | None, now: dict[str, Any], names: list[str] | None) -> Iterator[str]:
    """Yield a line about changed files, if there are any; `names` is None if they are not known."""
    if names == []:
        return
    commits = " -> ".join(dict.fromkeys(each[:9] if each else "none" for each in (commit, now["commit"])))
    more = f" and {len(names) - _NAMED} more" if names and len(names) > _NAMED else ""
    which = f"changed: {', '.join(names[:_NAMED])}{more}" if names else f"{now['folder']} has no such commit"
    yield f"{title} (commit {commits}): {which}"


def _outcome(old: Path, new: Path) -> tuple[list[str], list[str]]:
    """Compare two runs; return the names of all comparisons, and a line for each difference."""
    before, now = (read_json(folder / ENVIRONMENT) for folder in (old, new))
    compared = list[str]()
    names = [name for name in ("ranks", "threads", "device") if before.get(name) not in (None, now.get(name))]
    lines = [f"{name}: {before[name]} -> {now.get(name)}" for name in names]
    files = [
        {checkpoint_steps(path): path for path in list_checkpoints(folder / "checkpoints")} for folder in (old, new)
    ]
    both = sorted(files[0].keys() & files[1].keys())
    if not both:
        ends = f"{max(files[0]):,} and {max(files[1], default=0):,} steps"
        lines.append(f"weights: no checkpoint at the same number of steps ({ends})")
    else:
        compared.append(f"weights after {both[-1]:,} steps")
        there, here = (load_checkpoint(found[both[-1]])[1]["agent"] for found in files)
        far = {name: far for name, tensor in there.items() if (far := _distance(tensor, here.get(name)))}
        if far:
            most = max(far, key=far.__getitem__)
            lines.append(f"{compared[0]}: {len(far)} of {len(there)} tensors differ by up to {far[most]:.3g} in {most}")
    rows = [
        {parse_number(row.get("step")) or 0: row for row in read_rows(folder / "metrics.csv")} for folder in (old, new)
    ]
    steps = sorted(rows[0].keys() & rows[1].keys())
    compared.append(f"metrics, {len(steps)} rows")
    for step in steps:
        a, b = (found[step] for found in rows)
        if unlike := [name for name in a if a[name] != b.get(name, "") and not name.startswith("speed/")]:
            which = f"{unlike[0]} {a[unlike[0]]} -> {b.get(unlike[0])}, {len(unlike)} in all"
            lines.append(f"{compared[-1]}: from {step:,.0f} steps on, {which}")
            break
    return compared, lines


def _distance(there: Tensor, here: Tensor | None) -> float:
    """Return the largest absolute difference; infinity for tensors that cannot be compared."""
    if here is None or here.shape != there.shape:
        return math.inf
    return 0.0 if torch.equal(there, here) else float((there.double() - here.double()).abs().max())
