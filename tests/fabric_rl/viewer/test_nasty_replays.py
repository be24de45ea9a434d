"""Replays made to stop the browser's page, or to take all memory: it says one line, or shows them, and stays alive."""

import pytest

from fabric_rl.viewer.page import page_with
from tests.campaigns.mutated_replays import NASTY

pytestmark = pytest.mark.slow
SHOWN = {
    "a second header",
    "columns of names of objects",
    "goals without a score",
    "a huge time",
    "an infinite time",
    "infinite places",
}
"""Those of which there is something to see."""
MS = 60_000
FRAMES = "new Promise(done => { let n = 20; const next = () => (n-- ? requestAnimationFrame(next) : done()); next(); })"


@pytest.mark.parametrize("name", NASTY)
def test_the_page_says_one_line_and_stays_alive(chromium, tmp_path, name):
    file = tmp_path / "game.html"
    file.write_text(page_with(NASTY[name]()), encoding="utf-8")
    page = chromium.new_page()
    try:
        page.set_default_timeout(MS)
        page.goto(file.as_uri())
        told = page.locator("body.ready, #message:not([hidden])").first
        told.wait_for(state="attached")
        page.locator("#help").dispatch_event("click")
        page.locator("#keys[open]").wait_for()
        page.evaluate(FRAMES)  # what fails, fails when it is drawn, also by the inspector, which is open
        message = page.locator("#message").text_content()
        assert "\n" not in message and (message.startswith("This ") or name in SHOWN)
    finally:
        page.close()
