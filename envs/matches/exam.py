"""Exam: play every shot of training packs once, with one car, and count the shots that it passes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.checks import check_seed
from envs.dones import BallOnGroundCondition, DoneCondition
from envs.matches.matches import Player
from envs.pool.players import Bot, play
from envs.pool.recorder import ReplayRecorder
from envs.pool.rocket_pool import bot_pool
from envs.resets.base import CAR_REST_HEIGHT, PerArenaSetter
from envs.resets.training_packs import Pack, place_shot
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE, Bool, Float
from fabric_rl.base.settings import Count, check_value

LONGEST_FLIGHT_SECONDS = 10.0
"""Maximum time that the ball may stay in the air after the time limit."""
PARKED_X, PARKED_Y = (2600, -2600, 2000, -2000, 1400, -1400, 3200, -3200), 4700
"""Places of the other cars, uu: beside the goal that is not attacked."""
CLEARANCE = 400.0
"""uu between a parked car and anything else."""


def run_exam(
    player: Player,
    packs: Sequence[Pack],
    team_size: tuple[int, int] = (1, 0),
    seed: int = 0,
    tick_skip: int = 8,
    action_delay_ticks: int = 1,
    num_threads: int | None = None,
    at_once: int = 128,
    progress: Callable[[float], None] | None = None,
    record: Callable[[Bot], ReplayRecorder] | None = None,
) -> list[Bool]:
    """Play every shot once. The car must score a striker's shot, and must not concede a goalie's shot.

    A shot ends with a goal, or when the ball touches the ground after the time limit, as in a match; at the latest
    `LONGEST_FLIGHT_SECONDS` after the limit. Time counts from the first tick.

    The player drives the first blue car; all others are parked beside the goal that is not attacked. The same arguments
    give the same results on the same processor, with any number of threads. For deterministic players, the result of a
    shot does not depend on other packs and `at_once`, except that the last bits of a network's outputs depend on the
    batch size.

    Args:
        player: Builds the bot.
        packs: Packs with at least one shot, see `Pack.in_standard_field`.
        team_size: Cars (blue, orange) in the arena, at least one blue.
        seed: Seed of the player and of the pool.
        tick_skip: Physics ticks (1/120 s) between decisions.
        action_delay_ticks: Ticks at the start of a step that still run the previous action.
        num_threads: See `RocketSimPool`.
        at_once: Number of shots that are played in parallel.
        progress: Called with the share of finished shots, 0..1.
        record: Builds a recorder for the first arena (one shot in `at_once`) from the bot.

    Returns:
        `[S]` bool for each pack, True for passed shots. A shot with broken physics counts as failed.

    Raises:
        ValueError: There is no shot, or the seed is invalid.
    """
    check_seed("run_exam", seed)
    check_value("run_exam: at_once", at_once, Count)
    if not sum(len(pack.shots) for pack in packs):
        raise ValueError("run_exam: the packs contain no shots")
    exam = _Exam(packs, at_once)
    bot = player(seed)
    recorders = [] if record is None else [record(bot)]
    pool = bot_pool(len(exam.at), team_size, exam, exam, tick_skip, action_delay_ticks, num_threads, seed, recorders)

    def only_the_first_car(actions: NDArray[Any]) -> NDArray[Any]:
        return np.where(np.arange(pool.num_envs)[:, None] % pool.num_cars == 0, actions, 0)

    try:
        steps = play(pool, bot, change=only_the_first_car)
        next(steps)
        while (exam.at >= 0).any():
            next(steps)
            if progress is not None:
                progress(exam.handed_out / len(exam.shots))
    finally:
        for recorder in recorders:
            recorder.end_game()
        pool.close()
    return np.split(exam.passed, np.cumsum([len(pack.shots) for pack in packs])[:-1])


def shot_over(state: GameState, limits: NDArray[np.float64], ground: BallOnGroundCondition) -> Bool:
    """Return `[A]` True where a shot has ended: with a goal, or when the ball touches the ground after its limit."""
    late = state.episode_ticks / TICKS_PER_SECOND - limits
    over: Bool = state.goal_scored | ((late >= 0) & ground.check(state)) | (late >= LONGEST_FLIGHT_SECONDS)
    return over


def place_exam_shot(state: GameState, arena: int, shot: NDArray[np.float64], goalie: bool) -> None:
    """Write the initial state of a shot `[4, 3]`, with all other cars beside the goal that is not attacked."""
    y = PARKED_Y if goalie else -PARKED_Y

    def beside_the_goal(side: int, placed: Sequence[Float]) -> Float:
        spots = np.array([(x, y, CAR_REST_HEIGHT) for x in PARKED_X], np.float32)
        gaps = np.linalg.norm(spots[:, None] - np.array(placed)[None], axis=-1).min(axis=1)
        spot: Float = spots[np.argmax(gaps > CLEARANCE)]
        return spot

    place_shot(state, arena, shot, beside_the_goal)


class _Exam(PerArenaSetter, DoneCondition):
    """Setter and condition that assigns shots to arenas, longest limits first, ends them, and stores the results.

    Attributes:
        at: `[A]` int64, index of the shot in each arena; -1 if none is left, and the arena repeats a shot whose
            result does not count.
    """

    def __init__(self, packs: Sequence[Pack], at_once: int) -> None:
        self.shots = np.concatenate([pack.shots for pack in packs])
        self.limits = np.concatenate([pack.limits for pack in packs])
        goalie = [pack.metadata.get("type") == "Goalie" for pack in packs]  # else the car attacks
        self.goalie = np.repeat(goalie, [len(pack.shots) for pack in packs])
        self.passed = np.zeros(len(self.shots), np.bool_)
        self.at: NDArray[np.int64] = np.full(min(at_once, len(self.shots)), -1)
        self.handed_out = 0
        self.ground = BallOnGroundCondition()
        self._order = np.argsort(-self.limits, kind="stable")

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        left = self.handed_out < len(self.shots)
        shot = self.at[arena] = self._order[self.handed_out] if left else -1
        self.handed_out += left
        place_exam_shot(state, arena, self.shots[shot], bool(self.goalie[shot]))

    def check(self, state: GameState) -> Bool:
        over = shot_over(state, self.limits[self.at], self.ground) & (self.at >= 0)
        shots, scored = self.at[over], state.scoring_team[over]
        self.passed[shots] = np.where(self.goalie[shots], scored != ORANGE, scored == BLUE)
        return over
