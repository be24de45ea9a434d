"""Search for the settings that train fastest on this machine, with short training runs."""

import csv
import json
import math
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from fabric_rl.base.processes import available_cores
from fabric_rl.ranks.devices import bfloat16_speedup
from fabric_rl.sweeps.sweep import flags_of
from fabric_rl.sweeps.train_processes import TrainProcesses

_PATIENCE = 120.0
"""Minimum time limit of a measurement in seconds, enough to compile programs."""

WARM_UP = 2
"""Iterations that are not measured: memory is allocated, and programs are compiled."""

TURNS = 4
"""Final rounds of the fastest against the present settings; even, so that each is first equally often."""

CLEARLY = 1.02
"""Minimum ratio of speeds to accept a setting, because each changes learning a little."""

BFLOAT16_GAINS = 1.2
"""Minimum speed-up of large matrix products to try bfloat16."""

SIZES = ("minibatch_size", "batch_size", "exp_buffer_size")
"""Settings that count steps per rank, and are divided by the number of ranks."""

LAYOUT = {"devices", "env.num_arenas", "env.num_envs", "num_steps", *SIZES}
"""Flags that a layout sets together; another layout replaces all of them."""


@dataclass
class Candidate:
    """Settings by flag, and measurements of their speed."""

    flags: dict[str, Any]
    rates: list[float] = field(default_factory=list)
    """Agent-steps per second of each measurement."""
    failed: str = ""
    seconds: float = 0.0
    """Duration of the last measurement, including the start."""
    name: str = "(unchanged)"
    """Name of a candidate without flags."""

    @property
    def rate(self) -> float:
        """Median rate in agent-steps per second; 0 if there are no measurements."""
        return statistics.median(self.rates) if self.rates else 0.0

    def __str__(self) -> str:
        return " ".join(flag.replace("=", " ", 1) for flag in flags_of(self.flags)) or self.name


class Benchmark:
    """Measure the speed of settings with one training run at a time."""

    def __init__(self, training: list[str], folder: Path, seconds: float) -> None:
        clock = {"minutes": seconds / 60, "after_iterations": WARM_UP}
        stop = {"class_path": "fabric_rl.callbacks.StopAfter", "init_args": clock}
        fixed = ["--total_timesteps=1000000000000", "--summary_freq=1", "--plain", "--record_minutes=null"]
        fixed.append("--final_model=none")
        fixed += ["--milestone_interval=null", "--checkpoint_every_timesteps=null", "--checkpoint_every_minutes=null"]
        self._flags, self._folder = [*training, *fixed, f"--callbacks+={json.dumps([stop])}"], folder
        self.trainings, self.tried, self.left_out = TrainProcesses(1, folder, grace_seconds=5.0), 0, 0
        self._patience = math.inf

    def measure(self, candidate: Candidate) -> bool:
        """Measure a candidate and print its rate; return False if it fails or takes far longer than the first one."""
        self.tried += 1
        name, began = f"t{self.tried}", time.monotonic()
        flags = [*self._flags, *flags_of(candidate.flags)]
        record, failed = self.trainings.train(name, flags, lambda: time.monotonic() - began > self._patience)
        if self.trainings.stopping.is_set():
            raise KeyboardInterrupt
        candidate.seconds = time.monotonic() - began
        if self._patience == math.inf:
            self._patience = max(_PATIENCE, 5 * candidate.seconds)
        if candidate.seconds > self._patience:
            record, failed = None, f"not finished after {candidate.seconds:.0f} s"
        candidate.failed = re.sub(r"; full output in [^)]*", "", failed)  # that file is temporary
        if record is not None:
            candidate.rates.append(measured_rate(self._folder / name / "metrics.csv"))
        result = f"{candidate.rates[-1]:,.0f} agent-steps/s" if record is not None else f"failed: {candidate.failed}"
        print(f"{candidate}: {result}", flush=True)
        return record is not None


def compare_alternately(
    bench: Benchmark, one: Candidate, other: Candidate, number: int, bench_of_other: Benchmark | None = None
) -> list[float]:
    """Measure two candidates alternately; each goes first in every other turn.

    Args:
        bench: Measures `one`.
        one: Reference.
        other: Candidate to compare with it.
        number: Number of turns.
        bench_of_other: Measures `other`. Default: `bench`.

    Returns:
        Speed of `other` divided by that of `one`, for each turn; empty if a measurement failed.
    """
    pair = [
        (bench, Candidate(one.flags, name=one.name)),
        (bench_of_other or bench, Candidate(other.flags, name=other.name)),
    ]
    for turn in range(number):
        for measures, candidate in pair if turn % 2 == 0 else reversed(pair):
            if not measures.measure(candidate):
                return []
    return [b / a for a, b in zip(pair[0][1].rates, pair[1][1].rates, strict=True)]


def find_fastest(
    bench: Benchmark, config: Mapping[str, Any], end: float, overlap: bool = False
) -> tuple[Candidate, list[float]]:
    """Search until `end` (`time.monotonic()`) by adding one setting after another to the fastest so far.

    `--overlap` is only tried with `overlap`.

    Settings with large gains are tried first, and those that are slow to measure last.

    Returns:
        The fastest settings, and how many times faster than the current ones they were in each turn; no turns if the
        current settings are the fastest.
    """
    best = present = Candidate({})
    if not bench.measure(present):
        raise ValueError(f"training with these settings failed: {present.failed}")
    all_layouts = list(layouts(config))
    single = [flags for flags in single_settings(config) if overlap or "overlap" not in flags]
    of_ranks = {flags["devices"]: flags for flags in reversed(all_layouts) if "devices" in flags}.values()
    # overlap may pay off only with several cores per rank, so it is tried with every number of ranks
    overlapped = [flags | {"overlap": True} for flags in ({}, *of_ranks) if {"overlap": True} in single]
    precision = [flags for flags in single if "precision" in flags]
    others = [(flags, set[str]()) for flags in single if "precision" not in flags]
    seen = [present.flags]
    for flags, replaced in [*((flags, LAYOUT) for flags in (*precision, *all_layouts, *overlapped)), *others]:
        tried = {name: value for name, value in best.flags.items() if name not in replaced} | flags
        if tried not in seen and not one_thread_anyway(tried, config):
            seen.append(tried)
            best = _better(bench, present, best, tried, end)
    return best, compare_alternately(bench, present, best, TURNS) if best is not present else []


def clearly_faster(ratios: Sequence[float]) -> bool:
    """Return True if every turn is faster (probability 1/16 for four turns of equals), and the median clearly so."""
    return bool(ratios) and min(ratios) > 1 and statistics.median(ratios) > CLEARLY


def _better(bench: Benchmark, present: Candidate, best: Candidate, flags: dict[str, Any], end: float) -> Candidate:
    """Return the faster of `best` and `flags`; if they are close, both are measured again."""
    candidate = Candidate(flags)
    if not _in_time(end, *[present, best] * TURNS, *[best] * 3):
        bench.left_out += 1
        return best
    if not bench.measure(candidate) or candidate.rate <= best.rate / 1.1:
        return best
    if not _in_time(end, *[present, candidate] * TURNS, best, candidate):
        print(f"{candidate}: no time left to confirm this; increase --minutes")
        return best
    if candidate.rate < best.rate * 1.1:
        for each in (best, candidate):
            bench.measure(each)
    return candidate if candidate.rate > best.rate * CLEARLY else best


def _in_time(end: float, *measurements: Candidate) -> bool:
    return time.monotonic() + sum(candidate.seconds for candidate in measurements) <= end


def layouts(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield numbers of ranks and arenas that keep the steps per iteration and per optimizer step."""
    env = config.get("env") or {}
    made = env.get("init_args") or {}
    name = next((name for name in ("num_arenas", "num_envs") if isinstance(made.get(name), int)), None)
    gpu = _on_gpu(config)
    ranks, steps = _ranks(config.get("devices", 1), gpu), config["num_steps"]
    most = torch.cuda.device_count() if gpu else available_cores()
    counts = {1, *(2**n for n in range(1, most.bit_length())), most}
    if config.get("num_players"):  # some ranks are players: keep the number of ranks
        counts = {ranks}
    piece = ((config.get("agent") or {}).get("init_args") or {}).get("sequence_length") or 1
    for devices in sorted(counts):
        for factor in (1, 2, 4, 0.5):
            flags: dict[str, Any] = {} if devices == ranks else {"devices": devices}
            arenas = made[name] * factor * ranks / devices if name else 1
            length = steps / factor if name else steps * ranks / devices
            if (not name and factor != 1) or arenas != int(arenas) or length % piece or length < max(8, steps / 4):
                continue
            given = [config[size] * ranks for size in SIZES if config.get(size)]
            if any(size % devices for size in given) or (config.get("minibatch_size") or 0) * ranks // devices % piece:
                continue
            if name and arenas != made[name]:
                flags[f"env.{name}"] = int(arenas)
            if length != steps:
                flags["num_steps"] = int(length)
            for size in SIZES:
                if config.get(size) and devices != ranks:
                    flags[size] = config[size] * ranks // devices
            if flags:
                yield flags


def single_settings(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield single settings that may be faster on this machine."""
    gpu = _on_gpu(config)
    pool = (config.get("env") or {}).get("init_args") or {}
    if "num_workers" in pool:
        if pool.get("groups") != 2:
            yield {"env.groups": 2}
        numbers = {available_cores(), 2 * available_cores()} - {pool["num_workers"] or available_cores()}
        yield from ({"env.num_workers": number} for number in sorted(numbers))
    if not config.get("overlap") and not config.get("num_players"):
        yield {"overlap": True}
    if config.get("num_threads") != 1 and available_cores() > 1:
        yield {"num_threads": 1}
    if config.get("precision") == "32-true" and bfloat16_speedup("cuda" if gpu else "cpu") > BFLOAT16_GAINS:
        yield {"precision": "bf16-mixed"}
    if not config.get("compile"):
        yield {"compile": True}


def one_thread_anyway(flags: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Return True if `flags` set one thread, which every rank uses anyway because it has only one core."""
    ranks = _ranks(flags.get("devices", config.get("devices", 1)), _on_gpu(config))
    return "num_threads" in flags and available_cores() <= ranks


def _on_gpu(config: Mapping[str, Any]) -> bool:
    return torch.cuda.is_available() and config.get("accelerator") != "cpu"


def _ranks(devices: int | str | list[int], gpu: bool) -> int:
    """Return the number of ranks that `--devices` means on this machine."""
    if devices in ("auto", -1, "-1"):
        return torch.cuda.device_count() if gpu else 1
    listed = devices if isinstance(devices, list) else str(devices).split(",")
    return int(listed[0]) if listed == [str(devices)] else len(listed)


def measured_rate(metrics: Path) -> float:
    """Return the agent-steps per second after `WARM_UP` iterations."""
    with metrics.open(encoding="utf-8", newline="") as file:
        rows = [(float(row["step"]), float(row["speed/overall_steps_per_second"])) for row in csv.DictReader(file)]
    counted = list(pairwise([(0.0, 1.0), *rows]))[min(WARM_UP, len(rows) - 1) :]
    steps = [now - before for (before, _), (now, _) in counted]
    return sum(steps) / sum(taken / rate for taken, (_, (_, rate)) in zip(steps, counted, strict=True))
