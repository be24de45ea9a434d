"""Base class of observation builders, and the descriptions of the columns that they build."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import gymnasium
import numpy as np

from envs.component import Component
from envs.state.game_state import GameState
from envs.state.layout import Float

AXES = "x, y, z"
LOCAL_AXES = "along the car's forward, right, up"
FLAG = "0 or 1"
UNIT_VECTOR = "unit vector"
_UNWRITTEN = 0x7FC0DEAD
"""Bits of a float32 NaN that no computation produces."""


class Meaning(NamedTuple):
    """Adjacent columns with a common meaning."""

    group: str
    """Name in `ObsBuilder.columns`."""
    name: str
    """Name within the group, empty if the group has only one meaning."""
    width: int
    """Number of columns."""
    text: str
    """Description."""
    unit: str = ""
    """Unit or range before the factor."""
    factor: float | np.float32 | Float | str = 1.0
    """Factor on the number, one for all columns or one for each; in a `TableObs.table` the name of its setting."""


def slices(meanings: Iterable[Meaning]) -> dict[str, slice]:
    """Return the columns of each group, for `ObsBuilder.columns`."""
    groups: dict[str, slice] = {}
    start = 0
    for meaning in meanings:
        stop = start + meaning.width
        groups[meaning.group] = slice(groups[meaning.group].start if meaning.group in groups else start, stop)
        start = stop
    return groups


def with_prefix(prefix: str, meanings: Iterable[Meaning], note: str = "") -> list[Meaning]:
    """Return copies with `prefix` before each group and `note` after each text."""
    return [m._replace(group=f"{prefix}{m.group}", text=f"{m.text}{note}") for m in meanings]


def regroup(group: str, meanings: Iterable[Meaning], whose: str = "") -> tuple[Meaning, ...]:
    """Return copies as parts of one group, with `whose` in place of `{}` in the texts."""
    return tuple(m._replace(group=group, name=m.name or m.group, text=m.text.format(whose)) for m in meanings)


@lru_cache(maxsize=64)
def numbered_groups(group: str, meanings: tuple[Meaning, ...], count: int, whose: str = "") -> tuple[Meaning, ...]:
    """Return `count` copies, as the groups `group_0`, `group_1`..., see `regroup`."""
    return tuple(meaning for number in range(count) for meaning in regroup(f"{group}_{number}", meanings, whose))


def factor_text(factor: float | np.float32 | Float | str) -> str:
    """Format a factor: `1`, `1/2300`, `1/4096, 1/6000, 1/2044`."""
    factors = np.atleast_1d(np.asarray(factor, np.float64)).tolist()
    texts = [f"1/{1 / x:.6g}" if 0 < abs(x) < 1 else f"{x:g}" for x in factors]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


class ObsBuilder(Component, ABC):
    """Builder of the observations of all cars at once.

    A slot without a car (`state.present` is False) is zero in the observations of other cars, like padding. Its own
    observation, which pools leave out, is also zero.
    """

    @abstractmethod
    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """Return the observation space of one car, float32 `[D]`, or `[E, F]` for a set of objects.

        Args:
            num_blue: Number of blue cars in an arena; in a pool of mixed team sizes, the maximum over the arenas.
            num_orange: Number of orange cars in an arena, or the maximum over the arenas.

        Raises:
            ValueError: The builder cannot describe teams of these sizes.
        """

    @abstractmethod
    def build(self, state: GameState, out: Float) -> None:
        """Write the observation of every car into `out [A, C, D]` float32 (every element must be written).

        `state` may contain only some of the pool's arenas, namely `state.arena_index`. `out` may be a view of some
        columns of a larger array.
        """

    def columns(self, num_blue: int, num_orange: int) -> dict[str, slice]:
        """Return the named column groups of an observation: name -> slice of the last axis.

        For example, `obs[..., builder.columns(1, 1)["ball_pos"]]` is the ball's position as the car sees it. The slices
        cover every column exactly once. `meanings` returns the meaning, unit and factor of every group;
        `python -m envs.obs` prints both.
        """
        return slices(self.meanings(num_blue, num_orange))

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """Return the meaning of every column, in order. By default, all columns form one group `obs`.

        In your own builder, override this method to describe the columns, or `columns` if you only name them.
        """
        silent = type(self).columns is ObsBuilder.columns
        everything = {"obs": slice(0, self.space(num_blue, num_orange).shape[-1])}
        columns = everything if silent else self.columns(num_blue, num_orange)
        return [Meaning(name, "", at.stop - at.start, "not described") for name, at in columns.items()]


class TableObs(ObsBuilder):
    """A builder that describes its columns in one table, from which its space and their meanings follow."""

    @abstractmethod
    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """Return all columns in order, with names of settings as factors; raise the same errors as `space`."""

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        width = sum(meaning.width for meaning in self.table(num_blue, num_orange))
        return gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        meanings = self.table(num_blue, num_orange)
        for at, meaning in enumerate(meanings):
            if isinstance(meaning.factor, str):
                meanings[at] = meaning._replace(factor=np.float32(getattr(self, meaning.factor)))
        return meanings


def build_obs(builder: ObsBuilder, state: GameState, out: Float) -> None:
    """Build observations into `out`; raise a ValueError that names the builder if they do not fit."""
    try:
        builder.build(state, out)
    except (IndexError, ValueError) as error:
        name = type(builder).__name__
        if str(error).startswith(f"{name}: ") or ": build()" in str(error):
            raise
        raise ValueError(
            f"{name}: build() could not write to out, whose shape is {list(out.shape)}: {error}"
        ) from error


def build_obs_checked(builder: ObsBuilder, state: GameState, out: Float) -> None:
    """Call `build_obs`, and also raise a ValueError if not all of `out` was written."""
    bits = out.view(np.uint32)
    bits.fill(_UNWRITTEN)
    build_obs(builder, state, out)
    left = np.unique(np.argwhere((bits == _UNWRITTEN)[state.present])[:, -1]).tolist()
    if left:
        some = f"column {left[0]}" if len(left) == 1 else f"{len(left)} columns (the first is {left[0]})"
        raise ValueError(
            f"{type(builder).__name__}: build() left {some} of {out.shape[-1]} unwritten; it must write every element "
            "of out, and its return value is not used"
        )


def column_range(start: int, stop: int) -> str:
    """Format a range of columns: `3-5` for columns 3, 4 and 5; `3` for one column."""
    return str(start) if stop - start == 1 else f"{start}-{stop - 1}"
