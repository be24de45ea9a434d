"""Export of an agent to a folder that runs without this framework, and a check that its decisions are the same."""

import hashlib
import re
import shutil
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Distribution, Normal

from fabric_rl.base.files import json_text, write_text
from fabric_rl.import_names import class_path
from fabric_rl.rollouts.step_checks import clip_actions
from fabric_rl.runs import play
from fabric_rl.runs.provenance import METADATA, describe_environment
from fabric_rl.runs.trained import CHECK, MODELS, load_policy
from fabric_rl.types import ActorCritic, accepts_action_mask

OPSET = 18
"""Version of ONNX operators; onnxruntime 1.14 and later support it."""
TOLERANCE = 1e-4
"""Absolute and relative tolerance: processors and runtimes round float32 differently."""
_ROW = re.compile(r"\[\n *([^][{}]*?)\n *\]")
"""List of numbers in indented JSON, one per line."""
_CLEAR = 1e-4
"""Minimum lead of the most probable choice in the states of a self-test, as a share of its probability."""


class PolicyGraph(nn.Module):
    """Module that returns an agent's most probable action, the distribution of actions, and the new memory.

    Attributes:
        inputs: Names, in order: obs; action_mask, if the agent reads masks; state, if it has memory.
        outputs: Names, in order, known after the first call: action, clipped to its Box; the parameters of its
            distribution: probabilities `[N, parts, choices]`, or mean and std `[N, d]`; new_state.
        squash: True if a Gaussian goes through tanh into the Box.
    """

    def __init__(self, agent: ActorCritic, masks: bool, columns: int | None = None) -> None:
        """Wrap an agent in eval mode, on the CPU; it sees the first `columns` columns of observations, or all."""
        super().__init__()
        self.agent, self.columns = agent, columns
        self.inputs = ("obs", *(["action_mask"] if masks else []), *(["state"] if agent.memory_size else []))
        self.outputs: tuple[str, ...] = ()
        self.squash = any(getattr(part, "squash", False) for part in agent.modules())

    @torch.no_grad()
    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs for the inputs, each `[N, ...]`."""
        given = dict(zip(self.inputs, inputs, strict=True))
        obs, state, mask = given.pop("obs")[..., : self.columns], given.get("state"), given.get("action_mask")
        decided = self.agent.act(obs, deterministic=True, **given)
        found, space = {"action": decided.action}, self.agent.action_space
        if isinstance(space, gymnasium.spaces.Box):
            found["action"] = decided.action.clamp(torch.from_numpy(space.low), torch.from_numpy(space.high))
        for distribution in self.agent.distributions(obs, state, mask):
            found |= _numbers(distribution)
        if decided.state is not None:
            found["new_state"] = decided.state
        self.outputs = tuple(found)
        return tuple(found.values())


def _numbers(distribution: Distribution) -> dict[str, Tensor]:
    """Return the parameters of a distribution over actions, or an empty dict for kinds that our heads do not use."""
    each = getattr(distribution, "base_dist", distribution)
    if isinstance(each, Categorical):
        return {"probabilities": each.probs.float()}
    if isinstance(each, Bernoulli):
        return {"probabilities": torch.stack((1 - each.probs, each.probs), dim=-1).float()}
    return {"mean": each.mean.float(), "std": each.stddev.float()} if isinstance(each, Normal) else {}


def _write_model(graph: PolicyGraph, example: Sequence[Tensor], path: Path, free_axes: int) -> None:
    """Write a graph that has been called once; in ONNX, the first `free_axes` axes of observations may vary in size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what a trace may miss, which is checked afterwards
        if path.suffix == ".pt":
            # wrapped in a function, because tracing a LightningModule reads properties that need a Trainer
            torch.jit.trace(lambda *inputs: graph(*inputs), tuple(example), check_trace=False).save(str(path))  # type: ignore[no-untyped-call]
            return
        axes = {name: {0: "N"} for name in (*graph.inputs, *graph.outputs)}
        axes["obs"] |= {axis: f"n{axis}" for axis in range(1, free_axes)}
        torch.onnx.export(  # the tracing exporter exists in all supported versions and needs only onnx
            graph,
            tuple(example),
            str(path),
            input_names=graph.inputs,
            output_names=graph.outputs,
            opset_version=OPSET,
            dynamic_axes=axes,
            dynamo=False,
        )


def check_packages(form: str) -> None:
    """Raise an ImportError if the packages of a format are not installed."""
    missing = [name for name in ("onnx", "onnxruntime") if find_spec(name) is None]
    if missing and form in ("onnx", "rlbot"):
        raise ImportError(f"--format {form} needs {missing[0]}; pip install onnx onnxruntime")


def write_policy(
    agent: ActorCritic,
    env: VectorEnv,
    form: str,
    folder: Path,
    about: dict[str, Any],
    columns: int | None = None,
    free_axes: int = 1,
    steps: int = 64,
) -> None:
    """Write the policy, `metadata.json`, `play.py`, and `check.npz` with states of some steps in `env`.

    Args:
        agent: Agent in eval mode, on the CPU.
        env: Environment to play in.
        form: Format, one of `MODELS`.
        folder: Existing folder.
        about: More content for `metadata.json`.
        columns: See `PolicyGraph`.
        free_axes: Number of leading axes of observations that may vary in size.
        steps: Number of steps.

    Raises:
        ValueError: The format cannot represent the agent.
    """
    kind = type(agent).__name__
    obs, infos = env.reset(seed=0)
    agent.requires_grad_(False)
    graph = PolicyGraph(agent, "action_mask" in infos and accepts_action_mask(agent), columns)
    known = record_policy(graph, env, obs, infos, steps)
    example = [torch.from_numpy(known[name][:2]) for name in graph.inputs]
    model = folder / MODELS[form]
    try:
        _write_model(graph, example, model, free_axes)
    except Exception as error:  # exporters may raise anything for a user's network
        raise ValueError(f"--format {form} cannot represent {kind}: {str(error).strip().splitlines()[0]}") from error
    axes = {name: [None, *known[name].shape[1:]] for name in graph.inputs}
    axes["obs"][:free_axes] = [None] * free_axes
    about |= {
        "format": form,
        "opset": OPSET if form == "onnx" else None,
        "model": model.name,
        "sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
        "agent": class_path(type(agent)),
        "action_space": str(env.single_action_space),
        "squash": graph.squash,
        "memory_size": agent.memory_size,
        "tolerance": TOLERANCE,
        "inputs": {name: {"dtype": str(known[name].dtype), "shape": axes[name]} for name in graph.inputs},
        "outputs": list(graph.outputs),
    }
    environment = describe_environment()
    about["versions"] = {"python": environment["python"]} | environment["packages"]
    write_text(folder / METADATA, _ROW.sub(lambda row: "[" + re.sub(r"\n *", " ", row[1]) + "]", json_text(about)))
    shutil.copyfile(str(play.__file__), folder / "play.py")
    np.savez_compressed(folder / CHECK, **known)
    found = load_policy(folder).run(known)
    wrong = [name for name in graph.outputs if not np.allclose(found[name], known[name], TOLERANCE, TOLERANCE)]
    if wrong:
        raise ValueError(f"--format {form} cannot represent {kind}: the exported {wrong[0]} differs")


@torch.no_grad()
def record_policy(
    graph: PolicyGraph, env: VectorEnv, obs: NDArray[Any], infos: dict[str, Any], steps: int
) -> dict[str, NDArray[Any]]:
    """Play `steps` steps, and return the inputs and outputs of the policy by name, each `[M, ...]`.

    States in which rounding could decide between two choices are left out.
    """
    rows: dict[str, list[Tensor]] = {}
    memory = torch.zeros(len(obs), graph.agent.memory_size)
    for _ in range(steps):
        obs = obs if obs.dtype == np.uint8 else np.asarray(obs, np.float32)  # as in training
        inputs = [{"obs": obs, "action_mask": infos.get("action_mask"), "state": memory}[name] for name in graph.inputs]
        given = [torch.as_tensor(np.array(each)) for each in inputs]
        outputs = graph(*given)
        for name, tensor in zip((*graph.inputs, *graph.outputs), (*given, *outputs), strict=True):
            rows.setdefault(name, []).append(tensor)
        action = clip_actions(env.single_action_space, outputs[0].numpy())
        obs, _, terminated, truncated, infos = env.step(action)
        if "new_state" in graph.outputs:
            memory = outputs[-1].masked_fill(torch.from_numpy(terminated | truncated)[:, None], 0)
    found = {name: torch.cat(tensors) for name, tensors in rows.items()}
    clear = torch.ones(len(found["obs"]), dtype=torch.bool)
    if "probabilities" in found and found["probabilities"].shape[-1] > 1:
        best, second = found["probabilities"].topk(2, dim=-1).values.unbind(-1)
        clear = (best - second > _CLEAR * best).all(dim=-1)
    return {name: tensor[clear].numpy() for name, tensor in found.items()}
