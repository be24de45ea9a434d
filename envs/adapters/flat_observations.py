"""FlatObservations: Dict, Tuple and numbered observations as one vector that knows what stands where."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class EntriesBox(spaces.Box):
    """The space of vectors that hold several entries, one behind the other.

    Attributes:
        entries: Name -> the entry's own space, in order; those of a Dict in a Dict are called `outer/inner`. An entry
            of shape `[a, b, c]` takes `a * b * c` columns, in C order.
    """

    def __init__(self, entries: dict[str, spaces.Box]) -> None:
        boxes = list(entries.values())
        pixels = all(box.dtype == np.uint8 for box in boxes) and any(box.high.max() > 1 for box in boxes)
        dtype = np.uint8 if pixels else np.float32
        low, high = (np.concatenate([getattr(b, end).ravel() for b in entries.values()]) for end in ("low", "high"))
        super().__init__(low.astype(dtype), high.astype(dtype), dtype=dtype)
        self.entries = entries


class FlatObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Observations of entries as vectors, float32, or uint8 where all numbers are pixels.

    What is numbered (Discrete, MultiDiscrete) becomes one-hot: a 1 in the column of its number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Wraps `env`.

        Raises:
            ValueError: An entry is no array of numbers, there is none, or two get the same name.
        """
        super().__init__(env)
        self._own = env.observation_space
        entries = _entries(self._own, "")
        if wrong := [name for name, box in entries.items() if not isinstance(box, spaces.Box)]:
            names = list(self._own) if isinstance(self._own, spaces.Dict) else []
            fine = [name for name in names if not any(each.split("/")[0] == name for each in wrong)]
            advice = (
                "leave it out: --wrappers+=gymnasium.wrappers.FilterObservation --wrappers.filter_keys="
                f"[{','.join(fine)}]"
                if fine
                else "put a wrapper around it (--wrappers) that makes numbers of it"
            )
            kind = type(entries[wrong[0]]).__name__
            raise ValueError(f"no agent reads the observation {wrong[0] or 'itself'}, a {kind}; {advice}")
        self.observation_space = EntriesBox(entries)

    def observation(self, observation: Any) -> NDArray[Any]:  # noqa: ANN401 - an element of any space
        """`[D]` of `observation_space`."""
        return np.asarray(spaces.flatten(self._own, observation), self.observation_space.dtype)


def _entries(space: spaces.Space[Any], name: str) -> dict[str, Any]:
    """Name -> Box, in the order of `gymnasium.spaces.flatten`; a space that is none of numbers stays as it is."""
    inner: Any = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(getattr(space, "spaces", ()))
    if isinstance(space, spaces.Dict | spaces.Tuple):
        every = [_entries(each, f"{name}/{own}" if name else str(own)) for own, each in inner]
        found = {key: box for each in every for key, box in each.items()}
        if not every:
            what = f"{name or 'itself'}, an empty {type(space).__name__}"
            raise ValueError(f"no agent reads the observation {what}; leave it out by a wrapper (--wrappers)")
        if len(found) < sum(map(len, every)):
            names = [key for each in every for key in each]
            twice = next(key for key in names if names.count(key) > 1)
            raise ValueError(f"two observations are called {twice}; name them without slashes")
        return found
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return {name: spaces.Box(0, 1, (spaces.flatdim(space),), np.uint8)}
    return {name: space}
