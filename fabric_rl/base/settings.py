"""Settings: dataclass fields whose annotations define the allowed values, and the function that checks them.

    @dataclass(eq=False, repr=False)
    class TouchReward(Reward):
        weight: Positive = 1.0

`check_settings(made)` compares every field with its annotation: numbers with `Between`, names with `Literal`, objects
with their class; also inside `tuple`, `Sequence`, `dict` and `| None`. Constraints between fields are left to
the class itself.
"""

import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from fabric_rl.base.text import did_you_mean


@dataclasses.dataclass(frozen=True, repr=False)
class Between:
    """Range of finite numbers from `low` to `high`, excluding `low` if `above` and `high` if `below`."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def check(self, where: str, value: Any, whole: bool = False) -> float:  # noqa: ANN401 - anything may be given
        """Return `value` as a float, or as an int if `whole`.

        Raises:
            ValueError: The value is not such a number or is out of range; the message begins with `where`.
        """
        right = is_integer(value) if whole else is_number(value) and math.isfinite(value)
        excluded = (self.above and value == self.low) or (self.below and value == self.high)
        if not right or not self.low <= value <= self.high or excluded:
            raise ValueError(f"{where} must be {self.describe(whole)}, got {value!r}")
        if whole and abs(value) > 2**53:  # a float would round it
            raise ValueError(f"{where} must be at most 2**53, got {value!r}")
        return int(value) if whole else float(value)

    def __repr__(self) -> str:  # in --help, inside of `Annotated[...]`
        return self.describe().removeprefix("a ").removeprefix("number ")

    def describe(self, whole: bool = False) -> str:
        """Return the range in words, such as `a number from 0 to 1`."""
        kind = "a whole number" if whole else "a number"
        low, high = (f"{bound:,.10g}" for bound in (self.low, self.high))
        if math.isinf(self.high) and math.isinf(self.low):
            return kind if whole else "a finite number"
        if math.isinf(self.high):
            return f"{kind} above {low}" if self.above else f"{kind} of at least {low}"
        if not self.above and not self.below:
            return f"{kind} from {low} to {high}"
        lower, upper = ("above" if self.above else "of at least"), ("below" if self.below else "at most")
        return f"{kind} {lower} {low} and {upper} {high}"


Finite = Annotated[float, Between()]
NonNegative = Annotated[float, Between(0)]
Positive = Annotated[float, Between(0, above=True)]
Share = Annotated[float, Between(0, 1)]
Count = Annotated[int, Between(1)]
CountOrZero = Annotated[int, Between(0)]


def check_settings(made: Any, flag: str | None = None) -> None:  # noqa: ANN401 - any dataclass
    """Compare every field of a dataclass object with its annotation, and convert numbers and lists to that type.

    Args:
        made: The dataclass object.
        flag: Prefix of field names in messages, such as `--`. Default: the class name, as in `TouchReward: `.

    Raises:
        ValueError: A number is out of range, or a name is not one of the allowed names.
        TypeError: An object is of another class.
    """
    prefix = f"{type(made).__name__}: " if flag is None else flag
    for name, kind in annotations_of(type(made)).items():  # type: ignore[arg-type]
        object.__setattr__(made, name, check_value(f"{prefix}{name}", getattr(made, name), kind))


Init = TypeVar("Init", bound=Callable[..., None])


def checks_arguments(init: Init) -> Init:
    """Decorate the constructor of an ordinary class to check and convert its arguments like `check_settings`."""
    signature = inspect.signature(init)
    read_hints = cache(partial(get_type_hints, init, include_extras=True))  # lazy: a name may be defined later

    @wraps(init)
    def checked(self: object, *args: object, **kwargs: object) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        hints = read_hints()
        for name in given.keys() & hints.keys():
            given[name] = check_value(f"{type(self).__name__}: {name}", given[name], hints[name])
        init(**given)

    return cast(Init, checked)


@cache
def annotations_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """Return the annotations of the constructor's fields, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def check_value(where: str, value: Any, kind: Any) -> Any:  # noqa: ANN401 - a value of any kind
    """Return `value` converted to the annotation `kind`; errors (see `check_settings`) begin with `where`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        for rule in inner[1:]:
            value = rule.check(where, value, inner[0] is int) if isinstance(rule, Between) else value
    elif origin in (Union, types.UnionType):
        kinds = [each for each in inner if each is not types.NoneType]
        if (
            value is not None and len(kinds) > 1 and any(get_origin(each) is dict for each in kinds)
        ):  # a list or a mapping
            kinds = [each for each in kinds if (get_origin(each) is dict) == isinstance(value, Mapping)]
        if len(kinds) == 1 and not (value is None and len(inner) == 2):
            return check_value(where, value, kinds[0])
    elif origin is Literal:
        if value not in inner:
            raise ValueError(f"{where} must be one of {', '.join(map(str, inner))}, got {value!r}")
    elif origin in (tuple, list, Sequence) and inner:
        if not hasattr(value, "__iter__") or isinstance(value, str | Mapping):
            raise TypeError(f"{where} must be a list, got {value!r:.100}")
        each = inner[0]
        if origin is tuple and inner[-1] is not ... and len(value := tuple(value)) != len(inner):
            raise ValueError(f"{where} must be a list of length {len(inner)}, got {value!r:.100}")
        return tuple(check_value(where, part, each) for part in value)
    elif origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError(f"{where} must be a mapping of names, got {value!r:.100}")
        return {name: check_value(f"{where}[{name}]", part, inner[1]) for name, part in value.items()}
    elif isinstance(kind, type):
        package = kind.__module__.removeprefix("fabric_rl.").partition(".")[0]  # in a wheel they are fabric_rl.envs...
        if package in ("envs", "agents") and not isinstance(value, kind):
            raise TypeError(f"{where} must be an {package} {kind.__name__}, got {describe_value(value)}")
    return value


def weights_by_name(
    where: str, names: Sequence[str], weights: Sequence[float] | Mapping[str, float], others: Sequence[float] = ()
) -> tuple[float, ...]:
    """Return one weight per name, from a list or from a mapping of names to weights.

    Args:
        where: Beginning of the error.
        names: Names of the parts; the word Reward at the end may be left out.
        weights: List of weights, or name -> weight.
        others: Weights of the parts that the mapping leaves out. Default: 1 each.

    Raises:
        ValueError: The mapping has an unknown name.
    """
    if not isinstance(weights, Mapping):
        return tuple(weights)
    found = dict(zip(names, others or [1.0] * len(names), strict=True))
    for name, weight in weights.items():
        own = name if name in found else f"{name}Reward"
        if own not in found:
            known = f"known: {', '.join(names)}"
            raise ValueError(f"{where}.{name}: there is none{did_you_mean(name, list(names))} ({known})")
        found[own] = weight
    return tuple(found.values())


def changed(old: Mapping[str, Any], new: Mapping[str, Any], missing: Any = None) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401
    """Return name -> (old, new) for all differences of two mappings; `missing` replaces absent values."""
    pairs = {name: (old.get(name, missing), new.get(name, missing)) for name in dict.fromkeys((*old, *new))}
    return {name: (before, after) for name, (before, after) in pairs.items() if before != after}


def is_number(value: object) -> TypeGuard[float]:
    """Return True for int and float (also NumPy's), but not bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return True for int (also NumPy's), but not bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def describe_value(value: object) -> str:
    """Return a short description of an invalid value for a message: a class, an array with its shape, or a type."""
    if isinstance(value, type):
        return f"the class {value.__name__}; write {value.__name__}()"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {list(value.shape)}"
    return str(getattr(value, "__name__", type(value).__name__))
