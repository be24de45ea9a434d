"""GymnasiumEnvs: any registered Gymnasium environment as a vector environment with SAME_STEP autoreset."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from numpy.typing import NDArray


class GymnasiumEnvs(VectorWrapper):
    """`num_envs` copies of a Gymnasium environment, stepped one after another in this process.

    Sub-environment `i` is seeded with `seed + i`. `infos["final_obs"]` is dense: `[N, ...]`, valid where
    `infos["_final_obs"]`.
    """

    def __init__(self, env_id: str, num_envs: int = 4, seed: int = 0, video_folder: str | Path | None = None) -> None:
        """Makes the environments.

        Args:
            env_id: A registered id, for example CartPole-v1.
            num_envs: How many run side by side.
            seed: Seed of the first `reset()`.
            video_folder: If given, sub-environment 0 records mp4 files there: episodes 0, 1, 8, 27, ... 1000, 2000, ...

        Raises:
            ValueError: An unknown id, an id whose package is missing, or a size that cannot work.
        """
        if num_envs < 1:
            raise ValueError(f"GymnasiumEnvs: num_envs must be at least 1, got {num_envs}")
        folders = [str(video_folder) if video_folder and i == 0 else None for i in range(num_envs)]
        try:
            envs = SyncVectorEnv([_maker(env_id, folder) for folder in folders], autoreset_mode=AutoresetMode.SAME_STEP)
        except gymnasium.error.Error as error:
            raise ValueError(f"GymnasiumEnvs: --env_id {env_id}: {error}") from error
        super().__init__(envs)
        self._envs = envs
        self._first_seed: int | None = seed

    @property
    def num_seeds(self) -> int:
        """Consecutive seeds that `reset(seed=...)` uses: one per sub-environment."""
        return self.num_envs

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes; sub-environment `i` gets `seed + i`. See `gymnasium.vector.VectorEnv.reset`."""
        seed = self._first_seed if seed is None else seed
        self._first_seed = None
        return self._envs.reset(seed=seed, options=options)

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Any, NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """See `gymnasium.vector.VectorEnv.step`; `infos` only holds `final_obs` and `_final_obs`."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        dense: dict[str, Any] = {}
        if "final_obs" in infos:
            final = obs.copy()
            ended = infos["_final_obs"]
            for i in np.flatnonzero(ended):
                final[i] = infos["final_obs"][i]
            dense = {"final_obs": final, "_final_obs": ended}
        return obs, rewards, terminated, truncated, dense


def _maker(env_id: str, video_folder: str | None) -> Callable[[], gymnasium.Env[Any, Any]]:
    def make() -> gymnasium.Env[Any, Any]:
        if video_folder is None:
            return gymnasium.make(env_id)
        env = gymnasium.make(env_id, render_mode="rgb_array")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Overwriting existing videos.*")
            return gymnasium.wrappers.RecordVideo(env, video_folder, disable_logger=True)

    return make
