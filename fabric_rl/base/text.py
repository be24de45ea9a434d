"""Text: suggestions for misspelt words, escaped control characters, and columns."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches


def did_you_mean(word: str, known: list[str]) -> str:
    """Return `; did you mean X?` for the known word that is most similar or begins with `word`, or an empty string."""
    word, spelt = word.lower(), {name.lower(): name for name in known}
    close = get_close_matches(word, spelt, n=1) or [name for name in spelt if word and name.startswith(word)]
    return f"; did you mean {spelt[close[0]]}?" if close else ""


def escape_control_characters(text: object, keep: str = "") -> str:
    """Return text with escapes for all invisible characters: control codes, bidirectional marks, lone surrogates.

    Everything that comes from files passes through here before it is shown; the characters in `keep` stay.
    """
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in str(text))


def figure_text(text: str) -> str:
    """Return text that matplotlib draws unchanged: with escapes for invisible characters, and no formulas."""
    return escape_control_characters(text).replace("$", r"\$")


def in_columns(rows: Sequence[Sequence[str]], align: Callable[[str, int], str] = str.ljust) -> str:
    """Return rows of cells as lines, with each column as wide as its longest cell; `align` pads a cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(align, row, widths)).rstrip() for row in rows)
