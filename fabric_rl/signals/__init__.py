"""Reward signals in addition to the environment's reward: `--signals`, see docs/signals.md."""

from fabric_rl.signals.base import RewardSignal as RewardSignal
from fabric_rl.signals.base import SignalFactory as SignalFactory
from fabric_rl.signals.base import Steps as Steps
from fabric_rl.signals.curiosity import RND as RND
from fabric_rl.signals.curiosity import Curiosity as Curiosity
from fabric_rl.signals.gail import GAIL as GAIL
