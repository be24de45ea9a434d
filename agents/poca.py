"""POCAAgent: PPO for teams, with a critic that sees all teammates and credits agents that have left (MA-POCA)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from agents.parts.base import PPOAgent, actor_obs_size, flat_obs_size, hidden_layers
from agents.parts.heads import linear
from fabric_rl.base.settings import Count, Positive
from fabric_rl.learning.action_encoder import ActionEncoder
from fabric_rl.learning.imitation import DemonstrationBatch
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.types import ActOutput, Minibatch, Stats, TeamAgent


@dataclass(eq=False, repr=False)
class POCAAgent(PPOAgent, TeamAgent):
    r"""PPO for teams (MA-POCA): each agent acts by its own observation; the critic sees its teammates, too.

    Cohen et al. 2021, "On the Use and Misuse of Absorbing States in Multi-agent Reinforcement Learning". The value of a
    team and the counterfactual baseline of agent j, which knows the actions of the others but not that of j, have
    common layers, as in ML-Agents:

    .. math::
        V = v(\mathrm{RSA}(g(o^1), ..., g(o^k))), \qquad
        Q_j = v(\mathrm{RSA}(g(o^j), (f(o^i, a^i))_{i \neq j}))

    with the encoders g and f, residual self-attention RSA over the agents that are present, and the layers v. Both
    learn from the lambda return y of the team's reward, and the advantage of agent j is :math:`y - Q_j` (see
    `fabric_rl.CounterfactualAdvantage`):

    .. math:: L = L_\mathrm{PPO} + c_v \tfrac12 \mathrm{mean}((V - y)^2) + c_v \tfrac12 \mathrm{mean}((Q_j - y)^2)

    The order of the teammates does not matter, and no weight depends on their number. The environment tells which of
    its agents are teammates (`fabric_rl.types.HasTeams`). With `clip_value_loss`, only the first error is clipped.

    See `PPOAgent` for the settings that all PPO agents have.
    """

    actor_hidden_sizes: Sequence[Count] = (64, 64)
    """Sizes of the hidden layers of the policy."""
    critic_hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers of the critic after the attention."""
    embed_size: Count = 64
    """Size of an agent's embedding in the critic, a multiple of num_heads."""
    num_heads: Count = 4
    """Number of attention heads."""
    activation: type[nn.Module] = nn.Tanh
    """Class of the activations, for example torch.nn.ReLU."""
    layer_norm: bool = False
    """Layer normalization before each activation of the hidden layers (the attention always has it)."""
    normalize_obs: bool = False
    """Standardize observations with their running mean and standard deviation."""
    clip_obs: Positive = 5.0
    """Bound of normalized observations, in standard deviations; only with `normalize_obs`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        if self.embed_size % self.num_heads:
            raise ValueError(
                f"{name}: --agent.embed_size must be a multiple of --agent.num_heads, got {self.embed_size} and "
                f"{self.num_heads}"
            )
        inputs = flat_obs_size(name, self.observation_space, privileged=True)
        self.actor_inputs = actor_obs_size(self.observation_space)
        shape = (self.activation, self.layer_norm, self.ortho_init)
        self.normalizer = ObsNormalizer((inputs,), self.clip_obs) if self.normalize_obs else nn.Identity()
        self.actor = hidden_layers(self.actor_inputs, self.actor_hidden_sizes, *shape)
        self.embed_obs = hidden_layers(inputs, (self.embed_size,), *shape)
        last = [self.actor_inputs, *self.actor_hidden_sizes][-1], [self.embed_size + 1, *self.critic_hidden_sizes][-1]
        self.add_heads(*last)  # raises a ValueError for other action spaces
        self.actions = ActionEncoder(self.action_space)
        self.embed_obs_action = hidden_layers(inputs + self.actions.size, (self.embed_size,), *shape)
        self.attention = ResidualSelfAttention(self.embed_size, self.num_heads, self.ortho_init)
        self.critic = hidden_layers(self.embed_size + 1, self.critic_hidden_sizes, *shape)

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        return ActOutput(*self.policy_head.sample(self.policy_params(obs), deterministic, action_mask))

    def policy_params(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        features = self.actor(self.normalizer(obs.float())[..., : self.actor_inputs])
        params: Tensor = self.policy_head(features)
        return params

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return the values of `obs [N, ...]`, each of a team with a single agent."""
        return self.team_value(obs.unsqueeze(1), torch.ones_like(obs[:, :1], dtype=torch.bool))

    def team_value(self, obs: Tensor, present: Tensor) -> Tensor:
        return self._values(self.embed_obs(self.normalizer(obs.float())), present)

    def baseline(self, obs: Tensor, action: Tensor, present: Tensor) -> Tensor:
        obs = self.normalizer(obs.float())
        actions = self.actions(action.flatten(0, 1)).view(*obs.shape[:2], -1)
        mates = self.embed_obs_action(torch.cat([obs, actions], dim=-1)[:, 1:])
        own = torch.ones_like(present[:, :1])
        return self._values(
            torch.cat([self.embed_obs(obs[:, :1]), mates], dim=1), torch.cat([own, present[:, 1:]], dim=1)
        )

    def _values(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Return the values `[B]` or `[B, K]` of teams with the embeddings `[B, M, E]`."""
        values: Tensor = self.value_head(self.critic(self.attention(embedded, present)))
        return values

    def configure_optimizers(self) -> torch.optim.Optimizer:
        critic = [self.embed_obs, self.embed_obs_action, self.attention, self.critic, self.value_head]
        return self.adam(actor=[self.actor, self.policy_head], critic=critic)

    def evaluate_steps(self, minibatch: Minibatch | DemonstrationBatch) -> tuple[Tensor, Tensor]:
        params = self.policy_params(minibatch.obs)
        if isinstance(minibatch, DemonstrationBatch):  # all parameters get a gradient, as DDP needs; its weight is 0
            pair, actions = (torch.stack([x, x], dim=1) for x in (minibatch.obs, minibatch.action))
            return params, self.baseline(pair, actions, torch.ones_like(pair[..., 0], dtype=torch.bool))
        assert minibatch.team_obs is not None and minibatch.team_present is not None
        return params, self.team_value(minibatch.team_obs, minibatch.team_present)

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # as the base's
        """Return the loss, see the class, and PPO's statistics with that of the baseline."""
        loss, stats = super().training_step(minibatch)
        assert minibatch.team_obs is not None
        assert minibatch.team_action is not None and minibatch.team_present is not None
        baseline = self.baseline(minibatch.team_obs, minibatch.team_action, minibatch.team_present)
        error = 0.5 * (baseline - minibatch.returns).square().mean()
        return loss + self.value_coef * error, stats | {"baseline_loss": error.detach()}


class ResidualSelfAttention(nn.Module):
    """Self-attention over a team with a residual and layer norms, then the mean: `[B, M, E]` -> `[B, E + 1]`.

    The last feature is the logarithm of the number of agents, which a mean does not contain.
    """

    def __init__(self, embed_size: int, num_heads: int, ortho_init: bool) -> None:
        super().__init__()
        gain = 1.0 if ortho_init else None
        self.num_heads = num_heads
        self.norm_in, self.norm_out = nn.LayerNorm(embed_size), nn.LayerNorm(embed_size)
        self.query, self.key, self.value, self.out = (linear(embed_size, embed_size, gain) for _ in range(4))
        self.key.register_parameter("bias", None)  # the softmax would cancel it

    def forward(self, agents: Tensor, present: Tensor) -> Tensor:
        """Encode the embeddings of the agents; if none of a team is `present [B, M]`, all count."""
        present = present | ~present.any(dim=1, keepdim=True)
        agents = agents.masked_fill(~present.unsqueeze(-1), 0)
        normed = self.norm_in(agents)
        query, key, value = (
            layer(normed).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        answer = scaled_dot_product_attention(query, key, value, attn_mask=present[:, None, None, :])
        agents = self.norm_out(agents + self.out(answer.transpose(1, 2).flatten(2)))
        number = present.sum(dim=1, keepdim=True).to(agents.dtype)
        mean = agents.masked_fill(~present.unsqueeze(-1), 0).sum(dim=1) / number
        return torch.cat([mean, number.log()], dim=-1)
