"""Every name that pages and notebooks tell people to import, or to name in a configuration, is there."""

import ast
import json
import re
from importlib import import_module

import pytest

from tests.docs_blocks import PAGES, ROOT, blocks

OUR_OWN = ("agents", "envs", "fabric_rl", "train_fabric")
NOTEBOOKS = [f"notebooks/{path.name}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
PATH = re.compile(rf"(?:class_path: |--[\w.]+\+?[ =]|`)((?:{'|'.join(OUR_OWN)})(?:\.[a-z]\w*)*\.[A-Z]\w*)")
"""A class path: in YAML, behind a flag, or as a word of code."""
EXAMPLES = {"agents.MyAgent"}
"""Classes of the reader's own project."""


def sources(document):
    """All text of a page or notebook, and its Python."""
    if document.endswith(".ipynb"):
        cells = json.loads((ROOT / document).read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        return "\n".join("".join(cell["source"]) for cell in cells), code
    code = [block.text for block in blocks(document) if block.language == "python"]
    return (ROOT / document).read_text(encoding="utf-8"), code


def printed_names(document):
    """Dotted names of ours: those that are imported, and class paths."""
    text, code = sources(document)
    found = set(PATH.findall(text))
    for part in code:
        for node in ast.walk(ast.parse(re.sub(r"(?m)^[%!].*$", "", part))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.partition(".")[0] in OUR_OWN} - EXAMPLES


def exists(name):
    module, _, attribute = name.rpartition(".")
    try:
        return not module or hasattr(import_module(module), attribute) or bool(import_module(name))
    except ImportError:
        return False


@pytest.mark.parametrize("document", [*PAGES, *NOTEBOOKS])
def test_names_that_are_printed_exist(document):
    assert [name for name in sorted(printed_names(document)) if not exists(name)] == []


def test_names_are_found_and_missing_ones_told():
    found = set().union(*map(printed_names, [*PAGES, *NOTEBOOKS]))
    assert len(found) > 150 and {"envs.RocketSimPool", "agents.SACLightningAgent", "fabric_rl.train"} <= found
    assert exists("fabric_rl.runs.checkpoint") and not exists("envs.RocketSimPol") and not exists("envs.no.Such")
