"""Games of people as demonstrations: frames like those of rlgym-tools, and, where they are there, real replays."""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from envs.actions import LookupTable
from envs.demonstrations.convert import INFERRED, _check_spacing, _episodes, convert, converted_columns
from envs.demonstrations.file import Demonstration, DemonstrationWriter, states_of
from envs.demonstrations.record import about_states
from envs.demonstrations.trajectories import trajectories
from envs.obs import DefaultObs

REPLAYS = Path(__file__).resolve().parents[4] / "shared" / "replays"


def frames_of_rlgym(numbers=40, ticks=4, kickoff_after=25):
    """What rlgym-tools would yield of random play in RLGym's own engine; car 0's state is old in every third frame."""
    random.seed(0)  # of the kickoff
    rng, engine = np.random.default_rng(0), RocketSimEngine(rlbot_delay=False)
    state = engine.create_base_state()
    MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()).apply(state, {})
    engine.set_state(state, {})
    uids = list(state.cars)
    state = engine.step({uid: np.zeros((1, 8)) for uid in uids}, {})
    for number in range(numbers):
        actions = {uid: np.array([1, 0, 0, 0, 0, 0, 0, 0], np.float32) for uid in uids}
        actions[uids[0]][1:5] = rng.uniform(-1, 1, 4)
        actions[uids[0]][5] = number % 10 == 3  # jumps, between two frames of the grid of 8 ticks
        age = {uids[0]: 0.03 if number % 3 == 2 else 0.0, uids[1]: 0.0}
        state.goal_scored = number == kickoff_after
        yield SimpleNamespace(
            state=state,
            actions=actions,
            update_age=age,
            scoreboard=SimpleNamespace(go_to_kickoff=number == kickoff_after),
        )
        state = engine.step({uid: row.reshape(1, -1).repeat(ticks, axis=0) for uid, row in actions.items()}, {})


def test_every_number_is_that_of_the_frame(tmp_path):
    told = [
        (
            frame.state.ball.position.copy(),
            [car.physics.position.copy() for car in frame.state.cars.values()],
            [car.physics.rotation_mtx.copy() for car in frame.state.cars.values()],
            [(car.boost_amount, car.on_ground, car.flip_time) for car in frame.state.cars.values()],
            np.stack(list(frame.actions.values())),
        )
        for frame in frames_of_rlgym()
    ]
    first, second = _episodes(frames_of_rlgym())
    assert (first.terminated, second.terminated) == (True, False) and first.teams == [0, 1]
    every = [first.frames(4, 0.5), second.frames(4, 0.5)]
    assert [len(frames) for frames in every] == [26, 14]
    path = tmp_path / "a.frd"
    with DemonstrationWriter(path, converted_columns(2), about_states(["a"], [0, 1], [0, 1], 4)) as writer:
        for frames in every:
            writer.add(frames, {"terminated": False})
    at = 0
    for episode in Demonstration(path).episodes():
        state = states_of(episode.columns, 1)
        for row in range(episode.steps + 1):
            ball, cars, rotations, rest, actions = told[at]
            assert np.array_equal(state.world.ball_pos[row], ball.astype(np.float32))
            assert np.array_equal(state.world.car_pos[row], np.float32(cars))
            assert np.array_equal(state.world.car_forward[row], np.float32([matrix[:, 0] for matrix in rotations]))
            seen = np.stack((state.boost[row], state.on_ground[row], state.flip_time[row]), axis=-1)
            assert np.array_equal(seen, np.float32(rest))
            if row < episode.steps:
                assert np.array_equal(episode.columns["controls"][row + 1], actions)
                old = [at % 3 == 2, False]
                air = ~state.on_ground[row]
                assert np.array_equal(episode.columns[INFERRED][row + 1], old + 2 * air)
                assert np.array_equal(episode.columns["weight"][row + 1], np.where(old, 0, np.where(air, 0.5, 1)))
            at += 1
    assert at == len(told)
    assert sum(len(each.action) for each in trajectories(Demonstration(path), 1, DefaultObs(), LookupTable())) == 2 * 38


def test_a_jump_between_two_frames_is_not_lost():
    first, _ = _episodes(frames_of_rlgym())
    frames = first.frames(8, 0.5)
    assert [int(frame["episode_ticks"]) for frame in frames] == list(range(0, 101, 8))
    jumps = [int(frame["controls"][0, 5]) for frame in frames]
    assert jumps == [0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]  # of frames 3, 13 and 23


def test_frames_that_the_file_does_not_have_are_refused():
    episodes = list(_episodes(frames_of_rlgym()))
    _check_spacing(Path("a.replay"), episodes, 4)
    with pytest.raises(
        ValueError, match=r"^a\.replay: its frames are 4 ticks apart; take --tick_skip 4 or more, got 3$"
    ):
        _check_spacing(Path("a.replay"), episodes, 3)


def test_no_replay_is_one_line(tmp_path):
    (tmp_path / "a.replay").write_bytes(b"nothing")
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for name in ("a.replay", "b.replay"):
        with pytest.raises(ValueError, match=rf"^[^\n]*{name}: [^\n]*$"):
            convert(tmp_path / name)


@pytest.mark.slow
def test_a_game_of_people_holds_what_its_file_says():
    """Every car where the file has it, at the frames that the file has."""
    for name in ("pandas", "pyarrow", "rlgym_tools"):
        pytest.importorskip(name)
    if not REPLAYS.is_dir():
        pytest.skip(f"there are no replays in {REPLAYS}")
    from rlgym_tools.rocket_league.replays.convert import replay_to_rlgym
    from rlgym_tools.rocket_league.replays.parsed_replay import ParsedReplay

    path = next(REPLAYS.glob("*-a.replay"))
    game, parsed = convert(path, tick_skip=6), ParsedReplay.load(path)
    frames = list(replay_to_rlgym(parsed))
    times = parsed.game_df["time"].to_numpy() * 120
    columns = [f"pos_{axis}" for axis in "xyz"]
    order = [uid for uid, _ in sorted(frames[0].state.cars.items(), key=lambda item: item[1].team_num)]
    checked = seen = 0
    starts = [0, *(number + 1 for number, frame in enumerate(frames) if frame.scoreboard.go_to_kickoff)]
    for start, (shown, _) in zip(starts, game.episodes, strict=True):
        begin = frames[start].state.tick_count
        rows = np.abs(times[:, None] - (begin + np.array([frame["episode_ticks"] for frame in shown]))).argmin(axis=0)
        ball = parsed.ball_df[columns].to_numpy()[rows]
        assert np.array_equal(np.stack([frame["ball"][:3] for frame in shown]), ball.astype(np.float32))
        for slot, uid in enumerate(order):
            own = parsed.player_dfs[str(uid)][columns].to_numpy()[rows]
            for row in range(len(shown) - 1):
                seen += 1
                if not shown[row + 1][INFERRED][slot] & 1 and np.isfinite(own[row]).all():
                    assert np.array_equal(shown[row]["cars"][slot, 11:14], own[row].astype(np.float32))
                    checked += 1
    assert checked > seen / 3
