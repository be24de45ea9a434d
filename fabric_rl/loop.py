"""The training loop: collect -> GAE -> train, readable top to bottom."""

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from lightning import Fabric
from torch import Tensor

from fabric_rl.args import Saving, TrainArgs
from fabric_rl.callback import drained, failures_told
from fabric_rl.callbacks import Callback
from fabric_rl.learning.gae import gae
from fabric_rl.learning.update import join, learn, memory_named
from fabric_rl.metrics.console import TrainConsole
from fabric_rl.metrics.log import logger
from fabric_rl.metrics.loggers import Loggers
from fabric_rl.metrics.sums import Sums, means, reduce_sums
from fabric_rl.metrics.timers import Timers
from fabric_rl.metrics.wandb import keep_in_run_folder
from fabric_rl.ranks.sharding import gathered, shard_of, whole
from fabric_rl.runs.folder import Run
from fabric_rl.schedules import Cosine, Linear, Schedule
from fabric_rl.session.saving import Saver
from fabric_rl.session.session import RECENT_EPISODES, Live
from fabric_rl.session.stopping import STOP_NAMES, stop_on_signals
from fabric_rl.trial import told_to_all
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, HasMetrics, HasTimers, Minibatch, NonFiniteError


def train(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    run: Run | None = None,
    callbacks: Sequence[Callback] = (),
    plain: bool | None = None,
    saving: Saving = Saving(),  # noqa: B008 - frozen
    resume: dict[str, Any] | None = None,
    weights: dict[str, Any] | None = None,
    inference: bool = False,
) -> dict[str, Any]:
    """Trains an agent with PPO; every rank calls it, after `fabric.launch()`.

    Args:
        fabric: Devices, precision, loggers.
        env: Builds this rank's environment.
        agent: Builds the agent from the spaces of one sub-environment.
        args: Settings.
        run: Where checkpoints and summary go; None keeps nothing (the caller's `fabric.loggers` still log).
        callbacks: Hooks, called in order on every rank.
        plain: Print lines instead of the live view. Default: when standard output is no terminal.
        saving: When `run` gets checkpoints and milestones.
        resume: A checkpoint to go on from, see `fabric_rl.runs.checkpoint.load`.
        weights: A checkpoint whose weights a new run begins with.
        inference: Play without learning; nothing is saved but metrics and summary.

    Returns:
        The summary that `runs/<run_id>/summary.json` holds (docs/runs.md). On rank 0 it has `unsaved_steps` where the
        last checkpoint could not be written.

    Raises:
        ValueError: Settings, environment and agent do not fit or one of them is malformed; raised before anything is
            collected.
        TypeError: The environment is no VectorEnv, the agent no ActorCritic, or its optimizer is none.
        CheckpointError: `resume` or `weights` is of another architecture.
        NonFiniteError: NaN or infinity in observations, rewards or the loss.
        TooLittleMemoryError: A training step needs more memory than there is.
    """
    live = Live.build(fabric, env, agent, args, callbacks)
    state, iterations = live.state, live.iterations
    state.run_id = run.name if run is not None else None
    if weights is not None:
        live.load_weights(weights)
    exact = resume is None or live.restore(resume)
    if not exact and fabric.is_global_zero:
        warnings.warn("another number of ranks or sub-environments: equivalent, not bit-identical", stacklevel=2)
    timers = Timers(enabled=fabric.is_global_zero)
    if run is not None:
        keep_in_run_folder(fabric.loggers, run.dir)
    loggers = Loggers(fabric)
    exact = exact and (resume is None or resume["exact"])
    saver = Saver(run, saving, live, exact) if run is not None and not inference else None
    with failures_told(state, callbacks), gathered(live.module):
        for callback in callbacks:
            with told_to_all(fabric):  # a callback may look at the environment, which only players have
                callback.on_train_start(state)
    if saver is not None and fabric.is_global_zero and resume is not None and state.iteration < iterations:
        saver.set_newer_milestones_aside()

    stopped_by: str | None = None
    sums: Sums = {}
    recent = dict.fromkeys(RECENT_EPISODES, (0.0, 0.0))
    total = state.steps + (iterations - state.iteration) * live.steps_per_iteration
    console = TrainConsole(total, enabled=fabric.is_global_zero, plain=plain, done=state.steps)
    began, before_now = time.perf_counter(), live.seconds["wall"]
    with console, stop_on_signals(state) as signals, failures_told(state, callbacks):
        while state.iteration < iterations:
            for callback in callbacks:
                callback.on_iteration_start(state)
            clock = time.perf_counter()
            _apply_schedules(live)
            before = [p.detach().clone() for p in live.module.parameters()]
            try:
                with timers("collect"):
                    newest = _collect(live, timers)
                    figures = _collected_metrics(live)
                collected, took = time.perf_counter(), live.collector.seconds
                ahead = live.collector.ahead and not inference and state.iteration + 1 < iterations
                state.batch = newest = newest.map(torch.clone) if ahead and live.collector.learns else newest
                for callback in callbacks if not inference else ():
                    callback.on_learn_start(state)
                with live.collector.meanwhile(ahead, timers):
                    with timers("learn"):
                        learns = live.collector.learns and not inference
                        losses = _learn(live, newest, before, timers) if learns else {}
                    learned = time.perf_counter()
            except (NonFiniteError, FloatingPointError) as error:  # the latter from a pool that checks for itself
                raise _with_evidence(error, live, run, before) from error

            state.iteration += 1
            state.steps += live.steps_per_iteration
            live.seconds["collect"] += took
            live.seconds["learn"] += learned - collected
            live.seconds["wall"] = before_now + learned - began
            with timers("metrics"):
                local = figures | _learned_metrics(live, newest, losses)
                sums = reduce_sums(fabric, local if live.decoupled is None else live.decoupled.complete(local))
                recent = _recent_of(sums)
                live.trace.add({name: pair for name, pair in sums.items() if name.startswith("game/")})
                state.sums = sums
                state.metrics = means(sums) | {
                    "speed/collected_steps_per_second": live.steps_per_iteration / took,
                    "speed/overall_steps_per_second": live.steps_per_iteration / (time.perf_counter() - clock),
                }
                if not inference:
                    rate = live.steps_per_iteration / (learned - collected)
                    state.metrics["speed/consumed_steps_per_second"] = rate
                with gathered(live.module):  # a callback may play on rank 0 alone
                    for callback in callbacks:
                        callback.on_iteration_end(state)
                state.batch = None
                loggers.log(state.metrics, state.steps)
                console.show(state.steps, state.metrics)
            # Read once: a signal that comes later must not end the loop on this rank alone.
            due = state.save or (saver is not None and fabric.is_global_zero and saver.minutes_due)
            asks = {"stop": (float(state.stop), 1.0), "save": (float(due), 1.0)}
            asked = reduce_sums(fabric, asks | {name: (float(name in signals), 1.0) for name in STOP_NAMES})
            state.stop, state.save = state.stop or asked["stop"][0] > 0, False
            ending = asked["stop"][0] > 0 or state.iteration >= iterations
            if state.iteration < iterations and ending:
                stopped_by = next((STOP_NAMES[name] for name in STOP_NAMES if asked[name][0] > 0), "a callback")
                logger.debug("stopped early by %s after %s steps", stopped_by, f"{state.steps:,}")
            if saver is not None:
                with timers("save"):
                    saved = saver.after_iteration(asked["save"][0] > 0, ending, _mean(recent[max(RECENT_EPISODES)]))
                if saved and run is not None and fabric.is_global_zero:
                    run.write_timers(timers)
            if ending:
                break

    if not sums:  # nothing was left to do
        recent = _recent_of(reduce_sums(fabric, _recent_returns(live)))
    summary = _summary(live, run, recent, stopped_by, inference)
    if saver is not None and fabric.is_global_zero and (unsaved := saver.unsaved_steps):
        good = saver.newest_good
        summary |= {"unsaved_steps": unsaved, "checkpoint": None if good is None else str(good)}
        logger.error("the last %s steps are not saved; newest good checkpoint: %s", f"{unsaved:,}", good)
    kept = run.read_summary() if run is not None and not sums else {}
    if kept.get("total_steps") == state.steps:
        summary |= kept
    elif run is not None and fabric.is_global_zero:  # also of a run that was killed after its last checkpoint
        run.write_summary(summary, timers if sums else None)
    with gathered(live.module):
        for callback in callbacks:
            callback.on_train_end(state)
    loggers.finalize()
    live.envs.close()
    return summary


def _apply_schedules(live: Live) -> None:
    args, progress = live.args, live.progress
    live.module.progress.fill_(progress)
    if live.kl_adaptive is not None:
        factor = live.kl_adaptive.factor
    elif args.lr_schedule == "constant":
        factor = 1.0
    else:
        schedule: Schedule = Linear(1.0, 0.0) if args.lr_schedule == "linear" else Cosine(1.0, 0.0)
        factor = schedule(progress)
    own = live.state.learning_rate
    rates = live.base_lrs if own is None else [own] * len(live.base_lrs)
    for group, lr in zip(live.optimizer.param_groups, rates, strict=True):
        group["lr"] = lr * factor


def _collect(live: Live, timers: Timers) -> Minibatch:
    """The next rollout with its advantages, as one batch."""
    rollout, args = live.rollout, live.args
    live.collector.collect(timers)
    if isinstance(live.envs, HasTimers):
        with timers("environment"):
            for name, (seconds, count) in live.envs.drain_timers().items():
                timers.add(name, seconds, count)
    rewards = rollout.reward
    if live.scaler is not None:
        rewards = live.scaler.scale(rewards, rollout.done, live.gamma, live.team)
    rewards = live.collector.share(rewards, timers)
    with timers("gae"):
        ends = (rollout.terminated, rollout.done)
        advantage = gae(rewards, rollout.value, rollout.next_value, *ends, live.gamma, args.gae_lambda)
    return rollout.flat(advantage)


def _learn(live: Live, newest: Minibatch, before: list[Tensor], timers: Timers) -> dict[str, float]:
    """Learns from the newest rollout and those that are kept; returns the losses."""
    live.experience.append(newest if live.experience.maxlen == 1 else newest.map(torch.clone))
    size = live.state.minibatch_size
    with memory_named(live.fabric.device, size, live.args.batch_size or size):
        losses = learn(
            live.team,
            live.model,
            live.optimizer,
            join(live.experience),
            live.args,
            size,
            live.shuffle,
            live.kl_adaptive,
            timers,
        )
    losses |= _distances(live.module, before)
    for normalizer in live.normalizers:  # after learning: the policy that collected is the one that learned
        normalizer.update(newest.obs, live.team)
    return losses


def _collected_metrics(live: Live) -> Sums:
    """What this rank has to say about its rollout; the same names on all ranks that play."""
    if not live.collector.plays:
        return {}
    rollout, local = live.rollout, live.episodes.drain_metrics()
    local["reward/step"] = (float(rollout.reward.sum()), float(rollout.done.numel()))
    for number, name in enumerate(rollout.reward_signals):
        local[f"reward/{name}"] = (float(rollout.reward[..., number].sum()), float(rollout.done.numel()))
    if isinstance(live.envs, HasMetrics):
        local |= live.envs.drain_metrics()
    return local | _recent_returns(live)


def _recent_returns(live: Live) -> Sums:
    """The returns of this rank's part of the last episodes."""
    local: Sums = {}
    for window in RECENT_EPISODES:
        returns = list(live.episodes.recent)[-max(1, window // live.team.world_size) :]
        local[f"recent/{window}"] = (sum(returns), float(len(returns)))
    return local


def _recent_of(sums: Sums) -> dict[int, tuple[float, float]]:
    """Takes those of all ranks out of the metrics."""
    return {window: sums.pop(f"recent/{window}") for window in RECENT_EPISODES}


def _learned_metrics(live: Live, newest: Minibatch, losses: dict[str, float]) -> Sums:
    """What this rank has to say about what it learned, and its callbacks; the same names on all that learn."""
    local = {name: (value, 1.0) for name, value in losses.items()}
    if losses:
        local["ppo/explained_variance"] = (_explained_variance(newest), 1.0)
        local["ppo/learning_rate"] = (live.optimizer.param_groups[0]["lr"], 1.0)
    for callback in live.callbacks:
        local |= drained(callback)
    return local


def _mean(pair: tuple[float, float]) -> float | None:
    """Sum / count; None where there is nothing."""
    return pair[0] / pair[1] if pair[1] else None


def _summary(
    live: Live,
    run: Run | None,
    recent: dict[int, tuple[float, float]],
    stopped_by: str | None,
    inference: bool,
) -> dict[str, Any]:
    steps, seconds = live.state.steps, live.seconds
    summary: dict[str, Any] = {
        "run_id": run.name if run else None,
        "total_steps": steps,
        "iterations": live.iterations_done,
        "world_size": live.fabric.world_size,
        "stopped_early": live.state.iteration < live.iterations,
        "wall_seconds": seconds["wall"],
        "collected_steps_per_second": steps / max(seconds["collect"], 1e-9),
        "consumed_steps_per_second": steps / max(seconds["learn"], 1e-9),
        "overall_steps_per_second": steps / max(seconds["wall"], 1e-9),
    }
    if stopped_by is not None:
        summary["stopped_by"] = stopped_by
    if inference:
        summary["inference"] = True
        del summary["consumed_steps_per_second"]
    for window, name in RECENT_EPISODES.items():
        summary[name] = _mean(recent[window])
    for name in ("touches_per_minute", "goals_per_minute"):
        if f"game/{name}" in live.trace:
            summary[name] = live.trace.start_and_end(f"game/{name}")
    newest = run.newest_checkpoint if run is not None else None
    if newest is not None:
        summary["checkpoint"] = str(newest)
    return summary


def _explained_variance(batch: Minibatch) -> float:
    """1 - Var(returns - values) / Var(returns), of the sums over the reward signals."""
    returns, values = batch.returns, batch.value
    if returns.dim() > batch.advantage.dim():
        returns, values = returns.sum(dim=-1), values.sum(dim=-1)
    variance = returns.var()
    return float(1 - (returns - values).var() / variance) if variance > 0 else 0.0


def _distances(module: ActorCritic, before: list[Tensor]) -> dict[str, float]:
    """L2 norms of the change of all parameters, and of those of each part of the agent (`actor`, `critic`...).

    Raises:
        NonFiniteError: A parameter became NaN or infinite.
    """
    squares: dict[str, list[Tensor]] = {}
    for (name, p), old in zip(module.named_parameters(), before, strict=True):
        squares.setdefault(name.partition(".")[0], []).append((p.detach() - old).square().sum())
    parts = torch.stack([whole(torch.stack(each).sum()) for each in squares.values()])
    distance, *own = torch.cat((parts.sum()[None], parts)).sqrt().tolist()
    if not math.isfinite(distance):
        raise NonFiniteError(f"the weights became {distance} in the last minibatch")
    names = (f"ppo/update_magnitude_{name}" for name in squares)
    return {"ppo/update_magnitude": distance} | (dict(zip(names, own, strict=True)) if len(own) > 1 else {})


def _with_evidence(error: Exception, live: Live, run: Run | None, before: list[Tensor]) -> NonFiniteError:
    """Saves the rollout and the weights before it, and says where."""
    if run is None:
        return NonFiniteError(str(error))
    path = run.dir / f"nonfinite-rank{live.fabric.global_rank}.pt"
    names = [name for name, _ in live.module.named_parameters()]
    weights = dict(zip(names, map(shard_of, before), strict=True))
    tensors = {name: value for name, value in vars(live.rollout).items() if isinstance(value, Tensor)}
    try:
        torch.save({"rollout": tensors, "weights_before": weights, "message": str(error)}, path)
    except (OSError, RuntimeError):  # a full disk
        return NonFiniteError(str(error))
    return NonFiniteError(f"{error}. Rollout and the weights before it are in {path}")
