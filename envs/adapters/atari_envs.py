"""AtariEnvs: games of the Atari 2600 with the usual preprocessing, in threads of ale-py."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from numpy.typing import NDArray

from envs.checks import check_seed
from envs.cores import available_threads
from fabric_rl.base.settings import Count, check_value


class AtariEnvs(VectorWrapper):
    """Copies of a game, stepped by `ale_py.AtariVectorEnv`, with SAME_STEP autoreset.

    Observations are the last four frames in grey, `[4, 84, 84]` uint8; a step lasts four frames, of which the last two
    are merged; rewards are clipped to -1, 0 and 1; an episode begins with up to 30 no-op steps (Machado et al. 2018).
    The number of threads never changes a game.
    """

    def __init__(
        self,
        game: str,
        num_envs: int = 8,
        seed: int = 0,
        num_threads: int | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Make the games; sub-environment `i` is seeded with `seed + i`.

        Args:
            game: Its name in small letters: breakout, ms_pacman.
            num_envs: Games side by side.
            seed: Seed of the first `reset()`.
            num_threads: Threads of the games. Default: this process's share of the cores.
            settings: More of `ale_py.AtariVectorEnv`, for example `{"episodic_life": true}`.

        Raises:
            ValueError: No such game or setting, or a number that cannot work.
            ImportError: ale-py is not installed.
        """
        check_value("AtariEnvs: num_envs", num_envs, Count)
        self._first_seed: int | None = check_seed("AtariEnvs", seed)
        try:
            from ale_py.vector_env import AtariVectorEnv
        except ImportError as error:
            raise ImportError(f"AtariEnvs needs {error.name}; pip install ale-py") from error
        own: dict[str, Any] = {
            "autoreset_mode": AutoresetMode.SAME_STEP,
            "num_threads": num_threads or available_threads(),
        }
        try:
            games = AtariVectorEnv(game, num_envs, **(settings or {}), **own)
        except (AssertionError, TypeError) as error:
            raise ValueError(f"AtariEnvs: {error}") from error
        super().__init__(games)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        """Begin new games; see `gymnasium.vector.VectorEnv.reset`."""
        seed, self._first_seed = self._first_seed if seed is None else seed, None
        return self.env.reset(seed=seed, options=options)[0].copy(), {}

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        obs, ended, last = obs.copy(), terminated | truncated, {}
        if ended.any():
            final = obs.copy()
            final[ended] = infos["final_obs"][ended]  # the other rows are not valid
            last = {"final_obs": final, "_final_obs": ended}
        return obs, rewards.astype(np.float32), terminated.copy(), truncated.copy(), last
