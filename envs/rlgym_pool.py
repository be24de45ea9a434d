"""RLGymPool: environments written for RLGym v2, unchanged, as one Gymnasium vector environment."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from rlgym.api import RLGym
from rlgym.rocket_league.api import GameState as RLGymState
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

Array = NDArray[Any]

# Names of the kinds of action spaces; the numbers are rlgym-ppo's.
_DISCRETE = ("discrete", "0")
_MULTI_DISCRETE = ("multidiscrete", "multi-discrete", "multi_discrete", "1")
_CONTINUOUS = ("continuous", "real", "box", "2")


class RLGymPool(VectorEnv[Array, Array, Array]):
    """Steps RLGym environments one after the other; every agent of every environment is one sub-environment.

    For code that exists: everything in it is Python per agent, so `RocketSimPool` is several times faster. To use all
    cores, put it into a `ProcessPool`. Discrete actions reach the environment as arrays of shape `[1]`, as learners for
    RLGym pass them. An episode ends for all agents of an environment as soon as it ends for one; agents that RLGym does
    not call done then are truncated. Environments may have different numbers of agents if their observations have the
    same shape (`DefaultObs` with `zero_padding`), but each keeps its agents.

    RLGym has no seeds: its state mutators draw from the process-wide `random` and `numpy.random`. While environment `i`
    is built, reset or stepped, those two draw from a stream of its own that began with `seed + i`, so its episodes are
    what `random.seed(seed + i)` and `numpy.random.seed(seed + i)` give it when it runs alone; afterwards both go on
    where they were. (One exception: the spare number that `numpy.random.normal` may keep is dropped between calls.)
    Generators that an environment makes itself are beyond reach.
    """

    def __init__(self, build_env: Callable[[], Any], num_envs: int = 8, seed: int = 0) -> None:
        """Builds and resets the environments.

        Args:
            build_env: Builds one `rlgym.api.RLGym`; on the command line its import path, such as my_bot.build_env.
            num_envs: Environments; the vector environment has as many sub-environments as they have agents.
            seed: `random` and `numpy.random` of environment `i` begin with `seed + i`.

        Raises:
            TypeError: `build_env` cannot be called or built something else.
            ValueError: No environments, no agents, agents of different spaces, or a space of an unknown kind.
        """
        if num_envs < 1:
            raise ValueError(f"RLGymPool: num_envs (--env.num_envs) must be at least 1, got {num_envs}")
        if not callable(build_env):
            raise TypeError(f"RLGymPool: build_env (--env.build_env) must be a function, got {build_env!r}")
        self._draws = [_Draws(seed + i) for i in range(num_envs)]
        self._envs: list[Any] = []
        first: list[dict[Any, Any]] = []
        for draws in self._draws:
            with draws.in_use():
                self._envs.append(_checked(build_env()))
                first.append(self._envs[-1].reset())
        self._agents: list[list[Any]] = [list(env.agents) for env in self._envs]
        self._ends = np.cumsum([len(agents) for agents in self._agents])
        self.num_envs = int(self._ends[-1])
        if any(not agents for agents in self._agents):
            raise ValueError("RLGymPool: an environment has no agents")
        self.single_observation_space = self._observation_space(first)
        self.single_action_space = self._action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = None
        self._touching = np.zeros(self.num_envs, np.bool_)
        self._counts = dict.fromkeys(("touches", "goals", "episodes", "car_ticks", "ticks"), 0)

    @property
    def num_seeds(self) -> int:
        """Consecutive seeds that `reset(seed=...)` uses: one per environment."""
        return len(self._envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: `random` and `numpy.random` of environment `i` begin anew with `seed + i`. None goes on.
            options: Not used.

        Returns:
            Observations `[N, D]` float32 and an empty dict.
        """
        if seed is not None:
            if not isinstance(seed, int):
                raise ValueError("RLGymPool: reset(seed=...) takes one integer; environment i then draws from seed + i")
            self._draws = [_Draws(seed + i) for i in range(len(self._envs))]
        return np.concatenate([self._reset(index) for index in range(len(self._envs))]), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Steps every environment once.

        Args:
            actions: `[N]` integers for discrete actions, else `[N, k]`.

        Returns:
            Observations `[N, D]` float32, rewards `[N]` float32, terminated `[N]` bool, truncated `[N]` bool, infos.

        Raises:
            ValueError: Actions of the wrong shape, or an environment returned something malformed.
            FloatingPointError: NaN or infinity in rewards or observations.
        """
        rows = self._checked_actions(np.asarray(actions))
        obs = np.empty((self.num_envs, *(self.single_observation_space.shape or ())), np.float32)
        rewards = np.empty(self.num_envs, np.float32)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        final: Array | None = None
        for index, (env, agents) in enumerate(zip(self._envs, self._agents, strict=True)):
            own = self._rows(index)
            before = _ticks(env.state)
            with self._draws[index].in_use():
                results = env.step(dict(zip(agents, rows[own], strict=True)))
            obs[own] = self._stack(index, results[0])
            rewards[own] = self._numbers(index, results[1], "reward", env.reward_fn)
            terminated[own] = self._numbers(index, results[2], "termination", env.termination_cond)
            truncated[own] = self._numbers(index, results[3], "truncation", env.truncation_cond)
            self._count(index, env.state, _ticks(env.state) - before)
            if terminated[own].any() or truncated[own].any():
                truncated[own] |= ~terminated[own]
                final = obs.copy() if final is None else final
                final[own] = obs[own]
                obs[own] = self._reset(index)
                self._counts["episodes"] += 1
        infos = {} if final is None else {"final_obs": final, "_final_obs": terminated | truncated}
        return obs, rewards, terminated, truncated, infos

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """As `RocketSimPool.drain_metrics`; zero for environments whose state is no Rocket League game."""
        counts, per_minute = self._counts, 60 * TICKS_PER_SECOND
        self._counts = dict.fromkeys(counts, 0)
        return {
            "game/touches_per_minute": (float(counts["touches"]), counts["car_ticks"] / per_minute),
            "game/goals_per_minute": (float(counts["goals"]), counts["ticks"] / per_minute),
            "game/episodes_per_minute": (float(counts["episodes"]), counts["ticks"] / per_minute),
        }

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Closes the environments."""
        for env in self._envs:
            env.close()

    def _rows(self, index: int) -> slice:
        return slice(int(self._ends[index]) - len(self._agents[index]), int(self._ends[index]))

    def _reset(self, index: int) -> Array:
        env = self._envs[index]
        with self._draws[index].in_use():
            obs = env.reset()
        if list(env.agents) != self._agents[index]:
            raise ValueError(
                f"RLGymPool: environment {index} began with agents {self._agents[index]} and now has "
                f"{list(env.agents)}; the agents of an environment must not change, use a FixedTeamSizeMutator"
            )
        self._touching[self._rows(index)] = False
        return self._stack(index, obs)

    def _stack(self, index: int, obs: dict[Any, Any]) -> Array:
        """`[agents, D]` float32."""
        builder, shape = type(self._envs[index].obs_builder).__name__, self.single_observation_space.shape
        rows = [_row(value, builder) for value in self._of_agents(index, obs, f"{builder}: observation")]
        for agent, row in zip(self._agents[index], rows, strict=True):
            if row.shape != shape:
                raise ValueError(
                    f"RLGymPool: {builder} returned an observation of shape {list(row.shape)} for {agent} in "
                    f"environment {index}, the first one had {list(shape or ())}; give it zero_padding, or all "
                    "environments the same teams"
                )
            if not np.isfinite(row).all():
                raise FloatingPointError(
                    f"RLGymPool: {builder} returned NaN or infinity for {agent} in environment {index}"
                )
        return np.stack(rows)

    def _numbers(self, index: int, values: dict[Any, Any], what: str, component: Any) -> Array:  # noqa: ANN401
        """`[agents]`, finite."""
        name = type(component).__name__
        numbers = np.asarray(self._of_agents(index, values, f"{name}: {what}"))
        if numbers.shape != (len(self._agents[index]),) or numbers.dtype.kind not in "fiub":
            raise ValueError(
                f"RLGymPool: {name} must return one number as the {what} of each agent, got {values} in environment "
                f"{index}"
            )
        if not np.isfinite(numbers).all():
            raise FloatingPointError(f"RLGymPool: {name} returned NaN or infinity: {values} in environment {index}")
        return numbers

    def _of_agents(self, index: int, values: dict[Any, Any], what: str) -> list[Any]:
        """The entries of one of RLGym's dicts, in the order of the agents."""
        missing = [str(agent) for agent in self._agents[index] if agent not in values]
        if missing:
            raise ValueError(f"RLGymPool: {what} of {', '.join(missing)} in environment {index} is missing")
        return [values[agent] for agent in self._agents[index]]

    def _checked_actions(self, actions: Array) -> Array:
        """`[N, k]`."""
        expected = (self.num_envs, *(self.single_action_space.shape or ()))
        integers = np.issubdtype(self.single_action_space.dtype, np.integer)
        if actions.shape != expected or actions.dtype.kind not in ("iu" if integers else "f"):
            raise ValueError(
                f"RLGymPool: actions must be {'integers' if integers else 'floats'} of shape {list(expected)}, got "
                f"{actions.dtype} of shape {list(actions.shape)}"
            )
        return actions.reshape(self.num_envs, -1)

    # ------------------------------------------------------------------ spaces

    def _observation_space(self, first: list[dict[Any, Any]]) -> spaces.Box:
        """What the builder reports, if that is a Box; else unbounded, of the shape of the first observation."""
        env, agent = self._envs[0], self._agents[0][0]
        builder = type(env.obs_builder).__name__
        shape = _row(self._of_agents(0, first[0], f"{builder}: observation")[0], builder).shape
        self.single_observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        for index, obs in enumerate(first):
            self._stack(index, obs)
        reported = env.observation_space(agent)
        if isinstance(reported, spaces.Box):
            if reported.shape != shape:
                raise ValueError(
                    f"RLGymPool: {builder} says that observations have shape {list(reported.shape)}, but builds "
                    f"{list(shape)}"
                )
            return spaces.Box(reported.low.astype(np.float32), reported.high.astype(np.float32), dtype=np.float32)
        if isinstance(reported, tuple) and len(reported) == 2 and isinstance(reported[1], int):
            size = reported[1]  # RLGym's pair ("real", size); -1 for a size that depends on the game
            if size > 0 and shape != (size,):
                raise ValueError(f"RLGymPool: {builder} reports {size} numbers, but builds observations {list(shape)}")
        return self.single_observation_space

    def _action_space(self) -> Space[Any]:
        found: Space[Any] | None = None
        for index, (env, agents) in enumerate(zip(self._envs, self._agents, strict=True)):
            for agent in agents:
                space = _action_space(env.action_space(agent), type(env.action_parser).__name__)
                found = found or space
                if space != found:
                    raise ValueError(
                        f"RLGymPool: all agents must have the same action space, but {agent} in environment {index} "
                        f"has {space} and the first one {found}"
                    )
        assert found is not None
        return found

    def _count(self, index: int, state: Any, ticks: int) -> None:  # noqa: ANN401 - whatever the engine's state is
        if not isinstance(state, RLGymState):
            return
        touching = np.array([state.cars[agent].ball_touches > 0 for agent in self._agents[index]])
        own = self._rows(index)
        counts = self._counts
        counts["touches"] += int((touching & ~self._touching[own]).sum())
        counts["goals"] += bool(state.goal_scored)
        counts["ticks"] += ticks
        counts["car_ticks"] += ticks * len(touching)
        self._touching[own] = touching


class _Draws:
    """A stream of random numbers that `random` and `numpy.random` draw from while it is in use."""

    def __init__(self, seed: int) -> None:
        self._python = random.Random(seed).getstate()
        self._numpy = np.random.MT19937()
        np.random.RandomState(self._numpy).seed(seed % 2**32)  # as numpy.random.seed does

    @contextmanager
    def in_use(self) -> Iterator[None]:
        outside, numpy_outside = random.getstate(), np.random.get_bit_generator()  # get_state would take 50 us
        random.setstate(self._python)
        np.random.set_bit_generator(self._numpy)
        try:
            yield
        finally:
            self._python = random.getstate()
            random.setstate(outside)
            np.random.set_bit_generator(numpy_outside)


def _checked(env: Any) -> Any:  # noqa: ANN401 - checked here
    if not isinstance(env, RLGym):
        inner = isinstance(getattr(env, "rlgym_env", None), RLGym)
        hint = "; return the RLGym that it wraps" if inner else ""
        raise TypeError(
            f"RLGymPool: build_env (--env.build_env) must build an rlgym.api.RLGym, got {type(env).__name__}{hint}"
        )
    return env


def _ticks(state: Any) -> int:  # noqa: ANN401 - whatever the engine's state is
    return int(state.tick_count) if isinstance(state, RLGymState) else 0


def _row(value: Any, builder: str) -> Array:  # noqa: ANN401 - whatever the builder made
    try:
        return np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"RLGymPool: {builder} must build arrays of numbers, got {type(value).__name__}") from error


def _action_space(space: Any, parser: str) -> Space[Any]:  # noqa: ANN401 - RLGym leaves it to the parser
    """Translates what an action parser reports: RLGym's pairs, a number of actions, or a Gymnasium space."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.Box)):
        return space
    kind, size = space if isinstance(space, Sequence) and len(space) == 2 else ("discrete", space)
    kind = str(kind).lower()
    try:
        if kind in _DISCRETE:
            return spaces.Discrete(int(size))
        if kind in _MULTI_DISCRETE:
            return spaces.MultiDiscrete(np.asarray(size))
        if kind in _CONTINUOUS:
            return spaces.Box(-1, 1, (int(size),), np.float32)
    except (TypeError, ValueError, AssertionError):  # Gymnasium asserts that sizes are positive
        pass
    raise ValueError(
        f"RLGymPool: the action space of {parser} is {space!r}; known are ('discrete', n), ('multidiscrete', sizes), "
        "('continuous', n) and Gymnasium's Discrete, MultiDiscrete and Box"
    )
