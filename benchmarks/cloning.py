"""What cloning demonstrations reaches, on one core.

    python benchmarks/cloning.py                                   # CartPole and the ball chaser: half an hour
    python benchmarks/cloning.py --only cartpole
    python benchmarks/cloning.py --only further                    # PPO from a clone and from nothing: an hour
    python benchmarks/cloning.py --only sac                        # SAC with a clone's help and without: half an hour
    python benchmarks/cloning.py --only human --replays GAMES      # a folder with at least two .replay files

`cartpole`: ten episodes of an agent that was trained with configs/cartpole.yaml are cloned; the figure is the mean
return of the clone, which takes its likeliest actions. `chaser`: thirty minutes of the ball chaser against itself are
cloned; the figure is the touches per car and minute of two clones that play each other, and of two chasers, with 95 %
intervals over five times four matches. `further`: PPO in configs/rocket_1v1_quickstart.yaml (its pool and learning
settings, with returns as they are and entropy 0.005), from a clone that it stays close to at first, and from nothing;
the figure is the steps until an agent touches the ball 12 times a minute, on average over 100,000 steps. `sac`: SAC on
Pendulum and CartPole, alone, with cloning beside it, and from a clone that it stays close to at first; the figures are
the mean returns of the episodes in each third of the run, for three seeds. `human`: all
games but the last of a folder are cloned; the figure is the mean log-likelihood of the last game's actions, and that of
a uniform policy, in nats. The last line is JSON.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from children import FABRIC_RL
from signals import band

from fabric_rl.metrics.metrics_csv import read_metrics
from train_fabric import cli

PARTS = ("cartpole", "chaser", "further", "sac", "human")
ROOT = Path(__file__).parent.parent
AGENT = [
    "--agent=agents.PPOLightningAgent",
    "--agent.actor_hidden_sizes=[512,512]",
    "--agent.critic_hidden_sizes=[256,256]",
]
ONE_CORE = {"OMP_NUM_THREADS": "1"}
QUICKSTART = ["--config", "configs/rocket_1v1_quickstart.yaml"]
QUICKSTART += ["--agent.init_args.entropy_coef", "0.005"]
QUICKSTART += ["--env.init_args.num_arenas", "64", "--agent.init_args.normalize_obs", "true"]


def fabric_rl(*words: object) -> None:
    """`fabric-rl ...` on one thread."""
    environment = os.environ | ONE_CORE
    subprocess.run([*FABRIC_RL, *map(str, words)], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def figures(folder: Path, *words: object) -> dict[str, Any]:
    """What `fabric-rl evaluate ...` finds."""
    fabric_rl("evaluate", *words, "--json", folder / "found.json")
    found: dict[str, Any] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return found


def cartpole(folder: Path) -> dict[str, Any]:
    """The mean return over 100 episodes of a clone of ten, and of whom it was cloned from."""
    start = ["--runs_dir", folder, "--run_id"]
    fabric_rl("train", "--config", "configs/cartpole.yaml", "--plain", "--accelerator", "cpu", *start, "expert")
    fabric_rl("demos", "record", folder / "expert", folder / "pole.frd", "--episodes", 10)
    fabric_rl("clone", folder / "pole.frd", *start, "clone")
    names = ("expert", "clone")
    returns = [figures(folder, folder / name, "--episodes", 100, "--seed", 1)["mean_return"] for name in names]
    return dict(zip(names, returns, strict=True)) | {"reached": returns[1] >= 475}


def chased(folder: Path) -> Path:
    """Thirty minutes of the ball chaser, which makes mistakes at times."""
    file, often = folder / "chaser.frd", ("--random_starts", 0.9, "--noise", 0.1)
    fabric_rl("demos", "record", "chaser", file, "--minutes", 30, *often)
    return file


def touches(folder: Path, who: Path | str) -> dict[str, float]:
    """Touches per car and minute of two that are alike: mean, and half of its 95 % interval over five seeds."""
    words = (who, who, "--matches", 4, "--sample", "true", "--seed")
    found = [figures(folder, *words, seed)["touches_per_minute"] for seed in range(1, 6)]
    return band([sum(each) / 2 for each in found])


def chaser(folder: Path) -> dict[str, Any]:
    """Touches of a clone, and of the chaser."""
    env = ["--env=envs.RocketSimPool", "--env.team_size=1", "--env.obs=envs.AdvancedObsPlus"]
    own = [*env, *AGENT, "--agent.normalize_obs=true", "--runs_dir", folder, "--run_id", "chased"]
    fabric_rl("clone", chased(folder), *own)
    clone, bot = touches(folder, folder / "chased"), touches(folder, "chaser")
    return {"clone": clone, "chaser": bot, "reached": clone["mean"] >= 0.6 * bot["mean"]}


def further(folder: Path, seeds: Sequence[int] = (1, 2, 3)) -> dict[str, Any]:
    """Steps of PPO to 12 touches, by seed, from a clone and from nothing; None: not in the whole training."""
    fabric_rl("clone", chased(folder), *QUICKSTART, "--runs_dir", folder, "--run_id", "clone")
    clone = folder / "clone"
    kicked = ["--initialize_from", clone, "--kickstart", "Kickstart", "--kickstart.reference", clone]
    found: dict[str, Any] = {}
    for name, total, more in (("clone", 1_500_000, kicked), ("nothing", 2_000_000, [])):
        words = [*more, "--total_timesteps", total]
        found[name] = [steps_to(12, folder, f"{name}_{seed}", seed, words) for seed in seeds]
    last = max(steps or math.inf for steps in found["clone"])
    return found | {"reached": all(2 * last <= (steps or 2_000_000) for steps in found["nothing"])}


def steps_to(goal: float, folder: Path, name: str, seed: int, words: Sequence[object]) -> int | None:
    """Trains, and says after how many steps the touches of the last 100,000 were at least so many a minute."""
    one = ["--accelerator", "cpu", "--devices", 1, "--num_threads", 1, "--env.init_args.num_threads", 1, "--plain"]
    words = ["--standardize_returns", "false", *words, *one, "--seed", seed, "--runs_dir", folder, "--run_id", name]
    fabric_rl("train", *QUICKSTART, *words)
    steps, values = read_metrics(folder / name / "metrics.csv")["game/touches_per_minute"]
    for now in steps[steps >= 100_000]:
        if values[(steps > now - 100_000) & (steps <= now)].mean() >= goal:
            return int(now)
    return None


def sac(folder: Path, seeds: Sequence[int] = (1, 2, 3)) -> dict[str, Any]:
    """Mean returns in the thirds of a run, `[seed][third]`; None where no episode ended.

    A run that is in the folder is not trained again.
    """
    one = ["--accelerator", "cpu", "--devices", 1, "--num_threads", 1, "--plain", "--record_minutes", "null"]
    expert, pendulum = folder / "expert", folder / "pendulum.frd"
    if not pendulum.exists():
        fabric_rl("train", "--config", "configs/sac_pendulum.yaml", *one, "--runs_dir", folder, "--run_id", "expert")
        fabric_rl("demos", "record", expert, pendulum, "--episodes", 20, "--sample", "true")
    found: dict[str, Any] = {}
    pole = ROOT / "configs/demonstrations/cartpole.frd"
    for task, demos, total in (("pendulum", pendulum, 2000), ("cartpole", pole, 1000)):
        preset, clone = ["--config", f"configs/sac_{task}.yaml"], folder / f"{task}_clone"
        if not clone.exists():
            few = ["--batch_size", 64, "--patience", 30]  # there are few episodes
            fabric_rl("clone", demos, *preset, *few, "--runs_dir", folder, "--run_id", clone.name)
        falls = ["--kickstart.coef", "fabric_rl.schedules.Linear", "--kickstart.coef.start", 20]
        falls += ["--kickstart.coef.end", 0]
        shown = ["--cloning", "Cloning", f"--cloning.demos=[{demos}]"]
        arms: dict[str, list[object]] = {
            "alone": [],
            "cloning": [*shown, "--cloning.strength", 5, "--cloning.steps", 2 * total],
            "clone": ["--initialize_from", clone, "--kickstart", "Kickstart", "--kickstart.reference", clone, *falls],
        }
        for arm, words in arms.items():
            found[f"{task} {arm}"] = thirds = []
            for seed in seeds:
                run = folder / f"{task}_{arm}_{seed}"
                if not (run / "summary.json").exists():
                    own = ["--total_timesteps", total, "--summary_freq", 100, "--seed", seed, "--force"]
                    own += ["--buffer_init_steps", 200, "--agent.init_args.init_entcoef", 0.05]
                    own += ["--runs_dir", folder, "--run_id", run.name]
                    with redirect_stdout(StringIO()):  # in this process: most of these runs are shorter than a start
                        cli([str(word) for word in (*preset, *words, *one, *own)])
                steps, values = read_metrics(run / "metrics.csv")["reward/episode_return"]
                third = (steps - 1) * 3 // total
                thirds.append([float(values[third == k].mean()) if (third == k).any() else None for k in range(3)])
            print(task, arm, thirds, file=sys.stderr, flush=True)
    return found


def human(folder: Path, replays: Path) -> dict[str, Any]:
    """Log-likelihood of a game's actions by an agent that was shown the other games, and by chance."""
    from envs import RocketSimPool
    from fabric_rl.evaluation.demonstrations import trajectories_of
    from fabric_rl.imitation.cloning import imitation_loss, to_batch
    from fabric_rl.runs.trained import load_trained

    *games, last = sorted(replays.glob("*.replay"))
    fabric_rl("demos", "convert", *games, "--out", folder / "games.frd")
    fabric_rl("demos", "convert", last, "--out", folder / "last.frd")
    words = ["--validation", 0.2, "--runs_dir", folder, "--run_id", "human"]
    fabric_rl("clone", folder / "games.frd", *AGENT, *words)
    pool = RocketSimPool(1)
    agent = load_trained(folder / "human").agent(pool.single_observation_space, pool.single_action_space)
    pool.close()
    likely = -imitation_loss(agent, to_batch(trajectories_of([folder / "last.frd"], RocketSimPool), agent))
    chance = -math.log(int(pool.single_action_space.n))  # type: ignore[attr-defined]
    return {"clone": likely, "uniform": chance, "reached": likely > chance}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=["cartpole", "chaser"])
    parser.add_argument("--replays", type=Path, help="folder with .replay files, for human")
    parser.add_argument("--runs_dir", type=Path, help="folder that keeps the runs of sac")
    arguments = parser.parse_args(argv)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for part in arguments.only:
            folder = Path(name, part)
            folder.mkdir()
            if part == "human":
                if arguments.replays is None:
                    parser.error("human needs --replays FOLDER")
                found[part] = human(folder, arguments.replays.absolute())
            elif part == "sac":
                found[part] = sac((arguments.runs_dir or folder).absolute())
            else:
                found[part] = {"cartpole": cartpole, "chaser": chaser, "further": further}[part](folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
