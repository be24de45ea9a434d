"""Recorded states: the file, the exact round trip, and broken files."""

import numpy as np
import pytest

from envs import GameState, RocketSimPool, TimeoutCondition
from envs.resets import Kickoff, MirroredStates, RandomState, ReplayedStates, check_start, save_states
from envs.resets.base import BALL_VECTORS, CAR_VECTORS
from envs.resets.replay import DETAILS
from envs.state.layout import CAR_FLAGS, CAR_TIMERS
from tests.envs.fakes import written

WORLD = (*BALL_VECTORS, *CAR_VECTORS)


def play(steps, num_arenas=3, team_size=2, seed=0, setter=None):
    """Yields the pool's state after each of some random steps."""
    pool = RocketSimPool(
        num_arenas,
        team_size,
        state_setter=setter or RandomState(grounded_share=0.7),
        done=[TimeoutCondition(1000)],
        num_threads=1,
        seed=seed,
    )
    pool.reset()
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        pool.step(rng.integers(90, size=pool.num_envs))
        yield pool.state


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A file of 60 states of 2 against 2, and those states as copies."""
    path, kept = tmp_path_factory.mktemp("states") / "folder" / "states.npz", []

    def copied():
        for state in play(20):
            kept.append(state.select(np.arange(3)))
            kept[-1].wheels_with_contact  # noqa: B018 - reads the live arenas now
            yield state

    assert save_states(path, copied()) == 60
    return path, kept


class Chosen:
    """Stands in for a generator and chooses one state."""

    def __init__(self, index):
        self.index = index

    def integers(self, states):
        return self.index


def test_every_field_comes_back_exactly(recorded):
    _, kept = recorded
    flags = np.concatenate([state.car_flags.reshape(-1, len(CAR_FLAGS)) for state in kept])
    timers = np.concatenate([state.car_timers.reshape(-1, len(CAR_TIMERS)) for state in kept])
    assert flags.any(axis=0).all() and not flags.all(axis=0).any()
    assert (timers > 0).any(axis=0)[[0, 1, 2, 4]].all()
    assert any(state.pad_timers.any() for state in kept)
    path, kept = recorded
    setter = ReplayedStates(path)
    assert len(setter) == 60
    for index in range(60):
        original, arena = kept[index // 3], index % 3
        state = GameState(2, 2, 2)
        state.clear(np.array([0, 1]))
        setter.apply(state, np.array([False, True]), Chosen(index))
        for name in WORLD:
            np.testing.assert_array_equal(getattr(state.world, name)[1], getattr(original.world, name)[arena])
        for name in ("boost", "pad_timers", "car_timers", "car_flags", "on_ground", "wheels_with_contact"):
            np.testing.assert_array_equal(getattr(state, name)[1], getattr(original, name)[arena], err_msg=name)
        for name in DETAILS:
            np.testing.assert_array_equal(state.details[name][1], original.details[name][arena], err_msg=name)
        assert not state.world.ball_pos[0].any() and not state.controls.any()
        check_start(state, 1, "ReplayedStates")


def test_states_arrive_in_the_live_arenas(recorded):
    path, kept = recorded
    pool = RocketSimPool(8, 2, state_setter=ReplayedStates(path), num_threads=2, seed=9)
    pool.reset()
    ball = np.concatenate([state.world.ball_pos for state in kept])
    found = []
    for arena in range(8):
        index = int(np.linalg.norm(ball - pool.state.world.ball_pos[arena], axis=-1).argmin())
        original, row = kept[index // 3], index % 3
        found.append(index)
        for name in WORLD:
            got, wanted = getattr(pool.state.world, name)[arena], getattr(original.world, name)[row]
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-3, err_msg=name)
        np.testing.assert_allclose(pool.state.pad_timers[arena], original.pad_timers[row], atol=1e-6)
        np.testing.assert_array_equal(pool.state.boost[arena], original.boost[row])
        np.testing.assert_array_equal(pool.state.car_timers[arena], original.car_timers[row])
        np.testing.assert_array_equal(pool.state.car_flags[arena, :, 1:], original.car_flags[row, :, 1:])
        np.testing.assert_array_equal(pool.state.wheels_with_contact[arena], original.wheels_with_contact[row])
    expected = [int(np.random.default_rng(9 + arena).choice(np.arange(60))) for arena in range(8)]
    assert found == expected and len(set(found)) > 3


def test_drawn_alike_and_mirrored(recorded):
    setter, rng, state = ReplayedStates(recorded[0]), np.random.default_rng(0), GameState(1, 2, 2)
    drawn = set()
    for _ in range(600):
        setter.apply(state, np.array([True]), rng)
        drawn.add(state.world.ball_pos[0].tobytes())
    assert len(drawn) == 60
    setter = ReplayedStates(recorded[0])
    state, plain = (written(each, seed=3) for each in (MirroredStates(setter, 1, teams=False), setter))
    np.testing.assert_array_equal(state.world.ball_pos, plain.world.ball_pos * [-1, 1, 1])


def test_each_state_by_its_number(recorded):
    setter, state, placed = ReplayedStates(recorded[0]), GameState(1, 2, 2), []
    for number in range(61):
        setter.place(state, 0, number)
        placed.append(state.world.ball_pos[0].tobytes())
    assert len(set(placed[:60])) == 60
    assert placed[60] == placed[0]


def test_arenas_get_states_of_their_own_team_sizes(tmp_path):
    path = tmp_path / "mixed.npz"
    save_states(path, play(4, 4, [(1, 0), (1, 1), (2, 2), (1, 1)]))
    setter = ReplayedStates(path)
    pool = RocketSimPool(6, [(1, 1), (1, 0), (3, 3)][:2], state_setter=setter, num_threads=1)
    pool.reset()
    assert (np.linalg.norm(pool.state.world.car_pos, axis=-1) > 0).tolist() == pool.state.present.tolist()
    # slots differ: in the file orange's first is column 2, here column 1
    recorded = {array.tobytes() for array in setter._arrays["car_forward"][:, 2]}
    state = written(setter, 1, 1)
    assert state.world.car_forward[0, 1].tobytes() in recorded
    with pytest.raises(
        ValueError,
        match=r"ReplayedStates: the arena has 3 blue against 3 orange .* 1 against 0, 1 against 1, 2 against 2",
    ):
        written(setter, 3, 3)


def test_failed_saves_leave_the_old_file_and_kickoffs_need_no_pool(tmp_path):
    path = tmp_path / "states.npz"
    save_states(path, play(1))
    before = path.read_bytes()

    def broken():
        yield from play(1)
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        save_states(path, broken())
    with pytest.raises(ValueError, match="save_states: there are no states"):
        save_states(path, [])
    with pytest.raises(ValueError, match="save_states: all states must have the same team sizes"):
        save_states(path, [GameState(1, 1, 1), GameState(1, 2, 0)])
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    state = written(Kickoff(), 1, 1)
    save_states(tmp_path / "k.npz", [state])
    other = written(ReplayedStates(tmp_path / "k.npz"), 1, 1)
    np.testing.assert_array_equal(other.car_rows[:, :, 0], state.car_rows[:, :, 0])


def rewrite(source, target, **changes):
    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(target, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"car_up": None, "boost": None}, "it lacks 'car_up'"),
        (
            {"ball_pos": np.zeros((59, 3), np.float32)},
            r"file\['ball_pos'\] is float32 of shape \[59, 3\], not float32 of shape \[60, 3\]",
        ),
        ({"boost": np.full((60, 4), np.nan, np.float32)}, r"file\['boost'\] contains NaN"),
        ({"present": np.zeros((0, 4), bool)}, "it contains no states"),
        ({"boost": np.full((60, 4), None, object)}, "cannot create an OBJECT array"),
    ],
)
def test_broken_arrays_are_named(recorded, tmp_path, changes, message):
    path = tmp_path / "broken.npz"
    rewrite(recorded[0], path, **changes)
    with pytest.raises(
        ValueError, match=f"ReplayedStates: .*broken.npz was not written by envs.save_states: .*{message}"
    ) as e:
        ReplayedStates(path)
    assert "\n" not in str(e.value)


def test_other_files_are_refused_in_one_line(tmp_path, recorded):
    with pytest.raises(FileNotFoundError, match=r"ReplayedStates: there is no file .*none.npz; write one with"):
        ReplayedStates(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match="ReplayedStates: there is no file"):
        ReplayedStates(str(tmp_path))
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "half.npz").write_bytes(recorded[0].read_bytes()[:2000])
    for name in ("one.npy", "text.npz", "empty.npz", "half.npz"):
        with pytest.raises(ValueError, match=f"ReplayedStates: .*{name} was not written by envs.save_states") as caught:
            ReplayedStates(tmp_path / name)
        assert "\n" not in str(caught.value)
