"""Episodes of a pool: initial states, game counters, step timers, snapshots."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.component import Component
from envs.parameters import ParameterRandomizer
from envs.parameters.live import LiveParameters, TunableArenas
from envs.resets import StateSetter
from envs.resets.initial_states import StartLimits, check_start
from envs.sim.arena import SimArena
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.state_schema import load_child_state


class EpisodeTracker:
    """Begins episodes; each arena samples its parameters and initial states from its own generators.

    Attributes:
        rngs: `[A]` generators, for initial states and for the respawn positions of demolished cars.
        parameters: Physics parameters that change between episodes.
    """

    def __init__(
        self, arenas: TunableArenas, state_setter: StateSetter, randomizer: ParameterRandomizer | None, seed: int
    ) -> None:
        """Set up the generators, see `seed`; for errors see `LiveParameters`."""
        self._arenas, self._setter = arenas, state_setter
        self.parameters = LiveParameters(arenas, randomizer, seed)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Seed arena `i` with `seed + i`."""
        self.parameters.seed(seed)
        self.rngs = [np.random.default_rng(seed + i) for i in range(self._arenas.state.num_arenas)]

    def _limits(self) -> StartLimits:
        speed, *pads = map(
            self.parameters.largest, ("ball_max_speed", "boost_pad_cooldown_big", "boost_pad_cooldown_small")
        )
        return StartLimits(speed, max(pads))

    def begin(self, mask: Bool) -> int:
        """Begin an episode in the arenas of `mask [A]`; rebuild broken arenas first, with one warning each.

        Returns:
            Number of broken arenas.

        Raises:
            ValueError: The state setter wrote an impossible state.
        """
        arenas, state = self._arenas, self._arenas.state
        broken = np.flatnonzero(arenas.broken).tolist()
        for index in broken:
            warnings.warn(
                f"RocketSim produced NaN physics in arena {index}; its episode was truncated and the arena rebuilt",
                RuntimeWarning,
                stacklevel=3,
            )
            arenas.rebuild(index)
        starting = np.flatnonzero(mask)
        state.clear(starting)
        state.invalidate()
        one, limits = np.zeros(state.num_arenas, np.bool_), self._limits()
        for index in starting.tolist():
            one[index] = True
            self._setter.apply(state, one, self.rngs[index])
            one[index] = False
            if not state.all_present:
                state.clear_absent(index)
            check_start(state, index, self._setter.author(), limits)
            self.parameters.begin(index)
            arenas.begin(index)
        state.invalidate()
        return len(broken)


HEADLINES = {"game/touches_per_minute": "touches/min", "game/goals_per_minute": "goals/min"}
"""Headline metrics with their short labels."""


class GameCounts(Component):
    """Counts of touches, goals, physics failures, episodes and steps in all arenas since `drain`."""

    _in_state_dict: ClassVar[dict[str, str]] = {
        name: name for name in ("touches", "goals", "physics_errors", "episodes", "steps")
    }

    def __init__(self) -> None:
        self.touches = self.goals = self.physics_errors = self.episodes = self.steps = 0

    def add_step(self, new_touches: Bool, goals: NDArray[np.bool_], done: NDArray[np.bool_]) -> None:
        """Count a step: `new_touches [A, C]`, `goals [A]`, and ending episodes `done [A]`."""
        self.steps += 1
        self.episodes += int(done.sum())
        self.touches += int(new_touches.sum())
        self.goals += int(goals.sum())

    def drain(self, tick_skip: int, num_arenas: int, num_cars: int) -> dict[str, tuple[float, float]]:
        """Return the metrics since the last call as name -> (sum, minutes of game time).

        The minutes are summed over all cars for touches, and over all arenas for the rest.
        """
        minutes = self.steps * tick_skip / TICKS_PER_SECOND / 60
        metrics = {
            "game/touches_per_minute": (float(self.touches), minutes * num_cars),
            "game/goals_per_minute": (float(self.goals), minutes * num_arenas),
            "game/episodes_per_minute": (float(self.episodes), minutes * num_arenas),
            "game/physics_errors_per_minute": (float(self.physics_errors), minutes * num_arenas),
        }
        self.touches = self.goals = self.physics_errors = self.episodes = self.steps = 0
        return metrics


STEP_PARTS = ("physics", "gather", "obs", "rewards", "dones_and_resets", "actions")


class StepTimers:
    """Timers of the `STEP_PARTS` of a step, which follow one another without gaps."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(STEP_PARTS, 0.0)
        self._steps = 0
        self._last = 0.0

    def start(self) -> None:
        """Begin a step."""
        self._steps += 1
        self._last = time.perf_counter()

    def stop(self, part: str, at: float | None = None) -> None:
        """Add the time since the last call to `part`, which ended `at` (`time.perf_counter`; default: now)."""
        now = time.perf_counter() if at is None else at
        self._seconds[part] += now - self._last
        self._last = now

    def drain(self) -> dict[str, tuple[float, int]]:
        """Return part -> (seconds, steps) since the last call."""
        drained = {part: (seconds, self._steps) for part, seconds in self._seconds.items()}
        self._seconds, self._steps = dict.fromkeys(STEP_PARTS, 0.0), 0
        return drained


_PARTS = ("state", "arenas", "rngs", "components", "counts", "started", "parameters")


def check_snapshot(
    snapshot: dict[str, Any], state: GameState, sims: Sequence[SimArena], components: Mapping[str, Any]
) -> None:
    """Raise a ValueError unless `snapshot` is from a pool with the same cars, arenas and number of components."""
    if missing := [name for name in _PARTS if name not in snapshot]:
        raise ValueError(f"RocketSimPool: this is not a snapshot of a pool; it lacks {', '.join(missing)}")
    if len(snapshot["arenas"]) != len(sims) or len(snapshot["components"]) != len(components):
        raise ValueError(
            f"RocketSimPool: the snapshot has {len(snapshot['arenas'])} arenas and {len(snapshot['components'])} "
            f"components ({', '.join(snapshot['component_names'])}), but this pool has {len(sims)} and "
            f"{len(components)} ({', '.join(type(part).__name__ for part in components.values())})"
        )
    state.check(snapshot["state"])
    if not all(np.array_equal(snapshot["state"][name], getattr(state, name)) for name in ("present", "arena_index")):
        raise ValueError("RocketSimPool: the snapshot contains other cars; use the team sizes that it was saved with")
    for sim, numbers in zip(sims, snapshot["arenas"], strict=True):
        sim.check(numbers)


def load_components(components: Mapping[str, Any], snapshot: Mapping[str, Any]) -> None:
    """Restore every component.

    Raises:
        ValueError: A saved state does not fit; the message names the component's role, its class and the saved state.
    """
    names = snapshot.get("component_names", ["component"] * len(components))
    for (role, part), name, state in zip(components.items(), names, snapshot["components"], strict=True):
        load_child_state(part, state, f"RocketSimPool: the saved state of the {role} {name}")
