"""RocketSimParallelEnv: one game as a parallel environment of PettingZoo."""

from typing import Any

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from envs.checks import parse_team_sizes
from envs.pool.rocket_pool import RocketSimPool
from envs.state.layout import Float


class RocketSimParallelEnv(ParallelEnv[str, Float, Any]):  # type: ignore[misc]  # PettingZoo has no types
    """One game of Rocket League; the agents are the cars: blue-0, blue-1, ..., orange-0, ...

    With several team sizes, each `reset` takes the next one, so an episode has as many agents as its teams have cars.
    `infos[agent]["action_mask"]` (`[n]` int8) is the mask of its next action if the action parser has masks, and
    `infos[agent]["result"]` in the last step 1 for the team that scored, 0 for the other, 0.5 if no goal was scored.

    Attributes:
        pools: A `RocketSimPool` with one arena for each team size.
    """

    metadata = {"name": "rocketsim_v0", "render_modes": ["rgb_array"]}  # noqa: RUF012 - PettingZoo's

    def __init__(
        self,
        team_size: int | tuple[int, int] | list[tuple[int, int]] = 1,
        render_mode: str | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> None:
        """Build the game.

        Args:
            team_size: Cars per team, (blue, orange), or a list of (blue, orange) that episodes use in rotation.
            render_mode: None, or "rgb_array" for `render`.
            settings: Other settings of `RocketSimPool`, for example `obs`, `action`, `reward` and `tick_skip`.

        Raises:
            ValueError: A setting is invalid, or observations of different team sizes have different lengths.
        """
        sizes = parse_team_sizes(team_size)
        self.pools = [RocketSimPool(1, size, render_mode=render_mode, **settings) for size in sizes]
        first = self.pools[0]
        if any(pool.single_observation_space != first.single_observation_space for pool in self.pools):
            raise ValueError("RocketSimParallelEnv: observations differ between team sizes; use obs with zero_padding")
        self.render_mode = render_mode
        self._names = [self._agents_of(*size) for size in sizes]
        self.possible_agents = list(dict.fromkeys(name for names in self._names for name in names))
        self.agents: list[str] = []
        self._episode = -1
        self._spaces = first.single_observation_space, first.single_action_space

    @staticmethod
    def _agents_of(blue: int, orange: int) -> list[str]:
        return [f"blue-{i}" for i in range(blue)] + [f"orange-{i}" for i in range(orange)]

    def observation_space(self, agent: str) -> Space[Any]:
        return self._spaces[0]

    def action_space(self, agent: str) -> Space[Any]:
        return self._spaces[1]

    @property
    def pool(self) -> RocketSimPool:
        """The pool of the current episode."""
        return self.pools[max(0, self._episode) % len(self.pools)]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Float], dict[str, dict[str, Any]]]:
        """Begin an episode; with `seed`, the rotation of team sizes begins again, too."""
        self._episode = 0 if seed is not None else self._episode + 1
        if seed is not None:
            for number, pool in enumerate(self.pools[1:], 1):
                pool.reset(seed=seed + number)
        obs, infos = self.pool.reset(seed=seed)
        self.agents = list(self._names[self._episode % len(self.pools)])
        return dict(zip(self.agents, obs, strict=True)), self._infos(infos)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Float], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step with an action for every agent; after the last step of an episode, `agents` is empty."""
        if not self.agents:
            raise RuntimeError("RocketSimParallelEnv: the episode has ended; call reset()")
        rows = np.stack([np.asarray(actions[agent]) for agent in self.agents])
        obs, rewards, terminated, truncated, infos = self.pool.step(rows)
        names = self.agents
        ended = bool(terminated[0] or truncated[0])  # all cars end their episode together
        told = self._infos(infos, ended)
        if ended:
            obs, self.agents = infos["final_obs"], []
        values = (obs, rewards.tolist(), terminated.tolist(), truncated.tolist())
        found = [dict(zip(names, value, strict=True)) for value in values]
        return (*found, told)  # type: ignore[return-value]

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture of the game, `[360, 640, 3]` uint8, or None without a render mode."""
        return None if self.render_mode is None else self.pool.render()[0]

    def close(self) -> None:
        for pool in self.pools:
            pool.close()

    def _infos(self, infos: dict[str, Any], ended: bool = False) -> dict[str, dict[str, Any]]:
        told: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        for number, agent in enumerate(self.agents):
            if "action_mask" in infos and not ended:
                told[agent]["action_mask"] = infos["action_mask"][number].astype(np.int8)
            if ended and "result" in infos:
                told[agent]["result"] = float(infos["result"][number])
        return told
