"""PoolInspector: what the callback `fabric_rl.callbacks.Debug` is told about a pool while a run trains in it."""

import numpy as np

from envs.actions.base import ActionParser, unwrapped
from envs.actions.description import coverage
from envs.actions.lookup import ActionTable
from envs.resets.first_states import ResetRow, problems_of, ranges_of, rows_of
from envs.state.game_state import GameState


class PoolInspector:
    """Looks at an action table, and at the first states of episodes."""

    def __init__(self, action_parser: ActionParser, state: GameState) -> None:
        """Takes the pool's parser and its state, which changes under way."""
        self._parser, self._state = action_parser, state
        self._rows, self._episodes = list[ResetRow](), 0

    def describe_actions(self) -> list[str]:
        """What the action table covers."""
        innermost = unwrapped(self._parser)[-1]
        if isinstance(innermost, ActionTable):
            return coverage(innermost)
        return [f"{type(innermost).__name__} has no table"]

    def first_states(self) -> int:
        """Takes down the arenas whose episode has just begun; returns how many."""
        fresh = np.flatnonzero(self._state.episode_ticks == 0).tolist()
        for arena in fresh:
            self._rows += rows_of(self._state, arena, self._episodes)
            self._episodes += 1
        return len(fresh)

    def describe_resets(self) -> list[str]:
        """The ranges of the first states taken down."""
        if not self._rows:
            return ["no episode has begun just now (a resumed run goes on in the middle of its episodes)"]
        lines: dict[str, list[str]] = {}
        for what, quantity, least, _, greatest in ranges_of(self._rows):
            lines.setdefault(what, []).append(f"{quantity} {least:.0f}..{greatest:.0f}")
        return [
            f"first states of {self._episodes} episodes",
            *(f"{what}: {', '.join(numbers)}" for what, numbers in lines.items()),
        ]

    def reset_rows(self) -> list[ResetRow]:
        """The first states taken down, see `envs.resets.first_states.rows_of`."""
        return self._rows

    def reset_problems(self) -> list[str]:
        """What is impossible in the first states taken down."""
        return problems_of(self._rows)
