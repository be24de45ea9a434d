"""Arenas of which each can have its own physics and its own action delay."""

import RocketSim

from envs.sim.arena import LARGEST_COMMON_BALL, SimArena
from envs.sim.arenas import Arenas


class TunableArenas(Arenas):
    """Arenas that are tuned one by one, between their episodes."""

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
        self.restore(index, numbers)
