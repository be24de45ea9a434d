"""Results as Markdown: what a benchmark has measured, and below it what people read in it."""

import re
from pathlib import Path

READING = re.compile(r"^## Reading[ \t]*$", re.MULTILINE)
"""Everything from here on is written by hand."""
THEMELESS = {
    "font.size": 14,
    "savefig.transparent": True,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#808080"),
}
"""Settings of matplotlib for pictures that are readable on a light and on a dark page."""


def write_report(path: Path, text: str) -> None:
    """Writes the text; what the file has under "Reading" stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    old = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    by_hand = READING.search(old)
    path.write_text(text.rstrip("\n") + "\n" + ("\n" + old[by_hand.start() :] if by_hand else ""), encoding="utf-8")
