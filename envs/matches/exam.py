"""The shots of training packs as an exam: each one once, by one car, with marks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.bots.base import Bot
from envs.checks import check_seed
from envs.dones import BallOnGroundCondition, DoneCondition
from envs.matches.matches import Player
from envs.pool.play import play
from envs.pool.rocket_pool import RocketSimPool
from envs.replays.recorder import ReplayRecorder
from envs.resets.base import CAR_REST_HEIGHT, EachArena
from envs.resets.training_packs import Pack, place_shot
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE, Bool, Float
from fabric_rl.base.settings import Count, check_value

LONGEST_FLIGHT_SECONDS = 10.0
"""How long the ball may stay in the air once the time is up."""
PARKED_X, PARKED_Y = (2600, -2600, 2000, -2000, 1400, -1400, 3200, -3200), 4700
"""uu, where further cars stand: beside the goal that nobody attacks."""
CLEARANCE = 400.0
"""uu between a parked car and anything else."""


def is_goalie(pack: Pack) -> bool:
    """Whether the car guards its goal; else it attacks the other one."""
    return pack.metadata.get("type") == "Goalie"


def take_exam(
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
    """Plays every shot once. The car of a striker's shot has to score, that of a goalie's must not concede.

    A shot ends with a goal, or when its time limit is over and the ball touches the ground, as a match does; at the
    latest `LONGEST_FLIGHT_SECONDS` after its limit. Time counts from the first tick.

    The player drives the first blue car; further ones stand beside the goal that is not attacked and do nothing. The
    same arguments give the same marks on the same processor, whatever the threads. Of players that draw nothing
    neither other packs nor `at_once` change a shot's mark, but that a network's outputs depend in their last bits on
    how many rows it is given.

    Args:
        player: Builds what plays.
        packs: At least one shot, see `Pack.in_standard_field`.
        team_size: Cars (blue, orange) in the arena, at least one blue.
        seed: Of what the player draws, and of the pool.
        tick_skip: Physics ticks (1/120 s) between decisions.
        action_delay_ticks: Ticks at the start of a step that still run the previous action.
        num_threads: See `RocketSimPool`.
        at_once: How many shots are played side by side.
        progress: Is told which share of the shots is done, 0..1.
        record: Builds what records the shots of the first arena, one in `at_once`, by the bot that plays.

    Returns:
        For each pack `[S]` bool, which shots the player passed. One whose physics broke counts as failed.

    Raises:
        ValueError: No shot, or a seed that is none.
    """
    check_seed("take_exam", seed)
    check_value("take_exam: at_once", at_once, Count)
    if not sum(len(pack.shots) for pack in packs):
        raise ValueError("take_exam: there is no shot")
    papers = _Papers(packs, at_once)
    bot = player(seed)
    recorders = [] if record is None else [record(bot)]
    pool = RocketSimPool(
        num_arenas=len(papers.at),
        team_size=team_size,
        action=ContinuousAction(),
        state_setter=papers,
        done=_Marks(papers),
        tick_skip=tick_skip,
        action_delay_ticks=action_delay_ticks,
        num_threads=num_threads,
        seed=seed,
        loggers=recorders,
    )

    def only_the_first_car(actions: NDArray[Any]) -> NDArray[Any]:
        return np.where(np.arange(pool.num_envs)[:, None] % pool.num_cars == 0, actions, 0)

    try:
        steps = play(pool, bot, change=only_the_first_car)
        next(steps)
        while (papers.at >= 0).any():
            next(steps)
            if progress is not None:
                progress(papers.handed_out / len(papers.shots))
    finally:
        for recorder in recorders:
            recorder.end_game()
        pool.close()
    return np.split(papers.passed, np.cumsum([len(pack.shots) for pack in packs])[:-1])


class _Papers(EachArena):
    """Hands out the shots, those with the longest limits first, and keeps the marks.

    Attributes:
        at: `[A]` int64, the shot that each arena plays; -1 where none is left and it plays one again for nothing.
    """

    def __init__(self, packs: Sequence[Pack], at_once: int) -> None:
        self.shots = np.concatenate([pack.shots for pack in packs])
        self.limits = np.concatenate([pack.limits for pack in packs])
        self.goalie = np.repeat([is_goalie(pack) for pack in packs], [len(pack.shots) for pack in packs])
        self.passed = np.zeros(len(self.shots), np.bool_)
        self.at: NDArray[np.int64] = np.full(min(at_once, len(self.shots)), -1)
        self.handed_out = 0
        self._order = np.argsort(-self.limits, kind="stable")

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        left = self.handed_out < len(self.shots)
        shot = self.at[arena] = self._order[self.handed_out] if left else -1
        self.handed_out += left
        y = PARKED_Y if self.goalie[shot] else -PARKED_Y

        def beside_the_goal(side: int, placed: Sequence[Float]) -> Float:
            spots = np.array([(x, y, CAR_REST_HEIGHT) for x in PARKED_X], np.float32)
            gaps = np.linalg.norm(spots[:, None] - np.array(placed)[None], axis=-1).min(axis=1)
            spot: Float = spots[np.argmax(gaps > CLEARANCE)]
            return spot

        place_shot(state, arena, self.shots[shot], beside_the_goal)


class _Marks(DoneCondition):
    """Ends the shots and marks them."""

    def __init__(self, papers: _Papers) -> None:
        self._papers, self._ground = papers, BallOnGroundCondition()

    def check(self, state: GameState) -> Bool:
        papers = self._papers
        late = state.episode_ticks / TICKS_PER_SECOND - papers.limits[papers.at]
        down = self._ground.check(state)
        over: Bool = state.goal_scored | ((late >= 0) & down) | (late >= LONGEST_FLIGHT_SECONDS)
        over &= papers.at >= 0
        shots, scored = papers.at[over], state.scoring_team[over]
        papers.passed[shots] = np.where(papers.goalie[shots], scored != ORANGE, scored == BLUE)
        return over

    def reset(self, mask: Bool, state: GameState) -> None:
        self._ground.reset(mask, state)
