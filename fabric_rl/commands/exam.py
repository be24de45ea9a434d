"""`fabric-rl exam`: the shots of Rocket League's training packs, which nobody trained on, and who passes them."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from rich.table import Table

from envs.bots.base import Bot, TeamBots
from envs.matches.exam import take_exam
from envs.matches.matches import Player, PoolFactory
from envs.pool.rocket_pool import RocketSimPool
from envs.replays.recorder import ReplayRecorder
from envs.replays.replay import SUFFIX
from envs.resets.training_packs import Pack, packaged_file, read_packs
from envs.state.layout import Bool
from fabric_rl.commands.entrants import Entrant, check_positive, entrant, short_name
from fabric_rl.commands.output import STDOUT, check_out, console, for_people, give_json, progress
from fabric_rl.commands.record import replay_file
from fabric_rl.ranks.threads import one_thread
from fabric_rl.selfplay.ratings.intervals import share_interval

DIFFICULTIES = ("Rookie", "Pro", "All-Star", "Unknown")
ROWS_BY_PACK = 20
"""More packs than these are in the file only."""


class Marked(NamedTuple):
    """A pack and which of its shots were passed, `[S]` bool."""

    pack: Pack
    passed: Bool

    @property
    def group(self) -> tuple[str, str]:
        """Its type and its difficulty."""
        return self.pack.metadata.get("type", "Unknown"), self.pack.metadata.get("difficulty", "Unknown")


def exam(
    player: str,
    /,
    packs: Sequence[str] = (),
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    runs_dir: str = "runs",
    json: Path | None = None,
    record: Path | None = None,
) -> int:
    """Test a bot on every shot of the training packs in rlgym-tools, and report how many it solves.

    A striker shot is solved by a goal, a goalie shot by preventing one. A shot ends with a goal, or when the ball
    touches the ground after the pack's time limit. The 95 % intervals refer to other shots of the same kind.

    Args:
        player: Player, as in `fabric-rl evaluate`: a run id, a path (run, milestone, checkpoint, exported agent),
            school_1v1 or school_2v2 (included), a bot (idle, random, chaser, shooter, circle, hover, hop), or the class
            path of a bot.
        packs: Codes, types (Striker, Goalie), difficulties (Pro, All-Star, Unknown) or tags (Aerials, Saves...) of the
            packs to use. Default: all packs.
        seed: Seed of sampled actions; the same seed gives the same results.
        sample: Sample the actions of agents from their policies. Default: take the most probable action.
        tick_skip: Physics ticks (1/120 s) per decision. Default: as in the training of the first agent; 8 for bots.
        runs_dir: Folder that contains all runs.
        json: .json file for the results, with every pack and shot; without a file name, they go to standard output.
        record: .frl file for one in 128 shots, to watch (docs/watching.md).
    """
    files = [] if json is None else [json]
    check_out([file for file in files if file != STDOUT], [".json"], "--json")
    check_out([] if record is None else [record], [SUFFIX], "--record")
    check_positive(tick_skip=tick_skip)
    every = chosen(read_packs(packaged_file()), packs)
    fitting = [pack for pack in map(Pack.in_standard_field, every) if len(pack.shots)]
    who = entrant(player, sample, runs_dir)
    recipe = who.recipe or PoolFactory(RocketSimPool)
    tick_skip = tick_skip or recipe.tick_skip
    built, team_size = seated(who, recipe, tick_skip)
    shots = sum(len(pack.shots) for pack in fitting)
    with ExitStack() as opened, one_thread(), progress(f"{shots} shots") as tell:
        recorder = None
        if record is not None:
            about = {"names": [short_name(player), "nobody"], "seed": seed, "tick_skip": tick_skip}
            recorder = partial(_recorder, opened.enter_context(replay_file(record)), about)
        marks = take_exam(
            built,
            fitting,
            team_size=team_size,
            seed=seed,
            tick_skip=tick_skip,
            action_delay_ticks=recipe.action_delay_ticks,
            progress=tell,
            record=recorder,
        )
    marked = [Marked(pack, passed) for pack, passed in zip(fitting, marks, strict=True)]
    results: dict[str, Any] = {"player": player, "seed": seed, "sample": sample, "tick_skip": tick_skip}
    results |= {"team_size": list(team_size), "shots_left_out": sum(len(pack.shots) for pack in every) - shots}
    results |= summary(marked)
    how = "" if who.recipe is None else "; it samples its actions" if sample else "; it takes its most probable actions"
    with for_people(files):
        console().print(table(f"{short_name(player)}: {shots} shots of {len(marked)} training packs{how}", results))
    give_json(results, files)
    return 0


def _recorder(file: BinaryIO, about: Mapping[str, Any], bot: Bot) -> ReplayRecorder:
    return ReplayRecorder(file, TeamBots(bot, bot), about)


def chosen(packs: Sequence[Pack], words: Sequence[str]) -> list[Pack]:
    """The packs with one of the words for code, type, difficulty or tag; all without words.

    Raises:
        ValueError: A word that no pack has.
    """
    of = [set[str]().union(*map(pack.names, ("code", "type", "difficulty", "tags"))) for pack in packs]
    for word in words:
        if not any(word in names for names in of):
            known = ", ".join(
                sorted({name for pack in packs for key in ("type", "difficulty") for name in pack.names(key)})
            )
            raise ValueError(f"--packs {word}: no training pack has this code, type, difficulty or tag (as {known})")
    return [pack for pack, names in zip(packs, of, strict=True) if not words or not names.isdisjoint(words)]


def seated(who: Entrant, recipe: PoolFactory, tick_skip: int) -> tuple[Player, tuple[int, int]]:
    """The player and the teams (blue, orange) that it can see: itself alone, or as many cars as in its training."""
    blue, orange = (max(sizes) for sizes in zip(*recipe.team_sizes, strict=True))
    try:
        return who.build((1, 0), tick_skip), (1, 0)
    except ValueError:  # its observation has columns for others
        return who.build((blue, orange), tick_skip), (blue, orange)


def summary(marked: Sequence[Marked]) -> dict[str, Any]:
    """`groups`, by type and difficulty and of each type in all, and `packs`, with what was passed of each."""
    ranks = {name: rank for rank, name in enumerate(DIFFICULTIES)}
    ordered = sorted(marked, key=lambda one: (one.group[0], ranks.get(one.group[1], len(ranks)), one.group[1]))
    groups = []
    for kind, of_kind in groupby(ordered, key=lambda one: one.group[0]):
        members = list(of_kind)
        for difficulty, some in groupby(members, key=lambda one: one.group[1]):
            groups.append({"type": kind, "difficulty": difficulty} | _figures(list(some)))
        groups.append({"type": kind, "difficulty": "all"} | _figures(members))
    packs = [
        {key: one.pack.metadata.get(key) for key in ("code", "title", "type", "difficulty", "tags")}
        | _figures([one])
        | {"marks": "".join(map(str, one.passed.astype(int)))}
        for one in marked
    ]
    return {"groups": groups, "packs": packs}


def _figures(marked: Sequence[Marked]) -> dict[str, Any]:
    passed = np.concatenate([one.passed for one in marked])
    count, interval = int(passed.sum()), share_interval(int(passed.sum()), len(passed))
    figures = {"shots": len(passed), "passed": count, "share": count / len(passed), "interval_95": list(interval)}
    return {"packs": len(marked)} | figures


def table(title: str, results: dict[str, Any]) -> Table:
    """One row for each group; for few packs, one for each of them, too."""
    made = Table(title=title)
    for header in ("type", "difficulty", "packs", "shots", "passed", "share", "95 %"):
        made.add_column(header, justify="left" if header in ("type", "difficulty") else "right")
    rows = [(group["difficulty"], str(group["packs"]), group) for group in results["groups"]]
    if len(results["packs"]) <= ROWS_BY_PACK:
        rows += [(pack["difficulty"], str(pack["code"]), pack) for pack in results["packs"]]
    for difficulty, packs, one in rows:
        low, high = one["interval_95"]
        share, ends = f"{one['share']:.1%}", f"{low:.1%} to {high:.1%}"
        made.add_row(one["type"], difficulty, packs, str(one["shots"]), str(one["passed"]), share, ends)
    return made
