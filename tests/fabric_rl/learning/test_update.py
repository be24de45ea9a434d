"""learn(): accumulation, sequences, joined experience, and what follows the policy's change."""

import gymnasium
import pytest
import torch

from agents import PPOLightningAgent
from fabric_rl import Minibatch, TrainArgs, learn
from fabric_rl.learning.update import concat_batches, index_batch
from fabric_rl.schedules import KLAdaptive

SPACES = (gymnasium.spaces.Box(-1, 1, (4,)), gymnasium.spaces.Discrete(3))


class Reporting(torch.nn.Module):
    """One weight with gradient 1 a minibatch; reports `approx_kl` from a list, one number a minibatch."""

    algorithm = "ppo"

    def __init__(self, kls):
        super().__init__()
        self.weight, self.kls, self.seen = torch.nn.Parameter(torch.zeros(())), list(kls), []

    def training_step(self, minibatch):
        self.seen.append(minibatch)
        kl = torch.tensor(self.kls[len(self.seen) - 1]) if self.kls else torch.tensor(0.0)
        return self.weight + 0 * minibatch.advantage.sum(), {"approx_kl": kl}


def random_batch(steps=24, seed=0):
    generator = torch.Generator().manual_seed(seed)
    numbers = [torch.randn(steps, generator=generator) for _ in range(4)]
    actions = torch.randint(3, (steps,), generator=generator)
    return Minibatch(torch.rand(steps, 4, generator=generator), actions, -numbers[0].abs(), *numbers[1:])


def learned(fabric, batch, minibatch_size, **settings):
    """The weights of an agent after learning with plain gradient steps, and what learn() returned."""
    torch.manual_seed(0)
    agent = PPOLightningAgent(*SPACES, (8,), (8,), ortho_init=False)
    model, optimizer = fabric.setup(agent, torch.optim.SGD(agent.parameters(), lr=0.5))
    args = TrainArgs(**({"update_epochs": 2} | settings))
    stats = learn(fabric, model, optimizer, batch, args, minibatch_size, torch.Generator().manual_seed(1))
    return torch.cat([p.detach().flatten() for p in agent.parameters()]), stats


def test_accumulated_minibatches_are_one_step_of_the_whole_batch(fabric):
    batch = random_batch()
    whole, stats = learned(fabric, batch, 12)
    parts, part_stats = learned(fabric, batch, 4, batch_size=12)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)
    assert (learned(fabric, batch, 4)[0] - whole).abs().max() > 1e-3
    assert part_stats["ppo/grad_norm"] == pytest.approx(stats["ppo/grad_norm"], rel=1e-4)
    assert part_stats["ppo/entropy"] == pytest.approx(stats["ppo/entropy"], rel=1e-4)


def test_accumulation_leaves_out_what_makes_no_whole_step(fabric):
    model = Reporting([])
    args = TrainArgs(update_epochs=1, batch_size=8, max_grad_norm=0, normalize_advantages=False)
    learn(
        fabric,
        *fabric.setup(model, torch.optim.SGD(model.parameters(), lr=1.0)),
        random_batch(23),
        args,
        4,
        torch.Generator(),
    )
    assert len(model.seen) == 4  # two steps of two minibatches; 7 rows are left
    assert model.weight.item() == pytest.approx(-2)  # each the mean of two gradients of 1


@pytest.mark.parametrize(("settings", "first"), [({}, 0.01), ({"batch_size": 8}, 0.02)])
def test_the_first_divergence_is_that_before_the_first_optimizer_step(fabric, settings, first):
    model = Reporting([0.01, 0.03, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
    args = TrainArgs(update_epochs=2, max_grad_norm=0, **settings)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    stats = learn(fabric, *fabric.setup(model, optimizer), random_batch(16), args, 4, torch.Generator())
    assert stats["ppo/approx_kl_first"] == pytest.approx(first)
    assert stats["ppo/approx_kl"] == pytest.approx(5.04 / 8)


@pytest.mark.parametrize(("target", "epochs"), [(0.05, 3), (0.09, 4), (0.001, 1), (None, 4)])
def test_target_kl_ends_after_the_epoch_that_exceeds_it(fabric, target, epochs):
    model = Reporting([0.0, 0.02, 0.03, 0.05, 0.05, 0.07, 0.08, 0.08])  # means of the epochs: .01, .04, .06, .08
    args = TrainArgs(update_epochs=4, target_kl=target, max_grad_norm=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    stats = learn(fabric, *fabric.setup(model, optimizer), random_batch(8), args, 4, torch.Generator())
    assert stats["ppo/epochs"] == epochs
    assert len(model.seen) == 2 * epochs


def test_kl_adaptive_learning_rates(fabric):
    model = Reporting([0.05, 0.001, 0.001, 0.01])
    args = TrainArgs(update_epochs=4, max_grad_norm=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    adaptive = KLAdaptive(0.01, [1e-3])
    learn(fabric, *fabric.setup(model, optimizer), random_batch(4), args, 4, torch.Generator(), adaptive)
    # Epochs with 1e-3, then / 1.5, x 1.5, x 1.5.
    assert model.weight.item() == pytest.approx(-1e-3 * (1 + 1 / 1.5 + 1 + 1.5))
    assert adaptive.factor == pytest.approx(1.5)


def test_an_agent_that_reports_no_kl_cannot_follow_it(fabric, known_agent):
    agent = known_agent(None, None)
    with pytest.raises(ValueError, match=r"--target_kl .* statistic approx_kl"):
        learn(
            fabric, *fabric.setup(agent, agent.configure_optimizers()), random_batch(8), TrainArgs(target_kl=0.1), 4,
            torch.Generator(),
        )  # fmt: skip


def sequences(count=6, length=3):
    """Sequence s holds 10 s + t everywhere."""
    numbers = 10.0 * torch.arange(count) + torch.arange(float(length))[:, None]
    fields = (numbers[..., None], numbers.long(), numbers, numbers, numbers, numbers)
    state = 10.0 * torch.arange(count)[:, None]
    return Minibatch(*fields, state=state, episode_start=torch.zeros(length, count, dtype=torch.bool))


def test_sequences_stay_whole_and_with_their_memory(fabric):
    model = Reporting([])
    args = TrainArgs(update_epochs=2, normalize_advantages=False, max_grad_norm=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    learn(fabric, *fabric.setup(model, optimizer), sequences(), args, 6, torch.Generator())
    assert len(model.seen) == 6  # two sequences of three steps each, twice through all six
    for minibatch in model.seen:
        assert minibatch.obs.shape == (3, 2, 1)
        expected = minibatch.state[:, 0] + torch.arange(3.0)[:, None]
        for field in (minibatch.obs[..., 0], minibatch.action, minibatch.returns, minibatch.advantage):
            assert torch.equal(field.float(), expected)
    assert sorted(m.state[i, 0].item() for m in model.seen[:3] for i in (0, 1)) == [0, 10, 20, 30, 40, 50]


def test_advantages_of_sequences_are_normalised_per_minibatch(fabric):
    model = Reporting([])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    learn(fabric, *fabric.setup(model, optimizer), sequences(), TrainArgs(update_epochs=1), 6, torch.Generator())
    for minibatch in model.seen:
        raw = minibatch.returns
        torch.testing.assert_close(minibatch.advantage, (raw - raw.mean()) / raw.std(), rtol=1e-4, atol=1e-5)


def test_joined_experience():
    first, second = sequences(2), sequences(3)
    joined = concat_batches([first, second])
    assert joined.obs.shape == (3, 5, 1)
    assert joined.state[:, 0].tolist() == [0, 10, 0, 10, 20]
    assert joined.burn_in_obs is None
    assert index_batch(joined, torch.tensor([4, 0])).obs[..., 0].tolist() == [[20, 0], [21, 1], [22, 2]]
    flat = concat_batches([random_batch(4, 0), random_batch(6, 1)])
    assert torch.equal(flat.obs[4:], random_batch(6, 1).obs)
    assert flat.state is None
    taught = random_batch(4, 0)._replace(teacher_action=torch.zeros(4))  # the teacher has been switched off since
    assert concat_batches([taught, random_batch(6, 1)]).teacher_action is None


@pytest.mark.parametrize(
    ("settings", "length", "message"),
    [
        ({"minibatch_size": 6}, 4, "--minibatch_size 6 must be a multiple of --agent.sequence_length 4"),
        ({"minibatch_size": 6, "batch_size": 10}, 1, "--batch_size 10 must be a multiple of --minibatch_size 6"),
        (
            {"minibatch_size": 8, "batch_size": 96},
            1,
            "--batch_size 96 is larger than the rollout of one rank, 64 steps",
        ),
        ({"exp_buffer_size": 63}, 1, "--exp_buffer_size 63 is smaller than the rollout of one rank, 64 steps"),
        ({"minibatch_size": 65}, 1, "--minibatch_size 65 is larger than the rollout of one rank, 64 steps"),
    ],
)
def test_sizes_that_do_not_fit(settings, length, message):
    with pytest.raises(ValueError, match=message):
        TrainArgs(num_steps=16, **settings).minibatch_for(64, length)


def test_sizes_that_fit():
    assert TrainArgs(num_steps=16).minibatch_for(64, 16) == 16  # a sixteenth is 4, but a sequence is not cut
    assert TrainArgs(num_steps=16, batch_size=64, exp_buffer_size=130, minibatch_size=32).minibatch_for(64) == 32
    assert TrainArgs(num_steps=16, exp_buffer_size=130).rollouts_kept(64) == 2
    assert TrainArgs(num_steps=64, batch_size=2).minibatch_for(64) == 2
    for batch, sequence, expected in ((96, 1, 48), (1000, 1, 50), (96, 16, 48), (64, 1, 64), (62, 4, 62)):
        own = TrainArgs(num_steps=128, batch_size=batch)
        if batch % sequence:
            with pytest.raises(ValueError, match=r"must be a multiple of --agent\.sequence_length"):
                own.minibatch_for(1024, sequence)
        else:
            assert own.minibatch_for(1024, sequence) == expected
    with pytest.raises(ValueError, match="--batch_size 97 must be a multiple of --minibatch_size 64"):  # not of 1 step
        TrainArgs(num_steps=128, batch_size=97).minibatch_for(1024)


def test_groups_are_clipped_by_their_own_norms(fabric):
    """A critic with huge gradients takes nothing from the actor's step."""
    start, large = torch.zeros(2, 3), torch.tensor([[0.3, 0.0, 0.4], [300.0, 0.0, 400.0]])

    class TwoParts(torch.nn.Module):
        algorithm = "ppo"

        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ParameterList(list(start.clone()))

        def training_step(self, minibatch):
            loss = sum((part * slope).sum() for part, slope in zip(self.parts, large, strict=True))
            return loss + 0 * minibatch.advantage.sum(), {}

    def steps(**settings):
        bare = TwoParts()
        groups = [{"params": [part]} for part in bare.parts]
        model, optimizer = fabric.setup(bare, torch.optim.SGD(groups, lr=1.0))
        args = TrainArgs(update_epochs=1, **settings)
        stats = learn(fabric, model, optimizer, random_batch(8), args, 8, torch.Generator())
        return [part.detach().norm().item() for part in bare.parts], stats["ppo/grad_norm"]

    together, norm = steps(max_grad_norm=1.0)
    apart, norm_apart = steps(max_grad_norm=1.0, clip_groups=True)
    assert together == pytest.approx([1e-3, 1.0], rel=1e-3)
    assert apart == pytest.approx([0.5, 1.0], rel=1e-3)
    assert norm == pytest.approx(norm_apart, rel=1e-6) and norm == pytest.approx(500, rel=1e-3)
