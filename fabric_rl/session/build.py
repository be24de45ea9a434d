"""A session from its parts, each of them tried once: how a run begins, whatever it learns with, and how it ends."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fabric_rl.args import Saving, TrainArgs
from fabric_rl.callback import Callback, TrainState
from fabric_rl.dry_run import calling, check_agent, try_parts
from fabric_rl.hooks import Hooks
from fabric_rl.learning.gae import Estimator
from fabric_rl.learning.learner import Learner, Onlooker
from fabric_rl.learning.normalize import ReturnScaler
from fabric_rl.learning.update import memory_named, take
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import check_same_on_all_ranks, raised_on_all_ranks
from fabric_rl.ranks.devices import check_bfloat16, one_thread
from fabric_rl.ranks.sharding import explaining, is_sharded
from fabric_rl.rollouts.collectors import Collector, CollectorAhead
from fabric_rl.rollouts.players import Exchange, Player, Trainer
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.runs.folder import Run
from fabric_rl.session.monitor import Record
from fabric_rl.session.saving import NoSaver, Saver
from fabric_rl.session.session import Session
from fabric_rl.session.stopping import StopSignals
from fabric_rl.signals.base import RewardSignal, SignalFactory
from fabric_rl.signals.signals import Signals, build_signals
from fabric_rl.types import (
    ActorCritic,
    AgentFactory,
    EnvFactory,
    HasSeeds,
    Minibatch,
    NonFiniteError,
    OffPolicyAgent,
    Transitions,
)


class Scheme:
    """The differences between sessions; this one learns from its newest rollouts.

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
        """Return what learns from such rollouts; `gamma` has the discounts of their rewards, the last for `signals`."""
        return Learner(state, peers, timers, state.args.rollouts_kept(rollout_steps))


@dataclass
class _Parts:
    """The parts of this rank, bare: Fabric has wrapped none of them yet."""

    exchange: Exchange | None
    peers: Fabric
    envs: VectorEnv
    first_seed: int
    module: Any
    optimizer: Any
    signals: Sequence[RewardSignal]
    rollout: Rollout
    rollout_steps: int
    minibatch_size: int
    own_gamma: Tensor
    """The discounts of the environment's rewards."""
    gamma: Tensor
    """Those, and behind them one for each signal."""
    trial: Minibatch | Transitions
    """A minibatch on which everything has been tried."""

    @property
    def plays(self) -> bool:
        return self.exchange is None or self.exchange.plays

    @property
    def learns(self) -> bool:
        return self.exchange is None or not self.exchange.plays


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
    """Builds and tries every part; every rank calls it. Other arguments and errors are those of `fabric_rl.train`.

    What is drawn from random generators, and when, decides every number of the run: the order of all that follows is
    part of its exactness.
    """
    parts = _make_parts(fabric, env, agent, args, scheme, signals)
    args = replace(args, batch_size=args.batch_size or parts.minibatch_size)  # a callback may change minibatches
    timers = Timers(enabled=fabric.is_global_zero)
    collector, model, optimizer = _wrap_parts(fabric, parts, args, timers, inference)

    per_iteration = args.num_steps * parts.envs.num_envs * parts.peers.world_size
    state = TrainState(
        fabric,
        parts.module,
        parts.envs,
        args,
        model,
        optimizer,
        steps_per_iteration=per_iteration,
        iterations=math.ceil(args.total_timesteps / per_iteration),
        minibatch_size=parts.minibatch_size,
        learns=parts.learns,
    )
    learns = parts.learns and not inference
    if learns and parts.signals and is_sharded(parts.module):
        raise ValueError("--signals: --strategy fsdp cannot divide their networks; use --strategy ddp")
    paid = Signals(parts.signals, args, fabric, parts.peers, parts.rollout.num_envs, learns)
    learning_from = (parts.peers, timers, parts.rollout, parts.rollout_steps, parts.gamma, paid)
    learner = scheme.learner(state, *learning_from) if learns else Onlooker(state)
    hooks = Hooks(state, callbacks, learns=not inference)
    objects = (hooks, parts.module, estimator, parts.gamma, collector, learner, timers, paid)
    return Session(fabric, args, state, *objects, inference=inference, exchange=parts.exchange)


def _make_parts(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    scheme: Scheme,
    signals: Sequence[SignalFactory],
) -> _Parts:
    """Seeds, then builds the environment, the agent for its spaces and the rollout for both, and tries them together.

    All of it before Fabric wraps anything: a part that does not work is one clear line then.
    """
    if fabric.device.type == "cpu" and fabric.strategy.precision.precision == "bf16-mixed":
        check_bfloat16()
    fabric.seed_everything(args.seed, verbose=False)  # equal weights everywhere
    if fabric.world_size > 1:  # pools share the cores between the ranks of a machine
        nodes = int(getattr(fabric.strategy, "num_nodes", 1))
        os.environ.setdefault("LOCAL_WORLD_SIZE", str(max(1, fabric.world_size // nodes)))
    exchange = Exchange(fabric, args.num_players) if args.num_players else None
    peers = fabric if exchange is None else exchange.peers
    make_env = partial(_built, env, args.seed)
    envs = make_env() if exchange is None else exchange.environment(make_env, args.seed)
    with one_thread():  # whose number would decide how the first weights are rounded
        module: Any = agent(envs.single_observation_space, envs.single_action_space)
        paying = build_signals(signals, envs)
    check_agent(module)
    names = [signal.name for signal in paying]
    long, large = scheme.flags
    what = f"a rollout of {long} {args.num_steps} in {envs.num_envs} sub-environments"
    with memory_named(fabric.device, what, "take fewer of either"):
        rollout = Rollout(args.num_steps, envs, fabric.device, module, names)
    rollout_steps = args.num_steps * (envs.num_envs if exchange is None else exchange.share)
    minibatch_size = scheme.minibatch_size(args, rollout_steps, module)
    own_gamma = gamma = _discounts(args, rollout).to(fabric.device)
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
        trial = try_parts(fabric, envs, module, first_seed, names, partial(scheme.make_batch, minibatch_size))
    built = (exchange, peers, envs, first_seed, module, optimizer, paying)
    return _Parts(*built, rollout, rollout_steps, minibatch_size, own_gamma, gamma, trial)


def _wrap_parts(
    fabric: Fabric, parts: _Parts, args: TrainArgs, timers: Timers, inference: bool
) -> tuple[Collector, Any, Any]:
    """Builds the collector, which may copy the bare module, and only then lets Fabric change that.

    The environment begins last: before that it was played in, and saved once, and the trial has drawn random numbers.

    Returns:
        The collector, and Fabric's wrappers of module and optimizer.
    """
    exchange, module = parts.exchange, parts.module
    scaler: ReturnScaler | None = None
    if args.standardize_returns and parts.plays:
        scaler = ReturnScaler(parts.envs.num_envs, signals=max(1, len(parts.rollout.reward_signals)))
    needed = (fabric, parts.peers, parts.envs, module, parts.rollout, scaler, parts.own_gamma, timers)
    if exchange is not None:
        collector: Collector = (Player if parts.plays else Trainer)(exchange, *needed)
    else:
        collector = (CollectorAhead if args.overlap and not inference else Collector)(*needed)
    if args.compile:
        for name in ("act", "value", "training_step"):
            setattr(module, name, torch.compile(getattr(module, name)))
        collector.compile()
    model, optimizer = fabric.setup(module, parts.optimizer)
    _settle(fabric, module, model, optimizer, parts.trial if parts.learns else None)
    if exchange is not None:
        exchange.share_weights(module)  # they began with the same, unless an environment has drawn numbers
    try_saving(fabric, collector)
    torch.manual_seed(args.seed + parts.peers.global_rank)  # every rank explores noise of its own
    collector.begin(parts.first_seed)
    return collector, model, optimizer


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
    try:
        with raised_on_all_ranks(fabric), calling(f"--env {type(collector.envs).__name__}.state_dict()"):
            collector.env_state()
    except ValueError:
        collector.envs.close()
        raise


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


def begin(
    session: Session,
    run: Run | None,
    plain: bool | None,
    saving: Saving,
    resume: dict[str, Any] | None,
    weights: dict[str, Any] | None,
) -> tuple[Record, NoSaver]:
    """Goes on from a checkpoint or begins; arguments and errors are those of `fabric_rl.train`.

    Returns:
        What notes the run, and what saves it.
    """
    exact = session.begin(resume, weights)  # whether it goes on to the bit as if it had never stopped
    if run is not None:
        session.state.run_id, session.state.folder = run.name, run.dir
    record = Record(session, run, plain, resume)
    saver = Saver(run, saving, session, record, exact) if run is not None and not session.inference else NoSaver()
    return record, saver


def finish(session: Session, record: Record, saver: NoSaver) -> dict[str, Any]:
    """Ends a run in order; returns its summary. Callbacks that wait for something see `state.stop` after a signal."""
    with StopSignals(session.state):
        summary = record.finish(saver.unsaved())
        session.hooks.on_train_end()
    record.close()
    session.collector.envs.close()
    return summary


@contextmanager
def keep_evidence_of_nan(session: Session, run: Run | None) -> Iterator[None]:
    """Keeps the rollout and the weights before it where the block meets NaN or infinity.

    Raises:
        NonFiniteError: It has; the message says where the evidence is, `nonfinite-rank<r>.pt` in the run's folder.
    """
    try:
        yield
    except (NonFiniteError, FloatingPointError) as error:  # the latter from a pool that checks for itself
        raise NonFiniteError(f"{error}{_written(session, run, str(error))}") from error


def _written(session: Session, run: Run | None, message: str) -> str:
    """Writes the evidence; returns where it is, in words, or nothing."""
    if run is None:
        return ""
    path = run.dir / f"nonfinite-rank{session.fabric.global_rank}.pt"
    rollout = {name: value for name, value in vars(session.collector.rollout).items() if isinstance(value, Tensor)}
    evidence = {"rollout": rollout, "weights_before": session.learner.weights_before, "message": message}
    try:
        torch.save(evidence, path)
    except (OSError, RuntimeError):  # a full disk
        return ""
    return f". Rollout and the weights before it are in {path}"
