"""Runs the speed benchmarks one after another and writes `benchmarks/results/*.md`; `make bench` is this.

    python benchmarks/all.py                       # everything: about two hours on two cores
    python benchmarks/all.py --only pool peers     # some
    python benchmarks/all.py --quick --out /tmp/b  # a trial of all scripts; its figures mean nothing

Leave the machine alone meanwhile. A benchmark that fails leaves its old results, and the others go on.
"""

import argparse
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
# Name -> (flags, flags of a quick trial, where the results go, whether the script writes them itself).
BENCHMARKS: dict[str, tuple[str, str, str, bool]] = {
    "pool": (
        "--team_size 1 2 3 --num_arenas 16 64 256",
        "--num_arenas 8 --steps 40 --repeats 1 --rlgym_steps 80",
        "pool_table",
        False,
    ),
    "learner": ("--rounds 7", "--rounds 1 --steps 4000", "learner", False),
    "end_to_end": (
        "--rounds 3",
        "--rounds 1 --iterations 3 --warm_up 1 --batch 2000 --bare_steps 60 --settings threads processes",
        "end_to_end",
        True,
    ),
    "peers": (
        "--rounds 3",
        "--rounds 1 --iterations 3 --warm_up 1 --batch 2000 --buffers 1 --processes 4 --settings threads",
        "peers",
        True,
    ),
    "scaling": (
        "--rounds 2",
        "--rounds 1 --iterations 3 --warm_up 1 --batch 2000 --arenas 16 --steps 40",
        "scaling",
        True,
    ),
}


def run(name: str, quick: bool, folder: Path) -> bool:
    """Runs one benchmark; whether it succeeded."""
    flags, trial, out, writes = BENCHMARKS[name]
    script, result = Path(__file__).with_name(f"{name}.py"), folder / f"{out}.md"
    words = (trial if quick else flags).split()
    command = [sys.executable, str(script), *words, *(["--out", str(result)] if writes else [])]
    print(f"\n=== {name}: python benchmarks/{name}.py {' '.join(words)}", flush=True)
    done = subprocess.run(command, stdout=None if writes else subprocess.PIPE, text=True)
    if not writes:
        print(done.stdout)
        if done.returncode == 0:
            table = done.stdout.rstrip().rpartition("\n")[0].rstrip()  # the last line is JSON
            heading = f"# {name.capitalize()}\n\n`python benchmarks/{name}.py {' '.join(words)}`"
            result.write_text(f"{heading}\n\n{table}\n", encoding="utf-8")
    return done.returncode == 0


def main() -> None:
    """Runs them; status 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether everything runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args()
    if options.quick and options.out == RESULTS:
        parser.error("--quick: its figures mean nothing; give another folder with --out")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in options.only if not run(name, options.quick, options.out)]
    if failed:
        sys.exit(f"all.py: error: {', '.join(failed)} failed (see above)")


if __name__ == "__main__":
    main()
