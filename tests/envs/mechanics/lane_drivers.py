"""Scripted cars for the mechanics lanes: each drives one mechanic from what it sees, in every arena at once."""

import numpy as np

from envs import ContinuousAction, Kickoff, MechanicsLanes, RocketSimPool, TimeoutCondition

THROTTLE, STEER, PITCH_YAW_ROLL, JUMP, BOOST = 0, 1, slice(2, 5), 5, 6
UP = np.array([0.0, 0.0, 1.0])


class Car:
    """What the lane's car of every arena sees from its own side, `[n, 3]` each."""

    def __init__(self, pool):
        own, at = pool.state.own, (np.arange(pool.num_arenas), pool.state_setter.episodes.actor)
        self.pos, self.vel, self.spin = (getattr(own, f"car_{x}")[at].astype(float) for x in ("pos", "vel", "ang_vel"))
        self.forward, self.right, self.up = (
            getattr(own, f"car_{x}")[at].astype(float) for x in ("forward", "right", "up")
        )
        self.to_ball = own.ball_pos[at] - self.pos
        self.ball_vel = own.ball_vel[at].astype(float)
        self.on_ground = pool.state.on_ground[at]
        self.controls = np.zeros((pool.num_arenas, 8), np.float32)

    def turn(self, forward, up):
        """Turns in the air until nose and roof point along `forward` and `up` (a PD controller)."""
        right = np.cross(up, forward)
        error = np.cross(self.forward, forward) + np.cross(self.right, right) + np.cross(self.up, up)
        pitch, yaw, roll = (3 * dot(error, a) - 1.5 * dot(self.spin, a) for a in (self.right, self.up, self.forward))
        self.controls[:, PITCH_YAW_ROLL] = np.stack((-pitch, yaw, -roll), axis=1).clip(-1, 1)

    def steer(self):
        """Steers toward the ball."""
        self.controls[:, STEER] = np.clip(4 * dot(unit(self.to_ball * (1, 1, 0)), self.right), -1, 1)


def dot(a, b):
    return (a * b).sum(axis=-1)


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6)


def level_roof(forward):
    """The vector out of the roof of a car without roll."""
    return unit(np.cross(np.cross(forward, UP), forward))


def idle(car, tick):
    """Does nothing."""


def hold_straight(car, tick):
    car.controls[:, THROTTLE] = 0.02


def balance_ball(car, tick):
    """Keeps the ball over the middle of the roof."""
    drift = car.ball_vel - car.vel
    ahead = 12 * dot(car.to_ball, car.forward) + 4 * dot(drift, car.forward)
    coast = np.where(ahead < -600, -0.02, 0)
    car.controls[:, THROTTLE] = np.where(ahead > 0, np.clip(ahead / 500, 0.01, 1), coast)
    car.controls[:, BOOST] = ahead > 1500
    side = 6 * dot(car.to_ball, car.right) + 3 * dot(drift, car.right)
    car.controls[:, STEER] = np.clip(side / 1000, -1, 1)


def jump_at(ticks):
    def drive(car, tick):
        car.controls[:, THROTTLE] = 1
        car.steer()
        car.controls[:, JUMP] = ticks <= tick < ticks + 24

    return drive


def jump_off_the_wall(car, tick):
    car.controls[:, THROTTLE] = 1
    car.controls[:, JUMP] = 15 <= tick < 39
    if tick > 25:
        car.turn(unit(car.to_ball), level_roof(unit(car.to_ball)))


def wheels_to_the_ball(car, tick):
    up = -unit(car.to_ball)
    car.turn(unit(car.forward - dot(car.forward, up)[:, None] * up), up)


def carry_the_ball(car, tick):
    ahead = unit(car.to_ball + 0.25 * (car.ball_vel - car.vel))
    car.turn(ahead, level_roof(ahead))
    car.controls[:, BOOST] = car.ball_vel[:, 2] < 100


def half_flip(car, tick):
    controls, seconds = car.controls, tick / 120
    if seconds < 0.13:
        controls[:, THROTTLE] = -1
        controls[:, JUMP] = seconds < 0.05 or seconds >= 0.1
        controls[:, 2] = seconds >= 0.1
    elif seconds < 0.75:
        controls[:, 2] = 1 if seconds < 0.4 else -1
    else:
        car.turn(unit(car.forward * (1, 1, 0)), np.broadcast_to(UP, car.up.shape))
        controls[car.on_ground, PITCH_YAW_ROLL] = 0
        controls[:, [THROTTLE, BOOST]] = 1


def rush(car, tick):
    car.controls[:, [THROTTLE, BOOST]] = 1
    car.steer()


def pool_of(lane, num_arenas=16, team_size=1, seed=0, tick_skip=1, **settings):
    """All episodes in one lane; nothing but the lane ends them."""
    setter = MechanicsLanes(Kickoff(), [lane], mechanics_weight=1.0)
    settings = {"action": ContinuousAction(), "done": TimeoutCondition(100)} | settings
    pool = RocketSimPool(
        num_arenas, team_size, state_setter=setter, tick_skip=tick_skip, action_delay_ticks=0, seed=seed, **settings
    )
    pool.reset(seed=seed)
    return pool


def drive(pool, driver, ticks, each=None):
    """The lane's car of every arena follows `driver`, the others stand still; returns which have succeeded `[n]`."""
    arenas, actors = np.arange(pool.num_arenas), pool.state_setter.episodes.actor
    for tick in range(ticks):
        car = Car(pool)
        driver(car, tick)
        actions = np.zeros((pool.num_arenas, pool.num_cars, 8), np.float32)
        actions[arenas, actors] = car.controls
        pool.step(actions.reshape(-1, 8))
        if each is not None:
            each(Car(pool), tick)
    return pool.state_setter.episodes.succeeded.copy()
