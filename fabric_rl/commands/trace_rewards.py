"""`fabric-rl trace-rewards`: what one car is paid, step by step, through one episode."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table

from envs.audit.parts import short_name
from envs.audit.trace import PART, RETURN, TOTAL, TraceRow, reward_trace
from envs.bots import BOTS, RandomBot
from fabric_rl.commands.output import check_out, console, new_figure, write_csv, write_out
from fabric_rl.commands.parsing import EnvParser
from fabric_rl.types import EnvFactory


def main(argv: Sequence[str]) -> int:
    """The command line of `trace_rewards`; returns the exit status, 2 for wrong usage."""
    text = "What one car is paid, step by step, through one episode that scripted bots play."
    parser = EnvParser("fabric-rl trace-rewards", text, out="files to write: .png the plot, .csv the table of steps")
    parser.add_argument("--bot", choices=BOTS, default="shooter", help="plays the car's team (shooter)")
    parser.add_argument("--opponent", choices=BOTS, default="idle", help="plays the other team (idle)")
    parser.add_argument("--car", type=int, default=0, help="slot of the car, blue first (0)")
    parser.add_argument("--seconds", type=float, default=30.0, help="game time at most (30)")
    return parser.run(argv, trace_rewards)


def trace_rewards(
    env: EnvFactory,
    bot: str = "shooter",
    opponent: str = "idle",
    car: int = 0,
    seconds: float = 30.0,
    seed: int = 0,
    phase: str | None = None,
    out: Sequence[Path] = (),
) -> int:
    """Prints the sums of a trace and writes it.

    Args:
        env: The environment.
        bot: Plays the car's team, a name in `envs.bots.BOTS`.
        opponent: Plays the other team.
        car: Slot of the car, blue first.
        seconds: Game time at most.
        seed: Decides everything.
        phase: Phase of training, where the environment has some; default: the first.
        out: Files to write: .png the plot, .csv the table of steps.

    Returns:
        The exit status, 0.
    """
    writers = {".png": draw_trace, ".csv": write_csv}
    check_out(out, writers)
    ours, theirs = (RandomBot(seed) if BOTS[name] is RandomBot else BOTS[name]() for name in (bot, opponent))
    rows = reward_trace(env, ours, theirs, car=car, seconds=seconds, seed=seed, phase=phase)
    console().print(sums_table(rows))
    write_out(out, rows, writers)
    return 0


def sums_table(rows: Sequence[TraceRow]) -> Table:
    """What every part came to."""
    touches, goal = sum(row["touch"] for row in rows), sum(row["goal"] for row in rows)
    title = f"{rows[-1]['seconds']:.1f} s, {len(rows)} steps, {touches:g} with a touch, goal {goal:+g}"
    table = Table("part", box=box.SIMPLE_HEAD, title=title)
    for name in ("sum", "least step", "greatest step", "steps paid"):
        table.add_column(name, justify="right")
    for name in (name for name in rows[0] if name.startswith(PART) or name == TOTAL):
        values = np.array([row[name] for row in rows])
        cells = [f"{number:.4g}" for number in (values.sum(), values.min(), values.max())]
        table.add_row(short_name(name.removeprefix(PART)), *cells, str(np.count_nonzero(values)))
    return table


def draw_trace(rows: Sequence[TraceRow], path: Path) -> None:
    """Draws a trace: the parts and their total by time with touches and goals, and the return below.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    figure = new_figure(12, 8)
    parts, total = figure.subplots(2, 1, sharex=True)
    seconds = [row["seconds"] for row in rows]
    for name in (name for name in rows[0] if name.startswith(PART)):
        values = np.array([row[name] for row in rows])
        size = np.abs(values).max()
        label = f"{short_name(name.removeprefix(PART))} (largest {size:.3g}, sum {values.sum():.3g})"
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
    figure.savefig(path)
