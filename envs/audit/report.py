"""The audit for people and programs: tables, findings, JSON, a picture."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from envs.audit.audit import SKIP_TOLERANCE, TOLERANCE
from envs.audit.parts import INVARIANT_UNITS
from envs.audit.result import FARMING, PLAYING, Audit, PartReport
from envs.tools import new_figure


def report(audit: Audit) -> Group:
    """Both tables, and a line for each finding and note."""
    lines = [
        Text(f"{'FAIL' if f.fatal else 'warning'}: {f.text}", "red" if f.fatal else "yellow") for f in audit.findings
    ]
    lines += [Text(f"note: {note}", "dim") for note in audit.notes]
    fatal = sum(finding.fatal for finding in audit.findings)
    verdict = f"{fatal} failed" if fatal else "passed: no own goal is paid, and no farming better than scoring"
    return Group(pay_table(audit), check_table(audit), *lines, Text(verdict, "red" if fatal else "green"))


def pay_table(audit: Audit) -> Table:
    """What each part pays a minute."""
    title = f"Phase {audit.phase}. " if audit.phase else ""
    title += f"Pay of one car a minute (seed {audit.seed}, {audit.seconds:g} s each)\n"
    table = Table(box=box.SIMPLE_HEAD, title=title + f"`score` scored {audit.goals_per_minute:.3g} goals a minute")
    table.add_column("part", overflow="fold")
    for name in ("weight", "share", "sign", "random", *FARMING, *PLAYING):
        table.add_column(name, justify="right", no_wrap=True)
    for row in _rows(audit):
        pay = [_number(row.per_minute[name]) for name in ("random", *FARMING, *PLAYING)]
        weight = "" if row is audit.total else f"{row.weight:g}"
        table.add_row(short(row.name), weight, f"{row.share:.1%}", row.sign, *pay, end_section=row is audit.parts[-1])
    return table


def check_table(audit: Audit) -> Table:
    """What each part promises and whether it holds."""
    table = Table(box=box.SIMPLE_HEAD, title="Checks (pay a minute)")
    table.add_column("part", overflow="fold")
    table.add_column("unit")
    for name in ("own goal", "best farming", "mirrored", "car order"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("pay at tick skip " + " / ".join(map(str, audit.total.tick_skip)), justify="right")
    table.add_column("promised", justify="right")
    for row in _rows(audit):
        what, earned = row.farmed
        farming = f"{what} {_number(earned)}" if earned > 0 else "-"
        same = [_verdict(value, TOLERANCE) for value in (row.mirror, row.order)]
        skips = " / ".join(map(_number, row.tick_skip.values()))
        promised = row.unit in INVARIANT_UNITS
        kept = ("broken" if row.skip_change > SKIP_TOLERANCE else "kept") if promised else "-"
        cells = [row.unit or "-", _number(row.own_goal), farming, *same, skips, kept]
        table.add_row(short(row.name), *cells, end_section=row is audit.parts[-1])
    return table


def short(name: str) -> str:
    """A part's name without the word that all share."""
    head, _, number = name.rpartition("_")
    return f"{head.removesuffix('Reward')}_{number}" if number.isdigit() else name.removesuffix("Reward")


def as_json(audit: Audit) -> dict[str, Any]:
    """Everything, in what JSON knows."""
    found = [asdict(finding) | {"fatal": finding.fatal} for finding in audit.findings]
    return asdict(audit) | {"findings": found, "passed": audit.passed}


def write(audit: Audit, path: Path) -> None:
    """Writes `.json`, or a `.png` picture.

    Raises:
        ImportError: A picture, but matplotlib is not installed.
        OSError: The file cannot be written.
    """
    if path.suffix == ".json":
        path.write_text(json.dumps(as_json(audit), indent=1) + "\n", encoding="utf-8")
    else:
        draw(audit, path)


def draw(audit: Audit, path: Path) -> None:
    """Shares, and what each situation pays a minute by part.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(13, max(4.0, 2.0 + 0.3 * len(audit.parts)))
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    names = [short(part.name) for part in audit.parts]
    colours = [f"C{number % 10}" for number in range(len(names))]
    left.barh(names, [part.share for part in audit.parts], color=colours)
    left.invert_yaxis()
    left.set_xlabel("share of all that is paid and charged")
    situations = list(audit.total.per_minute)
    above, below = np.zeros(len(situations)), np.zeros(len(situations))
    for part, name, colour in zip(audit.parts, names, colours, strict=True):
        pay = np.array([part.per_minute[situation] for situation in situations])
        start = np.where(pay >= 0, above, below)
        right.bar(situations, pay, bottom=start, label=name, color=colour)
        above, below = above + np.maximum(pay, 0), below + np.minimum(pay, 0)
    right.plot(situations, [audit.total.per_minute[s] for s in situations], "k_", markersize=24, label="total")
    right.axhline(0, color="black", linewidth=0.5)
    right.set_ylabel("pay of one car a minute")
    right.legend(fontsize="small")
    right.set_title("; ".join(f.text for f in audit.findings if f.fatal)[:100] or "passed")
    figure.savefig(path)


def _rows(audit: Audit) -> list[PartReport]:
    return [*audit.parts, audit.total]


def _number(value: float) -> str:
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if math.isfinite(value) else str(value)


def _verdict(value: float, tolerance: float) -> str:
    return "same" if value <= tolerance else f"differs {value:.1%}"
