"""Which part of a configuration failed: its flag, its class, and the line in a file of the user's own."""

import inspect
import os
import re
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any

from gymnasium.vector import VectorEnv
from lightning import LightningModule
from lightning.fabric.loggers.logger import Logger

from fabric_rl.callback import Callback
from fabric_rl.signals import RewardSignal
from fabric_rl.trial import check_agent
from fabric_rl.types import FailedElsewhere

_FLAGS: dict[type, str] = {LightningModule: "--agent", VectorEnv: "--env", Callback: "--callbacks", Logger: "--logger"}
_FLAGS |= {RewardSignal: "--signals"}
_HERE = Path(__file__).resolve().parents[1]
_SHIPPED = (
    *(f"{_HERE.parent / name}{os.sep}" for name in ("agents", "envs", "fabric_rl")),
    str(_HERE.parent / "train_fabric.py"),
)
_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_NAMES_FLAG = re.compile(r"--[a-z]\w")


class PartError(ValueError):
    """A part could not be built; the message is one line with its flag, its class and the reason.

    Attributes:
        part: The class.
        reason: What is wrong; it names the class.
    """

    def __init__(self, part: type, reason: str, flag: str | None = None) -> None:
        self.part, self.reason = part, reason
        flag = flag_of(part) if flag is None else flag
        super().__init__(f"{flag}: {reason}" if flag and not _NAMES_FLAG.search(reason) else reason)


_failures: ContextVar[list[PartError] | None] = ContextVar("_failures", default=None)


def build(part: type, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any class with any arguments
    """Builds a part of a configuration: what `jsonargparse` calls for every class, see `naming_the_flag`.

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
    """Where the block, which instantiates `config`, fails: the first part that did is the reason, with its flag.

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
        flag = next((flag for flag, name in _classes(config, "-") if name == first.part.__name__), None)
        raise PartError(first.part, first.reason, flag) from (first.__cause__ or error)
    finally:
        _failures.reset(token)


def flag_of(part: type) -> str:
    """The flag that chooses such a class; empty for a class that may be a setting of many."""
    return next((flag for kind, flag in _FLAGS.items() if issubclass(part, kind)), "")


def which_part_failed(error: BaseException) -> str | None:
    """Which part an exception comes from: `--agent Own.act() (own.py, line 12)`; None where it is nobody's.

    It is the innermost function of a part, or else of the user's own code, that the exception has come through. The
    line is only told for files that do not belong to this project.
    """
    while error.__cause__ is not None or (error.__context__ is not None and not error.__suppress_context__):
        error = error.__cause__ or error.__context__  # type: ignore[assignment]  # one of them is there
    if isinstance(error, FailedElsewhere):
        return f"{_FLAGS[VectorEnv]} {error.failed_in}"
    if isinstance(error, SyntaxError) and error.filename and _is_own(error.filename):
        return Path(error.filename).name
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        owner = _owner(frame)
        own = _is_own(frame.f_code.co_filename)
        if not own and (owner is None or not frame.f_code.co_filename.startswith(_SHIPPED[:2])):
            continue
        flag = flag_of(owner) if owner else ""
        name = f"{owner.__name__}.{frame.f_code.co_name}()" if owner else f"{frame.f_code.co_name}()"
        return " ".join(filter(None, (flag, name, _place(frame, line) if own else "")))
    return None


def failure_of_part(error: BaseException) -> str | None:
    """`Own.act() (own.py, line 12): KeyError: 'x'`; None where it is nobody's, or a program that says why it ends."""
    part = None if isinstance(error, SystemExit) and error.code else which_part_failed(error)
    return part and f"{part}: {type(error).__name__}: {error}"


def message_with_part(error: BaseException) -> str:
    """The message of an error that ends the program; one that names no flag says which part it comes from."""
    message = str(error)
    if _NAMES_FLAG.search(message) or isinstance(error, OSError):
        return message
    where = which_part_failed(error)
    return f"{where}: {message}" if where and where.startswith("--") else message


def _reason(part: type, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    name, message = part.__name__, str(error)
    if isinstance(error, TypeError) and (lacks := _wrong_signature(part, args, kwargs)):
        return f"{name}: {lacks}"
    if not isinstance(error, (ValueError, TypeError, OSError, ImportError, RuntimeError)) or not message:
        message = f"{type(error).__name__}: {message}".rstrip(": ")
    if "before Module.__init__()" in message:
        message += "; its __init__ must first call super().__init__(observation_space, action_space)"
    if not message.startswith(f"{name}:"):
        message = message if _NAMES_FLAG.search(message) else f"{name}: {message}"
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__) if _is_own(frame.f_code.co_filename)]
    return f"{message} {_place(*frames[-1])}" if frames else message


def _wrong_signature(part: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What the constructor has to take, if that is why it failed."""
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
    """Flag and name of every class of a configuration; several classes of one list are numbered."""
    if isinstance(node, list):
        for number, item in enumerate(node, start=1):
            yield from _classes(item, flag, f" (number {number} of {len(node)})" if len(node) > 1 else "")
    elif isinstance(node, dict) or hasattr(node, "__dict__"):
        settings = node if isinstance(node, dict) else vars(node)
        if isinstance(path := settings.get("class_path"), str):
            yield flag + position, path.rpartition(".")[2]
        for name, value in settings.items():
            inner = (
                flag if name in ("init_args", "dict_kwargs") else f"{flag}-{name}" if flag == "-" else f"{flag}.{name}"
            )
            yield from _classes(value, inner)


def _is_own(file: str) -> bool:
    """Whether it is one of the user's own code."""
    return not file.startswith(("<", *_SHIPPED, *_INSTALLED))


def _owner(frame: FrameType) -> type | None:
    """The class of the method that this is."""
    if frame.f_code.co_varnames[:1] != ("self",) or "self" not in frame.f_locals:
        return None
    owner: type = type(frame.f_locals["self"])
    return owner


def _place(frame: FrameType, line: int) -> str:
    return f"({Path(frame.f_code.co_filename).name}, line {line})"
