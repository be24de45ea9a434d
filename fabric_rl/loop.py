"""Training loop: collect -> advantages -> learn, readable from top to bottom."""

from collections.abc import Sequence
from typing import Any

from lightning import Fabric

from fabric_rl.args import Saving, TrainArgs
from fabric_rl.callback import Callback
from fabric_rl.learning.gae import GAE, Estimator
from fabric_rl.runs.folder import Run
from fabric_rl.session.build import Algorithm, build, finish
from fabric_rl.session.monitor import TrainingMonitor
from fabric_rl.session.nan_dump import dump_on_nan
from fabric_rl.session.saving import Saver
from fabric_rl.session.stopping import StopSignals
from fabric_rl.signals.base import SignalFactory
from fabric_rl.types import AgentFactory, EnvFactory


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
    estimator: Estimator = GAE(),  # noqa: B008 - has no state
    signals: Sequence[SignalFactory] = (),
) -> dict[str, Any]:
    """Train an agent with PPO. Call it on every rank, after `fabric.launch()`.

    Args:
        fabric: Lightning Fabric with the devices, the precision and the loggers.
        env: Factory that builds this rank's environment.
        agent: Factory that builds the agent from the spaces of one sub-environment.
        args: Settings of the training loop.
        run: Run folder for checkpoints and the summary. None: nothing is saved (`fabric.loggers` still log).
        callbacks: Callbacks, called in order on every rank.
        plain: Print lines instead of the live view. Default: only if standard output is not a terminal.
        saving: When to save checkpoints and milestones in `run`.
        resume: Checkpoint to resume from (see `fabric_rl.load_checkpoint`).
        weights: Checkpoint whose weights a new run starts with.
        inference: Play without learning; only metrics and the summary are saved.
        estimator: Estimator of the advantages and value targets of each rollout.
        signals: Reward signals in addition to the environment's reward; the agent needs one value head for each.

    Returns:
        The summary, with the content of `runs/<run_id>/summary.json` (docs/runs.md). On rank 0 it also contains
        `unsaved_steps` if the last checkpoint could not be written.

    Raises:
        ValueError: Settings, environment and agent do not fit together, or one of them is invalid. Raised before any
            step is collected.
        TypeError: The environment is not a `VectorEnv`, the agent is not an `ActorCritic`, or its optimizer is not an
            `Optimizer`.
        CheckpointError: The checkpoint in `resume` or `weights` belongs to a different architecture.
        NonFiniteError: Observations, rewards or the loss contain NaN or infinity.
        NotEnoughMemoryError: There is not enough memory for a rollout or a training step.
    """
    session = build(fabric, env, agent, args, run, callbacks, estimator, inference, Algorithm(), signals)
    session.dry_run_estimator()
    exact = session.begin(resume, weights)
    monitor = TrainingMonitor(session, plain, resume)
    saver = Saver(session, monitor, saving, exact)
    state, hooks, collector, learner = session.state, session.hooks, session.collector, session.learner
    signal_size = state.minibatch_size  # callbacks may change the policy's

    with hooks, monitor, StopSignals(state) as stops, dump_on_nan(session):
        saver.begin(resume)
        while not state.done:
            hooks.on_iteration_start()
            learner.apply_schedules(state.progress, state.learning_rate, state.learning_rate_factor)
            with monitor("collect"):
                rollout = collector.next_rollout()  # [T, N]
            with monitor("advantages"):
                session.signals.add_intrinsic_rewards(rollout)
                advantage, returns = session.estimate(rollout)  # [T, N]
            batch = hooks.on_learn_start(rollout.flat(advantage, returns))  # [T * N]
            with collector.while_learning(another=state.goes_on), monitor("learn"):  # --overlap plays here
                losses = learner.learn(batch, state.minibatch_size)  # epochs x minibatches of agent.training_step
                losses |= session.signals.learn(rollout, signal_size)
            state.advance()
            monitor.reduce(losses)
            hooks.on_iteration_end()
            monitor.publish()
            save_now = stops.agree(saver.minutes_due)  # all ranks stop, or save, after the same iteration
            saver.after_iteration(save_now)
    return finish(session, monitor, saver)
