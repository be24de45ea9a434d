"""Train an agent: `python train_fabric.py --config configs/rocket_1v1.yaml`, or under `fabric run`.

The signature of `main()` is the command line (`--help`). The same function works from a notebook:
`main(env=partial(RocketSimPool, num_arenas=16), agent=MyAgent, args=TrainArgs(total_timesteps=50_000))`.
"""

import fabric_rl  # noqa: F401 - before torch: it sets how OpenMP's threads wait
from fabric_rl.base.processes import exit_without_packages

if __name__ == "__main__":
    exit_without_packages()
    from fabric_rl.ranks.processes import exit_with_launcher

    exit_with_launcher()  # before the slow imports

# isort: split
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
from lightning.fabric.loggers.logger import Logger

from agents import PPOLightningAgent, RolesAgent
from envs import GymnasiumEnvs, RocketSimPool
from envs.factories import to_config, unwrap_partial
from fabric_rl import GAE, Callback, Estimator, Hardware, RoleTrainer, SACArgs, Saving, StartArgs, TrainArgs
from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.base.errors import exit_with_message
from fabric_rl.callbacks import Callbacks, Evaluation, Profiler
from fabric_rl.callbacks.observers import RecordGames, RunVideos, ShowGames
from fabric_rl.cli.command_line import read_settings, settings_as_yaml
from fabric_rl.cli.launch_fabric import divide_cores, launch_fabric
from fabric_rl.cli.report import exit_on_error, format_summary, format_unsaved, next_steps
from fabric_rl.commands.export import write_final
from fabric_rl.evaluation.demonstrations import choose_algorithm, trajectories_of
from fabric_rl.evaluation.players import load_guests
from fabric_rl.imitation import Cloning, Kickstart
from fabric_rl.metrics.log import log_warnings, print_lines, program_name
from fabric_rl.ranks import launched_by
from fabric_rl.runs.announcement import Announcement, build_loggers
from fabric_rl.runs.start_or_resume import open_run
from fabric_rl.runs.trained import deterministic_agent, load_trained
from fabric_rl.selfplay import SelfPlay
from fabric_rl.signals import SignalFactory
from fabric_rl.types import AgentFactory, EnvFactory
from fabric_rl.viewer.feeds import GAMES

_ABOUT = """Train an agent with PPO or SAC (--agent agents.SACLightningAgent) on Lightning Fabric. Without --config,
--env and --env_id, the preset configs/rocket_1v1.yaml is used. Choose a class by its path (--agent
agents.RecurrentPPOAgent) and add its settings (--agent.actor_lr 1e-3). --agent.help and --env.help list the settings of
the chosen class, --agent.help CLASS those of another class."""


def main(
    env: EnvFactory = RocketSimPool,
    agent: AgentFactory = PPOLightningAgent,
    args: TrainArgs = TrainArgs(),  # noqa: B008 - frozen
    start: StartArgs = StartArgs(),  # noqa: B008 - frozen
    saving: Saving = Saving(),  # noqa: B008 - frozen
    hardware: Hardware = Hardware(),  # noqa: B008 - frozen
    estimator: Estimator = GAE(),  # noqa: B008 - has no state
    self_play: SelfPlay | None = None,
    cloning: Cloning | None = None,
    kickstart: Kickstart | None = None,
    env_id: type[gymnasium.Env[Any, Any]] | str | None = None,
    num_envs: int | None = None,
    env_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]] = (),
    capture_video: bool = False,
    render: bool = False,
    watch: bool = False,
    callbacks: Callback | Sequence[Callback] = (),
    signals: Sequence[SignalFactory] = (),
    logger: Logger | list[Logger] | None = None,
    profile: bool = False,
    plain: bool | None = None,
    sac: SACArgs = SACArgs(),  # noqa: B008 - frozen
    trainers: Mapping[str, RoleTrainer] | None = None,
    resolved_config: str | None = None,
) -> dict[str, Any]:
    """Train an actor-critic agent with PPO or SAC on Lightning Fabric.

    Args:
        env: Environment class (a Gymnasium VectorEnv) with its settings; every rank builds one.
        agent: Agent class with its settings; it receives the environment's spaces.
        args: Settings of the training loop.
        start: How the run starts.
        saving: What the run saves, and how often.
        hardware: Hardware of the run.
        estimator: Estimator of advantages and value targets for each rollout (docs/research.md).
        self_play: Opponents in the environment: snapshots of the agent, bots, other agents (docs/selfplay.md).
        cloning: Behavior cloning of demonstrations in addition to PPO or SAC (docs/demonstrations.md).
        kickstart: Reference policy that the agent stays close to, less and less over time (docs/demonstrations.md).
        env_id: Gymnasium id such as CartPole-v1, or path of a gymnasium.Env class, in place of `env`.
        num_envs: Number of copies of `env_id` on every rank. Default: 4.
        env_kwargs: Settings of `env_id`, for example '{"continuous": true}'.
        wrappers: Gymnasium wrappers around `env_id`, the innermost first.
        capture_video: Record mp4 videos of rank 0's first sub-environment into the run folder and TensorBoard.
        render: Show rank 0's first arena in RocketSimVis, which you start separately (docs/watching.md).
        watch: Show the games that the run records (--record_minutes) in the browser.
        callbacks: Callbacks that run at fixed points of the training loop (docs/callbacks.md).
        signals: Rewards in addition to the environment's: curiosity, RND, imitation (docs/signals.md).
        logger: Fabric logger, or several, in place of TensorBoard (docs/runs.md); `metrics.csv` is always written.
        profile: Write a torch profiler trace of a few iterations into the run folder, for TensorBoard or Perfetto.
        plain: Print lines instead of the live table. Default: only if standard output is not a terminal.
        sac: Settings of agents that learn from a replay buffer (docs/sac.md).
        trainers: Role -> settings of its trainer, for agents.RolesAgent (docs/two_policies.md).
        resolved_config: All settings as YAML, kept in the run folder. Default: the arguments that YAML can represent.

    Returns:
        The contents of `runs/<run_id>/summary.json`.
    """
    if resolved_config is None:
        if signals and unwrap_partial(agent).lacks("value_heads"):
            agent = partial(agent, value_heads=1 + len(signals))
        resolved_config, lost = settings_as_yaml(main, locals(), to_config)
        if lost and launched_by.is_rank_0():
            note = f"config.yaml cannot store {', '.join(lost)}; pass it again when you load the run (docs/export.md)"
            print_lines(f"note: {note}")
    of_id = {"--num_envs": num_envs is not None, "--env_kwargs": env_kwargs is not None, "--wrappers": bool(wrappers)}
    if env_id is None and (given := ", ".join(flag for flag, is_given in of_id.items() if is_given)):
        raise ValueError(
            f"{given}: only for --env_id; other environments have settings of their own, such as --env.num_arenas"
        )
    if env_id is not None:
        copies = 4 if num_envs is None else num_envs
        env = partial(GymnasiumEnvs, env_id, copies, wrappers=wrappers, settings=env_kwargs)
    made = unwrap_partial(env).function
    for flag, wanted, setting in (("capture_video", capture_video, "video_folder"), ("render", render, "render_mode")):
        if wanted and args.num_players:
            raise ValueError(f"--{flag} needs an environment on rank 0, which has none with --num_players")
        if wanted and setting not in inspect.signature(made).parameters:
            able = "RocketSimPool" if render else "RocketSimPool and --env_id"
            raise ValueError(f"--{flag} works with {able}, not with {made.__name__}, which has no {setting}")
    if watch and saving.record_minutes is None:
        raise ValueError("--watch shows the games that the run records; set --record_minutes as well")
    trainer = choose_algorithm(agent, env, estimator, sac, signals, start.inference, trainers or {})
    with open_run(env, agent, args, start, resolved_config) as opened:
        fabric = launch_fabric(hardware, args.num_players, build_loggers(opened, logger))
        launched_by.check_same_settings(fabric, resolved_config)
        opened.share(fabric)
        run = opened.run
        if run is None:  # a later call of main() in the script has started this process
            summary = trainer(fabric, env, agent, args)
            launched_by.disconnect_at_exit()
            return summary
        cores = divide_cores(fabric, hardware.num_threads or (opened.state or {}).get("num_threads"))
        announcement = Announcement(opened, args, resolved_config, cores)
        hooks = [*([callbacks] if isinstance(callbacks, Callback) else callbacks)]
        for hook in (hook for hook in hooks if isinstance(hook, Evaluation | Callbacks)):
            hook.play_in(env)
        if saving.record_minutes is not None:
            hooks.append(RecordGames(run.dir / GAMES, saving.record_minutes, saving.keep_games))
        hooks += [ShowGames(run.dir / GAMES)] if watch else []
        if cloning is not None and not start.inference:
            hooks.append(cloning.show(trajectories_of(cloning.demos, env, soft=cloning.soft_labels)))
        if kickstart is not None and not start.inference:
            hooks.append(kickstart.take(load_trained(kickstart.reference, start.runs_dir)))
        hooks += [*([] if self_play is None else [self_play]), announcement]  # last: it starts the run
        hooks += [Profiler(run.dir / "profile")] if profile else []
        if capture_video:
            hooks.append(RunVideos(run.videos))
            env = partial(env, video_folder=run.videos) if fabric.is_global_zero else env
        if render and fabric.is_global_zero:
            env = partial(env, render_mode="human")
        if self_play is not None:
            guests = load_guests(self_play.guests, env, start.runs_dir, args.seed, fabric.global_rank, run.dir)
            env = self_play.around(env, agent, guests, fixed_sides=unwrap_partial(agent).function is RolesAgent)
        agent = deterministic_agent(agent) if start.deterministic else agent
        states = {"resume": opened.state, "weights": opened.weights_to_load()}
        summary = trainer(fabric, env, agent, args, run, hooks, plain, saving, **states, inference=start.inference)
        if fabric.is_global_zero:
            write_final(run, summary, saving.final_model, opened.steps)
            print_lines(format_summary(run, summary))
    launched_by.disconnect_at_exit()
    return summary


def cli(argv: Sequence[str] | None = None, again: bool = False) -> None:
    """Run `main()` with the settings of a command line; a user's mistake causes a one-line error and exit status 2.

    Args:
        argv: Command line without the program's name. Default: the command line of this process.
        again: Repeat a finished run: no modules from beside its configuration, and no commands to try next.
    """
    with exit_on_error(), log_warnings():
        settings = read_settings(main, argv, _ABOUT, DEFAULT_CONFIG, own_files=not again)
        summary = main(**settings.arguments)
        if not again and launched_by.is_rank_0() and "checkpoint" in summary:
            args, start = settings.arguments["args"], settings.arguments["start"]
            print_lines(next_steps(settings.given, args, summary, start.runs_dir))
        if launched_by.is_rank_0() and "unsaved_steps" in summary:
            message = f"{format_unsaved(summary)}; free space, then continue with --run_id {summary['run_id']} --resume"
            exit_with_message(program_name(), message, status=1)


if __name__ == "__main__":
    cli()
