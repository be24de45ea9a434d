"""Faults around a run: full disk, stopped rank, races, clock set back, damaged folders and journals, killed commands.

    python tests/campaigns/faults.py full_disk resume_race --number 100

Each fault hits real trainings. Whatever happens, the run must go on to the bits of one that nobody has disturbed, or
end in one line; nothing hangs longer than its timeout and 15 seconds, and no process is left. `full_disk` mounts a
small tmpfs and needs root, `clock` needs the program faketime.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fabric_rl.runs.records import list_checkpoints
from tests.campaigns.campaign import Case, report
from tests.campaigns.campaign import run as run_cases
from tests.campaigns.kills import KINDS, Running, differences, is_alive, steps_in, undisturbed
from tests.forks import ROOT, Forks, environment, kill
from tests.runs import descendants

TIMEOUT_MINUTES, GRACE = 0.5, 15
OUR_LINE = re.compile(r"train_fabric.py: error: |fabric-rl[\w -]*: error: ")


def problems_of(running, whole):
    """What differs from the run that nobody has disturbed, in words."""
    return [text for _, _, text in differences(running, whole)]


def one_line(err):
    """Whether a program that failed has said so in one line of ours, after warnings."""
    lines = [line for line in err.splitlines() if line.strip()]
    return bool(lines) and bool(OUR_LINE.match(lines[-1])) and "Traceback" not in err


def full_disk(forks, folder, number, dice):
    """A tmpfs with a random amount of space is full at some write; then there is space, and the run is resumed."""
    count, wrong = Counter(), []
    whole = undisturbed(forks, "one rank", folder / "whole")
    size = sum(path.stat().st_size for path in (folder / "whole").rglob("*") if path.is_file())
    for i in range(number):
        disk = folder / f"disk{i}"
        disk.mkdir()
        space = dice.randrange(4096, int(1.1 * size))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={space}", "none", disk], check=True)
        try:
            running = Running(forks, "one rank", disk)
            running.wait()
            if running.lives():
                wrong.append(f"{i}: hung with {space} bytes")
                kill(running.fork.pid)
                running.wait()
            count["ended" if running.fork.status == 0 else "one line" if one_line(running.fork.err) else "other"] += 1
            if running.fork.status and not one_line(running.fork.err):
                wrong.append(f"{i}: {space} bytes: {running.fork.err.strip()[-400:]}")
            subprocess.run(["mount", "-o", f"remount,size={20 * size}", disk], check=True)
            again = Running(forks, "one rank", disk)
            again.wait()
            wrong += [f"{i}: {space} bytes, then resumed: {text}" for text in problems_of(again, whole)]
        finally:
            subprocess.run(["umount", disk], check=True)
    return count, wrong


def stopped_rank(forks, folder, number, dice):
    """SIGSTOP of one of two ranks: the other ends after the timeout; SIGCONT ends the first; the run resumes."""
    count, wrong = Counter(), []
    whole = undisturbed(forks, "two ranks", folder / "whole")
    KINDS["two ranks, timeout"] = (2, f"{KINDS['two ranks'][1]} --timeout_minutes {TIMEOUT_MINUTES}")
    for i in range(number):
        running = Running(forks, "two ranks, timeout", folder / f"{i}")
        iteration = dice.randrange(2, len(whole.steps) // 2)
        running.wait(lambda running=running, iteration=iteration: len(steps_in(running.run)) > iteration)
        ranks = [running.fork.pid, *descendants(running.fork.pid)][:2]
        stopped = dice.randrange(2)
        kill(ranks[stopped], signal.SIGSTOP)
        began, limit = time.monotonic(), 60 * TIMEOUT_MINUTES + GRACE
        while is_alive(ranks[1 - stopped]) and time.monotonic() - began < limit:
            running.lives()  # waits for rank 0
            time.sleep(0.1)
        if is_alive(ranks[1 - stopped]):
            wrong.append(f"{i}: rank {1 - stopped} hung for more than {limit} s after rank {stopped} was stopped")
        count[f"rank {stopped} stopped, seconds"] += round(time.monotonic() - began)
        count[f"rank {stopped} stopped"] += 1
        kill(ranks[stopped], signal.SIGCONT)
        began = time.monotonic()
        while (left := [pid for pid in ranks if is_alive(pid)]) and time.monotonic() - began < GRACE:
            running.lives()
            time.sleep(0.1)
        if left:
            wrong.append(f"{i}: {len(left)} processes left")
            for pid in left:
                kill(pid)
        running.wait()
        again = Running(forks, "two ranks", folder / f"{i}")
        again.wait()
        wrong += [f"{i}: resumed: {text}" for text in problems_of(again, whole)]
    return count, wrong


def resume_race(forks, folder, number, dice):
    """Two processes resume one run in the same moment: one does, the other is refused or finds nothing to do."""
    count, wrong = Counter(), []
    whole = undisturbed(forks, "one rank", folder / "whole")
    half = Running(forks, "one rank", folder / "half")
    half.wait(lambda: len(list_checkpoints(half.run / "checkpoints")) > 1)
    half.kill(dice)
    for i in range(number):
        shutil.copytree(folder / "half", folder / f"{i}")
        both = [Running(forks, "one rank", folder / f"{i}") for _ in range(2)]
        for each in both:
            each.wait()
        statuses = sorted(each.fork.status for each in both)
        refused = [each for each in both if each.fork.status]
        count[str(statuses)] += 1
        if len(refused) > 1 or any("another process is using" not in each.fork.err for each in refused):
            wrong.append(f"{i}: {statuses}: {' | '.join(each.fork.err.strip()[-200:] for each in both)}")
        else:
            winner = next(each for each in both if not each.fork.status)
            wrong += [f"{i}: {text}" for text in problems_of(winner, whole)]
        shutil.rmtree(folder / f"{i}")
    return count, wrong


def clock(forks, folder, number, dice):
    """The clock is set back by up to ten days, or ahead, while a run is stopped."""
    count, wrong = Counter(), []
    whole = undisturbed(forks, "one rank", folder / "whole")
    for i in range(number):
        running = Running(forks, "one rank", folder / f"{i}")
        iteration = dice.randrange(len(whole.steps) - 1)
        running.wait(lambda running=running, iteration=iteration: len(steps_in(running.run)) > iteration)
        running.kill(dice)
        seconds = dice.choice([-1, -3600, -864_000, 864_000])
        words = [sys.executable, "train_fabric.py", "--runs_dir", folder / f"{i}/runs", "--run_id", "r", "--resume"]
        if not running.goes_on and not (running.run / "checkpoints").is_dir():
            continue
        done = subprocess.run(
            ["faketime", "-f", f"{seconds:+d}s", *words],
            cwd=ROOT,
            env=environment(LOCAL_WORLD_SIZE=os.environ.get("LOCAL_WORLD_SIZE", "1")),
            capture_output=True,
            text=True,
        )
        running.fork.status = done.returncode
        count[f"{seconds:+,} s"] += 1
        wrong += [f"{i}: {seconds:+d} s: {text} {done.stderr[-300:]}" for text in problems_of(running, whole)]
    return count, wrong


def damaged(run, other, dice):
    """Damages a folder of a run in one way, and says how."""
    files = sorted(path for path in run.rglob("*") if path.is_file())
    path, way = dice.choice(files), dice.choice(["missing", "empty", "cut", "noise", "of another run", "a folder"])
    name = path.relative_to(run)
    if dice.random() < 0.2:
        path = dice.choice([path for path in run.rglob("*") if path.is_dir()])
        shutil.rmtree(path)
        if dice.random() < 0.5:
            path.write_text("a file")
        return f"folder {path.relative_to(run)} {'is a file' if path.is_file() else 'missing'}"
    content = path.read_bytes()
    path.unlink()
    if way == "empty":
        path.touch()
    elif way == "cut":
        path.write_bytes(content[: dice.randrange(len(content) + 1)])
    elif way == "noise":
        path.write_bytes(dice.randbytes(len(content) or 10))
    elif way == "of another run" and other:
        source = dice.choice(sorted(each for each in other.rglob("*") if each.is_file()))
        path.write_bytes(source.read_bytes())
        way = f"{source.relative_to(other)} of another run"
    elif way == "a folder":
        path.mkdir()
    return f"{name}: {way}"


COMMANDS = {
    "resume": ("train_fabric.py", "--runs_dir {runs} --run_id r --resume --total_timesteps 4096"),
    "evaluate": ("fabric-rl", "evaluate r idle --matches 2 --minutes 0.05 --runs_dir {runs}"),
    "runs": ("fabric-rl", "runs --runs_dir {runs}"),
    "report": ("fabric-rl", "report r --runs_dir {runs}"),
    "export": ("fabric-rl", "export r {runs}/exported --runs_dir {runs}"),
    "record": ("fabric-rl", "record r --minutes 0.02 --out {runs}/game.frl --runs_dir {runs}"),
}


def damaged_folders(forks, folder, number, dice):
    """One to three things of a folder are damaged before a command uses it: it works, or ends in one line."""
    for name in ("one rank", "one rank, CartPole"):
        undisturbed(forks, name, folder / name)

    def cases():
        for i in range(number):
            runs = folder / "damaged" / f"{i}" / "runs"
            shutil.copytree(folder / "one rank" / "runs", runs)
            ways = [damaged(runs / "r", folder / "one rank, CartPole/runs/r", dice) for _ in range(dice.randint(1, 3))]
            name = dice.choice(list(COMMANDS))
            program, words = COMMANDS[name]
            yield Case(name, f"{i}: {'; '.join(ways)}", words.format(runs=runs).split(), lambda err: True, program)

    (folder / "damaged").mkdir()
    (folder / "processes").mkdir()
    bad = report(run_cases(cases(), folder / "processes"))
    return Counter(cases=number), [f"{bad} cases ended badly (above)"] * bool(bad)


SPACE = "agent.actor_lr: {low: 1e-5, high: 1e-2, log: true}\n"
TINY = f"--config {ROOT / 'configs/cartpole.yaml'} --total_timesteps 256 --num_steps 32 --record_minutes null"


def cut_journal(forks, folder, number, dice):
    """The journal of a finished sweep is cut anywhere: the sweep goes on, or says in one line that it is damaged."""
    count, wrong = Counter(), []

    (space := folder / "space.yaml").write_text(SPACE)

    def sweep(where, trials):
        words = f"sweep {TINY} --space {space} --seeds 0 --parallel 1 --trials {trials} --folder {where}"
        fork = forks.start(*words.split(), program="fabric-rl")
        forks.wait([fork])
        return fork

    assert sweep(folder / "sweep", 2).status == 0
    content = (folder / "sweep/study.journal").read_bytes()
    for i in range(number):
        shutil.copytree(folder / "sweep", folder / f"{i}")
        at = dice.randrange(len(content))
        (folder / f"{i}/study.journal").write_bytes(content[:at])
        fork = sweep(folder / f"{i}", 3)
        count["goes on" if fork.status == 0 else "one line" if one_line(fork.err) else "other"] += 1
        if fork.status and not one_line(fork.err):
            wrong.append(f"{i}: {at} of {len(content)} bytes: {fork.err.strip()[-300:]}")
        shutil.rmtree(folder / f"{i}")
    return count, wrong


def killed_commands(forks, folder, number, dice):
    """`kill -9` of seeds, sweep and league at any moment; the same command then ends with the same results."""
    count, wrong = Counter(), []
    (space := folder / "space.yaml").write_text(SPACE)
    commands = {
        "seeds": f"seeds {TINY} --seeds 0..2 --parallel 2 --runs_dir {{folder}}",
        "sweep": f"sweep {TINY} --space {space} --seeds 0 --parallel 2 --trials 3 --folder {{folder}}",
        "league": "league idle chaser random --matches 4 --minutes 0.1 --runs_dir {folder} --json {folder}/league.json",
    }
    for i in range(number):
        name = dice.choice(list(commands))
        own = folder / f"{i}"
        own.mkdir()
        words = commands[name].format(folder=own).split()
        fork = forks.start(*words, program="fabric-rl")
        time.sleep(dice.uniform(0, 8))
        if forks.is_running(fork):
            children = descendants(fork.pid)
            kill(fork.pid)
            began = time.monotonic()
            while (left := [pid for pid in children if is_alive(pid)]) and time.monotonic() - began < GRACE + 60:
                time.sleep(0.1)  # a training that the command has started saves itself first
            count[f"{name} killed"] += 1
            if left:
                wrong.append(f"{i}: {name}: {len(left)} processes left")
        again = forks.start(*words, program="fabric-rl")
        forks.wait([again])
        count[name] += 1
        if again.status:
            wrong.append(f"{i}: {name}: status {again.status}: {again.err.strip()[-300:]}")
        shutil.rmtree(own)
    return count, wrong


CAMPAIGNS = {
    "full_disk": (full_disk, 100),
    "stopped_rank": (stopped_rank, 6),
    "resume_race": (resume_race, 100),
    "clock": (clock, 8),
    "damaged_folders": (damaged_folders, 200),
    "cut_journal": (cut_journal, 40),
    "killed_commands": (killed_commands, 30),
}


def campaign(folder, names=tuple(CAMPAIGNS), number=None, seed=0):
    """Runs some; prints what happened, and returns how much was wrong."""
    bad = 0
    for name in names:
        function, usual = CAMPAIGNS[name]
        (folder / name / "forks").mkdir(parents=True)
        with closing(Forks(folder / name / "forks")) as forks:
            count, wrong = function(forks, folder / name, number or usual, random.Random(seed))
        print(f"{name}: {', '.join(f'{what}: {n}' for what, n in sorted(count.items()))}; {len(wrong)} wrong")
        print(*wrong, sep="\n", flush=True)
        bad += len(wrong)
    return bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*CAMPAIGNS, []], default=list(CAMPAIGNS))
    parser.add_argument("--number", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(bool(campaign(Path(temporary), arguments.names, arguments.number, arguments.seed)))
