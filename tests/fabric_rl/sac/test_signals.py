"""Reward signals with SAC: paid anew for every replayed batch, with Q-values and discounts of their own."""

from functools import partial

import pytest
import torch
from torch import nn

from agents import SACLightningAgent
from envs import ContinuousAction, GoalReward, GymnasiumEnvs, RewardSignals, RocketSimPool, TouchReward
from fabric_rl import ActOutput, Callback, OffPolicyAgent, Run, SACArgs, Saving, TrainArgs, load_checkpoint
from fabric_rl import train_off_policy as train
from fabric_rl.signals import RND, Curiosity, RewardSignal
from fabric_rl.types import CheckpointError

NEVER = 10**9


class After(RewardSignal):
    """Pays the number that is seen after a step; counts how often its networks learn."""

    name, scales, learned = "after", False, 0

    def __init__(self, observation_space, action_space, episodic=False, epochs=None, minibatch_size=None):
        super().__init__(observation_space, 2.0, 0.25, 1e-3, epochs, minibatch_size, episodic)
        self.weight, self.sizes = nn.Parameter(torch.ones(1)), []

    def reward(self, steps):
        return steps.next_obs[:, 0]

    def forward(self, batch):
        self.sizes.append(len(batch.obs))
        return self.weight.square().sum(), {}


class Watches(OffPolicyAgent):
    """Two heads; remembers what it is given."""

    value_heads = 2

    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        self.weight, self.seen = nn.Parameter(torch.zeros(())), []

    def act(self, obs, state=None, deterministic=False):
        return ActOutput(torch.zeros(len(obs), dtype=torch.int64), torch.zeros(len(obs)))

    def value(self, obs, state=None):
        return obs[:, :2]

    def training_step(self, minibatch):
        self.seen.append(minibatch)
        return self.weight * 1.0, {}

    def update_targets(self, tau):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD([self.weight], lr=0.5)


def watched(fabric, env, signal=After, sac=None, **settings):
    """What an agent was given on the counter environment, and the signal."""
    made = {}

    def keep(name, build):
        def make(*spaces):
            made[name] = build(*spaces)
            return made[name]

        return make

    args = TrainArgs(total_timesteps=120, batch_size=60, gamma=0.5, lr_schedule="constant", **settings)
    replaying = SACArgs(**({"buffer_init_steps": 0, "train_interval": 2} | (sac or {})))
    parts = {"signals": [keep("signal", signal)], "sac": replaying, "plain": True}
    train(fabric, env, keep("agent", Watches), args, **parts)
    return made["agent"].seen, made["signal"]


@pytest.mark.parametrize("episodic", [False, True])
def test_each_reward_has_its_discount_and_its_ends(fabric, counter_env, episodic):
    """Sub-environment 0 terminates after 3 steps, 1 is truncated after 2. The signal goes on unless it is episodic."""
    seen, _ = watched(fabric, counter_env, partial(After, episodic=episodic))
    found = {}
    for batch in seen[3:]:
        obs, after = batch.obs[:, 0].tolist(), batch.next_obs[:, 0].tolist()
        found |= dict(zip(obs, zip(batch.reward.tolist(), batch.discount.tolist(), after, strict=True), strict=True))
    assert found[1.0] == ([1.0, 2 * 2.0], [0.5, 0.25], 2.0)
    goes_on = 0.0 if episodic else 0.25
    assert found[2.0][:2] == ([1.0, 2 * 3.0], [0.0, goes_on])  # paid for the last observation, 3
    assert found[2.0][2] == 100.0  # from where the returns go on
    assert found[1101.0] == ([1.0, 2 * 1102.0], [0.5, 0.25], 1102.0)


def test_several_steps_are_paid_each(fabric, counter_env):
    seen, _ = watched(fabric, counter_env, sac={"n_step": 3})
    batch = seen[-1]
    rewards = dict(zip(batch.obs[:, 0].tolist(), batch.reward.tolist(), strict=True))
    first = next(obs for obs in rewards if obs < 500 and obs % 100 == 0)
    assert rewards[first] == [1.75, 2 * ((first + 1) + 0.25 * (first + 2) + 0.0625 * (first + 3))]


def test_rewards_are_those_of_the_signal_as_it_is_now(fabric, counter_env):
    class Grows(After):
        def reward(self, steps):
            return torch.full((len(steps.obs),), float(len(self.sizes)))

    seen, _ = watched(fabric, counter_env, Grows)
    assert [set(batch.reward[:, 1].tolist()) for batch in seen] == [{2.0 * (number + 1)} for number in range(20)]


@pytest.mark.parametrize(
    ("sac", "settings", "updates", "size"),
    [
        ({"num_update": 3}, {}, 3, 60),
        ({"num_update": 3, "reward_signal_num_update": 1}, {}, 1, 60),
        ({"reward_signal_num_update": 5}, {"minibatch_size": 7}, 5, 7),
    ],
)
def test_signals_learn_from_as_many_minibatches_as_asked_for(fabric, counter_env, sac, settings, updates, size):
    _, signal = watched(fabric, counter_env, partial(After, **settings), sac)
    assert signal.sizes == [size] * (updates * 20)


def test_each_signal_has_minibatches_of_its_own_size(fabric):
    made = []

    def build(*spaces):
        made.append(After(*spaces, minibatch_size=3 + len(made)))
        return made[-1]

    agent = partial(SACLightningAgent, value_heads=3, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    args, sac = TrainArgs(total_timesteps=20, batch_size=8), SACArgs(buffer_init_steps=0)
    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    train(fabric, env, agent, args, plain=True, sac=sac, signals=[build, build])
    assert [set(signal.sizes) for signal in made] == [{3}, {4}]


def test_before_the_first_update_signals_only_count_what_they_see(fabric, counter_env):
    _, signal = watched(fabric, counter_env, sac={"buffer_init_steps": 60})
    assert len(signal.sizes) == 11 and signal.normalizer.count == 120


def test_the_environments_reward_has_a_strength(fabric, counter_env):
    seen, _ = watched(fabric, counter_env, extrinsic_strength=0.0)
    assert set(seen[-1].reward[:, 0].tolist()) == {0.0}


def test_passes_of_ppo_are_refused(fabric, counter_env):
    with pytest.raises(
        ValueError, match=r"^--signals After: epochs are PPO's passes; SAC has --reward_signal_num_update$"
    ):
        watched(fabric, counter_env, partial(After, epochs=1))


def test_rewards_of_the_environment_may_be_several(fabric):
    env = partial(RocketSimPool, 1, reward=RewardSignals({"touch": TouchReward(), "goal": GoalReward()}))
    agent = partial(SACLightningAgent, value_heads=2, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    args, sac = TrainArgs(total_timesteps=60, batch_size=8, gamma=(0.9, 0.99)), SACArgs(buffer_init_steps=20)
    assert train(fabric, env, agent, args, plain=True, sac=sac)["total_steps"] == 60


class Seen(Callback):
    def on_iteration_end(self, state):
        self.metrics = dict(state.metrics)


SIGNALS = (partial(RND, strength=0.5, hidden_sizes=[8]), partial(Curiosity, hidden_sizes=[8]))


def run(fabric, folder, name, env, stop_after=None, resume=None, signals=SIGNALS, exact=False):
    class Stops(Seen):
        def on_iteration_end(self, state):
            super().on_iteration_end(state)
            state.stop = state.iteration == stop_after

    sizes = {"actor_hidden_sizes": [8], "critic_hidden_sizes": [8], "value_heads": 1 + len(signals)}
    sac = SACArgs(
        buffer_size=200, buffer_init_steps=60, train_interval=4, n_step=2, save_replay_buffer=True, per_alpha=0.6
    )
    folder, seen = Run(folder / name) if resume else Run.create(folder, name), Stops()
    args, saving = TrainArgs(total_timesteps=384, batch_size=16), Saving(168, exact_resume=exact)
    parts = {"sac": sac, "signals": signals, "plain": True, "saving": saving, "resume": resume}
    train(fabric, env, partial(SACLightningAgent, **sizes), args, folder, [seen], **parts)
    return load_checkpoint(folder.dir)[1], seen.metrics


@pytest.mark.parametrize(
    "env",
    [
        partial(RocketSimPool, num_arenas=2, team_size=(1, 2), action=ContinuousAction()),
        partial(GymnasiumEnvs, "MountainCarContinuous-v0", 6),
    ],
    ids=["pool", "gymnasium"],
)
def test_a_resumed_run_ends_to_the_bit_as_one_that_never_stopped(fabric, tmp_path, env):
    """With priorities, and in an environment that begins new episodes at every checkpoint."""
    exact = env.func is GymnasiumEnvs
    whole, metrics = run(fabric, tmp_path, "whole", env, exact=exact)
    assert metrics["rnd/reward"] > 0 and metrics["curiosity/raw"] > 0 and metrics["rnd/loss"] > 0
    stopped, _ = run(fabric, tmp_path, "broken", env, 7, exact=exact)
    assert stopped["exact"] and stopped["steps"] == 7 * 24
    resumed, _ = run(fabric, tmp_path, "broken", env, resume=stopped, exact=exact)
    for name, tensor in whole["agent"].items():
        assert torch.equal(tensor, resumed["agent"][name]), name
    for left, right in zip(whole["signals"], resumed["signals"], strict=True):
        assert all(torch.equal(tensor, right["module"][name]) for name, tensor in left["module"].items())
    for name, tensor in whole["ranks"][0]["replay"].items():
        assert torch.equal(tensor, resumed["ranks"][0]["replay"][name]), name
    with pytest.raises(CheckpointError, match="signals: the run had rnd, curiosity, here: rnd; give the same ones"):
        run(fabric, tmp_path, "broken", env, resume=stopped, signals=SIGNALS[:1])
