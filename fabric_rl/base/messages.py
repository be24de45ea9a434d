"""Rewrite jsonargparse's error messages as one plain line that names the flag."""

import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn, get_origin

from jsonargparse import ArgumentError
from jsonargparse._util import NestedArg

from fabric_rl.base.text import did_you_mean

USER_ERRORS = (ArgumentError, ValueError, TypeError, OSError, ImportError, FloatingPointError)
"""Types of errors that a user can correct."""
_NO_SETTING = re.compile(
    r"(?P<owner>\w+) has no setting (?P<name>[\w.]+) \((?P<hint>.*?)\)(?=$|\. Got value|\n)", re.MULTILINE
)
_MAX_LETTERS = 20_000
_VAGUE = re.compile(r"Expected an? (?!instantiatable)|Not a valid subclass of|Does not implement protocol")
"""Beginnings of messages that only name the expected type."""
_EXPECTED = re.compile(r"(?:Expected an?|Not a valid subclass of) (?P<kind>[^\n]+?)(?:\.? Got value: (?P<value>.*))?$")
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a string"}
_KINDS |= {"dict": "a mapping", "Mapping": "a mapping", "list": "a list", "tuple": "a list", "Sequence": "a list"}
_CLASS = r"(?:Problem with given class_path '(?P<path>[^']+)': )"
_GOT = r"(?:\.? Got value: (?P<value>.*))?$"


def one_line(message: str) -> str:
    """Reduce a message to a single line of plain words that begins with the flag."""
    message = message if len(message) < _MAX_LETTERS else f"{message[:_MAX_LETTERS]}..."
    if unknown := _NO_SETTING.search(message):
        path = "".join(f"{key}." for key in re.findall(r'Parser key "([^"]*)"', message[: unknown.start()]))
        if not path:
            hint = unknown["hint"].replace("did you mean ", "did you mean --")
            hint = "see --help" if hint.startswith("known: ") else hint
            return f"--{unknown['name']}: no such setting; {hint}"
        hint = unknown["hint"] if unknown["hint"] != "known: " else "it has none (the flag with its class comes first)"
        return f"--{path}{unknown['name']}: {unknown['owner']} has no such setting; {hint}"
    line = re.sub(r'Parser key "([^"]*)":', r"--\1:", " ".join(message.split()))
    line = re.sub(r"Type (?:(?!: ).)* expects a function or a callable class: ", "", line)
    before = ""
    while before != line:  # join the flags of nested settings
        before, line = line, re.sub(rf"^(--[\w.]+): {_CLASS}?--([\w.]+):", r"\1.\3:", line)
    line = re.sub(r"\.? Got value: Namespace\(.*", "", line)
    line = re.sub(r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1", line)
    found = re.match(r"(?:(?P<flag>--[\w.]+): )?(?P<rest>.*)", line)
    flag, rest = found["flag"] or "", found["rest"]  # type: ignore[index]  # always matches
    for pattern, words in _WORDS:
        if match := re.search(pattern, rest):
            rest = rest[: match.start()] + (words(match, flag) if callable(words) else match.expand(words))
            break
    return f"{flag}: {rest}" if flag else rest


def raise_union_error(subtypes: Any, val: Any, exceptions: list[Exception]) -> NoReturn:  # noqa: ANN401
    """Raise the first error of a union's types that is about the value itself, or else list the expected types.

    This replaces a function of jsonargparse that lists all errors.
    """
    path = val.get("class_path") if hasattr(val, "get") else None
    texts = [str(error) for error in exceptions]
    if isinstance(val, NestedArg) and any(get_origin(kind) is dict for kind in subtypes):  # one of its items
        raise ValueError(f"--{val.key}: {one_line(texts[-1])}")
    for text in texts:
        if not _VAGUE.match(text):
            raise ValueError(text.replace("Import path does not", f"Import path {path or val} does not"))
    kinds = [match["kind"].partition(". Got value")[0] for match in map(_EXPECTED.match, texts) if match]
    shown = None if path or " object at " in str(val) else str(val)
    raise ValueError(_expected(list(dict.fromkeys(kinds)), shown) if kinds else f"not understood: {texts[:1]}")


def _expected(kinds: list[str], value: str | None) -> str:
    """Return `expected a number or a list, got x`, with a suggestion if the type is a Literal."""
    words, suggestion = [], ""
    for kind in kinds:
        kind = re.sub(r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1", kind)
        name = kind.rpartition(".")[2]
        if choices := re.search(r"Literal\[(.*)\]", kind):
            options = [option.strip(" '\"") for option in choices[1].split(",")]
            words.append("one of " + ", ".join(options))
            suggestion = did_you_mean(str(value), options)
        elif subclass := re.search(r"type\[(?:[\w.]*\.)?(\w+)\]", kind):
            words.append(f"the path of a subclass of {subclass[1]}")
        elif kind.startswith("dot import path"):
            words.append("the path of a class")
        elif name != "NoneType":
            words.append(_KINDS.get(name, f"a {name}" if name.isidentifier() else kind))
    got = "" if value is None else f", got {value}"
    return f"expected {' or '.join(dict.fromkeys(words))}{got}{suggestion}"


def _value(match: "re.Match[str]", flag: str) -> str:
    text = _expected([match["kind"]], match["value"])
    of_list = re.fullmatch(_LIST, text)
    return _with_list_syntax(of_list, flag) if of_list else text


_LIST = r"expected a list, got (?P<one>[^\s\[{]+)"


def _with_list_syntax(match: "re.Match[str]", flag: str) -> str:
    return match[0] + (f"; write '[{match['one']}]', or {flag}+={match['one']} to append it" if flag else "")


def _no_module(match: "re.Match[str]", flag: str) -> str:
    path = match["path"] or match["value"] or ""
    if path and not f"{path}.".startswith(f"{match['name']}."):
        return f"{path} needs the package {match['name']}, which is not installed"
    whose = f"{path}: " if path else ""
    return f"{whose}there is no module {match['name']}; if it is your own, add its folder to PYTHONPATH"


def _no_class(match: "re.Match[str]", flag: str) -> str:
    module = sys.modules.get(match["module"], re)
    known = [*getattr(module, "__all__", ()), *(name for name, kind in vars(module).items() if isinstance(kind, type))]
    return f"there is no class {match['module']}.{match['name']}{did_you_mean(match['name'], known)}"


def _lacks(match: "re.Match[str]", flag: str) -> str:
    names = ", ".join(f"{flag}.{name.strip()}" for name in match["names"].split(","))
    return f"{match['path']} needs more settings: {names}"


def _needs_value(match: "re.Match[str]", flag: str) -> str:
    if match[1].endswith(".help"):
        return f"{match[1]} needs a class to explain: its path, or a name that --help lists"
    return f"{match[1]} needs a value"


_WORDS: list[tuple[str, str | Callable[["re.Match[str]", str], str]]] = [
    (rf"{_CLASS}the following arguments are required: (?P<names>.*?){_GOT}", _lacks),
    (rf"{_CLASS}?No module named '(?P<name>[^']+)'{_GOT}", _no_module),
    (rf"{_CLASS}?module '(?P<module>[^']+)' has no attribute '(?P<name>[^']+)'{_GOT}", _no_class),
    (r".*Importing '([\w.]+)' is not allowed.*", r"\1 is not allowed in settings: it could run code or change files"),
    (
        r".*Expected '([\w.]+)' to be a function that returns (\w+).*",
        r"\1 is not declared to return a \2; end its first line with -> \2:",
    ),
    (r"Expected an instantiatable class, but ([\w.]+) is abstract", r"\1 is abstract; choose a subclass"),
    (r"Expected '([\w.]+)' to be a subclass of (\w+)\.?", r"\1 is not a subclass of \2"),
    (r"Import path ([\w.]+) does not correspond to a subclass of (.*)", r"\1 is not a subclass of \2"),
    (r"^argument (--[\w.]+): expected (?:at least )?one argument$", _needs_value),
    (r"^the following arguments are required: .*", lambda match, flag: re.sub(r" (?:[\w-]+\.)+", " ", match[0])),
    (r"^unrecognized arguments: (.*)$", r"\1: not understood; flags begin with -- (see --help)"),
    (r"^Problems parsing config: (.*)$", r"--config: this is not a YAML file of settings: \1"),
    (r"^Unexpected config: .*$", "--config: this is not a YAML file of settings (name: value)"),
    (r"^Dict must include .*", "settings of a class belong under init_args, next to class_path"),
    (
        rf"Expected a dot import path string: (?P<got>.*?){_GOT}",
        r"expected the path of a class, such as package.module.Class, got \g<got>",
    ),
    (_EXPECTED.pattern, _value),
    (_LIST, _with_list_syntax),
    (rf"{_CLASS}(?P<rest>.*)", r"\g<path>: \g<rest>"),
]
"""Pattern of a jsonargparse message -> plain words. The first match is used."""
