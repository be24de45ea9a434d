"""The reward audit: what each part of a reward pays for, and whether it pays for the wrong thing.

Games are played and recorded once by scripted bots; then every part of the reward is computed from the recordings, also
from their mirror images, with the cars in another order, and in longer steps. `fabric-rl audit-rewards` prints it
(docs/rewards.md, "Auditing").
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.actions import ContinuousAction
from envs.bots import BallChaser, Bot, CircleBot, HopBot, HoverBot, IdleBot, KickoffThenShoot, RandomBot, TeamBots
from envs.bots.play import PoolSettings, Tape, record, record_each
from envs.checks import check_seed, is_number, whole_number
from envs.dones import GoalCondition, NoTouchCondition, TimeoutCondition
from envs.resets import Kickoff, MixedStates, RandomState
from envs.rewards.audit_parts import INVARIANT_UNITS, parts_of
from envs.rewards.audit_scenes import ActorBot, GoalOrTime, Held, OneActor, Push, Scramble, actors
from envs.rewards.audit_tape import Paid, coarser, difference, reordered, replay, swapped
from envs.rewards.base import Reward

FARMING: dict[str, type[Bot]] = {"idle": IdleBot, "circle": CircleBot, "hover": HoverBot, "hop": HopBot}
"""What must not pay better than scoring."""
PLAYING: dict[str, type[Bot]] = {"chase": BallChaser, "score": KickoffThenShoot}
TICK_SKIPS = (4, 8, 16)
TOLERANCE, SKIP_TOLERANCE, OWN_GOAL_TOLERANCE = 1e-3, 0.2, 0.02
PUSH_SECONDS = 2.5
TOTAL = "total"


@dataclass(frozen=True)
class PartReport:
    """What was found out about one part of the reward, its weight included; per minute means of game time, per car.

    Attributes:
        name: As in the pool's metrics.
        unit: As the part states it; empty for a mixture.
        weight: Its factor in the sum.
        share: Of all that was paid or charged in random and scripted play (not in farming), 0..1.
        sign: `+` only pays, `-` only charges, `+-` both, `0` neither.
        per_minute: What a car earns by `random` actions in the configured situations, and the car that acts by `idle`,
            `circle`, `hover`, `hop`, `chase`, `score` from kickoffs with the others idle.
        mirror: How much is paid otherwise to the other colours in the mirrored play: 0 the same .. 1.
        order: The same with the cars of a team in another order.
        tick_skip: What the same play pays a minute at these tick skips.
        skip_change: How much a car's pay differs between the first two: 0 the same .. 1; 1/3 for what is paid per step.
        own_goal: What an own goal brings the car that shot it, over the same touch to the side.
    """

    name: str
    unit: str
    weight: float
    share: float
    sign: str
    per_minute: dict[str, float]
    mirror: float
    order: float
    tick_skip: dict[int, float]
    skip_change: float
    own_goal: float

    @property
    def farmed(self) -> tuple[str, float]:
        """The farming that pays best, and what it pays a minute."""
        return max(((name, self.per_minute[name]) for name in FARMING), key=lambda pair: pair[1])


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a part.

    Attributes:
        kind: `own goal`, `farming`, `mirror`, `order` or `tick skip`.
        part: Its name.
        text: One line.
    """

    kind: str
    part: str
    text: str

    @property
    def fatal(self) -> bool:
        """Whether an agent would learn the wrong game from it."""
        return self.kind in ("own goal", "farming")


@dataclass(frozen=True)
class Audit:
    """The result.

    Attributes:
        parts: One for each term.
        total: The whole reward.
        findings: What is wrong, the worst first.
        notes: What could not be found out.
        goals_per_minute: Of the car that scores.
        tick_skip: Of the configured pool.
        seconds: Game time of each situation.
        seed: Of all situations.
        phase: Of training; empty if none was asked for.
    """

    parts: list[PartReport]
    total: PartReport
    findings: list[Finding]
    notes: list[str]
    goals_per_minute: float
    tick_skip: int
    seconds: float
    seed: int
    phase: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing pays an own goal, or farming more than scoring."""
        return not any(finding.fatal for finding in self.findings)


def audit_rewards(
    factory: Callable[..., Any],
    seconds: float = 30.0,
    seed: int = 0,
    num_arenas: int = 8,
    reward: Reward | None = None,
    phase: str | None = None,
) -> Audit:
    """Audits the reward of a pool.

    Args:
        factory: `RocketSimPool`, or a `functools.partial` of it with settings.
        seconds: Game time in each arena of each situation.
        seed: Decides everything.
        num_arenas: Arenas of each situation; at least two, so that both colours act.
        reward: Audited in place of the pool's.
        phase: Of training, for a pool with phases; default: the first.

    Raises:
        ValueError: Sizes that cannot work, no such phase, or a reward that a pool would refuse.
        TypeError: Not the settings of a `RocketSimPool`.
    """
    owner = "audit-rewards"
    if not is_number(seconds) or not 1 <= seconds <= 3600:
        raise ValueError(f"{owner}: --seconds must be from 1 to 3600, got {seconds!r}")
    check_seed(owner, seed, "--seed")
    settings = PoolSettings(factory, owner, phase)
    settings.arguments["num_arenas"] = max(
        whole_number(owner, "--num_arenas", num_arenas, least=2), len(settings.team_sizes)
    )
    if reward is not None:
        settings.arguments["reward"] = reward
    games = _Games(settings, float(seconds), seed)
    whole = settings.reward()
    made: list[tuple[str, str, float, Callable[[], Reward]]] = [
        (part.name, part.unit, part.weight, part.fresh) for part in parts_of(whole)
    ]
    reports = [games.report(*part) for part in [*made, (TOTAL, "", 1.0, settings.reward)]]
    *parts, total = _with_shares(reports)
    return Audit(
        parts=parts,
        total=total,
        findings=_findings(parts, total, games),
        notes=_notes(parts, total, games),
        goals_per_minute=games.goals_per_minute,
        tick_skip=settings.tick_skip,
        seconds=float(seconds),
        seed=seed,
        phase=phase or "",
    )


class _Games:
    """The recordings, and what a reward would have paid in them."""

    def __init__(self, settings: PoolSettings, seconds: float, seed: int) -> None:
        bots = {"random": RandomBot(seed), "scripted": TeamBots(KickoffThenShoot(), BallChaser())}
        configured = record_each(settings, bots, seconds, seed)
        self.random, self.scripted = configured["random"], configured["scripted"]
        acting = {name: ActorBot(bot()) for name, bot in (FARMING | PLAYING).items()}
        self.acting = record_each(settings, acting, seconds, seed, state_setter=OneActor())
        self.pushes = self._pushes(settings, seed)
        several = [size for size in settings.team_sizes if max(size) > 1] or [(2, 2)]
        setter = MixedStates([Kickoff(), RandomState(), Scramble(), Push(own_goal=True)], [1, 1, 2, 1])
        rough: dict[str, Any] = {"team_size": several, "state_setter": setter}
        rough["num_arenas"] = max(4, len(several))
        done = [GoalCondition(), NoTouchCondition(3.0), TimeoutCondition(5.0)]
        self.rough = record(
            settings, TeamBots(KickoffThenShoot(), RandomBot(seed)), max(5.0, seconds / 4), seed, done=done, **rough
        )
        (self.mirrored, self.mirror_order), (self.shuffled, self.order) = swapped(self.rough), reordered(self.rough)
        fine, window = TICK_SKIPS[0], TICK_SKIPS[-1]
        rough |= {"tick_skip": fine, "action_delay_ticks": 0, "action": ContinuousAction(), "num_arenas": 8}
        held = Held(TeamBots(BallChaser(), RandomBot(seed)), window // fine)
        tape = record(settings, held, max(5.0, seconds / 4), seed, done=GoalOrTime(5.0, window), **rough)
        self.skips = {skip: coarser(tape, skip // fine) for skip in TICK_SKIPS}
        self.goals_per_minute = self._goals(self.acting["score"])

    @staticmethod
    def _pushes(settings: PoolSettings, seed: int) -> tuple[Tape, Tape]:
        done = [GoalCondition(), TimeoutCondition(PUSH_SECONDS)]
        tapes = [
            record(settings, IdleBot(), PUSH_SECONDS, seed, state_setter=Push(own_goal), done=done)
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


def _with_shares(reports: list[PartReport]) -> list[PartReport]:
    """The sums that stand in place of the shares over that of all parts; the last one is the total."""
    everything = sum(report.share for report in reports[:-1])
    shares = [report.share / everything if everything else 0.0 for report in reports[:-1]]
    return [PartReport(**(vars(r) | {"share": s})) for r, s in zip(reports, [*shares, float(sum(shares))], strict=True)]


def _findings(parts: list[PartReport], total: PartReport, games: _Games) -> list[Finding]:
    found = []
    rows = [*parts, total] if len(parts) > 1 else parts
    for row in rows:
        if row.own_goal > 0:
            text = f"{row.name} pays for an own goal: {row.own_goal:.3g} more than for the same touch to the side"
            found.append(Finding("own goal", row.name, text))
    scoring = total.per_minute["score"]
    for row in rows:
        what, earned = row.farmed
        if games.goals_per_minute and earned > max(scoring, 0.0) + 1e-6:
            text = f"{row.name} pays farming more than scoring: {earned:.3g} a minute for a car that plays `{what}`, "
            text += f"while all parts together pay one that scores {scoring:.3g}"
            found.append(Finding("farming", row.name, text))
    for row in rows:
        for kind, value, text in (
            ("mirror", row.mirror, "pays blue and orange differently for the mirrored play"),
            ("order", row.order, "pays a car by its place in the list of cars"),
        ):
            if value > TOLERANCE:
                found.append(Finding(kind, row.name, f"{row.name} {text} ({value:.1%} of it)"))
        if row.unit in INVARIANT_UNITS and row.skip_change > SKIP_TOLERANCE:
            each = ", ".join(f"{pay:.3g} at {skip}" for skip, pay in row.tick_skip.items())
            text = f"{row.name} is paid {row.unit}, but what it pays a minute depends on the tick skip: {each}"
            found.append(Finding("tick skip", row.name, text))
    return found


def _notes(parts: list[PartReport], total: PartReport, games: _Games) -> list[str]:
    notes = [f"{part.name} paid nothing in any situation" for part in parts if part.sign == "0"]
    if not games.goals_per_minute:
        notes.append("nobody scored from kickoffs (too few seconds, or odd actions); farming could not be judged")
    elif total.per_minute["chase"] > total.per_minute["score"]:
        notes.append(
            f"a car that only chases the ball earns {total.per_minute['chase']:.3g} a minute, one that scores "
            f"{total.per_minute['score']:.3g}"
        )
    if not games.own_goals():
        notes.append("no own goal came about; what one pays could not be judged")
    return notes
