"""Arenas of which each can have its own physics and its own action delay."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import RocketSim

from envs.game_state import GameState
from envs.phase_timers import TimedArenas
from envs.physics import LARGEST_COMMON_BALL, SimArena


class TunableArenas(TimedArenas):
    """As its base.

    Attributes:
        delays: For each arena, ticks at the start of a step that still run the previous action.
    """

    def __init__(self, state: GameState, tick_skip: int, action_delay_ticks: int, num_threads: int) -> None:
        """See `Arenas`; at first all arenas are alike."""
        super().__init__(state, tick_skip, action_delay_ticks, num_threads)
        self.delays = [action_delay_ticks] * state.num_arenas

    def tune(self, index: int, mutators: RocketSim.MutatorConfig, action_delay_ticks: int) -> None:
        """Sets what arena `index` begins its next episode with, or goes on with after `restore`."""
        sim = self.sims[index]
        if mutators.ball_radius > LARGEST_COMMON_BALL and not sim.roomy:
            sim = self.sims[index] = SimArena(sim.teams, sim.slots, roomy=True)
        sim.set_mutators(mutators)
        self.delays[index] = action_delay_ticks

    def retune(self, index: int, mutators: RocketSim.MutatorConfig, action_delay_ticks: int) -> None:
        """Sets it for the episode that has just begun, whose first state stays what it is."""
        numbers = self.sims[index].snapshot()
        self.tune(index, mutators, action_delay_ticks)
        self.sims[index].restore(numbers)
        self.restored(index)

    def _step_arena(self, index: int, controls: Sequence[Any], rng: np.random.Generator | None) -> None:
        sim, delay = self.sims[index], self.delays[index]
        step = sim.arena.step if rng is None else partial(sim.step_and_respawn, rng=rng)
        first = index * self.state.num_cars
        if delay:
            step(delay)
        for slot, car in zip(sim.slots, sim.cars, strict=True):
            car.set_controls(controls[first + slot])
        if delay < self.tick_skip:
            step(self.tick_skip - delay)
