"""The contract of observation builders."""

from abc import ABC, abstractmethod

import gymnasium
import numpy as np

from envs.component import Component
from envs.obs.meanings import Meaning, slices
from envs.state.game_state import GameState
from envs.state.layout import Float

_UNWRITTEN = 0x7FC0DEAD
"""Bits of a float32 NaN that no computation gives."""


class ObsBuilder(Component, ABC):
    """Builds the observations of all cars at once.

    A car that `state.present` says is not there looks like padding to everybody: zero everywhere in the observations of
    the others. Its own observation, which pools leave out, is zero too.
    """

    @abstractmethod
    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """The observation space of one car, float32 `[D]`, or `[E, F]` for a set of objects.

        Args:
            num_blue: Blue cars in an arena; in a pool of mixed team sizes the most that an arena has.
            num_orange: Orange cars, likewise.

        Raises:
            ValueError: The builder cannot describe that many cars.
        """

    @abstractmethod
    def build(self, state: GameState, out: Float) -> None:
        """Writes the observation of every car into `out [A, C, D]` float32 (every element must be written).

        `state` may hold a few of the pool's arenas only; `state.arena_index` says which. `out` may be a part of the
        columns of a larger array.
        """

    def columns(self, num_blue: int, num_orange: int) -> dict[str, slice]:
        """Return names for slices that cover the last axis of `space(num_blue, num_orange)` once.

        `obs[..., builder.columns(1, 1)["ball_pos"]]` is the ball's position as the car sees it, for example. What a
        name means, in which unit and with which factor, is in `meanings`, whose groups they are; `python -m envs.obs`
        prints both.

        Args:
            num_blue: As in `space`.
            num_orange: As in `space`.
        """
        return slices(self.meanings(num_blue, num_orange))

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """Return the meaning of every column, in order. By default every column is called `obs`.

        Your own builder may say it here; one that only has names for its columns says those in `columns`.
        """
        silent = type(self).columns is ObsBuilder.columns
        everything = {"obs": slice(0, self.space(num_blue, num_orange).shape[-1])}
        columns = everything if silent else self.columns(num_blue, num_orange)
        return [Meaning(name, "", at.stop - at.start, "not described") for name, at in columns.items()]


def build_named(builder: ObsBuilder, state: GameState, out: Float) -> None:
    """Builds into `out`; a ValueError that names the builder if its numbers do not fit."""
    try:
        builder.build(state, out)
    except (IndexError, ValueError) as error:
        name = type(builder).__name__
        if str(error).startswith(f"{name}: ") or ": build()" in str(error):
            raise
        raise ValueError(
            f"{name}: build() failed to fill out, which has the shape {list(out.shape)}: {error}"
        ) from error


def build_checked(builder: ObsBuilder, state: GameState, out: Float) -> None:
    """As `build_named`; also a ValueError if not all of `out` was written."""
    bits = out.view(np.uint32)
    bits.fill(_UNWRITTEN)
    build_named(builder, state, out)
    left = np.unique(np.argwhere((bits == _UNWRITTEN)[state.present])[:, -1]).tolist()
    if left:
        some = f"column {left[0]}" if len(left) == 1 else f"{len(left)} columns, the first is {left[0]},"
        raise ValueError(
            f"{type(builder).__name__}: build() left {some} of {out.shape[-1]} unwritten; it must write every element "
            "of out, and what it returns is not used"
        )
