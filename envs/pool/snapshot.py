"""What a snapshot of a RocketSimPool keeps of its components, and whether it fits a pool."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.saved import check_like, generator_of, load_part
from envs.sim.arena import SimArena
from envs.state.game_state import GameState

_PARTS = ("state", "arenas", "rngs", "components", "counts", "started", "parameters")


def components_state(components: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The states and the class names of `components`, which are role -> component."""
    return {
        "components": [part.state_dict() for part in components.values()],
        "component_names": [type(part).__name__ for part in components.values()],
    }


def check_snapshot(
    snapshot: dict[str, Any], state: GameState, sims: Sequence[SimArena], components: Mapping[str, Any]
) -> None:
    """Raises a ValueError unless `snapshot` is one of a pool with such a state, and as many arenas and components.

    What the components say of theirs, and the parameters, is left to them.
    """
    missing = [name for name in _PARTS if not isinstance(snapshot, dict) or name not in snapshot]
    if missing:
        raise ValueError(f"RocketSimPool: this is no snapshot of a pool, it lacks {', '.join(missing)}")
    form = {"state": {}, "arenas": [np.zeros(0)], "rngs": [{}], "components": [{}], "started": True}
    check_like(snapshot, form, "RocketSimPool: the snapshot")
    if len(snapshot["arenas"]) != len(sims) or len(snapshot["components"]) != len(components):
        raise ValueError(
            f"RocketSimPool: the snapshot has {len(snapshot['arenas'])} arenas and {len(snapshot['components'])} "
            f"components ({', '.join(_names(snapshot))}), this pool {len(sims)} and {len(components)} "
            f"({', '.join(type(part).__name__ for part in components.values())})"
        )
    state.check(snapshot["state"])
    same_cars = all(
        np.array_equal(snapshot["state"][name], getattr(state, name)) for name in ("present", "arena_index")
    )
    if not same_cars or len(snapshot["rngs"]) != len(sims) or not snapshot["started"]:
        raise ValueError("RocketSimPool: the snapshot is of other cars, or of games that have not begun")
    for sim, numbers, rng in zip(sims, snapshot["arenas"], snapshot["rngs"], strict=True):
        sim.check(numbers)
        generator_of(rng)


def load_components(components: Mapping[str, Any], snapshot: Mapping[str, Any]) -> None:
    """Gives every component its state.

    Raises:
        ValueError: One does not fit; the message names its role, its class and what was saved.
    """
    for (role, part), name, state in zip(components.items(), _names(snapshot), snapshot["components"], strict=True):
        load_part(part, state, f"RocketSimPool: what was saved of the {role} {name}")


def _names(snapshot: Mapping[str, Any]) -> list[str]:
    names = snapshot.get("component_names")
    if isinstance(names, list) and len(names) == len(snapshot["components"]):
        return [str(name) for name in names]
    return ["another component"] * len(snapshot["components"])
