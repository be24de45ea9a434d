"""One training run of this project with the settings of a benchmark, and its figures.

The environment is the one of RLGym's training guide in 1v1: kickoffs, DefaultObs, the 90-row table held for 8 ticks,
four rewards; a goal, 30 s without a touch or 300 s end an episode. An iteration collects a batch and makes one
optimizer step per batch and epoch, as RLGym's learners do; the gradients of its minibatches are added up.
"""

import argparse
import csv
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from children import run_child

ROOT = Path(__file__).parent.parent
_PROGRESS = re.compile(r"^\s*([\d,]+)/[\d,]+  ")
RUN_ENV = {"PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True)
class Work:
    """What all contenders have to do alike."""

    hidden_sizes: tuple[int, ...] = (256, 256, 256)
    batch: int = 20_000
    epochs: int = 2
    minibatches: int = 10
    buffer: int = 1
    """Batches in the experience buffer: each epoch makes so many optimizer steps."""
    iterations: int = 8
    warm_up: int = 2
    """Iterations at the beginning that are not counted."""
    accelerator: str = "cpu"
    timeout: float = 900.0


@dataclass(frozen=True)
class Setting:
    """How this project does it; on the command line for example `processes groups=2 arenas=128 compile`."""

    pool: str = "threads"
    groups: int = 1
    arenas: int = 100
    devices: int = 1
    precision: str = "32-true"
    compile: bool = False
    flags: tuple[str, ...] = field(default=())
    """Further flags of train_fabric.py."""

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """Reads words such as `threads`, `processes`, `compile`, `arenas=64`, `devices=2`, or `--flag=value`.

        Raises:
            ArgumentTypeError: An unknown word; argparse shows its message.
        """
        setting = cls()
        for word in text.split():
            name, _, value = word.partition("=")
            if word.startswith("--"):
                setting = replace(setting, flags=(*setting.flags, word))
            elif word in ("threads", "processes"):
                setting = replace(setting, pool=word)
            elif word == "compile":
                setting = replace(setting, compile=True)
            elif name == "groups" and value.isdigit() and int(value) > 0:
                setting = replace(setting, groups=int(value))
            elif name == "arenas" and value.isdigit() and int(value) > 0:
                setting = replace(setting, arenas=int(value))
            elif name == "devices" and value.isdigit() and int(value) > 0:
                setting = replace(setting, devices=int(value))
            elif name == "precision" and value:
                setting = replace(setting, precision=value)
            else:
                raise argparse.ArgumentTypeError(
                    f"unknown word '{word}' in the setting '{text}'; use threads, processes, groups=N, compile, "
                    "arenas=N, devices=N, precision=P or --flag=value of train_fabric.py"
                )
        if setting.arenas % setting.devices:
            raise argparse.ArgumentTypeError(
                f"{setting.arenas} arenas cannot be shared evenly by {setting.devices} devices in '{text}'"
            )
        return setting

    def __str__(self) -> str:
        """The words that `parse` reads."""
        words = [self.pool, *([f"groups={self.groups}"] if self.groups > 1 else []), f"arenas={self.arenas}"]
        words += [f"devices={self.devices}"] if self.devices > 1 else []
        words += [f"precision={self.precision}"] if self.precision != "32-true" else []
        return " ".join([*words, *(["compile"] if self.compile else []), *self.flags])

    def config(self, work: Work) -> dict[str, Any]:
        """The configuration for train_fabric.py."""
        arenas = self.arenas // self.devices
        steps = max(1, round(work.batch / (2 * self.arenas)))
        rollout = 2 * arenas * steps  # of one rank
        count = max(1, work.minibatches // self.devices)
        pool = {"class_path": "envs.RocketSimPool", "init_args": {"num_arenas": arenas, "team_size": 1}}
        shards = {"class_path": "envs.ProcessPool", "init_args": {"factory": pool, "groups": self.groups}}
        agent = {
            "actor_hidden_sizes": list(work.hidden_sizes),
            "critic_hidden_sizes": list(work.hidden_sizes),
            "activation": "torch.nn.ReLU",
            "entropy_coef": 0.01,
        }
        return {
            "total_timesteps": work.iterations * rollout * self.devices,
            "num_steps": steps,
            "update_epochs": work.epochs,
            "minibatch_size": rollout // count,
            "batch_size": rollout // count * count,
            "exp_buffer_size": work.buffer * rollout if work.buffer > 1 else None,
            "checkpoint_every_timesteps": None,
            "compile": self.compile,
            "precision": self.precision,
            "accelerator": work.accelerator,
            "devices": self.devices,
            "plain": True,
            "env": shards if self.pool == "processes" else pool,
            "agent": {"class_path": "agents.PPOLightningAgent", "init_args": agent},
        }


def train(setting: Setting, work: Work) -> dict[str, Any]:
    """Trains in a process of its own.

    Returns:
        `collected`, `consumed`, `overall`: agent-steps per second after the warm-up, the last by the clock of this
        process from line to line; `memory_mib`; `processes`; `split`, see `split_of`. Or only `failed`, why.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps(setting.config(work)), encoding="utf-8")  # JSON is YAML, too
        command = [sys.executable, str(ROOT / "train_fabric.py"), "--config", str(config), *setting.flags]
        command += ["--runs_dir", folder, "--run_id", "r"]
        done = run_child(command, work.timeout, ROOT, RUN_ENV)
        run = Path(folder) / "r"
        if done.status != 0 or not (run / "timers.json").exists():
            return {"failed": done.reason}
        with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        timers = json.loads((run / "timers.json").read_text(encoding="utf-8"))
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    marks = [(at, steps_in(line)) for at, line in done.lines if steps_in(line) is not None]
    names = {kind: f"speed/{kind}_steps_per_second" for kind in ("collected", "consumed")}
    series = {kind: [float(row[name]) for row in rows if row.get(name)] for kind, name in names.items()}
    figures: dict[str, Any] = rates(marks, series, work.warm_up)
    if "failed" in figures:
        return figures
    per_iteration = summary["total_steps"] / summary["iterations"]
    split = split_of(timers, summary["iterations"], per_iteration)
    return figures | {"memory_mib": done.memory_mib, "processes": done.processes, "split": split}


def rates(
    marks: Sequence[tuple[float, int | None]], series: dict[str, list[float]], warm_up: int
) -> dict[str, float] | dict[str, str]:
    """Steps per second without the first iterations.

    Args:
        marks: After each iteration, seconds and steps so far.
        series: Rates of each iteration by name; the mean rate over equal iterations is the harmonic mean.
        warm_up: Iterations to leave out.
    """
    counted = marks[max(1, warm_up) - 1 :]
    if len(counted) < 2:
        return {"failed": f"only {len(marks)} iterations came to an end"}
    (began, first), (ended, last) = counted[0], counted[-1]
    assert first is not None and last is not None
    found = {"overall": (last - first) / (ended - began)}
    for name, each in series.items():
        kept = each[max(1, warm_up) :]
        found[name] = len(kept) / sum(1 / rate for rate in kept) if kept else float("nan")
    return found


def steps_in(line: str) -> int | None:
    """The steps so far in a line that train_fabric.py prints after an iteration."""
    match = _PROGRESS.match(line)
    return int(match[1].replace(",", "")) if match else None


def split_of(timers: dict[str, Any], iterations: int, steps: float) -> dict[str, float]:
    """Where the time of an iteration goes: timer path -> microseconds per agent-step.

    The longest passage of every timer is left out: it holds the warm-up (compilation, first allocations).

    Args:
        timers: What `timers.json` holds.
        iterations: Of the run.
        steps: Agent-steps in an iteration, over all ranks.
    """
    found: dict[str, float] = {}

    def visit(node: dict[str, Any], path: str) -> float:
        total, count = node["total"], node["count"]
        if count > 1 and "max" in node:
            total = (total - node["max"]) / (count - 1) * count
        parts = 0.0
        if path:
            found[path] = total / iterations / steps * 1e6
        for name, child in node.get("children", {}).items():
            parts += visit(child, f"{path}/{name}" if path else name)
        if path and parts:
            found[f"{path}/the rest"] = max(0.0, found[path] - parts)
        return found[path] if path else 0.0

    visit({"total": 0.0, "count": 0, "children": timers.get("children", {})}, "")
    return found
