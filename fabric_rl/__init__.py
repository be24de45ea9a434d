"""fabric-rl: actor-critic agents trained with PPO on Lightning Fabric."""

import ast
import os
import sys
from importlib import import_module
from pathlib import Path

from fabric_rl.import_names import OtherNames

# Set before torch is loaded, because its OpenMP reads this only once. Waiting threads spin for half a millisecond, the
# gap between two operations, and then sleep. When they slept at once, learning took 1.4 times as long. When they
# kept spinning on cores that other threads or programs needed, training took up to 16 times as long. A setting of the
# user takes precedence.
if not os.environ.keys() & {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}:
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "10000"}

sys.meta_path.insert(0, OtherNames())  # before the finder for files, which would import a module twice

__version__ = "0.1.0"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_MODULES = {name.name: node.module for node in _STUB.body if isinstance(node, ast.ImportFrom) for name in node.names}
"""Exported names and the modules that they come from: what `__init__.pyi` lists."""
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Return an exported name; its module is imported on first use, since most modules need torch.

    Raises:
        AttributeError: There is no such name.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
