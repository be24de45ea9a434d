"""`fabric-rl new`: creates a project from the template."""

import keyword
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from unicodedata import normalize

from fabric_rl.import_names import shipped

_NAME = "my_bot"
"""Name of the template's project."""
_RESERVED = ("configs", "conftest", "runs", "tests")
"""Names with another meaning in a project."""


def new(folder: Path, /) -> int:
    """Create the folder of a new project: its own reward and agent, a configuration, a notebook and tests.

    Args:
        folder: New or empty folder; its last part becomes the name of the bot and of its Python package.
    """
    name = folder.name
    if not name.isidentifier() or keyword.iskeyword(name) or name != normalize("NFKC", name):  # the form Python imports
        raise ValueError(
            f"{name or folder} is not a valid name for a Python package; use letters, digits and _, a letter first"
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise FileExistsError(f"{folder} is not empty; choose a new folder")
    spec = find_spec(name) if name not in sys.modules else None
    places = () if spec is None or spec.origin is not None else spec.submodule_search_locations or ()
    is_here = {Path(place).resolve() for place in places} == {folder.resolve()}  # the empty folder counts as a package
    if name in _RESERVED or name in sys.modules or (spec is not None and not is_here):
        raise ValueError(f"{name} is reserved or used by another Python package; choose another name")
    template = shipped("template")
    for source in sorted(template.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            target = folder / str(source.relative_to(template)).replace(_NAME, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text(encoding="utf-8").replace(_NAME, name), encoding="utf-8", newline="\n")
    print(
        f"made {folder}; next:\n  cd {quote(folder.as_posix())}\n  fabric-rl train --config {name}.yaml --run_id first"
    )
    return 0
