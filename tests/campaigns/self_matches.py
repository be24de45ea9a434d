"""Players against themselves, and how often the interval that `evaluate` prints holds the truth, which is 0.

    python tests/campaigns/self_matches.py --pairs 500 --minutes 2 --players chaser school_1v1

A deterministic player against itself plays the same game from either side, so most pairs cancel to 0 and every interval
holds it. So the matches are also put together otherwise: a match as blue with one as orange from other kickoffs, which
is what a player gets whose two matches share nothing. Then every evaluation has its own scatter, and 95 % of the
intervals should hold 0; the other way round, more.

Evaluations of each size are made in two ways: every pair in one of them, which makes few that are independent, and
drawn with replacement, which makes many of the same pairs. The table says for each how many held the truth, and between
which shares that number lies with 95 % confidence (Clopper and Pearson).
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from envs.matches.matches import SIDES, play_matches
from fabric_rl.commands.evaluate import entrant
from fabric_rl.ranks.threads import one_thread
from fabric_rl.selfplay.ratings.intervals import mean_interval

SIZES = (10, 20, 50)
DRAWN = 4000


def self_matches(name, pairs, minutes, seed, sample=False):
    """Goal differences `[P, 2]` of a player and itself: as blue, as orange."""
    who = entrant(name, sample, "runs")
    tick_skip = who.recipe.tick_skip if who.recipe else 8
    players = [who.build(1, tick_skip) for _ in range(SIDES)]
    with one_thread(if_small=True):
        goals = play_matches(*players, num_pairs=pairs, minutes=minutes, seed=seed, tick_skip=tick_skip).goals
    return goals[..., 0] - goals[..., 1]


def as_played(differences):
    """One sample for each pair."""
    return differences.mean(axis=1)


def of_other_kickoffs(differences):
    """The match as blue of one pair and that as orange of another, each match once."""
    blue, orange = differences[: len(differences) // 2, 0], differences[len(differences) // 2 :, 1]
    return (blue[: len(orange)] + orange[: len(blue)]) / 2


def held(evaluations):
    """How many of the evaluations `[E, n]` have an interval that holds 0."""
    intervals = [mean_interval(samples, resolution=1 / SIDES) for samples in evaluations]
    return sum(low <= 0 <= high for low, high in intervals)


def coverage(samples, size, rng):
    """(evaluations, how many held 0) of the samples dealt out, and of samples drawn with replacement."""
    dealt = rng.permutation(samples)[: len(samples) // size * size].reshape(-1, size)
    drawn = rng.choice(samples, (DRAWN, size))
    return [(len(each), held(each)) for each in (dealt, drawn)]


def row(*cells):
    return f"{cells[0]:24}{cells[1]:18}{cells[2]:>6}  {cells[3]:30}{cells[4]}"


def shares(count, good):
    """`97/100 = 97.0 % (91.5 to 99.4)`."""
    low, high = binomtest(good, count).proportion_ci()
    return f"{good}/{count} = {good / count:.1%} ({low:.1%} to {high:.1%})"


def campaign(names, pairs, minutes, seed):
    """Prints the table; returns how many rows have a share that 95 % is not in, or that is too low."""
    rng, bad = np.random.default_rng(seed), 0
    print(row("player", "pairs", "size", "evaluations that held 0", "drawn with replacement"))
    for name in names:
        differences = self_matches(name, pairs, minutes, seed)
        for how in (as_played, of_other_kickoffs):
            samples = how(differences)
            for size in SIZES:
                dealt, drawn = coverage(samples, size, rng)
                print(row(name, how.__name__.replace("_", " "), size, shares(*dealt), shares(*drawn)), flush=True)
                bad += binomtest(dealt[1], dealt[0], 0.95, alternative="less").pvalue < 0.01
                bad += drawn[1] / drawn[0] < 0.935
        print(f"  {name}: {SIDES * pairs} matches, standard deviation of a pair {as_played(differences).std():.2f}")
    return bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--players", nargs="+", default=["chaser", "school_1v1"])
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sys.exit(bool(campaign(arguments.players, arguments.pairs, arguments.minutes, arguments.seed)))
