"""Videos of episodes in TensorBoard: of any folder, or those that the run itself records."""

import io
from pathlib import Path

from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from fabric_rl.callback import Callback, TrainState


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


class RunVideos(VideoLogger):
    """Shows what the run records, without the video of the one step that every part is tried with before training."""

    def on_train_start(self, state: TrainState) -> None:
        """Removes that one."""
        if state.fabric.is_global_zero:
            for path in self.folder.glob("*.mp4"):
                path.unlink()
