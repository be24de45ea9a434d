"""Training packs: a small file of our own, and the file of rlgym-tools where it is installed."""

import gzip
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from rlgym.rocket_league.api import PhysicsObject

from envs import RocketSimPool
from envs.resets import MirroredStates, TrainingPack, check_start
from tests.envs.fakes import written


def shot(ball=(0, 4000, 100), velocity=(100, 200, 300), car=(1000, 2000, 17), angles=(0.1, 4.0, -0.2)):
    return {
        "time_limit": 5.0,
        "ball": {"position": ball, "linear_velocity": velocity, "euler_angles": (0, 0, 0)},
        "car": {"position": car, "linear_velocity": (0, 0, 0), "euler_angles": angles},
    }


def pack(*shots, kind="Striker", difficulty="Pro", tags=("Shots",), code="AAAA"):
    metadata = {"type": kind, "difficulty": difficulty, "tags": list(tags), "code": code}
    return {"metadata": metadata, "shots": list(shots)}


@pytest.fixture
def write(tmp_path):
    def write(*packs, name="packs.jsonl"):
        text, path = "".join(json.dumps(pack) + "\n" for pack in packs), tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def apply(setter, seed=0, blue=1, orange=0, present=None):
    state = written(setter, blue, orange, seed, present)
    check_start(state, 0, "TrainingPack")
    return state


def test_a_shot_by_hand(write):
    state = apply(TrainingPack(path=write(pack(shot()))))
    world = state.world
    np.testing.assert_array_equal(world.ball_pos[0], [0, 4000, 100])
    np.testing.assert_array_equal(world.ball_vel[0], [100, 200, 300])
    np.testing.assert_array_equal(world.car_pos[0, 0], [1000, 2000, 17])
    assert not world.car_vel.any() and not world.car_ang_vel.any() and not world.ball_ang_vel.any()
    rlgym = PhysicsObject()
    rlgym.euler_angles = np.array([0.1, 4.0, -0.2])
    for name in ("forward", "right", "up"):
        np.testing.assert_allclose(getattr(world, f"car_{name}")[0, 0], getattr(rlgym, name), atol=1e-6)
    assert state.boost[0, 0] == 100 and state.on_ground[0, 0]
    assert not apply(TrainingPack(path=write(pack(shot(car=(0, 0, 30)))))).on_ground[0, 0]
    low = apply(TrainingPack(path=write(pack(shot(car=(0, 0, 12.7))))))
    assert low.world.car_pos[0, 0, 2] == 17 and low.on_ground[0, 0]
    setter = TrainingPack(path=write(pack(shot(ball=(0, 0, 500), velocity=(0, 0, 0), car=(0, -3000, 17)))))
    pool = RocketSimPool(1, (1, 0), state_setter=setter, num_threads=1)
    pool.reset()
    for _ in range(15):
        pool.step(np.full(1, 8))
    # 1 s: 500 - 650 / 2 = 175, a little more with drag
    np.testing.assert_allclose(pool.state.world.ball_pos[0], [0, 0, 178], atol=4)


def test_orange_shoots_at_blue(write):
    setter = TrainingPack(path=write(pack(shot())))
    blue = apply(setter)
    for state in (apply(setter, 0, 0, 1), apply(setter, 0, 1, 1, np.array([[False, True]]))):
        for name in ("ball_pos", "ball_vel"):
            np.testing.assert_array_equal(getattr(state.world, name)[0], getattr(blue.world, name)[0] * [-1, -1, 1])
        for name in ("car_pos", "car_forward", "car_right", "car_up"):
            got, wanted = getattr(state.world, name)[0, -1], getattr(blue.world, name)[0, 0] * [-1, -1, 1]
            np.testing.assert_allclose(got, wanted, atol=1e-6)
    setter = MirroredStates(TrainingPack(path=write(pack(shot()))), left_right=False)
    shooters = {tuple(apply(setter, seed, 1, 1).world.ball_pos[0].tolist()) for seed in range(20)}
    assert shooters == {(0, 4000, 100), (0, -4000, 100)}


def test_further_cars_wait_in_their_own_halves(write):
    setter = TrainingPack(path=write(pack(shot(ball=(0, 2500, 100)))))
    for seed in range(50):
        state = apply(setter, seed, 3, 3)
        pos, to_ball = state.world.car_pos[0], state.world.ball_pos[0] - state.world.car_pos[0]
        assert (pos[1:3, 1] <= -500).all() and (pos[3:, 1] >= 500).all()
        assert (np.abs(pos[1:, :2]).sum(axis=1) <= 7500).all()  # not on a ramp
        spots = np.concatenate((pos, state.world.ball_pos))
        gaps = np.linalg.norm(spots[:, None] - spots[None], axis=-1)[~np.eye(7, dtype=bool)]
        assert gaps.min() > 399
        facing = (state.world.car_forward[0, 1:, :2] * to_ball[1:, :2]).sum(axis=-1)
        np.testing.assert_allclose(facing, np.linalg.norm(to_ball[1:, :2], axis=-1), rtol=1e-5)
        assert state.on_ground.all()
    assert (apply(setter, 1, 3, 3).world.car_pos[0, 1:] != apply(setter, 2, 3, 3).world.car_pos[0, 1:]).any()


def test_shots_outside_the_standard_field_are_left_out(write):
    outside = [shot(ball=(0, 0, 4096)), shot(car=(-4641, -1162, 43)), shot(ball=(0, 6866, 1300))]
    assert len(TrainingPack(path=write(pack(*outside, shot())))) == 1
    with pytest.raises(ValueError, match=r"TrainingPack: no shot .* fits in the standard field"):
        TrainingPack(path=write(pack(*outside)))


def test_all_shots_are_drawn_and_the_filters_choose(write):
    shots = [shot(ball=(x, 0, 100)) for x in range(0, 800, 100)]
    path = write(
        pack(*shots[:3], tags=["Aerials", "Shots"], code="A"),
        pack(*shots[3:5], kind="Goalie", tags=["Saves"], code="B"),
        pack(*shots[5:8], difficulty="All-Star", tags=[], code="C"),
        name="packs.jsonl.gz",
    )

    def drawn(**filters):
        setter = TrainingPack(path=path, **filters)
        found = {int(apply(setter, seed).world.ball_pos[0, 0]) // 100 for seed in range(60)}
        assert len(found) == len(setter)
        return found

    assert drawn() == set(range(8))
    assert drawn(kinds=["Goalie"]) == {3, 4}
    assert drawn(kinds=["Goalie", "Striker"], difficulties=["All-Star"]) == {5, 6, 7}
    assert drawn(tags=["Saves", "Aerials"]) == {0, 1, 2, 3, 4}
    assert drawn(codes=["C", "A"], difficulties=["Pro"]) == {0, 1, 2}
    held_out, others = drawn(held_out=True), drawn(held_out=False)  # SHA-256 of "A" is divisible by 5
    assert (held_out, others) == ({0, 1, 2}, {3, 4, 5, 6, 7})


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"kinds": ["Keeper"]}, r"no pack in .* matches kinds=\['Keeper'\]; known: Striker"),
        ({"tags": ["Saves"]}, r"matches tags=\['Saves'\]; known: Shots"),
        ({"difficulties": []}, "matches difficulties="),
    ],
)
def test_filters_that_fit_nothing(write, filters, message):
    with pytest.raises(ValueError, match=f"TrainingPack: .*{message}") as caught:
        TrainingPack(path=write(pack(shot())), **filters)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no json\n",
        b"[1]\n",
        b'{"shots": []}\n',
        b'{"metadata": {}, "shots": [{"ball": {}}]}\n',
        json.dumps(pack(shot(ball=(1, 2)))).encode(),
        json.dumps(pack(shot(ball=(1, 2, float("nan"))))).encode(),
        json.dumps(pack(shot(velocity=(7000, 0, 0)))).encode(),
        b"\xff\xfe",
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, content):
    (tmp_path / "packs.jsonl").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"TrainingPack: .*packs.jsonl (is not a file of training|contains no) packs"
    ) as caught:
        TrainingPack(path=tmp_path / "packs.jsonl")
    assert "\n" not in str(caught.value)
    (tmp_path / "packs.jsonl.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"TrainingPack: .*packs.jsonl.gz"):
        TrainingPack(path=tmp_path / "packs.jsonl.gz")
    with pytest.raises(FileNotFoundError, match=r"TrainingPack: there is no file .*none"):
        TrainingPack(path=tmp_path / "none")


def test_a_missing_package_or_file_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rlgym_tools", None)
    with pytest.raises(ImportError, match=r"TrainingPack: .* pip install -U rlgym-tools$"):
        TrainingPack()
    without_packs = SimpleNamespace(__spec__=SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setitem(sys.modules, "rlgym_tools", without_packs)
    with pytest.raises(ImportError, match=r"TrainingPack: .* pip install -U rlgym-tools$"):
        TrainingPack()


@pytest.fixture(scope="module")
def rlgym_tools_packs():
    pytest.importorskip("rlgym_tools")
    return {kind: TrainingPack([kind]) for kind in ("Striker", "Goalie")}


@pytest.mark.slow
def test_the_shipped_packs(rlgym_tools_packs):
    striker, goalie = rlgym_tools_packs["Striker"], rlgym_tools_packs["Goalie"]
    assert len(striker) > 4000 and len(goalie) > 700
    assert len(TrainingPack()) == len(striker) + len(goalie)
    for setter in (striker, goalie):
        for seed in range(100):
            apply(setter, seed, 1, 1)
    # goalie shots go toward blue's goal, and blue stands behind the ball
    states = [apply(goalie, seed) for seed in range(100)]
    assert np.mean([state.world.ball_vel[0, 1] < 0 for state in states]) > 0.9
    assert np.mean([state.world.car_pos[0, 0, 1] < state.world.ball_pos[0, 1] for state in states]) > 0.9
    for setter in rlgym_tools_packs.values():
        few, many = (
            RocketSimPool(n, 1, state_setter=setter, num_threads=threads, seed=5) for n, threads in ((4, 1), (8, 2))
        )
        few.reset()
        many.reset()
        for _ in range(3):
            few.step(np.zeros(8, np.int64))
            many.step(np.zeros(16, np.int64))
        np.testing.assert_array_equal(few.state.car_rows, many.state.car_rows[:4])
        assert (few.state.ball_rows[0] != few.state.ball_rows[1]).any()
