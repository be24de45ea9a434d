"""Several roles in one run: they act together, and each learns with its own trainer."""

from functools import partial

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from lightning import Fabric

import envs
from agents import PPOLightningAgent, RecurrentPPOAgent, RolesAgent, SACLightningAgent
from fabric_rl import (
    Callback,
    EpisodeStats,
    RoleTrainer,
    Rollout,
    Run,
    SACArgs,
    Saving,
    TrainArgs,
    collect,
    load_checkpoint,
    train,
    train_roles,
)
from fabric_rl.base.state_schema import CannotBeSavedError
from fabric_rl.callbacks import SymmetryAugmentation
from fabric_rl.evaluation.demonstrations import choose_algorithm
from fabric_rl.learning.gae import GAE
from fabric_rl.roles.parts import RoleEnv
from fabric_rl.roles.train import role_settings
from fabric_rl.rollouts.collect import Actor, collect_together
from fabric_rl.runs import checkpoint
from fabric_rl.selfplay import MostSimilar, SelfPlay
from fabric_rl.selfplay.opponents import TeamAssignment
from fabric_rl.signals import Curiosity
from fabric_rl.types import CheckpointError, HasMetrics

SMALL = {"actor_hidden_sizes": (8,), "critic_hidden_sizes": (8,)}
KEEPER = partial(SACLightningAgent, **SMALL)
STRIKER = partial(PPOLightningAgent, **SMALL)
MEMORY = partial(RecurrentPPOAgent, hidden_sizes=(8,), memory_size=8, sequence_length=4)
AGENT = partial(RolesAgent, roles={"keeper": KEEPER, "striker": STRIKER})
OFTEN = [envs.TimeoutCondition(0.4), envs.GoalCondition()]
POOL = partial(
    envs.RocketSimPool,
    num_arenas=3,
    obs=envs.TeamRoleObs(envs.DefaultObs()),
    done=OFTEN,
    state_setter=envs.RandomState(),
)
OF_KEEPER = RoleTrainer({"train_interval": 4, "batch_size": 8, "buffer_init_steps": 12})
OF_STRIKER = RoleTrainer({"num_steps": 16, "update_epochs": 1, "minibatch_size": 24})


class Watch(Callback):
    """Keeps the metrics of every iteration, and which parameters have changed in it."""

    def __init__(self):
        self.metrics, self.changed = [], []

    def on_iteration_start(self, state):
        self.before = {name: p.clone() for name, p in state.agent.named_parameters()}

    def on_iteration_end(self, state):
        self.metrics.append(dict(state.metrics))
        new = {
            name.split(".")[1] for name, p in state.agent.named_parameters() if not torch.equal(p, self.before[name])
        }
        self.changed.append(new)


def run(steps=192, callbacks=(), agent=AGENT, env=POOL, keeper=OF_KEEPER, striker=OF_STRIKER, num_steps=8, **more):
    args = TrainArgs(total_timesteps=steps, num_steps=num_steps)
    fabric = Fabric(accelerator="cpu", devices=1)
    trainers = {"keeper": keeper, "striker": striker}
    return train_roles(fabric, env, agent, args, callbacks=callbacks, plain=True, trainers=trainers, **more)


def begun(pool, number, agent, num_steps):
    """The sub-environments of a role, and a rollout of its agent that has begun."""
    obs, infos = pool.reset(seed=3)
    view = RoleEnv(pool, np.flatnonzero(obs[:, -1] == number), number)
    torch.manual_seed(number)
    made = agent(view.single_observation_space, view.single_action_space)
    rollout = Rollout(num_steps, view, "cpu", made)
    rollout.begin(*view.started(obs, infos))
    return view, made, rollout


def test_each_role_learns_when_its_own_steps_are_there():
    watch = Watch()
    summary = run(callbacks=[watch])
    assert summary["total_steps"] == 192 and summary["iterations"] == 4
    assert watch.changed == [{"keeper"}, {"keeper", "striker"}] * 2  # PPO: after 16 steps, SAC: after each 8
    first, second = watch.metrics[:2]
    assert "striker/ppo/entropy" in second and "striker/ppo/entropy" not in first
    assert "keeper/sac/temperature" in first and second["keeper/sac/replay_steps"] == 48
    total = sum(second[f"{role}/reward/step"] for role in ("keeper", "striker"))
    assert second["reward/step"] == pytest.approx(total / 2)


def test_settings_of_each_role_reach_its_learner():
    watch = Watch()
    keeper = RoleTrainer({**OF_KEEPER.settings, "num_update": 3, "lr_schedule": "constant"})
    striker = RoleTrainer({**OF_STRIKER.settings, "num_steps": 8, "minibatch_size": 8, "lr_schedule": "cosine"})
    run(steps=96, callbacks=[watch], keeper=keeper, striker=striker)
    rates = [[row[f"{name}/learning_rate"] for row in watch.metrics] for name in ("keeper/sac", "striker/ppo")]
    assert rates[0] == pytest.approx([3e-4, 3e-4]) and rates[1] == pytest.approx([1e-3, 5e-4])


def test_one_role_alone_can_have_reward_signals():
    watch = Watch()
    roles = {"keeper": KEEPER, "striker": partial(STRIKER, value_heads=2)}
    striker = RoleTrainer(OF_STRIKER.settings, signals=[Curiosity])
    run(callbacks=[watch], agent=partial(RolesAgent, roles=roles), striker=striker)
    assert watch.metrics[3]["striker/curiosity/reward"] > 0 and "keeper/curiosity/reward" not in watch.metrics[3]


@pytest.mark.slow
def test_a_role_that_gets_a_reward_signal_keeps_the_value_head_that_it_had():
    before, start = Weights(), Weights()
    run(48, callbacks=[before])
    start.on_train_start = start.on_train_end
    roles = {"keeper": KEEPER, "striker": partial(STRIKER, value_heads=2)}
    striker = RoleTrainer(OF_STRIKER.settings, signals=[Curiosity])
    start.on_train_end = lambda state: None
    agent = partial(RolesAgent, roles=roles)
    run(48, callbacks=[start], agent=agent, striker=striker, weights={"agent": before.last})
    head = "roles.striker.value_head.layer.weight"
    assert len(start.last[head]) == 2 and torch.equal(start.last[head][:1], before.last[head])
    assert start.last.keys() == before.last.keys()


def test_actors_fill_their_rollouts_as_alone():
    """Together, with the other's actions in between, each role has what one agent for all rows would have."""
    pool = POOL()
    parts = [begun(pool, number, STRIKER, 6) for number in (0, 1)]
    for _, made, _ in parts:
        made.act = partial(made.act, deterministic=True)
    stats = [EpisodeStats(3), EpisodeStats(3)]
    actors = [
        Actor(made, rollout, each, rows=view.rows, select=view.select)
        for (view, made, rollout), each in zip(parts, stats, strict=True)
    ]
    pool.reset(seed=3)
    with torch.no_grad():
        collect_together(pool, actors, 6)
    whole = AGENT.func(pool.single_observation_space, pool.single_action_space, {"a": STRIKER, "b": STRIKER})
    for (_, made, _), own in zip(parts, whole.agents, strict=True):
        own.load_state_dict(made.state_dict())
    whole.act = partial(whole.act, deterministic=True)
    joint = Rollout(6, pool, "cpu", whole)
    joint.begin(*pool.reset(seed=3))
    with torch.no_grad():
        collect(pool, whole, joint)
    for view, _, rollout in parts:
        assert torch.equal(rollout.obs, joint.obs[:, view.rows, :-1])
        for name in ("action", "reward", "done", "terminated", "value", "next_value"):
            torch.testing.assert_close(getattr(rollout, name), getattr(joint, name)[:, view.rows])
    ended = [each.drain_metrics()["game/episode_length"][1] for each in stats]
    assert ended == [float(joint.done[:, view.rows].sum()) for view, _, _ in parts] and min(ended) > 0


@pytest.mark.parametrize("agent", [STRIKER, MEMORY])
def test_a_rollout_in_two_parts_is_the_rollout_at_once(agent):
    def collected(*parts):
        pool = POOL()
        roles = [begun(pool, number, agent, 8) for number in (0, 1)]
        torch.manual_seed(5)
        first = 0
        for num_steps in parts:
            actors = [Actor(made, rollout, None, first, view.rows, view.select) for view, made, rollout in roles]
            with torch.no_grad():
                collect_together(pool, actors, num_steps)
            first += num_steps
        return [rollout.state_dict(whole=True) for _, _, rollout in roles]

    for whole, halves in zip(collected(8), collected(4, 4), strict=True):
        assert whole["done"].any()
        for name, tensor in whole.items():
            if tensor is not None:
                torch.testing.assert_close(halves[name], tensor, msg=name)


@pytest.mark.parametrize(
    ("given", "off_policy", "message"),
    [
        ({"gama": 1.0}, True, "gama is not a setting of this role's trainer.*did you mean gamma"),
        ({"update_epochs": 3}, True, "update_epochs is not a setting of this role's trainer"),
        ({"tau": 0.1}, False, "tau is not a setting of this role's trainer"),
        ({"total_timesteps": 5}, False, "total_timesteps is a setting of the whole run"),
        ({"gamma": 2.0}, False, "--gamma must be a number from 0 to 1, got 2.0"),
        ({"num_steps": 12}, False, "num_steps 12 must be a multiple of the run's --num_steps 8"),
        ({"train_interval": 3}, True, "train_interval 3 must divide the run's --num_steps 8"),
        ({"train_interval": 4, "hold_random_actions": True}, True, "hold_random_actions needs train_interval 8"),
        ({"lr_schedule": "kl_adaptive"}, True, "leave out --lr_schedule kl_adaptive, which SAC does not use"),
    ],
)
def test_settings_that_a_role_cannot_have_are_one_line(given, off_policy, message):
    with pytest.raises(ValueError, match=message):
        role_settings(given, TrainArgs(num_steps=8), SACArgs(), off_policy)


def test_settings_of_an_algorithm_that_no_role_has_are_refused():
    both = {
        name: partial(RolesAgent, roles={"a": role, "b": role}) for name, role in (("ppo", STRIKER), ("sac", KEEPER))
    }
    with pytest.raises(ValueError, match="leave out --buffer_size, which only agents that learn with SAC use"):
        choose_algorithm(both["ppo"], POOL, GAE(), SACArgs(buffer_size=5), (), inference=False)
    with pytest.raises(ValueError, match="--estimator is only for PPO"):
        choose_algorithm(both["sac"], POOL, Other(), SACArgs(), (), inference=False)
    assert callable(choose_algorithm(AGENT, POOL, Other(), SACArgs(buffer_size=5), (), inference=False))


class Other(GAE):
    """Another estimator."""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"striker": RoleTrainer({"gamma": 2.0})}, "--trainers.striker: --gamma must be a number"),
        ({"agent": STRIKER}, "--agent PPOLightningAgent has no roles; train it with fabric_rl.train"),
        ({"env": partial(POOL, team_size=(0, 1))}, "--trainers.keeper: no car of --env has this role"),
    ],
)
def test_what_does_not_work_is_one_line(more, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        run(**more)


def test_unknown_roles_and_the_wrong_loop_are_one_line():
    fabric, args = Fabric(accelerator="cpu", devices=1), TrainArgs(total_timesteps=48, num_steps=8)
    with pytest.raises(ValueError, match=r"--trainers.goalie: the agent's roles are keeper, striker"):
        train_roles(fabric, POOL, AGENT, args, trainers={"goalie": RoleTrainer()})
    with pytest.raises(ValueError, match="--overlap does not work with --agent RolesAgent"):
        train_roles(fabric, POOL, AGENT, TrainArgs(overlap=True))
    with pytest.raises(ValueError, match="SymmetryAugmentation works on the batch of one agent"):
        train_roles(fabric, POOL, AGENT, args, callbacks=[SymmetryAugmentation()])
    with pytest.raises(TypeError, match=r"each role has its own optimizer; train it with fabric_rl\.train_roles"):
        train(fabric, POOL, AGENT, args)


@pytest.mark.slow
def test_a_resumed_run_keeps_the_order_of_its_roles_and_fills_its_rollouts(tmp_path):
    """The striker has 8 of 24 steps."""
    striker = RoleTrainer({**OF_STRIKER.settings, "num_steps": 24})
    run(48, striker=striker, run=Run(tmp_path), saving=Saving(final_model="none"))
    _, half = load_checkpoint(tmp_path / "checkpoints")
    with pytest.raises(CheckpointError, match="--num_steps 12: the role striker has 8 of 24 steps"):
        run(96, striker=striker, num_steps=12, resume=half)
    swapped = partial(RolesAgent, roles={"striker": STRIKER, "keeper": KEEPER})
    with pytest.raises(CheckpointError, match="the order of the roles must stay keeper, striker"):
        run(96, striker=striker, agent=swapped, resume=half)


class Weights(Callback):
    """Keeps the weights at the end."""

    def on_train_end(self, state):
        self.last = {name: tensor.clone() for name, tensor in state.agent.state_dict().items()}


def test_rollouts_with_masks_are_resumed_in_the_middle(tmp_path):
    """Both roles have 8 of 24 steps."""
    both = {name: RoleTrainer({**OF_STRIKER.settings, "num_steps": 24}) for name in ("keeper", "striker")}
    both |= {
        "agent": partial(RolesAgent, roles={"keeper": STRIKER, "striker": STRIKER}),
        "env": partial(POOL, action=envs.HybridTable()),
    }
    saving = Saving(final_model="none", checkpoint_every_timesteps=48)
    at_once, resumed = Weights(), Weights()
    run(144, callbacks=[at_once], run=Run(tmp_path / "whole"), saving=saving, **both)
    half = checkpoint.read(tmp_path / "whole/checkpoints/step_000000000048.ckpt")
    run(144, callbacks=[resumed], run=Run(tmp_path / "resumed"), saving=saving, resume=half, **both)
    assert all(torch.equal(at_once.last[name], tensor) for name, tensor in resumed.last.items())


class NotSaved(envs.RocketSimPool):
    def state_dict(self):
        raise CannotBeSavedError("not saved")


@pytest.mark.slow
def test_a_rollout_begins_again_with_new_episodes(tmp_path):
    """The striker had 8 of 24 steps; the environment cannot be saved."""
    striker, watch = RoleTrainer({**OF_STRIKER.settings, "num_steps": 24}), Watch()
    env = partial(NotSaved, **POOL.keywords)
    run(48, striker=striker, env=env, run=Run(tmp_path), saving=Saving(final_model="none"))
    _, half = load_checkpoint(tmp_path / "checkpoints")
    with pytest.warns(UserWarning, match="not bit-identical"):
        run(192, [watch], striker=striker, env=env, resume=half)
    assert [names & {"striker"} for names in watch.changed] == [set(), set(), {"striker"}]


def test_a_changed_role_is_one_line():
    pool = POOL()
    view = RoleEnv(pool, np.arange(0, 6, 2), 0)
    obs, infos = pool.reset(seed=0)
    obs[2, -1] = 1
    flags = np.zeros(6, np.bool_)
    with pytest.raises(ValueError, match="a sub-environment with the role 0 changed its role to 1"):
        view.select((obs, np.zeros(6), flags, flags, infos), view.rows, 6)


def test_the_settings_of_the_run_hold_where_a_role_has_none():
    args, sac = TrainArgs(gamma=0.9, update_epochs=3, max_grad_norm=2.0), SACArgs(tau=0.1)
    own, none = role_settings({"update_epochs": 5}, args, sac, off_policy=False)
    assert (own.gamma, own.update_epochs, own.max_grad_norm, none) == (0.9, 5, 2.0, None)
    own, of_sac = role_settings({"num_update": 3, "train_interval": 32, "gamma": 0.5}, args, sac, off_policy=True)
    assert (own.gamma, own.update_epochs, own.max_grad_norm) == (0.5, TrainArgs.update_epochs, 2.0)
    assert (of_sac.tau, of_sac.num_update, of_sac.train_interval) == (0.1, 3 * 4, 128)


def test_sides_that_are_fixed_stay_when_episodes_begin():
    arenas, teams = np.repeat(np.arange(4), 2), np.tile([0, 1], 4)
    assignment = TeamAssignment(arenas, teams, 1.0, fixed_sides=True)
    before = assignment.learners.copy()
    assignment.begin(np.arange(4), None)
    assert assignment.learners.tolist() == before.tolist() == [0, 3, 4, 7]  # blue, orange, blue, orange


def test_self_play_keeps_the_roles():
    self_play, watch = SelfPlay(save_steps=48, swap_steps=48, window=2), Watch()
    env = self_play.around(partial(POOL, num_arenas=4), AGENT, fixed_sides=True)
    striker = RoleTrainer(OF_STRIKER.settings | {"minibatch_size": 16})
    run(steps=128, callbacks=[self_play, watch], env=env, striker=striker)
    assert watch.changed[-1] == {"keeper", "striker"} and watch.metrics[-1]["selfplay/opponents"] == 2
    with pytest.raises(ValueError, match="team_change does not work with agents"):
        SelfPlay(team_change=100).around(POOL, AGENT, fixed_sides=True)
    with pytest.raises(ValueError, match="eviction MostSimilar does not work with agents"):
        SelfPlay(eviction=MostSimilar()).around(POOL, AGENT, fixed_sides=True)


def test_rewards_by_role_are_paid_to_the_cars_of_the_role():
    class One(envs.Reward):
        def __init__(self, pays):
            self.pays = pays

        def compute(self, state):
            return np.full((state.num_arenas, state.num_cars), self.pays, np.float32)

    pool = partial(envs.RocketSimPool, num_arenas=2, team_size=2, obs=envs.DefaultObs())
    by_team = envs.RoleRewards({"blue": One(1), "orange": envs.CombinedReward([One(2)], [1.0])})
    built = pool(reward=by_team)
    built.reset(seed=0)
    assert built.step(np.zeros(8, np.int64))[1].tolist() == [1, 1, 2, 2] * 2
    assert isinstance(built, HasMetrics) and built.drain_metrics()["reward/orange/One"] == (16, 8)
    built = pool(reward=envs.RoleRewards({"striker": One(1), "goalie": One(2)}, by="slot"))
    built.reset(seed=0)
    assert built.step(np.zeros(8, np.int64))[1].tolist() == [1, 2, 1, 2] * 2
    with pytest.raises(ValueError, match="one reward each for blue and orange, got 3"):
        envs.RoleRewards({name: One(1) for name in "abc"})


class CartPoles(envs.GymnasiumEnvs):
    """CartPole-v1 with a column for the role: the first half of the sub-environments has role 0, the others role 1."""

    def __init__(self, num_envs, seed=0):
        super().__init__("CartPole-v1", num_envs, seed=seed)
        self.role = (np.arange(num_envs) >= num_envs // 2).astype(np.float32)[:, None]
        space = self.single_observation_space
        low, high = np.append(space.low, np.float32(0)), np.append(space.high, np.float32(1))
        self.single_observation_space = Box(low, high)

    def reset(self, **settings):
        obs, infos = super().reset(**settings)
        return np.hstack((obs, self.role)), infos

    def step(self, actions):
        obs, *rest, infos = super().step(actions)
        if "final_obs" in infos:
            infos["final_obs"] = np.hstack((infos["final_obs"], self.role))
        return np.hstack((obs, self.role)), *rest, infos


@pytest.mark.learning
def test_both_algorithms_learn_in_one_run():
    sac = partial(SACLightningAgent, actor_hidden_sizes=(64,), critic_hidden_sizes=(64,), actor_lr=1e-3, critic_lr=1e-3)
    ppo = partial(PPOLightningAgent, actor_lr=1e-3, critic_lr=1e-3)
    settings = {"train_interval": 1, "num_update": 2, "batch_size": 64, "buffer_init_steps": 500, "gamma": 0.98}
    trainers = {
        "sac": RoleTrainer(settings | {"lr_schedule": "constant", "buffer_size": 20_000}),
        "ppo": RoleTrainer(
            {"num_steps": 32, "update_epochs": 10, "minibatch_size": 64, "gae_lambda": 0.8, "gamma": 0.98}
        ),
    }
    watch, args = Watch(), TrainArgs(total_timesteps=60_000, num_steps=8)
    agent, env = partial(RolesAgent, roles={"sac": sac, "ppo": ppo}), partial(CartPoles, 16)
    train_roles(
        Fabric(accelerator="cpu", devices=1), env, agent, args, callbacks=[watch], plain=True, trainers=trainers
    )
    for role in ("sac", "ppo"):
        name = f"{role}/reward/episode_return"
        ended = [row[name] for row in watch.metrics[-100:] if name in row]
        assert sum(ended) / len(ended) > 120, (role, sum(ended) / len(ended))  # without learning it is 22
