"""MatchTrace: the recorded states of a game, from which any reward can be computed."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.matches.matches import PoolFactory
from envs.pool.players import Bot, play
from envs.rewards import Reward
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float


@dataclass(frozen=True)
class MatchTrace:
    """Recorded states of a game, to compute any reward from them later.

    Attributes:
        frames: In order: (mask `[A]`, initial states) when episodes begin, (None, state) after every step.
        tick_skip: Ticks per step.
    """

    frames: list[tuple[Bool | None, GameState]]
    tick_skip: int

    @property
    def first(self) -> GameState:
        """Initial state."""
        return self.frames[0][1]

    @property
    def steps(self) -> list[GameState]:
        """States after steps."""
        return [state for mask, state in self.frames if mask is None]

    @property
    def minutes(self) -> float:
        """Game time in one arena, in minutes."""
        return float(len(self.steps) * self.tick_skip / TICKS_PER_SECOND / 60)


class _Recorder(Reward):
    """Reward of zero that keeps a copy of every state, as in `MatchTrace.frames`."""

    def __init__(self) -> None:
        self.frames: list[tuple[Bool | None, GameState]] = []

    def reset(self, mask: Bool, state: GameState) -> None:
        self.frames.append((mask.copy(), state.copy()))

    def compute(self, state: GameState) -> Float:
        self.frames.append((None, state.copy()))
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def record_trace(factory: PoolFactory, bot: Bot, seconds: float, seed: int, **changes: Any) -> MatchTrace:  # noqa: ANN401
    """Record the states while `bot` plays all cars; see `record_traces`."""
    return record_traces(factory, {"": bot}, seconds, seed, **changes)[""]


def record_traces(
    factory: PoolFactory,
    bots: Mapping[str, Bot],
    seconds: float,
    seed: int,
    **changes: Any,  # noqa: ANN401 - the settings of a pool
) -> dict[str, MatchTrace]:
    """Let bots play one after the other, each all cars from the same seed, and record the states.

    Args:
        factory: Factory of the pool, whose observations and reward are replaced.
        bots: Play, by name.
        seconds: Game time in each arena for each bot; at least one step.
        seed: Arena `i` draws from `seed + i`.
        changes: Other settings of the pool.
    """
    recorder = _Recorder()
    pool = factory.build(**({"obs": None, "seed": seed} | changes | {"reward": recorder}))
    steps = max(1, round(seconds * TICKS_PER_SECOND / pool.tick_skip))
    traces = {}
    with closing(pool):
        for name, bot in bots.items():
            recorder.frames = []
            for _ in islice(play(pool, bot, seed), steps + 1):
                pass
            traces[name] = MatchTrace(recorder.frames, pool.tick_skip)
    return traces
