"""`python -m envs.actions [class path]`: what is in an action table, to see at a glance that nothing is missing."""

import argparse
import sys

import numpy as np

from envs.actions.base import BOOST, HANDBRAKE, JUMP, PITCH, ROLL, STEER, THROTTLE, YAW
from envs.actions.hybrid import StateAwareTable
from envs.actions.lookup import ActionTable
from envs.actions.situations import SITUATION_NAMES
from envs.checks import find_class
from envs.state.game_state import Float

COLUMNS = {
    "throttle": THROTTLE,
    "steer": STEER,
    "pitch": PITCH,
    "yaw": YAW,
    "roll": ROLL,
    "jump": JUMP,
    "boost": BOOST,
    "handbrake": HANDBRAKE,
}


def load_table(class_path: str) -> ActionTable:
    """Makes the table that a class path names (`envs.` may be left out), without arguments.

    Raises:
        ValueError: There is no such class, it is no `ActionTable`, or it cannot be made without arguments.
    """
    found = find_class(class_path, ActionTable, ", so it has no rows to show")
    try:
        made: ActionTable = found()
    except TypeError as error:
        raise ValueError(f"{class_path} cannot be made without arguments ({error})") from error
    return made


def describe(parser: ActionTable) -> str:
    """The table and what it covers, as text."""
    table = parser.table
    zero = np.flatnonzero(~table.any(axis=1)).tolist()
    lines = [f"{type(parser).__name__}: {len(table)} rows", ""]
    lines += ["  row  " + "  ".join(f"{name:>9}" for name in COLUMNS)]
    lines += [f"{i:>5}  " + "  ".join(f"{value:>9g}" for value in row) for i, row in enumerate(table.tolist())]
    lines += [""]
    for name in ("steer", "pitch", "yaw", "roll"):
        values = np.unique(table[:, COLUMNS[name]]).tolist()
        lines.append(f"{name:<6} values: " + " ".join(f"{value:g}" for value in values))
    for name in ("steer", "yaw"):
        for side, sign in (("left", -1), ("right", 1)):
            rows = np.flatnonzero(np.sign(table[:, COLUMNS[name]]) == sign).tolist()
            lines.append(f"{name} {side}: {len(rows)} rows: {' '.join(map(str, rows)) or 'none'}")
    turning = int((table[:, [STEER, YAW]] != 0).any(axis=1).sum())
    lines.append(f"turning rows (steer or yaw): {turning}")
    lines.append(f"left and right balanced: {'yes' if balanced(table) else 'NO'}")
    lines.append(f"all-zero row (fallback): {zero[0] if zero else 'NONE'}")
    if isinstance(parser, StateAwareTable):
        valid = (parser.fallbacks == np.arange(len(table))).sum(axis=1).tolist()
        lines += ["", "valid rows by situation:"]
        lines += [f"  {name}: {count}" for name, count in zip(SITUATION_NAMES, valid, strict=True)]
    return "\n".join(lines)


def balanced(table: Float) -> bool:
    """Whether for every row of `table [n, 8]` there is one with steer, yaw and roll reversed."""
    other = table.copy()
    other[:, [STEER, YAW, ROLL]] *= -1
    return {tuple(row) for row in table.tolist()} == {tuple(row) for row in other.tolist()}


def main() -> int:
    """Prints the table; returns the exit status, 2 when there is none."""
    parser = argparse.ArgumentParser(prog="python -m envs.actions", description="Prints an action table.")
    parser.add_argument("class_path", nargs="?", default="envs.LookupTable", help="default: %(default)s")
    try:
        table = load_table(parser.parse_args().class_path)
    except ValueError as error:
        print(f"envs.actions: {error}", file=sys.stderr)
        return 2
    print(describe(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
