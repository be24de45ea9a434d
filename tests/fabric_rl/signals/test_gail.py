"""GAIL: its loss against numbers made otherwise, what it pays, and who shows it what."""

from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from lightning import Fabric

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Callback, TrainArgs, train
from fabric_rl.signals import GAIL, Steps

SEEN = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
DONE = gymnasium.spaces.Discrete(2)


def episodes(n=9, obs=None, weight=None):
    draws = np.random.default_rng(0)
    obs = draws.normal(size=(n + 1, 3)).astype(np.float32) if obs is None else obs
    weight = np.ones(len(obs) - 1, np.float32) if weight is None else weight
    return [SimpleNamespace(obs=obs, action=np.arange(len(obs) - 1) % 2, weight=weight)]


def steps(n=6):
    obs, after = torch.randn(2, n, 3, generator=torch.Generator().manual_seed(1))
    return Steps(obs, torch.arange(n) % 2, after)


def logit(gail, obs, action):
    return gail._logits(gail._inputs(obs, action))[0]


@pytest.mark.parametrize("use_actions", [False, True])
def test_the_loss_is_that_of_the_paper(use_actions):
    gail = GAIL(SEEN, DONE, use_actions=use_actions, gradient_penalty=0).show(episodes())
    pair = gail.prepared(steps(), torch.Generator().manual_seed(3))
    loss, stats = gail(pair)
    ours, theirs = (torch.sigmoid(logit(gail, *each)) for each in zip(pair.obs, pair.action, strict=True))
    torch.testing.assert_close(loss, -theirs.log().mean() - (1 - ours).log().mean())
    assert stats["agent_estimate"].item() == pytest.approx(ours.mean().item())
    torch.testing.assert_close(gail.reward(steps()), -(1 - torch.sigmoid(logit(gail, *steps()[:2]))).log())
    flipped = logit(gail, steps().obs, 1 - steps().action)
    assert torch.equal(flipped, logit(gail, *steps()[:2])) is not use_actions


@pytest.mark.parametrize("use_vail", [False, True])
def test_the_penalty_and_its_gradient_are_those_of_finite_differences(use_vail):
    torch.manual_seed(0)
    gail = GAIL(SEEN, DONE, use_actions=True, use_vail=use_vail, encoding_size=4, hidden_sizes=(5,)).double()
    gail._inputs = lambda obs, action: (obs, action)  # float64 all the way
    ours, theirs = ((torch.randn(2, 3).double(), torch.rand(2, 2).double()) for _ in range(2))
    share = torch.rand(2).double()
    gail._logits = lambda x, noise=None: _double_logits(gail, x)

    def penalty():
        return gail.penalty(ours, theirs, share)

    points = [share[:, None] * b + (1 - share[:, None]) * a for a, b in zip(ours, theirs, strict=True)]
    point, h = torch.cat(points, 1), 1e-6
    slopes = torch.zeros_like(point)
    for column in range(point.shape[1]):
        step = torch.zeros_like(point)
        step[:, column] = h
        up, down = (_double_logits(gail, (x[:, :3], x[:, 3:]))[0] for x in (point + step, point - step))
        slopes[:, column] = (up - down) / (2 * h)
    torch.testing.assert_close(penalty(), ((slopes.norm(dim=1) - 1) ** 2).mean(), rtol=1e-5, atol=1e-7)

    weight = gail.judge[0].weight
    penalty().backward()
    with torch.no_grad():
        weight[0, 1] += 1e-5
    up = penalty().item()
    with torch.no_grad():
        weight[0, 1] -= 2e-5
    down = penalty().item()
    assert weight.grad[0, 1].item() == pytest.approx((up - down) / 2e-5, rel=1e-4)


def _double_logits(gail, inputs):
    seen = torch.cat((gail.encoder(inputs[0]), inputs[1]), dim=-1)
    if gail.code is not None:
        seen = gail.code(seen).chunk(2, dim=-1)[0]
    return gail.judge(seen).squeeze(-1), None


def test_the_code_costs_its_information_and_the_price_follows():
    gail = GAIL(SEEN, DONE, use_vail=True, gradient_penalty=0).show(episodes())
    pair = gail.prepared(steps(), torch.Generator())
    loss, stats = gail(pair)
    mean, log_std = gail.code(gail.encoder(pair.obs[0].clamp(-5, 5))).chunk(2, dim=-1)
    normal = torch.distributions.Normal
    known = torch.distributions.kl_divergence(normal(mean, log_std.exp()), normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(gail._logits(gail._inputs(pair.obs[0], pair.action[0]))[1], known)
    gail.beta.fill_(2.0)
    torch.testing.assert_close(gail(pair)[0], loss + 2 * (stats["kl"] - 0.5))
    gail.after_learning({"kl": 0.7}, 10)
    assert gail.beta.item() == pytest.approx(2 + 10 * 5e-4 * 0.2)
    gail.after_learning({"kl": 0.0}, 10**6)
    assert gail.beta.item() == 0


def test_steps_that_count_nothing_are_not_shown():
    gail = GAIL(SEEN, DONE).show(episodes(3, weight=np.float32([1, 0, 0.5])))
    assert gail.shown[0].tolist() == episodes(3)[0].obs[[0, 2]].tolist() and gail.shown[1].tolist() == [0, 0]


def test_what_is_shown_comes_first_into_the_statistics():
    gail = GAIL(SEEN, DONE).show(episodes(9))
    gail.update_statistics(steps(6), Fabric(accelerator="cpu", devices=1))
    seen = torch.cat((gail.shown[0], steps(6).next_obs)).double()
    torch.testing.assert_close(gail.normalizer.mean, seen.mean(0))
    assert gail.normalizer.count == 15


def test_nothing_shown_is_one_line():
    with pytest.raises(ValueError, match="--signals GAIL: nothing is shown"):
        GAIL(SEEN, DONE).prepared(steps(), torch.Generator())


class Last(Callback):
    def on_iteration_end(self, state):
        self.metrics = dict(state.metrics)


def test_it_tells_who_plays_and_pays_for_what_was_shown():
    """What is shown lies to the right: after some updates the right is worth more than the left."""
    obs = np.full((65, 4), 0.5, np.float32) + np.random.default_rng(0).normal(size=(65, 4)).astype(np.float32) * 0.01
    made, last = [], Last()

    def build(seen, done):
        made.append(GAIL(seen, done, learning_rate=1e-3).show(episodes(obs=obs)))
        return made[0]

    args = TrainArgs(total_timesteps=1024, num_steps=64, update_epochs=4, extrinsic_strength=0)
    env, agent = partial(GymnasiumEnvs, "CartPole-v1", 4), partial(PPOLightningAgent, value_heads=2)
    train(Fabric(accelerator="cpu", devices=1), env, agent, args, callbacks=[last], plain=True, signals=[build])
    worth = made[0].reward(Steps(torch.tensor([[0.5] * 4, [0.0] * 4]), torch.zeros(2).long(), torch.zeros(2, 4)))
    assert worth[0] > worth[1] and last.metrics["gail/expert_estimate"] > last.metrics["gail/agent_estimate"]
