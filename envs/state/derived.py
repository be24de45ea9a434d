"""Derived: read-only attributes that say in one line where they come from."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T = TypeVar("T")


class Derived(property, Generic[T]):
    """A property made from a function of its owner; its docstring follows it, as that of any other attribute."""

    if TYPE_CHECKING:  # as every property does; but without these nobody knows the type of one that is no decorator

        def __init__(self, read: Callable[[Any], T]) -> None:
            """Takes the function."""

        def __get__(self, owner: object, kind: type | None = None, /) -> T:  # type: ignore[override]
            """What the function gives of `owner`."""
