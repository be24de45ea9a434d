"""What an audit finds out: numbers for every part, and what is wrong with them."""

from dataclasses import dataclass

from envs.bots import BallChaser, Bot, CircleBot, HopBot, HoverBot, IdleBot, KickoffThenShoot

FARMING: dict[str, type[Bot]] = {"idle": IdleBot, "circle": CircleBot, "hover": HoverBot, "hop": HopBot}

"""What must not pay better than scoring."""

PLAYING: dict[str, type[Bot]] = {"chase": BallChaser, "score": KickoffThenShoot}


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
