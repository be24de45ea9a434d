"""Demonstrations: recording, describing and reading them, and passing them to whatever learns from them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Box
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from agents import RolesAgent
from envs.adapters.gymnasium_envs import GymnasiumEnvs
from envs.demonstrations.file import Demonstration, DemonstrationWriter, columns_of_states
from envs.demonstrations.record import (
    RecordedEnvs,
    observation_columns,
    observations_header,
    record_states,
    states_header,
)
from envs.demonstrations.trajectories import observation_trajectories, trajectories
from envs.factories import to_config, unwrap_partial
from envs.matches.matches import PoolFactory
from fabric_rl.args import SACArgs
from fabric_rl.base.argv import resolve_preset
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.evaluation.matches import Duel
from fabric_rl.evaluation.players import pool_factory_or_none, short_name
from fabric_rl.evaluation.settings import ActSettings
from fabric_rl.learning.gae import GAE, Estimator
from fabric_rl.loop import train
from fabric_rl.roles.train import RoleTrainer, train_roles
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs.trained import Trained
from fabric_rl.sac.train import train_off_policy
from fabric_rl.signals.base import SignalFactory
from fabric_rl.types import AgentFactory, EnvFactory, OffPolicyAgent


def env_name(env: EnvFactory) -> str:
    """Return the name that demonstrations use for an environment that is not a pool: its Gymnasium id or class."""
    call = unwrap_partial(env)
    if call.function is GymnasiumEnvs:
        return str(to_config(call.arguments()["env_id"]))
    return getattr(call.function, "__name__", type(call.function).__name__)


def trajectories_of(
    paths: Sequence[str | Path],
    env: EnvFactory,
    flag: str = "--cloning.demos",
    soft: bool = False,
    rewards: bool = False,
) -> list[Trajectory]:
    """Read demonstrations as observations and actions of the agents of `env`.

    Args:
        paths: Demonstrations (.frd).
        env: Builds the environment of the agents that learn.
        flag: Flag that names the files, for messages.
        soft: Also fill `Trajectory.soft`, in pools with an action table.
        rewards: Also fill `Trajectory.reward` in pools, with the reward of `env` (in its first phase).

    Returns:
        All trajectories of all files, in order.

    Raises:
        ValueError: There are no files, or one is damaged, empty, or from another environment; the message is one line
            that names the flag and the file.
        OSError: A file cannot be read.
    """
    if not paths:
        raise ValueError(f"{flag}: name at least one demonstration (fabric-rl demos record makes them)")
    found: list[Trajectory] = []
    recipe = pool_factory_or_none(env)
    for path in map(resolve_preset, paths):
        try:
            demonstration = Demonstration(path)
            before = len(found)
            found += _of_pool(demonstration, recipe, soft, rewards) if recipe else _of_env(demonstration, env)
            if len(found) == before:
                raise ValueError(f"{path} contains no steps")
        except (OSError, ValueError) as error:
            raise type(error)(f"{flag} {error}") from error
    return found


def _of_pool(demonstration: Demonstration, recipe: PoolFactory, soft: bool, rewards: bool) -> Iterator[Trajectory]:
    path, about = demonstration.path, demonstration.about
    if not demonstration.of_states:
        raise ValueError(f"{path} contains observations of {about.get('env')}, not states of Rocket League")
    if about["tick_skip"] != recipe.tick_skip:
        raise ValueError(
            f"{path} has a frame every {about['tick_skip']} ticks, but the environment decides every "
            f"{recipe.tick_skip}; record it with --tick_skip {recipe.tick_skip}"
        )
    blue, orange = about["teams"].count(0), about["teams"].count(1)
    with closing(recipe.build(num_arenas=len(recipe.team_sizes))) as pool:
        obs, action, space = pool.obs_builder, pool.action_parser, pool.single_observation_space
    try:
        shape: Any = obs.space(blue, orange).shape
    except ValueError as error:
        reason = f"which the environment's observations do not support ({error})"
        raise ValueError(f"{path} contains {blue}v{orange}, {reason}") from error
    if shape != space.shape:
        sizes = " and ".join(f"{a}v{b}" for a, b in recipe.team_sizes)
        raise ValueError(f"{path} contains {blue}v{orange}, but the environment has {sizes}, whose observations differ")
    return trajectories(demonstration, blue, obs, action, soft, recipe.reward() if rewards else None)


def _of_env(demonstration: Demonstration, env: EnvFactory) -> Iterator[Trajectory]:
    path, about = demonstration.path, demonstration.about
    if demonstration.of_states:
        raise ValueError(f"{path} contains states of Rocket League, not observations of {env_name(env)}")
    with closing(env(seed=0)) as envs:
        spaces = envs.single_observation_space, envs.single_action_space
    mine = {"env": env_name(env), "observation_space": str(spaces[0]), "action_space": str(spaces[1])}
    for name, own in mine.items():
        if about.get(name) != own:
            raise ValueError(f"{path} was recorded with the {name.replace('_', ' ')} {about.get(name)}, not with {own}")
    discrete = not isinstance(spaces[1], Box)
    shapes = {column.name: column.shape for column in observation_columns(*spaces, masks=discrete)}
    for column in demonstration.columns:
        if column.shape != (here := shapes.get(column.name, column.shape)):
            raise ValueError(f"{path}: column {column.name} has {list(column.shape)} per frame, not {list(here)}")
    return observation_trajectories(demonstration, *spaces)


def record_matches(
    duel: Duel, out: Path, both: bool, minutes: float = 10.0, random_starts: float = 0.5, noise: float = 0.0
) -> DemonstrationWriter:
    """Record matches of two players, with the first one or `both` as demonstrators; see `fabric-rl demos record`."""
    rules = duel.rules
    size, seed = rules.team_size, rules.play.seed
    demonstrators = range(2 * size if both else size)
    about = states_header(duel.names, [0] * size + [1] * size, demonstrators, rules.tick_skip)
    about |= {"noise": noise} if noise else {}
    with DemonstrationWriter(out, columns_of_states(2 * size, noise > 0), about) as writer:
        shape = (size, seed, rules.tick_skip, rules.action_delay_ticks)
        record_states(duel.bots(seed), writer, minutes, *shape, random_starts, noise)
    return writer


def record_episodes(trained: Trained, out: Path, episodes: int, act: ActSettings) -> DemonstrationWriter:
    """Record episodes of an agent in the environment it was trained in."""
    with closing(trained.env(seed=act.seed)) as envs:
        spaces = envs.single_observation_space, envs.single_action_space
        about = observations_header(short_name(trained.name), env_name(trained.env), *spaces)
        choose = trained.choose(*spaces, not act.sample, act.seed)
        masks = "action_mask" in envs.reset(seed=act.seed)[1]
        with DemonstrationWriter(out, observation_columns(*spaces, masks), about) as writer:
            play_episodes(RecordedEnvs(envs, writer, episodes), choose, episodes, act.seed)
    return writer


def demonstration_summary(demonstration: Demonstration) -> dict[str, Any]:
    """Read a whole demonstration, and return its contents as numbers and texts."""
    about = {name: value for name, value in demonstration.about.items() if name != "columns"}
    steps, returns, actions, weights = list[int](), list[float](), list[Any](), list[Any]()
    terminated = touches = 0
    for episode in demonstration.episodes():
        steps.append(episode.steps)
        terminated += episode.terminated
        if demonstration.of_states:
            cars = [int(car) for car in about["demonstrators"]]
            actions.append(episode.columns["controls"][1:, cars].reshape(-1, 8))
            weights.append(episode.columns["weight"][1:, cars].ravel())
            touched = episode.columns["cars"][:, cars, 9] > 0
            touches += int((touched[1:] & ~touched[:-1]).sum())
        else:
            actions.append(episode.columns["action"][1:])
            returns.append(float(episode.columns["reward"].sum()))
    found = about | {"episodes": len(steps), "terminated": terminated, "steps": sum(steps)}
    if steps:
        found["mean_length"] = float(np.mean(steps))
        every = np.concatenate(actions).reshape(sum(map(len, actions)), -1)
        found["action_mean"] = every.mean(axis=0, dtype=np.float64).round(4).tolist()
        found["action_std"] = every.std(axis=0, dtype=np.float64).round(4).tolist()
    if returns:
        found |= {"mean_return": float(np.mean(returns)), "least_return": min(returns), "greatest_return": max(returns)}
    if weights:
        minutes = sum(steps) * about["tick_skip"] / TICKS_PER_SECOND / 60
        found |= {"minutes": minutes, "touches_per_car_minute": touches / max(minutes * len(cars), 1e-9)}
        found["inferred_share"] = float((np.concatenate(weights) < 1).mean())
    return found


def with_demonstrations(signal: SignalFactory, env: EnvFactory, role: int | None = None) -> SignalFactory:
    """Return the signal, with its demonstrations loaded if it learns from any; with `role`, only those of that role.

    Raises:
        ValueError: A file does not fit the environment; the message is one line that names the flag.
    """
    call = unwrap_partial(signal)
    if not hasattr(call.function, "show"):
        return signal
    name = f"--signals {getattr(call.function, '__name__', '')}: demos"
    found = trajectories_of(call.arguments().get("demos") or (), env, name)
    if role is not None:
        found = [each._replace(obs=each.obs[:, :-1]) for each in found if each.obs[0, -1] == role]
        if not found:
            raise ValueError(f"{name}: no demonstrator has this role")
    return lambda *spaces: signal(*spaces).show(found)  # type: ignore[operator]  # checked above


def roles_of(agent: AgentFactory) -> Mapping[str, AgentFactory]:
    """Return the factories of the roles of a `RolesAgent` by name; empty for another agent."""
    call = unwrap_partial(agent)
    has_roles = isinstance(call.function, type) and issubclass(call.function, RolesAgent)
    return call.arguments().get("roles") or {} if has_roles else {}


def off_policy_parts(agent: AgentFactory) -> list[bool]:
    """Return for each role of an agent, or for the agent itself, whether it learns off-policy, as SAC does."""
    kinds = [unwrap_partial(part).function for part in roles_of(agent).values() or [agent]]
    return [isinstance(kind, type) and issubclass(kind, OffPolicyAgent) for kind in kinds]


def choose_algorithm(
    agent: AgentFactory,
    env: EnvFactory,
    estimator: Estimator,
    sac: SACArgs,
    signals: Sequence[SignalFactory],
    inference: bool,
    trainers: Mapping[str, RoleTrainer] = {},
) -> Callable[..., dict[str, Any]]:
    """Return the training loop of an agent with its settings: `train_off_policy`, `train_roles` or `train`.

    Raises:
        ValueError: Some settings belong to the other loop, or a file of `--demonstrations` does not fit.
    """
    made, learns = unwrap_partial(agent).function, not inference
    signals = [with_demonstrations(signal, env) for signal in signals] if learns else signals
    has_roles = isinstance(made, type) and issubclass(made, RolesAgent)
    roles = roles_of(agent)
    off_policy = off_policy_parts(agent)
    if type(estimator) is not GAE and all(off_policy):
        raise ValueError("--estimator is only for PPO, because SAC does not estimate advantages; leave the flag out")
    given = [f"--{field.name}" for field in fields(sac) if getattr(sac, field.name) != field.default]
    if given and not any(off_policy):
        raise ValueError(f"leave out {', '.join(given)}, which only agents that learn with SAC use")
    if has_roles:
        if signals:
            raise ValueError("--signals: set the signals of each role, --trainers.ROLE.signals (docs/two_policies.md)")
        if sac.demonstrations:
            raise ValueError("--demonstrations does not work with --agent agents.RolesAgent; leave it out")
        for number, name in enumerate(roles if learns else ()):
            if name in trainers:
                own = [with_demonstrations(signal, env, number) for signal in trainers[name].signals]
                trainers = {**trainers, name: replace(trainers[name], signals=own)}
        return partial(train_roles, estimator=estimator, sac=sac, trainers=trainers)
    if trainers:
        raise ValueError(
            f"--trainers is for --agent agents.RolesAgent; {made} has one trainer, so set the flags themselves"
        )
    loop = getattr(made, "training_loop", None)
    if not any(off_policy):
        if loop is not None:
            if signals or type(estimator) is not GAE:
                raise ValueError(f"--signals and --estimator are only for PPO, not for {made.__name__}")
            return cast(Callable[..., dict[str, Any]], loop)
        return partial(train, estimator=estimator, signals=signals)
    files = () if inference else sac.demonstrations
    shown = trajectories_of(files, env, "--demonstrations", rewards=True) if files else ()
    return partial(loop or train_off_policy, sac=sac, signals=signals, demonstrations=shown)
