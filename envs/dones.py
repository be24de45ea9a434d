"""Done conditions: when an episode ends, and whether it is terminated or truncated."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from envs.game_state import Bool, GameState
from envs.physics import TICKS_PER_SECOND


class DoneCondition(ABC):
    """Tells which arenas end their episode.

    Attributes:
        truncates: False: the episode is over and its value is zero from here on (terminated). True: it is only cut
            off, and the learner bootstraps from the value of the last observation (truncated).
    """

    truncates: bool = False

    @abstractmethod
    def check(self, state: GameState) -> Bool:
        """`[A]` bool, True where the episode ends."""

    def reset(self, mask: Bool, state: GameState) -> None:  # noqa: B027 - most conditions keep nothing
        """Called for the arenas (`mask [A]`) that begin a new episode in `state`."""


class GoalCondition(DoneCondition):
    """The ball is in a goal. Terminates."""

    def check(self, state: GameState) -> Bool:
        """See `DoneCondition.check`."""
        return state.goal_scored


class NoTouchCondition(DoneCondition):
    """Nobody has touched the ball for a while. Truncates."""

    truncates = True

    def __init__(self, timeout_seconds: float = 30.0) -> None:
        """Creates the condition.

        Args:
            timeout_seconds: Game seconds since the last touch, or since the episode began.

        Raises:
            ValueError: Not positive.
        """
        self.timeout_seconds = _positive("NoTouchCondition", timeout_seconds)

    def check(self, state: GameState) -> Bool:
        """See `DoneCondition.check`."""
        ended: Bool = state.ticks_since_touch >= self.timeout_seconds * TICKS_PER_SECOND
        return ended


class TimeoutCondition(DoneCondition):
    """The episode has lasted long enough. Truncates."""

    truncates = True

    def __init__(self, timeout_seconds: float = 300.0) -> None:
        """Creates the condition.

        Args:
            timeout_seconds: Game seconds since the episode began.

        Raises:
            ValueError: Not positive.
        """
        self.timeout_seconds = _positive("TimeoutCondition", timeout_seconds)

    def check(self, state: GameState) -> Bool:
        """See `DoneCondition.check`."""
        ended: Bool = state.episode_ticks >= self.timeout_seconds * TICKS_PER_SECOND
        return ended


def default_dones() -> Sequence[DoneCondition]:
    """Requirement 000: a goal terminates, 30 s without a touch or 300 s in all truncate."""
    return (GoalCondition(), NoTouchCondition(30.0), TimeoutCondition(300.0))


def _positive(name: str, timeout_seconds: float) -> float:
    if not timeout_seconds > 0:
        raise ValueError(f"{name}: timeout_seconds must be positive, got {timeout_seconds}")
    return timeout_seconds
