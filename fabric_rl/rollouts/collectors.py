"""Collectors of rollouts: alternating with learning, or one rollout ahead in a thread (`--overlap`)."""

import copy
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from fabric_rl.base.seeding import SEED_SCHEME, stream_seed
from fabric_rl.base.state_schema import CannotBeSavedError, HasState, load_child_state, state_error_context
from fabric_rl.learning.normalize import ReturnScaler
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import Sums
from fabric_rl.ranks.sharding import unsharded, whole_state
from fabric_rl.rollouts.collect import RECENT_EPISODES, RECENT_RETURN, EpisodeStats, collect
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.types import ActorCritic, HasMetrics, HasTimers, SettingError


class Collector:
    """Collector of rollouts on demand, which owns this rank's environment and the policies that act in it.

    Attributes:
        envs: The environment.
        rollout: Buffers, including the state from which the next rollout starts.
        episodes: Returns and lengths of episodes.
        seconds: Wall-clock seconds spent on the last rollout returned.
        metrics: This rank's metrics of that rollout as (sum, count); the same names on all ranks that collect.
        collects_ahead: True if the next rollout is collected `while_learning`.
    """

    collects_ahead = False

    def __init__(
        self,
        fabric: Fabric,
        peers: Fabric,
        envs: VectorEnv,
        agent: ActorCritic,
        rollout: Rollout,
        scaler: ReturnScaler | None,
        gamma: Tensor,
        timers: Timers,
    ) -> None:
        """Store the parts; call `begin` next.

        `peers` is the Fabric of the ranks that collect, `agent` the bare module, and `gamma` the discount factor of the
        environment's rewards for `scaler`. Without a scaler, rewards stay unscaled.
        """
        self.fabric, self.peers, self.envs, self.agent, self.rollout = fabric, peers, envs, agent, rollout
        self.episodes = EpisodeStats(envs.num_envs)
        self.seconds, self.metrics = 0.0, Sums()
        self._scaler, self._gamma, self._timers = scaler, gamma, timers
        self._ready = False  # whether the next rollout is already collected
        self._ends_episodes = False  # whether all episodes end with the rollout that is already collected
        self._learns_next = False
        self._took = 0.0

    def begin(self, seed: int, first: int) -> None:
        """Begin the first episodes of a run with `--seed` `seed`; `first` numbers this rank's first environment."""
        self._seed, self._first, self.seed_scheme = seed, first, SEED_SCHEME
        self._begin_rollouts(*self.envs.reset(seed=stream_seed(seed, "environments") + first))

    def _begin_rollouts(self, obs: NDArray[Any], infos: dict[str, Any], keep: bool = False) -> None:
        self.rollout.begin(obs, infos, keep)

    def compile(self) -> None:
        """Compile the collector's own policy; a no-op here, because the agent itself acts."""

    def next_rollout(self) -> Rollout:
        """Return the next `T` steps, with scaled rewards if there is a scaler; the next call overwrites them."""
        self._expect_learning()
        if not self._ready:
            self._collect()
        self._ready, self.seconds = False, self._took
        self.metrics = self._drain()
        return self.scale_rewards()

    def scale_rewards(self) -> Rollout:
        """Return the collected rollout, with scaled rewards if there is a scaler; call it once per rollout."""
        if self._scaler is not None:
            reward, done = self.rollout.env_reward, self.rollout.done
            reward.copy_(self._scaler.scale(reward, done, self._gamma, self.peers))
            if self._ends_episodes:
                self._forget_open_returns()
        return self.rollout

    def while_learning(self, another: bool) -> AbstractContextManager[None]:
        """Return a context for learning from the last rollout; `another` is True if the run continues after it."""
        return nullcontext()

    def _expect_learning(self) -> None:
        """Raise a SettingError if a collector that collects ahead was not used `while_learning` since the last call."""
        if self._learns_next:
            raise SettingError(
                "--overlap and --num_players need a training loop that learns inside `with "
                "collector.while_learning(another=state.goes_on):` (docs/research.md); add it, or leave them out"
            )
        self._learns_next = self.collects_ahead

    def _expect_rollout(self) -> None:
        """Raise a ValueError if `while_learning` is entered although the next rollout is collected already."""
        if self._ready:
            raise ValueError("collector.while_learning: enter it once per rollout, and not around next_rollout()")

    def recent_returns(self) -> Sums:
        """Return this rank's part of the returns of the last episodes as (sum, count)."""
        returns = list(self.episodes.recent)[-max(1, RECENT_EPISODES // self.peers.world_size) :]
        return {RECENT_RETURN: (sum(returns), float(len(returns)))}

    def _collect(self) -> None:
        began = time.perf_counter()
        with torch.no_grad(), self.fabric.autocast(), unsharded(self.agent):
            self._collect_steps()
        self._took = time.perf_counter() - began

    def _collect_steps(self) -> None:
        collect(self.envs, self.agent, self.rollout, self.episodes, self._timers)

    def _drain(self) -> Sums:
        local = self.drain_rollout()
        if isinstance(self.envs, HasMetrics):
            local |= self.envs.drain_metrics()
        if isinstance(self.envs, HasTimers):
            with self._timers("environment"):
                for name, (seconds, count) in self.envs.drain_timers().items():
                    self._timers.add(name, seconds, count, getattr(self.envs, "timers_are_parallel", False))
        return local | self.recent_returns()

    def drain_rollout(self, steps: slice = slice(None)) -> Sums:
        """Return the metrics of these steps of the rollout, and of the episodes that ended since the last call."""
        rewards, count = self.rollout.env_reward[steps], float(self.rollout.done[steps].numel())
        local = self.episodes.drain_metrics() | {"reward/step": (float(rewards.sum()), count)}
        for number, name in enumerate(self.rollout.reward_signals):
            local[f"reward/{name}"] = (float(rewards[..., number].sum()), count)
        return local

    def state_dict(self, iteration: int, new_episodes: bool = False) -> dict[str, Any]:
        """Return this rank's state, from which this and a restored collector continue identically.

        With `new_episodes`, this also holds for an environment that cannot be saved: both collectors begin new
        episodes, with a seed that depends on the number of finished iterations.
        """
        env = self.env_state()
        if env is None and new_episodes:
            self._begin_new_episodes(iteration)
        return {
            "env": env,
            "ahead": self._ready,
            "rollout": self.rollout.state_dict(whole=self._ready),
            "episodes": self.episodes.state_dict(),
            "scaler": None if self._scaler is None else self._scaler.state_dict(),
        }

    def has_same_size(self, state: dict[str, Any]) -> bool:
        """Return True if a saved state has the same number of sub-environments."""
        return len(state["episodes"]["return"]) == self.envs.num_envs

    def load_state_dict(self, state: dict[str, Any], iteration: int, seconds: float) -> list[str]:
        """Restore the state that `state_dict` returned; raise a ValueError if it belongs to a different environment.

        Args:
            state: The state.
            iteration: Number of finished iterations.
            seconds: Average duration of a rollout, assumed for one that was saved with its steps.

        Returns:
            Reasons why the run is not bit-identical to an uninterrupted one.
        """
        differs = []
        load_child_state(self.episodes, state["episodes"], "the saved state of the episodes")
        if self._scaler is not None:
            if state["scaler"] is None:
                differs.append("the standard deviation of the returns has no saved state")
            else:
                load_child_state(self._scaler, state["scaler"], "the saved standard deviation of the returns")
        self._ready, self._took = state["ahead"], seconds
        if state["env"] is not None or self._ready:
            self._load_rollout(state["rollout"])
        if state["env"] is None:
            differs += ["the environment has no saved state"] if self.env_state() is not None else []
            self._begin_new_episodes(iteration)
        else:
            with state_error_context(f"the saved state of --env {type(self.envs).__name__}"):
                cast(HasState, self.envs).load_state_dict(state["env"])
        return differs

    def _load_rollout(self, state: dict[str, Any]) -> None:
        with state_error_context("the saved state of the rollout"):
            self.rollout.load_state_dict(state)

    def load_statistics(self, state: dict[str, Any]) -> None:
        """Restore only the reward statistics, from a state with a different number of sub-environments."""
        if self._scaler is not None and state["scaler"] is not None:
            self._scaler.load_statistics(state["scaler"])

    def rollout_tensors(self) -> dict[str, Tensor]:
        """Return all tensors of the rollout by name."""
        return {name: value for name, value in vars(self.rollout).items() if isinstance(value, Tensor)}

    def env_state(self) -> dict[str, Any] | None:
        """Return the environment's state, or None if it cannot be saved."""
        try:
            return self.envs.state_dict() if isinstance(self.envs, HasState) else None
        except CannotBeSavedError:
            return None

    def _begin_new_episodes(self, iteration: int) -> None:
        seed = stream_seed(self._seed, "new episodes", iteration, self.seed_scheme) + self._first
        self._begin_rollouts(*self.envs.reset(seed=seed), keep=self._ready)
        if self._ready:  # that rollout, which is not scaled yet, ends the episodes
            self.episodes.begin()
            self._ends_episodes = True
        else:
            self.begin_episodes()

    def begin_episodes(self) -> None:
        """Discard the unfinished episodes, because all sub-environments begin new ones."""
        self.episodes.begin()
        self._forget_open_returns()

    def _forget_open_returns(self) -> None:
        self._ends_episodes = False
        if self._scaler is not None:
            self._scaler.load_statistics(self._scaler.state_dict())


class OverlappedCollector(Collector):
    """Collector that collects the next rollout in a thread while the agent learns from the last one.

    A copy of the agent from before the update acts, so the data is one update old; PPO's ratio to the stored
    log-probabilities accounts for that. Meanwhile only the thread uses torch's global generator, and it uses no
    collectives, so the same seed still gives the same weights.
    """

    collects_ahead = True

    def __init__(self, fabric: Fabric, peers: Fabric, envs: VectorEnv, agent: ActorCritic, *parts: Any) -> None:  # noqa: ANN401
        """Copy `agent`, before Fabric changes it; the other arguments are those of `Collector`.

        Raises:
            ValueError: The agent's training step also draws random numbers, so runs would not be reproducible.
        """
        super().__init__(fabric, peers, envs, agent, *parts)
        random = [part for part in agent.modules() if isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0]
        if random:
            raise ValueError(
                f"--overlap: --agent {type(agent).__name__} uses {type(random[0]).__name__}, which draws random "
                "numbers at the same time as the policy that acts; leave one of them out"
            )
        # Parameters keep requires_grad despite no_grad, because autocast would cast others again at every use.
        self._actor = copy.deepcopy(agent).to(fabric.device)
        self._actor.progress = self._actor.progress.to(fabric.device)
        self._error: BaseException | None = None
        on_gpu = fabric.device.type == "cuda"
        self._stream = torch.cuda.Stream(fabric.device) if on_gpu else None  # type: ignore[no-untyped-call]

    def compile(self) -> None:
        for name in ("act", "value"):
            setattr(self._actor, name, torch.compile(getattr(self._actor, name)))

    def next_rollout(self) -> Rollout:
        """Return a copy of the next rollout, because the buffers are filled again while the agent learns."""
        return super().next_rollout().copy()

    @contextmanager
    def while_learning(self, another: bool) -> Iterator[None]:
        """Collect the next rollout while the block runs; the block must not touch the environment."""
        self._expect_rollout()
        self._learns_next = False
        if not another:
            yield
            return
        self._actor.load_state_dict(whole_state(self.agent.state_dict(), keep=True))
        self._actor.progress.copy_(self.agent.progress)
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self.fabric.device))
        thread = threading.Thread(target=self._run, name="collects-ahead", daemon=True)
        thread.start()
        try:
            yield
        except Exception:
            thread.join()
            raise
        with self._timers("wait_for_the_next_rollout"):
            while thread.is_alive():
                thread.join(0.1)  # lets signals through, also on Windows
        error, self._error = self._error, None
        if error is not None:
            raise error
        self._ready = True

    def _run(self) -> None:
        began = time.perf_counter()
        try:
            stream: Any = nullcontext() if self._stream is None else torch.cuda.stream(self._stream)
            with stream, torch.no_grad(), self.fabric.autocast():
                collect(self.envs, self._actor, self.rollout, self.episodes)
            if self._stream is not None:
                self._stream.synchronize()
        except BaseException as error:  # raised again by `while_learning`
            self._error = error
        self._took = time.perf_counter() - began
