"""`fabric-rl tune`: finds the settings that train fastest on this machine."""

import shlex
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from fabric_rl.base.argv import config_files
from fabric_rl.base.files import write_text
from fabric_rl.commands.output import check_file
from fabric_rl.commands.seeds import training_settings
from fabric_rl.evaluation.demonstrations import off_policy_parts
from fabric_rl.sweeps.tune import TURNS, Benchmark, Candidate, clearly_faster, find_fastest

_FIRST = "# By fabric-rl tune"


def tune(
    training: Sequence[str],
    minutes: float = 10.0,
    seconds: float = 3.0,
    out: Path = Path("tuned.yaml"),
    try_overlap: bool = False,
) -> int:
    """Find the fastest settings for this machine with short training runs, and write them to a YAML file.

    It tries other numbers of ranks, arenas, threads and workers, and settings such as precision. Agent-steps per
    iteration and optimizer step stay the same. More arenas mean shorter rollouts, and `--precision` has a small effect.

    At the end it compares the fastest settings with the present ones in four alternating rounds. If the fastest
    settings win every round, and clearly, the file contains the settings that differ: train with --config X --config
    tuned.yaml. Otherwise the file changes nothing. Run nothing else on the machine at the same time.

    Args:
        training: Flags of train_fabric.py: --config X and any others.
        minutes: Approximate time limit in minutes, including the final rounds. Each of the 12 to 25 measurements needs
            some time to start (15 seconds on two slow cores). On a fast machine, 5 minutes are enough.
        seconds: Seconds of training in each measurement, after two iterations that are not counted.
        out: YAML file to write.
        try_overlap: Also try `--overlap`, which learns less from each step because steps are older (docs/speed.md).
    """
    check_file(out, "--out")
    if any(Path(file).resolve() == out.resolve() for file in config_files(training)):
        raise ValueError(f"--out {out}: --config names this file, too; choose another name")
    if out.exists() and not out.read_text(encoding="utf-8", errors="replace").startswith(_FIRST):
        raise FileExistsError(f"--out {out}: this file was not written by fabric-rl tune; choose another name")
    if not (minutes > 0 and seconds > 0):
        raise ValueError("--minutes and --seconds must be above 0")
    settings = training_settings(training, "tune")
    config = yaml.safe_load(settings.arguments["resolved_config"])
    if any(off_policy_parts(settings.arguments["agent"])):
        raise ValueError("--agent: fabric-rl tune measures agents that learn from rollouts, not SAC")
    end = time.monotonic() + 60 * minutes
    found: list[tuple[Candidate, list[float]]] = []
    with ExitStack() as ending:  # SIGTERM acts as Ctrl+C, so that the training ends and the folder is deleted
        ending.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.default_int_handler))
        bench = Benchmark(list(training), Path(ending.enter_context(tempfile.TemporaryDirectory())), seconds)
        # in a thread, so that Ctrl+C ends the training first
        bench.trainings.each(lambda _: found.append(find_fastest(bench, config, end, try_overlap)), [None])
    best, ratios = found[0]
    if bench.left_out:
        print(f"{bench.left_out} other settings were not tried, because the time was up; increase --minutes")
    speed, flags = f"{statistics.median(ratios):.2f}" if ratios else "", dict[str, Any]()
    if clearly_faster(ratios):
        said, flags = f"{speed} times the original speed, in {TURNS} rounds on the same machine", best.flags
        print(f"fastest: {best}, {said}")
    else:
        said = "nothing was clearly faster" if bench.tried > 1 else "nothing else was tried"
        print(said + (f": in {TURNS} rounds, {best} ran at {speed} times the original speed" if ratios else ""))
    if bench.tried < 2 and out.exists():
        print(f"unchanged: {out}")
        return 0
    settings_of_env = {name.removeprefix("env."): value for name, value in flags.items() if name.startswith("env.")}
    content = {name: value for name, value in flags.items() if not name.startswith("env.")}
    content |= {"env": {"init_args": settings_of_env}} if settings_of_env else {}
    write_text(out, f"{_FIRST}: {said}.\n{yaml.safe_dump(content)}")
    use = f"train with {shlex.join([*training, '--config', str(out)])}" if flags else "it changes nothing"
    print(f"written: {out}; {use}")
    return 0
