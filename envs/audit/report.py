"""Results of an audit: numbers for every term, and findings."""

from dataclasses import dataclass

from envs.bots import BallChaser, Bot, CircleBot, HopBot, HoverBot, IdleBot, KickoffThenShoot

FARMING_BOTS: dict[str, type[Bot]] = {"idle": IdleBot, "circle": CircleBot, "hover": HoverBot, "hop": HopBot}
"""Behaviour that must not be rewarded more than scoring."""
PLAYING_BOTS: dict[str, type[Bot]] = {"chase": BallChaser, "score": KickoffThenShoot}


@dataclass(frozen=True)
class PartReport:
    """Measurements of one term of the reward, including its weight; "per minute" is per car and minute of game time.

    Attributes:
        name: Name in the pool's metrics.
        unit: Unit of the term; empty for a mixture.
        weight: Factor in the sum.
        share: Share of the absolute rewards in random and scripted play (without farming), 0..1.
        sign: `+` only positive, `-` only negative, `+-` both, `0` neither.
        per_minute: Reward of a car with `random` actions in the configured pool, and of the acting car with `idle`,
            `circle`, `hover`, `hop`, `chase`, `score` from kickoffs while all others are idle.
        mirror: Relative difference for the other colours in mirrored play, 0..1.
        order: Relative difference with the cars of a team in another order, 0..1.
        tick_skip: Tick skip -> reward per minute of the same play.
        skip_change: Relative difference between the first two tick skips, 0..1; 1/3 for rewards per step.
        own_goal: Reward of an own goal for the car that shot it, minus its reward for the same touch to the side.
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
        """Farming behaviour with the highest reward, and its reward per minute."""
        return max(((name, self.per_minute[name]) for name in FARMING_BOTS), key=lambda pair: pair[1])


@dataclass(frozen=True)
class Finding:
    """A problem with a term.

    Attributes:
        kind: `own goal`, `farming`, `mirror`, `order` or `tick skip`.
        part: Name of the term.
        text: One-line description.
    """

    kind: str
    part: str
    text: str

    @property
    def fatal(self) -> bool:
        """True if an agent would learn unintended behaviour from it."""
        return self.kind in ("own goal", "farming")


@dataclass(frozen=True)
class Audit:
    """Result of an audit.

    Attributes:
        parts: Report of each term.
        total: Report of the whole reward.
        findings: Problems, worst first.
        notes: Remarks, also about what could not be measured.
        goals_per_minute: Goals of the scoring bot.
        tick_skip: Tick skip of the configured pool.
        seconds: Game time of each situation.
        seed: Seed of all situations.
        phase: Phase of training; empty for the default.
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
        """True if there is no fatal finding."""
        return not any(finding.fatal for finding in self.findings)
