"""Builders made of builders: several frames, and a critic that sees more than the actor."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from envs.checks import check_part, whole_number
from envs.obs.base import ObsBuilder, build_checked, build_named
from envs.obs.meanings import Meaning, with_prefix
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float


class StackedObs(ObsBuilder):
    """The last `num_frames` observations of another builder side by side along the last axis, the newest first.

    When an episode begins all frames are its first observation. The frames belong to the arenas of one pool
    (`state.arena_index`), so every pool needs its own `StackedObs`. A step is told from a second look at the same
    situation by `state.episode_ticks`: building twice without a step in between gives the same frames twice.
    """

    def __init__(self, inner: ObsBuilder, num_frames: int = 3) -> None:
        """Creates the builder.

        Args:
            inner: Builds one frame, `[D]` or `[E, F]`.
            num_frames: Frames in an observation, usually 1 to 4.
        """
        self.inner: ObsBuilder = check_part("StackedObs", "inner", inner, ObsBuilder)
        self.num_frames = whole_number("StackedObs", "num_frames", num_frames)
        self._frames: Float = np.zeros((0, num_frames), np.float32)
        """`[arenas, num_frames, C, ...]`, the newest first."""
        self._ticks = np.zeros(0, np.int64)
        """`[arenas]` `episode_ticks` of the newest frame."""
        self._fresh = np.zeros(0, np.bool_)
        """`[arenas]` no frame of this episode yet."""

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """The inner space, its last axis `num_frames` times; see `ObsBuilder.space`."""
        inner = self.inner.space(num_blue, num_orange)
        low, high = (np.concatenate([bound] * self.num_frames, axis=-1) for bound in (inner.low, inner.high))
        return gymnasium.spaces.Box(low, high, dtype=np.float32)

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """The inner ones for each frame; see `ObsBuilder.meanings`."""
        inner = self.inner.meanings(num_blue, num_orange)
        return [
            meaning
            for i in range(self.num_frames)
            for meaning in with_prefix(f"frame_{i}/", inner, f" ({i} steps earlier)" if i else "")
        ]

    def reset(self, mask: Bool, state: GameState) -> None:
        """Forgets the frames of the arenas in `mask [A]`."""
        super().reset(mask, state)
        starting = state.arena_index[mask]
        self._fresh[starting[starting < len(self._fresh)]] = True

    def build(self, state: GameState, out: Float) -> None:
        width = out.shape[-1] // self.num_frames
        newest = np.empty((*out.shape[:-1], width), np.float32)
        (build_named if len(self._frames) else build_checked)(self.inner, state, newest)
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
        """Adds arenas without frames up to `num_arenas`; forgets everything if the observations (`shape`) changed."""
        known = len(self._frames) if self._frames.shape[2:] == shape else 0
        if known and known >= num_arenas:
            return
        missing = num_arenas - known
        added = np.zeros((missing, self.num_frames, *shape), np.float32)
        self._frames = np.concatenate((self._frames[:known], added)) if known else added
        self._ticks = np.concatenate((self._ticks[:known], np.zeros(missing, np.int64)))
        self._fresh = np.concatenate((self._fresh[:known], np.ones(missing, np.bool_)))

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Frames of all arenas, and what the inner builder remembers."""
        mine: dict[str, NDArray[Any]] = {"frames": self._frames, "ticks": self._ticks, "fresh": self._fresh}
        return {name: value.copy() for name, value in mine.items()} | _prefixed("inner", self.inner.state_dict())

    def load_state_dict(self, state: dict[str, NDArray[Any]]) -> None:
        frames = state["frames"]
        if frames.shape[1] != self.num_frames:
            raise ValueError(
                f"StackedObs: num_frames={self.num_frames}, but the saved state has {frames.shape[1]} frames"
            )
        self._frames, self._fresh = frames.copy(), state["fresh"].copy()
        self._ticks = state["ticks"].copy()
        self.inner.load_state_dict(_part("inner", state))


class PrivilegedBox(gymnasium.spaces.Box):
    """A vector observation of which the actor may read the first columns only.

    Attributes:
        actor_features: How many; agents that know of it (`agents.PPOLightningAgent`) show the rest to the critic alone.
    """

    def __init__(self, low: Float, high: Float, actor_features: int) -> None:
        super().__init__(low, high, dtype=np.float32)
        self.actor_features = actor_features


class PrivilegedObs(ObsBuilder):
    """Two observations side by side: the actor looks at the first columns only, the critic at all of them.

    The space is a `PrivilegedBox`, from which the agent knows. `obs[..., :n]` with
    `n = actor_features(num_blue, num_orange)` is what `actor` builds, the rest what `critic` adds, for
    instance exact positions where the actor's are noisy or limited. The critic need not repeat what the actor has.
    """

    def __init__(self, actor: ObsBuilder, critic: ObsBuilder) -> None:
        """Creates the builder.

        Args:
            actor: Builds the columns for both, flat `[D]`.
            critic: Builds the columns for the critic alone, flat `[D]`.
        """
        self.actor: ObsBuilder = check_part("PrivilegedObs", "actor", actor, ObsBuilder)
        self.critic: ObsBuilder = check_part("PrivilegedObs", "critic", critic, ObsBuilder)
        self._actor_features: dict[tuple[int, int], int] = {}

    def actor_features(self, num_blue: int, num_orange: int) -> int:
        """Number of leading columns that the actor sees.

        Raises:
            ValueError: The actor's observations are not flat, or it cannot describe that many cars.
        """
        teams = (num_blue, num_orange)
        if teams not in self._actor_features:
            self._actor_features[teams] = len(self._flat("actor", self.actor, teams).low)
        return self._actor_features[teams]

    def space(self, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
        """`PrivilegedBox` of both; see `ObsBuilder.space`."""
        teams = (num_blue, num_orange)
        actor, critic = self._flat("actor", self.actor, teams), self._flat("critic", self.critic, teams)
        low, high = np.concatenate((actor.low, critic.low)), np.concatenate((actor.high, critic.high))
        return PrivilegedBox(low, high, len(actor.low))

    def meanings(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """The meanings of both; see `ObsBuilder.meanings`."""
        actor, critic = (builder.meanings(num_blue, num_orange) for builder in (self.actor, self.critic))
        return with_prefix("actor/", actor) + with_prefix("critic/", critic)

    def build(self, state: GameState, out: Float) -> None:
        start = self.actor_features(state.num_blue, state.num_orange)
        self.actor.build(state, out[..., :start])
        self.critic.build(state, out[..., start:])

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return the state of both builders."""
        return _prefixed("actor", self.actor.state_dict()) | _prefixed("critic", self.critic.state_dict())

    def load_state_dict(self, state: dict[str, NDArray[Any]]) -> None:
        self.actor.load_state_dict(_part("actor", state))
        self.critic.load_state_dict(_part("critic", state))

    @staticmethod
    def _flat(argument: str, builder: ObsBuilder, teams: tuple[int, int]) -> gymnasium.spaces.Box:
        space = builder.space(*teams)
        if len(space.shape) != 1:
            raise ValueError(
                f"PrivilegedObs: {argument} must build flat observations, {type(builder).__name__} builds "
                f"{list(space.shape)}"
            )
        return space


def _prefixed(prefix: str, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {f"{prefix}/{name}": value for name, value in state.items()}


def _part(prefix: str, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}
