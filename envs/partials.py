"""What a factory builds: `functools.partial`s, also those that jsonargparse hands out, taken apart."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple


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
