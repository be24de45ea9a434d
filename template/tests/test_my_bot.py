"""The reward by hand, and a training of a few hundred steps with my_bot.yaml."""

import subprocess
import sys
from pathlib import Path

from fabric_rl import load_trained
from fabric_rl.envs import GameState

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from my_bot.rewards import CEILING_UU, HighTouchReward  # noqa: E402 - found in the folder above


def test_a_touch_pays_by_the_height_of_the_ball():
    cars = [(0, -1000, 17), (500, 2000, 17)]  # blue, orange
    low = GameState.from_numbers(cars, ball_pos=(0, 0, 0), touched=[True, False])
    high = GameState.from_numbers(cars, ball_pos=(0, 0, CEILING_UU / 2), touched=[False, True])
    reward = HighTouchReward(on_the_ground=0.5)
    assert reward.compute(low).tolist() == [[0.5, 0.0]]
    assert reward.compute(high).tolist() == [[0.0, 0.75]]


def test_it_trains(tmp_path):
    small = ["--env.num_arenas=2", "--num_steps=64", "--minibatch_size=64", "--total_timesteps=512"]
    where = [f"--runs_dir={tmp_path}", "--run_id=test"]
    words = ["train", "--config=my_bot.yaml", *small, *where, "--accelerator=cpu", "--devices=1"]
    command = [sys.executable, "-c", "from fabric_rl.commands.main import main; main()", *words]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert load_trained("test", tmp_path).path.name == "step_000000000512.ckpt"
