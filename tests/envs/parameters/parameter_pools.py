"""Pools with parameters of the physics, and plays of them."""

import numpy as np

from envs import (
    Gaussian,
    NoTouchCondition,
    ParameterRandomizer,
    RandomState,
    RocketSimPool,
    TimeoutCondition,
    Uniform,
)

TICK = 1 / 120
SAMPLERS = {"gravity": Uniform(300, 900), "ball_mass": Gaussian(30, 5), "action_delay_ticks": Uniform(0, 9)}


def rng(seed=0):
    return np.random.default_rng(seed)


def pool_with(samplers=None, num_arenas=4, interval=None, episode_seconds=0.4, **settings):
    parameters = ParameterRandomizer(samplers, interval) if samplers is not None else None
    settings = {"done": [TimeoutCondition(episode_seconds)], "num_threads": 1} | settings
    return RocketSimPool(num_arenas, parameters=parameters, **settings)


def play(pool, steps, seed=0):
    """Observations, rewards and ends of random play, and the parameters of every step."""
    dice, out = rng(seed), []
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = pool.step(dice.integers(90, size=pool.num_envs))
        out += [obs, reward, terminated, truncated]
        out += list(pool.parameters.values()) if isinstance(pool, RocketSimPool) else []
    return out


def short_games(num_arenas=5, seed=0, num_threads=None, first_arena=0):
    """What ProcessPool divides."""
    done = [NoTouchCondition(0.3), TimeoutCondition(0.7)]
    return pool_with(SAMPLERS, num_arenas, seed=seed, num_threads=num_threads, first_arena=first_arena, done=done)


def gravity_of(pool):
    return [round(-arena.get_mutator_config().gravity.z, 3) for arena in pool.arenas]


class HighBall(RandomState):
    """The ball hangs high, let go."""

    def apply(self, state, mask, rng):
        super().apply(state, mask, rng)
        state.world.ball_pos[mask], state.world.ball_vel[mask] = (0, 0, 1500), (0, 0, -0.001)
        state.world.ball_ang_vel[mask] = 0
