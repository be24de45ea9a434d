"""Players who play in real time while somebody watches; `fabric-rl watch` loads it when there are any."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from fabric_rl.commands.record import Duel
from fabric_rl.ranks.devices import one_thread
from fabric_rl.viewer.feeds import Broadcast

_FRAMES = 2
"""Frames that are sent together."""


def player_of(
    player: str, opponent: str, team_size: int | None, sample: bool, tick_skip: int | None, runs_dir: str
) -> Callable[[Broadcast, float, int], NoReturn]:
    """What lets two players play: told a feed, the minutes of a game and a seed; arguments as of `Duel.of`."""
    duel = Duel.of(player, opponent, team_size, sample, tick_skip, runs_dir)

    def again() -> Duel:
        return Duel.of(player, opponent, duel.team_size, sample, duel.tick_skip, runs_dir)

    def play(feed: Broadcast, minutes: float, seed: int) -> NoReturn:
        with one_thread():
            play_live(feed, duel, again, minutes, seed)

    return play


def play_live(feed: Broadcast, duel: Duel, again: Callable[[], Duel], minutes: float, seed: int) -> NoReturn:
    """Plays game after game in real time, while anybody watches.

    Args:
        feed: Takes the replay.
        duel: Who plays the first game.
        again: Looks for the players anew.
        minutes: Game time of each.
        seed: Of the kickoffs.
    """
    match = duel.match(feed, seed, _FRAMES)
    try:
        while True:
            feed.forget()
            match.begin(duel.bots(seed))
            due = time.monotonic()
            while match.recorder.seconds < minutes * 60:
                if not feed.wait_for_watchers(0):
                    while not feed.wait_for_watchers(3600):
                        pass
                    due = time.monotonic()
                match.step()
                due = max(due + match.step_seconds, time.monotonic() - 1)  # too slow: goes on from here
                time.sleep(max(0.0, due - time.monotonic()))
            seed += 2
            with suppress(ValueError, OSError):  # a run that was moved meanwhile: its old weights play on
                duel = again()
    finally:
        match.close()
