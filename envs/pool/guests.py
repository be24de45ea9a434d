"""Guests: bots that play some of a pool's cars, in the place of the actions that the pool is given."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envs.actions.base import ANALOGUE, BUTTONS, Controls, RowControls
from envs.bots.base import Bot, wanted_by
from envs.checks import check_part
from envs.pool.car_slots import CarSlots
from envs.state.game_state import GameState
from envs.state.layout import Bool

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
        self.bots = tuple(check_part("RocketSimPool", "a guest", bot, Bot) for bot in bots)
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
