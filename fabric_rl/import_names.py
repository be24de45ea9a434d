"""Both names of `agents` and `envs`, which lie beside fabric_rl in its repository, and in it where it is installed.

In a checkout the module is `agents.ppo`, and `fabric_rl.agents.ppo` another name of it. An installed wheel has
`fabric_rl.agents.ppo`, since a project may have a package `agents` of its own; `agents.ppo` is another name of it where
there is none. Either way every module exists once.
"""

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

_PACKAGES = ("agents", "envs")
_HERE = Path(__file__).parent
INSTALLED = all((_HERE / name).is_dir() for name in _PACKAGES)
"""Whether they lie inside of fabric_rl."""
_PATH = re.compile(rf"(?<![\w./\\-])(?:fabric_rl\.)?((?:{'|'.join(_PACKAGES)})(?:\.[A-Za-z_]\w*)+)(?![\w/\\-])")

_NAMES = ("--config", "--run_id", "--runs_dir", "--resume", "--initialize_from", "--out", "--group")
"""Flags of files and runs, which may be called like a class."""


class OtherNames(MetaPathFinder, Loader):
    """Finds the modules of both packages under the names that are not their own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`; None for any other module, and for one of the user's own."""
        name = fullname.removeprefix("fabric_rl.")
        top, inside, _ = name.partition(".")
        if top not in _PACKAGES or (fullname == name) is not INSTALLED:
            return None
        if inside:
            taken = sys.modules.get(top) is not sys.modules.get(f"fabric_rl.{top}")
        else:
            taken = INSTALLED and any(other.find_spec(top, path) for other in sys.meta_path if other is not self)
        own = f"fabric_rl.{name}" if INSTALLED else name
        return None if taken or find_spec(own) is None else ModuleSpec(fullname, self, origin=own)

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module itself in the place of the new one."""
        spec = module.__spec__
        assert spec is not None and spec.origin is not None
        sys.modules[spec.name] = import_module(spec.origin)


def shipped(name: str) -> Path:
    """The folder of that name that comes with fabric-rl: in a checkout it lies beside the package."""
    return (_HERE if INSTALLED else _HERE.parent) / name


def class_path(made: type) -> str:
    """Module and name of a class as files have them: the same in a checkout and where fabric-rl is installed."""
    path = f"{made.__module__}.{made.__qualname__}"
    return path.removeprefix("fabric_rl.") if _PATH.fullmatch(path) else path


def spelt_here(text: str) -> str:
    """A text, such as settings, with the class paths of both packages as this installation spells them.

    What names no class or function there, such as a file `agents.yaml`, stays. Where a project has a package of the
    same name, `agents.X` is its own X if it has one, else that of fabric-rl.
    """
    return _PATH.sub(_here, text)


def words_here(words: Sequence[str]) -> list[str]:
    """The words of a command line, their class paths as by `spelt_here`; names of files and runs stay."""
    kept = list(words)
    for i, word in enumerate(words):
        flag, equals, value = word.partition("=") if word.startswith("--") else (words[i - 1] if i else "", "", word)
        if flag not in _NAMES and not os.path.exists(value):
            kept[i] = f"{flag}={spelt_here(value)}" if equals else spelt_here(word)
    return kept


def _here(found: re.Match[str]) -> str:
    path, name = found[0], found[1]
    here = f"fabric_rl.{name}" if INSTALLED else name
    if path == here:
        return path
    try:
        own = resolve_name(here)
    except (AttributeError, ImportError):
        return path
    if not callable(own):
        return path
    top = find_spec(name.partition(".")[0])
    if not INSTALLED or (top is not None and (isinstance(top.loader, OtherNames) or top.name.startswith("fabric_rl."))):
        return here
    try:
        return here if resolve_name(name) == own else name  # of a class method there are many
    except AttributeError:
        return here
    except Exception:  # a file of the project's own fails: whoever imports it next says how
        return name
