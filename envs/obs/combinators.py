"""Observation builders that combine others: several frames, a critic that sees more than the actor, and roles."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.obs.base import Meaning, ObsBuilder, build_obs, build_obs_checked, with_prefix
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Bool, Float
from fabric_rl.base.settings import Between, Count


def flat_space(owner: ObsBuilder, setting: str, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
    """Return the space of the builder in the setting `setting`; raise a ValueError unless it is flat, `[D]`."""
    inner: ObsBuilder = getattr(owner, setting)
    space = inner.space(num_blue, num_orange)
    if len(space.shape) != 1:
        built = f"{type(inner).__name__} builds {list(space.shape)}"
        raise ValueError(f"{type(owner).__name__}: {setting} must build flat observations, {built}")
    return space


@dataclass(eq=False, repr=False)
class StackedObs(ObsBuilder):
    """Stack the last `num_frames` observations of another builder along the last axis, the newest first.

    When an episode begins, all frames are its first observation. The frames belong to the arenas of one pool
    (`state.arena_index`), so every pool needs its own `StackedObs`. If observations are built twice without a step in
    between (the same `state.episode_ticks`), the frames stay the same.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {
        "frames": "_frames",
        "ticks": "_ticks",
        "fresh": "_fresh",
        "inner/": "inner",
    }

    inner: ObsBuilder
    """Builder of one frame, `[D]` or `[E, F]`."""
    num_frames: Count = 3
    """Frames in an observation, usually 1 to 4."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._frames: Float = np.zeros((0, self.num_frames), np.float32)
        """`[arenas, num_frames, C, ...]`, the newest first."""
        self._ticks = np.zeros(0, np.int64)
        """`[arenas]` `episode_ticks` of the newest frame."""
        self._fresh = np.zeros(0, np.bool_)
        """`[arenas]` True where the episode has no frame yet."""

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        inner = _for_all(self, self.inner.space(num_blue, num_orange))
        low, high = (np.concatenate([bound] * self.num_frames, axis=-1) for bound in (inner.low, inner.high))
        return gymnasium.spaces.Box(low, high, dtype=np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        inner = self.inner.meanings(num_blue, num_orange)
        return [
            meaning
            for i in range(self.num_frames)
            for meaning in with_prefix(f"frame_{i}/", inner, f" ({i} steps earlier)" if i else "")
        ]

    def reset(self, mask: Bool, state: GameState) -> None:
        super().reset(mask, state)
        starting = state.arena_index[mask]
        self._fresh[starting[starting < len(self._fresh)]] = True

    def build(self, state: GameState, out: Float) -> None:
        width = out.shape[-1] // self.num_frames
        newest = np.empty((*out.shape[:-1], width), np.float32)
        (build_obs if len(self._frames) else build_obs_checked)(self.inner, state, newest)
        arenas, ticks = state.arena_index, state.episode_ticks
        self._make_room(int(arenas.max(initial=-1)) + 1, newest.shape[1:])
        fresh = self._fresh[arenas]
        stepped = ~fresh & (self._ticks[arenas] != ticks)
        frames = self._frames[arenas]
        frames[stepped, 1:] = frames[stepped, :-1]
        frames[fresh] = newest[fresh, None]
        frames[:, 0] = newest
        self._frames[arenas], self._ticks[arenas], self._fresh[arenas] = frames, ticks, False
        for i in range(self.num_frames):
            out[..., i * width : (i + 1) * width] = frames[:, i]

    def _make_room(self, num_arenas: int, shape: tuple[int, ...]) -> None:
        """Add arenas without frames up to `num_arenas`; discard all frames if the observations' `shape` changed."""
        known = len(self._frames) if self._frames.shape[2:] == shape else 0
        if known and known >= num_arenas:
            return
        missing = num_arenas - known
        added = np.zeros((missing, self.num_frames, *shape), np.float32)
        self._frames = np.concatenate((self._frames[:known], added)) if known else added
        self._ticks = np.concatenate((self._ticks[:known], np.zeros(missing, np.int64)))
        self._fresh = np.concatenate((self._fresh[:known], np.ones(missing, np.bool_)))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        saved = state["frames"].shape[1]
        if saved != self.num_frames:
            raise ValueError(f"StackedObs: num_frames={self.num_frames}, but the saved state has {saved} frames")
        super().load_state_dict(state)


class PrivilegedBox(gymnasium.spaces.Box):
    """Space of vector observations of which the actor may only read the first columns.

    Attributes:
        actor_features: Number of columns for the actor; agents that support it (`agents.PPOLightningAgent`) show the
            rest only to the critic.
    """

    def __init__(self, low: Float, high: Float, actor_features: int) -> None:
        super().__init__(low, high, dtype=np.float32)
        self.actor_features = actor_features


@dataclass(eq=False, repr=False)
class PrivilegedObs(ObsBuilder):
    """Show the actor only the first columns of an observation, and the critic all of them.

    The space is a `PrivilegedBox`, which tells the agent the number of columns for the actor:
    `n = actor_features(num_blue, num_orange)`. `actor` builds `obs[..., :n]`; `critic` builds the rest, for example
    exact positions if the actor's are noisy or limited. The critic need not repeat the actor's columns.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"actor/": "actor", "critic/": "critic"}

    actor: ObsBuilder
    """Builder of the columns for both, flat `[D]`."""
    critic: ObsBuilder
    """Builder of the columns for the critic alone, flat `[D]`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._actor_features: dict[tuple[int, int], int] = {}

    def actor_features(self, num_blue: int, num_orange: int) -> int:
        """Return the number of leading columns that the actor sees."""
        teams = (num_blue, num_orange)
        if teams not in self._actor_features:
            self._actor_features[teams] = flat_space(self, "actor", *teams).shape[0]
        return self._actor_features[teams]

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        actor, critic = (flat_space(self, name, num_blue, num_orange) for name in ("actor", "critic"))
        low, high = np.concatenate((actor.low, critic.low)), np.concatenate((actor.high, critic.high))
        return PrivilegedBox(low, high, len(actor.low))

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        actor, critic = (builder.meanings(num_blue, num_orange) for builder in (self.actor, self.critic))
        return with_prefix("actor/", actor) + with_prefix("critic/", critic)

    def build(self, state: GameState, out: Float) -> None:
        start = self.actor_features(state.num_blue, state.num_orange)
        self.actor.build(state, out[..., :start])
        self.critic.build(state, out[..., start:])


def _for_all(owner: ObsBuilder, inner: gymnasium.spaces.Box) -> gymnasium.spaces.Box:
    """Return the space; raise a ValueError if it has columns for the critic, which the actor would see here."""
    if isinstance(inner, PrivilegedBox):
        name = type(owner).__name__
        raise ValueError(f"{name}: inner must not be a PrivilegedObs; put {name} inside the actor of a PrivilegedObs")
    return inner


# ---------------------------------------------------------------- roles


def team_roles(state: GameState) -> NDArray[np.int64]:
    """Return the role of each car by its team, `[C]`: 0 blue, 1 orange."""
    orange: NDArray[np.int64] = (state.team != BLUE).astype(np.int64)
    return orange


def slot_roles(state: GameState, roles: int) -> NDArray[np.int64]:
    """Return the role of each car by its place in the team, `[C]`, at most `roles` - 1."""
    place = np.concatenate((np.arange(state.num_blue), np.arange(state.num_orange)))
    role: NDArray[np.int64] = np.minimum(place, roles - 1)
    return role


@dataclass(eq=False, repr=False)
class RoleObs(ObsBuilder):
    """Append a column with the car's role to another builder's columns, for `agents.RolesAgent` (a policy per role).

    Attributes:
        only: Role of all cars, to play with the policy of that role; None in training.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"inner": "inner"}

    inner: ObsBuilder
    """Builder of the other columns, flat `[D]`."""
    roles: int = field(default=2, init=False)
    """Number of roles."""
    only: int | None = field(default=None, init=False)

    @abstractmethod
    def role_of(self, state: GameState) -> NDArray[np.int64]:
        """Return the number of each car's role, `[C]`, 0 .. `roles` - 1."""

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        inner = _for_all(self, flat_space(self, "inner", num_blue, num_orange))
        low, high = np.append(inner.low, np.float32(0)), np.append(inner.high, np.float32(self.roles - 1))
        return gymnasium.spaces.Box(low, high, dtype=np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        return [*self.inner.meanings(num_blue, num_orange), Meaning("role", "", 1, "number of the car's role")]

    def build(self, state: GameState, out: Float) -> None:
        build_obs(self.inner, state, out[..., :-1])
        out[..., -1] = self.role_of(state) if self.only is None else self.only
        out[..., -1] *= state.present


@dataclass(eq=False, repr=False)
class TeamRoleObs(RoleObs):
    """Give each team its own role: 0 blue, 1 orange."""

    def role_of(self, state: GameState) -> NDArray[np.int64]:
        return team_roles(state)


@dataclass(eq=False, repr=False)
class SlotRoleObs(RoleObs):
    """Give each car of a team its own role: 0 for the first car, 1 for the second, up to `roles` - 1 for all others.

    In 2v2, for example, the first car can become the striker and the second the goalie, if the reward is designed so.
    """

    roles: Annotated[int, Between(2)] = 2
    """Number of roles."""

    def role_of(self, state: GameState) -> NDArray[np.int64]:
        return slot_roles(state, self.roles)
