"""Memory of long trainings and of the viewer: it must not grow once a process has warmed up.

    python tests/campaigns/memory.py --minutes 30

All of them run side by side. The memory of a process and its children is sampled every ten seconds (PSS: a shared page
counts once in all). The first third of the samples is warming up; of the rest, the median of the last quarter may be at
most `MOST_GROWTH` times that of the first quarter.
"""

import argparse
import contextlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psutil
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.campaigns.campaign import aligned
from tests.campaigns.kills import SAC, SELF_PLAY
from tests.forks import environment, kill

MOST_GROWTH = 1.03
EVERY_SECONDS = 10
LONG = "--plain --accelerator cpu --total_timesteps 1000000000 --checkpoint_every_timesteps 20000"
ROCKET = f"{LONG} --env.num_arenas 8 --env.num_threads 1 --num_steps 64 --minibatch_size 256"
KINDS = {
    "training": f"train {ROCKET} --record_minutes 1 --milestone_interval 40000",
    "self-play": f"train {ROCKET} {SELF_PLAY.replace(' 64', ' 4096')}",
    "SAC": f"train {SAC.replace('--buffer_size 600', '--buffer_size 6000')} {LONG}",
    "viewer": "watch chaser chaser --minutes 0.5 --no_browser --port 0",
}


def megabytes(process):
    """Memory of a process and its children."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 1e6


def look(address):
    """Viewers that come, watch for a while and go, one after the other."""
    while True:
        with contextlib.suppress(WebSocketException, OSError), connect(address, max_size=None) as viewer:
            for _ in range(200):
                viewer.recv(timeout=30)
        time.sleep(1)


def start(words, folder):
    """One command, in a folder of its own."""
    folder.mkdir()
    code = "from fabric_rl.commands.main import main; main()"
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code, *words.split()],
            cwd=folder,
            env=environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def watch(folder):
    """Connects viewers as soon as the server has printed its address."""
    while (address := re.search(r"http://(\S+?)/(\S+)", (folder / "log").read_text())) is None:
        time.sleep(1)
    threading.Thread(target=look, args=["ws://{}/stream{}".format(*address.groups())], daemon=True).start()


def curve(samples):
    """(first, last, growth) after warming up."""
    warm = samples[len(samples) // 3 :]
    quarter = max(1, len(warm) // 4)
    first, last = statistics.median(warm[:quarter]), statistics.median(warm[-quarter:])
    return first, last, last / first


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--minutes", type=float, default=30.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        running = {kind: start(KINDS[kind], folder / kind) for kind in arguments.kinds}
        samples, ended = {kind: [] for kind in running}, {}
        try:
            if "viewer" in running:
                watch(folder / "viewer")
            end = time.monotonic() + 60 * arguments.minutes
            while time.monotonic() < end:
                time.sleep(EVERY_SECONDS)
                for kind, process in running.items():
                    if process.poll() is None:
                        samples[kind].append(megabytes(psutil.Process(process.pid)))
                    elif kind not in ended:
                        ended[kind] = (folder / kind / "log").read_text()[-2000:]
        finally:
            for process in running.values():
                for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
                    kill(child.pid)
                kill(process.pid)
    curves = {kind: curve(values) for kind, values in samples.items() if values}
    rows = {kind: [round(first), round(last), len(samples[kind])] for kind, (first, last, _) in curves.items()}
    print(aligned(("first MB", "last MB", "samples"), rows))
    for kind, (_, _, growth) in curves.items():
        print(f"{kind}: {growth:.3f}, every minute: {' '.join(f'{x:.0f}' for x in samples[kind][::6])}")
    for kind, text in ended.items():
        print(f"{kind} has ended:\n{text}")
    sys.exit(bool(ended) or any(growth > MOST_GROWTH for _, _, growth in curves.values()))


if __name__ == "__main__":
    main()
