"""Players and trainers: with `--num_players K` the last K ranks play and the others learn from what they send.

Every rank runs the same loop. In iteration i the players send rollout i, whose columns (sub-environments) the trainers
share evenly, and collect rollout i + 1 with the weights they have while the trainers learn; then rank 0 sends the new
weights. So a rollout is one update old, as with `--overlap`, and the same seed gives the same weights. What players and
trainers say to one another goes through gloo; the trainers' gradients, and sums, through their own group.
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

from fabric_rl.metrics.sums import Sums
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.players_strategy import DecoupledStrategy, Team
from fabric_rl.rollouts.collect import EpisodeStats
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.rollout import Rollout, reward_signals
from fabric_rl.types import ActorCritic, HasParameters, ParameterValue

_COLUMNS = (
    *("_obs", "_episode_start", "action_mask", "_states", "action", "log_prob"),
    *("value", "next_value", "terminated", "done"),
)
"""Tensors `[*, N, ...]` of a rollout that are learned from, besides the rewards."""


class Decoupled:
    """One rank's part of a decoupled run.

    Attributes:
        team: The Fabric of those that do the same as this rank.
        share: Sub-environments that each trainer learns from; known after `environment`.
    """

    def __init__(self, fabric: Fabric, num_players: int) -> None:
        """Takes the groups of the strategy.

        Raises:
            ValueError: Fabric has another strategy.
        """
        strategy = fabric.strategy
        if not isinstance(strategy, DecoupledStrategy) or strategy.num_players != num_players:
            raise ValueError(
                f"--num_players {num_players}: build Fabric with decoupled_strategy.fabric_arguments, as "
                "train_fabric.py does"
            )
        self.fabric, self.plays = fabric, strategy.plays
        self.players, self.trainers = strategy.num_players, strategy.num_trainers
        self.team = Team(fabric, strategy.team_group)
        self._weights_group = strategy.weights_group
        self.own = self.share = 0

    def environment(self, build: Callable[[], VectorEnv], seed: int) -> VectorEnv:
        """This player's environment, or what stands for it on a trainer; every rank calls it.

        Raises:
            ValueError: A player could not build its own (there the error is what it was), or the trainers cannot share
                the players' sub-environments.
        """
        envs: VectorEnv | None = None
        told: Elsewhere | str | None = None
        problem: Exception | None = None
        if self.plays:
            try:
                envs = build()
                told = Elsewhere(envs, *envs.reset(seed=seed))
            except Exception as error:  # told to all, or they would wait
                problem, told = error, f"{error}" or type(error).__name__
        everyone: list[Any] = [None] * self.fabric.world_size
        dist.all_gather_object(everyone, told)
        if problem is not None:
            raise problem
        wrong = [text for text in everyone if isinstance(text, str)]
        stands = [each for each in everyone if isinstance(each, Elsewhere)]
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
        return stands[0].of_size(self.share) if envs is None else envs

    def collector(
        self, envs: VectorEnv, module: ActorCritic, rollout: Rollout, episodes: EpisodeStats
    ) -> "Player | Trainer":
        """Where this rank's rollouts come from."""
        kind = Player if self.plays else Trainer
        return kind(self, envs, module, rollout, episodes)

    def send(self, rollout: Rollout, rewards: Tensor, seconds: float) -> None:
        """Gives each trainer its columns of this player's rollout, and what collecting it took."""
        first, works = self.team.global_rank * self.own, []
        for trainer in range(self.trainers):
            columns = self._common(first, trainer)
            if columns.stop > columns.start:
                own = slice(columns.start - first, columns.stop - first)
                parcel = _pack([*_tensors(rollout, rewards, own), torch.tensor([seconds], dtype=torch.float64)])
                works.append((dist.isend(parcel, trainer), parcel))  # which has to live until it is sent
        for work, _ in works:
            cast(Any, work).wait()

    def receive(self, rollout: Rollout) -> float:
        """Fills a trainer's rollout; its rewards are those that the players have scaled.

        Returns:
            Seconds that the slowest player took.
        """
        first, works, slowest = self.team.global_rank * self.share, [], 0.0
        for player in range(self.players):
            columns = self._common(player * self.own, self.team.global_rank)
            if columns.stop > columns.start:
                own = slice(columns.start - first, columns.stop - first)
                seconds = torch.zeros(1, dtype=torch.float64)
                tensors = [*_tensors(rollout, rollout.reward, own), seconds]
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

    def complete(self, local: Sums) -> Sums:
        """`local` with nothing under the names that only other ranks have; every rank calls it."""
        everyone: list[Any] = [None] * self.fabric.world_size
        dist.all_gather_object(everyone, list(local))
        return {name: local.get(name, (0.0, 0.0)) for names in everyone for name in names}

    def _common(self, first: int, trainer: int) -> slice:
        """The trainer's columns among those of the player whose first one is `first`, counted over all players."""
        return slice(max(first, trainer * self.share), min(first + self.own, (trainer + 1) * self.share))


class Player(Collector):
    """Collects the next rollout while others learn from the last one."""

    learns = False

    def __init__(self, decoupled: Decoupled, *parts: Any) -> None:  # noqa: ANN401 - of Decoupled.collector
        """Takes what `Collector` does, after the rank's part."""
        super().__init__(decoupled.fabric, *parts)
        self.decoupled, self.ahead = decoupled, True

    def share(self, rewards: Tensor, timers: Timers) -> Tensor:
        """Sends the rollout to the trainers."""
        self.decoupled.send(self.rollout, rewards, self.seconds)
        return rewards

    @contextmanager
    def meanwhile(self, enabled: bool, timers: Timers) -> Iterator[None]:
        """Collects, after the block in which nothing is learned; then takes the new weights."""
        yield
        if enabled:
            self.collect(timers)
            self.ready = True
        self.decoupled.share_weights(self.module)


class Trainer(Collector):
    """Gets its rollouts from the players."""

    plays = False

    def __init__(self, decoupled: Decoupled, *parts: Any) -> None:  # noqa: ANN401 - of Decoupled.collector
        """Takes what `Collector` does, after the rank's part."""
        super().__init__(decoupled.fabric, *parts)
        self.decoupled = decoupled

    def collect(self, timers: Timers) -> None:
        """Nothing: the players do."""

    def share(self, rewards: Tensor, timers: Timers) -> Tensor:
        """Receives the rollout and its rewards."""
        with timers("wait_for_the_players"):
            self.seconds = self.decoupled.receive(self.rollout)
        return self.rollout.reward

    @contextmanager
    def meanwhile(self, enabled: bool, timers: Timers) -> Iterator[None]:
        """Gives the players what the block has learned."""
        yield
        with timers("weights"):
            self.decoupled.share_weights(self.module)


class Elsewhere(VectorEnv):
    """Stands on a trainer for the players' environments: their spaces, and one first observation for the trial."""

    def __init__(self, envs: VectorEnv, obs: NDArray[Any], infos: dict[str, Any]) -> None:
        """Describes a player's environment, to be sent to the trainers."""
        self.num_envs, self.metadata = envs.num_envs, {"autoreset_mode": envs.metadata.get("autoreset_mode")}
        self.single_observation_space = envs.single_observation_space
        self.single_action_space = envs.single_action_space
        self.reward_signals = reward_signals(envs)
        self.layout = dict(getattr(envs, "layout", {}))
        self.kind, self.has_parameters = type(envs).__name__, isinstance(envs, HasParameters)
        mask = infos.get("action_mask")
        self._obs, self._mask = np.array(obs[:1]), None if mask is None else np.array(mask[:1])

    def of_size(self, num_envs: int) -> "Elsewhere":
        """The same with so many sub-environments, and the name of the environment that it stands for."""
        self.__class__ = type(self.kind, (type(self),), {})  # which is what error messages show
        self.num_envs = num_envs
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        return self

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:  # noqa: ANN401
        """The same observation for all."""
        infos = {} if self._mask is None else {"action_mask": self._mask.repeat(self.num_envs, axis=0)}
        return self._obs.repeat(self.num_envs, axis=0), infos

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Nothing happens."""
        obs, infos = self.reset()
        over = np.zeros(self.num_envs, np.bool_)
        return obs, np.zeros(self.num_envs, np.float32), over, over, infos

    def check_parameters(self, values: dict[str, ParameterValue]) -> None:
        """The players check them, if there are any at all."""
        if not self.has_parameters:
            raise ValueError(f"{self.kind} has no parameters that could be set to {', '.join(values)}")

    def set_parameters(self, values: dict[str, ParameterValue]) -> None:
        """The players set them."""


def _tensors(rollout: Rollout, rewards: Tensor, columns: slice) -> list[Tensor]:
    everything = (*(getattr(rollout, name) for name in _COLUMNS), rewards)
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
