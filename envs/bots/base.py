"""What every bot is, and the bot that plays the two teams by two others."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser
from envs.bots.actions import nearest_actions
from envs.component import Component
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Float
from fabric_rl.base.settings import describe_value


class Thoughts(NamedTuple):
    """What a policy thought when it last acted, for whoever watches it."""

    value: Float
    """`[A, C]` the return that it expects; NaN in slots without a car."""
    probabilities: Float | None
    """`[A, C, n]` of its discrete actions; None for other action spaces."""


class Bot(Component, ABC):
    """A scripted policy for every car of every arena.

    Attributes:
        explains: Whether it has `thoughts`.
        action_rows: `[n, 8]` what each of its discrete actions is, see `act`; None where that is not known.
    """

    explains: bool = False
    action_rows: Float | None = None

    @abstractmethod
    def act(self, state: GameState) -> Float:
        """Choose the next controls of every car.

        Returns:
            `[A, C, 8]` float32 in the columns of `envs.actions`: throttle, steer, pitch, yaw, roll in -1..1, jump,
            boost, handbrake 0 or 1. Rows of slots without a car mean nothing.
        """

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """The same for `RocketSimPool.step`: `[N, ...]`, for each car the action that comes closest to `act`.

        Args:
            state: `pool.state`.
            parser: `pool.action_parser`; any, see `nearest_actions`.

        Raises:
            ValueError: A parser whose actions cannot be found out; see `wanted_by`.
        """
        controls, here = wanted_by(self, state), state.present
        return nearest_actions(parser, controls[here], state.on_ground[here])

    def thoughts(self) -> Thoughts | None:
        """Its policy's output of the last `act`: None for most bots, and before the first call."""
        return None


def wanted_by(bot: Bot, state: GameState, name: str = "") -> Float:
    """What `bot.act` says; a ValueError that names it unless that is `[A, C, 8]` and finite where there are cars."""
    wanted, shape, name = bot.act(state), state.controls.shape, name or type(bot).__name__
    if not isinstance(wanted, np.ndarray) or wanted.dtype.kind not in "biuf" or wanted.shape != shape:
        got = f"{wanted.dtype} {list(wanted.shape)}" if isinstance(wanted, np.ndarray) else type(wanted).__name__
        raise ValueError(f"{name}: act() must return numbers {list(shape)}, got {got}")
    if not np.isfinite(wanted[state.present]).all():
        raise ValueError(f"{name}: act() has returned NaN or infinity")
    return wanted


class TeamBots(Bot):
    """Blue played by one bot, orange by another.

    Attributes:
        blue: Plays the blue cars.
        orange: Plays the orange ones.
    """

    _in_state_dict: ClassVar = {"blue": "blue", "orange": "orange"}

    def __init__(self, blue: Bot, orange: Bot) -> None:
        for argument, bot in (("blue", blue), ("orange", orange)):
            if not isinstance(bot, Bot):
                raise TypeError(f"TeamBots: {argument} must be an envs.bots.Bot object, got {describe_value(bot)}")
        self.blue, self.orange = blue, orange

    def act(self, state: GameState) -> Float:
        return np.where((state.team == BLUE)[:, None], self.blue.act(state), self.orange.act(state))

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """See `Bot.actions`; each bot chooses in its own way."""
        ours, theirs = self.blue.actions(state, parser), self.orange.actions(state, parser)
        team = np.broadcast_to(state.team, state.present.shape)[state.present]
        return np.where((team == BLUE).reshape(-1, *[1] * (ours.ndim - 1)), ours, theirs)
