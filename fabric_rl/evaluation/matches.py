"""Matches between named players: in blocks over one or more processes, recorded, or live."""

import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

import torch
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.bots import TeamBots
from envs.matches.matches import PAIRS_AT_ONCE, Matches, Player, PoolFactory, RecordedMatch, play_matches
from envs.pool.replay_format import CHUNK_FRAMES, Sink
from envs.replays.replay import read_replay
from envs.rewards.parts import RewardTerm, reward_terms
from fabric_rl.base.errors import describe_failure
from fabric_rl.base.messages import USER_ERRORS
from fabric_rl.base.processes import end_with_parent
from fabric_rl.evaluation.players import MatchSettings, load_player, short_names, trained_player
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.ranks.devices import single_thread
from fabric_rl.runs.trained import Trained
from fabric_rl.viewer.feeds import LiveFeed

Tell = Callable[[float], None]


class Block(NamedTuple):
    """Block of `PAIRS_AT_ONCE` pairs of matches between two players; only its fields and the rules affect results."""

    player: str
    opponent: str
    seed: int
    number: int


def play_blocks(
    rules: MatchSettings, blocks: Sequence[Block], workers: int, tell: Tell
) -> Generator[Matches, None, None]:
    """Play blocks and yield their results in order; close the generator to stop early.

    Args:
        rules: Settings of all matches.
        blocks: Blocks to play.
        workers: Number of processes; 1: only this process.
        tell: Called with the share that has been played, 0 to 1.

    Raises:
        OSError: A worker was killed.
    """
    if workers == 1:
        players: dict[str, Player] = {}
        with single_thread():
            for done, block in enumerate(blocks):
                yield _play_here(rules, players, block, lambda share, done=done: tell((done + share) / len(blocks)))  # type: ignore[misc]
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(min(workers, len(blocks)), multiprocessing.get_context("spawn"), _begin, (rules,)) as pool:
        left, playing = iter(blocks), deque[Future[Matches]]()
        try:
            for done in range(1, len(blocks) + 1):
                playing.extend(pool.submit(_play, block) for block in islice(left, 2 * workers - len(playing)))
                matches = playing.popleft().result()
                tell(done / len(blocks))
                yield matches
        except BrokenProcessPool as error:
            raise OSError(f"--workers {workers}: a worker was killed, perhaps for lack of memory; use fewer") from error
        finally:  # the results of the running blocks are not needed
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()


def _play_here(rules: MatchSettings, players: dict[str, Player], block: Block, progress: Tell | None = None) -> Matches:
    """Play a block in this process; `players` caches the players built so far, by name."""
    for name in (block.player, block.opponent):
        if name not in players:
            found = load_player(name, rules.play.sample, rules.play.runs_dir, rules.play.trust_torchscript)
            players[name] = found.build(rules.team_size, rules.tick_skip)
    return play_matches(
        players[block.player],
        players[block.opponent],
        PAIRS_AT_ONCE,
        rules.minutes,
        rules.team_size,
        block.seed,
        rules.tick_skip,
        rules.action_delay_ticks,
        progress=progress,
        first_block=block.number,
    )


_worker: list[tuple[MatchSettings, dict[str, Player]]] = []
"""Rules and players of this process, if `_begin` has made it a worker."""


def _begin(rules: MatchSettings) -> None:
    """Make this process a worker that ends with its parent and leaves Ctrl+C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        end_with_parent(parent.join)
    torch.set_num_threads(1)
    _worker.append((rules, {}))


def _play(block: Block) -> Matches:
    try:
        return _play_here(*_worker[0], block)
    except (Exception, SystemExit) as error:
        if isinstance(error, USER_ERRORS) or (failure := describe_failure(error)) is None:
            raise
        raise RuntimeError(failure) from error  # the parent cannot tell which part failed


@contextmanager
def replay_file(out: Path) -> Iterator[BinaryIO]:
    """Open a file for a replay; after an error or Ctrl+C, keep the part that was played, or delete an empty file."""
    with out.open("wb") as file:  # outside the try block: a file that cannot be opened is not deleted
        try:
            yield file
            file.flush()
        except BaseException as error:
            if isinstance(error, OSError):  # errors of a full disk do not name the file
                error.filename = error.filename or str(out)
            with suppress(OSError):
                file.close()
            seconds = 0.0
            with suppress(OSError, ValueError):
                games = read_replay(out).games
                seconds = sum(game.columns["ticks"].max(initial=0) for game in games) / TICKS_PER_SECOND
            if seconds:
                print(f"{out} contains the {seconds:.0f} s that were played", file=sys.stderr)
            else:
                out.unlink(missing_ok=True)
            raise


class Duel(NamedTuple):
    """Two players and their settings."""

    names: tuple[str, str]
    players: tuple[Player, Player]
    rules: MatchSettings
    trained_in: PoolFactory | None
    """Environment of the first agent among the players."""

    @classmethod
    def of(cls, player: str | Trained, opponent: str, play: PlaySettings) -> "Duel":
        """Find the players; raise a ValueError if one does not exist."""
        asked = play.sample, play.runs_dir, play.trust_torchscript
        if isinstance(player, Trained):
            name, first = player.name, trained_player(player, play.sample, explain=True)
        else:
            name, first = player, load_player(player, *asked, explain=True)
        both = [first, load_player(opponent, *asked, explain=True)]
        rules = MatchSettings.of(both, play)
        mine, theirs = (each.build(rules.team_size, rules.tick_skip) for each in both)
        blue, orange = short_names((name, opponent))
        trained_in = both[0].trained_in or both[1].trained_in
        return cls((blue, orange), (mine, theirs), rules, trained_in)

    def bots(self, seed: int) -> TeamBots:
        """Return both players as bots for a new game; the first one is blue."""
        return TeamBots(self.players[0](seed), self.players[1](seed + 1))

    def match(self, sink: Sink, seed: int, chunk_frames: int = CHUNK_FRAMES) -> RecordedMatch:
        """Return a match that writes its replay to `sink`, with the rewards of the last phase of `trained_in`."""
        rewards: list[RewardTerm] = []
        if (recipe := self.trained_in) is not None:
            if recipe.phases:
                recipe = PoolFactory(partial(recipe.pool_class, **recipe.arguments), "record", recipe.phases[-1])
            rewards = reward_terms(recipe.reward())
        return RecordedMatch(
            self.bots(seed),
            sink,
            self.names,
            team_size=self.rules.team_size,
            seed=seed,
            tick_skip=self.rules.tick_skip,
            action_delay_ticks=self.rules.action_delay_ticks,
            rewards=rewards,
            chunk_frames=chunk_frames,
        )

    def play(self, sink: Sink, minutes: float, seed: int) -> list[int]:
        """Play a match, write its replay to `sink`, and return the goals of both players."""
        match = self.match(sink, seed)
        try:
            with single_thread():
                match.begin()
                for _ in range(max(1, round(minutes * 60 * TICKS_PER_SECOND / self.rules.tick_skip))):
                    match.step()
        finally:
            score = match.recorder.score
            match.close()
        return score


_FRAMES = 2
"""Frames per message of a live match."""


@single_thread()
def play_live(feed: LiveFeed, duel: Duel, again: Callable[[], Duel], minutes: float, seed: int) -> NoReturn:
    """Play game after game in real time while anyone is watching.

    Args:
        feed: Receives the replay.
        duel: Players of the first game.
        again: Reloads the players for each further game.
        minutes: Game time of each game.
        seed: Seed of the kickoffs.
    """
    with closing(duel.match(feed, seed, _FRAMES)) as match:
        while True:
            match.recorder.end_game()
            feed.begin_game()
            match.begin(duel.bots(seed))
            due = time.monotonic()
            while match.recorder.seconds < minutes * 60:
                if not feed.wait_for_watchers(0):
                    while not feed.wait_for_watchers(3600):
                        pass
                    due = time.monotonic()
                match.step()
                due = max(due + match.step_seconds, time.monotonic() - 1)  # catch up by at most one second
                time.sleep(max(0.0, due - time.monotonic()))
            seed += 2
            with suppress(ValueError, OSError):  # if the run was moved, keep playing with its old weights
                duel = again()
