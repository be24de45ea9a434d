"""`fabric-rl trace-rewards`: what one car is paid, step by step, through one episode.

In a notebook: `rows = reward_trace(partial(RocketSimPool, reward=...), BallChaser())`, then `StepTable(rows)` of
`envs.audit.trace_table`, or `pandas.DataFrame(rows)`.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from envs.audit.parts import parts_of
from envs.audit.report import short
from envs.audit.tape import replay
from envs.bots import BOTS, Bot, IdleBot, RandomBot, TeamBots
from envs.checks import check_seed, is_number
from envs.matches.tape import PoolSettings, Tape, record
from envs.sim.arena import TICKS_PER_SECOND
from envs.state.layout import CONTROL_NAMES
from envs.tools import LoadEnv, ToolParser, check_suffixes, console, new_figure, run, write_csv

Row = dict[str, float]
TOTAL, RETURN = "total", "return"
PART = "reward/"
"""Begins the columns of the parts."""
CONTROL = "control/"
"""Begins the columns of what the car was told."""


def reward_trace(
    factory: Callable[..., Any],
    bot: Bot,
    opponent: Bot | None = None,
    car: int = 0,
    seconds: float = 30.0,
    seed: int = 0,
    phase: str | None = None,
) -> list[Row]:
    """Plays one episode of a pool's first arena and tells what one car is paid in every step.

    Args:
        factory: `RocketSimPool`, or a `functools.partial` of it with settings.
        bot: Plays the team of the car.
        opponent: Plays the other one; default: idle.
        car: Slot of the car: blue cars first, then orange.
        seconds: Game time after which the trace ends, if the episode has not.
        seed: Of the episode.
        phase: Of training, for a pool with phases; default: the first.

    Returns:
        A row for each step: `step`, `seconds`, `touch` and `goal` (1 own team's, -1 the other's), `speed` and
        `ball_distance` (uu/s, uu), `boost` (0..100), `control/<name>` (what the car was told in this step: throttle,
        steer, pitch, yaw, roll in -1..1; jump, boost, handbrake 0 or 1), `reward/<part>` for every part with its
        weight, their `total`, and `return`, the sum of totals up to here.

    Raises:
        ValueError: No such car, or numbers that cannot work.
        TypeError: Not the settings of a `RocketSimPool`.
    """
    owner = "trace-rewards"
    if not is_number(seconds) or not 0 < seconds <= 3600:
        raise ValueError(f"{owner}: --seconds must be above 0 and at most 3600, got {seconds!r}")
    settings = PoolSettings(factory, owner, phase)
    blue, orange = settings.team_sizes[0]
    if not 0 <= car < blue + orange:
        raise ValueError(f"{owner}: --car {car} is not there, the first arena has cars 0 to {blue + orange - 1}")
    others = IdleBot() if opponent is None else opponent
    teams = TeamBots(bot, others) if car < blue else TeamBots(others, bot)
    check_seed(owner, seed, "--seed")
    tape = _first_episode(record(settings, teams, seconds, seed, num_arenas=1, team_size=(blue, orange)))
    paid = {
        f"{PART}{part.name}": replay(part.fresh(), tape, part.name)[:, 0, car] for part in parts_of(settings.reward())
    }
    paid[TOTAL] = replay(settings.reward(), tape)[:, 0, car]
    paid[RETURN] = np.cumsum(paid[TOTAL])
    rows = []
    for step, state in enumerate(tape.steps):
        goal = int(state.scoring_team[0])
        distance = state.world.ball_pos[0] - state.world.car_pos[0, car]
        row: Row = {
            "step": step + 1,
            "seconds": float(state.episode_ticks[0]) / TICKS_PER_SECOND,
            "touch": int(state.touched[0, car]),
            "goal": 0 if goal < 0 else 1 if goal == state.team[car] else -1,
            "speed": float(np.linalg.norm(state.world.car_vel[0, car])),
            "ball_distance": float(np.linalg.norm(distance)),
            "boost": float(state.boost[0, car]),
        }
        told = state.controls[0, car].tolist()
        row |= {f"{CONTROL}{name}": number for name, number in zip(CONTROL_NAMES, told, strict=True)}
        rows.append(row | {name: float(values[step]) for name, values in paid.items()})
    return rows


def draw_trace(rows: Sequence[Row], path: str | Path) -> None:
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
        label = f"{short(name.removeprefix(PART))} (largest {size:.3g}, sum {values.sum():.3g})"
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


def sums_table(rows: Sequence[Row]) -> Table:
    """What every part came to."""
    touches, goal = sum(row["touch"] for row in rows), sum(row["goal"] for row in rows)
    title = f"{rows[-1]['seconds']:.1f} s, {len(rows)} steps, {touches:g} with a touch, goal {goal:+g}"
    table = Table("part", box=box.SIMPLE_HEAD, title=title)
    for name in ("sum", "least step", "greatest step", "steps paid"):
        table.add_column(name, justify="right")
    for name in (name for name in rows[0] if name.startswith(PART) or name == TOTAL):
        values = np.array([row[name] for row in rows])
        cells = [f"{number:.4g}" for number in (values.sum(), values.min(), values.max())]
        table.add_row(short(name.removeprefix(PART)), *cells, str(np.count_nonzero(values)))
    return table


def main(argv: Sequence[str], load: LoadEnv) -> int:
    """Prints the sums of a trace and writes it; returns the exit status, 2 for wrong usage."""
    text = "What one car is paid, step by step, through one episode that scripted bots play."
    parser = ToolParser("fabric-rl trace-rewards", text, out="files to write: .png the plot, .csv the table of steps")
    parser.add_argument("--bot", choices=BOTS, default="shooter", help="plays the car's team (shooter)")
    parser.add_argument("--opponent", choices=BOTS, default="idle", help="plays the other team (idle)")
    parser.add_argument("--car", type=int, default=0, help="slot of the car, blue first (0)")
    parser.add_argument("--seconds", type=float, default=30.0, help="game time at most (30)")
    return run(parser, _trace, argv, load)


def _trace(args: argparse.Namespace, factory: Callable[..., Any]) -> int:
    check_suffixes(args.out, (".png", ".csv"))
    bots = [RandomBot(args.seed) if BOTS[name] is RandomBot else BOTS[name]() for name in (args.bot, args.opponent)]
    times = {"seconds": args.seconds, "seed": args.seed, "phase": args.phase}
    rows = reward_trace(factory, bots[0], bots[1], car=args.car, **times)
    console().print(sums_table(rows))
    for path in args.out:
        (write_csv(path, rows) if path.suffix == ".csv" else draw_trace(rows, path))
        print(f"written: {path}")
    return 0


def _first_episode(tape: Tape) -> Tape:
    """Up to the end of the first episode."""
    begins = [number for number, (mask, _) in enumerate(tape.frames) if mask is not None]
    return Tape(tape.frames[: begins[1]], tape.tick_skip) if len(begins) > 1 else tape
