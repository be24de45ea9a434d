"""`fabric-rl evaluate`: matches between trained agents and bots."""

import copy
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from envs.bots import BOTS, Bot
from envs.bots.policy import Mind, PolicyBot
from envs.matches.matches import SIDES, Matches, Player, play_matches
from envs.matches.recipe import PoolRecipe
from envs.pool.rocket_pool import RocketSimPool
from fabric_rl.commands.evaluate_episodes import evaluate_episodes
from fabric_rl.commands.output import console, progress
from fabric_rl.commands.statistics import statistics_summary, statistics_table
from fabric_rl.ranks.threads import one_thread
from fabric_rl.runs.trained import Trained, load_trained, policy
from fabric_rl.selfplay.ratings.intervals import LEAST_SAMPLES, Interval, mean_interval


class Entrant(NamedTuple):
    """Who plays: how to build it for a team size and a tick skip, and what it was trained in; None for a bot."""

    build: Callable[[int | tuple[int, int], int], Player]
    recipe: PoolRecipe | None = None


def evaluate(
    player: str,
    opponent: str | None = None,
    /,
    matches: int | None = None,
    minutes: float | None = None,
    team_size: int | None = None,
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    runs_dir: str = "runs",
    out: Path | None = None,
    episodes: int | None = None,
) -> int:
    """Plays pairs of matches on real physics: the same kickoffs twice, the second time with sides changed.

    It prints their results, and the goal difference with its 95 % confidence interval. No two kickoffs of a match, and
    no two pairs, are alike: cars are a little off the spot, turned, have more boost or less, and react a little late.
    So pairs are independent samples, and the interval is Student's over the pairs; the two matches of a pair are one
    sample. With fewer than 10 pairs there is no interval.

    An agent of another environment (CartPole-v1...) plays episodes of that one instead, without an opponent.

    Args:
        player: A run id, a path (run, milestone, checkpoint, exported agent), school_1v1 (comes with fabric-rl), a bot
            (idle, random, chaser, shooter, circle, hover, hop), or a bot's class path.
        opponent: One of the same; default: chaser.
        matches: How many are played, in pairs; an odd number is one more; default: 200.
        minutes: Game time of each match; default: 5.
        team_size: Cars in a team; default: as the player was trained.
        seed: Of all that is drawn; the same one gives the same results.
        sample: Agents draw actions instead of taking the likeliest.
        tick_skip: Ticks per decision; default: as the player was trained.
        runs_dir: Folder of the run ids.
        out: .json file for the results.
        episodes: How many an agent of another environment plays, as many in every sub-environment; default: 100.
    """
    if out is not None and (out.suffix != ".json" or not out.parent.is_dir()):
        raise ValueError(f"--out {out}: must be a .json file in a folder that exists")
    given = {"matches": matches, "minutes": minutes, "team_size": team_size, "tick_skip": tick_skip}
    for flag, number in given.items():
        if number is not None and not number > 0:
            raise ValueError(f"--{flag} must be positive, got {number}")
    alone = _trained_elsewhere(player, runs_dir)
    if alone is not None:
        unfit = ["an opponent"] if opponent is not None else [f"--{flag}" for flag in given if given[flag] is not None]
        if unfit:
            raise ValueError(f"{player} plays alone, so {unfit[0]} makes no sense; --episodes says how much it plays")
        return evaluate_episodes(alone, 100 if episodes is None else episodes, seed, sample, out)
    if episodes is not None:
        raise ValueError(f"--episodes is for agents that play alone; {player} plays --matches")
    opponent, matches, minutes = opponent or "chaser", matches or 200, minutes or 5.0
    entrants = [entrant(name, sample, runs_dir) for name in (player, opponent)]
    trained_in = [each.recipe for each in entrants if each.recipe is not None]
    first = trained_in[0] if trained_in else PoolRecipe(RocketSimPool)
    team_size = team_size or max(max(sizes) for sizes in first.team_sizes)
    tick_skip = tick_skip or first.tick_skip
    players = [each.build(team_size, tick_skip) for each in entrants]
    num_pairs = -(-matches // SIDES)
    with one_thread(), progress(f"{SIDES * num_pairs} matches") as tell:
        played = play_matches(
            players[0],
            players[1],
            num_pairs=num_pairs,
            minutes=minutes,
            team_size=team_size,
            seed=seed,
            tick_skip=tick_skip,
            action_delay_ticks=first.action_delay_ticks,
            progress=tell,
        )
    how = [] if not trained_in else ["agents draw their actions" if sample else "agents take their likeliest actions"]
    names = [short_name(player), short_name(opponent)]
    console().print(table(names, played, *how))
    console().print(statistics_table(names, played.statistics))
    print(difference_line(played))
    if out is not None:
        results = {"player": player, "opponent": opponent, "seed": seed, "sample": sample, "tick_skip": tick_skip}
        out.write_text(json.dumps(results | summary(played), indent=2) + "\n", encoding="utf-8")
        print(f"written: {out}")
    return 0


def table(names: Sequence[str], matches: Matches, *remarks: str) -> Table:
    """One row per player."""
    figures = summary(matches)
    size = f"{matches.cars}v{matches.cars}"
    title = [f"{figures['matches']} matches of {figures['minutes']:g} minutes, {size}", *remarks]
    made = Table(title="; ".join(title))
    for header in ("player", "wins", "draws", "goals per match", "touches per car and minute"):
        made.add_column(header, justify="left" if header == "player" else "right")
    draws = _with_share(matches.draws, figures["matches"])
    for index, (name, wins) in enumerate(zip(names, (matches.wins, matches.losses), strict=True)):
        goals, touches = figures["goals"][index], figures["touches_per_minute"][index]
        made.add_row(name, _with_share(wins, figures["matches"]), draws, f"{goals:.2f}", f"{touches:.2f}")
    return made


def difference_line(matches: Matches) -> str:
    """The goal difference per match, and its interval or why there is none."""
    mean, pairs, interval = matches.differences.mean(), len(matches.differences), difference_interval(matches)
    if interval is None:
        few = f"no interval from {pairs} pairs of matches, it takes {LEAST_SAMPLES}"
        return f"goal difference per match: {mean:+.2f} ({few}: --matches {SIDES * LEAST_SAMPLES})"
    ends = f"95 % {interval.low:+.2f} to {interval.high:+.2f}"
    return f"goal difference per match: {mean:+.2f} ({ends}, from {pairs} independent pairs of matches)"


def summary(matches: Matches) -> dict[str, Any]:
    """The results as numbers, for tables and files; goals are per match, touches per car and minute.

    `difference_interval_95` is None where there are too few pairs for one.
    """
    count = SIDES * len(matches.goals)
    interval = difference_interval(matches)
    return {
        "matches": count,
        "pairs": len(matches.goals),
        "minutes": matches.minutes,
        "cars": matches.cars,
        "wins": matches.wins,
        "draws": matches.draws,
        "losses": matches.losses,
        "goals": matches.goals.mean(axis=(0, 1)).tolist(),
        "touches_per_minute": (matches.touches.sum(axis=(0, 1)) / (count * matches.minutes * matches.cars)).tolist(),
        "differences": matches.differences.tolist(),
        "difference": float(matches.differences.mean()),
        "difference_interval_95": None if interval is None else list(interval),
        "statistics": statistics_summary(matches.statistics),
    }


def difference_interval(matches: Matches) -> Interval | None:
    """Where the player's goals minus its opponent's per match lie on average, with 95 % confidence; see `evaluate`."""
    return mean_interval(matches.differences, resolution=1 / SIDES)


def _trained_elsewhere(name: str, runs_dir: str) -> Trained | None:
    """The agent of that name, if there is one and it was trained in another environment than a pool."""
    if name in BOTS:
        return None
    try:
        trained = load_trained(name, runs_dir)
    except ValueError:
        return None  # a bot's class, or said in its turn
    try:
        PoolRecipe(trained.env)
    except TypeError:
        return trained
    return None


def entrant(name: str, sample: bool, runs_dir: str, explain: bool = False) -> Entrant:
    """Who plays under a name, see `evaluate`; bots of one's own with an argument `seed` are given one.

    Args:
        name: The name.
        sample: Agents draw actions instead of taking the likeliest.
        runs_dir: Folder of the run ids.
        explain: Agents have `envs.bots.base.Thoughts`.

    Raises:
        ValueError: Nobody does.
    """
    if name in BOTS:
        return _scripted(BOTS[name])
    module, _, attribute = name.rpartition(".")
    if module and not Path(name).exists() and Path(name).name == name:
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)
        try:
            made = getattr(import_module(module), attribute)
        except (ImportError, AttributeError):
            made = None
        if made is not None:
            if not (isinstance(made, type) and issubclass(made, Bot)):
                raise ValueError(f"{name}: is no envs.bots.Bot")
            return _scripted(made)
    try:
        trained = load_trained(name, runs_dir)
    except ValueError as error:
        raise ValueError(f"{error} (bots: {', '.join(BOTS)})") from error
    recipe = PoolRecipe(trained.env, f"evaluate: {name}")
    return Entrant(lambda team_size, tick_skip: _agent(trained, recipe, team_size, tick_skip, sample, explain), recipe)


def _scripted(kind: type[Bot]) -> Entrant:
    """A bot that takes any settings, and a seed if it has an argument of that name."""
    seeded = "seed" in inspect.signature(kind).parameters
    make: Callable[..., Bot] = kind
    return Entrant(lambda *_: lambda seed: make(seed=seed) if seeded else make())


def _agent(
    trained: Trained,
    recipe: PoolRecipe,
    team_size: int | tuple[int, int],
    tick_skip: int,
    sample: bool,
    explain: bool,
) -> Player:
    pool = recipe.build(num_arenas=1, team_size=team_size)
    try:
        agent = trained.agent(pool.single_observation_space, pool.single_action_space)
        parts = pool.obs_builder, pool.action_parser
    finally:
        pool.close()

    def player(seed: int) -> Bot:
        obs, action = copy.deepcopy(parts)
        mind = Mind() if explain else None
        choose = policy(agent, not sample, seed, None if mind is None else mind.tell)
        return PolicyBot(choose, obs, action, tick_skip, recipe.action_delay_ticks, mind)

    return player


def _with_share(count: int, of: int) -> str:
    return f"{count} ({count / of:.0%})"


def short_name(name: str) -> str:
    """What tables call a player."""
    return Path(name).name if Path(name).exists() else name
