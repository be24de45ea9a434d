"""Kickoffs of matches: fair, no two alike, and the same ones for a seed whatever else is drawn."""

import numpy as np

from envs import Kickoff
from envs.matches.statistics import MatchKickoffs
from envs.resets import check_start
from envs.resets.simple import KICKOFF_BOOST
from envs.state.game_state import GameState


def kickoffs(seeds, order, cars=1):
    """The states that arenas begin with, in that order."""
    setter, found = MatchKickoffs([np.random.SeedSequence(seed) for seed in seeds], 2 * cars), []
    state = GameState(len(seeds), cars, cars)
    for arena in order:
        state.clear(np.array([arena]))
        setter.apply(state, np.arange(len(seeds)) == arena, np.random.default_rng(len(found)))
        state.invalidate()
        check_start(state, arena, "MatchKickoffs")
        found.append((arena, state.copy(), setter.delay_ticks[arena].copy()))
    return found


def test_the_same_seed_gives_the_same_kickoffs_whenever_they_come():
    """Goals fall at other times in the second match of a pair, and other cars are demolished."""
    found = kickoffs([3, 3], [0, 1, 1, 1, 0, 0])
    of = [[(state.world.car_pos[arena], late) for arena, state, late in found if arena == each] for each in (0, 1)]
    for (ours, late), (theirs, too) in zip(*of, strict=True):
        assert (ours == theirs).all() and (late == too).all()
    assert len({ours.tobytes() for ours, _ in of[0]}) == 3


def test_both_teams_begin_alike_near_a_spawn():
    spots, delays, boosts, turns = [], [], [], []
    for arena, state, late in kickoffs([1], [0] * 400, cars=3):
        world = state.world
        np.testing.assert_array_equal(world.car_pos[arena, :3], world.car_pos[arena, 3:] * [-1, -1, 1])
        np.testing.assert_allclose(world.car_forward[arena, :3], world.car_forward[arena, 3:] * [-1, -1, 1], atol=1e-6)
        np.testing.assert_array_equal(state.boost[arena, :3], state.boost[arena, 3:])
        away = world.car_pos[arena, :3, None, :2] - Kickoff.BLUE_POS[:, :2]
        nearest = np.abs(away).max(axis=2).argmin(axis=1)
        assert len(set(nearest)) == 3
        spots.append(away[np.arange(3), nearest])
        yaw = np.arctan2(world.car_forward[arena, :3, 1], world.car_forward[arena, :3, 0])
        turns.append(yaw - Kickoff.BLUE_YAW[nearest])
        boosts.append(state.boost[arena, :3] - KICKOFF_BOOST)
        delays.append(late)
    for found, most in ((spots, MatchKickoffs.MAX_SHIFT), (turns, MatchKickoffs.MAX_TURN), (boosts, 10)):
        assert 0.95 * most < np.max(found) <= most * 1.001 and -most * 1.001 <= np.min(found) < -0.95 * most
        assert abs(np.mean(found)) < 0.1 * most
    assert set(np.ravel(delays)) == set(range(MatchKickoffs.MAX_DELAY))
    assert abs(np.corrcoef(np.array(delays)[:, [0, 3]].T)[0, 1]) < 0.2  # every car its own
