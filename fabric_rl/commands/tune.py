"""`fabric-rl tune`: which settings train fastest on this machine."""

import csv
import inspect
import json
import math
import re
import shlex
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import yaml

from envs.cores import available_cores
from envs.factories import unwrap_partial
from fabric_rl.base.argv import config_files
from fabric_rl.base.files import write_text
from fabric_rl.commands.output import check_file
from fabric_rl.commands.space import flags_of, text_of
from fabric_rl.commands.trainings import Trainings, settings_of
from fabric_rl.ranks.bfloat16 import gain_of_bfloat16
from fabric_rl.types import OffPolicyAgent

_PATIENCE = 120.0
"""Seconds that a measurement has at least, also where programs are compiled."""
WARM_UP = 2
"""Iterations that are not measured: memory is touched for the first time, and programs are compiled."""
_FIRST = "# By fabric-rl tune"
TURNS = 4
"""How often the fastest settings and the present ones take turns at the end; even, so that each is as often first."""
CLEARLY = 1.02
"""A setting that changes what is learned, if only a little, must be so much faster to be taken."""

BFLOAT16_GAINS = 1.2
"""bfloat16 is tried where large products are so much faster with it."""
SIZES = ("minibatch_size", "batch_size", "exp_buffer_size")
"""Steps of one rank that are divided when there are more ranks."""
LAYOUT = {"devices", "env.num_arenas", "env.num_envs", "num_steps", *SIZES}
"""Flags that belong together: another layout replaces all of them."""


@dataclass
class Candidate:
    """Settings by flag, and what they reached."""

    flags: dict[str, Any]
    rates: list[float] = field(default_factory=list)
    """Agent-steps per second of each measurement."""
    failed: str = ""
    seconds: float = 0.0
    """What its last measurement took, with its start."""
    name: str = "(as it is)"
    """What it is called where it has no flags."""

    @property
    def rate(self) -> float:
        """The median; 0 before it was measured, and where it cannot train."""
        return statistics.median(self.rates) if self.rates else 0.0

    def __str__(self) -> str:
        return " ".join(f"--{name} {text_of(value)}" for name, value in self.flags.items()) or self.name


def tune(training: Sequence[str], minutes: float = 10.0, seconds: float = 3.0, out: Path = Path("tuned.yaml")) -> int:
    """Find the fastest settings for this machine with short training runs, and write them to a YAML file.

    It tries other numbers of ranks, arenas, threads and workers, and settings such as overlap and precision.
    Agent-steps per iteration and optimizer step stay the same, so training changes very little: more arenas mean
    shorter rollouts, and `--overlap` and `--precision` have a small effect.

    At the end it compares the fastest settings with the present ones in four alternating rounds. If the fastest
    settings win every round, and clearly, the file contains the settings that differ: train with --config X --config
    tuned.yaml. Otherwise the file changes nothing. Run nothing else on the machine at the same time.

    Args:
        training: Flags of train_fabric.py: --config X and any others.
        minutes: Approximate time limit in minutes, including the final rounds. Each of the 12 to 25 measurements needs
            some time to start (15 seconds on two slow cores). On a fast machine, 5 minutes are enough.
        seconds: Seconds of training in each measurement, after two iterations that are not counted.
        out: YAML file to write.

    Raises:
        ValueError: A flag is wrong, the agent does not learn from rollouts, or the settings do not train at all.
        OSError: The file cannot be written, or there is one that tune did not write.
    """
    check_file(out, "--out")
    if any(Path(file).resolve() == out.resolve() for file in config_files(training)):
        raise ValueError(f"--out {out}: --config names this file, too; choose another name")
    if out.exists() and not out.read_text(encoding="utf-8", errors="replace").startswith(_FIRST):
        raise FileExistsError(f"--out {out}: this file is none that tune has written; choose another name")
    if not (minutes > 0 and seconds > 0):
        raise ValueError("--minutes and --seconds must be above 0")
    settings = settings_of(training, "tune")
    config = yaml.safe_load(settings.arguments["resolved_config"])
    agent = unwrap_partial(settings.arguments["agent"]).function
    if inspect.isclass(agent) and issubclass(agent, OffPolicyAgent):
        raise ValueError("--agent: fabric-rl tune measures agents that learn from rollouts, not SAC")
    end = time.monotonic() + 60 * minutes
    found: list[tuple[Candidate, list[float]]] = []
    with ExitStack() as ending:  # SIGTERM is as Ctrl+C meanwhile, so that the training ends and the folder goes
        ending.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.default_int_handler))
        bench = Bench(list(training), Path(ending.enter_context(tempfile.TemporaryDirectory())), seconds)
        # in a thread, so that Ctrl+C ends the training first
        bench.trainings.each(lambda _: found.append(_fastest(bench, config, end)), [None])
    best, ratios = found[0]
    if bench.left_out:
        print(f"time was over before {bench.left_out} other settings were tried: give more --minutes")
    if _faster(ratios):
        said, flags = f"{_median(ratios)} of the speed before, in {TURNS} turns on the same machine", best.flags
        print(f"fastest: {best}, {said}")
    else:
        said, flags = "nothing was clearly faster" if bench.tried > 1 else "nothing else was tried", {}
        print(said + (f": in {TURNS} turns {best} had {_median(ratios)} of the present speed" if ratios else ""))
    if bench.tried < 2 and out.exists():
        print(f"left as it was: {out}")
        return 0
    write_text(out, f"{_FIRST}: {said}.\n{yaml.safe_dump(_nested(flags))}")
    use = f"train with {shlex.join([*training, '--config', str(out)])}" if flags else "it changes nothing"
    print(f"written: {out}; {use}")
    return 0


class Bench:
    """Measures settings, one training after the other, each a process (or several) of its own."""

    def __init__(self, training: list[str], folder: Path, seconds: float) -> None:
        clock = {"minutes": seconds / 60, "after_iterations": WARM_UP}
        stop = {"class_path": "fabric_rl.callbacks.StopAfter", "init_args": clock}
        fixed = ["--total_timesteps=1000000000000", "--summary_freq=1", "--plain", "--record_minutes=null"]
        fixed += ["--milestone_interval=null", "--checkpoint_every_timesteps=null", "--checkpoint_every_minutes=null"]
        self._words, self._folder = [*training, *fixed, f"--callbacks+={json.dumps([stop])}"], folder
        self.trainings, self.tried, self.left_out = Trainings(1, folder, grace_seconds=5.0), 0, 0
        self._patience = math.inf

    def measure(self, candidate: Candidate) -> bool:
        """Adds a rate to a candidate and prints it; False if it does not train, or takes far longer than the first."""
        self.tried += 1
        name, began = f"t{self.tried}", time.monotonic()
        words = [*self._words, *flags_of(candidate.flags)]
        record, failed = self.trainings.train(name, words, lambda: time.monotonic() - began > self._patience)
        if self.trainings.stopping.is_set():
            raise KeyboardInterrupt
        candidate.seconds = time.monotonic() - began
        if self._patience == math.inf:
            self._patience = max(_PATIENCE, 5 * candidate.seconds)
        if candidate.seconds > self._patience:
            record, failed = None, f"is not done after {candidate.seconds:.0f} s"
        candidate.failed = re.sub(r"; all it said is in [^)]*", "", failed)  # that file goes
        if record is not None:
            candidate.rates.append(_rate(self._folder / name / "metrics.csv"))
        said = f"{candidate.rates[-1]:,.0f} agent-steps/s" if record is not None else f"cannot: {candidate.failed}"
        print(f"{candidate}: {said}", flush=True)
        return record is not None


def turns(
    bench: Bench, one: Candidate, other: Candidate, number: int, bench_of_other: Bench | None = None
) -> list[float]:
    """Measures two settings beside each other, the first one of a turn second in the next.

    Args:
        bench: Trains them.
        one: Settings.
        other: Those that are compared with them.
        number: How often each is measured.
        bench_of_other: Trains the other ones, where they are of another training.

    Returns:
        The speed of the other one as a share of the one's in each turn, of these measurements only; none if a training
        failed.
    """
    pair = [(bench, Candidate(one.flags, name=one.name))]
    pair += [(bench_of_other or bench, Candidate(other.flags, name=other.name))]
    for turn in range(number):
        for measures, candidate in pair if turn % 2 == 0 else reversed(pair):
            if not measures.measure(candidate):
                return []
    return [b / a for a, b in zip(pair[0][1].rates, pair[1][1].rates, strict=True)]


def _fastest(bench: Bench, config: Mapping[str, Any], end: float) -> tuple[Candidate, list[float]]:
    """The fastest settings, and what `turns` says of them and the present ones; nothing if that are these."""
    present = Candidate({})
    if not bench.measure(present):
        raise ValueError(f"these settings do not train: {present.failed}")
    best = _search(bench, config, present, end)
    return best, turns(bench, present, best, TURNS) if best is not present else []


def _faster(ratios: Sequence[float]) -> bool:
    """Whether turns say so: of four between equals one side wins all in one of sixteen cases."""
    return bool(ratios) and min(ratios) > 1 and statistics.median(ratios) > CLEARLY


def _median(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f}"


def _search(bench: Bench, config: Mapping[str, Any], present: Candidate, end: float) -> Candidate:
    """One setting after the other on top of the fastest so far: what gains most first, what takes longest last."""
    laid_out, single = list(layouts(config)), list(switches(config))
    of_ranks = {flags["devices"]: flags for flags in reversed(laid_out) if "devices" in flags}.values()
    # a rank with several cores may fill them by collecting while it learns, which says nothing of one with a core
    filled = [flags | {"overlap": True} for flags in ({}, *of_ranks) if {"overlap": True} in single]
    precision = [flags for flags in single if "precision" in flags]
    others = [flags for flags in single if flags not in precision]
    steps = [(flags, LAYOUT) for flags in (*precision, *laid_out, *filled)]
    best, seen = present, [present.flags]
    for flags, replaced in [*steps, *((flags, set[str]()) for flags in others)]:
        tried = {name: value for name, value in best.flags.items() if name not in replaced} | flags
        if tried not in seen and not one_thread_anyway(tried, config):
            seen.append(tried)
            best = _better(bench, present, best, tried, end)
    return best


def _better(bench: Bench, present: Candidate, best: Candidate, flags: dict[str, Any], end: float) -> Candidate:
    """The faster one of the best and of these flags; a close race is run again."""
    candidate = Candidate(flags)
    if not _in_time(end, *[present, best] * TURNS, *[best] * 3):
        bench.left_out += 1
        return best
    if not bench.measure(candidate) or candidate.rate <= best.rate / 1.1:
        return best
    if not _in_time(end, *[present, candidate] * TURNS, best, candidate):
        print(f"{candidate}: no time is left to be sure of it; give more --minutes")
        return best
    if candidate.rate < best.rate * 1.1:
        for each in (best, candidate):
            bench.measure(each)
    return candidate if candidate.rate > best.rate * CLEARLY else best


def _in_time(end: float, *measurements: Candidate) -> bool:
    """Whether there is time for so many measurements."""
    return time.monotonic() + sum(candidate.seconds for candidate in measurements) <= end


def layouts(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Ranks and arenas that make up the same iteration, of the same optimizer steps."""
    env = config.get("env") or {}
    made = env.get("init_args") or {}
    name = next((name for name in ("num_arenas", "num_envs") if isinstance(made.get(name), int)), None)
    gpu = _on_gpu(config)
    ranks, steps = _ranks(config.get("devices", 1), gpu), config["num_steps"]
    most = torch.cuda.device_count() if gpu else available_cores()
    counts = {1, *(2**n for n in range(1, most.bit_length()) if 2**n <= most), most}
    if config.get("num_players"):  # others than these learn
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


def switches(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Single settings; those that this machine cannot gain from are left out."""
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
    if config.get("precision") == "32-true" and gain_of_bfloat16("cuda" if gpu else "cpu") > BFLOAT16_GAINS:
        yield {"precision": "bf16-mixed"}
    if not config.get("compile"):
        yield {"compile": True}


def one_thread_anyway(flags: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether these ask for one thread where each rank has one core."""
    ranks = _ranks(flags.get("devices", config.get("devices", 1)), _on_gpu(config))
    return "num_threads" in flags and available_cores() <= ranks


def _on_gpu(config: Mapping[str, Any]) -> bool:
    return torch.cuda.is_available() and config.get("accelerator") != "cpu"


def _ranks(devices: int | str | list[int], gpu: bool) -> int:
    """How many ranks `--devices` asks for, of this machine."""
    if devices in ("auto", -1, "-1"):
        return torch.cuda.device_count() if gpu else 1
    listed = devices if isinstance(devices, list) else str(devices).split(",")
    return int(listed[0]) if listed == [str(devices)] else len(listed)


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
