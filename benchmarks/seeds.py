"""How much time `fabric-rl seeds` saves: all seeds side by side, against one run after the other with all cores.

`python benchmarks/seeds.py` takes about five minutes on two cores.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from children import FABRIC_RL, cores
from machine import describe_machine

from fabric_rl.sweeps.train_processes import seeds_of

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Measures both ways, prints a table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/cartpole.yaml")
    parser.add_argument("--seeds", default="0..9")
    parser.add_argument("--steps", type=int, default=50_000)
    options = parser.parse_args()
    flags = ["--config", options.config, "--total_timesteps", str(options.steps)]
    with tempfile.TemporaryDirectory() as runs:
        words = [*flags, "--runs_dir", runs]
        together = seconds([*FABRIC_RL, "seeds", *words, "--seeds", options.seeds])
        one = [sys.executable, "train_fabric.py", *words, "--num_threads", str(cores())]
        alone = sum(seconds([*one, "--seed", str(seed), "--run_id", f"{seed}"]) for seed in seeds_of(options.seeds))
    share = together / alone
    count = len(seeds_of(options.seeds))
    print(f"{describe_machine()}\n\n| {count} x {options.steps:,} steps of {options.config} | wall s |\n|---|---|")
    print(f"| `fabric-rl seeds`, {min(cores(), count)} at a time | {together:.0f} ({share:.0%}) |")
    print(f"| one after the other, {cores()} threads each | {alone:.0f} |")
    print(json.dumps({"seeds": count, "together_seconds": together, "alone_seconds": alone, "share": share}))


def seconds(command: list[str]) -> float:
    """How long a command takes; a CalledProcessError if it fails."""
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
