"""The documentation as a site: all that is exported is in the reference, and nothing comes from the internet."""

import importlib
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import agents
import envs
import fabric_rl
from tests.test_docs_style import odd_phrases

ROOT = Path(__file__).resolve().parents[1]
API = sorted((ROOT / "docs/api").glob("*.md"))
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
    pages = (path.read_text(encoding="utf-8") for path in API)
    return [name for text in pages for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]


def packages():
    """Every package of the project."""
    for top in (agents, envs, fabric_rl):
        yield top
        for found in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if found.ispkg:
                yield importlib.import_module(found.name)


def test_every_exported_name_is_in_the_reference_and_every_name_there_exists():
    text = "".join(path.read_text(encoding="utf-8") for path in API)
    known = {id(pkgutil.resolve_name(name)) for name in described()}  # an AttributeError names what is gone
    names = {(package.__name__, name): getattr(package, name) for package in packages() for name in exported(package)}
    assert len(names) > 240
    missing = [
        ".".join(name)
        for name, value in names.items()
        if id(value) not in known and not (isinstance(value, int) and f"`{name[1]}`" in text)  # columns of controls
    ]
    assert missing == []
    assert set(re.findall(r"\]\[([\w.]+)\]", text)) <= set(described())


def test_every_exported_name_is_used_on_a_page_or_in_an_example():
    """A page outside of the reference names it, or code does: of the reference, a preset, a notebook, its docstring."""
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("configs/*.yaml"), *ROOT.glob("notebooks/*.ipynb")]
    used = {word for path in pages for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    used |= {word for example in examples() for word in re.findall(r"\w+", example.values[1])}
    names = {name.rpartition(".")[2] for name in described()}
    assert sorted(names - used) == []


def examples():
    found = (
        (path.stem, re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)) for path in API
    )
    return [pytest.param(page, code, id=f"{page}{number}") for page, all_ in found for number, code in enumerate(all_)]


@pytest.mark.parametrize(("page", "code"), examples())
def test_the_examples_of_the_reference_run(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"docs/api/{page}.md", "exec"), {"__name__": "example"})


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
