"""RLGymPool: environments written for RLGym v2, unchanged, as one Gymnasium vector environment."""

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from rlgym.api import RLGym
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.adapters.rlgym_rewards import WatchedGames, WatchedReward
from envs.checks import as_actions, check_actions, check_seed
from envs.loggers import StateLogger
from fabric_rl.base.settings import Count, check_value, describe_value
from fabric_rl.base.state_schema import CannotBeSavedError

Array = NDArray[Any]
AnyRLGym: TypeAlias = RLGym[Any, Any, Any, Any, Any, Any, Any, Any]


class RLGymPool(VectorEnv[Array, Array, Array]):
    """Step RLGym environments one after the other; every agent of every environment is one sub-environment.

    Use it for existing RLGym code. Because it runs Python code for every agent, `RocketSimPool` is several times
    faster. To use all cores, put it into a `ProcessPool`. Discrete actions are passed to the environment as arrays of
    shape `[1]`, as RLGym's learners do. An episode ends for all agents of an environment as soon as it ends for one;
    agents that are not done in RLGym are then truncated. The state cannot be saved, so a run that resumes from a
    checkpoint begins new episodes.
    """

    def __init__(
        self,
        build_env: Callable[[], AnyRLGym],
        num_envs: int = 8,
        seed: int = 0,
        loggers: Sequence[StateLogger] = (),
    ) -> None:
        """Build and reset the environments.

        Args:
            build_env: Builds one `rlgym.api.RLGym`.
            num_envs: Environments; the vector environment has as many sub-environments as they have agents.
            seed: RLGym has no seeds; its state mutators draw from `random` and `numpy.random`. Both are seeded here and
                in `reset(seed=...)`, for the whole process.
            loggers: Observe the games and report metrics, for example `GameMetrics()`. RLGym's states have no counters
                of goals, shots, saves and demolitions, so these are 0.

        Raises:
            TypeError: `build_env` is not a function or built something else, or a logger has the wrong type.
            ValueError: No environments, no agents, agents with different spaces, or loggers without Rocket League.
        """
        check_value("RLGymPool: num_envs (--env.num_envs)", num_envs, Count)
        seed = check_seed("RLGymPool", seed)
        if not callable(build_env):
            raise TypeError(
                "RLGymPool: build_env (--env.build_env) must be a function that builds an RLGym, got "
                f"{describe_value(build_env)}" + (", which is one already" if isinstance(build_env, RLGym) else "")
            )
        self._envs: list[Any] = [build_env() for _ in range(num_envs)]
        for env in self._envs:
            if not isinstance(env, RLGym):
                raise TypeError(f"RLGymPool: build_env (--env.build_env) must build an RLGym, got {type(env).__name__}")
            env.reward_fn = WatchedReward(env.reward_fn)
        self.loggers = check_value("RLGymPool: loggers (--env.loggers)", loggers, tuple[StateLogger, ...])
        _seed(seed)
        first = [env.reset() for env in self._envs]
        self._agents: list[list[Any]] = [list(env.agents) for env in self._envs]
        self._ends = np.cumsum([len(agents) for agents in self._agents])
        self.num_envs = int(self._ends[-1])
        if any(not agents for agents in self._agents):
            raise ValueError("RLGymPool: an environment has no agents")
        shape = np.asarray(first[0][self._agents[0][0]], np.float32).shape
        self.single_observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.single_action_space = self._action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self._touching = np.zeros(self.num_envs, np.bool_)
        self._counts = dict.fromkeys(("touches", "goals", "episodes", "car_ticks", "ticks"), 0)
        for index, obs in enumerate(first):
            self._stack(index, obs)
        self._games = WatchedGames(self.loggers, [env.state for env in self._envs]) if self.loggers else None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin new episodes and return observations `[N, D]` float32 and an empty dict.

        `seed` seeds `random` and `numpy.random` of this process.
        """
        if seed is not None:
            _seed(check_seed("RLGymPool", seed, "reset(seed=...)"))
        self._touching[:] = False
        obs = np.concatenate([self._reset(index) for index in range(len(self._envs))])
        self._watch_begin(np.ones(len(self._envs), np.bool_))
        return obs, {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step every environment once.

        Args:
            actions: `[N]` integers for discrete actions, else `[N, k]`.

        Returns:
            Observations `[N, D]` float32, rewards `[N]` float32, terminated `[N]`, truncated `[N]`, infos.

        Raises:
            ValueError: The actions have the wrong shape or are outside the action space, or an environment returned
                invalid data.
        """
        actions = as_actions("RLGymPool", actions)
        expected = (self.num_envs, *(self.single_action_space.shape or ()))
        integers = np.issubdtype(self.single_action_space.dtype, np.integer)
        if actions.shape != expected or actions.dtype.kind not in ("iu" if integers else "f"):
            kind = "integers" if integers else "floats"
            given = describe_value(actions)
            raise ValueError(f"RLGymPool: actions must be {kind} of shape {list(expected)}, got {given}")
        check_actions("RLGymPool", actions, self.single_action_space)
        rows = actions.reshape(self.num_envs, -1)
        obs = np.empty((self.num_envs, *(self.single_observation_space.shape or ())), np.float32)
        rewards = np.empty(self.num_envs, np.float32)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        final: Array | None = None
        done = np.zeros(len(self._envs), np.bool_)
        for index, (env, agents) in enumerate(zip(self._envs, self._agents, strict=True)):
            own = self._rows(index)
            before = getattr(env.state, "tick_count", 0)
            results = env.step(dict(zip(agents, rows[own], strict=True)))
            obs[own] = self._stack(index, results[0])
            for out, values in zip((rewards, terminated, truncated), results[1:], strict=True):
                out[own] = [values[agent] for agent in agents]
            self._count(index, env.state, before)
            if self._games is not None:
                self._games.see(index, env.state)
            if terminated[own].any() or truncated[own].any():
                truncated[own] |= ~terminated[own]
                final = obs.copy() if final is None else final
                final[own] = obs[own]
                obs[own] = self._reset(index)
                self._touching[own] = False
                self._counts["episodes"] += 1
                done[index] = True
        if self._games is not None:
            self._games.update(done)
            if done.any():
                self._watch_begin(done)
        infos = {} if final is None else {"final_obs": final, "_final_obs": terminated | truncated}
        return obs, rewards, terminated, truncated, infos

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of `RocketSimPool.drain_metrics`; touches and goals only for Rocket League states.

        The terms of RLGym's `CombinedReward`, or the single reward, are named by their classes.
        """
        counts, per_minute = self._counts, 60 * TICKS_PER_SECOND
        self._counts = dict.fromkeys(counts, 0)
        metrics = {
            "game/touches_per_minute": (float(counts["touches"]), counts["car_ticks"] / per_minute),
            "game/goals_per_minute": (float(counts["goals"]), counts["ticks"] / per_minute),
            "game/episodes_per_minute": (float(counts["episodes"]), counts["ticks"] / per_minute),
        }
        for env in self._envs:
            for name, (total, count) in env.reward_fn.parts.drain().items():
                before = metrics.get(name, (0.0, 0.0))
                metrics[name] = (before[0] + total, before[1] + count)
        for logger in self.loggers:
            metrics |= logger.drain_metrics()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Raise a CannotBeSavedError: the parts of an RLGym environment cannot be saved."""
        raise CannotBeSavedError(
            "RLGymPool: RLGym environments cannot be saved; use a RocketSimPool for an exact resume"
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raise a TypeError; see `state_dict`."""
        raise TypeError("RLGymPool: RLGym environments cannot be restored; use a RocketSimPool for an exact resume")

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Close the environments."""
        for env in self._envs:
            env.close()

    def _watch_begin(self, begun: Array) -> None:
        """Show the loggers the initial states of the environments in `begun [E]`."""
        if self._games is not None:
            for index in np.flatnonzero(begun).tolist():
                self._games.see(index, self._envs[index].state)
            self._games.begin(begun)

    def _rows(self, index: int) -> slice:
        return slice(int(self._ends[index]) - len(self._agents[index]), int(self._ends[index]))

    def _reset(self, index: int) -> Array:
        env = self._envs[index]
        obs = env.reset()
        if list(env.agents) != self._agents[index]:
            raise ValueError(
                f"RLGymPool: environment {index} began with agents {self._agents[index]} and now has "
                f"{list(env.agents)}; their number must not change, use a FixedTeamSizeMutator"
            )
        return self._stack(index, obs)

    def _stack(self, index: int, obs: dict[Any, Any]) -> Array:
        """Return the observations `[agents, D]` float32."""
        rows = np.array([np.asarray(obs[agent], np.float32) for agent in self._agents[index]])
        if rows.shape[1:] != self.single_observation_space.shape:
            raise ValueError(
                f"RLGymPool: environment {index} returned observations of shape {list(rows.shape[1:])}, the first "
                f"one of {list(self.single_observation_space.shape or ())}; give the observation builder zero_padding"
            )
        if not np.isfinite(rows).all():
            raise FloatingPointError(
                f"RLGymPool: {type(self._envs[index].obs_builder).__name__} returned NaN or infinity"
            )
        return rows

    def _action_space(self) -> Space[Any]:
        pairs = zip(self._envs, self._agents, strict=True)
        found = [_space(env.action_space(agent)) for env, agents in pairs for agent in agents]
        if any(space != found[0] for space in found):
            raise ValueError("RLGymPool: all agents must have the same action space")
        return found[0]

    def _count(self, index: int, state: Any, ticks_before: int) -> None:  # noqa: ANN401 - whatever the engine's state is
        if not isinstance(state, RLGymState):
            return
        ticks = int(state.tick_count) - ticks_before
        touching = np.array([state.cars[agent].ball_touches > 0 for agent in self._agents[index]])
        own = self._rows(index)
        counts = self._counts
        counts["touches"] += int((touching & ~self._touching[own]).sum())
        counts["goals"] += bool(state.goal_scored)
        counts["ticks"] += ticks
        counts["car_ticks"] += ticks * len(touching)
        self._touching[own] = touching


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)


def _space(space: Any) -> Space[Any]:  # noqa: ANN401 - RLGym leaves it to the parser
    """Convert a Gymnasium space, or RLGym's ("discrete", n), ("multidiscrete", sizes), ("continuous", n)."""
    if isinstance(space, Space):
        return space
    if isinstance(space, Sequence) and len(space) == 2:
        kind, size = str(space[0]).lower(), space[1]
        if kind == "discrete":
            return spaces.Discrete(int(size))
        if kind in ("multidiscrete", "multi-discrete", "multi_discrete"):
            return spaces.MultiDiscrete(np.asarray(size))
        if kind in ("continuous", "real", "box"):
            return spaces.Box(-1, 1, (int(size),), np.float32)
    raise ValueError(
        f"RLGymPool: the action parser's space is {space!r}; known are ('discrete', n), ('multidiscrete', sizes), "
        "('continuous', n) and Gymnasium spaces"
    )
