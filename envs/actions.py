"""Action parsers: what the agent chooses -> RocketSim car controls."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.game_state import Bool, Float, GameState
from envs.physics import make_controls

THROTTLE, STEER, PITCH, YAW, ROLL, JUMP, BOOST, HANDBRAKE = range(8)


class Controls(NamedTuple):
    """What every car is told for one step."""

    rows: Float
    """`[N, 8]` float32 in the order of the constants above; kept as `GameState.controls`."""
    cars: Sequence[Any]
    """`N` `RocketSim.CarControls` that say the same. They may be shared between cars; the caller only reads them."""


class ActionParser(ABC):
    """Turns the actions of all cars into controls."""

    @property
    @abstractmethod
    def action_space(self) -> gymnasium.Space[Any]:
        """The action space of one car."""

    @abstractmethod
    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """Controls for every car.

        Args:
            actions: `[N, ...]` actions of the pool's cars, arena by arena, blue before orange.
            state: The state in which they were chosen.

        Raises:
            ValueError: Wrong shape or dtype, or an action outside the action space.
        """

    def controls(self, actions: NDArray[Any], state: GameState | None = None) -> Sequence[Any]:
        """`N` `RocketSim.CarControls`, see `parse`. `state` defaults to one arena of that many grounded blue cars."""
        if state is None:
            state = GameState(1, max(1, len(actions)), 0)
            state.clear(np.array([0]))
        return self.parse(actions, state).cars

    def mask(self, state: GameState) -> Bool | None:
        """`[A, C, n]` bool, True for the discrete actions that do something of their own in `state`.

        None (the default) when every action always does. The pool hands it out as `infos["action_mask"]`.
        """
        return None

    def reset(self, mask: Bool, state: GameState) -> None:  # noqa: B027 - most parsers keep nothing
        """Called for the arenas (`mask [A]`) that begin a new episode in `state`."""


class LookupTable(ActionParser):
    """The 90-row table of RLGym's `LookupTableAction`: 24 ground rows, then 66 aerial rows.

    Columns: throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
    """

    def __init__(self) -> None:
        """Builds the table and the controls of its rows."""
        self.table = _lookup_table()
        self._rows = [make_controls(row) for row in self.table]

    @property
    def action_space(self) -> gymnasium.spaces.Discrete:
        """Discrete(90)."""
        return gymnasium.spaces.Discrete(len(self.table))

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        """One prebuilt row of the table per car; see `ActionParser.parse`."""
        if actions.ndim != 1 or actions.dtype.kind not in "iu":
            raise ValueError(
                f"LookupTable: actions must be integers of shape [num_envs], got {actions.dtype} {list(actions.shape)}"
            )
        if actions.size and not 0 <= actions.min() <= actions.max() < len(self._rows):
            wrong = actions[(actions < 0) | (actions >= len(self._rows))][0]
            raise ValueError(f"LookupTable: action {wrong} is outside the table, use 0..{len(self._rows) - 1}")
        rows = self._rows
        return Controls(self.table.take(actions, axis=0), [rows[index] for index in actions.tolist()])


def _lookup_table() -> NDArray[np.float32]:
    rows: list[list[float]] = []
    for throttle in (-1, 0, 1):
        for steer in (-1, 0, 1):
            for boost in (0, 1):
                for handbrake in (0, 1):
                    if boost and throttle != 1:  # boosting already drives the car forward
                        continue
                    rows.append([throttle or boost, steer, 0, steer, 0, 0, boost, handbrake])
    for pitch in (-1, 0, 1):
        for yaw in (-1, 0, 1):
            for roll in (-1, 0, 1):
                for jump in (0, 1):
                    for boost in (0, 1):
                        if jump and yaw:  # a side flip only needs roll
                            continue
                        if pitch == roll == jump == 0:  # the ground rows hold it
                            continue
                        # held through a flip: allows wavedashes
                        handbrake = int(jump == 1 and (pitch, yaw, roll) != (0, 0, 0))
                        rows.append([boost, yaw, pitch, yaw, roll, jump, boost, handbrake])
    return np.array(rows, dtype=np.float32)
