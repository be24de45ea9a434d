"""What settings name to make something, an environment, an agent, a wrapper: of the right base, or never called."""

import inspect
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, get_args, get_origin, get_type_hints

_ANYTHING = ("builtins", "collections.abc", "typing")
"""Where the types are from that say too little of a function: one that opens a program returns a number, too."""


def check_makers(hint: Any, value: Any, flag: str) -> None:  # noqa: ANN401 - a type, and what was given for it
    """Checks what was given for a setting that takes makers: callables, or protocols of them, or several.

    A class must be a subclass of what is to be made, or its objects must say that they return one; a function must say
    so, too, and is never called with settings.

    Args:
        hint: The setting's type.
        value: What jsonargparse has parsed.
        flag: What the message names.

    Raises:
        ValueError: It may make something else.
    """
    made = _made_by(hint)
    if made is None:
        for inner in get_args(hint):
            for item in value if isinstance(value, list | tuple) else [value]:
                check_makers(inner, item, flag)
        return
    path = getattr(value, "class_path", None)
    maker = resolve_name(path) if isinstance(path, str) else value
    name = path or f"{getattr(maker, '__module__', '')}.{getattr(maker, '__qualname__', maker)}"
    if inspect.isclass(maker):
        fits = issubclass(maker, made) or _returns(getattr(maker, "__call__", None), made)  # noqa: B004
    else:
        fits = not callable(maker) or (path is None and made.__module__ not in _ANYTHING and _returns(maker, made))
    if not fits:
        more = "" if path or inspect.isclass(maker) else f"; end its first line with -> {made.__name__}:"
        raise ValueError(f"{flag}: {name} does not say that it makes a {made.__name__}{more}")


def check_env_id(value: Any, flag: str) -> None:  # noqa: ANN401
    """Refuses a Gymnasium id such as `module:Id` that would import a module which nobody has asked for.

    Raises:
        ValueError: It is one, and its module is not imported yet; or it is the path of a class whose file fails.
    """
    if isinstance(value, str) and "." in value and all(map(str.isidentifier, value.split("."))):
        try:  # as was tried when it was read, which took what has failed for an id
            resolve_name(value)
        except AttributeError:
            pass
        except Exception as error:
            if not (isinstance(error, ModuleNotFoundError) and f"{value}.".startswith(f"{error.name}.")):
                reason = f"{type(error).__name__}: {error}"
                raise ValueError(f"{flag} {value}: its file cannot be imported: {reason}") from error
    module, colon, _ = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon and module not in sys.modules:
        raise ValueError(
            f"{flag}: {value} would import {module}, which can do anything; if you trust it, say --env_id {value} on "
            f"the command line, or import {module} first"
        )


def _made_by(hint: Any) -> type | None:  # noqa: ANN401
    """What a callable type, or a protocol with `__call__`, returns; None for other types, `object` for anything."""
    if get_origin(hint) is Callable:
        returned = get_args(hint)[1]
    elif getattr(hint, "_is_protocol", False) and "__call__" in vars(hint):
        returned = get_type_hints(hint.__call__).get("return")
    else:
        return None
    returned = get_origin(returned) or returned
    return returned if inspect.isclass(returned) else object


def _returns(function: Any, made: type) -> bool:  # noqa: ANN401
    """Whether its annotation says so."""
    try:
        returned = get_type_hints(function).get("return")
    except (AttributeError, NameError, TypeError):  # builtins, and annotations that cannot be read
        return False
    returned = get_origin(returned) or returned
    return inspect.isclass(returned) and issubclass(returned, made)
