"""What is in an action table, in words, to see at a glance that nothing is missing."""

import numpy as np

from envs.actions.base import PITCH, ROLL, STEER, YAW
from envs.actions.hybrid import StateAwareTable
from envs.actions.lookup import ActionTable
from envs.actions.situations import SITUATION_NAMES
from envs.state.layout import CONTROL_NAMES, Float


def described_table(parser: ActionTable) -> str:
    """All rows of the table, and what they cover."""
    title, *covered = coverage(parser)
    header = "  row  " + "  ".join(f"{name:>9}" for name in CONTROL_NAMES)
    rows = [f"{i:>5}  " + "  ".join(f"{value:>9g}" for value in row) for i, row in enumerate(parser.table.tolist())]
    return "\n".join([title, "", header, *rows, "", *covered])


def coverage(parser: ActionTable) -> list[str]:
    """The size of the table, and lines about what its rows cover."""
    table = parser.table
    zero = np.flatnonzero(~table.any(axis=1)).tolist()
    lines = [f"{type(parser).__name__}: {len(table)} rows"]
    for column in (STEER, PITCH, YAW, ROLL):
        values = np.unique(table[:, column]).tolist()
        lines.append(f"{CONTROL_NAMES[column]:<6} values: " + " ".join(f"{value:g}" for value in values))
    for column in (STEER, YAW):
        for side, sign in (("left", -1), ("right", 1)):
            rows = np.flatnonzero(np.sign(table[:, column]) == sign).tolist()
            lines.append(f"{CONTROL_NAMES[column]} {side}: {len(rows)} rows: {' '.join(map(str, rows)) or 'none'}")
    turning = int((table[:, [STEER, YAW]] != 0).any(axis=1).sum())
    lines.append(f"turning rows (steer or yaw): {turning}")
    lines.append(f"left and right balanced: {'yes' if balanced(table) else 'NO'}")
    lines.append(f"all-zero row (fallback): {zero[0] if zero else 'NONE'}")
    if isinstance(parser, StateAwareTable):
        valid = (parser.fallbacks == np.arange(len(table))).sum(axis=1).tolist()
        lines.append("valid rows by situation:")
        lines += [f"  {name}: {count}" for name, count in zip(SITUATION_NAMES, valid, strict=True)]
    return lines


def balanced(table: Float) -> bool:
    """Whether for every row of `table [n, 8]` there is one with steer, yaw and roll reversed."""
    other = table.copy()
    other[:, [STEER, YAW, ROLL]] *= -1
    return {tuple(row) for row in table.tolist()} == {tuple(row) for row in other.tolist()}
