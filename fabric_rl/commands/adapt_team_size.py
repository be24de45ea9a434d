"""A trained agent for teams of another size: what it sees of other cars moves to their new columns."""

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from envs.matches.matches import PoolFactory
from envs.obs import ObsBuilder
from fabric_rl.base.files import write_text
from fabric_rl.runs import checkpoint, trained
from fabric_rl.runs.provenance import CONFIG, EXPORTED

_CAR = re.compile(r"((?:.*/)?(?:other|car)_)(\d+)")
"""Groups of columns of cars: allies, then opponents."""


def export_for_teams(name: str, folder: Path, team_size: int, runs_dir: Path) -> None:
    """Write an agent that plays teams of `team_size` as it played its own, and can learn to do better.

    It sees its first allies and opponents as before. Weights of columns that are new, or that were always empty, are 0,
    so it does not see more cars until it has learned to; those of columns that are gone are dropped. Statistics of new
    columns begin as those of its first opponent. An agent that has no columns of single cars, but the same weights for
    all of them (`EntityObs`), stays as it is and sees more cars at once.

    Raises:
        CheckpointError, ValueError: There is no such agent, it was trained in something else or in uneven teams, or its
            observations do not say which columns are whose.
    """
    found = trained.load_trained(name, runs_dir)
    try:
        recipe = PoolFactory(found.env)
    except TypeError as error:
        raise ValueError(f"--team_size: {name} was not trained in an envs.RocketSimPool") from error
    with (
        closing(recipe.build(num_arenas=len(recipe.team_sizes))) as old,
        closing(recipe.build(num_arenas=1, team_size=team_size)) as new,
    ):
        before = found.agent(old.single_observation_space, old.single_action_space).state_dict()
        after = found.untrained(new.single_observation_space, new.single_action_space).state_dict()
        sizes = ((pool.state.num_blue, pool.state.num_orange) for pool in (old, new))
        columns, like = kept_columns(new.obs_builder, *sizes)
        space, wider = new.single_observation_space, after
        if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:  # else no weight is of one column
            wider_space = gymnasium.spaces.Box(-np.inf, np.inf, (space.shape[0] + 1,), np.float32)
            wider = found.untrained(wider_space, new.single_action_space).state_dict()
    weights = {
        key: _moved(value, after[key], columns, like) if wider[key].shape != after[key].shape else value
        for key, value in before.items()
    }
    if apart := [key for key, value in weights.items() if value.shape != after[key].shape]:
        raise ValueError(f"--team_size: {apart[0]} of {name} depends on the teams in another way than by its columns")
    settings = yaml.safe_load(trained.settings_to_play(found.path))
    inner = settings["env"]
    while "factory" in (inner.get("init_args") or {}):
        inner = inner["init_args"]["factory"]
    inner.setdefault("init_args", {})["team_size"] = team_size
    folder.mkdir(parents=True)
    write_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False, width=120, allow_unicode=True))
    checkpoint.write(folder / EXPORTED, {"agent": weights})


def kept_columns(
    builder: ObsBuilder, old: tuple[int, int], new: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each column with `new` cars (blue, orange) the one that said the same with `old` cars.

    Returns:
        That, -1 for none (it was always empty); and the same with the first opponent's for columns of new cars.

    Raises:
        ValueError: The old teams are uneven, or the builder does not tell other cars apart.
    """
    before, after = builder.columns(*old), builder.columns(*new)
    length = max(place.stop for place in after.values())
    has_cars = any(_CAR.fullmatch(name) for name in after)
    if old == new or (before == after and not has_cars):
        return np.arange(length), np.arange(length)
    if old[0] != old[1]:
        raise ValueError(f"--team_size: it was trained in games of {old[0]} against {old[1]}, not in even teams")
    if not has_cars:
        raise ValueError(f"--team_size: {type(builder).__name__} does not say which of its columns are of which car")
    found, like = np.full((2, length), -1)
    for name, place in after.items():
        source, opponent = _same_car(name, before, after, old[0])
        if source in before:
            found[place] = like[place] = np.r_[before[source]]
        elif opponent in before:
            like[place] = np.r_[before[opponent]]
    return found, like


def _same_car(name: str, before: Iterable[str], after: Iterable[str], team: int) -> tuple[str | None, str]:
    """Return the former name of a group of columns in teams of `team`, None for a new car; and its first opponent."""
    car = _CAR.fullmatch(name)
    if not car:
        return name, name
    stem, first = car[1], int(car[1].endswith("car_"))  # `car_0` is the observer
    had, has = ((sum(each.startswith(stem) for each in names) - first) // 2 for names in (before, after))  # of allies
    number = int(car[2]) - first
    if number < has:  # itself or an ally
        source = name if number < team - 1 else None
    else:
        source = f"{stem}{number - has + had + first}" if number - has < team else None
    return source, f"{stem}{had + first}"


def _moved(old: Tensor, new: Tensor, columns: NDArray[np.int64], like: NDArray[np.int64]) -> Tensor:
    """Return `old` with the columns (last axis) of `new`: weights of new ones are 0, statistics (a vector) `like`."""
    source = torch.from_numpy(columns if old.ndim > 1 else like)
    moved = torch.zeros_like(new) if old.ndim > 1 else new.clone()
    moved[..., source >= 0] = old[..., source[source >= 0]]
    return moved
