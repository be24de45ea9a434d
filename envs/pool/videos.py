"""Videos of episodes, encoded in the background by ffmpeg, and the live viewer RocketSimVis."""

import json
import socket
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES
from fabric_rl.base.files import replacing
from fabric_rl.base.processes import find_ffmpeg

Frame = NDArray[np.uint8]
"""`[H, W, 3]`, all of the same size."""
MOST_SECONDS, MOST_FRAMES_PER_SECOND, MOST_WIDTH = 20, 25, 320
"""Limits of a video: longer episodes are cut, frames are skipped, larger frames are scaled down."""
_WAITING = 50
"""Frames that may be queued for ffmpeg; if it falls further behind, the video ends, so that training never waits."""
_AT_ONCE = 2
_TRIAL_STEPS = 1
"""Episodes of at most this many steps are the dry run before training: they have no number and no video."""
_NAME = "rl-video-episode-"
_PATIENCE_SECONDS = 60
_SMALLER = ("-vf", f"scale=trunc(min({MOST_WIDTH}\\,iw)/2)*2:-2")
_MP4 = ("-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4")
_GIF = ("-vf", "split[all][some];[some]palettegen[colours];[all][colours]paletteuse", "-f", "gif")
FORMATS = {".mp4": _MP4, ".gif": _GIF}
"""Suffix -> arguments of ffmpeg."""


class EpisodeVideos:
    """Writer of mp4 files of episodes 0, 1, 8, 27, ... 1000, 2000, ...; after a failure it warns and stops.

    In a folder that contains videos, numbering continues after the last one; none is overwritten.
    """

    def __init__(self, folder: str | Path | None, frames_per_second: float, draw: Callable[[], Frame]) -> None:
        """Write frames from `draw` into `folder` (None: nothing), for `frames_per_second` steps a second."""
        self._folder, self._draw = folder, draw
        self._every = max(1, round(frames_per_second / MOST_FRAMES_PER_SECOND))
        self._rate = frames_per_second / self._every
        there = Path(folder).glob(f"{_NAME}*.mp4") if folder is not None else ()
        numbers = (path.stem.removeprefix(_NAME) for path in there)
        self._episode, self._step = max((int(number) for number in numbers if number.isdecimal()), default=0), 0
        self._video: _Video | None = None
        self._written: list[_Video] = []
        self._failed = False

    def begin(self) -> None:
        """Begin an episode."""
        self._end_video()
        self._look_at_written()
        self._episode, self._step = self._episode + (self._step > _TRIAL_STEPS), 0
        free = len(self._written) < _AT_ONCE and not self._failed
        if self._folder is not None and free and _is_shown(self._episode):
            path = Path(self._folder) / f"{_NAME}{self._episode}.mp4"
            if not path.exists():
                self._video = _Video(path, self._rate)
                self._add()

    def step(self) -> None:
        """Count a step, and add a frame if it is due."""
        self._step += 1
        if self._video is not None and self._step == _TRIAL_STEPS + 1:
            self._video.thread.start()
        if self._step % self._every == 0:
            self._add()

    def finish(self) -> None:
        """Wait until the videos of finished episodes are written."""
        for video in self._written:
            video.thread.join(_PATIENCE_SECONDS)
        self._look_at_written()

    def close(self) -> None:
        """Finish all videos."""
        self._end_video()
        self.finish()

    def _add(self) -> None:
        if self._video is not None and not self._video.add(self._draw()):
            self._end_video()

    def _end_video(self) -> None:
        if self._video is not None and self._step > _TRIAL_STEPS:
            self._video.frames.put(None)
            self._written.append(self._video)
        self._video = None

    def _look_at_written(self) -> None:
        """Warn once about a failure; forget complete videos."""
        for video in self._written:
            if video.problem and not self._failed:
                warnings.warn(f"stopped recording videos: {video.path} {video.problem}", RuntimeWarning, stacklevel=3)
                self._failed = True
        self._written = [video for video in self._written if video.thread.is_alive()]


class _Video:
    """One file, and the thread that feeds ffmpeg.

    Attributes:
        frames: Queue of frames; None marks the end.
        problem: Reason why the file could not be written, or None.
    """

    def __init__(self, path: Path, rate: float) -> None:
        self.path, self._rate = path, rate
        self.frames: SimpleQueue[Frame | None] = SimpleQueue()
        self.problem: str | None = None
        self._left = int(MOST_SECONDS * rate)
        self.thread = Thread(target=self._write, name=f"writes-{path.name}", daemon=True)

    def add(self, frame: Frame) -> bool:
        """Queue a frame without waiting; return False if there is no room for it."""
        self._left -= 1
        if self._left < 0 or self.frames.qsize() >= _WAITING:
            return False
        self.frames.put(frame)
        return True

    def _write(self) -> None:
        try:
            write_video(self.path, self._taken(), self._rate, _SMALLER)
        except OSError as error:
            self.problem = f"could not be written ({error})"

    def _taken(self) -> Iterator[Frame]:
        while (frame := self.frames.get()) is not None:
            yield frame


def write_video(path: Path, frames: Iterable[Frame], frames_per_second: float, filters: tuple[str, ...] = ()) -> None:
    """Encode frames as .mp4 or .gif, with one thread. The file appears when it is complete; without frames, none does.

    Raises:
        OSError: ffmpeg is missing or failed, or the file cannot be written.
    """
    frames = iter(frames)
    first = next(frames, None)
    if first is None:
        return
    height, width = first.shape[:2]
    size = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{frames_per_second:g}")
    out = "-threads", "1", *filters, *FORMATS[path.suffix]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        command = [find_ffmpeg(), "-y", "-loglevel", "error", *size, "-i", "-", *out, part.name]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # reported by the return code
                for frame in chain([first], frames):
                    process.stdin.write(frame.tobytes())
            _, said = process.communicate()
        if process.returncode:
            raise OSError(said.decode(errors="replace").strip() or f"ffmpeg ended with exit code {process.returncode}")


def _is_shown(episode: int) -> bool:
    """Return True for cubes below 1000, then for multiples of 1000, like Gymnasium's function, which needs moviepy."""
    return episode % 1000 == 0 if episode >= 1000 else round(episode ** (1 / 3)) ** 3 == episode


ADDRESS = ("127.0.0.1", 9273)
"""Address of the viewer: UDP, one JSON object per packet."""
MOST_PACKETS_PER_SECOND = 60


class RocketSimVis:
    """Sender of states to the viewer RocketSimVis (https://github.com/ZealanL/RocketSimVis).

    It never blocks, ignores a missing viewer, and drops states that come too fast.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._next = 0.0

    def send(self, state: GameState, arena: int = 0) -> None:
        """Send the current state of an arena."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1 / MOST_PACKETS_PER_SECOND
            with suppress(OSError):  # nobody listens, or the buffer is full
                self._socket.sendto(json.dumps(rocketsimvis_packet(state, arena)).encode(), ADDRESS)

    def close(self) -> None:
        """Close the socket; states sent later are lost."""
        self._socket.close()


def rocketsimvis_packet(state: GameState, arena: int = 0) -> dict[str, Any]:
    """Return a packet in the format of its `networking-format.md`: uu, uu/s, rad/s, boost 0..100, RLGym's pads.

    That page documents boost as 0..1, and a key `seer`, but the viewer's code reads 0..100 and `steer`. The ball's
    rotation is not sent; the viewer then rotates it by its angular velocity.
    """
    world = state.world
    ball = {"pos": world.ball_pos, "vel": world.ball_vel, "ang_vel": world.ball_ang_vel}
    body = {"pos": world.car_pos, "vel": world.car_vel, "ang_vel": world.car_ang_vel}
    body |= {"forward": world.car_forward, "up": world.car_up}
    cars = [
        {
            "team_num": int(state.team[car]),
            "phys": {name: vectors[arena, car].tolist() for name, vectors in body.items()},
            "controls": dict(zip(CONTROL_NAMES, state.controls[arena, car].tolist(), strict=True)),
            "boost_amount": float(state.boost[arena, car]),
            "on_ground": bool(state.on_ground[arena, car]),
            "has_flipped_or_double_jumped": bool((state.has_flipped | state.has_double_jumped)[arena, car]),
            "is_demoed": bool(state.is_demoed[arena, car]),
        }
        for car in state.present[arena].nonzero()[0]
    ]
    phys = {name: vectors[arena].tolist() for name, vectors in ball.items()}
    pads = (world.pad_timers[arena] <= 0).tolist()
    return {"gamemode": "soccar", "ball_phys": phys, "cars": cars, "boost_pad_states": pads}
