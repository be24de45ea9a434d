"""PolicyGraph: what an agent decides as one function of tensors, which ONNX and TorchScript can hold."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Distribution, Normal

from fabric_rl.types import ActorCritic

OPSET = 18
"""Of ONNX; onnxruntime 1.14 and later run it."""


class PolicyGraph(nn.Module):
    """The likeliest action of an agent, the distribution that it is of, and the memory after it.

    Attributes:
        inputs: Names, in order: obs; action_mask, if the agent is given masks; state, if it has memory.
        outputs: Names, in order, known after the first call: action, within its Box; of what the agent draws from, if
            it tells, probabilities `[N, parts, choices]`, or mean and std `[N, d]`; new_state.
        squash: Whether a Gaussian goes through tanh into the Box.
    """

    def __init__(self, agent: ActorCritic, masks: bool, columns: int | None = None) -> None:
        """Takes the agent.

        Args:
            agent: In eval mode, on the CPU, without gradients.
            masks: Whether it is given masks.
            columns: It sees only so many of the observations' columns. Default: all.
        """
        super().__init__()
        self.agent, self.columns = agent, columns
        self.inputs = ("obs", *(["action_mask"] if masks else []), *(["state"] if agent.memory_size else []))
        self.outputs: tuple[str, ...] = ()
        self.squash = any(getattr(part, "squash", False) for part in agent.modules())

    @torch.no_grad()
    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs for the inputs, each `[N, ...]`."""
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
    """A distribution over actions in terms that need no torch; empty for a kind that no head of ours has."""
    each = getattr(distribution, "base_dist", distribution)
    if isinstance(each, Categorical):
        return {"probabilities": each.probs.float()}
    if isinstance(each, Bernoulli):
        return {"probabilities": torch.stack((1 - each.probs, each.probs), dim=-1).float()}
    return {"mean": each.mean.float(), "std": each.stddev.float()} if isinstance(each, Normal) else {}


def write_onnx(graph: PolicyGraph, example: Sequence[Tensor], path: Path, free_axes: int = 1) -> None:
    """Writes a graph as ONNX, opset `OPSET`.

    By torch's exporter of traces: it is in all versions that this project takes, and needs onnx alone.

    Args:
        graph: It has been called.
        example: Its inputs.
        path: The file.
        free_axes: Axes of the observations, from the first, that may have other sizes than in the example.
    """
    names = {name: {0: "N"} for name in (*graph.inputs, *graph.outputs)}
    names["obs"] |= {axis: f"n{axis}" for axis in range(1, free_axes)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is the older one of torch's two; what a trace misses is checked afterwards
        torch.onnx.export(
            graph,
            tuple(example),
            str(path),
            input_names=graph.inputs,
            output_names=graph.outputs,
            opset_version=OPSET,
            dynamic_axes=names,
            dynamo=False,
        )


def write_torchscript(graph: PolicyGraph, example: Sequence[Tensor], path: Path, free_axes: int = 1) -> None:
    """Writes a graph as TorchScript; arguments as of `write_onnx`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        # As a function: of a LightningModule it would want properties that only a Trainer gives.
        traced = torch.jit.trace(lambda *inputs: graph(*inputs), tuple(example), check_trace=False)  # type: ignore[no-untyped-call]
        traced.save(str(path))
