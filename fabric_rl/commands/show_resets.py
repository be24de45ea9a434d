"""`fabric-rl show-resets`: where episodes begin, as a picture and a table."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table
from rlgym.rocket_league.common_values import CEILING_Z

from envs import RocketSimPool
from envs.audit.resets import reset_rows
from envs.replays.plots import draw_field
from envs.resets.first_states import ResetRow, ranges_of
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.tables import console
from fabric_rl.commands.output import check_out, write_csv, write_out, write_png
from fabric_rl.types import EnvFactory

COLOURS = {"ball": "0.35", "blue": "tab:blue", "orange": "tab:orange"}


def show_resets(
    env: EnvFactory = RocketSimPool,
    episodes: int = 100,
    seed: int = 0,
    phase: str | None = None,
    out: Sequence[Path] = (),
) -> int:
    """Show the initial states of episodes: ranges of ball and cars, a view from above, and a table.

    Args:
        env: Environment class with its settings; must be a RocketSimPool.
        episodes: Number of episodes.
        seed: Seed; the same seed gives the same results.
        phase: Phase of the training, if the environment has phases. Default: the first phase.
        out: Output files: .png for the view from above, .csv for all initial states.
    """
    writers = {".png": draw_resets, ".csv": write_csv}
    check_out(out, writers)
    rows = reset_rows(env, episodes, seed, phase)
    console().print(ranges_table(rows))
    write_out(out, rows, writers)
    return 0


def ranges_table(rows: Sequence[ResetRow]) -> Table:
    """The ranges of all numbers."""
    episodes = len({row["episode"] for row in rows})
    table = Table("what", "quantity", box=box.SIMPLE_HEAD, title=f"Initial states of {episodes} episodes")
    for name in ("least", "mean", "greatest"):
        table.add_column(name, justify="right")
    for what, ranges in groupby(ranges_of(rows), key=lambda found: found.what):
        for number, (_, quantity, *numbers) in enumerate(ranges):
            table.add_row("" if number else what, quantity, *(f"{value:,.1f}" for value in numbers))
        table.add_section()
    return table


def draw_resets(rows: Sequence[ResetRow], path: Path) -> None:
    """Draws the ball and the cars (arrows: where the nose points) from above, and from the side.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    figure = new_figure(12, 9)
    top, side = figure.subplots(1, 2, width_ratios=[3, 2], sharey=True)
    draw_field(top)
    for what, colour in COLOURS.items():
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
    write_png(figure, path)
