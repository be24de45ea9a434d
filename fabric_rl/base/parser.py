"""Parser of command lines and configurations that suggests names for unknown settings and prints short help.

Configurations may come from strangers, so the parser only builds subclasses of the type that a setting expects.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import jsonargparse._typehints as typehints
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace, set_dumper, set_parsing_settings

from fabric_rl.base.argv import flag_names, last_flag_value, resolve_presets
from fabric_rl.base.config_files import dump_yaml, read_configs
from fabric_rl.base.foreign_names import foreign_names
from fabric_rl.base.messages import raise_union_error
from fabric_rl.base.settings import Count, CountOrZero, weights_by_name
from fabric_rl.base.text import did_you_mean

typehints.raise_union_unexpected_value = raise_union_error

_MAX_CLASSES = 60
"""Maximum length of a list of classes in a help text; longer lists (torch.nn has hundreds) are left out."""
_WHOLE = (int, int | None, Count, Count | None, CountOrZero, CountOrZero | None)
_SHORT = re.compile(r"(\d+(?:\.\d+)?(?:[eE]\d{1,2})?)([kM]?)")
_SIMILAR = 0.7
"""Least similarity of a name to suggest, 0 to 1."""
_UNKNOWN = re.compile(r"(?:unrecognized arguments: --|Option ')(?P<name>[\w.]+)")


class ShortHelp(DefaultHelpFormatter):
    """Help without `<class '...'>` and without lists of hundreds of classes."""

    def _expand_help(self, action: argparse.Action) -> str:
        text: str = super()._expand_help(action)
        listed, _, known = text.partition(", known subclasses: ")
        if known.count(",") >= _MAX_CLASSES:
            text = f"{listed})"
        else:
            text = text.replace(", known subclasses: ", ", known classes: ")
        text = re.sub(r"<class 'torch\.nn\.modules\.\w+\.(\w+)'>", r"torch.nn.\1", text)
        text = re.sub(r"type: <class '(?:\w+\.)*(\w+)'>", r"type: \1", text)
        text = re.sub(r"\{'class_path': '([^']+)'\}", r"\1", text)
        text = re.sub(r"\{(?:\w+,)*(\w+)\} and exit\.$", r"\1 and exit.", text)
        return text.replace("subclass or implementer of protocol", "class for").replace("given subclass of", "given")


class FlagParser(ArgumentParser):
    """Argument parser without abbreviated flags that suggests names for unknown flags and only builds allowed classes.

    jsonargparse creates a parser of the same type for every class whose settings it reads.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - jsonargparse's signature
        self._owner = "it"
        self._class: Any = object
        kwargs.setdefault("formatter_class", ShortHelp)
        # A configuration may come from a stranger: no `os.system` as a class, and no class where the type is Any.
        set_parsing_settings(import_path_denylist=[], instantiate_subclass_spec_in_any=False)
        set_dumper("yaml", dump_yaml)
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def add_class_arguments(self, theclass: type[Any], *args: Any, **kwargs: Any) -> list[str]:  # noqa: ANN401
        """Add the settings of a class; see `jsonargparse.ArgumentParser.add_class_arguments`."""
        self._owner, self._class = getattr(theclass, "__name__", str(theclass)), theclass
        names: list[str] = super().add_class_arguments(theclass, *args, **kwargs)
        declared = inspect.signature(theclass.__init__).parameters
        for action in self._actions:
            parameter = declared.get(action.dest)
            if parameter and parameter.annotation is parameter.default is parameter.empty:
                action.required = True  # jsonargparse passes None for a parameter without a type
            default = action.default  # an object without settings, which jsonargparse cannot serialize
            if hasattr(action, "_typehint") and type(default).__module__.startswith("fabric_rl."):
                kind, package = type(default), type(default).__module__.rpartition(".")[0]
                exported = getattr(sys.modules[package], kind.__name__, None) is kind
                action.default = {"class_path": f"{package if exported else kind.__module__}.{kind.__qualname__}"}
        return names

    def parse_args(self, args: Any = None, *others: Any, **settings: Any) -> Any:  # noqa: ANN401
        """Parse as jsonargparse does; a Gymnasium id `module:Id` on the command line may import its module.

        Raises:
            ValueError: `read_yaml` refuses a configuration.
        """
        argv = self._expand_numbers(resolve_presets(sys.argv[1:] if args is None else args))
        read_configs(argv)
        values = {name: last_flag_value(argv, name) or "" for name in flag_names(argv)}
        for name, value in values.items():
            if re.split(r"--|\.", name)[-1] == "env_id" and ":" in value:
                import_module(value.partition(":")[0])
        before = settings.get("namespace")
        for setting, *names in (name.removeprefix("--").split(".", 2) for name in flag_names(argv)):
            if len(names) == 2 and before and isinstance(parts := before.get(setting), dict):
                _check_part(setting, names[0], parts)
        try:
            return self._complete(before and before.clone(), super().parse_args(argv, *others, **settings))
        except RecursionError as error:
            holding = ", ".join(name for name, value in values.items() if "*" in value)
            raise ValueError(f"{holding or 'the settings'}: nested too deeply, or contains itself") from error

    def parse_object(self, obj: Any, namespace: Any = None, *others: Any, **settings: Any) -> Any:  # noqa: ANN401
        """Parse as jsonargparse does; weights by name change those of `namespace`, the settings so far."""
        before = namespace and namespace.clone()
        for name, value in [*obj.items()] if before and self._class is not object else ():
            earlier = before.get(name)
            if (
                isinstance(earlier, dict)
                and isinstance(value, dict)
                and any(isinstance(spec, dict) and spec.keys() == {"init_args"} for spec in value.values())
            ):
                for part in value:
                    _check_part(name, part, earlier)
                own = {part: {"class_path": earlier[part]["class_path"]} | spec for part, spec in value.items()}
                obj[name] = earlier | own  # settings of some phases: the other phases stay
        if isinstance(weights := obj.get("weights"), Namespace):  # a flag of a part in a mapping
            obj["weights"] = vars(weights)
        return self._complete(before, super().parse_object(obj, namespace, *others, **settings))

    def _complete(self, before: Any, after: Any) -> Any:  # noqa: ANN401 - jsonargparse's Namespaces
        """Replace weights by name with a list of all, if the settings so far have such a list for the same parts."""
        given, weighed = after.get("weights"), getattr(self._class, "weighed", "")
        by_name = weighed and before and isinstance(given, dict) and isinstance(before.get("weights"), list)
        if by_name and before.get(weighed) == after.get(weighed):
            parts = after.clone()
            parts.pop("weights")
            names = self._class.names_of(self.instantiate(parts)[weighed])
            after["weights"] = list(weights_by_name("--weights", names, given, before["weights"]))
        return after

    def instantiate(self, namespace: Namespace, *others: Any, **settings: Any) -> Namespace:  # noqa: ANN401
        """Instantiate as jsonargparse does, after checking the factories and `env_id` among the settings.

        Raises:
            ValueError: A factory may build something else than expected, or `env_id` would import a module.
        """
        for action in self._actions:
            value = namespace.get(action.dest)
            check_factories(getattr(action, "_typehint", None), value, f"--{action.dest}")
            if action.dest == "env_id":
                check_env_id(value, "--env_id")
        built: Namespace = super().instantiate(namespace, *others, **settings)
        return built

    def _expand_numbers(self, argv: list[str]) -> list[str]:
        """Write out whole numbers such as `1e5`, `10k` and `1.5M` after flags for whole numbers."""
        whole = {f"--{action.dest}" for action in self._actions if getattr(action, "_typehint", None) in _WHOLE}
        found = []
        for before, word in zip(["", *argv], argv, strict=False):
            name, equals, value = word.rpartition("=")
            found.append(f"{name}{equals}{parse_whole(value)}" if (name if equals else before) in whole else word)
        return found

    def _check_value_key(self, action: argparse.Action, value: Any, *others: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Check as jsonargparse does, after writing out whole numbers such as `1e5` and `10k` of a file."""
        value = parse_whole(value) if getattr(action, "_typehint", None) in _WHOLE else value
        return super()._check_value_key(action, value, *others, **kwargs)

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - argparse's
        """Suggest a name for an unknown command."""
        if isinstance(action.choices, Mapping) and value not in action.choices:
            known = list(action.choices)
            hint = did_you_mean(value, known) or f"; known: {', '.join(known)}"
            raise argparse.ArgumentError(None, f"there is no command {value}{hint}")
        super()._check_value(action, value)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raise an error; for an unknown flag or key, with a suggestion in the form that `one_line` parses."""
        if unknown := _UNKNOWN.match(message):
            defaults = self.get_defaults(skip_validation=True).items()
            words = [action.dest for action in self._actions if not action.option_strings]
            flags = [key.replace(".init_args", "") for key, _ in defaults if key not in words]
            own = list(dict.fromkeys(flag.partition(".")[0] for flag in flags))
            by_last_word = {flag.rpartition(".")[2]: flag for flag in (*flags, *own)}
            root, dot, rest = unknown["name"].partition(".")
            close = get_close_matches(root, by_last_word, n=1, cutoff=_SIMILAR)
            hint = f"did you mean {by_last_word[close[0]]}{dot}{rest}?" if close else f"known: {', '.join(own)}"
            names = foreign_names()
            old = names.get(unknown["name"].lower(), names.get(root.lower(), ""))
            here = re.match(r"--([\w.]+)", old)
            of_run = {"agent", "total_timesteps"}.issubset(own)
            if old and (of_run or (here and not {*here[1].split(".")}.isdisjoint(own))):
                hint = f"use {old}" if here else old
            if holder := getattr(self._class, "named_settings", ""):
                hint = f"write {holder}: {{{unknown['name']}: ...}}"
            if unknown["name"] in words:
                hint = "it comes without a flag"
            message = f"{self._owner} has no setting {unknown['name']} ({hint})"
        super().error(message, ex)


def parse_whole(value: Any) -> Any:  # noqa: ANN401 - a setting of any type
    """Return a whole number given as `1e5`, `10k` or `1.5M` as an int, anything else as it is."""
    short = None if str(value).isdecimal() else _SHORT.fullmatch(str(value))  # a float would round large numbers
    number = float(short[1]) * {"k": 1e3, "M": 1e6}.get(short[2], 1.0) if short else 0.5
    return int(number) if number.is_integer() else value


def _check_part(setting: str, name: str, parts: Mapping[str, Any]) -> None:
    if name not in parts:
        known = f"known: {', '.join(parts)}"
        raise ValueError(f"--{setting}.{name}: there is none{did_you_mean(name, list(parts))} ({known})")


_TOO_GENERAL = ("builtins", "collections.abc", "typing")
"""Modules whose types do not identify a factory as a return type: `os.system` returns an int, too."""


def check_factories(hint: Any, value: Any, flag: str) -> None:  # noqa: ANN401 - a type, and what was given for it
    """Check the value of a setting that accepts a factory (a callable or callable protocol), or a list of them.

    A class must be a subclass of the type to be made, or its `__call__` must be annotated to return that type. A
    function must be annotated in the same way, and cannot have settings.

    Args:
        hint: Type of the setting.
        value: Value parsed by jsonargparse.
        flag: Flag to name in the message.

    Raises:
        ValueError: The factory may build something else.
    """
    made = _made_by(hint)
    if made is None:
        for inner in get_args(hint):
            for item in value if isinstance(value, list | tuple) else [value]:
                check_factories(inner, item, flag)
        return
    path = getattr(value, "class_path", None)
    maker = resolve_name(path) if isinstance(path, str) else value
    name = path or f"{getattr(maker, '__module__', '')}.{getattr(maker, '__qualname__', maker)}"
    if inspect.isclass(maker):
        fits = issubclass(maker, made) or _returns(getattr(maker, "__call__", None), made)  # noqa: B004
    else:
        fits = not callable(maker) or (path is None and made.__module__ not in _TOO_GENERAL and _returns(maker, made))
    if not fits:
        more = "" if path or inspect.isclass(maker) else f"; end its first line with -> {made.__name__}:"
        raise ValueError(f"{flag}: {name} is neither a {made.__name__} nor declared to return one{more}")


def check_env_id(value: Any, flag: str) -> None:  # noqa: ANN401
    """Refuse a Gymnasium id `module:Id` in a file that would import another module.

    Raises:
        ValueError: The module is not imported yet, or the id is the path of a class that cannot be imported.
    """
    if not isinstance(value, str):
        return
    if "." in value and all(map(str.isidentifier, value.split("."))):
        try:  # jsonargparse has tried it, too, and treats a path that fails as an id
            resolve_name(value)
        except AttributeError:
            pass
        except Exception as error:
            if not (isinstance(error, ModuleNotFoundError) and f"{value}.".startswith(f"{error.name}.")):
                reason = f"{type(error).__name__}: {error}"
                raise ValueError(f"{flag} {value} is in a file that cannot be imported: {reason}") from error
    module, colon, _ = value.partition(":")
    if colon and module not in sys.modules:
        raise ValueError(
            f"{flag}: {value} would import {module}, which can run any code; if you trust it, pass --env_id {value} "
            f"on the command line, or import {module} first"
        )


def _made_by(hint: Any) -> type | None:  # noqa: ANN401
    """Return the class that a callable type returns, `object` if unknown; None for types that are not callable."""
    if get_origin(hint) is Callable:
        return _class_of(get_args(hint)[1]) or object
    if getattr(hint, "_is_protocol", False) and "__call__" in vars(hint):
        return _class_of(get_type_hints(hint.__call__).get("return")) or object
    return None


def _class_of(hint: Any) -> type | None:  # noqa: ANN401
    kind = get_origin(hint) or hint
    return kind if inspect.isclass(kind) else None


def _returns(function: Any, made: type) -> bool:  # noqa: ANN401
    try:
        returned = _class_of(get_type_hints(function).get("return"))
    except (AttributeError, NameError, TypeError):  # builtins, and annotations that cannot be read
        return False
    return returned is not None and issubclass(returned, made)
