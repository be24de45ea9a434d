"""The hand-made parsers of the commands that play: full flags only, every mistake one line and status 2."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from fabric_rl.flags.config import load_env


class LineParser(argparse.ArgumentParser):
    """Raises ValueError for what is wrong, and takes flags in full only."""

    def __init__(self, prog: str, description: str) -> None:
        """Makes the parser."""
        super().__init__(prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raises ValueError."""
        raise ValueError(message)

    def run(self, argv: Sequence[str], command: Callable[..., int]) -> int:
        """The status of `command`, called with the flags; what a user can cause is one line and status 2."""
        try:
            return self._call(argv, command)
        except (ValueError, TypeError, OSError, ImportError, FloatingPointError) as error:
            line = " ".join(str(error).split()).removeprefix(f"{self.prog.split()[-1]}: ")
            print(f"{self.prog}: error: {line}", file=sys.stderr)
            return 2

    def _call(self, argv: Sequence[str], command: Callable[..., int]) -> int:
        return command(**vars(self.parse_args(argv)))


class EnvParser(LineParser):
    """Takes `--config` and any `--env...` flag, which build the first argument, `--seed`, `--phase` and `--out`."""

    def __init__(self, prog: str, description: str, out: str) -> None:
        """Makes the parser; `out` is the help of `--out`."""
        super().__init__(prog, description)
        text = "YAML file for train_fabric.py, whose `env` is looked at (default: envs.RocketSimPool as it is)"
        self.add_argument("--config", help=f"{text}; flags such as --env.tick_skip 4 change it")
        self.add_argument("--seed", type=int, default=0, help="decides everything (0)")
        self.add_argument("--phase", help="phase of training, where the environment has some")
        self.add_argument("--out", nargs="+", type=Path, default=[], help=out)

    def _call(self, argv: Sequence[str], command: Callable[..., int]) -> int:
        words, env_flags, own = list(argv), [], []
        while words:
            word = words.pop(0)
            if word == "--env" or word.startswith(("--env.", "--env=")):
                env_flags.append(word)
                if "=" not in word and words:
                    env_flags.append(words.pop(0))
            else:
                own.append(word)
        settings = vars(self.parse_args(own))
        return command(load_env(settings.pop("config"), env_flags, "envs.RocketSimPool"), **settings)
