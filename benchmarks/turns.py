"""Which of two trainings makes more steps per second? They take turns on this machine.

    python benchmarks/turns.py configs/rocket_1v1_quickstart.yaml configs/bot_school.yaml
    python benchmarks/turns.py configs/bot_school.yaml "configs/bot_school.yaml --minibatch_size 2048"

Each turn trains both for `--seconds` after two iterations that do not count; who is first changes. The ratio of the
two is taken within a turn, since machines drift.
"""

import argparse
import json
import shlex
import statistics
import tempfile
from pathlib import Path

from machine import describe_machine

from fabric_rl.sweeps.tune import Benchmark, Candidate, compare_alternately


def main() -> None:
    """Measures, and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainings", nargs=2, help="a configuration, and flags of train_fabric.py")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        benches = [
            Benchmark(["--config", *shlex.split(words)], Path(folder) / str(n), args.seconds)
            for n, words in enumerate(args.trainings)
        ]
        one, other = (Candidate({}, name=words) for words in args.trainings)
        ratios = compare_alternately(benches[0], one, other, args.turns, benches[1])
    if not ratios:
        parser.error("one of them does not train")
    print(
        f"second / first: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), {args.turns} turns"
    )
    print(describe_machine())
    print(json.dumps({"turns": args.trainings, "ratios": ratios}))


if __name__ == "__main__":
    main()
