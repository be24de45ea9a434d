"""Values outside the range of a setting, made from its annotation."""

import types
from collections.abc import Sequence
from typing import Annotated, Literal, Union, get_args, get_origin

from fabric_rl.base.settings import Between


def wrong_values(annotation, made=()):
    """Yield values that the annotation of a setting excludes, each with the kind of error.

    Args:
        annotation: Of a field.
        made: An object for every kind of component that a setting may want.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        rule = next(rule for rule in inner[1:] if isinstance(rule, Between))
        yield from ((value, ValueError) for value in ("1", True, float("nan"), [0.5]))
        if inner[0] is int:
            yield 0.5, ValueError
        if rule.low > -float("inf"):
            yield (rule.low if rule.above else rule.low - 1), ValueError
        if rule.high < float("inf"):
            yield (rule.high if rule.below else rule.high + 1), ValueError
    elif origin in (Union, types.UnionType) and len(inner) == 2 and types.NoneType in inner:
        yield from wrong_values(next(each for each in inner if each is not types.NoneType), made)
    elif origin is Literal:
        yield "something else", ValueError
    elif origin in (tuple, list, Sequence):
        yield 5, TypeError
        yield from (([value], error) for value, error in wrong_values(inner[0], made))
    elif origin is dict:
        yield 5, TypeError
        yield from (({"a": value}, error) for value, error in wrong_values(inner[1], made))
    elif annotation in made:
        yield "x", TypeError
        yield made[annotation], TypeError
