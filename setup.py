"""What pyproject.toml cannot say: in a wheel, agents, envs, configs and template lie inside of fabric_rl.

So a project may have a package `agents` of its own beside the installed fabric-rl (fabric_rl/import_names.py). The
imports of the copies are rewritten on the way. An editable installation is the checkout as it is.
"""

import re
import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

_IMPORT = re.compile(r"^(\s*(?:from|import) )(?=(?:agents|envs)\b)", re.MULTILINE)
inside = ("agents", "envs", "configs", "template")
packages, folders = find_namespace_packages(include=["fabric_rl*", "agents*", "envs*"]), {}
if "editable_wheel" not in sys.argv:
    folders = {f"fabric_rl.{name}": name for name in inside}
    packages = find_namespace_packages(include=["fabric_rl*", *(f"{name}*" for name in inside)])
    packages = [name if name.startswith("fabric_rl") else f"fabric_rl.{name}" for name in packages]


class BuildPy(build_py):
    """Copies modules with their imports of agents and envs as those of fabric_rl.agents and fabric_rl.envs."""

    def build_module(self, module: str, module_file: str, package: str | None) -> tuple[str, bool]:
        """See setuptools."""
        file, copied = super().build_module(module, module_file, package)
        if not self.editable_mode:
            text = Path(module_file).read_text(encoding="utf-8")
            Path(file).write_text(_IMPORT.sub(r"\1fabric_rl.", text), encoding="utf-8", newline="\n")
        return file, copied


setup(packages=packages, package_dir=folders, cmdclass={"build_py": BuildPy})
