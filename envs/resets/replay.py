"""Recorded states: save them to a file, and begin episodes with them."""

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.resets.base import BALL_VECTORS, CAR_VECTORS, PerArenaSetter
from envs.state.game_state import GameState
from envs.state.layout import BLUE, CAR_FLAGS, CAR_TIMERS, ON_GROUND, ORANGE
from fabric_rl.base.files import atomic_write, checksum, read_arrays, read_error_context
from fabric_rl.base.settings import describe_value
from fabric_rl.base.state_schema import check_structure

DETAILS = (
    *("wheels", "jump_time", "air_time", "flip_torque"),
    *("is_auto_flipping", "auto_flip_timer", "auto_flip_direction"),
)
"""Fields of `GameState.details` that belong to a car's own state."""
ARENA_ARRAYS = (*BALL_VECTORS, "pad_timers")
"""Arrays without an axis for cars."""
MOST_BYTES = 1 << 30
"""Maximum size of the arrays in a file."""
_MOST_CARS = 64


def save_states(path: str | Path, states: GameState | Iterable[GameState]) -> int:
    """Write a file for `ReplayedStates` with every arena of every state, in the given order.

    Each state is copied before the next one is requested, so a generator can play a pool:

        def play():
            for _ in range(1000):
                pool.step(policy(...))
                yield pool.state

        save_states("states.npz", play())

    `pool.state` is one object that every step changes, so store copies in a list: `kept.append(pool.state.copy())`.

    The file is a NumPy .npz file without pickles, followed by a checksum. With `S` states and `C` slots, it contains
    `team [C]` int8 (0 blue, 1 orange), `present [S, C]` bool, `ball_pos`, `ball_vel`, `ball_ang_vel` `[S, 3]`,
    `pad_timers [S, 34]`, `boost [S, C]`, `car_pos`, `car_vel`, `car_ang_vel`, `car_forward`, `car_right`, `car_up`
    `[S, C, 3]`, and one array `[S, C, ...]` for each name in `CAR_TIMERS`, `CAR_FLAGS` and `DETAILS`; all are float32
    or bool, with the units of `GameState`, not mirrored.

    Args:
        path: Path of the file; an existing file is replaced, and missing folders are created.
        states: One or more states, all with the same number of slots per team. Right after `pool.step`, arenas whose
            episode ended contain the first state of their next episode.

    Returns:
        The number of states in the file.

    Raises:
        ValueError: There are no states, their team sizes differ, a list contains the same object more than once, or the
            states exceed the reader's limit.
        TypeError: `states` are not `GameState` objects.
    """
    if isinstance(states, GameState):
        states = [states]
    elif not isinstance(states, Iterable):
        raise TypeError(f"save_states: states must be GameState objects, got {describe_value(states)}")
    elif isinstance(states, Sequence) and len({id(state) for state in states}) < len(states):
        raise ValueError(
            "save_states: the list contains the same GameState object several times; keep pool.state.copy() "
            "after each step instead of pool.state"
        )
    parts: list[dict[str, NDArray[Any]]] = []
    team = None
    for state in states:
        if not isinstance(state, GameState):
            raise TypeError(f"save_states: states must be GameState objects, got {describe_value(state)}")
        if team is not None and not np.array_equal(team, state.team):
            raise ValueError("save_states: all states must have the same team sizes; write one file for each")
        team = state.team.copy()
        state.read_stale_details()
        parts.append({name: array.copy() for name, array in _arrays(state)})
    if team is None or not any(len(part["present"]) for part in parts):
        raise ValueError("save_states: there are no states to save")
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES - (1 << 20):  # NumPy's headers need a little
        raise ValueError(f"save_states: the states are larger than {MOST_BYTES >> 20:,} MiB; write several files")
    content = io.BytesIO()
    np.savez_compressed(content, team=team, **arrays)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, content.getbuffer(), checksum(content.getbuffer()))
    return len(arrays["present"])


@dataclass(eq=False, repr=False)
class ReplayedStates(PerArenaSetter):
    """Begin with states from a file, all equally likely.

    An arena gets states that were recorded with the same number of cars in each team.
    """

    path: str | Path
    """A file made by `save_states`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = Path(self.path)
        self._arrays = _read(self.path)
        present, team = self._arrays["present"], self._arrays["team"]
        sizes = np.stack([(present & (team == side)).sum(axis=1) for side in (BLUE, ORANGE)], axis=1)
        self._states = {tuple(size): np.flatnonzero((sizes == size).all(axis=1)) for size in np.unique(sizes, axis=0)}

    def __len__(self) -> int:
        return len(self._arrays["present"])

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        self.place(state, arena, int(rng.integers(len(self._fitting(state, arena)))))

    def place(self, state: GameState, arena: int, number: int) -> None:
        """Write one of the recorded states with the same cars to row `arena`; numbers repeat after the last state."""
        fitting = self._fitting(state, arena)
        self._write(state, arena, np.flatnonzero(state.present[arena]), int(fitting[number % len(fitting)]))

    def _fitting(self, state: GameState, arena: int) -> NDArray[np.int64]:
        """Return the numbers of the recorded states with the arena's cars in each team."""
        slots = np.flatnonzero(state.present[arena])
        size = (int((state.team[slots] == BLUE).sum()), int((state.team[slots] == ORANGE).sum()))
        if size not in self._states:
            there = ", ".join(f"{blue} against {orange}" for blue, orange in sorted(self._states))
            raise ValueError(
                f"ReplayedStates: the arena has {size[0]} blue against {size[1]} orange cars, but {self.path} "
                f"only contains states of {there}"
            )
        return self._states[size]

    def _write(self, state: GameState, arena: int, slots: NDArray[np.int64], chosen: int) -> None:
        recorded = np.flatnonzero(self._arrays["present"][chosen])
        recorded = recorded[np.argsort(self._arrays["team"][recorded], kind="stable")]
        for name, target in _arrays(state):
            if name in ARENA_ARRAYS:
                target[arena] = self._arrays[name][chosen]
            elif name != "present":
                target[arena, slots] = self._arrays[name][chosen, recorded]
        on_ground = self._arrays["wheels"][chosen, recorded].sum(axis=-1) >= 3
        state.car_rows[arena, slots, :, ON_GROUND] = on_ground[:, None]


def _arrays(state: GameState) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the key and a view of each array that the file contains for one `GameState`."""
    yield "present", state.present
    for name in (*BALL_VECTORS, *CAR_VECTORS):
        yield name, getattr(state.world, name)
    yield "boost", state.boost
    yield "pad_timers", state.pad_timers
    for column, name in enumerate(CAR_TIMERS):
        yield name, state.car_timers[:, :, column]
    for column, name in enumerate(CAR_FLAGS):
        yield name, state.car_flags[:, :, column]
    for name in DETAILS:
        yield name, state.details[name]


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """Read the file's arrays; raise a ValueError unless `save_states` wrote them."""
    if not path.is_file():
        raise FileNotFoundError(f"ReplayedStates: there is no file {path}; write one with envs.save_states")
    with read_error_context(f"ReplayedStates: {path} was not written by envs.save_states"):
        arrays = read_arrays(path, MOST_BYTES)
        _check(arrays)
    return arrays


def _check(arrays: dict[str, NDArray[Any]]) -> None:
    states, team = len(arrays["present"]), arrays["team"]
    if not states or not 0 < len(team) <= _MOST_CARS or not np.isin(team, (BLUE, ORANGE)).all():
        raise ValueError("it contains no states, or no teams")
    one = dict(_arrays(GameState(1, len(team), 0)))
    own = {name: np.broadcast_to(array, (states, *array.shape[1:])) for name, array in one.items()}
    check_structure({name: arrays[name] for name in own}, own, "file")
