"""Blocks of matches between named players, in this process or in several; who plays them changes no result."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import NamedTuple

import torch

from envs.matches.matches import PAIRS_AT_ONCE, Matches, Player, play_matches
from fabric_rl.base.messages import MISTAKES
from fabric_rl.cli.errors import describe_failure
from fabric_rl.commands.entrants import Rules, entrant
from fabric_rl.ranks.devices import one_thread

Tell = Callable[[float], None]


class Block(NamedTuple):
    """`PAIRS_AT_ONCE` pairs of matches, number `number` of those two with that seed."""

    player: str
    opponent: str
    seed: int
    number: int


def play_blocks(rules: Rules, blocks: Sequence[Block], workers: int, tell: Tell) -> Generator[Matches, None, None]:
    """Plays blocks and yields their results in that order; to be closed by who does not want all of them.

    Args:
        rules: What all of them are played by.
        blocks: What is played.
        workers: Processes; with 1 it is this one.
        tell: Is told which share of all is played.

    Raises:
        OSError: A worker was killed.
    """
    if workers == 1:
        players: dict[str, Player] = {}
        with one_thread():
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
            raise OSError(f"--workers {workers}: one was killed, maybe for lack of memory; take fewer") from error
        finally:  # nobody waits for the blocks that they play now
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()


def _play_here(rules: Rules, players: dict[str, Player], block: Block, progress: Tell | None = None) -> Matches:
    """Plays a block; `players` keeps those that are built."""
    for name in (block.player, block.opponent):
        if name not in players:
            players[name] = entrant(name, rules.sample, rules.runs_dir).build(rules.team_size, rules.tick_skip)
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


_worker: list[tuple[Rules, dict[str, Player]]] = []
"""What `_begin` has given to this process."""


def _begin(rules: Rules) -> None:
    """Makes this process a worker: it leaves Ctrl+C to the one that has started it, and ends with that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _worker.append((rules, {}))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play(block: Block) -> Matches:
    try:
        return _play_here(*_worker[0], block)
    except (Exception, SystemExit) as error:
        if isinstance(error, MISTAKES) or (failure := describe_failure(error)) is None:
            raise
        raise RuntimeError(failure) from error  # the other process knows no lines of this one
