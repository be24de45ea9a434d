"""The loop of agents that learn from replayed steps, with known environments and whole runs."""

import json
from dataclasses import replace
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import nn

from agents import PPOLightningAgent, SACLightningAgent
from envs import (
    ContinuousAction,
    GoalReward,
    GymnasiumEnvs,
    HybridTable,
    ProcessPool,
    RewardSignals,
    RocketSimPool,
    TouchReward,
)
from fabric_rl import (
    GAE,
    ActOutput,
    Callback,
    History,
    OffPolicyAgent,
    Run,
    SACArgs,
    Saving,
    TrainArgs,
    load_checkpoint,
    load_trained,
    train,
    train_off_policy,
)
from fabric_rl.args import ONLY_PPO
from fabric_rl.callbacks import AdaptiveBatchSize, Debug
from fabric_rl.evaluation.demonstrations import choose_algorithm
from fabric_rl.learning.update import NotEnoughMemoryError
from fabric_rl.types import NonFiniteError, SettingError


class Counts(OffPolicyAgent):
    """Action 0, and remembers what it is given; one weight that falls by its gradient of 1, and its target."""

    seen, tau, random, loss = (), 0.0, (), 1.0

    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen, self.random = [], []

    def act(self, obs, state=None, deterministic=False):
        self.random.append(self.acts_at_random)
        return ActOutput(torch.zeros(len(obs), dtype=torch.int64), torch.zeros(len(obs)))

    def value(self, obs, state=None):
        if self.random:  # the trial may ask
            raise AssertionError("nobody needs values")
        return obs[:, 0]

    def training_step(self, minibatch):
        self.seen.append(minibatch)
        return self.weight * self.loss, {"seen": minibatch.reward.mean()}

    def update_targets(self, tau):
        self.tau += tau

    def configure_optimizers(self):
        return torch.optim.SGD([self.weight], lr=0.5)


class AsksForValuesOnce(Counts):
    def __deepcopy__(self, memo):  # the trial's copy
        copy = type(self)(self.observation_space, self.action_space)
        copy.value = lambda obs: obs[:, 0]
        return copy


@pytest.fixture
def counted(fabric, counter_env):
    """Trains on the counter environment and returns the agent."""

    def run(kind=AsksForValuesOnce, callbacks=(), sac=None, **settings):
        built = []
        defaults = {"total_timesteps": 60, "batch_size": 40, "lr_schedule": "constant", "max_grad_norm": 0}
        replaying = {"buffer_init_steps": 0, "train_interval": 2} | (sac or {})

        def make(*spaces):
            built.append(kind(*spaces))
            return built[0]

        args = TrainArgs(**(defaults | settings))
        train_off_policy(fabric, counter_env, make, args, callbacks=callbacks, plain=True, sac=SACArgs(**replaying))
        return built[0]

    return run


def test_updates_targets_and_minibatches_are_as_many_as_asked_for(counted):
    agent = counted(sac={"num_update": 3, "tau": 0.25})
    assert len(agent.seen) == 3 * 10  # 60 steps of 3 sub-environments, 2 of each in a round
    assert {len(minibatch.obs) for minibatch in agent.seen} == {40}
    assert agent.tau == 0.25 * 30 and agent.weight.item() == -0.5 * 30


def test_the_first_steps_are_random_and_nothing_is_learned_from_too_few(counted):
    agent = counted(sac={"buffer_init_steps": 20})
    assert agent.random == [True] * 8 + [False] * 12  # rounds of 6 steps: after 18 there are too few, after 24 enough
    assert len(agent.seen) == 10 - 3


@pytest.mark.parametrize("held", [False, True])
def test_random_actions_may_last_for_a_round(fabric, held):
    taken = []

    class Notes(Callback):
        def on_learn_start(self, state):
            assert not state.agent.holds_actions  # whoever acts between two rounds is not concerned
            assert not state.agent.acts_at_random
            taken.append(state.batch.action.view(4, 2).clone())

    args = TrainArgs(total_timesteps=32, batch_size=4, max_grad_norm=0)
    sac = SACArgs(buffer_init_steps=24, train_interval=4, hold_random_actions=held)
    env = partial(GymnasiumEnvs, "Pendulum-v1", 2)
    train_off_policy(fabric, env, SACLightningAgent, args, callbacks=[Notes()], plain=True, sac=sac)
    lasts = [bool((round == round[0]).all()) for round in taken]
    assert lasts == ([True] * 3 if held else [False] * 3) + [False]
    assert taken[0][0, 0] != taken[0][0, 1] and not torch.equal(taken[0], taken[1])


@pytest.mark.slow
def test_every_group_of_sub_environments_holds_random_actions_of_its_own(fabric):
    taken = []

    class Notes(Callback):
        def on_learn_start(self, state):
            taken.append(state.batch.action.view(4, 3).clone())

    args = TrainArgs(total_timesteps=24, batch_size=4)
    sac = SACArgs(buffer_init_steps=12, train_interval=4, hold_random_actions=True)
    env = partial(ProcessPool, partial(GymnasiumEnvs, "Pendulum-v1", 3), num_workers=2, groups=2)
    train_off_policy(fabric, env, SACLightningAgent, args, callbacks=[Notes()], plain=True, sac=sac)
    assert bool((taken[0] == taken[0][0]).all()) and len(taken[0][0].unique()) == 3


def test_random_actions_are_not_held_where_that_means_nothing(fabric):
    with pytest.raises(ValueError, match="--hold_random_actions has no effect with --train_interval 1"):
        SACArgs(hold_random_actions=True)
    env = partial(RocketSimPool, num_arenas=1, action=HybridTable())
    with pytest.raises(ValueError, match="hold_random_actions does not work with action masks"):
        sac = SACArgs(hold_random_actions=True, train_interval=4)
        train_off_policy(fabric, env, SACLightningAgent, TrainArgs(total_timesteps=24, batch_size=4), sac=sac)


def test_a_run_that_never_learns_says_so(counted):
    with pytest.warns(RuntimeWarning, match="buffer_init_steps 60: the agent learns nothing"):
        counted(sac={"buffer_init_steps": 60})


def test_another_number_of_sub_environments_loses_the_buffer_and_says_so(fabric, tmp_path):
    args, sac = TrainArgs(total_timesteps=40, batch_size=4), SACArgs(buffer_init_steps=8, save_replay_buffer=True)
    run = Run(tmp_path / "run")
    train_off_policy(
        fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), SACLightningAgent, args, run, plain=True, sac=sac
    )
    saved, more = load_checkpoint(run.dir)[1], replace(args, total_timesteps=60)
    env = partial(GymnasiumEnvs, "CartPole-v1", 3)
    with pytest.warns(UserWarning, match="sub-environments; the replay buffer is refilled before learning"):
        train_off_policy(fabric, env, SACLightningAgent, more, plain=True, sac=sac, resume=saved)


def test_observations_may_be_empty(fabric):
    class Blind(gymnasium.Env):
        observation_space, action_space = Box(0, 1, (0,)), Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(0, np.float32), {}

        def step(self, action):
            return np.zeros(0, np.float32), float(action), False, False, {}

    args = TrainArgs(total_timesteps=40, batch_size=4)
    env = partial(GymnasiumEnvs, Blind, 2)
    summary = train_off_policy(fabric, env, SACLightningAgent, args, plain=True, sac=SACArgs(buffer_init_steps=8))
    assert summary["total_steps"] == 40


def test_replayed_steps_belong_together(counted):
    """Sub-environment 1 is truncated after 2 steps: what follows is its own last observation, not the next one's."""
    agent = counted(sac={"num_update": 5}, gamma=0.5)
    found = {}
    for minibatch in agent.seen:
        rows = (minibatch.obs[:, 0], minibatch.reward, minibatch.next_obs[:, 0], minibatch.discount)
        found |= {row[0]: row[1:] for row in zip(*(x.tolist() for x in rows), strict=True)}
    assert found[0.0] == (1.0, 1.0, 0.5) and found[2.0][2] == 0  # terminated after step 3 of sub-environment 0
    assert found[1001.0] == (1.0, 1002.0, 0.5) and found[1101.0] == (1.0, 1102.0, 0.5)
    assert found[2003.0][2] == 0  # terminated and truncated at once


def test_rewards_add_up_over_several_steps(counted):
    agent = counted(sac={"num_update": 5, "n_step": 3}, gamma=0.5)
    last = agent.seen[-1]
    found = dict(
        zip(last.obs[:, 0].tolist(), zip(last.reward.tolist(), last.discount.tolist(), strict=True), strict=True)
    )
    whole = [number for number in found if number < 1000 and number % 100 == 0 and number < 500]
    assert whole and all(found[number] == (1.75, 0.0) for number in whole)  # terminated after three steps
    cut = [number for number in found if 1000 < number < 1700 and number % 100 == 0]
    assert cut and all(found[number] == (1.5, 0.25) for number in cut)  # truncated after two


def test_a_callback_may_change_what_goes_into_the_buffer(counted):
    class Tenfold(Callback):
        def on_learn_start(self, state):
            return state.batch._replace(reward=10 * state.batch.reward)

    assert {float(x) for x in counted(callbacks=[Tenfold()]).seen[-1].reward} == {10.0}


def test_a_callback_may_lower_the_rates_and_knows_the_folder_of_the_run(fabric, counter_env, tmp_path):
    class Halves(Callback):
        def on_train_start(self, state):
            self.folder, state.learning_rate_factor = state.folder, 0.5

        def on_train_end(self, state):
            self.weight = state.agent.weight.item()

    run, halves = Run.create(tmp_path, "r"), Halves()
    args = TrainArgs(total_timesteps=60, batch_size=40, max_grad_norm=0, lr_schedule="constant")
    sac = SACArgs(buffer_init_steps=0, train_interval=2)
    train_off_policy(fabric, counter_env, AsksForValuesOnce, args, run, [halves], plain=True, sac=sac)
    assert halves.folder == run.dir and halves.weight == -0.5 * 0.5 * 10  # a step for each of the ten iterations


def test_a_callback_that_leaves_half_a_row_is_told(counted):
    class Half(Callback):
        def on_learn_start(self, state):
            return state.batch.map(lambda x: x[:4])

    with pytest.raises(ValueError, match=r"buffer_size: 4 steps of 3 sub-environments do not fit"):
        counted(callbacks=[Half()])


def test_a_callback_that_makes_minibatches_is_told(counted):
    class Smaller(Callback):
        def on_iteration_start(self, state):
            state.minibatch_size = 20

    with pytest.raises(ValueError, match=r"^--callbacks: SAC does not divide batches; leave out the callback"):
        counted(callbacks=[Smaller()])


def test_nan_is_found_and_the_weights_before_it_are_kept(fabric, counter_env, tmp_path):
    class Broken(AsksForValuesOnce):
        def training_step(self, minibatch):
            self.loss = float("nan") if len(self.seen) > 4 else 1.0
            return super().training_step(minibatch)

    run = Run.create(tmp_path, "r")
    args, sac = TrainArgs(batch_size=10, max_grad_norm=0, lr_schedule="constant"), SACArgs(buffer_init_steps=0)
    with pytest.raises(NonFiniteError, match=r"the training step's loss became nan.* are in .*nonfinite-rank0\.pt$"):
        train_off_policy(fabric, counter_env, Broken, args, run, plain=True, sac=sac)
    evidence = torch.load(run.dir / "nonfinite-rank0.pt", weights_only=True)
    assert evidence["weights_before"]["weight"].item() == -0.5 * 5


@pytest.mark.parametrize("name", ONLY_PPO)
def test_settings_of_ppo_are_refused(fabric, counter_env, name):
    other = {"normalize_advantages": False, "standardize_returns": True, "overlap": True, "gae_lambda": 0.5}
    args = TrainArgs(**{name: (other | {"combine_advantages": "mean"}).get(name, 1)})
    with pytest.raises(
        ValueError, match=rf"^leave out --{name}, which SAC does not use, or use an SAC preset \(configs/sac"
    ):
        train_off_policy(fabric, counter_env, Counts, args)


def test_each_loop_refuses_the_others_agents(fabric, counter_env):
    with pytest.raises(TypeError, match=r"learns from replayed steps; train it with fabric_rl\.train_off_policy"):
        train(fabric, counter_env, Counts, TrainArgs())
    with pytest.raises(TypeError, match=r"PPOLightningAgent learns from rollouts; train it with fabric_rl\.train"):
        train_off_policy(fabric, counter_env, PPOLightningAgent, TrainArgs())


def test_several_reward_signals_need_as_many_heads(fabric):
    reward = RewardSignals({"touch": TouchReward(), "goal": GoalReward()})
    env = partial(RocketSimPool, num_arenas=1, reward=reward)
    with pytest.raises(
        ValueError, match=r"2 reward signal.*, but SACLightningAgent has value_heads=1; set --agent.value_heads 2"
    ):
        train_off_policy(fabric, env, SACLightningAgent, TrainArgs())


def test_a_buffer_that_never_holds_the_first_steps_is_refused(counted):
    with pytest.raises(
        ValueError, match=r"^--buffer_init_steps 22 does not fit into .* which hold 21 steps; raise --buffer_size$"
    ):
        counted(sac={"buffer_size": 23, "buffer_init_steps": 22})


def test_more_rewards_than_the_buffer_holds_are_refused(counted):
    counted(sac={"buffer_size": 23, "n_step": 7})
    with pytest.raises(ValueError, match=r"^--n_step 8 does not fit into the buffer, which holds 7 steps of each"):
        counted(sac={"buffer_size": 23, "n_step": 8})


@pytest.mark.parametrize(
    ("settings", "sac", "message"),
    [
        ({"batch_size": 10**12}, {}, r"^a minibatch of --batch_size 1000000000000 needs more memory than cpu has left"),
        ({}, {"train_interval": 10**12}, r"^a rollout of --train_interval 1000000000000 in 3 sub-environments needs"),
    ],
)
def test_what_no_memory_holds_is_said_with_its_flag(counted, settings, sac, message):
    with pytest.raises(NotEnoughMemoryError, match=message):
        counted(sac=sac, **settings)


@pytest.mark.parametrize("name", ["batch_size", "total_timesteps"])
def test_numbers_beyond_those_of_the_machine_are_refused(name):
    with pytest.raises(ValueError, match=rf"^--{name} must be at most 2..53, got 1000000000000000000000$"):
        TrainArgs(**{name: 10**21})


def test_priorities_need_the_errors_of_steps(counted):
    with pytest.raises(SettingError, match=r"^--per_alpha: --agent AsksForValuesOnce does not report .* td_error"):
        counted(sac={"per_alpha": 0.5})


SMALL = {"actor_hidden_sizes": (16,), "critic_hidden_sizes": (16,), "normalize_obs": True}
ARGS = TrainArgs(total_timesteps=384, batch_size=32)
SAVING = Saving(168)


def whole_run(fabric, folder, name, save=True, total=384, stop_after=None, resume=None, saving=SAVING, more=()):
    class Stops(Callback):
        def on_iteration_end(self, state):
            state.stop = state.iteration == stop_after

    env = partial(RocketSimPool, num_arenas=2, team_size=(1, 2), action=ContinuousAction())
    sac = SACArgs(
        buffer_size=200, buffer_init_steps=60, train_interval=4, num_update=2, n_step=2, save_replay_buffer=save
    )
    run = Run(folder / name) if resume else Run.create(folder, name)
    agent = partial(SACLightningAgent, **SMALL)
    args = TrainArgs(total_timesteps=total, batch_size=32)
    train_off_policy(fabric, env, agent, args, run, [Stops(), *more], True, saving, resume, sac=sac)
    return load_checkpoint(run.dir)[1]


def test_a_run_that_is_resumed_ends_to_the_bit_as_one_that_never_stopped(fabric, tmp_path):
    """Uneven teams, the ring full and turned over; the buffer and what is drawn from it included."""
    whole = whole_run(fabric, tmp_path, "whole")
    stopped = whole_run(fabric, tmp_path, "broken", stop_after=7)
    assert stopped["exact"] and stopped["steps"] == 7 * 24
    resumed = whole_run(fabric, tmp_path, "broken", resume=stopped)
    assert resumed["steps"] == whole["steps"]
    for name, tensor in whole["agent"].items():
        assert torch.equal(tensor, resumed["agent"][name]), name
    for name, tensor in whole["ranks"][0]["replay"].items():
        assert torch.equal(tensor, resumed["ranks"][0]["replay"][name]), name


def test_a_milestone_that_is_written_on_resume_has_the_buffer(fabric, tmp_path):
    stopped = whole_run(fabric, tmp_path, "r", stop_after=7)
    obs = stopped["ranks"][0]["replay"]["obs"].clone()
    whole_run(fabric, tmp_path, "r", resume=stopped, saving=Saving(168, milestone_interval=168), total=192)
    _, milestone = load_checkpoint(tmp_path / "r/milestones/main/000000000168")
    assert torch.equal(milestone["ranks"][0]["replay"]["obs"], obs)
    assert not stopped["ranks"][0]["replay"]  # memory that nobody needs any more


def test_debugging_does_not_show_advantages_that_there_are_none_of(fabric, tmp_path, recwarn):
    history = History()
    whole_run(fabric, tmp_path, "r", total=192, more=[Debug(learning=True), history])
    names = {name for row in history.rows for name in row}
    assert any(name.startswith("debug/") for name in names)
    assert not any("advantage" in name or "value_error" in name for name in names)
    assert not [each for each in recwarn if "advantages are equal" in str(each.message)]


def test_minibatches_that_grow_are_refused_at_the_start(counted):
    with pytest.raises(ValueError, match=r"^--callbacks AdaptiveBatchSize: SAC does not divide batches; it is for PPO"):
        counted(callbacks=[AdaptiveBatchSize()])


def test_without_its_buffer_a_run_says_what_it_has_forgotten(fabric, tmp_path):
    stopped = whole_run(fabric, tmp_path, "r", save=False, stop_after=7)
    assert not stopped["exact"] and stopped["ranks"][0]["replay"] is None
    with pytest.warns(UserWarning, match=r"the replay buffer was not saved.*equivalent, not bit-identical"):
        whole_run(fabric, tmp_path, "r", save=False, resume=stopped)


def test_another_agents_checkpoint_is_refused(fabric, tmp_path):
    stopped = whole_run(fabric, tmp_path, "r", stop_after=1)
    env = partial(RocketSimPool, num_arenas=2, team_size=(1, 2), action=ContinuousAction())
    with pytest.raises(
        ValueError, match=r"agent agents.sac.SACLightningAgent in the checkpoint, agents.ppo.PPOLightningAgent here"
    ):
        train(fabric, env, PPOLightningAgent, TrainArgs(num_steps=4, minibatch_size=4), resume=stopped)


def test_a_trained_agent_plays(fabric, tmp_path):
    whole_run(fabric, tmp_path, "r", stop_after=4)
    env = partial(RocketSimPool, team_size=(1, 2), action=ContinuousAction())
    trained = load_trained(tmp_path / "r", env=env, agent=partial(SACLightningAgent, **SMALL))
    pool = env(num_arenas=1)
    choose = trained.choose(pool.single_observation_space, pool.single_action_space)
    obs, _ = pool.reset(seed=0)
    assert choose(obs, np.ones(len(obs), bool)).shape == (len(obs), 8)


def test_inference_plays_and_learns_nothing(fabric, tmp_path):
    stopped = whole_run(fabric, tmp_path, "r", stop_after=7)
    env = partial(RocketSimPool, num_arenas=2, team_size=(1, 2), action=ContinuousAction())
    built = []

    def make(*spaces):
        built.append(SACLightningAgent(*spaces, **SMALL))
        return built[0]

    train_off_policy(fabric, env, make, ARGS, weights=stopped, inference=True, plain=True)
    assert all(torch.equal(tensor, stopped["agent"][name]) for name, tensor in built[0].state_dict().items())
    assert not built[0].acts_at_random


def test_an_agent_may_have_a_loop_and_a_name_of_its_own(counted, fabric, counter_env):
    class Own(AsksForValuesOnce):
        algorithm = "redq"
        training_loop = staticmethod(train_off_policy)

    sac = SACArgs(buffer_init_steps=0)
    chosen = choose_algorithm(Own, counter_env, GAE(), sac, (), inference=False)
    assert chosen.func is Own.training_loop and chosen.keywords["sac"] is sac
    history = History()
    counted(Own, callbacks=[history])
    names = {name for row in history.rows for name in row}
    assert {"redq/loss", "redq/replay_steps", "redq/learning_rate"} <= names
    assert not [name for name in names if name.startswith("sac/")]


class Watched(SACLightningAgent):
    """Keeps the part, the observations and the weights of each training step."""

    def training_step(self, minibatch):
        parts = {name: [p.detach().clone() for p in own] for name, own in self.update_parts().items()}
        self.seen = [*getattr(self, "seen", []), (minibatch.part, minibatch.obs, parts)]
        return super().training_step(minibatch)


def test_the_policy_learns_from_critics_that_have_learned_from_the_same_steps(fabric):
    made = []

    def build(*spaces):
        made.append(Watched(*spaces, **SMALL))
        return made[0]

    env, sac = partial(GymnasiumEnvs, "Pendulum-v1", 1), SACArgs(buffer_init_steps=16)
    train_off_policy(fabric, env, build, TrainArgs(total_timesteps=32, batch_size=8), plain=True, sac=sac)
    seen = made[0].seen
    assert [part for part, _, _ in seen] == ["critics", "policy"] * 17
    for (_, obs, before), (_, again, after), (_, other, later) in zip(seen[::2], seen[1::2], seen[2::2], strict=False):
        assert torch.equal(obs, again) and not torch.equal(obs, other)
        for part, moved in (("critics", (True, False)), ("policy", (False, True))):
            weights = [torch.cat([p.flatten() for p in each[part]]) for each in (before, after, later)]
            assert (not torch.equal(*weights[:2]), not torch.equal(*weights[1:])) == moved


class Extended(SACLightningAgent):
    """Has a parameter that belongs to the parts `owners`."""

    owners = ()

    def __post_init__(self):
        super().__post_init__()
        self.extra = nn.Parameter(torch.zeros(1))

    def update_parts(self):
        return {name: [*own, *[self.extra] * (name in self.owners)] for name, own in super().update_parts().items()}

    def training_step(self, minibatch):
        loss, stats = super().training_step(minibatch)
        return loss + (self.extra - 1).square().sum(), stats


def extended(fabric, base=Extended, **attributes):
    """Train briefly; return the agent, whose class has these attributes."""
    made = []

    def build(*spaces):
        made.append(type("Own", (base,), attributes)(*spaces, **SMALL))
        if "configure_optimizers" not in attributes:
            made[0].configure_optimizers = lambda: torch.optim.SGD(made[0].parameters(), lr=0.1)
        return made[0]

    env, sac = partial(GymnasiumEnvs, "CartPole-v1", 1), SACArgs(buffer_init_steps=16)
    args = TrainArgs(total_timesteps=64, batch_size=8, max_grad_norm=0, lr_schedule="constant")
    train_off_policy(fabric, env, build, args, plain=True, sac=sac)
    return made[0]


@pytest.mark.parametrize("part", ["critics", "policy"])
def test_a_parameter_learns_from_the_loss_of_its_part_only(fabric, part):
    agent = extended(fabric, owners=(part,))
    assert agent.extra.item() == pytest.approx(1 - 0.8**49, abs=1e-6)  # one step of 0.1 x 2 (1 - extra) per update


@pytest.mark.parametrize(("owners", "found"), [((), "none; add it .*"), (("critics", "policy"), "2")])
def test_a_parameter_in_no_part_or_in_two_is_an_error_at_the_start(fabric, owners, found):
    with pytest.raises(ValueError, match=rf"^--agent Own.update_parts\(\): the parameter extra must be .* {found}$"):
        extended(fabric, owners=owners)


def test_every_part_is_tried_before_training(fabric):
    def training_step(self, minibatch):
        if minibatch.part == "policy":
            raise ValueError("unknown part")
        return Extended.training_step(self, minibatch)

    with pytest.raises(ValueError, match=r"^--agent Own.training_step\(\) of minibatch.part 'policy': unknown part"):
        extended(fabric, owners=("policy",), training_step=training_step)


def parts_of(agent):
    return SACLightningAgent.update_parts(agent)


def without_policy(agent):
    return torch.optim.SGD(agent.critics.parameters(), lr=0.1)


def with_a_stranger(agent):
    return torch.optim.SGD([*agent.parameters(), nn.Parameter(torch.zeros(3, 2))], lr=0.1)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"update_parts": lambda agent: None}, r"update_parts\(\) must return a dict of lists of parameters, got None"),
        (
            {"update_parts": lambda agent: {"all": [nn.Linear(1, 1)]}},
            r"update_parts\(\): 'all' must be a list of parameters, but contains Linear",
        ),
        (
            {"update_parts": lambda agent: dict(zip(("policy", "critics"), parts_of(agent).values(), strict=True))},
            r"training_step\(\) of minibatch.part 'policy': the loss does not depend on the parameters of this part",
        ),
        ({"update_targets": lambda agent: None}, r"update_targets\(\): .* takes 1 positional argument"),
        (
            {"configure_optimizers": without_policy},
            r"configure_optimizers\(\): log_temperature would never learn; add it, or",
        ),
        (
            {"configure_optimizers": with_a_stranger},
            r"configure_optimizers\(\): a parameter of shape \[3, 2\] is not one",
        ),
    ],
)
def test_a_mistake_in_the_parts_or_the_optimizer_is_an_error_at_the_start(fabric, attributes, said):
    with pytest.raises(ValueError, match=rf"^--agent Own\.{said}"):
        extended(fabric, SACLightningAgent, **attributes)


def test_parts_may_be_generators(fabric):
    def update_parts(self):
        return {name: (p for p in [*[self.extra] * (name == "policy"), *own]) for name, own in parts_of(self).items()}

    agent = extended(fabric, update_parts=update_parts)
    assert agent.extra.item() == pytest.approx(1 - 0.8**49, abs=1e-6)


def test_targets_move_without_gradients(fabric):
    def update_targets(self, tau):
        for old, new in zip(self.target_critics.parameters(), self.critics.parameters(), strict=True):
            old.mul_(1 - tau).add_(tau * new)

    agent = extended(fabric, owners=("policy",), update_targets=update_targets)
    assert not any(p.requires_grad for p in agent.target_critics.parameters())


def test_without_parts_a_loss_that_loses_its_gradient_ends_the_training(fabric):
    def training_step(self, minibatch):
        loss, stats = SACLightningAgent.training_step(self, minibatch)
        self.updates = getattr(self, "updates", 0) + 1
        return (loss if self.updates < 5 else loss.detach()), stats

    with pytest.raises(ValueError, match=r"^--agent Own.training_step\(\): the loss has no gradient any more$"):
        extended(fabric, SACLightningAgent, update_parts=lambda agent: {}, training_step=training_step)


@pytest.mark.parametrize("part", ["critics", "policy"])
def test_a_frozen_part_is_left_out(fabric, part):
    def __post_init__(self):
        Extended.__post_init__(self)
        for parameter in SACLightningAgent.update_parts(self)[part]:
            parameter.requires_grad_(False)

    def training_step(self, minibatch):  # nothing in the loss of the frozen part has a gradient
        kind = SACLightningAgent if minibatch.part == part else Extended
        return kind.training_step(self, minibatch)

    (other,) = {"critics", "policy"} - {part}
    agent = extended(fabric, owners=(other,), __post_init__=__post_init__, training_step=training_step)
    assert agent.extra.item() == pytest.approx(1 - 0.8**49, abs=1e-6)


def assert_learns_with_ddp(forks, folder, ranks, strategy, *more, **files):
    flags = ["--config", "sac_pendulum", "--total_timesteps", 240, "--buffer_init_steps", 200, "--accelerator", "cpu"]
    flags += ["--devices", ranks, "--strategy", strategy, "--runs_dir", folder, "--run_id", "r", "--plain", *more]
    statuses, _, err = forks.wait(forks.ranks(ranks, *flags, **files))
    assert set(statuses) == {0}, err
    assert json.loads((folder / "r/summary.json").read_text())["total_steps"] == 240


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "strategy"), [(1, "ddp"), (2, "ddp_find_unused_parameters_true")])
def test_parts_learn_with_every_kind_of_ddp(forks, tmp_path, ranks, strategy):
    assert_learns_with_ddp(forks, tmp_path, ranks, strategy)


ONE_PART = """
from agents import SACLightningAgent

class Agent(SACLightningAgent):
    def update_parts(self):
        return {"all": [parameter for own in super().update_parts().values() for parameter in own]}

    def training_step(self, minibatch):  # nothing in the loss of the part depends on the policy
        return super().training_step(minibatch._replace(part="critics" if minibatch.part else None))
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "ddp_find_unused_parameters_true"])
def test_one_part_with_parameters_that_its_loss_leaves_out_learns_with_ddp(forks, tmp_path, strategy):
    assert_learns_with_ddp(forks, tmp_path, 2, strategy, "--agent", "own.Agent", files={"own.py": ONE_PART})


@pytest.mark.parametrize("space", [Discrete(2), Box(-2, 2, (1,))])
def test_both_kinds_of_actions_train(fabric, space):
    env = partial(GymnasiumEnvs, "CartPole-v1" if isinstance(space, Discrete) else "Pendulum-v1", 2)
    summary = train_off_policy(
        fabric,
        env,
        partial(SACLightningAgent, **SMALL),
        TrainArgs(total_timesteps=120, batch_size=16),
        plain=True,
        sac=SACArgs(buffer_init_steps=40, buffer_size=100),
    )
    assert summary["total_steps"] == 120
