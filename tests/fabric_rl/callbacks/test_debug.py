"""Debug: figures worked out by hand, real runs with every kind of environment, and nothing changed by looking."""

import csv
import math
from functools import partial

import numpy as np
import pytest
import torch

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, HybridTable, ProcessPool, RocketSimPool
from fabric_rl import History, Run, Saving, TrainArgs, TrainState, load_checkpoint, train
from fabric_rl.callbacks import Debug
from fabric_rl.callbacks.debug import DebugActions, DebugLearning, WarningSigns, action_metrics, batch_metrics
from fabric_rl.metrics.log import BufferedLog
from fabric_rl.types import Minibatch

POOL = partial(RocketSimPool, 2, num_threads=1)
CARTPOLE = partial(GymnasiumEnvs, "CartPole-v1", 2)


def played(fabric, env, callbacks, run=None, iterations=2, agent=PPOLightningAgent, **more):
    args = TrainArgs(total_timesteps=iterations * 16 * 4, num_steps=16, update_epochs=1, minibatch_size=16)
    saving = Saving(checkpoint_every_timesteps=64, milestone_interval=64)
    return train(fabric, env, agent, args, run, callbacks, plain=True, saving=saving, **more)


def batch(actions, returns=(0.0,), values=(0.0,), advantages=(0.0,)):
    vectors = [torch.tensor(column, dtype=torch.float32) for column in (values, advantages, returns)]
    return Minibatch(torch.zeros(len(actions), 1), torch.tensor(actions), torch.zeros(len(actions)), *vectors)


# ---------------------------------------------------------------- figures


def test_action_metrics_by_hand():
    found = action_metrics(np.array([3, 1, 0, 0]), np.array([5, 1, 0, 2]))
    assert found["debug/action_entropy"] == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert (found["debug/actions_unused"], found["debug/actions_never_used"]) == (2, 1)
    assert found["debug/top_action_share"] == 0.75


def test_batch_metrics_by_hand():
    returns = list(range(20))
    values = [0.0] * 18 + [15.0, 15.0]
    found = batch_metrics(batch([0] * 20, returns[::-1], values[::-1], [1.0, -3.0]))
    assert (found["debug/advantage_mean"], found["debug/advantage_std"], found["debug/advantage_max"]) == (-1, 2, 3)
    assert found["debug/value_error_decile_1"] == pytest.approx(math.sqrt(0.5))  # returns 0 and 1, values 0
    assert found["debug/value_error_decile_2"] == pytest.approx(math.sqrt((4 + 9) / 2))
    assert found["debug/value_error_decile_10"] == pytest.approx(math.sqrt((9 + 16) / 2))  # 18 and 19, values 15


def test_value_heads_are_added_up():
    heads = batch([0, 0], [[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [3.0, 4.0]], [1.0, 2.0])
    assert batch_metrics(heads)["debug/value_error_decile_1"] == pytest.approx(1)


def test_signs_are_told_when_they_appear():
    signs = WarningSigns()
    healthy = {"ppo/entropy": 4.0, "ppo/approx_kl": 0.01, "ppo/explained_variance": 0.5}
    assert signs.new(healthy) == []
    (said,) = signs.new(healthy | {"ppo/entropy": 0.07})
    assert said.startswith("entropy collapsed to 0.07 from 4")
    assert signs.new(healthy | {"ppo/entropy": 0.06}) == []  # told already
    assert signs.new(healthy | {"ppo/entropy": 0.09}) == []
    assert len(signs.new(healthy | {"ppo/entropy": 0.07})) == 1  # it was gone
    (said,) = signs.new(healthy | {"ppo/approx_kl": 0.11})
    assert "KL of 0.11 in one iteration (usually 0.01)" in said
    (said,) = signs.new(healthy | {"debug/advantage_std": 0.0})
    assert said.startswith("all advantages are equal")
    (said,) = signs.new(healthy | {"debug/grad_zero_share": 0.96})
    assert said.startswith("96.0% of the gradients are zero")
    (said,) = signs.new(healthy | {"ppo/loss": math.nan, "a": math.inf})
    assert said == "NaN or infinity in a, ppo/loss"
    told = [signs.new(healthy | {"ppo/explained_variance": -0.1}) for _ in range(12)]
    assert [len(lines) for lines in told] == [0] * 9 + [1, 0, 0]


def test_a_sign_that_returns_is_told_again(fabric, recwarn):
    part = DebugLearning()
    state = TrainState(fabric, None, None, TrainArgs(total_timesteps=100))
    for _ in range(2):
        part.warn(state, "all advantages are equal", again=True)
    assert [str(each.message) for each in recwarn] == ["debug learning: all advantages are equal"] * 2


def test_gradients_are_those_of_the_backward_passes(fabric, counter_env, known_agent):
    history = History()
    debug = DebugLearning()

    class Late(History):  # after Debug, since it sees the metrics at the same moment
        pass

    seen = Late()
    args = TrainArgs(total_timesteps=48, num_steps=8, minibatch_size=8, update_epochs=2)
    train(fabric, lambda seed: counter_env(seed=seed), known_agent, args, callbacks=[history, debug, seen], plain=True)
    assert seen.rows[0]["debug/grad_norm_weights"] == pytest.approx(math.sqrt(2))  # two weights with gradient 1
    assert seen.rows[-1]["debug/grad_norm_weights"] == pytest.approx(math.sqrt(2))  # of one iteration, not of all
    assert seen.rows[0]["debug/grad_zero_share"] == 0
    assert not debug._handles


class HalfDead(PPOLightningAgent):
    """An actor whose first layer never lets anything through."""

    def __init__(self, *spaces):
        super().__init__(*spaces, activation=torch.nn.ReLU)
        torch.nn.init.constant_(self.actor[0].bias, -1e6)


def test_dead_units_and_logits(fabric):
    seen = History()
    played(fabric, CARTPOLE, [DebugLearning(), seen], agent=HalfDead, iterations=1)
    row = seen.rows[0]
    assert 0.5 <= row["debug/relu_dead_share"] < 0.75  # all of the actor's, hardly any of the critic's
    assert row["debug/grad_zero_share"] > 0.3
    assert row["debug/max_logit"] == pytest.approx(0, abs=0.1)  # nothing but the head's bias, which is 0 at first
    assert "debug/tanh_saturated_share" not in row


@pytest.mark.slow
def test_looking_changes_nothing(fabric, tmp_path):
    debug = Debug(everything=True, folder=str(tmp_path))
    for name, callbacks in (("with", [debug]), ("without", [])):
        played(fabric, POOL, callbacks, Run.create(tmp_path, name))
    with (tmp_path / "resets.csv").open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == ["ball", "blue", "orange"] * 2
    weights = [load_checkpoint(tmp_path / name)[1]["agent"] for name in ("with", "without")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])


# ---------------------------------------------------------------- runs


@pytest.mark.slow
def test_a_run_tells_everything(fabric, tmp_path, capsys):
    run, history = Run.create(tmp_path, "bots"), History()
    debug = Debug(everything=True, every_iterations=1, episodes=2)
    with BufferedLog() as log:
        log.open(run.dir / "log.txt")
        played(fabric, partial(POOL, action=HybridTable()), [debug, history], run)
    said = capsys.readouterr().out
    for text in (
        "debug topics: actions, learning, checkpoints, resets, probe; rank 0 of 1",
        "debug actions: HybridTable: 128 rows",
        "debug actions: steer  values: -1 -0.5 0 0.5 1",
        "debug actions: left and right balanced: yes",
        "debug actions: all-zero row (fallback): 0",
        "debug resets: first states of 2 episodes",
        "debug probe: after 0 steps",
        "debug probe: after 128 steps",
        " of 16 cars that lay on their roofs stood up within 3 s",
        "boost 33..33",
        "grad_norm_actor ",
        "advantage_mean ",
        "debug actions: most used ",
        "MB, 64 steps, iteration 1, world size 1, with the environment's state, resumes bit-identically",
        "milestone ",
        "action table HybridTable",
    ):
        assert text in said, text
    assert (run.dir / "log.txt").read_text(encoding="utf-8").count("debug checkpoints: checkpoint ") == 2
    with (run.dir / "resets.csv").open(newline="") as file:
        assert [row["what"] for row in csv.DictReader(file)] == ["ball", "blue", "orange"] * 2
    expected = {"debug/grad_norm_actor", "debug/max_logit", "action/fallback_share"}
    expected |= {"debug/advantage_std", "debug/value_error_decile_10", "debug/action_entropy"}
    assert expected <= history.rows[0].keys()

    _, saved = load_checkpoint(run.dir / "checkpoints/step_000000000064.ckpt")
    played(fabric, partial(POOL, action=HybridTable()), [debug], Run.create(tmp_path, "more"), resume=saved)
    assert "resumed at 64 of 128 steps, iteration 1: weights, optimizer, counters" in capsys.readouterr().out


def processes(seed):
    return ProcessPool(partial(RocketSimPool, 2, num_threads=1), num_workers=2, seed=seed)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            CARTPOLE,
            [
                "no action table: GymnasiumEnvs cannot be inspected; see python -m envs.actions",
                "no initial states: GymnasiumEnvs cannot",
                "debug probe: GymnasiumEnvs has no test of its own",
            ],
        ),
        (
            processes,
            [
                "no action table: ProcessPool cannot be inspected; see python -m envs.actions",
                "no initial states: ProcessPool cannot be inspected; see fabric-rl show-resets",
                "debug probe: ProcessPool has no test of its own",
            ],
        ),
    ],
)
def test_other_environments_say_what_they_lack(fabric, capsys, env, said):
    played(fabric, env, [Debug(everything=True)], iterations=1)
    output = capsys.readouterr().out
    assert all(output.count(text) == (2 if "probe" in text else 1) for text in said)
    assert "grad_norm_actor " in output and "this run saves nothing" in output


def test_only_the_chosen_topics_report(fabric, capsys):
    played(fabric, CARTPOLE, [Debug(actions=True, resets=True)], iterations=1)
    output = capsys.readouterr().out
    assert "debug learning" not in output and "debug checkpoints" not in output


def state_with(fabric, env, actions, iteration=1):
    state = TrainState(fabric, None, env, TrainArgs(total_timesteps=100), iteration=iteration)
    state.batch = batch(actions)
    return state


def test_the_use_of_actions_is_counted_over_the_run(fabric, capsys):
    env = CARTPOLE(seed=0)
    part = DebugActions(every_iterations=1)
    part.on_train_start(state_with(fabric, env, [0]))
    first = state_with(fabric, env, [1, 1, 1])
    with pytest.warns(RuntimeWarning, match="only action 1 was chosen in 3 steps"):
        part.on_iteration_end(first)
    assert first.metrics["debug/actions_never_used"] == 1
    output = capsys.readouterr().out
    assert "most used 1: 100.0%" in output and "never used so far: 1 of 2 0" in output
    restored = DebugActions(every_iterations=1)
    restored.load_state_dict(part.state_dict())
    second = state_with(fabric, env, [0, 0, 1, 0], iteration=2)
    second.metrics["action/fallback_share"] = 0.25
    restored.on_train_start(second)
    restored.on_iteration_end(second)
    assert second.metrics["debug/actions_never_used"] == 0 and second.metrics["debug/top_action_share"] == 0.75
    output = capsys.readouterr().out
    assert "most used 0: 75.0%, 1: 25.0%" in output and "fell back to another action: 25.00%" in output
    env.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {},
            "Debug: no topic is chosen; set one of actions, learning, checkpoints, resets, probe or everything to true",
        ),
        ({"resets": True, "episodes": 1.5}, "episodes must be a whole number of at least 1, got 1.5"),
    ],
)
def test_settings_that_cannot_work(settings, message):
    with pytest.raises(ValueError, match=message):
        Debug(**settings)
