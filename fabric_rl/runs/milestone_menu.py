"""The milestones that somebody at a terminal may go on from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console
from rich.table import Table

from fabric_rl.base.tables import figure_text, table, when_text
from fabric_rl.runs import checkpoint
from fabric_rl.runs.checkpoint import CheckpointError
from fabric_rl.runs.checkpoint_names import checkpoints
from fabric_rl.runs.records import Milestone, RunRecord

MOST_SHOWN = 20
"""Milestones that are offered by number."""


@dataclass(frozen=True)
class Offer:
    """A milestone that fits."""

    run: str
    milestone: Milestone
    written: datetime
    """Local time."""


def fitting(records: Sequence[RunRecord], own: dict[str, str]) -> tuple[list[Offer], int]:
    """The milestones of all runs that fit an environment and an agent.

    Args:
        records: The runs.
        own: The fingerprint of environment and agent, see `fabric_rl.runs.fingerprint.fingerprint`.

    Returns:
        Those that fit, the newest first, and how many do not (or cannot be read).
    """
    offers, left_out = [], 0
    for record in records:
        for milestone, fingerprint in _fingerprints(record):
            if fingerprint == own:
                time = milestone.timestamp or datetime.fromtimestamp(milestone.folder.stat().st_mtime)
                offers.append(Offer(record.name, milestone, time))
            else:
                left_out += 1
    return sorted(offers, key=lambda offer: (offer.written, offer.milestone.steps), reverse=True), left_out


def ask(offers: Sequence[Offer], left_out: int) -> Milestone | None:
    """Shows the newest milestones and asks for one; None for the latest checkpoint instead.

    Raises:
        KeyboardInterrupt: Ctrl+C or Ctrl+D: nothing is to be started.
    """
    console = Console()
    shown = offers[:MOST_SHOWN]
    console.print(_table(shown))
    if len(offers) > len(shown):
        console.print(f"and {len(offers) - len(shown)} older ones: --resume RUNS_DIR/RUN/milestones/PHASE/STEPS")
    if left_out:
        console.print(f"{left_out} of other environments or agents are left out")
    try:
        while True:
            answer = console.input("Go on from which milestone? Enter for the latest checkpoint: ").strip()
            if not answer:
                return None
            if answer.isdecimal() and 1 <= int(answer) <= len(shown):
                return shown[int(answer) - 1].milestone
            console.print(f"a number from 1 to {len(shown)}, please")
    except (EOFError, KeyboardInterrupt):
        console.print("\nnothing is started")
        raise KeyboardInterrupt from None


def _table(offers: Sequence[Offer]) -> Table:
    rated = any(offer.milestone.rating is not None for offer in offers)
    rows = []
    for number, offer in enumerate(offers, start=1):
        milestone = offer.milestone
        figures = map(figure_text, [milestone.mean_reward, *[milestone.rating] * rated])
        about = [str(number), offer.run, milestone.phase, f"{milestone.steps:,}"]
        rows.append([*about, *figures, when_text(offer.written)])
    return table("", [">", "run", "phase", ">steps", ">return", *[">rating"] * rated, "date"], rows)


def _fingerprints(record: RunRecord) -> Iterator[tuple[Milestone, dict[str, str] | None]]:
    """The milestones of a run that hold a checkpoint, the newest first, with their fingerprints.

    Old ones do not tell theirs in `meta.json`. All of a run are the same, so that one of its files, which may be
    large, is enough.
    """
    of_run: dict[str, str] | None = None
    for milestone in sorted(record.milestones, key=lambda milestone: milestone.steps, reverse=True):
        files = checkpoints(milestone.folder)
        if not files:
            continue
        fingerprint = milestone.fingerprint
        if fingerprint is None:
            if of_run is None:
                try:
                    of_run = checkpoint.read(files[-1]).get("fingerprint")
                except CheckpointError:
                    of_run = None  # damaged; the next one may be good
            fingerprint = of_run
        yield milestone, fingerprint
