"""What one car is paid, step by step, through one episode.

In a notebook: `rows = reward_trace(partial(RocketSimPool, reward=...), BallChaser())`, then `StepTable(rows)` of
`envs.audit.trace_table`, or `pandas.DataFrame(rows)`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.audit.replay import replay
from envs.bots import Bot, IdleBot, TeamBots
from envs.checks import check_seed
from envs.matches.matches import PoolRecipe
from envs.matches.tape import Tape, record
from envs.rewards.parts import parts_of
from envs.state.layout import CONTROL_NAMES
from fabric_rl.base.settings import is_number

TraceRow = dict[str, float]
"""A step of a trace; see `reward_trace`."""
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
) -> list[TraceRow]:
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
    recipe = PoolRecipe(factory, owner, phase)
    blue, orange = recipe.team_sizes[0]
    if not 0 <= car < blue + orange:
        raise ValueError(f"{owner}: --car {car} is not there, the first arena has cars 0 to {blue + orange - 1}")
    others = IdleBot() if opponent is None else opponent
    teams = TeamBots(bot, others) if car < blue else TeamBots(others, bot)
    check_seed(owner, seed, "--seed")
    tape = _first_episode(record(recipe, teams, seconds, seed, num_arenas=1, team_size=(blue, orange)))
    paid = {
        f"{PART}{part.name}": replay(part.fresh(), tape, part.name)[:, 0, car] for part in parts_of(recipe.reward())
    }
    paid[TOTAL] = replay(recipe.reward(), tape)[:, 0, car]
    paid[RETURN] = np.cumsum(paid[TOTAL])
    rows = []
    for step, state in enumerate(tape.steps):
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


def _first_episode(tape: Tape) -> Tape:
    """Up to the end of the first episode."""
    begins = [number for number, (mask, _) in enumerate(tape.frames) if mask is not None]
    return Tape(tape.frames[: begins[1]], tape.tick_skip) if len(begins) > 1 else tape
