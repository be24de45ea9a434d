"""A teacher in the environment: its actions reach the minibatch of the step they are for, and agents imitate them."""

import multiprocessing
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch

from agents import PPOLightningAgent, RecurrentPPOAgent
from envs import (
    BallChaser,
    ContinuousAction,
    GoalReward,
    KickoffThenShoot,
    ProcessPool,
    RandomState,
    RewardSignals,
    RocketSimPool,
    StateAwareTable,
    TouchReward,
)
from fabric_rl import Callback, History, Run, TrainArgs, load_checkpoint, train
from fabric_rl.schedules import Linear, Schedule
from fabric_rl.selfplay import SelfPlay
from fabric_rl.session.saving import Saving
from fabric_rl.types import Minibatch

POOL = partial(RocketSimPool, 4, num_threads=1, state_setter=RandomState(), teacher=BallChaser())
AGENT = partial(PPOLightningAgent, actor_hidden_sizes=[32], critic_hidden_sizes=[8], teacher_coef=1.0)
ARGS = {"num_steps": 16, "minibatch_size": 64, "lr_schedule": "constant"}


class Batches(Callback):
    def __init__(self):
        self.taught, self.loss = [], []

    def on_learn_start(self, state):
        taught = state.batch.teacher_action
        self.taught.append(taught if taught is None else taught.clone())

    def on_iteration_end(self, state):
        self.loss.append(state.metrics.get("ppo/teacher_loss", np.nan))


class Recorded(RocketSimPool):
    """Keeps what its teacher says of every state."""

    said: ClassVar = []

    def _infos(self):
        infos = super()._infos()
        bot = self.teacher.actions(self.state, self.action_parser)
        assert np.array_equal(infos["teacher_action"], bot)
        self.said.append(bot)
        return infos


def test_actions_belong_to_their_steps(fabric):
    Recorded.said.clear()
    env = partial(Recorded, 4, num_threads=1, state_setter=RandomState(), teacher=BallChaser())
    batches = Batches()
    train(fabric, env, AGENT, TrainArgs(total_timesteps=384, **ARGS), callbacks=[batches], plain=True)
    said = np.stack(Recorded.said[-(3 * 16 + 1) : -1]).reshape(3, -1)  # before: the dry run
    assert [each.tolist() for each in batches.taught] == said.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("agent", [AGENT, partial(RecurrentPPOAgent, sequence_length=8, teacher_coef=1.0)])
@pytest.mark.parametrize("action", [None, StateAwareTable(), ContinuousAction()])
def test_the_agent_learns_what_the_teacher_does(fabric, agent, action):
    batches, args = Batches(), TrainArgs(total_timesteps=128 * 12, **ARGS)
    train(fabric, partial(POOL, action=action), agent, args, callbacks=[batches], plain=True)
    assert np.isfinite(batches.loss).all() and batches.loss[-1] < batches.loss[0] - 0.5


def test_the_weight_follows_its_schedule():
    env = POOL()
    agent = AGENT(env.single_observation_space, env.single_action_space, teacher_coef=Linear(1.0, 0.0))
    env.close()
    size = 8
    zeros = torch.zeros(size)
    obs, action = torch.randn(size, *env.single_observation_space.shape), torch.arange(size)
    batch = partial(dict, obs=obs, action=action, log_prob=zeros, value=zeros, advantage=zeros, returns=zeros)
    losses = []
    for progress in (0.0, 0.25, 1.0):
        agent.progress.fill_(progress)
        plain, _ = agent.training_step(Minibatch(**batch()))
        taught, figures = agent.training_step(Minibatch(**batch(), teacher_action=action))
        losses.append(float((taught - plain).detach() / figures["teacher_loss"]))
    assert losses == pytest.approx([1.0, 0.75, 0.0], abs=1e-5)


@pytest.mark.slow
def test_it_resumes_exactly(fabric, tmp_path):
    def run(name, steps, resume=None):
        args, saving = TrainArgs(total_timesteps=steps, **ARGS), Saving(checkpoint_every_timesteps=256)
        folder = Run.create(tmp_path, name) if resume is None else Run(tmp_path / name)
        train(fabric, partial(POOL, teacher=KickoffThenShoot()), AGENT, args, folder, (), True, saving, resume)
        return load_checkpoint(tmp_path / name)[1]

    whole = run("whole", 512)
    run("part", 256)
    again = run("part", 512, load_checkpoint(tmp_path / "part")[1])
    assert all(torch.equal(weights, again["agent"][name]) for name, weights in whole["agent"].items())


@pytest.mark.slow
@pytest.mark.parametrize("overlap", [False, True])
def test_a_run_goes_on_without_its_teacher_or_with_one(fabric, tmp_path, overlap):
    """Without it in the agent's settings or in the environment's; with one, from the first rollout that it has seen."""
    saving = Saving(checkpoint_every_timesteps=128, keep_checkpoints=9)
    for first, second, bot in ((1.0, 0.0, BallChaser()), (1.0, 0.0, None), (0.0, 1.0, BallChaser())):
        name, batches = f"from_{first}_{bot is None}", Batches()
        args = TrainArgs(total_timesteps=640, overlap=overlap, **ARGS)
        env = partial(POOL, teacher=BallChaser() if first else None)
        folder = Run.create(tmp_path, name)
        train(fabric, env, partial(AGENT, teacher_coef=first), args, folder, [History()], True, saving)
        resume = load_checkpoint(tmp_path / name / "checkpoints" / "step_000000000256.ckpt")[1]
        assert resume["ranks"][0]["ahead"] is overlap
        seen = [batches] if second else []
        env = partial(POOL, teacher=bot)
        train(fabric, env, partial(AGENT, teacher_coef=second), args, folder, seen, True, saving, resume)
        assert load_checkpoint(tmp_path / name)[1]["steps"] == 640
        assert all(taught is None or len(taught.unique()) > 3 for taught in batches.taught)
        assert not second or (batches.taught[0] is None and batches.taught[-1] is not None)


@pytest.mark.parametrize("in_between", [False, True])
def test_a_schedule_may_be_zero_at_both_ends(in_between):
    class Bump(Schedule):  # in here, since the help lists the schedules of all modules
        """0 at both ends, 1 in the middle."""

        def at(self, progress):
            return 4 * progress * (1 - progress)

    env = POOL()
    coef = Bump() if in_between else Linear(0.0, 0.0)
    agent = AGENT(env.single_observation_space, env.single_action_space, teacher_coef=coef)
    env.close()
    assert ("teacher_action" in agent.minibatch_fields) == in_between


@pytest.mark.slow
def test_a_restarted_worker_says_what_its_teacher_would_do():
    env = ProcessPool(partial(POOL, reward=RewardSignals({"a": TouchReward(), "b": GoalReward()})), 2, restart=True)
    try:
        env.reset(seed=0)
        multiprocessing.active_children()[-1].kill()
        with pytest.warns(RuntimeWarning, match="restarted worker"):
            infos = env.step(np.zeros(env.num_envs, np.int64))[4]
        assert infos["teacher_action"][4:].all() and infos["teacher_action"][:4].all()  # 0 would be a missing answer
        assert infos["reward_signals"].shape == (8, 2)
        assert (infos["result"][infos["_final_obs"]] == 0.5).all()
    finally:
        env.close()


@pytest.mark.slow
def test_processes_and_self_play_hand_it_on(fabric):
    args, batches = TrainArgs(total_timesteps=128, **ARGS), Batches()
    train(fabric, partial(ProcessPool, POOL, num_workers=2), AGENT, args, callbacks=[batches], plain=True)
    assert len(batches.taught[0].unique()) > 1
    self_play, batches = SelfPlay(share=0.5), Batches()
    train(fabric, self_play.around(POOL, AGENT, ()), AGENT, args, callbacks=[self_play, batches], plain=True)
    assert len(batches.taught[0]) == 16 * 6


class Counted(BallChaser):
    """Counts how often it is asked."""

    asked: ClassVar = [0]

    def act(self, state):
        self.asked[0] += 1
        return super().act(state)


def test_nobody_asks_a_teacher_that_the_agent_does_not_imitate(fabric):
    args = TrainArgs(total_timesteps=128, **ARGS)
    env, imitates_nobody = partial(POOL, teacher=Counted()), partial(AGENT, teacher_coef=0.0)
    Counted.asked[0] = 0
    train(fabric, env, imitates_nobody, args, plain=True)
    self_play = SelfPlay(share=0.5)
    train(fabric, self_play.around(env, imitates_nobody, ()), imitates_nobody, args, callbacks=[self_play], plain=True)
    assert Counted.asked[0] == 0
    train(fabric, env, AGENT, args, plain=True)
    assert Counted.asked[0] > 16


@pytest.mark.slow
def test_processes_can_disable_their_teachers():
    env = ProcessPool(POOL, num_workers=2)
    try:
        assert "teacher_action" in env.reset(seed=0)[1]
        env.enable_teacher(False)
        assert "teacher_action" not in env.reset(seed=0)[1]
        assert "teacher_action" not in env.step(np.zeros(env.num_envs, np.int64))[4]
    finally:
        env.close()


def test_no_teacher(fabric):
    with pytest.raises(ValueError, match=r"--agent wants to imitate a teacher, but --env has none; set --env\.teacher"):
        train(fabric, partial(POOL, teacher=None), AGENT, TrainArgs(total_timesteps=128, **ARGS), plain=True)
