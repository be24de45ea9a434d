"""The page of `fabric-rl report` in a real browser."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from envs.replays.replay import read_replay
from fabric_rl.commands.report import report

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
REPLAY = FIXTURES / "replays/one_goal.frl"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    shutil.copytree(FIXTURES / "run_of_0_1_0/tiny", folder)
    shutil.copy(REPLAY, folder)
    assert report("tiny", runs_dir=folder.parent) == 0
    return folder / "report.html"


@pytest.mark.slow
def test_curves_are_drawn_and_say_their_numbers(file, opened):
    page = opened(file.as_uri())
    shown = page.locator("#curves > .charts figure")
    assert shown.count() == 4 and shown.locator("svg polyline").count() == 4
    points = shown.nth(1).locator("polyline").get_attribute("points").split()
    touches = page.evaluate("data.curves['game/touches_per_minute']")
    assert len(points) == len(touches[0])
    heights = [float(point.split(",")[1]) for point in points]
    assert heights.index(min(heights)) == touches[1].index(max(touches[1]))
    assert shown.nth(1).locator("output").text_content() == "last 0"
    shown.nth(1).scroll_into_view_if_needed()
    box = shown.nth(1).locator("svg").bounding_box()
    where = 52 + (box["width"] - 52 - 12) * touches[0][6] / touches[0][-1]  # between its margins
    page.mouse.move(box["x"] + where - 0.5, box["y"] + 50)
    assert shown.nth(1).locator("output").text_content().startswith("3.516 at 1")
    assert shown.nth(0).locator(".stage").count() == 1 and shown.nth(0).locator(".milestone").count() == 2
    page.click("summary >> text=ppo, 15 curves")
    lines = page.locator("details[open] svg polyline")
    lines.nth(14).wait_for(state="attached")
    assert lines.count() == 15


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1180, False)])
def test_it_fits_a_phone_in_light_and_dark(file, opened, width, dark):
    page = opened(file.as_uri(), width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) < 200) == dark
    drawn = page.locator("figure svg").first
    assert drawn.bounding_box()["width"] == pytest.approx(float(drawn.get_attribute("viewBox").split()[2]), abs=1)


@pytest.mark.slow
def test_a_goal_is_watched_in_the_page(file, opened):
    sync_api = pytest.importorskip("playwright.sync_api")
    page = opened(file.as_uri())
    assert page.locator("iframe").is_hidden()
    page.click("#goals button")
    page.wait_for_selector("iframe:visible")
    for _ in range(600):
        frame = page.frames[-1]
        with suppress(sync_api.Error):  # it still navigates
            if frame is not page.main_frame and frame.evaluate("Boolean(window.viewer && viewer.frames > 0)"):
                break
        page.wait_for_timeout(100)
    game = read_replay(REPLAY).games[0]
    goal = next(event for event in game.events if event["kind"] == "goal")
    assert frame.evaluate("viewer.game.frames") == 7 * 15 + 1
    assert frame.evaluate("viewer.game.length") == pytest.approx(7, abs=0.1)
    assert frame.evaluate("viewer.game.events.at(-1).kind") == "goal" and goal["seconds"] > 7
