"""Error messages for people: what jsonargparse, Lightning and parts say, as one line that names the flag."""

import re
import sys
from difflib import get_close_matches

_NO_SETTING = re.compile(
    r"(?P<owner>\w+) has no setting (?P<name>[\w.]+) \((?P<hint>.*?)\)(?=$|\. Got value|\n)", re.MULTILINE
)
_LONGEST = 20_000
"""Letters of a message; the rest is somebody's joke."""
_UNION = "Does not validate against any of the Union subtypes"
_WEAK = re.compile(r"Expected an? (?!instantiatable)|Not a valid subclass of|Does not implement protocol")
_NO_SUBCLASS = re.compile(r"Not a valid subclass of (\w+)")
_EXPECTED = re.compile(r"Expected an? (?P<kind>.+?)(?:\.? Got value: (?P<value>.*))?$")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "dict": "a mapping",
    "Mapping": "a mapping",
    "list": "a list",
    "tuple": "a list",
    "Sequence": "a list",
}
_CLASS = r"Problem with given class_path '(?P<path>[^']+)': "


def did_you_mean(word: str, known: list[str]) -> str:
    """`; did you mean X?` for the known word that is most like this one or begins with it, nothing if none is."""
    word, spelt = word.lower(), {name.lower(): name for name in known}
    close = get_close_matches(word, spelt, n=1) or [name for name in spelt if word and name.startswith(word)]
    return f"; did you mean {spelt[close[0]]}?" if close else ""


def printable(text: object) -> str:
    """A text that somebody else may have written, without what would move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def one_line(message: str) -> str:
    """Joins a message to one line that begins with the flag, and says what jsonargparse says in plain words."""
    message = _without_unions(message if len(message) < _LONGEST else f"{message[:_LONGEST]}...")
    if unknown := _NO_SETTING.search(message):
        path = "".join(f"{key}." for key in re.findall(r'Parser key "([^"]*)"', message[: unknown.start()]))
        if not path:
            hint = unknown["hint"].replace("mean ", "mean --")
            hint = "see --help" if hint.startswith("known: ") else hint
            return f"--{unknown['name']}: no such setting; {hint}"
        hint = unknown["hint"] if unknown["hint"] != "known: " else "it has none"
        return f"--{path}{unknown['name']}: {unknown['owner']} has no such setting; {hint}"
    line = " ".join(message.split())
    line = re.sub(r'Parser key "([^"]*)":', r"--\1:", line)
    line = re.sub(r"Type <class '[^']*'> expects a function or a callable class: ", "", line)
    before = ""
    while before != line:  # the flag of a setting of a class of a setting ...
        before, line = line, re.sub(rf"^(--[\w.]+): (?:{_CLASS})?--(\w+):", r"\1.\3:", line)
    line = re.sub(r"\.? Got value: Namespace\(.*", "", line)
    line = re.sub(r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1", line)
    flag, rest = re.match(r"(--[\w.]+: )?(.*)", line).groups("")  # type: ignore[union-attr]  # always matches
    return flag + _in_plain_words(flag.rstrip(": "), rest)


def _in_plain_words(flag: str, text: str) -> str:
    """What is wrong with a flag, without the words of Python's types."""
    text = re.sub(r"Expected an instantiatable class, but ([\w.]+) is abstract", r"choose a subclass of \1 first", text)
    text = re.sub(r"Expected '([\w.]+)' to be a subclass of (\w+)\.?", r"\1 is no subclass of \2", text)
    text = re.sub(r"Import path ([\w.]+) does not correspond to a subclass of", r"\1 is no subclass of", text)
    text = re.sub(r"^argument (--[\w.]+): expected (?:at least )?one argument$", _needs_value, text)
    if text.startswith("the following arguments are required: "):  # those of commands with the names of these
        text = re.sub(r" (?:[\w-]+\.)+", " ", text)
    text = re.sub(r"^unrecognized arguments: (.*)$", r"\1: not understood; flags begin with --, see --help", text)
    text = re.sub(r"^Problems parsing config: (.*)$", r"--config: this is no YAML file of settings: \1", text)
    text = re.sub(r"^Unexpected config: .*$", "--config: this is no YAML file of settings (name: value)", text)
    text = text.replace('in "<unicode string>", ', "")
    text = re.sub(r"^Dict must include .*", "what is set of a class belongs under init_args, beside class_path", text)
    if lacks := re.match(rf"{_CLASS}the following arguments are required: (?P<names>.*?)(?:\.? Got value: .*)?$", text):
        names = ", ".join(f"{flag}.{name.strip()}" for name in lacks["names"].split(","))
        return f"{lacks['path']} lacks settings; give {names}"
    if missing := re.match(
        rf"(?:{_CLASS})?No module named '(?P<name>[^']+)'(?:\. Got value: (?P<value>[\w.]+))?$", text
    ):
        path = missing["path"] or missing["value"] or ""
        if path and not f"{path}.".startswith(f"{missing['name']}."):
            return f"{path} needs the package {missing['name']}, which is not installed"
        whose = f"{path}: " if path else ""
        return f"{whose}there is no module {missing['name']}; one of your own is found in a folder of PYTHONPATH"
    if attribute := re.match(
        rf"(?:{_CLASS})?module '(?P<module>[^']+)' has no attribute '(?P<name>[^']+)'(?:\. Got value: [\w.]+)?$", text
    ):
        module = sys.modules.get(attribute["module"], re)
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        known = [*getattr(module, "__all__", ()), *classes]
        name = f"{attribute['module']}.{attribute['name']}"
        return f"there is no class {name}{did_you_mean(attribute['name'], known)}"
    if denied := re.search(r"Importing '([\w.]+)' is not allowed", text):
        return f"{denied[1]} is no class for settings: it could run programs or change files"
    if silent := re.search(r"Expected '([\w.]+)' to be a function that returns (\w+)", text):
        return f"{silent[1]} does not say that it returns a {silent[2]}; end its first line with -> {silent[2]}:"
    text = re.sub(_CLASS, r"\g<path>: ", text)
    if path := re.match(r"(?:[\w.]+: )?Expected a dot import path string: (.*?)(?:\. Got value: .*)?$", text):
        return f"expected the path of a class, such as package.module.Class, got {path[1]}"
    if expected := _EXPECTED.match(text):
        text = _expected([expected["kind"]], expected["value"])
    if flag and (single := re.fullmatch(r"expected a list, got ([^\s\[{]+)", text)):
        text += f"; one alone is '[{single[1]}]', one more {flag}+={single[1]}"
    return text


def _needs_value(match: "re.Match[str]") -> str:
    if match[1].endswith(".help"):
        return f"{match[1]} needs the class to explain: its path, or the name of a class that --help lists"
    return f"{match[1]} needs a value"


def _expected(kinds: list[str], value: str | None) -> str:
    """`expected a number or a list, got x`; a choice of words gets a suggestion."""
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


def _without_unions(message: str) -> str:
    """Replaces every list of what each type of a union says by what helps, the innermost one first."""
    lines = message.splitlines()
    while found := [number for number, line in enumerate(lines) if _UNION in line]:
        first = found[-1]
        column = lines[first].index(_UNION)
        last = first + 1
        while last < len(lines) and (not lines[last].strip() or not lines[last][:column].strip()):
            last += 1
        block = [line[column:] for line in lines[first + 1 : last]]
        alternatives: list[str] = []
        value = None
        for line in block:
            if value is not None:
                value += " " + line.strip()
            elif line.startswith("  - "):
                alternatives.append(line[4:])
            elif line.startswith("Given value: "):
                value = line[len("Given value: ") :]
            elif line.startswith("    ") and alternatives:
                alternatives[-1] += "\n" + line[4:]
        lines[first:last] = (lines[first][:column] + _what_helps(alternatives, value)).split("\n")
    return "\n".join(lines)


def _what_helps(alternatives: list[str], value: str | None) -> str:
    """Of what the types of a union say: the first that looked into the value, else all that was expected."""
    value = None if value is None else value.partition(". Got value: ")[0]  # of what holds this setting
    path = re.search(r"class_path='([^']+)'", value or "")
    for text in alternatives:
        if not _WEAK.match(text):
            return text.replace("Import path does not", f"Import path {path[1] if path else value} does not")
    value = None if value is None or path or " object at " in value else value
    kinds = [match["kind"].partition("\n")[0] for match in map(_EXPECTED.match, alternatives) if match]
    kinds += [match[1] for match in map(_NO_SUBCLASS.match, alternatives) if match]
    return _expected(list(dict.fromkeys(kinds)), value) if kinds else next(iter(alternatives), "not understood")
