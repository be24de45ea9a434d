"""Callbacks, loggers and an environment for runs of the other files."""

import os
import signal

from lightning.fabric.loggers.logger import Logger

from envs import GymnasiumEnvs
from fabric_rl import Callback


class Counting(Callback):
    """Counts iterations, and keeps the number."""

    def __init__(self, every: int = 1):
        self.every, self.seen = every, 0

    def on_iteration_end(self, state):
        self.seen += 1

    def drain_metrics(self):
        return {"game/seen": (float(self.seen), 1.0), "game/every": (float(self.every), 1.0)}

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class Other(Callback):
    def load_state_dict(self, state):
        assert state == {}


class Unsavable(Callback):
    def state_dict(self):
        return {"thing": object()}


class Fails(Callback):
    """Raises in a hook."""

    def __init__(self, at_start: bool):
        self.at_start = at_start

    def on_train_start(self, state):
        if self.at_start:
            raise RuntimeError("on purpose")

    def on_iteration_end(self, state):
        raise RuntimeError("on purpose")


class Mine(Logger):
    """Prints."""

    name, version = "mine", 0

    def __init__(self, x: int = 0):
        self.x = x

    def log_metrics(self, metrics, step=None):
        print("MINE", self.x, step, "ppo/entropy" in metrics)

    def log_hyperparams(self, *args, **kwargs):
        pass

    def finalize(self, status):
        print("MINE", status)


class Broken(Mine):
    def log_metrics(self, metrics, step=None):
        raise ConnectionError("the service is down")

    def finalize(self, status):
        pass


class Dying(GymnasiumEnvs):
    """Kills its process when it is built, where DIES is set."""

    def __init__(self, seed: int = 0, num_envs: int = 2):
        if "DIES" in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        super().__init__("CartPole-v1", num_envs, seed)
