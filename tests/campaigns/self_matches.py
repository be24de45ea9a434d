"""Players against themselves, and how often the interval that `evaluate` prints holds the truth, which is 0.

    python tests/campaigns/self_matches.py --players chaser school_1v1 --pairs 500 --minutes 2

A deterministic player against itself plays the same game from either side until a car is demolished, so most pairs
cancel to 0 and nearly all intervals hold it. So the matches are put together in a second way, too: one as blue with one
as orange from kickoffs and first reactions of its own. Then nothing cancels, and 95 % of the intervals should hold 0.

Evaluations are made in two ways: every pair in one of them, which gives few that are independent; and drawn with
replacement from all pairs, those with the two names exchanged included, so that their mean is 0. The table says how
many held 0 and, for the independent ones, which shares that fits with 95 % confidence (Clopper and Pearson).
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from envs.matches.matches import SIDES, play_matches
from fabric_rl.evaluation.players import load_player
from fabric_rl.ranks.devices import single_thread
from fabric_rl.selfplay.ratings.intervals import mean_interval

SIZES = (10, 20, 50)
DRAWN = 4000


def self_matches(name, pairs, minutes, seed, sample=False):
    """Goal differences `[P, 2]` of a player and itself: as blue, as orange."""
    who = load_player(name, sample, "runs")
    tick_skip = who.recipe.tick_skip if who.recipe else 8
    players = [who.build(1, tick_skip) for _ in range(SIDES)]
    with single_thread(if_small=True):
        goals = play_matches(*players, num_pairs=pairs, minutes=minutes, seed=seed, tick_skip=tick_skip).goals
    return goals[..., 0] - goals[..., 1]


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
    drawn = rng.choice(np.concatenate((samples, -samples)), (DRAWN, size))
    return [(len(each), held(each)) for each in (dealt, drawn)]


def row(*cells):
    return "".join(str(cell).ljust(width) for cell, width in zip(cells, (24, 20, 6, 36, 0), strict=True))


def campaign(names, pairs, minutes, seed, sample=False):
    """Prints the table; returns how many rows have fewer intervals that held 0 than chance explains."""
    rng, bad = np.random.default_rng(seed), 0
    print(row("player", "matches of a pair", "pairs", "evaluations that held 0", f"of {DRAWN} drawn"))
    for name in names:
        differences = self_matches(name, pairs, minutes, seed, sample)
        for how, samples in (
            ("as played", differences.mean(axis=1)),
            ("of other kickoffs", of_other_kickoffs(differences)),
        ):
            for size in SIZES:
                (count, good), (_, drawn) = coverage(samples, size, rng)
                if not count:
                    continue
                low, high = binomtest(good, count).proportion_ci()
                dealt = f"{good} of {count}: {good / count:.1%} ({low:.1%} to {high:.1%})"
                print(row(name, how, size, dealt, f"{drawn / DRAWN:.1%}"), flush=True)
                bad += binomtest(good, count, 0.95, alternative="less").pvalue < 0.005
                bad += drawn < 0.935 * DRAWN
        scatter = ", ".join(
            f"{count} x {value:+g}"
            for value, count in zip(*np.unique(differences.mean(axis=1), return_counts=True), strict=True)
        )
        print(f"  {name}: {SIDES * pairs} matches of {minutes:g} minutes; pairs as played {scatter}", flush=True)
    return bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--players", nargs="+", default=["chaser", "school_1v1"])
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", action="store_true", help="agents draw their actions")
    given = parser.parse_args()
    sys.exit(bool(campaign(given.players, given.pairs, given.minutes, given.seed, given.sample)))
