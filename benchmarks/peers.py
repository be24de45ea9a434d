"""This project beside rlgym-learn 1.0.5: the same environment, nets and batch, in turns in one session.

rlgym-learn is installed from PyPI into a virtual environment of its own (`--venv`; kept for the next time), with the
torch, numpy and rocketsim of this project's constraints.txt. (rlgym-learn 2.0.0 stalls on a machine without a GPU.) The
number of environment processes that suits it best is found first. Then the contenders take turns; figures are medians
over the rounds, ratios medians of the ratios within a round.

    python benchmarks/peers.py --out benchmarks/results/peers.md
    python benchmarks/peers.py --buffers 1 --processes 16 --settings "threads" "processes precision=bf16-mixed compile"
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from children import cores, run_child
from end_to_end import add_work_flags, has_fast_bf16, median, work_from
from machine import describe_machine
from reports import write_report
from training_run import ROOT, RUN_ENV, Setting, Work, rates, train

VENV = ROOT / "build" / "peers"
PACKAGES = ("rlgym-learn==1.0.5", "rlgym-learn-algos==0.2.6", "wandb", "rlgym[rl-sim]", "rocketsim", "numpy", "torch")
PEER = "rlgym-learn"
INSTALL_SECONDS = 3600
WAITING: dict[str, dict[str, str | None]] = {
    "as here": {},  # what importing fabric_rl has set for this process and its children
    "asleep": {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": None},
    "spinning": {"OMP_WAIT_POLICY": None, "GOMP_SPINCOUNT": None},
}
"""How OpenMP's threads wait: as this project has it, asleep at once, or as rlgym-learn leaves it."""


def install(folder: Path) -> Path:
    """Makes the peers' virtual environment, if it is not there yet; returns its Python.

    pip takes its settings from the environment as always (PIP_FIND_LINKS, PIP_EXTRA_INDEX_URL...).
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / ".installed"
    wanted = "\n".join(PACKAGES)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {', '.join(PACKAGES)} into {folder}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    command += ["-c", str(ROOT / "constraints.txt"), *PACKAGES]
    try:
        done = subprocess.run(command, timeout=INSTALL_SECONDS, stdout=sys.stderr)
    except subprocess.TimeoutExpired:
        sys.exit(f"peers.py: error: pip took longer than {INSTALL_SECONDS} s; look at the network, or use --venv")
    if done.returncode:
        sys.exit(f"peers.py: error: pip could not install {PEER} (above); mend it, or give --venv a folder that has it")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def train_peer(python: Path, processes: int, waiting: str, work: Work) -> dict[str, Any]:
    """Trains with rlgym-learn; the same figures as `training_run.train`, without the split, or `failed`."""
    names = ("hidden_sizes", "batch", "epochs", "minibatches", "buffer", "iterations")
    asked = {name: getattr(work, name) for name in names}
    asked |= {"device": work.accelerator, "processes": processes}
    script = Path(__file__).with_name("rlgym_learn_run.py")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), str(script), json.dumps(asked)]
        extra = {"WANDB_MODE": "disabled", **RUN_ENV, **WAITING[waiting]}
        done = run_child(command, work.timeout, folder, extra)
    told = [(at, json.loads(line)) for at, line in done.lines if line.startswith('{"steps"')]
    if len(told) < work.iterations:
        return {"failed": f"{len(told)} of {work.iterations} iterations; {done.reason}"}
    series = {name: [figures[name] for _, figures in told] for name in ("collected", "consumed")}
    found = rates([(at, figures["steps"]) for at, figures in told], series, work.warm_up)
    return found | {"memory_mib": done.memory_mib, "processes": done.processes}


def best_way(python: Path, candidates: Sequence[int], work: Work) -> tuple[int, str, dict[str, dict[str, Any]]]:
    """What suits the peer best: the number of environment processes, how OpenMP's threads wait; and what was found."""
    short = replace(work, iterations=work.warm_up + 3)
    found: dict[str, dict[str, Any]] = {}

    def speed(processes: int, waiting: str, limit: float) -> float:
        name = f"{processes}, {waiting}"
        found[name] = train_peer(python, processes, waiting, replace(short, timeout=limit))
        print(f"{PEER} with {name}: {found[name]}", file=sys.stderr, flush=True)
        return float(found[name].get("overall", 0.0))

    ways, usual = list(WAITING), next(iter(WAITING))
    began = time.perf_counter()
    by_count = {processes: speed(processes, usual, work.timeout) for processes in candidates}
    best = max(candidates, key=lambda processes: by_count[processes])
    enough = 60 + 2 * (time.perf_counter() - began) / len(candidates)
    by_way = {usual: by_count[best]} | {way: speed(best, way, min(work.timeout, enough)) for way in ways[1:]}
    return best, max(ways, key=lambda way: by_way[way]), found


def compare(
    python: Path, best: tuple[int, str], settings: Sequence[Setting], work: Work, rounds: int
) -> list[dict[str, Any]]:
    """One row per contender, the peer first."""
    names = [f"{PEER}, {best[0]} processes, {best[1]}", *(str(setting) for setting in settings)]
    results: list[list[dict[str, Any]]] = [[] for _ in names]
    for number in range(rounds):
        for index, name in enumerate(names):
            figures = train_peer(python, *best, work) if index == 0 else train(settings[index - 1], work)
            results[index].append(figures)
            told = {k: v for k, v in figures.items() if k != "split"}
            print(f"buffer {work.buffer}, round {number + 1}, {name}: {told}", file=sys.stderr, flush=True)
    rows = []
    for name, found in zip(names, results, strict=True):
        good = [own for own in found if "overall" in own]
        row: dict[str, Any] = {"contender": name, "buffer": work.buffer, "rounds": len(good)}
        if not good:
            rows.append(row | {"failed": found[-1]["failed"]})
            continue
        pairs = [(o, p) for o, p in zip(found, results[0], strict=True) if "overall" in o and "overall" in p]
        for kind in ("collected", "consumed", "overall"):
            row[kind] = round(median([own[kind] for own in good]))
            row[f"{kind}_ratio"] = round(median([own[kind] / peer[kind] for own, peer in pairs]), 2) if pairs else None
        memory = [own["memory_mib"] for own in good if own["memory_mib"] is not None]
        row["memory_mib"] = max(memory, default=None)
        rows.append(row)
    return rows


def report(rows: list[dict[str, Any]], tried: dict[str, dict[str, Any]], work: Work, rounds: int) -> str:
    """The results as Markdown."""
    sizes = "-".join(map(str, work.hidden_sizes))
    lines = [
        "# Comparison with rlgym-learn",
        "",
        f"`python benchmarks/peers.py`: {' with '.join(PACKAGES[:2])} and this project train alternately, "
        f"{rounds} rounds: 1v1 of RLGym's training guide, networks of {sizes}, batches of {work.batch:,}, "
        f"{work.epochs} epochs, {work.minibatches} minibatches per batch, {work.iterations - work.warm_up} iterations "
        f"after {work.warm_up} of warm-up, on {work.accelerator}. {describe_machine()}",
        "",
        "Agent-steps per second and, in brackets, the ratio to rlgym-learn. 'Overall' counts everything, by a clock",
        "outside the processes. 'Collected' includes values and advantages for this project only: rlgym-learn computes",
        "them while it learns. Memory is the peak of all processes together, with shared memory counted once. With an",
        f"experience buffer of b batches, every step is used for learning {work.epochs} b times.",
        "",
        "| contender | buffer | collected | consumed | overall | memory MiB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "failed" in row:
            lines.append(f"| {row['contender']} | {row['buffer']} | failed: {row['failed']} | | | |")
            continue
        peer = row["contender"].startswith(PEER)
        cells = []
        for kind in ("collected", "consumed", "overall"):
            ratio = row[f"{kind}_ratio"]
            cells.append(f"{row[kind]:,}" + ("" if peer or ratio is None else f" (**{ratio:.1f} x**)"))
        lines.append(f"| {row['contender']} | {row['buffer']} | {' | '.join(cells)} | {row['memory_mib'] or ''} |")
    if tried:
        lines += ["", f"Short runs of {PEER} by number of processes and by how OpenMP's threads wait:", ""]
        lines += ["| processes, OpenMP's waiting threads | collected | overall | memory MiB |", "|---|---|---|---|"]
        for name, found in tried.items():
            if "failed" in found:
                lines.append(f"| {name} | failed: {found['failed']} | | |")
            else:
                speeds = f"{found['collected']:,.0f} | {found['overall']:,.0f}"
                lines.append(f"| {name} | {speeds} | {found['memory_mib'] or ''} |")
    return "\n".join(lines) + "\n"


def default_settings() -> list[Setting]:
    """The settings of this project that fit this machine."""
    words = ["threads", "threads --overlap=true", "threads compile --overlap=true"]
    words += ["threads devices=2", "threads devices=2 compile"] if cores() > 1 else []
    words += ["threads precision=bf16-mixed", "processes precision=bf16-mixed compile"] if has_fast_bf16() else []
    return [Setting.parse(text) for text in words]


def main() -> None:
    """Installs, measures, prints the tables and ends with one JSON line."""
    counts = [n for n in (4, 8, 16, 32, 64) if cores() <= n <= 16 * cores()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=Setting.parse, nargs="+", help="see training_run")
    parser.add_argument("--processes", type=int, nargs="+", default=counts, help="of rlgym-learn; the best is used")
    parser.add_argument("--buffers", type=int, nargs="+", default=[1, 2], help="batches in the experience buffer")
    parser.add_argument("--venv", type=Path, default=VENV, help="virtual environment for rlgym-learn")
    add_work_flags(parser)
    parser.set_defaults(iterations=14)
    options = parser.parse_args()
    work, rows = work_from(options), []
    settings = options.settings or default_settings()
    python = install(options.venv.absolute())
    processes, waiting, tried = best_way(python, options.processes, work)
    for buffer in options.buffers:
        rows += compare(python, (processes, waiting), settings, replace(work, buffer=buffer), options.rounds)
    text = report(rows, tried, work, options.rounds)
    print(text)
    if options.out:
        write_report(options.out, text)
    print(json.dumps({"peers": rows, "tried": tried, "work": asdict(work), "machine": describe_machine()}))
    sys.exit(any("failed" in row for row in rows))


if __name__ == "__main__":
    main()
