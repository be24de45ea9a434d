"""The training loop: collect -> GAE -> train, readable top to bottom."""

import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from torch import Tensor

from fabric_rl.callbacks import Callback, TrainState
from fabric_rl.checks import try_parts
from fabric_rl.gae import gae
from fabric_rl.log import Sums, TrainConsole, means, reduce_sums
from fabric_rl.rollout import EpisodeStats, Rollout, collect
from fabric_rl.run import Run
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, HasMetrics, HasSeeds, Minibatch, NonFiniteError

START_STEPS, END_STEPS = 50_000, 200_000
"""Agent-steps over which the summary's figures 'at the start' and 'at the end' are taken (at least one iteration)."""


@dataclass(frozen=True)
class TrainArgs:
    """Settings of the training loop."""

    total_timesteps: int = 1_000_000
    """Agent-steps to collect over all ranks; the last rollout is always finished."""
    num_steps: int = 128
    """Steps per rollout and sub-environment (T)."""
    update_epochs: int = 10
    """Passes over each rollout."""
    minibatch_size: int | None = None
    """Steps per minibatch and rank. Default: a sixteenth of the rollout. What a whole number of minibatches leaves over
    is left out of that epoch; every epoch has a permutation of its own."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.95
    """Lambda of the generalised advantage estimation."""
    normalize_advantages: bool = True
    """Normalise the advantages of each minibatch to mean 0 and deviation 1, with statistics over all ranks."""
    max_grad_norm: float = 0.5
    """Clip the norm of the gradient to this; 0 does not clip."""
    anneal_lr: bool = True
    """Let the learning rates fall linearly to zero over the run."""
    seed: int = 0
    """Seed of weights, sampling and environments (sub-environment i of rank r: seed + r * n + i)."""

    def __post_init__(self) -> None:
        """Rejects settings that cannot work."""
        for name in ("total_timesteps", "num_steps", "update_epochs", "minibatch_size"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"--{name} must be at least 1, got {number}")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"--{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.max_grad_norm < 0:
            raise ValueError(f"--max_grad_norm must not be negative, got {self.max_grad_norm}")

    def minibatch_for(self, rollout_steps: int) -> int:
        """The minibatch size for a rollout of so many steps on one rank.

        Raises:
            ValueError: The rollout is smaller.
        """
        size = self.minibatch_size or max(1, rollout_steps // 16)
        if size > rollout_steps:
            raise ValueError(
                f"--minibatch_size {size} is larger than the rollout of one rank, {rollout_steps} steps "
                f"(--num_steps {self.num_steps} x {rollout_steps // self.num_steps} sub-environments)"
            )
        return size


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
    rollout = Rollout(args.num_steps, envs, fabric.device)
    minibatch_size = args.minibatch_for(args.num_steps * envs.num_envs)
    module = agent(envs.single_observation_space, envs.single_action_space)
    if not isinstance(module, ActorCritic):
        raise TypeError(f"--agent {type(module).__name__} is not a fabric_rl.types.ActorCritic")
    optimizer: Any = module.configure_optimizers()
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"--agent {type(module).__name__}.configure_optimizers() must return one torch optimizer")
    num_seeds = envs.num_seeds if isinstance(envs, HasSeeds) else envs.num_envs
    first_seed = args.seed + fabric.global_rank * num_seeds
    try_parts(fabric, envs, module, first_seed, minibatch_size)
    base_lrs = [group["lr"] for group in optimizer.param_groups]
    model, optimizer = fabric.setup(module, optimizer)

    torch.manual_seed(args.seed + fabric.global_rank)  # every rank explores noise of its own
    shuffle = torch.Generator().manual_seed(args.seed + fabric.global_rank)
    rollout.begin(envs.reset(seed=first_seed)[0])

    steps_per_iteration = args.num_steps * envs.num_envs * fabric.world_size
    iterations = math.ceil(args.total_timesteps / steps_per_iteration)
    episodes = EpisodeStats(envs.num_envs, window=max(1, 100 // fabric.world_size))
    trace: list[Sums] = []
    sums: Sums = {}
    recent = (0.0, 0.0)
    began = time.perf_counter()
    collect_seconds = learn_seconds = 0.0
    state = TrainState(fabric, module, envs, args)
    for callback in callbacks:
        callback.on_train_start(state)

    console = TrainConsole(iterations * steps_per_iteration, enabled=fabric.is_global_zero, plain=plain)
    with console, stop_on_signals(state):
        while state.iteration < iterations:
            fraction_left = 1 - state.iteration / iterations if args.anneal_lr else 1.0
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                group["lr"] = lr * fraction_left
            before = [p.detach().clone() for p in module.parameters()]

            clock = time.perf_counter()
            try:
                with torch.no_grad(), fabric.autocast():
                    collect(envs, module, rollout, episodes)
                advantage = gae(
                    rollout.reward,
                    rollout.value,
                    rollout.next_value,
                    rollout.terminated,
                    rollout.done,
                    args.gamma,
                    args.gae_lambda,
                )
                collected = time.perf_counter()
                batch = rollout.flat(advantage)
                losses = learn(fabric, model, optimizer, batch, args, minibatch_size, shuffle)
                losses["ppo/update_magnitude"] = _distance(module, before)
            except (NonFiniteError, FloatingPointError) as error:  # the latter from a pool that checks for itself
                raise _with_evidence(error, fabric, run, rollout, module, before) from error
            learned = time.perf_counter()

            state.iteration += 1
            state.steps += steps_per_iteration
            collect_seconds += collected - clock
            learn_seconds += learned - collected
            local: Sums = {name: (value, 1.0) for name, value in losses.items()}
            local |= episodes.drain_metrics()
            local["reward/step"] = (float(rollout.reward.sum()), float(rollout.reward.numel()))
            local["ppo/explained_variance"] = (_explained_variance(batch), 1.0)
            local["ppo/learning_rate"] = (optimizer.param_groups[0]["lr"], 1.0)
            local["recent/return"] = (sum(episodes.recent), float(len(episodes.recent)))
            if isinstance(envs, HasMetrics):
                local |= envs.drain_metrics()
            sums = reduce_sums(fabric, local)
            recent = sums.pop("recent/return")
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
        "mean_return": recent[0] / recent[1] if recent[1] else None,
    }
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


def learn(
    fabric: Fabric,
    model: Any,  # noqa: ANN401 - Fabric's wrapper, or a bare ActorCritic
    optimizer: torch.optim.Optimizer,
    batch: Minibatch,
    args: TrainArgs,
    minibatch_size: int,
    generator: torch.Generator,
) -> dict[str, float]:
    """Trains on one rollout: `update_epochs` passes of shuffled minibatches.

    Args:
        fabric: Runs backward, clipping and the collectives.
        model: What `fabric.setup` returned for the agent.
        optimizer: What `fabric.setup` returned for the optimizer.
        batch: The flat rollout of this rank; every rank must bring the same size.
        args: Settings.
        minibatch_size: Steps per minibatch on this rank.
        generator: Shuffles; a CPU generator.

    Returns:
        Means over all minibatches of this rank, as `ppo/<name>`.

    Raises:
        NonFiniteError: The loss or its gradient became NaN or infinite.
    """
    size = len(batch.returns)
    count = size // minibatch_size
    rows: list[Tensor] = []
    names: list[str] = []
    for _ in range(args.update_epochs):
        order = torch.randperm(size, generator=generator)[: count * minibatch_size].view(count, minibatch_size)
        order = order.to(batch.returns.device)
        advantages = batch.advantage[order]
        if args.normalize_advantages:
            advantages = normalize_rows(fabric, advantages)
        for indices, advantage in zip(order, advantages, strict=True):
            minibatch = Minibatch(*(x[indices] for x in batch))._replace(advantage=advantage)
            loss, stats = model.training_step(minibatch)
            optimizer.zero_grad()
            fabric.backward(loss)
            stats = {"loss": loss.detach(), **stats}
            if args.max_grad_norm:
                norm = fabric.clip_gradients(model, optimizer, max_norm=args.max_grad_norm, error_if_nonfinite=False)
                stats["grad_norm"] = torch.as_tensor(norm)
            optimizer.step()
            names = list(stats)
            rows.append(torch.stack([value.float() for value in stats.values()]))
    table = torch.stack(rows)  # [epochs * count, stats]; read once, so a GPU is not waited for in between
    bad = (~torch.isfinite(table)).nonzero()
    if len(bad):
        step, column = bad[0].tolist()
        raise NonFiniteError(
            f"the training step's {names[column]} became {table[step, column].item()} in epoch {step // count + 1}, "
            f"minibatch {step % count + 1} of {count}"
        )
    return {f"ppo/{name}": value for name, value in zip(names, table.mean(dim=0).tolist(), strict=True)}


def normalize_rows(fabric: Fabric, advantages: Tensor, eps: float = 1e-8) -> Tensor:
    """Normalises each minibatch over all ranks to mean 0 and (unbiased) standard deviation 1.

    Args:
        fabric: Adds up the sums of all ranks, once for all rows.
        advantages: `[M, B]`, one minibatch a row; row i of every rank belongs to the same gradient step.
        eps: Added to the deviation.

    Returns:
        `[M, B]`; unchanged if there is one sample only.
    """
    wide = advantages.double()
    sums = torch.stack((wide.sum(dim=1), wide.square().sum(dim=1)))
    if fabric.world_size > 1:
        sums = cast(Tensor, fabric.all_reduce(sums, reduce_op="sum"))
    count = advantages.shape[1] * fabric.world_size
    if count < 2:
        return advantages
    mean = sums[0] / count
    variance = (sums[1] / count - mean.square()).clamp_min(0) * (count / (count - 1))
    return ((wide - mean[:, None]) / (variance.sqrt()[:, None] + eps)).to(advantages.dtype)


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


def _explained_variance(batch: Minibatch) -> float:
    """1 - Var(returns - values) / Var(returns)."""
    variance = batch.returns.var()
    return float(1 - (batch.returns - batch.value).var() / variance) if variance > 0 else 0.0


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
    evidence = {"rollout": vars(rollout), "weights_before": weights, "message": str(error)}
    torch.save(evidence, path)
    return NonFiniteError(f"{error}. Rollout and the weights before it are in {path}")
