"""Demonstrations beside the run's own steps: what they hold, how often they are drawn, and what is wrong with them."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from agents import SACLightningAgent
from envs import CombinedReward, GymnasiumEnvs, RocketSimPool, StateAwareTable
from envs.demonstrations.file import DemonstrationWriter, columns_of_states
from envs.demonstrations.record import StateRecorder, about_states
from envs.rewards import default_reward
from fabric_rl import SACArgs, TrainArgs, train_off_policy
from fabric_rl.evaluation.demonstrations import trajectories_of
from fabric_rl.sac.replay import replayed
from fabric_rl.types import Minibatch
from train_fabric import cli

CARTPOLE = "configs/demonstrations/cartpole.frd"


def trajectory(first, steps, terminated=False, mask=None, weight=1.0):
    return SimpleNamespace(
        obs=np.arange(first, first + steps + 1, dtype=np.float32)[:, None],
        action=np.arange(steps) % 2,
        reward=np.full(steps, first, np.float32),
        weight=np.full(steps, weight, np.float32),
        terminated=terminated,
        action_mask=mask,
    )


def like(signals=0, masked=False):
    reward = torch.zeros(3, 1 + signals) if signals else torch.zeros(3)
    flat, flags = torch.zeros(3), torch.zeros(3, dtype=torch.bool)
    allowed = torch.ones(3, 2, dtype=torch.bool) if masked else None
    more = {"reward": reward, "next_obs": torch.zeros(3, 1), "terminated": flags, "done": flags}
    return Minibatch(torch.zeros(3, 1), flat.long(), flat, flat, flat, flat, allowed, next_action_mask=allowed, **more)


def buffer_of(trajectories, strength=1.0, **kind):
    return replayed(trajectories, strength, like(**kind), torch.Generator().manual_seed(0), None, True)


def test_their_steps_end_where_their_episodes_do():
    replay = buffer_of([trajectory(10, 3, terminated=True), trajectory(20, 2), trajectory(30, 1)], strength=0.5)
    found = replay.take(torch.arange(6), 2, torch.tensor(0.5))
    assert found.obs[:, 0].tolist() == [10, 11, 12, 20, 21, 30]
    assert found.reward.tolist() == [7.5, 7.5, 5, 15, 10, 15]
    assert found.discount.tolist() == [0.25, 0, 0, 0.25, 0.5, 0.5]
    assert found.next_obs[[0, 3, 4, 5], 0].tolist() == [12, 22, 22, 31]
    assert replay.steps(torch.arange(6)).next_obs[:, 0].tolist() == [11, 12, 13, 21, 22, 31]


def test_steps_are_drawn_as_often_as_they_count():
    replay = buffer_of([trajectory(10, 2), trajectory(20, 2, weight=0.5), trajectory(30, 2, weight=0.0)])
    drawn = torch.bincount(replay.draw(3000), minlength=6)
    assert drawn.tolist() == [1000, 1000, 500, 500, 0, 0]


def test_what_signals_pay_is_left_open_and_what_nobody_knows_is_allowed():
    known = np.array([[True, False], [False, True]])
    replay = buffer_of([trajectory(10, 2, mask=known), trajectory(20, 1)], signals=2, masked=True)
    found = replay.take(torch.arange(3), 1, torch.tensor([0.5, 0.5, 0.5]))
    assert found.reward.tolist() == [[10, 0, 0], [10, 0, 0], [20, 0, 0]]
    assert found.action_mask.tolist() == [[True, False], [False, True], [True, True]]


def test_a_step_without_a_reward_is_refused():
    broken = trajectory(10, 3)
    broken.reward = None
    with pytest.raises(ValueError, match="--demonstrations: two steps are the least, each with the reward"):
        buffer_of([broken])


@pytest.mark.parametrize("reward", [None, CombinedReward([default_reward()], [2.0])])
def test_states_of_rocket_league_are_worth_what_the_pool_would_have_paid(tmp_path, reward):
    path, rng = tmp_path / "a.frd", np.random.default_rng(0)
    make = partial(RocketSimPool, team_size=2, num_threads=1, reward=reward)
    with DemonstrationWriter(path, columns_of_states(4), about_states("ab", [0, 0, 1, 1], range(4), 8)) as writer:
        recorder = StateRecorder(writer)
        pool = make(1, loggers=[recorder])
        pool.reset(seed=0)
        paid = [pool.step(rng.integers(90, size=4))[1].copy() for _ in range(60)]
        recorder.end()
        pool.close()
    found = trajectories_of([path], make, rewards=True)
    assert np.array_equal(np.stack([each.reward for each in found], axis=1), np.stack(paid))
    assert found[0].reward.any()


class Keeps(SACLightningAgent):
    """Remembers what it is given."""

    def training_step(self, minibatch):
        self.seen = [*getattr(self, "seen", []), minibatch]
        return super().training_step(minibatch)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_half_of_each_minibatch_comes_from_them(fabric, alpha):
    made = []

    def build(*spaces):
        made.append(Keeps(*spaces, actor_hidden_sizes=[8], critic_hidden_sizes=[8]))
        return made[0]

    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    shown = trajectories_of([CARTPOLE], env, rewards=True)
    sac = SACArgs(buffer_init_steps=40, demonstrations=(CARTPOLE,), demonstration_share=0.25, per_alpha=alpha)
    args = TrainArgs(total_timesteps=80, batch_size=64)
    train_off_policy(fabric, env, build, args, plain=True, sac=sac, demonstrations=shown)
    known = {tuple(row) for each in shown for row in each.obs.tolist()}
    for batch in made[0].seen:
        there = [tuple(row) in known for row in batch.obs.tolist()]
        assert there == [False] * 48 + [True] * 16
        assert (batch.weight is None) is (alpha == 0) and (alpha == 0 or set(batch.weight[48:].tolist()) == {1.0})


def test_masked_pools_learn_from_states(fabric):
    env = partial(RocketSimPool, 1, action=StateAwareTable(), num_threads=1)
    shown = trajectories_of(["configs/demonstrations/chaser_1v1.frd"], env, rewards=True)[:3]
    agent = partial(SACLightningAgent, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    args, sac = TrainArgs(total_timesteps=40, batch_size=16), SACArgs(buffer_init_steps=20, n_step=3)
    summary = train_off_policy(fabric, env, agent, args, plain=True, sac=sac, demonstrations=shown)
    assert summary["total_steps"] == 40


def test_from_the_command_line_with_a_signal_that_imitates(tmp_path, capsys):
    signal = ["--signals+=fabric_rl.signals.GAIL", f"--signals.demos=[{CARTPOLE}]", "--extrinsic_strength=0"]
    flags = ["--config", "configs/sac_cartpole.yaml", "--total_timesteps", "200", "--buffer_init_steps", "160"]
    flags += ["--batch_size", "32", "--num_update", "1"]
    cli([*flags, "--demonstrations", f"[{CARTPOLE}]", *signal, "--runs_dir", str(tmp_path), "--run_id", "r"])
    header = (tmp_path / "r" / "metrics.csv").read_text().splitlines()[0]
    assert "gail/reward" in header and "sac/td_error" in header


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--demonstrations", "[nowhere.frd]"], "--demonstrations nowhere.frd: there is no such file"),
        (["--demonstrations", "[configs/demonstrations/chaser_1v1.frd]"], "--demonstrations .*states of Rocket League"),
        (["--per_beta", "0.5"], "--per_beta has no effect without --per_alpha; add that, or leave it out"),
        (["--demonstration_share", "0.3"], "--demonstration_share has no effect without --demonstrations"),
        (["--reward_signal_num_update", "2"], "--reward_signal_num_update has no effect without --signals"),
    ],
)
def test_what_cannot_work_is_one_line(tmp_path, capsys, flags, message):
    with pytest.raises(SystemExit) as ended:
        cli(["--config", "configs/sac_cartpole.yaml", "--runs_dir", str(tmp_path), *flags])
    said = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2 and len(said) == 1
    assert re.search(message, said[0])
