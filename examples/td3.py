"""An off-policy algorithm in one file: TD3, whose deterministic policy learns in every second update only.

    python train_fabric.py --agent examples.td3.TD3Agent --env_id Pendulum-v1 --num_envs 1 \
        --agent.hidden 64 --agent.lr 1e-3 --max_grad_norm 0 --total_timesteps 10_000

Source: Fujimoto et al. 2018, "Addressing Function Approximation Error in Actor-Critic Methods" (arXiv:1802.09477),
algorithm 1.
"""

import copy

import torch
from torch import nn

from fabric_rl import ActOutput, OffPolicyAgent


def network(inputs, hidden, outputs):
    """Return an MLP with two hidden layers."""
    layers = nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))


class TD3Agent(OffPolicyAgent):
    """Two critics and a deterministic policy; networks see actions in -1 to 1, environments in the units of the Box."""

    algorithm = "td3"

    def __init__(
        self,
        observation_space,
        action_space,
        hidden: int = 256,
        lr: float = 3e-4,
        exploration_noise: float = 0.1,
        policy_noise: float = 0.2,
        noise_clip: float = 0.5,
        policy_delay: int = 2,
    ):
        """Build the networks for the spaces of one sub-environment.

        Args:
            observation_space: Space of vectors.
            action_space: Bounded Box.
            hidden: Units of each of the two hidden layers.
            lr: Learning rate of Adam.
            exploration_noise: Standard deviation of the noise added to actions, in half the width of the Box.
            policy_noise: Standard deviation of the noise added to the target policy's actions, in the same unit.
            noise_clip: Largest size of that noise.
            policy_delay: Updates of the critics per update of policy and targets.
        """
        super().__init__(observation_space, action_space)
        self.lr, self.policy_delay, self.exploration_noise = lr, policy_delay, exploration_noise
        self.policy_noise, self.noise_clip = policy_noise, noise_clip
        low, high = torch.as_tensor(action_space.low), torch.as_tensor(action_space.high)
        self.register_buffer("center", (high + low) / 2)
        self.register_buffer("scale", (high - low) / 2)
        self.register_buffer("updates", torch.tensor(0))  # a buffer is saved in checkpoints
        sizes = observation_space.shape[0], action_space.shape[0]
        self.policy = nn.Sequential(network(sizes[0], hidden, sizes[1]), nn.Tanh())
        self.critics = nn.ModuleList(network(sum(sizes), hidden, 1) for _ in range(2))
        self.target_policy = copy.deepcopy(self.policy).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)

    def act(self, obs, state=None, deterministic=False):
        action = self.policy(obs)
        if self.acts_at_random and not deterministic:
            action = 2 * torch.rand_like(action) - 1
        elif not deterministic:
            action = (action + self.exploration_noise * torch.randn_like(action)).clamp(-1, 1)
        return ActOutput(self.center + self.scale * action, obs.new_zeros(len(obs)))  # SAC's loop reads no log_prob

    def value(self, obs, state=None):
        return self.q(self.critics, obs, self.policy(obs)).amin(0)

    def q(self, critics, obs, action):
        """Return the Q-values `[2, B]` of actions in -1 to 1."""
        return torch.stack([critic(torch.cat((obs, action), -1)).squeeze(-1) for critic in critics])

    def update_parts(self):
        return {"critics": list(self.critics.parameters()), "policy": list(self.policy.parameters())}

    def training_step(self, minibatch):
        steps = {"critics": self.critic_step, "policy": self.policy_step}
        found = [step(minibatch) for part, step in steps.items() if minibatch.part in (None, part)]
        return sum(loss for loss, _ in found), {name: x.detach() for _, stats in found for name, x in stats.items()}

    def critic_step(self, minibatch):
        with torch.no_grad():
            action = self.target_policy(minibatch.next_obs)
            noise = (self.policy_noise * torch.randn_like(action)).clamp(-self.noise_clip, self.noise_clip)
            next_q = self.q(self.target_critics, minibatch.next_obs, (action + noise).clamp(-1, 1)).amin(0)
            target = minibatch.reward + minibatch.discount * next_q  # discount is 0 where the episode terminated
        q = self.q(self.critics, minibatch.obs, (minibatch.action - self.center) / self.scale)
        weight = 1 if minibatch.weight is None else minibatch.weight  # --per_alpha
        loss = (weight * (q - target).square()).mean(1).sum()
        return loss, {"critic_loss": loss, "q": q.mean(), "td_error": (q - target).abs().mean(0)}

    def policy_step(self, minibatch):
        if self.updates % self.policy_delay:
            return minibatch.obs.new_zeros(()), {}  # without a gradient: the part rests
        loss = -self.q(self.critics[:1], minibatch.obs, self.policy(minibatch.obs)).mean()
        return loss, {"policy_loss": loss}

    @torch.no_grad()
    def update_targets(self, tau):
        if self.updates % self.policy_delay == 0:
            for mine, target in ((self.policy, self.target_policy), (self.critics, self.target_critics)):
                for new, old in zip(mine.parameters(), target.parameters(), strict=True):
                    old.lerp_(new, tau)
        self.updates += 1

    def configure_optimizers(self):
        return torch.optim.Adam([*self.critics.parameters(), *self.policy.parameters()], lr=self.lr)
