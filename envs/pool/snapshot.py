"""A snapshot of a RocketSimPool beside a pool: whether it is of the same games and components."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.sim.arena import SimArena
from envs.state.game_state import GameState
from fabric_rl.base.state_schema import load_part

_PARTS = ("state", "arenas", "rngs", "components", "counts", "started", "parameters")


def components_state(components: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the states and the class names of `components`, which are role -> component."""
    return {
        "components": [part.state_dict() for part in components.values()],
        "component_names": [type(part).__name__ for part in components.values()],
    }


def check_snapshot(
    snapshot: dict[str, Any], state: GameState, sims: Sequence[SimArena], components: Mapping[str, Any]
) -> None:
    """Raise a ValueError unless `snapshot` is one of a pool with the same cars, arenas and number of components."""
    if missing := [name for name in _PARTS if name not in snapshot]:
        raise ValueError(f"RocketSimPool: this is no snapshot of a pool, it lacks {', '.join(missing)}")
    if len(snapshot["arenas"]) != len(sims) or len(snapshot["components"]) != len(components):
        raise ValueError(
            f"RocketSimPool: the snapshot has {len(snapshot['arenas'])} arenas and {len(snapshot['components'])} "
            f"components ({', '.join(snapshot['component_names'])}), this pool {len(sims)} and {len(components)} "
            f"({', '.join(type(part).__name__ for part in components.values())})"
        )
    state.check(snapshot["state"])
    if not all(np.array_equal(snapshot["state"][name], getattr(state, name)) for name in ("present", "arena_index")):
        raise ValueError("RocketSimPool: the snapshot is of other cars")
    for sim, numbers in zip(sims, snapshot["arenas"], strict=True):
        sim.check(numbers)


def load_components(components: Mapping[str, Any], snapshot: Mapping[str, Any]) -> None:
    """Restore every component.

    Raises:
        ValueError: One does not fit; the message names its role, its class and what was saved.
    """
    names = snapshot.get("component_names", ["component"] * len(components))
    for (role, part), name, state in zip(components.items(), names, snapshot["components"], strict=True):
        load_part(part, state, f"RocketSimPool: what was saved of the {role} {name}")
