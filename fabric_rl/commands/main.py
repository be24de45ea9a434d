"""`fabric-rl COMMAND`: each command is a function, and its signature defines its command line.

Parameters without a default, and those before a `/`, are positional arguments in that order; all others are flags. If a
default is a dataclass, each of its fields is a flag. A sequence takes one or more words. A command with a parameter
`env` also takes `--config`. A parameter `training` receives the flags for train_fabric.py: all that the command itself
does not have. The function returns a `Report`, several of them, or only the exit status.
"""

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

import docstring_parser
from jsonargparse import ArgumentParser, set_parsing_settings
from rich.console import Console

from fabric_rl.base.argv import boolean_flags, flag_names, normalize_flags, remove_flags
from fabric_rl.base.config_files import expand_config, locate_config_errors
from fabric_rl.base.errors import exit_on_user_error
from fabric_rl.base.parser import FlagParser
from fabric_rl.base.processes import import_slow_module
from fabric_rl.metrics.log import log_warnings
from fabric_rl.ranks.processes import exit_with_launcher

_PROGRAM = "fabric-rl"
_ABOUT = "Train agents for Rocket League, watch them play, and measure how good they are."
_HELP = "`fabric-rl COMMAND --help` explains a command and its flags."
_CONFIG = "YAML file for train_fabric.py whose env (and agent) are used; flags such as --env.tick_skip 4 override it."


@dataclass(frozen=True)
class Command:
    """A command of `fabric-rl`."""

    function: str
    """`module:name` in this package; imported on demand."""
    help: str
    """Description in the list of all commands."""
    example: str = ""
    """Words of an example, for an error about missing or wrong words."""
    commands: Mapping[str, "Command"] = field(default_factory=dict)
    """Subcommands, if any; the command also runs without one."""
    preset: str = ""
    """`module:name` of a function that chooses a configuration if the words name neither one nor an environment."""


_DEMOS = {
    "record": Command("demos:record_demos", "record what an agent or a bot plays"),
    "convert": Command("demos:convert_demos", "convert replays of human games"),
    "show": Command("demos:show_demos", "show what a demonstration contains"),
}
_RUNS = {
    "show": Command("runs:show_run", "show one run with all its milestones", "first"),
    "compare": Command("runs:compare_runs", "plot curves of several runs, as a picture and as text", "first second"),
}
GROUPS = {
    "Train": {
        "train": Command("", "train an agent (same as `python train_fabric.py`)"),
        "new": Command("new:new", "create a project with its own reward, agent and tests"),
        "import": Command(
            "import_config:import_config", "convert files of Unity ML-Agents", "trainer.yaml --env_id CartPole-v1"
        ),
        "seeds": Command("seeds:seeds", "train the same settings with several seeds"),
        "sweep": Command("sweep:sweep", "search for good settings with Optuna"),
        "pbt": Command("pbt:pbt", "train a population whose settings change (population-based training)"),
        "tune": Command("tune:tune", "find the fastest settings for this machine"),
        "search": Command("search:search_states", "find action sequences that reach a goal, as a demonstration"),
        "clone": Command("demos:clone", "train an agent to imitate demonstrations", preset="demos:preset"),
        "demos": Command("demos:demos", "record, convert, list or show demonstrations", commands=_DEMOS),
    },
    "Watch": {
        "watch": Command("watch:watch", "watch a run, a replay or a live match in the browser", "school_1v1 chaser"),
        # not `play`: jsonargparse would look for it in `fabric_rl`, which imports torch
        "play": Command("play:play_bot", "play against a bot in the browser"),
        "record": Command("evaluate:record", "record a match as a replay or a video", "school_1v1 chaser"),
        "export-replay": Command("watch:export_replay", "convert a replay to an HTML page or a video", "a.frl a.mp4"),
        "report": Command("report:report", "write an HTML report of a run", "first"),
    },
    "Measure": {
        "evaluate": Command("evaluate:evaluate", "play matches and report the goal difference", "first chaser"),
        "league": Command("evaluate:league", "play a round robin and rate the players", "first chaser shooter"),
        "run_selfplay_eval": Command("evaluate:league", "another name for `league`"),
        "exam": Command("evaluate:exam", "test a bot on the shots of training packs", "school_1v1"),
        "compare": Command("report:compare", "compare groups of runs over their seeds"),
        "runs": Command("runs:runs", "list, show or plot runs", "show first", _RUNS),
        "rerun": Command("rerun:rerun", "repeat a run and check that the result is identical"),
    },
    "Check rewards and initial states": {
        "audit-rewards": Command("checks:audit", "check a reward for farming and own goals (status 1 if it fails)"),
        "trace-rewards": Command("checks:trace_rewards", "show one car's rewards step by step"),
        "show-resets": Command("checks:show_resets", "show the initial states of episodes"),
    },
    "Deploy": {
        "export": Command("export:export", "export an agent for fabric-rl, other programs or the real game"),
        "flight": Command("flight:flight", "test an exported RLBot bot without the game"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class _CommandParser(FlagParser):
    """Parser whose help raises a BrokenPipeError, which argparse hides, and whose errors end with an example."""

    example = ""

    def print_help(self, file: Any = None) -> None:  # noqa: ANN401 - argparse's
        print(self.format_help(), end="", file=file)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        wrong_words = re.match("the following arguments are required|there is no command [^;]*; known[^;]*$", message)
        super().error(message + self.example if wrong_words else message, ex)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the `fabric-rl` command.

    Args:
        argv: Arguments after `fabric-rl`. Default: the arguments of this process.

    Raises:
        SystemExit: Status 0 for success, 1 for a failed audit or a closed pipe, 2 for wrong usage, 130 after Ctrl+C.
    """
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    program = f"{_PROGRAM} {words[0]}" if words[0] in COMMANDS else _PROGRAM
    if os.getcwd() not in sys.path:  # to find the user's classes, as with `python train_fabric.py`
        sys.path.append(os.getcwd())
    try:
        with _quiet_pipe(), log_warnings(), exit_on_user_error(program):
            if words[0] == "train":  # it has its own parser, see fabric_rl.cli.command_line
                exit_with_launcher()  # before slow imports
                sys.exit(import_module("train_fabric").cli(words[1:]))
            if words in (["--help"], ["-h"]):
                print(overview())
                sys.exit(0)
            sys.exit(_run(words))
    except KeyboardInterrupt:
        sys.exit(130)


def overview() -> str:
    """Return the help of `fabric-rl` itself: all commands, by group."""
    lines = [f"usage: {_PROGRAM} COMMAND [...]", "", _ABOUT]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<18} {command.help}" for name, command in commands.items())]
    return "\n".join([*lines, "", _HELP])


def command_parser(name: str) -> tuple[_CommandParser, dict[str, Callable[..., Any]]]:
    """Return the parser with the flags of one command, and its functions by their commands: `runs`, `runs show`."""
    parser = _CommandParser(prog=_PROGRAM, description=_ABOUT, exit_on_error=False)
    return parser, _add_commands(parser, COMMANDS, only=name)


def _run(words: list[str]) -> int:
    parser, functions = command_parser(words[0])
    command, path = COMMANDS.get(words[0], Command("", "")), f"{_PROGRAM} {words[0]}"
    for name in words[1:2]:
        if name in command.commands:
            command, path = command.commands[name], f"{path} {name}"
    parser.example = f"; for example: {path} {command.example}" if command.example else ""
    groups = [group for function in functions.values() for group in _groups(function).values()]
    given = words = normalize_flags(words, boolean_flags(*functions.values(), *groups))
    taken = {name for function in functions.values() for name in inspect.signature(function).parameters}
    training: list[str] = []
    if "training" in taken:
        own = {"--help", *(f"--{name}" for name in taken)}
        training = remove_flags(words[1:], own)
        words = remove_flags(words, set(flag_names(words)) - own)
    if "env" in taken:
        preset = COMMANDS[words[0]].preset
        words = expand_config(words, sorted({"env", "agent"} & taken), _load(preset)(words) if preset else None)
    with locate_config_errors(given):
        values: Any = parser.instantiate(parser.parse_args(words))
    path, before = "", dict[str, Any]()
    while name := values.get("command"):
        path, values = f"{path} {name}".strip(), values[name]
        parameters, groups = inspect.signature(functions[path]).parameters, list(_groups(functions[path]).values())
        flags = [each.name for group in groups for each in fields(group)]
        flags += [name for name in parameters if name not in _groups(functions[path])]
        settings = {key: values[key] for key in (*flags, *(out.flag for out in _outs(functions[path])))}
        for key in before.keys() & parameters.keys():  # `runs --runs_dir X show A`: both commands have the flag
            settings[key] = before[key] if settings[key] == parameters[key].default else settings[key]
        before = settings
    if "training" in taken:
        settings["training"] = training
    return _call(functions[path], settings)


def _call(function: Callable[..., Any], settings: dict[str, Any]) -> int:
    """Call the function of a command with the values of all flags, and print and write its reports."""
    from fabric_rl.base.settings import check_value
    from fabric_rl.commands.output import STDOUT, check_out, write_reports

    parameters = inspect.signature(function).parameters
    reported: list[Path] = []
    for out in _outs(function):
        value = settings[out.flag] if out.flag in parameters else settings.pop(out.flag)
        paths = [] if value is None else [value] if isinstance(value, Path) else list(value)
        is_word = out.flag in parameters and parameters[out.flag].default is inspect.Parameter.empty
        check_out(paths, out.suffixes, out.flag.upper() if is_word else f"--{out.flag}")
        reported += [] if out.flag in parameters else paths
    for name, group in _groups(function).items():
        settings[name] = group(**{each.name: settings.pop(each.name) for each in fields(group)})
    for name, parameter in parameters.items():
        if isinstance(settings[name], int | float):
            settings[name] = check_value(f"--{name}", settings[name], parameter.annotation)
    words = [settings.pop(key) for key, each in parameters.items() if each.kind is each.POSITIONAL_ONLY]
    stdout = sys.stdout
    with redirect_stdout(sys.stderr if STDOUT in reported else stdout):  # only the JSON goes to standard output
        return write_reports(function(*words, **settings), reported, stdout)


def _outs(function: Callable[..., Any]) -> Sequence[Any]:
    """Return the files that a command writes; see `fabric_rl.commands.output.writes`."""
    return getattr(function, "outs", ())


def _groups(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the classes of a function's parameters whose default is a dataclass; their fields are flags."""
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    return {name: type(each) for name, each in defaults.items() if is_dataclass(each) and not inspect.isclass(each)}


def _add_commands(
    parser: ArgumentParser, commands: Mapping[str, Command], only: str | None = None, path: str = ""
) -> dict[str, Callable[..., Any]]:
    """Add commands to a parser, with the flags of all or `only` one of them; return their functions by command."""
    found: dict[str, Callable[..., Any]] = {}
    subparsers = parser.add_subcommands(required=not path, dest="command", title="commands", description=_HELP)
    for name, command in commands.items():
        own = subparsers.add_subcommand(name, _CommandParser(), help=command.help)
        own.prog = f"{parser.prog} {name}"
        if only in (None, name):
            words = f"{path} {name}".strip()
            found[words] = _load(command.function)
            _add_parameters(own, found[words])
            if command.commands:
                found |= _add_commands(own, command.commands, path=words)
    return found


def _add_parameters(parser: ArgumentParser, function: Callable[..., Any]) -> None:
    """Add the parameters of a function, with help from its docstring, and flags for its reports."""
    parameters = inspect.signature(function).parameters
    text = docstring_parser.parse(function.__doc__ or "")
    helps = {param.arg_name: param.description for param in text.params}
    parser.description = text.description
    groups = _groups(function)
    several = [p for p in parameters.values() if get_origin(p.annotation) is Sequence]
    optional = [p for p in parameters.values() if p.kind is p.POSITIONAL_ONLY and p.default is not p.empty]
    skip: set[str | int] = {*(p.name for p in (*several, *optional)), *groups}
    parser.add_function_arguments(function, as_group=False, as_positional=True, skip=skip)
    if "env" in parameters:  # becomes flags, see expand_config
        parser.add_argument("--config", help=_CONFIG)
    for p in several:
        how: dict[str, Any] = {"nargs": "*" if p.name == "training" else "+", "type": get_args(p.annotation)[0]}
        if p.default is not p.empty or p.name == "training":
            how["default"] = [] if p.name == "training" else list(p.default)
        parser.add_argument(p.name if p.default is p.empty else f"--{p.name}", help=helps[p.name], **how)
    for p in optional:
        parser.add_argument(p.name, nargs="?", type=p.annotation, default=p.default, help=helps[p.name])
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    for group in groups.values():
        parser.add_class_arguments(group, as_group=False)
    for out in _outs(function):
        if out.flag not in parameters:
            how = {"nargs": "+", "default": ()} if out.several else {}
            how = {"nargs": "?", "const": "-"} if out.flag == "json" else how
            parser.add_argument(f"--{out.flag}", type=Path, help=out.help, **how)


def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    with Console(stderr=True).status("loading ..."):  # nothing is shown unless it is a terminal
        function: Callable[..., Any] = getattr(import_slow_module(f"fabric_rl.commands.{module}"), name)
    return function


@contextmanager
def _quiet_pipe() -> Iterator[None]:
    """Exit silently with status 1 if nothing reads the output any more, as in `... | head`."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where an error can be caught, rather than when Python exits
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest of the buffer would fail at exit
        sys.exit(1)
