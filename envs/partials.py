"""What a factory builds: `functools.partial`s, also those that jsonargparse hands out, taken apart and written down."""

import dataclasses
import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Call(NamedTuple):
    """What a factory comes to: `function(*args, **settings)`."""

    function: Callable[..., Any]
    """A class, or a function."""
    args: tuple[Any, ...]
    settings: dict[str, Any]

    def named(self) -> dict[str, Any]:
        """All arguments by the names of the function's parameters; a TypeError if it does not take them."""
        signature = inspect.signature(self.function)
        bound = signature.bind_partial(*self.args, **self.settings)
        return dict(zip(signature.parameters, bound.args, strict=False)) | bound.kwargs


def taken_apart(factory: Callable[..., Any]) -> Call:
    """What `factory` calls in the end.

    jsonargparse's partials are of a function that makes an object of a class, which is its first argument that is a
    class; what counts is that class.
    """
    args: tuple[Any, ...] = ()
    settings: dict[str, Any] = {}
    while isinstance(factory, functools.partial):
        args, settings = (*factory.args, *args), factory.keywords | settings
        factory = factory.func
    made = next((at for at, argument in enumerate(args) if inspect.isclass(argument)), None)
    if made is not None and not inspect.isclass(factory):
        factory, args = args[made], args[made + 1 :]
    return Call(factory, args, settings)


def as_settings(value: Any) -> Any:  # noqa: ANN401 - whatever a configuration may hold
    """A setting in the words of a configuration file: `{class_path: ..., init_args: ...}` for what has to be built.

    An object of a dataclass is written by its fields; any other by the attributes that are called like its
    constructor's parameters, if what they build again is the same.

    Args:
        value: A number, a text, a class or function of a module, a partial of one, such an object; or several of them.

    Raises:
        ValueError: It cannot be written; one line that begins with what it is.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [as_settings(item) for item in value]
    if isinstance(value, Mapping):
        return {name: as_settings(item) for name, item in value.items()}
    if inspect.isclass(value) or inspect.isfunction(value):
        return _import_path(value)
    if isinstance(value, functools.partial):
        call = taken_apart(value)
        made, settings = call.function, call.named()
    else:
        made, settings = type(value), _settings_of(value)
    return {"class_path": _import_path(made)} | ({"init_args": as_settings(settings)} if settings else {})


def _import_path(made: Callable[..., Any]) -> str:
    """The shortest one: packages export from files that may move."""
    name, module = getattr(made, "__qualname__", "an object"), getattr(made, "__module__", "__main__")
    if module == "__main__" or "<" in name:
        raise ValueError(f"{name.rpartition('.')[2]} is not in a module that can be imported")
    parts = module.split(".")
    shorter = (".".join(parts[:end]) for end in range(1, len(parts)))
    exported = (prefix for prefix in shorter if getattr(sys.modules.get(prefix), name, None) is made)
    return f"{next(exported, module)}.{name}"


def _settings_of(made: object) -> dict[str, Any]:
    """What an object was built with; a ValueError if it does not remember it."""
    kept = getattr(made, "__dict__", {})
    try:
        names = inspect.signature(type(made)).parameters
        if dataclasses.is_dataclass(made) and names.keys() == {f.name for f in dataclasses.fields(made) if f.init}:
            return {name: getattr(made, name) for name in names}
        content = pickle.dumps(made)
        settings = {name: kept[own] for name in names for own in (name, f"_{name}") if own in kept}
        if pickle.dumps(type(made)(**settings)) == content:
            return settings
    except Exception:  # whatever a class of the user's own raises: it cannot be built again
        pass
    raise ValueError(f"{type(made).__name__} is an object that does not remember how it was built")
