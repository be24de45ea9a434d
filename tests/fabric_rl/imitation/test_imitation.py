"""Agents learn what they are shown, beside PPO, before it, and from another policy."""

import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from lightning import Fabric
from lightning.fabric.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.distributions import Categorical, kl_divergence

from agents import ConvPPOAgent, PPOLightningAgent, RecurrentPPOAgent, RolesAgent, SACLightningAgent
from envs import GymnasiumEnvs
from envs.demonstrations import Trajectory
from fabric_rl import Callback, Minibatch, SACArgs, TrainArgs, Transitions, train, train_off_policy
from fabric_rl.base.seeding import stream_seed
from fabric_rl.hooks import Hooks
from fabric_rl.imitation import Cloning, Kickstart, cloning
from fabric_rl.imitation.cloning import CloneArgs, imitation_loss, pretrain, to_batch, train_epoch
from fabric_rl.imitation.kickstart import Reference
from fabric_rl.learning.imitation import cloning_loss
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.metrics.loggers import MetricsFile
from fabric_rl.metrics.metrics_csv import read_rows
from fabric_rl.schedules import Linear

SEEN = Box(-10, 10, (4,), np.float32)


def lean(obs):
    """What a simple driver of CartPole does: 0 left, 1 right."""
    return (obs[..., 2] + 0.3 * obs[..., 3] > 0).astype(np.int64)


def driven(episodes=6, steps=50, memory=False, seed=0, **more):
    """Trajectories of `lean` on numbers that mean nothing."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(episodes):
        obs = rng.normal(size=(steps + 1, 4)).astype(np.float32)
        weight = np.ones(steps, np.float32)
        found.append(Trajectory(obs, lean(obs[:-1]), weight, True, **more))
    return found


MEMORY = {"memory_size": 16, "sequence_length": 16}
SMALL_SAC = partial(SACLightningAgent, actor_hidden_sizes=[32], critic_hidden_sizes=[8])


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [PPOLightningAgent, partial(RecurrentPPOAgent, **MEMORY), SMALL_SAC, partial(SMALL_SAC, **MEMORY)]
)
def test_pretraining_learns_a_rule(kind):
    torch.manual_seed(0)
    agent = kind(SEEN, Discrete(2))
    head = agent.critics.networks if isinstance(agent, SACLightningAgent) else agent.value_head
    critic = [p.clone() for p in head.parameters()]
    rows = pretrain(agent, driven(), CloneArgs(epochs=40, batch_size=32, learning_rate=3e-3, patience=40))
    assert rows[0]["validation_loss"] > 0.4 and min(row["validation_loss"] for row in rows) < 0.25
    unseen = to_batch(driven(2, seed=1), agent)
    assert imitation_loss(agent, unseen) < 0.3
    assert all(torch.equal(a, b) for a, b in zip(critic, head.parameters(), strict=True))


def test_statistics_of_observations_do_not_count_padded_steps():
    kinds = PPOLightningAgent, partial(RecurrentPPOAgent, **MEMORY)
    agents = [kind(SEEN, Discrete(2), normalize_obs=True) for kind in kinds]
    means = []
    for agent in agents:
        pretrain(agent, driven(steps=10), CloneArgs(epochs=1, batch_size=32))
        means.append(next(part for part in agent.modules() if isinstance(part, ObsNormalizer)).mean)
    torch.testing.assert_close(*means)


def test_it_ends_with_the_best_weights_when_it_gets_no_better():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    noise = [each._replace(action=rng.integers(0, 2, 30)) for each in driven(8, 30)]  # nothing can be learned
    agent, rows = PPOLightningAgent(SEEN, Discrete(2)), []
    found = pretrain(agent, noise, CloneArgs(epochs=60, validation=0.25, patience=4, batch_size=16), rows.append)
    assert found == rows and len(rows) < 60
    best = min(rows, key=lambda row: row["validation_loss"])
    assert len(rows) == best["epoch"] + 4
    draws = torch.Generator().manual_seed(stream_seed(0, "pretraining"))
    held = torch.randperm(8, generator=draws).tolist()[:2]
    assert imitation_loss(agent, to_batch([noise[i] for i in held], agent)) == pytest.approx(
        best["validation_loss"], abs=1e-6
    )


def test_whole_episodes_in_which_something_counts_are_held_back(monkeypatch):
    """Of both cars of an episode none is learned from; an episode of weight 0 judges nothing."""
    found, parts = [], []
    for number, each in enumerate(driven(20, 4)):
        each.obs[:] = number // 2
        found.append(each._replace(episode=f"a.frd:{number // 2}", weight=each.weight * (number // 2 != 4)))
    monkeypatch.setattr(cloning, "to_batch", lambda some, agent: parts.append(some) or to_batch(some, agent))
    for seed in range(8):
        parts.clear()
        rows = pretrain(PPOLightningAgent(SEEN, Discrete(2)), found, CloneArgs(epochs=1, seed=seed, validation=0.3))
        held, learned = ({int(each.obs[0, 0]) for each in part} for part in parts)
        assert len(held) == 3 and len(learned) == 6 and not held & learned and 4 not in held | learned
        assert rows[0]["validation_loss"] > 0


def test_weights_of_0_say_nothing():
    """Steps that are inferred, and those that fill up a sequence."""
    log_prob, weight = torch.tensor([-1.0, -3.0, -100.0]), torch.tensor([1.0, 0.5, 0.0])
    assert cloning_loss(log_prob, weight) == pytest.approx((1 + 1.5) / 1.5)
    assert cloning_loss(log_prob, torch.zeros(3)) == 0
    agent = RecurrentPPOAgent(SEEN, Discrete(2), memory_size=8, sequence_length=16)
    found = to_batch(driven(2, 20), agent)
    assert found.obs.shape == (16, 4, 4) and found.weight.sum() == 40 and found.size == 4
    other = found._replace(action=torch.where(found.weight > 0, found.action, 1 - found.action))
    assert imitation_loss(agent, found) == imitation_loss(agent, other)


def test_soft_labels_are_cross_entropy():
    agent = PPOLightningAgent(SEEN, Discrete(2))
    soft = np.tile(np.array([0.25, 0.75], np.float32), (50, 1))
    steps = to_batch(driven(2, soft=soft), agent)
    expected = -(steps.soft * agent.probabilities(steps.obs).detach().log()).sum(-1).mean()
    assert imitation_loss(agent, steps) == pytest.approx(float(expected), abs=1e-6)


def test_masked_actions_are_not_asked_for():
    agent = PPOLightningAgent(SEEN, Discrete(3))
    mask = np.tile(np.array([True, True, False]), (50, 1))
    steps = to_batch(driven(2, action_mask=mask), agent)
    agent.imitate(steps)[0].backward()
    assert agent.policy_head.layer.bias.grad[2] == 0 and agent.policy_head.layer.bias.grad[:2].abs().min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PPOLightningAgent, SMALL_SAC])
def test_continuous_actions_are_likely_afterwards(kind):
    torch.manual_seed(0)
    agent = kind(SEEN, Box(-1, 1, (2,), np.float32))
    trajectories = [each._replace(action=np.tanh(each.obs[:-1, :2])) for each in driven(8)]
    rows = pretrain(agent, trajectories, CloneArgs(epochs=60, batch_size=32, learning_rate=3e-3))
    assert rows[-1]["validation_loss"] < rows[0]["validation_loss"] - 1
    action = agent.act(torch.from_numpy(trajectories[0].obs[:-1]), deterministic=True).action
    assert (action.numpy() - trajectories[0].action).std() < 0.25


@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete([2, 3]), MultiBinary(4), Box(-1, 1, (3,), np.float32)])
def test_the_term_in_the_loss_is_the_mean_divergence(space):
    """With its gradient; a masked action is in neither policy."""
    torch.manual_seed(0)
    agent, teacher = PPOLightningAgent(SEEN, space), PPOLightningAgent(SEEN, space)
    with torch.no_grad():
        teacher.policy_head.layer.weight.mul_(100)
    obs = torch.randn(8, 4)
    mask = torch.tensor([True, True, False]).expand(8, 3) if isinstance(space, Discrete) else None
    out = agent.act(obs) if mask is None else agent.act(obs, action_mask=mask)
    given = {"log_prob": out.log_prob.detach(), "value": torch.zeros(8), "advantage": torch.zeros(8)}
    minibatch = Minibatch(obs, out.action, **given, returns=torch.zeros(8), action_mask=mask)
    plain, stats = agent.training_step(minibatch)
    agent.reference = Reference(teacher, Linear(2.0, 0.0))
    pulled, more = agent.training_step(minibatch)
    params = teacher.policy_params(obs), agent.policy_params(obs)
    if mask is not None:
        params = tuple(each[:, :2] for each in params)
        expected = kl_divergence(*(Categorical(logits=each) for each in params)).mean()
    else:
        expected = kl_divergence(*(agent.policy_head.distribution(each) for each in params)).mean()
    expected = expected.detach()
    assert more.keys() - stats.keys() == {"reference_kl"} and expected > 0.01
    assert float(more["reference_kl"]) == pytest.approx(float(expected), rel=1e-4)
    assert float((pulled - plain).detach()) == pytest.approx(2 * float(expected), rel=1e-4)
    pulled.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in agent.parameters())
    assert all(p.grad is None for p in teacher.parameters())


class Keep(Callback):
    def on_iteration_end(self, state):
        self.metrics = [*getattr(self, "metrics", []), dict(state.metrics)]

    def on_train_end(self, state):
        self.agent = state.agent


def trained(*callbacks, steps=512, agent=PPOLightningAgent, **more):
    keep = Keep()
    compiled = more.pop("compile", False)
    args = TrainArgs(total_timesteps=steps, num_steps=32, minibatch_size=64, update_epochs=2, compile=compiled)
    fabric = more.pop("fabric", None) or Fabric(accelerator="cpu", devices=1)
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(fabric, env, agent, args, callbacks=[*callbacks, keep], **more)
    return keep


def test_sacs_imitation_loss_is_the_likelihood_of_its_samples():
    torch.manual_seed(0)
    agent, obs = SMALL_SAC(SEEN, Box(np.float32([-2, 0]), np.float32([2, 9]))), torch.randn(64, 4)
    acted = agent.act(obs)
    inside = ((acted.action - agent.policy_head.centre) / agent.policy_head.reach).abs().amax(-1) < 0.98
    steps = to_batch(driven(2), agent)._replace(obs=obs, action=acted.action, weight=inside.float())
    expected = -acted.log_prob[inside].mean()
    assert inside.sum() > 30 and imitation_loss(agent, steps) == pytest.approx(float(expected.detach()), abs=1e-4)
    at_bounds = steps._replace(action=torch.tensor([2.0, 0.0]).expand(64, 2), weight=torch.ones(64))
    loss, _ = agent.imitate(at_bounds)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in agent.parameters() if p.requires_grad)
    assert not any(p.grad.any() for p in agent.critics.parameters()) and agent.policy_head.layer.weight.grad.any()


@pytest.mark.parametrize("teacher", [SMALL_SAC, PPOLightningAgent])
@pytest.mark.parametrize("space", [Discrete(3), Box(-1, 3, (2,), np.float32)])
def test_the_term_in_sacs_loss_pulls_only_the_policy(space, teacher):
    """The reference may also be an agent of PPO, whose policy has the same kind of distribution."""
    torch.manual_seed(0)
    squash = {"squash": True} if teacher is PPOLightningAgent and isinstance(space, Box) else {}
    agent, teacher = SMALL_SAC(SEEN, space), teacher(SEEN, space, **squash)
    obs, reward = torch.randn(2, 8, 4), torch.zeros(8)
    batch = Transitions(obs[0], agent.act(obs[0]).action, reward, obs[1], reward)

    def step():
        torch.manual_seed(1)
        agent.zero_grad()
        loss, stats = agent.training_step(batch)
        loss.backward()
        return loss.detach(), stats, {n: p.grad.clone() for n, p in agent.named_parameters() if p.requires_grad}

    plain, stats, before = step()
    kick = Kickstart("x", 2.0).take(SimpleNamespace(agent=lambda *_: teacher))
    env = SimpleNamespace(single_observation_space=SEEN, single_action_space=space)
    kick.on_train_start(SimpleNamespace(agent=agent, env=env, fabric=SimpleNamespace(device="cpu")))
    pulled, more, after = step()
    params = teacher.policy_params(obs[0]), agent.policy_params(obs[0])
    expected = kl_divergence(*(agent.policy_head.distribution(each) for each in params)).mean()
    assert more.keys() - stats.keys() == {"reference_kl"}
    torch.testing.assert_close(more["reference_kl"], expected.detach())
    torch.testing.assert_close(pulled - plain, 2 * expected.detach(), rtol=1e-3, atol=1e-5)
    policy = {name for name, p in agent.named_parameters() if name.startswith(("actor", "policy_head"))}
    assert {name for name in before if not torch.allclose(before[name], after[name])} == policy
    names = sorted(policy)
    weights = [dict(agent.named_parameters())[name] for name in names]
    for name, grad in zip(names, torch.autograd.grad(2 * expected, weights), strict=True):
        torch.testing.assert_close(after[name] - before[name], grad, rtol=1e-3, atol=1e-5)


def test_cloning_beside_sac_fades_and_imitates_a_minibatch_per_iteration(monkeypatch):
    passed, keep = [], Keep()
    monkeypatch.setattr(cloning, "train_epoch", lambda *given: passed.append(given[4]) or train_epoch(*given))
    part = Cloning(["x"], strength=2.0, steps=48).show(driven())
    env, args = partial(GymnasiumEnvs, "CartPole-v1", 4), TrainArgs(total_timesteps=64, batch_size=16)
    fabric = Fabric(accelerator="cpu", devices=1)
    train_off_policy(fabric, env, SMALL_SAC, args, callbacks=[part, keep], plain=True, sac=SACArgs(buffer_init_steps=8))
    assert [len(rows) for rows in passed] == [16] * 11  # one before the last of 48 steps, four a time
    rates = [row["cloning/learning_rate"] for row in keep.metrics[:11]]
    assert rates == pytest.approx([6e-4 * (1 - 4 * (number + 1) / 48) for number in range(11)])
    assert len(set(map(tuple, (rows.tolist() for rows in passed)))) == 11


def test_the_loss_of_an_epoch_is_the_mean_over_its_steps():
    """The last minibatch has 4 of 100 steps."""
    agent, fabric = PPOLightningAgent(SEEN, Discrete(2)), Fabric(accelerator="cpu", devices=1)
    model, optimizer = fabric.setup(agent, torch.optim.SGD(agent.parameters(), lr=0.0))
    model.mark_forward_method("imitate")
    steps = to_batch(driven(2), agent)
    steps = steps._replace(weight=torch.linspace(0, 1, 100), obs=steps.obs * torch.linspace(0, 9, 100)[:, None])
    loss = train_epoch(fabric, model, optimizer, steps, torch.arange(100), 32, 0.5)
    assert loss == pytest.approx(imitation_loss(agent, steps), rel=1e-5)


def test_cloning_beside_ppo_learns_and_ends(tmp_path):
    """After its last step it has no metrics, in whatever file."""
    loggers = [MetricsFile(tmp_path), CSVLogger(tmp_path, "csv"), TensorBoardLogger(tmp_path, "board")]
    cloning = Cloning(["x"], strength=1.0, steps=384, samples_per_update=128).show(driven())
    keep = trained(cloning, fabric=Fabric(accelerator="cpu", devices=1, loggers=loggers))
    assert ["cloning/loss" in row for row in keep.metrics] == [True, True, False, False]
    rates = [row["cloning/learning_rate"] for row in keep.metrics[:2]]
    assert rates == pytest.approx([1e-3 * share for share in (2 / 3, 1 / 3)])
    for file in (tmp_path / "metrics.csv", Path(loggers[1].log_dir, "metrics.csv")):
        rows = read_rows(file)
        assert [bool(row["cloning/learning_rate"]) for row in rows] == [True, True, False, False]
        assert all(row["ppo/loss"] for row in rows)
    events = EventAccumulator(loggers[2].log_dir).Reload()
    assert [event.step for event in events.Scalars("cloning/loss")] == [128, 256]
    assert keep.metrics[1]["cloning/loss"] < keep.metrics[0]["cloning/loss"] < 0.7
    probe = to_batch(driven(2, seed=1), keep.agent)
    assert imitation_loss(keep.agent, probe) < imitation_loss(trained().agent, probe) - 0.02


def test_fewer_samples_than_a_sequence_are_one_sequence(monkeypatch):
    passed = []
    monkeypatch.setattr(
        "fabric_rl.imitation.cloning.train_epoch", lambda *given: passed.append(len(given[4])) or train_epoch(*given)
    )
    cloning = Cloning(["x"], samples_per_update=8).show(driven())
    trained(cloning, steps=128, agent=partial(RecurrentPPOAgent, memory_size=8, sequence_length=16))
    assert passed == [1, 1]


def test_the_optimizer_of_another_agent_is_one_line():
    saved = Cloning(["x"]).show(driven())
    trained(saved, steps=128)
    state = saved.state_dict()
    state["optimizer"]["state"][0]["exp_avg"] = torch.zeros(3)
    again = Cloning(["x"]).show(driven())
    again.load_state_dict(state)
    with pytest.raises(ValueError, match=r"the optimizer of --cloning does not fit: .*exp_avg"):
        trained(again, steps=128)
    again.load_state_dict({"optimizer": {"nonsense": 1}})
    with pytest.raises(ValueError, match="the optimizer of --cloning does not fit"):
        trained(again, steps=128)


def reference(seed=5):
    torch.manual_seed(seed)
    agent = PPOLightningAgent(gymnasium.make("CartPole-v1").observation_space, Discrete(2))
    with torch.no_grad():
        agent.policy_head.layer.bias.copy_(torch.tensor([1.0, -1.0]))
    return SimpleNamespace(agent=lambda *spaces: agent)


def test_kickstarting_pulls_towards_the_reference():
    quick = partial(PPOLightningAgent, actor_lr=0.01)
    pulled = trained(Kickstart("x", 5.0).take(reference()), steps=1024, agent=quick)
    first, last = pulled.metrics[0]["ppo/reference_kl"], pulled.metrics[-1]["ppo/reference_kl"]
    assert first > 0.1 and last < first / 2
    free = trained(Kickstart("x", 0.0).take(reference()), steps=1024, agent=quick)
    assert free.metrics[-1]["ppo/reference_kl"] > last
    plain = trained(steps=1024, agent=quick)
    for name, p in plain.agent.named_parameters():
        assert torch.equal(p, dict(free.agent.named_parameters())[name])  # no weight of it is the agent's


@pytest.mark.parametrize(
    ("precision", "compiled"), [("bf16-mixed", False), pytest.param("bf16-mixed", True, marks=pytest.mark.slow)]
)
def test_both_learn_the_same_in_bfloat16_and_compiled(precision, compiled):
    def losses(precision, compiled):
        both = Cloning(["x"], samples_per_update=64).show(driven()), Kickstart("x", 0.5).take(reference())
        fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
        last = trained(*both, steps=256, fabric=fabric, compile=compiled).metrics[-1]
        return [last[name] for name in ("cloning/loss", "ppo/reference_kl")]

    assert losses(precision, compiled) == pytest.approx(losses("32-true", compiled), rel=0.01)


@pytest.mark.parametrize("what", ["cloning", "kickstart"])
def test_what_goes_on_is_the_same_to_the_bit(what, tmp_path):
    def callback(seed=5):
        if what == "cloning":
            return Cloning(["x"], samples_per_update=64, steps=1000).show(driven())
        return Kickstart("x", Linear(2.0, 0.0)).take(reference(seed))

    saved = {}

    class Save(Callback):
        def on_iteration_start(self, state):
            if state.iteration == 2:
                saved["hooks"] = [each.state_dict() for each in [part]]
                saved["weights"] = {k: v.clone() for k, v in state.agent.state_dict().items()}

    part = callback()
    trained(part, Save())
    again = callback(6)  # the run of the reference has gone on since
    again.load_state_dict(saved["hooks"][0])
    assert str(again.state_dict()) == str(saved["hooks"][0])
    if what == "kickstart":
        keep = trained(again, steps=128)
        kept = keep.agent.reference._agent.state_dict()
        assert all(torch.equal(kept[name], tensor) for name, tensor in saved["hooks"][0]["weights"].items())
        other = Kickstart("y", 2.0).take(reference(6))
        other.load_state_dict(saved["hooks"][0])
        kept = trained(other, steps=128).agent.reference._agent.state_dict()
        assert all(
            torch.equal(kept[name], tensor)
            for name, tensor in reference(6).agent(SEEN, Discrete(2)).state_dict().items()
        )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Kickstart("x", -1.0), "--kickstart.coef must be at least 0"),
        (lambda: trained(Cloning(["x"])), "cloning: there are no demonstrations"),
        (
            lambda: trained(
                Kickstart("x").take(SimpleNamespace(agent=lambda *_: RecurrentPPOAgent(SEEN, Discrete(2))))
            ),
            "kickstart.reference x: RecurrentPPOAgent cannot be a reference",
        ),
        (
            lambda: trained(
                Kickstart("x").take(SimpleNamespace(agent=lambda *_: PPOLightningAgent(SEEN, MultiBinary(2))))
            ),
            "kickstart.reference x: the distribution of its policy differs",
        ),
        (
            lambda: pretrain(PPOLightningAgent(SEEN, Discrete(2)), driven(1), CloneArgs()),
            "validation 0.1: 1 episodes with weighted steps are too few to hold back 1",
        ),
        (
            lambda: pretrain(
                PPOLightningAgent(SEEN, Discrete(2)), [x._replace(weight=x.weight * 0) for x in driven()], CloneArgs()
            ),
            "validation 0.1: 0 episodes with weighted steps",
        ),
    ],
)
def test_mistakes_are_one_line(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_squashed_reference_is_for_squashed_agents_alone():
    """What both call a mean is of another quantity."""
    build = partial(PPOLightningAgent, Box(-1, 1, (4,), np.float32), Box(-1, 1, (2,), np.float32))
    kickstart = Kickstart("x").take(SimpleNamespace(agent=lambda *_: build(squash=True)))
    env = SimpleNamespace(single_observation_space=SEEN, single_action_space=None)
    state = SimpleNamespace(agent=build(), env=env, fabric=SimpleNamespace(device="cpu"))
    with pytest.raises(ValueError, match=r"reference x: the distribution of its policy differs .*squash"):
        kickstart.on_train_start(state)
    state.agent = build(squash=True)
    kickstart.on_train_start(state)


def test_what_a_resumed_run_leaves_out_is_told(caplog):
    kickstart = Kickstart("x").take(reference())
    trained(kickstart, steps=128)
    saved = Hooks(SimpleNamespace(), [kickstart, Cloning(["x"]), Keep()]).state_dict()
    with caplog.at_level("INFO"):
        Hooks(SimpleNamespace(), [Cloning(["x"])]).load_state_dict(saved)
    assert [record.getMessage() for record in caplog.records] == [
        "Kickstart is in the checkpoint, but not in this run, which continues without it"
    ]


@pytest.mark.parametrize("part", [Cloning(["x"]).show(driven()), Kickstart("x")])
def test_agents_of_roles_are_told(part):
    space = Box(np.array([-1, 0], np.float32), np.array([1, 1], np.float32))
    agent = RolesAgent(space, Discrete(2), {name: PPOLightningAgent for name in ("a", "b")})
    said = "(cannot imitate; use a|does not support a reference; use a) PPO agent or SAC"
    with pytest.raises(TypeError, match=f"^--(cloning|kickstart): RolesAgent {said}"):
        part.on_train_start(SimpleNamespace(agent=agent))
    with pytest.raises(TypeError, match="--agent: RolesAgent cannot imitate"):
        pretrain(agent, driven(), CloneArgs())


def test_pixels_can_be_imitated():
    pixels = ConvPPOAgent(Box(0, 255, (84, 84, 3), np.uint8), Discrete(2), encoder="nature_cnn")
    obs = np.random.default_rng(0).integers(0, 255, (5, 84, 84, 3)).astype(np.uint8)
    steps = to_batch([Trajectory(obs, np.array([0, 1, 0, 1]), np.ones(4, np.float32), True)], pixels)
    assert np.isfinite(imitation_loss(pixels, steps))
