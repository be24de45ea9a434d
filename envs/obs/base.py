"""The contract of observation builders."""

from abc import ABC, abstractmethod
from typing import Any

import gymnasium
from numpy.typing import NDArray

from envs.game_state import Bool, Float, GameState


class ObsBuilder(ABC):
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
        """What is where: names for slices that cover the last axis of `space(num_blue, num_orange)` once."""
        return {"obs": slice(0, self.space(num_blue, num_orange).shape[-1])}

    def reset(self, mask: Bool, state: GameState) -> None:  # noqa: B027 - most builders keep nothing
        """Called for the arenas (`mask [A]`) that begin a new episode in `state`."""

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Copies of what the builder remembers between steps, for an exact resume. Most remember nothing."""
        return {}

    def load_state_dict(self, state: dict[str, NDArray[Any]]) -> None:  # noqa: B027 - most builders keep nothing
        """Takes what `state_dict` gave.

        Raises:
            ValueError: It came from a builder of another shape.
        """
