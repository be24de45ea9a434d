"""What MkDocs does besides: README.md is the first page, files outside of docs/ are found, formulas become pictures."""

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
OUTSIDE = ("benchmarks/results/*", "configs/*.yaml", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
"""Files that pages of docs/ link to, by their paths in the repository."""
LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(
    r"\$\$(?P<display>.+?)\$\$|^\.\. math::(?P<block>.+?)(?=\n\s*\n|\Z)"
    r"|\$(?! )(?P<inline>[^$]+?)(?<! )\$|:math:`(?P<role>[^`]+)`|(?P<code>`[^`\n]+`)",
    re.DOTALL | re.MULTILINE,
)
"""LaTeX of pages, and of docstrings."""
SPELLED = {r"\\lVert|\\rVert": r"\\|", r"\\t?frac *(\w) *(\w)\b": r"\\frac{\1}{\2}", r"\\tfrac": r"\\frac"}
"""What matplotlib spells otherwise than LaTeX."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Draws formulas, in pages and docstrings."""
    config.markdown_extensions.append(Formulas())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds README.md as the first page, and what lies outside of docs/."""
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / "README.md")))
    for path in sorted(path for pattern in OUTSIDE for path in ROOT.glob(pattern)):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are in the site; code stays as it is."""
    pieces = CODE.split(markdown)
    pieces[::2] = [LINK.sub(lambda link: in_site(link[1], page.file), piece) for piece in pieces[::2]]
    return "".join(pieces)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages that docstrings name, `docs/sac.md`, become links in the reference."""
    if not page.file.src_uri.startswith("api/"):
        return content
    return re.sub(r"docs/(\w+)\.md", r'<a href="../\1.html">\1</a>', content)


def in_site(link: str, file: File) -> str:
    """The target of a link of the repository, as the site has it; every other one unchanged."""
    target = (Path(file.abs_src_path).parent / link).resolve()
    if "://" in link or not target.is_file():
        return link
    place = target.relative_to(DOCS if target.is_relative_to(DOCS) else ROOT).as_posix()
    return "../" * file.src_uri.count("/") + ("index.md" if place == "README.md" else place)


class Formulas(Extension, Preprocessor):
    """LaTeX as pictures in the text, drawn by matplotlib: a browser needs nothing for them."""

    def extendMarkdown(self, md: Markdown) -> None:
        """After code blocks are taken out (25), before HTML is (20)."""
        Preprocessor.__init__(self, md)
        md.preprocessors.register(self, "formulas", 24)

    def run(self, lines: list[str]) -> list[str]:
        """Puts pictures where formulas are; what stands in backticks stays."""
        return FORMULA.sub(self.picture, "\n".join(lines)).split("\n")

    def picture(self, formula: re.Match[str]) -> str:
        """The place of one picture in the text."""
        if formula["code"]:
            return formula["code"]
        text = " ".join(next(group for group in formula.groups() if group).split())
        spelled, svg = text, io.StringIO()
        for latex, matplotlibs in SPELLED.items():
            spelled = re.sub(latex, matplotlibs, spelled)
        depth = math_to_image(f"${spelled}$", svg, FontProperties(size=11), dpi=72, format="svg")
        drawing = re.sub(r"<metadata>.*?</metadata>|^.*?(?=<svg)", "", svg.getvalue(), flags=re.DOTALL)
        attributes = (
            f'class="formula" role="img" aria-label="{html.escape(text)}" style="vertical-align: {-depth:.2f}px"'
        )
        drawing = drawing.replace("<svg", f"<svg {attributes}", 1)
        if formula["display"] or formula["block"]:
            return f"\n\n{self.md.htmlStash.store(f'<div class=formula>{drawing}</div>')}\n\n"
        return self.md.htmlStash.store(drawing)
