"""Guests of self-play: bots and other agents by the names that `fabric-rl evaluate` takes."""

from collections.abc import Sequence
from pathlib import Path

from envs.bots import Bot
from envs.matches.matches import PoolFactory
from fabric_rl.commands.entrants import entrant
from fabric_rl.types import EnvFactory


def guests_of(names: Sequence[str], env: EnvFactory, runs_dir: str, seed: int, run: Path | None = None) -> list[Bot]:
    """What plays under those names in a pool; agents see and act as they were trained, and draw their actions.

    Args:
        names: See `fabric_rl.commands.entrants.entrant`.
        env: Builds the pool that they are to play in.
        runs_dir: Folder of the run ids.
        seed: Of what they draw.
        run: Folder of the run that they are guests of, which cannot be one of them.

    Raises:
        ValueError: There is nobody of a name, or it cannot play there.
    """
    if not names:
        return []
    found, named, seen = [], "", dict[object, str]()
    try:
        recipe = PoolFactory(env, "it")
        cars = max(max(sizes) for sizes in recipe.team_sizes)
        for number, name in enumerate(names):
            named = f"{name!r}: "
            if run is not None and run.resolve() in (Path(runs_dir, name).resolve(), Path(name).resolve()):
                raise ValueError("is the run itself; keep its agent with fabric-rl export, and name that folder")
            guest = entrant(name, sample=True, runs_dir=runs_dir)
            if seen.setdefault(guest.who, name) != name:
                raise ValueError(f"is {seen[guest.who]!r} again")
            found.append(guest.build(cars, recipe.tick_skip)(seed + number))
    except (TypeError, ValueError) as error:
        raise ValueError(f"--self_play.guests: {named}{error}") from error
    return found
