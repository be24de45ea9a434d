"""`fabric-rl show-resets`: where episodes begin, as a picture and a table."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from rich.table import Table
from rlgym.rocket_league.common_values import CEILING_Z

from envs import RocketSimPool
from envs.audit.resets import reset_rows
from envs.replays.plots import draw_field
from envs.resets.first_states import ResetRow, ranges_of
from fabric_rl.analysis.curves import new_figure
from fabric_rl.base.settings import CountOrZero
from fabric_rl.base.tables import table
from fabric_rl.commands.output import Out, Report, writes
from fabric_rl.types import EnvFactory

COLOURS = {"ball": "0.35", "blue": "tab:blue", "orange": "tab:orange"}


_FILES = "Output files: .png for the view from above, .csv for all initial states."


@writes(Out("out", [".png", ".csv"], _FILES, several=True))
def show_resets(
    env: EnvFactory = RocketSimPool,
    episodes: int = 100,
    seed: CountOrZero = 0,
    phase: str | None = None,
) -> Report:
    """Show the initial states of episodes: ranges of ball and cars, a view from above, and a table.

    Args:
        env: Environment class with its settings; must be a RocketSimPool.
        episodes: Number of episodes.
        seed: Seed; the same seed gives the same results.
        phase: Phase of the training, if the environment has phases. Default: the first phase.
    """
    rows = reset_rows(env, episodes, seed, phase)
    return Report([ranges_table(rows)], rows=rows, draw=partial(draw_resets, rows))


def ranges_table(rows: Sequence[ResetRow]) -> Table:
    """Return the ranges of all numbers."""
    episodes = len({row["episode"] for row in rows})
    cells: list[list[str] | None] = []
    for what, ranges in groupby(ranges_of(rows), key=lambda found: found.what):
        for number, (_, quantity, *numbers) in enumerate(ranges):
            cells.append(["" if number else what, quantity, *(f"{value:,.1f}" for value in numbers)])
        cells.append(None)
    columns = ["what", "quantity", ">least", ">mean", ">greatest"]
    return table(f"Initial states of {episodes} episodes", columns, cells, framed=False)


def draw_resets(rows: Sequence[ResetRow]) -> Any:  # noqa: ANN401 - see new_figure
    """Draw the ball and the cars (arrows: where the nose points) from above, and from the side."""
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
    return figure
