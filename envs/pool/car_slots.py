"""CarSlots: which of a pool's slots have a car."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class CarSlots:
    """Slots `[A, C]`, as many in every arena, and the cars `[N]` in them, arena by arena, blue before orange.

    Attributes:
        num_blue: Blue slots per arena.
        num_orange: Orange slots per arena.
        present: `[A, C]` bool, where there is a car.
        num_cars: `N`.
        slots: `[N]` the slot of each car among all `A * C`.
        arena_of: `[N]` the arena of each car.
        team_of: `[N]` its team, 0 blue and 1 orange.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], num_arenas: int, first_arena: int) -> None:
        """Lays out the slots.

        Args:
            sizes: (blue, orange) that the arenas take in turns.
            num_arenas: `A`.
            first_arena: Where the first arena stands in the turns.
        """
        blue, orange = (max(size[team] for size in sizes) for team in (0, 1))
        turns = [sizes[(first_arena + i) % len(sizes)] for i in range(num_arenas)]
        slot = np.arange(max(blue, orange))
        self.num_blue, self.num_orange = blue, orange
        self.present = np.array([[*(slot[:blue] < b), *(slot[:orange] < o)] for b, o in turns])
        self._full = bool(self.present.all())
        self.slots = np.flatnonzero(self.present)
        self.num_cars = len(self.slots)
        self.arena_of = self.slots // (blue + orange)
        self.team_of = (self.slots % (blue + orange) >= blue).astype(np.intp)

    def cars_of(self, slots: NDArray[Any]) -> NDArray[Any]:
        """`[A, C, ...]` -> `[N, ...]`: the slots that have a car."""
        flat = slots.reshape(-1, *slots.shape[2:])
        return flat if self._full else flat[self.slots]

    def all_slots(self, actions: NDArray[Any]) -> NDArray[Any]:
        """`[N, ...]` -> `[A * C, ...]`, zero in slots without a car; a ValueError for another N."""
        if not actions.ndim:
            raise ValueError(
                f"RocketSimPool: got one number as actions; give an array, one for each of the {self.num_cars} cars"
            )
        if actions.shape[:1] != (self.num_cars,):
            raise ValueError(f"RocketSimPool: got {list(actions.shape)} actions for {self.num_cars} cars")
        if self._full:
            return actions
        padded = np.zeros((self.present.size, *actions.shape[1:]), actions.dtype)
        padded[self.slots] = actions
        return padded
