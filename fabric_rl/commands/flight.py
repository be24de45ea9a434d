"""`fabric-rl flight`: tests an exported RLBot bot in matches without the game."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.matches.matches import SIDES
from fabric_rl.base.settings import CountOrZero
from fabric_rl.base.tables import progress, table
from fabric_rl.commands.output import Report
from fabric_rl.evaluation.settings import Confidence, Minutes
from fabric_rl.ranks.devices import single_thread
from fabric_rl.rlbot.bot_files import check_rlbot
from fabric_rl.rlbot.simulation import (
    MIN_EQUAL_ACTIONS,
    MIN_EQUAL_OBSERVATIONS,
    TOLERANCE,
    SimulationSettings,
    compare_with_policy,
    play_match,
)
from fabric_rl.selfplay.ratings.intervals import mean_interval


def flight(
    folder: Path,
    opponent: str = "chaser",
    /,
    minutes: Minutes = 1.0,
    matches: CountOrZero = 0,
    latency: str = "0",
    loss: str = "0",
    seed: CountOrZero = 0,
    confidence: Confidence = 0.95,
    runs_dir: str = "runs",
) -> Iterator[Report]:
    """Test an exported RLBot bot without the game: real processes, RLBot's protocol, and RocketSim as the game.

    The folder comes from `fabric-rl export --format rlbot`. First, the command plays one match as blue and one as
    orange. It checks that the bot gets the same observations as in a RocketSimPool and makes the same decisions as the
    policy there. With --matches, a table then shows the effect of late answers and lost packets.

    Args:
        folder: Folder of the exported bot.
        opponent: Opponent, as in `fabric-rl evaluate`.
        minutes: Game time of each match in minutes.
        matches: Matches per row of the table, half of them as blue; an even number. 20 or more give intervals. 0: no
            table.
        latency: Additional delay of answers in ticks (1/120 s); a list such as 0,1,2,4 gives one row of the table for
            each value.
        loss: Share of packets that never reach the bot; a list such as 0,0.05 gives rows for each value.
        seed: Seed of the kickoffs and of the lost packets.
        confidence: Confidence level of the intervals, above 0 and below 1.
        runs_dir: Folder that contains all runs.
    """
    check_rlbot("fabric-rl flight")
    if matches % SIDES:
        raise ValueError(f"--matches must be even, half as blue and half as orange, got {matches}")
    shares = _numbers("--loss", loss, float, "shares of packets", 0.99)
    ticks = [int(each) for each in _numbers("--latency", latency, int, "whole ticks", TICKS_PER_SECOND)]
    if not (folder / "bot.toml").is_file():
        raise ValueError(f"{folder} has no bot.toml; create it with fabric-rl export NAME {folder} --format rlbot")
    course = SimulationSettings.of(folder, opponent, minutes, runs_dir)
    with single_thread():
        yield _check(course, seed)
        if matches:
            conditions = [(each, share) for share in shares for each in ticks]
            yield Report([_costs_table(course, matches, conditions, seed, confidence)])


def _check(course: SimulationSettings, seed: int) -> Report:
    equal, found = zip(*(compare_with_policy(course, side, seed) for side in range(SIDES)), strict=True)
    differences = np.concatenate(found).ravel()
    near, decisions = differences <= TOLERANCE, differences.size
    sees, acts = near.sum() >= MIN_EQUAL_OBSERVATIONS * decisions, sum(equal) >= MIN_EQUAL_ACTIONS * decisions
    seen = f"{near.sum()} of {decisions} within {TOLERANCE:g} of the pool's"
    if not near.all():
        seen += f", the others within {differences[~near].max():.1e}"
    done = f"{sum(equal)} of {decisions} equal to the policy's in the pool"
    lines = [
        f"observations: {seen}: {'good' if sees else 'WRONG'} ({MIN_EQUAL_OBSERVATIONS:.0%} are enough)",
        f"actions: {done}: {'good' if acts else 'WRONG'} ({MIN_EQUAL_ACTIONS:.0%} are enough)",
    ]
    return Report(lines, status=int(not (sees and acts)))


def _costs_table(
    course: SimulationSettings, matches: int, conditions: Sequence[tuple[int, float]], seed: int, confidence: float
) -> Table:
    pairs = matches // SIDES
    found = np.zeros((len(conditions), pairs, SIDES))
    with progress("flying") as tell:
        for side in range(SIDES):
            with course.processes(side) as bots:
                for row, (latency, loss) in enumerate(conditions):
                    for pair in range(pairs):
                        found[row, pair, side], _ = play_match(course, bots, side, seed, pair, latency, loss)
                        tell((side + (row + (pair + 1) / pairs) / len(conditions)) / SIDES)
    differences = found.mean(axis=-1)
    rows = []
    for row, (latency, loss) in enumerate(conditions):
        cost = _with_interval(differences[0] - differences[row], confidence) if row else ""
        rows.append([str(latency), f"{loss:g}", _with_interval(differences[row], confidence), cost])
    columns = [">latency, ticks", ">packets lost", ">goal difference per match", ">cost relative to the first row"]
    return table(f"{matches} matches per row", columns, rows)


def _numbers(flag: str, text: str, kind: type[float], what: str, most: float) -> list[float]:
    """Parse a list such as 0,1,2; raise a ValueError that names the flag if a number is not between 0 and `most`."""
    try:
        found = [kind(each) for each in text.split(",")]
    except ValueError:
        found = [-1]
    if not all(0 <= each <= most for each in found):
        raise ValueError(f"{flag} must be {what} from 0 to {most:g}, separated by commas, got {text!r}")
    return found


def _with_interval(samples: NDArray[np.float64], confidence: float) -> str:
    interval = mean_interval(samples, 1 / SIDES, confidence)
    return f"{samples.mean():+.2f}" + (f" ({interval.low:+.2f} to {interval.high:+.2f})" if interval else "")
