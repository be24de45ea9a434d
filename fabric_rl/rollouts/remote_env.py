"""RemoteEnv: on a rank that only trains, what stands for the environments that others play in."""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from fabric_rl.rollouts.rollout import reward_signals
from fabric_rl.types import HasParameters, ParameterValue


@dataclass(frozen=True)
class EnvDescription:
    """What a player tells the trainers about its environment."""

    kind: str
    num_envs: int
    metadata: dict[str, Any]
    single_observation_space: gymnasium.Space[Any]
    single_action_space: gymnasium.Space[Any]
    reward_signals: tuple[str, ...]
    layout: dict[str, str]
    has_parameters: bool
    first_obs: NDArray[Any]
    """`[1, ...]`, one first observation for the trial."""
    first_mask: NDArray[Any] | None
    """`[1, n]`, its action mask."""

    @classmethod
    def of(cls, envs: VectorEnv, seed: int) -> "EnvDescription":
        """Describes an environment, which is reset for that."""
        obs, infos = envs.reset(seed=seed)
        mask = infos.get("action_mask")
        return cls(
            kind=type(envs).__name__,
            num_envs=envs.num_envs,
            metadata={"autoreset_mode": envs.metadata.get("autoreset_mode")},
            single_observation_space=envs.single_observation_space,
            single_action_space=envs.single_action_space,
            reward_signals=reward_signals(envs),
            layout=dict(getattr(envs, "layout", {})),
            has_parameters=isinstance(envs, HasParameters),
            first_obs=np.array(obs[:1]),
            first_mask=None if mask is None else np.array(mask[:1]),
        )


class RemoteEnv(VectorEnv):
    """Has the spaces of the players' environments, and shows one first observation again and again."""

    def __init__(self, description: EnvDescription, num_envs: int) -> None:
        self.description, self.num_envs, self.metadata = description, num_envs, description.metadata
        self.single_observation_space = description.single_observation_space
        self.single_action_space = description.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.reward_signals, self.layout = description.reward_signals, description.layout

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[NDArray[Any], dict[str, Any]]:  # noqa: ANN401
        """The same observation for all."""
        mask = self.description.first_mask
        infos = {} if mask is None else {"action_mask": mask.repeat(self.num_envs, axis=0)}
        return self.description.first_obs.repeat(self.num_envs, axis=0), infos

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Nothing happens."""
        obs, infos = self.reset()
        over = np.zeros(self.num_envs, np.bool_)
        return obs, np.zeros(self.num_envs, np.float32), over, over, infos

    def check_parameters(self, values: dict[str, ParameterValue]) -> None:
        """The players check them, if there are any at all."""
        if not self.description.has_parameters:
            raise ValueError(f"{self.description.kind} has no parameters that could be set to {', '.join(values)}")

    def set_parameters(self, values: dict[str, ParameterValue]) -> None:
        """The players set them."""
