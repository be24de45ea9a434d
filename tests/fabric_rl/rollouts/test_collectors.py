"""--overlap: the next rollout is collected while the last one is learned from."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from agents import PPOLightningAgent, RecurrentPPOAgent
from envs import GymnasiumEnvs
from fabric_rl import ActOutput, Callback, TrainArgs, train
from fabric_rl.base.state_schema import CannotBeSavedError
from fabric_rl.types import NonFiniteError


class Recorder(Callback):
    """Keeps metrics and weights of every iteration."""

    def __init__(self):
        self.metrics, self.weights = [], []

    def on_iteration_end(self, state):
        self.agent = state.agent
        self.metrics.append({k: v for k, v in state.metrics.items() if not k.startswith("speed/")})
        self.weights.append([p.detach().clone() for p in state.agent.parameters()])


def run(fabric, env, agent, overlap, **args):
    recorder = Recorder()
    settings = {"num_steps": 4, "minibatch_size": 12, "update_epochs": 1, "max_grad_norm": 0, "lr_schedule": "constant"}
    train(fabric, env, agent, TrainArgs(**(settings | args), overlap=overlap), None, [recorder], plain=True)
    return recorder


@pytest.mark.parametrize(("overlap", "lags"), [(False, [0, 1, 2, 3]), (True, [0, 0, 1, 2])])
def test_the_policy_that_plays_is_one_update_behind(fabric, known_agent, counter_env, overlap, lags):
    """The weight falls by 0.1 with every update; what `act` stored says how many it knew of."""

    class Telling(known_agent):
        def act(self, obs, state=None, deterministic=False):
            weight = self.weights[0].expand(len(obs))
            return ActOutput(obs[:, 0].long() % 5, weight, self.value(obs))

    recorder = run(fabric, counter_env, Telling, overlap, total_timesteps=48)
    seen = [float(minibatch.log_prob[0]) for minibatch in recorder.agent.seen[-4:]]
    assert seen == pytest.approx([-0.1 * lag for lag in lags])
    # Nothing is left out or comes twice: the observations of the four rollouts are those of 16 steps in a row.
    first = [minibatch.obs[:, 0].sort().values.tolist() for minibatch in recorder.agent.seen[-4:]]
    plain = run(fabric, counter_env, known_agent, False, total_timesteps=48)
    assert first == [minibatch.obs[:, 0].sort().values.tolist() for minibatch in plain.agent.seen[-4:]]
    for ours, theirs in zip(recorder.metrics, plain.metrics, strict=True):
        for name in ("reward/step", "reward/episode_return", "game/episode_length"):
            assert ours.get(name) == theirs.get(name), name


@pytest.mark.parametrize(("overlap", "progress"), [(False, [0, 0.25, 0.5, 0.75]), (True, [0, 0, 0.25, 0.5])])
def test_the_policy_that_plays_knows_how_far_training_is(fabric, known_agent, counter_env, overlap, progress):
    class Telling(known_agent):
        def act(self, obs, state=None, deterministic=False):
            return ActOutput(obs[:, 0].long() % 5, self.progress.expand(len(obs)), self.value(obs))

    recorder = run(fabric, counter_env, Telling, overlap, total_timesteps=48)
    assert [float(minibatch.log_prob[0]) for minibatch in recorder.agent.seen[-4:]] == progress


@pytest.mark.parametrize("agent", [PPOLightningAgent, partial(RecurrentPPOAgent, sequence_length=8, memory_size=8)])
def test_the_seed_decides_everything(fabric, agent):
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    settings = {"num_steps": 32, "minibatch_size": 64, "total_timesteps": 768, "update_epochs": 4}
    one, same = (run(fabric, env, agent, True, **settings) for _ in range(2))
    assert one.metrics == same.metrics and len(one.metrics) == 6
    assert all(torch.equal(a, b) for a, b in zip(one.weights[-1], same.weights[-1], strict=True))
    other = run(fabric, env, agent, False, **settings)
    assert all(torch.equal(a, b) for a, b in zip(one.weights[0], other.weights[0], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.weights[-1], other.weights[-1], strict=True))


def test_what_goes_wrong_in_the_thread_ends_the_run(fabric, known_agent, counter_env):
    env = partial(counter_env, broken=("reward", 5, 1, np.inf))  # while the first rollout is learned from
    with pytest.raises(NonFiniteError, match="a reward that is inf: sub-environment 1, rollout step 1"):
        run(fabric, env, known_agent, True, total_timesteps=48)


def test_an_agent_that_draws_numbers_while_it_learns_is_refused(fabric, known_agent, counter_env):
    class Random(known_agent):
        def __init__(self, *spaces):
            super().__init__(*spaces)
            self.dropout = nn.Dropout(0.1)

    with pytest.raises(ValueError, match=r"^--overlap: --agent Random uses Dropout"):
        run(fabric, counter_env, Random, True, total_timesteps=48)


@pytest.mark.parametrize(("error", "begins"), [(TypeError, False), (CannotBeSavedError, True)])
def test_an_environment_that_cannot_be_saved_says_so_at_the_start(fabric, known_agent, counter_env, error, begins):
    class Unsavable(counter_env):
        def state_dict(self):
            raise error("no state today")

        def load_state_dict(self, state):
            """Never called."""

    if begins:
        assert run(fabric, Unsavable, known_agent, False, total_timesteps=12).metrics
        return
    with pytest.raises(ValueError, match=r"env Unsavable.state_dict\(\): no state today"):
        run(fabric, Unsavable, known_agent, False, total_timesteps=12)
