"""Callbacks that only observe a run: history, profiler, videos in TensorBoard, and recorded games."""

import os
import subprocess
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import torch
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from lightning.pytorch.utilities.seed import isolate_rng

from fabric_rl.base.files import atomic_write
from fabric_rl.base.processes import find_ffmpeg
from fabric_rl.base.settings import Count, Positive, check_settings, checks_arguments
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger, print_lines
from fabric_rl.ranks import launched_by
from fabric_rl.ranks.devices import single_thread
from fabric_rl.runs.trained import policy
from fabric_rl.types import ActorCritic, HasVideos, RecordsGames
from fabric_rl.viewer.feeds import GamesFeed
from fabric_rl.viewer.server import ViewerServer, open_browser

_MOST_WIDTH, _MOST_SECONDS = 320, 120
_GIF = f"scale=min({_MOST_WIDTH}\\,iw):-1,split[all][some];[some]palettegen[colours];[all][colours]paletteuse"
GAME_SECONDS = 60.0
MAX_SHARE = 0.02
"""Maximum share of the time since the previous game that recording may take; any excess reduces the next share."""
_RESERVE = 0.1
"""Part of that time kept for the last step, for closing the arena and for writing the file."""
_FIRST_SECONDS = 30.0


class History(Callback):
    """Keep the agent and the metrics of every iteration, for use in a notebook.

    Attributes:
        agent: The agent itself, not Fabric's wrapper; None before the first iteration.
        rows: One dict per iteration, with `steps` and every metric by name.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.agent: ActorCritic | None = None

    def on_iteration_end(self, state: TrainState) -> None:
        self.agent = state.agent
        self.rows.append({"steps": state.steps, **state.metrics})


class Profiler(Callback):
    """Write a trace of the third and fourth iterations with PyTorch's profiler, on rank 0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._profiler: torch.profiler.profile | None = None

    def on_train_start(self, state: TrainState) -> None:
        if state.fabric.is_global_zero:
            os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # hides two lines about USDT
            self._profiler = torch.profiler.profile(
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=torch.profiler.tensorboard_trace_handler(str(self.folder)),
            )
            self._profiler.start()

    def on_iteration_end(self, state: TrainState) -> None:
        if self._profiler is not None:
            self._profiler.step()

    def on_train_end(self, state: TrainState) -> None:
        if self._profiler is not None:
            self._profiler.stop()


class VideoLogger(Callback):
    """Show the newest mp4 of a folder in TensorBoard, on rank 0; a separate process converts one video at a time."""

    @checks_arguments
    def __init__(self, folder: str | Path, max_frames: Count = 400) -> None:
        """Watch `folder`, and log at most `max_frames` frames of each video."""
        self.folder, self.max_frames = Path(folder), max_frames
        self._seen: set[Path] = set()
        self._converting: Future[bytes] | None = None
        self._failed = False

    def on_iteration_end(self, state: TrainState) -> None:
        """Log the converted video, and start to convert the newest complete video that has not been logged yet."""
        writers = [each for each in state.fabric.loggers if isinstance(each, TensorBoardLogger)]
        if not state.fabric.is_global_zero or not writers or self._failed:
            return
        if self._converting is not None:
            if not self._converting.done():
                return
            self._log(self._converting, writers, state.steps)
            self._converting = None
        try:
            videos = sorted(filter(Path.is_file, self.folder.glob("*.mp4")), key=lambda path: path.stat().st_mtime)
        except OSError:  # deleted in the meantime, or too many files are open
            return
        new = [path for path in videos if path not in self._seen]
        self._seen.update(new)
        if new and not self._failed:
            thread = ThreadPoolExecutor(1, "converts-video")
            self._converting = thread.submit(_as_gif, new[-1], self.max_frames)
            thread.shutdown(wait=False)

    def on_train_end(self, state: TrainState) -> None:
        for _ in range(2):  # the video being converted, and one written since then
            self.on_iteration_end(state)
            if self._converting is not None:
                self._converting.exception()  # wait for it
        self.on_iteration_end(state)

    def _log(self, converted: "Future[bytes]", writers: list[TensorBoardLogger], step: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        try:
            gif = converted.result()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            warnings.warn(f"videos cannot be shown in TensorBoard ({error})", RuntimeWarning, stacklevel=3)
            self._failed = True
            return
        # TensorBoard plays an animated GIF in its image tab; torch's add_video needs a moviepy older than 2.
        width, height = (int.from_bytes(gif[at : at + 2], "little") for at in (6, 8))
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=gif)
        for each in writers:
            each.experiment.file_writer.add_summary(
                Summary(value=[Summary.Value(tag="video/episode", image=image)]), step
            )


class RunVideos(VideoLogger):
    """Show the videos that the run records from now on."""

    def on_train_start(self, state: TrainState) -> None:
        """Skip the videos that a resumed run has already shown."""
        self._seen.update(self.folder.glob("*.mp4"))

    def on_train_end(self, state: TrainState) -> None:
        """Wait until the last video has been written, and log it."""
        if isinstance(state.env, HasVideos):
            state.env.finish_videos()
        super().on_train_end(state)


def _as_gif(path: Path, max_frames: int) -> bytes:
    """Return the beginning of a video as an animated GIF."""
    command = [find_ffmpeg(), "-nostdin", "-loglevel", "error", "-threads", "1", "-i", str(path)]
    command += ["-frames:v", str(max_frames), "-filter_complex", _GIF, "-f", "gif", "-"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=_MOST_SECONDS, start_new_session=True)
    return done.stdout


@dataclass(eq=False, repr=False)
class RecordGames(Callback):
    """Record games of the agent at intervals, on rank 0, for people to watch; the first one after 30 seconds.

    Environments whose `inspector` is not a `fabric_rl.types.RecordsGames` record none. Actions are sampled as in
    training, but from a separate generator, so training is bit-identical with and without games.
    """

    folder: Path
    """Folder of the games, which are named by agent-steps; created if the environment can record games."""
    minutes: Positive = 10.0
    """Minutes between games."""
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
            with suppress(OSError):  # recording the first game will report the error
                self.folder.mkdir(exist_ok=True)

    def on_iteration_end(self, state: TrainState) -> None:
        """Record a game when it is due; after a failure, warn and record no more."""
        now = time.monotonic()
        seconds = MAX_SHARE * (now - self._last) - self._overdrawn
        if not self._on or now - self._last < self._wait or seconds <= 0:
            return
        try:
            self._record(state, until=now + (1 - _RESERVE) * seconds)
        except Exception as error:  # recording must not end training
            self._on = False
            warnings.warn(f"stopped recording games ({type(error).__name__}: {error})", RuntimeWarning, stacklevel=2)
        self._last, self._wait = now, self._every
        self._overdrawn = max(0.0, time.monotonic() - now - seconds)

    def _record(self, state: TrainState, until: float) -> None:
        inspector: RecordsGames = cast(Any, state.env).inspector  # checked in on_train_start
        file, title = BytesIO(), f"{self.folder.parent.name} after {state.steps:,} steps"
        with isolate_rng(), single_thread(), ExitStack() as stack:
            if state.args.compile:  # compiling for a game's few observations would take a minute
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            torch.manual_seed(state.steps)
            play = partial(policy, state.agent, False, None)
            game = inspector.record_game(play, file, title, GAME_SECONDS, state.steps)
            cut_off = ""
            for seconds in stack.enter_context(closing(game)):
                if time.monotonic() >= until and seconds < GAME_SECONDS:
                    cut_off = f" (its first {seconds:.0f} s; recording may use {MAX_SHARE:.0%} of the time)"
                    break
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{state.steps:012}{inspector.game_suffix}"
        atomic_write(path, file.getvalue())
        logger.info("game recorded: %s%s", path, cut_off)
        with suppress(OSError):  # a game is open in a viewer
            own = self.folder.glob("[0-9]" * 12 + inspector.game_suffix)  # leave other files alone
            games = sorted(filter(Path.is_file, own), key=lambda game: game.stat().st_mtime)
            for old in games[: -self.keep]:
                old.unlink()


class ShowGames(Callback):
    """Show a run's recorded games in the browser while the run trains, on rank 0."""

    def __init__(self, folder: Path) -> None:
        """Watch the folder of `RecordGames`; raise an ImportError if the library websockets is not installed."""
        self._folder, self._stack = folder, ExitStack()
        self._server = ViewerServer(GamesFeed(folder)) if launched_by.is_rank_0() else None

    def on_train_start(self, state: TrainState) -> None:
        """Open the page; raise a ValueError if the environment does not record games."""
        if self._server is None:
            return
        if not self._folder.is_dir():
            raise ValueError(f"--watch: {type(state.env).__name__} does not record games; leave the flag out")
        self._stack.enter_context(self._server.running())
        print_lines(f"watch it at {self._server.url}")
        open_browser(self._server.url)

    def on_train_end(self, state: TrainState, error: BaseException | None = None) -> None:
        self._stack.close()

    on_exception = on_train_end
