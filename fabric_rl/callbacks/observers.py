"""Callbacks that only watch a run: History, Profiler, and videos in TensorBoard."""

import os
import subprocess
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.base.settings import Count, checks_arguments
from fabric_rl.callback import Callback, TrainState
from fabric_rl.types import ActorCritic, HasVideos

_MOST_WIDTH, _MOST_SECONDS = 320, 120
_GIF = f"scale=min({_MOST_WIDTH}\\,iw):-1,split[all][some];[some]palettegen[colours];[all][colours]paletteuse"


class History(Callback):
    """Keep the agent and the metrics of every iteration, for a notebook.

    Attributes:
        agent: The agent itself, not Fabric's wrapper; None before the first iteration.
        rows: One dict per iteration, with `steps` and every metric by its name.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.agent: ActorCritic | None = None

    def on_iteration_end(self, state: TrainState) -> None:
        self.agent = state.agent
        self.rows.append({"steps": state.steps, **state.metrics})


class Profiler(Callback):
    """Write a trace of PyTorch's profiler on rank 0: of the third and fourth iteration, after two to warm up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._profiler: torch.profiler.profile | None = None

    def on_train_start(self, state: TrainState) -> None:
        if state.fabric.is_global_zero:
            os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # above USDT's, whose two lines nobody has asked for
            self._profiler = torch.profiler.profile(
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=torch.profiler.tensorboard_trace_handler(str(self.folder)),
            )
            self._profiler.start()

    def on_iteration_end(self, state: TrainState) -> None:
        if self._profiler is not None:
            self._profiler.step()

    def on_train_end(self, state: TrainState) -> None:
        """Stop the profiler, which writes its trace."""
        if self._profiler is not None:
            self._profiler.stop()


class VideoLogger(Callback):
    """Show the newest mp4 of a folder in TensorBoard, on rank 0; a separate process converts one at a time."""

    @checks_arguments
    def __init__(self, folder: str | Path, max_frames: Count = 400) -> None:
        """Watch `folder`, and log at most `max_frames` frames of each video."""
        self.folder, self.max_frames = Path(folder), max_frames
        self._seen: set[Path] = set()
        self._converting: Future[bytes] | None = None
        self._failed = False

    def on_iteration_end(self, state: TrainState) -> None:
        """Log the converted video, and start to convert the newest complete video that is not logged yet."""
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
        except OSError:  # deleted meanwhile, or too many files are open
            return
        new = [path for path in videos if path not in self._seen]
        self._seen.update(new)
        if new and not self._failed:
            thread = ThreadPoolExecutor(1, "converts-video")
            self._converting = thread.submit(_gif, new[-1], self.max_frames)
            thread.shutdown(wait=False)

    def on_train_end(self, state: TrainState) -> None:
        for _ in range(2):  # what is being converted, and what has come since
            self.on_iteration_end(state)
            if self._converting is not None:
                self._converting.exception()  # waits
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
    """Show the videos that the run records from now on, including the last one."""

    def on_train_start(self, state: TrainState) -> None:
        """Skip the videos that a resumed run has shown before."""
        self._seen.update(self.folder.glob("*.mp4"))

    def on_train_end(self, state: TrainState) -> None:
        """Log the last video when it is written."""
        if isinstance(state.env, HasVideos):
            state.env.finish_videos()
        super().on_train_end(state)


def _gif(path: Path, max_frames: int) -> bytes:
    """The beginning of a video as an animated GIF."""
    from imageio_ffmpeg import get_ffmpeg_exe

    command = [get_ffmpeg_exe(), "-nostdin", "-loglevel", "error", "-threads", "1", "-i", str(path)]
    command += ["-frames:v", str(max_frames), "-filter_complex", _GIF, "-f", "gif", "-"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=_MOST_SECONDS, start_new_session=True)
    return done.stdout
