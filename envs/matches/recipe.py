"""PoolRecipe: the settings of a pool, to build it again with other parts."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from envs.partials import taken_apart
from envs.phased import Phased
from envs.pool.rocket_pool import RocketSimPool
from envs.pool.settings import team_sizes
from envs.processes.process_pool import ProcessPool
from envs.rewards import Reward, default_reward
from envs.state.game_state import GameState


class PoolRecipe:
    """The settings of a `RocketSimPool`, to build it as often as needed, with some of them changed.

    Attributes:
        pool_class: `RocketSimPool`, or a subclass.
        arguments: What it is built with.
    """

    def __init__(self, factory: Callable[..., Any], owner: str = "PoolRecipe", phase: str | None = None) -> None:
        """Reads a factory.

        Args:
            factory: `RocketSimPool`, a `functools.partial` of it, or one of a `ProcessPool` around such a factory.
            owner: Who asks, for the message.
            phase: Of training, where the reward or the state setter has phases; default: the first.

        Raises:
            TypeError: It builds something else.
            ValueError: There is no such phase.
        """
        call = taken_apart(factory)
        while call.function is ProcessPool and "factory" in call.named():
            call = taken_apart(call.named()["factory"])
        pool_class = call.function
        if not (isinstance(pool_class, type) and issubclass(pool_class, RocketSimPool)):
            name = getattr(pool_class, "__name__", type(pool_class).__name__)
            raise TypeError(f"{owner}: needs the settings of an envs.RocketSimPool as env, got {name}")
        self.pool_class = pool_class
        left_out = ("seed", "first_arena", "render_mode", "video_folder")
        self.arguments = {name: value for name, value in call.named().items() if name not in left_out}
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
        """Goes on as in that phase, a name or a number from 1."""
        numbers = {str(number): phase for number, phase in enumerate(self.phases, 1)}
        name = numbers.get(name, name)
        if name not in self.phases:
            known = f"it has {', '.join(self.phases)}" if self.phases else "there are none in this configuration"
            raise ValueError(f"--phase {name}: there is no such phase; {known}")
        self.arguments = {key: copy.deepcopy(value) for key, value in self.arguments.items()}
        blue, orange = self.team_sizes[0]
        state = GameState(1, blue, orange)
        state.clear(np.array([0]))
        for part in self._phased():
            part.begin_phase(name, self.phases.index(name) + 1, state)

    def _phased(self) -> list[Phased]:
        parts = [self.arguments.get(name) for name in ("reward", "state_setter")]
        return [each for part in parts if part is not None for each in part.walk() if isinstance(each, Phased)]

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

    @property
    def action_delay_ticks(self) -> int:
        """Ticks at the start of a step that still run the previous action."""
        return int(self.arguments.get("action_delay_ticks", 1))
