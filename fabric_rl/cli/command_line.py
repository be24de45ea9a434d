"""Command line: turn flags and configuration files into the arguments of `main()`."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml
from gymnasium.vector import VectorEnv
from jsonargparse import Namespace, set_parsing_settings
from lightning import LightningModule

from fabric_rl.args import ONLY_PPO
from fabric_rl.base.argv import (
    PRESETS,
    boolean_flags,
    complete_help_flags,
    flag_names,
    flag_values,
    last_flag_value,
    normalize_flags,
    preset_names,
    resolve_preset,
)
from fabric_rl.base.config_files import locate_config_errors, read_configs, read_yaml, refuse_code_beside
from fabric_rl.base.errors import NAMES_A_FLAG, user_code_location
from fabric_rl.base.files import read_text
from fabric_rl.base.messages import USER_ERRORS, one_line
from fabric_rl.base.parser import FlagParser
from fabric_rl.dry_run import check_agent
from fabric_rl.metrics.log import print_lines, program_name
from fabric_rl.ranks import launched_by
from fabric_rl.ranks.devices import choose_precision
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import find_config
from fabric_rl.runs.start_or_resume import OF_NETWORKS, owning_run, resolve_checkpoint_path
from fabric_rl.types import CheckpointError, OffPolicyAgent

_RESOLVED = "resolved_config"
"""Parameter of `main()` that receives all settings as YAML. It is not a flag."""
_CONFIG = "YAML file with any of the settings below, or one of the presets: {}."
_MADE = ("env", "agent", "estimator")
_OF_ONE_START: dict[str, Any] = {"run_id": None, "initialize_from": None}
_OF_ONE_START |= dict.fromkeys(("resume", "force", "inference", "deterministic"), False)
"""Settings that only apply to one start, and the defaults that are saved in their place."""


@dataclass(frozen=True)
class CommandLine:
    """Flags of a command line, and the arguments that they stand for."""

    given: list[str]
    """Flags, with underscores in their names; for a resumed run, preceded by `--config` and its configuration."""
    arguments: dict[str, Any]
    """Arguments of `main()`."""


def read_settings(
    main: Callable[..., Any], argv: Sequence[str] | None, about: str, preset: Path, own_files: bool = True
) -> CommandLine:
    """Read the arguments of `main()` from flags and configuration files.

    Each parameter is a flag, except for dataclasses, whose fields are flags. Class paths may name modules in the
    working folder.

    Args:
        main: Function with a Google docstring, which becomes the help.
        argv: Command line without the program's name. None: the command line of this process.
        about: Description of the program for the help.
        preset: Configuration for command lines that name neither a configuration nor an environment.
        own_files: The user has chosen the files after `--config` for training, so class paths may also name modules
            beside them. Never for the file of a finished run, which may be someone else's.

    Raises:
        ArgumentError: A flag is unknown or wrong.
        ValueError: Settings contradict each other, or a part could not be built.
        SystemExit: After `--help` or `--print_config`.
    """
    defaults, groups, parser = _parser_of(main, about)
    classes = {
        f"--{name}": f"{part.__module__}.{part.__qualname__}"
        for name, part in defaults.items()
        if inspect.isclass(part)
    }
    argv = sys.argv[1:] if argv is None else argv
    given = complete_help_flags(normalize_flags(argv, boolean_flags(main, *groups.values())), classes)
    files = [Path(resolve_preset(value)) for value in flag_values(given, "--config") if value and own_files]
    beside = [str(file.resolve().parent) for file in files if file.is_file() and file.parent != PRESETS]
    here = os.getcwd()
    sys.path[:] = [each or here for each in sys.path]  # "" would follow jsonargparse into the folder of a configuration
    sys.path += [each for each in dict.fromkeys([here, *beside]) if each not in sys.path]
    if "--env_id" in flag_names(given):
        _refuse_env_flags(flag_names(given), "--env_id")
    of_run, base = _base(given, preset)
    for file in filter(None, flag_values(of_run if own_files else given, "--config")):
        refuse_code_beside(Path(file), read_yaml(file))
    words = _with_settings_of_origin(base, given)
    agents = [file.get("agent") for file in read_configs(words)]
    named = (isinstance(each, str) or (isinstance(each, dict) and "class_path" in each) for each in agents)
    if "--agent" in flag_names(words) or any(named):
        parser.set_defaults({"agent": None})  # else a chosen class would start with the settings of the default class
    with locate_config_errors(words):
        config = parser.parse_args(words)
        _drop_repeated(parser, config, base, given)
        _check(parser, given, config, preset)
        config.pop("config")
        of_agent = config.get("agent.init_args")
        if config.get("signals") and of_agent is not None and of_agent.get("value_heads") == 1:
            of_agent["value_heads"] = 1 + len(config["signals"])  # several heads are the user's choice
        again = config.clone()
        with locate_part_errors(config):
            values = vars(parser.instantiate(config, instantiators=[(build, object, True)]))
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
    values[_RESOLVED] = _as_yaml(parser, again)
    return CommandLine([*of_run, *given], values)


def settings_as_yaml(
    main: Callable[..., Any], arguments: Mapping[str, Any], to_config: Callable[[Any], Any]
) -> tuple[str, list[str]]:
    """Return the settings of a call of `main()` from Python as YAML, like a run started on the command line.

    Args:
        main: As in `read_settings`.
        arguments: All arguments of `main()`.
        to_config: Function that converts an argument to the content of a configuration file, or raises ValueError.

    Returns:
        The YAML, and `name (reason)` of each argument that it cannot represent and that is missing or `null` in it.
    """
    defaults, groups, parser = _parser_of(main)
    settings: dict[str, Any] = {}
    lost: dict[str, str] = {}
    for name, value in arguments.items():
        try:
            if name in groups:
                settings |= {each.name: getattr(value, each.name) for each in fields(value)}
            elif name == "logger" and value is not None:
                raise ValueError("loggers are objects")
            elif name != _RESOLVED and value is not defaults[name]:
                section = {name: to_config(value)}
                parser.instantiate(parser.parse_object(section))  # as a reader of the file would
                settings |= section
        except USER_ERRORS as error:
            lost[name] = one_line(str(error))
    config = parser.parse_object(settings)
    for name in lost:
        config.pop(name)
    lacking = "".join(f"{name}: null\n" for name in lost if name in _MADE)
    return _as_yaml(parser, config) + lacking, [f"{name} ({reason})" for name, reason in lost.items()]


def _parser_of(main: Callable[..., Any], about: str = "") -> tuple[dict[str, Any], dict[str, Any], FlagParser]:
    """Return the parameters of `main()` with their defaults, the dataclasses among these, and a parser for all."""
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    defaults = {name: parameter.default for name, parameter in inspect.signature(main).parameters.items()}
    groups: dict[str, Any] = {
        name: type(default)
        for name, default in defaults.items()
        if is_dataclass(default) and not inspect.isclass(default)
    }
    parser = FlagParser(prog=program_name(), description=about, exit_on_error=False)
    parser.add_argument("--config", action="config", help=_CONFIG.format(", ".join(preset_names())))
    for group in groups.values():
        parser.add_class_arguments(group)
    parser.add_function_arguments(main, skip={*groups, _RESOLVED}, fail_untyped=False)
    return defaults, groups, parser


def _as_yaml(parser: FlagParser, config: Namespace) -> str:
    """Return settings as YAML, with defaults for settings of this start, and without an `env` replaced by `env_id`."""
    config.pop("config", None)
    config.precision = choose_precision(config.precision, config.accelerator)
    for name, default in _OF_ONE_START.items():
        config[name] = default
    if config.env_id is not None:
        config.pop("env")
    if config.num_threads is None:
        config.pop("num_threads")  # a run saves the number it used
    text: str = parser.dump(config, skip_validation=True, skip_unset=False)  # null may differ from the default
    return text


def _base(given: Sequence[str], preset: Path) -> tuple[list[str], list[str]]:
    """Return the configuration that the flags override if they do not name one: a resumed run's, or the preset.

    Returns:
        The flags that name the configuration of a resumed run, and the flags to parse: that configuration, or the
        preset.
    """
    names = flag_names(given)
    if {"--config", "--env", "--env_id", "--help", "-h"}.intersection(names):
        return [], []
    if "--resume" not in names:
        return [], [f"--config={_fitting(preset, given)}"]
    of_run = _config_of_run(given)
    own = [] if of_run is None else ["--config", str(of_run)]
    if launched_by.detect_launcher().machines > 1:  # the content of the file on rank 0
        return own, [f"--config={launched_by.broadcast_text(read_text(of_run) if of_run else None) or preset}"]
    return own, [f"--config={of_run or preset}"]


def _with_settings_of_origin(base: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return the flags to parse; they take networks, observations and actions from the run of `--initialize_from`.

    The settings of that run follow the shipped presets. The user's own files and flags follow them; a note names the
    settings of these files that differ.
    """
    words = [*base, *given]
    files, origin = read_configs(words), last_flag_value(words, "--initialize_from")
    if origin is None or "--resume" in flag_names(words) or "--help" in words:
        return words
    try:
        path = resolve_checkpoint_path("", last_flag_value(words, "--runs_dir") or "runs", origin)
        config = find_config(path / "weights")
        theirs = read_yaml(config)
    except (CheckpointError, OSError, ValueError):
        theirs = {}  # reported later, if it is an error
    else:
        refuse_code_beside(config, theirs)
    agent, chosen = theirs.get("agent"), last_flag_value(words, "--agent")
    taken: dict[str, Any] = {}
    if isinstance(agent, dict) and chosen in (None, agent.get("class_path")):
        networks = {name: value for name, value in (agent.get("init_args") or {}).items() if name in OF_NETWORKS}
        taken["agent"] = {"class_path": agent["class_path"], "init_args": networks}
    envs = [file["env"] for file in files if isinstance(file.get("env"), dict) and "class_path" in file["env"]]
    (there, _), (here, outer) = _innermost(theirs.get("env")), _innermost([None, *envs][-1])
    if there and here and there["class_path"] == here["class_path"] and last_flag_value(words, "--env") is None:
        spaces = {name: there["init_args"][name] for name in ("obs", "action") if name in there.get("init_args", {})}
        taken["env"] = {"init_args": spaces}
        for each in outer:
            taken["env"] = {"init_args": {each: taken["env"]}}
    text = yaml.safe_dump(taken)
    if launched_by.detect_launcher().machines > 1:
        text = launched_by.broadcast_text(text) or text
    place = len(base)
    for number, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        value = word if before == "--config" else word.removeprefix("--config=")
        if value != word or before == "--config":
            file = Path(resolve_preset(value))
            if file.parent == PRESETS:
                place = number + 1
            elif file.is_file() and launched_by.is_rank_0():
                _note_differences(str(file), origin, taken, read_yaml(file), flag_names(given))
    return [*words[:place], f"--config={text}", *words[place:]]


def _innermost(env: Any) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401 - a section of a configuration
    """Return the section of the environment inside any factories, and the settings that lead to it, inside out."""
    outer: list[str] = []
    while isinstance(env, dict) and isinstance(inner := (env.get("init_args") or {}).get("factory"), dict):
        env, outer = inner, ["factory", *outer]
    return (env if isinstance(env, dict) and "class_path" in env else {}), outer


def _note_differences(file: str, origin: str, theirs: Any, own: Any, flags: Sequence[str], flag: str = "-") -> None:  # noqa: ANN401
    """Print a line for each setting of a user's own file that differs from the run to start from."""
    if isinstance(theirs, dict) and isinstance(own, dict):
        for name in theirs.keys() & own.keys():
            inner = flag if name == "init_args" else f"{flag}.{name}".replace("-.", "--")
            _note_differences(file, origin, theirs[name], own[name], flags, inner)
    elif theirs != own and flag.removesuffix(".class_path") not in flags:
        print_lines(
            f"note: {flag} is {own} in {file}, but {origin} was trained with {theirs}; the file's value is used"
        )


def _fitting(preset: Path, given: Sequence[str]) -> Path | str:
    """Return the preset; if the flags choose another agent, its text without the agent and, for SAC, PPO's settings."""
    settings = read_yaml(preset)
    chosen = last_flag_value(given, "--agent")
    if chosen is None:
        return preset
    try:
        made = resolve_name(chosen)
    except (ImportError, AttributeError, ValueError):  # reported later
        made = None
    if made is resolve_name(settings["agent"]["class_path"]):
        return preset
    dropped = {"agent", *(ONLY_PPO if inspect.isclass(made) and issubclass(made, OffPolicyAgent) else ())}
    others: str = yaml.safe_dump({name: section for name, section in settings.items() if name not in dropped})
    return others


def _drop_repeated(parser: FlagParser, config: Namespace, base: Sequence[str], given: Sequence[str]) -> None:
    """Drop what flags such as `--callbacks+=` append to a list of a resumed run that already contains the same.

    Such a run is usually resumed by its own command with `--resume` at the end.
    """
    names = flag_names(given)
    appended = {name[2:-1].replace("init_args.", "") for name in names if name.endswith("+")}
    if not (appended and base and "--resume" in names):
        return
    of_run = parser.parse_args(base)
    for key in of_run.keys():  # noqa: SIM118 - of nested settings, too
        own, found = of_run[key], config.get(key)
        is_list = key.replace("init_args.", "") in appended and isinstance(own, list) and isinstance(found, list)
        if is_list and found[: len(own)] == own:  # no flag has replaced the list
            config[key] = own + [each for each in found[len(own) :] if each not in own]


def _check(parser: FlagParser, given: Sequence[str], config: Namespace, preset: Path) -> None:
    """Raise ValueError for contradictory flags, and print a note about an `env` without effect."""
    names = flag_names(given)
    for name in _MADE:
        if config[name] is None and (name != "env" or config.env_id is None):
            raise ValueError(
                f"--{name} is not in the configuration; if the run began in Python with an {name} that no file can "
                "store, resume it from Python"
            )
    if config.env_id is not None:
        _refuse_env_flags(names, f"env_id: {config.env_id} in the config file")
        file = last_flag_value(given, "--config")
        of_user = file is not None and Path(file).resolve() != preset.resolve() and launched_by.is_rank_0()
        if of_user and config.env != parser.parse_args([]).env:
            print_lines(f"note: --env_id {config.env_id} replaces the env in {file}, which has no effect")
    run = _config_of_run(given) if config.resume and "--agent" in names else None
    had = None if run is None else (read_yaml(run).get("agent") or {}).get("class_path")
    if had is not None and had != config.agent.class_path:
        raise ValueError(f"--agent {config.agent.class_path}: the run that --resume names can only continue with {had}")
    if config.resume and "--initialize_from" in names:  # in a configuration it records how the run started
        raise ValueError("--resume loads weights, optimizer and counters, --initialize_from just weights; choose one")


def _refuse_env_flags(names: Sequence[str], env_id: str) -> None:
    """Raise ValueError for flags of `env` used together with `env_id`, where they would have no effect."""
    env_flags = [name for name in names if name.partition(".")[0] == "--env"]
    if env_flags:
        raise ValueError(
            f"{', '.join(env_flags)} would have no effect with {env_id}, which chooses another environment "
            "(its own flag is --num_envs); leave one or the other out"
        )


def _config_of_run(given: Sequence[str]) -> Path | None:
    """Return the configuration of the run that `--resume` names, or None; raise a ValueError if the file is gone."""
    name, run_id = last_flag_value(given, "--resume") or "true", last_flag_value(given, "--run_id")
    runs_dir = last_flag_value(given, "--runs_dir") or "runs"
    if name.lower() in ("false", "no", "off"):
        return None
    run: Run | None = None
    try:
        if name.lower() not in ("true", "yes", "on"):
            run = owning_run(resolve_checkpoint_path("--resume", runs_dir, name))
        elif run_id:
            run = Run.find(runs_dir, run_id)
    except (CheckpointError, OSError, ValueError):
        return None  # reported later
    if run is None:
        return None
    if not run.provenance.config.exists():
        raise ValueError(
            f"--resume: run {run.name} has no config.yaml, so its settings are unknown; pass them with --config, "
            "--env or --env_id"
        )
    return run.provenance.config


_failures: ContextVar[list[tuple[type, ValueError]]] = ContextVar("_failures")


def build(part: type, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any class with any arguments
    """Build a part of a configuration; jsonargparse calls this for every class (see `locate_part_errors`).

    Raises:
        ValueError: The constructor failed, or the part is an agent without a required method.
    """
    try:
        built = part(*args, **kwargs)
        if isinstance(built, LightningModule):
            check_agent(built)
        return built
    except Exception as error:
        problem = ValueError(_reason(part, error, args, kwargs))
        _failures.get([]).append((part, problem))
        raise problem from error


@contextmanager
def locate_part_errors(config: Any) -> Iterator[None]:  # noqa: ANN401 - jsonargparse's Namespace
    """Name the flag of the first part that fails while the block instantiates `config`.

    jsonargparse tries every type that a setting may have, and would list all errors.

    Raises:
        ValueError: A part could not be built.
    """
    token = _failures.set([])
    try:
        yield
    except Exception:
        for part, problem in _failures.get():
            flag = next((flag for flag, name in _classes(config, "--") if name == part.__name__), None)
            named = str(problem) if flag is None or NAMES_A_FLAG.search(str(problem)) else f"{flag}: {problem}"
            raise ValueError(named) from problem.__cause__
        raise
    finally:
        _failures.reset(token)


def _reason(part: type, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    name, message = part.__name__, str(error)
    if isinstance(error, TypeError) and (lacks := _wrong_signature(part, args, kwargs)):
        return f"{name}: {lacks}"
    if not isinstance(error, (ValueError, TypeError, OSError, ImportError, RuntimeError)) or not message:
        message = f"{type(error).__name__}: {message}".rstrip(": ")
    if "before Module.__init__()" in message:
        message += "; its __init__ must first call super().__init__(observation_space, action_space)"
    if not message.startswith(f"{name}:") and not NAMES_A_FLAG.search(message):
        message = f"{name}: {message}"
    place = user_code_location(error)
    return f"{message} ({place})" if place else message


def _wrong_signature(part: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return a message if the arguments do not fit the constructor, else None."""
    try:
        signature = inspect.signature(part)
        signature.bind(*args, **kwargs)
    except ValueError:
        return None  # a class written in C
    except TypeError:
        takes = f"its __init__ takes ({', '.join(signature.parameters)})"
        if issubclass(part, LightningModule):
            return f"{takes}, but must take observation_space and action_space before its settings"
        if issubclass(part, VectorEnv):
            return f"{takes}, but must take seed and its settings"
        return f"{takes}, but was given {', '.join(kwargs) or 'nothing'}"
    return None


def _classes(node: Any, flag: str, position: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any setting
    """Yield the flag and the name of every class in a configuration; classes in a list are numbered."""
    if isinstance(node, list):
        for number, item in enumerate(node, start=1):
            yield from _classes(item, flag, f" (number {number} of {len(node)})" if len(node) > 1 else "")
    elif isinstance(node, dict) or hasattr(node, "__dict__"):
        settings = node if isinstance(node, dict) else vars(node)
        if isinstance(path := settings.get("class_path"), str):
            yield flag + position, path.rpartition(".")[2]
        for name, value in settings.items():
            inner = f"{flag}.{name}".replace("--.", "--")
            yield from _classes(value, flag if name in ("init_args", "dict_kwargs") else inner)
