"""Does `fabric-rl tune` find what a full grid finds?

    python benchmarks/tune.py --config configs/bot_school.yaml      # an hour of a quiet machine with two cores

It runs the command, then measures all combinations of what the command may change, one after the other. The best of
many measurements is lucky, so the ten best are measured again, and the best of those by their new measurements is the
best of the grid. At the end it and the tuned settings take turns. The ratio of their speeds is what counts.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import yaml
from children import FABRIC_RL
from machine import describe_machine

from fabric_rl.commands.seeds import training_settings
from fabric_rl.sweeps.tune import Benchmark, Candidate, compare_alternately, layouts, one_thread_anyway, single_settings

ROOT = Path(__file__).parent.parent


def grid(config: dict[str, Any]) -> list[Candidate]:
    """Every layout of ranks and arenas with every set of single settings."""
    single = list(single_settings(config))
    sets = chain.from_iterable(combinations(single, number) for number in range(len(single) + 1))
    merged = (dict(chain.from_iterable(switch.items() for switch in each)) for each in sets)
    distinct = {json.dumps(flags): flags for flags in merged}.values()  # of two numbers of workers the later one holds
    made = (layout | flags for layout in ({}, *layouts(config)) for flags in distinct)
    return [Candidate(flags) for flags in made if not one_thread_anyway(flags, config)]


def flat(settings: dict[str, Any]) -> dict[str, Any]:
    """What is in a tuned file, as flags."""
    inside = settings.pop("env", {}).get("init_args", {})
    return settings | {f"env.{name}": value for name, value in inside.items()}


def main() -> None:
    """Tunes, measures the grid, lets both take turns, and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/bot_school.yaml")
    parser.add_argument("--minutes", type=float, default=10.0, help="that the command has")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement of the grid")
    parser.add_argument("--again", type=int, default=3, help="measurements of each of the ten best of the grid")
    parser.add_argument("--turns", type=int, default=6, help="of the two at the end")
    args = parser.parse_args()
    training = ["--config", args.config]
    config = yaml.safe_load(training_settings(training, "tune").arguments["resolved_config"])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tuned.yaml"
        command = [*FABRIC_RL, "tune", *training, "--minutes", str(args.minutes), "--out", str(out)]
        subprocess.run(command, cwd=ROOT, check=True)
        tuned = Candidate(flat(yaml.safe_load(out.read_text(encoding="utf-8"))))
        bench = Benchmark(training, Path(folder), args.seconds)
        candidates = grid(config)
        for candidate in candidates:
            bench.measure(candidate)
        lucky = sorted(candidates, key=lambda candidate: candidate.rate, reverse=True)[:10]
        fresh = [Candidate(candidate.flags) for candidate in lucky if candidate.rates]
        for candidate in fresh * args.again:
            bench.measure(candidate)
        best = max(fresh, key=lambda candidate: candidate.rate)
        ratios = compare_alternately(bench, best, tuned, args.turns)
    print(f"tuned: {tuned}; best of {len(candidates)}: {best}")
    print(
        f"tuned / best of the grid, in turns: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    )
    print(describe_machine())
    print(json.dumps({"tune": {"tuned": tuned.flags, "best": best.flags, "ratios": ratios, "tried": len(candidates)}}))


if __name__ == "__main__":
    main()
