"""`fabric-rl rerun`: a run once more, what is not as it was then, and whether it comes out the same."""

import math
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path

import torch
from torch import Tensor

from fabric_rl.metrics.csv_tables import number, read_rows
from fabric_rl.ranks import launch
from fabric_rl.runs.checkpoint_names import checkpoints, steps_of
from fabric_rl.runs.code import patch_of
from fabric_rl.runs.json_files import read_json
from fabric_rl.runs.provenance import ENVIRONMENT, Provenance, code_file, describe_environment, flat_settings
from fabric_rl.runs.resume import load_checkpoint, locate, run_of

_COMPARED = ("python", "system", "installed", "hardware", "variables")


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
    words = [f"--config={config}", f"--run_id={name}", f"--runs_dir={runs_dir}", "--group=null"]
    import_module("train_fabric").cli(words)
    if not launch.is_rank_0():
        return 0
    unlike = list(_outcome(folder, Path(runs_dir, name)))
    _say(f"not the same as in {folder.name}", unlike)
    return 1 if unlike else 0


def _say(title: str, lines: list[str]) -> None:
    print("\n  ".join([title, *(lines or ["nothing"])]), flush=True)


def _differences(folder: Path) -> Iterator[str]:
    """Where this process is not what the last start of the run was."""
    then, now = read_json(folder / ENVIRONMENT), describe_environment()
    earlier = then.get("earlier") or []
    if earlier:
        yield f"it was begun, and gone on with {len(earlier)} times: its settings are those of the last start"
    kept, here = folder / code_file(earlier), now["project"]
    patch = kept.read_text(encoding="utf-8", errors="replace") if kept.is_file() else ""
    commit = (then.get("project") or {}).get("commit")
    if commit != here["commit"] or patch != patch_of(Path(here["folder"]), besides=folder.parent):
        words = [*([f"git checkout {commit}"] if commit else []), *([f"git apply {kept}"] if patch else [])]
        yield f"code: {commit} -> {here['commit']}, or what is changed since; to have it: {' && '.join(words)}"
    old, new = (flat_settings({name: each.get(name) for name in _COMPARED if name in then}) for each in (then, now))
    names = dict.fromkeys((*old, *new))
    yield from (f"{name}: {old.get(name)} -> {new.get(name)}" for name in names if old.get(name) != new.get(name))


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
        far = {name: _distance(tensor, here.get(name)) for name, tensor in there.items()}
        unlike = [name for name in far if far[name]]
        print(f"weights after {both[-1]:,} steps: {'not the same' if unlike else 'the same, bit for bit'}")
        if unlike:
            most = max(unlike, key=far.__getitem__)
            yield f"weights: {len(unlike)} of {len(far)} tensors; most {most}, by {far[most]:.3g}"
    rows = [{number(row.get("step")) or 0: row for row in read_rows(folder / "metrics.csv")} for folder in (old, new)]
    steps = sorted(rows[0].keys() & rows[1].keys())
    print(f"metrics: {len(steps)} rows of the same steps")
    for step in steps:
        a, b = (found[step] for found in rows)
        if unlike := [name for name in a if a[name] != b.get(name, "") and not name.startswith("speed/")]:
            first = unlike[0]
            yield f"metrics: from {step:,.0f} steps on, {first} {a[first]} -> {b.get(first)}, {len(unlike)} in all"
            return


def _distance(there: Tensor, here: Tensor | None) -> float:
    if here is None or here.shape != there.shape:
        return math.inf
    return 0.0 if torch.equal(there, here) else float((there.double() - here.double()).abs().max())
