"""Films: what a replay shows between its frames, and files of it."""

from types import SimpleNamespace

import numpy as np
import pytest
from imageio_ffmpeg import read_frames

from envs.bots import IdleBot, KickoffThenShoot, TeamBots
from envs.render.videos import write_video
from envs.replays.film import film, states_at
from envs.replays.format import FLAGS
from envs.replays.match import RecordedMatch
from envs.replays.replay import Replay, read_replay


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
        for _ in range(20):
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


def test_between_two_frames_things_move_evenly(recorded):
    _, replay, _ = recorded
    game = replay.games[0]
    ticks = game.columns["ticks"][5:7].astype(float)
    start, middle, end = (
        states_at(game, replay.about["teams"], np.array([tick])).world for tick in (ticks[0], ticks.mean(), ticks[1])
    )
    np.testing.assert_allclose(middle.ball_pos, (start.ball_pos + end.ball_pos) / 2, atol=0.01)
    np.testing.assert_allclose(middle.car_pos, (start.car_pos + end.car_pos) / 2, atol=0.01)
    assert np.linalg.norm(middle.car_forward, axis=-1) == pytest.approx(1, abs=1e-5)


def changed(game, **columns):
    """The game with other columns."""
    return SimpleNamespace(columns=game.columns | columns, num_frames=game.num_frames, events=[])


def test_what_is_fast_moves_evenly_and_nothing_moves_to_the_next_episode(recorded):
    """At large tick skips cars drive more than 500 uu in a step; ends of episodes may be closer than that."""
    _, replay, _ = recorded
    game, teams = replay.games[0], replay.about["teams"]
    middle = np.array([game.columns["ticks"][5:7].astype(float).mean()])
    far, begins = game.columns["ball_pos"].copy(), game.columns["begins"].copy()
    far[6] = far[5] + (0, 1000, 0)
    shown = states_at(changed(game, ball_pos=far), teams, middle).world.ball_pos[0]
    np.testing.assert_allclose(shown, far[5] + (0, 500, 0), atol=0.1)
    begins[6] = 1
    shown = states_at(changed(game, ball_pos=far, begins=begins), teams, middle).world
    np.testing.assert_allclose(shown.ball_pos[0], far[5], atol=0.01)
    np.testing.assert_allclose(shown.car_pos[0], game.columns["car_pos"][5], atol=0.01)


def test_cars_that_return_are_not_seen_flying_and_turns_take_the_short_way(recorded):
    _, replay, _ = recorded
    game, teams = replay.games[0], replay.about["teams"]
    middle = np.array([game.columns["ticks"][5:7].astype(float).mean()])
    wanted = states_at(game, teams, middle).world
    places, turns, flags = (game.columns[name].copy() for name in ("car_pos", "car_rotation", "car_flags"))
    places[6:, 1] += (0, 3000, 0)
    flags[:6, 1] += 1 << FLAGS.index("is_demoed")
    turns[6] *= -1  # the same rotation
    shown = states_at(changed(game, car_pos=places, car_rotation=turns, car_flags=flags), teams, middle)
    assert shown.is_demoed[0].tolist() == [False, True]  # which nobody draws
    np.testing.assert_allclose(shown.world.car_pos[0, 0], wanted.car_pos[0, 0])
    np.testing.assert_allclose(shown.world.car_forward, wanted.car_forward, atol=1e-6)


def test_nothing_flies_from_the_goal_to_the_kickoff(recorded):
    _, replay, _ = recorded
    game = replay.games[0]
    kickoff = np.flatnonzero(game.columns["begins"])[1]
    at = float(game.columns["ticks"][kickoff])
    before, there = states_at(game, replay.about["teams"], np.array([at - 4, at])).world.ball_pos
    assert abs(before[1]) > 4800 and np.allclose(there[:2], 0, atol=1)


def test_a_film_lasts_as_long_as_its_game(recorded, tmp_path):
    _, replay, _ = recorded
    short = Replay(replay.about, [replay.games[0]])
    seconds = float(short.games[0].columns["ticks"][-1]) / 120
    pictures = list(film(short, 4, (160, 90)))
    assert len(pictures) == int(seconds * 4) + 1
    for name in ("a.mp4", "a.gif"):
        write_video(tmp_path / name, pictures, 4)
    reader = read_frames(str(tmp_path / "a.mp4"))
    about = next(reader)
    assert about["size"] == (160, 90) and len(list(reader)) == len(pictures)
    assert (tmp_path / "a.gif").read_bytes()[:6] == b"GIF89a"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.gif", "a.mp4"]


def test_a_film_that_fails_leaves_nothing(tmp_path):
    def broken():
        yield np.zeros((90, 160, 3), np.uint8)
        raise ValueError("no picture")

    with pytest.raises(ValueError, match="no picture"):
        write_video(tmp_path / "a.mp4", broken(), 30)
    assert list(tmp_path.iterdir()) == []
