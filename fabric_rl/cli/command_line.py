"""From the words of the command line to the arguments of `main()`, whose signature it is, and the parts they name."""

import inspect
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
from fabric_rl.base.argv import names_of, normalise, preset_names, switches, value_of, with_classes_of_help
from fabric_rl.base.config_files import configurations, naming_the_file, read_yaml
from fabric_rl.base.errors import NAMES_A_FLAG, user_code
from fabric_rl.base.messages import MISTAKES, one_line
from fabric_rl.base.parser import FlagParser
from fabric_rl.dry_run import check_agent
from fabric_rl.metrics.log import program, say
from fabric_rl.ranks import launch
from fabric_rl.runs.folder import Run
from fabric_rl.runs.start import locate, run_of
from fabric_rl.types import CheckpointError, OffPolicyAgent

_RESOLVED = "resolved_config"
"""The parameter of `main()` that takes all settings as YAML; it is no flag."""
_CONFIG = "YAML file with any of the settings below, or one of the presets: {}."
_MADE = ("env", "agent", "estimator")
_OF_ONE_START: dict[str, Any] = {"run_id": None, "initialize_from": None}
_OF_ONE_START |= dict.fromkeys(("resume", "force", "inference"), False)
"""Settings that say how a run started, and would start another one in the same way."""


@dataclass(frozen=True)
class Settings:
    """The content of a command line."""

    given: list[str]
    """Its words, flags spelt with underscores; where a run goes on, after those that name its configuration."""
    arguments: dict[str, Any]
    """Of `main()`."""


def read_settings(main: Callable[..., Any], argv: Sequence[str], about: str, preset: Path) -> Settings:
    """Reads the arguments of `main()` from flags and configuration files.

    A parameter whose default is a dataclass gets its fields as flags; every other one is a flag.

    Args:
        main: With a Google docstring, which becomes the help.
        argv: The command line without the program's name.
        about: What the program does.
        preset: The configuration of a command line that names neither one nor an environment.

    Raises:
        ArgumentError: Unknown or wrong flags.
        ValueError: Settings that do not go together, or a part that could not be built.
        SystemExit: `--help` and `--print_config`.
    """
    defaults, groups, parser = _parser_of(main, about)
    parts = {name: part for name, part in defaults.items() if inspect.isclass(part)}
    classes = {f"--{name}": f"{part.__module__}.{part.__qualname__}" for name, part in parts.items()}
    given = with_classes_of_help(normalise(argv, switches(main, *groups.values())), classes)
    if "--env_id" in names_of(given):
        _refuse_env_flags(names_of(given), "--env_id")
    of_run, base = _base(given, preset)
    words = [*base, *given]
    if "--agent" in names_of(words) or any(_names_class(file.get("agent")) for file in configurations(words)):
        parser.set_defaults({"agent": None})  # else a chosen class would begin with the settings of the default one
    with naming_the_file(words):
        config = parser.parse_args(words)
        _check(parser, given, config, preset)
        config.pop("config")
        _give_value_heads(config)
        again = config.clone()
        with naming_the_flag(config):
            values = vars(parser.instantiate(config, instantiators=INSTANTIATORS))
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
    values[_RESOLVED] = _as_yaml(parser, again)
    return Settings([*of_run, *given], values)


def settings_of_call(
    main: Callable[..., Any], arguments: Mapping[str, Any], to_config: Callable[[Any], Any]
) -> tuple[str, list[str]]:
    """All settings of a call of `main()` from Python as YAML: what the command line would keep of the same run.

    Args:
        main: As for `read_settings`.
        arguments: All of its arguments.
        to_config: Writes one in the words of a configuration file, or raises ValueError.

    Returns:
        The YAML, and words about each argument that cannot be written: it lacks them, or says `null`.
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
                parser.instantiate(parser.parse_object(section))  # as whoever reads it will
                settings |= section
        except MISTAKES as error:
            lost[name] = one_line(str(error))
    config = parser.parse_object(settings)
    for name in lost:
        config.pop(name)
    lacking = "".join(f"{name}: null\n" for name in lost if name in _MADE)
    return _as_yaml(parser, config) + lacking, [f"{name} ({reason})" for name, reason in lost.items()]


def _parser_of(main: Callable[..., Any], about: str = "") -> tuple[dict[str, Any], dict[str, Any], FlagParser]:
    """The defaults of the parameters of `main()`, which of them are groups of settings, and a parser for all."""
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    defaults = {name: parameter.default for name, parameter in inspect.signature(main).parameters.items()}
    groups: dict[str, Any] = {
        name: type(default)
        for name, default in defaults.items()
        if is_dataclass(default) and not inspect.isclass(default)
    }
    parser = FlagParser(prog=program(), description=about, exit_on_error=False)
    parser.add_argument("--config", action="config", help=_CONFIG.format(", ".join(preset_names())))
    for group in groups.values():
        parser.add_class_arguments(group)
    parser.add_function_arguments(main, skip={*groups, _RESOLVED}, fail_untyped=False)
    return defaults, groups, parser


def _as_yaml(parser: FlagParser, config: Namespace) -> str:
    """Writes the settings without those of this start, and without an `env` that was not its own."""
    config.pop("config", None)
    for name, default in _OF_ONE_START.items():
        config[name] = default
    if config.env_id is not None:
        config.pop("env")
    if config.num_threads is None:
        config.pop("num_threads")  # a run notes how many it took
    text: str = parser.dump(config, skip_validation=True, skip_unset=False)  # a null may not be the default
    return text


def _names_class(section: Any) -> bool:  # noqa: ANN401 - whatever the file holds
    return isinstance(section, str) or (isinstance(section, dict) and "class_path" in section)


def _base(given: Sequence[str], preset: Path) -> tuple[list[str], list[str]]:
    """The configuration that the flags are laid over, where they name none.

    Returns:
        The flag for that of the run which goes on, and the one to read: that, or the preset.
    """
    names = names_of(given)
    if {"--config", "--env", "--env_id", "--help", "-h"}.intersection(names):
        return [], []
    if "--resume" not in names:
        return [], [f"--config={_fitting(preset, given)}"]
    of_run = _config_of_run(given)
    own = [] if of_run is None else ["--config", str(of_run)]
    if launch.detect().machines > 1:  # the text of what rank 0 has found
        return own, [f"--config={launch.share_text(of_run.read_text(encoding='utf-8') if of_run else None) or preset}"]
    return own, [f"--config={of_run or preset}"]


def _fitting(preset: Path, given: Sequence[str]) -> Path | str:
    """The preset; its text without the agent where the flags choose another one, whose settings are its own.

    Without PPO's settings, too, if that learns with SAC.
    """
    settings = read_yaml(preset)
    chosen = value_of(given, "--agent")
    if chosen is None:
        return preset
    try:
        made = resolve_name(chosen)
    except (ImportError, AttributeError, ValueError):  # said in one line later
        made = None
    if made is resolve_name(settings["agent"]["class_path"]):
        return preset
    dropped = {"agent", *(ONLY_PPO if inspect.isclass(made) and issubclass(made, OffPolicyAgent) else ())}
    others: str = yaml.safe_dump({name: section for name, section in settings.items() if name not in dropped})
    return others


def _check(parser: FlagParser, given: Sequence[str], config: Namespace, preset: Path) -> None:
    """Raises ValueError for flags that exclude each other; says what has no effect."""
    names = names_of(given)
    for name in _MADE:
        if config[name] is None and (name != "env" or config.env_id is None):
            raise ValueError(
                f"--{name}: the configuration has none; a run from Python with one that no file can hold goes on there"
            )
    if config.env_id is not None:
        _refuse_env_flags(names, f"env_id: {config.env_id} in the config file")
        _note_replaced_env(parser, given, config, preset)
    run = _config_of_run(given) if config.resume and "--agent" in names else None
    had = None if run is None else (read_yaml(run).get("agent") or {}).get("class_path")
    if had is not None and had != config.agent.class_path:
        raise ValueError(f"--agent {config.agent.class_path}: the run that --resume names goes on with {had} only")
    if config.resume and "--initialize_from" in names:  # in a configuration it says how its run began
        raise ValueError("--resume takes weights, optimizer and counters, --initialize_from weights only; choose one")


def _give_value_heads(config: Namespace) -> None:
    """Gives an agent with one value head one more for each of the `signals`; with several, the user keeps count."""
    settings = config.get("agent.init_args")
    if config.get("signals") and settings is not None and settings.get("value_heads") == 1:
        settings["value_heads"] = 1 + len(config["signals"])


def _refuse_env_flags(names: Sequence[str], env_id: str) -> None:
    """Rejects flags of `env` beside `env_id`, which would take the environment's place; a config file's env may."""
    env_flags = [name for name in names if name.partition(".")[0] == "--env"]
    if env_flags:
        raise ValueError(
            f"{', '.join(env_flags)} would have no effect beside {env_id}, which chooses another environment "
            "(its own flag is --num_envs); leave one of them out"
        )


def _note_replaced_env(parser: FlagParser, given: Sequence[str], config: Namespace, preset: Path) -> None:
    """Says that the `env` of a config file has no effect; that of the preset, or one that sets nothing, goes unsaid."""
    file = value_of(given, "--config")
    if file is None or Path(file).resolve() == preset.resolve() or not launch.is_rank_0():
        return
    if config.env != parser.parse_args([]).env:
        say(f"note: --env_id {config.env_id} takes the place of the env in {file}, which has no effect")


def _config_of_run(given: Sequence[str]) -> Path | None:
    """The configuration of the run that `--resume` goes on with, if the flags name it; a ValueError if it has none."""
    name, run_id = value_of(given, "--resume") or "true", value_of(given, "--run_id")
    runs_dir = value_of(given, "--runs_dir") or "runs"
    if name.lower() in ("false", "no", "off"):
        return None
    run: Run | None = None
    try:
        if name.lower() not in ("true", "yes", "on"):
            run = run_of(locate("--resume", runs_dir, name))
        elif run_id:
            run = Run.find(runs_dir, run_id)
    except (CheckpointError, OSError, ValueError):
        return None  # said in one line later
    if run is None:
        return None
    if not run.provenance.config.exists():
        raise ValueError(
            f"--resume: run {run.name} has no config.yaml, so its settings are not known; give them with --config, "
            "--env or --env_id"
        )
    return run.provenance.config


class PartError(ValueError):
    """A part could not be built; the message is one line with its flag, its class and the reason."""

    def __init__(self, part: type, reason: str, flag: str | None = None) -> None:
        self.part, self.reason = part, reason
        super().__init__(f"{flag}: {reason}" if flag and not NAMES_A_FLAG.search(reason) else reason)


_failures: ContextVar[list[PartError] | None] = ContextVar("_failures", default=None)


def build(part: type, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any class with any arguments
    """Build a part of a configuration: jsonargparse calls this for every class, see `naming_the_flag`.

    Raises:
        PartError: The class refused, or failed for any other reason; also an agent that lacks what every agent has.
    """
    try:
        built = part(*args, **kwargs)
        if isinstance(built, LightningModule):
            check_agent(built)
        return built
    except Exception as error:
        problem = PartError(part, _reason(part, error, args, kwargs))
        if (failures := _failures.get()) is not None:
            failures.append(problem)
        raise problem from error


INSTANTIATORS = [(build, object, True)]
"""For `ArgumentParser.instantiate`: `build` for classes of all kinds."""


@contextmanager
def naming_the_flag(config: Any) -> Iterator[None]:  # noqa: ANN401 - jsonargparse's Namespace
    """Name the flag of the first part that fails while the block instantiates `config`.

    jsonargparse tries every type that a setting may have, and would list what each of them had to say.

    Raises:
        PartError: A part could not be built.
    """
    failures: list[PartError] = []
    token = _failures.set(failures)
    try:
        yield
    except Exception as error:
        if not failures:
            raise
        first = failures[0]
        flag = next((flag for flag, name in _classes(config, "--") if name == first.part.__name__), None)
        raise PartError(first.part, first.reason, flag) from (first.__cause__ or error)
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
    place = user_code(error)
    return f"{message} ({place})" if place else message


def _wrong_signature(part: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return what the constructor has to take, if that is why it failed."""
    try:
        signature = inspect.signature(part)
        signature.bind(*args, **kwargs)
    except ValueError:
        return None  # written in C
    except TypeError:
        takes = f"its __init__ takes ({', '.join(signature.parameters)})"
        if issubclass(part, LightningModule):
            return f"{takes}, but must take observation_space and action_space before its settings"
        if issubclass(part, VectorEnv):
            return f"{takes}, but must take seed and its settings"
        return f"{takes}, but is given {', '.join(kwargs) or 'nothing'}"
    return None


def _classes(node: Any, flag: str, position: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any setting
    """Yield flag and name of every class of a configuration; several classes of one list are numbered."""
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
