"""GymnasiumEnvs and AtariEnvs, vector environments with SAME_STEP autoreset; and wrappers."""

import copy
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from numpy.typing import NDArray

from envs.checks import check_seed
from envs.component import added_metrics
from envs.parameters import ParameterRandomizer
from envs.parameters.samplers import draw
from envs.pool.videos import EpisodeVideos
from fabric_rl.base.processes import available_threads
from fabric_rl.base.settings import Between, Count, Finite, check_value, is_integer, is_number
from fabric_rl.base.vector_step import final_obs_as_rows

_MOST_ENVS = 65_536
"""Limit for one process; each environment is a Python object."""
_FAMILIES = {"ALE/": "ale_py", "MiniGrid-": "minigrid", "BabyAI-": "minigrid"}
"""Prefix of environment ids -> package that registers them."""


class SampledAttributes(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Wrapper that samples numeric attributes of the innermost environment before its episodes begin.

    Samples for integer attributes are rounded down.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], randomizer: ParameterRandomizer) -> None:
        super().__init__(env)
        self._held: frozenset[str] = frozenset()
        self._samplers = dict(sorted(randomizer.samplers.items()))
        self._interval = randomizer.resampling_interval or 0
        self._rng = np.random.default_rng()
        self._drawn: dict[str, float] = {}
        self._steps = 0

    @property
    def numbers(self) -> dict[str, float]:
        """Current values of the sampled attributes."""
        return {name: float(getattr(self.env.unwrapped, name)) for name in self._samplers}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with new samples if the interval has passed; `seed` also seeds the samplers."""
        if seed is not None:
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        if seed is not None or not self._drawn or self._steps >= self._interval:
            self._steps = 0
            self._drawn = {name: draw(sampler, name, self._rng) for name, sampler in self._samplers.items()}
        self._put()
        return super().reset(seed=seed, options=options)

    def hold(self, names: Iterable[str]) -> None:
        """Stop setting the attributes `names`, and set the others to the values sampled for the episode."""
        self._held = frozenset(names)
        self._put()

    def _put(self) -> None:
        for name in self._drawn.keys() - self._held:
            own = getattr(self.env.unwrapped, name)
            setattr(self.env.unwrapped, name, int(self._drawn[name] // 1) if is_integer(own) else self._drawn[name])

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401 - Gymnasium's signature
        self._steps += 1
        return super().step(action)


class ConcatenatedBox(spaces.Box):
    """Space of vectors that concatenate several entries.

    Attributes:
        entries: Name -> space of the entry, in order; nested Dicts give names like `outer/inner`. An entry of shape
            `[a, b, c]` occupies `a * b * c` columns, in C order.
    """

    def __init__(self, entries: dict[str, spaces.Box]) -> None:
        boxes = entries.values()
        pixels = all(box.dtype == np.uint8 for box in boxes) and any(box.high.max() > 1 for box in boxes)
        dtype = np.uint8 if pixels else np.float32
        low, high = (np.concatenate([getattr(box, end).ravel() for box in boxes]) for end in ("low", "high"))
        super().__init__(low.astype(dtype), high.astype(dtype), dtype=dtype)
        self.entries = entries


class FlatObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Wrapper that flattens observations with several entries into vectors.

    The vectors are uint8 if all numbers are pixels, else float32. Discrete and MultiDiscrete entries become one-hot
    vectors. Raise a ValueError if an entry is not an array of numbers, if there are no entries, or if two entries get
    the same name.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._own = env.observation_space
        entries = _entries(self._own, "")
        if wrong := [name for name, box in entries.items() if not isinstance(box, spaces.Box)]:
            names = self._own if isinstance(self._own, spaces.Dict) else ()
            fine = ",".join(name for name in names if name not in {each.split("/")[0] for each in wrong})
            leave = f"remove it: --wrappers+=gymnasium.wrappers.FilterObservation --wrappers.filter_keys=[{fine}]"
            advice = leave if fine else "add a wrapper (--wrappers) that converts it to numbers"
            what = f"{wrong[0] or 'itself'}, a {type(entries[wrong[0]]).__name__}"
            raise ValueError(f"no agent can read the observation {what}; {advice}")
        self.observation_space = ConcatenatedBox(entries)

    def observation(self, observation: Any) -> NDArray[Any]:  # noqa: ANN401 - an element of any space
        """Return `[D]` of `observation_space`."""
        return np.asarray(spaces.flatten(self._own, observation), self.observation_space.dtype)


class KeepInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Wrapper that keeps the last observation of an episode, and the numbers and truth values in its last `info`.

    A vector environment changes their types, and an environment may use the same array and dict for its next episode.
    """

    numbers: Mapping[str, tuple[float, float]] = MappingProxyType({})
    """Name -> sum, number of summands."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401 - Gymnasium's signature
        stepped = self.env.step(action)
        if stepped[2] or stepped[3]:
            self.numbers = added_metrics(_numbers_in("info", stepped[4]))
            stepped = (copy.deepcopy(stepped[0]), *stepped[1:])
        return stepped


def _numbers_in(prefix: str, info: Mapping[str, Any]) -> Iterator[dict[str, tuple[float, float]]]:
    for key, value in info.items():
        name = f"{prefix}/{key}"
        value = value[()] if isinstance(value, np.ndarray) else value  # a number if it has no axes
        if isinstance(value, Mapping):
            yield from _numbers_in(name, value)
        elif isinstance(value, int | float | np.number | np.bool_) and np.isfinite(number := float(value)):
            yield {name: (number, 1.0)}


class RecordVideos(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Wrapper that records `videos` of an environment's episodes, see `EpisodeVideos`."""

    def __init__(self, env: gymnasium.Env[Any, Any], folder: str | Path) -> None:
        """Wrap `env`, which must render "rgb_array".

        Raises:
            ValueError: The environment has another render mode.
        """
        if env.render_mode != "rgb_array":
            raise ValueError(f"videos need an environment with render_mode='rgb_array', got {env.render_mode!r}")
        super().__init__(env)
        rate = env.metadata.get("render_fps") or 30
        self.videos = EpisodeVideos(folder, rate, lambda: np.asarray(env.render(), np.uint8))

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401 - as gymnasium's
        began = self.env.reset(**settings)
        self.videos.begin()
        return began

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401
        stepped = self.env.step(action)
        self.videos.step()
        return stepped

    def close(self) -> None:
        self.videos.close()
        super().close()


class KeepColumns(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Keep only some columns of vector observations, for example positions without velocities, to require memory."""

    def __init__(self, env: gymnasium.Env[Any, Any], columns: Sequence[int]) -> None:
        """Wrap `env`; raise a ValueError if its observations are not vectors or lack these columns."""
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise ValueError(f"KeepColumns: observations must be vectors, got {space}")
        self.columns = list(columns)
        if not self.columns or not all(0 <= column < space.shape[0] for column in self.columns):
            raise ValueError(f"KeepColumns: columns must be among 0 to {space.shape[0] - 1}, got {self.columns}")
        low, high = space.low[self.columns], space.high[self.columns]
        self.observation_space = spaces.Box(low, high, dtype=space.dtype.type)

    def observation(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the kept columns."""
        return observation[self.columns]


class GymnasiumEnvs(VectorWrapper):
    """Copies of a Gymnasium environment, stepped one after another in this process.

    Sub-environment `i` is seeded with `seed + i`. `infos["final_obs"]` is dense: `[N, ...]`, valid where
    `infos["_final_obs"]` is True. Observations that are not arrays (Dict, Tuple, Discrete, ...) are
    flattened into vectors, see `FlatObservations`. `num_seeds` is the number of consecutive seeds that
    `reset(seed=...)` uses, one per sub-environment. Numbers in the `info` of an episode's last step become metrics,
    `info/<key>`, as means over episodes; so do those of nested dicts (`info/episode/l`) and truth values (shares).
    `info["action_mask"] [n]` of discrete actions becomes `infos["action_mask"] [N, n]` bool, True = allowed.
    """

    headlines = MappingProxyType({f"info/{key}": key for key in ("success", "is_success")})
    """Metrics that the table and the summary of a run show."""
    metrics_vary = True
    """Ranks may report different metrics: an `info/<key>` exists only if an episode with that key has ended."""

    def __init__(
        self,
        env_id: type[gymnasium.Env[Any, Any]] | str,
        num_envs: int = 4,
        seed: int = 0,
        video_folder: str | Path | None = None,
        wrappers: Sequence[Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]] = (),
        settings: dict[str, Any] | None = None,
        parameters: ParameterRandomizer | None = None,
    ) -> None:
        """Build the environments.

        Args:
            env_id: A registered id, for example CartPole-v1, or a class (its path on the command line).
            num_envs: Number of environments.
            seed: Seed of the first `reset()`.
            video_folder: If given, sub-environment 0 records mp4 files there: the first 20 s of episodes 0, 1, 8, 27,
                ... 1000, 2000, ..., at most 320 pixels wide, encoded by another process.
            wrappers: Gymnasium wrappers (class paths on the command line), the first one innermost.
            settings: Keyword arguments of the environment.
            parameters: The environment's own numbers (CartPole's `gravity`, ...) to sample for each episode.
                Sub-environment `i` samples from its own stream of `seed + i`. Default: none.

        Raises:
            ValueError: The id or a parameter is unknown, a package is missing, settings or a wrapper do not fit the
                environment, no agent can read the observations, or a size is out of range.
            TypeError: `parameters` has the wrong type.
        """
        Between(1, _MOST_ENVS).check("GymnasiumEnvs: num_envs", num_envs, whole=True)
        seed = check_seed("GymnasiumEnvs", seed)
        if parameters is not None:
            check_value("GymnasiumEnvs: parameters (--env.parameters)", parameters, ParameterRandomizer)
            wrappers = (partial(self._draw, parameters), *wrappers)
        no_screen = {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"}.isdisjoint(os.environ)
        if (settings or {}).get("render_mode") == "human" and sys.platform == "linux" and no_screen:
            raise ValueError("GymnasiumEnvs: render_mode human needs a display; try videos instead (--capture_video)")
        self._drawn: list[SampledAttributes] = []
        self._infos: list[KeepInfo] = []
        wrappers = (*wrappers, self._keep_info)
        folders = [str(video_folder) if video_folder and i == 0 else None for i in range(num_envs)]
        name = env_id if isinstance(env_id, str) else env_id.__name__
        try:
            spec = _registered(env_id) if isinstance(env_id, str) else EnvSpec(f"{name}-v0", cast(Any, env_id))
            makers = [_maker(spec, folder, wrappers, settings or {}) for folder in folders]
            envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        except (gymnasium.error.Error, ValueError) as error:
            hint = "; for a class of your own, pass its import path, such as my_file.MyEnv"
            hint += ", with my_file.py in the working folder or on PYTHONPATH"
            told = f"{str(error).rstrip('.')}{hint}" if "." in name else error
            raise ValueError(f"GymnasiumEnvs: --env_id {name}: {told}") from error
        super().__init__(envs)
        self._envs, self._env_id, self.num_seeds = envs, name, num_envs
        self._own_values: dict[str, Any] = {}
        self._sums: dict[str, tuple[float, float]] = {}
        self._first_seed: int | None = seed
        self.check_parameters({} if parameters is None else dict.fromkeys(parameters.samplers, 0))

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes; sub-environment `i` gets `seed + i`. See `gymnasium.vector.VectorEnv.reset`."""
        seed, self._first_seed = self._first_seed if seed is None else seed, None
        obs, infos = self._envs.reset(seed=seed, options=options)
        return obs, self._masks(infos)

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Any, NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        dense = self._masks(infos)
        if "final_obs" in infos:
            ended = infos["_final_obs"]
            final = final_obs_as_rows(obs, infos["final_obs"], ended)
            self._sums = added_metrics((self._sums, *(self._infos[i].numbers for i in np.flatnonzero(ended))))
            dense |= {"final_obs": final, "_final_obs": ended}
        return obs, rewards, terminated, truncated, dense

    def _masks(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Return the masks of discrete actions as bools; Gymnasium's own environments have 0 and 1."""
        discrete = isinstance(self.single_action_space, spaces.Discrete | spaces.MultiDiscrete)
        if not discrete or "action_mask" not in infos:
            return {}
        masks = infos["action_mask"]
        if masks.dtype == object:  # a tuple with a mask for each part of a MultiDiscrete space
            masks = np.array([np.concatenate(each) for each in masks])
        return {"action_mask": masks.astype(np.bool_)}

    @property
    def parameters(self) -> dict[str, NDArray[np.float64]]:
        """Sampled parameter -> `[N]` float64, its current value in each sub-environment."""
        rows = [drawn.numbers for drawn in self._drawn]
        return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the sum and the number of summands of each metric.

        `info/<key>` has the episodes that ended since the last call, `parameters/<name>` the sub-environments.
        """
        drawn = {f"parameters/{name}": (float(at.sum()), float(len(at))) for name, at in self.parameters.items()}
        infos, self._sums = self._sums, {}
        return infos | drawn

    def episode_figures(self, sub_env: int) -> dict[str, float]:
        """Return `headlines` of the last episode that ended in a sub-environment: label -> value."""
        numbers = self._infos[sub_env].numbers
        return {label: numbers[name][0] for name, label in self.headlines.items() if name in numbers}

    def _draw(self, parameters: ParameterRandomizer, env: gymnasium.Env[Any, Any]) -> SampledAttributes:
        self._drawn.append(SampledAttributes(env, parameters))
        return self._drawn[-1]

    def _keep_info(self, env: gymnasium.Env[Any, Any]) -> KeepInfo:
        self._infos.append(KeepInfo(env))
        return self._infos[-1]

    def finish_videos(self) -> None:
        """Wait until the videos of finished episodes are written."""
        for env in self._envs.envs:
            if isinstance(env, RecordVideos):
                env.videos.finish()

    def check_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """Raise a ValueError if the environment lacks one of these attributes or cannot set it to the given value."""
        numbers = {name: value for name, value in vars(self._envs.envs[0].unwrapped).items() if is_number(value)}
        known = ", ".join(sorted(name for name in numbers if not name.startswith("_"))) or "none"
        for name, value in values.items():
            if name not in numbers or name.startswith("_"):
                raise ValueError(f"GymnasiumEnvs: {self._env_id} has no parameter {name}; known: {known}")
            if hasattr(value, "__iter__"):
                raise ValueError(f"GymnasiumEnvs: {name} must be one number, not an interval, got {value!r}")
            number = check_value(f"GymnasiumEnvs: {name}", value, Finite)
            if is_integer(numbers[name]) and not number.is_integer():
                raise ValueError(f"GymnasiumEnvs: {name} of {self._env_id} must be a whole number, got {value!r}")

    def set_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """Set numeric attributes of the environments, for example CartPole's `gravity`.

        The values take effect at once, even in the middle of an episode, and replace samples. Numbers that an
        environment has computed from these attributes do not change. Attributes set by an earlier call but not by this
        one return to their initial value, or to the one sampled for the episode. Errors: see `check_parameters`.
        """
        self.check_parameters(values)
        for name in values:
            self._own_values.setdefault(name, getattr(self._envs.envs[0].unwrapped, name))
        for name, own in self._own_values.items():
            for env in self._envs.envs:
                setattr(env.unwrapped, name, type(own)(values.get(name, own)))
        for drawn in self._drawn:
            drawn.hold(values)


def _registered(env_id: str) -> str:
    """Import the package that provides `env_id` and return the id; raise a ValueError that says what to install."""
    package = next((package for start, package in _FAMILIES.items() if env_id.startswith(start)), None)
    try:
        if package is not None:
            import_module(package)
    except ImportError as error:
        raise ValueError(f"it needs {error.name}; pip install {error.name}") from error
    return env_id


def _maker(
    spec: EnvSpec | str,
    video_folder: str | None,
    wrappers: Sequence[Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]],
    settings: dict[str, Any],
) -> Callable[[], gymnasium.Env[Any, Any]]:
    def make() -> gymnasium.Env[Any, Any]:
        video = {} if video_folder is None else {"render_mode": "rgb_array"}
        try:
            env = gymnasium.make(spec, **(settings | video))
        except TypeError as error:
            if not settings:
                raise
            raise ValueError(f"--env_kwargs: {error}") from error
        except AssertionError as error:
            if "space is not allowed" not in str(error):  # Gymnasium's message for an empty Dict
                raise
            raise ValueError(f"{error} Add an entry to the empty space, or remove that space") from error
        for wrapper in wrappers:
            env = wrapper(env)
        space = env.observation_space
        if not (isinstance(space, spaces.Box) and space.shape):
            env = FlatObservations(env)
        return env if video_folder is None else RecordVideos(env, video_folder)

    return make


def _entries(space: spaces.Space[Any], name: str) -> dict[str, Any]:
    """Return name -> Box, in the order of `gymnasium.spaces.flatten`; non-numeric spaces stay as they are."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return {name: spaces.Box(0, 1, (spaces.flatdim(space),), np.uint8)}
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return {name: space}
    inner: Any = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    found: dict[str, Any] = {}
    for own, each in inner:
        new = _entries(each, f"{name}/{own}" if name else str(own))
        if twice := sorted(found.keys() & new):
            raise ValueError(f"two observations are called {twice[0]}; use names without slashes")
        found |= new
    if not found:
        what = f"{name or 'itself'}, an empty {type(space).__name__}"
        raise ValueError(f"no agent can read the observation {what}; remove it with a wrapper (--wrappers)")
    return found


class AtariEnvs(VectorWrapper):
    """Copies of a game, stepped by `ale_py.AtariVectorEnv`, with SAME_STEP autoreset.

    Observations are the last four greyscale frames, `[4, 84, 84]` uint8; a step lasts four frames, and the last two
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
        """Build the games; sub-environment `i` is seeded with `seed + i`.

        Args:
            game: Name of the game in lower case: breakout, ms_pacman.
            num_envs: Number of games played in parallel.
            seed: Seed of the first `reset()`.
            num_threads: Threads that step the games. Default: this process's share of the cores.
            settings: Other arguments of `ale_py.AtariVectorEnv`, for example `{"episodic_life": true}`.

        Raises:
            ValueError: There is no such game or setting, or a number is out of range.
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
        if isinstance(seed, int):  # the games take seeds of 31 bits
            seed = (seed + np.arange(self.num_envs)) % 2**31
        return self.env.reset(seed=seed, options=options)[0].copy(), {}

    def step(self, actions: NDArray[Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        obs, ended, last = obs.copy(), terminated | truncated, {}
        if ended.any():
            final = obs.copy()
            final[ended] = infos["final_obs"][ended]  # the other rows are not valid
            last = {"final_obs": final, "_final_obs": ended}
        return obs, rewards.astype(np.float32), terminated.copy(), truncated.copy(), last
