"""`fabric-rl audit-rewards`: what every part of a reward pays for, as tables, JSON and a picture."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from envs import RocketSimPool
from envs.audit.audit import SKIP_TOLERANCE, TOLERANCE, audit_rewards
from envs.audit.result import FARMING, PLAYING, Audit, PartReport
from envs.matches.matches import PoolFactory
from envs.rewards.parts import INVARIANT_UNITS, part_label
from fabric_rl.commands.output import check_out, console, new_figure, write_out, write_png
from fabric_rl.types import EnvFactory


def audit(
    env: EnvFactory = RocketSimPool,
    seconds: float = 30.0,
    num_arenas: int = 8,
    strict: bool = False,
    seed: int = 0,
    phase: str | None = None,
    out: Sequence[Path] = (),
) -> int:
    """Play random and scripted situations, and report what each part of a reward pays for.

    The exit status is 1 if a part, or the whole reward, pays for an own goal, or pays more for farming than for
    scoring.

    Args:
        env: Environment class with its settings; must be a RocketSimPool.
        seconds: Game time of each situation in seconds, 1 to 3600.
        num_arenas: Arenas per situation, 2 or more.
        strict: Also exit with status 1 if there are warnings.
        seed: Seed; the same seed gives the same results.
        phase: Phase of the training, if the environment has phases. Default: audit each phase.
        out: Output files (.json, .png). If several phases are audited, their names include the phase.
    """
    writers = {".json": write_json, ".png": draw_audit}
    check_out(out, writers)
    phases: list[str | None] = [*PoolFactory(env, "audit-rewards").phases] if phase is None else [phase]
    failed = False
    for each in phases or [None]:
        result = audit_rewards(env, seconds=seconds, seed=seed, num_arenas=num_arenas, phase=each)
        console().print(report(result))
        named = [path.with_stem(f"{path.stem}_{each}") for path in out] if len(phases) > 1 else out
        write_out(named, result, writers)
        failed |= not result.passed or (strict and bool(result.findings))
    return int(failed)


def report(result: Audit) -> Group:
    """Both tables, and a line for each finding and note."""
    lines = [
        Text(f"{'FAIL' if f.fatal else 'warning'}: {f.text}", "red" if f.fatal else "yellow") for f in result.findings
    ]
    lines += [Text(f"note: {note}", "dim") for note in result.notes]
    fatal = sum(finding.fatal for finding in result.findings)
    verdict = f"{fatal} failed" if fatal else "passed: no own goal is paid, and no farming better than scoring"
    return Group(pay_table(result), check_table(result), *lines, Text(verdict, "red" if fatal else "green"))


def pay_table(result: Audit) -> Table:
    """What each part pays a minute."""
    title = f"Phase {result.phase}. " if result.phase else ""
    title += f"Pay of one car a minute (seed {result.seed}, {result.seconds:g} s each)\n"
    table = Table(box=box.SIMPLE_HEAD, title=title + f"`score` scored {result.goals_per_minute:.3g} goals a minute")
    table.add_column("part", overflow="fold")
    for name in ("weight", "share", "sign", "random", *FARMING, *PLAYING):
        table.add_column(name, justify="right", no_wrap=True)
    for row in _rows(result):
        pay = [_number(row.per_minute[name]) for name in ("random", *FARMING, *PLAYING)]
        weight = "" if row is result.total else f"{row.weight:g}"
        cells = [part_label(row.name), weight, f"{row.share:.1%}", row.sign, *pay]
        table.add_row(*cells, end_section=row is result.parts[-1])
    return table


def check_table(result: Audit) -> Table:
    """What each part promises and whether it holds."""
    table = Table(box=box.SIMPLE_HEAD, title="Checks (pay a minute)")
    table.add_column("part", overflow="fold")
    table.add_column("unit")
    for name in ("own goal", "best farming", "mirrored", "car order"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("pay at tick skip " + " / ".join(map(str, result.total.tick_skip)), justify="right")
    table.add_column("promised", justify="right")
    for row in _rows(result):
        what, earned = row.farmed
        farming = f"{what} {_number(earned)}" if earned > 0 else "-"
        same = [_verdict(value, TOLERANCE) for value in (row.mirror, row.order)]
        skips = " / ".join(map(_number, row.tick_skip.values()))
        promised = row.unit in INVARIANT_UNITS
        kept = ("broken" if row.skip_change > SKIP_TOLERANCE else "kept") if promised else "-"
        cells = [row.unit or "-", _number(row.own_goal), farming, *same, skips, kept]
        table.add_row(part_label(row.name), *cells, end_section=row is result.parts[-1])
    return table


def _rows(result: Audit) -> list[PartReport]:
    return [*result.parts, result.total]


def _number(value: float) -> str:
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if math.isfinite(value) else str(value)


def _verdict(value: float, tolerance: float) -> str:
    return "same" if value <= tolerance else f"differs {value:.1%}"


def write_json(result: Audit, path: Path) -> None:
    """Writes everything as JSON."""
    found = [asdict(finding) | {"fatal": finding.fatal} for finding in result.findings]
    numbers = asdict(result) | {"findings": found, "passed": result.passed}
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


def draw_audit(result: Audit, path: Path) -> None:
    """Shares, and what each situation pays a minute by part; an ImportError without matplotlib."""
    figure = new_figure(13, max(4.0, 2.0 + 0.3 * len(result.parts)))
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    names = [part_label(part.name) for part in result.parts]
    colours = [f"C{number % 10}" for number in range(len(names))]
    left.barh(names, [part.share for part in result.parts], color=colours)
    left.invert_yaxis()
    left.set_xlabel("share of all that is paid and charged")
    situations = list(result.total.per_minute)
    above, below = np.zeros(len(situations)), np.zeros(len(situations))
    for part, name, colour in zip(result.parts, names, colours, strict=True):
        pay = np.array([part.per_minute[situation] for situation in situations])
        start = np.where(pay >= 0, above, below)
        right.bar(situations, pay, bottom=start, label=name, color=colour)
        above, below = above + np.maximum(pay, 0), below + np.minimum(pay, 0)
    right.plot(situations, [result.total.per_minute[s] for s in situations], "k_", markersize=24, label="total")
    right.axhline(0, color="black", linewidth=0.5)
    right.set_ylabel("pay of one car a minute")
    right.legend(fontsize="small")
    right.set_title("; ".join(f.text for f in result.findings if f.fatal)[:100] or "passed")
    write_png(figure, path)
