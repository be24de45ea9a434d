"""The words of the command line: spelling of flags, suggestions for unknown ones, help that fits on a screen."""

import argparse
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn, get_args, get_type_hints

import yaml
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace, set_parsing_settings

from fabric_rl.flags.makers import check_env_id, check_makers
from fabric_rl.flags.messages import did_you_mean
from fabric_rl.flags.old_names import OLD_NAMES
from fabric_rl.flags.presets import file_of, with_files
from fabric_rl.flags.yaml_files import read_yaml
from fabric_rl.import_names import spelt_here, words_here

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
        return names

    def parse_args(self, args: Any = None, *others: Any, **settings: Any) -> Any:  # noqa: ANN401
        """As jsonargparse's; a Gymnasium id `module:Id` among the words may import its module.

        Raises:
            ValueError: A configuration that `read_yaml` refuses.
        """
        words = with_files(words_here(sys.argv[1:] if args is None else args))
        configurations(words)
        for name in names_of(words):
            if name.rpartition(".")[2].removeprefix("--") == "env_id" and ":" in (value := value_of(words, name) or ""):
                import_module(value.partition(":")[0])
        try:
            return super().parse_args(words, *others, **settings)
        except RecursionError as error:
            holding = ", ".join(name for name in names_of(words) if "*" in (value_of(words, name) or ""))
            raise ValueError(f"{holding or 'the settings'}: nested too deeply, or holds itself") from error

    def parse_string(self, content: str, *others: Any, **settings: Any) -> Any:  # noqa: ANN401
        """As jsonargparse's, which also reads files with it; class paths as `spelt_here`."""
        return super().parse_string(spelt_here(content), *others, **settings)

    def instantiate(self, namespace: Namespace, *others: Any, **settings: Any) -> Namespace:  # noqa: ANN401
        """As jsonargparse's; before that, everything that would be called is of the right base.

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
            here = re.findall(r"--([\w.]+)", old := OLD_NAMES.get(unknown["name"], ""))
            if here and not {here[0].partition(".")[0], here[0].rpartition(".")[2]}.isdisjoint(own):  # of run or part
                hint = f"use {old}"
            message = f"{self._owner} has no setting {unknown['name']} ({hint})"
        super().error(message, ex)


def normalise(argv: Sequence[str], switches: Collection[str]) -> list[str]:
    """Dashes in flag names become underscores, and a bare flag that is one of `switches` means true."""
    flags = []
    for i, word in enumerate(argv):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = "--" + name[2:].replace("-", "_")
            bare = not equals and (i + 1 == len(argv) or argv[i + 1].startswith("--"))
            word = f"{name}=true" if bare and name in switches else name + equals + value
        flags.append(word)
    return flags


def switches(*owners: Any) -> set[str]:  # noqa: ANN401 - functions and classes
    """Flags of parameters and fields that may be true, which is what the bare flag means."""
    hints = [hint for owner in owners for hint in get_type_hints(owner).items()]
    return {f"--{name}" for name, hint in hints if hint is bool or bool in get_args(hint)}


def with_classes_of_help(flags: Sequence[str], classes: Mapping[str, str]) -> list[str]:
    """A bare `--NAME.help` explains the class that the flags choose with `--NAME`, or else that of `classes`.

    Args:
        flags: The command line.
        classes: Class path for flags such as `--agent`.
    """
    completed = list(flags)
    for i, word in enumerate(flags):
        name = word.removesuffix(".help")
        if name != word and name in classes and (i + 1 == len(flags) or flags[i + 1].startswith("--")):
            chosen = value_of(flags[:i], name)
            named = chosen is not None and re.fullmatch(r"[\w.]+", chosen)
            completed[i] = f"{word}={chosen if named else classes[name]}"
    return completed


def configurations(flags: Sequence[str]) -> list[dict[str, Any]]:
    """What the files, or texts, after each `--config` hold; without what is unreadable, which is said in its turn.

    Raises:
        ValueError: One would never end.
    """
    found = []
    for value in filter(None, _values(flags, "--config")):
        with suppress(OSError, UnicodeDecodeError, yaml.YAMLError):
            found.append(read_yaml(value) if os.path.isfile(value) else yaml.safe_load(value))
    return [settings for settings in found if isinstance(settings, dict)]


def names_of(flags: Sequence[str]) -> list[str]:
    """The flags' names without their values, each once."""
    return list(dict.fromkeys(word.partition("=")[0] for word in flags if word.startswith("--")))


def value_of(flags: Sequence[str], name: str) -> str | None:
    """The value of the last flag called `name`; None without it or its value."""
    values = list(_values(flags, name))
    return values[-1] if values else None


def config_files(flags: Sequence[str]) -> list[str]:
    """The files that are given with `--config`, in order."""
    return [value for value in _values(flags, "--config") if value and os.path.isfile(value)]


def _values(flags: Sequence[str], name: str) -> Iterator[str | None]:
    for word, following in zip(flags, [*flags[1:], None], strict=False):
        flag, equals, own = word.partition("=")
        if flag == name:
            value = own if equals else following
            yield file_of(value) if value and name == "--config" else value


def without(flags: Sequence[str], names: Collection[str]) -> list[str]:
    """The flags without those called `names` and without their values."""
    kept: list[str] = []
    drop_value = False
    for word in flags:
        name, equals, _ = word.partition("=")
        if word.startswith("--"):
            drop_value = name in names and not equals
            if name in names:
                continue
        elif drop_value:
            drop_value = False
            continue
        kept.append(word)
    return kept
