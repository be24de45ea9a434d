"""A trained agent for teams of another size: what it sees of other cars moves to their new columns."""

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from envs.matches.recipe import PoolRecipe
from envs.obs import ObsBuilder
from fabric_rl.runs import checkpoint, trained
from fabric_rl.runs.json_files import write_text
from fabric_rl.runs.provenance import CONFIG, EXPORTED

_CAR = re.compile(r"((?:.*/)?(?:other|car)_)(\d+)")
"""Groups of columns of cars: allies, then opponents."""


def export_for_teams(name: str, folder: Path, team_size: int, runs_dir: Path) -> None:
    """Writes an agent that plays teams of `team_size` as it played its own, and can learn to do better.

    It sees its first allies and opponents as before. Weights of columns that are new are 0, so it does not see
    more cars until it has learned to; those of columns that are gone are dropped.

    Raises:
        CheckpointError, ValueError: There is no such agent, it was trained in something else, or its observations do
            not say which columns are whose.
    """
    found = trained.load_trained(name, runs_dir)
    try:
        recipe = PoolRecipe(found.env)
    except TypeError as error:
        raise ValueError(f"--team_size: {name} was not trained in an envs.RocketSimPool") from error
    with (
        closing(recipe.build(num_arenas=len(recipe.team_sizes))) as old,
        closing(recipe.build(num_arenas=1, team_size=team_size)) as new,
    ):
        before = found.agent(old.single_observation_space, old.single_action_space).state_dict()
        after = found.untrained(new.single_observation_space, new.single_action_space).state_dict()
        sizes = ((pool.state.num_blue, pool.state.num_orange) for pool in (old, new))
        columns = kept_columns(new.obs_builder, *sizes)
    weights = {key: _moved(key, value, after[key], columns) for key, value in before.items()}
    settings = yaml.safe_load(trained.settings_to_play(found.path))
    inner = settings["env"]
    while "factory" in (inner.get("init_args") or {}):
        inner = inner["init_args"]["factory"]
    inner.setdefault("init_args", {})["team_size"] = team_size
    folder.mkdir(parents=True)
    write_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False, width=120, allow_unicode=True))
    checkpoint.write(folder / EXPORTED, {"agent": weights})


def kept_columns(builder: ObsBuilder, old: tuple[int, int], new: tuple[int, int]) -> NDArray[np.int64]:
    """For each column with `new` cars (blue, orange) the one that said the same with `old` cars; -1 for none.

    Raises:
        ValueError: The builder does not tell other cars apart.
    """
    before, after = builder.columns(*old), builder.columns(*new)
    if before == after:  # there is room for more cars than play
        return np.arange(max(place.stop for place in after.values()))
    if not any(_CAR.fullmatch(name) for name in after):
        raise ValueError(f"--team_size: {type(builder).__name__} does not say which of its columns are of which car")
    found = np.full(max(place.stop for place in after.values()), -1)
    for name, place in after.items():
        source = _same_car(name, before, after)
        if source in before:
            found[place] = np.arange(before[source].start, before[source].stop)
    return found


def _same_car(name: str, before: Iterable[str], after: Iterable[str]) -> str | None:
    """What a group of columns was called with the other team size; None for an ally more than before."""
    car = _CAR.fullmatch(name)
    if not car:
        return name
    stem, first = car[1], int(car[1].endswith("car_"))  # `car_0` is the observer
    had, has = (sum(each.startswith(stem) for each in names) - first for names in (before, after))
    number = int(car[2]) - first
    if number < has // 2:  # itself or an ally
        return name if number < had // 2 else None
    return f"{stem}{number - has // 2 + had // 2 + first}"


def _moved(name: str, old: Tensor, new: Tensor, columns: NDArray[np.int64]) -> Tensor:
    """`old`, with its last axis as `new`'s if these are columns; new ones are 0, in a vector as they begin in `new`."""
    if old.shape == new.shape:
        return old
    if old.shape[:-1] != new.shape[:-1] or new.shape[-1] != len(columns):
        raise ValueError(f"--team_size: {name} has {list(old.shape)} numbers and would have {list(new.shape)}")
    kept = torch.from_numpy(columns >= 0)
    moved = torch.zeros_like(new) if new.ndim > 1 else new.clone()
    moved[..., kept] = old[..., torch.from_numpy(columns)[kept]]
    return moved
