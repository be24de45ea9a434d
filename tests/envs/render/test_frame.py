"""Pictures: what a camera beside the field must see, from the colours of pixels."""

import json
import socket

import numpy as np
import pytest
from imageio_ffmpeg import read_frames

from envs import RocketSimPool
from envs.dones import DoneCondition
from envs.pool import videos
from envs.pool.frame import TEAM_COLOURS, Canvas, _following, render_frame
from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES

BLUE, ORANGE = range(2)


def scene(cars, ball=(0, 0, 93), num_blue=None, **more):
    return GameState.from_numbers(np.array(cars, float), num_blue, ball_pos=ball, **more)


def camera_of(state):
    cars = state.world.car_pos[0][state.present[0] & ~state.is_demoed[0]]
    return _following(np.concatenate((state.world.ball_pos, cars)).astype(float), (640, 360))


def pixel(state, place, picture=None):
    (x, y), depth = camera_of(state).project(np.array(place, float))
    assert depth > 0
    return (render_frame(state) if picture is None else picture)[int(y), int(x)].astype(int)


def coloured(picture, team):
    """Where pixels have a team's colour; the field is only tinted with it."""
    wanted = TEAM_COLOURS[team] / np.linalg.norm(TEAM_COLOURS[team])
    bright = np.linalg.norm(picture[40:].astype(float), axis=-1)
    return (picture[40:] @ wanted / np.maximum(bright, 1) > 0.985) & (bright > 110)


@pytest.mark.parametrize("ball", [(0, 0, 93), (-3900, 1000, 93), (3900, -4900, 1200), (0, 5500, 200)])
def test_the_ball_is_where_it_must_be(ball):
    state = scene([[500, -500, 17], [-700, 900, 17]], ball)
    picture = render_frame(state)
    assert picture.shape == (360, 640, 3) and picture.dtype == np.uint8
    seen = pixel(state, ball, picture)
    assert seen.min() > 100 and np.ptp(seen) < 12  # grey; grass is green
    beside = pixel(state, np.add(ball, (0, 130, 0)), picture)
    assert np.ptp(beside) > 12


def test_blue_plays_to_the_right_and_nothing_is_mirrored():
    """A car that drives away from the camera has its right side on the right, as in the game."""
    camera = _following(np.array([[0.0, 0, 93], [0, -1000, 17], [0, 1000, 17]]), (640, 360))
    car = scene([[0, 0, 17]], car_rotation=[[0, 0, 0]]).world
    assert car.car_forward[0, 0] @ camera.axes[2] > 0.5
    (x, _), _ = camera.project(car.car_pos[0, 0] + 100 * car.car_right[0, 0])
    assert x > 330
    state = scene([[0, -1000, 17], [0, 1000, 17]], pad_timers=5)
    picture = render_frame(state)
    blue, orange = (np.flatnonzero(coloured(picture, team).any(axis=0)) for team in (BLUE, ORANGE))
    assert blue.min() > 50 and blue.max() < 320 < orange.min() and orange.max() < 590
    (_, near), (_, far) = (camera_of(state).project(np.array([x, 0, 0]))[0] for x in (-500, 500))
    assert near > far


def test_a_car_behind_another_is_hidden():
    def in_a_row(front):
        """Two cars of which one is between the camera and the other, which depends on where both are."""
        state = scene([[0, 600, 400], [0, 600, 400]], ball=(0, 0, 93))
        for _ in range(30):
            way = camera_of(state).position - state.world.car_pos[0, 1 - front]
            state.world.car_pos[0, front] = state.world.car_pos[0, 1 - front] + 160 * way / np.linalg.norm(way)
        return render_frame(state)

    for front in (BLUE, ORANGE):
        picture = in_a_row(front)
        assert coloured(picture, front).sum() > 60
        assert coloured(picture, 1 - front).sum() < 0.25 * coloured(picture, front).sum()


def test_pads_are_golden_and_the_ball_has_a_shadow():
    timers = np.zeros(34)
    state = scene([[0, -700, 17], [0, 700, 17]])
    assert pixel(state, (0, -1024, 0))[0] > 200
    timers[13] = 3
    taken = scene([[0, -700, 17], [0, 700, 17]], pad_timers=timers)
    assert pixel(taken, (0, -1024, 0))[0] < 60 and pixel(taken, (0, 1024, 0))[0] > 200
    high = scene([[0, -700, 17], [0, 700, 17]], ball=(500, 320, 700))
    picture = render_frame(high)
    assert pixel(high, (500, 320, 0), picture).sum() < 0.8 * pixel(high, (500, 520, 0), picture).sum()


def test_goals_time_boost_and_front_are_shown():
    state = scene([[0, -700, 17], [0, 700, 17]])
    before = render_frame(state)
    state.goals[0, 1] = 4
    changed = np.flatnonzero((render_frame(state) != before).any(axis=(0, 2)))
    assert len(changed) and changed.min() > 360  # in orange's box, right of the middle
    state.goals[0, 1], state.episode_ticks[0] = 0, 71 * 120
    changed = np.flatnonzero((render_frame(state) != before).any(axis=(0, 2)))
    assert len(changed) and changed.min() > 270 and changed.max() < 370
    state = scene([[0, 0, 17], [0, 3000, 17]], ball=(0, 500, 93), car_rotation=[[0, np.pi / 2, 0]] * 2)
    assert pixel(state, (0, 55, 25)).min() > 150  # the white arrow on the bonnet
    fire = (0, -100, 24)
    assert pixel(state, fire)[0] < 100
    state.boost_active_time[0, 0] = 0.5
    assert pixel(state, fire)[0] > 180


@pytest.mark.parametrize(("goals", "seconds"), [((0, 0), 0), ((12, 0), 630), ((9, 107), 3599), ((1, 2), 36_000)])
def test_no_digit_of_goals_and_time_is_cut_off(goals, seconds):
    """Reads the letters again, from left to right: each is 9 pixels wide and 15 high."""
    state, letters = scene([[0, -700, 17], [0, 700, 17]]), {}
    for letter in "0123456789:":
        canvas = Canvas(np.zeros(3), np.ones(3), (9, 15))
        canvas.text(letter, 4, 0, 3)
        letters[(canvas.pixels[..., 0] == 255).tobytes()] = letter
    assert len(letters) == 11
    state.goals[0], state.episode_ticks[0] = goals, seconds * 120
    white = (render_frame(state)[6:21] == 255).all(axis=-1)
    found = [letters.get(white[:, left : left + 9].tobytes(), "") for left in range(640)]
    assert "".join(found) == f"{goals[0]}{seconds // 60}:{seconds % 60:02}{goals[1]}"


def test_grass_chalk_walls_and_goals():
    state = scene([[0, -700, 17], [0, 700, 17]], ball=(0, 200, 93))
    picture = render_frame(state)
    grass, chalk, wall = (pixel(state, at, picture) for at in ((600, 300, 0), (500, 0, 0), (4090, 400, 200)))
    assert grass[1] > 1.3 * max(grass[0], grass[2]) and chalk.min() > 150
    assert wall[2] > wall[1] and wall.max() < 130
    for team, end in ((BLUE, -5120), (ORANGE, 5120)):
        state = scene([[0, 0.9 * end, 17], [800, 0.8 * end, 17]], ball=(0, 0.85 * end, 93), num_blue=1 + team)
        (x, y), _ = camera_of(state).project(np.array([893, end, 300]))
        window = render_frame(state)[int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3].reshape(-1, 3)
        assert (np.abs(window - TEAM_COLOURS[team]).max(axis=1) < 8).any()


@pytest.mark.parametrize("size", [(160, 90), (1280, 720), (320, 320)])
def test_any_size(size):
    state = scene([[0, -700, 17], [0, 700, 17]])
    assert render_frame(state, 0, size).shape == (size[1], size[0], 3)


def test_which_arena_and_who_is_there():
    state = GameState.from_numbers([[[0, 0, 17]], [[0, 2000, 17]]], ball_pos=[[0, 0, 93], [0, 2000, 93]])
    assert np.array_equal(render_frame(state, 1), render_frame(state.select(np.array([1]))))
    assert not np.array_equal(render_frame(state, 0), render_frame(state, 1))
    state = scene([[0, -700, 17]], demo_respawn_timer=[1])
    assert pixel(state, (0, 0, 93)).min() > 100
    places = [[0, -600, 17], [0, 600, 17]]
    assert coloured(render_frame(scene(places)), ORANGE).sum() > 30
    assert not coloured(render_frame(scene(places, demo_respawn_timer=[0, 2])), ORANGE).any()
    state = scene(places)
    absent = GameState(1, 1, 1, np.array([[True, False]]))
    absent.ball_rows[:], absent.car_rows[:, 0] = state.ball_rows, state.car_rows[:, 0]
    assert not coloured(render_frame(absent), ORANGE).any()


def test_a_pool_draws_its_first_arena():
    pool = RocketSimPool(2, render_mode="rgb_array", num_threads=1)
    pool.reset(seed=1)
    (picture,) = pool.render()
    assert pool.metadata["render_fps"] == 15 and pool.render_mode == "rgb_array"
    assert np.array_equal(picture, render_frame(pool.state, 0))
    pool.close()
    with pytest.raises(
        ValueError, match=r"^RocketSimPool: render_mode \(--env.render_mode\) must be human or rgb_array, got 'ansi'$"
    ):
        RocketSimPool(1, render_mode="ansi")
    pool = RocketSimPool(1, num_threads=1)
    pool.reset()
    with pytest.raises(RuntimeError, match=r"render\(\) needs render_mode='rgb_array', got None"):
        pool.render()
    pool.close()


class Ends(DoneCondition):
    """After a second in the first arena, which is shown, and after every step in the other."""

    truncates = True

    def check(self, state):
        return state.episode_ticks >= np.array([120, 8])


def test_videos_of_a_pool_show_whole_episodes_and_change_nothing(tmp_path):
    """The last picture of an episode is in it, though the pool has begun the next one by then."""

    def played(**settings):
        pool = RocketSimPool(2, done=Ends(), num_threads=1, **settings)
        found, rng = [pool.reset(seed=5)[0]], np.random.default_rng(0)
        for _ in range(40):
            found.append(pool.step(rng.integers(90, size=4))[0])
        saved = pool.state_dict()
        pool.close()
        return np.array(found), saved

    plain, saved = played()
    shown, saved_too = played(video_folder=tmp_path, render_mode="human")
    assert np.array_equal(plain, shown) and saved["component_names"] == saved_too["component_names"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rl-video-episode-0.mp4", "rl-video-episode-1.mp4"]
    reader = read_frames(str(tmp_path / "rl-video-episode-0.mp4"))
    about = next(reader)
    assert (about["size"], about["fps"], len(list(reader))) == ((320, 180), 15.0, 16)


PHYS = {"pos", "vel", "ang_vel"}


@pytest.fixture
def listener(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(10)
        monkeypatch.setattr(videos, "ADDRESS", sock.getsockname())
        monkeypatch.setattr(videos, "MOST_PACKETS_PER_SECOND", 1e9)
        yield sock


def near(vector, live):
    np.testing.assert_allclose(vector, live.as_tuple(), atol=1e-3, rtol=1e-5)


def test_what_is_sent_is_the_live_game(listener):
    pool = RocketSimPool(2, team_size=[[2, 1]], render_mode="human", num_threads=1)
    pool.reset(seed=3)
    rng, met = np.random.default_rng(0), set()
    for _ in range(60):
        pool.step(rng.integers(90, size=6))
        sent = json.loads(listener.recv(65536))
        assert sent.keys() == {"ball_phys", "cars", "boost_pad_states", "gamemode"} and sent["gamemode"] == "soccar"
        ball = pool.arenas[0].ball.get_state()
        assert sent["ball_phys"].keys() == PHYS  # without its rotation the viewer turns the ball itself
        for name in PHYS:
            near(sent["ball_phys"][name], getattr(ball, name))
        live = {car.id: car for car in pool.arenas[0].get_cars()}
        assert [car["team_num"] for car in sent["cars"]] == [0, 0, 1]
        for number, (car, slot) in enumerate(zip(sent["cars"], sorted(live), strict=True)):
            state = live[slot].get_state()
            assert car.keys() == {
                *("team_num", "phys", "controls", "boost_amount", "on_ground", "has_flipped_or_double_jumped"),
                "is_demoed",
            }
            assert car["phys"].keys() == PHYS | {"forward", "up"}
            for name in PHYS:
                near(car["phys"][name], getattr(state, name))
            near(car["phys"]["forward"], state.rot_mat.forward)
            near(car["phys"]["up"], state.rot_mat.up)
            assert car["boost_amount"] == pytest.approx(state.boost, abs=1e-3)  # 0..100
            assert car["on_ground"] is state.is_on_ground and car["is_demoed"] is state.is_demoed
            assert car["has_flipped_or_double_jumped"] is (state.has_flipped or state.has_double_jumped)
            assert list(car["controls"]) == list(CONTROL_NAMES) and "steer" in car["controls"]
            assert list(car["controls"].values()) == pytest.approx(pool.state.controls[0, number].tolist())
            met |= {("air", not car["on_ground"]), ("flip", car["has_flipped_or_double_jumped"])}
            met |= {("boost", car["boost_amount"] > 1)}
        assert sent["boost_pad_states"] == (pool.state.pad_timers[0] <= 0).tolist()
    assert {("air", True), ("flip", True), ("boost", True)} <= met
    pool.close()


def test_taken_pads_are_false(listener):
    pool = RocketSimPool(1, render_mode="human", num_threads=1)
    pool.reset()
    pool.state.pad_timers[0, [3, 13]] = 5.0
    states = videos.rocketsimvis_packet(pool.state)["boost_pad_states"]
    assert [pad for pad, there in enumerate(states) if not there] == [3, 13] and len(states) == 34
    pool.close()


def test_it_sends_at_most_so_many_a_second_and_never_waits(listener, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(videos, "MOST_PACKETS_PER_SECOND", 60)
    monkeypatch.setattr(videos.time, "monotonic", lambda: now[0])
    pool = RocketSimPool(1, num_threads=1)
    pool.reset()
    viewer = videos.RocketSimVis()
    for tick in range(120):
        now[0] = 100 + tick / 120
        viewer.send(pool.state)
    listener.setblocking(False)
    received = 0
    while True:
        try:
            listener.recv(65536)
            received += 1
        except BlockingIOError:
            break
    assert 55 <= received <= 60
    listener.close()
    for tick in range(5):  # nobody listens any more
        now[0] = 200 + tick
        viewer.send(pool.state)
    viewer.close()
    now[0] = 300
    viewer.send(pool.state)
    pool.close()
