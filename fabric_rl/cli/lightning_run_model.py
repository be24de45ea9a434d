"""Console script ``lightning run model``, the launch command that users know, based on Fabric's launcher.

Lightning 2.3 renamed ``lightning run model`` to ``fabric run`` and left the name ``lightning`` to ``lightning-sdk``.
"""

import logging
import os
import signal
import socket
import sys
from importlib import metadata
from typing import NoReturn

from fabric_rl.base.errors import exit_with_message

_RUN_MODEL = "lightning run model"
_USAGE = f"""\
Usage: {_RUN_MODEL} [OPTIONS] SCRIPT [SCRIPT_ARGS]...

Launches a Fabric script on any number of devices, for example
  {_RUN_MODEL} --devices=2 train_fabric.py --config configs/rocket_1v1.yaml
This is `fabric run` under the name that it had before Lightning 2.3; `{_RUN_MODEL} --help` lists the options.
Any other `lightning` command is passed on to lightning-sdk, if that is installed.
"""


def lightning() -> None:
    """Entry point of the ``lightning`` command.

    ``lightning run model ...`` calls Fabric's launcher; everything else calls ``lightning-sdk``.

    Raises:
        SystemExit: 0 after success, 2 for wrong usage, 128 plus the number of a signal that ended the run, otherwise
            the status of the first worker that failed.
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
        exit_with_message(
            "lightning",
            f"unknown command '{' '.join(args)}': this `lightning` only provides `{_RUN_MODEL} ...`, "
            "which Lightning 2.3 renamed `fabric run`; install lightning-sdk for other commands",
        )


def _run_model(args: list[str]) -> NoReturn:
    """Call Fabric's launcher, and exit with the status of the worker that failed first."""
    entry_point = _console_script("lightning", "fabric")
    if entry_point is None:
        exit_with_message(
            _RUN_MODEL, "the installed `lightning` package has no `fabric` command; install lightning>=2.6.6"
        )

    import click
    from click.core import ParameterSource
    from lightning.fabric.plugins.environments.lightning import find_free_network_port
    from lightning.fabric.utilities.exceptions import MisconfigurationException
    from torch.distributed import DistNetworkError
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    from fabric_rl.ranks.launched_by import check_devices

    if "LOGLEVEL" not in os.environ:  # the launcher's log repeats the workers' messages
        logger = logging.getLogger("torch.distributed.elastic")
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    sys.argv[0] = _RUN_MODEL
    run = entry_point.load().commands["run"]
    try:
        context = run.make_context(_RUN_MODEL, list(args), resilient_parsing=True)
        check_devices(context.params.get("devices") or 1)
        by_default = context.get_parameter_source("main_port") is ParameterSource.DEFAULT
        if by_default and context.params.get("num_nodes") == 1:
            try:
                socket.create_server(("", context.params["main_port"])).close()
            except OSError:  # in use
                args = [f"--main-port={find_free_network_port()}", *args]
        sys.exit(run.main(args, prog_name=_RUN_MODEL, standalone_mode=False))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(128 + signal.SIGINT)
    except click.ClickException as error:
        exit_with_message(_RUN_MODEL, f"{error.format_message()} (see {_RUN_MODEL} --help)")
    except (DistNetworkError, MisconfigurationException, TypeError, ValueError, AssertionError) as error:
        message = str(error).partition("\nException raised from")[0]  # a stack trace of C++ may follow
        exit_with_message(_RUN_MODEL, f"{message} (check --devices, --accelerator, --num-nodes, --main-port)")
    except SignalException as error:  # the workers have ended
        sys.exit(128 + error.sigval)
    except ChildFailedError as error:  # the worker has printed why, unless a signal killed it
        rank, failure = error.get_first_failure()
        if failure.exitcode >= 0:
            sys.exit(failure.exitcode)
        print(f"{_RUN_MODEL}: error: rank {rank} was killed by {failure.signal_name()}", file=sys.stderr)
        sys.exit(128 - failure.exitcode)


def _console_script(distribution: str, name: str) -> metadata.EntryPoint | None:
    """Return the console script ``name`` of an installed distribution, or None."""
    try:
        entry_points = metadata.distribution(distribution).entry_points
    except metadata.PackageNotFoundError:
        return None
    return next(iter(entry_points.select(group="console_scripts", name=name)), None)
