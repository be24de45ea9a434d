"""Guests of self-play: bots and other agents by the names that `fabric-rl evaluate` takes."""

from collections.abc import Sequence

from envs.bots import Bot
from envs.matches.recipe import PoolRecipe
from fabric_rl.commands.entrants import entrant
from fabric_rl.types import EnvFactory


def guests_of(names: Sequence[str], env: EnvFactory, runs_dir: str, seed: int) -> list[Bot]:
    """What plays under those names in a pool; agents see and act as they were trained, and draw their actions.

    Args:
        names: See `fabric_rl.commands.entrants.entrant`.
        env: Builds the pool that they are to play in.
        runs_dir: Folder of the run ids.
        seed: Of what they draw.

    Raises:
        ValueError: There is nobody of a name, or it cannot play there.
    """
    if not names:
        return []
    found, named = [], ""
    try:
        recipe = PoolRecipe(env, "it")
        cars = max(max(sizes) for sizes in recipe.team_sizes)
        for number, name in enumerate(names):
            named = f"{name!r}: "
            built = entrant(name, sample=True, runs_dir=runs_dir).build(cars, recipe.tick_skip)
            found.append(built(seed + number))
    except (TypeError, ValueError) as error:
        raise ValueError(f"--self_play.guests: {named}{error}") from error
    return found
