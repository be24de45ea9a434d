"""Callbacks: hooks into the training loop, and ready-made ones."""

from fabric_rl.callback import Callback as Callback
from fabric_rl.callback import TrainState as TrainState
from fabric_rl.callbacks.batch_size import AdaptiveBatchSize as AdaptiveBatchSize
from fabric_rl.callbacks.debug import Debug as Debug
from fabric_rl.callbacks.early_stopping import EarlyStopping as EarlyStopping
from fabric_rl.callbacks.evaluation import Evaluation as Evaluation
from fabric_rl.callbacks.keyboard import KeyPress as KeyPress
from fabric_rl.callbacks.keyboard import StopAfter as StopAfter
from fabric_rl.callbacks.milestone_matches import MilestoneMatches as MilestoneMatches
from fabric_rl.callbacks.notify import Notify as Notify
from fabric_rl.callbacks.observers import History as History
from fabric_rl.callbacks.observers import Profiler as Profiler
from fabric_rl.callbacks.observers import VideoLogger as VideoLogger
from fabric_rl.callbacks.symmetry import SymmetryAugmentation as SymmetryAugmentation
from fabric_rl.hooks import Callbacks as Callbacks
