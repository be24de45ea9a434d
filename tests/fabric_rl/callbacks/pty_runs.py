"""Trainings with KeyPress, each in a process of its own whose terminal is a pseudo terminal.

As a server (no arguments) it reads one job per line from standard input as JSON, `[kind, terminal, folder]`, forks and
answers with the process id; `[pid]` waits and answers with the exit status. With `two terminal folder` it trains on two
ranks at once, which Fabric's launcher starts by running the same command again.
"""

import fcntl
import json
import os
import sys
import termios
import traceback
from functools import partial
from pathlib import Path

import torch
from lightning import Fabric

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from fabric_rl import Callback, Run, TrainArgs, train
from fabric_rl.callbacks import AdaptiveBatchSize, KeyPress

torch.set_num_threads(1)


class Fails(Callback):
    def on_iteration_end(self, state):
        if state.iteration == 3:
            raise RuntimeError("on purpose")


class SaveOnRank1(Callback):
    def on_iteration_end(self, state):
        state.save = state.fabric.global_rank == 1 and state.iteration == 2


def take_terminal(path):
    """Makes a terminal this process's controlling terminal and its standard streams."""
    os.setsid()
    terminal = os.open(path, os.O_RDWR)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(terminal, number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))


def train_in(folder, fabric, callbacks, steps=10**9):
    run = Run(folder / "run")
    if fabric.is_global_zero:
        Run.create(folder, "run")
    fabric.barrier()
    args = TrainArgs(total_timesteps=steps, num_steps=32, update_epochs=1, minibatch_size=16, batch_size=64)
    env = partial(GymnasiumEnvs, "CartPole-v1", 2)
    return train(fabric, env, partial(PPOLightningAgent), args, run, callbacks, plain=True)


def job(kind, path, folder):
    take_terminal(path)
    callbacks, steps = [KeyPress()], 10**9
    if kind == "fails":
        callbacks.append(Fails())
    if kind == "background":
        steps, background = 192, os.fork()
        if background:
            _, status = os.waitpid(background, os.WUNTRACED)
            return 99 if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        os.setpgid(0, 0)
    train_in(Path(folder), Fabric(accelerator="cpu", devices=1), callbacks, steps)
    return 0


def two_ranks(path, folder):
    if "LOCAL_RANK" not in os.environ:
        take_terminal(path)
    fabric = Fabric(accelerator="cpu", devices=2)
    fabric.launch()
    # Rank 1 allows itself no memory at all, so that it asks for the smallest minibatch.
    adaptive = AdaptiveBatchSize(share=1.0 if fabric.global_rank == 0 else 1e-12, smallest=4)
    summary = train_in(Path(folder), fabric, [KeyPress(), SaveOnRank1(), adaptive])
    done = {"size": adaptive.state_dict()["size"], "stopped": summary["stopped_early"]}
    (Path(folder) / f"rank{fabric.global_rank}.json").write_text(json.dumps(done))


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        if len(request) == 1:
            answer = os.waitstatus_to_exitcode(os.waitpid(request[0], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                try:
                    status = job(*request)
                except BaseException:
                    traceback.print_exc()
                    status = 1
                sys.stdout.flush()
                os._exit(status)
        print(answer, flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        two_ranks(*sys.argv[2:])
    else:
        serve()
