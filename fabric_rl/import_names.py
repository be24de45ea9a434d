"""Aliases of the packages `agents` and `envs`, which are next to fabric_rl in a checkout, but inside it when installed.

In a checkout, the module is `agents.ppo`, and `fabric_rl.agents.ppo` is its alias. An installed wheel contains
`fabric_rl.agents.ppo`, because a project may have its own package `agents`; there, `agents.ppo` is the alias. Names
that the project's `agents` lacks are looked up in fabric-rl's, so `agents.MyAgent` and `agents.PPOLightningAgent` both
work. Every module exists only once.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGES = ("agents", "envs")
_HERE = Path(__file__).parent
_LONG = tuple(f"fabric_rl.{name}." for name in _PACKAGES)
INSTALLED = all((_HERE / name).is_dir() for name in _PACKAGES)
"""True if both packages are inside fabric_rl."""


class OtherNames(MetaPathFinder, Loader):
    """Import hook that resolves the aliases of both packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an alias, or of a project's own package completed by fabric-rl's, or None."""
        name = fullname.removeprefix("fabric_rl.")
        top, inside, _ = name.partition(".")
        if top not in _PACKAGES or (fullname == name) is not INSTALLED:
            return None
        if INSTALLED and (not inside or sys.modules.get(top) is not sys.modules.get(f"fabric_rl.{top}")):
            others = (other.find_spec(fullname, path) for other in sys.meta_path if other is not self)
            own = next(filter(None, others), None)
            if own is not None:
                return own if inside else _completed(own)
        original = f"fabric_rl.{name}" if INSTALLED else name
        return None if find_spec(original) is None else ModuleSpec(fullname, self, origin=original)

    def exec_module(self, module: ModuleType) -> None:
        """Replace an alias with the original module, or complete a project's own package."""
        spec = module.__spec__
        assert spec is not None
        if spec.origin is None:  # a folder without __init__.py
            _complete(module)
        else:
            sys.modules[spec.name] = import_module(spec.origin)


def _completed(spec: ModuleSpec) -> ModuleSpec:
    """Return the spec of a project's own package, changed so that loading also completes the package."""
    loader = spec.loader
    if spec.origin is None or loader is None:
        spec.loader = OtherNames()
        return spec
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        _complete(module)

    setattr(loader, "exec_module", exec_module)  # noqa: B010 - only on this loader
    return spec


def _complete(module: ModuleType) -> None:
    """Let a package look up missing names in fabric-rl's package of the same name."""

    def missing(name: str) -> Any:  # noqa: ANN401 - anything in fabric-rl's package
        ours = import_module(f"fabric_rl.{module.__name__}")
        if name.startswith("__") or not hasattr(ours, name):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(ours, name)

    vars(module).setdefault("__getattr__", missing)


def shipped(name: str) -> Path:
    """Return the folder `name` that is shipped with fabric-rl; in a checkout, it is next to the package."""
    return (_HERE if INSTALLED else _HERE.parent) / name


def class_path(cls: type) -> str:
    """Return the path of a class as written to files; it is the same in a checkout and in an installation."""
    return short_path(f"{cls.__module__}.{cls.__qualname__}")


def short_path(path: str) -> str:
    """Return `envs.X` for `fabric_rl.envs.X`, and any other text unchanged."""
    return path.removeprefix("fabric_rl.") if path.startswith(_LONG) else path
