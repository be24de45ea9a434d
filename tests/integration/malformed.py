"""Parts as a user may get them wrong, for test_bad_input.py."""

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, Reward
from fabric_rl import GAE, ActorCritic, Callback


class OnePerArena(Reward):
    def compute(self, state):
        return state.world.ball_pos[:, 2]


class Advantages(GAE):
    pass


class NotFinite(Reward):
    def compute(self, state):
        return np.full((state.num_arenas, state.num_cars), np.nan, np.float32)


class MatrixRewards(GymnasiumEnvs):
    def __init__(self, seed: int = 0):
        super().__init__("CartPole-v1", 2, seed)

    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        return obs, rewards[:, None], *rest


class NextStepReset(SyncVectorEnv):
    def __init__(self, seed: int = 0):
        super().__init__([lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)


class NoFinalObs(GymnasiumEnvs):
    def __init__(self, seed: int = 0):
        super().__init__("CartPole-v1", 2, seed)

    def step(self, actions):
        obs, rewards, terminated, truncated, _ = super().step(actions)
        return obs, rewards, terminated, ~truncated, {}


class ColumnValues(PPOLightningAgent):
    def value(self, obs, state=None):
        return super().value(obs).unsqueeze(-1)


class LossPerStep(PPOLightningAgent):
    def training_step(self, minibatch):
        return (self.value(minibatch.obs) - minibatch.returns).square(), {}


class NanWeights(PPOLightningAgent):
    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        torch.nn.init.constant_(self.critic[0].weight, torch.nan)


class Unused(PPOLightningAgent):
    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        self.extra = torch.nn.Linear(3, 3)


class ReturnsTuple(PPOLightningAgent):
    def act(self, obs, **more):
        return tuple(super().act(obs, **more))


class WithoutSpaces(PPOLightningAgent):
    def __init__(self, size: int = 64):
        super().__init__(None, None)


class WithoutSuper(ActorCritic):
    def __init__(self, observation_space, action_space):
        self.layer = torch.nn.Linear(4, 2)


class WithoutInit(ActorCritic):
    def __init__(self, observation_space, action_space):
        torch.nn.Module.__init__(self)


class WithoutMethods(ActorCritic):
    def act(self, obs):
        return None


class FailsToBuild(PPOLightningAgent):
    def __init__(self, observation_space, action_space):
        raise KeyError("layers")


class NothingToOptimize(PPOLightningAgent):
    def configure_optimizers(self):
        return torch.optim.Adam([])


class Optimizers(PPOLightningAgent):
    def configure_optimizers(self):
        return [super().configure_optimizers()]


class Misspells(PPOLightningAgent):
    def act(self, obs, **more):
        return self.actr(obs)


class Fine(Callback):
    def __init__(self, size: int = 3):
        pass


class Divides(Callback):
    def __init__(self):
        self.share = 1 / 0


class NeedsSettings(Callback):
    def __init__(self, path: str, size):
        pass


class FailsLater(Callback):
    def on_train_start(self, state):
        raise LookupError("no such key")


class NoVector(gymnasium.Env):
    def __init__(self, seed: int = 0):
        pass
