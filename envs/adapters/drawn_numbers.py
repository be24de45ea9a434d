"""DrawnNumbers: a Gymnasium environment some of whose own numbers are drawn anew for its episodes."""

from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np

from envs.parameters import ParameterRandomizer
from envs.parameters.samplers import drawn_from
from fabric_rl.base.settings import is_whole


class DrawnNumbers(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Draws numbers that the innermost environment has as attributes, before its episodes begin.

    Whole numbers stay whole: what is drawn for them is rounded down.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], randomizer: ParameterRandomizer) -> None:
        super().__init__(env)
        self._held: frozenset[str] = frozenset()
        self._samplers = dict(sorted(randomizer.samplers.items()))
        self._interval = randomizer.resampling_interval or 0
        self._rng = np.random.default_rng()
        self._drawn: dict[str, float] = {}
        self._steps = 0

    @property
    def numbers(self) -> dict[str, float]:
        """What they are now."""
        return {name: float(getattr(self.env.unwrapped, name)) for name in self._samplers}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Draws, where it is time, and begins an episode; a seed also seeds what is drawn, in a stream of its own."""
        if seed is not None:
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        if seed is not None or not self._drawn or self._steps >= self._interval:
            self._steps = 0
            self._drawn = {name: drawn_from(sampler, name, self._rng) for name, sampler in self._samplers.items()}
        self._put()
        return super().reset(seed=seed, options=options)

    def hold(self, names: Iterable[str]) -> None:
        """Leaves these to somebody else from now on; the others are what was drawn for the episode, again."""
        self._held = frozenset(names)
        self._put()

    def _put(self) -> None:
        for name in self._drawn.keys() - self._held:
            own = getattr(self.env.unwrapped, name)
            setattr(self.env.unwrapped, name, int(self._drawn[name] // 1) if is_whole(own) else self._drawn[name])

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401 - Gymnasium's signature
        self._steps += 1
        return super().step(action)
