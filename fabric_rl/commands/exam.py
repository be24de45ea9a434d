"""`fabric-rl exam`: the shots of Rocket League's training packs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from rich.table import Table

from envs.bots import Bot, TeamBots
from envs.matches.exam import take_exam
from envs.matches.matches import PoolFactory
from envs.pool.recorder import ReplayRecorder
from envs.pool.replay_format import SUFFIX
from envs.pool.rocket_pool import RocketSimPool
from envs.resets.training_packs import Pack, packaged_file, read_packs
from fabric_rl.base.tables import progress, table
from fabric_rl.commands.output import JSON, Out, Report, writes
from fabric_rl.evaluation.exam import Marked, chosen, seated, summary
from fabric_rl.evaluation.play import replay_file
from fabric_rl.evaluation.players import entrant, short_name
from fabric_rl.evaluation.settings import DEFAULT_ACT, ActSettings
from fabric_rl.ranks.devices import one_thread

ROWS_BY_PACK = 20
"""More packs than these are in the file only."""


@writes(JSON, Out("record", [SUFFIX]))
def exam(
    player: str, /, packs: Sequence[str] = (), act: ActSettings = DEFAULT_ACT, record: Path | None = None
) -> Report:
    """Test a bot on every shot of the training packs in rlgym-tools, and report how many it solves.

    A striker shot is solved by a goal, a goalie shot by preventing one. A shot ends with a goal, or when the ball
    touches the ground after the pack's time limit. The 95 % intervals refer to other shots of the same kind.

    Args:
        player: Player, as in `fabric-rl evaluate`: a run id, a path (run, milestone, checkpoint, exported agent),
            school_1v1 or school_2v2 (included), a bot (idle, random, chaser, shooter, circle, hover, hop), or the class
            path of a bot.
        packs: Codes, types (Striker, Goalie), difficulties (Pro, All-Star, Unknown) or tags (Aerials, Saves...) of the
            packs to use. Default: all packs.
        act: How it acts.
        record: .frl file for one in 128 shots, to watch (docs/watching.md).
    """
    every = chosen(read_packs(packaged_file()), packs)
    fitting = [pack for pack in map(Pack.in_standard_field, every) if len(pack.shots)]
    who = entrant(player, act.sample, act.runs_dir)
    recipe = who.recipe or PoolFactory(RocketSimPool)
    tick_skip = act.tick_skip or recipe.tick_skip
    built, team_size = seated(who, recipe, tick_skip)
    shots = sum(len(pack.shots) for pack in fitting)
    with ExitStack() as opened, one_thread(), progress(f"{shots} shots") as tell:
        recorder = None
        if record is not None:
            about = {"names": [short_name(player), "nobody"], "seed": act.seed, "tick_skip": tick_skip}
            recorder = partial(_recorder, opened.enter_context(replay_file(record)), about)
        marks = take_exam(
            built,
            fitting,
            team_size=team_size,
            seed=act.seed,
            tick_skip=tick_skip,
            action_delay_ticks=recipe.action_delay_ticks,
            progress=tell,
            record=recorder,
        )
    marked = [Marked(pack, passed) for pack, passed in zip(fitting, marks, strict=True)]
    results = {"player": player, "seed": act.seed, "sample": act.sample, "tick_skip": tick_skip}
    results |= {"team_size": list(team_size), "shots_left_out": sum(len(pack.shots) for pack in every) - shots}
    results |= summary(marked)
    how = "it samples its actions" if act.sample else "it takes its most probable actions"
    title = f"{short_name(player)}: {shots} shots of {len(marked)} training packs{f'; {how}' if who.recipe else ''}"
    return Report([exam_table(title, results)], results)


def _recorder(file: BinaryIO, about: Mapping[str, Any], bot: Bot) -> ReplayRecorder:
    return ReplayRecorder(file, TeamBots(bot, bot), about)


def exam_table(title: str, results: Mapping[str, Any]) -> Table:
    """Return one row for each group; for few packs, one for each of them, too."""
    counted = [(str(group["packs"]), group) for group in results["groups"]]
    if len(results["packs"]) <= ROWS_BY_PACK:
        counted += [(str(pack["code"]), pack) for pack in results["packs"]]
    rows = []
    for packs, one in counted:
        low, high = one["interval_95"]
        figures = [str(one["shots"]), str(one["passed"]), f"{one['share']:.1%}", f"{low:.1%} to {high:.1%}"]
        rows.append([one["type"], one["difficulty"], packs, *figures])
    return table(title, ["type", "difficulty", ">packs", ">shots", ">passed", ">share", ">95 %"], rows)
