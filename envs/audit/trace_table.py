"""StepTable: a trace as a table for notebooks and terminals, without pandas."""

import html
from collections.abc import Sequence

from envs.audit.trace import CONTROL, PART, RETURN, TOTAL, TraceRow
from envs.rewards.parts import part_label
from fabric_rl.base.text import in_columns

STATE = ("step", "seconds", "speed", "ball_distance", "boost", "touch", "goal")


class StepTable:
    """Table of the steps of `reward_trace`: state, controls, and the reward of every term.

    Notebooks show it as an HTML table (positive rewards green, negative ones red), `print` as text. Terms that are zero
    in all of these steps are left out.

    Attributes:
        columns: Headings.
        cells: The rows, as text.
    """

    def __init__(self, rows: Sequence[TraceRow], digits: int = 3) -> None:
        """Build the table from at least one row, for example `rows[40:60]` or those `if row["touch"]`."""
        if not rows:
            raise ValueError("StepTable: there are no steps to show; give it rows of reward_trace")
        self.rows = list(rows)
        parts = [name for name in rows[0] if name.startswith(PART) and any(row[name] for row in rows)]
        self._paid = [*parts, TOTAL, RETURN]
        self.columns = [*STATE, "told", *(part_label(name.removeprefix(PART)) for name in self._paid)]
        self.cells = [
            [
                *(f"{row[name]:.2f}" if name == "seconds" else f"{row[name]:.0f}" for name in STATE),
                format_controls(row),
                *(f"{row[name]:.{digits}g}" if row[name] else "" for name in self._paid),
            ]
            for row in self.rows
        ]

    def __str__(self) -> str:
        return in_columns([self.columns, *self.cells], str.rjust)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        first_paid = len(STATE) + 1
        lines = []
        for row, cells in zip(self.rows, self.cells, strict=True):
            written = [f"<td>{html.escape(cell)}</td>" for cell in cells[:first_paid]]
            for name, cell in zip(self._paid, cells[first_paid:], strict=True):
                colour = "green" if row[name] > 0 else "crimson"
                written.append(f'<td style="color:{colour}">{cell}</td>' if cell else "<td></td>")
            lines.append(f"<tr>{''.join(written)}</tr>")
        style = "overflow-x:auto;font-size:small"
        return (
            f'<div style="{style}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
        )


def format_controls(row: TraceRow) -> str:
    """Format the nonzero controls, such as `throttle 1 steer -0.5 jump`."""
    pieces = []
    for name, number in row.items():
        if name.startswith(CONTROL) and number:
            label = name.removeprefix(CONTROL)
            pieces.append(label if label in ("jump", "boost", "handbrake") else f"{label} {number:g}")
    return " ".join(pieces)
