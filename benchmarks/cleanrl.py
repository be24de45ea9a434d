"""This project beside CleanRL's own scripts: the same tasks, steps and seeds, in turns, one core each.

CleanRL comes as a checkout (`git clone https://github.com/vwxyzjn/cleanrl`), whose ppo.py and
ppo_continuous_action.py are run as they are, with their own settings. They need a virtual environment of their own:
Gymnasium 0.29, torch, tyro, tensorboard, and for all tasks box2d, mujoco below 2.3.4 and minigrid below 2.4.

    python benchmarks/cleanrl.py --cleanrl ../cleanrl --python ../venv/bin/python --keep runs.jsonl --out cleanrl.md

CleanRL's settings are its defaults, ours are those of presets for these tasks. Whole rollouts count: ours are up to
1.6 % more steps than asked for, theirs up to 0.2 % fewer. LunarLander is v3 here and v2 there.

The figure of a run is the mean return of its last 20 episodes while it still explores. Seconds are those of the
processor (user and system, one thread), from the start of Python to its end, so other work beside it does not count.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machine import describe_machine
from reports import write_report
from signals import band

ROOT = Path(__file__).parent.parent
LARGER = ("--env.num_envs", "16", "--num_steps", "128", "--minibatch_size", "256", "--update_epochs", "6")
FLAT = ("--agent", "agents.PPOLightningAgent", "--env.wrappers+=gymnasium.wrappers.FlattenObservation")
TASKS: dict[str, tuple[str, str, str, int, Sequence[str]]] = {
    # task -> our preset, their script, the id there, steps, further flags of ours
    "cartpole": ("cartpole", "ppo", "CartPole-v1", 100_000, LARGER),
    "acrobot": ("acrobot", "ppo", "Acrobot-v1", 300_000, ()),
    "minigrid": ("minigrid_doorkey", "ppo", "MiniGrid-Flat-v0", 100_000, FLAT),
    "lunarlander": ("lunarlander", "ppo", "LunarLander-v2", 500_000, ()),
    "hopper": ("hopper", "ppo_continuous_action", "Hopper-v4", 300_000, ("--env.env_id", "Hopper-v4")),
}
THEIRS = """
import runpy, sys
import gymnasium as gym
if "MiniGrid-Flat-v0" in sys.argv:
    import minigrid
    def make(**settings):
        env = gym.make("MiniGrid-DoorKey-5x5-v0", **settings)
        env = gym.wrappers.FilterObservation(env, ["image", "direction"])
        return gym.wrappers.FlattenObservation(env)
    gym.register("MiniGrid-Flat-v0", entry_point=make)
    normal = gym.make
    gym.make = lambda id, **settings: normal(id, disable_env_checker=True, **settings)
script = sys.argv.pop(1)
sys.argv[0] = script
sys.path.insert(0, sys.argv.pop(1))
runpy.run_path(script, run_name="__main__")
"""
"""Runs a script; its agent takes flat observations, so MiniGrid's picture and direction are one row."""


def timed(command: Sequence[str], cwd: Path, out: Path) -> float:
    """Runs a program with one thread and returns the processor's seconds; its output goes into a file."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "1"}
    with open(out, "w", encoding="utf-8") as file:
        child = subprocess.Popen(command, cwd=cwd, env=environment, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"cleanrl.py: error: {' '.join(command[:4])}... failed:\n{out.read_text(encoding='utf-8')[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def ours(task: str, seed: int, folder: Path) -> tuple[float, float]:
    """Return of the last 20 episodes, and seconds."""
    preset, _, _, steps, flags = TASKS[task]
    command = [sys.executable, "train_fabric.py", "--config", f"configs/{preset}.yaml", *flags, "--accelerator", "cpu"]
    command += ["--total_timesteps", str(steps), "--seed", str(seed), "--num_threads", "1", "--plain"]
    seconds = timed([*command, "--runs_dir", str(folder), "--run_id", "ours"], ROOT, folder / "ours.txt")
    summary = json.loads((folder / "ours" / "summary.json").read_text(encoding="utf-8"))
    return summary["mean_return_last_20"], seconds


def theirs(task: str, seed: int, folder: Path, python: Path, checkout: Path) -> tuple[float, float]:
    """The same of CleanRL's script."""
    _, script, env_id, steps, _ = TASKS[task]
    command = [str(python), "-c", THEIRS, str(checkout / "cleanrl" / f"{script}.py"), str(checkout)]
    command += ["--no-cuda", "--env-id", env_id, "--total-timesteps", str(steps), "--seed", str(seed)]
    seconds = timed(command, folder, folder / "theirs.txt")
    told = re.findall(r"episodic_return=\[?\s*([-+.\deE]+)", (folder / "theirs.txt").read_text(encoding="utf-8"))
    return statistics.mean(map(float, told[-20:])), seconds


def interval(values: Sequence[float]) -> str:
    """Mean and 95 % interval by Student's distribution over the seeds."""
    found = band(values)
    decimals = 1 if abs(found["mean"]) > 10 else 3
    texts = [f"{found[name]:.{decimals}f}" for name in ("mean", "half_width") if name in found]
    return " +- ".join(texts)


def report(rows: dict[str, list[dict[str, Any]]]) -> str:
    """The results as Markdown."""
    lines = ["# Comparison with CleanRL", ""]
    lines += ["`python benchmarks/cleanrl.py`: mean return of the last 20 episodes of each run while exploring, with"]
    lines += ["Student's 95 % interval over the seeds. Seconds are processor time on one core; they and their"]
    lines += ["ratio are medians over the seeds.", describe_machine(), ""]
    lines += ["| task | steps | seeds | ours | CleanRL | our seconds | CleanRL's seconds | ratio |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for task, runs in rows.items():
        a, b = ([run[name] for run in runs] for name in ("ours", "theirs"))
        seconds = [[run[name] for run in runs] for name in ("our_seconds", "their_seconds")]
        ratio = statistics.median(x / y for x, y in zip(*seconds, strict=True))
        mine, other = (statistics.median(each) for each in seconds)
        begins = f"| {task} | {TASKS[task][3]:,} | {len(runs)} | {interval(a)} | {interval(b)} "
        lines.append(f"{begins}| {mine:.0f} | {other:.0f} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all tasks and seeds in turns, prints the table and ends with one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cleanrl", type=Path, required=True, help="checkout of CleanRL")
    parser.add_argument("--python", type=Path, required=True, help="Python that has what its scripts need")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--out", type=Path, help="write the table there")
    parser.add_argument("--keep", type=Path, help="add every pair to this file; those that it holds are not run again")
    options = parser.parse_args()
    kept = options.keep.read_text(encoding="utf-8").splitlines() if options.keep and options.keep.exists() else []
    known = {(run["task"], run["seed"]): run for run in map(json.loads, kept)}
    checkout, python = options.cleanrl.resolve(), options.python.absolute()
    for seed in options.seeds:
        for task in options.tasks:
            if (task, seed) in known:
                continue
            with tempfile.TemporaryDirectory() as folder:
                mine, our_seconds = ours(task, seed, Path(folder))
                other, their_seconds = theirs(task, seed, Path(folder), python, checkout)
            run = {"task": task, "seed": seed, "ours": mine, "theirs": other}
            run |= {"our_seconds": our_seconds, "their_seconds": their_seconds}
            known[task, seed] = run
            print(json.dumps(run), flush=True)
            if options.keep:
                with open(options.keep, "a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
    rows = {task: [run for (name, _), run in sorted(known.items()) if name == task] for task in options.tasks}
    print(report(rows))
    if options.out:
        write_report(options.out, report(rows))
    print(json.dumps({"cleanrl": rows}))


if __name__ == "__main__":
    main()
