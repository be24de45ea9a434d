"""An algorithm in one file: PQN, Q-learning in many environments at once, without replay buffer and target network.

    python train_fabric.py --agent examples.pqn.PQNAgent --env_id CartPole-v1 --num_envs 16 \
        --num_steps 32 --minibatch_size 128 --total_timesteps 200_000

Source: Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning" (arXiv:2407.04811), algorithm 1.
"""

import torch
from torch import nn

from fabric_rl import GAE, ActorCritic, ActOutput, Saving
from fabric_rl.session.build import Algorithm, build, finish
from fabric_rl.session.monitor import TrainingMonitor
from fabric_rl.session.nan_dump import dump_on_nan
from fabric_rl.session.saving import Saver
from fabric_rl.session.stopping import StopSignals


def train(
    fabric,
    env,
    agent,
    args,
    run=None,
    callbacks=(),
    plain=None,
    saving=Saving(),
    resume=None,
    weights=None,
    inference=False,
):
    """Train a `PQNAgent`; arguments and result are those of `fabric_rl.train`."""
    session = build(fabric, env, agent, args, run, callbacks, GAE(), inference, Algorithm())
    exact = session.begin(resume, weights)
    monitor = TrainingMonitor(session, plain, resume)
    saver = Saver(session, monitor, saving, exact)
    state, hooks, learner = session.state, session.hooks, session.learner

    with hooks, monitor, StopSignals(state) as stops, dump_on_nan(session):
        saver.begin(resume)
        while not state.done:
            hooks.on_iteration_start()
            learner.apply_schedules(state.progress, state.learning_rate, state.learning_rate_factor)
            with monitor("collect"):
                rollout = session.collector.next_rollout()  # [T, N]
            with monitor("targets"):  # values are max_a Q(s, a), so GAE's targets are those of Q(lambda)
                error, targets = session.estimate(rollout)
            batch = hooks.on_learn_start(rollout.flat(error, targets))  # [T * N]
            with session.collector.while_learning(another=state.goes_on), monitor("learn"):  # --overlap plays here
                losses = learner.learn(batch, state.minibatch_size)  # epochs x minibatches of training_step
            state.advance()
            monitor.reduce(losses)
            hooks.on_iteration_end()
            monitor.publish()
            saver.after_iteration(stops.agree(saver.minutes_due))
    return finish(session, monitor, saver)


class PQNAgent(ActorCritic):
    """Q-network with layer normalization, for discrete actions; explores epsilon-greedily."""

    training_loop = staticmethod(train)
    algorithm = "pqn"

    def __init__(
        self,
        observation_space,
        action_space,
        hidden: int = 128,
        lr: float = 1e-3,
        epsilon: float = 1.0,
        last_epsilon: float = 0.05,
        decay: float = 0.3,
    ):
        """Build the network for the spaces of one sub-environment.

        Args:
            observation_space: Space of vectors.
            action_space: Discrete space.
            hidden: Units of each of the two hidden layers.
            lr: Learning rate of RAdam.
            epsilon: Share of random actions at the start.
            last_epsilon: Share of random actions after `decay`.
            decay: Fraction of the run in which epsilon falls linearly, above 0.
        """
        super().__init__(observation_space, action_space)
        self.epsilon, self.last_epsilon, self.decay = epsilon, last_epsilon, decay
        self.lr, self.num_actions = lr, int(action_space.n)
        inputs = observation_space.shape[0]
        self.q = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, self.num_actions),
        )

    def act(self, obs, state=None, deterministic=False):
        best, action = self.q(obs).float().max(-1)
        if not deterministic:
            left = (1 - self.progress / self.decay).clamp(min=0)
            epsilon = self.last_epsilon + left * (self.epsilon - self.last_epsilon)
            explores = torch.rand(len(obs), device=obs.device) < epsilon
            random = torch.randint_like(action, self.num_actions)
            action = torch.where(explores, random, action)
        return ActOutput(action, torch.zeros_like(best), best)

    def value(self, obs, state=None):
        return self.q(obs).float().max(-1).values

    def training_step(self, minibatch):
        chosen = self.q(minibatch.obs).gather(-1, minibatch.action[:, None]).squeeze(-1)
        loss = 0.5 * (chosen - minibatch.returns).square().mean()
        return loss, {"q": chosen.detach().mean()}

    def configure_optimizers(self):
        return torch.optim.RAdam(self.parameters(), lr=self.lr)
