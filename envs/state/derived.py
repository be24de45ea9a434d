"""Attributes that follow from others: `Derived`, computed at each access, and `cached`, computed once."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

T = TypeVar("T")


class Derived(property, Generic[T]):
    """A property made from a function of its owner; its docstring follows it, as that of any other attribute."""

    if TYPE_CHECKING:  # as every property does; but without these nobody knows the type of one that is no decorator

        def __init__(self, read: Callable[[Any], T]) -> None:
            """Takes the function."""

        def __get__(self, owner: object, kind: type | None = None, /) -> T:  # type: ignore[override]
            """What the function gives of `owner`."""


class cached(Generic[T]):
    """A property that is computed when first read; unlike functools.cached_property, never with a lock."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        """Take a function of the owner, or a method without arguments."""
        self.function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> "cached[T]": ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        """Store the value in the place of the property, where the next read finds it."""
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self.function(owner)
        return value
