"""SymmetryAugmentation: what it replaces in a batch, and how it trains."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from agents import PPOLightningAgent, RecurrentPPOAgent
from envs import ContinuousAction, GymnasiumEnvs, RandomState, RocketSimPool
from fabric_rl import Run, TrainArgs, load_checkpoint, train
from fabric_rl.base.symmetry import Symmetry
from fabric_rl.callbacks import SymmetryAugmentation
from fabric_rl.callbacks.symmetry import reflect
from fabric_rl.selfplay import SelfPlay
from fabric_rl.session.saving import Saving
from fabric_rl.types import Minibatch

SYMMETRY = Symmetry(np.array([0, 2, 1]), np.array([-1, 1, 1], np.float32), (np.array([1, 2, 0]), np.array([1, 0])))
POOL = partial(RocketSimPool, 4, num_threads=1, state_setter=RandomState())
ARGS = {"num_steps": 16, "update_epochs": 1, "minibatch_size": 64}


def batch(*leading, **more):
    steps = torch.zeros(leading)
    obs = torch.arange(steps.numel() * 3.0).view(*leading, 3)
    action = torch.arange(steps.numel() * 2).view(*leading, 2) % 2
    return Minibatch(obs, action, steps, steps, steps, steps, **more)


def test_only_the_chosen_steps_are_reflected():
    mask = torch.tensor([[True, False, False, True, False]] * 3)
    one = batch(3, action_mask=mask, next_obs=torch.ones(3, 3))
    other = reflect(one, SYMMETRY, torch.tensor([1]))
    assert other.obs.tolist() == [[0, 1, 2], [-3, 5, 4], [6, 7, 8]]
    assert other.action.tolist() == [[0, 1], [1, 0], [0, 1]]
    # An action is allowed where its reflection was: 0 -> 1, 1 -> 2, 2 -> 0; 0 -> 1, 1 -> 0.
    assert other.action_mask.tolist() == [mask[0].tolist(), [False, True, False, False, True], mask[0].tolist()]
    assert other.next_obs[1].tolist() == [-1, 1, 1] and other.log_prob is one.log_prob
    assert one.obs[1].tolist() == [3, 4, 5]


def test_the_reflection_of_an_allowed_action_is_allowed():
    action = torch.tensor([[a, b] for a in range(3) for b in range(2)])
    mask = torch.zeros(6, 5, dtype=torch.bool)
    mask[torch.arange(6)[:, None], action + torch.tensor([0, 3])] = True
    steps = torch.zeros(6)
    one = Minibatch(torch.zeros(6, 3), action, steps, steps, steps, steps, mask)
    other = reflect(one, SYMMETRY, torch.arange(6))
    assert other.action_mask.gather(1, other.action + torch.tensor([0, 3])).all()


def test_a_reflected_sequence_begins_without_memory():
    one = batch(2, 3, state=torch.ones(3, 4), episode_start=torch.zeros(2, 3, dtype=torch.bool))
    other = reflect(one._replace(burn_in_obs=torch.ones(5, 3, 3)), SYMMETRY, torch.tensor([2]))
    assert other.state.sum(dim=1).tolist() == [4, 4, 0]
    assert other.obs[:, 2].tolist() == [[-6, 8, 7], [-15, 17, 16]] and other.obs[1, 0].tolist() == [9, 10, 11]
    assert other.burn_in_obs[:, 2].tolist() == [[-1, 1, 1]] * 5


def test_numbers_of_a_box():
    symmetry = SYMMETRY._replace(actions=np.array([1, -1], np.float32))
    one = batch(3)._replace(action=torch.ones(3, 2))
    assert reflect(one, symmetry, torch.tensor([0, 2])).action.tolist() == [[1, -1], [1, 1], [1, -1]]


def test_the_steps_depend_on_seed_iteration_and_rank(fabric):
    callback, chosen = SymmetryAugmentation(share=0.25), []
    assert SymmetryAugmentation(share=0.0).on_learn_start(None) is None
    callback._symmetry = SYMMETRY
    for seed, iteration, rank in ((0, 0, 0), (0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1)):
        peers = SimpleNamespace(world_size=2, global_rank=rank)
        state = SimpleNamespace(batch=batch(80), peers=peers, args=SimpleNamespace(seed=seed), iteration=iteration)
        other = callback.on_learn_start(state)
        chosen.append(tuple((other.obs != state.batch.obs).any(dim=1).nonzero().flatten().tolist()))
    assert all(len(each) == 20 for each in chosen) and chosen[0] == chosen[1] and len(set(chosen)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("agent", [PPOLightningAgent, partial(RecurrentPPOAgent, sequence_length=8)])
@pytest.mark.parametrize("action", [None, ContinuousAction()])
def test_it_trains_and_resumes_exactly(fabric, tmp_path, agent, action):
    env = partial(POOL, action=action)

    def run(name, steps, resume=None):
        args = TrainArgs(total_timesteps=steps, lr_schedule="constant", **ARGS)
        saving = Saving(checkpoint_every_timesteps=256, exact_resume=True)
        folder = Run.create(tmp_path, name, force=True) if resume is None else Run(tmp_path / name)
        train(fabric, env, agent, args, folder, [SymmetryAugmentation()], plain=True, saving=saving, resume=resume)
        return load_checkpoint(tmp_path / name)[1]

    whole = run("whole", 512)
    run("part", 256)
    again = run("part", 512, load_checkpoint(tmp_path / "part")[1])
    for name, weights in whole["agent"].items():
        assert torch.equal(weights, again["agent"][name]), name


@pytest.mark.slow
def test_self_play_hands_on_the_symmetry(fabric, caplog):
    self_play, callback = SelfPlay(share=0.5), SymmetryAugmentation()
    env, args = self_play.around(POOL, PPOLightningAgent, ()), TrainArgs(total_timesteps=96, **ARGS)
    train(fabric, env, PPOLightningAgent, args, callbacks=[self_play, callback], plain=True)
    assert callback._symmetry is not None and "is off" not in caplog.text


def test_an_environment_without_symmetry(fabric, caplog):
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    train(fabric, env, PPOLightningAgent, TrainArgs(total_timesteps=64, **ARGS), callbacks=[SymmetryAugmentation()])
    assert "SymmetryAugmentation is off: GymnasiumEnvs has no symmetry" in caplog.text
