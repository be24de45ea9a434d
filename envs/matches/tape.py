"""Pools rebuilt with other parts, and what was seen while a bot played in one: a tape."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envs.bots.base import Bot
from envs.phased import Phased, phased_in
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import team_sizes
from envs.processes.process_pool import ProcessPool
from envs.rewards import Reward, default_reward
from envs.sim.arena import TICKS_PER_SECOND
from envs.state.game_state import Bool, Float, GameState

FIRST_MECHANICS_PHASE = 4


class PoolSettings:
    """The settings of a `RocketSimPool`, to build it as often as needed, with some of them changed.

    Attributes:
        pool_class: `RocketSimPool`, or a subclass.
        arguments: What it is built with.
    """

    def __init__(self, factory: Callable[..., Any], owner: str = "PoolSettings", phase: str | None = None) -> None:
        """Reads a factory.

        Args:
            factory: `RocketSimPool`, a `functools.partial` of it, or one of a `ProcessPool` around such a factory.
            owner: Who asks, for the message.
            phase: Of training, where the reward or the state setter has phases; default: the first.

        Raises:
            TypeError: It builds something else.
            ValueError: There is no such phase.
        """
        pool_class, arguments = _taken_apart(factory)
        while pool_class is ProcessPool and "factory" in arguments:
            pool_class, arguments = _taken_apart(arguments["factory"])
        if not (isinstance(pool_class, type) and issubclass(pool_class, RocketSimPool)):
            name = getattr(pool_class, "__name__", type(pool_class).__name__)
            raise TypeError(f"{owner}: needs the settings of an envs.RocketSimPool as env, got {name}")
        self.pool_class: type[RocketSimPool] = pool_class
        self.arguments = {name: value for name, value in arguments.items() if name not in ("seed", "first_arena")}
        if phase is not None or self.phases:
            self._begin_phase(self.phases[0] if phase is None else phase)

    def build(self, **changes: Any) -> RocketSimPool:  # noqa: ANN401 - the settings of a pool
        """A pool with parts of its own, so that none remembers what another pool did."""
        kept = {name: copy.deepcopy(value) for name, value in self.arguments.items() if name not in changes}
        return self.pool_class(**(kept | changes))

    @property
    def phases(self) -> list[str]:
        """Phases of training that the reward or the state setter knows, in order."""
        return list(dict.fromkeys(name for part in self._phased() for name in part.phases))

    def _begin_phase(self, name: str) -> None:
        """Goes on as in that phase, a name or a number from 1; mechanics lanes are off before the fourth."""
        numbers = {str(number): phase for number, phase in enumerate(self.phases, 1)}
        name = numbers.get(name, name)
        if name not in self.phases:
            known = f"it has {', '.join(self.phases)}" if self.phases else "there are none in this configuration"
            raise ValueError(f"--phase {name}: there is no such phase; {known}")
        self.arguments = {key: copy.deepcopy(value) for key, value in self.arguments.items()}
        mechanics = None if self.phases.index(name) + 1 >= FIRST_MECHANICS_PHASE else 0.0
        blue, orange = self.team_sizes[0]
        state = GameState(1, blue, orange)
        state.clear(np.array([0]))
        for part in self._phased():
            part.begin_phase(name, mechanics, state)

    def _phased(self) -> list[Phased]:
        parts = [self.arguments.get(name) for name in ("reward", "state_setter")]
        return [phased for part in parts if part is not None for phased in phased_in(part)]

    def reward(self) -> Reward:
        """The reward, new."""
        reward = self.arguments.get("reward")
        return default_reward() if reward is None else copy.deepcopy(reward)

    @property
    def team_sizes(self) -> list[tuple[int, int]]:
        """(blue, orange) that the arenas take in turns."""
        return team_sizes(self.arguments.get("team_size", 1))

    @property
    def tick_skip(self) -> int:
        """Ticks per step."""
        return int(self.arguments.get("tick_skip", 8))


def _taken_apart(factory: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
    """The class that a factory builds, and its arguments; jsonargparse hands out partials of a helper of its own."""
    keywords: dict[str, Any] = {}
    given: tuple[Any, ...] = ()
    while isinstance(factory, functools.partial):
        keywords, given, factory = factory.keywords | keywords, (*factory.args, *given), factory.func
    callables = [factory, *given]
    made = [at for at, part in enumerate(callables) if isinstance(part, type)]
    if not made:
        return factory, keywords
    pool_class = callables[made[-1]]
    rest = callables[made[-1] + 1 :]
    if rest and issubclass(pool_class, RocketSimPool | ProcessPool):
        keywords = dict(inspect.signature(pool_class).bind_partial(*rest, **keywords).arguments)
    return pool_class, keywords


@dataclass(frozen=True)
class Tape:
    """What was seen of a game, to compute any reward from it later.

    Attributes:
        frames: In order: (mask `[A]`, first states) when episodes begin, (None, state) after every step.
        tick_skip: Ticks per step.
    """

    frames: list[tuple[Bool | None, GameState]]
    tick_skip: int

    @property
    def first(self) -> GameState:
        """The first state."""
        return self.frames[0][1]

    @property
    def steps(self) -> list[GameState]:
        """The states after steps."""
        return [state for mask, state in self.frames if mask is None]

    @property
    def minutes(self) -> float:
        """Game time in one arena."""
        return float(len(self.steps) * self.tick_skip / TICKS_PER_SECOND / 60)


class _Recorder(Reward):
    """Pays nothing and keeps a copy of every state that it is shown, as in `Tape.frames`."""

    def __init__(self) -> None:
        self.frames: list[tuple[Bool | None, GameState]] = []

    def reset(self, mask: Bool, state: GameState) -> None:
        """Keeps the first states of the arenas in `mask [A]`."""
        self.frames.append((mask.copy(), state.copy()))

    def compute(self, state: GameState) -> Float:
        """Keeps `state`; see `Reward.compute`."""
        self.frames.append((None, state.copy()))
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def record(settings: PoolSettings, bot: Bot, seconds: float, seed: int, **changes: Any) -> Tape:  # noqa: ANN401
    """What rewards would see while `bot` plays all cars; see `record_each`."""
    return record_each(settings, {"": bot}, seconds, seed, **changes)[""]


def record_each(
    settings: PoolSettings,
    bots: Mapping[str, Bot],
    seconds: float,
    seed: int,
    **changes: Any,  # noqa: ANN401 - the settings of a pool
) -> dict[str, Tape]:
    """Lets bots play one after the other, each all cars from the same seed, and keeps what rewards would see.

    Args:
        settings: Of the pool; its observations and reward are left out.
        bots: Play, by name.
        seconds: Game time in each arena for each bot; at least one step.
        seed: Arena `i` draws from `seed + i`.
        changes: Other settings of the pool.
    """
    recorder = _Recorder()
    pool = settings.build(**({"obs": None, "seed": seed} | changes | {"reward": recorder}))
    steps = max(1, round(seconds * TICKS_PER_SECOND / pool.tick_skip))
    tapes = {}
    try:
        for name, bot in bots.items():
            recorder.frames = []
            pool.reset(seed=seed)
            for _ in range(steps):
                begun, state = recorder.frames[-1]
                if begun is not None:
                    bot.reset(begun, state)
                pool.step(bot.actions(pool.state, pool.action_parser))
            tapes[name] = Tape(recorder.frames, pool.tick_skip)
    finally:
        pool.close()
    return tapes
