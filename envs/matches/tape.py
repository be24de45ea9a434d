"""Tape: what was seen of a game, and how it is recorded while bots play."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.bots.base import Bot
from envs.matches.matches import PoolRecipe
from envs.pool.play import play
from envs.rewards import Reward
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float


@dataclass(frozen=True)
class Tape:
    """What was seen of a game, to compute any reward from it later.

    Attributes:
        frames: In order: (mask `[A]`, first states) when episodes begin, (None, state) after every step.
        tick_skip: Ticks per step.
    """

    frames: list[tuple[Bool | None, GameState]]
    tick_skip: int

    @property
    def first(self) -> GameState:
        """The first state."""
        return self.frames[0][1]

    @property
    def steps(self) -> list[GameState]:
        """The states after steps."""
        return [state for mask, state in self.frames if mask is None]

    @property
    def minutes(self) -> float:
        """Game time in one arena."""
        return float(len(self.steps) * self.tick_skip / TICKS_PER_SECOND / 60)


class _Recorder(Reward):
    """Pays nothing and keeps a copy of every state that it is shown, as in `Tape.frames`."""

    def __init__(self) -> None:
        self.frames: list[tuple[Bool | None, GameState]] = []

    def reset(self, mask: Bool, state: GameState) -> None:
        self.frames.append((mask.copy(), state.copy()))

    def compute(self, state: GameState) -> Float:
        self.frames.append((None, state.copy()))
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def record(recipe: PoolRecipe, bot: Bot, seconds: float, seed: int, **changes: Any) -> Tape:  # noqa: ANN401
    """What rewards would see while `bot` plays all cars; see `record_each`."""
    return record_each(recipe, {"": bot}, seconds, seed, **changes)[""]


def record_each(
    recipe: PoolRecipe,
    bots: Mapping[str, Bot],
    seconds: float,
    seed: int,
    **changes: Any,  # noqa: ANN401 - the settings of a pool
) -> dict[str, Tape]:
    """Lets bots play one after the other, each all cars from the same seed, and keeps what rewards would see.

    Args:
        recipe: Of the pool; its observations and reward are left out.
        bots: Play, by name.
        seconds: Game time in each arena for each bot; at least one step.
        seed: Arena `i` draws from `seed + i`.
        changes: Other settings of the pool.
    """
    recorder = _Recorder()
    pool = recipe.build(**({"obs": None, "seed": seed} | changes | {"reward": recorder}))
    steps = max(1, round(seconds * TICKS_PER_SECOND / pool.tick_skip))
    tapes = {}
    with closing(pool):
        for name, bot in bots.items():
            recorder.frames = []
            for _ in islice(play(pool, bot, seed), steps + 1):
                pass
            tapes[name] = Tape(recorder.frames, pool.tick_skip)
    return tapes
