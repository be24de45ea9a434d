"""The viewer in a real browser: goals that pay off, cameras and links, and what a picture must not get wrong."""

import io
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import rlgym.rocket_league.sim as simulator
from PIL import Image

from envs.bots import BallChaser, IdleBot, TeamBots
from envs.matches.matches import RecordedMatch
from envs.replays.replay import read_replay
from fabric_rl.commands.main import main
from fabric_rl.viewer.page import FOLDER, page_with
from tests.fabric_rl.viewer.test_browser import REPLAY, picture, ready, until

RUN = REPLAY.parents[1] / "run_of_0_1_0/tiny"


def played(path, team_size, seconds):
    """A recorded game of chasers against cars that stand still."""
    with path.open("wb") as file:
        match = RecordedMatch(TeamBots(BallChaser(), IdleBot()), file, ("chaser", "idle"), team_size)
        match.begin()
        while match.recorder.seconds < seconds:
            match.step()
        match.close()
    return path


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A game with a goal in the fifth second, the two seconds after it, and the next kickoff."""
    file = played(tmp_path_factory.mktemp("scored") / "game.frl", 1, 8.5)
    game = read_replay(file).games[0]
    return file, next(event for event in game.events if event["kind"] == "goal"), game


@pytest.fixture
def shown(opened, tmp_path):
    """Opens a page with a replay in it."""

    def show(file, width=1280, height=800, dark=True, link=""):
        page = tmp_path / "game.html"
        page.write_text(page_with(file.read_bytes()), encoding="utf-8")
        return ready(opened(page.as_uri() + link, width, height, dark))

    return show


def test_the_licence_of_three_is_in_the_script():
    script = (FOLDER / "viewer.js").read_text(encoding="utf-8")
    assert "Permission is hereby granted, free of charge" in script[:3000] and "three.js authors" in script[:3000]


def test_recordings_go_on_for_two_seconds_after_a_goal(scored):
    _, goal, game = scored
    begins = np.flatnonzero(game.columns["begins"])
    assert len(begins) == 2 and [event["kind"] for event in game.events].count("goal") == 1
    assert (game.columns["ticks"][begins[1] - 1] - game.columns["ticks"][goal["frame"]]) / 120 == 2
    assert (np.abs(game.columns["ball_pos"][goal["frame"], 1]) > 5215) and not game.columns["ball_pos"][
        begins, :2
    ].any()


# ---------------------------------------------------------------- faults


TEXTS = """() => {
    const { canvas } = viewer.inspector.rewards, g = canvas.getContext("2d"), said = [];
    const before = g.fillText.bind(g);
    g.fillText = (text, x, y) => {
        const { width } = g.measureText(text);
        said.push([text, x - (g.textAlign === "right" ? width : width / 2)]);
        before(text, x, y);
    };
    viewer.inspect(true);
    viewer.draw(0);
    return said;
}"""


@pytest.mark.slow
def test_numbers_beside_a_chart_are_whole(shown):
    page = shown(REPLAY)
    page.evaluate("viewer.play(false); viewer.game.columns.rewards.fill(-0.00275); viewer.seek(3)")
    said = page.evaluate(TEXTS)
    assert "-0.00275" in [text for text, _ in said]
    assert all(left >= 0 for _, left in said)


@pytest.mark.slow
def test_a_goal_does_not_flatten_the_chart_of_rewards(shown):
    page = shown(REPLAY)
    goal = next(event for event in read_replay(REPLAY).games[0].events if event["kind"] == "goal")
    page.evaluate(f"viewer.play(false); viewer.seek({goal['seconds']})")
    said = [text for text, _ in page.evaluate(TEXTS)]
    spike = next(text for text in said if text.endswith("▲"))
    assert float(said[0]) < 1 < float(spike.split()[0])


@pytest.mark.slow
def test_the_number_of_a_spike_is_whole_and_said_once(shown):
    page = shown(REPLAY)
    page.evaluate("""viewer.play(false); viewer.seek(8.4);
        const parts = viewer.replay.about.rewards.length, at = parts * viewer.replay.about.teams.length;
        viewer.game.columns.rewards.set([12, 11], at * viewer.game.frameAt(0.5))""")
    [(text, left)] = [(text, left) for text, left in page.evaluate(TEXTS) if text.endswith("▲") and left < 100]
    assert text == "12.00 ▲" and left > 30  # right of the axis


@pytest.mark.slow
def test_the_legend_of_rewards_is_seen_as_a_whole(shown):
    page = shown(REPLAY)
    panel, last = page.locator("#inspector").bounding_box(), page.locator(".legend li").last.bounding_box()
    assert last["y"] + last["height"] <= panel["y"] + panel["height"]


@pytest.mark.slow
def test_space_presses_the_button_that_has_the_focus(shown):
    page = shown(REPLAY)
    page.focus("#theme")
    page.keyboard.press("Space")
    assert page.evaluate("[viewer.dark, viewer.playing]") == [False, True]
    page.click("#theme")  # by mouse: keys are the picture's again
    page.keyboard.press("Space")
    assert page.evaluate("[viewer.dark, viewer.playing]") == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("camera", ["director", "free", "ball", "top"])
def test_blue_is_on_the_left_as_in_the_score(shown, camera):
    page = shown(REPLAY)
    picture(page, 0.1, camera)
    left, right = (page.evaluate(f"viewer.stage.project({{x: 0, y: 0, z: {z}}}, 0)[0]") for z in (-20, 20))
    assert left < right
    assert page.locator("#blue").bounding_box()["x"] < page.locator("#orange").bounding_box()["x"]


@pytest.mark.slow
def test_team_mates_have_their_teams_colour_and_tags_do_not_overlap(shown, tmp_path):
    page = shown(played(tmp_path / "two.frl", 3, 1))
    hues = page.evaluate("viewer.stage.cars.map(car => car.colour.getHSL({}).h)")
    assert max(hues[:3]) - min(hues[:3]) < 0.005 and max(hues[3:]) - min(hues[3:]) < 0.005
    shades = page.evaluate("viewer.stage.cars.map(car => car.colour.getHex())")
    assert len(set(shades)) == 6
    picture(page, 0.5, "free")
    page.evaluate("for (const car of viewer.sample.cars) car.position.copy(viewer.sample.cars[0].position)")
    page.evaluate("viewer.placeTags(viewer.sample.cars)")
    boxes = sorted((tag.bounding_box() for tag in page.locator(".tag:visible").all()), key=lambda box: box["y"])
    assert len(boxes) == 6
    assert all(above["y"] + above["height"] <= below["y"] + 1 for above, below in pairwise(boxes))
    marks = page.evaluate(
        "[...document.querySelectorAll('.tag')].map(tag => getComputedStyle(tag, '::before').content)"
    )
    assert len(set(marks[:3])) == len(set(marks[3:])) == 1 and marks[0] != marks[3]


@pytest.mark.slow
def test_the_floor_is_made_of_small_pieces(shown):
    """Large triangles tear where pictures are computed without a graphics card."""
    script = """() => {
        const { position } = viewer.stage.field.floor.geometry.toNonIndexed().attributes;
        return [...position.array];
    }"""
    corners = np.array(shown(REPLAY).evaluate(script)).reshape(-1, 3, 3)
    edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=-1)
    assert edges.max() < 12
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=-1).sum() / 2
    assert area == pytest.approx(81.92 * 102.4 - 2 * 11.52**2 + 2 * 17.86 * 8.8, rel=0.01)


@pytest.mark.slow
def test_names_of_a_report_are_read_on_a_phone(opened, tmp_path):
    shutil.copytree(RUN, tmp_path / "tiny")
    name = "VelocityBallToGoalReward"
    header = f"step,reward/{name},reward_percent/{name}"
    (tmp_path / "tiny/metrics.csv").write_text(f"{header}\n10,0.25,75\n20,0.5,80\n")
    with pytest.raises(SystemExit) as ended:
        main(["report", "tiny", "--runs_dir", str(tmp_path), "--out", str(tmp_path / "report.html")])
    assert ended.value.code == 0
    page = opened((tmp_path / "report.html").as_uri(), 390, 844, dark=False)
    cell = page.locator(".parts td").first.bounding_box()
    assert cell["width"] >= 130 and cell["height"] < 80
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# ---------------------------------------------------------------- the arena


@pytest.mark.slow
def test_the_walls_are_where_the_simulator_has_them(shown):
    """Ramps, corners and the curve to the ceiling, against the meshes of RocketSim; none is far from the other."""
    page = shown(REPLAY)
    script = """() => {
        const isGlass = ({ material }) => material?.vertexColors && material.transparent;
        return [...viewer.stage.scene.children.find(isGlass).geometry.attributes.position.array];
    }"""
    drawn = np.array(page.evaluate(script)).reshape(-1, 3, 3)[..., [0, 2, 1]] * 100
    shares = [(a, b, 1 - a - b) for a in np.linspace(0, 1, 9) for b in np.linspace(0, 1 - a, 9)]
    surface = np.einsum("sc,tcx->tsx", np.array(shares), drawn).reshape(-1, 3)
    meshes = [
        np.frombuffer(file.read_bytes(), np.float32, 3 * int(np.frombuffer(file.read_bytes(), np.int32, 2)[1]), at)
        for file in Path(simulator.__file__).parent.glob("collision_meshes/soccar/*.cmf")
        for at in [8 + 12 * int(np.frombuffer(file.read_bytes(), np.int32, 1)[0])]
    ]
    real = np.concatenate(meshes).reshape(-1, 3) * 50
    real = real[(np.abs(real[:, 1]) < 5110) & (real[:, 2] > 30) & (real[:, 2] < 1950)]
    real = real[(np.abs(real[:, 0]) > 1100) | (real[:, 2] > 700)]  # without the goals, which have lines
    assert len(real) > 1000
    away = np.array([np.abs(surface - place).sum(axis=1).min() / 1.5 for place in real[::7]])
    assert np.quantile(away, 0.95) < 130 and np.median(away) < 75


# ---------------------------------------------------------------- goals


@pytest.mark.slow
def test_a_goal_explodes_and_the_ball_is_gone_until_the_kickoff(shown, scored):
    file, goal, game = scored
    page = shown(file)
    seen = "[viewer.stage.burst.group.visible, viewer.stage.ball.group.visible]"
    picture(page, goal["seconds"] - 0.3)
    assert page.evaluate(seen) == [False, True] and page.is_hidden("#banner")
    quiet = picture(page, goal["seconds"] + 0.5)
    assert page.evaluate(seen) == [True, False]
    assert page.evaluate("viewer.stage.burst.group.position.toArray()") == pytest.approx(
        game.columns["ball_pos"][goal["frame"]][[0, 2, 1]] / 100, abs=1e-3
    )
    speed = np.linalg.norm(game.columns["ball_vel"][goal["frame"]]) * 0.036
    assert page.text_content("#banner") == f"Goal! chaser{speed:.0f} km/h"
    page.evaluate("viewer.stage.burst.show = () => {}; viewer.stage.burst.group.visible = false")
    assert (np.abs(picture(page, goal["seconds"] + 0.5) - quiet).max(axis=-1) > 20).sum() > 200
    picture(page, goal["seconds"] + 2.2)
    assert page.evaluate("viewer.stage.ball.group.visible") and page.is_hidden("#banner")


@pytest.mark.slow
def test_a_goal_is_shown_again(shown, scored):
    """By key from anywhere, and by the director; slowly, with the score after it, and then the game goes on."""
    file, goal, _ = scored
    page = shown(file, 640, 400)
    page.evaluate(f"viewer.play(false); viewer.camera('chase'); viewer.seek({goal['seconds'] + 2.5})")
    page.keyboard.press("r")
    page.evaluate("viewer.draw(0)")
    assert page.evaluate("viewer.stage.cameras.name") == "replay" and page.text_content("#score") == "1 : 0"
    assert page.evaluate("viewer.seconds") < goal["seconds"] - 1.5
    page.evaluate("viewer.advance(1)")
    assert page.evaluate("viewer.seconds") < goal["seconds"] - 1
    until(page, "document.getElementById('banner').textContent.startsWith('Replay: chaser')")
    page.keyboard.press("Space")
    stopped = page.evaluate("viewer.seconds")
    page.keyboard.press("5")
    page.wait_for_timeout(200)
    assert page.evaluate("[viewer.playing, viewer.stage.cameras.name, viewer.seconds]") == [False, "top", stopped]
    page.keyboard.press("Space")
    page.keyboard.press("3")
    assert page.evaluate("[viewer.playing, viewer.rerun === null]") == [True, False]
    page.evaluate("for (let k = 0; k < 90 && viewer.rerun; k++) viewer.advance(0.1)")
    assert page.evaluate("[viewer.rerun, viewer.playing, viewer.stage.cameras.name]") == [None, False, "chase"]
    assert page.evaluate("viewer.seconds") == pytest.approx(goal["seconds"] + 2.5)
    page.evaluate(f"viewer.camera('director'); viewer.seek({goal['seconds'] + 1.5}); viewer.play(true)")
    until(page, "viewer.rerun !== null")
    page.evaluate("for (let k = 0; k < 90 && viewer.rerun; k++) viewer.advance(0.1)")
    now = page.evaluate("[viewer.seconds, viewer.playing]")
    assert goal["seconds"] + 1.5 < now[0] < goal["seconds"] + 3 and now[1]
    page.evaluate("for (let k = 0; k < 5; k++) viewer.advance(0.1)")
    assert page.evaluate("viewer.rerun") is None  # once


@pytest.mark.slow
def test_where_no_goal_is_keys_that_look_for_one_change_nothing(shown, scored):
    file, goal, _ = scored
    page = shown(file, 640, 400)
    page.evaluate("viewer.play(false)")
    for key, seconds, said in (("r", 1, "No goal yet."), ("g", goal["seconds"], "No goal after this moment.")):
        page.evaluate(f"viewer.seek({seconds}); viewer.follow = true")
        page.keyboard.press(key)
        assert page.text_content("#message") == said
        assert page.evaluate("[viewer.seconds, viewer.follow, viewer.rerun]") == [seconds, True, None]


@pytest.mark.slow
def test_an_orange_goal_is_a_triangle_above_its_stem(shown, scored):
    page = shown(scored[0])
    page.evaluate("viewer.play(false); viewer.seek(0); viewer.game.events.forEach(event => (event.team = 1))")
    page.evaluate("viewer.timeline.shown = ''; viewer.draw(0)")
    box = page.locator(".marks .goal").bounding_box()
    clip = {"x": round(box["x"]) - 15, "y": box["y"], "width": 41, "height": 24}
    shot = np.asarray(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB"), np.int64)
    rows = [np.flatnonzero(line) for line in np.abs(shot - (0xFF, 0x93, 0x47)).sum(axis=-1) < 60]
    head, stem = np.concatenate(rows[:11]), np.concatenate(rows[13:])
    assert len(rows[3]) < len(rows[6]) < len(rows[9]) and 8 < np.ptp(head) < 13
    assert np.ptp(stem) < 4 and abs(stem.mean() - head.mean()) < 1.2


@pytest.mark.slow
def test_the_replay_is_seen_from_the_scorers_side(shown, scored):
    file, goal, _ = scored
    page = shown(file)
    page.evaluate(f"viewer.play(false); viewer.seek({goal['seconds'] + 1}); viewer.replayGoal(); viewer.draw(10)")
    camera, ball = page.evaluate("[viewer.stage.camera.position.z, viewer.sample.ball.position.z]")
    assert camera < ball - 3  # blue scores at positive z
    assert page.evaluate("viewer.stage.project(viewer.sample.ball.position, 0)") is not None


# ---------------------------------------------------------------- cameras, links, memory


@pytest.mark.slow
def test_the_director_is_wide_at_kickoffs_and_close_at_play(shown, scored):
    page = shown(scored[0])
    assert page.evaluate("viewer.view") == "director"
    away = "viewer.stage.camera.position.distanceTo(viewer.sample.ball.position)"
    picture(page, 0.2, "director")
    wide = page.evaluate(away)
    places = page.evaluate("viewer.sample.cars.map(car => viewer.stage.project(car.position, 0))")
    size = page.locator("#picture").bounding_box()
    assert all(0 < x < size["width"] and 0 < y < size["height"] for x, y, _ in places)
    picture(page, 4.4, "director")
    assert page.evaluate(away) < 0.6 * wide


@pytest.mark.slow
def test_a_click_follows_a_car_and_dragging_frees_the_camera(shown, scored):
    page = shown(scored[0])
    page.evaluate("viewer.play(false); viewer.seek(1); viewer.stage.cameras.snap = true; viewer.draw(0)")
    at = page.evaluate("viewer.stage.project(viewer.sample.cars[1].position, 0)")
    page.mouse.click(at[0], at[1])
    assert page.evaluate("[viewer.view, viewer.selected]") == ["chase", 1]
    page.evaluate("viewer.camera('director'); viewer.draw(0)")
    page.locator(".tag.team0").click()
    assert page.evaluate("[viewer.view, viewer.selected]") == ["chase", 0]
    page.evaluate("viewer.draw(0)")
    before = page.evaluate("viewer.stage.camera.position.toArray()")
    page.mouse.move(500, 400)
    page.mouse.down()
    page.mouse.move(510, 402)
    page.mouse.move(560, 405, steps=3)
    page.mouse.up()
    page.evaluate("viewer.draw(0)")
    assert page.evaluate("viewer.view") == "free"
    moved = np.linalg.norm(np.subtract(page.evaluate("viewer.stage.camera.position.toArray()"), before))
    assert 0.01 < moved < 15  # from where it was, and not from the stands


@pytest.mark.slow
def test_a_link_leads_to_a_moment_and_is_copied(shown, scored):
    page = shown(scored[0], link="#t=3.5&camera=chase&car=2")
    assert page.evaluate("[viewer.view, viewer.selected]") == ["chase", 1]
    assert 3.5 <= page.evaluate("viewer.seconds") < 8
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("viewer.play(false); viewer.seek(2); viewer.camera('top')")
    page.click("#link")
    page.wait_for_selector("#message:visible")
    assert page.text_content("#message") == "Link copied."
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url.partition("#")[0] + "#t=2.0&camera=top&car=2"
    page.evaluate("location.hash = 't=1&camera=nonsense&car=x&game=7'")
    until(page, "viewer.seconds === 1")
    assert page.evaluate("[viewer.view, viewer.selected, viewer.number]") == ["top", 1, 0]
    page.evaluate("location.hash = 't=2&car=-4&game=1.5'")
    until(page, "viewer.seconds === 2")
    assert page.evaluate("[viewer.selected, viewer.number]") == [0, 0]
    page.evaluate("location.hash = 't=1&car=2.7'")
    until(page, "viewer.seconds === 1")
    assert page.evaluate("viewer.selected") == 1


@pytest.mark.slow
def test_theme_and_camera_are_remembered(shown):
    page = shown(REPLAY)
    page.click("#theme")
    page.keyboard.press("5")
    page.reload()
    ready(page)
    assert page.evaluate("[viewer.dark, viewer.view]") == [False, "top"]


@pytest.mark.slow
def test_a_picture_is_saved_with_names_and_score(shown, scored):
    file, goal, _ = scored
    page = shown(file)
    page.evaluate(f"viewer.play(false); viewer.seek({goal['seconds'] + 0.5})")
    with page.expect_download() as download:
        page.keyboard.press("s")
    saved = np.asarray(Image.open(download.value.path()).convert("RGB"), np.int64)
    assert download.value.suggested_filename.endswith(".png") and saved.shape[0] > 400
    top = saved[10:40].reshape(-1, 3)
    assert (np.abs(top - (0x1F, 0x66, 0xE5)).sum(axis=1) < 30).sum() > 200
    assert (np.abs(top - (0xC9, 0x56, 0x0A)).sum(axis=1) < 30).sum() > 200
    page.keyboard.press("f")
    until(page, "Boolean(document.fullscreenElement)")


@pytest.mark.slow
def test_reduced_motion_and_forced_colours(shown, scored):
    file, goal, _ = scored
    page = shown(file)
    page.emulate_media(reduced_motion="reduce", forced_colors="active")
    page.reload()
    ready(page)
    assert page.evaluate("viewer.view") == "free"
    picture(page, goal["seconds"] + 0.4, "director")
    assert page.evaluate("[viewer.stage.burst.group.visible, viewer.stage.burst.sparks.visible]") == [True, False]
    page.evaluate("viewer.play(true); viewer.advance(1.8); viewer.advance(0.3)")
    assert page.evaluate("viewer.rerun") is None
    page.evaluate("viewer.play(false); viewer.draw(0)")
    colour = "getComputedStyle(document.querySelector('{}')).backgroundColor"
    played, rail = (page.evaluate(colour.format(name)) for name in (".played", ".rail"))
    assert played != rail
    page.focus("#timeline")
    assert page.evaluate("getComputedStyle(document.querySelector('#timeline')).outlineStyle") == "solid"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (844, 390), (390, 844)])
def test_nothing_covers_another_thing(shown, scored, width, height):
    page = shown(scored[0], width, height)
    page.evaluate("viewer.inspect(true)")
    page.wait_for_timeout(300)
    board, bar, panel = (page.locator(f"#{name}").bounding_box() for name in ("board", "bar", "inspector"))
    assert panel["y"] + panel["height"] <= bar["y"] and bar["y"] + bar["height"] <= height
    assert board["x"] >= 0 and board["x"] + board["width"] <= width and board["y"] + board["height"] < bar["y"]
    for button in page.locator("#bar button:visible").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] + box["height"] <= height
    assert page.is_hidden("#message")
