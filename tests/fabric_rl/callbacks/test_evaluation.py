"""Evaluation: its figures are those of the weights, it changes nothing, and the best weights stay."""

import json
import random
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
import yaml

from agents import MultiInputPPOAgent, PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Evaluation, History, Run, TrainArgs, load_checkpoint, load_trained, train
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs.trained import policy
from fabric_rl.session.saving import Saving
from tests.envs.adapters.tasks import Entries

CARTPOLE = partial(GymnasiumEnvs, "CartPole-v1", 2)
CONFIG = yaml.safe_dump(
    {
        "env": {"class_path": "envs.GymnasiumEnvs", "init_args": {"env_id": "CartPole-v1", "num_envs": 2}},
        "agent": {"class_path": "agents.PPOLightningAgent"},
    }
)


class Dicey(gymnasium.Wrapper):
    """Draws from everybody's generators, as other people's environments do."""

    def reset(self, **settings):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        return super().reset(**settings)


def evaluation(**settings):
    return Evaluation(**{"every_steps": 128, "episodes": 4, "env": CARTPOLE} | settings)


def trained(fabric, callbacks, run=None, env=CARTPOLE, iterations=6):
    args = TrainArgs(total_timesteps=64 * iterations, num_steps=32, update_epochs=1, minibatch_size=64)
    return train(fabric, env, PPOLightningAgent, args, run, callbacks, plain=True)


def figures(history):
    rows = [{name: row[name] for name in row if name.startswith("eval/")} for row in history.rows]
    return [(row["steps"], found) for row, found in zip(history.rows, rows, strict=True) if found]


def test_nothing_that_is_learned_changes(fabric):
    agents = []
    for callbacks in ([], [evaluation(env=partial(CARTPOLE, wrappers=[Dicey]))]):
        history = History()
        trained(fabric, [*callbacks, history], env=partial(CARTPOLE, wrappers=[]))
        agents.append(history.agent.state_dict())
    assert all(torch.equal(weight, agents[1][name]) for name, weight in agents[0].items())


def test_the_figures_are_those_of_the_weights(fabric, capsys):
    history, seen = History(), evaluation()
    trained(fabric, [seen, history])
    lines = [line for line in capsys.readouterr().out.splitlines() if "  eval " in line]
    assert [line.split("/")[0].strip() for line in lines] == ["128", "256", "384"]
    found = figures(history)
    assert [steps for steps, _ in found] == [128, 256, 384]
    for name, deterministic in (("eval/return", True), ("eval/sampled_return", False)):
        envs = CARTPOLE()
        again = play_episodes(envs, policy(history.agent, deterministic, 0), 4, 0)
        assert found[-1][1][name] == again.returns.mean() == found[-1][1][name.replace("return", "length")]
    best = np.maximum.accumulate([each["eval/return"] for _, each in found])
    assert [each["eval/best_return"] for _, each in found] == best.tolist()


@pytest.mark.slow
def test_the_best_weights_stay_and_play_as_they_did(fabric, tmp_path):
    run, history = Run.create(tmp_path, "run", config=CONFIG), History()
    trained(fabric, [evaluation(), history], run, iterations=12)
    run.release()
    found = {steps: each["eval/return"] for steps, each in figures(history)}
    about = json.loads((run.dir / "best/meta.json").read_text())
    assert about["return"] == max(found.values()) == found[about["steps"]]
    assert about["steps"] == min(steps for steps, value in found.items() if value == about["return"])
    best = load_trained(run.dir / "best")
    envs = best.env(seed=0)
    choose = best.choose(envs.single_observation_space, envs.single_action_space)
    assert play_episodes(envs, choose, 4, 0).returns.mean() == about["return"]


def test_going_back_sets_the_best_weights_of_the_time_that_is_left_aside(fabric, counter_env, known_agent, tmp_path):
    """The later the better: what the checkpoint knows as best is written over, so `best/` begins anew, twice."""

    class Better(Evaluation):
        def _play(self, state, envs):
            return {"eval/return": float(state.steps) * (1 if len(history.rows) < 4 else 0.1)}

    def env(seed):
        return counter_env((3, 4), (9, 9))

    def run_on(run, iterations, resume=None):
        args = TrainArgs(total_timesteps=16 * iterations, num_steps=8, minibatch_size=16, update_epochs=1)
        saving = Saving(checkpoint_every_timesteps=16, keep_checkpoints=9)
        callbacks = [Better(every_steps=16, env=env), history]
        train(fabric, env, known_agent, args, run, callbacks, plain=True, saving=saving, resume=resume)

    def about(path):
        return json.loads((run.dir / path / "meta.json").read_text())

    run, history = Run.create(tmp_path, "run"), History()
    run_on(run, 4)
    assert about("best")["steps"] == 64 and not (run.dir / "set_aside").exists()
    back = load_checkpoint(run.checkpoints / "step_000000000032.ckpt")[1]
    for aside in ("best", "best-2"):
        run_on(run, 3, back)
        assert about("best") == {"steps": 48, "phase": "main", "return": 48 * 0.1}
        assert history.rows[-1]["eval/best_return"] == 32
        assert about(f"set_aside/{aside}")["steps"] == (64 if aside == "best" else 48)
    run.release()


def test_a_resumed_run_has_the_same_weights_and_figures(fabric, tmp_path):
    """Observations of entries, in an environment that cannot be saved: with exact_resume."""

    def run_on(name, resume=None):
        run, history = Run.create(tmp_path, name), History()
        env = partial(GymnasiumEnvs, Entries, 2, settings={"length": 5})
        args = TrainArgs(total_timesteps=256, num_steps=32, update_epochs=1, minibatch_size=64)
        saving = Saving(checkpoint_every_timesteps=128, keep_checkpoints=9, exact_resume=True)
        callbacks = [Evaluation(every_steps=64, episodes=2, env=env), history]
        train(fabric, env, MultiInputPPOAgent, args, run, callbacks, plain=True, saving=saving, resume=resume)
        run.release()
        return run, history

    whole, first = run_on("whole")
    rest, second = run_on("rest", load_checkpoint(whole.checkpoints / "step_000000000128.ckpt")[1])
    assert figures(first)[2:] == figures(second) and len(figures(first)) == 4
    there, here = (load_checkpoint(run.dir)[1]["agent"] for run in (whole, rest))
    assert all(torch.equal(there[name], here[name]) for name in there)


def test_patience_ends_training_also_over_a_resume(fabric, counter_env, known_agent, tmp_path):
    """Every episode of this environment pays the same, so nothing is better than the first evaluation."""

    def env(seed):
        return counter_env((3, 4), (9, 9))

    def run_on(steps, run=None, resume=None):
        args = TrainArgs(total_timesteps=steps, num_steps=8, minibatch_size=16, update_epochs=1)
        ends = Evaluation(every_steps=32, episodes=2, patience=2, env=env)
        summary = train(fabric, env, known_agent, args, run, [ends, history := History()], plain=True, resume=resume)
        return summary["total_steps"], [steps for steps, _ in figures(history)]

    assert run_on(10_000) == (96, [32, 64, 96])
    run = Run.create(tmp_path, "run")
    assert run_on(64, run) == (64, [32, 64])
    assert run_on(10_000, run, load_checkpoint(run.dir)[1]) == (96, [96])
    run.release()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: evaluation(env=None), "there is no environment; pass one"),
        (
            lambda: evaluation(env=partial(GymnasiumEnvs, "Acrobot-v1", 1)),
            r"observations or actions of env \(.*Discrete\(3\)",
        ),
    ],
)
def test_bad_input_is_one_line(fabric, build, message):
    with pytest.raises(ValueError, match=message) as caught:
        trained(fabric, [build()])
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_two_ranks_stop_together(forks, tmp_path):
    words = ["--env_id", "CartPole-v1", "--num_envs", 1, "--num_steps", 16, "--minibatch_size", 16, "--devices", 2]
    words += ["--total_timesteps", 100_000, "--runs_dir", tmp_path, "--run_id", "two", "--accelerator", "cpu"]
    words += ["--callbacks+=fabric_rl.Evaluation", "--callbacks.every_steps", 32, "--callbacks.patience", 3]
    statuses, _, err = forks.wait([forks.start(*words, "--callbacks.episodes", 1)])
    assert statuses == [0], err
    summary = json.loads((tmp_path / "two/summary.json").read_text())
    assert summary["stopped_by"] == "Evaluation" and summary["world_size"] == 2
    assert (tmp_path / "two/best/weights.ckpt").is_file()
