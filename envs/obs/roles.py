"""Observations that end with a role's number, for `agents.RolesAgent`: several policies that learn in one run."""

from abc import abstractmethod
from typing import ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.checks import check_part, whole_number
from envs.obs.base import ObsBuilder, build_named
from envs.obs.meanings import Meaning
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Float


class RoleObs(ObsBuilder):
    """What another builder says, and in one more column which role the car has.

    Attributes:
        inner: Builds the other columns, flat `[D]`.
        only: The role that every car plays, whatever it is; None in training. For playing with one role's policy.
    """

    roles: int = 2
    _in_state_dict: ClassVar[dict[str, str]] = {"inner": "inner"}

    def __init__(self, inner: ObsBuilder) -> None:
        self.inner: ObsBuilder = check_part(type(self).__name__, "inner", inner, ObsBuilder)
        self.only: int | None = None

    @abstractmethod
    def role_of(self, state: GameState) -> NDArray[np.int64]:
        """`[C]` the role's number of each car, 0 .. `roles` - 1."""

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """The inner space and a column more; see `ObsBuilder.space`."""
        inner = self.inner.space(num_blue, num_orange)
        if len(inner.shape) != 1:
            name = type(self).__name__
            raise ValueError(f"{name}: inner must build flat observations, {type(self.inner).__name__} does not")
        low, high = np.append(inner.low, np.float32(0)), np.append(inner.high, np.float32(self.roles - 1))
        return gymnasium.spaces.Box(low, high, dtype=np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """The inner ones and the role; see `ObsBuilder.meanings`."""
        return [*self.inner.meanings(num_blue, num_orange), Meaning("role", "", 1, "number of the car's role")]

    def build(self, state: GameState, out: Float) -> None:
        build_named(self.inner, state, out[..., :-1])
        out[..., -1] = self.role_of(state) if self.only is None else self.only
        out[..., -1] *= state.present


class TeamRoleObs(RoleObs):
    """Roles by team: 0 blue, 1 orange."""

    def role_of(self, state: GameState) -> NDArray[np.int64]:
        orange: NDArray[np.int64] = (state.team != BLUE).astype(np.int64)
        return orange


class SlotRoleObs(RoleObs):
    """Roles by a car's place in its team: 0 for the first car, 1 for the second, `roles` - 1 for all from there on.

    In 2v2 the first may become the striker, the second the goalie, if the reward pays them so.
    """

    def __init__(self, inner: ObsBuilder, roles: int = 2) -> None:
        """Takes the builder of the other columns.

        Args:
            inner: Builds them, flat `[D]`.
            roles: How many roles.
        """
        super().__init__(inner)
        self.roles = whole_number("SlotRoleObs", "roles", roles, 2)

    def role_of(self, state: GameState) -> NDArray[np.int64]:
        place = np.concatenate((np.arange(state.num_blue), np.arange(state.num_orange)))
        role: NDArray[np.int64] = np.minimum(place, self.roles - 1)
        return role
