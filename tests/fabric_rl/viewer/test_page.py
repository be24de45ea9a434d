"""What is committed of the viewer is what its recipe makes of its sources; and the page that carries a replay."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

from fabric_rl.viewer.page import FOLDER, PAGE, SCRIPT, page_with

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
