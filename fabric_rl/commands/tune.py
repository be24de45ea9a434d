"""`fabric-rl tune`: which settings train fastest on this machine."""

import csv
import inspect
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import yaml

from envs.cores import available_cores
from envs.partials import taken_apart
from fabric_rl.commands.space import flags_of, text_of
from fabric_rl.commands.trainings import Trainings, settings_of
from fabric_rl.types import OffPolicyAgent

WARM_UP = 2
"""Iterations that are not measured: memory is touched for the first time, and programs are compiled."""
_FIRST = "# By fabric-rl tune"
ROUNDS = 3
"""How often the fastest settings and the present ones take turns at the end."""
CLEARLY = 1.02
"""A setting that changes what is learned, if only a little, must be so much faster to be taken."""


@dataclass
class Candidate:
    """Settings by flag, and what they reached."""

    flags: dict[str, Any]
    rates: list[float] = field(default_factory=list)
    """Agent-steps per second of each measurement."""
    failed: str = ""

    @property
    def rate(self) -> float:
        """The median; 0 before it was measured, and where it cannot train."""
        return statistics.median(self.rates) if self.rates else 0.0

    def __str__(self) -> str:
        return " ".join(f"--{name} {text_of(value)}" for name, value in self.flags.items()) or "(as it is)"


def tune(training: Sequence[str], minutes: float = 2.0, seconds: float = 3.0, out: Path = Path("tuned.yaml")) -> int:
    """Trains for moments with other ranks, arenas, threads, workers, overlap, precision and so on; keeps the fastest.

    An iteration keeps its agent-steps and an optimizer step its share of them, so the same is learned, but for the
    rounding, and for `--overlap` and `--precision`, which change it a little. The file has the settings that differ:
    train with --config X --config tuned.yaml. Nothing else should run meanwhile.

    Args:
        training: Flags of train_fabric.py: --config X and any others.
        minutes: How long it may look, about.
        seconds: Training of each measurement, after two iterations that do not count.
        out: YAML file that is written.

    Raises:
        ValueError: Wrong flags, an agent that does not learn from rollouts, or settings that do not train at all.
        FileExistsError: There is such a file, which tune has not written.
    """
    if not (minutes > 0 and seconds > 0):
        raise ValueError("--minutes and --seconds must be above 0")
    if not out.parent.is_dir():
        raise ValueError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and not out.read_text(encoding="utf-8", errors="replace").startswith(_FIRST):
        raise FileExistsError(f"--out {out}: this file is none that tune has written; choose another name")
    settings = settings_of(training, "tune")
    config = yaml.safe_load(settings.arguments["resolved_config"])
    agent = taken_apart(settings.arguments["agent"]).function
    if inspect.isclass(agent) and issubclass(agent, OffPolicyAgent):
        raise ValueError("--agent: fabric-rl tune measures agents that learn from rollouts, not SAC")
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(list(training), Path(folder), seconds)
        present = Candidate({})
        found: list[Candidate] = []
        # in a thread, so that Ctrl+C ends the training first
        bench.trainings.each(lambda _: found.append(_fastest(bench, config, present, end)), [None])
        best = max(present, *found, key=lambda candidate: candidate.rate)
    if bench.tried < 2:
        print("time was over before anything else was tried: give more --minutes")
    ratio = statistics.median(b / a for a, b in zip(present.rates, best.rates, strict=False))
    print(f"fastest: {best}, {best.rate:,.0f} agent-steps per second, {ratio:.2f} of the present ones")
    text = f"{_FIRST}: {ratio:.2f} of the speed before, in turns on the same machine.\n"
    out.write_text(text + (yaml.safe_dump(_nested(best.flags)) if best.flags else "{}\n"), encoding="utf-8")
    print(f"written: {out}; train with {' '.join(training)} --config {out}")
    return 0


class Bench:
    """Measures settings, one training after the other, each a process (or several) of its own."""

    def __init__(self, training: list[str], folder: Path, seconds: float) -> None:
        stop = {"class_path": "fabric_rl.callbacks.StopAfter", "init_args": {"minutes": seconds / 60}}
        fixed = ["--total_timesteps=1000000000000", "--summary_freq=1", "--plain", "--record_minutes=null"]
        fixed += ["--milestone_interval=null", "--checkpoint_every_timesteps=null", "--checkpoint_every_minutes=null"]
        self._words, self._folder = [*training, *fixed, f"--callbacks+={json.dumps([stop])}"], folder
        self.trainings, self.tried = Trainings(1, folder), 0

    def measure(self, candidate: Candidate) -> bool:
        """Adds a rate to a candidate and prints it; False if it does not train."""
        self.tried += 1
        name = f"t{self.tried}"
        record, candidate.failed = self.trainings.train(name, [*self._words, *flags_of(candidate.flags)])
        if self.trainings.stopping.is_set():
            raise KeyboardInterrupt
        if record is not None:
            candidate.rates.append(_rate(self._folder / name / "metrics.csv"))
        said = f"{candidate.rates[-1]:,.0f} agent-steps/s" if record is not None else f"cannot: {candidate.failed}"
        print(f"{candidate}: {said}", flush=True)
        return record is not None


def _fastest(bench: Bench, config: Mapping[str, Any], present: Candidate, end: float) -> Candidate:
    """The fastest settings; at the end they and the present ones take turns."""
    if not bench.measure(present):
        raise ValueError(f"these settings do not train: {present.failed}")
    best = _search(bench, config, present, end)
    for _ in range(ROUNDS - 1):
        for candidate in (present, best) if best is not present else ():
            bench.measure(candidate)
    return best


def _search(bench: Bench, config: Mapping[str, Any], present: Candidate, end: float) -> Candidate:
    """Ranks and arenas together first, then one setting after the other on top of the fastest so far."""
    best = present
    for flags in _layouts(config):
        best = _better(bench, best, flags, end)
    for flags in _switches(config):
        best = _better(bench, best, best.flags | flags, end)
    return best


def _better(bench: Bench, best: Candidate, flags: dict[str, Any], end: float) -> Candidate:
    """The faster one of the best and of these flags; a close race is run again."""
    candidate = Candidate(flags)
    if time.monotonic() > end or flags == best.flags or not bench.measure(candidate):
        return best
    if 1 / 1.1 < candidate.rate / best.rate < 1.1:
        for each in (best, candidate):
            bench.measure(each)
    return candidate if candidate.rate > best.rate * CLEARLY else best


def _layouts(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Ranks and arenas that make up the same iteration."""
    env = config.get("env") or {}
    made = env.get("init_args") or {}
    name = next((name for name in ("num_arenas", "num_envs") if name in made), None)
    ranks, steps = _ranks(config), config["num_steps"]
    gpu = torch.cuda.is_available() and config.get("accelerator") != "cpu"
    most = torch.cuda.device_count() if gpu else available_cores()
    for devices in sorted({1, *(2**n for n in range(1, most.bit_length()) if 2**n <= most), most}):
        for factor in (1, 2, 4, 0.5):
            flags: dict[str, Any] = {} if devices == ranks else {"devices": devices}
            arenas = made[name] * factor * ranks / devices if name else 1
            length = steps / factor if name else steps * ranks / devices
            if (not name and factor != 1) or arenas != int(arenas) or length != int(length) or length < 8:
                continue
            if name and arenas != made[name]:
                flags[f"env.{name}"] = int(arenas)
            if length != steps:
                flags["num_steps"] = int(length)
            for size in ("minibatch_size", "batch_size"):
                if config.get(size) and devices != ranks:
                    flags[size] = max(1, config[size] * ranks // devices)
            if flags:
                yield flags


def _switches(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Single settings, the most promising first."""
    if "num_workers" in ((config.get("env") or {}).get("init_args") or {}):
        yield {"env.groups": 2}
        yield from ({"env.num_workers": factor * available_cores()} for factor in (1, 2))
    if not config.get("overlap") and not config.get("num_players"):
        yield {"overlap": True}
    if config.get("num_threads") != 1:
        yield {"num_threads": 1}
    if config.get("precision") == "32-true":
        yield {"precision": "bf16-mixed"}
    if not config.get("compile"):
        yield {"compile": True}


def _ranks(config: Mapping[str, Any]) -> int:
    devices = config.get("devices", 1)
    return int(devices) if str(devices).isdecimal() else 1


def _rate(metrics: Path) -> float:
    """Agent-steps per second after the first iterations."""
    with metrics.open(encoding="utf-8", newline="") as file:
        rows = [(float(row["step"]), float(row["speed/overall_steps_per_second"])) for row in csv.DictReader(file)]
    counted = list(pairwise([(0.0, 1.0), *rows]))[min(WARM_UP, len(rows) - 1) :]
    steps = [now - before for (before, _), (now, _) in counted]
    return sum(steps) / sum(taken / rate for taken, (_, (_, rate)) in zip(steps, counted, strict=True))


def _nested(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags as a configuration file has them: `env.num_arenas` is an argument of the environment's class."""
    inside = {name.removeprefix("env."): value for name, value in flags.items() if name.startswith("env.")}
    found = {name: value for name, value in flags.items() if not name.startswith("env.")}
    return found | ({"env": {"init_args": inside}} if inside else {})
