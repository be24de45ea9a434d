"""Trainings with KeyPress, each in a process of its own whose terminal is a pseudo terminal."""

import json
import os
from functools import partial
from pathlib import Path

from lightning import Fabric

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Callback, Run, TrainArgs, train
from fabric_rl.callbacks import AdaptiveBatchSize, KeyPress


class Fails(Callback):
    def on_iteration_end(self, state):
        if state.iteration == 3:
            raise RuntimeError("on purpose")


class SaveOnRank1(Callback):
    def on_iteration_end(self, state):
        state.save = state.fabric.global_rank == 1 and state.iteration == 2


def trained(folder, callbacks=(), steps=10**9, devices=1):
    fabric = Fabric(accelerator="cpu", devices=devices)
    fabric.launch()
    run = Run(Path(folder, "run"))
    if fabric.is_global_zero:
        Run.create(Path(folder), "run")
    fabric.barrier()
    args = TrainArgs(total_timesteps=steps, num_steps=32, update_epochs=1, minibatch_size=16, batch_size=64)
    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    return train(fabric, env, partial(PPOLightningAgent), args, run, [KeyPress(), *callbacks], plain=True)


def play(folder):
    trained(folder)


def fails(folder):
    trained(folder, [Fails()])


def background(folder):
    """Trains in the background of the terminal; the exit status is 99 if the terminal has stopped that."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, os.WUNTRACED)
        return 99 if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
    os.setpgid(0, 0)
    trained(folder, steps=192)
    return 0


def two_ranks(folder):
    rank = int(os.environ["LOCAL_RANK"])
    # Rank 1 allows itself no memory at all, so that it asks for the smallest minibatch.
    adaptive = AdaptiveBatchSize(share=1.0 if rank == 0 else 1e-12, smallest=4)
    summary = trained(folder, [SaveOnRank1(), adaptive], devices=2)
    done = {"size": adaptive.state_dict()["size"], "stopped": summary["stopped_early"]}
    Path(folder, f"rank{rank}.json").write_text(json.dumps(done))
