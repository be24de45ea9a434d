"""ProcessInspector: tells `fabric_rl.callbacks.Debug` where to look for what lives in worker processes."""

from typing import Any


class ProcessInspector:
    """Says what cannot be seen from here, and what shows it."""

    def __init__(self, layout: dict[str, str]) -> None:
        self._table = layout.get("action table", "unknown")

    def describe_actions(self) -> list[str]:
        """Where the table is."""
        return [f"the action table lives in worker processes: {self._table}; python -m envs.actions shows tables"]

    def first_states(self) -> int:
        """None can be seen."""
        return 0

    def describe_resets(self) -> list[str]:
        """Where they are."""
        return ["first states are in worker processes; fabric-rl show-resets --config ... shows them"]

    def reset_rows(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def reset_problems(self) -> list[str]:
        """Nothing is known."""
        return []
