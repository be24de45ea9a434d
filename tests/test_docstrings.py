"""Every public method says what it does: itself, or by the docstring of the one that it overrides."""

import importlib
import inspect
import pkgutil

import pytest

import agents
import envs
import fabric_rl


class Quiet(envs.Reward):
    def compute(self, state):
        return state

    def alone(self):
        return 0


def silent_methods(kind):
    methods = (name for name, value in vars(kind).items() if inspect.isroutine(value) or type(value) is property)
    return [name for name in methods if not name.startswith("_") and not inspect.getdoc(getattr(kind, name))]


@pytest.mark.parametrize("package", [agents, envs, fabric_rl])
def test_every_public_method_is_documented(package):
    silent = []
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            for kind in vars(importlib.import_module(found.name)).values():
                if inspect.isclass(kind) and kind.__module__ == found.name and not kind.__name__.startswith("_"):
                    silent += [f"{found.name}.{kind.__name__}.{name}" for name in silent_methods(kind)]
    assert silent == []


def test_a_method_that_neither_says_anything_nor_overrides_is_found():
    assert silent_methods(Quiet) == ["alone"]
    assert inspect.getdoc(Quiet.compute) == inspect.getdoc(envs.Reward.compute)
