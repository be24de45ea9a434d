"""Runs the speed benchmarks one after another and writes `benchmarks/results/*.md`; `make bench` is this.

    python benchmarks/all.py                       # everything: about two hours on two cores
    python benchmarks/all.py --only pool peers     # some
    python benchmarks/all.py --quick --out /tmp/b  # a trial of all scripts; its figures mean nothing

Those called gpu_... need a GPU and are left out elsewhere. Leave the machine alone meanwhile. A benchmark that fails
leaves its old results, and the others go on.
"""

import argparse
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"
_LARGE = "--hidden_sizes 2048 2048 1024 1024"
_ON_GPU = ("threads", "processes groups=2", "processes groups=2 --overlap=true")
_PRECISIONS = ("precision=bf16-mixed", "precision=bf16-mixed compile")


@dataclass(frozen=True)
class Benchmark:
    """A script, and how it is run."""

    flags: str
    trial: str
    """Flags of a quick trial."""
    script: str = ""
    """Its name, if that is not the benchmark's."""
    writes: bool = True
    """It has `--out`; else what it prints is kept, but for the last line."""
    out: str = ""
    """The name of its results, if that is not the benchmark's."""


def _on_gpu(flags: str) -> Benchmark:
    """Whole trainings on a GPU, in all the ways that may be the fastest."""
    settings = " ".join(f"'{how} arenas=512 {precision}'" for how in _ON_GPU for precision in _PRECISIONS)
    few = "--rounds 1 --iterations 3 --warm_up 1 --batch 4000 --bare_steps 60 --settings 'threads arenas=20'"
    return Benchmark(
        f"--accelerator cuda --rounds 2 --iterations 12 {flags} --settings {settings}",
        f"--accelerator cuda {few}",
        "end_to_end",
    )


BENCHMARKS = {
    "pool": Benchmark(
        "--team_size 1 2 3 --num_arenas 16 64 256",
        "--num_arenas 8 --steps 40 --repeats 1 --rlgym_steps 80",
        writes=False,
        out="pool_table",
    ),
    "learner": Benchmark("--rounds 7", "--rounds 1 --steps 4000", writes=False),
    "end_to_end": Benchmark(
        "--rounds 3", "--rounds 1 --iterations 3 --warm_up 1 --batch 2000 --bare_steps 60 --settings threads processes"
    ),
    "peers": Benchmark(
        "--rounds 3", "--rounds 1 --iterations 3 --warm_up 1 --batch 2000 --buffers 1 --processes 4 --settings threads"
    ),
    "scaling": Benchmark("--rounds 2", "--rounds 1 --iterations 3 --warm_up 1 --batch 2000 --arenas 16 --steps 40"),
    "seeds": Benchmark("", "--seeds 0,1 --steps 512", writes=False),
    "gpu_learner": Benchmark(
        f"--accelerator cuda --precision bf16-mixed --steps 100000 --minibatch_size 50000 --rounds 5 {_LARGE}",
        "--accelerator cuda --precision bf16-mixed --rounds 1 --steps 4000",
        "learner",
        writes=False,
    ),
    "gpu_512": _on_gpu("--hidden_sizes 512 512 512 --batch 50000 --minibatches 2"),
    "gpu_large": _on_gpu(f"{_LARGE} --batch 100000 --minibatches 2"),
}


def run(name: str, quick: bool, folder: Path) -> bool:
    """Runs one benchmark; whether it succeeded."""
    benchmark = BENCHMARKS[name]
    script = f"{benchmark.script or name}.py"
    words, result = shlex.split(benchmark.trial if quick else benchmark.flags), folder / f"{benchmark.out or name}.md"
    told = f"python benchmarks/{script} {shlex.join(words)}"
    command = [sys.executable, str(Path(__file__).with_name(script)), *words]
    command += ["--out", str(result)] if benchmark.writes else []
    print(f"\n=== {name}: {told}", flush=True)
    done = subprocess.run(command, stdout=None if benchmark.writes else subprocess.PIPE, text=True)
    if not benchmark.writes:
        print(done.stdout)
        if done.returncode == 0:
            table = done.stdout.rstrip().rpartition("\n")[0].rstrip()  # the last line is JSON
            result.write_text(f"# {name.capitalize()}\n\n`{told}`\n\n{table}\n", encoding="utf-8")
    return done.returncode == 0


def main() -> None:
    """Runs them; status 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = [name for name in BENCHMARKS if torch.cuda.is_available() or not name.startswith("gpu_")]
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=here)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether everything runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args()
    if options.quick and options.out == RESULTS:
        parser.error("--quick: its figures mean nothing; give another folder with --out")
    if missing := [name for name in options.only if name not in here]:
        parser.error(f"--only {missing[0]}: this machine has no GPU")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in options.only if not run(name, options.quick, options.out)]
    if failed:
        sys.exit(f"all.py: error: {', '.join(failed)} failed (see above)")


if __name__ == "__main__":
    main()
