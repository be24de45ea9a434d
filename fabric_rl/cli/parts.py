"""Builds the parts that a configuration names; one that cannot be built is one line with its flag and class."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gymnasium.vector import VectorEnv
from lightning import LightningModule

from fabric_rl.cli.errors import NAMES_A_FLAG, user_code
from fabric_rl.dry_run import check_agent


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
