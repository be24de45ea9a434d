"""`fabric-rl audit-rewards`, `trace-rewards` and `show-resets`: checks of rewards and initial states."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text
from rlgym.rocket_league.common_values import CEILING_Z

from envs import RocketSimPool
from envs.audit.audit import SKIP_TOLERANCE, TOLERANCE, audit_rewards
from envs.audit.report import FARMING_BOTS, PLAYING_BOTS, Audit
from envs.audit.resets import reset_rows
from envs.audit.trace import PART, RETURN, TOTAL, TraceRow, reward_trace
from envs.bots import BOTS, RandomBot
from envs.matches.matches import PoolFactory
from envs.replays.plots import draw_field
from envs.resets.initial_states import ResetRow, summarize_ranges
from envs.rewards.parts import INVARIANT_UNITS, term_label
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.settings import CountOrZero
from fabric_rl.base.tables import format_number, table
from fabric_rl.commands.output import Out, Report, writes
from fabric_rl.types import EnvFactory

_AUDIT_FILES = "Output files (.json, .png). If several phases are audited, their names include the phase."
_TRACE_FILES = "Output files: .png for the plot, .csv for the table of steps."
_RESET_FILES = "Output files: .png for the views from above and from the side, .csv for all initial states."
_COLOURS = {"ball": "0.35", "blue": "tab:blue", "orange": "tab:orange"}


@writes(Out("out", [".json", ".png"], _AUDIT_FILES, several=True))
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
            audit_report(result),
            asdict(result) | {"findings": findings, "passed": result.passed},
            draw=partial(draw_audit, result),
            status=int(not result.passed or (strict and bool(findings))),
            name=f"{each}" if len(phases) > 1 else "",
        )


def audit_report(result: Audit) -> list[Table | Text]:
    """Return both tables of an audit, and a line for each finding and note."""
    lines = [
        Text(f"{'FAIL' if f.fatal else 'warning'}: {f.text}", "red" if f.fatal else "yellow") for f in result.findings
    ]
    lines += [Text(f"note: {note}", "dim") for note in result.notes]
    fatal = sum(finding.fatal for finding in result.findings)
    verdict = f"{fatal} failed" if fatal else "passed: own goals do not pay, and farming does not pay more than scoring"
    return [pay_table(result), check_table(result), *lines, Text(verdict, "red" if fatal else "green")]


def pay_table(result: Audit) -> Table:
    """Return a table of what each part of the reward pays per minute, by situation."""
    title = f"Phase {result.phase}. " if result.phase else ""
    title += f"Pay per car and minute (seed {result.seed}, {result.seconds:g} s each)\n"
    title += f"`score` scored {result.goals_per_minute:.3g} goals per minute"
    situations = ("random", *FARMING_BOTS, *PLAYING_BOTS)
    rows: list[list[str] | None] = []
    for part in (*result.parts, result.total):
        pay = [format_number(round(part.per_minute[name], 3), 3) for name in situations]
        weight = "" if part is result.total else f"{part.weight:g}"
        rows.append([term_label(part.name), weight, f"{part.share:.1%}", part.sign, *pay])
    rows.insert(-1, None)
    columns = ["part", ">weight", ">share", ">sign", *(f">{name}" for name in situations)]
    return table(title, columns, rows, tight=True)


def check_table(result: Audit) -> Table:
    """Return a table of each part's promises and the results of checking them."""
    rows: list[list[str] | None] = []
    for part in (*result.parts, result.total):
        situation, earned = part.farmed
        farming = f"{situation} {format_number(earned, 3)}" if earned > 0 else "-"
        same = ["same" if value <= TOLERANCE else f"off {value:.1%}" for value in (part.mirror, part.order)]
        skips = "/".join(format_number(pay, 2) for pay in part.tick_skip.values())
        kept = "" if part.unit not in INVARIANT_UNITS else " broken" if part.skip_change > SKIP_TOLERANCE else " kept"
        own_goal = format_number(part.own_goal, 3)
        rows.append([term_label(part.name), part.unit or "-", own_goal, farming, *same, skips + kept])
    rows.insert(-1, None)
    skips = "/".join(map(str, result.total.tick_skip))
    columns = ["part", "unit", ">own goal", ">farming", ">mirrored", ">order", f">tick skip {skips}"]
    return table("Checks (pay per minute)", columns, rows, tight=True)


def draw_audit(result: Audit) -> Any:  # noqa: ANN401 - see new_figure
    """Plot the share of each part, and what each situation pays per minute, by part."""
    figure = new_figure(13, max(4.0, 2.0 + 0.3 * len(result.parts)))
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    names = [term_label(part.name) for part in result.parts]
    colours = [f"C{number % 10}" for number in range(len(names))]
    left.barh(names, [part.share for part in result.parts], color=colours)
    left.invert_yaxis()
    left.set_xlabel("share of all rewards and penalties")
    situations = list(result.total.per_minute)
    above, below = np.zeros(len(situations)), np.zeros(len(situations))
    for part, name, colour in zip(result.parts, names, colours, strict=True):
        pay = np.array([part.per_minute[situation] for situation in situations])
        start = np.where(pay >= 0, above, below)
        right.bar(situations, pay, bottom=start, label=name, color=colour)
        above, below = above + np.maximum(pay, 0), below + np.minimum(pay, 0)
    right.plot(situations, list(result.total.per_minute.values()), "k_", markersize=24, label="total")
    right.axhline(0, color="black", linewidth=0.5)
    right.set_ylabel("pay per car and minute")
    right.legend(fontsize="small")
    right.set_title("; ".join(f.text for f in result.findings if f.fatal)[:100] or "passed")
    return figure


@writes(Out("out", [".png", ".csv"], _TRACE_FILES, several=True))
def trace_rewards(
    env: EnvFactory = RocketSimPool,
    bot: str = "shooter",
    opponent: str = "idle",
    car: int = 0,
    seconds: float = 30.0,
    seed: CountOrZero = 0,
    phase: str | None = None,
) -> Report:
    """Show one car's rewards, step by step, in an episode between scripted bots.

    Args:
        env: Environment class with its settings; must be a RocketSimPool.
        bot: Bot that plays the car's team: idle, random, chaser, shooter, aerial, circle, hover or hop.
        opponent: Bot that plays the other team, with the same choices.
        car: Index of the car, blue cars first.
        seconds: Maximum game time in seconds.
        seed: Seed; the same seed gives the same results.
        phase: Phase of the training, if the environment has phases. Default: the first phase.
    """
    for flag, name in (("bot", bot), ("opponent", opponent)):
        if name not in BOTS:
            raise ValueError(f"--{flag} {name}: there is no such bot; choose one of {', '.join(BOTS)}")
    ours, theirs = (RandomBot(seed) if BOTS[name] is RandomBot else BOTS[name]() for name in (bot, opponent))
    rows = reward_trace(env, ours, theirs, car=car, seconds=seconds, seed=seed, phase=phase)
    return Report([sums_table(rows)], rows=rows, draw=partial(draw_trace, rows))


def sums_table(rows: Sequence[TraceRow]) -> Table:
    """Return a table of the sum and range of every part of the reward."""
    touches, goal = sum(row["touch"] for row in rows), sum(row["goal"] for row in rows)
    title = f"{rows[-1]['seconds']:.1f} s, {len(rows)} steps, {touches:g} with a touch, goal {goal:+g}"
    cells = []
    for name in (name for name in rows[0] if name.startswith(PART) or name == TOTAL):
        values = np.array([row[name] for row in rows])
        figures = [f"{number:.4g}" for number in (values.sum(), values.min(), values.max())]
        cells.append([term_label(name.removeprefix(PART)), *figures, str(np.count_nonzero(values))])
    return table(title, ["part", ">sum", ">min", ">max", ">steps paid"], cells)


def draw_trace(rows: Sequence[TraceRow]) -> Any:  # noqa: ANN401 - see new_figure
    """Plot the parts of the reward over time with touches and goals, and the return below."""
    figure = new_figure(12, 8)
    parts, total = figure.subplots(2, 1, sharex=True)
    seconds = [row["seconds"] for row in rows]
    for name in (name for name in rows[0] if name.startswith(PART)):
        values = np.array([row[name] for row in rows])
        size = np.abs(values).max()
        label = f"{term_label(name.removeprefix(PART))} (largest {size:.3g}, sum {values.sum():.3g})"
        parts.plot(seconds, values / size if size else values, label=label, linewidth=1)
    parts.set_ylabel("pay per step, relative to the largest of each part")
    total.plot(seconds, [row[RETURN] for row in rows], color="black")
    total.set_ylabel("return")
    total.set_xlabel("seconds")
    for panel in (parts, total):
        for event, colour, style in (("touch", "grey", ":"), ("goal", "red", "-")):
            for number, at in enumerate(row["seconds"] for row in rows if row[event]):
                panel.axvline(at, color=colour, linestyle=style, linewidth=1, label=event if not number else None)
    parts.legend(fontsize="small")
    return figure


@writes(Out("out", [".png", ".csv"], _RESET_FILES, several=True))
def show_resets(
    env: EnvFactory = RocketSimPool, episodes: int = 100, seed: CountOrZero = 0, phase: str | None = None
) -> Report:
    """Show the initial states of episodes: ranges of ball and cars, views from above and from the side, and a table.

    Args:
        env: Environment class with its settings; must be a RocketSimPool.
        episodes: Number of episodes.
        seed: Seed; the same seed gives the same results.
        phase: Phase of the training, if the environment has phases. Default: the first phase.
    """
    rows = reset_rows(env, episodes, seed, phase)
    return Report([ranges_table(rows)], rows=rows, draw=partial(draw_resets, rows))


def ranges_table(rows: Sequence[ResetRow]) -> Table:
    """Return a table of the ranges of all quantities."""
    episodes = len({row["episode"] for row in rows})
    cells: list[list[str] | None] = []
    for what, ranges in groupby(summarize_ranges(rows), key=lambda found: found.what):
        for number, (_, quantity, *numbers) in enumerate(ranges):
            cells.append(["" if number else what, quantity, *(f"{value:,.1f}" for value in numbers)])
        cells.append(None)
    columns = ["what", "quantity", ">min", ">mean", ">max"]
    return table(f"Initial states of {episodes} episodes", columns, cells)


def draw_resets(rows: Sequence[ResetRow]) -> Any:  # noqa: ANN401 - see new_figure
    """Draw the ball and the cars from the side, and from above with arrows that show where the cars point."""
    figure = new_figure(12, 9)
    top, side = figure.subplots(1, 2, width_ratios=[3, 2], sharey=True)
    draw_field(top)
    for what, colour in _COLOURS.items():
        own = [row for row in rows if row["what"] == what]
        if not own:
            continue
        x, y, z, yaw = (np.array([row[name] for row in own], np.float64) for name in ("x", "y", "z", "yaw"))
        if what == "ball":
            top.scatter(x, y, s=12, color=colour, alpha=0.5, label=what)
        else:
            turn = np.deg2rad(yaw)
            arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.003}
            top.quiver(x, y, 300 * np.cos(turn), 300 * np.sin(turn), color=colour, alpha=0.7, label=what, **arrows)
        side.scatter(z, y, s=12, color=colour, alpha=0.5)
    top.set_title("from above")
    top.legend()
    side.set(xlabel="z (uu)", xlim=(0, CEILING_Z), title="from the side")
    return figure
