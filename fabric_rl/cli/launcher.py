"""The console script ``lightning run model``, the launch command users know, on Fabric's own launcher.

Lightning 2.3 renamed ``lightning run model`` to ``fabric run`` and left the name ``lightning`` to ``lightning-sdk``.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from importlib import metadata
from typing import TYPE_CHECKING, NoReturn

from fabric_rl.base.errors import fail

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
        fail(
            "lightning",
            f"unknown command '{' '.join(args)}': this small `lightning` only knows `{_RUN_MODEL} ...`, "
            "which Lightning 2.3 renamed `fabric run`; lightning-sdk provides the rest",
        )


def _run_model(args: list[str]) -> NoReturn:
    """Runs Fabric's launcher and turns what a user can cause into one line and an exit status.

    Args:
        args: The command line after ``lightning run model``.
    """
    entry_point = _console_script("lightning", "fabric")
    if entry_point is None:
        fail(_RUN_MODEL, "the installed `lightning` package has no `fabric` command; install lightning>=2.6.6")

    import click
    from lightning.fabric.utilities.exceptions import MisconfigurationException
    from torch.distributed import DistNetworkError
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    from fabric_rl.ranks.launch import check_devices

    if "LOGLEVEL" not in os.environ:  # the launcher's own log repeats what the workers said
        logger = logging.getLogger("torch.distributed.elastic")
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    sys.argv[0] = _RUN_MODEL
    run = entry_point.load().commands["run"]
    status: int | None
    try:
        check_devices(run.make_context(_RUN_MODEL, list(args), resilient_parsing=True).params.get("devices") or 1)
        status = run.main(args, prog_name=_RUN_MODEL, standalone_mode=False)
    except SignalException as error:  # raised once the workers have ended
        status = 128 + error.sigval
    except (click.Abort, KeyboardInterrupt):
        status = 128 + signal.SIGINT
    except ChildFailedError as error:
        status = _status_of_first_failure(error)
    except click.ClickException as error:
        fail(_RUN_MODEL, f"{error.format_message()} (see {_RUN_MODEL} --help)")
    except DistNetworkError as error:
        fail(_RUN_MODEL, f"{_message(error)} (if another run holds the port, choose a free one with --main-port)")
    except (MisconfigurationException, TypeError, ValueError, AssertionError) as error:
        fail(_RUN_MODEL, f"{_message(error)} (check --devices, --accelerator, --num-nodes, --main-port)")
    sys.exit(status)


def _console_script(distribution: str, name: str) -> metadata.EntryPoint | None:
    """Finds the console script ``name`` of an installed distribution, None where either is missing."""
    try:
        entry_points = metadata.distribution(distribution).entry_points
    except metadata.PackageNotFoundError:
        return None
    return next(iter(entry_points.select(group="console_scripts", name=name)), None)


def _status_of_first_failure(error: ChildFailedError) -> int:
    """Returns the exit status of the worker that failed first, the others having been ended because of it.

    A worker that fails has said why itself, unless a signal killed it: then one line says so.
    """
    rank, failure = error.get_first_failure()
    if failure.exitcode >= 0:
        return failure.exitcode
    print(f"{_RUN_MODEL}: error: rank {rank} was killed by {failure.signal_name()}", file=sys.stderr)
    return 128 - failure.exitcode


def _message(error: BaseException) -> str:
    """An error's message, without a C++ stack trace that may follow it."""
    return str(error).partition("\nException raised from")[0]
