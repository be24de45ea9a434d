"""Writes an agent as a folder that runs without this framework, and makes sure that it decides the same."""

import hashlib
import re
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.files import json_text, write_text
from fabric_rl.export.graph import OPSET, PolicyGraph, write_onnx, write_torchscript
from fabric_rl.import_names import class_path
from fabric_rl.rollouts.finite import within
from fabric_rl.runs import play
from fabric_rl.runs.provenance import METADATA, describe_environment
from fabric_rl.runs.trained import CHECK, MODELS, load_policy
from fabric_rl.types import ActorCritic, reads_masks

TOLERANCE = 1e-4
"""Of numbers, absolute and relative: float32 is rounded otherwise by every processor and runtime."""
_ROW = re.compile(r"\[\n *([^][{}]*?)\n *\]")
"""A list of numbers in JSON for people, one a line."""
_CLEAR = 1e-4
"""What the likeliest choice is ahead in the states of a self-test, as a share of its probability."""


def check_packages(form: str) -> None:
    """An ImportError that says what to install, if an exporter is not there."""
    needs = ("onnx", "onnxruntime") if form in ("onnx", "rlbot") else ()
    missing = [name for name in needs if find_spec(name) is None]
    if missing:
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
    """Writes the policy, `metadata.json`, `play.py` and `check.npz` with states that the agent met in `env`.

    Args:
        agent: In eval mode, on the CPU.
        env: What it plays in.
        form: Of `MODELS`.
        folder: It exists.
        about: What else belongs into `metadata.json`.
        columns: See `PolicyGraph`.
        free_axes: See `write_onnx`.
        steps: Of `env` that are played.

    Raises:
        ValueError: The format cannot hold the agent.
    """
    kind = type(agent).__name__
    obs, infos = env.reset(seed=0)
    agent.requires_grad_(False)
    graph = PolicyGraph(agent, "action_mask" in infos and reads_masks(agent), columns)
    known = played(graph, env, obs, infos, steps)
    example = [torch.from_numpy(known[name][:2]) for name in graph.inputs]
    writer: Callable[..., None] = write_onnx if form == "onnx" else write_torchscript
    model = folder / MODELS[form]
    try:
        writer(graph, example, model, free_axes)
    except Exception as error:  # exporters raise whatever a foreign network makes them
        raise ValueError(f"--format {form} cannot hold {kind}: {str(error).strip().splitlines()[0]}") from error
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
    in_rows = _ROW.sub(lambda row: "[" + re.sub(r"\n *", " ", row[1]) + "]", json_text(about))
    write_text(folder / METADATA, in_rows)
    shutil.copyfile(str(play.__file__), folder / "play.py")
    np.savez_compressed(folder / CHECK, **known)
    found = load_policy(folder).run(known)
    wrong = [name for name in graph.outputs if not np.allclose(found[name], known[name], TOLERANCE, TOLERANCE)]
    if wrong:
        raise ValueError(f"--format {form} cannot hold {kind}: its {wrong[0]} is another one there")


@torch.no_grad()
def played(
    graph: PolicyGraph, env: VectorEnv, obs: NDArray[Any], infos: dict[str, Any], steps: int
) -> dict[str, NDArray[Any]]:
    """Inputs and outputs of a policy by name, `[M, ...]`, of steps that it plays.

    States in which rounding could decide between two choices are left out.
    """
    rows: dict[str, list[Tensor]] = {}
    memory = torch.zeros(len(obs), graph.agent.memory_size)
    for _ in range(steps):
        inputs = [{"obs": obs, "action_mask": infos.get("action_mask"), "state": memory}[name] for name in graph.inputs]
        given = [torch.as_tensor(np.array(each)) for each in inputs]
        outputs = graph(*given)
        for name, tensor in zip((*graph.inputs, *graph.outputs), (*given, *outputs), strict=True):
            rows.setdefault(name, []).append(tensor)
        action = within(env.single_action_space, outputs[0].numpy())
        obs, _, terminated, truncated, infos = env.step(action)
        if "new_state" in graph.outputs:
            memory = outputs[-1].masked_fill(torch.from_numpy(terminated | truncated)[:, None], 0)
    found = {name: torch.cat(tensors) for name, tensors in rows.items()}
    clear = torch.ones(len(found["obs"]), dtype=torch.bool)
    if "probabilities" in found and found["probabilities"].shape[-1] > 1:
        best, second = found["probabilities"].topk(2, dim=-1).values.unbind(-1)
        clear = (best - second > _CLEAR * best).all(dim=-1)
    return {name: tensor[clear].numpy() for name, tensor in found.items()}
