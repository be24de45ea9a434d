"""Two real ranks: one set of weights, two streams of experience."""

import json

import gymnasium
import numpy as np
import pytest
import torch
from lightning import Fabric

from envs import RandomState, RocketSimPool
from fabric_rl import load_checkpoint
from fabric_rl.base.seeding import stream_seed
from tests.integration.two_ranks import cloned_steps, gradient_steps
from tests.runs import assert_equal

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "checkpoints").mkdir()
    return folder


@pytest.fixture(scope="module")
def ranks(forks, folder):
    """What each of the two ranks has filed; see two_ranks.py."""
    statuses, _, err = forks.wait(forks.ranks(2, folder, program="tests.integration.two_ranks:main"))
    assert statuses == [0, 0], err
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)]


@pytest.mark.parametrize("run", ["cartpole", "stopped", "rocketsim", "imitated"])
def test_weights_are_identical_after_training(ranks, run):
    assert_equal(ranks[0][run]["weights"], ranks[1][run]["weights"])
    assert ranks[0][run]["weights"]["actor.0.bias"].any()  # which begins at zero


def test_reward_signals_are_the_same_on_all_ranks_and_go_on_to_the_bit(ranks):
    """Networks have one gradient, statistics are of the steps of both: 2 ranks x 2 x 32 x 8 rollouts."""
    assert_equal(ranks[0]["signals"], ranks[1]["signals"])
    assert ranks[0]["signals"]["rnd.normalizer.count"] == 1024
    assert ranks[0]["signals"]["curiosity.returns.count"] == 1024 - 128  # the first rollout was worth nothing
    assert_equal(ranks[0]["signals"], ranks[0]["signals_again"])


@pytest.mark.parametrize("run", ["replayed", "remembered"])
def test_sac_makes_as_many_optimizer_steps_for_each_step_with_any_number_of_ranks(ranks, run):
    """15 rounds of 3 for each of two ranks, each from steps of its own, to the same weights; also with a memory."""
    assert [int(rank[run]["updates"]) for rank in ranks] == [15 * 3 * 2] * 2
    assert_equal(ranks[0][run]["weights"], ranks[1][run]["weights"])
    assert not torch.equal(ranks[0][run]["drawn"], ranks[1][run]["drawn"])


def test_every_rank_sees_environments_of_its_own(ranks):
    """Sub-environment i of rank r is seeded with the first seed of the run + 2 r + i."""
    env = gymnasium.make("CartPole-v1")
    first = stream_seed(10, "environments")
    expected = np.stack([env.reset(seed=first + i)[0] for i in range(4)])
    assert torch.equal(ranks[0]["cartpole"]["obs"], torch.from_numpy(expected[:2]))
    assert torch.equal(ranks[1]["cartpole"]["obs"], torch.from_numpy(expected[2:]))


def test_every_rank_sees_arenas_of_its_own(ranks):
    """Arena i of rank r is seeded with the first seed of the run + 2 r + i, whatever the number of cars."""
    both = torch.cat([rank["rocketsim"]["obs"] for rank in ranks])
    expected = RocketSimPool(4, state_setter=RandomState()).reset(seed=stream_seed(10, "environments"))[0]
    assert torch.equal(both, torch.from_numpy(expected.copy()))


def test_every_rank_explores_with_noise_of_its_own(ranks):
    """The first policy is close to uniform, so equal noise would give almost equal actions."""
    actions = [rank["rocketsim"]["actions"][:8] for rank in ranks]
    assert actions[0].shape == (8, 4)
    assert (actions[0] == actions[1]).float().mean() < 0.3


def test_every_rank_shuffles_in_an_order_of_its_own(ranks, folder):
    """Both have drawn as many permutations of the same length."""
    one, other = (rank["shuffle"] for rank in load_checkpoint(folder)[1]["ranks"])
    assert not torch.equal(one, other)


def test_the_explained_variance_is_that_of_the_steps_of_both(ranks):
    returns, value = (torch.cat([rank["cartpole"][name] for rank in ranks]).double() for name in ("returns", "value"))
    expected = 1 - (returns - value).var() / returns.var()
    each = [
        1 - (rank["cartpole"]["returns"] - rank["cartpole"]["value"]).var() / rank["cartpole"]["returns"].var()
        for rank in ranks
    ]
    assert abs(sum(each) / 2 - expected) > 1e-3  # it is not the mean of the two
    for rank in ranks:
        assert rank["cartpole"]["metrics"]["ppo/explained_variance"] == pytest.approx(float(expected), rel=1e-4)


def test_metrics_are_sums_over_both_by_counts_of_both(ranks):
    """A step pays 1 in CartPole; an iteration has 32 steps of each rank."""
    metrics = [rank["cartpole"]["metrics"] for rank in ranks]
    assert [each["reward/step"] for each in metrics] == [1, 1]
    assert metrics[0]["reward/episode_return"] == metrics[1]["reward/episode_return"]
    assert metrics[0]["game/episode_length"] == metrics[0]["reward/episode_return"]


def test_two_ranks_with_half_the_minibatch_are_one_rank_with_all_of_it(ranks):
    """Gradients, their clipping and the normalisation of advantages are over all ranks."""
    alone = gradient_steps(Fabric(accelerator="cpu", devices=1))

    assert_equal(ranks[0]["gradient"], ranks[1]["gradient"])
    for name, weight in alone.items():
        torch.testing.assert_close(ranks[0]["gradient"][name], weight, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("memory", [False, True])
def test_demonstrations_count_as_much_on_two_ranks_as_on_one(ranks, memory):
    """Whatever the sizes and the weights of their minibatches; also in the loss that is logged."""
    alone = cloned_steps(Fabric(accelerator="cpu", devices=1))[memory]

    one, other = (rank["cloned"][memory] for rank in ranks)
    assert_equal(one, other)
    for name, tensor in alone.items():
        torch.testing.assert_close(one[name], tensor, rtol=1e-5, atol=1e-6)


def test_one_rank_stops_them_all(ranks):
    summaries = [rank["stopped"]["summary"] for rank in ranks]
    assert [summary["iterations"] for summary in summaries] == [2, 2]
    assert all(summary["stopped_early"] for summary in summaries)


def test_the_summary_counts_the_steps_of_both(ranks, folder):
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["world_size"], summary["iterations"], summary["total_steps"]) == (2, 8, 512)
    assert summary["mean_return"] == pytest.approx(ranks[1]["cartpole"]["summary"]["mean_return"])
    checkpoint = load_checkpoint(folder)[1]
    assert_equal(checkpoint["agent"], ranks[1]["cartpole"]["weights"])


def test_the_mean_of_the_last_episodes_takes_as_many_of_each_rank(ranks, folder):
    summary = json.loads((folder / "summary.json").read_text())
    recent = [rank["episodes"]["recent"] for rank in load_checkpoint(folder)[1]["ranks"]]
    last = [each[-10:] for each in recent]
    assert sum(map(len, recent)) > sum(map(len, last))  # not all of them are among those
    assert summary["mean_return_last_20"] == pytest.approx(np.mean(np.concatenate(last)))
