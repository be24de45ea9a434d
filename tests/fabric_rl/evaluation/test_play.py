"""Games of a person against a bot: the bot plays as in `evaluate`, every tick is the person's, and games are saved."""

import numpy as np
import pytest

from envs.bots import BallChaser, IdleBot, TeamBots
from envs.dones import GoalCondition
from envs.matches.matches import PAIRS_AT_ONCE, play_matches
from envs.matches.real_time import RealTimeGame
from envs.matches.statistics import MatchKickoffs
from fabric_rl.evaluation.players import load_player

MINUTES, SEED = 0.5, 3
STEPS = round(MINUTES * 60 * 15)


def watched(player, seen, row):
    """The player, and in `seen` the observations `[D]` of one of its cars, at every decision."""

    def build(seed):
        bot = player(seed)
        choose = bot.choose

        def watching(obs, begins, mask):
            seen.append((obs[row].copy(), bool(begins[row])))
            return choose(obs, begins, mask)

        bot.choose = watching
        return bot

    return build


class AsChaser:
    """Drives like the bot `chaser` in a pool: a decision acts one tick late and is held."""

    def __init__(self, kickoffs):
        self.bot, self.kickoffs, self.row, self.game = BallChaser(), kickoffs, np.zeros(8, np.float32), None

    def __call__(self):
        state, tick = self.game.pool.state, self.game.ticks % 8
        if tick == 0 and state.episode_ticks[0] == 0:
            self.row = np.zeros(8, np.float32)
        if tick == 1:
            late = self.kickoffs.delay_ticks[0, 0] >= state.episode_ticks[0] + 8
            self.row = np.zeros(8, np.float32) if late else self.bot.act(state)[0, 0]
        return self.row


@pytest.mark.slow
def test_a_bot_sees_what_it_sees_in_evaluate_bit_for_bit():
    player = load_player("school_1v1", sample=False, runs_dir="runs").build(1, 8)
    evaluated, lived = [], []
    orange = 2 * PAIRS_AT_ONCE + 1  # the first match with swapped sides
    play_matches(watched(player, evaluated, orange), lambda seed: BallChaser(), PAIRS_AT_ONCE, MINUTES, seed=SEED)

    pool_seed, own_seed, _ = np.random.SeedSequence(SEED, spawn_key=(1, 0)).generate_state(3).tolist()
    kickoffs = MatchKickoffs([np.random.SeedSequence(SEED, spawn_key=(0, 0))], 2)
    drive = AsChaser(kickoffs)
    bots = TeamBots(IdleBot(), watched(player, lived, 1)(own_seed))
    drive.game = RealTimeGame(
        bots, drive, lambda: None, kickoffs, [GoalCondition()], seed=pool_seed + PAIRS_AT_ONCE
    )
    for _ in range(STEPS + 1):
        drive.game.step()
    assert len(evaluated) == len(lived) == STEPS and sum(begins for _, begins in lived) > 1  # there were goals
    for step, (there, here) in enumerate(zip(evaluated, lived, strict=True)):
        assert here[1] == there[1] and np.array_equal(here[0], there[0]), step
