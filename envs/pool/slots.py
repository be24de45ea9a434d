"""The slots of a pool: which ones have a car (`CarSlots`), and which ones bots play (`Guests`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, Controls, RowControls
from envs.bots.base import Bot, wanted_by
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import check_value


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


NOBODY = -1


class Guests:
    """Who plays which car of a pool.

    A guest's controls reach the physics as it gives them, whatever the pool's action parser could say: a bot, or an
    agent with another action table, plays here exactly as it does in `envs.matches`.

    Attributes:
        bots: The guests; each is told of all episodes of the pool, and saved with it.
    """

    def __init__(self, slots: CarSlots) -> None:
        self._slots = slots
        self.bots: tuple[Bot, ...] = ()
        self._who = np.full(slots.num_cars, NOBODY)
        self._controls = RowControls()

    def invite(self, bots: Sequence[Bot]) -> None:
        """Takes the guests, before the pool's next `reset`; none of them plays until it has a seat."""
        self.bots = tuple(check_value("RocketSimPool: a guest", bot, Bot) for bot in bots)
        self.seat(np.full(self._slots.num_cars, NOBODY))

    def seat(self, who: NDArray[np.intp]) -> None:
        """From the next step on, guest `who[i]` plays car `i` of `[N]`; -1: the action that the pool is given does."""
        self._who = np.array(who)

    def take_over(self, controls: Controls, state: GameState) -> Controls:
        """The controls of all slots, `[A * C]`, those of the guests' cars replaced by what they want (`wanted_by`)."""
        seats = np.flatnonzero(self._who >= 0)
        if not len(seats):
            return controls
        slots, rows = self._slots.slots[seats], controls.rows.copy()
        for guest, bot in enumerate(self.bots):
            own = slots[self._who[seats] == guest]
            if len(own):
                name = f"guest {guest} ({type(bot).__name__})"
                rows[own] = wanted_by(bot, state, name).reshape(-1, rows.shape[1])[own]
        rows[slots, ANALOGUE] = np.clip(rows[slots, ANALOGUE], -1, 1)
        rows[slots, BUTTONS] = rows[slots, BUTTONS] > 0.5
        cars = list(controls.cars)
        for slot, car in zip(slots.tolist(), self._controls(rows[slots]).cars, strict=True):
            cars[slot] = car
        return Controls(rows, cars)

    def reset(self, mask: Bool, state: GameState) -> None:
        """Tells all of them of the arenas that begin an episode, `mask [A]`."""
        for bot in self.bots:
            bot.reset(mask, state)
