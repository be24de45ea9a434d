"""Physics parameters that a pool can change, with their limits, and those that it cannot change, with the reason."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import RocketSim
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.sim.arena import default_mutators

DELAY = "action_delay_ticks"


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    A `flag` is on from 0.5 upwards (so `Uniform(0, 1)` is a fair coin), a `whole` number is rounded down.
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
        """Return `value` clipped to the limits and rounded according to its kind."""
        if self.kind == "flag":
            return float(value >= 0.5)
        value = min(max(value, self.low), self.high)
        return float(math.floor(value)) if self.kind == "whole" else value


PARAMETERS: Mapping[str, Parameter] = {
    "gravity": Parameter(0, 5000, "downward acceleration, uu/s^2"),
    "ball_mass": Parameter(1, 1000, "a car has 180"),
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
    "boost_used_per_second": Parameter(0, 1000, "boost, of 100"),
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
    """Return the parameters of a pool with that `tick_skip`, on which two limits depend."""
    respawn, delay = PARAMETERS["respawn_delay"], PARAMETERS[DELAY]
    # A car that is demolished and respawns within one step would get its place from RocketSim's own generator.
    shortest = max(respawn.low, (tick_skip + 1) / TICKS_PER_SECOND)
    return {
        **PARAMETERS,
        "respawn_delay": Parameter(shortest, respawn.high, respawn.meaning),
        DELAY: Parameter(delay.low, tick_skip, delay.meaning, delay.kind),
    }


def check_known(owner: str, names: Iterable[str]) -> None:
    """Raise a ValueError unless a pool has all these parameters and can change them."""
    for name in names:
        if name in _REFUSED:
            raise ValueError(f"{owner}: {name} cannot be changed: {_REFUSED[name]}")
        if name not in PARAMETERS:
            close = get_close_matches(str(name), PARAMETERS, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise ValueError(f"{owner}: there is no parameter {name}; {hint}known: {', '.join(PARAMETERS)}")


def default_values(action_delay_ticks: int) -> dict[str, float]:
    """Return the default value of every parameter."""
    config = default_mutators()
    values = {name: -config.gravity.z if name == "gravity" else getattr(config, name, 0.0) for name in PARAMETERS}
    return {name: float(value) for name, value in values.items()} | {DELAY: float(action_delay_ticks)}


def mutators(values: Mapping[str, float]) -> RocketSim.MutatorConfig:
    """Return RocketSim's settings with these values, and defaults for all others."""
    config = default_mutators()
    for name, value in values.items():
        if name == "gravity":
            config.gravity = RocketSim.Vec(0, 0, -value)
        elif name != DELAY:
            kind: type[Any] = {"flag": bool, "whole": int, "number": float}[PARAMETERS[name].kind]
            setattr(config, name, kind(value))
    return config
