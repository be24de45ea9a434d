"""Results as Markdown: what a benchmark has measured, and below it what people read in it."""

from pathlib import Path

READING = "\n## Reading\n"
"""Everything from here on is written by hand."""


def write_report(path: Path, text: str) -> None:
    """Writes the text; what the file has under "Reading" stays."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    _, heading, by_hand = old.partition(READING)
    path.write_text(text.rstrip("\n") + "\n" + heading + by_hand, encoding="utf-8")
