"""A person's play by a scripted driver in real Chromium: games that are kept, saved and cloned; memory and ticks.

    python tests/campaigns/play.py --total 10 --folder /tmp/play --minutes 1

The driver presses keys: toward the ball, boost when it is straight ahead, powerslide when it is behind. It continues
where an earlier call with the same folder stopped, until the folder has games of `--total` minutes; other flags are
those of `fabric-rl play`. Printed in the end: how often the game was slow, memory of the server after warming up and in
the end, latency from a key to the picture, games, goals. `--raw` drives without a browser and draws nothing. `--clone`
clones an agent from all games but the last tenth, and compares its actions there with the driver's. Status 1 if the
memory grew, or the clone does not agree 20 points better than the most frequent action.
"""

import argparse
import json
import math
import re
import shutil
import statistics
import struct
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import psutil
from websockets.sync.client import connect

from envs.matches.matches import PoolFactory
from envs.replays.replay import read_replay
from fabric_rl.evaluation.demonstrations import trajectories_of
from fabric_rl.runs.trained import load_trained, policy
from tests.forks import environment

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
MOST_GROWTH = 1.05
LOOK = """() => {
  const {game, status} = viewer;
  if (!game?.ready) return {phase: status.phase};
  const n = game.frames.at(-1).numbers;
  return {phase: status.phase, to: [n[1] - n[50], n[2] - n[51]], nose: [n[53], n[54]], speed: status.speed};
}"""


def keys(seen):
    """Keys that the driver holds; the car and the ball are seen in the game's axes."""
    (x, y), (fx, fy) = seen["to"], seen["nose"]
    angle = math.atan2(fx * y - fy * x, fx * x + fy * y)  # above 0: the ball is on the right
    held = {"w"} | ({"d"} if angle > 0.12 else {"a"} if angle < -0.12 else set())
    return held | ({"Shift"} if abs(angle) < 0.2 else {"x"} if abs(angle) > 1.7 else set())


def seconds_of(folder):
    """Game time of all replays."""
    games = [game for file in folder.glob("*.frl") for game in read_replay(file).games if game.num_frames]
    return sum(float(game.columns["ticks"][-1]) for game in games) / 120


def drive_by_keys(url, seconds, look):
    """Play in the browser; return the latencies (ms)."""
    latencies = []
    with import_module("playwright.sync_api").sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(url)
        held, until = set(), time.monotonic() + seconds
        while time.monotonic() < until:
            seen = page.evaluate(LOOK)
            wanted = keys(seen) if seen["phase"] == "play" else set()
            for key in held - wanted:
                page.keyboard.up(key)
            for key in wanted - held:
                page.keyboard.down(key)
            held = wanted
            if seen["phase"] == "over":
                latencies += page.evaluate("viewer.latencies.splice(0)")
                page.keyboard.press("r")
                page.wait_for_timeout(500)
            page.wait_for_timeout(20)
            look(seen.get("speed", 1))
        latencies += page.evaluate("viewer.latencies")
        chromium.close()
    return latencies


def drive_raw(url, seconds, look):
    """Play without a picture, at 50 messages per second."""
    with connect(url.replace("http", "ws").replace("/?", "/stream?"), max_size=None) as page:
        until, sent, status, at = time.monotonic() + seconds, 0, {}, 0.0
        while time.monotonic() < until:
            message = page.recv(10)
            if isinstance(message, str):
                status = json.loads(message)
                if status.get("phase") == "over":
                    page.send('{"do": "again"}')
                look(status.get("speed", 1))
            if time.monotonic() - at > 0.02:
                sent, at = (sent + 1) % 65536, time.monotonic()
                page.send(struct.pack("<H8b", sent, 127, sent // 50 % 3 * 60 - 60, 0, 0, 0, 0, 0, 0))
    return []


def campaign(folder, minutes, raw, words):
    """Play until the folder has games of so many minutes; return whether all is well."""
    folder.mkdir(parents=True, exist_ok=True)
    left = minutes * 60 - seconds_of(folder)
    if left > 0:
        code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # the background ignores it
        code += "from fabric_rl.commands.main import main; main()"
        asked = [sys.executable, "-c", code, "play", *words, "--port", "0", "--no_browser", "--record", str(folder)]
        server = subprocess.Popen(asked, env=environment(), stdout=subprocess.PIPE, text=True)
        slow, memory, start = [], [], time.monotonic()

        def look(speed):
            if not memory or time.monotonic() - start > 5 * len(memory):
                memory.append(psutil.Process(server.pid).memory_info().rss / 2**20)
                slow.append(speed)

        try:
            url = re.search(r"http\S+", server.stdout.readline())[0]
            latencies = (drive_raw if raw else drive_by_keys)(url, left * 1.25 + 10, look)
        finally:
            server.send_signal(2)
            server.wait(60)
        warm = memory[len(memory) // 3 :]
        growth = warm[-1] / warm[0]
        print(f"slow in {sum(speed < 1 for speed in slow)} of {len(slow)} looks")
        print(f"memory {warm[0]:.0f} to {warm[-1]:.0f} MiB")
        if latencies:
            ranks = statistics.quantiles(latencies, n=20)
            print(
                f"{len(latencies)} keys: picture after {statistics.median(latencies):.0f} ms (95 %: {ranks[-1]:.0f} ms)"
            )
        if growth > MOST_GROWTH:
            return False
    results = [game.result for file in sorted(folder.glob("*.frl")) for game in read_replay(file).games if game.result]
    goals = [sum(result["score"][team] for result in results) for team in (0, 1)]
    print(f"{len(results)} games, {seconds_of(folder) / 60:.1f} minutes, goals {goals[0]} : {goals[1]}")
    return True


def clone_agrees(folder):
    """Clone the driver; return whether the clone's actions in games that it has not seen are the driver's."""
    games = sorted(folder.glob("*.frd"))
    count = max(1, len(games) // 10)
    code = "from fabric_rl.commands.main import main; main()"
    flags = ["--run_id", "me", "--runs_dir", str(folder / "runs")]
    seen, unseen = games[:-count], games[-count:]
    shutil.rmtree(folder / "runs", ignore_errors=True)
    subprocess.run([sys.executable, "-c", code, "clone", *map(str, seen), *flags], env=environment(), check=True)
    trained = load_trained("me", folder / "runs")
    recipe = PoolFactory(trained.env)
    pool = recipe.build(num_arenas=1)
    choose = policy(trained.agent(pool.single_observation_space, pool.single_action_space), True, 0, None)
    pool.close()
    found = trajectories_of(unseen, trained.env)
    obs, action = np.concatenate([each.obs[:-1] for each in found]), np.concatenate([each.action for each in found])
    chosen = np.concatenate([choose(one[None], np.ones(1, np.bool_), None) for one in obs])
    agreement, majority = np.mean(chosen == action), np.bincount(action).max() / len(action)
    print(f"{len(seen)} games cloned; in {len(unseen)} others, {len(action)} steps: agreement {agreement:.1%}")
    print(f"the most frequent action there: {majority:.1%}")
    return agreement > majority + 0.2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total", type=float, default=10)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--clone", action="store_true")
    given, words = parser.parse_known_args()
    well = campaign(given.folder, given.total, given.raw, words)
    sys.exit(0 if well and (not given.clone or clone_agrees(given.folder)) else 1)
