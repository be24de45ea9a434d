"""The training loop: collect -> GAE -> train, readable top to bottom."""

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from fabric_rl.args import TrainArgs
from fabric_rl.callbacks import Callback, TrainState
from fabric_rl.checks import same_on_all_ranks, try_parts
from fabric_rl.gae import gae
from fabric_rl.learn import join, learn
from fabric_rl.log import Sums, TrainConsole, means, reduce_sums
from fabric_rl.normalize import ObsNormalizer, ReturnScaler
from fabric_rl.rollout import EpisodeStats, Rollout, collect
from fabric_rl.run import Run
from fabric_rl.schedules import Cosine, KLAdaptive, Linear, Schedule
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, HasMetrics, HasSeeds, Minibatch, NonFiniteError

START_STEPS, END_STEPS = 50_000, 200_000
"""Agent-steps over which the summary's figures 'at the start' and 'at the end' are taken (at least one iteration)."""

RECENT_EPISODES = {100: "mean_return", 20: "mean_return_last_20"}
"""The last episodes over all ranks whose mean return the summary gives under that name."""


def train(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    run: Run | None = None,
    callbacks: Sequence[Callback] = (),
    plain: bool | None = None,
) -> dict[str, Any]:
    """Trains an agent with PPO; every rank calls it, after `fabric.launch()`.

    Args:
        fabric: Devices, precision, loggers.
        env: Builds this rank's environment.
        agent: Builds the agent from the spaces of one sub-environment.
        args: Settings.
        run: Where checkpoint and summary go; None keeps nothing (the caller's `fabric.loggers` still log).
        callbacks: Hooks, called in order on every rank.
        plain: Print lines instead of the live view. Default: when standard output is no terminal.

    Returns:
        The summary that `runs/<run_id>/summary.json` holds.

    Raises:
        ValueError: Settings, environment and agent do not fit or one of them is malformed; raised before anything is
            collected.
        TypeError: The environment is no VectorEnv, the agent no ActorCritic, or its optimizer is none.
        NonFiniteError: NaN or infinity in observations, rewards or the loss.
    """
    fabric.seed_everything(args.seed, verbose=False)  # equal weights everywhere
    envs = env(seed=args.seed)
    if not isinstance(envs, VectorEnv):
        raise TypeError(f"--env {type(envs).__name__} is not a gymnasium.vector.VectorEnv")
    module = agent(envs.single_observation_space, envs.single_action_space)
    if not isinstance(module, ActorCritic):
        raise TypeError(f"--agent {type(module).__name__} is not a fabric_rl.types.ActorCritic")
    rollout = Rollout(args.num_steps, envs, fabric.device, module)
    rollout_steps = args.num_steps * envs.num_envs
    minibatch_size = args.minibatch_for(rollout_steps, module.sequence_length if module.memory_size else 1)
    gamma = _discounts(args, rollout).to(fabric.device)
    optimizer: Any = module.configure_optimizers()
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"--agent {type(module).__name__}.configure_optimizers() must return one torch optimizer")
    num_seeds = envs.num_seeds if isinstance(envs, HasSeeds) else envs.num_envs
    first_seed = args.seed + fabric.global_rank * num_seeds
    same_on_all_ranks(fabric, {"steps of a rollout": rollout_steps, "steps of a minibatch": minibatch_size})
    try_parts(fabric, envs, module, first_seed, minibatch_size)
    base_lrs = [group["lr"] for group in optimizer.param_groups]
    if args.compile:
        _compile(module)
    model, optimizer = fabric.setup(module, optimizer)
    for part in model.modules():
        if isinstance(part, DistributedDataParallel):
            part.broadcast_buffers = False  # they are the same on all ranks; broadcasting costs a collective per step
    module.progress = module.progress.to(fabric.device)
    normalizers = [part for part in module.modules() if isinstance(part, ObsNormalizer)]
    scaler = ReturnScaler(envs.num_envs) if args.standardize_returns else None
    kl_adaptive = KLAdaptive(args.desired_kl, base_lrs) if args.lr_schedule == "kl_adaptive" else None
    experience: deque[Minibatch] = deque(maxlen=args.rollouts_kept(rollout_steps))

    torch.manual_seed(args.seed + fabric.global_rank)  # every rank explores noise of its own
    shuffle = torch.Generator().manual_seed(args.seed + fabric.global_rank)
    rollout.begin(*envs.reset(seed=first_seed))

    steps_per_iteration = rollout_steps * fabric.world_size
    iterations = math.ceil(args.total_timesteps / steps_per_iteration)
    episodes = EpisodeStats(envs.num_envs, window=max(RECENT_EPISODES))
    trace: list[Sums] = []
    sums: Sums = {}
    recent = dict.fromkeys(RECENT_EPISODES, (0.0, 0.0))
    began = time.perf_counter()
    collect_seconds = learn_seconds = 0.0
    state = TrainState(fabric, module, envs, args)
    for callback in callbacks:
        callback.on_train_start(state)

    console = TrainConsole(iterations * steps_per_iteration, enabled=fabric.is_global_zero, plain=plain)
    with console, stop_on_signals(state):
        while state.iteration < iterations:
            module.progress.fill_(state.iteration / iterations)
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                group["lr"] = lr * _lr_factor(args, state.iteration / iterations, kl_adaptive)
            before = [p.detach().clone() for p in module.parameters()]

            clock = time.perf_counter()
            try:
                with torch.no_grad(), fabric.autocast():
                    collect(envs, module, rollout, episodes)
                rewards = rollout.reward
                if scaler is not None:
                    rewards = scaler.scale(rewards, rollout.done, gamma, fabric)
                ends = (rollout.terminated, rollout.done)
                advantage = gae(rewards, rollout.value, rollout.next_value, *ends, gamma, args.gae_lambda)
                collected = time.perf_counter()
                newest = rollout.flat(advantage)
                experience.append(newest if experience.maxlen == 1 else newest.map(torch.clone))
                losses = learn(fabric, model, optimizer, join(experience), args, minibatch_size, shuffle, kl_adaptive)
                losses["ppo/update_magnitude"] = _distance(module, before)
                for normalizer in normalizers:  # after learning: the policy that collected is the one that learned
                    normalizer.update(rollout.obs[:-1], fabric)
            except (NonFiniteError, FloatingPointError) as error:  # the latter from a pool that checks for itself
                raise _with_evidence(error, fabric, run, rollout, module, before) from error
            learned = time.perf_counter()

            state.iteration += 1
            state.steps += steps_per_iteration
            collect_seconds += collected - clock
            learn_seconds += learned - collected
            local: Sums = {name: (value, 1.0) for name, value in losses.items()}
            local |= episodes.drain_metrics()
            local["reward/step"] = (float(rollout.reward.sum()), float(rollout.done.numel()))
            for number, name in enumerate(rollout.reward_signals):
                local[f"reward/{name}"] = (float(rollout.reward[..., number].sum()), float(rollout.done.numel()))
            local["ppo/explained_variance"] = (_explained_variance(newest), 1.0)
            local["ppo/learning_rate"] = (optimizer.param_groups[0]["lr"], 1.0)
            for window in RECENT_EPISODES:
                newest_returns = list(episodes.recent)[-max(1, window // fabric.world_size) :]
                local[f"recent/{window}"] = (sum(newest_returns), float(len(newest_returns)))
            if isinstance(envs, HasMetrics):
                local |= envs.drain_metrics()
            sums = reduce_sums(fabric, local)
            recent = {window: sums.pop(f"recent/{window}") for window in RECENT_EPISODES}
            trace.append({name: pair for name, pair in sums.items() if name.startswith("game/")})
            state.metrics = means(sums) | {
                "speed/collected_steps_per_second": steps_per_iteration / (collected - clock),
                "speed/consumed_steps_per_second": steps_per_iteration / (learned - collected),
                "speed/overall_steps_per_second": steps_per_iteration / (time.perf_counter() - clock),
            }
            for callback in callbacks:
                callback.on_iteration_end(state)
            fabric.log_dict(state.metrics, step=state.steps)
            console.show(state.steps, state.metrics)
            # Read once: a signal that comes later must not end the loop on this rank alone.
            if reduce_sums(fabric, {"stop": (float(state.stop), 1.0)})["stop"][0] > 0:
                break

    seconds = time.perf_counter() - began
    summary: dict[str, Any] = {
        "run_id": run.name if run else None,
        "total_steps": state.steps,
        "iterations": state.iteration,
        "world_size": fabric.world_size,
        "stopped_early": state.iteration < iterations,
        "wall_seconds": seconds,
        "collected_steps_per_second": state.steps / max(collect_seconds, 1e-9),
        "consumed_steps_per_second": state.steps / max(learn_seconds, 1e-9),
        "overall_steps_per_second": state.steps / seconds,
    }
    for window, name in RECENT_EPISODES.items():
        summary[name] = recent[window][0] / recent[window][1] if recent[window][1] else None
    for name in ("touches_per_minute", "goals_per_minute"):
        if f"game/{name}" in sums:
            start = _window(trace, f"game/{name}", steps_per_iteration, START_STEPS)
            end = _window(trace[::-1], f"game/{name}", steps_per_iteration, END_STEPS)
            summary[name] = {"start": start, "end": end}
    if run is not None:
        checkpoint = {"agent": model, "optimizer": optimizer, "iteration": state.iteration, "steps": state.steps}
        fabric.save(run.final_checkpoint, checkpoint)
        summary["checkpoint"] = str(run.final_checkpoint)
        if fabric.is_global_zero:
            run.write_summary(summary)
    for callback in callbacks:
        callback.on_train_end(state)
    envs.close()
    return summary


@contextmanager
def stop_on_signals(state: TrainState) -> Iterator[None]:
    """Ctrl+C or SIGTERM ends training after the running iteration; a second Ctrl+C ends it at once."""
    if threading.current_thread() is not threading.main_thread():  # signals only reach the main thread
        yield
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGINT:
            if state.stop:
                raise KeyboardInterrupt
            if state.fabric.is_global_zero:
                print("\nstopping after this iteration; press Ctrl+C again to stop at once", flush=True)
        state.stop = True

    previous = {signum: signal.signal(signum, handle) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)


def _discounts(args: TrainArgs, rollout: Rollout) -> Tensor:
    """The discount, 0-dim, or `[K]` for K reward signals.

    Raises:
        ValueError: There is another number of discounts than of reward signals.
    """
    gammas, signals = args.gammas, max(1, len(rollout.reward_signals))
    if len(gammas) not in (1, signals):
        names = f" ({', '.join(rollout.reward_signals)})" if signals > 1 else ""
        raise ValueError(f"--gamma has {len(gammas)} discounts, the environment {signals} reward signals{names}")
    return (
        torch.tensor(gammas * signals if len(gammas) < signals else gammas) if signals > 1 else torch.tensor(gammas[0])
    )


def _lr_factor(args: TrainArgs, progress: float, kl_adaptive: KLAdaptive | None) -> float:
    """What the initial learning rates are multiplied with."""
    if kl_adaptive is not None:
        return kl_adaptive.factor
    if args.lr_schedule == "constant":
        return 1.0
    schedule: Schedule = Linear(1.0, 0.0) if args.lr_schedule == "linear" else Cosine(1.0, 0.0)
    return float(schedule(progress))


def _compile(module: ActorCritic) -> None:
    for name in ("act", "value", "training_step"):
        setattr(module, name, torch.compile(getattr(module, name)))


def _explained_variance(batch: Minibatch) -> float:
    """1 - Var(returns - values) / Var(returns), of the sums over the reward signals."""
    returns, values = batch.returns, batch.value
    if returns.dim() > batch.advantage.dim():
        returns, values = returns.sum(dim=-1), values.sum(dim=-1)
    variance = returns.var()
    return float(1 - (returns - values).var() / variance) if variance > 0 else 0.0


def _distance(module: ActorCritic, before: list[Tensor]) -> float:
    """L2 norm of the change of all parameters.

    Raises:
        NonFiniteError: A parameter became NaN or infinite.
    """
    squares = [(p.detach() - old).square().sum() for p, old in zip(module.parameters(), before, strict=True)]
    distance = float(torch.stack(squares).sum().sqrt())
    if not math.isfinite(distance):
        raise NonFiniteError(f"the weights became {distance} in the last minibatch")
    return distance


def _window(trace: list[Sums], name: str, steps_per_iteration: int, steps: int) -> float:
    """Mean of a metric over the first iterations of `trace` that make up `steps` agent-steps."""
    taken = trace[: max(1, steps // steps_per_iteration)]
    count = sum(sums[name][1] for sums in taken)
    return sum(sums[name][0] for sums in taken) / count if count else 0.0


def _with_evidence(
    error: Exception, fabric: Fabric, run: Run | None, rollout: Rollout, module: ActorCritic, before: list[Tensor]
) -> NonFiniteError:
    """Saves the rollout and the weights before it, and says where."""
    if run is None:
        return NonFiniteError(str(error))
    path = run.dir / f"nonfinite-rank{fabric.global_rank}.pt"
    names = [name for name, _ in module.named_parameters()]
    weights = dict(zip(names, before, strict=True))
    tensors = {name: value for name, value in vars(rollout).items() if isinstance(value, Tensor)}
    evidence = {"rollout": tensors, "weights_before": weights, "message": str(error)}
    torch.save(evidence, path)
    return NonFiniteError(f"{error}. Rollout and the weights before it are in {path}")
