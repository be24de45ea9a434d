"""The kickoff lane: all five kickoffs, and ones that begin off the spot."""

import numpy as np

from envs.mechanics.base import Lane, Seen, SetUp, heading, vector, write
from envs.resets.base import Double, check_share
from envs.resets.kickoff import KICKOFF_BOOST, Kickoff
from envs.state.game_state import GameState
from envs.state.layout import Bool


class KickoffLane(Lane):
    """A kickoff: one of the five spawns, each as likely; partly off the spot, turned and rolling already.

    Both teams begin the same (rotated by 180 degrees), so nobody has an advantage.

    Success: the lane's team touches the ball first (at the same step as the opponents counts), and `judged_seconds`
    later the ball is in the opponents' half; or in their goal any time after that touch.

    Begins: as `Kickoff`; with the probability `offset_share` each pair of cars is moved by up to 250 uu in x and y,
    turned by up to 0.25 rad, has 0..100 boost and rolls with up to 500 uu/s along the nose.
    """

    name = "kickoff"
    num_notes = 2  # who touched first (0 nobody, 1 this team, -1 the other), and at which second

    MAX_OFFSET, MAX_TURN, MAX_SPEED = 250.0, 0.25, 500.0

    def __init__(self, offset_share: float = 0.5, judged_seconds: float = 1.0, time_limit_seconds: float = 6.0) -> None:
        """Sets the lane.

        Args:
            offset_share: Probability, 0..1, of a kickoff off the spot.
            judged_seconds: From the first touch to the look at where the ball is, less than the time limit.
            time_limit_seconds: When the episode ends.
        """
        super().__init__(time_limit_seconds)
        self.offset_share = check_share("KickoffLane", "offset_share", offset_share)
        self.judged_seconds = self.within_limit("judged_seconds", judged_seconds)

    def set_up(self, rng: np.random.Generator) -> SetUp:
        return self._on_spawn(int(rng.integers(len(Kickoff.BLUE_POS))), rng.random() < self.offset_share, rng)

    def _on_spawn(self, spawn: int, offset: bool, rng: np.random.Generator) -> SetUp:
        x, y, z = vector(Kickoff.BLUE_POS[spawn])
        yaw, speed, boost = float(np.pi / 2 - Kickoff.BLUE_YAW[spawn]), 0.0, KICKOFF_BOOST
        if offset:
            dx, dy = rng.uniform(-self.MAX_OFFSET, self.MAX_OFFSET, 2).tolist()
            x, y, yaw = x + dx, y + dy, yaw + rng.uniform(-self.MAX_TURN, self.MAX_TURN)
            speed, boost = rng.uniform(0, self.MAX_SPEED), rng.uniform(0, 100)
        forward, up = heading(yaw)
        velocity = (forward[0] * speed, forward[1] * speed, 0.0)
        return SetUp((x, y, z), (0.0, 0.0, 93.15), velocity, forward, up, ball_vel=(0.0, 0.0, 0.0), boost=boost)

    def place(self, state: GameState, arena: int, actor: int, rng: np.random.Generator) -> None:
        """See `Lane.place`; here all cars have a spawn, those of each team different ones."""
        slots = np.flatnonzero(state.present[arena])
        teams = [slots[state.team[slots] == team].tolist() for team in (0, 1)]
        spawns = rng.permutation(len(Kickoff.BLUE_POS))[: max(map(len, teams))]
        offset = bool(rng.random() < self.offset_share)
        for number, spawn in enumerate(spawns.tolist()):
            setup = self._on_spawn(spawn, offset, rng)
            for team in teams:
                if number < len(team):
                    write(state, arena, team[number], setup)
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
        notes[:, 1] = np.where((notes[:, 0] != 0) & just_then, -1, notes[:, 1])  # looked once: not again
        return won
