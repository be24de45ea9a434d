"""Callbacks: hooks into the training loop."""

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.types import ActorCritic

if TYPE_CHECKING:
    from fabric_rl.args import TrainArgs


@dataclass
class TrainState:
    """What callbacks see.

    Attributes:
        fabric: The Fabric of this rank.
        agent: The bare module.
        env: This rank's environment.
        args: The settings of the run.
        iteration: Iterations finished.
        steps: Agent-steps collected so far, over all ranks.
        metrics: Metrics of the last iteration, the same on every rank; what a callback adds on rank 0 before the log
            is written is logged too.
        stop: Set it on any rank to end training after this iteration.
        signalled: A stop signal has come.
        phase: What the run works on, a name for milestones.
    """

    fabric: Fabric
    agent: ActorCritic
    env: VectorEnv
    args: "TrainArgs"
    iteration: int = 0
    steps: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    stop: bool = False
    signalled: bool = False
    phase: str = "main"


class Callback:
    """Override what you need; every hook runs on every rank."""

    def on_train_start(self, state: TrainState) -> None:
        """Everything is built, nothing is collected yet."""

    def on_iteration_end(self, state: TrainState) -> None:
        """Collected, learned and reduced; `state.metrics` is about to be logged."""

    def on_train_end(self, state: TrainState) -> None:
        """After the last iteration, also when the run was stopped."""

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Metrics of this rank since the last call as name -> (sum, count); summed over the ranks and logged.

        The names must be the same on every rank and every call.
        """
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What the callback remembers, as numbers, text, tensors, arrays, lists and dicts; goes into checkpoints."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes what `state_dict` gave, when a run goes on."""


class History(Callback):
    """Keeps the agent and the metrics of every iteration, for a notebook.

    Attributes:
        agent: The bare module.
        rows: One dict per iteration: `steps`, and every metric by its name.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self.rows: list[dict[str, float]] = []
        self.agent: ActorCritic | None = None

    def on_iteration_end(self, state: TrainState) -> None:
        """Keeps one iteration."""
        self.agent = state.agent
        self.rows.append({"steps": state.steps, **state.metrics})


class Profiler(Callback):
    """Writes a trace of torch's profiler on rank 0: the third and fourth iteration, after two to warm up."""

    def __init__(self, folder: Path) -> None:
        """Writes into `folder`."""
        self.folder = folder
        self._profiler: torch.profiler.profile | None = None

    def on_train_start(self, state: TrainState) -> None:
        """Starts the profiler."""
        if state.fabric.is_global_zero:
            self._profiler = torch.profiler.profile(
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=torch.profiler.tensorboard_trace_handler(str(self.folder)),
            )
            self._profiler.start()

    def on_iteration_end(self, state: TrainState) -> None:
        """Tells the profiler that an iteration is over."""
        if self._profiler is not None:
            self._profiler.step()

    def on_train_end(self, state: TrainState) -> None:
        """Stops the profiler, which writes what it has."""
        if self._profiler is not None:
            self._profiler.stop()


class VideoLogger(Callback):
    """Shows the newest mp4 of a folder in TensorBoard, on rank 0."""

    def __init__(self, folder: str | Path, max_frames: int = 400) -> None:
        """Watches `folder`; logs at most `max_frames` frames of each video."""
        self.folder, self.max_frames = Path(folder), max_frames
        self._seen: set[Path] = set()

    def on_iteration_end(self, state: TrainState) -> None:
        """Logs the newest video that is complete and not logged yet."""
        if not state.fabric.is_global_zero or not state.fabric.loggers:
            return
        videos = sorted(self.folder.glob("*.mp4"), key=lambda path: path.stat().st_mtime)
        new = [path for path in videos if path not in self._seen]
        self._seen.update(new)
        if new:
            self._log(state, new[-1])

    def on_train_end(self, state: TrainState) -> None:
        """Logs the last video."""
        self.on_iteration_end(state)

    def _log(self, state: TrainState, path: Path) -> None:
        from moviepy import VideoFileClip
        from PIL import Image
        from tensorboard.compat.proto.summary_pb2 import Summary

        with VideoFileClip(str(path)) as clip:
            frames = [Image.fromarray(frame) for frame in clip.iter_frames()][: self.max_frames]
            milliseconds = round(1000 / clip.fps)
        # TensorBoard plays an animated GIF in its image tab; torch's add_video needs a moviepy older than 2.
        gif = io.BytesIO()
        frames[0].save(gif, "GIF", save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
        width, height = frames[0].size
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=gif.getvalue())
        value = Summary.Value(tag="video/episode", image=image)
        for logger in state.fabric.loggers:
            if isinstance(logger, TensorBoardLogger):
                logger.experiment.file_writer.add_summary(Summary(value=[value]), state.steps)
