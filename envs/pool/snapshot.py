"""What a snapshot of a RocketSimPool keeps of its components, and whether it fits a pool."""

from collections.abc import Mapping
from typing import Any

_PARTS = ("state", "arenas", "rngs", "components", "counts", "started")


def components_state(components: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The states and the class names of `components`, which are role -> component."""
    return {
        "components": [part.state_dict() for part in components.values()],
        "component_names": [type(part).__name__ for part in components.values()],
    }


def check_snapshot(snapshot: Any, num_arenas: int, components: Mapping[str, Any]) -> None:  # noqa: ANN401 - checked here
    """Raises a ValueError unless `snapshot` is one of a pool with that many arenas and components."""
    missing = [name for name in _PARTS if not isinstance(snapshot, dict) or name not in snapshot]
    if missing:
        raise ValueError(f"RocketSimPool: this is no snapshot of a pool, it lacks {', '.join(missing)}")
    if len(snapshot["arenas"]) != num_arenas or len(snapshot["components"]) != len(components):
        raise ValueError(
            f"RocketSimPool: the snapshot has {len(snapshot['arenas'])} arenas and {len(snapshot['components'])} "
            f"components ({', '.join(_names(snapshot))}), this pool {num_arenas} and {len(components)} "
            f"({', '.join(type(part).__name__ for part in components.values())})"
        )


def load_components(components: Mapping[str, Any], snapshot: Mapping[str, Any]) -> None:
    """Gives every component its state.

    Raises:
        ValueError: One does not fit; the message names its role, its class and what was saved.
    """
    for (role, part), name, state in zip(components.items(), _names(snapshot), snapshot["components"], strict=True):
        try:
            part.load_state_dict(state)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(
                f"RocketSimPool: what was saved of the {role} {name} does not fit {type(part).__name__}: {reason}"
            ) from error


def _names(snapshot: Mapping[str, Any]) -> list[str]:
    names: list[str] = snapshot.get("component_names", ["another component"] * len(snapshot["components"]))
    return names
