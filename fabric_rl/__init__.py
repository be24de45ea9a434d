"""fabric-rl: actor-critic agents trained with PPO on Lightning Fabric."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

# Before torch is loaded, whose OpenMP reads this once. Its waiting threads spin for half a millisecond, through the gap
# between two operations, then they sleep. When they slept at once, learning took 1.4 times as long. When they spun on
# and kept physics threads or other programs from their cores, training took up to 16 times as long. Your setting wins.
if not os.environ.keys() & {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}:
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "10000"}

if TYPE_CHECKING:
    from fabric_rl.args import Hardware as Hardware
    from fabric_rl.args import Saving as Saving
    from fabric_rl.args import StartArgs as StartArgs
    from fabric_rl.args import TrainArgs as TrainArgs
    from fabric_rl.callback import Callback as Callback
    from fabric_rl.callback import TrainState as TrainState
    from fabric_rl.callbacks.history import History as History
    from fabric_rl.curricula.lessons import Curriculum as Curriculum
    from fabric_rl.curricula.lessons import Lessons as Lessons
    from fabric_rl.curricula.phases import Phase as Phase
    from fabric_rl.curricula.phases import Phases as Phases
    from fabric_rl.curricula.phases import Promotion as Promotion
    from fabric_rl.learning.estimator import GAE as GAE
    from fabric_rl.learning.estimator import Estimator as Estimator
    from fabric_rl.learning.gae import gae as gae
    from fabric_rl.learning.ppo import ppo_loss as ppo_loss
    from fabric_rl.learning.update import learn as learn
    from fabric_rl.loop import train as train
    from fabric_rl.rollouts.collect import collect as collect
    from fabric_rl.rollouts.episodes import EpisodeStats as EpisodeStats
    from fabric_rl.rollouts.rollout import Rollout as Rollout
    from fabric_rl.runs.find import load_checkpoint as load_checkpoint
    from fabric_rl.runs.folder import Run as Run
    from fabric_rl.runs.trained import Trained as Trained
    from fabric_rl.runs.trained import load_trained as load_trained
    from fabric_rl.types import ActorCritic as ActorCritic
    from fabric_rl.types import ActOutput as ActOutput
    from fabric_rl.types import Minibatch as Minibatch

__version__ = "0.1.0"

_EXPORTS = {
    "args": "Hardware Saving StartArgs TrainArgs",
    "callback": "Callback TrainState",
    "callbacks.history": "History",
    "curricula.lessons": "Curriculum Lessons",
    "curricula.phases": "Phase Phases Promotion",
    "learning.estimator": "GAE Estimator",
    "learning.gae": "gae",
    "learning.ppo": "ppo_loss",
    "learning.update": "learn",
    "loop": "train",
    "rollouts.collect": "collect",
    "rollouts.episodes": "EpisodeStats",
    "rollouts.rollout": "Rollout",
    "runs.find": "load_checkpoint",
    "runs.folder": "Run",
    "runs.trained": "Trained load_trained",
    "types": "ActOutput ActorCritic Minibatch",
}
"""Names by the module that they come from."""
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names.split()}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """An exported name; its module is imported when somebody asks for it, since most of them need torch.

    Raises:
        AttributeError: There is none of that name.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
