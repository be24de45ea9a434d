"""Callbacks: hooks into the training loop, and ready-made ones."""

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.batch_size import AdaptiveBatchSize
from fabric_rl.callbacks.debug import Debug
from fabric_rl.callbacks.early_stopping import EarlyStopping
from fabric_rl.callbacks.evaluation import Evaluation
from fabric_rl.callbacks.keyboard import KeyPress, StopAfter
from fabric_rl.callbacks.milestone_matches import MilestoneMatches
from fabric_rl.callbacks.notify import Notify
from fabric_rl.callbacks.observers import History, Profiler, VideoLogger
from fabric_rl.callbacks.symmetry import SymmetryAugmentation
from fabric_rl.hooks import Callbacks

__all__ = [
    "AdaptiveBatchSize",
    "Callback",
    "Callbacks",
    "Debug",
    "EarlyStopping",
    "Evaluation",
    "History",
    "KeyPress",
    "MilestoneMatches",
    "Notify",
    "Profiler",
    "StopAfter",
    "SymmetryAugmentation",
    "TrainState",
    "VideoLogger",
]
