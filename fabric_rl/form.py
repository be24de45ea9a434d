"""Forms: what a saved state has to look like, asked before anything is taken from it."""

import math
import re
import reprlib
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Form(ABC):
    """What may be saved in one place."""

    @abstractmethod
    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401 - whatever was saved
        """Raises ValueError, which names `where` it was saved, for anything else."""


def check(saved: Any, form: Any, where: str) -> None:  # noqa: ANN401
    """Checks what was saved, before it is used.

    Args:
        saved: Numbers, text, tensors, arrays, lists and dicts, as a checkpoint gives them.
        form: A `Form`, or an example of what is to come: a tensor or array of the same shape and dtype, a list or tuple
            of examples as long as what was saved, a dict with the keys that there must be (there may be more), a
            number, text or None.
        where: What the message calls it.

    Raises:
        ValueError: It is something else; one line.
    """
    if isinstance(form, Form):
        form.check(saved, where)
    elif isinstance(form, Tensor | np.ndarray):
        Numbers(form).check(saved, where)
    elif isinstance(form, int | float) and not isinstance(form, bool):
        Number(whole=isinstance(form, int)).check(saved, where)
    elif isinstance(form, dict):
        _require(isinstance(saved, dict), saved, where, "a dict")
        for name, inner in form.items():
            if name not in saved:
                raise ValueError(f"{where} lacks {reprlib.repr(name)}")
            check(saved[name], inner, _inside(where, name))
    elif isinstance(form, list | tuple):
        like = isinstance(saved, type(form)) and len(saved) == len(form)
        _require(like, saved, where, f"a {type(form).__name__} of {len(form)}")
        for number, inner in enumerate(form):
            check(saved[number], inner, _inside(where, number))
    else:
        _require(type(saved) is type(form), saved, where, _described(form))


@dataclass(frozen=True)
class Number(Form):
    """One number, of Python or numpy; whole ones only if `whole`, NaN and infinity too if it may be `anything`."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    anything: bool = False

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        kinds = int | np.integer if self.whole else int | float | np.integer | np.floating
        _require(isinstance(saved, kinds) and not isinstance(saved, bool), saved, where, _described(self))
        if not self.anything:
            number = saved.item() if isinstance(saved, np.generic) else saved  # an int may be too large for a float
            finite = abs(number) <= sys.float_info.max
            _require(self.low <= number <= self.high and finite, saved, where, _described(self))


@dataclass(frozen=True)
class Text(Form):
    """Text that a regular expression tells, all of it."""

    pattern: str

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        fits = isinstance(saved, str) and re.fullmatch(self.pattern, saved)
        _require(bool(fits), saved, where, f"text of the form {self.pattern}")


COUNT = Number(0, 2**53, whole=True)
"""Of steps, episodes...: exact as a float, too."""


@dataclass(frozen=True, eq=False)
class Numbers(Form):
    """A tensor or array of the shape and dtype of `like`, and finite unless that is not."""

    like: Tensor | NDArray[Any]
    low: Any = None
    """Least value, a number or an array that broadcasts."""
    high: Any = None
    """Greatest value."""
    any_float: bool = False
    """Floats of any width will do, if `like` is one."""

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        like = self.like
        same_kind = isinstance(saved, Tensor if isinstance(like, Tensor) else np.ndarray)
        _require(same_kind and tuple(saved.shape) == tuple(like.shape), saved, where, _described(like))
        floats = self.any_float and _is_float(saved) and _is_float(like)
        _require(floats or saved.dtype == like.dtype, saved, where, _described(like))
        if not _is_finite(saved) and _is_finite(like):
            raise ValueError(f"{where} has NaN or infinity in it")
        for bound, wrong in ((self.low, "below"), (self.high, "above")):
            if bound is not None and bool((saved < bound if wrong == "below" else saved > bound).any()):
                raise ValueError(f"{where} has numbers {wrong} what can be")


@dataclass(frozen=True)
class Many(Form):
    """A list of any length."""

    form: Any

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        _require(isinstance(saved, list), saved, where, "a list")
        for number, inner in enumerate(saved):
            check(inner, self.form, _inside(where, number))


@dataclass(frozen=True)
class Named(Form):
    """A dict with any names."""

    form: Any

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        _require(isinstance(saved, dict), saved, where, "a dict")
        for name, inner in saved.items():
            _require(isinstance(name, str), name, f"a name in {where}", "text")
            check(inner, self.form, _inside(where, name))


@dataclass(frozen=True)
class Maybe(Form):
    """This or None."""

    form: Any

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        if saved is not None:
            check(saved, self.form, where)


class Whatever(Form):
    """Something that its owner checks."""

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        """Takes it."""


class GeneratorState(Form):
    """The state of a torch generator on the CPU."""

    _HEAD = "<QiiQ"
    """Seed, numbers left until the next 624 are made, a flag, and which is next; they must fit one another: torch would
    read what lies behind the 624."""

    def check(self, saved: Any, where: str) -> None:  # noqa: ANN401
        generator = torch.Generator()
        new = generator.get_state()
        check(saved, new, where)
        with fitting(where):
            generator.set_state(saved)
        if not torch.equal(generator.get_state(), saved) or (_in_step(new) and not _in_step(saved)):
            raise ValueError(f"{where} is no state of a generator")


def _in_step(state: Tensor) -> bool:
    _, left, _, following = struct.unpack_from(GeneratorState._HEAD, bytes(state[:24].tolist()))
    return left + following == 625 or (left, following) == (1, 0)  # the latter before the first number


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Says of what a saved state is that the block cannot take.

    Raises:
        ValueError: One line, for whatever way in which the block fails on it.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ValueError(f"{what} does not fit: {reason or type(error).__name__}") from error


def _require(holds: bool, saved: Any, where: str, wanted: str) -> None:  # noqa: ANN401
    if not holds:
        raise ValueError(f"{where} is {_described(saved)}, not {wanted}")


def _inside(where: str, name: Any) -> str:  # noqa: ANN401
    return f"{where}[{_described(name)}]"


def _is_float(numbers: Any) -> bool:  # noqa: ANN401 - of torch or numpy
    return bool(numbers.is_floating_point() if isinstance(numbers, Tensor) else numbers.dtype.kind == "f")


def _is_finite(numbers: Any) -> bool:  # noqa: ANN401
    if isinstance(numbers, Tensor):
        return bool(torch.isfinite(numbers).all())
    return numbers.dtype.kind not in "fc" or bool(np.isfinite(numbers).all())


def _described(value: Any) -> str:  # noqa: ANN401
    """In a few words, however large it is."""
    if isinstance(value, Tensor | np.ndarray):
        kind = "tensor" if isinstance(value, Tensor) else "array"
        return f"a {kind} {str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, Number):
        kind = "a whole number" if value.whole else "a number" if value.anything else "a finite number"
        low = f" from {value.low:g}" if value.low > -math.inf else ""
        return f"{kind}{low}" + (f" to {value.high:g}" if value.high < math.inf else "")
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a huge number"
    if isinstance(value, str | bool | int | float | None):
        return reprlib.repr(value)
    return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, list | tuple) else "")
