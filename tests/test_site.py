"""The documentation as a site: all that is exported is in the reference, and nothing comes from the internet."""

import importlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs_style import odd_phrases

ROOT = Path(__file__).resolve().parents[1]
FETCHED = re.compile(r"""(?:\bsrc=|<link\b[^>]*\bhref=|@import |url\()["']?(?:https?:)?//[^"' >)]+""")
"""What a browser would ask the internet for; links that a reader may follow are not."""


def exported(package):
    """The names that a package exports, as people import them."""
    if hasattr(package, "__all__"):
        return list(package.__all__)
    source = Path(package.__file__).read_text(encoding="utf-8")
    return [
        name for name, again in re.findall(r"^from \S+ import (\w+) as (\w+)$", source, re.MULTILINE) if name == again
    ]


def described():
    pages = (path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md"))
    return [name for text in pages for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("package", "least"),
    [("fabric_rl", 37), ("agents", 7), ("envs", 100), ("fabric_rl.callbacks", 13), ("fabric_rl.signals", 5)],
)
def test_every_exported_name_is_in_the_reference(package, least):
    names = exported(importlib.import_module(package))
    elsewhere = {"fabric_rl.callbacks": exported(importlib.import_module("fabric_rl"))}.get(package, [])
    assert len(names) >= least
    missing = [name for name in names if f"{package}.{name}" not in described() and name not in elsewhere]
    assert missing == ([] if package != "fabric_rl.signals" else ["SignalFactory"])  # a type alias


def test_nothing_is_described_twice():
    assert len(described()) == len(set(described()))


def test_the_generated_reference_is_up_to_date():
    """`python docs/reference.py` would change nothing."""
    reference = runpy.run_path(str(ROOT / "docs/reference.py"))
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == reference["commands_page"]()
    assert (ROOT / "docs/settings.md").read_text(encoding="utf-8") == reference["settings_page"]()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nothing_of_the_internet(tmp_path):
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=variables, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    pages = {path.relative_to(tmp_path / "site").as_posix(): path for path in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "maths.html", "benchmarks/results/pool.html", "api/envs.html"} <= pages.keys()
    for path in [*pages.values(), *(tmp_path / "site").rglob("*.css")]:
        assert FETCHED.findall(path.read_text(encoding="utf-8")) == [], path
    for path in (tmp_path / "site/api").glob("*.html"):
        text = re.sub(r"<(script|style|svg|nav|code).*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.S)
        assert odd_phrases(re.sub(r"<[^>]+>", " ", text)) == [], path
    assert 'id="envs.RocketSimPool"' in pages["api/envs.html"].read_text(encoding="utf-8")
    formulas = pages["maths.html"].read_text(encoding="utf-8")
    assert formulas.count('class="formula"') > 20 and "$" not in re.sub(
        r"<(script|svg).*?</\1>", "", formulas, flags=re.S
    )
