"""SAC beside opponents, phases and lessons: each does what it does beside PPO, and a run goes on to the bit."""

import warnings
from functools import partial

import pytest
import torch

from agents import SACLightningAgent
from envs import GymnasiumEnvs, Kickoff, NoTouchCondition, PhasedReward, RocketSimPool, StrongHitReward, TouchReward
from fabric_rl import (
    Callback,
    Curriculum,
    Lessons,
    Phase,
    Phases,
    Promotion,
    Run,
    SACArgs,
    Saving,
    TrainArgs,
    load_checkpoint,
    train_off_policy,
)
from fabric_rl.selfplay import SelfPlay
from fabric_rl.selfplay.roster import LATEST
from train_fabric import cli

AGENT = partial(SACLightningAgent, actor_hidden_sizes=[8], critic_hidden_sizes=[8], actor_lr=0.02)
SHORT = [NoTouchCondition(0.6)]


class Sees(Callback):
    def __init__(self, look=lambda state: None, stop_after=None):
        self.look, self.stop_after, self.seen = look, stop_after, []

    def on_iteration_end(self, state):
        self.seen.append((dict(state.metrics), self.look(state)))
        state.stop = state.iteration == self.stop_after


def trained(fabric, env, callbacks, total, run=None, sac=None, **more):
    settings = {"buffer_init_steps": 32, "train_interval": 4, "save_replay_buffer": True} | (sac or {})
    args = TrainArgs(total_timesteps=total, batch_size=16)
    train_off_policy(fabric, env, AGENT, args, run, callbacks, plain=True, sac=SACArgs(**settings), **more)


def against_itself(fabric, run, stop_after=None, resume=None):
    self_play = SelfPlay(save_steps=64, swap_steps=64, window=2, play_against_latest_model_ratio=0.3)
    env = partial(RocketSimPool, num_arenas=4, done=SHORT, state_setter=Kickoff(), num_threads=1)

    def look(state):
        return sorted(state.env.playing), state.env.policies.of(LATEST, None).acts_at_random

    sees = Sees(look, stop_after)
    parts = {"saving": Saving(144), "resume": resume}
    trained(fabric, self_play.around(env, AGENT), [self_play, sees], 320, run, **parts)
    return sees.seen, load_checkpoint(run.dir)[1]


@pytest.mark.slow
def test_opponents_are_snapshots_and_a_run_goes_on_to_the_bit(fabric, tmp_path):
    seen, whole = against_itself(fabric, Run.create(tmp_path, "whole"))
    assert seen[-1][0]["selfplay/opponents"] == 2 and any("selfplay/win_rate" in metrics for metrics, _ in seen)
    assert {number for _, (playing, _) in seen for number in playing} > {LATEST, 0}
    assert not any(random for _, (_, random) in seen)  # an opponent plays as it can from the beginning
    _, stopped = against_itself(fabric, Run.create(tmp_path, "broken"), stop_after=9)
    _, resumed = against_itself(fabric, Run(tmp_path / "broken"), resume=stopped)
    assert stopped["exact"] and all(torch.equal(x, resumed["agent"][name]) for name, x in whole["agent"].items())


def test_self_play_from_the_command_line(tmp_path):
    flags = ["--config", "configs/sac_rocket_1v1.yaml", "--env.num_arenas", "2", "--total_timesteps", "64"]
    small = ["--buffer_size", "1000", "--buffer_init_steps", "32", "--batch_size", "8", "--record_minutes", "null"]
    play = ["--self_play", "SelfPlay", "--self_play.guests", "[chaser]", "--self_play.save_steps", "32"]
    cli([*flags, *small, *play, "--runs_dir", str(tmp_path), "--run_id", "r", "--plain", "true"])
    assert "selfplay/rating" in (tmp_path / "r" / "metrics.csv").read_text().splitlines()[0]


@pytest.mark.parametrize("both", [("PPO", "SAC"), ("SAC", "PPO")])
def test_an_agent_of_another_kind_goes_on_with_no_run(tmp_path, capsys, both):
    begun, other = (f"agents.{name}LightningAgent" for name in both)
    runs, small = ["--runs_dir", str(tmp_path), "--plain", "true"], ["--num_envs", "1", "--total_timesteps", "8"]
    more = ["--num_steps", "8"] if both[0] == "PPO" else ["--buffer_size", "500", "--buffer_init_steps", "100"]
    cli(["--env_id", "CartPole-v1", "--agent", begun, *small, *more, *runs, "--run_id", "r"])
    with pytest.raises(SystemExit):
        cli(["--run_id", "r", "--resume", "--agent", other, *runs])
    error = capsys.readouterr().err.strip()
    assert error.endswith(f"error: --agent {other}: the run that --resume names goes on with {begun} only")


def test_phases_change_what_is_paid_and_the_rates(fabric):
    reward = PhasedReward({"touch": TouchReward(), "hit": StrongHitReward()})
    env = partial(RocketSimPool, num_arenas=2, reward=reward, done=SHORT, num_threads=1)
    skill = Promotion("reward/episode_return", -1.0, for_iterations=2)
    phases = Phases([Phase("touch", learning_rate=1e-3, promotions=[skill]), Phase("hit", learning_rate=1e-4)])
    sees = Sees(lambda state: state.optimizer.param_groups[0]["lr"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that no episode has ended for many short iterations is none
        trained(fabric, env, [phases, sees], 320, sac={"train_interval": 1})
    numbers = [metrics["phase/number"] for metrics, _ in sees.seen]
    first = numbers.index(2.0)
    assert first > 10 and set(numbers[:first]) == {1.0} and set(numbers[first:]) == {2.0}
    assert sees.seen[1][1] > 5e-4 > 1e-4 > sees.seen[-1][1]  # of the phase, and down in a line


def test_lessons_set_parameters(fabric):
    lessons = Lessons({"moon": Curriculum({"gravity": [1.6, 5.0, 9.8]}, [0.3, 0.6], "progress", 2)})
    sees = Sees(lambda state: state.env.env.envs[0].unwrapped.gravity)
    trained(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), [lessons, sees], 400)
    gravities = [gravity for _, gravity in sees.seen]
    assert gravities[0] == 1.6 and gravities == sorted(gravities) and gravities[-1] == 9.8
