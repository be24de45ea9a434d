"""Combinators: sequences computed by hand, and through pools with episode ends."""

from functools import partial

import numpy as np
import pytest

from envs import ExplicitState, GameState, RandomState, RocketSimPool, TimeoutCondition
from envs.actions import (
    ActionParser,
    ActionTable,
    ClipAction,
    ContinuousAction,
    DelayAction,
    HybridTable,
    LookupTable,
    MultiDiscreteAction,
    RepeatAction,
    StateAwareTable,
    StickyButtons,
)
from envs.actions.situations import hybrid_rows
from fabric_rl.base.state_schema import load_child_state

JUMP, BOOST, HANDBRAKE = 5, 6, 7


def arenas(num_arenas=1, num_cars=1):
    state = GameState(num_arenas, num_cars, 0)
    state.clear(np.arange(num_arenas))
    state.boost[:] = 50
    return state


def begin(parser, state, *which):
    mask = np.zeros(state.num_arenas, np.bool_)
    mask[list(which)] = True
    parser.reset(mask, state)


def throttles(parser, state, values):
    """Feeds one throttle per arena and step, returns the throttles that come out: `[steps, arenas]`."""
    out = []
    for value in values:
        actions = np.zeros((state.num_arenas, 8), np.float32)
        actions[:, 0] = value
        controls = parser.parse(actions, state)
        assert [car.throttle for car in controls.cars] == pytest.approx(controls.rows[:, 0])
        out.append(controls.rows[:, 0].tolist())
    return out


def pressed(parser, state, column, values):
    out = []
    for value in values:
        actions = -np.ones((1, 8), np.float32)
        actions[0, column] = 1 if value else -1
        controls = parser.parse(actions, state)
        name = {JUMP: "jump", BOOST: "boost", HANDBRAKE: "handbrake"}[column]
        assert getattr(controls.cars[0], name) == controls.rows[0, column]
        out.append(int(controls.rows[0, column]))
    return out


def test_repeat():
    parser, state = RepeatAction(ContinuousAction(), 3), arenas(2)
    begin(parser, state, 0, 1)
    first = throttles(parser, state, [0.125, 0.25, 0.375, 0.5])
    assert first == [[0.125] * 2] * 3 + [[0.5] * 2]
    begin(parser, state, 1)  # its phase begins anew; arena 0 holds on for two more steps
    later = throttles(parser, state, [0.625, 0.75, 0.875, 1])
    assert later == [[0.5, 0.625], [0.5, 0.625], [0.875, 0.625], [0.875, 1]]
    parser, state = RepeatAction(MultiDiscreteAction(), 2), arenas(1, 2)
    begin(parser, state, 0)
    choice = np.array([[0, 1, 2, 1, 1, 1, 0, 0], [2, 1, 1, 1, 1, 0, 0, 1]])
    expected = [[-1, 0, 1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0, 1]]
    for actions in (choice, choice[::-1]):
        np.testing.assert_array_equal(parser.parse(actions, state).rows, expected)


def test_repeat_masks_and_does_not_look_at_what_it_does_not_take():
    parser, state = RepeatAction(LookupTable(), 2), arenas()
    begin(parser, state, 0)
    rows = [parser.parse(np.array([action]), state).rows[0].tolist() for action in (20, -7, 3)]
    assert rows == LookupTable().table[[20, 20, 3]].tolist()
    parser.parse(np.array([5]), state)
    with pytest.raises(ValueError, match="LookupTable: action 90"):
        parser.parse(np.array([90]), state)
    assert parser.parse(np.array([4]), state).rows[0].tolist() == LookupTable().table[4].tolist()  # nothing had changed
    with pytest.raises(ValueError, match="LookupTable: actions must be integers"):
        parser.parse(np.array([4.0]), state)
    parser, state = RepeatAction(HybridTable(), 2), arenas(2, 2)
    begin(parser, state, 0, 1)
    assert parser.mask(state).all()  # nothing is certain for cars on top of each other
    parser.parse(np.array([7, 8, 9, 10]), state)
    mask = parser.mask(state)
    assert np.argwhere(mask).tolist() == [[0, 0, 7], [0, 1, 8], [1, 0, 9], [1, 1, 10]]
    begin(parser, state, 1)
    mask = parser.mask(state)
    assert mask[0].sum() == 2 and mask[1].all()
    assert RepeatAction(LookupTable(), 2).mask(state) is None


def test_sticky_buttons():
    parser, state = StickyButtons(ContinuousAction(), 3), arenas()
    for column in (JUMP, BOOST, HANDBRAKE):
        begin(parser, state, 0)
        assert pressed(parser, state, column, [0, 1, 0, 0, 0, 1, 1, 1, 1, 0]) == [0, 1, 1, 1, 0, 1, 1, 1, 1, 0]
        assert pressed(parser, state, column, [1, 0, 1, 0, 0, 1]) == [1, 1, 1, 0, 0, 1]
    begin(parser, state, 0)
    assert pressed(parser, state, JUMP, [0]) == [0]  # the press before the reset is forgotten
    assert pressed(StickyButtons(ContinuousAction(), 1), state, JUMP, [1, 0, 1]) == [1, 0, 1]
    parser, state = StickyButtons(ContinuousAction(), 2), arenas(1, 2)
    begin(parser, state, 0)
    actions = np.full((2, 8), 0.5, np.float32)
    actions[1, 5:] = -1
    rows = parser.parse(actions, state).rows
    np.testing.assert_array_equal(rows, [[0.5] * 5 + [1] * 3, [0.5] * 5 + [0] * 3])
    np.testing.assert_array_equal(parser.parse(-actions, state).rows, [[-0.5] * 5 + [1] * 3, [-0.5] * 5 + [1] * 3])


def test_clip_and_delay():
    state = arenas()
    actions = np.array([[1, -1, 0.5, 0.1, -0.6, 1, -1, 1]], np.float32)
    rows = ClipAction(ContinuousAction(), -0.5, 0.25).parse(actions, state).rows
    np.testing.assert_allclose(rows, [[0.25, -0.5, 0.25, 0.1, -0.5, 1, 0, 1]])
    steer_only = ClipAction(ContinuousAction(), [-1, -0.5, -1, -1, -1], [1, 0.5, 1, 1, 1])
    controls = steer_only.parse(actions, state)
    np.testing.assert_allclose(controls.rows, [[1, -0.5, 0.5, 0.1, -0.6, 1, 0, 1]])
    assert controls.cars[0].steer == -0.5 and controls.cars[0].throttle == 1
    table = LookupTable()
    ClipAction(table, 0, 0).parse(np.array([0]), state)
    assert table.table.min() == -1  # the table itself is not clipped
    parser, state = DelayAction(ContinuousAction(), 2), arenas(2)
    begin(parser, state, 0, 1)
    assert throttles(parser, state, [0.25, 0.5, 0.75]) == [[0, 0], [0, 0], [0.25, 0.25]]
    begin(parser, state, 0)
    assert throttles(parser, state, [1, -1, 0]) == [[0, 0.5], [0, 0.75], [1, 1]]
    assert throttles(DelayAction(ContinuousAction(), 1), state, [1, 0]) == [[0, 0], [1, 1]]  # a pool without reset


def test_masks_and_metrics_pass_through():
    state = arenas(1, 3)
    state.car_timers[0, 1, 3] = 2.0  # demolished
    expected = HybridTable().mask(state)
    assert expected.sum(axis=-1).tolist() == [[128, 1, 128]]
    for wrap in (
        partial(StickyButtons, hold_steps=2),
        partial(ClipAction, low=-1, high=1),
        partial(DelayAction, steps=1),
        partial(RepeatAction, steps=3),
    ):
        parser = wrap(HybridTable())
        begin(parser, state, 0)
        np.testing.assert_array_equal(parser.mask(state), expected)
        parser.parse(np.array([5, 5, 5]), state)
        assert parser.drain_metrics() == {"action/fallback_share": (1, 3)}
        assert wrap(LookupTable()).mask(state) is None and wrap(LookupTable()).drain_metrics() == {}
        assert parser.action_space == parser.inner.action_space


# ------------------------------------------------------------------ through pools


def stack():
    """Everything at once; 31 ticks = a choice of three steps after one step of delay."""
    return DelayAction(StickyButtons(RepeatAction(ClipAction(HybridTable(41), -1, 0.5), 3), 2), 1)


class Record(ActionParser):
    """Keeps what the inner parser gave and which arenas began an episode before it."""

    def __init__(self, inner):
        self.inner, self.rows, self.began, self._begin = inner, [], [], None

    @property
    def action_space(self):
        return self.inner.action_space

    def parse(self, actions, state):
        controls = self.inner.parse(actions, state)
        self.rows.append(controls.rows.reshape(state.num_arenas, state.num_cars, 8).copy())
        self.began.append(self._begin if self._begin is not None else np.zeros(state.num_arenas, bool))
        self._begin = None
        return controls

    def reset(self, mask, state):
        self.inner.reset(mask, state)
        self._begin = mask.copy()


def play(parser, num_arenas=5, team_size=1, seconds=0.7, steps=40, seed=0, num_threads=1, choose=None):
    record = Record(parser)
    parts = {"action": record, "state_setter": RandomState(), "done": [TimeoutCondition(seconds)]}
    pool = RocketSimPool(num_arenas, team_size, num_threads=num_threads, seed=seed, **parts)
    obs, _ = pool.reset()
    seen = [obs]
    for step in range(steps):
        actions = choose(step) if choose else np.random.default_rng(step).integers(90, size=pool.num_envs)
        seen.append(pool.step(actions)[0])
    pool.close()
    return np.array(record.rows), np.array(record.began), np.array(seen)


def test_repeat_through_a_pool():
    actions = np.random.default_rng(0).integers(90, size=(40, 10))
    rows, began, _ = play(RepeatAction(LookupTable(), 4), choose=lambda step: actions[step])
    assert began.all(axis=1).sum() == 4  # every 11 steps (0.7 s are 10.5 steps)
    for step in range(40):
        start = np.flatnonzero(began[: step + 1, 0])[-1]
        taken = step - (step - start) % 4
        np.testing.assert_array_equal(rows[step].reshape(10, 8), LookupTable().table[actions[taken]])


def test_sticky_and_delay_through_a_pool():
    plain, began, _ = play(LookupTable())
    sticky, _, _ = play(StickyButtons(LookupTable(), 3))
    delayed, _, _ = play(DelayAction(LookupTable(), 2))
    since = 0
    down = np.zeros((5, 2, 3), int)
    for step in range(40):
        if began[step].all():
            since, down = 0, np.zeros_like(down)
        expected = np.zeros_like(plain[0]) if since < 2 else plain[step - 2]
        np.testing.assert_array_equal(delayed[step], expected)
        on = (plain[step][..., 5:] == 1) | ((down >= 1) & (down < 3))
        down = np.where(on, down + 1, 0)
        np.testing.assert_array_equal(sticky[step][..., 5:], on)
        np.testing.assert_array_equal(sticky[step][..., :5], plain[step][..., :5])
        since += 1
    assert (sticky != plain).any()


@pytest.mark.parametrize("num_threads", [2, 3])
def test_trajectories_do_not_depend_on_threads(num_threads):
    one, several = play(stack()), play(stack(), num_threads=num_threads)
    for a, b in zip(one, several, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_arena_does_not_depend_on_the_others():
    actions = np.random.default_rng(0).integers(128, size=(40, 10))
    rows, _, obs = play(stack(), choose=lambda step: actions[step])
    for arena in (0, 3):
        alone = slice(2 * arena, 2 * arena + 2)
        some = partial(lambda step, part: actions[step, part], part=alone)
        own_rows, _, own_obs = play(stack(), num_arenas=1, seed=arena, choose=some)
        np.testing.assert_array_equal(own_rows[:, 0], rows[:, arena])
        np.testing.assert_array_equal(own_obs, obs[:, alone])


def test_arenas_of_mixed_sizes():
    rng = np.random.default_rng(0)
    parts = {"action": stack(), "state_setter": RandomState(), "done": [TimeoutCondition(0.7)]}
    pool = RocketSimPool(3, [(1, 0), (2, 1), (1, 2)], num_threads=1, **parts)
    _, infos = pool.reset()
    for _ in range(30):
        assert infos["action_mask"].shape == (7, 128) and infos["action_mask"].any(axis=1).all()
        *_, infos = pool.step(rng.integers(128, size=7))
        assert not pool.state.controls[~pool.state.present].any()
    assert pool.drain_metrics()["action/fallback_share"][1] == 30 * 7


def test_state_survives_a_restart():
    state, rng = arenas(3, 2), np.random.default_rng(0)
    actions = rng.integers(128, size=(12, 6))
    whole, half = stack(), stack()
    for parser in (whole, half):
        begin(parser, state, 0, 1, 2)
        for step in range(5):
            parser.parse(actions[step], state)
        begin(parser, state, 1)
    saved = half.state_dict()
    assert all(isinstance(array, np.ndarray) for array in saved.values())
    half.parse(actions[0], state)  # what was saved are copies
    fresh = stack()
    fresh.load_state_dict(saved)
    fresh.reset(np.zeros(3, np.bool_), state)
    for step in range(5, 12):
        np.testing.assert_array_equal(fresh.mask(state), whole.mask(state))
        np.testing.assert_array_equal(fresh.parse(actions[step], state).rows, whole.parse(actions[step], state).rows)
    assert fresh.drain_metrics() == whole.drain_metrics()


def test_a_pool_resumes_in_mid_repetition():
    def build():
        done = [TimeoutCondition(0.7)]
        pool = RocketSimPool(3, 1, action=stack(), state_setter=RandomState(), done=done, num_threads=1)
        pool.reset()
        return pool

    pool, resumed = build(), build()
    actions = np.random.default_rng(0).integers(128, size=(40, 6))
    for step in range(17):
        pool.step(actions[step])
    resumed.load_state_dict(pool.state_dict())
    for step in range(17, 40):
        np.testing.assert_array_equal(pool.step(actions[step])[0], resumed.step(actions[step])[0])
        np.testing.assert_array_equal(pool.state.controls, resumed.state.controls)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("other", [DelayAction(LookupTable(), 2), StickyButtons(LookupTable(), 1)])
def test_the_state_of_another_parser_is_refused(other):
    parser, state = DelayAction(LookupTable(), 1), arenas()
    begin(parser, state, 0)
    begin(other, state, 0)
    with pytest.raises(ValueError, match=r"^the parser does not fit DelayAction: .*waiting"):
        load_child_state(parser, other.state_dict(), "the parser")


@pytest.mark.parametrize("steps", [1, 3])
def test_a_jump_that_waits_leaves_the_pitch_of_the_next_choice(steps):
    """A table with the same rows that never fall back moves the car in the same way."""
    rows = hybrid_rows()
    jump, pitch = (rows.tolist().index(row) for row in ([1, 0, 0, 0, 0, 1, 0, 0], [0, 0, -1, 0, 0, 0, 0, 0]))
    spins = []
    for table in (HybridTable(), ActionTable(rows)):
        start = ExplicitState(car_pos=[(0, -3000, 17)], ball_pos=(0, 3000, 93.15))
        pool = RocketSimPool(1, (1, 0), action=DelayAction(table, steps), state_setter=start, num_threads=1)
        pool.reset(seed=0)
        for action in (jump, *[pitch] * steps, *[0] * steps, 0):
            pool.step(np.array([action]))
        spins.append(pool.state.world.car_ang_vel[0, 0].copy())
        pool.close()
    assert np.array_equal(*spins) and np.abs(spins[0]).max() > 0.5


@pytest.mark.parametrize(
    ("wrap", "ticks"),
    [
        (lambda table: table, 4 + 1),
        (lambda table: ClipAction(table, -1, 1), 4 + 1),
        (lambda table: RepeatAction(table, 3), 12 + 1),
        (lambda table: StickyButtons(table, 3), 12 + 1),
        (lambda table: DelayAction(table, 2), 12 + 1),
        (lambda table: DelayAction(RepeatAction(table, 3), 1), 24 + 1),
    ],
)
def test_a_pool_tells_the_table_how_far_to_look_ahead(wrap, ticks):
    table = StateAwareTable(horizon_ticks=1)
    RocketSimPool(1, action=wrap(table), tick_skip=4, num_threads=1).close()
    assert table.horizon_ticks == ticks
