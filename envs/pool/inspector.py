"""PoolInspector: what a pool tells about its action table and its first states while a run trains in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from envs.actions import ActionParser
from envs.actions.__main__ import describe
from envs.actions.lookup import ActionTable
from envs.pool.rocket_pool import RocketSimPool
from envs.processes.process_pool import ProcessPool
from envs.resets.show import Row, draw_resets, problems_of, range_rows, rows_of
from envs.tools import write_csv

PICTURE, TABLE = "resets.png", "resets.csv"


class PoolInspector:
    """Looks into a `RocketSimPool`; of any other environment it says what cannot be seen."""

    def __init__(self, env: Any) -> None:  # noqa: ANN401 - any environment
        """Takes the environment of a run."""
        self.env, self.rows, self._episodes = env, list[Row](), 0

    def describe_actions(self) -> list[str]:
        """Statistics of the action table."""
        if isinstance(self.env, RocketSimPool):
            parser: ActionParser = self.env.action_parser
            while isinstance(inner := getattr(parser, "inner", None), ActionParser):
                parser = inner
            if isinstance(parser, ActionTable):
                name, _, statistics = describe(parser).split("\n\n", 2)
                return [name, *(line for line in statistics.splitlines() if line)]
            return [f"{type(parser).__name__} has no table"]
        if isinstance(self.env, ProcessPool):
            table = self.env.layout.get("action table", "unknown")
            return [f"the action table lives in worker processes: {table}; python -m envs.actions shows tables"]
        return [f"{type(self.env).__name__} has no action table"]

    def first_states(self) -> int:
        """Takes down the arenas whose episode has just begun."""
        if not isinstance(self.env, RocketSimPool):
            return 0
        fresh = np.flatnonzero(self.env.state.episode_ticks == 0).tolist()
        for arena in fresh:
            self.rows += rows_of(self.env.state, arena, self._episodes)
            self._episodes += 1
        return len(fresh)

    def describe_resets(self, folder: Path | None) -> list[str]:
        """Ranges of the first states; all of them as a table and a picture in `folder`."""
        if isinstance(self.env, ProcessPool):
            return ["first states are in worker processes; fabric-rl show-resets --config ... shows them"]
        if not isinstance(self.env, RocketSimPool):
            return [f"{type(self.env).__name__} has no cars to show"]
        if not self.rows:
            return ["no episode has begun just now (a resumed run goes on in the middle of its episodes)"]
        lines = [f"first states of {self._episodes} episodes", *_ranges(self.rows)]
        if folder is not None:
            write_csv(folder / TABLE, self.rows)
            lines.append(f"written: {folder / TABLE}")
            try:
                draw_resets(self.rows, folder / PICTURE)
                lines.append(f"written: {folder / PICTURE}")
            except ImportError as error:
                lines.append(f"no picture: {error}")
        return lines

    def reset_problems(self) -> list[str]:
        """What is impossible in the first states taken down."""
        return problems_of(self.rows)


def _ranges(rows: Sequence[Row]) -> list[str]:
    lines: dict[str, list[str]] = {}
    for row in range_rows(rows):
        numbers = f"{row['quantity']} {row['least']:.0f}..{row['greatest']:.0f}"
        lines.setdefault(str(row["what"]), []).append(numbers)
    return [f"{what}: {', '.join(numbers)}" for what, numbers in lines.items()]
