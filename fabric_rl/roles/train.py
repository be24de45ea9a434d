"""The training loop of several roles: collect together -> each role learns with its own algorithm."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from lightning import Fabric

from fabric_rl.args import ONLY_PPO, SACArgs, Saving, TrainArgs
from fabric_rl.base.seeding import stream_seed
from fabric_rl.base.text import did_you_mean
from fabric_rl.callback import Callback, TrainState
from fabric_rl.dry_run import error_context
from fabric_rl.hooks import Hooks
from fabric_rl.learning.gae import GAE, Estimator
from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.collectives import raised_on_all_ranks
from fabric_rl.ranks.devices import single_thread
from fabric_rl.ranks.sharding import is_sharded
from fabric_rl.roles.parts import Role, RoleEnv, RolesCollector, RolesLearner
from fabric_rl.runs.folder import Run
from fabric_rl.sac.train import OffPolicyAlgorithm, loop_settings
from fabric_rl.selfplay.self_play import SelfPlay
from fabric_rl.session.build import Algorithm, build, build_env, dry_run_saving, finish, settings_of
from fabric_rl.session.monitor import TrainingMonitor
from fabric_rl.session.nan_dump import dump_on_nan
from fabric_rl.session.saving import Saver
from fabric_rl.session.session import Session
from fabric_rl.session.stopping import StopSignals
from fabric_rl.signals.base import SignalFactory
from fabric_rl.signals.signals import IntrinsicRewards
from fabric_rl.types import AgentFactory, EnvFactory, HasMetrics, HasRoles, HasSeeds, HasTeacher, OffPolicyAgent

OF_RUN = ("total_timesteps", "summary_freq", "seed", "overlap", "num_players")
"""Settings of `TrainArgs` that all roles share."""


@dataclass(frozen=True)
class RoleTrainer:
    """Settings of the trainer of one role (docs/two_policies.md)."""

    named_settings: ClassVar[str] = "settings"
    """Field that takes settings by their names; an error about an unknown field points to it."""

    settings: dict[str, Any] = field(default_factory=dict)
    """Settings in place of the run's, by the names of their flags, for example `{gamma: 0.98, update_epochs: 4}`."""
    signals: Sequence[SignalFactory] = ()
    """Reward signals in addition to the environment's reward; the role's agent needs one value head for each."""


def train_roles(
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
    sac: SACArgs = SACArgs(),  # noqa: B008 - frozen
    trainers: Mapping[str, RoleTrainer] = {},
) -> dict[str, Any]:
    """Train the agents of an `agents.RolesAgent`, each with its own trainer. Call it on every rank.

    The arguments, the return value and the errors are those of `fabric_rl.train`, with these differences: `args` and
    `sac` are the settings of all roles (each algorithm uses its own), and `trainers` replaces some of them for single
    roles. An iteration collects `args.num_steps` steps. After it, a PPO role learns if its own `num_steps` are
    collected, a multiple of that; a SAC role makes all updates that are due by its `train_interval`, a divisor.
    `args.total_timesteps` counts the steps of all roles.

    Raises:
        ValueError: As in `fabric_rl.train`; also if `trainers` names an unknown role or setting, or for `args` or
            callbacks that do not work with several roles.
    """
    session, roles = _build(fabric, env, agent, args, run, callbacks, estimator, inference, sac, trainers)
    exact = session.begin(resume, weights)
    monitor = TrainingMonitor(session, plain, resume)
    saver = Saver(session, monitor, saving, exact)
    state, hooks, collector, learner = session.state, session.hooks, session.collector, session.learner

    with hooks, monitor, StopSignals(state) as stops, dump_on_nan(session):
        saver.begin(resume)
        while not state.done:
            hooks.on_iteration_start()
            learner.apply_schedules(state.progress, state.learning_rate, state.learning_rate_factor)
            for role in roles:
                role.begin_iteration()
            with monitor("collect"):
                collector.next_rollout()  # [T, N] of each role
            with monitor("learn"):
                losses = {name: value for role in roles for name, value in role.learn().items()}
            state.advance()
            monitor.reduce(losses)
            hooks.on_iteration_end()
            monitor.publish()
            saver.after_iteration(stops.agree(saver.minutes_due))
    return finish(session, monitor, saver)


def _build(
    fabric: Fabric,
    env: EnvFactory,
    agent: AgentFactory,
    args: TrainArgs,
    run: Run | None,
    callbacks: Sequence[Callback],
    estimator: Estimator,
    inference: bool,
    sac: SACArgs,
    trainers: Mapping[str, RoleTrainer],
) -> tuple[Session, list[Role]]:
    """Build the session of the run and the trainers of its roles, and try them; every rank calls this."""
    if args.overlap or args.num_players:
        flag = "--overlap" if args.overlap else "--num_players"
        raise ValueError(f"{flag} does not work with --agent RolesAgent, whose roles learn in turn; leave it out")
    for callback in callbacks:
        if type(callback).on_learn_start is not Callback.on_learn_start and not isinstance(callback, SelfPlay):
            name = type(callback).__name__
            raise ValueError(f"--callbacks {name} works on the batch of one agent, not with --agent RolesAgent")
    fabric.seed_everything(args.seed, verbose=False)  # equal weights everywhere
    seed = stream_seed(args.seed, "environments")
    envs = build_env(env, seed)
    with single_thread():  # as in `build`: threads would affect how the first weights are rounded
        module: Any = agent(envs.single_observation_space, envs.single_action_space)
    own_agents: dict[str, Any] = dict(module.roles) if isinstance(module, HasRoles) else {}
    if not own_agents:
        raise TypeError(f"--agent {type(module).__name__} has no roles; train it with fabric_rl.train")
    if unknown := next((name for name in trainers if name not in own_agents), None):
        raise ValueError(f"--trainers.{unknown}: the agent's roles are {', '.join(own_agents)}")
    first = fabric.global_rank * (envs.num_seeds if isinstance(envs, HasSeeds) else envs.num_envs)
    with raised_on_all_ranks(fabric), error_context(f"--env {type(envs).__name__}.reset()"):
        numbers = np.asarray(envs.reset(seed=seed + first)[0])[:, -1]
    timers, roles = Timers(enabled=fabric.is_global_zero), list[Role]()
    for number, (name, own_agent) in enumerate(own_agents.items()):
        view, trainer = RoleEnv(envs, np.flatnonzero(numbers == number), number), trainers.get(name, RoleTrainer())
        make_env: Any = lambda seed, view=view: view  # noqa: E731
        make_agent: Any = lambda *spaces, own_agent=own_agent: own_agent  # noqa: E731
        try:
            if not view.num_envs:
                raise ValueError("no car of --env has this role")
            own, own_sac = role_settings(trainer.settings, args, sac, isinstance(own_agent, OffPolicyAgent))
            own = replace(own, seed=stream_seed(args.seed, "roles", number))
            algorithm = Algorithm() if own_sac is None else OffPolicyAlgorithm(own_sac)
            parts = (estimator, inference, algorithm, trainer.signals, timers)
            session = build(fabric, make_env, make_agent, own, None, (), *parts)
            if is_sharded(session.agent):
                raise ValueError("--strategy fsdp cannot shard the agents of several roles; use --strategy ddp")
            if own_sac is None:
                session.dry_run_estimator()
        except (ValueError, TypeError) as error:
            envs.close()
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"--trainers.{name}: {error}") from error
        roles.append(Role(name, view, session, own_sac))
    if isinstance(envs, HasTeacher):
        envs.enable_teacher(any(role.session.collector.rollout.teacher_action is not None for role in roles))
    if isinstance(envs, HasMetrics):
        envs.drain_metrics()
    module.to(fabric.device)
    module.progress = module.progress.to(fabric.device)
    collector = RolesCollector(fabric, envs, module, roles, args.num_steps, timers)
    dry_run_saving(fabric, collector)
    torch.manual_seed(stream_seed(args.seed, "actions", fabric.global_rank))  # ranks explore differently
    collector.begin(args.seed, first)

    each = args.num_steps * envs.num_envs * fabric.world_size
    state = TrainState(
        fabric, module, envs, args, steps_per_iteration=each, iterations=math.ceil(args.total_timesteps / each)
    )
    state.run_id, state.folder = (None, None) if run is None else (run.name, run.dir)
    state.peers = fabric
    no_signals = IntrinsicRewards((), args, fabric, fabric, envs.num_envs)
    learner, hooks = RolesLearner(fabric, module, roles, args.num_steps), Hooks(state, callbacks, learns=not inference)
    objects = (hooks, module, estimator, torch.zeros(()), collector, learner, timers, no_signals)
    settings = asdict(args) | settings_of("env", env) | settings_of("agent", agent)
    return Session(fabric, args, run, state, *objects, inference=inference, settings=settings), roles


def role_settings(
    given: Mapping[str, Any], args: TrainArgs, sac: SACArgs, off_policy: bool
) -> tuple[TrainArgs, SACArgs | None]:
    """Return the settings of a role's trainer: those of the run, replaced by the `given` ones.

    A SAC role makes all updates of an iteration at once, so its `train_interval` and `num_update` are converted.

    Raises:
        ValueError: A setting is unknown, wrong, of the other algorithm, or does not fit the run's `num_steps`.
    """
    for_all = {each.name for each in fields(TrainArgs)} - {*OF_RUN}
    for_sac = {each.name for each in fields(SACArgs)} - {"demonstrations", "demonstration_share"}
    known = (for_all - {*ONLY_PPO}) | for_sac if off_policy else for_all
    for name in given:
        if name not in known:
            why = "is a setting of the whole run" if name in OF_RUN else "is not a setting of this role's trainer"
            raise ValueError(f"{name} {why}{did_you_mean(name, sorted(known))}")
    of_ppo = ONLY_PPO if off_policy else ()
    base: dict[str, Any] = {each.name: each.default for each in fields(TrainArgs) if each.name in of_ppo}
    own = replace(args, **base, **{name: value for name, value in given.items() if name in for_all})
    steps = args.num_steps
    if not off_policy:
        if own.num_steps % steps:
            raise ValueError(f"num_steps {own.num_steps} must be a multiple of the run's --num_steps {steps}")
        return own, None
    own_sac = replace(sac, **{name: value for name, value in given.items() if name in for_sac})
    rounds, rest = divmod(steps, own_sac.train_interval)
    if rest:
        raise ValueError(f"train_interval {own_sac.train_interval} must divide the run's --num_steps {steps}")
    if own_sac.hold_random_actions and rounds > 1:
        raise ValueError(f"hold_random_actions needs train_interval {steps}, the run's --num_steps")
    updates, signals = own_sac.num_update * rounds, own_sac.reward_signal_num_update
    own = replace(loop_settings(own, own_sac), num_steps=steps)
    signals = None if signals is None else signals * rounds
    return own, replace(own_sac, train_interval=steps, num_update=updates, reward_signal_num_update=signals)
