"""Teams: POCA and PPO on two small tasks in which an agent must be credited with its part of the team's return.

    OMP_NUM_THREADS=1 python benchmarks/poca.py                             # five seeds each: an hour on one core
    python benchmarks/poca.py --tasks Sacrifice --algorithms poca --seeds 1 2

The figure of a run is the team's mean return over its last ten iterations, while it still explores. A run that is in
the results file is not trained again.
"""

import argparse
import itertools
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from lightning import Fabric
from machine import describe_machine
from numpy.typing import NDArray
from signals import band

from agents import POCAAgent, PPOLightningAgent
from fabric_rl import Callback, TrainArgs, train

Array = NDArray[Any]


class TeamTask(VectorEnv):
    """Teams of `size` agents; all agents of a team get the team's reward, also those that have left.

    The observation is the number of the agent (one-hot), the time left, and what the task shows. With `own_reward`,
    agents that have left get nothing: what an agent sees that learns alone.
    """

    shown, actions, length, size = 0, 2, 10, 4
    noise = 0.0
    """Part of the last rewards of all teams that is left out of the figure."""

    def __init__(self, teams: int = 32, own_reward: bool = False, seed: int = 0) -> None:
        """Begin nothing yet."""
        self.num_envs, self.teams, self.own_reward = teams * self.size, teams, own_reward
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        width = self.size + 1 + self.shown
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(self.actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.sides = np.repeat(np.arange(teams), self.size), np.zeros(self.num_envs, np.intp)
        self.score = np.zeros(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Array, dict[str, Any]]:  # noqa: ANN401
        """Begin an episode in all teams, which all end after `length` steps."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.here, self.time = np.ones((self.teams, self.size), np.bool_), 0
        self.begin()
        return self.observe(), {"present": self.here.reshape(-1).copy()}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Play a step."""
        reward = np.repeat(self.play(actions.reshape(self.teams, self.size))[:, None], self.size, axis=1)
        self.score += reward[:, 0].sum() - self.noise, 0
        if self.own_reward:
            reward = reward * self.here
        self.time += 1
        done = np.full(self.num_envs, self.time == self.length)
        obs, infos = self.observe(), {"present": self.here.reshape(-1).copy()}
        if done[0]:
            self.score += 0, self.teams
            last = {"final_obs": obs, "_final_obs": done}
            obs, infos = self.reset()
            infos |= last
        return obs, reward.reshape(-1).astype(np.float32), done, np.zeros_like(done), infos

    def observe(self) -> Array:
        """`[N, ...]`; zeros for agents that have left."""
        number = np.broadcast_to(np.eye(self.size), (self.teams, self.size, self.size))
        left = np.full((self.teams, self.size, 1), 1 - self.time / self.length)
        obs = np.concatenate([number, left, self.show()], axis=2) * self.here[..., None]
        return obs.reshape(self.num_envs, -1).astype(np.float32)

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """The mean return of a team."""
        total, count = self.score.tolist()
        self.score[:] = 0
        return {"game/team_return": (total, count)}

    def begin(self) -> None:
        """Prepare the task for a new episode."""

    def show(self) -> Array:
        """What the task shows, `[teams, size, shown]`."""
        return np.zeros((self.teams, self.size, 0))

    def play(self, actions: Array) -> Array:
        """Return the rewards of the teams for `actions [teams, size]`."""
        raise NotImplementedError


class Sacrifice(TeamTask):
    """An agent that takes action 1 opens the gate and leaves; then, a step pays the share of those who remain."""

    shown = 1

    def begin(self) -> None:
        """Close the gates."""
        self.open = np.zeros(self.teams, np.bool_)

    def show(self) -> Array:
        """Whether the gate is open."""
        return np.repeat(self.open[:, None, None].astype(np.float64), self.size, axis=1)

    def play(self, actions: Array) -> Array:
        """Pay for the gates that were open before."""
        reward = np.where(self.open, self.here.mean(axis=1), 0)
        leaves = self.here & (actions == 1)
        self.open |= leaves.any(axis=1)
        self.here &= ~leaves
        return reward


class Weather(TeamTask):
    """Each agent answers one of four signs, and sees a number that is added to the team's reward whatever it does.

    The reward is the mean of the right answers and of the numbers; those of the teammates are noise to an agent.
    """

    shown, actions, length = 5, 4, 1

    def begin(self) -> None:
        """Draw signs and numbers."""
        self.sign = self.rng.integers(4, size=(self.teams, self.size))
        self.number = 10 * self.rng.standard_normal((self.teams, self.size))

    def show(self) -> Array:
        """Sign and number."""
        return np.concatenate([np.eye(4)[self.sign], self.number[..., None]], axis=2)

    def play(self, actions: Array) -> Array:
        """Pay for right answers, and add the numbers, which have mean 0."""
        self.noise = self.number.mean(axis=1).sum()
        return ((actions == self.sign) + self.number).mean(axis=1)


TASKS = {"Sacrifice": (Sacrifice, 20), "Weather": (Weather, 8)}
"""Environment and steps of a rollout."""
ALGORITHMS = {
    "poca": (POCAAgent, False),
    "ppo": (PPOLightningAgent, False),
    "ppo_own_reward": (PPOLightningAgent, True),
}
"""Agent, and whether an agent that has left gets no more rewards."""


class History(Callback):
    """The teams' mean return in each iteration."""

    def __init__(self) -> None:
        """Has none yet."""
        self.returns: list[float] = []

    def on_iteration_end(self, state: Any) -> None:  # noqa: ANN401
        """Remember it."""
        self.returns.append(state.metrics["game/team_return"])


def run(task: str, algorithm: str, seed: int) -> float:
    """Train for 100,000 agent-steps; the mean return of the last ten iterations."""
    (env, num_steps), (agent, own_reward), history = TASKS[task], ALGORITHMS[algorithm], History()
    args = TrainArgs(
        total_timesteps=100_000, num_steps=num_steps, update_epochs=4, minibatch_size=512, gamma=0.99, seed=seed
    )
    summary = train(
        Fabric(accelerator="cpu", devices=1, loggers=[]),
        partial(env, own_reward=own_reward),
        partial(agent, actor_lr=3e-4, critic_lr=1e-3, entropy_coef=0.01),
        args,
        callbacks=[history],
        plain=True,
    )
    if summary["stopped_early"]:
        sys.exit("stopped")
    return float(np.mean(history.returns[-10:]))


def main() -> None:
    """Measures and prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--algorithms", nargs="*", default=list(ALGORITHMS), choices=list(ALGORITHMS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--results", type=Path, default=Path("runs/poca.json"))
    options = parser.parse_args()
    done = json.loads(options.results.read_text(encoding="utf-8")) if options.results.exists() else {}
    found: dict[str, Any] = {"machine": describe_machine()}
    for task, algorithm in itertools.product(options.tasks, options.algorithms):
        if (task, algorithm) == ("Weather", "ppo_own_reward"):  # nobody leaves
            continue
        for seed in options.seeds:
            if (name := f"{task} {algorithm} {seed}") not in done:
                done[name] = run(task, algorithm, seed)
                options.results.parent.mkdir(parents=True, exist_ok=True)
                options.results.write_text(json.dumps(done, indent=1), encoding="utf-8")
        returns = [done[f"{task} {algorithm} {seed}"] for seed in options.seeds]
        found[f"{task} {algorithm}"] = {"returns": returns} | band(returns)
        print(task, algorithm, found[f"{task} {algorithm}"], file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
