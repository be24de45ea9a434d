"""`python -m envs.obs [class path]`: what is in the columns of an observation."""

import argparse
import inspect
import sys

from rich.console import Console
from rich.table import Table

from envs.checks import find_class
from envs.obs.base import ObsBuilder
from envs.obs.default import DefaultObs
from envs.obs.meanings import factor_text
from envs.pool.settings import column_range, team_sizes

PLAIN_WIDTH = 140
"""Characters of a line where there is no terminal."""


def load_builder(class_path: str, inner: str = "envs.DefaultObs") -> ObsBuilder:
    """Makes the builder that a class path names, without arguments, or around `inner` if it has such a parameter.

    Raises:
        ValueError: There is no such class, it is no `ObsBuilder`, or it cannot be made so.
    """
    found = find_class(class_path, ObsBuilder)
    try:
        wants_inner = "inner" in inspect.signature(found).parameters
        builder: ObsBuilder = found(load_builder(inner)) if wants_inner else found()
    except TypeError as error:
        raise ValueError(f"{class_path} cannot be made without arguments ({error})") from error
    return builder


def table(builder: ObsBuilder, num_blue: int, num_orange: int) -> Table:
    """Every column or group of columns with its meaning, unit and factor.

    Raises:
        ValueError: The builder cannot describe that many cars.
    """
    space = builder.space(num_blue, num_orange)
    shape = " x ".join(map(str, space.shape))
    rows = getattr(builder, "objects", {})
    objects = [f"{name} {column_range(at.start, at.stop)}" for name, at in rows.items() if at.stop > at.start]
    caption = "as the car's own side sees it (everybody attacks +y); other cars: allies first; who is missing is zero"
    if objects:
        caption += f"\nrows: {', '.join(objects)}"
    shown = Table(
        title=f"{type(builder).__name__}: {shape} float32, {num_blue} against {num_orange}", caption=caption, box=None
    )
    for name in ("columns", "name", "meaning", "unit", "factor"):
        shown.add_column(name, overflow="fold", no_wrap=name in ("columns", "name"))
    start = 0
    for meaning in builder.meanings(num_blue, num_orange):
        name = f"{meaning.group}.{meaning.name}" if meaning.name else meaning.group
        where = column_range(start, start + meaning.width)
        shown.add_row(where, name, meaning.text, meaning.unit, factor_text(meaning.factor))
        start += meaning.width
    return shown


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; returns the exit status, 2 when there is none."""
    parser = argparse.ArgumentParser(
        prog="python -m envs.obs", description="Prints what the columns of an observation say."
    )
    parser.add_argument("class_path", nargs="?", help="default: the pool's default, DefaultObs.rlgym_guide()")
    parser.add_argument(
        "--team_size", "--team-size", nargs="+", type=int, default=[1], help="one number, or blue orange"
    )
    parser.add_argument("--inner", default="envs.DefaultObs", help="what StackedObs stacks (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    try:
        sizes = chosen.team_size if len(chosen.team_size) > 1 else chosen.team_size[0]
        ((num_blue, num_orange),) = team_sizes(sizes)
        given = chosen.class_path
        builder = DefaultObs.rlgym_guide() if given is None else load_builder(given, chosen.inner)
        shown = table(builder, num_blue, num_orange)
    except ValueError as error:
        print(f"envs.obs: {str(error).replace('RocketSimPool: ', '')}", file=sys.stderr)
        return 2
    console = Console()
    (console if console.is_terminal else Console(width=PLAIN_WIDTH)).print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
