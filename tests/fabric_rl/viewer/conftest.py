import contextlib
import os
import shutil
from importlib import import_module

import pytest

HOW = "browser tests need Chromium and playwright: apt-get install chromium && pip install playwright"
# A picture that does not depend on a graphics card.
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]


@pytest.fixture(scope="session")
def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(HOW)
    try:
        playwright = import_module("playwright.sync_api")
    except ImportError:
        pytest.skip(HOW)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Opens pages; in the end none may have complained, or asked for anything elsewhere."""
    complaints, asked, contexts = [], [], []

    def open_page(url, width=960, height=600, dark=True):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        with contextlib.suppress(Exception):
            context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "file:", "data:"))] == []
