"""Reward signals: what is learned with them beside plain PPO, and what they cost.

    python benchmarks/signals.py --only tasks                      # all tasks, five seeds each: hours on one core
    python benchmarks/signals.py --only tasks --tasks mountaincar_rnd mountaincar_ppo --seeds 1 2 3
    python benchmarks/signals.py --only speed                      # minutes

The figure of a run is the mean return of its last 20 episodes, while it still explores; of `rocket` that is touches per
episode of ten seconds: ball and cars begin anywhere at rest, and there is a reward for nothing else. A run that is
there is not trained again. Speed is measured in turns in one process, by the processor's clock, which other programs
hardly change: steps per second of a whole iteration, with a signal and without.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from children import FABRIC_RL
from lightning import Fabric
from machine import describe_machine
from scipy.stats import t

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, RocketSimPool
from fabric_rl import Callback, TrainArgs, train
from fabric_rl.signals import GAIL, RND, Curiosity, SignalFactory

ROOT = Path(__file__).parent.parent
ROCKET = ["--config=configs/rocket_1v1.yaml", "--env.init_args.num_arenas=16", "--env.init_args.num_threads=1"]
ROCKET += ["--env.init_args.obs={class_path: envs.RelativeObs, init_args: {num_pads: 0}}"]
ROCKET += ["--env.init_args.state_setter={class_path: envs.RandomState, init_args: {random_ball_speed: false, "]
ROCKET[-1] += "random_car_speed: false, grounded_share: 1.0, ball_on_ground_share: 1.0}}"
ROCKET += ["--env.init_args.reward=envs.TouchReward", "--standardize_returns=true", "--total_timesteps=400_000"]
ROCKET += ["--env.init_args.done=[{class_path: envs.TimeoutCondition, init_args: {timeout_seconds: 10}}]"]
ROCKET += ["--num_steps=128", "--minibatch_size=1024", "--update_epochs=4", "--exp_buffer_size=null"]
ROCKET += ["--agent.init_args.actor_hidden_sizes=[128,128]", "--agent.init_args.critic_hidden_sizes=[128,128]"]
ROCKET += [
    "--agent.init_args.actor_lr=1e-3",
    "--agent.init_args.critic_lr=1e-3",
    "--agent.init_args.normalize_obs=true",
]
CHASED = ["--signals=[{class_path: fabric_rl.signals.GAIL, init_args: {demos: [CHASER], episodic: false, epochs: 2, "]
CHASED[-1] += "gradient_penalty: 1.0, hidden_sizes: [64], encoding_size: 64}}]"
CLONED = ["--cloning=Cloning", "--cloning.demos=[CHASER]", "--cloning.samples_per_update=8192"]
CLONED += ["--cloning.num_epoch=1", "--cloning.batch_size=256"]
IMITATED = "[{class_path: fabric_rl.signals.GAIL, init_args: {demos: [%s], episodic: false, use_actions: true}}]"
TASKS: dict[str, tuple[Sequence[str], float]] = {
    "mountaincar_rnd": (["--config=configs/mountaincar_rnd.yaml"], -130),
    "mountaincar_curiosity": (["--config=configs/mountaincar_curiosity.yaml"], -130),
    "mountaincar_ppo": (
        ["--config=configs/mountaincar_rnd.yaml", "--signals=[]", "--agent.init_args.value_heads=1"],
        -200,
    ),
    "cartpole_gail": (["--config=configs/cartpole_gail.yaml"], 450),
    "acrobot_gail": (["--config=configs/acrobot.yaml", "--extrinsic_strength=0", "--signals=ACROBOT"], -100),
    "rocket_gail": ([*ROCKET, *CHASED, *CLONED], 1),
    "rocket_ppo": (ROCKET, 0),
}
"""Flags, and the return to reach; plain PPO's is where it should stay."""
STEPS = 2048
KINDS: dict[str, list[SignalFactory]] = {
    "none": [],
    "rnd": [RND],
    "curiosity": [Curiosity],
    "gail": [lambda *spaces: GAIL(*spaces).show([_Anything(*spaces)])],
}
WIDE: dict[str, Any] = {"actor_hidden_sizes": (256, 256), "critic_hidden_sizes": (256, 256), "layer_norm": True}
WORLDS: dict[str, tuple[Any, dict[str, Any], TrainArgs]] = {
    "CartPole-v1": (
        partial(GymnasiumEnvs, "CartPole-v1", 16),
        {},
        TrainArgs(total_timesteps=4 * STEPS, num_steps=STEPS // 16, update_epochs=4, minibatch_size=256),
    ),
    "RocketSim 1v1": (
        partial(RocketSimPool, 16, num_threads=1),
        WIDE | {"activation": torch.nn.ReLU},
        TrainArgs(total_timesteps=4 * STEPS, num_steps=STEPS // 32, update_epochs=2, minibatch_size=512),
    ),
}
"""Environment, agent and settings; the second as configs/rocket_1v1_quickstart.yaml with fewer arenas."""


def flags_of(task: str, runs_dir: Path) -> list[str]:
    """The flags of a task; what has to be shown for it is recorded first, of an agent that learned from the reward."""
    acrobot, chaser = runs_dir / "acrobot.frd", runs_dir / "chaser.frd"
    if task == "acrobot_gail" and not acrobot.exists():
        run(["--config=configs/acrobot.yaml"], runs_dir, "acrobot_expert", 0)
        record("acrobot_expert", acrobot, "--episodes=10", f"--runs_dir={runs_dir}")
    if task == "rocket_gail" and not chaser.exists():
        record("chaser", chaser, "--minutes=30", "--random_starts=0.9", "--noise=0.1")
    named = {"ACROBOT": IMITATED % acrobot, "CHASER": str(chaser)}
    return [re.sub("ACROBOT|CHASER", lambda found: named[found[0]], flag) for flag in TASKS[task][0]]


def record(player: str, out: Path, *flags: str) -> None:
    """`fabric-rl demos record`."""
    command = [*FABRIC_RL, "demos", "record"]
    subprocess.run([*command, player, str(out), *flags], cwd=ROOT, check=True)


def run(flags: Sequence[str], runs_dir: Path, name: str, seed: int) -> float:
    """Trains on one core, unless it is done; the mean return of the last 20 episodes."""
    summary = runs_dir / name / "summary.json"
    if not summary.exists():
        own = [*flags, f"--runs_dir={runs_dir}", f"--run_id={name}", f"--seed={seed}", "--force", "--plain"]
        own += ["--num_threads=1", "--record_minutes=null", "--accelerator=cpu", "--devices=1"]
        command, environment = [sys.executable, "train_fabric.py", *own], os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return float(json.loads(summary.read_text(encoding="utf-8"))["mean_return_last_20"])


def band(returns: Sequence[float]) -> dict[str, float]:
    """Their mean and half of its 95 % interval (Student's, over seeds, which are independent)."""
    mean, number = statistics.mean(returns), len(returns)
    if number < 2:
        return {"mean": mean}
    half = float(t.ppf(0.975, number - 1)) * statistics.stdev(returns) / number**0.5
    return {"mean": mean, "half_width": half}


class _Anything:
    """What is shown where only the speed counts."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:  # noqa: ANN401
        self.obs = np.zeros((101, *observation_space.shape), np.float32)
        self.action, self.weight = np.zeros(100, np.int64), np.ones(100, np.float32)


class Clock(Callback):
    """The processor's seconds of each iteration but the first."""

    def __init__(self) -> None:
        """Has none yet."""
        self.seconds: list[float] = []

    def on_iteration_start(self, state: Any) -> None:  # noqa: ANN401
        """Starts."""
        self._began = time.process_time()

    def on_iteration_end(self, state: Any) -> None:  # noqa: ANN401
        """Stops."""
        self.seconds.append(time.process_time() - self._began)


def speed(rounds: int, world: str) -> dict[str, float]:
    """Steps per second by the processor's clock, each kind in turns."""
    env, settings, args = WORLDS[world]
    seconds: dict[str, list[float]] = {name: [] for name in KINDS}
    for _ in range(rounds):
        for name, signals in KINDS.items():
            clock = Clock()
            agent = partial(PPOLightningAgent, value_heads=1 + len(signals), **settings)
            fabric = Fabric(accelerator="cpu", devices=1, loggers=[])
            train(fabric, env, agent, args, callbacks=[clock], plain=True, signals=signals)
            seconds[name] += clock.seconds[1:]
    return {name: STEPS / statistics.median(each) for name, each in seconds.items()}


def main() -> None:
    """Measures and prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("tasks", "speed"))
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs_dir", type=Path, default=Path("runs/signals"))
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": describe_machine()}
    if options.only != "speed":
        runs_dir = options.runs_dir.absolute()
        for task in options.tasks:
            flags = flags_of(task, runs_dir)
            returns = [run(flags, runs_dir, f"{task}_{seed}", seed) for seed in options.seeds]
            found[task] = {"target": TASKS[task][1], "returns": returns} | band(returns)
            print(task, found[task], file=sys.stderr, flush=True)
    if options.only != "tasks":
        found["steps_per_second"] = {world: speed(options.rounds, world) for world in WORLDS}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
