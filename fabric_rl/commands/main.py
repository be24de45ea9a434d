"""`fabric-rl COMMAND`: each command is a function in a file of its own, and its signature is its command line.

Parameters without a default, and those before a `/`, are words in that order; all others are flags. A sequence takes
one word or more. A command that has a parameter `env` also takes `--config`; one that has `training` gets there the
flags that are not its own, for train_fabric.py. The function returns the exit status.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NoReturn, get_args, get_origin

import docstring_parser
from jsonargparse import ArgumentParser

from fabric_rl.base.argv import names_of, normalise, switches, without
from fabric_rl.base.config_files import naming_the_file, with_sections_of_config
from fabric_rl.base.parser import FlagParser
from fabric_rl.cli.errors import mistakes_in_one_line
from fabric_rl.metrics.log import warnings_are_events
from fabric_rl.ranks.processes import end_with_launcher

_PROGRAM = "fabric-rl"
_ABOUT = "Train agents for Rocket League, watch them play, and measure how good they are."
_HELP = "`fabric-rl COMMAND --help` explains a command and its flags."
_CONFIG = "YAML file for train_fabric.py whose env (and agent) are used; flags such as --env.tick_skip 4 override it."


@dataclass(frozen=True)
class Command:
    """A command of `fabric-rl`."""

    function: str
    """Location of the function, `module:name`; imported on demand."""
    help: str
    """Description in the list of all commands."""
    commands: Mapping[str, "Command"] = field(default_factory=dict)
    """Subcommands, if any; the command also runs without one."""
    preset: str = ""
    """Function that finds the configuration if the words name neither one nor an environment, `module:name`."""


GROUPS = {
    "Train": {
        "train": Command("train_fabric:cli", "train an agent (same as `python train_fabric.py`)"),
        "new": Command("fabric_rl.commands.new:new", "create a project with its own reward, agent and tests"),
        "seeds": Command("fabric_rl.commands.seeds:seeds", "train the same settings with several seeds"),
        "sweep": Command("fabric_rl.commands.sweep:sweep", "search for good settings with Optuna"),
        "tune": Command("fabric_rl.commands.tune:tune", "find the fastest settings for this machine"),
        "clone": Command(
            "fabric_rl.commands.clone:clone",
            "train an agent to imitate demonstrations",
            preset="fabric_rl.commands.clone:preset",
        ),
        "demos": Command(
            "fabric_rl.commands.demos:demos",
            "record, convert, list or show demonstrations",
            {
                "record": Command("fabric_rl.commands.demos:record_demos", "record what an agent or a bot plays"),
                "convert": Command("fabric_rl.commands.demos:convert_demos", "convert replays of human games"),
                "show": Command("fabric_rl.commands.demos:show_demos", "show what a demonstration contains"),
            },
        ),
    },
    "Watch": {
        "watch": Command("fabric_rl.commands.watch:watch", "watch a run, a replay or a live match in the browser"),
        "record": Command("fabric_rl.commands.record:record", "record a match as a replay or a video"),
        "export-replay": Command(
            "fabric_rl.commands.export_replay:export_replay", "convert a replay to an HTML page or a video"
        ),
        "report": Command("fabric_rl.commands.report:report", "write an HTML report of a run"),
    },
    "Measure": {
        "evaluate": Command(
            "fabric_rl.commands.evaluate:evaluate", "play matches and report the goal difference with its interval"
        ),
        "league": Command("fabric_rl.commands.league:league", "play a round robin and rate the players"),
        "run_selfplay_eval": Command("fabric_rl.commands.league:league", "another name for `league`"),
        "exam": Command("fabric_rl.commands.exam:exam", "test a bot on the shots of training packs"),
        "compare": Command("fabric_rl.commands.compare:compare", "compare groups of runs over their seeds"),
        "runs": Command(
            "fabric_rl.commands.runs:runs",
            "list, show or plot runs",
            {
                "show": Command("fabric_rl.commands.runs:show_run", "show one run with all its milestones"),
                "compare": Command(
                    "fabric_rl.commands.runs:compare_runs", "plot curves of several runs, as a picture and as text"
                ),
            },
        ),
        "rerun": Command("fabric_rl.commands.rerun:rerun", "repeat a run and check that the result is identical"),
    },
    "Check rewards and initial states": {
        "audit-rewards": Command(
            "fabric_rl.commands.audit_rewards:audit", "check a reward for farming and own goals (status 1 if it fails)"
        ),
        "trace-rewards": Command(
            "fabric_rl.commands.trace_rewards:trace_rewards", "show one car's rewards step by step"
        ),
        "show-resets": Command("fabric_rl.commands.show_resets:show_resets", "show the initial states of episodes"),
    },
    "Deploy": {
        "export": Command(
            "fabric_rl.commands.export:export", "export an agent for fabric-rl, other programs or the real game"
        ),
        "flight": Command("fabric_rl.commands.flight:flight", "test an exported RLBot bot without the game"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class _CommandParser(FlagParser):
    """Does not keep from `_quiet_pipe` that nobody reads the help."""

    def print_help(self, file: Any = None) -> None:  # noqa: ANN401 - argparse's
        """Prints it."""
        print(self.format_help(), end="", file=file)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the `fabric-rl` command.

    Args:
        argv: The words after `fabric-rl`; default: those of this process.

    Raises:
        SystemExit: Status 0 for success, 1 for an audit that failed or output that nobody reads, 2 for wrong usage, 130
            after Ctrl+C.
    """
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    program = f"{_PROGRAM} {words[0]}" if words[0] in COMMANDS else _PROGRAM
    if os.getcwd() not in sys.path:  # classes of the user's own, as `python train_fabric.py` finds them
        sys.path.append(os.getcwd())
    try:
        with _quiet_pipe(), warnings_are_events(), mistakes_in_one_line(program):
            if words[0] == "train":  # reads its own words, see fabric_rl.cli.command_line
                end_with_launcher()  # before what takes seconds to import
                sys.exit(_load(COMMANDS["train"].function)(words[1:]))
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


def command_parser(name: str) -> ArgumentParser:
    """Return the parser that knows the flags of one command, for the reference (docs/cli.md)."""
    parser = _CommandParser(prog=_PROGRAM, description=_ABOUT, exit_on_error=False)
    _add_commands(parser, COMMANDS, only=name)
    return parser


def _run(words: list[str]) -> int:
    """Calls the command that the words name; returns its status."""
    parser = _CommandParser(prog=_PROGRAM, description=_ABOUT, exit_on_error=False)
    functions = _add_commands(parser, COMMANDS, only=words[0])
    given = words = normalise(words, switches(*functions.values()))
    taken = {name for function in functions.values() for name in inspect.signature(function).parameters}
    training: list[str] = []
    if "training" in taken:
        own = {"--help", *(f"--{name}" for name in taken)}
        training = without(words[1:], own)
        words = without(words, set(names_of(words)) - own)
    if "env" in taken:
        preset = COMMANDS[words[0]].preset
        sections = sorted({"env", "agent"} & taken)
        words = with_sections_of_config(words, sections, _load(preset)(words) if preset else None)
    with naming_the_file(given):
        values: Any = parser.instantiate(parser.parse_args(words))
    path, settings = "", dict[str, Any]()
    while name := values.get("command"):
        path, values, before = f"{path} {name}".strip(), values[name], settings
        parameters = inspect.signature(functions[path]).parameters
        settings = {key: values[key] for key in parameters}
        for key in before.keys() & parameters.keys():  # `runs --runs_dir X show A`: both commands have the flag
            settings[key] = before[key] if settings[key] == parameters[key].default else settings[key]
    if "training" in taken:
        settings["training"] = training
    if (seed := settings.get("seed") or 0) < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")
    words_of = [settings.pop(key) for key in parameters if parameters[key].kind is inspect.Parameter.POSITIONAL_ONLY]
    status: int = functions[path](*words_of, **settings)
    return status


def _add_commands(
    parser: ArgumentParser, commands: Mapping[str, Command], only: str | None = None, path: str = ""
) -> dict[str, Callable[..., int]]:
    """Adds commands to a parser, and their flags; those of one only, if it is named.

    Returns:
        The functions of those with flags, by what names them: `runs`, `runs show`.
    """
    functions: dict[str, Callable[..., int]] = {}
    subparsers = parser.add_subcommands(required=not path, dest="command", title="commands", description=_HELP)
    for name, command in commands.items():
        own = subparsers.add_subcommand(name, _CommandParser(), help=command.help)
        own.prog = f"{parser.prog} {name}"
        if only in (None, name):
            found = f"{path} {name}".strip()
            functions[found] = _load(command.function)
            _add_parameters(own, functions[found])
            if command.commands:
                functions |= _add_commands(own, command.commands, path=found)
    return functions


def _add_parameters(parser: ArgumentParser, function: Callable[..., int]) -> None:
    """Adds the parameters of a function, with what its docstring says about them."""
    parameters = inspect.signature(function).parameters.values()
    text = docstring_parser.parse(function.__doc__ or "")
    parser.description = text.description
    several = {p.name for p in parameters if get_origin(p.annotation) is Sequence}
    optional = {p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.default is not p.empty}
    bare = {p.name for p in parameters if p.name == "json"}  # without a file: standard output
    parser.add_function_arguments(function, as_group=False, as_positional=True, skip={*several, *optional, *bare})
    if any(p.name == "env" for p in parameters):  # in its place, see with_sections_of_config
        parser.add_argument("--config", help=_CONFIG)
    helps = {param.arg_name: param.description for param in text.params}
    for p in parameters:
        if p.name in several:
            kind, name = get_args(p.annotation)[0], p.name if p.default is p.empty else f"--{p.name}"
            default = {} if p.default is p.empty else {"default": p.default}
            default |= {"default": ()} if p.name == "training" else {}
            parser.add_argument(
                name, nargs="*" if p.name == "training" else "+", type=kind, help=helps[p.name], **default
            )
        elif p.name in bare:
            parser.add_argument(f"--{p.name}", nargs="?", const="-", type=p.annotation, help=helps[p.name])
        elif p.name in optional:
            parser.add_argument(p.name, nargs="?", type=p.annotation, default=p.default, help=helps[p.name])


def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


@contextmanager
def _quiet_pipe() -> Iterator[None]:
    """Ends with status 1 and without a word where nobody reads the output any more, as in `... | head`."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where it can be caught, and not when Python ends
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at the end
        sys.exit(1)
