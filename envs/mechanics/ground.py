"""Lanes that begin on the ground: jump shot, dribble, half-flip, kickoff."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from rlgym.rocket_league.common_values import BALL_RESTING_HEIGHT, CAR_MAX_SPEED, GRAVITY

from envs.mechanics.base import Lane, Seen, SetUp, heading, rewind_flight, write_setup
from envs.resets.base import CAR_REST_HEIGHT, Double
from envs.resets.simple import KICKOFF_BOOST, Kickoff
from envs.rewards.potential import flies_into_goal
from envs.state.game_state import GameState
from envs.state.layout import Bool
from fabric_rl.base.settings import Between, Positive, Share

ROOF_BALL_HEIGHT = 147.0
"""uu, the centre of a ball that lies on the roof of a car on its wheels, and a little more."""


@dataclass(eq=False, repr=False)
class JumpShotLane(Lane):
    """Practice jump shots: the car drives toward the goal, and the ball falls in front of it, above its reach.

    Success: a touch after a jump, with the wheels off the ground, that leaves the ball flying into the opponents' goal
    (under gravity, drag and bounces, within 3 s); or a goal right after such a touch.

    Initial state: in the opponents' half (|x| <= 1200, y 0..1500), driving at 900..1300 uu/s toward the goal (within
    0.1 rad); the falling ball crosses the car's path after 0.7..1.0 s at a height of 230..300 uu.
    """

    name = "jump_shot"
    num_notes = 1  # whether the last touch followed a jump

    HORIZON_SECONDS = 3.0

    time_limit_seconds: Positive = 3.0
    """Game seconds after which the episode ends."""

    def set_up(self, rng: np.random.Generator) -> SetUp:
        x, y = rng.uniform(0, 1200), rng.uniform(0, 1500)
        to_goal = float(np.arctan2(-x, 5120 - y))
        forward, up = heading(to_goal + rng.uniform(-0.1, 0.1))
        speed, seconds = rng.uniform(900, 1300), rng.uniform(0.7, 1.0)
        meets = np.array((x, y, 0)) + forward * (speed * seconds + 80)
        meets[2] = rng.uniform(230, 300)
        velocity = np.array((rng.uniform(-50, 50), rng.uniform(-50, 100), rng.uniform(-250, -150)))
        ball_pos, ball_vel = rewind_flight(meets, velocity, seconds, GRAVITY)
        if ball_pos[2] < BALL_RESTING_HEIGHT:  # it would begin in the floor
            return self.set_up(rng)
        place = x, y, CAR_REST_HEIGHT
        return SetUp(place, ball_pos, forward * speed, forward, up, ball_vel, boost=rng.uniform(30, 100))

    def judge(self, seen: Seen, notes: Double) -> Bool:
        jumped = seen.touched & seen.has_jumped & ~seen.on_ground
        anybody = seen.own_team_touched | seen.opponents_touched
        notes[:, 0] = np.where(anybody, jumped, notes[:, 0])
        success: Bool = seen.scored & (notes[:, 0] > 0)
        if jumped.any():
            success |= jumped & flies_into_goal(seen.ball_pos, seen.ball_vel, self.HORIZON_SECONDS)
        return success


@dataclass(eq=False, repr=False)
class DribbleLane(Lane):
    """Practice dribbling: the car drives with the ball on its roof.

    Success: the ball stays on the roof for `hold_seconds` without interruption: 60..140 uu above the car's center and
    within 110 uu sideways, while the wheels are on the ground.

    Initial state: |x| <= 2500, y -3500..1000, driving at 600..1300 uu/s toward the opponents' side (within 0.5 rad);
    the ball is on the roof, up to 15 uu off its middle, at the same speed.
    """

    name = "dribble"
    num_notes = 1  # time (s) at which the ball came onto the roof, plus 1; 0 while it is off the roof

    LOWEST, HIGHEST, ACROSS = 60.0, 140.0, 110.0
    """Limits in uu on the distance between the centres of the car and of a ball on its roof (130 at rest)."""

    _below_limit = "hold_seconds"

    hold_seconds: Positive = 2.0
    """Seconds that the ball has to stay on the roof, less than the time limit."""
    time_limit_seconds: Positive = 5.0
    """Game seconds after which the episode ends."""

    def set_up(self, rng: np.random.Generator) -> SetUp:
        x, y = rng.uniform(0, 2500), rng.uniform(-3500, 1000)
        forward, up = heading(rng.uniform(-0.5, 0.5))
        velocity = forward * rng.uniform(600, 1300)
        ball = (x + rng.uniform(-15, 15), y + rng.uniform(-15, 15), ROOF_BALL_HEIGHT + rng.uniform(0, 5))
        return SetUp((x, y, CAR_REST_HEIGHT), ball, velocity, forward, up, velocity, boost=rng.uniform(20, 100))

    def judge(self, seen: Seen, notes: Double) -> Bool:
        offset = seen.ball_pos - seen.car_pos
        above = (offset[:, 2] > self.LOWEST) & (offset[:, 2] < self.HIGHEST)
        on_roof = above & (np.hypot(offset[:, 0], offset[:, 1]) < self.ACROSS) & seen.on_ground
        since = np.where(notes[:, 0] > 0, notes[:, 0], seen.seconds + 1)
        notes[:, 0] = np.where(on_roof, since, 0)
        kept: Bool = on_roof & (seen.seconds + 1 - since >= self.hold_seconds)
        return kept


@dataclass(eq=False, repr=False)
class HalfFlipLane(Lane):
    """Practice half flips: the car rolls backward and must turn around fast, with backflip, flip cancel and roll.

    Success within `seconds`: the car is upright on its wheels, its nose points within 26 degrees of where the tail
    pointed, and it drives at least at `min_speed` in the new direction. A normal turn is too slow.

    Initial state: anywhere on the floor (|x| <= 2500, |y| <= 3500) in any direction, rolling backward at 500..900 uu/s
    with little boost (0..12); the ball is at rest 1500..2500 uu behind the tail, or as far as the field allows.
    """

    name = "half_flip"
    num_notes = 2  # initial direction of the nose, x and y

    REVERSED = -0.9
    """Cosine of the angle between the first and the new heading."""
    UPRIGHT = 0.9
    """z of the vector out of the roof."""

    seconds: Positive = 2.0
    """Seconds that the turn may take, and after which the episode ends."""
    min_speed: Annotated[float, Between(0, CAR_MAX_SPEED, above=True)] = 1000.0
    """Minimum speed along the new heading, uu/s, 0..2300."""

    def __post_init__(self) -> None:
        self.time_limit_seconds = self.seconds
        super().__post_init__()

    def set_up(self, rng: np.random.Generator) -> SetUp:
        x, y = rng.uniform(0, 2500), rng.uniform(-3500, 3500)
        forward, up = heading(rng.uniform(-np.pi, np.pi))
        speed, away = -rng.uniform(500, 900), -rng.uniform(1500, 2500)
        ball_x, ball_y = np.clip(x + away * forward[0], -3600, 3600), np.clip(y + away * forward[1], -4500, 4500)
        in_corner = max(0.0, abs(ball_x) + abs(ball_y) - self.MAX_SUM) / 2
        ball = ball_x - np.sign(ball_x) * in_corner, ball_y - np.sign(ball_y) * in_corner, BALL_RESTING_HEIGHT
        velocity = (forward[0] * speed, forward[1] * speed, 0.0)
        return SetUp((x, y, CAR_REST_HEIGHT), ball, velocity, forward, up, boost=rng.uniform(0, 12))

    def begin(self, seen: Seen, notes: Double) -> None:
        notes[:] = seen.car_forward[:, :2]

    def judge(self, seen: Seen, notes: Double) -> Bool:
        forward = seen.car_forward
        turned = (forward[:, :2] * notes).sum(axis=1) < self.REVERSED
        along = (seen.car_vel * forward).sum(axis=1) >= self.min_speed
        done: Bool = turned & along & seen.on_ground & (seen.car_up[:, 2] > self.UPRIGHT)
        return done


@dataclass(eq=False, repr=False)
class KickoffLane(Lane):
    """Practice kickoffs from one of the five spawns; some start off the spawn, turned and already rolling.

    Both teams begin in the same way (rotated by 180 degrees), so neither has an advantage.

    Success: the lane's team touches the ball first (in the same step as the opponents counts), and the ball is in the
    opponents' half `judged_seconds` later, or in their goal at any time after that touch.

    Initial state: as in `Kickoff`; with probability `offset_share`, each pair of cars is moved by up to 250 uu in x and
    y, turned by up to 0.25 rad, has a boost of 0..100 and rolls along the nose at up to 500 uu/s.
    """

    name = "kickoff"
    num_notes = 2  # team of the first touch (0 none, 1 this one, -1 the other), and its time (s)

    MAX_OFFSET, MAX_TURN, MAX_SPEED = 250.0, 0.25, 500.0

    _below_limit = "judged_seconds"

    offset_share: Share = 0.5
    """Probability, 0..1, of a kickoff off the spawns."""
    judged_seconds: Positive = 1.0
    """Seconds from the first touch until the position of the ball is judged, less than the time limit."""
    time_limit_seconds: Positive = 6.0
    """Game seconds after which the episode ends."""

    def set_up(self, rng: np.random.Generator) -> SetUp:
        return self._on_spawn(int(rng.integers(len(Kickoff.BLUE_POS))), rng.random() < self.offset_share, rng)

    def _on_spawn(self, spawn: int, offset: bool, rng: np.random.Generator) -> SetUp:
        x, y, z = Kickoff.BLUE_POS[spawn].tolist()
        yaw, speed, boost = float(np.pi / 2 - Kickoff.BLUE_YAW[spawn]), 0.0, KICKOFF_BOOST
        if offset:
            dx, dy = rng.uniform(-self.MAX_OFFSET, self.MAX_OFFSET, 2).tolist()
            x, y, yaw = x + dx, y + dy, yaw + rng.uniform(-self.MAX_TURN, self.MAX_TURN)
            speed, boost = rng.uniform(0, self.MAX_SPEED), rng.uniform(0, 100)
        forward, up = heading(yaw)
        return SetUp((x, y, z), (0, 0, BALL_RESTING_HEIGHT), forward * speed, forward, up, (0, 0, 0), boost)

    def place(self, state: GameState, arena: int, actor: int, rng: np.random.Generator) -> None:
        slots = np.flatnonzero(state.present[arena])
        teams = [slots[state.team[slots] == team].tolist() for team in (0, 1)]
        spawns = rng.permutation(len(Kickoff.BLUE_POS))[: max(map(len, teams))]
        offset = bool(rng.random() < self.offset_share)
        for number, spawn in enumerate(spawns.tolist()):
            setup = self._on_spawn(spawn, offset, rng)
            for team in teams:
                if number < len(team):
                    write_setup(state, arena, team[number], setup)
        state.set_on_ground(arena, np.ones(state.num_cars, np.bool_))

    def judge(self, seen: Seen, notes: Double) -> Bool:
        by_us = seen.own_team_touched
        first = (notes[:, 0] == 0) & (by_us | seen.opponents_touched)
        notes[:, 0] = np.where(first, np.where(by_us, 1, -1), notes[:, 0])
        notes[:, 1] = np.where(first, seen.seconds, notes[:, 1])
        ours = notes[:, 0] == 1
        after = seen.seconds - notes[:, 1]
        just_then = (after >= self.judged_seconds) & (notes[:, 1] >= 0)
        won: Bool = ours & (seen.scored | (just_then & (seen.ball_pos[:, 1] > 0)))
        notes[:, 1] = np.where((notes[:, 0] != 0) & just_then, -1, notes[:, 1])  # judged once, not again
        return won
