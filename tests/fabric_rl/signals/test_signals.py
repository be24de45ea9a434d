"""Reward signals: what they pay, what they learn, and that a run with them goes on to the bit."""

import math
from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from lightning import Fabric

from agents import ConvPPOAgent, PPOLightningAgent, RecurrentPPOAgent, SACLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import GAE, Callback, Rollout, Run, Saving, TrainArgs, load_checkpoint, train
from fabric_rl.learning.action_encoder import ActionEncoder
from fabric_rl.rollouts.collect import collect
from fabric_rl.signals import GAIL, RND, Curiosity, RewardSignal, Steps
from fabric_rl.signals.base import ObsEncoder
from fabric_rl.signals.signals import add_value_heads, build_signals
from fabric_rl.types import CheckpointError

VECTOR = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
THREE = gymnasium.spaces.Discrete(3, start=5)


def some_steps(n=6, seed=0):
    draws = torch.Generator().manual_seed(seed)
    obs, after = torch.randn(2, n, 3, generator=draws)
    return Steps(obs, torch.randint(5, 8, (n,), generator=draws), after)


class Seen(Callback):
    def __init__(self):
        self.metrics, self.returns = [], []

    def on_learn_start(self, state):
        self.returns.append(state.batch.returns.clone())

    def on_iteration_end(self, state):
        self.metrics.append(dict(state.metrics))


BOTH = (partial(RND, strength=0.5), Curiosity)


def run(total=1024, signals=BOTH, env_id="MountainCar-v0", agent=None, **others):
    seen, build = Seen(), agent or partial(PPOLightningAgent, value_heads=1 + len(signals))
    args = TrainArgs(total_timesteps=total, num_steps=32, update_epochs=2, minibatch_size=32, **others.pop("args", {}))
    fabric = Fabric(accelerator="cpu", devices=1)
    env = others.pop("env", partial(GymnasiumEnvs, env_id, 4))
    summary = train(fabric, env, build, args, callbacks=[seen], plain=True, signals=signals, **others)
    return summary, seen


# ---------------------------------------------------------------------- maths


def test_actions_are_vectors():
    discrete = ActionEncoder(THREE)(torch.tensor([5, 7]))
    assert discrete.tolist() == [[1, 0, 0], [0, 0, 1]]
    several = ActionEncoder(gymnasium.spaces.MultiDiscrete([2, 3]))(torch.tensor([[1, 0]]))
    assert several.tolist() == [[0, 1, 1, 0, 0]]
    box = ActionEncoder(gymnasium.spaces.Box(np.float32([0, -2]), np.float32([4, 2])))(torch.tensor([[1.0, 9.0]]))
    assert box.tolist() == [[-0.5, 1.0]]
    half = ActionEncoder(gymnasium.spaces.Box(np.float32([0, -np.inf]), np.float32([4, np.inf])))
    assert half(torch.tensor([[-9.0, 3.5]])).tolist() == [[-1.0, 3.5]]


def test_told_actions_are_off_by_the_cross_entropy_or_the_squared_error():
    several = ActionEncoder(gymnasium.spaces.MultiDiscrete([2, 2]))
    even = torch.zeros(1, 4)
    assert several.loss(even, torch.tensor([[1, 0]])).item() == pytest.approx(2 * math.log(2))
    box = ActionEncoder(gymnasium.spaces.Box(-1, 1, (2,)))
    assert box.loss(torch.tensor([[0.5, 0.0]]), torch.tensor([[1.0, 0.0]])).item() == pytest.approx(0.125)


def test_rnd_pays_the_squared_distance_to_its_target():
    rnd, steps = RND(VECTOR, THREE), some_steps()
    inputs = steps.next_obs.clamp(-5, 5)  # as long as there are no statistics
    distance = torch.linalg.vector_norm(rnd.predictor(inputs) - rnd.target(inputs), dim=1)
    torch.testing.assert_close(rnd.reward(steps), distance**2)
    torch.testing.assert_close(rnd(steps)[0], (distance**2).mean())
    assert rnd.reward(steps).min() > 0


def test_the_target_of_rnd_never_learns_and_tells_when_statistics_move_it():
    rnd, fabric = RND(VECTOR, THREE, normalize_steps=12), Fabric(accelerator="cpu", devices=1)
    assert not any(p.requires_grad for p in rnd.target.parameters())
    assert rnd.update_statistics(some_steps(), fabric) == {}
    before, steps = rnd.target.state_dict(), some_steps(seed=1)
    answer = rnd.target(rnd.normalizer(steps.next_obs))
    said = rnd.update_statistics(steps, fabric)
    after = rnd.target(rnd.normalizer(steps.next_obs))
    moved = ((after - answer) ** 2).sum(1).mean() / answer.var(0).sum()
    assert said["target_drift"] == pytest.approx(moved.item()) and moved > 0
    assert all(torch.equal(before[name], tensor) for name, tensor in rnd.target.state_dict().items())
    mean = rnd.normalizer.mean.clone()
    assert rnd.update_statistics(some_steps(seed=2), fabric) == {}  # 12 steps are in
    assert torch.equal(rnd.normalizer.mean, mean)


def test_curiosity_pays_half_the_squared_error_of_predicted_features():
    curiosity, steps = Curiosity(VECTOR, THREE), some_steps()
    before, after = (curiosity.encoder(obs.clamp(-5, 5)) for obs in (steps.obs, steps.next_obs))
    one_hot = torch.eye(3)[steps.action - 5]
    error = 0.5 * ((curiosity.forward_model(torch.cat((before, one_hot), 1)) - after) ** 2).sum(1)
    torch.testing.assert_close(curiosity.reward(steps), error)
    logits = curiosity.inverse_model(torch.cat((before, after), 1))
    inverse = -(torch.log_softmax(logits, 1) * one_hot).sum(1).mean()
    loss, stats = curiosity(steps)
    torch.testing.assert_close(loss, 10 * (0.2 * error.mean() + 0.8 * inverse))
    assert stats["inverse_loss"].item() == pytest.approx(inverse.item())


def test_features_learn_from_the_inverse_model_alone():
    curiosity, steps = Curiosity(VECTOR, THREE), some_steps()
    errors, _ = curiosity._predicted(steps)
    errors.sum().backward()
    assert all(p.grad is None for p in curiosity.encoder.parameters())
    assert all(p.grad is not None for p in curiosity.forward_model.parameters())


def test_rewards_are_divided_by_the_deviation_of_their_discounted_sums():
    rnd = RND(VECTOR, THREE, gamma=0.5)
    rewards = np.float64([1, 3, 2, 6])
    sums = np.float64([1, 3.5, 3.75, 7.875])  # R_t = r_t + 0.5 R_(t-1)
    rnd.returns.update(torch.from_numpy(sums))
    torch.testing.assert_close(rnd.scaled(torch.from_numpy(rewards)).numpy(), rewards / sums.std(ddof=1))
    assert rnd.scaled(torch.tensor([1e9])).item() == 10


@pytest.mark.parametrize("shape", [(3,), (4, 5), (60, 50, 3), (3, 60, 50), (2, 60, 50, 3)])
def test_features_of_any_observation(shape):
    space = gymnasium.spaces.Box(0, 255, shape, np.uint8 if len(shape) > 2 else np.float32)
    assert ObsEncoder(space, [8], 7)(torch.rand(2, *shape)).shape == (2, 7)


# ---------------------------------------------------------------------- rollouts


def test_every_signal_has_a_name_of_its_own():
    class Mine(Fixed):
        name = "my_signal"

    envs = GymnasiumEnvs("CartPole-v1", 1)
    found = build_signals([RND, Mine, RND, Mine, Mine, RND], envs)
    envs.close()
    assert [signal.name for signal in found] == ["rnd", "my_signal", "rnd_2", "my_signal_2", "my_signal_3", "rnd_3"]


class Fixed(RewardSignal):
    """Pays 1 for every step."""

    name, scales = "fixed", False

    def __init__(self, observation_space, action_space, episodic=False):
        super().__init__(observation_space, 2.0, 0.5, 1e-3, None, None, episodic)
        self.weight = torch.nn.Parameter(torch.ones(1))

    def reward(self, steps):
        return torch.ones(len(steps.obs))

    def forward(self, batch):
        return self.weight.square().sum(), {}


@pytest.mark.parametrize("episodic", [False, True])
def test_returns_of_a_signal_end_with_episodes_or_go_on(counter_env, episodic):
    """Three steps of one sub-environment; the second one terminates. Values are 10, 20, 30 and 40 after them."""
    rollout = Rollout(3, counter_env((2,), (10**9,)), signals=["fixed"])
    assert rollout.reward.shape == (3, 1, 2) and rollout.env_reward.shape == (3, 1)
    rollout.reward[..., 1], rollout.done[1], rollout.terminated[1] = 2.0, True, True
    rollout.value[..., 1] = torch.tensor([10.0, 20, 30])[:, None]
    rollout.next_value[..., 1] = torch.tensor([20.0, 30, 40])[:, None]
    rollout.episodic = torch.tensor([True, episodic])
    advantage, _ = GAE()(rollout, None, torch.tensor([0.9, 0.5]), 1.0)
    last = 2 + 0.5 * 40 - 30  # -8
    second = 2 - 20 if episodic else 2 + 0.5 * 30 - 20 + 0.5 * last  # -18, or -7
    first = 2 + 0.5 * 20 - 10 + 0.5 * second
    assert advantage[:, 0, 1].tolist() == [first, second, last]


def test_values_go_on_with_the_next_episode_also_after_the_last_step(counter_env, known_agent):
    """Episodes of two steps are truncated; observations are 0, 1, 100, 101 and 200, the last ones 2 and 102."""

    class TwoHeads(known_agent):
        value_heads = 2

        def value(self, obs, state=None):
            return super().value(obs)[:, None].expand(-1, 2)

    env = counter_env((10**9,), (2,))
    agent = TwoHeads(env.single_observation_space, env.single_action_space)
    rollout = Rollout(4, env, agent=agent, signals=["fixed"])
    rollout.episodic = torch.tensor([True, False])
    rollout.begin(*env.reset(seed=0))
    with torch.no_grad():
        collect(env, agent, rollout)
    assert rollout.next_value[:, 0].T.tolist() == [[1, 2, 101, 102], [1, 100, 101, 200]]


def test_the_first_rollout_pays_nothing_and_later_ones_strength_times_the_reward():
    _, seen = run(384, [Fixed], args={"combine_advantages": "mean"})
    assert "fixed/reward" not in seen.metrics[0] and seen.metrics[1]["fixed/reward"] == 2
    assert seen.metrics[0]["fixed/loss"] == pytest.approx(1, abs=0.1)
    assert seen.returns[1].shape == (128, 2)


def test_next_observations_are_those_of_the_same_episode_also_where_it_terminated(counter_env):
    class Kept(Fixed):
        steps = None

        def reward(self, steps):
            Kept.steps = steps
            return super().reward(steps)

    run(64 * 3, [Kept], env=lambda seed: counter_env((3, 10**9), (10**9, 2)))
    pairs = zip(Kept.steps.obs[:, 0].tolist(), Kept.steps.next_obs[:, 0].tolist(), strict=True)
    assert all(after == before + 1 for before, after in pairs)


def test_the_environments_reward_has_a_strength():
    _, plain = run(128, (), agent=PPOLightningAgent)
    _, half = run(128, (), agent=PPOLightningAgent, args={"extrinsic_strength": 0.0})
    assert plain.metrics[0]["reward/step"] == half.metrics[0]["reward/step"] == -1
    assert plain.returns[0].mean() < -5 and half.returns[0].abs().mean() < 1


@pytest.mark.parametrize(
    ("agent", "env_id"),
    [
        (partial(RecurrentPPOAgent, value_heads=3, sequence_length=8), "CartPole-v1"),
        (partial(PPOLightningAgent, value_heads=3), "Pendulum-v1"),
    ],
)
def test_agents_of_other_kinds_learn_with_signals(agent, env_id):
    _, seen = run(256, env_id=env_id, agent=agent)
    assert seen.metrics[1]["rnd/reward"] > 0 and seen.metrics[1]["curiosity/reward"] > 0


def test_pixels():
    space = gymnasium.spaces.Box(0, 255, (24, 24, 3), np.uint8)
    images = torch.randint(0, 255, (4, 24, 24, 3), dtype=torch.uint8)
    steps = Steps(images, torch.tensor([5, 6, 7, 5]), images.flip(0))
    for signal in (RND(space, THREE), Curiosity(space, THREE)):
        signal.update_statistics(steps, Fabric(accelerator="cpu", devices=1))
        assert signal.reward(steps).shape == (4,)
        signal(steps)[0].backward()
    assert ConvPPOAgent(space, gymnasium.spaces.Discrete(3), value_heads=2).value_heads == 2


# ---------------------------------------------------------------------- going on


@pytest.mark.slow
@pytest.mark.parametrize("overlap", [False, True])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, overlap):
    saving = Saving(checkpoint_every_timesteps=512, exact_resume=True, keep_checkpoints=9, record_minutes=None)
    common = {"args": {"overlap": overlap}, "saving": saving}
    run(1024, run=Run.create(tmp_path, "whole"), **common)
    whole = {p.name: load_checkpoint(p)[1] for p in (tmp_path / "whole" / "checkpoints").iterdir()}
    names = sorted(whole)
    with pytest.raises(CheckpointError, match="signals: the run had rnd, curiosity, not rnd; use the same"):
        run(1024, BOTH[:1], run=Run.create(tmp_path, "other"), resume=whole[names[0]], **common)
    with pytest.raises(CheckpointError, match="the run had rnd, curiosity, not curiosity, rnd; use"):
        run(1024, BOTH[::-1], run=Run.create(tmp_path, "turned"), resume=whole[names[0]], **common)
    run(1024, run=Run.create(tmp_path, "again"), resume=whole[names[0]], **common)
    again = load_checkpoint(tmp_path / "again")[1]
    last = whole[names[-1]]
    assert last["signals"][0]["module"].keys() == again["signals"][0]["module"].keys()
    for mine, theirs in zip(last["signals"], again["signals"], strict=True):
        assert all(torch.equal(tensor, theirs["module"][name]) for name, tensor in mine["module"].items())
        assert torch.equal(mine["optimizer"]["state"][0]["exp_avg"], theirs["optimizer"]["state"][0]["exp_avg"])
    assert all(torch.equal(tensor, again["agent"][name]) for name, tensor in last["agent"].items())
    ranks = (last["ranks"][0]["signals"], again["ranks"][0]["signals"])
    assert torch.equal(ranks[0]["running"], ranks[1]["running"]) and ranks[0]["running"].abs().sum() > 0


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("agent", [PPOLightningAgent, partial(PPOLightningAgent, shared_trunk=True)])
def test_an_agent_with_one_value_head_goes_on_with_signals(agent, caplog):
    old = agent(*(getattr(gymnasium.make("MountainCar-v0"), f"{name}_space") for name in ("observation", "action")))
    weights, begun = old.state_dict(), {}

    class Look(Callback):
        def on_iteration_start(self, state):
            begun.update({name: tensor.clone() for name, tensor in state.agent.state_dict().items()})
            state.stop = True

    seen = Look()
    args = TrainArgs(total_timesteps=64, num_steps=16, update_epochs=1)
    fabric = Fabric(accelerator="cpu", devices=1)
    env, heads = partial(GymnasiumEnvs, "MountainCar-v0", 4), partial(agent, value_heads=3)
    with caplog.at_level("INFO"):
        train(fabric, env, heads, args, callbacks=[seen], plain=True, signals=BOTH, weights={"agent": weights})
    assert caplog.text.count("the weights have one value head of 3; those of the signals start untrained") == 1
    assert torch.equal(begun["value_head.layer.weight"][:1], weights["value_head.layer.weight"])
    assert begun["value_head.layer.weight"][1:].abs().sum() > 0
    assert all(torch.equal(begun[name], weights[name]) for name in weights if not name.startswith("value_head"))


def test_critics_of_discrete_actions_go_on_with_signals():
    old, new = (SACLightningAgent(VECTOR, THREE, value_heads=heads) for heads in (1, 3))
    fresh = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    found, obs = add_value_heads(old.state_dict(), new), torch.randn(5, 3)
    new.load_state_dict(found)
    assert torch.allclose(new.critics(obs)[..., :3], old.critics(obs), atol=1e-6)
    assert torch.allclose(new.target_critics(obs)[..., :3], old.target_critics(obs), atol=1e-6)
    assert torch.equal(found["critics.networks.0.1.weight"][3:], fresh["critics.networks.0.1.weight"][3:])


def test_an_agent_without_the_heads_is_told_the_number():
    with pytest.raises(ValueError, match=r"--signals 2 \(rnd, curiosity\).* value_heads=1; set --agent.value_heads 3"):
        run(128, agent=PPOLightningAgent)


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
    with pytest.raises(ValueError, match="--signals GAIL: there are no demonstrations"):
        GAIL(SEEN, DONE).prepared(steps(), torch.Generator())
    for nothing in ([], episodes(3, weight=np.zeros(3, np.float32))):
        with pytest.raises(ValueError, match="--signals GAIL: the demonstrations have no steps, or all have weight 0"):
            GAIL(SEEN, DONE).show(nothing)


class Last(Callback):
    def on_iteration_end(self, state):
        self.metrics = dict(state.metrics)


@pytest.mark.slow
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


def test_signals_learn_alike_whatever_a_callback_makes_of_the_minibatches():
    class Larger(Callback):
        def on_train_start(self, state):
            state.minibatch_size = 64

    losses = []
    for callbacks in ([], [Larger()]):
        args = TrainArgs(total_timesteps=256, num_steps=32, minibatch_size=16, batch_size=64)
        env, agent, seen = partial(GymnasiumEnvs, "CartPole-v1", 4), partial(PPOLightningAgent, value_heads=2), Seen()
        fabric = Fabric(accelerator="cpu", devices=1)
        train(fabric, env, agent, args, callbacks=[seen, *callbacks], plain=True, signals=[RND])
        losses.append([row["rnd/loss"] for row in seen.metrics])
    assert losses[0][0] == losses[1][0] and len(losses[0]) == 2
