"""Settings of all commands that play matches or episodes."""

from dataclasses import dataclass
from typing import Annotated

from fabric_rl.base.settings import Between, CountOrZero, check_settings

MOST = 100_000
"""Upper limit of counts and minutes."""
UpTo = Annotated[int, Between(1, MOST)]
Minutes = Annotated[float, Between(0, MOST, above=True)]
Confidence = Annotated[float, Between(0, 0.999999, above=True)]


@dataclass(frozen=True)
class ActSettings:
    """Settings of agents that act."""

    seed: CountOrZero = 0
    """Seed of initial states and of sampled actions; the same seed gives the same results."""
    sample: bool = False
    """Sample the actions of agents from their policies. Default: take the most probable action."""
    tick_skip: UpTo | None = None
    """Physics ticks (1/120 s) per decision. Default: as in the training of the first agent; 8 for bots."""
    runs_dir: str = "runs"
    """Folder that contains all runs."""
    trust_torchscript: bool = False
    """Load exported agents that are TorchScript (policy.pt), too, which are programs and can write files."""

    def __post_init__(self) -> None:
        check_settings(self, "--")


@dataclass(frozen=True)
class PlaySettings(ActSettings):
    """Settings of matches."""

    team_size: UpTo | None = None
    """Cars per team. Default: as in the training of the first agent; 1 for bots."""


@dataclass(frozen=True)
class ContestSettings(PlaySettings):
    """Settings of many matches whose results are measured."""

    minutes: Minutes | None = None
    """Game time of each match in minutes. Default: 5."""
    confidence: Confidence = 0.95
    """Confidence level of all intervals, above 0 and below 1."""
    workers: UpTo = 1
    """Processes that play matches in parallel; one per CPU core is best. The results do not depend on it."""


DEFAULT_ACT, DEFAULT_PLAY, DEFAULT_CONTEST = ActSettings(), PlaySettings(), ContestSettings()
