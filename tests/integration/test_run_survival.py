"""What runs survive: damaged and foreign files, full disks, closed pipes, a second signal."""

import re
import shutil
import signal
import sys
import time

import pytest
import torch

from fabric_rl import load_checkpoint
from fabric_rl.runs.checkpoint import write
from fabric_rl.runs.records import list_checkpoints
from tests.forks import kill
from tests.runs import CARTPOLE, names_in, steps_in, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="os.fork, prlimit")
FOREVER = [*CARTPOLE, "--total_timesteps", 100_000_000, "--checkpoint_every_timesteps", 640]


def test_damaged_checkpoints(copy_of_first, call):
    run = copy_of_first("damaged")
    files = list_checkpoints(run / "checkpoints")
    files[-1].write_bytes(files[-1].read_bytes()[:1000])
    content = bytearray(files[-2].read_bytes())
    content[len(content) // 2] ^= 1
    files[-2].write_bytes(content)
    status, out, err = call("--run_id", "damaged", "--resume")
    assert status == 0 and "after 384 steps" in out
    assert len(err) == 2 and "is truncated" in err[0] and "its checksum is wrong" in err[1]
    log = (run / "log.txt").read_text()
    assert "WARNING checkpoint" in log and "is truncated" in log and "its checksum is wrong" in log
    assert steps_in(run) == list(range(64, 641, 64))
    for file in list_checkpoints(run / "checkpoints"):
        torch.save({"agent": {}}, file)
    status, _, err = call("--run_id", "damaged", "--resume")
    assert status == 2 and "none of the 3 checkpoints" in err[-1]


@pytest.mark.slow
def test_foreign_files_among_the_checkpoints(copy_of_first, call, refused):
    """One that fabric-rl wrote but no run, one that was renamed, an empty one, a folder, noise."""
    run = copy_of_first("foreign")
    folder = run / "checkpoints"
    write(folder / "step_000000000900.ckpt", {"agent": {}, "steps": 900})
    shutil.copy(folder / "step_000000000640.ckpt", folder / "step_000000000901.ckpt")
    (folder / "step_000000000902.ckpt").write_bytes(b"")
    (folder / "step_000000000903.ckpt").mkdir()
    (folder / "step_000000000904.ckpt").write_bytes(b"noise" * 1000)
    status, out, err = call("--run_id", "foreign", "--resume", "--total_timesteps", 704)
    assert status == 0 and "after 640 steps" in out and "newer checkpoints: 5 moved" in out
    reasons = ["did not write it", "not a regular file", "did not write it", "its content is from step 640"]
    reasons.append("not a run's checkpoint")
    assert len(err) == 5 and [text for text, line in zip(reasons, err, strict=True) if text not in line] == []
    assert load_checkpoint(run)[1]["steps"] == 704
    line = refused(*CARTPOLE, "--initialize_from", folder / "set_aside/step_000000000900.ckpt")
    assert "was rejected: it is not a run's checkpoint (it lacks " in line


def test_damaged_runs_are_named_when_the_newest_run_is_looked_for(trained, call, tmp_path):
    for path in list_checkpoints(shutil.copytree(trained, tmp_path / "broken") / "checkpoints"):
        path.write_bytes(path.read_bytes()[:-1])
    status, out, err = call(*CARTPOLE, "--resume", "--total_timesteps", 64, "--runs_dir", tmp_path)
    assert status == 0 and len(err) == 3
    assert "skipping run broken: none of the 3 checkpoints" in out and "starting a new one" in out


@pytest.mark.slow
def test_one_process_at_a_time_works_on_a_run(begin, call, refused, end, runs):
    process = begin(*FOREVER, "--run_id", "mine", "--checkpoint_every_timesteps", 64)
    until(lambda: (runs / "mine/checkpoints").exists() and names_in(runs / "mine/checkpoints"))
    for flag in ("--resume", "--force"):
        line = refused(*CARTPOLE, "--run_id", "mine", flag, "--total_timesteps", 64)
        assert f"--run_id mine: another process is using {runs / 'mine'}; stop it first" in line
    kill(process.pid)
    assert end(process)[0] == -signal.SIGKILL
    assert call("--run_id", "mine", "--resume", "--total_timesteps", 64)[0] == 0  # nothing is left of its lock


def limit_files(process, size):
    """No file of the process may grow over so many bytes."""
    import resource

    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.slow
def test_a_disk_that_is_full_at_the_end(begin, end, runs):
    """Output can be written, but no checkpoint."""
    run = runs / "lost"
    process = begin(*FOREVER, "--run_id", "lost")
    until(lambda: names_in(run / "checkpoints"))
    limit_files(process, 50_000)
    until(lambda: "cannot be written" in process.err, seconds=120)
    kill(process.pid, signal.SIGTERM)
    status, out, err = end(process)
    kept = list_checkpoints(run / "checkpoints")[-1]
    assert status == 1
    assert re.search(rf"the last [\d,]+ steps are NOT SAVED .*; the newest good checkpoint is {kept}\n", out)
    assert f"python train_fabric.py --runs_dir {runs} --run_id lost --resume\n" in out
    assert err[-1].startswith("train_fabric.py: error: the last ") and str(kept) in err[-1]


@pytest.mark.slow
def test_a_disk_that_is_full_for_a_while(begin, end, runs):
    """Nothing can be written. Then it can again."""
    run = runs / "full"
    process = begin(*FOREVER, "--run_id", "full")
    until(lambda: names_in(run / "checkpoints"))
    limit_files(process, 1000)
    until(lambda: "cannot be written" in process.err, seconds=120)
    kept = list_checkpoints(run / "checkpoints")[-1]
    assert load_checkpoint(kept)[1]["steps"] > 0
    limit_files(process, -1)
    until(lambda: list_checkpoints(run / "checkpoints")[-1] != kept)
    kill(process.pid, signal.SIGTERM)
    status, _, err = end(process)
    assert status == 0
    assert all(line.startswith("train_fabric.py: warning: ") for line in err)
    assert steps_in(run) == list(range(64, load_checkpoint(run)[1]["steps"] + 1, 64))  # what was missing came later


@pytest.mark.slow
def test_output_that_nobody_reads_any_more(call, runs):
    status, _, err = call(*CARTPOLE, "--run_id", "unread", "--total_timesteps", 640, BROKEN_PIPE=0)
    assert (status, err) == (0, [])
    assert load_checkpoint(runs / "unread")[1]["steps"] == 640


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_ends_at_once(begin, end, runs, number):
    name = f"twice{int(number)}"
    long = ["--num_steps", 200_000, "--minibatch_size", 400_000, "--checkpoint_every_timesteps", 1]
    process = begin(*FOREVER, "--run_id", name, *long)
    until(lambda: "rank on cpu" in process.out and (runs / name / "config.yaml").exists())
    time.sleep(0.3)  # into the long first iteration
    kill(process.pid, number)
    until(lambda: "press Ctrl+C again" in process.out)
    kill(process.pid, number)
    status, out, err = end(process)
    assert (status, err) == (130, [])
    assert "steps in" not in out
