"""The recorded games of an audit, their initial states, and the rewards computed from them."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT, BIG_PAD_RECHARGE_SECONDS

from envs.actions import ContinuousAction
from envs.audit.replay import compute_rewards, merge_steps, relative_difference, reorder_cars, swap_sides
from envs.audit.report import FARMING_BOTS, PLAYING_BOTS, PartReport
from envs.bots import BallChaser, Bot, IdleBot, KickoffThenShoot, RandomBot, TeamBots
from envs.dones import DoneCondition, GoalCondition, NoTouchCondition, TimeoutCondition
from envs.matches.matches import MatchTrace, PoolFactory, record_trace, record_traces
from envs.matches.real_time import SlowBot
from envs.resets import Kickoff, MixedStates, RandomState, StateSetter
from envs.resets.base import CAR_REST_HEIGHT
from envs.resets.simple import Scramble
from envs.rewards.base import Reward
from envs.state.game_state import GameState
from envs.state.layout import MIRROR, Bool, Float

TICK_SKIPS = (4, 8, 16)
OWN_GOAL_TOLERANCE = 0.02
"""Relative difference between the two pushes that is ignored."""
PUSH_SECONDS = 2.5


class AuditGames:
    """Games of an audit, each recorded on first access."""

    def __init__(self, recipe: PoolFactory, seconds: float, seed: int) -> None:
        self._recipe, self._seconds, self._seed = recipe, seconds, seed

    @cached_property
    def configured(self) -> dict[str, MatchTrace]:
        """Random and scripted play with the pool's configuration."""
        bots = {"random": RandomBot(self._seed), "scripted": TeamBots(KickoffThenShoot(), BallChaser())}
        return record_traces(self._recipe, bots, self._seconds, self._seed)

    @cached_property
    def acting(self) -> dict[str, MatchTrace]:
        """Games in which one car shows one behaviour: name of the behaviour -> game."""
        bots = {name: ActorBot(bot(), IdleBot()) for name, bot in (FARMING_BOTS | PLAYING_BOTS).items()}
        return record_traces(self._recipe, bots, self._seconds, self._seed, state_setter=OneActor())

    @cached_property
    def pushes(self) -> tuple[MatchTrace, MatchTrace]:
        """Games with the same push: into the car's own goal, and to the side."""
        done = [GoalCondition(), TimeoutCondition(PUSH_SECONDS)]
        own_goal, aside = (
            record_trace(self._recipe, IdleBot(), PUSH_SECONDS, self._seed, state_setter=Push(into_goal), done=done)
            for into_goal in (True, False)
        )
        return own_goal, aside

    @cached_property
    def rough(self) -> MatchTrace:
        """Game of several cars per team, with touches, goals and demolitions."""
        bots, done = TeamBots(KickoffThenShoot(), RandomBot(self._seed)), [NoTouchCondition(3.0), TimeoutCondition(5.0)]
        settings = self._rough_settings()
        return record_trace(self._recipe, bots, self._short, self._seed, done=[GoalCondition(), *done], **settings)

    @cached_property
    def mirrored(self) -> tuple[MatchTrace, NDArray[np.intp]]:
        """The rough game with swapped sides, and the order of the cars in it."""
        return swap_sides(self.rough)

    @cached_property
    def shuffled(self) -> tuple[MatchTrace, NDArray[np.intp]]:
        """The rough game with its cars in another order, and that order."""
        return reorder_cars(self.rough)

    @cached_property
    def skips(self) -> dict[int, MatchTrace]:
        """Tick skip -> the same game in steps of that length."""
        fine, window = TICK_SKIPS[0], TICK_SKIPS[-1]
        settings = self._rough_settings() | {"action": ContinuousAction(), "num_arenas": 8}
        settings |= {"tick_skip": fine, "action_delay_ticks": 0, "done": GoalOrTime(5.0, window)}
        bots = SlowBot(TeamBots(BallChaser(), RandomBot(self._seed)), window // fine)
        trace = record_trace(self._recipe, bots, self._short, self._seed, **settings)
        return {skip: merge_steps(trace, skip // fine) for skip in TICK_SKIPS}

    @cached_property
    def goals_per_minute(self) -> float:
        """Goals per minute of the scoring bot."""
        trace = self.acting["score"]
        acting = acting_cars(trace.first)
        goals = sum(((state.scoring_team[:, None] == state.team) & acting).sum() for state in trace.steps)
        return float(goals) / (trace.minutes * len(acting))

    @property
    def _short(self) -> float:
        return max(5.0, self._seconds / 4)

    def _rough_settings(self) -> dict[str, Any]:
        several = [size for size in self._recipe.team_sizes if max(size) > 1] or [(2, 2)]
        setter = MixedStates([Kickoff(), RandomState(), Scramble(), Push(own_goal=True)], [1, 1, 2, 1])
        return {"team_size": several, "state_setter": setter, "num_arenas": max(4, len(several))}

    def report(self, name: str, unit: str, weight: float, fresh: Callable[[], Reward]) -> PartReport:
        """Measure a term; `share` is the sum of absolute rewards until `_with_shares` normalizes it."""
        paid = {what: compute_rewards(fresh(), trace, name) for what, trace in self.configured.items()}
        random, here = self.configured["random"], self.configured["random"].first.present
        per_minute = {"random": float(paid["random"][:, here].sum(axis=0).mean()) / random.minutes}
        acting = acting_cars(random.first)
        for what, trace in self.acting.items():
            earned = compute_rewards(fresh(), trace, name)
            per_minute[what] = float(earned[:, acting].sum(axis=0).mean()) / trace.minutes
            paid[what] = earned
        rough = compute_rewards(fresh(), self.rough, name)
        (mirrored, mirror_order), (shuffled, order) = self.mirrored, self.shuffled
        by_skip = {skip: compute_rewards(fresh(), trace, name).sum(axis=0) for skip, trace in self.skips.items()}
        finest = self.skips[TICK_SKIPS[0]]
        every = [*paid.values(), rough]
        signs = {"+": any((each > 1e-9).any() for each in every), "-": any((each < -1e-9).any() for each in every)}
        return PartReport(
            name=name,
            unit=unit,
            weight=weight,
            share=sum(float(np.abs(paid[what]).sum()) for what in ("random", "scripted", *PLAYING_BOTS)),
            sign="".join(sign for sign, paying in signs.items() if paying) or "0",
            per_minute=per_minute,
            mirror=relative_difference(compute_rewards(fresh(), mirrored, name), rough[:, :, mirror_order]),
            order=relative_difference(compute_rewards(fresh(), shuffled, name), rough[:, :, order]),
            tick_skip={
                skip: float(sums[finest.first.present].mean()) / finest.minutes for skip, sums in by_skip.items()
            },
            skip_change=relative_difference(by_skip[TICK_SKIPS[0]], by_skip[TICK_SKIPS[1]]),
            own_goal=self._own_goal(fresh, name),
        )

    def _own_goal(self, fresh: Callable[[], Reward], name: str) -> float:
        """Return the mean reward for pushing the ball into the car's own goal, minus the mean for pushing it aside."""
        own, aside = (compute_rewards(fresh(), trace, name) for trace in self.pushes)
        acting = acting_cars(self.pushes[0].first)
        gains, sizes = [], []
        for arena, steps in self.own_goals().items():
            car = int(np.flatnonzero(acting[arena])[0])
            with_goal, without = own[:steps, arena, car], aside[:steps, arena, car]
            gains.append(with_goal.sum() - without.sum())
            sizes.append(np.abs(with_goal).sum() + np.abs(without).sum())
        gain, size = (float(np.mean(values)) if values else 0.0 for values in (gains, sizes))
        return gain if abs(gain) > OWN_GOAL_TOLERANCE * size else 0.0

    def own_goals(self) -> dict[int, int]:
        """Return arena -> steps until the own goal, for arenas in which there is one."""
        found: dict[int, int] = {}
        acting = acting_cars(self.pushes[0].first)
        for number, state in enumerate(self.pushes[0].steps, start=1):
            for arena in np.flatnonzero(state.goal_scored).tolist():
                culprit = state.team[int(np.flatnonzero(acting[arena])[0])]
                if arena not in found and state.scoring_team[arena] != culprit:
                    found[arena] = number
        return found


def acting_cars(state: GameState) -> Bool:
    """Return `[A, C]`, True for the acting car: the first blue one in even arenas, the first orange one in odd ones."""
    acting = np.zeros(state.present.shape, np.bool_)
    for row, number in enumerate(state.arena_index.tolist()):
        here = np.flatnonzero(state.present[row])
        own = here[state.team[here] == number % 2]
        acting[row, (own if len(own) else here)[0]] = True
    return acting


class ActorBot(TeamBots):
    """Bot that lets one bot play the acting car, and another bot the rest."""

    def split(self, state: GameState) -> tuple[Bool, Bot, Bot]:
        return acting_cars(state), self.blue, self.orange


class OneActor(StateSetter):
    """Kickoff for the acting car; all others stand in a corner beside their own goal."""

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        Kickoff().apply(state, mask, rng)
        park(state, mask, ~acting_cars(state))


class Push(StateSetter):
    """Let the acting car roll into the ball near its own goal: into that goal, or (`own_goal` false) to the side.

    The two only differ by a quarter turn around the ball, so rewards for the touch, the path to the ball, or nearness
    to the own goal are the same, and the difference is due to the goal. No controls are needed, so it works with every
    action parser. No boost pad can be taken.
    """

    def __init__(self, own_goal: bool) -> None:
        self.own_goal = own_goal

    def apply(self, state: GameState, mask: Bool, rng: np.random.Generator) -> None:
        park(state, mask, np.ones_like(state.present))
        acting = acting_cars(state)
        for arena in np.flatnonzero(mask).tolist():
            car = int(np.flatnonzero(acting[arena])[0])
            side = MIRROR if state.team[car] else np.ones(3, np.float32)
            ball = np.array([rng.uniform(0, 250), rng.uniform(-3900, -3600), BALL_RESTING_HEIGHT], np.float32)
            speed, gap = rng.uniform(1700, 2200), rng.uniform(200, 300)
            forward = np.array([0, -1, 0] if self.own_goal else [1, 0, 0], np.float32)
            place(state, arena, car, (ball - forward * gap) * side, forward * side)
            state.world.car_pos[arena, car, 2] = CAR_REST_HEIGHT
            state.world.car_vel[arena, car] = forward * speed * side
            state.world.ball_pos[arena] = ball * side
            state.boost[arena] = 50
            state.pad_timers[arena] = BIG_PAD_RECHARGE_SECONDS


class GoalOrTime(DoneCondition):
    """End at a goal or a time limit, but only after a whole window of ticks, so that longer steps fit an episode."""

    truncates = True

    def __init__(self, seconds: float, window_ticks: int) -> None:
        self.ticks, self.window = round(seconds * 120), window_ticks

    def check(self, state: GameState) -> Bool:
        ended = state.goal_scored | (state.episode_ticks >= self.ticks)
        at_end: Bool = ended & (state.episode_ticks % self.window == 0)
        return at_end


def park(state: GameState, mask: Bool, cars: Bool) -> None:
    """Put `cars [A, C]` of the arenas in `mask [A]` side by side into a corner near their own goal, facing it."""
    for arena in np.flatnonzero(mask).tolist():
        for car in np.flatnonzero(cars[arena] & state.present[arena]).tolist():
            number = car - (state.num_blue if state.team[car] else 0)
            side = MIRROR if state.team[car] else np.ones(3, np.float32)
            spot = np.array([-3000 + 250 * number, -4700, CAR_REST_HEIGHT], np.float32)
            place(state, arena, car, spot * side, np.array([0, -1, 0], np.float32) * side)


def place(state: GameState, arena: int, car: int, spot: Float, forward: Float) -> None:
    """Put one car on its wheels, at rest, facing a horizontal direction."""
    world = state.world
    world.car_pos[arena, car] = spot
    world.car_vel[arena, car] = 0
    world.car_forward[arena, car] = forward
    world.car_right[arena, car] = (-forward[1], forward[0], 0)
    world.car_up[arena, car] = (0, 0, 1)
