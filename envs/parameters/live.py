"""Physics parameters that can change from episode to episode, and their current values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
import RocketSim
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.parameters.samplers import ParameterRandomizer, Sampler, as_sampler, draw
from envs.sim.arena import LARGEST_COMMON_BALL, SimArena, default_mutators
from envs.sim.arenas import Arenas

OWNER = "RocketSimPool"
DELAY = "action_delay_ticks"


@dataclass(frozen=True)
class Parameter:
    """One physics parameter.

    A `flag` is on for values of at least 0.5 (so `Uniform(0, 1)` is a fair coin); a `whole` number is rounded down.
    """

    low: float
    """Minimum; samples below it are clipped."""
    high: float
    """Maximum; samples above it are clipped."""
    meaning: str
    """Description, with its unit."""
    kind: Literal["number", "whole", "flag"] = "number"
    """Rounding of values."""

    def rounded(self, value: float) -> float:
        """Return `value` clipped to the limits and rounded according to `kind`."""
        if self.kind == "flag":
            return float(value >= 0.5)
        value = min(max(value, self.low), self.high)
        return float(math.floor(value)) if self.kind == "whole" else value


PARAMETERS: Mapping[str, Parameter] = {
    "gravity": Parameter(0, 5000, "downward acceleration, uu/s^2"),
    "ball_mass": Parameter(1, 1000, "the mass of a car is 180"),
    "ball_radius": Parameter(30, 200, "uu; where the pool counts a goal stays the same"),
    "ball_max_speed": Parameter(100, 10_000, "uu/s"),
    "ball_drag": Parameter(0, 1, "share of its speed that the ball loses in a second in the air"),
    "ball_world_friction": Parameter(0, 10, "of the ball with the field"),
    "ball_world_restitution": Parameter(0, 1, "share of its speed that the ball keeps when it bounces off the field"),
    "ball_hit_extra_force_scale": Parameter(0, 10, "times the game's extra push when a car hits the ball"),
    "car_world_friction": Parameter(0, 10, "of a car's body with the field; the wheels have their own"),
    "car_world_restitution": Parameter(0, 1, "of a car's body with the field"),
    "boost_accel_ground": Parameter(0, 10_000, "uu/s^2, on the ground"),
    "boost_accel_air": Parameter(0, 10_000, "uu/s^2, in the air"),
    "boost_used_per_second": Parameter(0, 1000, "boost per second; a full tank is 100"),
    "jump_accel": Parameter(0, 10_000, "uu/s^2, while the jump button is held"),
    "jump_immediate_force": Parameter(0, 3000, "uu/s, at the start of a jump"),
    "bump_force_scale": Parameter(0, 10, "times the game's push when a car bumps another"),
    "bump_cooldown_time": Parameter(0, 10, "s between two bumps of a pair of cars"),
    "respawn_delay": Parameter(0.1, 30, "s, after a demolition; longer than a step"),
    "boost_pad_cooldown_big": Parameter(0.1, 60, "s"),
    "boost_pad_cooldown_small": Parameter(0.1, 60, "s"),
    "car_spawn_boost_amount": Parameter(0, 100, "boost after a demolition; an episode's first comes from state_setter"),
    "unlimited_flips": Parameter(0, 1, "a car may flip again in the air", "flag"),
    "unlimited_double_jumps": Parameter(0, 1, "a car may jump again in the air", "flag"),
    "enable_team_demos": Parameter(0, 1, "cars can demolish their own team", "flag"),
    "enable_car_car_collision": Parameter(0, 1, "cars collide", "flag"),
    "enable_car_ball_collision": Parameter(0, 1, "cars and ball collide", "flag"),
    "demo_mode": Parameter(0, 2, "demolitions: 0 of supersonic cars, 1 at every bump, 2 never", "whole"),
    DELAY: Parameter(0, math.inf, "ticks at the start of a step with the previous action, up to tick_skip", "whole"),
}
"""Name -> limits and meaning of every parameter. A parameter without a value keeps the pool's default."""

_REFUSED = {
    "car_mass": "RocketSim ignores it for new cars and breaks the wheels' grip of old ones",
    "goal_base_threshold_y": "the pool counts goals itself, at the real goals",
    "tick_skip": "all arenas of a pool step together; set it for the whole pool with --env.tick_skip",
}


def known_parameters(tick_skip: int) -> dict[str, Parameter]:
    """Return the parameters of a pool; two of their limits depend on its `tick_skip`."""
    respawn, delay = PARAMETERS["respawn_delay"], PARAMETERS[DELAY]
    # A car that is demolished and respawns within one step would get its position from RocketSim's own generator.
    shortest = max(respawn.low, (tick_skip + 1) / TICKS_PER_SECOND)
    return {
        **PARAMETERS,
        "respawn_delay": Parameter(shortest, respawn.high, respawn.meaning),
        DELAY: Parameter(delay.low, tick_skip, delay.meaning, delay.kind),
    }


def default_values(action_delay_ticks: int) -> dict[str, float]:
    """Return the default value of every parameter."""
    config = default_mutators()
    values = {name: -config.gravity.z if name == "gravity" else getattr(config, name, 0.0) for name in PARAMETERS}
    return {name: float(value) for name, value in values.items()} | {DELAY: float(action_delay_ticks)}


def mutator_config(values: Mapping[str, float]) -> RocketSim.MutatorConfig:
    """Return RocketSim's settings with these values, and defaults for all others."""
    config = default_mutators()
    for name, value in values.items():
        if name == "gravity":
            config.gravity = RocketSim.Vec(0, 0, -value)
        elif name != DELAY:
            kind: type[Any] = {"flag": bool, "whole": int, "number": float}[PARAMETERS[name].kind]
            setattr(config, name, kind(value))
    return config


class TunableArenas(Arenas):
    """Arenas whose physics can be set one by one, between their episodes."""

    def set_physics(self, index: int, mutators: RocketSim.MutatorConfig, action_delay_ticks: int) -> None:
        """Set the physics of arena `index` for its next episode, or for continuing after `restore`."""
        sim, large = self.sims[index], mutators.ball_radius > LARGEST_COMMON_BALL
        if large != sim.large_cells:
            sim = self.sims[index] = SimArena(sim.teams, sim.slots, large_cells=large)
        sim.set_mutators(mutators)
        self.delays[index] = action_delay_ticks

    def apply_physics(self, index: int, mutators: RocketSim.MutatorConfig, action_delay_ticks: int) -> None:
        """Set the physics for the episode that has just begun; its initial state stays the same."""
        numbers = self.sims[index].snapshot()
        self.set_physics(index, mutators, action_delay_ticks)
        self.restore(index, numbers)


class LiveParameters:
    """Samples the parameters of every arena and applies them to its physics.

    Arena `i` has its own generator, apart from the generator of its episodes, so initial states are the same with and
    without parameters. Values set by lessons (`override`) replace the sampled ones.

    Attributes:
        steps: Steps of the pool since it was seeded; the pool counts them.
    """

    def __init__(self, arenas: TunableArenas, randomizer: ParameterRandomizer | None, seed: int) -> None:
        """Set up the samplers; parameters take effect when episodes begin.

        Args:
            arenas: All arenas of the pool.
            randomizer: Samplers and their interval; None: only lessons set parameters.
            seed: See `seed`.

        Raises:
            ValueError: A sampler is for an unknown parameter, or exceeds the limits of its parameter.
        """
        self._arenas, self._num_arenas = arenas, len(arenas.delays)
        self._known = known_parameters(arenas.tick_skip)
        self._defaults = default_values(arenas.action_delay_ticks)
        given = randomizer or ParameterRandomizer({})
        self._interval, self._base = given.resampling_interval, given.samplers
        self._check("ParameterRandomizer", self._base)
        self._overrides: dict[str, Any] = {}
        self._samplers: dict[str, Sampler] = {}
        self._values: dict[str, NDArray[np.float64]] = {}
        self._applied: list[dict[str, float]] = [{} for _ in range(self._num_arenas)]
        """Values in the running episode of each arena, also of parameters that lessons have removed since."""
        self._collect()
        self._idle = randomizer is None
        """True while the arenas have their default physics."""
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Seed arena `i` with a stream of `seed + i`, and draw new samples for its next episode."""
        self._rngs = [
            np.random.default_rng(np.random.SeedSequence(seed + i, spawn_key=(1,))) for i in range(self._num_arenas)
        ]
        self.steps = 0
        self._drawn_at = np.zeros(self._num_arenas, np.int64)
        self._due = np.ones(self._num_arenas, np.bool_)

    @property
    def values(self) -> dict[str, NDArray[np.float64]]:
        """Parameter -> `[A]` float64: the values of the running episodes."""
        return {name: values.copy() for name, values in self._values.items()}

    def largest(self, name: str) -> float:
        """Return a bound of a parameter's values in later episodes, at least its default."""
        sampler = self._samplers.get(name)
        ends = () if sampler is None else sampler.ends() if sampler.ends_are_bounds else (self._known[name].high,)
        return max([self._defaults[name], *ends])

    @property
    def delayed(self) -> bool:
        """True if the action delay is among the parameters."""
        return DELAY in self._samplers

    def check(self, values: Mapping[str, Any]) -> dict[str, Sampler]:
        """Return the samplers for the values that a lesson sets.

        Raises:
            ValueError: A parameter is unknown, or a value is neither a number nor [min, max] or exceeds the limits.
        """
        samplers = {name: as_sampler(OWNER, name, value) for name, value in values.items()}
        self._check(OWNER, samplers)
        return samplers

    def override(self, values: Mapping[str, Any], begun: bool = True) -> None:
        """Set parameters for all episodes without a step so far, and for all later ones.

        Setting the same values again changes nothing. Parameters missing from `values` return to their samplers.

        Args:
            values: See `as_sampler`; errors as in `check`.
            begun: False before the first episodes.
        """
        self.check(values)
        plain = {name: _plain(value) for name, value in values.items()}
        if plain == self._overrides:
            return
        self._overrides, self._idle = plain, False
        self._collect()
        self._due[:] = True
        for index in np.flatnonzero(self._arenas.state.episode_ticks == 0).tolist() if begun else ():
            self._draw(index)
            self._applied[index] = self._drawn(index)
            self._arenas.apply_physics(index, *self._setting(index))

    def begin(self, index: int) -> None:
        """Sample if the interval has passed, and set the physics of arena `index` for its next episode."""
        if self._idle:
            return
        if self._due[index] or self._interval is None or self.steps - self._drawn_at[index] >= self._interval:
            self._draw(index)
        self._applied[index] = self._drawn(index)
        self._arenas.set_physics(index, *self._setting(index))

    def metrics(self) -> dict[str, tuple[float, float]]:
        """Return `parameters/<name>` -> (sum over the arenas, number of arenas)."""
        return {f"parameters/{name}": (float(at.sum()), float(len(at))) for name, at in self._values.items()}

    def state_dict(self) -> dict[str, Any] | None:
        """Return values, generators and the lessons' settings; None if no parameter was ever in use."""
        if self._idle:
            return None
        return {
            "sampled": list(self._base),
            "overrides": dict(self._overrides),
            "values": self.values,
            "applied": [dict(values) for values in self._applied],
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "steps": self.steps,
            "drawn_at": self._drawn_at.copy(),
            "due": self._due.copy(),
        }

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Restore a `state_dict` and set the physics of all arenas, which must be restored afterwards.

        None is the state of a pool that has no parameters. Raise a ValueError if the pool had samplers for other
        parameters.
        """
        if state is None and self._idle:
            return
        saved = [] if state is None else state["sampled"]
        if set(saved) != set(self._base):
            raise ValueError(
                f"{OWNER}: the snapshot's pool samples the parameters {', '.join(saved) or 'none'}, but this one "
                f"samples {', '.join(self._base) or 'none'} (--env.parameters); use the same for both"
            )
        self._idle = False
        self._overrides = {} if state is None else {name: _plain(value) for name, value in state["overrides"].items()}
        self._collect()
        if state is not None:
            for name, values in state["values"].items():
                self._values[name][:] = values
            for rng, saved_rng in zip(self._rngs, state["rngs"], strict=True):
                rng.bit_generator.state = saved_rng
            self.steps = state["steps"]
            self._drawn_at[:], self._due[:] = state["drawn_at"], state["due"]
        applied = (state or {}).get("applied")  # missing in older snapshots
        for index in range(self._num_arenas):
            self._applied[index] = self._drawn(index) if applied is None else dict(applied[index])
            self._arenas.set_physics(index, *self._setting(index))

    def _check(self, owner: str, samplers: Mapping[str, Sampler]) -> None:
        """Raise a ValueError for a parameter that is unknown or fixed, or a sampler that exceeds its limits."""
        for name, sampler in samplers.items():
            if name in _REFUSED:
                raise ValueError(f"{owner}: {name} cannot be changed: {_REFUSED[name]}")
            if name not in PARAMETERS:
                close = get_close_matches(str(name), PARAMETERS, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise ValueError(f"{owner}: there is no parameter {name}{hint} (known: {', '.join(PARAMETERS)})")
            known = self._known[name]
            for end in sampler.ends():
                if not known.low <= (math.floor(end) if known.kind == "whole" else end) <= known.high:
                    raise ValueError(
                        f"{owner}: {name} must be between {known.low:g} and {known.high:g} ({known.meaning}), got "
                        f"{end:g}"
                    )

    def _collect(self) -> None:
        """Collect the active samplers, in an order that is independent of the order of the settings."""
        given = self._base | {name: as_sampler(OWNER, name, value) for name, value in self._overrides.items()}
        self._samplers = {name: given[name] for name in PARAMETERS if name in given}
        defaults = {name: np.full(self._num_arenas, self._defaults[name], np.float64) for name in self._samplers}
        self._values = {name: self._values.get(name, default) for name, default in defaults.items()}

    def _draw(self, index: int) -> None:
        for name, sampler in self._samplers.items():
            self._values[name][index] = self._known[name].rounded(draw(sampler, name, self._rngs[index]))
        self._drawn_at[index], self._due[index] = self.steps, False

    def _drawn(self, index: int) -> dict[str, float]:
        return {name: float(at[index]) for name, at in self._values.items()}

    def _setting(self, index: int) -> tuple[Any, int]:
        values = self._applied[index]
        return mutator_config(values), int(values.get(DELAY, self._defaults[DELAY]))


def _plain(value: Any) -> float | list[float]:  # noqa: ANN401 - checked before
    return [float(end) for end in value] if hasattr(value, "__iter__") else float(value)
