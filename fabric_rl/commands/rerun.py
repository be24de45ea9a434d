"""`fabric-rl rerun`: a run once more, what is not as it was then, and whether it comes out the same."""

from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import torch

from fabric_rl.metrics.csv_tables import number, read_rows
from fabric_rl.ranks import launch
from fabric_rl.runs.checkpoint_names import checkpoints, steps_of
from fabric_rl.runs.code import code_of
from fabric_rl.runs.json_files import read_json
from fabric_rl.runs.provenance import CODE, ENVIRONMENT, Provenance, describe_environment, flat_settings
from fabric_rl.runs.resume import load_checkpoint, locate, run_of

_COMPARED = ("python", "system", "installed", "hardware", "variables")
_NOT_COMPARED = ("speed/",)
"""Metrics that are other ones each time."""
_MOST_LINES = 12


def rerun(run: str, run_id: str | None = None, runs_dir: str = "runs") -> int:
    """Trains with the settings of a run again, in a new run.

    Says first where code, versions and machine are not as they were then, and at the end whether weights and metrics
    came out the same. The settings are those of its config.yaml; nothing is changed in the run itself.

    Args:
        run: Run id or path of a run.
        run_id: Name of the new run; default: RUN-rerun.
        runs_dir: Folder that holds all runs.

    Returns:
        0 if all came out the same, 1 if not.

    Raises:
        ValueError: It is no run with settings, or has nothing that could be compared.
    """
    folder = run_of(locate("RUN", runs_dir, run)).dir
    config = Provenance(folder).config
    if not config.is_file() or not checkpoints(folder / "checkpoints"):
        lacks = "checkpoints to compare with" if config.is_file() else "config.yaml, so its settings are not known"
        raise ValueError(f"RUN {run}: it has no {lacks}")
    names = (f"{folder.name}-rerun{'' if number == 1 else number}" for number in count(1))
    name = run_id or next(name for name in names if not (Path(runs_dir) / name).exists())
    if launch.is_rank_0():
        _say("not as it was then", list(_differences(folder)))
    import_module("train_fabric").cli(
        [f"--config={config}", f"--run_id={name}", f"--runs_dir={runs_dir}", "--group=null"]
    )
    if not launch.is_rank_0():
        return 0
    unlike = list(_outcome(folder, Path(runs_dir, name)))
    _say(f"not the same as in {folder.name}", unlike)
    return 1 if unlike else 0


def _say(title: str, lines: list[str]) -> None:
    print(f"{title}:{'' if lines else ' nothing'}")
    for line in lines[:_MOST_LINES]:
        print(f"  {line}")
    if len(lines) > _MOST_LINES:
        print(f"  ... and {len(lines) - _MOST_LINES} more")


def _differences(folder: Path) -> Iterator[str]:
    """Where this process is not what the last start of the run was."""
    then, now = read_json(folder / ENVIRONMENT), describe_environment()
    if "installed" not in then:
        yield "it is a run of before: it has not kept its command, code and machine"
    code, earlier = code_of(Path.cwd(), besides=folder.parent), then.get("earlier") or []
    if earlier:
        yield f"it was begun, and gone on with {len(earlier)} times; its settings are those of the last start"
    kept = folder / (f"code_{len(earlier) + 1}.diff" if earlier else CODE)
    patch = kept.read_text(encoding="utf-8", errors="replace") if kept.is_file() else ""
    commit = (then.get("project") or {}).get("commit")
    if commit != code.about["commit"] or patch != code.patch:
        back = f"git checkout {commit}" + (f" && git apply {kept}" if patch else "") if commit else f"it is in {kept}"
        yield f"code: {commit} -> {code.about['commit']}, or what is changed since; to have it: {back}"
    old, new = ({name: each.get(name) for name in _COMPARED if name in then} for each in (then, now))
    old, new = flat_settings(old), flat_settings(new)
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name)} -> {new.get(name)}"


def _outcome(old: Path, new: Path) -> Iterator[str]:
    """What of the new run is not as in the old one."""
    for name in ("ranks", "threads", "device"):
        ours, theirs = (read_json(folder / ENVIRONMENT).get(name) for folder in (new, old))
        if theirs not in (None, ours):
            yield f"{name}: {theirs} -> {ours}"
    files = [{steps_of(path): path for path in checkpoints(folder / "checkpoints")} for folder in (old, new)]
    both = sorted(files[0].keys() & files[1].keys())
    if not both:
        yield f"weights: no checkpoint of the same steps ({max(files[0]):,} and {max(files[1], default=0):,} steps)"
    else:
        there, here = (load_checkpoint(found[both[-1]])[1]["agent"] for found in files)
        unlike = [name for name in there if name not in here or not torch.equal(there[name], here[name])]
        print(f"weights after {both[-1]:,} steps: {'not the same' if unlike else 'the same, bit for bit'}")
        far = {name: (there[name].double() - here[name].double()).abs().max() for name in unlike if name in here}
        if unlike:
            most = f"; most {max(far, key=far.__getitem__)}, by {max(far.values()):.3g}" if far else ""
            yield f"weights: {len(unlike)} of {len(there)} tensors{most}"
    rows = [{number(row.get("step")) or 0: row for row in read_rows(folder / "metrics.csv")} for folder in (old, new)]
    steps = sorted(rows[0].keys() & rows[1].keys())
    print(f"metrics: {len(steps)} rows of the same steps")
    for step in steps:
        a, b = (_figures(found[step]) for found in rows)
        if unlike := [name for name in a if a[name] != b.get(name)]:
            first = unlike[0]
            yield f"metrics: from {step:,.0f} steps on, {first} {a[first]} -> {b.get(first)}, {len(unlike)} in all"
            return


def _figures(row: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in row.items() if value and not name.startswith(_NOT_COMPARED)}
