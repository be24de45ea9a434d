"""Compares a saved state with the state that would be saved now, before anything is taken from it.

The structure is compared, its meaning is not: a file whose checksum is right was written by this program.
"""

import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fabric_rl.base.settings import is_number


@runtime_checkable
class HasState(Protocol):
    """Something that can be saved and restored exactly: a component, a callback, an environment.

    An environment goes on after `state_dict` as one that loads what it returned. One that cannot be saved, or a part of
    which cannot, raises `CannotBeSavedError`: a run that goes on begins new episodes.
    """

    def state_dict(self) -> Any:  # noqa: ANN401
        """Return copies of its state."""

    def load_state_dict(self, state: Any) -> Any:  # noqa: ANN401
        """Restore what `state_dict` returned."""


class CannotBeSavedError(TypeError):
    """An environment, or a part of it, has no state that could be saved."""


@contextmanager
def fitting(what: str, owner: str = "") -> Iterator[None]:
    """Turn whatever the block raises over a saved state into one line: `what` does not fit its `owner`.

    Raises:
        ValueError: The block has failed.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{what} does not fit{owner and f' {owner}'}: {reason or type(error).__name__}") from error


def load_part(part: HasState, saved: Any, what: str) -> None:  # noqa: ANN401 - whatever was saved
    """Restore a component, which has been reset, from what was saved of it.

    Raises:
        ValueError: It cannot be its own, see `check_like`, or the component refuses it; `what` begins the message.
    """
    with fitting(what, type(part).__name__):
        check_like(saved, part.state_dict(), "it")
        part.load_state_dict(saved)


def check_like(saved: Any, own: Any, where: str) -> None:  # noqa: ANN401
    """Check that `saved` has the structure of `own`, which comes from the same thing after a reset.

    What has the same key in two dicts looks alike (who reads a key finds out that it is missing), arrays and tensors
    have the same dtype and shape (only the width of a tensor's floats may differ, as another precision is no other
    state), a number stays a number, a bool a bool, text text. Lists may have any length, their items look like those of
    `own`. Where `own` has nothing, None, an empty list, dict or array, anything goes. Numbers are finite unless those
    of `own` are not.

    Raises:
        ValueError: It has not; `where` is what the message calls it.
    """
    if own is None or (_is_empty(own) and type(saved) is type(own)):
        return
    if isinstance(own, Mapping) and isinstance(saved, Mapping):
        for name in own.keys() & saved.keys():
            check_like(saved[name], own[name], f"{where}[{name!r}]")
    elif _is_array(own) and _is_array(saved) and isinstance(own, np.ndarray) == isinstance(saved, np.ndarray):
        widths = not isinstance(own, np.ndarray) and own.is_floating_point() and saved.is_floating_point()
        if saved.shape != own.shape or (saved.dtype != own.dtype and not widths):
            raise ValueError(f"{where} is {_shape(saved)}, not {_shape(own)}")
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


def _is_array(value: Any) -> bool:  # noqa: ANN401
    """Return whether this is an array of numpy's or a tensor; envs, which compares states, does without torch."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _is_empty(own: Any) -> bool:  # noqa: ANN401
    return not math.prod(own.shape) if _is_array(own) else isinstance(own, Sequence | Mapping) and not own


def _finite(numbers: Any) -> bool:  # noqa: ANN401
    if not isinstance(numbers, np.ndarray):
        return bool(numbers.isfinite().all())
    return numbers.dtype.kind not in "fc" or bool(np.isfinite(numbers).all())


def _shape(numbers: Any) -> str:  # noqa: ANN401
    return f"{numbers.dtype} of shape {list(numbers.shape)}"


def _kind(value: object) -> str:
    return f"{reprlib.repr(value)}, a {type(value).__name__}"
