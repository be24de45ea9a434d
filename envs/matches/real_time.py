"""RealTimeGame: a game at 120 ticks per second, in which a person drives the first blue car and bots the others."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.actions.base import BUTTONS, JUMP, Controls
from envs.dones import DoneCondition
from envs.loggers import StateLogger
from envs.matches.statistics import MatchKickoffs
from envs.pool.players import Bot, PolicyOutput, TeamBots, play
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, StateSetter, TrainingPack
from envs.resets.training_packs import place_shot
from envs.sim.arena import make_controls, read_attributes
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import Count

MOST_LATE_SECONDS = 0.1
"""Delay up to which a clock catches up; a longer one is lost, and the clock runs slower."""
_BODY = ("pos", "rot_mat.forward", "rot_mat.right", "rot_mat.up", "vel")
_CAR = (*_BODY, "boost", "last_controls.steer", "is_on_ground", "time_spent_boosting", "is_supersonic", "is_demoed")


class TickClock:
    """Clock that makes 120 ticks per second due; every tick is played, late ones immediately.

    Attributes:
        ticks: Number of ticks that became due.
        lost_seconds: Time by which the clock has been set back because the machine was too slow.
    """

    def __init__(self) -> None:
        self.ticks, self.lost_seconds = 0, 0.0
        self.restart()

    def restart(self) -> None:
        """Make the next tick due after the length of one tick, for example after a pause."""
        self._due = time.perf_counter()

    def wait(self) -> None:
        """Wait until the next tick is due."""
        self.ticks += 1
        self._due += 1 / TICKS_PER_SECOND
        late = time.perf_counter() - self._due
        if late > MOST_LATE_SECONDS:
            self.lost_seconds += late
            self._due += late
        elif late < 0:
            time.sleep(-late)


class RealTimeGame:
    """Game in one arena. The person's controls are read for every tick; bots act as in `play_matches`.

    A bot decides every `tick_skip` ticks, sees the state after a whole step, and its decision acts after
    `action_delay_ticks`. The person's controls in `GameState.controls`, and so in recordings, are those of the step:
    axes are means over its ticks, boost and powerslide are pressed if they were in at least half of them. Jump is
    pressed if it was in any of them, but a release between two presses is not lost.

    Attributes:
        pool: Pool with one arena.
        ticks: Ticks played so far.
    """

    def __init__(
        self,
        bots: TeamBots,
        drive: Callable[[], Float],
        show: Callable[[], None],
        state_setter: StateSetter,
        done: Sequence[DoneCondition],
        team_size: tuple[int, int] = (1, 1),
        tick_skip: int = 8,
        action_delay_ticks: int = 1,
        seed: int = 0,
        loggers: Sequence[StateLogger] = (),
    ) -> None:
        """Build the arena.

        Args:
            bots: Players of all cars but the first blue one, whose controls are replaced.
            drive: Called before every tick; waits until it is due, and returns the person's controls `[8]` float32.
            show: Called after every tick.
            state_setter: Initial states; the delays of `MatchKickoffs` apply to the bots.
            done: Termination conditions.
            team_size: Cars (blue, orange), at least one blue.
            tick_skip: Physics ticks (1/120 s) between the bots' decisions.
            action_delay_ticks: Ticks at the start of a step that still run the bots' previous controls.
            seed: Seed of the pool.
            loggers: Observe every step.
        """
        self.ticks, self._drive, self._show = 0, drive, show
        self._parser = _StepControls()
        self.pool = RocketSimPool(
            num_arenas=1,
            team_size=team_size,
            action=self._parser,
            state_setter=state_setter,
            done=done,
            tick_skip=tick_skip,
            action_delay_ticks=action_delay_ticks,
            num_threads=1,
            seed=seed,
            loggers=loggers,
        )
        change = state_setter.delay_actions(self.pool) if isinstance(state_setter, MatchKickoffs) else None
        self._steps: Iterator[GameState] = play(self.pool, bots, change=change)

    def step(self) -> bool:
        """Play one step, or begin the first episode; return True if an episode begins."""
        self.pool.simulations[0].step_tick = self._tick
        self._parser.ticks = 0
        return not next(self._steps).episode_ticks[0]

    def restart(self) -> None:
        """End the episode, and begin another one; not for bots, which would not notice."""
        self.pool.reset()

    def _tick(self) -> None:
        sim = self.pool.simulations[0]
        row = self._drive()
        self._parser.replace_first(row)
        sim.cars[0].set_controls(make_controls(row.tolist()))
        sim.arena.step(1)
        self.ticks += 1
        self._show()

    def frame(self) -> Float:
        """Return the arena for a viewer: `[50 + 21 C]` float32.

        The numbers are: ticks; the ball's position (uu), its axes forward, right, up, and its velocity (uu/s), 15;
        the cooldowns of the 34 pads (s); for each car the same 15 as for the ball, boost (0..100), steer, and 0 or
        more for on the ground, boosting, supersonic, demolished.
        """
        sim = self.pool.simulations[0]
        numbers = [self.ticks, *read_attributes(sim.arena.ball.get_state(), _BODY)]
        numbers += [pad.get_state().cooldown for pad in sim.pads]
        for get_state in sim.car_states:
            numbers += read_attributes(get_state(), _CAR)
        return np.array(numbers, np.float32)


class _StepControls(ContinuousAction):
    """Parser whose first row becomes, tick by tick, the controls of the person in this step.

    Jump is recorded so that a second press remains one: a step in which the button was released after a pressed step
    is not pressed, and a press that began again within it is recorded in the next step.
    """

    ticks = 0

    def reset(self, mask: Bool, state: GameState) -> None:
        super().reset(mask, state)
        self._pressed = self._again = self._was_pressed = self._delayed = False

    def parse(self, actions: NDArray[Any], state: GameState) -> Controls:
        controls = super().parse(actions, state)
        self._was_pressed, self._delayed = self._pressed, self._again
        self._rows, self._total = controls.rows, np.zeros(8, np.float32)
        self._pressed, self._again, self._released = self._delayed, False, False
        return controls

    def replace_first(self, row: Float) -> None:
        """Add the controls `[8]` of one tick."""
        self.ticks += 1
        self._total += row
        jump = bool(row[JUMP] > 0.5)
        self._released |= not jump
        if self._was_pressed and self._released and not self._delayed:
            self._pressed, self._again = False, self._again | jump
        else:
            self._pressed |= jump
        self._rows[0] = self._total / self.ticks
        self._rows[0, BUTTONS] = self._rows[0, BUTTONS] >= 0.5
        self._rows[0, JUMP] = self._pressed


@dataclass(eq=False, repr=False)
class SlowBot(Bot):
    """Bot that decides only in every `every`-th step and holds its controls in between: a handicap."""

    _in_state_dict: ClassVar[dict[str, str]] = {"bot": "bot"}

    bot: Bot
    """Decides."""
    every: Count = 2
    """Steps per decision."""
    _steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.explains, self.action_rows = self.bot.explains, self.bot.action_rows

    def act(self, state: GameState) -> Float:
        if self._steps % self.every == 0:
            self._held = self.bot.act(state)
        self._steps += 1
        return self._held

    def thoughts(self) -> PolicyOutput | None:
        return self.bot.thoughts()

    def reset(self, mask: Bool, state: GameState) -> None:
        self._steps = 0
        super().reset(mask, state)


class FullBoostKickoff(Kickoff):
    """Begin with a kickoff, with full boost."""

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        super()._apply_one(state, arena, rng)
        state.boost[arena] = 100


@dataclass(eq=False, repr=False)
class NextShots(TrainingPack):
    """Begin every episode with the shot `number` of the chosen packs, in a random order."""

    number: int = 0
    """Number of the shot in that order, from 0; after the last one comes the first."""
    order_seed: int = 0
    """Seed of the order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._shots = np.random.default_rng(self.order_seed).permutation(self._shots)

    @property
    def shot(self) -> NDArray[np.float64]:
        """The current shot `[4, 3]`, see `Pack`."""
        shot: NDArray[np.float64] = self._shots[self.number % len(self)]
        return shot

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        place_shot(state, arena, self.shot, lambda side, placed: self._free_place(placed, side, rng))
