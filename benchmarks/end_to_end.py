"""How fast this project trains: steps per second, against bare physics, where the time goes, and the memory.

Every setting trains in a process of its own, with nets of 256-256-256, batches of 20,000 and 2 epochs, on the
environment of RLGym's training guide in 1v1. Settings and bare physics (the same number of arenas, warm, on as many
threads as there are cores, with random actions and nothing read back) take turns; figures are medians over the rounds,
ratios medians of the ratios within a round. "Of the machine" is what a step would take if it were bare physics and the
learner's operations alone (inference is not among them), these as fast as in one large matrix product of the same
precision, as a share of what it takes; on a GPU, beside which physics can run, the longer one of the two.

    python benchmarks/end_to_end.py --out benchmarks/results/end_to_end.md
    python benchmarks/end_to_end.py --settings "threads" "processes precision=bf16-mixed compile" "threads devices=2"
    python benchmarks/end_to_end.py --hidden_sizes 2048 2048 1024 1024 --batch 100000 --settings "processes arenas=500"
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from children import cores
from learner import EPOCHS, matmul_rate, ours, synthetic_batch
from machine import describe_machine
from pool import SEED, BarePhysics, RecordStates, first_state, record
from reports import write_report
from torch.utils.flop_counter import FlopCounterMode
from training_run import Setting, Work, train

from envs import RocketSimPool
from fabric_rl.ranks.devices import bfloat16_speedup
from fabric_rl.sweeps.tune import BFLOAT16_GAINS


def has_fast_bf16() -> bool:
    """Whether this processor gains from bfloat16."""
    return bfloat16_speedup() > BFLOAT16_GAINS


def default_settings() -> list[Setting]:
    """The settings that fit this machine."""
    words = ["threads", *(["threads devices=2"] if cores() > 1 else []), "processes", "processes groups=2"]
    words += ["threads compile", "threads --overlap=true", "threads compile --overlap=true"]
    words += ["processes groups=2 compile --overlap=true"]
    if has_fast_bf16():
        words += ["threads precision=bf16-mixed", "processes groups=2 precision=bf16-mixed compile"]
    return [Setting.parse(text) for text in words]


def bare_physics(arenas: int, num_threads: int, steps: int) -> Callable[[], float]:
    """A function that plays the same games again and returns agent-steps per second."""
    setter = RecordStates(first_state("kickoff"))
    pool = RocketSimPool(arenas, 1, state_setter=setter, num_threads=num_threads, seed=SEED)
    actions = np.random.default_rng(SEED).integers(90, size=(steps, pool.num_envs))
    starts = record(pool, setter, actions)
    controls = [list(pool.action_parser.controls(each, pool.state)) for each in actions]
    bare = BarePhysics(pool)
    pool.close()
    bare.run(controls[:50], starts[:51])  # an arena's first tick is slow
    return lambda: actions.size / bare.run(controls, starts)


def operations(work: Work) -> float:
    """Floating-point operations of all that is learned from one agent-step."""
    steps = 2_000
    with FlopCounterMode(display=False) as counter:
        ours(synthetic_batch(steps), steps, list(work.hidden_sizes), "32-true", False, "cpu")()
    return counter.get_total_flops() / steps / EPOCHS * work.epochs * work.buffer


def median(numbers: Sequence[float]) -> float:
    """The median, or NaN of nothing."""
    return statistics.median(numbers) if numbers else math.nan


def measure(settings: Sequence[Setting], work: Work, rounds: int, bare_steps: int) -> list[dict[str, Any]]:
    """One row of figures per setting."""
    bare = {arenas: bare_physics(arenas, cores(), bare_steps) for arenas in dict.fromkeys(s.arenas for s in settings)}
    known = {each.precision for each in settings} & {"32-true", "bf16-mixed", "16-mixed"}
    if "bf16-mixed" in known and not bfloat16_speedup(work.accelerator):
        known.remove("bf16-mixed")  # its instructions would end this process
    product = {each: matmul_rate(each, work.accelerator) for each in known}
    needed = operations(work)
    results: list[list[dict[str, Any]]] = [[] for _ in settings]
    for number in range(rounds):
        for setting, found in zip(settings, results, strict=True):
            figures = {"bare": bare[setting.arenas]()}
            rate = product[setting.precision]() if setting.precision in product else math.nan
            both = 1 / figures["bare"], needed / rate
            figures |= train(setting, work)
            if "overall" in figures:
                figures["of_machine"] = figures["overall"] * (max(both) if work.accelerator == "cuda" else sum(both))
            found.append(figures)
            told = {name: figures[name] for name in ("failed", "collected", "overall", "bare") if name in figures}
            print(f"round {number + 1}, {setting}: {told}", file=sys.stderr, flush=True)
    return [summarise(setting, found, results[0]) for setting, found in zip(settings, results, strict=True)]


def summarise(setting: Setting, found: list[dict[str, Any]], first: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds in which the setting came to its end."""
    good = [(own, base) for own, base in zip(found, first, strict=True) if "overall" in own]
    row: dict[str, Any] = {"setting": str(setting), "rounds": len(good)}
    if not good:
        return row | {"failed": found[-1]["failed"]}
    for name in ("collected", "consumed", "overall", "bare"):
        row[name] = round(median([own[name] for own, _ in good]))
    row["collected_over_bare"] = round(median([own["collected"] / own["bare"] for own, _ in good]), 3)
    row["overall_over_bare"] = round(median([own["overall"] / own["bare"] for own, _ in good]), 3)
    row["of_machine"] = round(median([own["of_machine"] for own, _ in good]), 3)
    paired = [own["overall"] / base["overall"] for own, base in good if "overall" in base]
    row["overall_over_first"] = round(median(paired), 3) if paired else None
    row["memory_mib"] = max((own["memory_mib"] for own, _ in good if own["memory_mib"] is not None), default=None)
    paths = list(dict.fromkeys(path for own, _ in good for path in own["split"]))
    row["split"] = {p: round(median([own["split"].get(p, 0.0) for own, _ in good]), 2) for p in paths}
    return row


def report(rows: list[dict[str, Any]], work: Work, rounds: int) -> str:
    """The results as Markdown."""
    sizes = "-".join(map(str, work.hidden_sizes))
    lines = [
        "# End to end",
        "",
        f"`python benchmarks/end_to_end.py`: 1v1 of RLGym's training guide, networks of {sizes}, batches of "
        f"{work.batch:,}, {work.epochs} epochs, {work.minibatches} minibatches per batch, "
        f"{work.iterations - work.warm_up} iterations "
        f"after {work.warm_up} of warm-up, alternating rounds: {rounds}, on {work.accelerator}. {describe_machine()}",
        "",
        "Agent-steps per second. 'Collected' counts inference, environment, values and advantages; 'overall' counts",
        "everything, by a clock outside the process. Memory is the peak of the process and its children.",
        "'Of the machine' is the minimum time of a step (bare physics, plus the learner's operations at the",
        "speed of one large matrix product) as a share of its actual time.",
        "",
        "| setting | collected | consumed | overall | bare physics | collected / bare | overall / bare | "
        "of the machine | overall / first row | memory MiB |",
        "|---" * 10 + "|",
    ]
    for row in rows:
        if "failed" in row:
            lines.append(f"| {row['setting']} | failed: {row['failed']} |" + " |" * 8)
            continue
        speeds = " | ".join(f"{row[name]:,}" for name in ("collected", "consumed", "overall", "bare"))
        ratios = (
            f"{row['collected_over_bare']:.2f} | {row['overall_over_bare']:.2f} | {row['of_machine']:.2f} | "
            f"{row['overall_over_first'] or ''}"
        )
        lines.append(f"| {row['setting']} | {speeds} | {ratios} | {row['memory_mib'] or ''} |")
    good = [row for row in rows if "split" in row]
    if good:
        lines += ["", "## Where the time goes", "", "Microseconds per agent-step, on rank 0, without the warm-up.", ""]
        lines += ["With worker processes, `start` sends them their actions (they may take the core at once). The parts"]
        lines += ["of `environment` run in parallel there, so their sum may exceed it.", ""]
        lines += ["| timer | " + " | ".join(row["setting"] for row in good) + " |", "|---" * (len(good) + 1) + "|"]
        for path in dict.fromkeys(path for row in good for path in row["split"]):
            depth, name = path.count("/"), path.rpartition("/")[2]
            cells = (f"{row['split'][path]:.2f}" if path in row["split"] else "" for row in good)
            lines.append(f"| {'&emsp;' * depth}{name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def add_work_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that `work_from` reads."""
    parser.add_argument("--hidden_sizes", type=int, nargs="+", default=list(Work.hidden_sizes))
    for name in ("batch", "epochs", "minibatches", "iterations", "warm_up"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Work, name))
    parser.add_argument("--accelerator", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--timeout", type=float, default=Work.timeout, help="seconds that one run may take")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the tables there")


def work_from(options: argparse.Namespace) -> Work:
    """The work that the flags describe."""
    given = {name: getattr(options, name) for name in asdict(Work()) if name not in ("hidden_sizes", "buffer")}
    return Work(hidden_sizes=tuple(options.hidden_sizes), **given)


def main() -> None:
    """Measures, prints the tables and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=Setting.parse, nargs="+", help="see training_run")
    parser.add_argument("--bare_steps", type=int, default=300, help="steps of a run of bare physics")
    add_work_flags(parser)
    parser.set_defaults(iterations=20)
    options = parser.parse_args()
    work = work_from(options)
    rows = measure(options.settings or default_settings(), work, options.rounds, options.bare_steps)
    text = report(rows, work, options.rounds)
    print(text)
    if options.out:
        write_report(options.out, text)
    print(json.dumps({"end_to_end": rows, "work": asdict(work), "machine": describe_machine()}))
    sys.exit(any("failed" in row for row in rows))


if __name__ == "__main__":
    main()
