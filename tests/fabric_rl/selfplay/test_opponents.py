"""Opponents: a real pool of which the learners see their own cars, and nothing else."""

from functools import partial

import numpy as np
import pytest
import torch

from agents import PPOLightningAgent, RecurrentPPOAgent
from envs import GymnasiumEnvs, HybridTable, LookupTable, ProcessPool, RandomState, RocketSimPool, TimeoutCondition
from envs.actions import ContinuousAction
from envs.bots import BallChaser, Bot, PolicyBot, RandomBot
from envs.dones import GoalCondition
from envs.obs import AdvancedObs
from fabric_rl.runs.trained import policy
from fabric_rl.selfplay import Oldest, Opponents, Uniform
from fabric_rl.selfplay.opponent_pool import LATEST, OpponentPool
from tests.envs.fakes import assert_same

SECONDS = 0.4  # an episode: 6 steps


class Watched(RocketSimPool):
    """Keeps the actions that it is given."""

    def reset(self, **how):
        self.given = []
        return super().reset(**how)

    def step(self, actions):
        self.given.append(actions.copy())
        return super().step(actions)


def pool(cls=Watched, arenas=4, team_size=1, **settings):
    done = settings.pop("done", [TimeoutCondition(SECONDS)])
    return partial(cls, num_arenas=arenas, team_size=team_size, done=done, num_threads=1, **settings)


SMALL = partial(PPOLightningAgent, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
RECURRENT = partial(RecurrentPPOAgent, hidden_sizes=[8], memory_size=8)


def roster(guests=(), latest=0.0, window=3):
    return OpponentPool(window, latest, Uniform(), Oldest(), 1200.0, 16.0, guests)


def opponents(env, share=1.0, agent=SMALL, others=None, at_once=2, bots=()):
    return Opponents(env, agent, others or roster(), share, at_once, bots, seed=3)


def play(env, steps, seed=0):
    """Random play from a reset on: what the environment returns."""
    return [env.reset(seed=5), *go_on(env, steps, seed)]


def go_on(env, steps, seed=0):
    rng = np.random.default_rng(seed)
    return [env.step(rng.integers(90, size=env.num_envs)) for _ in range(steps)]


def arrays_of(returned):
    return [array for *parts, infos in returned for array in (*parts, *(infos[name] for name in sorted(infos)))]


@pytest.mark.parametrize("size", [1, (2, 1)])
def test_every_opponent_is_met_on_both_sides(size):
    env = opponents(partial(RocketSimPool, num_arenas=8, team_size=size), at_once=4)
    sides = {table: set(env.assignment.learns[env.pairings.slot_of == table].tolist()) for table in range(4)}
    assert all(both == {0, 1} for both in sides.values())
    env.close()


def test_learners_see_their_rows_of_the_pool_and_sides_alternate():
    env = opponents(pool(team_size=2), share=0.5)
    seen = play(env, 20)
    raw = pool()(team_size=2)
    obs, _ = raw.reset(seed=5)
    assert env.num_envs == 2 * 4 + 2 * 2
    team = np.array([-1, 0, -1, 1])  # mirror play in arenas 0 and 2; what learns in the others in the first episode...
    team[[1, 3]] = 1 - team[[1, 3]]  # ...which `reset` has begun

    def learners():
        return [4 * a + c for a in range(4) for c in range(4) if team[a] < 0 or c // 2 == team[a]]

    np.testing.assert_array_equal(seen[0][0], obs[learners()])
    ended = 0
    for given, (obs, reward, terminated, truncated, infos) in zip(env.pool.given, seen[1:], strict=True):
        rows, raw_step = learners(), raw.step(given)
        done = raw_step[2] | raw_step[3]
        for mine, theirs in ((reward, raw_step[1]), (terminated, raw_step[2]), (truncated, raw_step[3])):
            np.testing.assert_array_equal(mine, theirs[rows])
        for name in ("final_obs", "_final_obs", "result"):
            assert (name in infos) == (name in raw_step[4])
            if name in infos:
                np.testing.assert_array_equal(infos[name], raw_step[4][name][rows])
        for arena in np.flatnonzero(done[::4]):
            team[arena] = 1 - team[arena] if team[arena] >= 0 else -1
            ended += 1
        np.testing.assert_array_equal(obs, raw_step[0][learners()])
    assert ended == 12


def test_mirror_play_is_the_bare_pool_to_the_bit():
    assert_same(*(arrays_of(play(env, 15)) for env in (opponents(pool(), share=0.0), pool()(seed=3))))


@pytest.mark.parametrize("share, learners", [(1.0, 4), (0.5, 6), (0.25, 7), (0.0, 8)])
def test_opponents_play_in_a_share_of_the_arenas(share, learners):
    assert opponents(pool(), share).num_envs == learners


def test_uneven_teams_keep_their_side_and_arenas_take_turns():
    env = opponents(pool(team_size=(2, 1)))
    assert env.num_envs == 2 + 1 + 2 + 1
    before = env.assignment.learners.copy()
    play(env, 20)
    np.testing.assert_array_equal(env.assignment.learners, before)
    np.testing.assert_array_equal(before, [0, 1, 5, 6, 7, 11])


def test_arenas_without_opponents_are_mirror_play():
    env = opponents(pool(team_size=[(1, 0), (1, 1)]))
    assert env.assignment.played.tolist() == [False, True, False, True] and env.num_envs == 4


def always(action, env):
    """Weights of an agent that always takes one action."""
    agent = SMALL(env.single_observation_space, env.single_action_space)
    with torch.no_grad():
        agent.policy_head.layer.weight.zero_()
        agent.policy_head.layer.bias[action] = 100.0
    return agent.state_dict()


def test_each_opponent_decides_for_its_own_arenas_with_its_own_weights():
    others = roster()
    env = opponents(pool(), others=others, at_once=4)
    wanted = [7, 30, 60]
    for steps, action in enumerate(wanted):
        others.add_snapshot(steps, always(action, env), None)
    env.pairings.slots[:] = [0, 1, 2, 2]
    play(env, 8)
    for given in env.pool.given:
        for arena, number in enumerate(env.pairings.opponent):
            assert wanted[number] in given[2 * arena : 2 * arena + 2]
    assert env.pairings.playing == {0, 1, 2}


def test_masks_reach_learners_and_opponents():
    env = opponents(pool(action=HybridTable(), state_setter=RandomState()), share=0.5)
    rng = np.random.default_rng(0)
    _, infos = env.reset(seed=5)
    for _ in range(15):
        mask = infos["action_mask"]
        assert mask.shape == (env.num_envs, 128)
        whole = env.pool.action_parser.mask(env.pool.state).reshape(-1, 128)
        np.testing.assert_array_equal(mask, whole[env.assignment.learners])
        np.testing.assert_array_equal(env._mask, whole)
        *_, infos = env.step(np.array([rng.choice(np.flatnonzero(row)) for row in mask]))
        given = env.pool.given[-1]
        assert whole[np.arange(len(whole)), given].all()  # opponents' actions are allowed ones, too


def test_an_opponent_with_memory_forgets_at_the_end_of_an_episode():
    env = opponents(pool(done=[TimeoutCondition(SECONDS)]), agent=RECURRENT)
    env.reset(seed=5)
    actions = np.zeros(env.num_envs, int)
    for step in range(1, 13):
        env.step(actions)
        remembers = env.policies.memory.abs().sum(dim=1) > 0
        assert remembers[env.assignment.opponent_rows].any() == (step % 6 != 0)
        assert not remembers[env.assignment.learners].any()


@pytest.mark.slow
def test_opponents_of_every_group_forget_at_the_end_of_an_episode():
    env = opponents(partial(ProcessPool, pool(RocketSimPool), num_workers=2, groups=2), agent=RECURRENT)
    try:
        env.reset(seed=5)
        for step in range(1, 7):
            for group, rows in enumerate(env.group_rows):
                env.step_group(group, np.zeros(rows.stop - rows.start, int))
            for group in range(2):
                env.wait_group(group)
            remembers = env.policies.memory.any(dim=1)
            assert remembers[env.assignment.opponent_rows].all() if step < 6 else not remembers.any()
    finally:
        env.close()


def test_results_are_of_arenas_from_the_learners_side():
    env = opponents(pool(arenas=2, team_size=2, done=[GoalCondition(), TimeoutCondition(SECONDS)]))
    env.reset(seed=5)
    learns = env.assignment.learns.copy()
    world = env.pool.arenas
    for arena in world:
        ball = arena.ball.get_state()
        ball.pos = type(ball.pos)(0, 5400, 100)  # blue scores in both
        arena.ball.set_state(ball)
    env.step(np.zeros(env.num_envs, int))
    assert env.results == [(LATEST, float(team == 0)) for team in learns] and sorted(learns) == [0, 1]
    for _ in range(6):
        env.step(np.zeros(env.num_envs, int))
    assert [score for _, score in env.results[2:]] == [0.5, 0.5]


class _Ahead:
    """A policy that always drives ahead."""

    def __call__(self, obs, begins, mask):
        self.width = obs.shape[1]
        return np.tile(np.array([1, 0.31, 0, 0, 0, -1, 1, -1], np.float32), (len(obs), 1))


class Sloppy(Bot):
    """Asks for more than there is, and for half a button."""

    def act(self, state):
        return np.tile(np.array([3, 0.2, 0, 0, 0, 0.4, 0.7, 0.6], np.float32), (*state.present.shape, 1))


@pytest.mark.parametrize("make", [BallChaser, Sloppy, lambda: PolicyBot(_Ahead(), AdvancedObs(), ContinuousAction())])
def test_guests_drive_exactly_as_they_want_to(make):
    env = opponents(pool(arenas=2), others=roster(["guest"]), bots=[make()])
    env.pairings.swap()
    env.reset(seed=5)
    raw = RocketSimPool(2, 1, action=ContinuousAction(), done=[TimeoutCondition(SECONDS)], num_threads=1, seed=5)
    raw.reset(seed=5)
    bot, table = make(), LookupTable().table
    rng = np.random.default_rng(0)
    begun = np.ones(2, bool)
    for _ in range(20):
        actions = rng.integers(90, size=2)
        rivals, learners = env.assignment.opponent_rows, env.assignment.learners
        obs, *_ = env.step(actions)
        if begun.any():
            bot.reset(begun, raw.state)
        given = bot.actions(raw.state, raw.action_parser)
        rows = table[actions].copy()
        rows[:, 5:] = np.where(rows[:, 5:] > 0.5, 1, -1)
        given[learners] = rows
        assert sorted([*rivals, *learners]) == [0, 1, 2, 3]
        raw_obs, _, _, ended, _ = raw.step(given)
        begun = ended[::2]
        np.testing.assert_array_equal(obs, raw_obs[env.assignment.learners])
        np.testing.assert_array_equal(env.pool.state.controls, raw.state.controls)


class Broken(Bot):
    """Wants what is no controls."""

    def __init__(self, spoil):
        self._spoil = spoil

    def act(self, state):
        return self._spoil(np.zeros_like(state.controls))


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda rows: rows * np.nan, "returned NaN or infinity"),
        (lambda rows: rows[:, :, :5], r"must return numbers \[2, 2, 8\], got float32 of shape \[2, 2, 5\]"),
        (lambda rows: rows.tolist(), r"must return numbers \[2, 2, 8\], got list"),
        (lambda rows: None, r"must return numbers \[2, 2, 8\], got NoneType"),
    ],
)
def test_guests_that_want_what_is_no_controls_are_named_at_once(spoil, words):
    env = opponents(pool(arenas=2), others=roster(["idle", "r"]), bots=[BallChaser(), Broken(spoil)])
    env.pairings.slots[:] = 1
    env.reset(seed=5)
    with pytest.raises(ValueError, match=rf"^guest 1 \(Broken\): act\(\) {words}$"):
        env.step(np.zeros(2, np.int64))
    env.pool.state_dict()  # can still be saved
    with pytest.raises(ValueError, match=rf"^Broken: act\(\) {words}$"):
        Broken(spoil).actions(env.pool.state, env.pool.action_parser)


@pytest.mark.slow
def test_process_pool_with_groups_plays_as_one_pool():
    whole = opponents(pool(RocketSimPool, arenas=4), share=0.5)
    env = opponents(partial(ProcessPool, pool(RocketSimPool, arenas=4), num_workers=2, groups=2), share=0.5)
    try:
        assert [(rows.start, rows.stop) for rows in env.group_rows] == [(0, 3), (3, 6)]
        for each in (whole, env):  # groups draw their actions in another order
            each.policies.refresh(always(30, env))
        np.testing.assert_array_equal(whole.reset(seed=5)[0], env.reset(seed=5)[0])
        rng = np.random.default_rng(0)
        for _ in range(14):
            actions = rng.integers(90, size=6)
            for group, rows in enumerate(env.group_rows):
                env.step_group(group, actions[rows])
            steps = [arrays_of([env.wait_group(group)]) for group in range(2)]
            assert_same([np.concatenate(parts) for parts in zip(*steps, strict=True)], arrays_of([whole.step(actions)]))
        assert env.results == whole.results and len(env.results) == 4
    finally:
        env.close()


@pytest.mark.parametrize("agent", [SMALL, RECURRENT])
def test_it_goes_on_to_the_bit(agent):
    others = roster(["random", "agent with other eyes"], latest=0.2)

    def build():
        obs, action = AdvancedObs(), ContinuousAction()
        torch.manual_seed(7)
        remembers = RECURRENT(obs.space(1, 1), action.action_space)
        bot = PolicyBot(policy(remembers, deterministic=False, seed=3), obs, action)
        return opponents(pool(RocketSimPool), 1.0, agent, others, 4, [RandomBot(4), bot])

    env = build()
    module = agent(env.single_observation_space, env.single_action_space)
    with torch.no_grad():
        module.policy_head.layer.weight.mul_(1000)  # what it remembers decides
    others.add_snapshot(0, module.state_dict(), None)
    env.policies.refresh(module.state_dict())
    env.pairings.slots[:] = [0, 1, 1, 2]
    play(env, 9)
    assert env.pairings.playing == {0, 1, 2}
    env.pairings.swap()
    state = env.state_dict()
    torch.manual_seed(2)
    expected = arrays_of(go_on(env, 15))
    env.pairings.swap()
    resumed = build()
    resumed.policies.refresh(module.state_dict())
    resumed.reset(seed=77)
    resumed.load_state_dict(state)
    torch.manual_seed(2)
    assert_same(arrays_of(go_on(resumed, 15)), expected)
    resumed.pairings.swap()
    np.testing.assert_array_equal(resumed.pairings.slots, env.pairings.slots)


def test_what_does_not_fit_is_refused():
    env = opponents(pool(RocketSimPool))
    env.reset(seed=5)
    state = env.state_dict()
    with pytest.raises(ValueError, match=r"it\['obs'\] is float32 of shape \[3, 92\]"):
        env.load_state_dict(state | {"obs": np.zeros((3, 92), np.float32)})


def test_environments_without_teams_and_guests_are_refused():
    with pytest.raises(
        ValueError, match="--self_play: --env GymnasiumEnvs does not have two teams that could play each other"
    ):
        opponents(partial(GymnasiumEnvs, "CartPole-v1", 2))
    with pytest.raises(ValueError, match="--self_play: --env Watched does not have two teams"):
        opponents(pool(team_size=(1, 0)))
    with pytest.raises(ValueError, match=r"--self_play.guests: --env ProcessPool can only have copies of the agent"):
        factory = partial(ProcessPool, pool(RocketSimPool, arenas=1), num_workers=1)
        opponents(factory, others=roster(["chaser"]), bots=[BallChaser()])
