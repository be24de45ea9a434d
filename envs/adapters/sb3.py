"""RocketSimVecEnv: a RocketSim pool as a vector environment of Stable-Baselines3."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from envs.actions.base import get_action_mask
from envs.checks import check_seed
from envs.pool.rocket_pool import RocketSimPool


class RocketSimVecEnv(VecEnv):
    """Vector environment of Stable-Baselines3 around a `RocketSimPool`, or another Gymnasium `VectorEnv`.

    Every car is one environment; the policy plays all of them. `infos[i]["terminal_observation"]` and
    `infos[i]["TimeLimit.truncated"]` are as Stable-Baselines3 expects them. For `MaskablePPO` of sb3-contrib,
    `env_method("action_masks")` returns the masks of the current observations. Put it inside SB3's `VecMonitor` for
    returns and lengths of episodes.

    Attributes:
        pool: The environment inside.
    """

    def __init__(self, pool: VectorEnv[Any, Any, Any] | None = None, **settings: Any) -> None:  # noqa: ANN401
        """Wrap `pool`, which must reset its environments in the step in which an episode ends.

        Args:
            pool: The environment. Default: a `RocketSimPool` with these settings.
            settings: Settings of `RocketSimPool`, for example `num_arenas=16`.
        """
        if pool is not None and settings:
            raise TypeError("RocketSimVecEnv: pass a pool or its settings, not both")
        self.pool: Any = RocketSimPool(**settings) if pool is None else pool
        if self.pool.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError("RocketSimVecEnv: the pool must have autoreset_mode SAME_STEP, as RocketSimPool has")
        self._actions: NDArray[Any] | None = None
        self._masks: NDArray[np.bool_] | None = None
        own: Any = self.pool if isinstance(self.pool, RocketSimPool) else None
        self._has_masks = own is not None and get_action_mask(own.action_parser, own.state) is not None
        super().__init__(self.pool.num_envs, self.pool.single_observation_space, self.pool.single_action_space)

    def reset(self) -> Any:  # noqa: ANN401 - SB3's signature
        """Begin new episodes everywhere; `seed(n)` before it seeds arena `i` of the pool with `n + i`."""
        obs, infos = self.pool.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._masks = infos.get("action_mask")
        return obs

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the next `reset`; only the first of the returned seeds is used."""
        if seed is not None:
            seed = check_seed("RocketSimVecEnv", seed)
        return super().seed(seed)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep actions `[N, ...]` for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Return observations `[N, ...]`, rewards `[N]`, ends of episodes `[N]` and the infos of each environment."""
        obs, rewards, terminated, truncated, infos = self.pool.step(self._actions)
        self._masks = infos.get("action_mask")
        rows: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        ended = terminated | truncated
        for i in np.flatnonzero(ended).tolist():
            cut = bool(truncated[i] and not terminated[i])
            rows[i] = {"terminal_observation": infos["final_obs"][i], "TimeLimit.truncated": cut}
        return obs, rewards.astype(np.float32), ended, rows

    def close(self) -> None:
        self.pool.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the pool once per environment."""
        has_masks = attr_name == "action_masks" and (self._has_masks or self._masks is not None)
        found = self._mask_of if has_masks else getattr(self.pool, attr_name)
        return [found for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:  # noqa: ANN401
        """Raise an error: settings of a pool are arguments of its constructor."""
        raise NotImplementedError(f"RocketSimVecEnv: set {attr_name} when the pool is built")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,  # noqa: ANN401
        indices: VecEnvIndices = None,
        **method_kwargs: Any,  # noqa: ANN401
    ) -> list[Any]:
        """Return the action masks `[n]` of the environments (`action_masks`); other methods are those of `pool`."""
        if method_name != "action_masks":
            raise NotImplementedError(f"RocketSimVecEnv: call pool.{method_name}(), which is for all environments")
        return [self._mask_of(i) for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Return False for each environment: single cars have no wrappers."""
        return [False for _ in self._get_indices(indices)]

    def _mask_of(self, index: int) -> NDArray[np.bool_]:
        if self._masks is None:
            raise AttributeError("RocketSimVecEnv: the action parser has no masks")
        mask: NDArray[np.bool_] = self._masks[index]
        return mask
