"""Console scripts: ``fabric-rl``, and ``lightning run model``, the launch command users know, on Fabric's own launcher.

Lightning 2.3 renamed ``lightning run model`` to ``fabric run`` and left the name ``lightning`` to ``lightning-sdk``.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

_RUN_MODEL = "lightning run model"
_USAGE = f"""\
Usage: {_RUN_MODEL} [OPTIONS] SCRIPT [SCRIPT_ARGS]...

Launches a Fabric script on any number of devices, for example
  {_RUN_MODEL} --devices=2 train_fabric.py --config configs/rocket_1v1.yaml
It is `fabric run` under its name from before Lightning 2.3; `{_RUN_MODEL} --help` lists the options.
Any other `lightning` command is handed to lightning-sdk, if that is installed.
"""

_COMMANDS = """\
Usage: fabric-rl COMMAND

  runs                 list the runs of a folder with their milestones
  runs show ID         one run
  runs compare A B     curves of several runs, as a picture and in the terminal
  evaluate A B         matches between trained agents and bots, with confidence intervals
  export A FOLDER      a trained agent without its run, as a small folder
  audit-rewards        what every part of a configuration's reward pays for; status 1 if for own goals or farming
  trace-rewards        what one car is paid, step by step, through one episode
  show-resets          where episodes begin, as a picture and a table

Each has its own --help. Training: python train_fabric.py --help
"""

_TOOLS = {
    "audit-rewards": "fabric_rl.commands.audit_rewards",
    "trace-rewards": "fabric_rl.commands.trace_rewards",
    "show-resets": "fabric_rl.commands.show_resets",
}
"""Commands that look into an environment: modules with `main(argv) -> status`, loaded when asked for."""

_EVALUATE = "fabric_rl.commands.evaluate"
"""Likewise."""


def lightning() -> None:
    """Entry point of the ``lightning`` command.

    ``lightning run model ...`` hands the rest to Fabric's launcher; everything else goes to ``lightning-sdk``.

    Raises:
        SystemExit: Status 0 for success, 2 for wrong usage, 128 plus a signal's number when that signal ended the run,
            else the status of the first worker that failed.
    """
    args = sys.argv[1:]
    if args[:2] == ["run", "model"]:
        _run_model(args[2:])
    asks_for_help = not args or args[0] in ("-h", "--help")
    if asks_for_help:
        print(_USAGE)
    sdk = _console_script("lightning-sdk", "lightning")
    if sdk is not None:
        sys.exit(sdk.load()())
    if not asks_for_help:
        _fail(
            "lightning",
            f"unknown command '{' '.join(args)}': this small `lightning` only knows `{_RUN_MODEL} ...`, "
            "which Lightning 2.3 renamed `fabric run`; lightning-sdk provides the rest",
        )


@contextmanager
def _quiet_pipe() -> Iterator[None]:
    """Ends with status 1 and without a word where nobody reads the output any more, as in `... | head`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, where it can be caught, and not when Python ends
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at the end
        sys.exit(1)


@_quiet_pipe()
def fabric_rl() -> None:
    """Entry point of the ``fabric-rl`` command: run folders, and tools that look into an environment.

    Raises:
        SystemExit: Status 0 for success, 1 for an audit that failed or output that nobody reads, 2 for wrong usage.
    """
    args = sys.argv[1:]
    if args and args[0] in _TOOLS:
        sys.exit(import_module(_TOOLS[args[0]]).main(args[1:]))
    if args[:1] == ["export"]:
        from fabric_rl.runs.trained import export_command

        sys.exit(export_command(args[1:]))
    if args[:1] == ["evaluate"]:
        sys.exit(import_module(_EVALUATE).main(args[1:]))
    if args[:1] == ["runs"]:
        from fabric_rl.runs import runs_command

        sys.exit(runs_command(args[1:]))
    if not args or args[0] in ("-h", "--help"):
        print(_COMMANDS)
        sys.exit(0)
    _fail("fabric-rl", f"unknown command '{' '.join(args)}'; known: runs, evaluate, export, {', '.join(_TOOLS)}")


def _run_model(args: list[str]) -> NoReturn:
    """Runs Fabric's launcher and turns what a user can cause into one line and an exit status.

    Args:
        args: The command line after ``lightning run model``.
    """
    entry_point = _console_script("lightning", "fabric")
    if entry_point is None:
        _fail(_RUN_MODEL, "the installed `lightning` package has no `fabric` command; install lightning>=2.6.6")

    import click
    from lightning.fabric.utilities.exceptions import MisconfigurationException
    from torch.distributed import DistNetworkError
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    _quiet_launcher()
    sys.argv[0] = _RUN_MODEL
    fabric: click.Group = entry_point.load()
    status: int | None
    try:
        status = fabric.commands["run"].main(args, prog_name=_RUN_MODEL, standalone_mode=False)
    except SignalException as error:  # raised once the workers have ended
        status = 128 + error.sigval
    except (click.Abort, KeyboardInterrupt):
        status = 128 + signal.SIGINT
    except ChildFailedError as error:
        status = _status_of_first_failure(error)
    except click.ClickException as error:
        _fail(_RUN_MODEL, f"{error.format_message()} (see {_RUN_MODEL} --help)")
    except DistNetworkError as error:
        _fail(_RUN_MODEL, f"{_one_line(error)} (if another run holds the port, choose a free one with --main-port)")
    except (MisconfigurationException, TypeError, ValueError, AssertionError) as error:
        _fail(_RUN_MODEL, f"{_one_line(error)} (check --devices, --accelerator, --num-nodes, --main-port)")
    sys.exit(status)


def _console_script(distribution: str, name: str) -> metadata.EntryPoint | None:
    """Finds the console script ``name`` of an installed distribution, None where either is missing."""
    try:
        entry_points = metadata.distribution(distribution).entry_points
    except metadata.PackageNotFoundError:
        return None
    return next(iter(entry_points.select(group="console_scripts", name=name)), None)


def _quiet_launcher() -> None:
    """Silences the launcher's own log, which repeats what the workers said; the variable ``LOGLEVEL`` keeps it."""
    if "LOGLEVEL" not in os.environ:
        logger = logging.getLogger("torch.distributed.elastic")
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _status_of_first_failure(error: ChildFailedError) -> int:
    """Returns the exit status of the worker that failed first, the others having been ended because of it.

    A worker that fails has said why itself, unless a signal killed it: then one line says so.
    """
    rank, failure = error.get_first_failure()
    if failure.exitcode >= 0:
        return failure.exitcode
    print(f"{_RUN_MODEL}: error: rank {rank} was killed by {failure.signal_name()}", file=sys.stderr)
    return 128 - failure.exitcode


def _one_line(error: BaseException) -> str:
    """Joins an error's message into one line, leaving out a C++ stack trace that may follow it."""
    return " ".join(str(error).partition("\nException raised from")[0].split())


def _fail(command: str, message: str) -> NoReturn:
    """Ends with status 2 after one line on stderr."""
    print(f"{command}: error: {message}", file=sys.stderr)
    sys.exit(2)
