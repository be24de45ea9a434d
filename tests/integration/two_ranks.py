"""What each of the two ranks of test_two_ranks.py does: it files what it saw and what it learned."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from lightning import Fabric

from agents import PPOLightningAgent, RecurrentPPOAgent, SACLightningAgent
from envs import GymnasiumEnvs, RandomState, RocketSimPool
from envs.demonstrations import Trajectory
from fabric_rl import (
    Callback,
    Minibatch,
    Run,
    SACArgs,
    Saving,
    TrainArgs,
    learn,
    load_checkpoint,
    train,
    train_off_policy,
)
from fabric_rl.imitation import Cloning, Kickstart
from fabric_rl.imitation.cloning import to_batch, train_epoch
from fabric_rl.signals import RND, Curiosity


class PlainSGD(PPOLightningAgent):
    """Adam's first steps hide the size of the gradient; these do not."""

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


class Seen(Callback):
    """Wraps the environment's reset and step to keep the first observations and all actions."""

    def __init__(self):
        self.obs, self.actions = [], []

    def watching(self, factory):
        def build(seed):
            envs = factory(seed=seed)
            reset, step = envs.reset, envs.step

            def watched_reset(*, seed=None, options=None):
                obs, infos = reset(seed=seed, options=options)
                self.obs, self.actions = [torch.from_numpy(obs.copy())], []  # of the last reset: training's
                return obs, infos

            def watched_step(actions):
                self.actions.append(torch.from_numpy(actions.copy()))
                return step(actions)

            envs.reset, envs.step = watched_reset, watched_step
            return envs

        return build

    def on_learn_start(self, state):
        self.returns, self.value = state.batch.returns.clone(), state.batch.value.clone()

    def on_train_end(self, state):
        self.learned = {"returns": self.returns, "value": self.value, "metrics": dict(state.metrics)}  # of the last one
        self.weights = {k: v.detach().clone() for k, v in state.agent.state_dict().items()}


class StopOnOneRank(Callback):
    """The last rank alone wants to stop after the second iteration."""

    def on_iteration_end(self, state):
        if state.iteration == 2 and state.fabric.global_rank == state.fabric.world_size - 1:
            state.stop = True


def train_once(fabric, env, run=None, callbacks=()):
    seen = Seen()
    args = TrainArgs(total_timesteps=512, num_steps=16, update_epochs=2, minibatch_size=16, seed=10)
    agent = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,))
    summary = train(fabric, seen.watching(env), agent, args, run, [seen, *callbacks], plain=True)
    found = {"obs": seen.obs[0], "actions": torch.stack(seen.actions), "weights": seen.weights, "summary": summary}
    return found | seen.learned


class CountingSAC(SACLightningAgent):
    """Counts its optimizer steps, and keeps what its last one was made of."""

    updates = 0

    def training_step(self, minibatch):
        self.last = minibatch
        return super().training_step(minibatch)

    def update_targets(self, tau):
        self.updates += 1
        super().update_targets(tau)


class SeenSAC(Callback):
    def on_train_end(self, state):
        agent = state.agent
        self.found = {"updates": torch.tensor(agent.updates), "drawn": agent.last.obs}
        self.found["weights"] = {k: v.detach().clone() for k, v in agent.state_dict().items()}


def replayed(fabric, **memory):
    """20 rounds of 4 steps of each rank, the first 5 of them without learning, 3 optimizer steps for each rank."""
    seen = SeenSAC()
    agent = partial(CountingSAC, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,), normalize_obs=True, **memory)
    args = TrainArgs(total_timesteps=160, batch_size=8, seed=10)
    sac = SACArgs(train_interval=2, num_update=3, buffer_init_steps=48)
    env = partial(GymnasiumEnvs, "Pendulum-v1", 2)
    train_off_policy(fabric, env, agent, args, callbacks=[seen], plain=True, sac=sac)
    return seen.found


class Kept(Callback):
    """Keeps the reward signals' networks, and the deviation of their returns, as they are at the end."""

    def __init__(self):
        self.signals = []

    def building(self, kind):
        def build(*spaces):
            self.signals.append(kind(*spaces, hidden_sizes=[8], encoding_size=4))
            return self.signals[-1]

        return build

    def on_train_end(self, state):
        modules = {signal.name: signal.state_dict() for signal in self.signals} | {"agent": state.agent.state_dict()}
        self.found = {f"{name}.{k}": v.detach().clone() for name, state in modules.items() for k, v in state.items()}


def with_signals(fabric, folder):
    """A run with reward signals, and the same from the checkpoint in its middle on."""
    found = []
    for name in ("signals", "signals_again"):
        run, kept = Run(Path(folder, name)), Kept()
        args = TrainArgs(total_timesteps=1024, num_steps=32, update_epochs=2, minibatch_size=16, seed=10)
        agent = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,), value_heads=3)
        env = partial(GymnasiumEnvs, "CartPole-v1", 2)
        first = sorted(Path(folder, "signals", "checkpoints").glob("*.ckpt"))[0] if found else None
        resume = load_checkpoint(first)[1] if first else None
        saving = Saving(checkpoint_every_timesteps=512, exact_resume=True, keep_checkpoints=9)
        run.checkpoints.mkdir(parents=True, exist_ok=True)
        signals = [kept.building(RND), kept.building(Curiosity)]
        train(fabric, env, agent, args, run, [kept], True, saving, resume, signals=signals)
        found.append(kept.found)
    return dict(zip(("signals", "signals_again"), found, strict=True))


def imitated(fabric):
    """A run that clones and is kickstarted; every rank draws other steps of what is shown."""
    rng = np.random.default_rng(0)
    obs, ones = rng.normal(size=(201, 4)).astype(np.float32), np.ones(200, np.float32)
    shown = Trajectory(obs, rng.integers(0, 2, 200), ones, terminated=True)
    teacher = SimpleNamespace(agent=lambda *spaces: torch.manual_seed(5) and PPOLightningAgent(*spaces))
    parts = [Cloning(["it"], samples_per_update=64, batch_size=16).show([shown]), Kickstart("it", 1.0).take(teacher)]
    return train_once(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), callbacks=parts)


def shown(steps, scale, number):
    """A trajectory of weighted steps, the last of which does not count."""
    rng = np.random.default_rng(number)
    obs, weight = rng.normal(size=(steps + 1, 4)).astype(np.float32), rng.random(steps).astype(np.float32) * scale
    weight[-1] = 0
    return Trajectory(obs, rng.integers(0, 2, steps), weight, terminated=True)


def cloned(fabric, kind, batches, rows):
    """Two passes over 11 steps that count a lot, by the first rank, and 5 that count little, by the second.

    Alone, a rank has both; `rows` and `batches` make its two minibatches of those of the two ranks.
    """
    envs, alone = GymnasiumEnvs("CartPole-v1", 1), fabric.world_size == 1
    torch.manual_seed(0)
    agent = kind(envs.single_observation_space, envs.single_action_space, ortho_init=False)
    both = [shown(11, 1.0, 0), shown(5, 0.1, 1)]
    steps = to_batch(both if alone else both[fabric.global_rank :][:1], agent)
    model, optimizer = fabric.setup(agent, torch.optim.SGD(agent.parameters(), lr=0.5))
    model.mark_forward_method("imitate")
    order = torch.tensor(rows) if alone else torch.arange(steps.size)
    size = sum(batches) if alone else batches[fabric.global_rank]
    losses = [train_epoch(fabric, model, optimizer, steps, order, size, 0.5) for _ in range(2)]
    return {k: v.detach().clone() for k, v in agent.state_dict().items()} | {"losses": torch.tensor(losses)}


def cloned_steps(fabric):
    """Single steps, 8 and 3 beside 4 and 1; and sequences of four, 2 and 1 beside 1 and 1, with padding."""
    plain = partial(PPOLightningAgent, actor_hidden_sizes=(8,), critic_hidden_sizes=(8,))
    memory = partial(RecurrentPPOAgent, memory_size=8, sequence_length=4)
    rows = [*range(8), *range(11, 15), *range(8, 11), 15]
    return cloned(fabric, plain, [8, 4], rows), cloned(fabric, memory, [2, 1], [0, 1, 3, 2, 4])


def gradient_steps(fabric):
    """Three steps on a batch of 48 that all ranks share; each step's 16 rows are divided between the ranks."""
    envs = GymnasiumEnvs("CartPole-v1", 1)
    torch.manual_seed(0)
    agent = PlainSGD(envs.single_observation_space, envs.single_action_space, (8,), (8,), ortho_init=False)
    model, optimizer = fabric.setup(agent, agent.configure_optimizers())
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        random = partial(torch.randn, generator=generator)
        actions = torch.randint(2, (16,), generator=generator)
        batch = Minibatch(random(16, 4), actions, -random(16).abs(), random(16), 5 * random(16) + 1, random(16))
        share = 16 // fabric.world_size
        mine = batch.map(lambda x, share=share: x[fabric.global_rank * share :][:share])
        learn(fabric, model, optimizer, mine, TrainArgs(update_epochs=1), share, torch.Generator())
    return {k: v.detach().clone() for k, v in agent.state_dict().items()}


def main(folder):
    fabric = Fabric(accelerator="cpu", devices=2)
    fabric.launch()
    run = Run(Path(folder))
    found = {
        "cartpole": train_once(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), run),
        "stopped": train_once(fabric, partial(GymnasiumEnvs, "CartPole-v1", 2), callbacks=[StopOnOneRank()]),
        "rocketsim": train_once(fabric, partial(RocketSimPool, 2, state_setter=RandomState())),
        "gradient": gradient_steps(fabric),
        "cloned": cloned_steps(fabric),
        "replayed": replayed(fabric),
        "remembered": replayed(fabric, memory_size=4, sequence_length=4, burn_in=2),
        "imitated": imitated(fabric),
    } | with_signals(fabric, folder)
    torch.save(found, Path(folder, f"rank{fabric.global_rank}.pt"))
