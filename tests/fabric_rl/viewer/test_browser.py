"""The viewer in a real browser: a replay in a page, a replay from the server, and players who play live."""

import base64
import contextlib
import io
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from envs.replays.replay import extract_games, read_replay
from fabric_rl.evaluation.matches import Duel, play_live
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.viewer.feeds import FileFeed, GamesFeed, LiveFeed
from fabric_rl.viewer.page import page_with
from fabric_rl.viewer.server import ViewerServer

REPLAY = Path(__file__).resolve().parents[2] / "fixtures/replays/one_goal.frl"
PICTURES = REPLAY.parent / "pictures"
DIFFERENCE = 15  # of 255, in the mean of a square of six pixels
GAME = read_replay(REPLAY).games[0]
GOAL = next(event for event in GAME.events if event["kind"] == "goal")


@pytest.fixture
def page(opened, tmp_path):
    """The page that carries the replay, opened as a file."""
    file = tmp_path / "game.html"
    file.write_text(page_with(REPLAY.read_bytes()), encoding="utf-8")
    return ready(opened(file.as_uri()))


def until(page, expression, seconds=60):
    """Waits for something to be true in the page; its own policy forbids Playwright's way of doing so."""
    for _ in range(seconds * 10):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise TimeoutError(expression)


def ready(page):
    until(page, "Boolean(window.viewer && viewer.frames > 0)")
    return page


def picture(page, seconds, camera="free"):
    """`[height, width, 3]` of the canvas at a moment, as numbers."""
    data = page.evaluate(f"viewer.still({seconds}, '{camera}')").partition(",")[2]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"), np.float64)


@pytest.mark.slow
def test_the_canvas_shows_a_game_that_moves(page):
    first, later = picture(page, 2), picture(page, 6)
    assert first.std() > 15 and (np.abs(first - later).max(axis=-1) > 30).sum() > 50
    assert np.array_equal(picture(page, 2), first)


@pytest.mark.slow
def test_what_the_page_says_of_the_game(page):
    assert page.title() == "school_1v1 - idle · fabric-rl"
    assert page.evaluate("[viewer.game.frames, viewer.game.length]") == [
        GAME.num_frames,
        pytest.approx(GAME.columns["ticks"][-1] / 120),
    ]
    picture(page, 12)
    assert page.text_content("#score") == "0 : 0"
    picture(page, GOAL["seconds"] + 0.5)
    assert page.text_content("#score") == "1 : 0" and page.text_content("#banner").startswith("Goal! school_1v1")
    marks = page.eval_on_selector_all("#timeline .marks i", "all => all.map(mark => mark.className)")
    assert marks == [f"{event['kind']} team{event['team']}" for event in GAME.events]


@pytest.mark.slow
def test_the_browser_reads_the_numbers_that_python_reads(page):
    for name, values in GAME.columns.items():
        found = page.evaluate(
            f"[...viewer.game.columns['{name}'].subarray(0, {values.size})].map(x => x === x ? x : null)"
        )
        found = np.array([np.nan if number is None else number for number in found])
        assert found == pytest.approx(values.reshape(-1), rel=1e-6, nan_ok=True), name


@pytest.mark.slow
def test_between_two_frames_things_move_steadily(page):
    """The ball between frames 60 and 61, a quarter of the way at a time."""
    times = GAME.columns["ticks"][60:62] / 120
    script = "s => { viewer.still(s); return viewer.sample.ball.position.toArray(); }"
    places = np.array([page.evaluate(script, float(t)) for t in np.linspace(*times, 5)])
    expected = GAME.columns["ball_pos"][[60, 61]][:, [0, 2, 1]] / 100
    assert places[[0, -1]] == pytest.approx(expected, abs=1e-3)
    along = (places - places[0]) @ (places[-1] - places[0])
    assert (np.diff(along) > 0).all()


@pytest.mark.slow
def test_play_pause_seek_step_and_speed(page):
    assert page.evaluate("viewer.playing")
    until(page, "viewer.seconds > 0.1")
    page.keyboard.press("Space")
    stopped = page.evaluate("viewer.seconds")
    page.wait_for_timeout(300)
    assert page.evaluate("[viewer.playing, viewer.seconds]") == [False, stopped]
    page.evaluate("viewer.seek(5)")
    page.keyboard.press(".")
    frame = page.evaluate("viewer.game.frameAt(5)")
    assert page.evaluate("viewer.seconds") == pytest.approx(GAME.columns["ticks"][frame + 1] / 120, abs=1e-4)
    page.keyboard.press("ArrowRight")
    assert page.evaluate("viewer.seconds") > 9.9
    box = page.locator("#timeline").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    assert page.evaluate("viewer.seconds / viewer.game.length") == pytest.approx(0.25, abs=0.01)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("viewer.speed") == 2 and page.input_value("#speed") == "2"
    page.keyboard.press("g")
    assert page.evaluate("viewer.seconds") == pytest.approx(GOAL["seconds"] - 3)
    page.keyboard.press("End")
    page.click("#play")
    assert page.evaluate("viewer.seconds") < 15  # from the beginning


@pytest.mark.slow
def test_the_frame_of_a_goal_can_be_shown(page):
    """It has the tick of the kickoff behind it; steps go through it both ways, and the inspector says its reward."""
    page.evaluate("viewer.play(false); viewer.inspect(true)")
    page.evaluate(f"viewer.seek(viewer.game.seconds[{GOAL['frame'] - 2}])")
    seen = []
    for key in "....,,,,":
        page.keyboard.press(key)
        page.evaluate("viewer.draw(0)")
        seen.append(page.evaluate("viewer.sample.frame - " + str(GOAL["frame"])))
    assert seen == [-1, 0, 1, 2, 1, 0, -1, -2]
    page.evaluate(f"viewer.seek({GOAL['seconds']})")
    page.evaluate("viewer.draw(0)")
    assert page.evaluate("viewer.sample.frame") == GOAL["frame"]
    paid = float(GAME.columns["rewards"][GOAL["frame"], 0].sum())
    shown = page.locator(".chart").last.locator("header b").text_content()
    assert abs(paid) > 1 and float(shown) == pytest.approx(paid, rel=0.01)
    assert page.evaluate("viewer.sample.ball.position.z") * 100 == pytest.approx(
        GAME.columns["ball_pos"][GOAL["frame"], 1], abs=0.1
    )


@pytest.mark.slow
def test_a_ball_of_another_size_lies_on_the_ground(opened, tmp_path):
    small = replace(read_replay(REPLAY), about=read_replay(REPLAY).about | {"ball_radius": 60})
    small.games[0].columns["ball_pos"][:, 2] = 60
    file = tmp_path / "game.html"
    file.write_text(page_with(extract_games(small)), encoding="utf-8")
    page = ready(opened(file.as_uri()))
    picture(page, 2)
    assert page.evaluate("viewer.sample.ball.position.y") == pytest.approx(0.6, abs=1e-3)
    assert page.evaluate("viewer.stage.ball.group.scale.x * 91.25") == pytest.approx(60)


@pytest.mark.slow
def test_cameras_show_different_pictures(page):
    pictures = [picture(page, 6, camera) for camera in ("director", "free", "chase", "ball", "top", "car")]
    for number, one in enumerate(pictures):
        assert one.std() > 10
        assert all(np.abs(one - other).mean() > 2 for other in pictures[:number])
    page.keyboard.press("5")
    assert page.get_attribute("#cameras button[value=top]", "aria-pressed") == "true"


@pytest.mark.slow
def test_the_inspector_follows_time_and_car(page):
    page.evaluate("viewer.inspect(true)")
    picture(page, 6)
    frame = page.evaluate("viewer.sample.frame")
    speed = np.linalg.norm(GAME.columns["car_vel"][frame, 0])
    assert int(page.text_content(".gauge.speed b")) == pytest.approx(speed, abs=1)
    value = page.locator(".chart").first.locator("header b")
    assert float(value.text_content()) == pytest.approx(GAME.columns["value"][frame, 0], abs=0.01)
    assert page.locator(".actions li b").first.text_content().endswith("%")
    controls, actions = page.text_content(".controls"), page.text_content(".actions ol")
    assert "throttle" in controls and "powerslide" in controls
    assert "throttle" in actions and not any(other in actions for other in ("gas", " slide", "handbrake"))
    ink = "() => { const c = document.querySelector('.chart canvas'); return c.toDataURL().length; }"
    before = page.evaluate(ink)
    picture(page, 12)
    assert page.evaluate(ink) != before > 500
    page.keyboard.press("c")
    picture(page, 12)
    assert page.get_attribute(".cars .team1", "aria-pressed") == "true"
    assert value.text_content() == "-"  # idle expects nothing
    page.keyboard.press("c")
    picture(page, 99)  # the last frame, in which nothing is decided any more
    assert float(value.text_content()) == pytest.approx(GAME.columns["value"][-2, 0], abs=0.01)
    assert page.locator(".actions li span").first.text_content()
    page.evaluate("document.querySelector('.actions li span').textContent = 'left and '.repeat(20)")
    assert page.locator(".actions li b").first.bounding_box()["height"] < 25  # "77 %" on one line


@pytest.mark.slow
def test_a_game_of_a_run_says_which_and_how_it_stands(opened, tmp_path):
    replay, file = read_replay(REPLAY), tmp_path / "game.html"
    next(event for event in replay.games[0].events if event["kind"] == "goal")["score"] = [3, 2]
    about = replay.about | {"title": "a_run after 5,000 steps", "seconds": 60.0}
    file.write_text(page_with(extract_games(replace(replay, about=about))), encoding="utf-8")
    page = ready(opened(file.as_uri()))
    picture(page, 2)
    assert page.text_content("#score") == "2 : 2"
    picture(page, GOAL["seconds"] + 0.5)
    assert page.text_content("#score") == "3 : 2"
    assert page.title() == "a_run after 5,000 steps · fabric-rl"
    assert page.text_content("#title") == "a_run after 5,000 steps, its first 18 s"


@pytest.mark.slow
def test_invisible_characters_of_names_are_shown_as_escapes(opened, tmp_path):
    replay, file = read_replay(REPLAY), tmp_path / "game.html"
    about = replay.about | {"title": "a\u202eb\udc80", "names": ["x\x1b[31m", "y\u200f"]}
    file.write_text(page_with(extract_games(replace(replay, about=about))), encoding="utf-8")
    page = ready(opened(file.as_uri()))
    assert page.title() == r"a\u{202e}b\u{dc80} · fabric-rl"
    assert page.text_content("#blue") == r"x\u{1b}[31m" and page.text_content("#orange") == r"y\u{200f}"


@pytest.mark.slow
def test_a_car_that_turns_over_stays_in_the_picture_of_its_camera(page):
    picture(page, 6, "car")
    script = """([angle, up]) => {
        const { cameras, camera } = viewer.stage, car = viewer.sample.cars[0];
        Object.assign(car, { on_ground: false });
        car.rotation.set(0, 0, Math.sin(angle / 2), Math.cos(angle / 2)); // the nose goes up, back, down
        car.velocity.set(5, up, 0);
        cameras.update(viewer.sample, 0, 10);
        camera.updateMatrixWorld();
        return viewer.stage.project(car.position, 0);
    }"""
    places = [page.evaluate(script, [angle / 4, up]) for angle in range(26) for up in (-20, 0, 20)]
    assert all(place and 200 < place[0] < 500 and 50 < place[1] < 500 for place in places), places


@pytest.mark.slow
def test_the_whole_field_is_seen_in_a_cell_of_a_notebook(opened, tmp_path):
    file = tmp_path / "game.html"
    file.write_text(page_with(REPLAY.read_bytes()), encoding="utf-8")
    page = ready(opened(file.as_uri(), 900, 520))
    picture(page, 6)
    for z in (-40, 0, 40):
        assert (
            page.evaluate(f"viewer.stage.project({{x: 40.96, y: 0, z: {z}}}, 0)[1]")
            < page.locator("#bar").bounding_box()["y"]
        )


@pytest.mark.slow
def test_games_of_a_run_can_be_chosen_and_the_newest_begins(opened, tmp_path):
    """The two of one phase; one of before, with other rewards, is not among them."""
    games, replay = tmp_path / "a_run" / "games", read_replay(REPLAY)
    games.mkdir(parents=True)
    for number, rewards in enumerate((["other"] * len(replay.about["rewards"]), *[replay.about["rewards"]] * 2)):
        about = replay.about | {"title": f"a_run after {number} steps", "rewards": rewards}
        (games / f"{number}.frl").write_bytes(extract_games(replace(replay, about=about)))
        os.utime(games / f"{number}.frl", (number + 1, number + 1))
    server = ViewerServer(GamesFeed(games))
    with server.running():
        page = ready(opened(server.url))
        assert page.locator("#games option").all_text_contents() == ["a_run after 1 steps", "a_run after 2 steps"]
        assert page.text_content("#title") == "a_run after 2 steps"
        page.evaluate("viewer.seek(17.5)")
        page.wait_for_selector("#message:visible")
        assert page.text_content("#message").startswith("a_run has ended: fabric-rl watch ")
        page.select_option("#games", "0")
        until(page, "document.getElementById('title').textContent === 'a_run after 1 steps'")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(375, True), (375, False)])
def test_on_a_phone_everything_can_be_reached(opened, tmp_path, width, dark):
    file = tmp_path / "game.html"
    file.write_text(page_with(REPLAY.read_bytes()), encoding="utf-8")
    page = ready(opened(file.as_uri(), width, 700, dark))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    for button in page.locator("#bar button:visible").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] >= 30
    page.click("#inspect")
    box = page.locator("#inspector").bounding_box()
    assert box["y"] > 200 and box["x"] + box["width"] <= width


def small(page):
    """Sets the page up for pictures that are compared."""
    page.evaluate("viewer.inspect(false); viewer.theme(true)")
    page.set_viewport_size({"width": 480, "height": 300})
    page.wait_for_timeout(100)
    return page


def smoothed(image, size=6):
    """`[height, width]` means of all squares of an image of numbers."""
    total = np.pad(image, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    return (total[size:, size:] - total[:-size, size:] - total[size:, :-size] + total[:-size, :-size]) / size**2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("camera", "seconds"),
    [("free", 3.0), ("chase", 11.0), ("ball", 6.0), ("top", 13.6), ("car", 8.0), ("director", 12.0)],
)
def test_pictures_are_those_of_the_reference(page, camera, seconds):
    """Everywhere, so that no car and no ball is missed; smoothed, since drivers draw edges differently."""
    found = picture(small(page), seconds, camera)
    file = PICTURES / f"{camera}.png"
    if not file.exists():  # delete one to take it anew, and look at it
        Image.fromarray(found.astype(np.uint8)).save(file)
    expected = np.asarray(Image.open(file).convert("RGB"), np.float64)
    assert found.shape == expected.shape
    assert max(np.abs(smoothed(colour)).max() for colour in np.moveaxis(found - expected, -1, 0)) < DIFFERENCE


@pytest.mark.slow
def test_from_above_everything_is_where_the_numbers_say(page):
    """Computed here: orange's goal is on the right, x grows upward; a mirrored field has them elsewhere."""
    before, after = (picture(small(page), seconds, "top") for seconds in (2.0, 9.0))
    rows, columns = before.shape[:2]
    height = max(90, 126 / (columns / rows)) / (2 * np.tan(np.radians(25)))  # of the camera, in 100 uu
    changed = smoothed(np.abs(after - before).max(axis=-1), 3)
    frames = [page.evaluate(f"viewer.game.frameAt({seconds})") for seconds in (2.0, 9.0)]
    moved = [GAME.columns["ball_pos"][frames], GAME.columns["car_pos"][frames, 0]]  # the other car stays where it is
    for places in moved:
        assert np.linalg.norm(places[1] - places[0]) > 500
        for x, y, z in places:
            scale = rows / (2 * np.tan(np.radians(25))) / (height - z / 100) / 100  # pixels per uu
            left, top = int(240 + y * scale), int(rows / 2 - x * scale)
            assert changed[top - 4 : top + 3, left - 4 : left + 3].max() > 25, (x, y, z)


@pytest.mark.slow
def test_a_replay_from_the_server(opened):
    server = ViewerServer(FileFeed(REPLAY))
    with server.running():
        page = ready(opened(server.url))
        until(page, f"viewer.game.frames === {GAME.num_frames}")
        assert page.locator("#goLive").is_hidden()


@pytest.mark.slow
def test_a_damaged_replay_is_said_in_the_page(opened, tmp_path):
    file = tmp_path / "game.html"
    data = bytearray(REPLAY.read_bytes())
    data[5000] ^= 1
    file.write_text(page_with(bytes(data)), encoding="utf-8")
    page = opened(file.as_uri())
    page.wait_for_selector("#message:visible")
    assert page.text_content("#message") == "This replay is damaged."


class Over(Exception):
    """Ends `play_live`."""


@pytest.mark.slow
def test_players_who_play_live(opened):
    """The page follows; when one looks back it stays there, until one asks for what is played now."""
    feed, over = LiveFeed(), threading.Event()
    duel = Duel.of("chaser", "shooter", PlaySettings(team_size=1))
    server = ViewerServer(feed)

    def play():
        def again():
            if over.is_set():
                raise Over
            return duel

        with contextlib.suppress(Over):
            play_live(feed, duel, again, minutes=0.1, seed=0)

    player = threading.Thread(target=play, daemon=True)
    with server.running():
        player.start()
        try:
            page = ready(opened(server.url))
            assert page.evaluate("document.body.classList.contains('live')")
            start = page.evaluate("viewer.game.length")
            until(page, f"viewer.game.length > {start} + 1 || viewer.number > 0")
            page.keyboard.press("Home")
            assert not page.evaluate("viewer.follow")
            until(page, "viewer.replay.games.length > 1")
            page.click("#goLive")
            until(page, "viewer.follow && viewer.number === viewer.replay.games.length - 1")
            page.set_viewport_size({"width": 390, "height": 844})
            middles = "[...document.querySelectorAll('.row :is(button, select)')].filter(it => it.offsetWidth)"
            middles += ".map(it => Math.round(it.getBoundingClientRect().y + it.offsetHeight / 2))"
            assert page.is_visible("#games") and len(set(page.evaluate(middles))) == 2  # rows
        finally:
            over.set()
            player.join(60)
