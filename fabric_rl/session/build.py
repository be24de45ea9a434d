"""build(): a session from its parts, each of them tried once."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fabric_rl.args import TrainArgs
from fabric_rl.callback import Callback, TrainState
from fabric_rl.dry_run import calling, check_agent, try_parts
from fabric_rl.hooks import Hooks
from fabric_rl.learning.gae import Estimator
from fabric_rl.learning.learner import Learner, Onlooker
from fabric_rl.learning.normalize import ReturnScaler
from fabric_rl.learning.update import memory_named, take
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.bfloat16 import avoid_illegal_instructions
from fabric_rl.ranks.collectives import check_same_on_all_ranks, raised_on_all_ranks
from fabric_rl.ranks.sharding import explaining, is_sharded
from fabric_rl.ranks.threads import one_thread
from fabric_rl.rollouts.collectors import Collector, CollectorAhead
from fabric_rl.rollouts.players import Exchange, Player, Trainer
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.session.session import Session
from fabric_rl.signals.base import SignalFactory
from fabric_rl.signals.signals import Signals, build_signals
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, HasSeeds, Minibatch, OffPolicyAgent, Transitions


class Scheme:
    """What is not the same in every session; this one learns from its newest rollouts.

    Attributes:
        flags: What says how long a rollout is, and how large a minibatch.
    """

    flags = ("--num_steps", "--minibatch_size")

    def minibatch_size(self, args: TrainArgs, rollout_steps: int, agent: ActorCritic) -> int:
        """Steps that go through the networks at once, of a rollout of so many on this rank.

        Raises:
            TypeError: The agent cannot learn so.
        """
        if isinstance(agent, OffPolicyAgent):
            name = type(agent).__name__
            raise TypeError(f"--agent {name} learns from replayed steps: fabric_rl.train_off_policy trains it")
        return args.minibatch_for(rollout_steps, agent.sequence_length)

    def make_batch(self, size: int, flat: Minibatch, agent: ActorCritic) -> Minibatch | Transitions:
        """Return `size` steps to learn from, made of a flat rollout of fewer steps."""
        length, count = (1, len(flat.returns)) if flat.episode_start is None else flat.episode_start.shape
        return take(flat, torch.arange(size // length, device=flat.returns.device) % count)

    def learner(
        self,
        state: TrainState,
        peers: Fabric,
        timers: Timers,
        rollout: Rollout,
        rollout_steps: int,
        gamma: Tensor,
        signals: Signals,
    ) -> Onlooker:
        """What learns from such rollouts, with the discounts of their rewards, and what pays the last of those."""
        return Learner(state, peers, timers, state.args.rollouts_kept(rollout_steps))


def build(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    callbacks: Sequence[Callback],
    estimator: Estimator,
    inference: bool,
    scheme: Scheme,
    signals: Sequence[SignalFactory] = (),
) -> Session:
    """Builds and tries every part; every rank calls it. Other arguments and errors are those of `fabric_rl.train`."""
    if fabric.device.type == "cpu" and fabric.strategy.precision.precision == "bf16-mixed":
        avoid_illegal_instructions()
    fabric.seed_everything(args.seed, verbose=False)  # equal weights everywhere
    if fabric.world_size > 1:  # pools share the cores between the ranks of a machine
        nodes = int(getattr(fabric.strategy, "num_nodes", 1))
        os.environ.setdefault("LOCAL_WORLD_SIZE", str(max(1, fabric.world_size // nodes)))
    exchange = Exchange(fabric, args.num_players) if args.num_players else None
    peers = fabric if exchange is None else exchange.peers
    plays, learns = exchange is None or exchange.plays, exchange is None or not exchange.plays

    make_env = partial(_built, env, args.seed)
    envs = make_env() if exchange is None else exchange.environment(make_env, args.seed)
    with one_thread():  # whose number would decide how the first weights are rounded
        module: Any = agent(envs.single_observation_space, envs.single_action_space)
        paying = build_signals(signals, envs)
    check_agent(module)
    long, large = scheme.flags
    what = f"a rollout of {long} {args.num_steps} in {envs.num_envs} sub-environments"
    with memory_named(fabric.device, what, "take fewer of either"):
        rollout = Rollout(args.num_steps, envs, fabric.device, module, [signal.name for signal in paying])
    rollout_steps = args.num_steps * (envs.num_envs if exchange is None else exchange.share)
    minibatch_size = scheme.minibatch_size(args, rollout_steps, module)
    own_gamma = _discounts(args, rollout).to(fabric.device)
    gamma = own_gamma
    if paying:
        own = own_gamma.expand(max(1, len(rollout.reward_signals)))
        gamma = torch.cat((own, own.new_tensor([signal.gamma for signal in paying])))
        rollout.episodic = torch.tensor([True] * len(own) + [s.episodic for s in paying], device=fabric.device)
    optimizer: Any = module.configure_optimizers()
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"--agent {type(module).__name__}.configure_optimizers() must return one torch optimizer")
    first_seed = args.seed + peers.global_rank * (envs.num_seeds if isinstance(envs, HasSeeds) else envs.num_envs)
    check_same_on_all_ranks(fabric, {"steps of a rollout": rollout_steps, "steps of a minibatch": minibatch_size})
    with memory_named(fabric.device, f"a minibatch of {large} {minibatch_size}", "take a smaller one"):
        names = [signal.name for signal in paying]
        trial = try_parts(fabric, envs, module, first_seed, names, partial(scheme.make_batch, minibatch_size))
    args = replace(args, batch_size=args.batch_size or minibatch_size)  # stays where a callback changes minibatches

    timers = Timers(enabled=fabric.is_global_zero)
    signal_count = max(1, len(rollout.reward_signals))
    scaler = ReturnScaler(envs.num_envs, signals=signal_count) if args.standardize_returns and plays else None
    parts = (fabric, peers, envs, module, rollout, scaler, own_gamma, timers)
    if exchange is not None:
        collector: Collector = (Player if plays else Trainer)(exchange, *parts)
    elif args.overlap and not inference:
        collector = CollectorAhead(*parts)  # copies the module before Fabric changes it
    else:
        collector = Collector(*parts)
    if args.compile:
        for name in ("act", "value", "training_step"):
            setattr(module, name, torch.compile(getattr(module, name)))
        collector.compile()
    model, optimizer = fabric.setup(module, optimizer)
    _settle(fabric, module, model, optimizer, trial if learns else None)
    if exchange is not None:
        exchange.share_weights(module)  # they began with the same, unless an environment has drawn numbers
    try_saving(fabric, collector)
    torch.manual_seed(args.seed + peers.global_rank)  # every rank explores noise of its own
    collector.begin(first_seed)

    per_iteration = args.num_steps * envs.num_envs * peers.world_size
    state = TrainState(
        fabric,
        module,
        envs,
        args,
        model,
        optimizer,
        steps_per_iteration=per_iteration,
        iterations=math.ceil(args.total_timesteps / per_iteration),
        minibatch_size=minibatch_size,
        learns=learns,
    )
    learns = learns and not inference
    if learns and paying and is_sharded(module):
        raise ValueError("--signals: --strategy fsdp cannot divide their networks; use --strategy ddp")
    paid = Signals(paying, args, fabric, peers, rollout.num_envs, learns)
    learning_from = (peers, timers, rollout, rollout_steps, gamma, paid)
    learner = scheme.learner(state, *learning_from) if learns else Onlooker(state)
    hooks = Hooks(state, callbacks, learns=not inference)
    objects = (hooks, module, estimator, gamma, collector, learner, timers, paid)
    return Session(fabric, args, state, *objects, inference=inference, exchange=exchange)


def _built(env: EnvFactory, seed: int) -> VectorEnv:
    try:
        envs = env(seed=seed)
    except TypeError as error:
        if "'seed'" not in str(error):
            raise
        raise TypeError(
            f"--env is called with seed=... and must take it ({error}); a Gymnasium id goes with --env_id, a function "
            "of your own begins with: def make(seed):"
        ) from error
    if not isinstance(envs, VectorEnv):
        raise TypeError(f"--env {type(envs).__name__} is not a gymnasium.vector.VectorEnv")
    return envs


def try_saving(fabric: Fabric, collector: Collector) -> None:
    """Saves the environment once, which has to be reset afterwards; a ValueError on all ranks if it fails on one."""
    with raised_on_all_ranks(fabric), calling(f"--env {type(collector.envs).__name__}.state_dict()"):
        collector.env_state()


def _settle(
    fabric: Fabric,
    agent: ActorCritic,
    model: Any,  # noqa: ANN401 - Fabric's wrappers
    optimizer: Any,  # noqa: ANN401
    trial: Minibatch | Transitions | None,
) -> None:
    """Makes what Fabric has wrapped the same from the first step on, for a run that began here or went on.

    DDP orders its buckets after the first step: before the run, so that a resumed one adds the ranks' gradients up in
    the same order. FSDP finds its root in that step. Its buffers are the same on all ranks; broadcasting them costs a
    collective per step.
    """
    for part in model.modules():
        if isinstance(part, DistributedDataParallel):
            part.broadcast_buffers = False
    agent.progress = agent.progress.to(fabric.device)
    if trial is not None and (fabric.world_size > 1 or is_sharded(agent)):
        with isolate_rng(), explaining(agent):
            fabric.backward(model.training_step(trial)[0])
        optimizer.zero_grad()


def _discounts(args: TrainArgs, rollout: Rollout) -> Tensor:
    """The discount, 0-dim, or `[K]` for K reward signals; a ValueError for another number of discounts."""
    gammas, signals = args.gammas, max(1, len(rollout.reward_signals))
    if len(gammas) not in (1, signals):
        names = f" ({', '.join(rollout.reward_signals)})" if signals > 1 else ""
        raise ValueError(f"--gamma has {len(gammas)} discounts, the environment {signals} reward signals{names}")
    return torch.tensor(gammas * (signals // len(gammas)) if signals > 1 else gammas[0])
