"""Inspector: what an environment tells `Debug` about itself."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray


@runtime_checkable
class Inspector(Protocol):
    """Looks into one environment for `Debug`; the environment gives it as `inspector`."""

    def describe_actions(self) -> list[str]:
        """Lines about the action table, or one that says why there is nothing to tell."""

    def first_states(self) -> int:
        """Takes down the first states of the episodes that have begun just now; returns how many those were."""
        return 0

    def describe_resets(self) -> list[str]:
        """Lines about the first states taken down, or why there are none."""

    def reset_rows(self) -> list[dict[str, Any]]:
        """The first states taken down as the rows of a table, all with the same keys; empty if there are none."""
        return []

    def reset_problems(self) -> list[str]:
        """What is wrong with the first states taken down, a line each."""
        return []


@runtime_checkable
class HasProbe(Protocol):
    """An inspector that can put a policy to a test of its own."""

    def probe(self, choose: Callable[..., NDArray[Any]]) -> list[str]:
        """Lines about what came of it; `choose` takes observations `[N, ...]`, `[N]` begins and an action mask."""


class NoInspector(Inspector):
    """Stands in for an environment that cannot be looked into."""

    def __init__(self, env: object) -> None:
        self._why = f"{type(env).__name__} cannot be looked into"

    def describe_actions(self) -> list[str]:
        """Why there is nothing."""
        return [f"no action table: {self._why}"]

    def describe_resets(self) -> list[str]:
        """Why there is nothing."""
        return [f"no first states: {self._why}"]


def inspector_of(env: object) -> Inspector:
    """The environment's own inspector, if it has one."""
    own = getattr(env, "inspector", None)
    return own if isinstance(own, Inspector) else NoInspector(env)
