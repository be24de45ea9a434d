"""The words of the command line: spelling of flags, suggestions for unknown ones, errors that fit on one line."""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from jsonargparse import ArgumentParser

_UNKNOWN = re.compile(r"(?:unrecognized arguments: --|Option ')(?P<name>[\w.]+)")
_NO_SETTING = re.compile(r"(?P<owner>\w+) has no setting (?P<name>[\w.]+) \((?P<hint>[^)]*)\)")


class FlagParser(ArgumentParser):
    """Takes flags in full only, and says what an unknown one may have meant.

    jsonargparse makes a parser of the same class for every class whose settings it reads, so each one knows the
    settings of its own class.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - jsonargparse's signature
        """Makes the parser; see `jsonargparse.ArgumentParser`."""
        self._owner = "it"
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def add_class_arguments(self, theclass: type[Any], *args: Any, **kwargs: Any) -> list[str]:  # noqa: ANN401
        """Adds the settings of a class; see `jsonargparse.ArgumentParser.add_class_arguments`."""
        self._owner = getattr(theclass, "__name__", str(theclass))
        names: list[str] = super().add_class_arguments(theclass, *args, **kwargs)
        return names

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


def names_of(flags: Sequence[str]) -> list[str]:
    """The flags' names without their values, each once."""
    return list(dict.fromkeys(word.partition("=")[0] for word in flags if word.startswith("--")))


def value_of(flags: Sequence[str], name: str) -> str | None:
    """The value of the last flag called `name`; None without it or its value."""
    value = None
    for i, word in enumerate(flags):
        flag, equals, own = word.partition("=")
        if flag == name:
            value = own if equals else flags[i + 1] if i + 1 < len(flags) else None
    return value


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


def one_line(message: str) -> str:
    """Joins a message to one line that begins with the flag, and drops what jsonargparse says about Python types."""
    if unknown := _NO_SETTING.search(message):
        path = "".join(f"{key}." for key in re.findall(r'Parser key "([^"]*)"', message[: unknown.start()]))
        if not path:
            hint = unknown["hint"].replace("mean ", "mean --") if "mean " in unknown["hint"] else "see --help"
            return f"--{unknown['name']}: no such setting; {hint}"
        return f"--{path}{unknown['name']}: {unknown['owner']} has no such setting; {unknown['hint']}"
    line = " ".join(message.split())
    line = re.sub(r'Parser key "([^"]*)":', r"--\1:", line)
    line = re.sub(r"Type <class '[^']*'> expects a function or a callable class: ", "", line)
    line = re.sub(r"Does not validate against any of the Union subtypes Subtypes: \[.*?\] Errors: - ", "", line)
    line = re.sub(r" - Expected a (<class 'NoneType'>|Sequence Given value type:).*", "", line)
    line = re.sub(r"Expected an instantiatable class, but ([\w.]+) is abstract", r"choose a subclass of \1 first", line)
    line = re.sub(r"\.? Got value: Namespace\(.*", "", line)
    line = re.sub(r"^(--[\w.]+): --(\w+):", r"\1.\2:", line)
    return re.sub(r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1", line)
