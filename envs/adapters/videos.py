"""Videos of episodes: ffmpeg, a process of its own, makes them smaller and encodes them while the episode goes on."""

import os
import subprocess
import warnings
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

MOST_SECONDS, MOST_FRAMES_PER_SECOND, MOST_WIDTH = 20, 25, 320
"""A longer episode is cut off, a faster one drawn at every other step or less often, a wider one made smaller."""
_WAITING = 50
"""Frames that may wait for ffmpeg; a video that it cannot keep up with ends there, so that training never waits."""
_AT_ONCE = 2
_PATIENCE_SECONDS = 60
_SMALLER = ("-vf", f"scale=trunc(min({MOST_WIDTH}\\,iw)/2)*2:-2")
_ENCODED = ("-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-pix_fmt", "yuv420p", "-f", "mp4")
"""With one thread: the cores are for training."""


class RecordVideos(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes mp4 files of episodes 0, 1, 8, 27, ... 1000, 2000, ...; one that fails is a warning, and the last."""

    def __init__(self, env: gymnasium.Env[Any, Any], folder: str | Path) -> None:
        """Wraps `env`, which must render "rgb_array".

        Raises:
            ValueError: It renders nothing, or something else.
        """
        if env.render_mode != "rgb_array":
            raise ValueError(f"videos need an environment that renders rgb_array, this one renders {env.render_mode}")
        super().__init__(env)
        self.folder = Path(folder)
        rate = env.metadata.get("render_fps") or 30
        self._every = max(1, round(rate / MOST_FRAMES_PER_SECOND))
        self._rate = rate / self._every
        self._episode, self._step = -1, 0
        self._video: _Video | None = None
        self._written: list[_Video] = []
        self._failed = False

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401 - as gymnasium's
        """See `gymnasium.Env.reset`."""
        began = self.env.reset(**settings)
        self._end_video()
        self._look_at_written()
        self._episode, self._step = self._episode + 1, 0
        if _is_shown(self._episode) and len(self._written) < _AT_ONCE and not self._failed:
            path = self.folder / f"rl-video-episode-{self._episode}.mp4"
            self._video = _Video(path, self._rate)
            self._draw()
        return began

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """See `gymnasium.Env.step`."""
        stepped = self.env.step(action)
        self._step += 1
        if self._video is not None and self._step % self._every == 0:
            self._draw()
        return stepped

    def finish_videos(self) -> None:
        """Waits for the videos of episodes that have ended."""
        for video in self._written:
            video.thread.join(_PATIENCE_SECONDS)
        self._look_at_written()

    def close(self) -> None:
        """Finishes all videos."""
        self._end_video()
        self.finish_videos()
        super().close()

    def _draw(self) -> None:
        frame: Any = self.env.render()
        if self._video is not None and not self._video.add(np.asarray(frame, np.uint8)):
            self._end_video()

    def _end_video(self) -> None:
        if self._video is not None:
            self._video.frames.put(None)
            self._written.append(self._video)
            self._video = None

    def _look_at_written(self) -> None:
        """Says what has gone wrong, once; forgets what is complete."""
        for video in self._written:
            if video.problem and not self._failed:
                warnings.warn(f"no more videos: {video.path} {video.problem}", RuntimeWarning, stacklevel=3)
                self._failed = True
        self._written = [video for video in self._written if video.thread.is_alive()]


class _Video:
    """One file and the thread that feeds ffmpeg.

    Attributes:
        frames: uint8 `[H, W, 3]`, all of the same size; None at the end.
        problem: Why the file could not be written.
    """

    def __init__(self, path: Path, rate: float) -> None:
        self.path, self._rate = path, rate
        self.frames: SimpleQueue[NDArray[np.uint8] | None] = SimpleQueue()
        self.problem: str | None = None
        self._left = int(MOST_SECONDS * rate)
        self.thread = Thread(target=self._write, name=f"writes-{path.name}", daemon=True)
        self.thread.start()

    def add(self, frame: NDArray[np.uint8]) -> bool:
        """Whether there is room for it; never waits."""
        self._left -= 1
        if self._left < 0 or self.frames.qsize() >= _WAITING:
            return False
        self.frames.put(frame)
        return True

    def _write(self) -> None:
        frame = self.frames.get()
        if frame is None:
            return
        from imageio_ffmpeg import get_ffmpeg_exe

        part = self.path.with_suffix(".part")
        height, width = frame.shape[:2]
        size = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{self._rate:g}", "-i", "-"]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *size, *_SMALLER, *_ENCODED, str(part)]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            ) as process:
                assert process.stdin is not None
                while frame is not None:
                    process.stdin.write(frame.tobytes())
                    frame = self.frames.get()
                _, said = process.communicate()
            if process.returncode:
                raise OSError(said.decode(errors="replace").strip() or f"ffmpeg ended with {process.returncode}")
            os.replace(part, self.path)
        except (OSError, RuntimeError) as error:
            self.problem = f"could not be written ({error})"
            with suppress(OSError):
                part.unlink()


def _is_shown(episode: int) -> bool:
    """As in Gymnasium, whose own function needs moviepy: cubes, then every thousandth."""
    return episode % 1000 == 0 if episode >= 1000 else round(episode ** (1 / 3)) ** 3 == episode
