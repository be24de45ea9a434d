"""The reward audit: it catches rewards that pay for the wrong thing, passes honest ones, and its numbers are right."""

from functools import partial

import numpy as np
import pytest

import envs
from envs.audit.audit import audit_rewards
from envs.audit.games import Push, acting_cars
from envs.audit.replay import compute_rewards, merge_steps, relative_difference, reorder_cars, swap_sides
from envs.audit.resets import reset_rows
from envs.audit.trace import reward_trace
from envs.matches.matches import MatchTrace, PoolFactory, record_trace
from envs.resets.initial_states import summarize_ranges
from envs.rewards.car import default_reward
from envs.rewards.parts import reward_terms, term_label
from tests.envs.audit.wrong_rewards import AnyGoal, BluesGoal, FirstCar, NearBall, RightHalf, SaysPerSecond
from tests.envs.fakes import Scene

POOL = partial(envs.RocketSimPool, num_threads=1)
QUICK = {"seconds": 10.0, "num_arenas": 4}
ROWS = ("ball_rows", "car_rows", "car_timers", "car_flags", "pad_timers", "last_touch_car", "controls")


@pytest.fixture(scope="module")
def default_audit():
    return audit_rewards(POOL, **QUICK)


@pytest.fixture(scope="module")
def wrong_audit():
    wrong = [AnyGoal(), BluesGoal(), RightHalf(), FirstCar(), SaysPerSecond()]
    right = [envs.GoalReward(), envs.TouchReward(), envs.VelocityBallToGoalReward()]
    rewards = [*wrong, *right, envs.PerSecondReward(envs.FaceBallReward())]
    return audit_rewards(POOL, reward=envs.CombinedReward(rewards, [1.0] * 5 + [200.0, 1.0, 1.0, 1.0]), **QUICK)


def found(audit, kind):
    return {finding.part for finding in audit.findings if finding.kind == kind}


def test_the_default_reward_passes_and_its_goals_are_paid_as_they_should(default_audit):
    assert default_audit.passed and default_audit.findings == []
    assert default_audit.goals_per_minute > 2
    by_name = {part.name: part for part in default_audit.parts}
    goal = by_name["GoalReward"]
    assert goal.own_goal == -10 and default_audit.total.own_goal == pytest.approx(-10)
    assert {by_name[name].own_goal for name in by_name if name != "GoalReward"} == {0}
    assert goal.per_minute["score"] == pytest.approx(10 * default_audit.goals_per_minute)
    assert goal.sign == "+-" and by_name["InAirReward"].sign == "+"
    assert sum(part.share for part in default_audit.parts) == pytest.approx(1)
    for situation, pay in default_audit.total.per_minute.items():
        assert pay == pytest.approx(sum(part.per_minute[situation] for part in default_audit.parts), abs=1e-4)
    # A hop is 0.9 s or so in the air of every second: at most 0.002 on each of 900 steps.
    assert 1.0 < by_name["InAirReward"].per_minute["hop"] < 1.8
    assert by_name["InAirReward"].per_minute["idle"] == 0


@pytest.mark.slow
def test_it_names_what_pays_own_goals_and_nothing_else(wrong_audit):
    assert found(wrong_audit, "own goal") == {"AnyGoal", "BluesGoal"}  # in all, a goal of 200 outweighs them
    assert not wrong_audit.passed
    lines = [finding.text for finding in wrong_audit.findings if finding.kind == "own goal"]
    assert lines[0] == "AnyGoal pays for an own goal: 1 more than for the same touch to the side"


@pytest.mark.slow
def test_it_names_what_is_not_mirrored_or_depends_on_the_order_of_cars(wrong_audit):
    assert {"BluesGoal", "RightHalf"} == found(wrong_audit, "mirror") - {"total"}
    assert {"FirstCar"} == found(wrong_audit, "order") - {"total"}


@pytest.mark.slow
def test_it_names_what_depends_on_the_tick_skip_against_its_word(wrong_audit):
    assert {"SaysPerSecond"} == found(wrong_audit, "tick skip")
    by_name = {part.name: part for part in wrong_audit.parts}
    paid = by_name["SaysPerSecond"].tick_skip
    assert paid[4] == pytest.approx(2 * paid[8], rel=0.05) and paid[8] == pytest.approx(2 * paid[16], rel=0.05)
    rated = by_name["FaceBallReward"].tick_skip
    assert rated[4] == pytest.approx(rated[16], rel=0.1)


@pytest.mark.slow
def test_it_names_what_is_better_farmed_than_scored():
    audit = audit_rewards(POOL, reward=envs.CombinedReward([NearBall(), envs.GoalReward()], [1.0, 2.0]), **QUICK)
    assert found(audit, "farming") == {"NearBall", "total"} and not audit.passed
    near = audit.parts[0]
    assert near.farmed == ("hover", near.per_minute["hover"])
    assert near.per_minute["hover"] > 0.45 * 15 * 60  # once it is there, at 15 steps a second
    assert near.per_minute["idle"] == 0
    text = next(finding.text for finding in audit.findings if finding.part == "NearBall")
    assert text.startswith("NearBall pays more for farming than for scoring: ") and "`hover`" in text


def test_pay_by_random_actions_is_what_the_pool_pays(default_audit):
    pool, bot = envs.RocketSimPool(num_arenas=4, num_threads=1, seed=0), envs.RandomBot(0)
    pool.reset(seed=0)
    paid = np.zeros(pool.num_envs)
    for _ in range(150):
        paid += pool.step(bot.actions(pool.state, pool.action_parser))[1]
    pool.close()
    assert default_audit.total.per_minute["random"] == pytest.approx(paid.mean() * 6, rel=1e-4)


@pytest.mark.slow
def test_the_seed_decides_everything():
    audits = [audit_rewards(POOL, seconds=1, num_arenas=2, seed=seed) for seed in (5, 5, 6)]
    assert audits[0] == audits[1] != audits[2]
    assert "nobody scored" in " ".join(audits[0].notes)


@pytest.mark.slow
def test_charges_and_their_sign_are_told():
    audit = audit_rewards(POOL, seconds=4, num_arenas=2, reward=envs.NegativeVelocityTowardOwnGoalReward())
    (part,) = audit.parts
    assert part.sign == "-" and part.share == 1 and part.own_goal < 0 and audit.passed


@pytest.mark.parametrize("team_size", [(1, 0), 3])
@pytest.mark.parametrize("action", [envs.ContinuousAction(), envs.MultiDiscreteAction()])
def test_own_goals_come_about_in_every_pool(team_size, action):
    recipe = PoolFactory(partial(POOL, num_arenas=4, team_size=team_size, action=action, tick_skip=4))
    trace = record_trace(recipe, envs.IdleBot(), 1.5, 0, state_setter=Push(own_goal=True))
    teams = trace.first.team[np.argmax(acting_cars(trace.first), axis=1)]
    assert sorted(teams.tolist()) == ([0, 0, 0, 0] if team_size == (1, 0) else [0, 0, 1, 1])
    scored = np.array([state.scoring_team for state in trace.steps]).max(axis=0)
    assert scored.tolist() == (1 - teams).tolist()
    aside = record_trace(recipe, envs.IdleBot(), 1.5, 0, state_setter=Push(own_goal=False))
    assert not any(state.goal_scored.any() for state in aside.steps)


@pytest.mark.slow
def test_mixed_team_sizes_are_audited():
    pool = partial(POOL, num_arenas=1, team_size=[(1, 0), (2, 1)])
    audit = audit_rewards(pool, seconds=3, num_arenas=2)
    assert audit.total.own_goal == pytest.approx(-10) and found(audit, "mirror") == found(audit, "order") == set()


def test_sums_are_taken_apart_and_add_up(trace):
    reward = envs.RewardSignals(
        {
            "shape": envs.CombinedReward(
                [envs.FaceBallReward(), envs.TeamSpiritReward(envs.PerSecondReward(envs.InAirReward()))], [2.0, 3.0]
            ),
            "game": envs.TeamSpiritReward(
                envs.CombinedReward([envs.GoalReward(), envs.EventReward(touch=1.0)], [10.0, 0.5]), 0.3, 1.0
            ),
            "rest": envs.AnnealedReward(envs.GoalReward()),
            "events": envs.AnnealedReward(envs.EventReward(goal=10.0, concede=-4.0)),
        }
    )
    parts = {part.name: (part.weight, part.unit) for part in reward_terms(reward)}
    assert parts == {
        "shape/FaceBallReward": (2.0, "per step"),
        "shape/InAirReward": (3.0, "per second"),
        "game/GoalReward": (10.0, "per event"),
        "game/EventReward": (0.5, "per event"),
        "rest/GoalReward": (1.0, "per event"),
        "events/EventReward/goal": (10.0, "per event"),
        "events/EventReward/concede": (-4.0, "per event"),
    }
    discounted = envs.PotentialReward(envs.LiuDistanceBallToGoalReward(), gamma=0.99)
    assert [part.unit for part in reward_terms(discounted)] == [""]  # promises nothing about other tick skips
    assert [part.name for part in reward_terms(envs.GoalReward())] == ["GoalReward"]
    assert [term_label(name) for name in parts] == [
        "shape/FaceBall",
        "shape/InAir",
        "game/Goal",
        "game/Event",
        "rest/Goal",
        "events/EventReward/goal",
        "events/EventReward/concede",
    ]
    face, events = (
        envs.CombinedReward([envs.FaceBallReward()], [3.0]),
        envs.EventReward(touch=1, shot=2, team_goal=5, concede=-3),
    )
    sums = [
        envs.TeamSpiritReward(default_reward(), 0.4, 0.7),
        envs.PotentialReward(face),
        envs.TeamSpiritReward(events, 0.1),
    ]
    reward = envs.CombinedReward(sums, [2.0, 0.5, 0.3])
    parts = reward_terms(reward)
    assert len(parts) == 9
    whole = compute_rewards(reward, trace)
    np.testing.assert_allclose(sum(compute_rewards(part.copy_weighted(), trace) for part in parts), whole, atol=1e-5)
    np.testing.assert_array_equal(
        compute_rewards(parts[0].copy_weighted(), trace), compute_rewards(parts[0].copy_weighted(), trace)
    )


def test_terms_are_named_as_the_metrics_of_a_pool():
    """Names of every signal are numbered on their own."""
    twice = envs.CombinedReward([envs.TouchReward(), envs.TouchReward()], [1.0, 2.0])
    reward = envs.RewardSignals({"a": twice, "b": envs.TouchReward()})
    names = [part.name for part in reward_terms(reward)]
    assert names == ["a/TouchReward", "a/TouchReward_2", "b/TouchReward"]
    pool = envs.RocketSimPool(1, reward=reward, num_threads=1)
    pool.reset(seed=0)
    pool.step(np.zeros(2, np.int64))
    assert {f"reward/{name}" for name in names[:2]} <= set(pool.drain_metrics())


@pytest.mark.slow
def test_annealed_weights_stay_at_their_first_value():
    annealed = envs.AnnealedReward(envs.SaveBoostReward(), steps=[0, 10], weights=[1.0, 0.0])
    pool = partial(POOL, num_arenas=2)
    reports = [
        audit_rewards(partial(pool, reward=reward), seconds=2).parts[0] for reward in (annealed, envs.SaveBoostReward())
    ]
    assert reports[0].per_minute == reports[1].per_minute and reports[0].per_minute["idle"] > 0
    assert annealed.weight == 1 and list(annealed.steps) == [0, 10]


@pytest.mark.slow
def test_phases_are_audited_each():
    rewards = {"first": envs.TouchReward(), "second": envs.CombinedReward([AnyGoal(), envs.GoalReward()], [0.5, 2.0])}
    setter = envs.PhasedStates({"first": envs.Kickoff(), "second": envs.RandomState()})
    pool = partial(POOL, num_arenas=2, reward=envs.PhasedReward(rewards), state_setter=setter)
    assert PoolFactory(pool).phases == ["first", "second"]
    recipe = PoolFactory(pool, phase="second")
    assert [part.name for part in reward_terms(recipe.reward())] == ["AnyGoal", "GoalReward"]
    audit = audit_rewards(pool, seconds=1, num_arenas=2, phase="second")
    assert found(audit, "own goal") == {"AnyGoal"} and audit.phase == "second"
    assert [part.name for part in audit_rewards(pool, seconds=1, num_arenas=2).parts] == ["TouchReward"]
    assert pool.keywords["reward"].phase == "first"  # what was handed in stays what it is
    spots = [{(row["x"], row["y"]) for row in reset_rows(pool, 20, phase=phase)} for phase in ("first", "second")]
    assert len(spots[0]) <= 11 < len(spots[1])
    with pytest.raises(ValueError, match=r"--phase 1: there is no such phase; this configuration has none"):
        reset_rows(POOL, 1, phase="1")
    with pytest.raises(ValueError, match=r"--phase third: there is no such phase; known: first, second"):
        reward_trace(pool, envs.IdleBot(), phase="third")


@pytest.fixture(scope="module")
def trace():
    bots = envs.TeamBots(envs.KickoffThenShoot(), envs.RandomBot(0))
    return record_trace(
        PoolFactory(POOL), bots, 8, 0, num_arenas=3, team_size=2, tick_skip=4, state_setter=envs.RandomState()
    )


def test_seen_twice_from_the_other_side_it_is_the_same(trace):
    for seen in (swap_sides, reorder_cars):
        twice = seen(seen(trace)[0])[0]
        for (mask, state), (other_mask, other) in zip(trace.states_with_resets, twice.states_with_resets, strict=True):
            assert mask is other_mask
            for name in ROWS:
                np.testing.assert_array_equal(getattr(state, name), getattr(other, name), err_msg=name)
            for name in state.details.dtype.names:
                np.testing.assert_array_equal(state.details[name], other.details[name], err_msg=name)
    there, order = swap_sides(trace)
    assert order.tolist() == [2, 3, 0, 1] and reorder_cars(trace)[1].tolist() == [1, 0, 3, 2]
    np.testing.assert_array_equal(there.steps[9].world.ball_pos, trace.steps[9].world.ball_pos * [-1, -1, 1])


def test_a_longer_step_keeps_the_touches_and_the_last_state(trace):
    whole = MatchTrace(
        [trace.states_with_resets[0], *[frame for frame in trace.states_with_resets if frame[0] is None][:40]], 4
    )
    longer = merge_steps(whole, 4)
    assert longer.tick_skip == 16 and len(longer.steps) == 10 and longer.minutes == whole.minutes
    fine = np.array([state.touched for state in whole.steps])
    np.testing.assert_array_equal([state.touched for state in longer.steps], fine.reshape(10, 4, 3, 4).any(axis=1))
    np.testing.assert_array_equal(longer.steps[1].world.ball_pos, whole.steps[7].world.ball_pos)
    cut = MatchTrace([*whole.states_with_resets[:6], whole.states_with_resets[0]], 4)
    with pytest.raises(ValueError, match="ends after 1 of 4 steps"):
        merge_steps(cut, 4)
    assert relative_difference(np.array([1.0, 3.0]), np.array([1.0, -1.0])) == pytest.approx(4 / 6)
    assert relative_difference(np.zeros(2), np.zeros(2)) == 0


def test_settings_are_read_from_what_builds_the_pool():
    pooled = partial(envs.ProcessPool, partial(envs.RocketSimPool, 4, [(1, 2), (2, 0)], tick_skip=6), num_workers=2)
    recipe = PoolFactory(pooled)
    assert recipe.team_sizes == [(1, 2), (2, 0)] and recipe.tick_skip == 6
    assert recipe.arguments["num_arenas"] == 4
    with pytest.raises(TypeError, match=r"audit-rewards: env must build an envs.RocketSimPool, got dict"):
        audit_rewards(dict)
    for wrong, message in (
        ({"seconds": 0}, "--seconds"),
        ({"num_arenas": 1}, "--num_arenas"),
        ({"seed": -1}, "--seed"),
    ):
        with pytest.raises(ValueError, match=message):
            audit_rewards(POOL, **wrong)


@pytest.mark.slow
def test_traces_are_what_the_pool_pays_and_end_with_their_episode(shot):
    rows = reward_trace(POOL, envs.KickoffThenShoot(), envs.BallChaser(), seconds=6, seed=4)
    pool, bots = (
        envs.RocketSimPool(num_arenas=1, num_threads=1, seed=4),
        envs.TeamBots(envs.KickoffThenShoot(), envs.BallChaser()),
    )
    pool.reset(seed=4)
    for number, row in enumerate(rows, start=1):
        paid = pool.step(bots.actions(pool.state, pool.action_parser))[1]
        assert row["step"] == number and row["seconds"] == pytest.approx(number / 15)
        assert row["total"] == pytest.approx(paid[0], abs=1e-6)
        parts = sum(value for name, value in row.items() if name.startswith("reward/"))
        assert parts == pytest.approx(row["total"], abs=1e-5)
    pool.close()
    assert rows[-1]["return"] == pytest.approx(sum(row["total"] for row in rows))
    assert any(row["touch"] for row in rows)
    pool = partial(POOL, state_setter=shot(into_blue_goal=True), reward=envs.GoalReward())
    losing, winning = (reward_trace(pool, envs.IdleBot(), car=car) for car in (0, 1))
    assert len(losing) == len(winning) < 30
    for rows, goal in ((losing, -1), (winning, 1)):
        assert [row["goal"] for row in rows] == [0] * (len(rows) - 1) + [goal]
        assert [row["reward/GoalReward"] for row in rows] == [row["goal"] for row in rows]
    with pytest.raises(ValueError, match=r"there is no car 2 \(--car\); the first arena has cars 0 to 1"):
        reward_trace(pool, envs.IdleBot(), car=2)


@pytest.mark.slow
def test_first_states_are_those_of_the_setter():
    rows = reset_rows(partial(POOL, team_size=2), episodes=40, seed=1)
    assert len(rows) == 40 * 5 and [row["what"] for row in rows[:5]] == ["ball", "blue", "blue", "orange", "orange"]
    spots = {(round(row["x"]), round(row["y"])) for row in rows if row["what"] == "blue"}
    assert spots == {tuple(spot[:2]) for spot in envs.Kickoff.BLUE_POS.tolist()}
    ranges = {(found.what, found.quantity): found for found in summarize_ranges(rows)}
    assert ranges["ball", "z"].least == pytest.approx(93.15)
    assert ranges["blue", "x"].least == pytest.approx(-2048)
    assert ranges["orange", "y"].greatest == pytest.approx(4608)
    assert ranges["blue", "yaw"].least == pytest.approx(45) and ranges["blue", "yaw"].greatest == pytest.approx(135)
    assert ranges["orange", "boost"].mean == pytest.approx(33.3)
    assert ("ball", "boost") not in ranges
    again = reset_rows(partial(POOL, team_size=2), episodes=40, seed=1)
    assert rows == again != reset_rows(partial(POOL, team_size=2), episodes=40, seed=2)


class HalfNaN(envs.Reward):
    """NaN while the ball is at rest."""

    def compute(self, state):
        speed = np.linalg.norm(state.world.ball_vel, axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.broadcast_to(speed / speed, (state.num_arenas, state.num_cars)).astype(np.float32)


def test_a_reward_that_is_no_number_is_an_error_alone_as_in_a_sum():
    for reward in (HalfNaN(), envs.CombinedReward([HalfNaN()], [1.0])):
        with pytest.raises(FloatingPointError, match="HalfNaN: NaN or infinity in the rewards"):
            audit_rewards(POOL, reward=reward, seconds=2.0, num_arenas=2)


def test_a_goal_is_paid_once_in_each_episode():
    scene, begins = Scene(), np.array([True])
    start, goal = scene.state.copy(), scene.put(8, ball=(0, 5300, 300)).state.copy()
    trace = MatchTrace([(begins, start), (None, goal), (None, goal), (begins, start), (None, goal)], 8)
    assert compute_rewards(envs.GoalReward(), trace)[:, 0].tolist() == [[1, -1], [0, 0], [1, -1]]
