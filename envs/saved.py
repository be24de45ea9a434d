"""What was saved of a component, set beside what it would save now: asked before anything is taken from it."""

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from envs.checks import is_number


@runtime_checkable
class HasState(Protocol):
    """A component: what it remembers can be saved."""

    def state_dict(self) -> Any:  # noqa: ANN401
        """What it remembers."""

    def load_state_dict(self, state: Any) -> None:  # noqa: ANN401
        """Takes what `state_dict` gave."""


def load_part(part: HasState, saved: Any, what: str) -> None:  # noqa: ANN401 - whatever was saved
    """Gives a component that has been reset what was saved of it.

    Raises:
        ValueError: It cannot be its own, see `check_like`, or the component refuses it; `what` begins the message.
    """
    try:
        check_like(saved, part.state_dict(), "it")
        part.load_state_dict(saved)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{what} does not fit {type(part).__name__}: {reason}") from error


def check_like(saved: Any, own: Any, where: str) -> None:  # noqa: ANN401
    """Checks that `saved` has the form of `own`, which comes from the same thing after a reset.

    What has the same key in two dicts looks alike (who reads a key finds out that it is missing), arrays have the same
    dtype and shape, a number stays a number, a bool a bool, text text. Lists may have any length, their items look like
    those of `own`. Where `own` has nothing, None, an empty list, dict or array, anything goes. Numbers are finite
    unless those of `own` are not.

    Raises:
        ValueError: It has not; `where` is what the message calls it.
    """
    if own is None or (_is_empty(own) and type(saved) is type(own)):
        return
    if isinstance(own, Mapping) and isinstance(saved, Mapping):
        for name in own.keys() & saved.keys():
            check_like(saved[name], own[name], f"{where}[{name!r}]")
    elif isinstance(own, np.ndarray) and isinstance(saved, np.ndarray):
        if (saved.dtype, saved.shape) != (own.dtype, own.shape):
            theirs = f"{saved.dtype} of shape {list(saved.shape)}"
            raise ValueError(f"{where} is {theirs}, not {own.dtype} of shape {list(own.shape)}")
        if not _finite(saved) and _finite(own):
            raise ValueError(f"{where} has NaN or infinity in it")
    elif is_number(own) and is_number(saved):
        if not math.isfinite(saved) and math.isfinite(own):
            raise ValueError(f"{where} is {saved}")
    elif isinstance(own, bool | np.bool_) or isinstance(saved, bool | np.bool_):
        if not (isinstance(own, bool | np.bool_) and isinstance(saved, bool | np.bool_)):
            raise ValueError(f"{where} is {_kind(saved)}, not {_kind(own)}")
    elif type(saved) is not type(own):
        raise ValueError(f"{where} is {_kind(saved)}, not {_kind(own)}")
    elif not isinstance(own, str | bytes) and hasattr(own, "__getitem__"):
        for number, item in enumerate(saved):
            check_like(item, own[min(number, len(own) - 1)], f"{where}[{number}]")


def within(name: str, saved: Any, low: float = 0, high: float = math.inf) -> Any:  # noqa: ANN401 - what it was given
    """A saved number or array, if all of it lies between the bounds.

    Raises:
        ValueError: It does not; `name` is what the message calls it.
    """
    numbers = np.asarray(saved)
    if numbers.dtype.kind not in "?biuf" or not ((numbers >= low) & (numbers <= high)).all():
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {reprlib.repr(saved)}")
    return saved


def generator_of(saved: Any) -> np.random.Generator:  # noqa: ANN401
    """A generator that goes on where the one was whose `bit_generator.state` was saved.

    Raises:
        ValueError: It is the state of none.
    """
    rng = np.random.default_rng(0)
    try:
        rng.bit_generator.state = saved
        halves = saved["has_uint32"] in (0, 1) and 0 <= saved["uinteger"] < 2**32
        if rng.bit_generator.state != saved or not (saved["state"]["inc"] % 2 and halves):
            raise ValueError("other numbers than it can have")
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"what was saved is no state of a {type(rng.bit_generator).__name__} ({error})") from error
    return rng


def _is_empty(own: Any) -> bool:  # noqa: ANN401
    return not own.size if isinstance(own, np.ndarray) else isinstance(own, Sequence | Mapping) and not own


def _finite(numbers: NDArray[Any]) -> bool:
    return numbers.dtype.kind not in "fc" or bool(np.isfinite(numbers).all())


def _kind(value: object) -> str:
    return f"{reprlib.repr(value)}, a {type(value).__name__}"
