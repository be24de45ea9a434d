"""The live objects of a run: built once, saved as one state, restored exactly."""

import math
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, cast

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fabric_rl.args import TrainArgs
from fabric_rl.callbacks import Callback, TrainState
from fabric_rl.learning.normalize import ObsNormalizer, ReturnScaler
from fabric_rl.metrics.sums import Trace
from fabric_rl.ranks.bfloat16 import avoid_illegal_instructions
from fabric_rl.ranks.sharding import class_of, explaining, is_sharded, load_optimizer, load_weights, whole_state
from fabric_rl.rollouts.collect import EpisodeStats
from fabric_rl.rollouts.collectors import Collector
from fabric_rl.rollouts.players import Decoupled
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.runs.checkpoint import CheckpointError, pack_ranks
from fabric_rl.schedules import KLAdaptive
from fabric_rl.trial import check_agent, same_on_all_ranks, try_parts
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, HasSeeds, HasState, Minibatch

RECENT_EPISODES = {100: "mean_return", 20: "mean_return_last_20"}
"""The last episodes over all ranks whose mean return the summary gives under that name."""

_EPISODE_SEEDS_APART = 1_000_003
"""Between the seeds of the episodes that begin at checkpoints, for environments that cannot be restored."""


@dataclass
class Live:
    """Everything that `train` works with on this rank, and all that the future of the run depends on.

    After `save` this run goes on exactly as one that `restore`s what it returned: environments that can be restored
    restore themselves (RocketSim's contact caches are in no snapshot), others begin new episodes with the same seed on
    both sides.
    """

    fabric: Fabric
    args: TrainArgs
    state: TrainState
    module: ActorCritic
    model: Any
    """What Fabric made of the module."""
    optimizer: Any
    base_lrs: list[float]
    envs: VectorEnv
    first_seed: int
    rollout: Rollout
    gamma: Tensor
    episodes: EpisodeStats
    collector: Collector
    shuffle: torch.Generator
    normalizers: list[ObsNormalizer]
    scaler: ReturnScaler | None
    kl_adaptive: KLAdaptive | None
    experience: deque[Minibatch]
    callbacks: Sequence[Callback]
    trace: Trace
    team: Fabric
    """The ranks that do the same as this one: all, or all players, or all trainers."""
    decoupled: Decoupled | None = None
    iterations_missed: int = 0
    """How many more were done than `state.iteration` says, which counts in iterations of the present size."""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("wall", "collect", "learn"), 0.0))

    @classmethod
    def build(
        cls, fabric: Fabric, env: EnvFactory, agent: AgentFactory, args: TrainArgs, callbacks: Sequence[Callback]
    ) -> "Live":
        """Builds and tries every part; arguments and errors are those of `train`."""
        if fabric.device.type == "cpu" and fabric.strategy.precision.precision == "bf16-mixed":
            avoid_illegal_instructions()
        fabric.seed_everything(args.seed, verbose=False)  # equal weights everywhere
        if fabric.world_size > 1:  # pools share the cores between the ranks of a machine
            nodes = int(getattr(fabric.strategy, "num_nodes", 1))
            os.environ.setdefault("LOCAL_WORLD_SIZE", str(max(1, fabric.world_size // nodes)))
        decoupled = Decoupled(fabric, args.num_players) if args.num_players else None
        team = fabric if decoupled is None else decoupled.team

        def build() -> VectorEnv:
            envs = env(seed=args.seed)
            if not isinstance(envs, VectorEnv):
                raise TypeError(f"--env {type(envs).__name__} is not a gymnasium.vector.VectorEnv")
            return envs

        envs = build() if decoupled is None else decoupled.environment(build, args.seed)
        module = agent(envs.single_observation_space, envs.single_action_space)
        check_agent(module)
        module = cast(ActorCritic, module)
        rollout = Rollout(args.num_steps, envs, fabric.device, module)
        rollout_steps = args.num_steps * (envs.num_envs if decoupled is None else decoupled.share)
        minibatch_size = args.minibatch_for(rollout_steps, module.sequence_length if module.memory_size else 1)
        gamma = _discounts(args, rollout).to(fabric.device)
        optimizer: Any = module.configure_optimizers()
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"--agent {type(module).__name__}.configure_optimizers() must return one torch optimizer")
        first_seed = args.seed + team.global_rank * (envs.num_seeds if isinstance(envs, HasSeeds) else envs.num_envs)
        same_on_all_ranks(fabric, {"steps of a rollout": rollout_steps, "steps of a minibatch": minibatch_size})
        trial = try_parts(fabric, envs, module, first_seed, minibatch_size)
        args = replace(args, batch_size=args.batch_size or minibatch_size)  # stays where a callback changes minibatches
        base_lrs = [group["lr"] for group in optimizer.param_groups]
        episodes = EpisodeStats(envs.num_envs, window=max(RECENT_EPISODES))
        parts = (envs, module, rollout, episodes)
        collector = Collector(fabric, *parts, args.overlap) if decoupled is None else decoupled.collector(*parts)
        if args.compile:
            for name in ("act", "value", "training_step"):
                setattr(module, name, torch.compile(getattr(module, name)))
            if args.overlap:
                collector.compile()
        model, optimizer = fabric.setup(module, optimizer)
        for part in model.modules():
            if isinstance(part, DistributedDataParallel):
                part.broadcast_buffers = False  # the same on all ranks; broadcasting costs a collective per step
        module.progress = module.progress.to(fabric.device)
        # DDP orders its buckets after the first step: before the run, so that a resumed one adds the ranks' gradients
        # up in the same order. FSDP finds its root in that step.
        if collector.learns and (fabric.world_size > 1 or is_sharded(module)):
            with isolate_rng(), explaining(module):
                fabric.backward(model.training_step(trial)[0])
            optimizer.zero_grad()
        if decoupled is not None:
            decoupled.share_weights(module)  # they began with the same, unless an environment has drawn numbers
        torch.manual_seed(args.seed + team.global_rank)  # every rank explores noise of its own
        rollout.begin(*envs.reset(seed=first_seed))
        return cls(
            fabric=fabric,
            args=args,
            state=TrainState(fabric, module, envs, args, minibatch_size=minibatch_size, learns=collector.learns),
            module=module,
            model=model,
            optimizer=optimizer,
            base_lrs=base_lrs,
            envs=envs,
            first_seed=first_seed,
            rollout=rollout,
            gamma=gamma,
            episodes=episodes,
            collector=collector,
            shuffle=torch.Generator().manual_seed(args.seed + team.global_rank),
            normalizers=[part for part in module.modules() if isinstance(part, ObsNormalizer)],
            scaler=ReturnScaler(envs.num_envs) if args.standardize_returns and collector.plays else None,
            kl_adaptive=KLAdaptive(args.desired_kl, base_lrs) if args.lr_schedule == "kl_adaptive" else None,
            experience=deque(maxlen=args.rollouts_kept(rollout_steps)),
            callbacks=callbacks,
            trace=Trace(args.num_steps * envs.num_envs * team.world_size),
            team=team,
            decoupled=decoupled,
        )

    @property
    def steps_per_iteration(self) -> int:
        """Agent-steps of all ranks."""
        return self.args.num_steps * self.envs.num_envs * self.team.world_size

    @property
    def iterations(self) -> int:
        """Of the whole run."""
        return math.ceil(self.args.total_timesteps / self.steps_per_iteration)

    @property
    def iterations_done(self) -> int:
        """Those of other sizes, with other numbers of ranks or sub-environments, included."""
        return self.state.iteration + self.iterations_missed

    @property
    def progress(self) -> float:
        """The part of the run's steps that is done, 0 to 1."""
        left = max(0, self.iterations - self.state.iteration) * self.steps_per_iteration
        return self.state.steps / max(1, self.state.steps + left)

    # ------------------------------------------------------------------ saving and restoring

    def save(self, ending: bool = False) -> dict[str, Any] | None:
        """Gathers the state of all ranks; every rank calls it.

        Args:
            ending: This run does not go on, so that environments which cannot be saved need no new episodes.

        Returns:
            The state on rank 0, None on the others.
        """
        parts = (self.module, self.optimizer)
        agent, optimizer = (whole_state(part.state_dict(), self.fabric.is_global_zero) for part in parts)
        ranks = pack_ranks(self.fabric, self._of_this_rank(ending))
        if ranks is None:
            return None
        return {
            "fingerprint": fingerprint(self.envs, self.module),
            "world_size": self.fabric.world_size,
            "num_players": self.args.num_players,
            "iteration": self.iterations_done,
            "steps": self.state.steps,
            "agent": agent,
            "optimizer": optimizer,
            "precision": self.fabric.strategy.precision.state_dict(),
            "kl_adaptive": None if self.kl_adaptive is None else self.kl_adaptive.state_dict(),
            "callbacks": [callback.state_dict() for callback in self.callbacks],
            "callback_names": [type(callback).__qualname__ for callback in self.callbacks],
            "trace": self.trace.state_dict(),
            "seconds": dict(self.seconds),
            "metrics": dict(self.state.metrics),
            "ranks": ranks,
        }

    def restore(self, saved: dict[str, Any]) -> bool:
        """Goes on from `saved`, which every rank has read; every rank calls it.

        Settings of the optimizer (learning rates, betas...) stay those of this run, so that changed flags take effect.

        Returns:
            Whether the run goes on exactly. With another number of ranks or sub-environments, weights, optimizer and
            counters are restored, but environments and random generators begin anew.

        Raises:
            CheckpointError: The checkpoint is of another environment or agent.
        """
        problems = differences(saved["fingerprint"], fingerprint(self.envs, self.module))
        if problems := [row for row in problems if row[0] != "networks"]:  # of these, load_weights says more
            lines = [f"{name} {theirs} there, {mine} here" for name, theirs, mine in problems]
            raise CheckpointError(f"the checkpoint does not fit --env and --agent: {'; '.join(lines)}")
        self.load_weights(saved)
        settings = [{k: v for k, v in group.items() if k != "params"} for group in self.optimizer.param_groups]
        try:
            load_optimizer(self.optimizer, saved["optimizer"])
        except ValueError as error:
            raise CheckpointError(f"the checkpoint's optimizer does not fit --agent: {error}") from error
        for group, own in zip(self.optimizer.param_groups, settings, strict=True):
            group.update(own)
        if saved["precision"]:  # empty without a gradient scaler, which does not take that
            self.fabric.strategy.precision.load_state_dict(saved["precision"])
        if self.kl_adaptive is not None and saved["kl_adaptive"] is not None:
            self.kl_adaptive.load_state_dict(saved["kl_adaptive"])
        kept = list(zip(saved["callback_names"], saved["callbacks"], strict=True))
        for callback in self.callbacks:  # by name: there may be others now, or in another order
            same = next((pair for pair in kept if pair[0] == type(callback).__qualname__), None)
            if same is not None:
                callback.load_state_dict(same[1])
                kept.remove(same)
        self.state.iteration, self.state.steps = self._iterations_of(saved["steps"]), saved["steps"]
        self.iterations_missed = saved["iteration"] - self.state.iteration
        self.state.metrics = dict(saved["metrics"])
        self.trace.load_state_dict(saved["trace"])
        self.seconds.update(saved["seconds"])
        mine = saved["ranks"][min(self.fabric.global_rank, len(saved["ranks"]) - 1)]
        same_size = len(mine["episodes"]["return"]) == self.envs.num_envs
        theirs = (saved["world_size"], saved.get("num_players", 0))  # older ones have none
        exact = theirs == (self.fabric.world_size, self.args.num_players) and same_size
        if exact:
            self._restore_this_rank(mine)
        elif self.scaler is not None and saved["ranks"][-1]["scaler"] is not None:  # trainers have none
            self.scaler.load_statistics(saved["ranks"][-1]["scaler"])
        return exact

    def load_weights(self, saved: dict[str, Any]) -> None:
        """Takes the agent's weights and statistics only.

        Raises:
            CheckpointError: They are of another architecture; the message sets both sides beside each other.
        """
        theirs, own = saved["agent"], self.module.state_dict()
        lines = [
            f"{name}: {_shape(theirs, name)} in the checkpoint, {_shape(own, name)} in --agent"
            for name in dict.fromkeys((*own, *theirs))
            if _shape(theirs, name) != _shape(own, name)
        ]
        if lines:
            more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
            raise CheckpointError(
                f"the checkpoint is of another agent than {class_of(self.module).__name__} with these settings: "
                f"{'; '.join(lines[:3])}{more}"
            )
        load_weights(self.module, theirs)

    def _iterations_of(self, steps: int) -> int:
        """How many iterations of the present size make up so many steps: where in the run, and its schedules, it is."""
        return min(self.iterations, round(steps / self.steps_per_iteration))

    def _of_this_rank(self, ending: bool) -> dict[str, Any]:
        env = self._env_state()
        if env is None and not ending:
            self._begin_new_episodes()
        return {
            "env": env,
            "ahead": self.collector.ready,
            "rollout": self.rollout.state_dict(whole=self.collector.ready),
            "episodes": self.episodes.state_dict(),
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
            "experience": [batch._asdict() for batch in self.experience] if self.experience.maxlen != 1 else [],
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state(self.fabric.device) if self.fabric.device.type == "cuda" else None,
            "shuffle": self.shuffle.get_state(),
        }

    def _restore_this_rank(self, saved: dict[str, Any]) -> None:
        self.episodes.load_state_dict(saved["episodes"])
        if self.scaler is not None and saved["scaler"] is not None:
            self.scaler.load_state_dict(saved["scaler"])
        self.collector.ready = saved["ahead"]
        if saved["ahead"]:  # what it took is not saved, since it is never the same twice
            self.collector.seconds = self.seconds["collect"] / max(1, self.state.iteration)
        if saved["env"] is not None or saved["ahead"]:
            self.rollout.load_state_dict(saved["rollout"])
        if saved["env"] is None:
            self._begin_new_episodes()
        else:
            cast(HasState, self.envs).load_state_dict(saved["env"])
        self.experience.clear()
        for fields in saved["experience"]:
            self.experience.append(Minibatch(**fields).map(lambda x: x.to(self.fabric.device)))
        torch.set_rng_state(saved["torch"])
        if saved["cuda"] is not None and self.fabric.device.type == "cuda":
            torch.cuda.set_rng_state(saved["cuda"], self.fabric.device)
        self.shuffle.set_state(saved["shuffle"])

    def _env_state(self) -> dict[str, Any] | None:
        """The environment's state; None if it has none, or a part of it cannot be saved."""
        try:
            return self.envs.state_dict() if isinstance(self.envs, HasState) else None
        except TypeError:
            return None

    def _begin_new_episodes(self) -> None:
        seed = self.first_seed + _EPISODE_SEEDS_APART * self.state.iteration
        self.rollout.begin(*self.envs.reset(seed=seed), keep=self.collector.ready)
        self.episodes.begin()
        if self.scaler is not None:
            self.scaler.load_statistics(self.scaler.state_dict())


def fingerprint(envs: VectorEnv, module: ActorCritic) -> dict[str, str]:
    """What two runs must share for one to go on from the other's checkpoints: name -> text."""
    weights, kind = module.state_dict(), class_of(module)
    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in weights.items())
    return {
        "observations": str(envs.single_observation_space),
        "actions": str(envs.single_action_space),
        "agent": f"{kind.__module__}.{kind.__qualname__}",
        "networks": f"{sum(t.numel() for t in weights.values()):,} numbers, {sha256(shapes.encode()).hexdigest()[:8]}",
    } | {name: str(text) for name, text in getattr(envs, "layout", {}).items()}


def fingerprint_of(env: EnvFactory, agent: AgentFactory, seed: int) -> dict[str, str]:
    """The fingerprint of an environment and an agent that are built for it and thrown away."""
    envs = env(seed=seed)
    try:
        module = agent(envs.single_observation_space, envs.single_action_space)
        return fingerprint(envs, cast(ActorCritic, module))
    finally:
        envs.close()


def differences(theirs: dict[str, str], own: dict[str, str]) -> list[tuple[str, str, str]]:
    """What differs between two fingerprints: (what, in the checkpoint, here)."""
    names = dict.fromkeys((*theirs, *own))
    return [(n, theirs.get(n, "nothing"), own.get(n, "nothing")) for n in names if theirs.get(n) != own.get(n)]


def _shape(weights: dict[str, Tensor], name: str) -> str:
    return str(list(weights[name].shape)) if name in weights else "missing"


def _discounts(args: TrainArgs, rollout: Rollout) -> Tensor:
    """The discount, 0-dim, or `[K]` for K reward signals.

    Raises:
        ValueError: There is another number of discounts than of reward signals.
    """
    gammas, signals = args.gammas, max(1, len(rollout.reward_signals))
    if len(gammas) not in (1, signals):
        names = f" ({', '.join(rollout.reward_signals)})" if signals > 1 else ""
        raise ValueError(f"--gamma has {len(gammas)} discounts, the environment {signals} reward signals{names}")
    return torch.tensor(gammas * (signals // len(gammas)) if signals > 1 else gammas[0])
