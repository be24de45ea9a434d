"""The trial before training: every part is used once, so that a malformed one is one clear line at the start."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.pytorch.utilities.seed import isolate_rng
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.rollout import find_non_finite
from fabric_rl.types import ActorCritic, ActOutput, HasMetrics, Minibatch

Array = NDArray[Any]
NUMBERS, INTEGERS, FLOATS, BOOLS = "numbers", "integers", "floats", "bools"
_KINDS = {NUMBERS: "fiub", INTEGERS: "iu", FLOATS: "f", BOOLS: "b"}  # numpy's dtype.kind


def try_parts(fabric: Fabric, envs: VectorEnv, agent: ActorCritic, seed: int, minibatch_size: int) -> None:
    """Resets the environment, acts, steps once and evaluates one minibatch; every rank calls it.

    It changes nothing but the environment, which has to be reset afterwards with the same seed: the agent is a copy,
    the random generators are put back, and what the environment has counted is dropped.

    Args:
        fabric: Device and precision.
        envs: This rank's environment.
        agent: The bare module, before `fabric.setup`.
        seed: What `envs.reset` will get.
        minibatch_size: Steps per minibatch on this rank.

    Raises:
        ValueError: A part of any rank is malformed or failed; raised on all ranks with the same message, after the
            environment was closed.
    """
    problem: ValueError | None = None
    with isolate_rng():
        try:
            _trial(fabric, envs, agent, seed, minibatch_size)
        except ValueError as error:
            problem = error
    for rank in range(fabric.world_size):
        message = fabric.broadcast(str(problem or ""), src=rank)
        if message:
            envs.close()
            raise ValueError(message) from problem
    if isinstance(envs, HasMetrics):
        envs.drain_metrics()


def _trial(fabric: Fabric, envs: VectorEnv, agent: ActorCritic, seed: int, minibatch_size: int) -> None:
    name, size = type(envs).__name__, envs.num_envs
    obs_shape = (size, *(envs.single_observation_space.shape or ()))

    with _calling(f"{name}.reset()"):
        first = envs.reset(seed=seed)
    obs = _array(f"{name}.reset(): the observations", _tuple(f"{name}.reset()", first, 2)[0], obs_shape)
    obs_tensor = torch.from_numpy(np.asarray(obs, np.float32)).to(fabric.device)
    acted = _try_agent(fabric, agent, envs.single_action_space, obs_tensor, minibatch_size)

    with _calling(f"{name}.step()"):
        step = envs.step(acted)
    next_obs, rewards, terminated, truncated, infos = _tuple(f"{name}.step()", step, 5)
    _array(f"{name}.step(): the observations", next_obs, obs_shape)
    _array(f"{name}.step(): the rewards", rewards, (size,))
    ended = _array(f"{name}.step(): terminated", terminated, (size,), BOOLS)
    cut = _array(f"{name}.step(): truncated", truncated, (size,), BOOLS)
    if (ended | cut).any():
        if "final_obs" not in infos:
            raise ValueError(f"{name}.step(): episodes ended, but infos lacks 'final_obs', their last observations")
        _array(f"{name}.step(): infos['final_obs']", infos["final_obs"], obs_shape)


def _try_agent(
    fabric: Fabric, agent: ActorCritic, action_space: gymnasium.Space[Any], obs: Tensor, minibatch_size: int
) -> Array:
    """Calls the methods of a copy of the agent and returns its actions for `obs`."""
    name, size = type(agent).__name__, len(obs)
    with _calling(f"{name}: copy.deepcopy()"):
        trial = copy.deepcopy(agent).to(fabric.device)
    trial.fabric = fabric  # as after fabric.setup
    with _calling(f"{name}.act()"), torch.no_grad(), fabric.autocast():
        chosen = trial.act(obs)
    if not isinstance(chosen, ActOutput):
        raise ValueError(f"{name}.act() must return a fabric_rl.ActOutput, got {type(chosen).__name__}")
    with _calling(f"{name}.value()"), torch.no_grad(), fabric.autocast():
        value = trial.value(obs)
    discrete = np.issubdtype(action_space.dtype, np.integer)
    action_shape = (size, *(action_space.shape or ()))
    action = _tensor(f"{name}.act(): action", chosen.action, action_shape, INTEGERS if discrete else FLOATS)
    _tensor(f"{name}.act(): log_prob", chosen.log_prob, (size,))
    _tensor(f"{name}.act(): value", chosen.value, (size,))
    _tensor(f"{name}.value()", value, (size,))
    if discrete and not isinstance(action_space, gymnasium.spaces.Box):
        outside = [row for row in action if not action_space.contains(row)]
        if outside:
            raise ValueError(f"{name}.act(): action {outside[0]} is not in the environment's {action_space}")

    rows = torch.arange(minibatch_size, device=obs.device) % size
    advantage = torch.linspace(-1, 1, minibatch_size, device=obs.device)
    log_prob, old_value = chosen.log_prob.float()[rows], chosen.value.float()[rows]
    minibatch = Minibatch(obs[rows], chosen.action[rows], log_prob, old_value, advantage, old_value + advantage)
    with _calling(f"{name}.training_step()"), fabric.autocast():
        result = trial.training_step(minibatch)
    loss, stats = _tuple(f"{name}.training_step()", result, 2)
    _tensor(f"{name}.training_step(): the loss", loss, ())
    if not loss.requires_grad:
        raise ValueError(f"{name}.training_step(): the loss has no gradient")
    for key, figure in stats.items():
        _tensor(f"{name}.training_step(): the statistic {key!r}", figure, (), NUMBERS)
    return action


@contextmanager
def _calling(what: str) -> Iterator[None]:
    """Says which method failed. A programming error (AttributeError, ...) keeps its type and its traceback."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError, AssertionError, FloatingPointError) as error:
        text = f"{error}" or type(error).__name__
        raise ValueError(f"{what}: {text} (FABRIC_RL_TRACEBACK=1 shows where)") from error


def _tuple(what: str, value: Any, length: int) -> tuple[Any, ...]:  # noqa: ANN401 - checked here
    if not isinstance(value, tuple) or len(value) != length:
        got = f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
        raise ValueError(f"{what} must return a tuple of {length}, got {got}")
    return value


def _tensor(what: str, value: Any, shape: tuple[int, ...], kind: str = FLOATS) -> Array:  # noqa: ANN401 - checked here
    if not isinstance(value, Tensor):
        raise ValueError(f"{what} must be a tensor, got {type(value).__name__}")
    value = value.detach().cpu()
    return _array(what, (value.float() if value.is_floating_point() else value).numpy(), shape, kind)


def _array(what: str, value: Any, shape: tuple[int, ...], kind: str = NUMBERS) -> Array:  # noqa: ANN401 - checked here
    """Checks shape, dtype and that everything is finite."""
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in _KINDS[kind]:
        raise ValueError(
            f"{what} must be {kind} of shape {list(shape)}, got {array.dtype} of shape {list(array.shape)}"
        )
    if array.ndim == 0 and not np.isfinite(array):
        raise ValueError(f"{what} must be finite, got {array}")
    found = find_non_finite(array)
    if found:
        raise ValueError(f"{what} must be finite, got {found}")
    return array
