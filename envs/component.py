"""Component: a part of a pool that may contain other parts; reset, metrics, phases and saving traverse this tree."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabric_rl.base.settings import check_settings, weights_by_name

if TYPE_CHECKING:
    from envs.state.game_state import GameState
    from envs.state.layout import Bool


@dataclass(eq=False, repr=False)
class Component:
    """Part of a pool, which may keep state between steps and contain other components.

    Inner components are found among the public attributes (also in lists, tuples and the values of dicts), as
    `torch.nn.Module` finds its modules. A component that wraps others therefore handles only its own state: `reset` and
    `drain_metrics` also call those of the inner components. A method that overrides them calls `super()` to do so.

    Its settings are fields of a dataclass, with their ranges as annotations (`fabric_rl.base.settings`) and a docstring
    below each; `__post_init__` checks them. A component that keeps state names it in `_in_state_dict`, or overrides
    `state_dict` and `load_state_dict`.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {}
    """Key in `state_dict` -> name of the attribute: a number, text, array, generator, component, or several of these.

    If the key of a component (or dict) is empty or ends with `/`, its entries are stored with the others, prefixed with
    that key.
    """

    def __post_init__(self) -> None:
        check_settings(self)

    weighed: ClassVar[str] = ""
    """Setting with the parts that the setting `weights` is for, if the component has one."""

    @classmethod
    def names_of(cls, parts: Sequence[Any]) -> list[str]:
        """Return the names by which `weights` may name the parts, all different."""
        return unique_names(type(part).__name__ for part in parts)

    def weights_in_order(self, weights: Sequence[float] | dict[str, float]) -> tuple[float, ...]:
        """Return the weights as one number for each part; a part that a mapping leaves out has the weight 1.

        Raises:
            ValueError: There is no part with a name in the mapping.
        """
        return weights_by_name(f"{type(self).__name__}: weights", self.names_of(getattr(self, self.weighed)), weights)

    def children(self) -> Iterator["Component"]:
        """Yield the components directly inside this one, in the order of its attributes."""
        for name, value in vars(self).items():
            if name.startswith("_"):
                continue
            values = value.values() if isinstance(value, dict) else value
            inner = values if isinstance(value, dict | list | tuple) else (value,)
            yield from (each for each in inner if isinstance(each, Component))

    def walk(self) -> Iterator["Component"]:
        """Yield this component and all those inside it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def reset(self, mask: "Bool", state: "GameState") -> None:
        """Begin new episodes in the arenas where `mask [A]` is True; `state` contains their first states."""
        for child in self.children():
            child.reset(mask, state)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics since the last call as name -> (sum, count)."""
        metrics: dict[str, tuple[float, float]] = {}
        for child in self.children():
            metrics |= child.drain_metrics()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the component's state, as numbers and arrays, for an exact resume; empty by default."""
        state: dict[str, Any] = {}
        for key, name in self._in_state_dict.items():
            value = _copied(getattr(self, name))
            state |= {f"{key}{inner}": part for inner, part in value.items()} if _is_prefix(key) else {key: value}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; a state read from a file must be checked first."""
        for key, name in self._in_state_dict.items():
            beside = {inner[len(key) :]: part for inner, part in state.items() if inner.startswith(key)}
            setattr(self, name, _restored(getattr(self, name), beside if _is_prefix(key) else state[key]))


def _is_prefix(key: str) -> bool:
    return not key or key.endswith("/")


def _copied(value: Any) -> Any:  # noqa: ANN401 - see Component._in_state_dict
    if isinstance(value, Component):
        return value.state_dict()
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_copied(part) for part in value]
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    return value.copy() if isinstance(value, np.ndarray) else value


def _restored(value: Any, saved: Any) -> Any:  # noqa: ANN401 - see Component._in_state_dict
    """Invert `_copied`; components and generators stay the same objects."""
    if isinstance(value, Component):
        value.load_state_dict(saved)
        return value
    if isinstance(value, np.random.Generator):
        value.bit_generator.state = saved
        return value
    if isinstance(value, dict):
        return {name: _restored(part, saved[name]) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_restored(part, inner) for part, inner in zip(value, saved, strict=True))
    if isinstance(value, np.ndarray):
        return np.array(saved, value.dtype)
    return type(value)(saved) if isinstance(value, int | float) else saved


Number = TypeVar("Number", int, float)


def added_metrics(parts: Iterable[Mapping[str, tuple[float, Number]]]) -> dict[str, tuple[float, Number]]:
    """Add up name -> (sum, count) over all parts."""
    found: dict[str, tuple[float, Number]] = {}
    for part in parts:
        for name, (total, count) in part.items():
            before = found.get(name, (0.0, 0))
            found[name] = before[0] + total, before[1] + count
    return found


def begin_rows(mask: "Bool", first: NDArray[Any], kept: NDArray[Any] | None) -> NDArray[Any]:
    """Return `kept [A, ...]` with the rows of `first` where `mask [A]`, or all of `first` if shapes differ; a copy."""
    if kept is None or kept.shape != first.shape:
        return np.array(first)
    rows = kept.copy()
    rows[mask] = first[mask]
    return rows


def unique_names(labels: Iterable[str]) -> list[str]:
    """Return the labels, with a number appended to repeated ones."""
    names: list[str] = []
    for label in labels:
        name, number = label, 1
        while name in names:
            number += 1
            name = f"{label}_{number}"
        names.append(name)
    return names


class Phased(ABC):
    """A component that depends on the phase of training."""

    phases: tuple[str, ...] = ()
    """Names of the known phases; empty if any phase is accepted."""

    def check_phases(self, names: Sequence[str]) -> None:
        """Raise a ValueError unless the phases of the component are exactly `names`, those of the training."""
        if self.phases and set(self.phases) != set(names):
            raise ValueError(
                f"{type(self).__name__} has the phases {', '.join(self.phases)}, but the training has "
                f"{', '.join(names)}; use the same names for both"
            )

    @abstractmethod
    def begin_phase(self, name: str, number: int, state: "GameState") -> None:
        """Continue in the phase `name`.

        Args:
            name: The phase.
            number: Its number among the phases of the training, from 1.
            state: The current state, in the middle of the episodes.

        Raises:
            ValueError: The component lists its `phases`, but not this one.
        """

    def _set_phases(self, argument: str, parts: dict[str, Any]) -> None:
        if not parts:
            raise ValueError(f"{type(self).__name__}: {argument} must name at least one phase")
        self.phases = tuple(parts)
        self.phase = self.phases[0]

    def _check_known(self, name: str) -> None:
        if name not in self.phases:
            raise ValueError(f"{type(self).__name__}: there is no phase {name}; known: {', '.join(self.phases)}")
