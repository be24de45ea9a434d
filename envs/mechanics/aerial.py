"""Lanes in the air: off the wall to the ball, air dribble, flip reset."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from rlgym.rocket_league.common_values import BALL_RADIUS, GRAVITY, SIDE_WALL_X

from envs.mechanics.base import Lane, Seen, SetUp, heading, rewind_flight
from envs.resets.base import CAR_REST_HEIGHT, Double
from envs.state.layout import Bool
from fabric_rl.base.settings import Between, Positive

JUMP_OFF_SPEED = 480.0
"""uu/s, about, at which a car leaves a surface when it holds jump."""
BALL_ON_GROUND = BALL_RADIUS + 15.0
"""uu, the centre of a ball that has come down."""


@dataclass(eq=False, repr=False)
class WallToAerialLane(Lane):
    """Practice aerials from the wall: the car drives up a side wall, and the ball is within reach of a jump from it.

    Success: after leaving the wall, with its wheels in the air, the car touches the ball above `min_height`.

    Initial state: on a side wall at a height of 350..600 uu, y -2000..1500, driving up and forward (60..85 degrees) at
    1100..1500 uu/s; a jump after about 0.2 s leads to the ball (within 60 uu) 0.9..1.2 s after the start, when the ball
    hardly moves.
    """

    name = "wall_to_aerial"
    num_notes = 2  # whether the wheels last touched the wall, and whether the car has left it

    min_height: Annotated[float, Between(100, 1900)] = 500.0
    """Minimum height of the ball's centre when it is touched, uu, 100..1900."""
    time_limit_seconds: Positive = 4.0
    """Game seconds after which the episode ends."""

    def set_up(self, rng: np.random.Generator) -> SetUp:
        climb = np.radians(rng.uniform(60, 85))
        forward = np.array((0.0, np.cos(climb), np.sin(climb)))
        car = np.array((SIDE_WALL_X - CAR_REST_HEIGHT, rng.uniform(-2000, 1500), rng.uniform(350, 600)))
        velocity = forward * rng.uniform(1100, 1500)
        seconds, flight = (total := rng.uniform(0.9, 1.2)), total - 0.2
        fall = np.array((0, 0, -GRAVITY * seconds**2 / 2))
        meets = car + velocity * seconds + fall - np.array((JUMP_OFF_SPEED * flight, 0, 0))
        meets += rng.uniform(-60, 60, 3)
        meets[2] = min(meets[2], 1700)
        drift = np.array((rng.uniform(-50, 50), velocity[1] / 2, rng.uniform(-100, 100)))
        ball_pos, ball_vel = rewind_flight(meets, drift, seconds, GRAVITY)
        return SetUp(car, ball_pos, velocity, forward, (-1, 0, 0), ball_vel, boost=rng.uniform(60, 100))

    def judge(self, seen: Seen, notes: Double) -> Bool:
        car, on_ground = seen.car_pos, seen.on_ground
        on_wall = on_ground & (np.abs(car[:, 0]) > SIDE_WALL_X - 100) & (car[:, 2] > 200)
        landed = on_ground & ~seen.touched  # wheels on the ball are not a landing
        in_flight = notes[:, 1] > 0
        high: Bool = seen.touched & in_flight & (seen.ball_pos[:, 2] > self.min_height)
        notes[:, 0] = np.where(landed, on_wall, notes[:, 0])
        notes[:, 1] = (notes[:, 0] > 0) & ~landed
        return high


@dataclass(eq=False, repr=False)
class AirDribbleLane(Lane):
    """Practice air dribbles: the car flies behind the ball with its nose up, at the same speed, and must carry it.

    Success: `hold_seconds` after the start, the ball is still above `min_height` and has not come down, the car has not
    landed, and it has touched the ball at least twice (0.15 s apart), the last time at most 0.7 s ago. Without touches,
    the ball would be below `min_height` by then.

    Initial state: |x| <= 1500, y -3000..0, height 500..700, nose 35..50 degrees up toward the goal, velocity 600..900
    uu/s forward and 250..350 uu/s up for both; the ball is 5..15 uu in front of the nose, 5..20 degrees above it.
    """

    name = "air_dribble"
    num_notes = 3  # counted touches, time of the last touch, 1 once the attempt is over

    APART_SECONDS, LAST_SECONDS = 0.15, 0.7
    NOSE = 166.0
    """Distance in uu between the centres of the car and of a ball that touches its nose, plus 2."""

    _below_limit = "hold_seconds"

    hold_seconds: Positive = 2.0
    """Seconds that the ball has to be carried, less than the time limit."""
    min_height: Annotated[float, Between(BALL_ON_GROUND)] = 350.0
    """Minimum height of the ball's centre at that time, uu, at least 106."""
    time_limit_seconds: Positive = 4.0
    """Game seconds after which the episode ends."""

    def set_up(self, rng: np.random.Generator) -> SetUp:
        x, y, z = rng.uniform(0, 1500), rng.uniform(-3000, 0), rng.uniform(500, 700)
        yaw = float(np.arctan2(-x, 5120 - y))
        pitch = np.radians(rng.uniform(35, 50))
        forward, up = heading(yaw, pitch)
        toward, _ = heading(yaw, pitch + np.radians(rng.uniform(5, 20)))
        ball = np.array((x, y, z)) + toward * (self.NOSE + rng.uniform(5, 15))
        level, _ = heading(yaw)
        velocity = level * rng.uniform(600, 900) + np.array((0, 0, rng.uniform(250, 350)))
        return SetUp((x, y, z), ball, velocity, forward, up, velocity, boost=rng.uniform(70, 100), on_wheels=False)

    def judge(self, seen: Seen, notes: Double) -> Bool:
        height, touched = seen.ball_pos[:, 2], seen.touched
        landed = seen.on_ground & ~touched
        notes[:, 2] = np.maximum(notes[:, 2], landed | (height < BALL_ON_GROUND))
        apart = (notes[:, 0] == 0) | (seen.seconds - notes[:, 1] >= self.APART_SECONDS)
        counts = touched & apart
        notes[:, 0] += counts
        notes[:, 1] = np.where(counts, seen.seconds, notes[:, 1])
        carried = (notes[:, 0] >= 2) & (seen.seconds - notes[:, 1] <= self.LAST_SECONDS) & (notes[:, 2] == 0)
        held: Bool = carried & (seen.seconds >= self.hold_seconds) & (height > self.min_height)
        return held


@dataclass(eq=False, repr=False)
class FlipResetLane(Lane):
    """Practice flip resets: the car has used its flip and must regain it by touching the ball with all four wheels.

    Success: in the air above `MIN_HEIGHT`, the car regains its flip with the ball under its wheels (within 45 degrees
    and 200 uu).

    Initial state: |x| <= 2000, |y| <= 3000, the ball rising at a height of 900..1200 uu; the car is 260..340 uu below
    it, on its back but rolled 60..110 degrees away from the ball, and approaches it at 250..350 uu/s.
    """

    name = "flip_reset"
    num_notes = 1  # whether the car had its flip after the previous step

    MIN_HEIGHT, BELOW, NEAR = 300.0, float(np.cos(np.pi / 4)), 200.0

    time_limit_seconds: Positive = 2.5
    """Game seconds after which the episode ends."""

    def set_up(self, rng: np.random.Generator) -> SetUp:
        x, y, z = rng.uniform(0, 2000), rng.uniform(-3000, 3000), rng.uniform(900, 1200)
        forward, _ = heading(rng.uniform(-0.5, 0.5))
        right = np.array((forward[1], -forward[0], 0.0))
        roll = np.radians(rng.uniform(60, 110)) * rng.choice((-1, 1))
        up = np.array((0, 0, -np.cos(roll))) + right * np.sin(roll)
        speed, lift, closing = rng.uniform(200, 600), rng.uniform(250, 400), rng.uniform(250, 350)
        ball_vel = forward * speed + np.array((0, 0, lift))
        car = np.array((x, y, z - rng.uniform(260, 340)))
        car_vel, boost = ball_vel + np.array((0, 0, closing)), rng.uniform(20, 100)
        return SetUp(car, (x, y, z), car_vel, forward, up, ball_vel, boost, on_wheels=False, flip_spent=True)

    def begin(self, seen: Seen, notes: Double) -> None:
        notes[:, 0] = seen.has_flip

    def judge(self, seen: Seen, notes: Double) -> Bool:
        car, has_flip = seen.car_pos, seen.has_flip
        to_ball = seen.ball_pos - car
        distance = np.linalg.norm(to_ball, axis=1)
        under = -(to_ball * seen.car_up).sum(axis=1) > self.BELOW * distance
        won = has_flip & (notes[:, 0] == 0)
        notes[:, 0] = has_flip
        reset: Bool = won & under & (distance < self.NEAR) & (car[:, 2] > self.MIN_HEIGHT)
        return reset
