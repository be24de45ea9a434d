"""Slots of a pool: slots with a car (`CarSlots`), and cars played by bots (`ScriptedPlayers`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, Controls, RowControls
from envs.bots.base import Bot, compute_controls
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import check_value


class CarSlots:
    """Slots `[A, C]`, the same number in every arena, and the cars `[N]` in them, arena by arena, blue before orange.

    Attributes:
        num_blue: Blue slots per arena.
        num_orange: Orange slots per arena.
        present: `[A, C]` bool, True for slots with a car.
        num_cars: `N`.
        slots: `[N]` slot of each car among all `A * C`.
        arena_of: `[N]` arena of each car.
        team_of: `[N]` team of each car, 0 blue and 1 orange.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], num_arenas: int, first_arena: int) -> None:
        """Assign cars to slots.

        Args:
            sizes: (blue, orange) pairs that the arenas use in rotation.
            num_arenas: `A`.
            first_arena: Position of the first arena in the rotation.
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
        """Select the slots that have a car: `[A, C, ...]` -> `[N, ...]`."""
        flat = slots.reshape(-1, *slots.shape[2:])
        return flat if self._full else flat[self.slots]

    def all_slots(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Pad with zeros for slots without a car: `[N, ...]` -> `[A * C, ...]`; a ValueError for another N."""
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


NOBODY = -1


class ScriptedPlayers:
    """Bots that play some of a pool's cars, its guests.

    A guest's controls reach the physics unchanged, whatever the pool's action parser could express: a bot, or an agent
    with another action table, plays here exactly as it does in `envs.matches`.

    Attributes:
        bots: The guests; each is reset for all episodes of the pool, and saved with it.
    """

    def __init__(self, slots: CarSlots) -> None:
        self._slots = slots
        self.bots: tuple[Bot, ...] = ()
        self._who = np.full(slots.num_cars, NOBODY)
        self._controls = RowControls()

    def invite(self, bots: Sequence[Bot]) -> None:
        """Set the guests, before the pool's next `reset`; none of them plays before `seat` is called."""
        self.bots = tuple(check_value("RocketSimPool: a guest", bot, Bot) for bot in bots)
        self.seat(np.full(self._slots.num_cars, NOBODY))

    def seat(self, who: NDArray[np.intp]) -> None:
        """Let guest `who[i]` play car `i` of `[N]` from the next step on; -1: the pool's action is used."""
        self._who = np.array(who)

    def override_controls(self, controls: Controls, state: GameState) -> Controls:
        """Return the controls of all slots, `[A * C]`, with those of the guests' cars replaced."""
        played = np.flatnonzero(self._who >= 0)
        if not len(played):
            return controls
        slots, rows = self._slots.slots[played], controls.rows.copy()
        for guest, bot in enumerate(self.bots):
            own = slots[self._who[played] == guest]
            if len(own):
                name = f"guest {guest} ({type(bot).__name__})"
                rows[own] = compute_controls(bot, state, name).reshape(-1, rows.shape[1])[own]
        rows[slots, ANALOGUE] = np.clip(rows[slots, ANALOGUE], -1, 1)
        rows[slots, BUTTONS] = rows[slots, BUTTONS] > 0.5
        cars = list(controls.cars)
        for slot, car in zip(slots.tolist(), self._controls(rows[slots]).cars, strict=True):
            cars[slot] = car
        return Controls(rows, cars)

    def reset(self, mask: Bool, state: GameState) -> None:
        """Reset all guests for the arenas of `mask [A]`, which begin an episode."""
        for bot in self.bots:
            bot.reset(mask, state)
