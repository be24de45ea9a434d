"""Loggers by class path: Weights & Biases through Lightning's logger, offline, alone and beside another one."""

import csv
import json
import os
import re
import signal
import struct
import subprocess
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fabric_rl import load_checkpoint

pytest.importorskip("wandb")
pytestmark = pytest.mark.slow  # it writes when Python ends, so every run here needs a process of its own
TASK = ["--env_id", "CartPole-v1", "--num_envs", 2, "--num_steps", 32, "--minibatch_size", 64, "--update_epochs", 1]
CPU = ["--accelerator", "cpu", "--plain"]
WANDB = "lightning.pytorch.loggers.WandbLogger"


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """Nothing can be sent anywhere, and nothing is written into the user's folders."""
    for name, value in {
        "WANDB_MODE": "offline",
        "WANDB_BASE_URL": "http://127.0.0.1:9",
        "WANDB_CONFIG_DIR": tmp_path / "config",
        "WANDB_CACHE_DIR": tmp_path / "cache",
        "WANDB_DATA_DIR": tmp_path / "data",
    }.items():
        monkeypatch.setenv(name, str(value))


def records(folder):
    """What the one offline run below `folder/wandb` holds, as wandb's own messages, in order.

    The file is a log as LevelDB writes it: seven bytes of header, then blocks of 32 KiB with pieces of records, each
    after its checksum (4 bytes), length (2) and kind (1: all of it, 2: first, 3: middle, 4: last piece).
    """
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    content, position, found, record = path.read_bytes(), 7, [], b""
    assert content.startswith(b":W&B")
    while position < len(content):
        left = 2**15 - position % 2**15
        if left < 7:  # too little for the next piece
            position += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, position)
        record += content[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):
            found.append(Record.FromString(record))
            record = b""
    return found


def history(found):
    """The logged rows: metric -> number."""
    rows = [message.history.item for message in found if message.WhichOneof("record_type") == "history"]
    return [{"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in row} for row in rows]


def table(run):
    """`metrics.csv` without its empty cells."""
    with open(run / "metrics.csv", newline="") as file:
        return [{name: float(cell) for name, cell in row.items() if cell} for row in csv.DictReader(file)]


def assert_same(rows, expected):
    assert [row["trainer/global_step"] for row in rows] == [row["step"] for row in expected]
    for row, other in zip(rows, expected, strict=True):
        own = {name: number for name, number in row.items() if name != "trainer/global_step" and name[0] != "_"}
        assert own == pytest.approx({name: number for name, number in other.items() if name != "step"})


def test_weights_and_biases_offline(run_python, tmp_path):
    flags = ["--logger", WANDB, "--logger.offline", "true", "--logger.save_dir", tmp_path, "--logger.project", "bots"]
    here = ["--runs_dir", tmp_path / "runs", "--run_id", "a", *CPU]
    result = run_python("train_fabric.py", *TASK, "--total_timesteps", 192, *flags, *here)
    assert result.returncode == 0, result.stderr
    assert "warning" not in result.stderr.replace("wandb: WARNING", "")
    found, expected = records(tmp_path), table(tmp_path / "runs/a")
    assert [row["step"] for row in expected] == [64, 128, 192]
    assert {"ppo/entropy", "reward/step", "speed/overall_steps_per_second"} < expected[0].keys()
    assert_same(history(found), expected)
    config = {item.key for message in found for item in message.config.update}
    assert {"num_steps", "agent.init_args.actor_lr", "agent.actor_lr"} & config == {"num_steps", "agent.actor_lr"}
    (run,) = (message.run for message in found if message.WhichOneof("record_type") == "run")
    assert (run.project, run.display_name) == ("bots", "a")
    assert [message.exit.exit_code for message in found if message.WhichOneof("record_type") == "exit"] == [0]
    assert not (tmp_path / "runs/a/tensorboard").exists()  # the user's logger takes its place


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_two_loggers_and_control_c(root, tmp_path):
    """A terminal sends Ctrl+C to wandb's processes, too; nothing of theirs may get lost."""
    (tmp_path / "loggers.yaml").write_text(f"""
        logger:
          - class_path: lightning.fabric.loggers.TensorBoardLogger
            init_args: {{root_dir: {tmp_path}, name: events, version: ""}}
          - class_path: {WANDB}
    """)
    run = tmp_path / "runs/both"
    flags = ["--config", tmp_path / "loggers.yaml", *TASK, "--total_timesteps", 10**9]
    process = subprocess.Popen(
        [sys.executable, "train_fabric.py", *map(str, flags), "--runs_dir", run.parent, "--run_id", "both", *CPU],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        for line in process.stdout:
            if re.match(r" +192/", line):
                break
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 0
    found, expected = records(run), table(run)  # in the run's folder, where nobody has chosen another one
    assert expected[-1]["step"] == load_checkpoint(run)[1]["steps"] >= 192
    assert_same(history(found), expected)
    (described,) = (message.run for message in found if message.WhichOneof("record_type") == "run")
    assert described.display_name == "both"
    accumulator = EventAccumulator(str(tmp_path / "events"))
    accumulator.Reload()
    entropies = {event.step: event.value for event in accumulator.Scalars("ppo/entropy")}
    assert entropies == pytest.approx({row["step"]: row["ppo/entropy"] for row in expected})
