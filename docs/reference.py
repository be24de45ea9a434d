"""Write the generated parts of the reference: `python docs/reference.py`.

docs/cli.md describes every `fabric-rl` command, and a table in docs/settings.md every setting of a training. Both come
from the signatures and docstrings that `--help` shows.
"""

import argparse
import inspect
import re
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import docstring_parser

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import train_fabric
from fabric_rl import args
from fabric_rl.commands.main import GROUPS, command_parser

DOCS = Path(__file__).resolve().parent
CLI = """# Commands

`fabric-rl COMMAND` runs a command, and `fabric-rl COMMAND --help` shows this reference in the terminal. In flags, `-`
and `_` are equivalent. Players (`player`, `players`, `opponent`) are run ids, paths, included agents or bots:
[Measure how good a bot is](evaluation.md).

This page is generated from the commands' own help.
"""
BEGIN, END = "<!-- begin generated: settings -->", "<!-- end generated: settings -->"
SECTIONS = {
    "Training": args.TrainArgs,
    "Starting a run": args.StartArgs,
    "Saving": args.Saving,
    "Hardware": args.Hardware,
    "SAC": args.SACArgs,
}


def commands_page() -> str:
    """Return docs/cli.md."""
    lines = [CLI]
    for group, commands in GROUPS.items():
        lines.append(f"## {group}\n")
        for name, command in commands.items():
            lines.append(f"### `fabric-rl {name}`\n")
            if name == "train":
                lines.append(
                    "Train an agent: the same as `python train_fabric.py`. [Settings](settings.md) lists its flags.\n"
                )
                continue
            if name == "run_selfplay_eval":
                lines.append(
                    "Another name for [`fabric-rl league`](#fabric-rl-league).\n"
                )
                continue
            own = _subparser(command_parser(name)[0], name)
            lines.append(_command(own, f"fabric-rl {name}"))
            for inner in command.commands:
                lines += [
                    f"#### `fabric-rl {name} {inner}`\n",
                    _command(_subparser(own, inner), f"fabric-rl {name} {inner}"),
                ]
    return "\n".join(lines)


def settings_tables() -> str:
    """Return the tables of docs/settings.md, without the markers around them."""
    lines = []
    for title, kind in SECTIONS.items():
        texts = {
            p.arg_name: p.description
            for p in docstring_parser.parse_from_object(kind).params
        }
        rows = [
            (f.name, "" if f.default is MISSING else f.default, texts[f.name])
            for f in fields(kind)
        ]
        lines += [f"### {title}\n", _table("Flag", rows, "--"), ""]
    parameters = inspect.signature(train_fabric.main).parameters
    texts = {
        p.arg_name: p.description
        for p in docstring_parser.parse(train_fabric.main.__doc__ or "").params
    }
    left_out = {"args", "start", "saving", "hardware", "sac", "resolved_config"}
    rows = [
        (name, _shown(p.default), texts[name])
        for name, p in parameters.items()
        if name not in left_out
    ]
    return "\n".join([*lines, "### Components\n", _table("Flag", rows, "--"), ""])


def settings_page() -> str:
    """Return docs/settings.md with new tables."""
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{settings_tables()}\n{END}{rest.split(END)[1]}"


def _subparser(parser: Any, name: str) -> Any:  # noqa: ANN401 - argparse's
    found = next(
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return found.choices[name]


def _command(parser: Any, name: str) -> str:  # noqa: ANN401 - argparse's
    """Return description, usage and flags of one command."""
    words, flags = [], []
    for action in parser._actions:
        if (
            isinstance(action, argparse._SubParsersAction)
            or action.help == argparse.SUPPRESS
            or action.dest == "help"
        ):
            continue
        if action.option_strings and action.option_strings[-1].endswith(
            (".help", "--print_config")
        ):
            continue
        (flags if action.option_strings else words).append(action)
    usage = " ".join(
        [
            name,
            *(
                f"[{w.dest}]"
                if w.nargs in ("?", "*")
                else f"{w.dest}{' ...' if w.nargs == '+' else ''}"
                for w in words
            ),
        ]
    )
    parts = [
        _linked(parser.description or ""),
        "",
        f"```text\n{usage}{' [flags]' if flags else ''}\n```",
        "",
    ]
    if words:
        parts += [
            _table(
                "Argument", [(w.dest, w.default, w.help) for w in words], defaults=False
            ),
            "",
        ]
    if flags:
        parts += [
            _table("Flag", [(f.dest, f.default, f.help) for f in flags], "--"),
            "",
        ]
    return "\n".join(parts)


def _table(
    what: str,
    rows: list[tuple[str, Any, str | None]],
    prefix: str = "",
    defaults: bool = True,
) -> str:
    head = (
        [f"| {what} | Default | Meaning |", "|---|---|---|"]
        if defaults
        else [f"| {what} | Meaning |", "|---|---|"]
    )
    for name, default, text in rows:
        cell = _linked(" ".join((text or "").split())).replace("|", "\\|")
        value = f" {_shown(default)} |" if defaults else ""
        head.append(f"| `{prefix}{name}` |{value} {cell} |")
    return "\n".join(head)


def _shown(value: Any) -> str:  # noqa: ANN401 - any default
    if value in (None, (), "", argparse.SUPPRESS) or value is inspect.Parameter.empty:
        return ""
    if isinstance(value, str) and value.startswith("`"):
        return value
    text = value.__name__ if isinstance(value, type) else str(value)
    return f"`{type(value).__name__ if ' object at ' in text else text}`"


def _linked(text: str) -> str:
    """Turn the names of pages, docs/sac.md, into links, and what Markdown would take for HTML into code."""
    text = re.sub(r"\bdocs/(\w+)\.md", r"[\1](\1.md)", text)
    return re.sub(r"(?<![`\w])(<\w+>)", r"`\1`", text)


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(commands_page(), encoding="utf-8")
    (DOCS / "settings.md").write_text(settings_page(), encoding="utf-8")
