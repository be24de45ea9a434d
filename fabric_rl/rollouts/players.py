"""Players and trainers: with `--num_players K` the last K ranks play and the others learn from what they send.

Every rank runs the same loop. In iteration i the players send rollout i, whose columns (sub-environments) the trainers
share evenly, and collect rollout i + 1 with the weights they have while the trainers learn; then rank 0 sends the new
weights. So a rollout is one update old, as with `--overlap`, and the same seed gives the same weights. What players and
trainers say to one another goes through gloo; the trainers' gradients, and sums, through their own group.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
import numpy as np
import torch
import torch.distributed as dist
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from lightning import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from fabric_rl.ranks.collectives import Sums, gather_everywhere
from fabric_rl.ranks.players_strategy import PeerFabric, PlayersStrategy
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.rollout import TENSORS, Rollout, reward_signals
from fabric_rl.types import HasParameters, ParameterValue

_COLUMNS = tuple(name for name in TENSORS if name != "state")
"""Tensors `[*, N, ...]` of a rollout that are learned from."""


@dataclass(frozen=True)
class EnvDescription:
    """Description of a player's environment for the trainers."""

    kind: str
    num_envs: int
    metadata: dict[str, Any]
    single_observation_space: gymnasium.Space[Any]
    single_action_space: gymnasium.Space[Any]
    reward_signals: tuple[str, ...]
    layout: dict[str, str]
    has_parameters: bool
    first_obs: NDArray[Any]
    """`[1, ...]`, one first observation for the trial."""
    first_mask: NDArray[Any] | None
    """`[1, n]`, its action mask."""

    @classmethod
    def of(cls, envs: VectorEnv, seed: int) -> "EnvDescription":
        """Describes an environment, which is reset for that."""
        obs, infos = envs.reset(seed=seed)
        mask = infos.get("action_mask")
        return cls(
            kind=type(envs).__name__,
            num_envs=envs.num_envs,
            metadata={"autoreset_mode": envs.metadata.get("autoreset_mode")},
            single_observation_space=envs.single_observation_space,
            single_action_space=envs.single_action_space,
            reward_signals=reward_signals(envs),
            layout=dict(getattr(envs, "layout", {})),
            has_parameters=isinstance(envs, HasParameters),
            first_obs=np.array(obs[:1]),
            first_mask=None if mask is None else np.array(mask[:1]),
        )


class RemoteEnv(VectorEnv):
    """Has the spaces of the players' environments, and shows one first observation again and again."""

    def __init__(self, description: EnvDescription, num_envs: int) -> None:
        self.description, self.num_envs, self.metadata = description, num_envs, description.metadata
        self.single_observation_space = description.single_observation_space
        self.single_action_space = description.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.reward_signals, self.layout = description.reward_signals, description.layout

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:  # noqa: ANN401
        """The same observation for all."""
        mask = self.description.first_mask
        infos = {} if mask is None else {"action_mask": mask.repeat(self.num_envs, axis=0)}
        return self.description.first_obs.repeat(self.num_envs, axis=0), infos

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Nothing happens."""
        obs, infos = self.reset()
        over = np.zeros(self.num_envs, np.bool_)
        return obs, np.zeros(self.num_envs, np.float32), over, over, infos

    def check_parameters(self, values: dict[str, ParameterValue]) -> None:
        """The players check them, if there are any at all."""
        if not self.description.has_parameters:
            raise ValueError(f"{self.description.kind} has no parameters that could be set to {', '.join(values)}")

    def set_parameters(self, values: dict[str, ParameterValue]) -> None:
        """The players set them."""


class Exchange:
    """This rank's link between players and trainers.

    Attributes:
        peers: The Fabric of those that do the same as this rank.
        plays: This rank is a player.
        own: Sub-environments of each player; known after `environment`.
        share: Sub-environments that each trainer learns from; known after `environment`.
    """

    def __init__(self, fabric: Fabric, num_players: int) -> None:
        """Takes the groups of the strategy; a ValueError if Fabric has another one."""
        strategy = fabric.strategy
        if not isinstance(strategy, PlayersStrategy) or strategy.num_players != num_players:
            raise ValueError(
                f"--num_players {num_players}: build Fabric with players_strategy.fabric_arguments, as "
                "train_fabric.py does"
            )
        self.fabric, self.plays = fabric, strategy.plays
        self.players, self.trainers = strategy.num_players, strategy.num_trainers
        self.peers = PeerFabric(fabric, strategy.peer_group)
        self._weights_group = strategy.weights_group
        self.own = self.share = 0

    def environment(self, build: Callable[[], VectorEnv], seed: int) -> VectorEnv:
        """This player's environment, or what stands for it on a trainer; every rank calls it.

        Raises:
            ValueError: A player could not build its own (there the error is what it was), or the trainers cannot share
                the players' sub-environments.
        """
        envs: VectorEnv | None = None
        told: EnvDescription | str | None = None
        problem: Exception | None = None
        if self.plays:
            try:
                envs = build()
                told = EnvDescription.of(envs, seed)
            except Exception as error:  # told to all, or they would wait
                problem, told = error, f"{error}" or type(error).__name__
        everyone = gather_everywhere(self.fabric, told)
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
        self.own, self.share = sizes[0], sum(sizes) // self.trainers
        if envs is not None:
            return envs
        stand_in = type(stands[0].kind, (RemoteEnv,), {})  # error messages show the name of what it stands for
        return cast(VectorEnv, stand_in(stands[0], self.share))

    def send(self, rollout: Rollout, seconds: float) -> None:
        """Gives each trainer its columns of this player's rollout, and what collecting it took."""
        first, works = self.peers.global_rank * self.own, []
        for trainer in range(self.trainers):
            columns = self._common(first, trainer)
            if columns.stop > columns.start:
                own = slice(columns.start - first, columns.stop - first)
                parcel = _pack([*_tensors(rollout, own), torch.tensor([seconds], dtype=torch.float64)])
                works.append((dist.isend(parcel, trainer), parcel))  # which has to live until it is sent
        for work, _ in works:
            cast(Any, work).wait()

    def receive(self, rollout: Rollout) -> float:
        """Fills a trainer's rollout.

        Returns:
            Seconds that the slowest player took.
        """
        first, works, slowest = self.peers.global_rank * self.share, [], 0.0
        for player in range(self.players):
            columns = self._common(player * self.own, self.peers.global_rank)
            if columns.stop > columns.start:
                own = slice(columns.start - first, columns.stop - first)
                seconds = torch.zeros(1, dtype=torch.float64)
                tensors = [*_tensors(rollout, own), seconds]
                parcel = torch.empty(_size(tensors), dtype=torch.uint8)
                works.append((dist.irecv(parcel, self.trainers + player), parcel, tensors, seconds))
        for work, parcel, tensors, seconds in works:
            cast(Any, work).wait()
            _unpack(parcel, tensors)
            slowest = max(slowest, float(seconds))
        return slowest

    @torch.no_grad()
    def share_weights(self, module: nn.Module) -> None:
        """Gives rank 0's weights, and the statistics among them, to the players; every rank calls it."""
        if not self.plays and self.fabric.global_rank > 0:
            return
        tensors = [value for value in module.state_dict().values() if isinstance(value, Tensor)]
        parcel = torch.empty(_size(tensors), dtype=torch.uint8) if self.plays else _pack(tensors)
        dist.broadcast(parcel, src=0, group=self._weights_group)
        if self.plays:
            _unpack(parcel, tensors)

    def all_names(self, local: Sums) -> Sums:
        """`local` with nothing under the names that only other ranks have; every rank calls it."""
        everyone = gather_everywhere(self.fabric, list(local))
        return {name: local.get(name, (0.0, 0.0)) for names in everyone for name in names}

    def _common(self, first: int, trainer: int) -> slice:
        """The trainer's columns among those of the player whose first one is `first`, counted over all players."""
        return slice(max(first, trainer * self.share), min(first + self.own, (trainer + 1) * self.share))


class _Joined(Collector):
    """A collector that is joined to those of other ranks."""

    def __init__(self, exchange: Exchange, *parts: Any) -> None:  # noqa: ANN401 - of Collector
        super().__init__(*parts)
        self._exchange = exchange


class Player(_Joined):
    """Collects the next rollout while others learn from the last one."""

    def next_rollout(self) -> Rollout:
        """Collect a rollout, and send it to the trainers."""
        rollout = super().next_rollout()
        self._exchange.send(rollout, self.seconds)
        return rollout

    @contextmanager
    def while_learning(self, another: bool) -> Iterator[None]:
        """Collects, after the block in which nothing is learned; then takes the new weights."""
        yield
        if another:
            self._collect()
            self._ready = True
        self._exchange.share_weights(self.agent)


class Trainer(_Joined):
    """Gets its rollouts from the players."""

    def next_rollout(self) -> Rollout:
        """Return the rollout of the players, with rewards as they have scaled them."""
        with self._timers("wait_for_the_players"):
            self.seconds = self._exchange.receive(self.rollout)
        return self.rollout

    @contextmanager
    def while_learning(self, another: bool) -> Iterator[None]:
        yield
        with self._timers("weights"):
            self._exchange.share_weights(self.agent)


def _tensors(rollout: Rollout, columns: slice) -> list[Tensor]:
    everything = (getattr(rollout, name) for name in _COLUMNS)
    return [x[:, columns] for x in everything if x is not None and x.dim() > 1]  # without memory there are no states


def _aligned(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The wide numbers first, so that each tensor begins at a multiple of its numbers' width."""
    return sorted(tensors, key=Tensor.element_size, reverse=True)


def _size(tensors: Sequence[Tensor]) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


def _pack(tensors: Sequence[Tensor]) -> Tensor:
    """All bytes in one row, on the CPU."""
    dense = (x.detach().clone(memory_format=torch.contiguous_format) for x in _aligned(tensors))
    return torch.cat([x.view(-1).view(torch.uint8) for x in dense]).cpu()


def _unpack(parcel: Tensor, tensors: Sequence[Tensor]) -> None:
    """Fills `tensors` with what `_pack` made of others of the same shapes and dtypes."""
    begin = 0
    for x in _aligned(tensors):
        end = begin + x.numel() * x.element_size()
        x.copy_(parcel[begin:end].view(x.dtype).view(x.shape))
        begin = end
