"""Comparison of a saved state with the current state, before anything is restored.

Only the structure is compared: the checksum has already shown that this program wrote the file.
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
    """A component, callback or environment that can be saved and restored exactly.

    After `state_dict`, an environment continues exactly like one that loads the result. If the environment or a part of
    it cannot be saved, `state_dict` raises `CannotBeSavedError`; a resumed run then starts new episodes.
    """

    def state_dict(self) -> Any:  # noqa: ANN401
        """Return the state, as copies."""

    def load_state_dict(self, state: Any) -> Any:  # noqa: ANN401
        """Restore the state that `state_dict` returned."""


class CannotBeSavedError(TypeError):
    """The state of an environment or a part of it cannot be saved."""


@contextmanager
def state_error_context(what: str, owner: str = "") -> Iterator[None]:
    """Turn an error about a saved state into one line, `<what> does not fit <owner>: <reason>`.

    Raises:
        ValueError: The block failed.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{what} does not fit{owner and f' {owner}'}: {reason or type(error).__name__}") from error


def load_child_state(part: HasState, saved: Any, what: str) -> None:  # noqa: ANN401 - whatever was saved
    """Restore a component that has been reset from its saved state.

    Raises:
        ValueError: The structure of the state differs (`check_structure`), or the component refuses it; the message
            begins with `what`.
    """
    with state_error_context(what, type(part).__name__):
        check_structure(saved, part.state_dict(), "it")
        part.load_state_dict(saved)


def check_structure(saved: Any, own: Any, where: str) -> None:  # noqa: ANN401
    """Check that `saved` has the structure of `own`, the state of the same object after a reset.

    Dicts are compared by the keys that both have (missing keys are noticed when they are read). Arrays and tensors must
    have the same dtype and shape; only the width of a tensor's floats may differ (another precision). Numbers, bools
    and strings must keep their type. Lists may have any length, with items like those of `own`. None in `own` matches
    anything; an empty list, dict or array matches anything of its type. Numbers must be finite unless those of `own`
    are not.

    Raises:
        ValueError: The structure differs; the message calls the state `where`.
    """
    if own is None or (_is_empty(own) and type(saved) is type(own)):
        return
    if isinstance(own, Mapping) and isinstance(saved, Mapping):
        for name in own.keys() & saved.keys():
            check_structure(saved[name], own[name], f"{where}[{name!r}]")
    elif _is_array(own) and _is_array(saved) and isinstance(own, np.ndarray) == isinstance(saved, np.ndarray):
        widths = not isinstance(own, np.ndarray) and own.is_floating_point() and saved.is_floating_point()
        if saved.shape != own.shape or (saved.dtype != own.dtype and not widths):
            shapes = [f"{each.dtype} of shape {list(each.shape)}" for each in (saved, own)]
            raise ValueError(f"{where} is {shapes[0]}, not {shapes[1]}")
        if not _finite(saved) and _finite(own):
            raise ValueError(f"{where} contains NaN or infinity")
    elif is_number(own) and is_number(saved):
        if not math.isfinite(saved) and math.isfinite(own):
            raise ValueError(f"{where} is {saved}")
    elif type(saved) is not type(own) and not all(isinstance(each, bool | np.bool_) for each in (saved, own)):
        kinds = [f"{reprlib.repr(each)}, a {type(each).__name__}" for each in (saved, own)]
        raise ValueError(f"{where} is {kinds[0]}, not {kinds[1]}")
    elif isinstance(own, Sequence) and not isinstance(own, str | bytes):
        for number, item in enumerate(saved):
            check_structure(item, own[min(number, len(own) - 1)], f"{where}[{number}]")


def _is_array(value: Any) -> bool:  # noqa: ANN401
    """Return True for NumPy arrays and tensors, without importing torch."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _is_empty(own: Any) -> bool:  # noqa: ANN401
    return not math.prod(own.shape) if _is_array(own) else isinstance(own, Sequence | Mapping) and not own


def _finite(numbers: Any) -> bool:  # noqa: ANN401
    if not isinstance(numbers, np.ndarray):
        return bool(numbers.isfinite().all())
    return numbers.dtype.kind not in "fc" or bool(np.isfinite(numbers).all())
