"""The parser of command lines and configurations: suggestions for unknown settings, help that fits on a screen.

It builds only what a configuration may name: an environment, an agent, a wrapper of the right base.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import jsonargparse._typehints as typehints
import yaml
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace, set_parsing_settings

from fabric_rl.base.argv import names_of, value_of, with_files
from fabric_rl.base.config_files import configurations
from fabric_rl.base.messages import raise_what_helps
from fabric_rl.base.text import did_you_mean

typehints.raise_union_unexpected_value = raise_what_helps

_MANY_CLASSES = 60
"""A help text that would list more classes (those of torch.nn, above all) names the base class only."""
_UNKNOWN = re.compile(r"(?:unrecognized arguments: --|Option ')(?P<name>[\w.]+)")


class ShortHelp(DefaultHelpFormatter):
    """Help without Python's spelling of types, and without lists of hundreds of classes."""

    def _expand_help(self, action: argparse.Action) -> str:
        text: str = super()._expand_help(action)
        listed, comma, known = text.partition(", known subclasses: ")
        if known.count(",") >= _MANY_CLASSES:
            text = f"{listed})"
        else:
            text = f"{listed}{comma.replace('known subclasses', 'known classes')}{known}"
        text = re.sub(r"<class 'torch\.nn\.modules\.\w+\.(\w+)'>", r"torch.nn.\1", text)
        text = re.sub(r"type: <class '(?:\w+\.)*(\w+)'>", r"type: \1", text)
        text = re.sub(r"\{'class_path': '([^']+)'\}", r"\1", text)
        text = re.sub(r"\{(?:\w+,)*(\w+)\} and exit\.$", r"\1 and exit.", text)
        return text.replace("subclass or implementer of protocol", "class for").replace("given subclass of", "given")


class FlagParser(ArgumentParser):
    """Takes flags in full only, says what an unknown one may have meant, and builds nothing but what it was asked for.

    jsonargparse makes a parser of the same class for every class whose settings it reads, so each one knows the
    settings of its own class.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - jsonargparse's signature
        self._owner = "it"
        kwargs.setdefault("formatter_class", ShortHelp)
        # A configuration may be a stranger's: no `os.system` for a class, and no class where anything may stand.
        set_parsing_settings(import_path_denylist=[], instantiate_subclass_spec_in_any=False)
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def add_class_arguments(self, theclass: type[Any], *args: Any, **kwargs: Any) -> list[str]:  # noqa: ANN401
        """Adds the settings of a class; see `jsonargparse.ArgumentParser.add_class_arguments`."""
        self._owner = getattr(theclass, "__name__", str(theclass))
        names: list[str] = super().add_class_arguments(theclass, *args, **kwargs)
        for action in self._actions:
            default = action.default  # an object without settings, which jsonargparse cannot write
            if hasattr(action, "_typehint") and type(default).__module__.startswith("fabric_rl."):
                action.default = {"class_path": _path_of(type(default))}
        return names

    def parse_args(self, args: Any = None, *others: Any, **settings: Any) -> Any:  # noqa: ANN401
        """Parses as jsonargparse does; a Gymnasium id `module:Id` among the words may import its module.

        Raises:
            ValueError: A configuration that `read_yaml` refuses.
        """
        words = with_files(sys.argv[1:] if args is None else args)
        configurations(words)
        for name in names_of(words):
            if name.rpartition(".")[2].removeprefix("--") == "env_id" and ":" in (value := value_of(words, name) or ""):
                import_module(value.partition(":")[0])
        try:
            return super().parse_args(words, *others, **settings)
        except RecursionError as error:
            holding = ", ".join(name for name in names_of(words) if "*" in (value_of(words, name) or ""))
            raise ValueError(f"{holding or 'the settings'}: nested too deeply, or holds itself") from error

    def instantiate(self, namespace: Namespace, *others: Any, **settings: Any) -> Namespace:  # noqa: ANN401
        """Instantiates as jsonargparse does, once everything that would be called is of the right base.

        Raises:
            ValueError: It is not.
        """
        for action in self._actions:
            value = namespace.get(action.dest)
            check_makers(getattr(action, "_typehint", None), value, f"--{action.dest}")
            if action.dest == "env_id":
                check_env_id(value, "--env_id")
        built: Namespace = super().instantiate(namespace, *others, **settings)
        return built

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - argparse's
        """Says what an unknown command may have meant."""
        if isinstance(action.choices, Mapping) and value not in action.choices:
            known = list(action.choices)
            hint = did_you_mean(value, known) or f"; known: {', '.join(known)}"
            raise argparse.ArgumentError(None, f"there is no command {value}{hint}")
        super()._check_value(action, value)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raises; an unknown flag or key first gets its suggestion, which `one_line` looks for."""
        if unknown := _UNKNOWN.match(message):
            defaults = self.get_defaults(skip_validation=True).items()
            flags = [key.replace(".init_args", "") for key, _ in defaults]
            own = list(dict.fromkeys(flag.partition(".")[0] for flag in flags))
            by_last_word = {flag.rpartition(".")[2]: flag for flag in (*flags, *own)}
            root, dot, rest = unknown["name"].partition(".")
            close = get_close_matches(root, by_last_word, n=1)
            hint = f"did you mean {by_last_word[close[0]]}{dot}{rest}?" if close else f"known: {', '.join(own)}"
            here = re.findall(r"--([\w.]+)", old := old_names().get(unknown["name"], ""))
            if here and not {here[0].partition(".")[0], here[0].rpartition(".")[2]}.isdisjoint(own):  # of run or part
                hint = f"use {old}"
            message = f"{self._owner} has no setting {unknown['name']} ({hint})"
        super().error(message, ex)


def _path_of(made: type) -> str:
    """Return the path of a class, from the package that exports it if one does."""
    package = made.__module__.rpartition(".")[0]
    exported = getattr(sys.modules[package], made.__name__, None) is made
    return f"{package if exported else made.__module__}.{made.__qualname__}"


@cache
def old_names() -> dict[str, str]:
    """Return names of settings in other trainers -> the flag here; behind the flag, what else is different."""
    names: dict[str, str] = yaml.safe_load(Path(__file__).with_name("old_names.yaml").read_text(encoding="utf-8"))
    return names


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
    """Returns what a callable type, or a protocol with `__call__`, makes; None for other types, `object` for all."""
    if get_origin(hint) is Callable:
        returned = get_args(hint)[1]
    elif getattr(hint, "_is_protocol", False) and "__call__" in vars(hint):
        returned = get_type_hints(hint.__call__).get("return")
    else:
        return None
    returned = get_origin(returned) or returned
    return returned if inspect.isclass(returned) else object


def _returns(function: Any, made: type) -> bool:  # noqa: ANN401
    try:
        returned = get_type_hints(function).get("return")
    except (AttributeError, NameError, TypeError):  # builtins, and annotations that cannot be read
        return False
    returned = get_origin(returned) or returned
    return inspect.isclass(returned) and issubclass(returned, made)
