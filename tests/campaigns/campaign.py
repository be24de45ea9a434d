"""What a campaign has in common: many processes, one after the other, and a table of how they ended."""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ != "__main__" and str(ROOT) not in sys.path:  # run as a script
    sys.path.insert(0, str(ROOT))

from tests.forks import Forks, kill  # noqa: E402

SECONDS = 60
BAD = ("crash", "hung", "traceback", "code ran", "several lines", "accepted in silence")
GOOD = ("refused", "accepted")


@dataclass(frozen=True)
class Case:
    """One process that is given something bad."""

    kind: str
    what: str
    words: list[str]
    judge: Callable[[str], bool]
    """Of what it has written to standard error: whether it may end well, as it has."""
    program: str = "train_fabric.py"
    canary: Path | None = None
    """A file that only code which came with the bad thing would write."""
    trusted: bool = False
    """It may end with a traceback, too."""
    seconds: float = SECONDS
    """Until it counts as hung."""
    files: dict[str, str] = field(default_factory=dict)
    """What else lies in its folder, where modules are found."""


def outcome(case, fork):
    """How it ended, and the line that says so."""
    lines = [line for line in fork.err.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if case.canary is not None and case.canary.exists():
        return "code ran", last
    if fork.status is None:
        return "hung", last
    if fork.status < 0:
        return "crash", f"signal {-fork.status}: {last}"
    if case.trusted and fork.status:
        return "refused", last
    if any("Traceback (most recent call last)" in line for line in lines):
        return "traceback", last
    if fork.status == 0:
        return ("accepted" if case.judge(fork.err) else "accepted in silence"), last
    told = [line for line in lines if not re.match(r"[\w.-]+(\.py)?( \w+)?: (warning|error): |\[.*\] ", line)]
    return ("refused", last) if not told and ": error: " in last else ("several lines", " | ".join(lines[:4]))


def run(cases, folder, workers=2):
    """Runs the cases; returns (case, outcome, line) for each."""
    forks, results, running = Forks(folder), [], []
    waiting = iter(cases)
    try:
        while True:
            while len(running) < workers and (case := next(waiting, None)) is not None:
                running.append(
                    (case, forks.start(*case.words, program=case.program, files=case.files), time.monotonic())
                )
            if not running:
                return results
            for entry in list(running):
                case, fork, began = entry
                late = time.monotonic() - began > case.seconds
                if forks.is_running(fork) and not late:
                    continue
                if late and fork.status is None:
                    kill(fork.pid)
                results.append((case, *outcome(case, fork)))
                running.remove(entry)
            time.sleep(0.01)
    finally:
        forks.close()


def table(results):
    """How many of each kind ended in which way."""
    counts = defaultdict(Counter)
    for case, how, _ in results:
        counts[case.kind][how] += 1
    columns = (*GOOD, *BAD)
    return aligned(("cases", *columns), {kind: [n.total(), *(n[how] for how in columns)] for kind, n in counts.items()})


def aligned(columns, counts):
    """A table of kind -> counts, with their sums."""
    rows = [("kind", *columns), *((kind, *counts[kind]) for kind in sorted(counts))]
    rows.append(("all", *map(sum, zip(*counts.values(), strict=True))))
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(str(x).rjust(w) if i else str(x).ljust(w) for i, (x, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )


def report(results):
    """Prints the table and every case that ended badly; returns how many did."""
    print(table(results))
    bad = [(case, how, line) for case, how, line in results if how in BAD]
    for case, how, line in bad:
        print(f"{how}: {case.kind}: {case.what}\n    {line[:300]}")
    return len(bad)


def main(about, campaign, number):
    """The command line of a campaign that gets a folder, a number and a seed: status 1 if something ended badly."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--number", type=int, default=number)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(bool(campaign(Path(temporary), arguments.number, arguments.seed)))
