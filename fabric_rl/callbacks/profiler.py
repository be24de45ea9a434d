"""Profiler: a trace of torch's profiler."""

import os
from pathlib import Path

import torch

from fabric_rl.callback import Callback, TrainState


class Profiler(Callback):
    """Write a trace of PyTorch's profiler on rank 0: of the third and fourth iteration, after two to warm up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._profiler: torch.profiler.profile | None = None

    def on_train_start(self, state: TrainState) -> None:
        """Start the profiler."""
        if state.fabric.is_global_zero:
            os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # above USDT's, whose two lines nobody has asked for
            self._profiler = torch.profiler.profile(
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                on_trace_ready=torch.profiler.tensorboard_trace_handler(str(self.folder)),
            )
            self._profiler.start()

    def on_iteration_end(self, state: TrainState) -> None:
        """Advance the profiler by one iteration."""
        if self._profiler is not None:
            self._profiler.step()

    def on_train_end(self, state: TrainState) -> None:
        """Stop the profiler, which writes its trace."""
        if self._profiler is not None:
            self._profiler.stop()
