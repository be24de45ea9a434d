"""The `lightning` command as a user meets it: arguments in; output and an exit status out."""

import os
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest

from fabric_rl.cli.lightning_run_model import lightning
from tests.forks import free_port, kill
from tests.runs import until

FABRIC_SCRIPT = """
import os, sys, time
from pathlib import Path
from lightning.fabric import Fabric

fabric = Fabric()
Path(sys.argv[1], f"rank{fabric.global_rank}").write_text(f"{fabric.world_size} {sys.argv[2:]}")
what = sys.argv[2] if fabric.global_rank == 1 else ""
if what == "--exit":
    sys.exit(int(sys.argv[3]))
if what == "--kill":
    os.kill(os.getpid(), int(sys.argv[3]))
if sys.argv[2] != "--go":
    time.sleep(60)
"""


class Result(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def command(monkeypatch, capfd):
    """Runs the command in this process, for what ends before any worker starts."""

    def run_here(*args: str) -> Result:
        before = dict(os.environ)
        monkeypatch.setattr(sys, "argv", ["lightning", *args])
        status: object = 0
        try:
            lightning()
        except SystemExit as error:
            status = error.code
        finally:  # Fabric's launcher writes to the environment
            os.environ.clear()
            os.environ.update(before)
        return Result(status or 0, *capfd.readouterr())

    return run_here


@pytest.fixture
def process(forks):
    """Runs the command in a process of its own."""

    def run(*args: str) -> Result:
        (status,), out, err = forks.wait([forks.start(*args, program="lightning")])
        return Result(status, out, err)

    return run


def run_model(folder: Path, *script_args: str, flags: tuple[str, ...] = ()) -> list[str]:
    """Arguments that run FABRIC_SCRIPT on two CPU ranks, on a port that nobody holds; `flags` come last and win."""
    script = folder / "script.py"
    script.write_text(FABRIC_SCRIPT)
    own_flags = ["--accelerator=cpu", "--devices=2", f"--main-port={free_port()}"]
    return ["run", "model", *own_flags, *flags, str(script), str(folder), *script_args]


def assert_one_error_line(result: Result, *contents: str) -> None:
    assert result.status == 2
    assert result.err.count("\n") == 1
    for content in contents:
        assert content in result.err


def installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


without_sdk = pytest.mark.skipif(installed("lightning-sdk"), reason="lightning-sdk answers this command")


@without_sdk
@pytest.mark.parametrize("args", [["run"], ["run", "app.py"], ["--version"]])
def test_unknown_command_is_one_line(command, args):
    assert_one_error_line(command(*args), " ".join(args), "lightning run model", "fabric run", "lightning-sdk")


@without_sdk
@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_usage(command, args):
    result = command(*args)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("Usage: lightning run model ")


def test_other_commands_go_to_the_sdk_with_untouched_arguments(command, tmp_path, monkeypatch):
    info = tmp_path / "lightning_sdk-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning-sdk\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[console_scripts]\nlightning = fake_lightning_sdk:main\n")
    (tmp_path / "fake_lightning_sdk.py").write_text("import sys\ndef main():\n    print(sys.argv)\n    return 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert command("studio", "--name", "x") == Result(5, "['lightning', 'studio', '--name', 'x']\n", "")


def test_run_model_help_shows_its_own_name(command):
    result = command("run", "model", "--help")
    assert result.status == 0
    assert result.out.startswith("Usage: lightning run model [OPTIONS] SCRIPT")
    assert "--devices" in result.out


def test_devices_without_end_are_refused(command):
    result = command("run", "model", "--accelerator=cpu", "--devices=1000", __file__)
    assert_one_error_line(result, "lightning run model: error: --devices 1000: each is a process that needs half")


@pytest.mark.slow
def test_run_model_launches_every_rank_and_passes_arguments_on(process, tmp_path):
    arguments = ["--go", "--env-id", "CartPole-v1", "--num_envs=2"]
    result = process(*run_model(tmp_path, *arguments))
    assert result.status == 0, result.err
    assert sorted(path.name for path in tmp_path.glob("rank*")) == ["rank0", "rank1"]
    assert {path.read_text() for path in tmp_path.glob("rank*")} == {f"2 {arguments}"}


@pytest.mark.slow
def test_a_port_in_use_means_another_one(process, tmp_path):
    arguments = [word for word in run_model(tmp_path, "--go") if not word.startswith("--main-port")]
    with ExitStack() as stack:
        with suppress(OSError):  # if another program has it already
            stack.enter_context(socket.create_server(("", 29400)))
        result = process(*arguments)
    assert result.status == 0, result.err
    assert sorted(path.name for path in tmp_path.glob("rank*")) == ["rank0", "rank1"]


@pytest.mark.slow
def test_failed_worker_gives_its_exit_status_and_no_traceback(process, tmp_path):
    result = process(*run_model(tmp_path, "--exit", "7"))
    assert result.status == 7
    assert "Traceback" not in result.err
    assert "exitcode" not in result.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_killed_worker_is_named(process, tmp_path):
    result = process(*run_model(tmp_path, "--kill", str(int(signal.SIGKILL))))
    assert result.status == 128 + signal.SIGKILL
    assert "lightning run model: error: rank 1 was killed by SIGKILL\n" in result.err
    assert "Traceback" not in result.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupt_ends_workers_and_launcher_quietly(forks, tmp_path):
    launcher = forks.start(*run_model(tmp_path, "--wait"), program="lightning")
    until(lambda: all(path.exists() and path.read_text() for path in (tmp_path / "rank0", tmp_path / "rank1")))
    kill(launcher.pid, signal.SIGINT)
    (status,), _, err = forks.wait([launcher])
    assert status == 128 + signal.SIGINT
    assert "SignalException" not in err
    assert "launch_agent" not in err


@pytest.mark.parametrize(
    ("flag", "named"),
    [("--accelerator=abacus", "'--accelerator'"), ("--precision=12", "'--prec"), ("--main-port=999999", "--main-port")],
)
def test_a_bad_flag_is_one_line(command, tmp_path, flag, named):
    result = command(*run_model(tmp_path, "--go", flags=(flag,)))
    assert result.status == 2 and result.err.startswith("lightning run model: error: ") and named in result.err
    assert result.err.count("\n") == 1
    assert not list(tmp_path.glob("rank*"))


@pytest.mark.parametrize("args", [[], ["no_such_script.py"]])
def test_a_missing_script_is_told_by_fabric(command, args):
    result = command("run", "model", *args)
    assert result.status == 2 and "SCRIPT" in result.err
