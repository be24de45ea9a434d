"""Episodes: how those of a pool begin."""

import warnings
from typing import Any

import numpy as np

from envs.parameters import LiveParameters, ParameterRandomizer, TunableArenas
from envs.resets import StateSetter, check_start
from envs.state.layout import Bool


class Episodes:
    """Begins episodes: an arena's parameters and its first state are drawn from generators of its own.

    Attributes:
        rngs: `[A]` generators, for first states and for the places where demolished cars return.
        parameters: What of the physics changes.
    """

    def __init__(
        self, arenas: TunableArenas, state_setter: StateSetter, randomizer: ParameterRandomizer | None, seed: int
    ) -> None:
        """Takes what episodes begin with; see `seed`, and `LiveParameters` for errors."""
        self._arenas, self._setter = arenas, state_setter
        self.parameters = LiveParameters(arenas, randomizer, seed)
        self._seed_rngs(seed)

    def seed(self, seed: int) -> None:
        """Arena `i` draws from `seed + i` from now on."""
        self._seed_rngs(seed)
        self.parameters.seed(seed)

    def _seed_rngs(self, seed: int) -> None:
        self.rngs = [np.random.default_rng(seed + i) for i in range(self._arenas.state.num_arenas)]

    @property
    def rng_states(self) -> list[dict[str, Any]]:
        """The states of `rngs`, for an exact resume."""
        return [dict(rng.bit_generator.state) for rng in self.rngs]

    @rng_states.setter
    def rng_states(self, states: list[dict[str, Any]]) -> None:
        for rng, state in zip(self.rngs, states, strict=True):
            rng.bit_generator.state = state

    def begin(self, mask: Bool) -> int:
        """Begins an episode in the arenas of `mask [A]`, after building broken ones anew, with a warning each.

        Returns:
            How many were broken.

        Raises:
            ValueError: The state setter wrote something that cannot be.
        """
        arenas, state = self._arenas, self._arenas.state
        broken = np.flatnonzero(arenas.broken).tolist()
        for index in broken:
            warnings.warn(
                f"RocketSim produced NaN physics in arena {index}; its episode was truncated and the arena rebuilt",
                RuntimeWarning,
                stacklevel=3,
            )
            arenas.rebuild(index)
        starting = np.flatnonzero(mask)
        state.clear(starting)
        state.invalidate()
        one = np.zeros(state.num_arenas, np.bool_)
        for index in starting.tolist():
            one[index] = True
            self._setter.apply(state, one, self.rngs[index])
            one[index] = False
            if not state.all_present:
                state.clear_absent(index)
            check_start(state, index, self._setter.author())
            self.parameters.begin(index)
            arenas.begin(index)
        state.invalidate()
        return len(broken)
