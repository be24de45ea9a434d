"""The games of an audit, played and recorded once, and what a reward would have paid in them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from envs.actions import ContinuousAction
from envs.audit.replay import Paid, coarser, difference, reordered, replay, swapped
from envs.audit.result import FARMING, PLAYING, PartReport
from envs.audit.scenes import ActorBot, GoalOrTime, Held, OneActor, Push, Scramble, actors
from envs.bots import BallChaser, IdleBot, KickoffThenShoot, RandomBot, TeamBots
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.matches.recipe import PoolRecipe
from envs.matches.tape import Tape, record, record_each
from envs.resets import Kickoff, MixedStates, RandomState
from envs.rewards.base import Reward

TICK_SKIPS = (4, 8, 16)
OWN_GOAL_TOLERANCE = 0.02
"""Part of what is paid in both pushes by which they may differ without a meaning."""
PUSH_SECONDS = 2.5


class Games:
    """The recordings.

    Attributes:
        goals_per_minute: Of the car that scores.
    """

    def __init__(self, recipe: PoolRecipe, seconds: float, seed: int) -> None:
        bots = {"random": RandomBot(seed), "scripted": TeamBots(KickoffThenShoot(), BallChaser())}
        configured = record_each(recipe, bots, seconds, seed)
        self.random, self.scripted = configured["random"], configured["scripted"]
        acting = {name: ActorBot(bot()) for name, bot in (FARMING | PLAYING).items()}
        self.acting = record_each(recipe, acting, seconds, seed, state_setter=OneActor())
        self.pushes = self._pushes(recipe, seed)
        several = [size for size in recipe.team_sizes if max(size) > 1] or [(2, 2)]
        setter = MixedStates([Kickoff(), RandomState(), Scramble(), Push(own_goal=True)], [1, 1, 2, 1])
        rough: dict[str, Any] = {"team_size": several, "state_setter": setter}
        rough["num_arenas"] = max(4, len(several))
        done = [GoalCondition(), NoTouchCondition(3.0), TimeoutCondition(5.0)]
        self.rough = record(
            recipe, TeamBots(KickoffThenShoot(), RandomBot(seed)), max(5.0, seconds / 4), seed, done=done, **rough
        )
        (self.mirrored, self.mirror_order), (self.shuffled, self.order) = swapped(self.rough), reordered(self.rough)
        fine, window = TICK_SKIPS[0], TICK_SKIPS[-1]
        rough |= {"tick_skip": fine, "action_delay_ticks": 0, "action": ContinuousAction(), "num_arenas": 8}
        held = Held(TeamBots(BallChaser(), RandomBot(seed)), window // fine)
        tape = record(recipe, held, max(5.0, seconds / 4), seed, done=GoalOrTime(5.0, window), **rough)
        self.skips = {skip: coarser(tape, skip // fine) for skip in TICK_SKIPS}
        self.goals_per_minute = self._goals(self.acting["score"])

    @staticmethod
    def _pushes(recipe: PoolRecipe, seed: int) -> tuple[Tape, Tape]:
        done = [GoalCondition(), TimeoutCondition(PUSH_SECONDS)]
        tapes = [
            record(recipe, IdleBot(), PUSH_SECONDS, seed, state_setter=Push(own_goal), done=done)
            for own_goal in (True, False)
        ]
        return tapes[0], tapes[1]

    @staticmethod
    def _goals(tape: Tape) -> float:
        """Goals a minute for the team of the car that acts."""
        acting = actors(tape.first)
        goals = sum(((state.scoring_team[:, None] == state.team) & acting).sum() for state in tape.steps)
        return float(goals) / (tape.minutes * len(acting))

    def report(self, name: str, unit: str, weight: float, fresh: Callable[[], Reward]) -> PartReport:
        """All but the share, in whose place the sum of what was paid and charged is."""
        random, scripted = replay(fresh(), self.random, name), replay(fresh(), self.scripted, name)
        here, acting = self.random.first.present, actors(self.random.first)
        per_minute = {"random": float(random[:, here].sum(axis=0).mean()) / self.random.minutes}
        paid = {"random": random, "scripted": scripted}
        for what, tape in self.acting.items():
            earned = replay(fresh(), tape, name)
            per_minute[what] = float(earned[:, acting].sum(axis=0).mean()) / tape.minutes
            paid[what] = earned
        rough = replay(fresh(), self.rough, name)
        mirrored, shuffled = replay(fresh(), self.mirrored, name), replay(fresh(), self.shuffled, name)
        by_skip = {skip: replay(fresh(), tape, name).sum(axis=0) for skip, tape in self.skips.items()}
        finest = self.skips[TICK_SKIPS[0]]
        return PartReport(
            name=name,
            unit=unit,
            weight=weight,
            share=sum(float(np.abs(paid[what]).sum()) for what in ("random", "scripted", *PLAYING)),
            sign=_sign([*paid.values(), rough]),
            per_minute=per_minute,
            mirror=difference(mirrored, rough[:, :, self.mirror_order]),
            order=difference(shuffled, rough[:, :, self.order]),
            tick_skip={
                skip: float(sums[finest.first.present].mean()) / finest.minutes for skip, sums in by_skip.items()
            },
            skip_change=difference(by_skip[TICK_SKIPS[0]], by_skip[TICK_SKIPS[1]]),
            own_goal=self._own_goal(fresh, name),
        )

    def _own_goal(self, fresh: Callable[[], Reward], name: str) -> float:
        """Mean over the arenas of what the culprit got until the own goal, less the same time of the other push."""
        own, aside = (replay(fresh(), tape, name) for tape in self.pushes)
        acting = actors(self.pushes[0].first)
        gains, sizes = [], []
        for arena, steps in self.own_goals().items():
            car = int(np.flatnonzero(acting[arena])[0])
            with_goal, without = own[:steps, arena, car], aside[:steps, arena, car]
            gains.append(with_goal.sum() - without.sum())
            sizes.append(np.abs(with_goal).sum() + np.abs(without).sum())
        gain, size = (float(np.mean(values)) if values else 0.0 for values in (gains, sizes))
        return gain if abs(gain) > OWN_GOAL_TOLERANCE * size else 0.0

    def own_goals(self) -> dict[int, int]:
        """Arena -> steps until its own goal, of the arenas in which it came about."""
        found: dict[int, int] = {}
        acting = actors(self.pushes[0].first)
        for number, state in enumerate(self.pushes[0].steps, start=1):
            for arena in np.flatnonzero(state.goal_scored).tolist():
                culprit = state.team[int(np.flatnonzero(acting[arena])[0])]
                if arena not in found and state.scoring_team[arena] != culprit:
                    found[arena] = number
        return found


def _sign(paid: list[Paid]) -> str:
    pays, charges = (any((sign * array > 1e-9).any() for array in paid) for sign in (1, -1))
    return ("+" if pays else "") + ("-" if charges else "") or "0"
