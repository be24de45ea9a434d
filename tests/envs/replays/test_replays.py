"""Replays of real games: they say what the pool said, within the bounds that are promised."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from imageio_ffmpeg import read_frames

from envs import CombinedReward, GoalReward, RocketSimPool, SpeedTowardBallReward
from envs.actions import LookupTable
from envs.bots import BallChaser, Diagnostics, IdleBot, KickoffThenShoot, PolicyBot, TeamBots
from envs.matches.matches import RecordedMatch
from envs.obs import DefaultObs
from envs.pool.frame import render_frame
from envs.pool.recorder import ReplayRecorder
from envs.pool.replay_format import FLAGS, game_columns
from envs.pool.videos import write_video
from envs.replays.replay import Replay, film, read_replay, render_frames, states_at
from envs.rewards.parts import reward_terms
from envs.state.game_state import GameState

REWARD = CombinedReward([SpeedTowardBallReward(), GoalReward()], [0.5, 10.0])


def played(tmp_path, blue, orange, seconds, **settings):
    """The replay of a match, and the states that its pool went through."""
    states = []
    path = tmp_path / "game.frl"
    with path.open("wb") as file:
        match = RecordedMatch(TeamBots(blue, orange), file, ("one", "two"), seed=3, **settings)
        look = match.recorder.update
        match.recorder.update = lambda state, done: (states.append(state.copy()), look(state, done))
        match.begin()
        while match.recorder.seconds < seconds:
            match.step()
        match.close()
    return read_replay(path), states


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    """An open goal: the shooter scores, and a kickoff follows."""
    folder = tmp_path_factory.mktemp("game")
    return played(folder, KickoffThenShoot(), IdleBot(), 30, rewards=reward_terms(REWARD))


def test_frames_are_the_states_of_the_pool(game):
    replay, states = game
    found = replay.games[0].columns
    steps = np.flatnonzero(found["begins"] == 0)
    assert len(steps) == len(states) and found["begins"][0] == 1
    bounds = {"ball_pos": 0.1, "ball_vel": 0.25, "ball_ang_vel": 0.001, "car_pos": 0.1, "car_vel": 0.25}
    for name, bound in bounds.items():
        real = np.stack([getattr(state.world, name)[0] for state in states])
        assert np.abs(found[name][steps] - real).max() <= bound + 1e-3, name
    real = np.stack([state.world.car_quaternion[0] for state in states])
    assert np.abs(found["car_rotation"][steps] - real).max() <= 0.00025 + 1e-6
    assert np.abs(found["car_boost"][steps] - np.stack([state.boost[0] for state in states])).max() <= 0.25
    assert np.abs(found["car_controls"][steps] - np.stack([state.controls[0] for state in states])).max() <= 0.004
    assert np.abs(found["pad_timers"][steps] - np.stack([state.pad_timers[0] for state in states])).max() <= 0.02 + 1e-6
    for bit, name in enumerate(FLAGS):
        real = np.stack([getattr(state, name)[0] for state in states])
        assert np.array_equal(found["car_flags"][steps].astype(int) >> bit & 1, real), name
    assert np.array_equal(found["ticks"], np.sort(found["ticks"])) and found["ticks"][-1] == len(states) * 8
    # With rewards, values and the likeliest actions, all of them as hard to pack as noise can be.
    made = game_columns(2, reward_parts=12, values=True, actions=True)
    assert sum(column.num_bytes for column in made) * 4500 < 1_400_000  # before zlib, which halves even noisy play


def test_goals_touches_and_score(game):
    replay, states = game
    one = replay.games[0]
    goals = [event for event in one.events if event["kind"] == "goal"]
    assert goals and one.result["score"] == [len(goals), 0] and goals[-1]["score"] == [len(goals), 0]
    assert all(goal["team"] == 0 and goal["car"] == 0 for goal in goals)
    first = goals[0]["frame"]
    assert one.columns["ball_pos"][first, 1] > 5215 and one.columns["begins"][first + 31] == 1  # two seconds later
    assert goals[0]["seconds"] == pytest.approx(one.columns["ticks"][first] / 120, abs=1e-3)
    touches = [event["frame"] for event in one.events if event["kind"] == "touch" and event["car"] == 0]
    flags = one.columns["car_flags"][:, 0].astype(int) >> FLAGS.index("touched") & 1
    assert touches == np.flatnonzero(np.diff(flags, prepend=0) == 1).tolist()
    assert one.result["frames"] == one.num_frames == len(states) + int(one.columns["begins"].sum())


def test_reward_by_part_is_what_the_pool_would_pay(game):
    """The pool pays its own reward in the same game."""
    replay, states = game
    one = replay.games[0]
    assert replay.about["rewards"] == ["SpeedTowardBall", "Goal"]
    parts = one.columns["rewards"]
    goal = next(event["frame"] for event in one.events if event["kind"] == "goal")
    assert parts[goal, :, 1].tolist() == [10, -10] and not parts[goal + 1 : goal + 32].any()
    assert not parts[one.columns["begins"] == 1].any()
    reward = SpeedTowardBallReward()
    step = np.flatnonzero(one.columns["begins"] == 0)[40]
    expected = 0.5 * reward.compute(states[40])[0]
    assert parts[step, :, 0] == pytest.approx(expected, rel=2**-11, abs=1e-6)


def test_demolitions_are_events(tmp_path):
    """Two cars that drive at each other at full speed; the recorder counts what the game counts."""
    replay, states = played(tmp_path, BallChaser(), BallChaser(), 40)
    demos = [event for event in replay.games[0].events if event["kind"] == "demo"]
    per_car = np.stack([state.demos[0] for state in states])
    assert len(demos) == np.clip(np.diff(per_car, axis=0, prepend=0), 0, None).sum()


def test_thoughts_belong_to_the_frame_in_which_the_decision_was_made(tmp_path):
    """A policy whose value is the height of the ball, and which drives straight on."""
    mind, seen = Diagnostics(), []

    def choose(obs, begins, mask):
        seen.append(obs.copy())
        likely = np.tile(np.linspace(0, 1, 90, dtype=np.float32) ** 8, (len(obs), 1))
        mind.tell(obs[:, 2] * 2044, likely / likely.sum(axis=1, keepdims=True))
        return np.full(len(obs), 21)

    bot = PolicyBot(choose, DefaultObs.rlgym_guide(), LookupTable(), mind=mind)
    replay, _ = played(tmp_path, bot, IdleBot(), 2)
    found = replay.games[0].columns
    table, none = replay.about["actions"]
    assert np.array_equal(table, LookupTable().table) and none is None
    assert np.abs(found["value"][:-1, 0] - found["ball_pos"][:-1, 2]).max() < 1
    assert np.isnan(found["value"][:, 1]).all() and np.isnan(found["value"][-1, 0])
    assert found["actions"][0, 0].tolist() == list(range(89, 81, -1)) and not found["action_probabilities"][:, 1].any()
    assert (np.diff(found["action_probabilities"][0, 0]) <= 0).all()
    assert np.array_equal(found["car_controls"][5, 0] > 0.5, LookupTable().table[21] > 0.5)


def test_one_arena_of_a_pool_of_many_and_several_games():
    sink = io.BytesIO()
    bots = TeamBots(BallChaser(), BallChaser())
    recorder = ReplayRecorder(sink, bots, {"names": ["a", "b"]}, arena=1)
    pool = RocketSimPool(num_arenas=3, team_size=[(1, 1), (2, 1)], num_threads=1, loggers=[recorder])
    for _ in range(2):
        recorder.end_game()
        pool.reset()
        for _ in range(20):
            pool.step(bots.actions(pool.state, pool.action_parser))
    last = pool.state.select(np.array([1]))
    recorder.end_game()
    pool.close()
    games = read_bytes(sink).games
    assert [game.num_frames for game in games] == [21, 21] and games[0].about["cars"] == [True, True, True]
    assert games[1].columns["car_pos"][-1] == pytest.approx(last.world.car_pos[0], abs=0.11)


def told(episodes, sizes=(1, 1), **about):
    """The replay of states as `GameState.from_numbers` makes them, of episodes one behind the other."""
    sink, done = io.BytesIO(), np.zeros(1, bool)
    recorder = ReplayRecorder(sink, TeamBots(IdleBot(), IdleBot()), {"names": ["a", "b"], **about})
    cars = [(300 * car, -1000, 17) for car in range(sum(sizes))]
    for states in episodes:
        recorder.reset(~done, GameState.from_numbers(cars, sizes[0]))
        for number, state in enumerate(states, 1):
            recorder.update(GameState.from_numbers(cars, sizes[0], episode_ticks=8 * number, **state), done)
    recorder.end_game()
    return read_bytes(sink)


def test_goals_pads_and_the_ball_as_they_are_told():
    goal = {"ball_pos": (0, 5300, 100)}
    replay = told([[{"touched": [True, False]}, goal], [{"touched": [False, True]}, goal]])
    goals = [event for event in replay.games[0].events if event["kind"] == "goal"]
    assert [(event["team"], event["car"], event["score"]) for event in goals] == [(0, 0, [1, 0]), (0, None, [2, 0])]
    # `boost_pad_cooldown_big` may be a minute.
    timers = np.linspace(0, 60, 34)
    found = told([[{"pad_timers": timers}]]).games[0].columns["pad_timers"][1]
    assert found == pytest.approx(timers, abs=0.02 + 1e-6)
    assert told([[]]).about["ball_radius"] == 91.25 and told([[]], ball_radius=60).about["ball_radius"] == 60


def test_a_ball_that_stays_in_the_goal_is_one_goal():
    goal = {"ball_pos": (0, 5300, 100)}
    events = told([[goal, goal, {}, goal]]).games[0].events
    assert [(event["frame"], event["score"]) for event in events] == [(1, [1, 0]), (4, [2, 0])]


def test_who_is_absent_has_no_flags():
    sink, bots = io.BytesIO(), TeamBots(IdleBot(), IdleBot())
    recorder = ReplayRecorder(sink, bots, {"names": ["a", "b"]}, arena=1)
    pool = RocketSimPool(num_arenas=2, team_size=[(2, 1), (1, 1)], num_threads=1, loggers=[recorder])
    pool.reset()
    pool.step(bots.actions(pool.state, pool.action_parser))
    recorder.end_game()
    pool.close()
    flags = read_bytes(sink).games[0].columns["car_flags"]
    assert flags[:, 0].all() and not flags[:, 1].any() and flags[:, 2].all()


def read_bytes(sink):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.frl"
        path.write_bytes(sink.getvalue())
        return read_replay(path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A replay with a goal, and the states of the pool by the game's ticks."""
    path, states = tmp_path_factory.mktemp("film") / "game.frl", {}
    with path.open("wb") as file:
        match = RecordedMatch(TeamBots(KickoffThenShoot(), IdleBot()), file, ("one", "two"), seed=3)
        look = match.recorder.update

        def update(state, done):
            look(state, done)
            states[round(match.recorder.seconds * 120)] = state.copy()

        match.recorder.update = update
        match.begin()
        while match.recorder.score == [0, 0] or match.recorder.seconds < 3:
            match.step()
        for _ in range(50):
            match.step()
        match.close()
    return path, read_replay(path), states


def test_at_its_frames_a_film_shows_the_states_of_the_pool(recorded):
    _, replay, states = recorded
    game = replay.games[0]
    begins = game.columns["begins"] > 0
    kickoffs = set(game.columns["ticks"][begins].astype(int).tolist())
    ticks = np.array([tick for tick in states if tick not in kickoffs], float)
    shown = states_at(game, replay.about["teams"], ticks)
    real = [states[int(tick)] for tick in ticks]
    for name, bound in (("ball_pos", 0.2), ("car_pos", 0.2), ("car_forward", 0.003), ("car_up", 0.003)):
        wanted = np.stack([getattr(state.world, name)[0] for state in real])
        np.testing.assert_allclose(getattr(shown.world, name), wanted, atol=bound)
    np.testing.assert_allclose(shown.boost, np.stack([state.boost[0] for state in real]), atol=0.3)
    for name in ("is_boosting", "is_demoed", "present"):
        assert np.array_equal(getattr(shown, name), np.stack([getattr(state, name)[0] for state in real])), name
    goal = next(event for event in game.events if event["kind"] == "goal")
    after = ticks > goal["seconds"] * 120
    assert after.any() and (shown.goals[after].sum(axis=1) == 1).all() and not shown.goals[~after][:-1].any()
    assert shown.goals[-1, goal["team"]] == 1


def test_what_lies_between_frames(recorded):
    _, replay, _ = recorded
    game, teams = replay.games[0], replay.about["teams"]
    first, last = game.columns["ticks"][5:7].astype(float)
    middle = np.array([(first + last) / 2])
    start, wanted, end = (
        states_at(game, teams, ticks).world for ticks in (np.array([first]), middle, np.array([last]))
    )
    np.testing.assert_allclose(wanted.ball_pos, (start.ball_pos + end.ball_pos) / 2, atol=0.01)
    np.testing.assert_allclose(wanted.car_pos, (start.car_pos + end.car_pos) / 2, atol=0.01)
    assert np.linalg.norm(wanted.car_forward, axis=-1) == pytest.approx(1, abs=1e-5)
    # At large tick skips cars drive more than 500 uu in a step; ends of episodes may be closer than that.
    far, begins = game.columns["ball_pos"].copy(), game.columns["begins"].copy()
    far[6] = far[5] + (0, 1000, 0)
    shown = states_at(changed(game, ball_pos=far), teams, middle).world.ball_pos[0]
    np.testing.assert_allclose(shown, far[5] + (0, 500, 0), atol=0.1)
    begins[6] = 1
    shown = states_at(changed(game, ball_pos=far, begins=begins), teams, middle).world
    np.testing.assert_allclose(shown.ball_pos[0], far[5], atol=0.01)
    np.testing.assert_allclose(shown.car_pos[0], game.columns["car_pos"][5], atol=0.01)
    places, turns, flags = (game.columns[name].copy() for name in ("car_pos", "car_rotation", "car_flags"))
    places[6:, 1] += (0, 3000, 0)
    flags[:6, 1] += 1 << FLAGS.index("is_demoed")
    turns[6] *= -1  # the same rotation
    shown = states_at(changed(game, car_pos=places, car_rotation=turns, car_flags=flags), teams, middle)
    assert shown.is_demoed[0].tolist() == [False, True]  # which nobody draws
    np.testing.assert_allclose(shown.world.car_pos[0, 0], wanted.car_pos[0, 0])
    np.testing.assert_allclose(shown.world.car_forward, wanted.car_forward, atol=1e-6)
    kickoff = np.flatnonzero(game.columns["begins"])[1]
    at = float(game.columns["ticks"][kickoff])
    before, there = states_at(game, teams, np.array([at - 4, at])).world.ball_pos
    assert abs(before[1]) > 4800 and np.allclose(there[:2], 0, atol=1)


def changed(game, **columns):
    """The game with other columns."""
    return SimpleNamespace(columns=game.columns | columns, num_frames=game.num_frames, events=[])


def test_a_film_lasts_as_long_as_its_game(recorded, tmp_path):
    _, replay, _ = recorded
    short = Replay(replay.about, [replay.games[0]])
    seconds = float(short.games[0].columns["ticks"][-1]) / 120
    pictures = list(render_frames(short, 4, (160, 90)))
    again = [tick for tick, shot in film(short, short.games[0], 4) if shot.again]
    assert len(pictures) == int(seconds * 4) + 1 + len(again)
    for name in ("a.mp4", "a.gif"):
        write_video(tmp_path / name, pictures, 4)
    reader = read_frames(str(tmp_path / "a.mp4"))
    about = next(reader)
    assert about["size"] == (160, 90) and len(list(reader)) == len(pictures)
    assert (tmp_path / "a.gif").read_bytes()[:6] == b"GIF89a"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.gif", "a.mp4"]


def test_a_film_shows_a_goal_again_with_names_and_a_banner(recorded):
    """At half speed from the scorer's side, after the celebration and before the kickoff."""
    _, replay, _ = recorded
    game, goal = replay.games[0], next(event for event in replay.games[0].events if event["kind"] == "goal")
    scored, shots = game.columns["ticks"][goal["frame"]], film(replay, game, 30)
    again = [tick for tick, shot in shots if shot.again]
    assert np.diff(again) == pytest.approx(2) and again[0] == pytest.approx(max(0, scored - 288))
    assert again[-1] == pytest.approx(scored + 156, abs=3)
    first = next(number for number, (_, shot) in enumerate(shots) if shot.again)
    assert scored + 200 < shots[first - 1][0] < scored + 240 <= shots[first + len(again)][0]
    usual = [tick for tick, shot in shots if not shot.again]
    assert usual == pytest.approx(np.arange(0, game.columns["ticks"][-1] + 1, 4))
    after = next(shot for tick, shot in shots if tick > scored)
    assert after.names == ("one", "two") and after.banner == "goal! one" and after.burst is not None
    assert shots[0][1].banner == "" and shots[first][1].banner == "replay one"
    blue, scores = [], []
    for tick, shot in (shots[0], shots[first - 40], shots[first]):
        picture = render_frame(states_at(game, replay.about["teams"], np.array([tick])), 0, (640, 360), shot)
        scores.append(picture[:27, 233:275] == 255)  # blue's goals
        blue.append((np.abs(picture[36:80].astype(int) - (38, 98, 204)).sum(axis=-1) < 6).sum())
        assert (picture[5:22, 100:200] == 255).all(axis=-1).any()  # a name
    assert blue[0] < 50 and min(blue[1:]) > 1500
    assert (scores[0] != scores[1]).any() and np.array_equal(scores[1], scores[2])


def test_a_film_that_fails_leaves_nothing(tmp_path):
    def broken():
        yield np.zeros((90, 160, 3), np.uint8)
        raise ValueError("no picture")

    with pytest.raises(ValueError, match="no picture"):
        write_video(tmp_path / "a.mp4", broken(), 30)
    assert list(tmp_path.iterdir()) == []
