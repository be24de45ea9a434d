"""The language and the layout of the pages: no code wider than the site shows, none of our old private phrases."""

import re
from pathlib import Path

import pytest

from tests.docs_blocks import PAGES, blocks

ROOT = Path(__file__).resolve().parents[1]
WIDEST = 88
"""Characters that a line of code has room for at 1280 pixels (docs/site.css)."""
PROSE = (
    *PAGES,
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/api/{p.name}" for p in (ROOT / "docs/api").glob("*.md")),
)
ODD = {
    r"\b(goes|go|gone|going) on with\b": "continues, resumes",
    r"\b(goes|gone) on\b": "continues, resumes",
    r"\bof (its|your|their) own\b": "its own, your own; usually nothing",
    r"\bof yours\b": "your",
    r"\bsays? so\b": "prints, logs, reports",
    r"\bcomes? along\b": "included",
    r"\bfrom nothing\b": "from scratch",
    r"\bto the bit\b": "bit-identical",
    r"\bbit for bit\b": "bit-identical",
    r"\bfirst states\b": "initial states",
    r"\bdrawn actions\b": "sampled actions",
    r"\blikeliest\b": "most probable",
    r"\btold apart\b": "distinguishable",
    r"\banew\b": "again, restarts",
    r"\bonce more\b": "again, repeat",
    r"\beverybody against\b": "round robin",
    r"\bmates\b": "teammates",
    r"\bthe way of the\b": "flow",
    r"\bhas to lie\b|\blies in\b": "is in, is stored in",
    r"(?:^|[.!?] )Who (?!is|are|can|am)": "anyone who, a bot that",
    r"—": "a comma, a colon or a new sentence",
    r"fabric-rl\[": "the package's own name: there is no release yet",
}
"""Phrases that a reader stumbles over, and the usual words."""


def odd_phrases(text):
    """Return what of `ODD` is in a text, with the usual words."""
    return [f"{m[0]!r} -> {usual}" for odd, usual in ODD.items() for m in re.finditer(odd, text, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES)
def test_no_line_of_code_is_wider_than_the_site_shows(page):
    wide = [line for block in blocks(page) for line in block.text.splitlines() if len(line) > WIDEST]
    assert wide == []


@pytest.mark.parametrize("page", PROSE)
def test_the_pages_speak_plain_english(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert odd_phrases(text) == []


def test_the_readme_fits_on_two_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
