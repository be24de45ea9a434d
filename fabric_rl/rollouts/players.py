"""Players and trainers: with `--num_players K`, the last K ranks collect rollouts and the others learn from them.

Every rank runs the same loop. In iteration i, the players send rollout i, whose columns (sub-environments) the trainers
share evenly, and collect rollout i + 1 with their current weights while the trainers learn; then rank 0 sends the new
weights. A rollout is thus one update old, as with `--overlap`, and the same seed gives the same weights. Players and
trainers communicate through gloo; gradients and sums of the trainers use their own process group.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from lightning import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from fabric_rl.ranks.collectives import all_gather_object
from fabric_rl.ranks.players_strategy import PeerFabric, PlayersStrategy
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.rollout import TENSORS, Rollout, reward_signals
from fabric_rl.types import HasParameters, ParameterValue

_COLUMNS = tuple(name for name in TENSORS if name != "state")
"""Tensors `[*, N, ...]` of a rollout that trainers need."""


class EnvDescription:
    """Description of a player's environment for the trainers; building it resets the environment."""

    def __init__(self, envs: VectorEnv, seed: int) -> None:
        obs, infos = envs.reset(seed=seed)
        self.name, self.num_envs = type(envs).__name__, envs.num_envs
        self.metadata = {"autoreset_mode": envs.metadata.get("autoreset_mode")}
        self.spaces = envs.single_observation_space, envs.single_action_space
        self.reward_signals, self.layout = reward_signals(envs), dict(getattr(envs, "layout", {}))
        self.has_parameters = isinstance(envs, HasParameters)
        self.first_obs = np.array(obs[:1])
        kept: list[str] = [name for name in ("action_mask", "teacher_action") if name in infos]
        self.first_infos = {name: np.array(infos[name][:1]) for name in kept}


class RemoteEnv(VectorEnv):
    """Stand-in on a trainer for the players' environments; it returns the same observation at every step."""

    def __init__(self, description: EnvDescription, num_envs: int) -> None:
        self.description, self.num_envs, self.metadata = description, num_envs, description.metadata
        self.single_observation_space, self.single_action_space = description.spaces
        self.observation_space, self.action_space = (batch_space(space, num_envs) for space in description.spaces)
        self.reward_signals, self.layout = description.reward_signals, description.layout

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:  # noqa: ANN401
        """Return the initial observation for all sub-environments."""
        infos = {name: first.repeat(self.num_envs, axis=0) for name, first in self.description.first_infos.items()}
        return self.description.first_obs.repeat(self.num_envs, axis=0), infos

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return the same observation, with zero rewards."""
        obs, infos = self.reset()
        done = np.zeros(self.num_envs, np.bool_)
        return obs, np.zeros(self.num_envs, np.float32), done, done, infos

    def check_parameters(self, values: dict[str, ParameterValue]) -> None:
        """Raise a ValueError if the players' environments have no parameters; the players check the values."""
        if not self.description.has_parameters:
            raise ValueError(f"{self.description.name} has no parameters, so {', '.join(values)} cannot be set")

    def set_parameters(self, values: dict[str, ParameterValue]) -> None:
        """Do nothing, because the players set the parameters."""


class PlayerTrainerLink:
    """This rank's link between players and trainers.

    Attributes:
        peers: Fabric of the ranks with the same role.
        plays: True on a player.
        envs_per_player: Number of sub-environments of each player; set by `build_env`.
        envs_per_trainer: Number of sub-environments that each trainer learns from; set by `build_env`.
    """

    def __init__(self, fabric: Fabric, num_players: int) -> None:
        """Use the process groups of the strategy; raise a ValueError if Fabric has a different one."""
        strategy = fabric.strategy
        if not isinstance(strategy, PlayersStrategy) or strategy.num_players != num_players:
            raise ValueError(
                f"--num_players {num_players}: build Fabric with players_strategy.fabric_kwargs, as "
                "train_fabric.py does"
            )
        self.fabric, self.plays = fabric, strategy.plays
        self.players, self.trainers = strategy.num_players, strategy.num_trainers
        self.peers = PeerFabric(fabric, strategy.peer_group)
        self._weights_group = strategy.weights_group
        self.envs_per_player = self.envs_per_trainer = 0

    def build_env(self, build: Callable[[], VectorEnv], seed: int) -> VectorEnv:
        """Return this player's environment, or a `RemoteEnv` on a trainer; every rank must call this.

        Raises:
            ValueError: A player could not build its environment (the player itself raises the original error), or the
                trainers cannot share the sub-environments.
        """
        envs: VectorEnv | None = None
        told: EnvDescription | str | None = None
        problem: Exception | None = None
        if self.plays:
            try:
                envs = build()
                told = EnvDescription(envs, seed)
            except Exception as error:  # the others must know, or they would wait forever
                problem, told = error, f"{error}" or type(error).__name__
        everyone = all_gather_object(self.fabric, told)
        if problem is not None:
            raise problem
        wrong = [text for text in everyone if isinstance(text, str)]
        stands = [each for each in everyone if isinstance(each, EnvDescription)]
        sizes = [each.num_envs for each in stands]
        if wrong or len(set(sizes)) > 1 or sum(sizes) % self.trainers:
            if envs is not None:
                envs.close()
            if wrong:
                raise ValueError(wrong[0])
            raise ValueError(
                f"--num_players: {self.trainers} trainers cannot share the players' {' + '.join(map(str, sizes))} "
                "sub-environments evenly; change the number of players or of sub-environments"
            )
        self.envs_per_player, self.envs_per_trainer = sizes[0], sum(sizes) // self.trainers
        if envs is not None:
            return envs
        stand_in = type(stands[0].name, (RemoteEnv,), {})  # error messages show the name of the real class
        return cast(VectorEnv, stand_in(stands[0], self.envs_per_trainer))

    def send(self, rollout: Rollout, seconds: float) -> None:
        """Send each trainer its columns of this player's rollout, and the duration of collecting it."""
        first, works = self.peers.global_rank * self.envs_per_player, []
        for trainer in range(self.trainers):
            columns = self._common(first, trainer)
            if columns.stop > columns.start:
                own = slice(columns.start - first, columns.stop - first)
                parcel = _pack([*_tensors(rollout, own), torch.tensor([seconds], dtype=torch.float64)])
                works.append((dist.isend(parcel, trainer), parcel))  # must stay alive until it is sent
        for work, _ in works:
            cast(Any, work).wait()

    def receive(self, rollout: Rollout) -> float:
        """Fill a trainer's rollout, and return the seconds that the slowest player took."""
        first, works, slowest = self.peers.global_rank * self.envs_per_trainer, [], 0.0
        for player in range(self.players):
            columns = self._common(player * self.envs_per_player, self.peers.global_rank)
            if columns.stop > columns.start:
                own = slice(columns.start - first, columns.stop - first)
                seconds = torch.zeros(1, dtype=torch.float64)
                tensors = [*_tensors(rollout, own), seconds]
                parcel = torch.empty(sum(x.nbytes for x in tensors), dtype=torch.uint8)
                works.append((dist.irecv(parcel, self.trainers + player), parcel, tensors, seconds))
        for work, parcel, tensors, seconds in works:
            cast(Any, work).wait()
            _unpack(parcel, tensors)
            slowest = max(slowest, float(seconds))
        return slowest

    @torch.no_grad()
    def share_weights(self, module: nn.Module) -> None:
        """Send rank 0's weights and statistics to the players; every rank must call this."""
        if not self.plays and self.fabric.global_rank > 0:
            return
        tensors = [value for value in module.state_dict().values() if isinstance(value, Tensor)]
        size = sum(x.nbytes for x in tensors)
        parcel = torch.empty(size, dtype=torch.uint8) if self.plays else _pack(tensors)
        dist.broadcast(parcel, src=0, group=self._weights_group)
        if self.plays:
            _unpack(parcel, tensors)

    def _common(self, first: int, trainer: int) -> slice:
        """Return the columns, counted over all players, that a trainer shares with the player at `first`."""
        return slice(
            max(first, trainer * self.envs_per_trainer),
            min(first + self.envs_per_player, (trainer + 1) * self.envs_per_trainer),
        )


class _LinkedCollector(Collector):
    collects_ahead = True

    def __init__(self, link: PlayerTrainerLink, *parts: Any) -> None:  # noqa: ANN401 - of Collector
        super().__init__(*parts)
        self._link = link


class RolloutRank(_LinkedCollector):
    """Collector of a player, which collects the next rollout while the trainers learn from the last one."""

    def next_rollout(self) -> Rollout:
        """Collect a rollout and send it to the trainers."""
        rollout = super().next_rollout()
        self._link.send(rollout, self.seconds)
        return rollout

    @contextmanager
    def while_learning(self, another: bool) -> Iterator[None]:
        """Run the block, in which this rank does not learn; then collect, and receive the new weights."""
        self._expect_rollout()
        self._learns_next = False
        yield
        if another:
            self._collect()
            self._ready = True
        self._link.share_weights(self.agent)


class LearnerRank(_LinkedCollector):
    """Collector of a trainer, which receives its rollouts from the players."""

    def next_rollout(self) -> Rollout:
        """Return the players' rollout, whose rewards they have already scaled."""
        self._expect_learning()
        with self._timers("wait_for_the_players"):
            self.seconds = self._link.receive(self.rollout)
        return self.rollout

    @contextmanager
    def while_learning(self, another: bool) -> Iterator[None]:
        self._learns_next = False
        yield
        self.rollout.untaught = max(0, self.rollout.untaught - 1)
        with self._timers("weights"):
            self._link.share_weights(self.agent)


def _tensors(rollout: Rollout, columns: slice) -> list[Tensor]:
    everything = (getattr(rollout, name) for name in _COLUMNS)
    return [x[:, columns] for x in everything if x is not None and x.dim() > 1]  # without memory there are no states


def _aligned(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the widest dtypes first, so that each tensor begins at a multiple of its element size."""
    return sorted(tensors, key=Tensor.element_size, reverse=True)


def _pack(tensors: Sequence[Tensor]) -> Tensor:
    """Return all bytes as one vector on the CPU."""
    dense = (x.detach().clone(memory_format=torch.contiguous_format) for x in _aligned(tensors))
    return torch.cat([x.view(-1).view(torch.uint8) for x in dense]).cpu()


def _unpack(parcel: Tensor, tensors: Sequence[Tensor]) -> None:
    """Fill `tensors` with the content of a parcel that `_pack` made from tensors with the same shapes and dtypes."""
    ordered = _aligned(tensors)
    for x, part in zip(ordered, torch.split(parcel, [x.nbytes for x in ordered]), strict=True):
        x.copy_(part.view(x.dtype).view(x.shape))
