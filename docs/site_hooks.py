"""MkDocs hooks: add pages from outside docs/, adapt links, draw formulas as pictures."""

import html
import io
import re
from pathlib import Path

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUTSIDE = (
    "benchmarks/results/*",
    "configs/*.yaml",
    "examples/*.py",
    "fabric_rl/loop.py",
    "fabric_rl/types.py",
    "fabric_rl/sac/train.py",
    "notebooks/*.ipynb",
    "CITATION.cff",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
)
"""Files outside docs/ that its pages link to."""
FIRST = {"index.md", "install.md", "first_bot.md", "troubleshooting.md", "glossary.md"}
"""Pages that the search ranks first."""
LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(
    r"\$\$(?P<display>.+?)\$\$|^\.\. math::(?P<block>.+?)(?=\n\s*\n|\Z)"
    r"|\$(?! )(?P<inline>[^$]+?)(?<! )\$|:math:`(?P<role>[^`]+)`|(?P<code>`[^`\n]+`)",
    re.DOTALL | re.MULTILINE,
)
"""LaTeX in pages and docstrings."""
SPELLED = {
    r"\\lVert|\\rVert": r"\\|",
    r"\\t?frac *(\w) *(\w)\b": r"\\frac{\1}{\2}",
    r"\\tfrac": r"\\frac",
}
"""LaTeX that matplotlib spells differently."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Draw formulas, in pages and docstrings."""
    config.markdown_extensions.append(Formulas())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files outside docs/ that pages link to."""
    for path in sorted(path for pattern in OUTSIDE for path in ROOT.glob(pattern)):
        files.append(
            File.generated(
                config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)
            )
        )
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Rewrite links for the site; leave benchmarks out of the search and put pages for beginners first."""
    if page.file.src_uri.startswith("benchmarks/"):
        page.meta["search"] = {"exclude": True}
    if page.file.src_uri in FIRST:
        page.meta["search"] = {"boost": 2}
    pieces = CODE.split(markdown)
    pieces[::2] = [
        LINK.sub(lambda link: in_site(link[1], page.file), piece)
        for piece in pieces[::2]
    ]
    # GitHub needs \\| within code in tables, Python-Markdown shows the backslash
    pieces[1::2] = [
        piece if "```" in piece else piece.replace("\\|", "|") for piece in pieces[1::2]
    ]
    return "".join(pieces)


def on_page_content(
    content: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Turn page names in docstrings, such as `docs/sac.md`, into links."""
    if not page.file.src_uri.startswith("api/"):
        return content
    return re.sub(r"docs/(\w+)\.md", r'<a href="../\1.html">\1</a>', content)


def in_site(link: str, file: File) -> str:
    """Return the target of a link within the site; links to elsewhere stay unchanged."""
    target = (Path(file.abs_src_path).parent / link).resolve()
    if "://" in link or not target.is_file():
        return link
    place = target.relative_to(DOCS if target.is_relative_to(DOCS) else ROOT).as_posix()
    return "../" * file.src_uri.count("/") + (
        "index.md" if place == "README.md" else place
    )


class Formulas(Extension, Preprocessor):
    """LaTeX formulas as inline SVG, drawn by matplotlib: the browser loads nothing for them."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after code blocks are taken out (25) and before HTML is (20)."""
        Preprocessor.__init__(self, md)
        md.preprocessors.register(self, "formulas", 24)

    def run(self, lines: list[str]) -> list[str]:
        """Replace formulas by pictures, except inside backticks."""
        return FORMULA.sub(self.picture, "\n".join(lines)).split("\n")

    def picture(self, formula: re.Match[str]) -> str:
        """Return the placeholder of one picture."""
        if formula["code"]:
            return formula["code"]
        text = " ".join(next(group for group in formula.groups() if group).split())
        spelled, svg = text, io.StringIO()
        for latex, matplotlibs in SPELLED.items():
            spelled = re.sub(latex, matplotlibs, spelled)
        depth = math_to_image(
            f"${spelled}$", svg, FontProperties(size=11), dpi=72, format="svg"
        )
        drawing = re.sub(
            r"<metadata>.*?</metadata>|^.*?(?=<svg)",
            "",
            svg.getvalue(),
            flags=re.DOTALL,
        )
        attributes = f'class="formula" role="img" aria-label="{html.escape(text)}"'
        attributes += f' style="vertical-align: {-depth:.2f}px"'
        drawing = drawing.replace("<svg", f"<svg {attributes}", 1)
        if formula["display"] or formula["block"]:
            return f"\n\n{self.md.htmlStash.store(f'<div class=formula>{drawing}</div>')}\n\n"
        return self.md.htmlStash.store(drawing)
