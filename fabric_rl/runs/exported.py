"""ExportedAgent: an exported policy as an agent that plays."""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from fabric_rl.base.files import read_json
from fabric_rl.runs.play import Policy
from fabric_rl.runs.provenance import METADATA
from fabric_rl.types import ActorCritic, ActOutput, CheckpointError

CHECK = "check.npz"
MODELS = {"onnx": "policy.onnx", "torchscript": "policy.pt"}
"""Format -> name of the file."""


def exported_model(path: Path) -> Path | None:
    """The file of an exported policy, which `path` is, or its folder; None for anything else."""
    if path.is_file():
        return path if path.suffix in (".onnx", ".pt") else None
    return next((path / name for name in MODELS.values() if (path / name).is_file()), None)


def load_policy(folder: Path) -> Policy:
    """The policy of a folder, without what torch says of TorchScript's age."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return Policy(folder)


class ExportedAgent(ActorCritic):
    """Acts as the agent did that was exported; it has no values, and learns nothing."""

    def __init__(
        self, model: Path, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]
    ) -> None:
        """Loads it.

        Args:
            model: Its file, see `exported_model`.
            observation_space: Of one sub-environment.
            action_space: Of one sub-environment.

        Raises:
            CheckpointError: It is damaged, `fabric-rl export` did not write it, or it is for other spaces.
            ImportError: What runs it is not installed.
        """
        super().__init__(observation_space, action_space)
        self.model, about = model, read_json(model.with_name(METADATA))
        try:
            shape, actions = about["inputs"]["obs"]["shape"][1:], about["action_space"]
            digest, named, _, _ = about["sha256"], about["model"], about["squash"], about["layout"].items()
            self.memory_size = int(about["memory_size"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            beside = f"{METADATA} beside it does not say so"
            raise CheckpointError(f"{model} was not written by fabric-rl export: {beside} (no {error})") from error
        if named != model.name:  # play.py would load that one
            raise CheckpointError(f"{model} is not the model of {METADATA} beside it, which names {named!r}")
        if hashlib.sha256(model.read_bytes()).hexdigest() != digest:
            raise CheckpointError(f"{model} is damaged: its checksum is not the one in {METADATA}")
        own = observation_space.shape or ()
        fits = len(own) == len(shape) and all(size in (None, here) for size, here in zip(shape, own, strict=True))
        if not fits or actions != str(action_space):
            raise CheckpointError(
                f"{model} sees {shape} and chooses from {actions}; here are observations {list(own)} and {action_space}"
            )
        try:
            self.policy = load_policy(model.parent)
        except ImportError as error:
            raise ImportError(f"{model} needs {error.name}; pip install {error.name}") from error
        except Exception as error:  # the checksum was right, so somebody made this file: it may fail in any way
            raise CheckpointError(f"{model} cannot be played: {error}") from error

    def check_layout(self, layout: dict[str, Any]) -> None:
        """Raises CheckpointError unless columns and actions mean here what they meant there, number by number."""
        for part, there in self.policy.about["layout"].items():
            if there != layout.get(part):
                raise CheckpointError(
                    f"{self.model}: the {part} of {METADATA} are not those that its settings make here; play it with "
                    f"fabric-rl {self.policy.about['versions'].get('fabric-rl')}, or export it anew"
                )

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        """See `ActorCritic.act`; log-probabilities are NaN.

        Raises:
            ValueError: To draw from a policy that says nothing but its likeliest action.
        """
        out = self._run(obs, state, action_mask)
        action = out["action"] if deterministic else self._draw(out)
        return ActOutput(action, torch.full((len(obs),), torch.nan), None, out.get("new_state"))

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """`[N]` NaN: the value function stays with the run."""
        return torch.full((len(obs),), torch.nan)

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        if not isinstance(self.action_space, gymnasium.spaces.Discrete) or self.action_space.start:
            return None
        found = self._run(obs, state, action_mask).get("probabilities")
        return None if found is None else found.squeeze(1)

    def _run(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> dict[str, Tensor]:
        if action_mask is None and "action_mask" in self.policy.about["inputs"]:
            action_mask = torch.ones(len(obs), self.policy.about["inputs"]["action_mask"]["shape"][1], dtype=torch.bool)
        found = self.policy.run({"obs": obs, "state": state, "action_mask": action_mask})
        return {name: torch.from_numpy(array) for name, array in found.items()}

    def _draw(self, out: dict[str, Tensor]) -> Tensor:
        """`[N, ...]` drawn with torch's global generator."""
        space = self.action_space
        if "probabilities" in out:
            chances = out["probabilities"]
            index = torch.multinomial(chances.flatten(0, 1), 1).reshape(len(chances), *(space.shape or ()))
            return index + torch.as_tensor(np.asarray(getattr(space, "start", 0)))
        if "mean" not in out or not isinstance(space, gymnasium.spaces.Box):
            raise ValueError(f"{self.model} tells its likeliest actions only, so it cannot draw any (--sample, guests)")
        action = torch.normal(out["mean"], out["std"]).reshape(-1, *space.shape)
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        return low + (high - low) * (action.tanh() + 1) / 2 if self.policy.about["squash"] else action
