"""A demonstration holds what was seen and done, to the bit, or it is refused with one line."""

import random
import zlib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

from envs import TouchReward
from envs.actions import (
    ActionTable,
    ContinuousAction,
    DelayAction,
    LookupTable,
    MultiDiscreteAction,
    RepeatAction,
    StateAwareTable,
    StickyButtons,
)
from envs.actions.nearest import nearest_actions, soft_labels
from envs.adapters.gymnasium_envs import GymnasiumEnvs
from envs.bots import BallChaser, TeamBots
from envs.demonstrations.convert import INFERRED, _check_spacing, _episodes, convert, converted_columns
from envs.demonstrations.file import (
    INTENDED_CONTROLS,
    Demonstration,
    DemonstrationWriter,
    columns_of_states,
    states_from_columns,
)
from envs.demonstrations.record import (
    RecordedEnvs,
    StateRecorder,
    observation_columns,
    observations_header,
    record_states,
    states_header,
)
from envs.demonstrations.trajectories import observation_trajectories, trajectories
from envs.dones import GoalCondition, TimeoutCondition
from envs.obs import AdvancedObs, AdvancedObsPlus, DefaultObs, EntityObs, StackedObs
from envs.pool.replay_format import CHUNK, TOTAL, Column, ReplayWriter, pack_json, pack_record
from envs.pool.rocket_pool import RocketSimPool
from envs.replays.replay import read_replay
from envs.resets import RandomState
from envs.state.game_state import GameState
from envs.state.layout import TOUCHED

TEAM = 2
STEPS = 40
BOX, TWO = Box(-1, 1, (2,), np.float32), Discrete(2)
SEEN = observations_header("me", "Mine", BOX, TWO)
FRAME = {"obs": np.zeros(2), "action": np.ones(()), "reward": np.zeros(())}


def played(path, obs, action, seed=0):
    """What random play in a pool saw and did, `[steps + 1, cars, ...]` for each episode; also written to `path`."""
    about = states_header(("one", "two"), [0] * TEAM + [1] * TEAM, range(2 * TEAM), 8)
    with DemonstrationWriter(path, columns_of_states(2 * TEAM), about) as writer:
        recorder = StateRecorder(writer)
        pool = RocketSimPool(
            1,
            TEAM,
            obs,
            action,
            state_setter=RandomState(),
            done=[GoalCondition(), TimeoutCondition(1.0)],
            num_threads=1,
            seed=seed,
            loggers=[recorder],
        )
        rng = np.random.default_rng(seed)
        seen, infos = pool.reset(seed=seed)
        episodes, now, masks = [], [seen], [infos.get("action_mask")]
        done = []
        for _ in range(STEPS):
            space = pool.single_action_space
            space.seed(int(rng.integers(1 << 30)))
            mask = infos.get("action_mask")
            chosen = [space.sample(None if mask is None else mask[i].astype(np.int8)) for i in range(pool.num_envs)]
            done.append(np.stack(chosen))
            seen, _, ends, cuts, infos = pool.step(done[-1])
            if (ends | cuts).any():
                episodes.append((np.stack([*now, infos["final_obs"]]), np.stack(done), masks, bool(ends[0])))
                now, done, masks = [], [], []
            now.append(seen)
            masks.append(infos.get("action_mask"))
        if done:
            episodes.append((np.stack(now), np.stack(done), masks, False))
            recorder.end()
        pool.close()
    return episodes


@pytest.mark.parametrize(
    "obs",
    [DefaultObs, AdvancedObs, AdvancedObsPlus, EntityObs, lambda: StackedObs(DefaultObs(), 3)],
    ids=["default", "advanced", "advanced_plus", "entity", "stacked"],
)
def test_any_builder_sees_what_it_would_have_seen(tmp_path, obs):
    episodes = played(tmp_path / "a.frd", obs(), LookupTable())
    found = list(trajectories(Demonstration(tmp_path / "a.frd"), TEAM, obs(), LookupTable()))
    assert len(episodes) > 1 and len(found) == len(episodes) * 2 * TEAM
    for number, trajectory in enumerate(found):
        seen, done, _, terminated = episodes[number // (2 * TEAM)]
        car = number % (2 * TEAM)
        assert np.array_equal(trajectory.obs, seen[:, car])
        alive = trajectory.weight > 0
        assert alive.any() and np.array_equal(trajectory.action[alive], done[:, car][alive])
        assert trajectory.terminated == terminated


def test_an_episode_that_a_reset_cuts_off_is_kept(tmp_path):
    with DemonstrationWriter(tmp_path / "a.frd", columns_of_states(2), states_header("ab", [0, 1], [0], 8)) as writer:
        recorder = StateRecorder(writer)
        pool = RocketSimPool(1, 1, num_threads=1, loggers=[recorder])
        for steps in (3, 2):
            pool.reset()
            for _ in range(steps):
                pool.step(np.zeros(2, np.int64))
        recorder.end()
        pool.close()
    found = [len(each.columns["controls"]) - 1 for each in Demonstration(tmp_path / "a.frd").episodes()]
    assert found == [3, 2]


def test_a_step_counts_by_the_state_in_which_it_was_decided(tmp_path):
    """What a car that is demolished was told says nothing; what it was told just before does."""
    about = states_header(("one", "two"), [0, 1], range(2), 8)
    with DemonstrationWriter(tmp_path / "a.frd", columns_of_states(2), about) as writer:
        recorder = StateRecorder(writer)
        for frame, left in enumerate([0, 0, 3, 2, 0, 0]):
            cars = GameState.from_numbers([(0, -1000, 17), (0, 1000, 17)], demo_respawn_timer=[left, 0])
            cars.episode_ticks[:] = 8 * frame
            recorder.update(cars, np.array([frame == 5]))
    one, two = trajectories(Demonstration(tmp_path / "a.frd"), 1, DefaultObs(), LookupTable())
    assert one.weight.tolist() == [1, 1, 0, 0, 1] and two.weight.tolist() == [1] * 5


def test_masks_are_those_of_the_game(tmp_path):
    episodes = played(tmp_path / "a.frd", DefaultObs(), StateAwareTable())
    found = list(trajectories(Demonstration(tmp_path / "a.frd"), TEAM, DefaultObs(), StateAwareTable(), soft=True))
    for number, trajectory in enumerate(found):
        _, _, masks, _ = episodes[number // (2 * TEAM)]
        told = np.stack(masks[: len(trajectory.action)])[:, number % (2 * TEAM)]
        assert np.array_equal(trajectory.action_mask, told)
        assert trajectory.action_mask[np.arange(len(told)), trajectory.action].all()
        assert not trajectory.soft[~told].any()


@pytest.mark.slow
def test_of_a_noisy_player_it_is_learned_what_it_would_have_done(tmp_path):
    about = states_header(("chaser", "chaser"), [0, 1], range(2), 8)
    with DemonstrationWriter(tmp_path / "a.frd", columns_of_states(2, noisy=True), about) as writer:
        bots = TeamBots(BallChaser(), BallChaser())
        record_states(bots, writer, 1.2, 1, seed=3, tick_skip=8, delay=1, random_starts=1.0, noise=0.25)
    demonstration = Demonstration(tmp_path / "a.frd")
    other = 0.0
    for number, episode in enumerate(demonstration.episodes()):
        states = states_from_columns(episode.columns, 1)
        meant, told = episode.columns[INTENDED_CONTROLS][1:], episode.columns["controls"][1:]
        assert np.allclose(meant, BallChaser().act(states)[:-1], atol=1e-5)
        other += float((meant != told).any(axis=2).sum()) / 2
        seen = [
            each
            for each in trajectories(demonstration, 1, AdvancedObs(), LookupTable())
            if each.episode.endswith(f":{number}")
        ]
        for car, each in enumerate(seen):
            labels = nearest_actions(LookupTable(), meant[:, car], states.on_ground[:-1, car])
            assert np.array_equal(each.action, labels) and (each.weight > 0).any()
            assert np.array_equal(each.obs[1:, AdvancedObs().columns(1, 1)["previous_action"]], told[:, car])
    assert 0.2 < other / 1080 < 0.3
    for reward, column in (
        (None, INTENDED_CONTROLS),
        (TouchReward(), "controls"),
    ):  # a reward is paid for what was done
        each = next(trajectories(demonstration, 1, AdvancedObs(), ContinuousAction(), reward=reward))
        rows = ContinuousAction().parse(each.action, None).rows
        assert np.array_equal(rows, next(demonstration.episodes()).columns[column][1:, 0])


@pytest.mark.parametrize("action", [ContinuousAction(), MultiDiscreteAction()])
def test_other_parsers_learn_from_the_same_file(tmp_path, action):
    played(tmp_path / "a.frd", DefaultObs(), LookupTable())
    demonstration = Demonstration(tmp_path / "a.frd")
    rows = [each.action for each in trajectories(demonstration, TEAM, DefaultObs(), LookupTable())]
    for trajectory, row in zip(trajectories(demonstration, TEAM, DefaultObs(), action), rows, strict=True):
        assert all(map(action.action_space.contains, trajectory.action))
        again = action.parse(trajectory.action, None).rows
        assert np.array_equal(again, LookupTable().table[row])


def test_soft_labels():
    table, controls = LookupTable(), np.zeros((3, 8), np.float32)
    controls[0, :2] = 1, 0.25  # on the ground, a quarter of the way to the right
    controls[1, :2] = 1, 1  # a row
    controls[2, [2, 4]] = 0.5, -1  # in the air
    soft = soft_labels(table, controls, np.array([True, True, False]))
    assert soft.shape == (3, 90) and np.allclose(soft.sum(axis=1), 1)
    assert np.allclose((soft @ table.table)[:2, :2], controls[:2, :2], atol=1e-6)
    assert np.allclose((soft @ table.table)[2, 2:5], controls[2, 2:5], atol=1e-6)
    assert (soft[1] > 0).sum() == 1
    assert soft_labels(ContinuousAction(), controls, np.ones(3, bool)) is None
    # Rows that differ only in what does not matter count as one, also where a table has finer steps.
    rng, table = np.random.default_rng(0), LookupTable()
    ground, air = np.zeros((2, 50, 8), np.float32)
    ground[:, :2], ground[:, 7] = rng.uniform(-1, 1, (50, 2)), rng.integers(2, size=50)
    ground[:, 2:5] = rng.uniform(-1, 1, (50, 3))  # means nothing there
    ground[0, :2] = 0.5, 0
    air[:, 2:5], air[:, 6] = rng.uniform(-1, 1, (50, 3)), rng.integers(2, size=50)
    soft = soft_labels(table, np.concatenate([ground, air]), np.arange(100) < 50)
    means = soft @ table.table
    np.testing.assert_allclose(means[:50, [0, 1, 5, 6, 7]], ground[:, [0, 1, 5, 6, 7]], atol=1e-6)
    np.testing.assert_allclose(means[50:, [2, 3, 4, 5, 6]], air[:, [2, 3, 4, 5, 6]], atol=1e-6)
    hard = nearest_actions(table, ground[:1], np.ones(1, bool))
    assert (soft[0] > 0).sum() == 2 and soft[0, hard] == 0.5
    fine = ActionTable([[throttle, *[0] * 7] for throttle in (-1, 0, 0.5, 1)])
    wanted = np.array([[0.75, *[0] * 7]], np.float32)
    np.testing.assert_allclose(soft_labels(fine, wanted, np.ones(1, bool)), [[0, 0, 0.5, 0.5]])


@pytest.mark.parametrize("parser", [DelayAction(LookupTable(), 2), RepeatAction(StickyButtons(LookupTable(), 3), 2)])
def test_a_parser_whose_controls_follow_from_earlier_actions_is_refused(tmp_path, parser):
    played(tmp_path / "a.frd", DefaultObs(), LookupTable())
    expected = r"^(DelayAction|StickyButtons): actions cannot be inferred .*; use its inner parser to imitate"
    with pytest.raises(ValueError, match=expected):
        next(trajectories(Demonstration(tmp_path / "a.frd"), TEAM, DefaultObs(), parser))


def recorded(path, episodes=3, env_id="CartPole-v1", num_envs=2):
    envs = GymnasiumEnvs(env_id, num_envs)
    spaces = envs.single_observation_space, envs.single_action_space
    rng = np.random.default_rng(0)
    with DemonstrationWriter(path, observation_columns(*spaces), observations_header("me", env_id, *spaces)) as writer:
        watched = RecordedEnvs(envs, writer, episodes)
        seed = 0
        while writer.episodes < episodes:
            watched.reset(seed=seed)
            seed += num_envs
            over = np.zeros(num_envs, bool)
            while not over.all():
                _, _, ends, cuts, _ = watched.step(rng.integers(0, 2, num_envs))
                over |= ends | cuts
    return spaces


def test_observations_come_back_as_they_were(tmp_path):
    spaces = recorded(tmp_path / "a.frd")
    found = list(observation_trajectories(Demonstration(tmp_path / "a.frd"), *spaces))
    assert len(found) == 3
    for seed, trajectory in enumerate(found):
        envs = GymnasiumEnvs("CartPole-v1", 1)
        seen = [envs.reset(seed=seed)[0][0]]
        for action in trajectory.action:
            obs, _, ends, _, infos = envs.step(action[None])
            seen.append(infos["final_obs"][0] if ends[0] else obs[0])
        assert ends[0] and trajectory.terminated
        assert np.array_equal(trajectory.obs, np.stack(seen)) and trajectory.obs.dtype == np.float32
        assert (trajectory.reward == 1).all() and trajectory.action.dtype == np.int64


@pytest.mark.parametrize("action", [0.5, 2.0, -1.0])
def test_an_action_that_the_space_does_not_have_is_refused(tmp_path, action):
    """It is not rounded to one that it has."""
    path = lying(
        tmp_path / "a.frd", SEEN, observation_columns(BOX, Box(-2, 2, ())), FRAME | {"action": np.array(action)}
    )
    with pytest.raises(ValueError, match=r"a.frd contains an action that is not in Discrete\(2\)"):
        list(observation_trajectories(Demonstration(path), BOX, TWO))


def test_files_that_are_none(tmp_path):
    path = tmp_path / "a.frd"
    with pytest.raises(KeyboardInterrupt), DemonstrationWriter(path, observation_columns(BOX, TWO), SEEN):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    (tmp_path / "link.frd").symlink_to("nowhere")
    (tmp_path / "folder.frd").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(OSError, match=f"{name}.frd: not a regular file"):
            Demonstration(tmp_path / f"{name}.frd")


def test_every_cut_and_every_damage_is_one_line(tmp_path):
    path = tmp_path / "a.frd"
    recorded(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    cuts = [whole[:size] for size in [0, 3, 7, 8, 20, *rng.integers(21, len(whole), 40).tolist(), len(whole) - 1]]
    flips = [bytearray(whole) for _ in range(40)]
    for data in flips:
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    for data in [*cuts, *flips]:
        path.write_bytes(bytes(data))
        with pytest.raises(ValueError) as raised:
            list(Demonstration(path).episodes())
        assert str(path) in str(raised.value) and "\n" not in str(raised.value)
        assert "replay" not in str(raised.value)


def test_nan_is_named_and_replays_are_told_apart(tmp_path):
    path = tmp_path / "a.frd"
    with DemonstrationWriter(path, observation_columns(BOX, TWO), SEEN) as writer:
        writer.add([FRAME, FRAME | {"obs": np.array([0, np.nan])}], {"terminated": True})
    with pytest.raises(ValueError, match=r"a\.frd: obs contains NaN or infinity in episode 0"):
        list(Demonstration(path).episodes())
    recorded(tmp_path / "a.frd")
    with pytest.raises(ValueError, match="a demonstration, not a replay"):
        read_replay(tmp_path / "a.frd")


def lying(path, about, parts, frame):
    """Writes an episode of three frames below any header."""
    with path.open("wb") as file:
        writer = ReplayWriter(file, parts, about)
        writer.begin({})
        for _ in range(3):
            writer.add(frame)
        writer.end({"terminated": True})
        file.write(pack_json(TOTAL, {"episodes": 1, "steps": 2}))
    return path


def refused(path):
    with pytest.raises(ValueError) as raised:
        list(Demonstration(path).episodes())
    assert str(raised.value).startswith(f"{path}: ") and "\n" not in str(raised.value)
    return str(raised.value)


STATES = states_header(["a", "b"], [0, 1], [0, 1], 8)
ZEROS = {column.name: np.zeros(column.shape) for column in columns_of_states(2)}


def test_columns_that_are_not_of_its_kind_are_one_line(tmp_path):
    path = tmp_path / "a.frd"
    for about, parts, frame in ((SEEN, observation_columns(BOX, TWO), FRAME), (STATES, columns_of_states(2), ZEROS)):
        for column in parts:
            rest = [each for each in parts if each is not column]
            assert f"lacks the column {column.name}" in refused(lying(path, about, rest, frame))
    other = [*parts[:3], Column("ball", "<f4", (3,)), *parts[4:]]
    assert "column ball has the shape [3], expected [25]" in refused(
        lying(path, STATES, other, ZEROS | {"ball": np.zeros(3)})
    )


@pytest.mark.slow
def test_an_episode_that_fits_no_memory_is_one_line(tmp_path):
    """And is not unpacked: each of its chunks is small."""
    frames = (1 << 24) // 16
    chunk = pack_record(CHUNK, frames.to_bytes(4, "little") + zlib.compress(bytes(frames * 16), 9))
    with (tmp_path / "a.frd").open("wb") as file:
        ReplayWriter(file, observation_columns(BOX, TWO), SEEN).begin({})
        file.write(chunk * 65)
    with pytest.raises(ValueError, match=r"a\.frd: an episode is larger than 1,024 MiB"):
        next(Demonstration(tmp_path / "a.frd").episodes())


def test_recording_touches_no_file_of_somebody_else(tmp_path):
    path, pole, notes = tmp_path / "a.frd", tmp_path / "b.frd", tmp_path / "a.frd.tmp"
    notes.write_text("mine")
    with DemonstrationWriter(path, observation_columns(BOX, TWO), SEEN) as writer:
        writer.add([FRAME] * 3, {"terminated": True})
    assert notes.read_text() == "mine" and next(Demonstration(path).episodes()).steps == 2
    with pytest.raises(ValueError, match="its header lacks names, env"):
        DemonstrationWriter(pole, observation_columns(BOX, TWO), {"demonstration": "observations"})
    with pytest.raises(TypeError):
        DemonstrationWriter(pole, observation_columns(BOX, TWO), SEEN | {"more": object()})
    pole.mkdir()
    with pytest.raises(OSError), DemonstrationWriter(pole, observation_columns(BOX, TWO), SEEN):
        pass
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.frd", "a.frd.tmp", "b.frd"]


def test_long_episodes_are_streamed_in_order(tmp_path):
    path = tmp_path / "a.frd"
    values = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    with DemonstrationWriter(path, observation_columns(BOX, TWO), SEEN) as writer:
        for first, last in pairwise([0, 400, 1000]):
            writer.add([FRAME | {"obs": row} for row in values[first:last]], {"terminated": False})
    episodes = list(Demonstration(path).episodes())
    assert [episode.steps for episode in episodes] == [399, 599]
    assert np.array_equal(np.concatenate([episode.columns["obs"] for episode in episodes]), values)


# ---------------------------------------------------------------- games of people as demonstrations


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
    with DemonstrationWriter(path, converted_columns(2), states_header(["a"], [0, 1], [0, 1], 4)) as writer:
        for frames in every:
            writer.add(frames, {"terminated": False})
    at = 0
    for episode in Demonstration(path).episodes():
        state = states_from_columns(episode.columns, 1)
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


def test_jumps_between_frames_are_kept_and_missing_frames_refused():
    first, _ = _episodes(frames_of_rlgym())
    frames = first.frames(8, 0.5)
    assert [int(frame["episode_ticks"]) for frame in frames] == list(range(0, 101, 8))
    jumps = [int(frame["controls"][0, 5]) for frame in frames]
    assert jumps == [0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]  # of frames 3, 13 and 23
    episodes = list(_episodes(frames_of_rlgym()))
    _check_spacing(Path("a.replay"), episodes, 4)
    with pytest.raises(ValueError, match=r"^a\.replay: frames are 4 ticks apart; use --tick_skip 4 or more, got 3$"):
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
    for start, (shown, terminated) in zip(starts, game.episodes, strict=True):
        begin = frames[start].state.tick_count
        rows = np.abs(times[:, None] - (begin + np.array([frame["episode_ticks"] for frame in shown]))).argmin(axis=0)
        ball = parsed.ball_df[columns].to_numpy()[rows].astype(np.float32)
        found = np.stack([frame["ball"][:3] for frame in shown])
        assert np.array_equal(found[:-1], ball[:-1]) and np.array_equal(found[-1, ::2], ball[-1, ::2])
        scored = abs(found[-1, 1]) > 5215.5  # moved behind the line, where it was only near it
        assert scored == terminated and abs(found[-1, 1] - ball[-1, 1]) < (110 if scored else 1e-9)
        kept = [int(frame["episode_ticks"]) for frame in shown]
        own_frames = frames[start : next((n + 1 for n in starts if n > start), len(frames) + 1) - 1]
        ticks = [round(frame.state.tick_count - begin) for frame in own_frames]
        for slot, uid in enumerate(order):  # no touch is lost between two frames
            touched = [frame.state.cars[uid].ball_touches > 0 for frame in own_frames]
            steps = {min(int(np.searchsorted(kept, tick)), len(kept) - 1) for tick in np.array(ticks)[touched]}
            assert steps == {number for number, frame in enumerate(shown) if frame["cars"][slot, TOUCHED]}
        for slot, uid in enumerate(order):
            own = parsed.player_dfs[str(uid)][columns].to_numpy()[rows]
            for row in range(len(shown) - 1):
                seen += 1
                if not shown[row + 1][INFERRED][slot] & 1 and np.isfinite(own[row]).all():
                    assert np.array_equal(shown[row]["cars"][slot, 11:14], own[row].astype(np.float32))
                    checked += 1
    assert checked > seen / 3
