"""Rewards of one car in every step of one episode, and a table of them.

In a notebook: `rows = reward_trace(partial(RocketSimPool, reward=...), BallChaser())`, then `StepTable(rows)`, or
`pandas.DataFrame(rows)`.
"""

import html
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.audit.replay import compute_rewards
from envs.bots import Bot, IdleBot, TeamBots
from envs.checks import check_seed
from envs.matches.matches import MatchTrace, PoolFactory, record_trace
from envs.rewards.parts import reward_terms, term_label
from envs.state.layout import CONTROL_NAMES
from fabric_rl.base.settings import is_number
from fabric_rl.base.text import in_columns

TraceRow = dict[str, float]
"""A step of a trace; see `reward_trace`."""
TOTAL, RETURN = "total", "return"
PART = "reward/"
"""Prefix of the columns of the terms."""
CONTROL = "control/"
"""Prefix of the columns of the car's controls."""


def reward_trace(
    factory: Callable[..., Any],
    bot: Bot,
    opponent: Bot | None = None,
    car: int = 0,
    seconds: float = 30.0,
    seed: int = 0,
    phase: str | None = None,
) -> list[TraceRow]:
    """Play one episode of a pool's first arena, and return one car's rewards in every step.

    Args:
        factory: `RocketSimPool`, or a `functools.partial` of it with settings.
        bot: Bot of the car's team.
        opponent: Bot of the other team; default: idle.
        car: Slot of the car: blue cars first, then orange.
        seconds: Maximum game time of the trace.
        seed: Seed of the episode.
        phase: Phase of training, for a pool with phases; default: the first.

    Returns:
        A row for each step: `step`, `seconds`, `touch` and `goal` (1 for the car's team, -1 for the other),
        `speed` and `ball_distance` (uu/s, uu), `boost` (0..100), `control/<name>` (controls in this step: throttle,
        steer, pitch, yaw, roll in -1..1; jump, boost, handbrake 0 or 1), `reward/<part>` for every weighted term, their
        `total`, and `return`, the cumulative total.

    Raises:
        ValueError: There is no such car, or a number is out of range.
        TypeError: The factory does not build a `RocketSimPool`.
    """
    owner = "trace-rewards"
    if not is_number(seconds) or not 0 < seconds <= 3600:
        raise ValueError(f"{owner}: --seconds must be above 0 and at most 3600, got {seconds!r}")
    recipe = PoolFactory(factory, owner, phase)
    blue, orange = recipe.team_sizes[0]
    if not 0 <= car < blue + orange:
        raise ValueError(f"{owner}: there is no car {car} (--car); the first arena has cars 0 to {blue + orange - 1}")
    others = IdleBot() if opponent is None else opponent
    teams = TeamBots(bot, others) if car < blue else TeamBots(others, bot)
    check_seed(owner, seed, "--seed")
    trace = _first_episode(record_trace(recipe, teams, seconds, seed, num_arenas=1, team_size=(blue, orange)))
    paid = {
        f"{PART}{part.name}": compute_rewards(part.copy_weighted(), trace, part.name)[:, 0, car]
        for part in reward_terms(recipe.reward())
    }
    paid[TOTAL] = compute_rewards(recipe.reward(), trace)[:, 0, car]
    paid[RETURN] = np.cumsum(paid[TOTAL])
    rows = []
    for step, state in enumerate(trace.steps):
        goal = int(state.scoring_team[0])
        distance = state.world.ball_pos[0] - state.world.car_pos[0, car]
        row: TraceRow = {
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


def _first_episode(trace: MatchTrace) -> MatchTrace:
    """Return the trace up to the end of the first episode."""
    begins = [number for number, (mask, _) in enumerate(trace.states_with_resets) if mask is not None]
    return MatchTrace(trace.states_with_resets[: begins[1]], trace.tick_skip) if len(begins) > 1 else trace


STATE = ("step", "seconds", "speed", "ball_distance", "boost", "touch", "goal")


class StepTable:
    """Table of the steps of `reward_trace`: state, controls, and the reward of every term.

    Notebooks show it as an HTML table (positive rewards green, negative ones red), `print` as text. Terms that are zero
    in all of these steps are left out.

    Attributes:
        columns: Headings.
        cells: The rows, as text.
    """

    def __init__(self, rows: Sequence[TraceRow], digits: int = 3) -> None:
        """Build the table from at least one row, for example `rows[40:60]`, or only the rows with `row["touch"]`."""
        if not rows:
            raise ValueError("StepTable: there are no steps to show; pass rows from reward_trace")
        self.rows = list(rows)
        parts = [name for name in rows[0] if name.startswith(PART) and any(row[name] for row in rows)]
        self._paid = [*parts, TOTAL, RETURN]
        self.columns = [*STATE, "told", *(term_label(name.removeprefix(PART)) for name in self._paid)]
        self.cells = [
            [
                *(f"{row[name]:.2f}" if name == "seconds" else f"{row[name]:.0f}" for name in STATE),
                format_controls(row),
                *(f"{row[name]:.{digits}g}" if row[name] else "" for name in self._paid),
            ]
            for row in self.rows
        ]

    def __str__(self) -> str:
        return in_columns([self.columns, *self.cells], str.rjust)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        first_paid = len(STATE) + 1
        lines = []
        for row, cells in zip(self.rows, self.cells, strict=True):
            written = [f"<td>{html.escape(cell)}</td>" for cell in cells[:first_paid]]
            for name, cell in zip(self._paid, cells[first_paid:], strict=True):
                colour = "green" if row[name] > 0 else "crimson"
                written.append(f'<td style="color:{colour}">{cell}</td>' if cell else "<td></td>")
            lines.append(f"<tr>{''.join(written)}</tr>")
        style = "overflow-x:auto;font-size:small"
        return (
            f'<div style="{style}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
        )


def format_controls(row: TraceRow) -> str:
    """Format the nonzero controls, such as `throttle 1 steer -0.5 jump`."""
    pieces = []
    for name, number in row.items():
        if name.startswith(CONTROL) and number:
            label = name.removeprefix(CONTROL)
            pieces.append(label if label in ("jump", "boost", "handbrake") else f"{label} {number:g}")
    return " ".join(pieces)
