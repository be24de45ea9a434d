"""`fabric-rl audit-rewards`: what every part of a reward pays for, as tables, JSON and a picture."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from envs import RocketSimPool
from envs.audit.audit import SKIP_TOLERANCE, TOLERANCE, audit_rewards
from envs.audit.result import FARMING, PLAYING, Audit
from envs.matches.matches import PoolFactory
from envs.rewards.parts import INVARIANT_UNITS, part_label
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.settings import CountOrZero
from fabric_rl.base.tables import figure_text, table
from fabric_rl.commands.output import Out, Report, writes
from fabric_rl.types import EnvFactory

_FILES = "Output files (.json, .png). If several phases are audited, their names include the phase."


@writes(Out("out", [".json", ".png"], _FILES, several=True))
def audit(
    env: EnvFactory = RocketSimPool,
    seconds: float = 30.0,
    num_arenas: int = 8,
    strict: bool = False,
    seed: CountOrZero = 0,
    phase: str | None = None,
) -> Iterator[Report]:
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
    """
    phases: list[str | None] = [*PoolFactory(env, "audit-rewards").phases] if phase is None else [phase]
    for each in phases or [None]:
        result = audit_rewards(env, seconds=seconds, seed=seed, num_arenas=num_arenas, phase=each)
        findings = [asdict(finding) | {"fatal": finding.fatal} for finding in result.findings]
        yield Report(
            shown(result),
            asdict(result) | {"findings": findings, "passed": result.passed},
            draw=partial(draw_audit, result),
            status=int(not result.passed or (strict and bool(findings))),
            name=f"{each}" if len(phases) > 1 else "",
        )


def shown(result: Audit) -> list[Table | Text]:
    """Return both tables, and a line for each finding and note."""
    lines = [
        Text(f"{'FAIL' if f.fatal else 'warning'}: {f.text}", "red" if f.fatal else "yellow") for f in result.findings
    ]
    lines += [Text(f"note: {note}", "dim") for note in result.notes]
    fatal = sum(finding.fatal for finding in result.findings)
    verdict = f"{fatal} failed" if fatal else "passed: no own goal is paid, and no farming better than scoring"
    return [pay_table(result), check_table(result), *lines, Text(verdict, "red" if fatal else "green")]


def pay_table(result: Audit) -> Table:
    """Return what each part pays a minute."""
    title = f"Phase {result.phase}. " if result.phase else ""
    title += f"Pay of one car a minute (seed {result.seed}, {result.seconds:g} s each)\n"
    rows: list[list[str] | None] = []
    for part in (*result.parts, result.total):
        pay = [figure_text(part.per_minute[name], 3) for name in ("random", *FARMING, *PLAYING)]
        weight = f"{part.weight:g}"
        if part is result.total:
            rows, weight = [*rows, None], ""
        rows.append([part_label(part.name), weight, f"{part.share:.1%}", part.sign, *pay])
    columns = ["part", ">weight", ">share", ">sign", ">random", *(f">{name}" for name in (*FARMING, *PLAYING))]
    return table(f"{title}`score` scored {result.goals_per_minute:.3g} goals a minute", columns, rows, framed=False)


def check_table(result: Audit) -> Table:
    """Return what each part promises and whether it holds."""
    rows: list[list[str] | None] = []
    for part in (*result.parts, result.total):
        what, earned = part.farmed
        farming = f"{what} {figure_text(earned, 3)}" if earned > 0 else "-"
        same = [_verdict(value, TOLERANCE) for value in (part.mirror, part.order)]
        skips = " / ".join(figure_text(pay, 3) for pay in part.tick_skip.values())
        kept = "-" if part.unit not in INVARIANT_UNITS else "broken" if part.skip_change > SKIP_TOLERANCE else "kept"
        cells = [part_label(part.name), part.unit or "-", figure_text(part.own_goal, 3), farming, *same, skips, kept]
        rows += [None, cells] if part is result.total else [cells]
    skips = " / ".join(map(str, result.total.tick_skip))
    columns = ["part", "unit", ">own goal", ">best farming", ">mirrored", ">car order", f">pay at tick skip {skips}"]
    return table("Checks (pay a minute)", [*columns, ">promised"], rows, framed=False)


def _verdict(value: float, tolerance: float) -> str:
    return "same" if value <= tolerance else f"differs {value:.1%}"


def draw_audit(result: Audit) -> Any:  # noqa: ANN401 - see new_figure
    """Draw the shares, and what each situation pays a minute by part."""
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
    return figure
