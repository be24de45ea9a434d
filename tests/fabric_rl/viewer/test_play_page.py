"""The page that one plays in, in a real browser: a whole game by keys, keys of one's own, gamepads, small screens."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import fabric_rl
from envs.replays.replay import read_replay
from fabric_rl.evaluation.play import PlaySession
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.viewer import feeds
from fabric_rl.viewer.feeds import PlayFeed
from fabric_rl.viewer.server import ViewerServer
from tests.fabric_rl.viewer.test_browser import until

pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path):
    """Serves games against a bot."""
    ended = []

    def serve(bot, minutes=9.0, record=None):
        feed = PlayFeed()
        session = PlaySession(feed, bot, PlaySettings(runs_dir=str(tmp_path)), minutes, record)
        server = ViewerServer(feed)
        running = server.running()
        running.__enter__()
        thread = threading.Thread(target=session.run, daemon=True)
        thread.start()
        ended.append((running, session, thread))
        return server.url

    yield serve
    for running, session, thread in ended:
        session.stop()
        thread.join(30)
        running.__exit__(None, None, None)
        assert not thread.is_alive()


def phase(page, *wanted):
    until(page, f"{list(wanted)}.includes(viewer.status.phase)", 90)


def test_a_whole_game_by_keys(opened, served, tmp_path):
    """The bot scores in the end: the score is kept, the game is saved, and a click plays another one."""
    page = opened(served("school_1v1", 0.05, tmp_path / "games"), 1280, 800)
    phase(page, "countdown")
    assert page.text_content("#big") in "321"
    until(page, "document.getElementById('clock').textContent === '0:03'")  # drawn with the first picture
    phase(page, "play")
    page.keyboard.down("w")
    page.keyboard.down("Shift")
    until(page, "viewer.game.cars[0].speed > 0 || viewer.game.cars[0].velocity.length() > 5")
    page.keyboard.down("d")
    until(page, "viewer.game.cars[0].steer > 0.9 && viewer.latencies.length > 0")
    page.keyboard.up("d")
    until(page, "Number(document.getElementById('boost').textContent) < 20")
    phase(page, "over")
    until(page, "viewer.status.saved")
    score = page.evaluate("viewer.status.score")
    assert [page.text_content("#blueScore"), page.text_content("#orangeScore")] == [str(goals) for goals in score]
    assert page.text_content("#big") == ("You win" if score[0] > score[1] else "You lose")
    replay = read_replay(page.evaluate("viewer.status.saved"))
    assert replay.games[0].result["score"] == score
    controls = replay.games[0].columns["car_controls"][:, 0]
    assert (
        controls[:, 0].max() > 0.99 and controls[:, 1].max() > 0.5 and controls[:, 6].any() and not controls[:, 5].any()
    )
    assert page.evaluate("viewer.status.saved") in page.text_content("#small") and page.text_content("#blue") == "You"
    page.click("#other")
    assert page.text_content("#title") == "Menu" and page.is_hidden("#resume")
    page.keyboard.press("Escape")
    assert page.text_content("#rematch") == "Rematch (R)"
    page.click("#rematch")
    phase(page, "countdown", "play")
    assert page.evaluate("viewer.status.score") == [0, 0]


def test_keys_can_be_changed_and_stay(opened, served):
    page = opened(served("idle"))
    phase(page, "play")
    page.keyboard.press("Escape")
    phase(page, "paused")
    assert page.is_visible("#menu")
    page.locator("#bindings div", has_text="Jump").locator("button").click()
    page.keyboard.press("j")
    assert page.locator("#bindings div", has_text="Jump").locator("button").text_content() == "J"
    page.click("#resume")
    phase(page, "play")
    page.keyboard.down(" ")
    assert not any(page.evaluate("[...viewer.input.read()]"))
    page.keyboard.down("j")
    assert page.evaluate("[...viewer.input.read()]") == [0, 0, 0, 0, 0, 127, 0, 0]
    page.reload()
    until(page, "viewer.frames > 0")
    assert page.evaluate("viewer.input.keys.jump") == ["KeyJ"]
    page.evaluate("document.getElementById('defaults').click()")
    assert page.evaluate("viewer.input.keys.jump") == ["Space", "Mouse2"]


def test_a_rebind_is_cancelled_or_swaps_the_keys_of_two_actions(opened, served):
    page = opened(served("idle"))
    phase(page, "play")

    def button(label):
        return page.locator("#bindings div", has=page.locator(f"text='{label}'")).locator("button")

    page.keyboard.press("Escape")
    keys = page.evaluate("viewer.input.keys")
    button("Jump, dodge").click()
    button("Boost").click()
    assert button("Jump, dodge").text_content() == "Space or right mouse"
    assert button("Boost").text_content() == "press a key (Esc: cancel)"
    page.keyboard.press("Escape")
    assert button("Boost").text_content() == "left Shift or left mouse" and page.is_visible("#menu")
    button("Boost").click()
    page.click("#resume")
    phase(page, "play")
    page.keyboard.press("k")
    assert page.evaluate("viewer.input.keys") == keys
    page.keyboard.press("Escape")
    button("Powerslide, air roll").click()
    page.keyboard.press("c")
    assert [button(name).text_content() for name in ("Powerslide, air roll", "Ball camera")] == ["C", "X"]
    button("Jump, dodge").click()
    button("Jump, dodge").click(button="middle")
    button("Air roll left").click()
    page.click("#title")
    assert [button(name).text_content() for name in ("Jump, dodge", "Air roll left")] == ["middle mouse", "left mouse"]
    assert button("Boost").text_content() == "left Shift or Q"


def test_keys_and_gamepads_become_controls(opened, served):
    page = opened(served("idle"))
    phase(page, "play")

    def read(*held, pad="null"):
        page.evaluate(
            f"navigator.getGamepads = () => [{pad}]; viewer.input.held = new Set({list(held)}); viewer.camera = 0"
        )
        return [round(value / 127, 2) for value in page.evaluate("[...viewer.input.read()]")]

    def pad(x=0.0, y=0.0, **buttons):
        values = ",".join(
            f"{{value: {buttons.get(f'b{n}', 0)}, pressed: {str(f'b{n}' in buttons).lower()}}}" for n in range(16)
        )
        return f"{{connected: true, axes: [{x}, {y}], buttons: [{values}]}}"

    assert read("KeyW", "KeyD") == [1, 1, -1, 1, 0, 0, 0, 0]  # throttle, steer, nose down, yaw
    assert read("KeyS", "ArrowLeft") == [-1, -1, 1, -1, 0, 0, 0, 0]
    assert read("KeyD", "KeyX") == [0, 1, 0, 0, 1, 0, 0, 1]  # rolls instead of turning
    assert read("KeyQ", "Space", "Mouse0") == [0, 0, 0, 0, -1, 1, 1, 0]
    assert read(pad=pad(0.08, -0.08)) == [0] * 8  # dead zone
    assert read(pad=pad(1, 0, b7=0.5)) == [pytest.approx(0.5, abs=0.01), 1, 0, 1, 0, 0, 0, 0]
    half = (0.56 - 0.12) / 0.88
    assert read(pad=pad(0, -0.56, b6=1, b0=1)) == [-1, 0, pytest.approx(-half, abs=0.01), 0, 0, 1, 0, 0]
    assert read(pad=pad(-1, 0, b2=1, b1=1)) == [0, -1, 0, 0, -1, 0, 1, 1]
    ball = page.evaluate("viewer.ballCamera")
    read(pad=pad(b3=1))
    read(pad=pad(b3=1))
    assert page.evaluate("viewer.ballCamera") != ball  # once


def test_two_pages_and_one_car(opened, served, monkeypatch):
    monkeypatch.setattr(feeds, "SEAT_SECONDS", 1e9)  # a browser on a busy machine may be silent for long
    url = served("idle")
    first = opened(url)
    phase(first, "play")
    second = opened(url)
    until(second, "document.getElementById('small').textContent.includes('Another page is driving.')")
    assert second.evaluate("document.getElementById('start').disabled")
    first.close()
    until(second, "viewer.status.player === true && !document.getElementById('start').disabled")


def test_a_page_whose_game_ended_says_what_to_do(opened):
    feed = PlayFeed()
    feed.tell(phase="play")
    server = ViewerServer(feed)
    with server.running():
        page = opened(server.url)
        phase(page, "play")
        page.evaluate("viewer.socket.close()")
        until(page, "document.getElementById('small').textContent.startsWith('The game has ended. Start it again')")
    assert not page.text_content("#big")


def test_clocks_of_overtime_and_shots(opened, served):
    pytest.importorskip("rlgym_tools")
    page = opened(served("idle", 0.01))
    phase(page, "play")
    until(page, "!document.getElementById('overtime').hidden")
    page.keyboard.press("Escape")
    page.select_option("select[name=mode]", label="Training pack")
    page.click("#start")
    phase(page, "ready")
    assert page.text_content("#small") == "Score a goal! The clock starts when you move."
    until(page, "document.getElementById('clock').textContent === '0:10'")
    assert page.is_hidden("#overtime")
    page.keyboard.press("d", delay=100)
    until(page, "document.getElementById('clock').textContent === '0:08'")
    page.keyboard.press("r")
    phase(page, "ready")
    until(page, "document.getElementById('clock').textContent === '0:10'")
    box, screen = page.locator("#clock").bounding_box(), page.viewport_size
    assert box["x"] + box["width"] / 2 == pytest.approx(screen["width"] / 2, abs=1)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (844, 390)])
def test_it_fits_the_screen(opened, served, width, height):
    page = opened(served("idle"), width, height)
    phase(page, "play")
    boxes = {name: page.locator(f"#{name}").bounding_box() for name in ("hud", "gauge", "open", "ballcam", "hints")}
    for box in boxes.values():
        assert box["x"] >= 0 and box["y"] >= 0
        assert box["x"] + box["width"] <= width and box["y"] + box["height"] <= height
    assert boxes["hud"]["x"] + boxes["hud"]["width"] <= boxes["open"]["x"]
    assert boxes["hints"]["x"] + boxes["hints"]["width"] <= boxes["gauge"]["x"]
    page.click("#open")
    page.locator("#start").scroll_into_view_if_needed()
    assert page.is_visible("#start")
    page.select_option("select[name=mode]", label="Free play")
    page.click("#start")
    until(page, "viewer.status.choice.mode === 'free play' && viewer.status.phase === 'play'")


def test_play_in_a_notebook(opened, tmp_path):
    playing = fabric_rl.play("idle", runs_dir=tmp_path)
    try:
        cell = '<link rel="icon" href="data:,">' + playing._repr_html_()
        (tmp_path / "cell.html").write_text(cell, encoding="utf-8")
        handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as notebook:
            threading.Thread(target=notebook.serve_forever, daemon=True).start()
            page = opened(f"http://127.0.0.1:{notebook.server_port}/cell.html")
            phase(page.frames[1], "play")
            notebook.shutdown()
    finally:
        playing.stop()
    with pytest.raises(ValueError, match="no such"):
        fabric_rl.play("nobody", runs_dir=tmp_path)


def test_fingers_drive_steer_and_boost(opened, served):
    page = opened(served("idle"), 844, 390)
    phase(page, "play")
    screen = page.context.new_cdp_session(page)
    screen.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 5})

    def touch(kind, *points):
        fingers = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    def middle(selector):
        box = page.locator(selector).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    assert page.is_hidden("#touch") and page.is_visible("#hints")
    touch("touchStart", (400, 200))
    touch("touchEnd")
    until(page, "document.getElementById('stick').offsetWidth > 0")
    stick, boost = middle("#stick"), middle("[data-hold=boost]")
    held = (stick[0] + 40, stick[1] - 50)
    touch("touchStart", held)
    touch("touchStart", held, boost)
    throttle, steer, pitch, yaw, roll, jump, boosting, slide = page.evaluate("[...viewer.input.read()]")
    assert throttle > 100 and steer == yaw > 60 and pitch < -60 and (roll, jump, boosting, slide) == (0, 0, 127, 0)
    until(page, "viewer.game.cars[0].velocity.length() > 3 && viewer.game.cars[0].steer > 0.4")
    touch("touchEnd")
    assert not any(page.evaluate("[...viewer.input.read()]"))
    label = page.evaluate("(it => [it.scrollWidth, it.clientWidth])(document.querySelector('[data-hold=slide]'))")
    assert page.text_content("[data-hold=slide]") == "powerslide" and label[0] <= label[1]
    ball = page.evaluate("viewer.ballCamera")
    page.click("#ballcam")
    assert page.evaluate("viewer.ballCamera") != ball
    screen.send("Emulation.setEmulatedMedia", {"features": [{"name": "pointer", "value": "coarse"}]})
    page.reload()  # a touch screen has no keys
    until(page, "Boolean(window.viewer && viewer.frames > 2)")  # connected, so that the end cuts nothing off
    assert page.is_visible("#stick") and page.is_hidden("#hints")


def test_a_goal_explodes_where_the_ball_was(opened, served):
    page = opened(served("chaser"))  # against a person who stands still
    phase(page, "goal")
    until(page, "viewer.stage.burst.group.visible && !viewer.stage.ball.group.visible")
    assert abs(page.evaluate("viewer.stage.burst.group.position.z")) > 48
    phase(page, "countdown")
    until(page, "viewer.stage.ball.group.visible")


def test_the_bots_own_attempt_is_seen_beside_the_persons(opened, served):
    pytest.importorskip("rlgym_tools")
    page = opened(served("chaser"))
    phase(page, "play")
    assert not page.evaluate("viewer.ghost.group.visible")
    page.keyboard.press("Escape")
    page.select_option("select[name=mode]", label="Training pack")
    page.click("#start")
    phase(page, "ready")
    until(page, "viewer.ghost.group.visible")
    places = np.array(page.evaluate("viewer.status.ghost"))[:, :3]
    own = page.evaluate("viewer.game.cars[0].position.toArray()")
    assert places[0][[0, 2, 1]] / 100 == pytest.approx(own, abs=0.05)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert len(places) > 30 and steps.max() > 40 and steps.max() < 2300 * 8 / 120 + 1
    page.keyboard.press("d", delay=300)
    until(page, f"viewer.ghost.group.position.distanceTo({{x: {own[0]}, y: {own[1]}, z: {own[2]}}}) > 5")
    page.keyboard.press("n")
    phase(page, "ready")
    until(page, "viewer.status.shot === 2")
    assert not np.allclose(np.array(page.evaluate("viewer.status.ghost"))[0, :3], places[0])
