"""SAC beside opponents, phases, lessons, demonstrations and signals; a run with each goes on to the bit."""

import re
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from agents import SACLightningAgent
from envs import (
    CombinedReward,
    ContinuousAction,
    GoalReward,
    GymnasiumEnvs,
    Kickoff,
    NoTouchCondition,
    PhasedReward,
    RewardSignals,
    RocketSimPool,
    StateAwareTable,
    StrongHitReward,
    TouchReward,
)
from envs.demonstrations.file import DemonstrationWriter, columns_of_states
from envs.demonstrations.record import StateRecorder, states_header
from envs.rewards.car import default_reward
from fabric_rl import (
    ActOutput,
    Callback,
    Curriculum,
    Lessons,
    OffPolicyAgent,
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
from fabric_rl import train_off_policy as train
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.evaluation.demonstrations import trajectories_of
from fabric_rl.imitation import Cloning, Kickstart
from fabric_rl.sac.replay import demonstration_buffer
from fabric_rl.selfplay import SelfPlay
from fabric_rl.selfplay.opponent_pool import LATEST
from fabric_rl.signals import RND, Curiosity, RewardSignal
from fabric_rl.types import CheckpointError, Minibatch
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
        return sorted(state.env.pairings.playing), state.env.policies.of(LATEST, None).acts_at_random

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


@pytest.mark.slow
def test_self_play_from_the_command_line(tmp_path):
    flags = ["--config", "configs/sac_rocket_1v1.yaml", "--env.num_arenas", "2", "--total_timesteps", "64"]
    small = ["--buffer_size", "1000", "--buffer_init_steps", "32", "--batch_size", "8", "--record_minutes", "null"]
    play = ["--self_play", "SelfPlay", "--self_play.guests", "[chaser]", "--self_play.save_steps", "32"]
    cli([*flags, *small, *play, "--runs_dir", str(tmp_path), "--run_id", "r", "--plain", "true"])
    assert "selfplay/rating" in (tmp_path / "r" / "metrics.csv").read_text().splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("both", [("PPO", "SAC"), ("SAC", "PPO")])
def test_an_agent_of_another_kind_goes_on_with_no_run(tmp_path, capsys, both):
    begun, other = (f"agents.{name}LightningAgent" for name in both)
    runs, small = ["--runs_dir", str(tmp_path), "--plain", "true"], ["--num_envs", "1", "--total_timesteps", "8"]
    more = ["--num_steps", "8"] if both[0] == "PPO" else ["--buffer_size", "500", "--buffer_init_steps", "100"]
    cli(["--env_id", "CartPole-v1", "--agent", begun, *small, *more, *runs, "--run_id", "r"])
    with pytest.raises(SystemExit):
        cli(["--run_id", "r", "--resume", "--agent", other, *runs])
    error = capsys.readouterr().err.strip()
    assert error.endswith(f"error: --agent {other}: the run that --resume names can only continue with {begun}")


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


CARTPOLE = "configs/demonstrations/cartpole.frd"


def trajectory(first, steps, terminated=False, mask=None, weight=1.0):
    return SimpleNamespace(
        obs=np.arange(first, first + steps + 1, dtype=np.float32)[:, None],
        action=np.arange(steps) % 2,
        reward=np.full(steps, first, np.float32),
        weight=np.full(steps, weight, np.float32),
        terminated=terminated,
        action_mask=mask,
    )


def like(signals=0, masked=False):
    reward = torch.zeros(3, 1 + signals) if signals else torch.zeros(3)
    flat, flags = torch.zeros(3), torch.zeros(3, dtype=torch.bool)
    allowed = torch.ones(3, 2, dtype=torch.bool) if masked else None
    more = {"reward": reward, "next_obs": torch.zeros(3, 1), "terminated": flags, "done": flags}
    return Minibatch(torch.zeros(3, 1), flat.long(), flat, flat, flat, flat, allowed, next_action_mask=allowed, **more)


def buffer_of(trajectories, strength=1.0, **kind):
    return demonstration_buffer(trajectories, strength, like(**kind), torch.Generator().manual_seed(0), None, True)


def test_their_steps_end_where_their_episodes_do():
    replay = buffer_of([trajectory(10, 3, terminated=True), trajectory(20, 2), trajectory(30, 1)], strength=0.5)
    found = replay.transitions(torch.arange(6), 2, torch.tensor(0.5))
    assert found.obs[:, 0].tolist() == [10, 11, 12, 20, 21, 30]
    assert found.reward.tolist() == [7.5, 7.5, 5, 15, 10, 15]
    assert found.discount.tolist() == [0.25, 0, 0, 0.25, 0.5, 0.5]
    assert found.next_obs[[0, 3, 4, 5], 0].tolist() == [12, 22, 22, 31]
    assert replay.steps(torch.arange(6)).next_obs[:, 0].tolist() == [11, 12, 13, 21, 22, 31]


def test_steps_are_drawn_as_often_as_they_count():
    replay = buffer_of([trajectory(10, 2), trajectory(20, 2, weight=0.5), trajectory(30, 2, weight=0.0)])
    drawn = torch.bincount(replay.sample(3000), minlength=6)
    assert drawn.tolist() == [1000, 1000, 500, 500, 0, 0]


def test_what_signals_pay_is_left_open_and_what_nobody_knows_is_allowed():
    known = np.array([[True, False], [False, True]])
    replay = buffer_of([trajectory(10, 2, mask=known), trajectory(20, 1)], signals=2, masked=True)
    found = replay.transitions(torch.arange(3), 1, torch.tensor([0.5, 0.5, 0.5]))
    assert found.reward.tolist() == [[10, 0, 0], [10, 0, 0], [20, 0, 0]]
    assert found.action_mask.tolist() == [[True, False], [False, True], [True, True]]


def test_a_step_without_a_reward_is_refused():
    broken = trajectory(10, 3)
    broken.reward = None
    with pytest.raises(ValueError, match="--demonstrations: at least two steps are needed, each with its reward"):
        buffer_of([broken])


@pytest.mark.parametrize("reward", [None, CombinedReward([default_reward()], [2.0])])
def test_states_of_rocket_league_are_worth_what_the_pool_would_have_paid(tmp_path, reward):
    path, rng = tmp_path / "a.frd", np.random.default_rng(0)
    make = partial(RocketSimPool, team_size=2, num_threads=1, reward=reward)
    with DemonstrationWriter(path, columns_of_states(4), states_header("ab", [0, 0, 1, 1], range(4), 8)) as writer:
        recorder = StateRecorder(writer)
        pool = make(1, loggers=[recorder])
        pool.reset(seed=0)
        paid = [pool.step(rng.integers(90, size=4))[1].copy() for _ in range(60)]
        recorder.end()
        pool.close()
    found = trajectories_of([path], make, rewards=True)
    assert np.array_equal(np.stack([each.reward for each in found], axis=1), np.stack(paid))
    assert found[0].reward.any()


class Keeps(SACLightningAgent):
    """Remembers what it is given."""

    def training_step(self, minibatch):
        self.seen = [*getattr(self, "seen", []), minibatch]
        return super().training_step(minibatch)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_half_of_each_minibatch_comes_from_them(fabric, alpha):
    made = []

    def build(*spaces):
        made.append(Keeps(*spaces, actor_hidden_sizes=[8], critic_hidden_sizes=[8]))
        return made[0]

    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    shown = trajectories_of([CARTPOLE], env, rewards=True)
    sac = SACArgs(buffer_init_steps=40, demonstrations=(CARTPOLE,), demonstration_share=0.25, per_alpha=alpha)
    args = TrainArgs(total_timesteps=80, batch_size=64)
    train_off_policy(fabric, env, build, args, plain=True, sac=sac, demonstrations=shown)
    known = {tuple(row) for each in shown for row in each.obs.tolist()}
    for batch in made[0].seen:
        there = [tuple(row) in known for row in batch.obs.tolist()]
        assert there == [False] * 48 + [True] * 16
        assert (batch.weight is None) is (alpha == 0) and (alpha == 0 or set(batch.weight[48:].tolist()) == {1.0})


def test_masked_pools_learn_from_states(fabric):
    env = partial(RocketSimPool, 1, action=StateAwareTable(), num_threads=1)
    shown = trajectories_of(["configs/demonstrations/chaser_1v1.frd"], env, rewards=True)[:3]
    agent = partial(SACLightningAgent, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    args, sac = TrainArgs(total_timesteps=40, batch_size=16), SACArgs(buffer_init_steps=20, n_step=3)
    summary = train_off_policy(fabric, env, agent, args, plain=True, sac=sac, demonstrations=shown)
    assert summary["total_steps"] == 40


@pytest.mark.slow
def test_from_the_command_line_with_a_signal_that_imitates(tmp_path, capsys):
    signal = ["--signals+=fabric_rl.signals.GAIL", f"--signals.demos=[{CARTPOLE}]", "--extrinsic_strength=0"]
    flags = ["--config", "configs/sac_cartpole.yaml", "--total_timesteps", "200", "--buffer_init_steps", "160"]
    flags += ["--batch_size", "32", "--num_update", "1"]
    cli([*flags, "--demonstrations", f"[{CARTPOLE}]", *signal, "--runs_dir", str(tmp_path), "--run_id", "r"])
    header = (tmp_path / "r" / "metrics.csv").read_text().splitlines()[0]
    assert "gail/reward" in header and "sac/td_error" in header


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--demonstrations", "[nowhere.frd]"], "--demonstrations nowhere.frd: there is no such file"),
        (["--demonstrations", "[configs/demonstrations/chaser_1v1.frd]"], "--demonstrations .*states of Rocket League"),
        (["--per_beta", "0.5"], "--per_beta has no effect without --per_alpha; set that too, or leave --per_beta out"),
        (["--demonstration_share", "0.3"], "--demonstration_share has no effect without --demonstrations"),
        (["--reward_signal_num_update", "2"], "--reward_signal_num_update has no effect without --signals"),
    ],
)
def test_what_cannot_work_is_one_line(tmp_path, capsys, flags, message):
    with pytest.raises(SystemExit) as ended:
        cli(["--config", "configs/sac_cartpole.yaml", "--runs_dir", str(tmp_path), *flags])
    said = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2 and len(said) == 1
    assert re.search(message, said[0])


NEVER = 10**9


class After(RewardSignal):
    """Pays the number that is seen after a step; counts how often its networks learn."""

    name, scales, learned = "after", False, 0

    def __init__(self, observation_space, action_space, episodic=False, epochs=None, minibatch_size=None):
        super().__init__(observation_space, 2.0, 0.25, 1e-3, epochs, minibatch_size, episodic)
        self.weight, self.sizes = nn.Parameter(torch.ones(1)), []

    def reward(self, steps):
        return steps.next_obs[:, 0]

    def forward(self, batch):
        self.sizes.append(len(batch.obs))
        return self.weight.square().sum(), {}


class Watches(OffPolicyAgent):
    """Two heads; remembers what it is given."""

    value_heads = 2

    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        self.weight, self.seen = nn.Parameter(torch.zeros(())), []

    def act(self, obs, state=None, deterministic=False):
        return ActOutput(torch.zeros(len(obs), dtype=torch.int64), torch.zeros(len(obs)))

    def value(self, obs, state=None):
        return obs[:, :2]

    def training_step(self, minibatch):
        self.seen.append(minibatch)
        return self.weight * 1.0, {}

    def update_targets(self, tau):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD([self.weight], lr=0.5)


def watched(fabric, env, signal=After, sac=None, **settings):
    """What an agent was given on the counter environment, and the signal."""
    made = {}

    def keep(name, build):
        def make(*spaces):
            made[name] = build(*spaces)
            return made[name]

        return make

    args = TrainArgs(total_timesteps=120, batch_size=60, gamma=0.5, lr_schedule="constant", **settings)
    replaying = SACArgs(**({"buffer_init_steps": 0, "train_interval": 2} | (sac or {})))
    parts = {"signals": [keep("signal", signal)], "sac": replaying, "plain": True}
    train(fabric, env, keep("agent", Watches), args, **parts)
    return made["agent"].seen, made["signal"]


@pytest.mark.parametrize("episodic", [False, True])
def test_each_reward_has_its_discount_and_its_ends(fabric, counter_env, episodic):
    """Sub-environment 0 terminates after 3 steps, 1 is truncated after 2. The signal goes on unless it is episodic."""
    seen, _ = watched(fabric, counter_env, partial(After, episodic=episodic))
    found = {}
    for batch in seen[3:]:
        obs, after = batch.obs[:, 0].tolist(), batch.next_obs[:, 0].tolist()
        found |= dict(zip(obs, zip(batch.reward.tolist(), batch.discount.tolist(), after, strict=True), strict=True))
    assert found[1.0] == ([1.0, 2 * 2.0], [0.5, 0.25], 2.0)
    goes_on = 0.0 if episodic else 0.25
    assert found[2.0][:2] == ([1.0, 2 * 3.0], [0.0, goes_on])  # paid for the last observation, 3
    assert found[2.0][2] == 100.0  # from where the returns go on
    assert found[1101.0] == ([1.0, 2 * 1102.0], [0.5, 0.25], 1102.0)


def test_several_steps_are_paid_each(fabric, counter_env):
    seen, _ = watched(fabric, counter_env, sac={"n_step": 3})
    batch = seen[-1]
    rewards = dict(zip(batch.obs[:, 0].tolist(), batch.reward.tolist(), strict=True))
    first = next(obs for obs in rewards if obs < 500 and obs % 100 == 0)
    assert rewards[first] == [1.75, 2 * ((first + 1) + 0.25 * (first + 2) + 0.0625 * (first + 3))]


def test_rewards_are_those_of_the_signal_as_it_is_now(fabric, counter_env):
    class Grows(After):
        def reward(self, steps):
            return torch.full((len(steps.obs),), float(len(self.sizes)))

    seen, _ = watched(fabric, counter_env, Grows)
    assert [set(batch.reward[:, 1].tolist()) for batch in seen] == [{2.0 * (number + 1)} for number in range(20)]


@pytest.mark.parametrize(
    ("sac", "settings", "updates", "size"),
    [
        ({"num_update": 3}, {}, 3, 60),
        ({"num_update": 3, "reward_signal_num_update": 1}, {}, 1, 60),
        ({"reward_signal_num_update": 5}, {"minibatch_size": 7}, 5, 7),
    ],
)
def test_signals_learn_from_as_many_minibatches_as_asked_for(fabric, counter_env, sac, settings, updates, size):
    _, signal = watched(fabric, counter_env, partial(After, **settings), sac)
    assert signal.sizes == [size] * (updates * 20)


def test_each_signal_has_minibatches_of_its_own_size(fabric):
    made = []

    def build(*spaces):
        made.append(After(*spaces, minibatch_size=3 + len(made)))
        return made[-1]

    agent = partial(SACLightningAgent, value_heads=3, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    args, sac = TrainArgs(total_timesteps=20, batch_size=8), SACArgs(buffer_init_steps=0)
    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    train(fabric, env, agent, args, plain=True, sac=sac, signals=[build, build])
    assert [set(signal.sizes) for signal in made] == [{3}, {4}]


def test_before_the_first_update_signals_only_count_what_they_see(fabric, counter_env):
    _, signal = watched(fabric, counter_env, sac={"buffer_init_steps": 60})
    assert len(signal.sizes) == 11 and signal.normalizer.count == 120


def test_the_environments_reward_has_a_strength(fabric, counter_env):
    seen, _ = watched(fabric, counter_env, extrinsic_strength=0.0)
    assert set(seen[-1].reward[:, 0].tolist()) == {0.0}


def test_passes_of_ppo_are_refused(fabric, counter_env):
    with pytest.raises(
        ValueError, match=r"^--signals After: epochs is only for PPO; for SAC, use --reward_signal_num_update$"
    ):
        watched(fabric, counter_env, partial(After, epochs=1))


def test_rewards_of_the_environment_may_be_several(fabric):
    env = partial(RocketSimPool, 1, reward=RewardSignals({"touch": TouchReward(), "goal": GoalReward()}))
    agent = partial(SACLightningAgent, value_heads=2, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    args, sac = TrainArgs(total_timesteps=60, batch_size=8, gamma=(0.9, 0.99)), SACArgs(buffer_init_steps=20)
    assert train(fabric, env, agent, args, plain=True, sac=sac)["total_steps"] == 60


class Seen(Callback):
    def on_iteration_end(self, state):
        self.metrics = dict(state.metrics)


SIGNALS = (partial(RND, strength=0.5, hidden_sizes=[8]), partial(Curiosity, hidden_sizes=[8]))


def imitation(agent):
    """Cloning and kickstarting for MountainCarContinuous."""
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(41, 2)).astype(np.float32), rng.uniform(-1, 1, (40, 1)).astype(np.float32)
    yield Cloning(["x"], steps=300).show([Trajectory(obs, action, np.ones(40, np.float32), True)])
    yield Kickstart("x").take(SimpleNamespace(agent=agent))


def run(fabric, folder, name, env, stop_after=None, resume=None, signals=SIGNALS, exact=False):
    class Stops(Seen):
        def on_iteration_end(self, state):
            super().on_iteration_end(state)
            state.stop = state.iteration == stop_after

    sizes = {"actor_hidden_sizes": [8], "critic_hidden_sizes": [8], "value_heads": 1 + len(signals)}
    sac = SACArgs(
        buffer_size=200, buffer_init_steps=60, train_interval=4, n_step=2, save_replay_buffer=True, per_alpha=0.6
    )
    folder, seen = Run(folder / name) if resume else Run.create(folder, name), Stops()
    args, saving = TrainArgs(total_timesteps=384, batch_size=16), Saving(168, exact_resume=exact)
    parts = {"sac": sac, "signals": signals, "plain": True, "saving": saving, "resume": resume}
    agent = partial(SACLightningAgent, **sizes)
    imitates = [*imitation(agent)] if exact else []
    train(fabric, env, agent, args, folder, [seen, *imitates], **parts)
    return load_checkpoint(folder.dir)[1], seen.metrics


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        partial(RocketSimPool, num_arenas=2, team_size=(1, 2), action=ContinuousAction()),
        partial(GymnasiumEnvs, "MountainCarContinuous-v0", 6),
    ],
    ids=["pool", "gymnasium"],
)
def test_a_resumed_run_ends_to_the_bit_as_one_that_never_stopped(fabric, tmp_path, env):
    """With priorities or imitation, and in an environment that begins new episodes at every checkpoint."""
    exact = env.func is GymnasiumEnvs
    whole, metrics = run(fabric, tmp_path, "whole", env, exact=exact)
    assert metrics["rnd/reward"] > 0 and metrics["curiosity/raw"] > 0 and metrics["rnd/loss"] > 0
    assert not exact or metrics["sac/reference_kl"] > 0
    stopped, _ = run(fabric, tmp_path, "broken", env, 7, exact=exact)
    assert stopped["exact"] and stopped["steps"] == 7 * 24
    resumed, _ = run(fabric, tmp_path, "broken", env, resume=stopped, exact=exact)
    for name, tensor in whole["agent"].items():
        assert torch.equal(tensor, resumed["agent"][name]), name
    for left, right in zip(whole["signals"], resumed["signals"], strict=True):
        assert all(torch.equal(tensor, right["module"][name]) for name, tensor in left["module"].items())
    for name, tensor in whole["ranks"][0]["replay"].items():
        assert torch.equal(tensor, resumed["ranks"][0]["replay"][name]), name
    with pytest.raises(CheckpointError, match="signals: the run had rnd, curiosity, not rnd; use the same signals"):
        run(fabric, tmp_path, "broken", env, resume=stopped, signals=SIGNALS[:1])
