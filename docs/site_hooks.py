"""What MkDocs does besides: README.md is the first page, files outside of docs/ are found, formulas become pictures."""

import html
import io
import re
from pathlib import Path

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
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(?! )([^$]+?)(?<! )\$", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds README.md as the first page, and what lies outside of docs/."""
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / "README.md")))
    for path in sorted(path for pattern in OUTSIDE for path in ROOT.glob(pattern)):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are in the site, and formulas as pictures; code stays as it is."""
    pieces = CODE.split(markdown)
    for i in range(0, len(pieces), 2):
        pieces[i] = FORMULA.sub(drawn, LINK.sub(lambda link: in_site(link[1], page.file), pieces[i]))
    return "".join(pieces)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages that docstrings name, `docs/sac.md`, become links in the reference."""
    if not page.file.src_uri.startswith("api/"):
        return content
    return re.sub(r"docs/(\w+)\.md", r'<a href="../\1.html">\1</a>', content)


def in_site(link: str, file: File) -> str:
    """The target of a link of the repository, as the site has it; every other one unchanged."""
    source = Path(file.abs_src_path)
    target = (source.parent / link).resolve()
    if "://" in link or not target.is_file():
        return link
    place = target.relative_to(DOCS if target.is_relative_to(DOCS) else ROOT).as_posix()
    up = "../" * file.src_uri.count("/")
    return up + ("index.md" if place == "README.md" else place)


def drawn(formula: re.Match[str]) -> str:
    """LaTeX as a picture in the text, by matplotlib: a browser needs nothing for it."""
    display, inline = formula.groups()
    text, svg = " ".join((display or inline).split()), io.StringIO()
    depth = math_to_image(f"${text}$", svg, FontProperties(size=11), dpi=72, format="svg")
    picture = svg.getvalue()[svg.getvalue().index("<svg") :].replace("\n", " ")
    label = html.escape(text, quote=True)
    picture = picture.replace("<svg", f'<svg class="formula" role="img" aria-label="{label}"', 1)
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture)
    if display:
        return f'<div class="formula">{picture}</div>'
    return picture.replace("<svg", f'<svg style="vertical-align: {-depth:.2f}px"', 1)
