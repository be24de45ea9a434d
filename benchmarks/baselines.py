"""This project's presets beside Stable-Baselines3 and CleanRL's PPO and SAC: equal steps, equal minutes, one core.

    python benchmarks/baselines.py --out benchmarks/results/baselines.md
    python benchmarks/baselines.py --only cartpole acrobot --seeds 0 1 2
    python benchmarks/baselines.py --only rocket       # trainers on the same RocketSim pool, and on RLGym

Every run ends with a line in `results/baselines.jsonl`, and runs that it holds are not made again. A run with SAC takes
hours: after an interruption the same command continues it from `--unfinished`, with a new episode. One run at a time,
so it can stay beside other work: seconds are those of the processor, from the first step of the environment on.

Stable-Baselines3 (extra `sb3`) runs with its own default settings. CleanRL's algorithms are rewritten with its
published settings (`plain_loops.py`). A run's score is the mean return of its last 20 episodes while it still explores.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import gymnasium
import numpy as np
import yaml
from children import ROOT, environment, processor_minutes
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from machine import describe_machine
from reports import write_report
from unfinished import Unfinished

from fabric_rl.runs.provenance import config_digest
from fabric_rl.sweeps.train_processes import finished_run

CONTENDERS = ("ours", "sb3", "cleanrl")
NAMES = {
    "ours": "fabric-rl",
    "sb3": "Stable-Baselines3",
    "cleanrl": "CleanRL",
    "teacher": "fabric-rl with its teacher at full weight",
    "sb3_rlgym": "Stable-Baselines3 on RLGym",
    "cleanrl_rlgym": "CleanRL on RLGym",
}
EPISODES = "BASELINES_EPISODES"
"""Environment variable with the file of `EpisodeLog`."""
BEGUN = "BASELINES_BEGUN"
"""Environment variable with the steps and seconds of the state that a run continues from."""
POINTS, LAST = 50, 20


@dataclass(frozen=True)
class Task:
    """A task of Gymnasium."""

    env_id: str
    steps: int
    preset: str
    flags: Sequence[str] = ()
    """Flags of this project beside the preset; none where the preset was made for the task."""
    sac: bool = False

    @property
    def seeds(self) -> int:
        """Number of seeds, unless `--seeds` names them."""
        return 3 if self.sac else 5

    @property
    def save_every(self) -> int:
        """Steps between two saved states of a run with SAC."""
        return self.steps // 20


HALFCHEETAH = ("--env.env_id", "HalfCheetah-v5")
TASKS = {
    "cartpole": Task("CartPole-v1", 100_000, "cartpole"),
    "sac_pendulum": Task("Pendulum-v1", 20_000, "sac_pendulum", sac=True),
    "acrobot": Task("Acrobot-v1", 300_000, "acrobot"),
    "lunarlander": Task("LunarLander-v3", 500_000, "lunarlander"),
    "hopper": Task("Hopper-v5", 1_000_000, "hopper"),
    "halfcheetah": Task("HalfCheetah-v5", 1_000_000, "hopper", HALFCHEETAH),
    "bipedalwalker": Task("BipedalWalker-v3", 1_000_000, "hopper", ("--env.env_id", "BipedalWalker-v3")),
    "sac_hopper": Task("Hopper-v5", 300_000, "sac_hopper", sac=True),
    "sac_halfcheetah": Task("HalfCheetah-v5", 300_000, "sac_hopper", (*HALFCHEETAH, "--lr_schedule", "constant"), True),
}
ROCKET = "rocket"
ROCKET_CONTENDERS = (*CONTENDERS, "teacher", "sb3_rlgym", "cleanrl_rlgym")
ROCKET_PRESET = ["--config", "configs/rocket_1v1_quickstart.yaml", "--devices", "1", "--num_threads", "1"]
ROCKET_PRESET += ["--env.num_threads", "1", "--total_timesteps", "1_000_000_000", "--lr_schedule", "constant"]


class EpisodeLog(gymnasium.Wrapper):
    """Writes a line for each episode: processor seconds, steps of all environments of this process, return."""

    steps, first, ended = 0, 0.0, False

    def reset(self, **settings: Any) -> Any:  # noqa: ANN401
        """Begins an episode; steps before the first one that ended, such as a dry run's, do not count."""
        self.total = 0.0
        if not EpisodeLog.ended:
            EpisodeLog.steps, EpisodeLog.first = int(os.environ[BEGUN].split()[0]), 0.0
        return self.env.reset(**settings)

    def step(self, action: Any) -> Any:  # noqa: ANN401
        """Adds the reward, and writes the line at the end."""
        result = self.env.step(action)
        EpisodeLog.first = EpisodeLog.first or time.process_time() - float(os.environ[BEGUN].split()[1])
        EpisodeLog.steps += 1
        self.total += float(result[1])
        if result[2] or result[3]:
            EpisodeLog.ended = True
            with open(os.environ[EPISODES], "a", encoding="utf-8") as file:
                file.write(f"{time.process_time() - EpisodeLog.first} {EpisodeLog.steps} {self.total}\n")
        return result


def curve(lines: Sequence[str], steps: int) -> list[tuple[int, float, float]]:
    """Steps, processor seconds and the mean return of the last 20 episodes, at `POINTS` equal parts of a run."""
    rows = [tuple(map(float, line.split())) for line in lines]
    points: list[tuple[int, float, float]] = []
    last: deque[float] = deque(maxlen=LAST)
    for number, (seconds, at, score) in enumerate(row for row in rows if row[1] <= steps):
        last.append(score)
        after = rows[number + 1][1] if number + 1 < len(rows) else steps + 1
        if int(at * POINTS / steps) < int(after * POINTS / steps) or after > steps:
            points.append((int(at), round(seconds, 2), round(statistics.mean(last), 2)))
    return points


def make(task: Task, seed: int, normal: bool) -> gymnasium.Env[Any, Any]:
    """One environment; `normal` adds the wrappers that CleanRL has for continuous actions with PPO."""
    env: gymnasium.Env[Any, Any] = EpisodeLog(gymnasium.make(task.env_id))
    if normal:
        wrappers = gymnasium.wrappers
        env = wrappers.NormalizeObservation(wrappers.ClipAction(env))
        env = wrappers.TransformObservation(env, lambda obs: np.clip(obs, -10, 10), None)
        env = wrappers.TransformReward(wrappers.NormalizeReward(env, gamma=0.99), lambda r: float(np.clip(r, -10, 10)))
    return env


def run_peer(task: Task, contender: str, seed: int) -> None:
    """Trains in this process with Stable-Baselines3 or as CleanRL does."""
    unfinished = Unfinished(Path(os.environ[EPISODES]).parent)
    if contender == "sb3":
        train_sb3(task, seed, unfinished)
        return
    import plain_loops

    box = isinstance(gymnasium.make(task.env_id).action_space, gymnasium.spaces.Box)
    makers = [partial(make, task, seed, box and not task.sac)] * (1 if box else 4)
    envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    if task.sac:
        plain_loops.train_sac(envs, task.steps, seed, unfinished, task.save_every)
    else:
        plain_loops.train_ppo(envs, task.steps, seed, plain_loops.CONTINUOUS if box else plain_loops.PPO())


def train_sb3(task: Task, seed: int, unfinished: Unfinished) -> None:
    """Trains in this process with Stable-Baselines3's own settings."""
    import stable_baselines3
    from stable_baselines3.common.callbacks import BaseCallback

    class Save(BaseCallback):
        model: stable_baselines3.SAC

        def _on_step(self) -> bool:
            if task.sac and self.num_timesteps % task.save_every == 0:
                unfinished.save(self.num_timesteps, self.write)
            return True

        def write(self, folder: Path) -> None:
            self.model.save(folder / "model")
            self.model.save_replay_buffer(folder / "buffer")

    env, begun = make(task, seed, False), unfinished.steps
    algorithm = stable_baselines3.SAC if task.sac else stable_baselines3.PPO
    if unfinished.state is None:
        model = algorithm("MlpPolicy", env, seed=seed, device="cpu")
    else:
        model = algorithm.load(unfinished.state / "model", env, device="cpu")
        model.load_replay_buffer(unfinished.state / "buffer")
        model.set_random_seed(seed + begun)
    model.learn(task.steps - begun, Save(), reset_num_timesteps=not begun)


def start(command: Sequence[str], folder: Path, begun: tuple[int, float] = (0, 0.0)) -> None:
    """Runs a program with one thread; exits with the end of what it printed if it fails."""
    variables = environment() | {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOCAL_WORLD_SIZE")}
    variables |= {EPISODES: str(folder / "episodes"), BEGUN: f"{begun[0]} {begun[1]}"}
    done = subprocess.run(command, cwd=ROOT, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"baselines.py: error: {' '.join(command[:6])}... failed:\n{done.stdout[-3000:]}")


def run(name: str, contender: str, seed: int, place: Path) -> dict[str, Any]:
    """One run on a task of Gymnasium; what it reached is in a folder in `place` until it ends."""
    task = TASKS[name]
    settings = {"settings": settings_digest(task)} if contender == "ours" else {}
    folder = place / "_".join((name, contender, str(seed), str(task.steps), *settings.values()))
    folder.mkdir(parents=True, exist_ok=True)
    if contender == "ours":
        command = ["train_fabric.py", "--config", f"configs/{task.preset}.yaml", *task.flags, "--seed", str(seed)]
        command += ["--total_timesteps", str(task.steps), "--env.wrappers+=baselines.EpisodeLog"]
        command += ["--accelerator", "cpu", "--devices", "1", "--num_threads", "1", "--plain"]
        command += ["--runs_dir", str(folder), "--run_id", "r", *(["--resume"] if (folder / "r").exists() else [])]
        if task.sac:
            command += ["--save_replay_buffer", "true", "--checkpoint_every_timesteps", str(task.save_every)]
    else:
        command = [__file__, "--child", name, contender, str(seed), str(task.steps)]
    start([sys.executable, *command], folder, Unfinished(folder).cut(folder / "episodes"))
    if contender == "ours" and finished_run(folder / "r") is None:  # a signal ends it without an error
        sys.exit(f"baselines.py: error: {name}, seed {seed}: the training was stopped; run the same command again")
    points = curve((folder / "episodes").read_text(encoding="utf-8").splitlines(), task.steps)
    shutil.rmtree(folder)
    found = {"task": name, "contender": contender, "seed": seed, "steps": task.steps, "machine": this_machine()}
    return found | settings | {"curve": points}


def settings_digest(task: Task) -> str:
    """A digest of this project's preset and flags, without comments: runs with other settings are made again."""
    preset = yaml.safe_load((ROOT / "configs" / f"{task.preset}.yaml").read_text(encoding="utf-8"))
    return config_digest(json.dumps([preset, *task.flags]))[:12]


def rocket_pool(rlgym: bool) -> Any:  # noqa: ANN401
    """The environment of the quickstart without its teacher, built from its preset; or as many of RLGym's guide."""
    if rlgym:
        from rlgym_guide import PlainVectorEnv

        return PlainVectorEnv(32)
    from jsonargparse import ArgumentParser

    section = yaml.safe_load((ROOT / "configs" / "rocket_1v1_quickstart.yaml").read_text(encoding="utf-8"))["env"]
    section["init_args"] |= {"teacher": None, "num_threads": 1}
    parser = ArgumentParser()
    parser.add_argument("--env", type=gymnasium.vector.VectorEnv)
    return parser.instantiate_classes(parser.parse_object({"env": section})).env


class Meter:
    """Ends a training of a pool by the processor's clock, and measures its last quarter."""

    def __init__(self, pool: Any, minutes: float) -> None:  # noqa: ANN401
        self.pool, self.seconds, self.began = pool, 60 * minutes, time.process_time()
        self.steps, self.touches = 0, (0.0, 0.0)

    def __call__(self, steps: int) -> bool:
        """Adds steps that were just learned from; True at the end."""
        self.steps += steps
        counted = getattr(self.pool, "drain_metrics", dict)()  # RLGym counts nothing
        total, number = counted.get("game/touches_per_minute", (0.0, 0.0))
        spent = time.process_time() - self.began
        if spent > 0.75 * self.seconds:
            self.touches = self.touches[0] + total, self.touches[1] + number
        return spent > self.seconds

    def result(self) -> dict[str, float]:
        """Steps per second of the whole training, touches per minute at its end if they are counted."""
        rate = {"steps_per_second": self.steps / (time.process_time() - self.began)}
        return rate | ({"touches": self.touches[0] / self.touches[1]} if self.touches[1] else {})


def rocket_peer(contender: str, seed: int, minutes: float) -> dict[str, float]:
    """Trains on the pool in this process, with the sizes of the preset and the trainer's own other settings."""
    from torch.nn import ReLU

    pool = rocket_pool(contender.endswith("_rlgym"))
    meter, size = Meter(pool, minutes), pool.num_envs * 64
    if contender.startswith("sb3"):
        import stable_baselines3
        from stable_baselines3.common.callbacks import BaseCallback

        import envs

        class Stop(BaseCallback):
            def _on_step(self) -> bool:
                return not (self.n_calls % 64 == 0 and self.n_calls and meter(size))

        policy = {"net_arch": [256, 256], "activation_fn": ReLU}
        sizes = {"n_steps": 64, "batch_size": 512, "n_epochs": 2, "gamma": 0.98, "ent_coef": 0.01}
        games = envs.RocketSimVecEnv(pool)
        trainer = stable_baselines3.PPO("MlpPolicy", games, seed=seed, device="cpu", policy_kwargs=policy, **sizes)
        trainer.learn(10**9, Stop())
    else:
        import plain_loops

        settings = plain_loops.PPO(64, size // 512, 2, gamma=0.98, hidden=(256, 256), activation=ReLU)
        plain_loops.train_ppo(pool, 10**9, seed, settings, lambda: meter(size))
    pool.close()
    return meter.result()


def run_rocket(contender: str, seed: int, minutes: float) -> dict[str, Any]:
    """One run on the pool of the quickstart."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        if contender in ("ours", "teacher"):
            alone = ["--agent.teacher_coef", "0"] if contender == "ours" else []
            command = ["train_fabric.py", *ROCKET_PRESET, *alone, processor_minutes(minutes), "--seed", str(seed)]
            start([sys.executable, *command, "--plain", "--runs_dir", text, "--run_id", "r"], folder)
            found = read_rocket(folder / "r", minutes)
        else:
            start([sys.executable, __file__, "--child", ROCKET, contender, str(seed), str(minutes), text], folder)
            found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    known = {"task": ROCKET, "contender": contender, "seed": seed, "minutes": minutes, "machine": this_machine()}
    return known | found


def read_rocket(folder: Path, minutes: float) -> dict[str, float]:
    """The figures of `Meter` from a run's `metrics.csv`: the last quarter of its rows."""
    from fabric_rl.metrics.metrics_csv import read_metrics

    steps, touches = read_metrics(folder / "metrics.csv")["game/touches_per_minute"]
    late = touches[len(touches) * 3 // 4 :]
    return {"steps_per_second": float(steps[-1]) / (60 * minutes), "touches": float(np.mean(late))}


def this_machine() -> str:
    """The machine and its versions, as runs keep them."""
    return describe_machine().removeprefix("Machine: ").removesuffix(".")


def letters(runs: Sequence[dict[str, Any]]) -> str:
    """The letters of the machines of some runs."""
    return ", ".join(sorted({run["letter"] for run in runs}))


def table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Rows of the tasks of Gymnasium: interquartile means with 95 % intervals of the bootstrap."""
    from fabric_rl.analysis.comparison import estimate, iqm

    def text(statistic: Callable[..., Any], *scores: np.ndarray, sign: str = "") -> str:
        if min(map(len, scores)) < 2:
            return f"{statistic(*scores):{sign},.1f}"
        found = estimate(statistic, scores, resamples=200_000)
        return f"{found.value:{sign},.1f} ({found.low:{sign},.1f} to {found.high:{sign},.1f})"

    def difference(mine: Any, theirs: Any, axis: int = -1) -> Any:  # noqa: ANN401
        return iqm(mine, axis=axis) - iqm(theirs, axis=axis)

    lines = ["| task | steps | trainer | seeds | return at equal steps | minutes | return at equal minutes "]
    lines[0] += "| fabric-rl's lead, equal steps | fabric-rl's lead, equal minutes | steps/s | machine |"
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    for name, task in TASKS.items():
        found = {each: [r for r in runs if (r["task"], r["contender"]) == (name, each)] for each in CONTENDERS}
        found = {each: own for each, own in found.items() if own}
        if not found:
            continue
        seconds = {each: statistics.median(r["curve"][-1][1] for r in own) for each, own in found.items()}
        shortest, scores = min(seconds.values()), {}
        for each, own in found.items():
            curves = [np.array(r["curve"]) for r in own]  # [points, (steps, seconds, return)]
            at_the_time = [np.interp(shortest, points[:, 1], points[:, 2]) for points in curves]
            scores[each] = [np.array([points[-1, 2] for points in curves]), np.array(at_the_time)]
        for each, own in found.items():
            rate = statistics.median(r["curve"][-1][0] / r["curve"][-1][1] for r in own)
            few = "" if len(own) >= task.seeds else f" of {task.seeds}"
            cells = [name, f"{task.steps:,}", NAMES[each], f"{len(own)}{few}"]
            cells += [text(iqm, scores[each][0]), f"{shortest / 60:.1f}", text(iqm, scores[each][1])]
            pairs = zip(scores["ours"], scores[each], strict=True) if each != "ours" and "ours" in scores else ()
            cells += [text(difference, *pair, sign="+") for pair in pairs] or ["", ""]
            lines.append(f"| {' | '.join([*cells, f'{rate:,.0f}', letters(own)])} |")
    return lines


def rocket_table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Rows of the trainers on the pool: medians over the seeds, each seed's touches."""
    lines = [
        "| trainer | minutes | seeds | steps/s | touches per minute, median (each seed) | machine |",
        "|---|---|---|---|---|---|",
    ]
    for each in ROCKET_CONTENDERS:
        if own := [r for r in runs if (r["task"], r["contender"]) == (ROCKET, each)]:
            rate, touches = statistics.median(r["steps_per_second"] for r in own), [r.get("touches") for r in own]
            each_seed = ", ".join(f"{each:.1f}" for each in touches if each is not None)
            told = f"{statistics.median(touches):.1f}" if each_seed else ""
            told += f" ({each_seed})" if each_seed and len(own) > 1 else ""
            cells = [NAMES[each], f"{own[0]['minutes']:g}", f"{len(own)}", f"{rate:,.0f}", told, letters(own)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


INTRODUCTION = """\
`python benchmarks/baselines.py`: this project, Stable-Baselines3 with its defaults, and CleanRL's algorithms with its
published settings, rewritten for Gymnasium 1. This project's presets were made for these tasks (HalfCheetah and
BipedalWalker use Hopper's). The settings of the others are general defaults. Tuned settings such as those of RL
Baselines3 Zoo were not run. With PPO, the learning rates of CleanRL and this project fall to zero over the steps of the
table; with SAC, only those of this project on Hopper do.

Minutes are processor time on one core, without startup. The runs were made beside other work, at different times and on
different machines, and the same run can take two to three times as long: read the columns of minutes and of steps per
second as an indication only. With PPO, this project steps 4 to 16 environments at once, Stable-Baselines3 one, CleanRL
4 (CartPole, Acrobot, LunarLander) or one, which explains part of the differences in steps per second. With PPO on
Hopper, HalfCheetah and BipedalWalker, this project's preset and CleanRL normalize observations and scale rewards, the
defaults of Stable-Baselines3 do not.

Machines:
"""
GYMNASIUM_TEXT = """\
## Gymnasium

Mean return of the last 20 episodes of each run while exploring: interquartile means over the seeds with 95 % intervals
of the bootstrap (Agarwal et al. 2021), not corrected for multiple comparisons. With few seeds they are too narrow: the
interval of a return contains the true value in about 89 % of cases with five seeds and 75 % with three; that of a
difference in 93 to 94 % (five seeds against five) and 80 % (three against three). With three seeds, the interquartile
mean is the mean, and the interval of a return is the range.

"Equal minutes" is the median time that the fastest trainer needed for all its steps. The return of slower runs is
interpolated there; their learning rate, if it falls, has not yet reached zero then.
"""
ROCKET_TEXT = """\
## RocketSim

Environment and rewards of the quickstart, 1v1 in 32 arenas. All trainers collect 64 steps per car and make two
passes over them in minibatches of 512, with gamma 0.98, an entropy coefficient of 0.01 and networks of 256-256 (ReLU).
All other settings are their own: the defaults of Stable-Baselines3 and CleanRL, and the preset with a constant learning
rate. Touches per minute of game time and car are those of the last quarter of the training.

"With its teacher at full weight" means that the agent also imitates a scripted bot throughout. Trainers without this
project's pool, on RLGym's own environments, are compared [below](#reading).
"""


def report(runs: Sequence[dict[str, Any]]) -> str:
    """The results as Markdown."""
    machines = dict(zip(dict.fromkeys(run["machine"] for run in runs), ascii_uppercase, strict=False))
    runs = [run | {"letter": machines[run["machine"]]} for run in runs]
    lines = ["# Baselines", "", INTRODUCTION]
    lines += [f"- {letter}: {machine}" for machine, letter in machines.items()]
    if any(run["task"] in TASKS for run in runs):
        lines += ["", GYMNASIUM_TEXT, *table(runs)]
    if any(run["task"] == ROCKET for run in runs):
        lines += ["", ROCKET_TEXT, *rocket_table(runs)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Makes the runs that are missing, prints the tables and ends with one JSON line."""
    if sys.argv[1:2] == ["--child"]:
        name, contender, seed, *rest = sys.argv[2:]
        if name == ROCKET:
            found = rocket_peer(contender, int(seed), float(rest[0]))
            Path(rest[1], "result.json").write_text(json.dumps(found), encoding="utf-8")
        else:
            run_peer(replace(TASKS[name], steps=int(rest[0])), contender, int(seed))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, default=ROOT / "benchmarks/results/baselines.jsonl", help="finished runs")
    parser.add_argument("--unfinished", type=Path, default=ROOT / "benchmarks/results/unfinished", help="other runs")
    parser.add_argument("--only", nargs="+", choices=[*TASKS, ROCKET], default=[*TASKS, ROCKET], help="tasks, in order")
    parser.add_argument("--seeds", type=int, nargs="+", help="default: 0 to 4, with SAC 0 to 2, with RocketSim 0")
    parser.add_argument("--contenders", nargs="+", choices=ROCKET_CONTENDERS, default=ROCKET_CONTENDERS)
    parser.add_argument("--steps", type=int, help="of every task, for a quick trial")
    parser.add_argument("--minutes", type=float, default=3.0, help="of processor time, for each trainer on RocketSim")
    parser.add_argument("--no_runs", action="store_true", help="only write the tables of the runs that are there")
    parser.add_argument("--out", type=Path, help="write the tables there")
    options = parser.parse_args()
    if options.steps:
        TASKS.update({name: replace(task, steps=options.steps) for name, task in TASKS.items()})
    kept = options.kept
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    runs = [{"machine": "unknown"} | json.loads(line) for line in lines]
    wanted = {name: ("steps", task.steps) for name, task in TASKS.items()} | {ROCKET: ("minutes", options.minutes)}
    runs = [r for r in runs if r[wanted[r["task"]][0]] == wanted[r["task"]][1]]  # others stay in the file
    runs = [r for r in runs if "settings" not in r or r["settings"] == settings_digest(TASKS[r["task"]])]
    known = {(r["task"], r["contender"], r["seed"]) for r in runs}
    for name in () if options.no_runs else options.only:
        usual = 1 if name == ROCKET else TASKS[name].seeds
        for seed in dict.fromkeys(options.seeds or range(usual)):
            for contender in ROCKET_CONTENDERS if name == ROCKET else CONTENDERS:
                if (name, contender, seed) in known or contender not in options.contenders:
                    continue
                if name == ROCKET:
                    found = run_rocket(contender, seed, options.minutes)
                else:
                    found = run(name, contender, seed, options.unfinished.absolute())
                runs.append(found)
                with open(kept, "a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
                end = found.get("touches", found.get("curve", [None])[-1])
                print(json.dumps({"task": name, "contender": contender, "seed": seed, "end": end}), flush=True)
    print(report(runs))
    if options.out:
        write_report(options.out, report(runs))
    print(json.dumps({"baselines": [{k: v for k, v in r.items() if k != "curve"} for r in runs]}))


if __name__ == "__main__":
    main()
