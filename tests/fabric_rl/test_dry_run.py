"""The trial before training: malformed parts are named, good ones are left as they were."""

import random
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch

from fabric_rl import ActOutput
from fabric_rl.dry_run import dry_run_parts
from fabric_rl.session.build import Algorithm

THREE_STEPS = partial(Algorithm().make_batch, 3)


@pytest.fixture
def attempt(fabric, counter_env, known_agent):
    """Tries `CounterEnv` and `KnownAgent`; keywords replace methods, which get what the original returns."""

    def call(agent=(), **replaced):
        env = counter_env(terminate_after=(1, 9), truncate_after=(9, 9))
        known = known_agent(env.single_observation_space, env.single_action_space)
        for owner, methods in ((env, replaced), (known, dict(agent))):
            for name, change in methods.items():
                setattr(owner, name, changed(getattr(owner, name), change))
        dry_run_parts(fabric, env, known, 7, (), THREE_STEPS)
        return env

    return call


def changed(method, change):
    return lambda *args, **kwargs: change(method(*args, **kwargs))


def replace(index, change):
    """Replaces one item of a tuple."""

    def replaced(result):
        items = list(result)
        items[index] = change(items[index])
        return tuple(items)

    return replaced


def test_good_parts_pass_and_the_environment_is_seeded(attempt):
    env = attempt()
    assert (env.seeds, env.steps) == ([7], 1)


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (
            {"reset": lambda r: r[0]},
            r"^--env CounterEnv.reset\(\) must return a tuple \(observations, infos\), got ndarray$",
        ),
        (
            {"step": lambda r: r[:4]},
            r"CounterEnv.step\(\) must return a tuple \(observations, rewards, .*\), got a tuple of 4$",
        ),
        (
            {"reset": replace(0, lambda obs: obs[:, :1])},
            r"CounterEnv.reset\(\): the observations must be numbers of shape \[2, 2\], got float64 of shape \[2, 1\]",
        ),
        ({"reset": replace(0, lambda obs: obs.astype(str))}, r"reset\(\): the observations must be numbers .* got <U"),
        (
            {"reset": replace(0, lambda obs: np.where(obs == 1000, np.nan, obs))},
            r"CounterEnv.reset\(\): the observations must be finite, got nan: sub-environment 1, column 0",
        ),
        ({"step": replace(0, lambda obs: obs[:1])}, r"CounterEnv.step\(\): the observations must be"),
        ({"step": replace(0, lambda obs: obs / 0)}, r"CounterEnv.step\(\): the observations must be finite"),
        ({"step": replace(1, lambda reward: reward[:, None])}, r"CounterEnv.step\(\): the rewards must be"),
        ({"step": replace(1, lambda reward: reward / 0)}, r"the rewards must be finite, got inf: sub-environment 0$"),
        ({"step": replace(2, lambda done: done.astype(float))}, r"terminated must be bools .* got float64"),
        ({"step": replace(3, lambda done: False)}, r"truncated must be bools of shape \[2\], got bool of shape \[\]"),
        ({"step": replace(4, lambda infos: {})}, r"episodes ended, but infos lacks 'final_obs'"),
        (
            {"step": replace(4, lambda infos: {"final_obs": np.array([None, np.zeros(2)], object)})},
            r"infos\['final_obs'\] must be numbers of shape \[2, 2\], got object of shape \[2\]",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_malformed_environment_is_named(attempt, replaced, message):
    with pytest.raises(ValueError, match=message) as caught:
        attempt(**replaced)
    assert "\n" not in str(caught.value)


def test_a_malformed_environment_is_closed(fabric, counter_env, known_agent):
    env = counter_env(broken=("reset", 0, 0, np.nan))
    with pytest.raises(ValueError):
        dry_run_parts(
            fabric, env, known_agent(env.single_observation_space, env.single_action_space), 0, (), THREE_STEPS
        )
    assert env.closed_by_train


def field(name, change):
    return {"act": lambda chosen: chosen._replace(**{name: change(getattr(chosen, name))})}


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"act": tuple}, r"^--agent KnownAgent.act\(\) must return a fabric_rl.ActOutput\(.*\), got a tuple of 4$"),
        ({"act": lambda chosen: None}, r"KnownAgent.act\(\) must return .*, got None \(is a return statement"),
        (field("action", torch.Tensor.float), r"act\(\): action must be integers of shape \[2\], got float32"),
        (field("action", lambda action: action[:, None]), r"act\(\): action must be .* got int64 of shape \[2, 1\]"),
        (field("action", lambda action: action + 5), r"act\(\): action 5 is not in the environment's Discrete\(5\)"),
        (field("log_prob", torch.Tensor.long), r"act\(\): log_prob must be floats of shape \[2\], got int64"),
        (field("log_prob", torch.Tensor.log), r"act\(\): log_prob must be finite, got .*: sub-environment 0"),
        (field("value", torch.Tensor.tolist), r"act\(\): value must be a tensor, got list"),
        ({"value": torch.Tensor.sum}, r"act\(\): value must be floats of shape \[2\], got float32 of shape \[\]"),
        ({"training_step": lambda r: r[0]}, r"training_step\(\) must return a tuple \(loss, statistics\), got Tensor$"),
        ({"training_step": replace(0, float)}, r"training_step\(\): the loss must be a tensor, got float$"),
        ({"training_step": replace(1, lambda stats: None)}, r"statistics must be a dict of names .*, got None$"),
        ({"training_step": replace(1, lambda stats: {3: stats["value_loss"]})}, r"statistics must be a dict of names"),
        ({"training_step": replace(0, torch.Tensor.detach)}, r"training_step\(\): the loss has no gradient"),
        ({"training_step": replace(0, lambda loss: loss[None])}, r"the loss must be floats of shape \[\]"),
        ({"training_step": replace(0, lambda loss: loss / 0)}, r"the loss must be finite, got nan$"),
        (
            {"training_step": replace(1, lambda stats: stats | {"grad_norm": stats["value_loss"]})},
            r"the training itself reports a statistic 'grad_norm'; give this one another name$",
        ),
        ({"training_step": replace(1, lambda stats: {"kl": 0.5})}, r"the statistic 'kl' must be a tensor, got float"),
    ],
)
def test_a_malformed_agent_is_named(attempt, methods, message):
    with pytest.raises(ValueError, match=message) as caught:
        attempt(agent=methods)
    assert "\n" not in str(caught.value)


def test_value_is_tried_on_its_own(fabric, counter_env, known_agent):
    class ValueApart(known_agent):
        def act(self, obs, state=None, deterministic=False):
            return ActOutput(obs[:, 0].long() % 5, obs[:, 0], obs[:, 0])

        def value(self, obs, state=None):
            return obs

    env = counter_env()
    with pytest.raises(ValueError, match=r"ValueApart.value\(\) must be floats of shape \[3\], got .* \[3, 2\]"):
        dry_run_parts(
            fabric, env, ValueApart(env.single_observation_space, env.single_action_space), 0, (), THREE_STEPS
        )


def failing(error):
    def change(result):
        raise error

    return change


@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError, FloatingPointError, AssertionError])
def test_what_a_part_refuses_is_one_line_that_says_where(attempt, kind):
    error = kind("no luck")
    with pytest.raises(ValueError, match=r"^--env CounterEnv.step\(\): no luck \(FABRIC_RL_TRACEBACK=1 shows where\)$"):
        attempt(step=failing(error))
    with pytest.raises(ValueError, match=r"^--agent KnownAgent.training_step\(\): no luck"):
        attempt(agent={"training_step": failing(error)})


def test_an_agent_that_lacks_a_method_is_told(attempt):
    with pytest.raises(ValueError, match=r"KnownAgent.act\(\): NotImplementedError"):
        attempt(agent={"act": failing(NotImplementedError())})


def test_a_programming_error_stays_what_it_is(attempt):
    with pytest.raises(AttributeError, match="typo"):
        attempt(step=failing(AttributeError("typo")))


def test_the_agent_and_the_random_generators_are_left_as_they_were(fabric, counter_env, known_agent):
    class Noisy(known_agent):
        def __init__(self, *spaces):
            super().__init__(*spaces)
            self.register_buffer("count", torch.zeros(()))

        def act(self, obs, state=None, deterministic=False):
            self.count += 1
            _ = torch.rand(()), np.random.rand(), random.random()
            return super().act(obs)

    env = counter_env()
    agent = Noisy(env.single_observation_space, env.single_action_space)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    dry_run_parts(fabric, env, agent, 0, (), THREE_STEPS)
    assert agent.count == 0
    assert agent.seen == []
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()
    assert random.getstate() == states[2]


def test_what_the_trial_counted_is_dropped(fabric, counter_env, known_agent):
    class Counting(counter_env):
        def drain_metrics(self):
            self.drained = self.steps
            return {}

    env = Counting()
    dry_run_parts(fabric, env, known_agent(env.single_observation_space, env.single_action_space), 0, (), THREE_STEPS)
    assert env.drained == 1


def test_actions_of_a_box_may_leave_it(fabric, counter_env, known_agent):
    class Torques(known_agent):
        def act(self, obs, state=None, deterministic=False):
            return ActOutput(torch.full((3, 2), 5.0), obs[:, 0], obs[:, 0])

    class Box(counter_env):
        def step(self, actions):
            assert actions.shape == (3, 2)
            return super().step(actions[:, 0])

    env = Box()
    env.single_action_space = gymnasium.spaces.Box(-1, 1, (2,))
    dry_run_parts(fabric, env, Torques(env.single_observation_space, env.single_action_space), 0, (), THREE_STEPS)
