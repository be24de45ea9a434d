"""Agents that have been trained, rebuilt from what their run left behind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import Space
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.checkpoint import CheckpointError
from fabric_rl.choose import load, locate
from fabric_rl.env_config import load_agent_factory, load_env
from fabric_rl.finite import within
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory, reads_masks


@dataclass(frozen=True)
class Trained:
    """A trained agent, and the environment that it was trained in.

    Attributes:
        name: What it was asked for by.
        path: Its checkpoint.
        steps: Agent-steps that it was trained for.
        env: Builds the environment: `env(seed=0)`.
    """

    name: str
    path: Path
    steps: int
    env: EnvFactory
    _agent: AgentFactory
    _weights: dict[str, Any]

    def agent(self, observation_space: Space[Any], action_space: Space[Any]) -> ActorCritic:
        """The agent with its weights, for the spaces of one sub-environment.

        Raises:
            CheckpointError: The spaces, or the settings in `config.yaml`, are not those of the checkpoint.
        """
        module = self._agent(observation_space, action_space)
        if not isinstance(module, ActorCritic):
            raise TypeError(f"{self.name}: {type(module).__name__} is not a fabric_rl.ActorCritic")
        try:
            module.load_state_dict(self._weights)
        except RuntimeError as error:
            raise CheckpointError(
                f"{self.path} does not fit {type(module).__name__} with the settings of its config.yaml and "
                f"observations {observation_space}: {' '.join(str(error).split())}"
            ) from error
        return module.eval()

    def choose(
        self, observation_space: Space[Any], action_space: Space[Any], deterministic: bool = True
    ) -> Callable[..., NDArray[Any]]:
        """The same as a function of arrays, see `policy`."""
        return policy(self.agent(observation_space, action_space), deterministic)


def load_trained(name: str | Path, runs_dir: str | Path = "runs") -> Trained:
    """Reads a run, milestone or checkpoint, and the settings of its run.

    Args:
        name: A run id, the path of a run, milestone or checkpoint, or the name of an agent that comes with fabric-rl
            (`school_1v1`).
        runs_dir: Folder that holds all runs.

    Raises:
        CheckpointError: There is none, it cannot be read, or its run has no `config.yaml`.
        ValueError: The settings are wrong, or the environment is a Gymnasium id.
    """
    path, state = load(locate("agent", runs_dir, str(name)))
    found = next((folder / "config.yaml" for folder in path.parents if (folder / "config.yaml").is_file()), None)
    if found is None:
        raise CheckpointError(f"{path}: no config.yaml lies above it, which says how environment and agent are built")
    env = load_env(str(found), default="envs.RocketSimPool")
    agent = load_agent_factory(str(found), default="agents.PPOLightningAgent")
    return Trained(Path(name).name, path, state["steps"], env, agent, state["agent"])


def policy(agent: ActorCritic, deterministic: bool = True) -> Callable[..., NDArray[Any]]:
    """An agent as a function `(obs [N, ...], begins [N], action_mask [N, n] or None) -> actions [N, ...]` of arrays.

    It remembers for agents with memory; `begins` says where an episode does. Actions outside of a Box are clipped.
    """
    memory: list[Tensor] = []
    masks = reads_masks(agent)

    @torch.no_grad()
    def choose(
        obs: NDArray[Any], begins: NDArray[np.bool_], action_mask: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        given: dict[str, Tensor] = {}
        if agent.memory_size:
            state = memory.pop() if memory else torch.zeros(0)
            state = state if len(state) == len(obs) else torch.zeros(len(obs), agent.memory_size)  # other games now
            given["state"] = torch.where(torch.from_numpy(np.array(begins))[:, None], 0.0, state)
        if action_mask is not None and masks:
            given["action_mask"] = torch.from_numpy(action_mask)
        chosen = agent.act(torch.from_numpy(obs), deterministic=deterministic, **given)
        if chosen.state is not None:
            memory.append(chosen.state)
        return within(agent.action_space, chosen.action.cpu().numpy())

    return choose
