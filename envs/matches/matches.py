"""Matches between two players on real physics, in pairs with sides changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.bots.base import Bot
from envs.checks import check_seed, positive, whole_number
from envs.dones import GoalCondition
from envs.matches.kickoffs import MatchKickoffs
from envs.matches.statistics import Counts, GameStatistics, counted, of_pairs
from envs.pool.rocket_pool import RocketSimPool
from envs.state.layout import BLUE

PAIRS_AT_ONCE = 10
SIDES = 2

Player = Callable[[int], Bot]
"""Builds a new bot; what it draws comes from that seed. It plays one block of matches."""


@dataclass(frozen=True)
class Matches:
    """Results of pairs of matches; pairs are independent, the two matches of one are not.

    Attributes:
        goals: `[P, 2, 2]` int64: pair; the player as blue, then as orange; goals of the player, then of its opponent.
        touches: The same of contacts with the ball, each once however long it lasts.
        minutes: Game time of each match.
        cars: In each team.
        statistics: Name in `envs.matches.statistics.STATISTICS` -> `[P, 2, 2]` float64: pair; the player, its opponent;
            the count, and that over which it is told (see `envs.matches.statistics.of_pairs`).
    """

    goals: NDArray[np.int64]
    touches: NDArray[np.int64]
    minutes: float
    cars: int
    statistics: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, parts: "Sequence[Matches]", num_pairs: int | None = None) -> "Matches":
        """One after the other, all of the same settings; only the first `num_pairs`, if that is given."""
        goals = np.concatenate([part.goals for part in parts])[:num_pairs]
        touches = np.concatenate([part.touches for part in parts])[:num_pairs]
        statistics = {
            name: np.concatenate([part.statistics[name] for part in parts])[:num_pairs] for name in parts[0].statistics
        }
        return cls(goals, touches, parts[0].minutes, parts[0].cars, statistics)

    @property
    def match_scores(self) -> NDArray[np.float64]:
        """`[P, 2]` 1 for a match that the player won, 0.5 for a draw, 0 for a defeat."""
        scores: NDArray[np.float64] = np.sign(self.goals[..., 0] - self.goals[..., 1]) / 2 + 0.5
        return scores

    @property
    def scores(self) -> NDArray[np.float64]:
        """`[P]` their means, one independent sample from each pair."""
        means: NDArray[np.float64] = self.match_scores.mean(axis=1)
        return means

    @property
    def differences(self) -> NDArray[np.float64]:
        """`[P]` the player's goals minus its opponent's per match, one independent sample from each pair."""
        means: NDArray[np.float64] = (self.goals[..., 0] - self.goals[..., 1]).mean(axis=1)
        return means

    @property
    def wins(self) -> int:
        """Matches that the player won."""
        return int((self.goals[..., 0] > self.goals[..., 1]).sum())

    @property
    def losses(self) -> int:
        """Matches that its opponent won."""
        return int((self.goals[..., 0] < self.goals[..., 1]).sum())

    @property
    def draws(self) -> int:
        """Matches without a winner."""
        return SIDES * len(self.goals) - self.wins - self.losses


def play_matches(
    player: Player,
    opponent: Player,
    num_pairs: int = 100,
    minutes: float = 5.0,
    team_size: int = 1,
    seed: int = 0,
    tick_skip: int = 8,
    action_delay_ticks: int = 1,
    num_threads: int | None = None,
    progress: Callable[[float], None] | None = None,
    first_block: int = 0,
) -> Matches:
    """Lets two players play pairs of matches that begin, and after each goal go on, with a kickoff.

    In the first match of a pair the player is blue, in the second, with the same `MatchKickoffs`, orange. A match lasts
    `minutes` of play; there is no overtime. Every pair has its own kickoffs; players sample separately for each match.

    A pair depends on the seed and on its number, not on how many are played or on the threads: pairs are played in
    blocks of `PAIRS_AT_ONCE`, and the last block is played in full, for a network's outputs depend in their last bits
    on how many rows it is given. The same arguments give the same results on the same processor.

    Args:
        player: Builds what plays all cars of one side.
        opponent: The same for the other.
        num_pairs: How many pairs of matches.
        minutes: Game time of each match.
        team_size: Cars in each team.
        seed: Of everything that is drawn.
        tick_skip: Physics ticks (1/120 s) between decisions.
        action_delay_ticks: Ticks at the start of a step that still run the previous action.
        num_threads: See `RocketSimPool`.
        progress: Is told after each step which share of all steps is done, 0..1.
        first_block: Begin with pair `first_block * PAIRS_AT_ONCE`, as one of several processes that share the blocks.

    Raises:
        ValueError: No match, no time or no car, or a seed that is none.
    """
    check_seed("play_matches", seed)
    whole_number("play_matches", "num_pairs", num_pairs)
    for name, number in (("minutes", minutes), ("team_size", team_size)):
        positive("play_matches", name, number)
    steps = max(1, round(minutes * 60 * TICKS_PER_SECOND / tick_skip))
    blocks = -(-num_pairs // PAIRS_AT_ONCE)
    found: list[Counts] = []
    for block in range(blocks):
        number = first_block + block
        pairs = range(number * PAIRS_AT_ONCE, (number + 1) * PAIRS_AT_ONCE)
        own_seeds = [np.random.SeedSequence(seed, spawn_key=(0, pair)) for pair in pairs]
        pool_seed, *dice = np.random.SeedSequence(seed, spawn_key=(1, number)).generate_state(3).tolist()
        kickoffs, score = MatchKickoffs(SIDES * own_seeds, SIDES * team_size), GameStatistics()
        pool = RocketSimPool(
            num_arenas=SIDES * PAIRS_AT_ONCE,
            team_size=team_size,
            action=ContinuousAction(),
            state_setter=kickoffs,
            done=GoalCondition(),
            tick_skip=tick_skip,
            action_delay_ticks=action_delay_ticks,
            num_threads=num_threads,
            seed=pool_seed,
            loggers=[score],
        )
        try:
            for step in _play(pool, player(dice[0]), opponent(dice[1]), kickoffs, score, steps):
                if progress is not None:
                    progress((block + (step + 1) / steps) / blocks)
        finally:
            pool.close()
        found.append(_by_pairs(score.counts))
    counts = np.concatenate(found, axis=1)[:, :num_pairs]
    return Matches(counted(counts, "goals"), counted(counts, "touches"), minutes, team_size, of_pairs(counts))


def _play(
    pool: RocketSimPool, player: Bot, opponent: Bot, kickoffs: MatchKickoffs, score: GameStatistics, steps: int
) -> Iterator[int]:
    """Plays one step after the other; the player is blue in the first half of the arenas, and orange in the others."""
    pool.reset()
    state = pool.state
    as_blue = np.arange(pool.num_arenas) < PAIRS_AT_ONCE
    is_player = ((state.team == BLUE) == as_blue[:, None]).reshape(-1, 1)
    for step in range(steps):
        if score.begun.any():
            for bot in (player, opponent):
                bot.reset(score.begun, state)
            score.begun[:] = False
        ours, theirs = (bot.actions(state, pool.action_parser) for bot in (player, opponent))
        actions = np.where(is_player, ours, theirs)
        late = kickoffs.delay_ticks >= state.episode_ticks[:, None] + pool.tick_skip
        actions[late.reshape(-1)] = 0
        pool.step(actions)
        yield step


def _by_pairs(counts: Counts) -> Counts:
    """`[K, P, 2, 2]` from `[K, A, 2]`: pair; the player as blue and as orange; the player and its opponent."""
    as_blue, as_orange = np.split(counts, SIDES, axis=1)
    return np.stack((as_blue, as_orange[..., ::-1]), axis=2)
