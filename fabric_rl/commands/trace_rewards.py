"""`fabric-rl trace-rewards`: what one car is paid, step by step, through one episode."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from envs import RocketSimPool
from envs.audit.trace import PART, RETURN, TOTAL, TraceRow, reward_trace
from envs.bots import BOTS, RandomBot
from envs.rewards.parts import part_label
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.settings import CountOrZero
from fabric_rl.base.tables import table
from fabric_rl.commands.output import Out, Report, writes
from fabric_rl.types import EnvFactory

_FILES = "Output files: .png for the plot, .csv for the table of steps."


@writes(Out("out", [".png", ".csv"], _FILES, several=True))
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
        bot: Bot that plays the car's team: idle, random, chaser, shooter, circle, hover or hop.
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
    """Return what every part came to."""
    touches, goal = sum(row["touch"] for row in rows), sum(row["goal"] for row in rows)
    title = f"{rows[-1]['seconds']:.1f} s, {len(rows)} steps, {touches:g} with a touch, goal {goal:+g}"
    cells = []
    for name in (name for name in rows[0] if name.startswith(PART) or name == TOTAL):
        values = np.array([row[name] for row in rows])
        figures = [f"{number:.4g}" for number in (values.sum(), values.min(), values.max())]
        cells.append([part_label(name.removeprefix(PART)), *figures, str(np.count_nonzero(values))])
    columns = ["part", ">sum", ">least step", ">greatest step", ">steps paid"]
    return table(title, columns, cells, framed=False)


def draw_trace(rows: Sequence[TraceRow]) -> Any:  # noqa: ANN401 - see new_figure
    """Draw a trace: the parts and their total by time with touches and goals, and the return below."""
    figure = new_figure(12, 8)
    parts, total = figure.subplots(2, 1, sharex=True)
    seconds = [row["seconds"] for row in rows]
    for name in (name for name in rows[0] if name.startswith(PART)):
        values = np.array([row[name] for row in rows])
        size = np.abs(values).max()
        label = f"{part_label(name.removeprefix(PART))} (largest {size:.3g}, sum {values.sum():.3g})"
        parts.plot(seconds, values / size if size else values, label=label, linewidth=1)
    parts.set_ylabel("pay of a step, each part over its largest")
    total.plot(seconds, [row[RETURN] for row in rows], color="black")
    total.set_ylabel("return")
    total.set_xlabel("seconds")
    for panel in (parts, total):
        for event, colour, style in (("touch", "grey", ":"), ("goal", "red", "-")):
            for number, at in enumerate(row["seconds"] for row in rows if row[event]):
                panel.axvline(at, color=colour, linestyle=style, linewidth=1, label=event if not number else None)
    parts.legend(fontsize="small")
    return figure
