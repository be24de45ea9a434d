"""What the commands that look into an environment share: flags, one-line errors, figures, tables as files."""

import argparse
import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, Protocol

from rich.console import Console

_FIGURES = "matplotlib.figure"
"""Optional: `pip install fabric-rl[plots]`."""
WIDTH = 132
"""Columns of a table that does not go to a terminal."""


class LoadEnv(Protocol):
    """Reads the environment of a configuration file."""

    def __call__(self, config: str | None, flags: Sequence[str], default: str) -> Callable[..., Any]:
        """What builds the environment.

        Args:
            config: The YAML file; None for the environment `default` with its own settings.
            flags: `--env...` flags that change settings.
            default: Class path.

        Raises:
            ValueError: One line about what is wrong.
        """


class LineParser(argparse.ArgumentParser):
    """Raises ValueError for what is wrong, and takes flags in full only."""

    def __init__(self, prog: str, description: str) -> None:
        """Makes the parser."""
        super().__init__(prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raises ValueError."""
        raise ValueError(message)


class ToolParser(LineParser):
    """Takes `--config`, `--seed`, `--phase`, `--out` and any `--env...` flag; raises ValueError for what is wrong."""

    def __init__(self, prog: str, description: str, out: str) -> None:
        """Makes the parser; `out` is the help of `--out`."""
        super().__init__(prog, description)
        text = "YAML file for train_fabric.py, whose `env` is looked at (default: envs.RocketSimPool as it is)"
        self.add_argument("--config", help=f"{text}; flags such as --env.tick_skip 4 change it")
        self.add_argument("--seed", type=int, default=0, help="decides everything (0)")
        self.add_argument("--phase", help="phase of training, where the environment has some")
        self.add_argument("--out", nargs="+", type=Path, default=[], help=out)

    def take(self, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """The arguments, and the `--env...` flags among them.

        Raises:
            ValueError: Unknown or wrong flags.
        """
        words, env_flags, own = list(argv), [], []
        while words:
            word = words.pop(0)
            if word == "--env" or word.startswith(("--env.", "--env=")):
                env_flags.append(word)
                if "=" not in word and words:
                    env_flags.append(words.pop(0))
            else:
                own.append(word)
        return self.parse_args(own), env_flags


Work = Callable[[argparse.Namespace, Callable[..., Any]], int]
"""What a command does with its arguments and what builds the environment; returns the exit status."""


def run(parser: ToolParser, work: Work, argv: Sequence[str], load: LoadEnv) -> int:
    """Does the work of a command with the environment of its flags, see `in_one_line`."""

    def loaded() -> int:
        args, env_flags = parser.take(argv)
        return work(args, load(args.config, env_flags, "envs.RocketSimPool"))

    return in_one_line(parser, loaded)


def in_one_line(parser: LineParser, work: Callable[[], int]) -> int:
    """The status of a command's work; what a user can cause is one line on standard error and status 2."""
    try:
        return work()
    except (ValueError, TypeError, OSError, ImportError, FloatingPointError) as error:
        line = " ".join(str(error).split()).removeprefix(f"{parser.prog.split()[-1]}: ")
        print(f"{parser.prog}: error: {line}", file=sys.stderr)
        return 2


def check_suffixes(paths: Sequence[Path], allowed: Sequence[str]) -> None:
    """Checks files before any work is done for them.

    Raises:
        ValueError: One has another suffix.
        OSError: Its folder does not exist.
        ImportError: A picture, but matplotlib is not installed.
    """
    for path in paths:
        if path.suffix not in allowed:
            raise ValueError(f"--out {path}: must end in {' or '.join(allowed)}")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"--out {path}: there is no folder {path.parent}")
        if path.suffix == ".png":
            new_figure(1, 1)


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib is optional and may not be there
    """An empty matplotlib figure of that many inches, which needs no display.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        figures = import_module(_FIGURES)
    except ImportError as error:
        raise ImportError('pictures need matplotlib; pip install "fabric-rl[plots]"') from error
    return figures.Figure(figsize=(width, height), layout="constrained")


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes rows with the same keys as a CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def console() -> Console:
    """Where tables go; wide enough for them if that is no terminal."""
    made = Console()
    return made if made.is_terminal else Console(width=WIDTH)
