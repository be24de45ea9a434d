"""How pool and training grow with cores and arenas.

For every number of cores (children are pinned to so many) and arenas: the pool with threads and in processes against
bare physics on as many threads (benchmarks/pool.py), and training with threads, with worker processes, and with as many
ranks as cores (DDP). Rounds go over the whole grid in turn; figures are medians.

    python benchmarks/scaling.py --out benchmarks/results/scaling.md
    python benchmarks/scaling.py --cores 1 4 16 --arenas 64 256 --rounds 1 --what pool
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from children import cores, only_cores, run_child
from end_to_end import add_work_flags, median, work_from
from machine import describe_machine
from reports import write_report
from training_run import ROOT, RUN_ENV, Setting, Work, train

POOL = {
    "threads": "threads_steps_per_second",
    "processes": "processes_steps_per_second",
    "bare": "bare_steps_per_second",
}
KINDS = ("threads", "processes", "ranks")


def pool_rates(arenas: int, steps: int, timeout: float) -> dict[str, Any]:
    """Agent-steps per second of pool and bare physics on the cores that children have; or `failed`."""
    command = [sys.executable, str(ROOT / "benchmarks" / "pool.py"), "--num_arenas", str(arenas), "--steps", str(steps)]
    done = run_child([*command, "--repeats", "1", "--rlgym_steps", "0"], timeout, ROOT, RUN_ENV)
    if done.status != 0 or not done.lines:
        return {"failed": done.reason}
    row = json.loads(done.lines[-1][1])["rows"][0]
    found = {name: row[key] for name, key in POOL.items() if key in row}
    return found | {f"{name}_ratio": row[f"{name}_ratio"] for name in ("threads", "processes") if name in found}


def training_rates(kind: str, count: int, arenas: int, work: Work, flags: Sequence[str]) -> dict[str, Any]:
    """Steps per second of a training run, or `failed`."""
    ranks = count if kind == "ranks" else 1
    setting = Setting.parse(f"{'processes' if kind == 'processes' else 'threads'} {' '.join(flags)}")
    sizes = asdict(setting) | {"arenas": max(1, arenas // ranks) * ranks, "devices": ranks}
    return train(Setting(**sizes), work)


def grid(options: argparse.Namespace, work: Work) -> list[dict[str, Any]]:
    """One row per number of cores and arenas."""
    found: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for number in range(options.rounds):
        for count in options.cores:
            for arenas in options.arenas:
                with only_cores(count):
                    if "pool" in options.what:
                        found.setdefault((count, arenas, "pool"), []).append(
                            pool_rates(arenas, options.steps, work.timeout)
                        )
                    kinds = (
                        [k for k in options.kinds if count > 1 or k == "threads"] if "training" in options.what else []
                    )
                    for kind in kinds:
                        figures = training_rates(kind, count, arenas, work, options.flags.split())
                        found.setdefault((count, arenas, kind), []).append(figures)
                print(f"round {number + 1}: {count} cores, {arenas} arenas done", file=sys.stderr, flush=True)
    rows = []
    for count in options.cores:
        for arenas in options.arenas:
            row: dict[str, Any] = {"cores": count, "arenas": arenas}
            for name in (*POOL, "threads_ratio", "processes_ratio"):
                numbers = [each[name] for each in found.get((count, arenas, "pool"), ()) if name in each]
                if numbers:
                    row[f"pool_{name}"] = round(median(numbers), 3)
            for kind in KINDS:
                for figure in ("collected", "overall"):
                    numbers = [each[figure] for each in found.get((count, arenas, kind), ()) if figure in each]
                    if numbers:
                        row[f"training_{kind}_{figure}"] = round(median(numbers))
            row["failed"] = [
                f"{kind}: {each['failed']}"
                for (c, a, kind), runs in found.items()
                for each in runs
                if (c, a) == (count, arenas) and "failed" in each
            ]
            rows.append(row)
    return rows


def table(rows: list[dict[str, Any]], columns: dict[str, str]) -> list[str]:
    """A Markdown table of the columns that any row has."""
    kept = {key: title for key, title in columns.items() if any(key in row for row in rows)}
    if set(kept) <= {"cores", "arenas"}:
        return []
    lines = ["| " + " | ".join(kept.values()) + " |", "|---" * len(kept) + "|"]
    for row in rows:
        cells = (f"{row[key]:.2f}" if "ratio" in key and key in row else _whole(row.get(key)) for key in kept)
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _whole(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"


def report(rows: list[dict[str, Any]], options: argparse.Namespace, work: Work) -> str:
    """The results as Markdown."""
    both = {"cores": "cores", "arenas": "arenas"}
    pool = {
        "pool_threads": "pool, threads",
        "pool_processes": "pool, processes",
        "pool_bare": "bare physics",
        "pool_threads_ratio": "threads / bare",
        "pool_processes_ratio": "processes / bare",
    }
    training = {f"training_{k}_{f}": f"{k}: {f}" for k in KINDS for f in ("collected", "overall")}
    lines = [
        "# Scaling",
        "",
        f"`python benchmarks/scaling.py`: 1v1, agent-steps per second, medians of {options.rounds} rounds; each round "
        f"measures all rows. {describe_machine()}",
        "",
    ]
    pool_lines, training_lines = table(rows, both | pool), table(rows, both | training)
    if pool_lines:
        lines += ["## Pool", "", f"Kickoffs, random actions, {options.steps} steps.", "", *pool_lines]
    if training_lines:
        sizes = "-".join(map(str, work.hidden_sizes))
        about = f"Networks of {sizes}, batches of about {work.batch:,}, {work.epochs} epochs, on {work.accelerator}"
        about += f", {options.flags}" if options.flags else ""
        lines += ["## Training", "", f"{about}; the ranks share the arenas.", "", *training_lines]
    failed = [f"- {row['cores']} cores, {row['arenas']} arenas, {why}" for row in rows for why in row["failed"]]
    lines += ["Failed:", "", *failed, ""] if failed else []
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Measures, prints the tables and ends with one JSON line."""
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n < cores()] + [cores()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, nargs="+", default=counts)
    parser.add_argument("--arenas", type=int, nargs="+", default=[16, 64, 256, 512])
    parser.add_argument("--what", nargs="+", choices=("pool", "training"), default=["pool", "training"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of training")
    parser.add_argument("--flags", default="", help="words of all training runs, e.g. 'precision=bf16-mixed compile'")
    parser.add_argument("--steps", type=int, default=200, help="steps of a run of the pool")
    add_work_flags(parser)
    parser.set_defaults(iterations=5)
    options = parser.parse_args()
    most = cores()
    if wrong := [count for count in options.cores if not 1 <= count <= most]:
        parser.error(f"--cores {wrong[0]}: this process has {most}")
    work = work_from(options)
    rows = grid(options, work)
    text = report(rows, options, work)
    print(text)
    if options.out:
        write_report(options.out, text)
    print(json.dumps({"scaling": rows, "work": asdict(work), "machine": describe_machine()}))
    sys.exit(any(row["failed"] for row in rows))


if __name__ == "__main__":
    main()
