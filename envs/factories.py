"""Objects and configuration: inspect partials (also jsonargparse's), build from class paths, convert to dicts."""

import dataclasses
import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from pydoc import ErrorDuringImport, locate
from typing import Any, NamedTuple

import numpy as np


class FactoryCall(NamedTuple):
    """A call `function(*args, **settings)`."""

    function: Callable[..., Any]
    """A class, or a function."""
    args: tuple[Any, ...]
    settings: dict[str, Any]

    def lacks(self, name: str) -> bool:
        """Return True if the function accepts an argument of that name, and the settings do not have it."""
        parameters = inspect.signature(self.function).parameters.values()
        accepts = any(each.name == name or each.kind is each.VAR_KEYWORD for each in parameters)
        return accepts and name not in self.settings

    def arguments(self) -> dict[str, Any]:
        """Return all arguments by parameter name; raise a TypeError if the function does not accept them."""
        signature = inspect.signature(self.function)
        bound = signature.bind_partial(*self.args, **self.settings)
        return dict(zip(signature.parameters, bound.args, strict=False)) | bound.kwargs


def unwrap_partial(factory: Callable[..., Any]) -> FactoryCall:
    """Return the innermost call of nested partials.

    jsonargparse wraps a class into a partial of a helper function that takes the class as an argument; the returned
    call is then the call of the class itself.
    """
    args: tuple[Any, ...] = ()
    settings: dict[str, Any] = {}
    while isinstance(factory, functools.partial):
        args, settings = (*factory.args, *args), factory.keywords | settings
        factory = factory.func
    made = next((at for at, argument in enumerate(args) if inspect.isclass(argument)), None)
    if made is not None and not inspect.isclass(factory):
        factory, args = args[made], args[made + 1 :]
    return FactoryCall(factory, args, settings)


def from_class_path(class_path: str, kind: type[Any], inner: str = "") -> Any:  # noqa: ANN401 - an object of that kind
    """Create an object of class `kind` from a class path such as `envs.AdvancedObs`, `AdvancedObs` or `my.MyObs`.

    A class with a parameter `inner` wraps an object created from the class path `inner`.

    Raises:
        ValueError: The class does not exist, is not a subclass of `kind`, or needs other arguments.
    """
    try:
        made: Any = locate(class_path if "." in class_path else f"{__package__}.{class_path}")
    except ErrorDuringImport as error:
        raise ValueError(f"no class {class_path!r} ({error.value})") from error
    if made is None:
        raise ValueError(f"no class {class_path!r}: the module or the name in it does not exist")
    if not (isinstance(made, type) and issubclass(made, kind)):
        raise ValueError(f"{class_path!r} is not a subclass of {kind.__name__}")
    wraps = inner and "inner" in inspect.signature(made).parameters
    try:
        return made(from_class_path(inner, kind)) if wraps else made()
    except TypeError as error:
        raise ValueError(f"{class_path} cannot be built without arguments ({error})") from error


def to_config(value: Any) -> Any:  # noqa: ANN401 - whatever a configuration may hold
    """Convert a setting to the format of a configuration file, with `{class_path: ..., init_args: ...}` for objects.

    A dataclass object is represented by its fields; any other object by the attributes with the names of its
    constructor's parameters, if an object built from them pickles to the same bytes.

    Args:
        value: A number, a string, a class or function of a module, a partial of one, or an object; or a collection of
            these.

    Raises:
        ValueError: The value cannot be written as configuration; the message is one line that begins with its name.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [to_config(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_config(item) for name, item in value.items()}
    if inspect.isclass(value) or inspect.isfunction(value):
        return _import_path(value)
    if isinstance(value, functools.partial):
        call = unwrap_partial(value)
        made, settings = call.function, call.arguments()
    else:
        made, settings = type(value), _settings_of(value)
    return {"class_path": _import_path(made)} | ({"init_args": to_config(settings)} if settings else {})


def _import_path(made: Callable[..., Any]) -> str:
    """Return the shortest import path, because packages re-export classes from files that may move."""
    name, module = getattr(made, "__qualname__", "an object"), getattr(made, "__module__", "__main__")
    if module == "__main__" or "<" in name:
        raise ValueError(f"{name.rpartition('.')[2]} is not in a module that can be imported")
    parts = module.split(".")
    shorter = (".".join(parts[:end]) for end in range(1, len(parts)))
    exported = (prefix for prefix in shorter if getattr(sys.modules.get(prefix), name, None) is made)
    return f"{next(exported, module)}.{name}"


def _settings_of(made: object) -> dict[str, Any]:
    """Return an object's constructor arguments; raise a ValueError if it does not store them."""
    kept = getattr(made, "__dict__", {})
    try:
        names = inspect.signature(type(made)).parameters
        if dataclasses.is_dataclass(made) and names.keys() == {f.name for f in dataclasses.fields(made) if f.init}:
            return {name: getattr(made, name) for name in names}
        content = pickle.dumps(made)
        settings = {name: kept[own] for name in names for own in (name, f"_{name}") if own in kept}
        if pickle.dumps(type(made)(**settings)) == content:
            return settings
    except Exception:  # a user's class may raise anything: it cannot be built again
        pass
    raise ValueError(f"{type(made).__name__} does not store its constructor arguments")
