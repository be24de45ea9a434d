"""Base class of bots, TeamBots, and bots that ignore the state."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser
from envs.actions.base import ANALOGUE, BUTTONS
from envs.bots.actions import nearest_actions
from envs.component import Component
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Float
from fabric_rl.base.settings import CountOrZero, describe_value


class Thoughts(NamedTuple):
    """Output of a policy's last `act`, for viewers and replays."""

    value: Float
    """`[A, C]` expected return; NaN in slots without a car."""
    probabilities: Float | None
    """`[A, C, n]` of its discrete actions; None for other action spaces."""


class Bot(Component, ABC):
    """A scripted policy for every car of every arena."""

    explains: bool = False
    """True if it has `thoughts`."""
    action_rows: Float | None = None
    """`[n, 8]` controls of each of its discrete actions, see `act`; None if unknown."""

    @abstractmethod
    def act(self, state: GameState) -> Float:
        """Choose the next controls of every car.

        Returns:
            `[A, C, 8]` float32 in the columns of `envs.actions`: throttle, steer, pitch, yaw, roll in -1..1, jump,
            boost, handbrake 0 or 1. Rows of slots without a car are ignored.
        """

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """Choose actions for `RocketSimPool.step`: `[N, ...]`, for each car the one that comes closest to `act`.

        Args:
            state: `pool.state`.
            parser: `pool.action_parser`; any, see `nearest_actions`.

        Raises:
            ValueError: A parser that bots cannot use (`nearest_actions`), or invalid controls (`compute_controls`).
        """
        controls, here = compute_controls(self, state), state.present
        return nearest_actions(parser, controls[here], state.on_ground[here])

    def thoughts(self) -> Thoughts | None:
        """Return its policy's output of the last `act`: None for most bots, and before the first call."""
        return None


def compute_controls(bot: Bot, state: GameState, name: str = "") -> Float:
    """Return `bot.act(state)`; a ValueError that names the bot unless it is `[A, C, 8]`, and finite for all cars."""
    wanted, shape, name = bot.act(state), state.controls.shape, name or type(bot).__name__
    if not isinstance(wanted, np.ndarray) or wanted.dtype.kind not in "biuf" or wanted.shape != shape:
        raise ValueError(f"{name}: act() must return numbers {list(shape)}, got {describe_value(wanted)}")
    if not np.isfinite(wanted[state.present]).all():
        raise ValueError(f"{name}: act() returned NaN or infinity")
    return wanted


def blank(state: GameState) -> Float:
    """Return `[A, C, 8]` controls that do nothing."""
    return np.zeros((state.num_arenas, state.num_cars, 8), np.float32)


@dataclass(eq=False, repr=False)
class TeamBots(Bot):
    """Blue played by one bot, orange by another."""

    _in_state_dict: ClassVar[dict[str, str]] = {"blue": "blue", "orange": "orange"}

    blue: Bot
    """Plays the blue cars."""
    orange: Bot
    """Plays the orange ones."""

    def act(self, state: GameState) -> Float:
        return np.where((state.team == BLUE)[:, None], self.blue.act(state), self.orange.act(state))

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        ours, theirs = self.blue.actions(state, parser), self.orange.actions(state, parser)
        team = np.broadcast_to(state.team, state.present.shape)[state.present]
        return np.where((team == BLUE).reshape(-1, *[1] * (ours.ndim - 1)), ours, theirs)


class IdleBot(Bot):
    """Never press any control."""

    def act(self, state: GameState) -> Float:
        return blank(state)


@dataclass(eq=False, repr=False)
class RandomBot(Bot):
    """Choose random controls in every step, like an untrained policy."""

    seed: CountOrZero = 0
    """The same seed and number of cars give the same play."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rng = np.random.default_rng(self.seed)

    def act(self, state: GameState) -> Float:
        """Draw sticks from -1, 0 and 1, and press each button half of the time; see `Bot.act`."""
        controls = blank(state)
        shape = controls.shape[:2]
        controls[..., ANALOGUE] = self._rng.integers(-1, 2, (*shape, 5))
        controls[..., BUTTONS] = self._rng.integers(0, 2, (*shape, 3))
        return controls

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """Draw `[N, ...]` evenly from a discrete or bounded space (else a ValueError); see `Bot.actions`."""
        space, count = parser.action_space, int(state.present.sum())
        if isinstance(space, gymnasium.spaces.Discrete):
            return self._rng.integers(space.start, space.start + space.n, count)
        if isinstance(space, gymnasium.spaces.MultiDiscrete):
            return self._rng.integers(space.start, space.start + space.nvec, (count, *space.shape))
        if isinstance(space, gymnasium.spaces.Box) and space.is_bounded():
            return self._rng.uniform(space.low, space.high, (count, *space.shape)).astype(space.dtype)
        raise ValueError(f"RandomBot: cannot draw actions from {space}")

    def state_dict(self) -> dict[str, Any]:
        return {"rng": dict(self._rng.bit_generator.state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
