"""The training loop: minibatches, schedules, stopping, failures, determinism and the summary."""

import importlib
import json
import math
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, RandomState, RocketSimPool
from fabric_rl import Callback, Minibatch, Run, TrainArgs, learn, load_checkpoint, train
from fabric_rl.base.seeding import stream_seed
from fabric_rl.learning.update import normalize_rows
from fabric_rl.types import NonFiniteError


class Recorder(Callback):
    """Keeps the metrics of every iteration and the last state; stops after `stop_after` iterations."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.metrics, self.weights, self.calls = [], [], []

    def on_train_start(self, state):
        self.calls.append("start")
        self.state = state
        if self.stop_after == 0:
            state.stop = True

    def on_iteration_end(self, state):
        self.calls.append(state.iteration)
        self.metrics.append(dict(state.metrics))
        self.weights.append({k: v.detach().clone() for k, v in state.agent.state_dict().items()})
        if state.iteration == self.stop_after:
            state.stop = True

    def on_train_end(self, state):
        self.calls.append("end")


def flat_batch(size):
    """Row i holds i in every column, apart by hundreds, so that a mix-up shows."""
    rows = torch.arange(float(size))
    return Minibatch(rows[:, None], rows.long() + 100, rows + 200, rows + 300, rows + 400, rows + 500)


def learn_with(fabric, known_agent, size, minibatch_size, seed=3, lrs=(0.1, 0.3), batch=None, **args):
    """Calls learn() on `KnownAgent`; returns the agent, and what learn() returned."""
    agent = known_agent(None, None, lrs)
    model, optimizer = fabric.setup(agent, agent.configure_optimizers())
    settings = TrainArgs(**({"normalize_advantages": False, "max_grad_norm": 0} | args))
    generator = torch.Generator().manual_seed(seed)
    return agent, learn(fabric, model, optimizer, batch or flat_batch(size), settings, minibatch_size, generator)


def test_minibatches_are_a_fresh_permutation_per_epoch_without_the_remainder(fabric, known_agent):
    agent, _ = learn_with(fabric, known_agent, size=11, minibatch_size=4, update_epochs=3)
    assert [len(minibatch.returns) for minibatch in agent.seen] == [4] * 6
    orders = [minibatch.obs[:, 0].long() for minibatch in agent.seen]
    epochs = [torch.cat(orders[2 * i : 2 * i + 2]).tolist() for i in range(3)]
    assert all(len(set(epoch)) == 8 and set(epoch) <= set(range(11)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert len({frozenset(epoch) for epoch in epochs}) == 3  # what is left out changes too
    assert all(epoch != sorted(epoch) for epoch in epochs)


def test_the_generator_decides_the_permutations(fabric, known_agent):
    same, again, other = (
        [m.obs for m in learn_with(fabric, known_agent, 8, 4, seed=seed, update_epochs=1)[0].seen] for seed in (1, 1, 2)
    )
    assert all(map(torch.equal, same, again))
    assert not all(map(torch.equal, same, other))


@pytest.mark.parametrize("normalize", [False, True])
def test_the_fields_of_a_minibatch_belong_together(fabric, known_agent, normalize):
    agent, _ = learn_with(fabric, known_agent, 10, 5, update_epochs=2, normalize_advantages=normalize)
    for minibatch in agent.seen:
        rows = minibatch.obs[:, 0]
        assert torch.equal(minibatch.action, rows.long() + 100)
        assert torch.equal(minibatch.log_prob, rows + 200)
        assert torch.equal(minibatch.value, rows + 300)
        assert torch.equal(minibatch.returns, rows + 500)
        expected = (rows - rows.mean()) / (rows.std() + 1e-8) if normalize else rows + 400
        torch.testing.assert_close(minibatch.advantage, expected)


def test_every_minibatch_is_one_step_of_its_own_gradient(fabric, known_agent):
    agent, losses = learn_with(fabric, known_agent, 8, 4, update_epochs=3, lrs=(0.1, 0.3))
    assert [w.item() for w in agent.weights] == pytest.approx([-0.6, -1.8])  # 6 steps of gradient 1
    assert losses["ppo/value_loss"] == pytest.approx(503.5)  # mean over the minibatches
    assert losses["ppo/loss"] == pytest.approx(-0.4 * 2.5)  # 0, -0.4, ... -2.0


def test_the_gradient_is_clipped_by_its_norm(fabric, known_agent):
    # The gradient is (1, 1), its norm sqrt 2; clipped to 0.5 each part is 0.5 / sqrt 2.
    agent, losses = learn_with(fabric, known_agent, 4, 4, update_epochs=1, lrs=(1.0, 1.0), max_grad_norm=0.5)
    assert [w.item() for w in agent.weights] == pytest.approx([-0.5 / math.sqrt(2)] * 2, rel=1e-4)
    assert losses["ppo/grad_norm"] == pytest.approx(math.sqrt(2))


def test_normalize_rows_is_torchs_mean_and_unbiased_deviation(fabric):
    rows = torch.randn(5, 64, generator=torch.Generator().manual_seed(1)) * 3 + 1000
    wide = rows.double()
    expected = (wide - wide.mean(1, keepdim=True)) / (wide.std(1, keepdim=True) + 1e-8)
    found = normalize_rows(fabric, rows)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    assert normalize_rows(fabric, torch.tensor([[1.0, 3.0]])).tolist() == [
        pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])
    ]


def test_normalize_rows_leaves_a_single_sample_and_survives_equal_ones(fabric):
    assert normalize_rows(fabric, torch.tensor([[7.0], [9.0]])).tolist() == [[7.0], [9.0]]
    # Rounding makes the variance of this many equal numbers a little negative.
    assert normalize_rows(fabric, torch.full((1, 107), 0.7)).abs().max() < 1e-3


def test_minibatch_size():
    assert TrainArgs().minibatch_for(320) == 20
    assert TrainArgs().minibatch_for(5) == 1
    assert TrainArgs(minibatch_size=320).minibatch_for(320) == 320
    message = r"--minibatch_size 321 .* 320 steps \(--num_steps 32 x 10 sub-environments\)"
    with pytest.raises(ValueError, match=message):
        TrainArgs(minibatch_size=321, num_steps=32).minibatch_for(320)


# ---------------------------------------------------------------------------------------------------- the whole loop


@pytest.fixture
def train_known(fabric, counter_env, known_agent, tmp_path):
    """Runs train() on CounterEnv and KnownAgent: 15 agent-steps per iteration; returns the summary and a recorder."""

    def call(env=None, agent=known_agent, stop_after=None, recorder=None, **settings):
        recorder = recorder or Recorder(stop_after)
        args = TrainArgs(**({"num_steps": 5, "update_epochs": 1, "minibatch_size": 15} | settings))
        run = Run.create(tmp_path, "known")
        return train(fabric, env or counter_env, agent, args, run, [recorder], plain=True), recorder

    return call


HALF = math.sqrt(0.5)


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ("linear", [1, 0.75, 0.5, 0.25]),
        ("constant", [1, 1, 1, 1]),
        ("cosine", [1, (1 + HALF) / 2, 0.5, (1 - HALF) / 2]),
    ],
)
def test_learning_rates_of_all_groups_follow_the_schedule(train_known, schedule, factors):
    settings = {"total_timesteps": 60, "lr_schedule": schedule, "max_grad_norm": 0}
    _, recorder = train_known(**settings)
    assert [m["ppo/learning_rate"] for m in recorder.metrics] == pytest.approx([0.1 * f for f in factors])
    for group, lr in enumerate((0.1, 0.3)):  # gradient 1: the weights add up the learning rates
        weights = [w[f"weights.{group}"].item() for w in recorder.weights]
        assert weights == pytest.approx([-lr * sum(factors[: i + 1]) for i in range(4)])


def test_update_magnitude_is_the_distance_the_weights_moved(train_known):
    _, recorder = train_known(total_timesteps=30, lr_schedule="constant", max_grad_norm=0)
    magnitudes = [m["ppo/update_magnitude"] for m in recorder.metrics]
    assert magnitudes == pytest.approx([math.hypot(0.1, 0.3)] * 2)


def test_every_part_of_the_agent_has_an_update_magnitude(train_known):
    _, recorder = train_known(agent=PPOLightningAgent, total_timesteps=30, lr_schedule="constant")
    old, new = recorder.weights
    metrics = recorder.metrics[1]
    for part in ("actor", "critic", "policy_head", "value_head"):
        moved = sum(float((new[name] - old[name]).square().sum()) for name in new if name.startswith(part))
        assert metrics[f"ppo/update_magnitude_{part}"] == pytest.approx(math.sqrt(moved), rel=1e-4)
        assert moved > 0


@pytest.mark.parametrize(("total", "iterations"), [(30, 2), (31, 3), (1, 1)])
def test_the_last_rollout_is_finished(train_known, total, iterations):
    summary, recorder = train_known(total_timesteps=total)
    assert (summary["iterations"], summary["total_steps"]) == (iterations, 15 * iterations)
    assert recorder.calls == ["start", *range(1, iterations + 1), "end"]
    assert recorder.state.steps == 15 * iterations


def test_the_environment_is_seeded_once_and_closed(train_known, counter_env):
    made = []

    def factory(seed):
        made.append(counter_env(seed=seed))
        return made[-1]

    train_known(env=factory, total_timesteps=30, seed=17)
    assert len(made) == 1
    assert made[0].seeds == [stream_seed(17, "environments")] * 2  # for the trial, and for training
    assert made[0].closed_by_train


@pytest.mark.parametrize(
    ("scheme", "new"), [(2, stream_seed(17, "new episodes", 2)), (None, 17 + 2 * 1_000_003)], ids=["today", "version 1"]
)
def test_new_episodes_of_a_resumed_run_have_seeds_of_its_scheme(
    fabric, counter_env, known_agent, train_known, tmp_path, scheme, new
):
    """For environments that cannot be saved; checkpoints of version 1 name no scheme."""
    train_known(total_timesteps=30, seed=17)
    _, saved = load_checkpoint(tmp_path / "known")
    assert saved.pop("seed_scheme") == 2
    made, args = [], TrainArgs(num_steps=5, update_epochs=1, minibatch_size=15, total_timesteps=45, seed=17)

    def factory(seed):
        made.append(counter_env(seed=seed))
        return made[-1]

    resume = saved | ({} if scheme is None else {"seed_scheme": scheme})
    train(fabric, factory, known_agent, args, resume=resume)
    assert made[0].seeds[2:] == [new]


@pytest.mark.parametrize(("stop_after", "iterations"), [(0, 1), (2, 2), (4, 4)])
def test_a_callback_stops_the_run(train_known, tmp_path, stop_after, iterations):
    summary, recorder = train_known(total_timesteps=60, stop_after=stop_after)
    assert summary["iterations"] == iterations
    assert summary["stopped_early"] == (iterations < 4)
    assert recorder.calls[-1] == "end"
    assert load_checkpoint(tmp_path / "known")[1]["iteration"] == iterations


def test_summary(train_known, tmp_path):
    summary, recorder = train_known(total_timesteps=31)
    assert json.loads((tmp_path / "known/summary.json").read_text()) == summary
    assert summary["run_id"] == "known"
    assert summary["world_size"] == 1
    assert summary["stopped_early"] is False
    assert summary["checkpoint"] == str(tmp_path / "known/checkpoints/step_000000000045.ckpt")
    assert "touches_per_minute" not in summary
    assert summary["mean_return"] == recorder.metrics[-1]["reward/episode_return"]  # the last tenth of three rows
    # Returns of all episodes that ended in 15 steps: see test_collect; five times 6, seven times 3, three times 10.
    assert summary["mean_return_last_20"] == pytest.approx((5 * 6 + 7 * 3 + 3 * 10) / 15)
    assert 0 < summary["overall_steps_per_second"] <= summary["total_steps"] / summary["wall_seconds"] * 1.001
    for kind in ("collected", "consumed"):
        assert summary[f"{kind}_steps_per_second"] > summary["overall_steps_per_second"]
    assert {"reward/episode_return", "reward/step", "speed/overall_steps_per_second"} <= set(recorder.metrics[0])


def test_the_speed_of_an_iteration_is_its_own(train_known):
    """The iterations follow one another, so that the seconds that they took are together no more than the run's."""
    summary, recorder = train_known(total_timesteps=60)
    took = [15 / metrics["speed/overall_steps_per_second"] for metrics in recorder.metrics]
    assert len(took) == 4 and 0 < sum(took) <= summary["wall_seconds"] * 1.001


def test_mean_return_is_none_before_any_episode_ended(train_known, counter_env):
    env = partial(counter_env, terminate_after=(99,) * 3, truncate_after=(99,) * 3)
    assert train_known(env=env, total_timesteps=15)[0]["mean_return"] is None


def test_the_rollouts_that_are_kept_stay_as_they_were(train_known):
    """The buffers are filled again in the second iteration, which learns from both rollouts; see test_collect."""
    _, recorder = train_known(total_timesteps=30, exp_buffer_size=30)
    seen = [minibatch.obs[:, 0].sort().values.tolist() for minibatch in recorder.state.agent.seen[-3:]]
    first = [0, 1, 2, 100, 101, 1000, 1001, 1100, 1101, 1200, 2000, 2001, 2002, 2003, 2100]
    second = [102, 200, 201, 202, 300, 1201, 1300, 1301, 1400, 1401, 2101, 2102, 2103, 2200, 2201]
    assert seen[0] == first
    assert sorted(seen[1] + seen[2]) == sorted(first + second)


def test_checkpoint_holds_the_weights_and_the_counters(train_known, tmp_path):
    _, recorder = train_known(total_timesteps=30)
    path, checkpoint = load_checkpoint(tmp_path / "known")
    assert torch.load(path, weights_only=True).keys() == checkpoint.keys() | {"checkpoint_format"}
    assert {name: w.item() for name, w in checkpoint["agent"].items()} == {
        name: w.item() for name, w in recorder.weights[-1].items()
    }
    assert (checkpoint["iteration"], checkpoint["steps"]) == (2, 30)
    assert len(checkpoint["optimizer"]["param_groups"]) == 2


def test_explained_variance(train_known):
    # With gamma 0 the returns are the rewards. The values are the observed numbers, see test_collect.
    _, recorder = train_known(total_timesteps=15, gamma=0.0)
    values = np.array([0, 1, 2, 100, 101, 1000, 1001, 1100, 1101, 1200, 2000, 2001, 2002, 2003, 2100], float)
    rewards = values % 5 + 1
    expected = 1 - np.var(rewards - values) / np.var(rewards)
    assert expected < -1000
    assert recorder.metrics[0]["ppo/explained_variance"] == pytest.approx(expected, rel=1e-4)
    assert recorder.metrics[0]["reward/step"] == pytest.approx(rewards.mean())


def test_explained_variance_of_a_perfect_critic_and_of_constant_returns(train_known, counter_env, tmp_path):
    class Perfect(counter_env):
        """Pays what the agent's value function says."""

        def step(self, actions):
            paid = self.observe()[:, 0]
            obs, _, *rest = super().step(actions)
            return obs, paid, *rest

    class Constant(counter_env):
        def step(self, actions):
            obs, _, *rest = super().step(actions)
            return obs, np.ones(3), *rest

    for env, expected in ((Perfect, 1.0), (Constant, 0.0)):
        recorder = train_known(env=env, total_timesteps=15, gamma=0.0)[1]
        assert recorder.metrics[0]["ppo/explained_variance"] == pytest.approx(expected)
        (tmp_path / "known").rename(tmp_path / env.__name__)


# 1,000 sub-environments x 25 steps: START_STEPS are two iterations, END_STEPS eight. Short runs: a tenth of the rows.
@pytest.mark.parametrize(
    ("iterations", "at_start", "at_end"), [(12, (1, 2), range(5, 13)), (1, (1,), (1,)), (8, (1,), (8,))]
)
def test_touches_at_the_start_and_at_the_end(train_known, counter_env, iterations, at_start, at_end):
    class Touching(counter_env):
        """Iteration i counts 10 i touches in 2 minutes."""

        def __init__(self, seed):
            super().__init__((99,) * 1000, (99,) * 1000)
            self.headlines = {"game/touches_per_minute": "touches/min", "game/goals_per_minute": "goals/min"}

        def reset(self, *, seed=None, options=None):
            self.drained = 0
            return super().reset(seed=seed, options=options)

        def drain_metrics(self):
            self.drained += 1
            return {"game/touches_per_minute": (10.0 * self.drained, 2.0), "game/goals_per_minute": (0.0, 2.0)}

    settings = {"num_steps": 25, "minibatch_size": 25_000, "total_timesteps": 25_000 * iterations}
    summary, recorder = train_known(env=Touching, **settings)

    def rate(numbers):
        return sum(5 * i for i in numbers) / len(numbers)

    assert summary["touches_per_minute"] == pytest.approx({"start": rate(at_start), "end": rate(at_end)})
    assert summary["goals_per_minute"] == {"start": 0, "end": 0}
    assert recorder.metrics[-1]["game/touches_per_minute"] == pytest.approx(5 * iterations)


# -------------------------------------------------------------------------------------------------- what does not fit


def test_a_minibatch_larger_than_the_rollout_is_refused_before_anything_is_collected(train_known):
    with pytest.raises(ValueError, match=r"minibatch_size 16 is larger than .* 15 steps .* x 3 sub-environments"):
        train_known(minibatch_size=16)


def test_an_environment_with_another_autoreset_is_refused(train_known, counter_env):
    with pytest.raises(ValueError, match="SAME_STEP"):
        train_known(env=partial(counter_env, autoreset_mode=AutoresetMode.NEXT_STEP))


def test_an_agent_that_is_no_actor_critic_is_refused(train_known):
    with pytest.raises(TypeError, match=r"agent Linear is not a .*ActorCritic"):
        train_known(agent=lambda observation_space, action_space: torch.nn.Linear(2, 2))


def test_an_environment_that_is_no_vector_is_refused(train_known):
    with pytest.raises(TypeError, match=r"env \w+ is not a gymnasium.vector.VectorEnv"):
        train_known(env=lambda seed: gymnasium.make("CartPole-v1"))


def test_several_optimizers_are_refused(train_known, known_agent):
    class Two(known_agent):
        def configure_optimizers(self):
            return [super().configure_optimizers()] * 2

    with pytest.raises(TypeError, match=r"agent Two.configure_optimizers\(\) must return one torch optimizer"):
        train_known(agent=Two)


def test_a_malformed_reward_is_refused_before_anything_is_collected(train_known, counter_env):
    recorder = Recorder()
    with pytest.raises(ValueError, match=r"CounterEnv.step\(\): the rewards must be finite, got nan"):
        train_known(env=partial(counter_env, broken=("reward", 0, 1, math.nan)), recorder=recorder)
    assert recorder.calls == []


# ----------------------------------------------------------------------------------------------------- NaN and infinity


def load_evidence(tmp_path):
    return torch.load(tmp_path / "known/nonfinite-rank0.pt", weights_only=True)


def spoiled(known_agent, at_call, what):
    """KnownAgent of which one training step yields NaN: its loss, a figure, or only its gradient."""

    class Spoiled(known_agent):
        def training_step(self, minibatch):
            loss, stats = super().training_step(minibatch)
            if len(self.seen) == at_call:
                if what == "loss":
                    loss = loss * math.nan
                elif what == "value_loss":
                    stats["value_loss"] = torch.tensor(math.inf)
                else:
                    loss = loss + (self.weights[0] - self.weights[0].detach()).sqrt()  # 0, with an infinite gradient
            return loss, stats

    return Spoiled


# 3 minibatches x 2 epochs an iteration: call 11 is the second minibatch of epoch 2 of iteration 2.
@pytest.mark.parametrize(
    ("what", "call", "message"),
    [
        ("loss", 11, "the training step's loss became nan in epoch 2, minibatch 2 of 3"),
        ("value_loss", 9, "the training step's value_loss became inf in epoch 1, minibatch 3 of 3"),
        ("grad_norm", 10, "the training step's grad_norm became inf in epoch 2, minibatch 1 of 3"),
    ],
)
def test_a_non_finite_loss_is_named_and_the_weights_before_it_are_saved(
    train_known, known_agent, tmp_path, what, call, message
):
    agent, recorder = spoiled(known_agent, call, what), Recorder()
    settings = {"total_timesteps": 30, "update_epochs": 2, "minibatch_size": 5}
    with pytest.raises(NonFiniteError, match=message) as caught:
        train_known(agent=agent, recorder=recorder, **settings)
    assert str(tmp_path / "known/nonfinite-rank0.pt") in str(caught.value)

    evidence = load_evidence(tmp_path)
    (before,) = recorder.weights
    assert evidence["weights_before"].keys() == before.keys()
    assert all(torch.equal(evidence["weights_before"][name], before[name]) for name in before)
    known_agent(None, None).load_state_dict(evidence["weights_before"])
    assert message in evidence["message"]
    assert evidence["rollout"]["obs"][0, :, 0].tolist() == [102, 1201, 2101]  # the second rollout
    assert not (tmp_path / "known/summary.json").exists()


def test_weights_that_become_nan_in_the_last_minibatch_are_noticed(train_known, known_agent):
    """Without clipping no gradient norm tells of it, and no later loss."""
    agent = spoiled(known_agent, 12, "gradient")
    with pytest.raises(NonFiniteError, match=r"the weights became (nan|inf) in the last minibatch"):
        train_known(agent=agent, total_timesteps=30, update_epochs=2, minibatch_size=5, max_grad_norm=0)


@pytest.mark.parametrize("what", ["obs", "reward"])
def test_a_non_finite_environment_stops_the_run_and_the_rollout_is_saved(train_known, counter_env, tmp_path, what):
    env = partial(counter_env, broken=(what, 7, 1, math.nan))
    with pytest.raises(NonFiniteError, match=r"that is nan: sub-environment 1.*, rollout step 2"):
        train_known(env=env, total_timesteps=60)
    evidence = load_evidence(tmp_path)
    assert evidence["rollout"]["obs"][:3, :, 0].tolist() == [[102, 1201, 2101], [200, 1300, 2102], [201, 1301, 2103]]
    assert [w.item() for w in evidence["weights_before"].values()] != [0, 0]  # the first iteration has learned


def test_an_environment_that_checks_for_itself_stops_the_run_in_the_same_way(train_known, counter_env, tmp_path):
    class Checking(counter_env):
        def step(self, actions):
            if self.steps == 7:
                raise FloatingPointError("MyReward: nan in the rewards of arena 1")
            return super().step(actions)

    with pytest.raises(
        NonFiniteError, match=r"^MyReward: nan in the rewards of arena 1\. The rollout and the weights before"
    ):
        train_known(env=Checking, total_timesteps=60)
    assert load_evidence(tmp_path)["rollout"]["obs"][0, :, 0].tolist() == [102, 1201, 2101]


# -------------------------------------------------------------------------------------------------------- determinism


def weights_after(fabric, env, seed, steps):
    class Last(Callback):
        def on_train_end(self, state):
            self.weights = torch.cat([p.detach().flatten().clone() for p in state.agent.parameters()])

    last = Last()
    agent = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,))
    args = TrainArgs(total_timesteps=steps, num_steps=16, update_epochs=2, minibatch_size=32, seed=seed)
    train(fabric, env, agent, args, callbacks=[last], plain=True)
    return last.weights


def test_the_seed_decides_everything(fabric):
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    first = weights_after(fabric, env, 1, 128)
    torch.rand(3)  # what other code drew before must not matter
    np.random.rand(3)
    assert torch.equal(first, weights_after(fabric, env, 1, 128))
    assert not torch.equal(first, weights_after(fabric, env, 2, 128))


def test_the_trial_before_training_leaves_no_trace(fabric, monkeypatch):
    env = partial(RocketSimPool, 4, state_setter=RandomState(), num_threads=1)
    tried = weights_after(fabric, env, 3, 512)
    calls = []
    loop = importlib.import_module("fabric_rl.session.build")
    for name in ("dry_run_parts", "dry_run_saving"):
        monkeypatch.setattr(loop, name, lambda *args: calls.append(args))
    assert torch.equal(weights_after(fabric, env, 3, 512), tried)
    assert len(calls) == 2


def test_the_number_of_threads_does_not_matter(fabric):
    one, two = (weights_after(fabric, partial(RocketSimPool, 8, num_threads=threads), 5, 512) for threads in (1, 2))
    assert torch.equal(one, two)


def test_first_weights_do_not_depend_on_torchs_threads(fabric):
    """Orthogonal ones are the result of a decomposition, which rounds by the number of threads."""
    env, found = partial(RocketSimPool, 2, num_threads=1), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(weights_after(fabric, env, 3, 64))
    torch.set_num_threads(1)
    assert torch.equal(*found)
