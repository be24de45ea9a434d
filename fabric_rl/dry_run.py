"""Dry run before training: every part is used once, so that a malformed part causes a one-line error at the start."""

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric, LightningModule
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor, nn

from fabric_rl.ranks.collectives import raised_on_all_ranks, waits_for_all_gradients
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.rollouts.step_checks import (
    BOOLS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Array,
    check_array,
    check_step,
    check_tuple,
    clip_actions,
    describe_type,
    find_non_finite,
)
from fabric_rl.types import ActorCritic, ActOutput, HasMetrics, Minibatch, OffPolicyAgent, Transitions, learning_parts

OWN_STATISTICS = {"epochs", "explained_variance", "grad_norm", "learning_rate", "replay_steps", "update_magnitude"}
"""Statistics that the training adds to those of `training_step`."""

MakeBatch = Callable[[Minibatch, ActorCritic], Minibatch | Transitions]
"""Function that makes a minibatch from a flat rollout."""


def dry_run_parts(
    fabric: Fabric, envs: VectorEnv, agent: ActorCritic, seed: int, signals: Sequence[str], make_batch: MakeBatch
) -> Minibatch | Transitions:
    """Reset the environment, act, step once and evaluate one minibatch; every rank calls it.

    Only the environment is changed; reset it afterwards with the same seed. The agent is copied, random generators are
    restored, and the environment's metrics are dropped.

    Args:
        fabric: Device and precision.
        envs: This rank's environment.
        agent: The bare module, before `fabric.setup`.
        seed: Seed of `envs.reset`.
        signals: Names of the reward signals added to the environment's.
        make_batch: Function that makes a minibatch from a flat rollout of one or a few steps.

    Returns:
        A minibatch that `training_step` accepts.

    Raises:
        ValueError: A part is malformed or fails on any rank. It is raised on all ranks with the same message, after
            closing the environment.
    """
    name, size = f"--env {type(envs).__name__}", envs.num_envs
    obs_shape = (size, *(envs.single_observation_space.shape or ()))
    try:
        with isolate_rng(), raised_on_all_ranks(fabric):
            with error_context(f"{name}.reset()"):
                first = envs.reset(seed=seed)
            obs, infos = check_tuple(f"{name}.reset()", first, ("observations", "infos"))
            what = f"{name}.reset(): the observations"
            obs = _finite(what, check_array(what, obs, obs_shape))
            if "action_mask" in infos:
                what = f"{name}.reset(): infos['action_mask']"
                check_array(what, infos["action_mask"], mask_shape(envs.single_action_space, size), BOOLS)
            acted, minibatch = _try_agent(fabric, agent, envs, (obs, infos), signals, make_batch)

            with error_context(f"{name}.step()"):
                step = envs.step(clip_actions(envs.single_action_space, acted))
            checked = check_step(f"{name}.step()", step, size, obs_shape[1:])
            _finite(f"{name}.step(): the observations", checked.obs)
            _finite(f"{name}.step(): the rewards", checked.reward)
            if (checked.terminated | checked.truncated).any():
                what = f"{name}.step(): infos['final_obs']"
                if "final_obs" not in checked.infos:
                    raise ValueError(
                        f"{name}.step(): episodes ended, but infos lacks 'final_obs' "
                        "(the last observations of those episodes)"
                    )
                _finite(what, check_array(what, checked.infos["final_obs"], obs_shape))
    except ValueError:
        envs.close()
        raise
    if isinstance(envs, HasMetrics):
        envs.drain_metrics()
    return minibatch


def check_agent(agent: LightningModule) -> None:
    """Raise TypeError for an agent that is not an ActorCritic, was not initialized as one, or lacks a method."""
    name = type(agent).__name__
    if not isinstance(agent, ActorCritic):
        raise TypeError(f"--agent {name} is not a fabric_rl.ActorCritic")
    if "progress" not in vars(agent):
        raise TypeError(f"--agent {name}: its __init__ must call super().__init__(observation_space, action_space)")
    base = OffPolicyAgent if isinstance(agent, OffPolicyAgent) else ActorCritic
    methods = ["act", "value", "training_step", "configure_optimizers"]  # those of the base class only raise
    methods += ["update_targets"] if base is OffPolicyAgent else []
    own = {method: getattr(getattr(agent, method), "__func__", None) for method in methods}
    missing = [f"{method}()" for method in methods if own[method] is getattr(base, method)]
    if missing:
        raise TypeError(
            f"--agent {name} lacks {', '.join(missing)}; see fabric_rl.{base.__name__} for what an agent must implement"
        )


def mask_shape(space: gymnasium.Space[Any], num_envs: int) -> tuple[int, int]:
    """Return the shape of action masks; raise a ValueError if the actions are not discrete."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return num_envs, int(space.n)
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return num_envs, int(space.nvec.sum())
    raise ValueError(f"infos['action_mask'] needs discrete actions, but the action space is {space}")


def _try_agent(
    fabric: Fabric,
    agent: ActorCritic,
    envs: VectorEnv,
    first: tuple[Array, dict[str, Any]],
    signals: Sequence[str],
    make_batch: MakeBatch,
) -> tuple[Array, Minibatch | Transitions]:
    """Call the methods of a copy of the agent; return its first actions and the minibatch of `training_step`."""
    name, size, action_space = f"--agent {type(agent).__name__}", envs.num_envs, envs.single_action_space
    with error_context(f"{name}: copy.deepcopy()"):
        trial = copy.deepcopy(agent).to(fabric.device)
    trial.fabric = fabric  # as after fabric.setup
    replays = isinstance(agent, OffPolicyAgent)
    length = agent.sequence_length  # and enough steps for the burn-in, in whole sequences
    length = length + agent.burn_in if replays else length * max(1, math.ceil(agent.burn_in / length))
    rollout = Rollout(length, envs, fabric.device, trial, signals)
    rollout.begin(*first)
    rollout.obs[:] = rollout.obs[-1].clone()
    if rollout.action_mask is not None:
        rollout.action_mask[:] = rollout.action_mask[-1].clone()
    inputs = rollout.inputs(0)
    with error_context(f"{name}.act()"), torch.no_grad(), fabric.autocast():
        chosen = trial.act(rollout.obs[0], **inputs)
    if not isinstance(chosen, ActOutput):
        got = describe_type(chosen)
        raise ValueError(f"{name}.act() must return a fabric_rl.ActOutput(action, log_prob, ...), got {got}")
    inputs.pop("action_mask", None)
    with error_context(f"{name}.value()"), torch.no_grad(), fabric.autocast():
        value = trial.value(rollout.obs[0], **inputs)
    discrete = np.issubdtype(action_space.dtype, np.integer)
    action_shape = (size, *(action_space.shape or ()))
    value_shape = (size, agent.value_heads) if agent.value_heads > 1 else (size,)
    action = _tensor(f"{name}.act(): action", chosen.action, action_shape, INTEGERS if discrete else FLOATS)
    _tensor(f"{name}.act(): log_prob", chosen.log_prob, (size,))
    if agent.memory_size and chosen.value is None and not replays:
        raise ValueError(f"{name}.act() must return values: an agent with memory needs them at every step")
    if chosen.value is not None:
        _tensor(f"{name}.act(): value", chosen.value, value_shape)
    if agent.memory_size:
        _tensor(f"{name}.act(): state", chosen.state, (size, agent.memory_size))
    _tensor(f"{name}.value()", value, value_shape)
    if discrete and not isinstance(action_space, gymnasium.spaces.Box):
        outside = [row for row in action if not action_space.contains(row)]
        if outside:
            raise ValueError(f"{name}.act(): action {outside[0]} is not in the environment's {action_space}")

    rollout.action[:], rollout.log_prob[:], rollout.value[:] = chosen.action, chosen.log_prob, value
    rollout.next_value[:] = value
    advantage = torch.linspace(-1, 1, length * size, device=fabric.device).view(length, size)
    rollout.reward[:] = advantage if rollout.reward.dim() == 2 else advantage[..., None]
    batch: Any = make_batch(rollout.flat(rollout.reward), agent)
    loss = _try_training_step(fabric, f"{name}.training_step()", trial, batch)
    _check_all_used(fabric, f"{name}.training_step()", trial, loss)
    if isinstance(trial, OffPolicyAgent):
        for part, own in _checked_parts(f"{name}.update_parts()", trial).items():
            what = f"{name}.training_step() of minibatch.part {part!r}"
            loss = _try_training_step(fabric, what, trial, batch._replace(part=part))
            if _used_by(loss).isdisjoint(map(id, own)):
                raise ValueError(f"{what}: the loss does not depend on the parameters of this part")
        with error_context(f"{name}.update_targets()"), torch.no_grad():
            trial.update_targets(0.005)
    return action, batch


def _try_training_step(fabric: Fabric, what: str, agent: ActorCritic, batch: Any) -> Tensor:  # noqa: ANN401 - two kinds
    with error_context(what), fabric.autocast():
        result = agent.training_step(batch)
    loss, stats = check_tuple(what, result, ("loss", "statistics"))
    _tensor(f"{what}: the loss", loss, ())
    if not loss.requires_grad:
        raise ValueError(f"{what}: the loss has no gradient; it is detached, or uses none of the agent's parameters")
    if not isinstance(stats, dict) or not all(isinstance(key, str) for key in stats):
        raise ValueError(f"{what}: the statistics must be a dict of names and tensors, got {stats!r}")
    for key, figure in stats.items():
        if key in OWN_STATISTICS:
            raise ValueError(f"{what}: the training itself reports a statistic {key!r}; give this one another name")
        each = isinstance(agent, OffPolicyAgent) and key == "td_error" and getattr(figure, "shape", ()) != ()
        _tensor(f"{what}: the statistic {key!r}", figure, batch[0].shape[:1] if each else (), NUMBERS)
    return cast(Tensor, loss)


def check_trained_parameters(agent: LightningModule, optimizer: torch.optim.Optimizer) -> None:
    """Raise a ValueError if an optimizer and the parameters of an agent do not belong together.

    Agents that learn from rollouts may leave parameters out.
    """
    what = f"--agent {type(agent).__name__}.configure_optimizers()"
    learn = [p for group in optimizer.param_groups for p in group["params"]]
    known, learning = {id(p) for p in agent.parameters()}, {id(p) for p in learn}
    foreign = [p for p in learn if id(p) not in known]
    lost = [name for name, p in agent.named_parameters() if p.requires_grad and id(p) not in learning]
    if foreign:
        raise ValueError(
            f"{what}: a parameter of shape {[*foreign[0].shape]} is not one of the agent's, so it is not saved; "
            "make its module an attribute of the agent, and lists of modules a torch.nn.ModuleList"
        )
    if lost and isinstance(agent, OffPolicyAgent):
        raise ValueError(f"{what}: {lost[0]} would never learn; add it, or freeze it with requires_grad_(False)")


def _checked_parts(what: str, agent: OffPolicyAgent) -> dict[str, list[nn.Parameter]]:
    """Return the parts that learn; raise a ValueError unless each parameter that learns is in one."""
    parts: Any = agent.update_parts()
    if not isinstance(parts, dict):
        raise ValueError(f"{what} must return a dict of lists of parameters, got {describe_type(parts)}")
    with error_context(what):
        parts = {name: list(own) for name, own in parts.items()}
    for name, own in parts.items():
        for each in own:
            if not isinstance(each, nn.Parameter):
                raise ValueError(f"{what}: {name!r} must be a list of parameters, but contains {describe_type(each)}")
    named = Counter(id(p) for own in parts.values() for p in own)
    for name, p in agent.named_parameters():
        if parts and p.requires_grad and named[id(p)] != 1:
            found = named[id(p)] or "none; add it to one, or freeze it with requires_grad_(False)"
            raise ValueError(f"{what}: the parameter {name} must be in one part, but is in {found}")
    return learning_parts(agent)


@contextmanager
def error_context(what: str) -> Iterator[None]:
    """Turn an error into a ValueError that names the failed method; do not change AttributeError and similar errors."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError, AssertionError, FloatingPointError) as error:
        text = f"{error}" or type(error).__name__
        raise ValueError(f"{what}: {text} (FABRIC_RL_TRACEBACK=1 shows where)") from error


def _check_all_used(fabric: Fabric, what: str, agent: ActorCritic, loss: Tensor) -> None:
    """Raise ValueError if a parameter is not in the graph of the loss: DDP would wait for its gradient."""
    if not waits_for_all_gradients(fabric):
        return
    used = _used_by(loss)
    unused = [key for key, p in agent.named_parameters() if p.requires_grad and id(p) not in used]
    if unused:
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        raise ValueError(
            f"{what}: the loss does not depend on the parameters {', '.join(unused[:3])}{more}, but with DDP "
            "it must depend on all of them; remove these, or freeze them with requires_grad_(False)"
        )


def _used_by(loss: Tensor) -> set[int]:
    """Return the ids of the tensors whose gradients a loss has, such as parameters."""
    used, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        used.add(id(getattr(node, "variable", None)))  # only nodes that accumulate a gradient have one
        waiting.extend(following for following, _ in node.next_functions)
    return used


def _tensor(what: str, value: Any, shape: tuple[int, ...], kind: str = FLOATS) -> Array:  # noqa: ANN401 - checked here
    if not isinstance(value, Tensor):
        raise ValueError(f"{what} must be a tensor, got {describe_type(value)}")
    value = value.detach().cpu()
    array = (value.float() if value.is_floating_point() else value).numpy()
    return _finite(what, check_array(what, array, shape, kind))


def _finite(what: str, array: Array) -> Array:
    if array.ndim == 0 and not np.isfinite(array):
        raise ValueError(f"{what} must be finite, got {array}")
    found = find_non_finite(array)
    if found:
        raise ValueError(f"{what} must be finite, got {found}")
    return array
