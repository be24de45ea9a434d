"""Notebooks, pages and reports that show a replay."""

import base64
import gzip
import hashlib
import html
import json
import re
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fabric_rl
from envs.replays.replay import read_replay
from fabric_rl.commands.report import report
from fabric_rl.viewer.page import FOLDER, PAGE, SCRIPT, page_with

ONE_GOAL = Path(__file__).resolve().parents[2] / "fixtures/replays/one_goal.frl"


def until(frame, expression):
    for _ in range(600):
        if frame.evaluate(expression):
            return
        frame.page.wait_for_timeout(100)
    raise TimeoutError(expression)


def test_a_file_and_what_was_read_from_it_are_the_same():
    shown = fabric_rl.show(ONE_GOAL)
    assert shown.replay == ONE_GOAL.read_bytes() == fabric_rl.show(read_replay(ONE_GOAL)).replay
    assert fabric_rl.show(str(ONE_GOAL), height=300)._repr_html_().count("height: 300px") == 1
    assert len(shown._repr_html_()) < 700_000


def test_a_player_is_recorded(tmp_path):
    shown = fabric_rl.show("shooter", "idle", minutes=0.05, team_size=2, seed=3)
    file = tmp_path / "game.frl"
    file.write_bytes(shown.replay)
    found = read_replay(file)
    assert found.about["names"] == ["shooter", "idle"] and found.about["teams"] == [0, 0, 1, 1]
    assert found.games[0].result["seconds"] == 3


def test_a_trained_agent_keeps_its_name(tmp_path):
    shown = fabric_rl.show(fabric_rl.load_trained("school_1v1"), minutes=0.02)
    (tmp_path / "game.frl").write_bytes(shown.replay)
    found = read_replay(tmp_path / "game.frl")
    assert found.about["names"] == ["school_1v1", "chaser"] and found.about["rewards"]


def test_a_trained_agent_keeps_an_environment_that_was_passed(tmp_path):
    trained = fabric_rl.load_trained("school_1v1")
    slower = partial(trained.env, tick_skip=12)
    shown = fabric_rl.show(fabric_rl.load_trained("school_1v1", env=slower), minutes=0.02)
    (tmp_path / "game.frl").write_bytes(shown.replay)
    steps = np.diff(read_replay(tmp_path / "game.frl").games[0].columns["ticks"])
    assert len(steps) > 5 and set(steps) == {12}


@pytest.mark.parametrize(
    ("what", "asked", "message"),
    [
        ("nobody", {}, "nobody"),
        ("chaser", {"minutes": 0}, "minutes must be above 0"),
        ("damaged.frl", {}, "damaged.frl: this is not a fabric-rl replay"),
    ],
)
def test_mistakes(what, asked, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("damaged.frl").write_text("no replay at all")
    with pytest.raises(ValueError, match=message):
        fabric_rl.show(what, **asked)
    with pytest.raises(FileNotFoundError):
        fabric_rl.show("absent.frl")


@pytest.mark.slow
def test_the_page_within_a_notebook(opened, tmp_path):
    """The output of a cell in a page of its own; the frame has an origin of its own, so nothing of the notebook's."""
    shown = fabric_rl.show(ONE_GOAL)
    assert html.unescape(shown._repr_html_()).count("<canvas") == 1
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title><p>cell</p>{shown._repr_html_()}", encoding="utf-8")
    page = opened(file.as_uri())
    frame = page.frames[1]
    until(frame, "Boolean(window.viewer && viewer.frames > 0)")
    assert frame.evaluate("viewer.game.frames") == read_replay(ONE_GOAL).games[0].num_frames
    assert frame.evaluate("origin") == "null"


RECIPE = Path(__file__).resolve().parents[3] / "viewer"


def text(path):
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def sha256(content):
    return hashlib.sha256(content.encode()).hexdigest()


def test_the_bundle_is_that_of_the_recipe():
    """`cd viewer && npm ci && npm run build` after every change of a source."""
    recorded = json.loads(text(FOLDER / "bundle.json"))
    names = ["package.json", "package-lock.json", "build.mjs", *(f"source/{p.name}" for p in RECIPE.glob("source/*"))]
    sources = "".join(f"{name}\n{text(RECIPE / name)}" for name in sorted(names))
    assert recorded["sources"] == sha256(sources)
    assert {name: sha256(text(FOLDER / name)) for name in (PAGE, SCRIPT)} == {n: recorded[n] for n in (PAGE, SCRIPT)}


def test_three_is_pinned_and_its_licence_kept():
    package, lock = (json.loads(text(RECIPE / f"package{kind}.json")) for kind in ("", "-lock"))
    assert package["dependencies"] == {"three": "0.187.0"} and re.fullmatch(
        r"[\d.]+", package["devDependencies"]["esbuild"]
    )
    assert lock["packages"]["node_modules/three"]["version"] == json.loads(text(FOLDER / "bundle.json"))["three"]
    assert "Copyright 2010-" in text(FOLDER / SCRIPT) and "SPDX-License-Identifier: MIT" in text(FOLDER / SCRIPT)


def test_one_page_holds_everything():
    page = page_with(b"a replay </script>")
    inside = dict(re.findall(r'<script id="(\w+)" type="text/plain">([^<]*)</script>', page))
    assert base64.b64decode(inside["replay"]) == b"a replay </script>"
    assert gzip.decompress(base64.b64decode(inside["viewer"])) == (FOLDER / SCRIPT).read_bytes()
    assert not re.search(r'(src|href)="(?!data:,)', page) and "http" not in page.replace(inside["viewer"], "")
    assert page_with(b"x") == page_with(b"x")
    assert len(page_with(bytes(500_000))) < 1_000_000  # a game of five minutes takes half of that


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
    page.locator("#goals button").last.click()  # the games come first, then the goals
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
