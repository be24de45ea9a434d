"""Where a researcher's own algorithm goes in: estimator, fields of minibatches, another batch, steps in order."""

from functools import partial

import pytest
import torch

from fabric_rl import GAE, Callback, Estimator, TrainArgs, train
from fabric_rl.types import MINIBATCH_FIELDS


@pytest.fixture
def trained(fabric, counter_env, known_agent):
    """Trains for one iteration, or more, of 5 steps of 3 sub-environments; returns the agent."""

    def call(agent=known_agent, callbacks=(), iterations=1, **settings):
        class Keep(Callback):
            def on_train_end(self, state):
                self.state = state

        keep, more = Keep(), {name: settings.pop(name) for name in ("estimator",) if name in settings}
        args = {"num_steps": 5, "update_epochs": 1, "minibatch_size": 15, "normalize_advantages": False} | settings
        args = TrainArgs(**args, total_timesteps=15 * iterations)
        train(fabric, counter_env, agent, args, callbacks=[*callbacks, keep], plain=True, **more)
        return keep.state.agent

    return call


def by_number(minibatch, field):
    """Observed number -> what the field says, for the steps of a minibatch."""
    numbers = minibatch.obs[..., 0].flatten().tolist()
    return dict(zip(numbers, getattr(minibatch, field).flatten().tolist(), strict=True))


# ---------------------------------------------------------------- the estimator


class OneStep(Estimator):
    """r + gamma V(s') - V(s), targets shifted by 1000 to be told apart; remembers what it was given."""

    def __init__(self, shift: float = 1000.0):
        self.shift, self.seen = shift, []

    def __call__(self, rollout, agent, gamma, gae_lambda):
        self.seen.append((type(agent).__name__, float(gamma), gae_lambda, torch.is_grad_enabled()))  # not the trial's
        going_on = (~rollout.terminated).float()
        advantage = rollout.reward + gamma * going_on * rollout.next_value - rollout.value
        return advantage, advantage + self.shift


def test_an_estimator_of_ones_own(trained):
    estimator = OneStep()
    agent = trained(estimator=estimator, gamma=0.5, gae_lambda=0.25)
    (minibatch,) = agent.seen
    advantage, returns = by_number(minibatch, "advantage"), by_number(minibatch, "returns")
    assert estimator.seen == [("KnownAgent", 0.5, 0.25, False)]
    assert advantage[0.0] == 1 + 0.5 * 1 - 0  # action 0 pays 1; from state 0 to state 1
    assert advantage[2.0] == 3 - 2  # the last step before a termination
    assert advantage[1001.0] == 2 + 0.5 * 1002 - 1001  # truncated: the value of its own last observation
    assert {number: target - advantage[number] for number, target in returns.items()} == dict.fromkeys(returns, 1000)


def test_gae_is_the_default_and_the_same_as_one_step_without_lambda(trained):
    plain, chosen = trained(gae_lambda=0.0), trained(gae_lambda=0.0, estimator=GAE())
    one_step = trained(gae_lambda=0.0, estimator=OneStep())
    assert by_number(plain.seen[0], "advantage") == by_number(chosen.seen[0], "advantage")
    assert by_number(plain.seen[0], "advantage") == pytest.approx(by_number(one_step.seen[0], "advantage"))
    assert by_number(plain.seen[0], "returns") == by_number(chosen.seen[0], "returns")


def test_an_estimator_sees_the_rewards_that_are_learned_from(trained):
    class Rewards(Estimator):
        def __call__(self, rollout, agent, gamma, gae_lambda):
            return rollout.reward, rollout.reward

    raw, scaled = (by_number(trained(estimator=Rewards(), standardize_returns=s).seen[0], "returns") for s in (0, 1))
    assert raw[3.0 + 2000] == 4
    assert scaled == pytest.approx({number: reward * scaled[0.0] for number, reward in raw.items()})
    assert scaled[0.0] != raw[0.0] == 1


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda reward: reward, r"must return a tuple \(advantages, returns\), got Tensor"),
        (lambda reward: (reward, reward[0]), r"the returns must be a float tensor \[5, 3\], got torch.float32 \[3\]"),
        (lambda reward: (reward, reward.long()), r"the returns must be a float tensor \[5, 3\], got torch.int64"),
        (lambda reward: (None, reward), r"the advantages must be a float tensor \[5, 3\], got None"),
    ],
)
def test_an_estimator_that_returns_something_else_is_named(trained, returned, message):
    class Wrong(Estimator):
        def __call__(self, rollout, agent, gamma, gae_lambda):
            return returned(rollout.reward)

    class Collects(Callback):
        def on_iteration_end(self, state):
            raise AssertionError("it was not tried before training")

    with pytest.raises(ValueError, match=rf"^--estimator Wrong:? {message}"):
        trained(estimator=Wrong(), callbacks=[Collects()])


def test_an_estimator_that_takes_something_else_is_named(trained):
    class Wrong(Estimator):
        def __call__(self, rollout):
            return rollout.reward, rollout.reward

    with pytest.raises(ValueError, match=r"^--estimator Wrong: .*__call__\(\) takes 2 positional arguments but 5"):
        trained(estimator=Wrong())


# ---------------------------------------------------------------- what a minibatch carries


def asking(known_agent, *fields, **attributes):
    return type("Asking", (known_agent,), {"minibatch_fields": fields} | attributes)


def test_a_minibatch_carries_what_the_agent_names(trained, known_agent):
    fields = [name for name in MINIBATCH_FIELDS if name.partition("_")[0] not in ("teacher", "team")]  # lacked here
    (minibatch,) = trained(asking(known_agent, *fields)).seen
    assert by_number(minibatch, "reward")[2003.0] == 4
    assert by_number(minibatch, "next_value") | {0.0: 1, 1001.0: 1002} == by_number(minibatch, "next_value")
    ends = {number for number, end in by_number(minibatch, "terminated").items() if end}
    done = {number for number, end in by_number(minibatch, "done").items() if end}
    assert ends == {2.0, 2003.0} and done == ends | {1001.0, 1101.0}
    assert by_number(minibatch, "time") | {0.0: 0, 2.0: 2, 100.0: 3, 2003.0: 3} == by_number(minibatch, "time")
    assert by_number(minibatch, "sub_env") == {number: number // 1000 for number in by_number(minibatch, "sub_env")}


def test_an_agent_that_names_nothing_gets_nothing(trained):
    (minibatch,) = trained().seen
    assert all(getattr(minibatch, name) is None for name in MINIBATCH_FIELDS)


def test_fields_are_kept_with_older_rollouts(trained, known_agent):
    agent = trained(asking(known_agent, "time"), iterations=2, exp_buffer_size=30)
    assert sorted(int(t) for mb in agent.seen[-2:] for t in mb.time) == sorted(6 * [0, 1, 2, 3, 4])


def test_a_field_that_does_not_exist_is_refused_by_name(trained, known_agent):
    with pytest.raises(ValueError, match=r"Asking\.minibatch_fields: a minibatch has no field 'rewards'; choose from"):
        trained(asking(known_agent, "rewards"))
    with pytest.raises(ValueError, match=r"Asking\.minibatch_fields: 'team_obs' is for agents of fabric_rl\.TeamAgent"):
        trained(asking(known_agent, "time", "team_obs"))


def test_steps_in_the_order_of_time_without_memory(trained, known_agent):
    agent = trained(asking(known_agent, "time", sequence_length=5), minibatch_size=5)
    assert len(agent.seen) == 3
    for minibatch in agent.seen:
        assert minibatch.state is None
        assert minibatch.obs.shape == (5, 1, 2) and minibatch.advantage.shape == (5, 1)
        assert minibatch.time[:, 0].tolist() == [0, 1, 2, 3, 4]
        (first,) = {int(number) // 1000 for number in minibatch.obs[:, 0, 0]}
        assert (
            minibatch.episode_start[:, 0].tolist()
            == [
                [True, False, False, True, False],
                [True, False, True, False, True],
                [True, False, False, False, True],
            ][first]
        )


# ---------------------------------------------------------------- another batch, and what a callback may train


class Half(Callback):
    """Learns from the steps of the first sub-environment only."""

    def on_learn_start(self, state):
        kept = state.batch.obs[:, 0] < 1000
        return state.batch.map(lambda x: x[kept])


def test_the_batch_that_a_callback_returns_is_learned_from_and_seen_by_the_next(trained):
    class Sizes(Callback):
        seen = ()

        def on_learn_start(self, state):
            self.seen += (len(state.batch.returns),)

        def on_iteration_end(self, state):
            self.seen += (len(state.batch.returns),)

    sizes = Sizes()
    agent = trained(callbacks=[Half(), sizes], minibatch_size=5)
    assert sizes.seen == (5, 5)
    (minibatch,) = agent.seen
    assert sorted(minibatch.obs[:, 0].tolist()) == [0, 1, 2, 100, 101]


def test_a_callback_that_returns_something_else_is_refused(trained):
    class Wrong(Callback):
        def on_learn_start(self, state):
            return {"obs": state.batch.obs}

    with pytest.raises(
        TypeError, match=r"^--callbacks Wrong\.on_learn_start\(\) must return a fabric_rl\.Minibatch or"
    ):
        trained(callbacks=[Wrong()])


def test_a_batch_whose_parts_have_other_numbers_of_steps_is_refused(trained):
    class Ragged(Callback):
        def on_learn_start(self, state):
            return state.batch._replace(advantage=state.batch.advantage[:4])

    with pytest.raises(
        ValueError, match=r"Ragged\.on_learn_start.*: advantage has \[4\] steps, but returns has \[15\]"
    ):
        trained(callbacks=[Ragged()])


def test_a_callback_has_the_model_and_the_optimizer_that_fabric_made(trained, known_agent):
    class Train(Callback):
        """One more step of SGD after every iteration: gradient 1, rates 0.1 and 0.3."""

        def on_iteration_end(self, state):
            before = [w.item() for w in state.agent.weights]
            state.fabric.backward(state.model.training_step(state.batch)[0])
            state.optimizer.step()
            state.optimizer.zero_grad()
            self.moved = [w.item() - old for w, old in zip(state.agent.weights, before, strict=True)]

    callback = Train()
    trained(partial(known_agent), callbacks=[callback], lr_schedule="constant", max_grad_norm=0)
    assert callback.moved == pytest.approx([-0.1, -0.3])
