"""`fabric-rl search`: find action sequences that reach a goal, and write them as a demonstration."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.bots import IdleBot
from envs.demonstrations.file import SUFFIX, DemonstrationWriter, columns_of_states, frame_from_state
from envs.demonstrations.record import states_header
from envs.loggers import StateLogger
from envs.matches.exam import place_exam_shot
from envs.matches.matches import PoolFactory
from envs.pool import replay_format
from envs.pool.players import TeamBots
from envs.pool.recorder import ReplayRecorder
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, RandomState, ReplayedStates, StateSetter
from envs.resets.base import apply_to_arena
from envs.resets.replay import save_states
from envs.resets.training_packs import Pack, packaged_file, read_packs
from envs.search import GOALS, Goal, Rules, SearchStart, Solution, replay, search
from envs.search.search import Seconds
from envs.state.game_state import GameState
from envs.state.layout import BLUE, ORANGE
from fabric_rl.base.files import read_error_context, read_json, write_json
from fabric_rl.base.settings import Count, CountOrZero, Positive, Share
from fabric_rl.base.tables import progress, table
from fabric_rl.commands.output import JSON, Out, Report, writes
from fabric_rl.evaluation import results
from fabric_rl.evaluation.matches import replay_file
from fabric_rl.evaluation.players import find_class, load_player, short_name
from fabric_rl.evaluation.settings import UpTo
from fabric_rl.ranks.devices import single_thread
from fabric_rl.selfplay.ratings.intervals import share_interval

_AT_ONCE = 32
"""Initial states that are searched at the same time; the result of each such block is kept."""


@writes(Out("out", [SUFFIX]), Out("states", [".npz"]), Out("record", [replay_format.SUFFIX]), JSON)
def search_states(
    start: Sequence[str],
    goal: str = "score",
    player: Sequence[str] = ("school_1v1",),
    opponent: str = "idle",
    number: UpTo = 32,
    budget: Count = 100_000,
    robust: Share = 0.5,
    seconds: Seconds = 10.0,
    out: Path | None = None,
    states: Path | None = None,
    record: Path | None = None,
    last_seconds: Positive = 2.0,
    seed: CountOrZero = 0,
    runs_dir: str = "runs",
) -> Report:
    """Search for action sequences that reach a goal, guided by a bot, and write them as a demonstration.

    From each initial state, the command plays many attempts, and varies the best ones. It accepts an attempt if it also
    works after small changes of the initial state. An agent learns from the result as from any demonstration
    (docs/search.md). With --out, repeating an interrupted command continues after the last finished block of 32 initial
    states.

    Args:
        start: Initial states: `kickoff`, `random`, a .npz file of `envs.save_states`, or training packs by code, type
            (Striker, Goalie), difficulty or tag, without those that are held out for the exam.
        goal: Goal of the first blue car: score, save, touch_in_air, first_to_ball, or the class path of an
            `envs.search.Goal`.
        player: Guides: players as in `fabric-rl evaluate`; each attempt draws one. An agent counts as two guides: one
            samples its actions, the other takes the most probable ones.
        opponent: Player of all other cars; agents take their most probable actions.
        number: Number of initial states.
        budget: Maximum number of decisions to play from each initial state; a test that has begun is finished.
        robust: Share of 16 replays with a slightly changed initial state that must also reach the goal. 0: no replays.
        seconds: Maximum game time of an attempt.
        out: .frd file for the solutions.
        states: .npz file for states on the way to the goal, for `envs.ReplayedStates`.
        record: .frl file of all solutions, to watch (docs/watching.md).
        last_seconds: `states` are taken from this many seconds before the goal is reached.
        seed: Seed of the initial states and the attempts.
        runs_dir: Folder that contains all runs.
    """
    players, other = [load_player(each, True, runs_dir) for each in player], load_player(opponent, False, runs_dir)
    if len({each.identity for each in players}) < len(players):
        raise ValueError("--player names the same player twice")
    agents = [name for name, each in zip(player, players, strict=True) if each.trained_in]
    players += [load_player(name, False, runs_dir) for name in agents]
    recipe = next((each.trained_in for each in players if each.trained_in), PoolFactory(RocketSimPool))
    size, skip = max(recipe.team_sizes, key=sum), recipe.tick_skip
    guides, opposing = [each.build(size, skip) for each in players], other.build(size, skip)
    sought = _find_goal(goal)
    starts = _starts(start, number, seed, seconds)
    num_arenas = min(128, max(16, 4 * len(starts)))
    rules = Rules(budget, robust, num_arenas, skip, recipe.action_delay_ticks, seconds)
    made_with = [list(start), goal, list(player), opponent, len(starts), list(vars(rules).values()), seed]
    kept = None if out is None else out.with_name(f"{out.name}.part.json")
    if kept is not None:  # what is behind the names
        files = [each.identity[0] for each in (*players[: len(player)], other) if isinstance(each.identity, tuple)]
        whole = [Path(file).read_bytes() for file in (*files, *start) if Path(file).is_file()]
        made_with.append([sha256(content).hexdigest() for content in whole])

    def play_again(one: Solution, loggers: Sequence[StateLogger] = ()) -> Iterator[tuple[GameState, bool]]:
        opponent_of_block = opposing(seed + one.start - one.start % _AT_ONCE)
        return replay(starts[one.start], one.controls, sought(), opponent_of_block, rules, size, loggers)

    found = _read(kept, made_with)
    with single_thread(), progress(f"{len(starts)} initial states") as tell:
        while len(found) < len(starts):
            first = len(found)
            some, own_seed = starts[first : first + _AT_ONCE], seed + first
            inside = partial(_inside, tell, first / len(starts), len(some) / len(starts))
            bots = [guide(own_seed) for guide in guides], opposing(own_seed)
            results_here = search(some, sought(), *bots, rules, size, own_seed, progress=inside)
            found += [each._replace(start=each.start + first) for each in results_here]
            if kept is not None:
                write_json(
                    kept,
                    {
                        "made_with": made_with,
                        "solutions": [[*x[:1], x.controls.tobytes().hex(), *x[2:]] for x in found],
                    },
                )
        guided_by = " and ".join(map(short_name, player))
        names, teams = [guided_by, short_name(opponent)], [BLUE] * size[0] + [ORANGE] * size[1]
        about, last = states_header(names, teams, [0], skip), max(1, round(last_seconds * TICKS_PER_SECOND / skip))
        on_the_way: list[GameState] = []
        lost = 0
        with ExitStack() as opened:
            writer = None
            for each in [one for one in found if len(one.controls)]:
                game = [(state.copy(), reached) for state, reached in play_again(each)]
                if not game[-1][1]:
                    lost += 1
                    found[each.start] = each._replace(controls=each.controls[:0], robust=0.0)
                    continue
                on_the_way += [state for state, _ in game[:-1][-last:]]
                if out is not None:
                    if writer is None:
                        writer = opened.enter_context(DemonstrationWriter(out, columns_of_states(sum(size)), about))
                    scored = bool(game[-1][0].goal_scored[0])
                    writer.add([frame_from_state(state) for state, _ in game], {"terminated": scored})
        if states is not None and on_the_way:
            save_states(states, on_the_way)
        solved = [each for each in found if len(each.controls)]
        if record is not None and solved:
            with replay_file(record) as file:
                recorder = ReplayRecorder(file, TeamBots(IdleBot(), IdleBot()), {"names": names, "tick_skip": skip})
                for each in solved:
                    deque(play_again(each, [recorder]), maxlen=0)
                    recorder.end_game()
    if kept is not None:
        kept.unlink(missing_ok=True)
    share = list(share_interval(len(solved), len(found)))
    data: dict[str, Any] = {"start": list(start), "goal": goal, "player": list(player), "opponent": opponent}
    data |= {"seed": seed, "searched": len(found), "solved": len(solved), "left_out": lost, "interval_95": share}
    rows = [(x.start, len(x.controls) * skip / TICKS_PER_SECOND, x.robust, x.cost) for x in found]
    data["solutions"] = [dict(zip(("start", "seconds", "robust", "cost"), row, strict=True)) for row in rows]
    costs = f"{np.median([each.cost for each in solved]):,.0f}" if solved else "-"
    long = f"{np.mean([row[1] for row in rows if row[1]]):.1f}" if solved else "-"
    row = [" ".join(start), goal, str(len(found)), str(len(solved)), f"{len(solved) / len(found):.1%}"]
    row += [f"{share[0]:.1%} to {share[1]:.1%}", long, costs]
    columns = ["initial states", "goal", ">searched", ">solved", ">share", ">95 %", ">seconds", ">decisions, median"]
    shown: list[Table | str] = [table(f"guided by {guided_by}, against {short_name(opponent)}", columns, [row])]
    if lost:
        shown.append(
            f"left out, because the replay does not reach the goal: {lost} of {lost + len(solved)} solutions; "
            "is the opponent deterministic?"
        )
    elif not solved:
        still, hint = (" after small changes, too", ", or --robust 0") if robust else ("", "")
        shown.append(f"nothing is written, because no attempt reached the goal{still}; try a larger --budget{hint}")
    return Report(shown, data)


def _find_goal(name: str) -> Callable[[], Goal]:
    found = GOALS.get(name) or find_class(name, Goal)  # type: ignore[type-abstract]
    if found is None:
        raise ValueError(f"--goal {name} must be {', '.join(GOALS)} or the class path of an envs.search.Goal")
    try:
        found()
    except TypeError as error:
        raise ValueError(
            f"--goal {name}: {error}; a goal must be complete, and all its arguments need defaults"
        ) from None
    return found


def _inside(tell: Callable[[float], None], done: float, share: float, now: float) -> None:
    tell(done + share * now)


def _read(kept: Path | None, made_with: list[Any]) -> list[Solution]:
    """Return the solutions of an interrupted search with the same settings."""
    if kept is None or not kept.exists():
        return []
    damaged, saved = f"--out: {kept} is damaged; delete it to begin again", read_json(kept)
    if not saved:
        raise ValueError(damaged)
    if saved.get("made_with") != made_with:
        raise ValueError(f"--out: {kept} is from a search with other settings; finish that one, or delete the file")
    with read_error_context(damaged):
        return [
            Solution(n, np.frombuffer(bytes.fromhex(rows), np.float32).reshape(-1, 8), *rest)
            for n, rows, *rest in saved["solutions"]
        ]


def _starts(words: Sequence[str], number: int, seed: int, seconds: float) -> list[SearchStart]:
    """Return the initial states that the words name; `number` of them in random order."""
    setters: dict[str, Callable[[], StateSetter]] = {"kickoff": Kickoff, "random": RandomState}
    alone = [word for word in words if word in setters or word.endswith(".npz")]
    if alone and len(words) > 1:
        raise ValueError(f"start: {alone[0]} cannot be combined with other words; search one after the other")
    order = np.random.default_rng(seed).permutation
    if words[0] in setters:
        setter = setters[words[0]]()
        return [SearchStart(partial(_place, setter, (seed, i)), seconds) for i in range(number)]
    if words[0].endswith(".npz"):
        recorded = ReplayedStates(words[0])
        chosen = order(len(recorded))[:number].tolist()
        return [SearchStart(partial(recorded.place, number=i), seconds) for i in chosen]
    packs = results.choose_packs(read_packs(packaged_file()), [*words, "train"], "start", [*setters, "an .npz file"])
    shots = []
    for pack in map(Pack.in_standard_field, packs):
        goalie = pack.metadata.get("type") == "Goalie"
        shots += [(shot, goalie, limit) for shot, limit in zip(pack.shots, pack.limits.tolist(), strict=True)]
    chosen = order(len(shots))[:number].tolist()
    return [SearchStart(partial(place_exam_shot, shot=shots[i][0], goalie=shots[i][1]), shots[i][2]) for i in chosen]


def _place(setter: StateSetter, seed: tuple[int, int], state: GameState, arena: int) -> None:
    apply_to_arena(setter, state, arena, np.random.default_rng(seed))
