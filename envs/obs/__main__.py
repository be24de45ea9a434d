"""`python -m envs.obs [class path]`: print the columns of an observation."""

import argparse
from collections.abc import Sequence

from envs.checks import parse_team_sizes
from envs.factories import from_class_path
from envs.obs.base import ObsBuilder, column_range, factor_text
from envs.obs.default import DefaultObs
from fabric_rl.base.text import in_columns


def described_columns(builder: ObsBuilder, num_blue: int, num_orange: int) -> str:
    """Return every column or group of columns with its meaning, unit and factor.

    Raises:
        ValueError: The builder cannot describe teams of these sizes.
    """
    shape = " x ".join(map(str, builder.space(num_blue, num_orange).shape))
    rows = [("columns", "name", "meaning", "unit", "factor")]
    start = 0
    for meaning in builder.meanings(num_blue, num_orange):
        name = f"{meaning.group}.{meaning.name}" if meaning.name else meaning.group
        where = column_range(start, start + meaning.width)
        rows.append((where, name, meaning.text, meaning.unit, factor_text(meaning.factor)))
        start += meaning.width
    lines = [
        f"{type(builder).__name__}: {shape} float32, {num_blue} against {num_orange}",
        in_columns(rows),
        "as the car's own side sees it (everybody attacks +y); other cars: allies first; missing cars are zero",
    ]
    of_objects = getattr(builder, "objects", {})
    objects = [f"{name} {column_range(at.start, at.stop)}" for name, at in of_objects.items() if at.stop > at.start]
    return "\n".join([*lines, f"rows: {', '.join(objects)}"] if objects else lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table, or one line that explains why there is none (exit status 2)."""
    parser = argparse.ArgumentParser("python -m envs.obs", description="Print the meaning of an observation's columns.")
    parser.add_argument("class_path", nargs="?", help="default: the pool's default, DefaultObs.rlgym_guide()")
    sizes = "one number, or blue orange"
    parser.add_argument("--team_size", "--team-size", nargs="+", type=int, default=[1], help=sizes)
    parser.add_argument("--inner", default="DefaultObs", help="what StackedObs stacks (default: %(default)s)")
    args = parser.parse_args(argv)
    try:
        ((num_blue, num_orange),) = parse_team_sizes(args.team_size if len(args.team_size) > 1 else args.team_size[0])
        path = args.class_path
        builder = DefaultObs.rlgym_guide() if path is None else from_class_path(path, ObsBuilder, args.inner)
        print(described_columns(builder, num_blue, num_orange))
    except ValueError as error:
        parser.exit(2, f"envs.obs: {error}\n")


if __name__ == "__main__":
    main()
