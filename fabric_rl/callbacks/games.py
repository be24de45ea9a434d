"""Games of the agent that trains: recorded now and then, and shown in the browser."""

import time
import warnings
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import torch
from lightning.pytorch.utilities.seed import isolate_rng

from fabric_rl.base.files import atomic_write
from fabric_rl.base.settings import Count, Positive, check_settings
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger, say
from fabric_rl.ranks import launch
from fabric_rl.ranks.devices import one_thread
from fabric_rl.runs.trained import policy
from fabric_rl.types import RecordsGames
from fabric_rl.viewer.feeds import GamesFeed
from fabric_rl.viewer.server import ViewerServer, open_browser

GAME_SECONDS = 60.0
MOST_SHARE = 0.02
"""Of the time since the game before, which a game may take; then it is cut off. What it took more, the next lacks."""
_ENDING = 0.1
"""Of that, which is kept for the last step, for closing the arena and for writing the file."""
_FIRST_SECONDS = 30.0


@dataclass(eq=False, repr=False)
class RecordGames(Callback):
    """Lets the agent play a game now and then, on rank 0, for people to watch; the first one after half a minute.

    Nothing is recorded where the environment has no `fabric_rl.types.RecordsGames`. Actions are drawn as in training,
    from a generator of the game's own: weights are the same, to the bit, without it.
    """

    folder: Path
    """Folder of the games, which are named after the agent-steps; made if the environment can record any."""
    minutes: Positive = 10.0
    """Minutes from game to game."""
    keep: Count = 10
    """Number of newest games to keep."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._every = 60 * self.minutes
        self._on, self._last, self._wait = False, 0.0, min(_FIRST_SECONDS, self._every)
        self._overdrawn = 0.0

    def on_train_start(self, state: TrainState) -> None:
        self._on = state.fabric.is_global_zero and isinstance(getattr(state.env, "inspector", None), RecordsGames)
        self._last = time.monotonic()
        if self._on:
            with suppress(OSError):  # the first game tells
                self.folder.mkdir(exist_ok=True)

    def on_iteration_end(self, state: TrainState) -> None:
        """Records a game when it is time; a failure is a warning, and the end of it."""
        now = time.monotonic()
        seconds = MOST_SHARE * (now - self._last) - self._overdrawn
        if not self._on or now - self._last < self._wait or seconds <= 0:
            return
        try:
            self._record(state, until=now + (1 - _ENDING) * seconds)
        except Exception as error:  # a game for people to watch must not end what they train
            self._on = False
            warnings.warn(f"no more games are recorded ({type(error).__name__}: {error})", RuntimeWarning, stacklevel=2)
        self._last, self._wait = now, self._every
        self._overdrawn = max(0.0, time.monotonic() - now - seconds)

    def _record(self, state: TrainState, until: float) -> None:
        inspector: RecordsGames = cast(Any, state.env).inspector  # asked in on_train_start
        file, title = BytesIO(), f"{self.folder.parent.name} after {state.steps:,} steps"
        with isolate_rng(), one_thread(), ExitStack() as stack:
            if state.args.compile:  # a game's few observations are not worth a minute of compiling
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            torch.manual_seed(state.steps)
            play = partial(policy, state.agent, False, None)
            game = inspector.record_game(play, file, title, GAME_SECONDS, state.steps)
            cut_off = ""
            for seconds in stack.enter_context(closing(game)):
                if time.monotonic() >= until and seconds < GAME_SECONDS:
                    cut_off = f", cut short after {seconds:.0f} s: recording may take {MOST_SHARE:.0%} of the time"
                    break
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{state.steps:012}{inspector.game_suffix}"
        atomic_write(path, file.getvalue())
        logger.info("game recorded: %s%s", path, cut_off)
        with suppress(OSError):  # one that is being watched
            own = self.folder.glob("[0-9]" * 12 + inspector.game_suffix)  # what else lies there is somebody else's
            games = sorted(filter(Path.is_file, own), key=lambda game: game.stat().st_mtime)
            for old in games[: -self.keep]:
                old.unlink()


class ShowGames(Callback):
    """Shows the games that a run records in the browser while it trains; on rank 0."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder of `RecordGames`.

        Raises:
            ImportError: The library websockets is not installed.
        """
        self._folder, self._stack = folder, ExitStack()
        self._server = ViewerServer(GamesFeed(folder)) if launch.is_rank_0() else None

    def on_train_start(self, state: TrainState) -> None:
        """Opens the page; a ValueError where there will be no games."""
        if self._server is None:
            return
        if not self._folder.is_dir():
            raise ValueError(f"--watch: {type(state.env).__name__} records no games; leave the flag out")
        self._stack.enter_context(self._server.running())
        say(f"watch it at {self._server.url}")
        open_browser(self._server.url)

    def on_train_end(self, state: TrainState, error: BaseException | None = None) -> None:
        self._stack.close()

    on_exception = on_train_end
