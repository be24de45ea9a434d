"""Real trainings that are killed at random moments, from the first line to the last, and go on to their end.

    python tests/campaigns/kills.py --number 150 --seed 0

Every run must end with the bits of one that nobody has disturbed, with all of its steps and milestones and a summary,
and 15 seconds after a kill no process of it may be left. Ranks are started by Fabric's own launcher, except that they
have imported everything; a kill hits one of them, of a ProcessPool the main process.
"""

import argparse
import csv
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import checkpoint_name, list_checkpoints
from fabric_rl.types import CheckpointError
from tests.campaigns.campaign import SECONDS, aligned
from tests.campaigns.mutated_checkpoints import bits
from tests.forks import Forks, kill
from tests.runs import descendants

ORPHAN_SECONDS = 15
MOST_KILLS = 4
"""Of one run; the next one begins anew."""
NETS = "--agent.actor_hidden_sizes [8] --agent.critic_hidden_sizes [8] --agent.normalize_obs true"
COMMON = "--total_timesteps 2048 --accelerator cpu --plain"
PPO = f"--num_steps 16 --update_epochs 1 --minibatch_size 32 {COMMON} {NETS}"
SAVING = "--checkpoint_every_timesteps 256 --milestone_interval 512 --keep_checkpoints 2"
ROCKET = "--env.num_arenas 2 --env.num_threads 1 --env.state_setter envs.RandomState --standardize_returns true"
CARTPOLE = "--env_id CartPole-v1 --num_envs 4 --exp_buffer_size 128 --lr_schedule kl_adaptive --exact_resume"
WORKERS = "--env envs.ProcessPool --env.factory envs.RocketSimPool --env.factory.num_arenas 2 --env.num_workers 2"
WORKERS += " --env.factory.state_setter envs.RandomState"
SELF_PLAY = "--self_play fabric_rl.selfplay.SelfPlay --self_play.guests [random] --self_play.save_steps 64 "
SELF_PLAY += "--self_play.swap_steps 64 --self_play.window 3 --self_play.play_against_latest_model_ratio 0.3"
SIGNALS = "--signals+=fabric_rl.signals.RND --signals+=fabric_rl.signals.Curiosity --agent.value_heads 3"
SAC = "--env envs.RocketSimPool --env.num_arenas 2 --env.state_setter envs.RandomState "
SAC += f"--env.action envs.ContinuousAction --agent agents.SACLightningAgent {COMMON} {NETS} --train_interval 16 "
SAC += "--num_update 2 --n_step 3 --batch_size 32 --summary_freq 1 --buffer_size 600 --buffer_init_steps 300 "
SAC += "--save_replay_buffer"
KINDS = {
    "one rank": (1, ROCKET),
    "one rank, CartPole": (1, CARTPOLE),
    "two ranks": (2, ROCKET),
    "overlap": (1, f"{ROCKET} --overlap"),
    "two ranks, overlap": (2, f"{CARTPOLE} --overlap"),
    "ProcessPool": (1, WORKERS),
    "ProcessPool, overlap": (1, f"{WORKERS} --env.groups 2 --overlap"),
    "players": (2, f"{ROCKET} --num_players 1"),
    "self-play": (1, f"{ROCKET} {SELF_PLAY}"),
    "two ranks, self-play": (2, f"{ROCKET} {SELF_PLAY}"),
    "signals": (1, f"{CARTPOLE} {SIGNALS}"),
    "two ranks, signals": (2, f"{ROCKET} {SIGNALS}"),
    "SAC": (1, SAC),
    "two ranks, SAC": (2, SAC),
}
"""Name -> how many ranks, and the settings."""
MOMENTS = ("start-up", "training", "end")
COLUMNS = (
    "kills",
    *MOMENTS,
    "runs",
    "different",
    "steps lost",
    "milestones missing",
    "no settings",
    "not resumed",
    "orphans",
)
BAD = COLUMNS[-6:]


@dataclass(frozen=True)
class Whole:
    """A run that nobody has disturbed."""

    bits: str
    steps: list[str]
    """In its table of metrics."""
    milestones: list[str]
    start_seconds: float
    """Until its first rollout is learned."""
    seconds: float


class Running:
    """One training, as a process that can be killed; a training that goes on is another one."""

    def __init__(self, forks, kind, folder):
        self.forks, self.folder, self.run = forks, folder, folder / "runs" / "r"
        ranks, settings = KINDS[kind]
        common = "" if settings == SAC else PPO
        new = f"{settings} {common} {SAVING} --devices {ranks}".split()
        here = ["--runs_dir", folder / "runs", "--run_id", "r"]
        self.goes_on = (self.run / "checkpoints").is_dir()  # what was killed before is no run yet, and begins
        self.knows_settings = (self.run / "config.yaml").exists()
        words = [*here, "--resume"] if self.goes_on else [*new, *here]
        self.ranks, self.fork = ranks, forks.start(*words, RANKS=ranks)

    def lives(self):
        return self.forks.is_running(self.fork)

    def wait(self, condition=lambda: False, seconds=SECONDS):
        """Until the condition holds, the run has ended, or so many seconds are over; returns those that it took."""
        began = time.monotonic()
        while self.lives() and not condition() and time.monotonic() - began < seconds:
            time.sleep(0.005)
        return time.monotonic() - began

    def kill(self, dice):
        """Kills one of its ranks, and returns how many of its processes live on for too long."""
        kill(self.fork.pid, signal.SIGSTOP)  # starts no more of them
        processes = [self.fork.pid, *descendants(self.fork.pid)]
        kill(dice.choice(processes[: self.ranks]))
        kill(self.fork.pid, signal.SIGCONT)
        began = time.monotonic()
        while left := {pid for pid in processes if is_alive(pid)}:
            self.lives()  # waits for it
            if time.monotonic() - began > ORPHAN_SECONDS:
                break
            time.sleep(0.02)
        for pid in left:
            kill(pid)
        self.wait()
        return len(left)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def steps_in(run):
    """What its table of metrics holds."""
    try:
        with open(run / "metrics.csv", newline="") as file:
            return [row["step"] for row in csv.DictReader(file)]
    except OSError:
        return []


def milestones_in(run):
    """Those that can be read and are finished."""
    found = []
    for folder in sorted((run / "milestones").glob("*/*")):
        try:
            json.loads((folder / "meta.json").read_text())
            read(folder / checkpoint_name(int(folder.name)))
        except (OSError, ValueError, CheckpointError):
            continue
        found.append(folder.name)
    return found


def undisturbed(forks, kind, folder):
    """The run that all others of its kind are compared with."""
    running = Running(forks, kind, folder)
    start_seconds = running.wait(lambda: steps_in(running.run))
    seconds = start_seconds + running.wait()
    assert running.fork.status == 0, running.fork.out + running.fork.err
    last = list_checkpoints(running.run / "checkpoints")[-1]
    return Whole(bits(last), steps_in(running.run), milestones_in(running.run), start_seconds, seconds)


def reach(running, moment, whole, dice):
    """Waits for some moment of that kind; whether the run lives to see it."""
    if moment == "start-up":
        running.wait(seconds=dice.uniform(0, whole.start_seconds))
    elif moment == "training":
        iteration = dice.randrange(len(whole.steps))
        running.wait(lambda: len(steps_in(running.run)) > iteration)
        running.wait(seconds=dice.uniform(0, 0.1))
    else:
        last = running.run / "checkpoints" / checkpoint_name(int(whole.steps[-1]))
        running.wait(last.exists)
        running.wait(seconds=dice.uniform(0, 0.2))
    return running.lives()


def differences(running, whole):
    """How a run that has ended differs from one that nobody has disturbed: (column, how many, in words)."""
    if running.fork.status != 0 or not (running.run / "summary.json").exists():
        return [("not resumed", 1, f"status {running.fork.status}: {running.fork.err.strip()[-300:]}")]
    found, done = [], json.loads((running.run / "summary.json").read_text())["total_steps"]
    if steps_in(running.run) != whole.steps or str(done) != whole.steps[-1]:
        found.append(("steps lost", 1, f"steps {steps_in(running.run)}, in all {done}"))
    if bits(list_checkpoints(running.run / "checkpoints")[-1]) != whole.bits:
        found.append(("different", 1, "other bits"))
    if missing := set(whole.milestones) - set(milestones_in(running.run)):
        found.append(("milestones missing", len(missing), f"no milestones {', '.join(sorted(missing))}"))
    return found


def one_run(forks, kind, whole, folder, kills, dice):
    """Kills a run so many times, or less where it comes to its end before; counts of it, and what is wrong."""
    count, wrong = Counter(runs=1), []
    while True:
        running = Running(forks, kind, folder)
        if running.goes_on and not running.knows_settings:
            wrong.append("its folder has no config.yaml")
            count["no settings"] += 1
        moment = dice.choice(MOMENTS)
        if count["kills"] < kills and reach(running, moment, whole, dice):
            orphans = running.kill(dice)
            count.update({"kills": 1, moment: 1, "orphans": orphans})
            if orphans:
                wrong.append(f"{orphans} processes left after a kill in {moment}")
            continue
        running.wait()
        break
    for column, number, text in differences(running, whole):
        count[column] += number
        wrong.append(text)
    return count, wrong


def campaign(folder, number, seed, kinds=tuple(KINDS)):
    """Kills so often; prints the table and what is wrong; returns how much is."""
    dice = random.Random(seed)
    counts, problems = defaultdict(Counter), []
    (folder / "forks").mkdir()
    forks = Forks(folder / "forks")
    try:
        whole = {kind: undisturbed(forks, kind, folder / kind) for kind in kinds}
        while (done := sum(count["kills"] for count in counts.values())) < number:
            kind = min(kinds, key=lambda kind: counts[kind]["kills"])
            own = folder / f"{len(forks.started)}"
            kills = min(dice.randint(1, MOST_KILLS), number - done)
            count, wrong = one_run(forks, kind, whole[kind], own, kills, dice)
            counts[kind].update(count)
            problems += [f"{kind}: {text}" for text in wrong]
            shutil.rmtree(own)
    finally:
        forks.close()
    print(aligned(COLUMNS, {kind: [count[column] for column in COLUMNS] for kind, count in counts.items()}))
    print(*problems, sep="\n")
    return sum(count[column] for count in counts.values() for column in BAD)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(bool(campaign(Path(temporary), arguments.number, arguments.seed, arguments.kinds)))
