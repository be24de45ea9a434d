"""`fabric-rl evaluate`: matches between trained agents and bots."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from scipy import stats

from envs.matches.matches import Matches, play_matches
from fabric_rl.commands.output import console
from fabric_rl.commands.players import player_of, short_name


def evaluate(
    player: str,
    opponent: str = "chaser",
    /,
    matches: int = 200,
    minutes: float = 5.0,
    team_size: int = 1,
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    runs_dir: str = "runs",
    out: Path | None = None,
) -> int:
    """Plays matches on real physics, from kickoffs, half of them with sides changed.

    It prints their results, and the goal difference with its 95 % confidence interval.

    Args:
        player: A run id, a path (run, milestone, checkpoint, exported agent), school_1v1 (comes with fabric-rl), a bot
            (idle, random, chaser, shooter, circle, hover, hop), or a bot's class path.
        opponent: One of the same.
        matches: How many are played.
        minutes: Game time of each match.
        team_size: Cars in a team.
        seed: Of the kickoffs; the same one gives the same results.
        sample: Agents draw actions instead of taking the likeliest.
        tick_skip: Ticks per decision; default: as the player was trained.
        runs_dir: Folder of the run ids.
        out: .json file for the results.
    """
    if out is not None and (out.suffix != ".json" or not out.parent.is_dir()):
        raise ValueError(f"--out {out}: must be a .json file in a folder that exists")
    for flag, number in (("matches", matches), ("minutes", minutes), ("team_size", team_size)):
        if not number > 0:
            raise ValueError(f"--{flag} must be positive, got {number}")
    first, second = (player_of(name, team_size, sample, runs_dir) for name in (player, opponent))
    tick_skip = tick_skip or first.tick_skip or second.tick_skip or 8
    delays = [each.action_delay_ticks for each in (first, second) if each.action_delay_ticks is not None]
    played = play_matches(
        first.build(tick_skip),
        second.build(tick_skip),
        num_matches=matches,
        minutes=minutes,
        team_size=team_size,
        seed=seed,
        tick_skip=tick_skip,
        action_delay_ticks=delays[0] if delays else 1,
    )
    console().print(table([short_name(player), short_name(opponent)], played))
    mean, low, high = goal_difference(played)
    print(f"goal difference per match: {mean:+.2f} (95 % {low:+.2f} to {high:+.2f})")
    if out is not None:
        results = {"player": player, "opponent": opponent, "seed": seed, **summary(played)}
        out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(f"written: {out}")
    return 0


def table(names: Sequence[str], matches: Matches) -> Table:
    """One row per player."""
    figures = summary(matches)
    made = Table(title=f"{figures['matches']} matches of {figures['minutes']:g} minutes, {matches.cars}v{matches.cars}")
    for header in ("player", "wins", "draws", "goals per match", "touches per car and minute"):
        made.add_column(header, justify="left" if header == "player" else "right")
    for index, (name, wins) in enumerate(zip(names, (matches.wins, matches.losses), strict=True)):
        goals, touches = figures["goals"][index], figures["touches_per_minute"][index]
        made.add_row(name, str(wins), str(matches.draws), f"{goals:.2f}", f"{touches:.2f}")
    return made


def summary(matches: Matches) -> dict[str, Any]:
    """The results as numbers, for tables and files; goals are per match, touches per car and minute."""
    mean, low, high = goal_difference(matches)
    touches = matches.touches.sum(axis=0) / (len(matches.goals) * matches.minutes * matches.cars)
    return {
        "matches": len(matches.goals),
        "minutes": matches.minutes,
        "cars": matches.cars,
        "wins": matches.wins,
        "draws": matches.draws,
        "losses": matches.losses,
        "goals": matches.goals.mean(axis=0).tolist(),
        "touches_per_minute": touches.tolist(),
        "difference": mean,
        "difference_interval_95": [low, high],
    }


def goal_difference(matches: Matches, confidence: float = 0.95) -> tuple[float, float, float]:
    """The player's goals minus its opponent's per match: mean, and the ends of Student's confidence interval.

    NaN ends for a single match. Where all matches ended alike, the interval is that one number.
    """
    differences = (matches.goals[:, 0] - matches.goals[:, 1]).astype(np.float64)
    mean = float(differences.mean())
    if len(differences) < 2:
        return mean, math.nan, math.nan
    error = float(stats.sem(differences))
    if error == 0:
        return mean, mean, mean
    low, high = stats.t.interval(confidence, len(differences) - 1, mean, error)
    return mean, float(low), float(high)
