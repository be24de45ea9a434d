"""`build` creates the session of any algorithm and tries every part once; `finish` ends it in order."""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fabric_rl.args import TrainArgs
from fabric_rl.base.seeding import stream_seed
from fabric_rl.callback import Callback, TrainState
from fabric_rl.dry_run import check_agent, check_trained_parameters, dry_run_parts, error_context
from fabric_rl.hooks import Hooks
from fabric_rl.learning.gae import GAE, CounterfactualAdvantage, Estimator
from fabric_rl.learning.learner import FrozenLearner, Learner
from fabric_rl.learning.normalize import ReturnScaler
from fabric_rl.learning.update import index_batch, oom_hint
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import check_same_on_all_ranks, raised_on_all_ranks
from fabric_rl.ranks.devices import check_bfloat16, check_precision, single_thread
from fabric_rl.ranks.sharding import fsdp_error_context, is_sharded
from fabric_rl.rollouts.collectors import Collector, OverlappedCollector
from fabric_rl.rollouts.players import LearnerRank, PlayerTrainerLink, RolloutRank
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.runs.folder import Run
from fabric_rl.session.monitor import TrainingMonitor
from fabric_rl.session.saving import Saver
from fabric_rl.session.session import Session
from fabric_rl.session.stopping import StopSignals
from fabric_rl.signals.base import SignalFactory
from fabric_rl.signals.signals import IntrinsicRewards, build_signals
from fabric_rl.types import (
    ActorCritic,
    AgentFactory,
    EnvFactory,
    HasSeeds,
    HasTeacher,
    Minibatch,
    OffPolicyAgent,
    TeamAgent,
    Transitions,
)


class Algorithm:
    """Parts of a session that depend on the algorithm; this class learns from the newest rollouts (PPO).

    Attributes:
        flags: Flags for the length of a rollout and the size of a minibatch.
    """

    flags = ("--num_steps", "--minibatch_size")

    def minibatch_size(self, args: TrainArgs, rollout_steps: int, agent: ActorCritic) -> int:
        """Return the number of steps in one forward and backward pass, given those in a rollout on this rank.

        Raises:
            TypeError: The agent needs another algorithm.
        """
        if isinstance(agent, OffPolicyAgent):
            name = type(agent).__name__
            raise TypeError(f"--agent {name} learns from replayed steps; train it with fabric_rl.train_off_policy")
        return args.minibatch_for(rollout_steps, agent.sequence_length)

    def make_batch(self, size: int, flat: Minibatch, agent: ActorCritic) -> Minibatch | Transitions:
        """Return a minibatch of `size` steps that repeats the steps of a flat, shorter rollout."""
        length, count = (1, len(flat.returns)) if flat.episode_start is None else flat.episode_start.shape
        return index_batch(flat, torch.arange(size // length, device=flat.returns.device) % count)

    def learner(
        self,
        state: TrainState,
        peers: Fabric,
        timers: Timers,
        rollout: Rollout,
        rollout_steps: int,
        gamma: Tensor,
        signals: IntrinsicRewards,
    ) -> FrozenLearner:
        """Return the learner; `gamma` contains the discounts of the rollout's rewards, those of `signals` last."""
        return Learner(state, peers, timers, state.args.rollouts_kept(rollout_steps))


def build(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    run: Run | None,
    callbacks: Sequence[Callback],
    estimator: Estimator,
    inference: bool,
    algorithm: Algorithm,
    signals: Sequence[SignalFactory] = (),
    timers: Timers | None = None,
) -> Session:
    """Build every part and try it; every rank calls this. Other arguments and errors are those of `fabric_rl.train`.

    Runs are only reproducible if the order of all calls stays the same: it decides which random numbers each draws.
    """
    precision = check_precision(fabric.strategy.precision.precision, fabric.device.type)
    if fabric.device.type == "cpu" and precision == "bf16-mixed":
        check_bfloat16()
    fabric.seed_everything(args.seed, verbose=False)  # equal weights everywhere
    if fabric.world_size > 1:  # pools share the cores between the ranks of a machine
        nodes = int(getattr(fabric.strategy, "num_nodes", 1))
        os.environ.setdefault("LOCAL_WORLD_SIZE", str(max(1, fabric.world_size // nodes)))
    link = PlayerTrainerLink(fabric, args.num_players) if args.num_players else None
    peers = fabric if link is None else link.peers
    plays, trains = link is None or link.plays, link is None or not link.plays

    # Everything is tried before Fabric wraps it, so that a part that does not work causes a one-line error.
    environment_seed = stream_seed(args.seed, "environments")
    make_env = partial(build_env, env, environment_seed)
    envs = make_env() if link is None else link.build_env(make_env, environment_seed)
    with single_thread():  # the number of threads would affect how the first weights are rounded
        module: Any = agent(envs.single_observation_space, envs.single_action_space)
        reward_signals = build_signals(signals, envs)
    check_agent(module)
    if isinstance(module, TeamAgent):
        if link is not None:
            raise ValueError(f"--num_players: trainers know no teams, so {type(module).__name__} cannot learn")
        estimator = CounterfactualAdvantage() if type(estimator) is GAE else estimator
    names = [signal.name for signal in reward_signals]
    length_flag, size_flag = algorithm.flags
    what = f"a rollout of {length_flag} {args.num_steps} in {envs.num_envs} sub-environments"
    with oom_hint(fabric.device, what, "use fewer steps or sub-environments"):
        rollout = Rollout(args.num_steps, envs, fabric.device, module, names)
    if isinstance(envs, HasTeacher):
        envs.enable_teacher(rollout.teacher_action is not None)
    rollout_steps = args.num_steps * (envs.num_envs if link is None else link.envs_per_trainer)
    minibatch_size = algorithm.minibatch_size(args, rollout_steps, module)
    env_gamma = gamma = _discounts(args, rollout).to(fabric.device)
    if reward_signals:
        own = env_gamma.expand(max(1, len(rollout.reward_signals)))
        gamma = torch.cat((own, own.new_tensor([signal.gamma for signal in reward_signals])))
        episodic = [True] * len(own) + [signal.episodic for signal in reward_signals]
        rollout.episodic = torch.tensor(episodic, device=fabric.device)
    bare_optimizer: Any = module.configure_optimizers()
    if not isinstance(bare_optimizer, torch.optim.Optimizer):
        raise TypeError(f"--agent {type(module).__name__}.configure_optimizers() must return one torch optimizer")
    check_trained_parameters(module, bare_optimizer)
    if getattr(fabric.strategy.precision, "scaler", None) is not None:  # 16-mixed
        # Fabric clips no gradients that a fused optimizer unscales in its own step: it unscales them before.
        bare_optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]
    # Environments are numbered across ranks: the number of ranks does not change the random numbers of one.
    first = peers.global_rank * (envs.num_seeds if isinstance(envs, HasSeeds) else envs.num_envs)
    check_same_on_all_ranks(fabric, {"steps of a rollout": rollout_steps, "steps of a minibatch": minibatch_size})
    with oom_hint(fabric.device, f"a minibatch of {size_flag} {minibatch_size}", "use a smaller one"):
        minibatch = dry_run_parts(
            fabric, envs, module, environment_seed + first, names, partial(algorithm.make_batch, minibatch_size)
        )

    args = replace(args, batch_size=args.batch_size or minibatch_size)  # a callback may change minibatches
    timers = timers or Timers(enabled=fabric.is_global_zero)
    scaler: ReturnScaler | None = None
    if args.standardize_returns and plays:
        scaler = ReturnScaler(envs.num_envs, signals=max(1, len(rollout.reward_signals)))
    needed = (fabric, peers, envs, module, rollout, scaler, env_gamma, timers)  # it may copy the bare module
    if link is not None:
        collector: Collector = (RolloutRank if plays else LearnerRank)(link, *needed)
    else:
        collector = (OverlappedCollector if args.overlap and not inference else Collector)(*needed)
    if args.compile:
        for name in ("act", "value", "training_step"):
            setattr(module, name, torch.compile(getattr(module, name)))
        collector.compile()
    model, optimizer = fabric.setup(module, bare_optimizer)
    _settle(fabric, module, model, optimizer, minibatch if trains else None)
    if link is not None:
        link.share_weights(module)  # the same already, unless an environment has drawn random numbers
    dry_run_saving(fabric, collector)
    # Last, because the dry run has played in the environment, saved it, and drawn random numbers.
    torch.manual_seed(stream_seed(args.seed, "actions", peers.global_rank))  # ranks explore differently
    collector.begin(args.seed, first)

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
        run_id=None if run is None else run.name,
        folder=None if run is None else run.dir,
        learns=trains,
        peers=peers,
    )
    learns = trains and not inference
    if learns and reward_signals and is_sharded(module):
        raise ValueError("--signals: --strategy fsdp cannot shard their networks; use --strategy ddp")
    added = IntrinsicRewards(reward_signals, args, fabric, peers, rollout.num_envs, learns)
    learner = (
        algorithm.learner(state, peers, timers, rollout, rollout_steps, gamma, added)
        if learns
        else FrozenLearner(state, inference)
    )
    hooks = Hooks(state, callbacks, learns=not inference)
    objects = (hooks, module, estimator, gamma, collector, learner, timers, added)
    settings = asdict(args) | settings_of("env", env) | settings_of("agent", agent)
    return Session(fabric, args, run, state, *objects, inference=inference, link=link, settings=settings)


def settings_of(name: str, factory: Any) -> dict[str, Any]:  # noqa: ANN401 - any callable
    """Return the name of a class or function, and what `functools.partial` holds for it, by dotted names."""
    settings: dict[str, Any] = {}
    while isinstance(factory, partial):
        settings = factory.keywords | settings
        factory = factory.func
    named = {f"{name}.{key}": value for key, value in settings.items()}
    return {name: getattr(factory, "__qualname__", str(factory))} | named


def build_env(env: EnvFactory, seed: int) -> VectorEnv:
    """Return the environment; raise a TypeError if it accepts no seed or is not a `VectorEnv`."""
    try:
        envs = env(seed=seed)
    except TypeError as error:
        if "'seed'" not in str(error):
            raise
        raise TypeError(
            f"--env is called with seed=... and must accept it ({error}); pass a Gymnasium id with --env_id, and begin "
            "a function of your own with def make(seed):"
        ) from error
    if not isinstance(envs, VectorEnv):
        raise TypeError(f"--env {type(envs).__name__} is not a gymnasium.vector.VectorEnv")
    return envs


def dry_run_saving(fabric: Fabric, collector: Collector) -> None:
    """Try to save the environment, to be reset afterwards; raise a ValueError on all ranks if it fails on one."""
    try:
        with raised_on_all_ranks(fabric), error_context(f"--env {type(collector.envs).__name__}.state_dict()"):
            collector.env_state()
    except ValueError:
        collector.envs.close()
        raise


def _settle(
    fabric: Fabric,
    agent: ActorCritic,
    model: Any,  # noqa: ANN401 - Fabric's wrappers
    optimizer: Any,  # noqa: ANN401
    minibatch: Minibatch | Transitions | None,
) -> None:
    """Run one dry training step, so that a resumed run matches an uninterrupted one from its first step on.

    DDP orders its buckets after the first step, and the order decides how sums of the ranks' gradients are rounded.
    FSDP finds its root module in that step. Buffers are the same on all ranks, so DDP need not broadcast them in every
    step.
    """
    for part in model.modules():
        if isinstance(part, DistributedDataParallel):
            part.broadcast_buffers = False
    agent.progress = agent.progress.to(fabric.device)
    if minibatch is not None and (fabric.world_size > 1 or is_sharded(agent)):
        with isolate_rng(), fsdp_error_context(agent):
            fabric.backward(model.training_step(minibatch)[0])
        optimizer.zero_grad()


def _discounts(args: TrainArgs, rollout: Rollout) -> Tensor:
    """Return the discount, 0-dim, or `[K]` for K reward signals; raise a ValueError if their numbers differ."""
    gammas, signals = args.gammas, max(1, len(rollout.reward_signals))
    if len(gammas) not in (1, signals):
        names = f" ({', '.join(rollout.reward_signals)})" if signals > 1 else ""
        raise ValueError(f"--gamma has {len(gammas)} discounts for the {signals} reward signals of --env{names}")
    return torch.tensor(gammas * (signals // len(gammas)) if signals > 1 else gammas[0])


def finish(session: Session, monitor: TrainingMonitor, saver: Saver) -> dict[str, Any]:
    """End a run in order and return its summary; after a signal, callbacks that wait for something see `state.stop`."""
    with StopSignals(session.state):
        summary = monitor.finish(saver.unsaved())
        session.hooks.on_train_end()
    monitor.close()
    session.collector.envs.close()
    return summary
