"""AttentionPPOAgent: attention of a car over a set of objects, trained with PPO."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from agents.parts.base import PPOAgent, hidden_layers
from agents.parts.heads import linear
from fabric_rl.base.settings import Count


@dataclass(eq=False, repr=False)
class AttentionPPOAgent(PPOAgent):
    """PPO with attention over the objects of `EntityObs`, shared by policy and value function, for any team size.

    Observations are `[N, E, F]`: one row of F features per object. Row 0 is the car itself; its embedding is the query
    that attends to all objects that are present, including itself. The order of the other rows does not matter, and
    rows without an object affect neither outputs nor gradients. No weight depends on E.

    See `PPOAgent` for the settings that all PPO agents have.
    """

    embed_size: Count = 64
    """Size of an object's embedding, a multiple of num_heads."""
    num_heads: Count = 4
    """Number of attention heads."""
    num_layers: Count = 2
    """Number of attention layers."""
    present_column: int | None = 0
    """Index of the feature that is 0 in rows without an object; the first one in `EntityObs`. None: there are no such
    rows."""
    actor_hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers of the policy after the attention."""
    critic_hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers of the value function after the attention."""
    activation: type[nn.Module] = nn.ReLU
    """Class of the activations, for example torch.nn.GELU."""
    layer_norm: bool = False
    """Layer normalization before each activation of the hidden layers (the attention always has it)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        space = self.observation_space
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 2 or 0 in space.shape:
            raise ValueError(
                f"{name} reads sets of objects (Box [objects, features], as from EntityObs), but the environment has "
                f"{space}; choose --env.obs envs.EntityObs or another --agent"
            )
        features = space.shape[1]
        if self.embed_size % self.num_heads:
            raise ValueError(
                f"{name}: --agent.embed_size must be a multiple of --agent.num_heads, got {self.embed_size} and "
                f"{self.num_heads}"
            )
        if self.present_column is not None and not 0 <= self.present_column < features:
            raise ValueError(
                f"{name}: --agent.present_column must be one of the {features} features, 0..{features - 1}, or null, "
                f"got {self.present_column}"
            )

        shape = (self.activation, self.layer_norm, self.ortho_init)
        self.trunk = ObjectEncoder(features, self)
        self.actor = hidden_layers(self.embed_size, self.actor_hidden_sizes, *shape)
        self.critic = hidden_layers(self.embed_size, self.critic_hidden_sizes, *shape)
        size = self.embed_size
        self.add_heads([size, *self.actor_hidden_sizes][-1], [size, *self.critic_hidden_sizes][-1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.adam(actor=[self.trunk, self.actor, self.policy_head], critic=[self.critic, self.value_head])

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.trunk(obs)
        return self.policy_head(self.actor(features)), self.value_head(self.critic(features))


class ObjectEncoder(nn.Module):
    """Encoder of objects `[N, E, F]` -> `[N, embed_size]`: object 0 attends to all objects that are present."""

    def __init__(self, features: int, settings: AttentionPPOAgent) -> None:
        """Build the layers for objects with `features` columns."""
        super().__init__()
        self.present_column, size = settings.present_column, settings.embed_size
        shape = (settings.num_heads, settings.activation, settings.ortho_init)
        self.embed = nn.Sequential(
            *hidden_layers(features, (size,), settings.activation, ortho_init=settings.ortho_init),
            linear(size, size, 1.0 if settings.ortho_init else None),
        )
        self.object_norm = nn.LayerNorm(size)
        self.layers = nn.ModuleList(ObjectAttention(size, *shape) for _ in range(settings.num_layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, obs: Tensor) -> Tensor:
        """Encode `obs [N, E, F]`."""
        obs, present = obs.float(), None
        if self.present_column is not None:
            # Row 0 always counts as present, so no row of the softmax is empty, even if the observer is absent.
            present = torch.cat([torch.ones_like(obs[:, :1, 0]), obs[:, 1:, self.present_column]], dim=1) != 0
            obs = obs.masked_fill(~present.unsqueeze(-1), 0)  # a weight of 0 alone would not stop NaN
        objects = self.embed(obs)
        query = objects[:, 0]
        objects = self.object_norm(objects)
        for layer in self.layers:
            query = layer(query, objects, present)
        encoded: Tensor = self.norm(query)
        return encoded


class ObjectAttention(nn.Module):
    r"""Pre-norm residual attention (Vaswani et al. 2017; Xiong et al. 2020, figure 1c) with one query per row.

    .. math::
        q' = q + W_o \, \mathrm{attention}(W_q \mathrm{LN}(q), W_k X, W_v X), \qquad
        q'' = q' + \mathrm{MLP}(\mathrm{LN}(q'))

    With a single query :math:`(W_q q)^T W_k x = (W_k^T W_q q)^T x` and :math:`\sum_e a_e W_v x_e = W_v \sum_e a_e x_e`,
    so keys and values are never computed for every object: each head attends to the objects themselves with its own
    query vector. Biases of keys and values would have no effect: the softmax cancels the former, and the bias of `W_o`
    covers the latter.
    """

    def __init__(self, embed_size: int, num_heads: int, activation: type[nn.Module], ortho_init: bool) -> None:
        super().__init__()
        gain = 1.0 if ortho_init else None
        self.num_heads = num_heads
        self.query_norm = nn.LayerNorm(embed_size)
        self.query, self.out = (linear(embed_size, embed_size, gain) for _ in range(2))
        self.key, self.value = (  # [heads, D / heads, D]
            nn.Parameter(linear(embed_size, embed_size, gain).weight.detach().view(num_heads, -1, embed_size))
            for _ in range(2)
        )
        self.mlp = nn.Sequential(
            nn.LayerNorm(embed_size),
            linear(embed_size, 4 * embed_size, math.sqrt(2) if ortho_init else None),
            activation(),
            linear(4 * embed_size, embed_size, gain),
        )

    def forward(self, query: Tensor, objects: Tensor, present: Tensor | None) -> Tensor:
        """Return the query's next embedding `[N, D]`.

        Args:
            query: `[N, D]`.
            objects: `[N, E, D]` normalized embeddings.
            present: `[N, E]` bool, at least one True in each row; None if all objects are present.
        """
        asked = self.query(self.query_norm(query)).unflatten(-1, (self.num_heads, -1))
        asked = torch.einsum("nhd,hdk->nhk", asked, self.key)  # [N, heads, D]
        answer = scaled_dot_product_attention(
            asked.unsqueeze(1),
            objects.unsqueeze(1),
            objects.unsqueeze(1),
            attn_mask=None if present is None else present[:, None, None, :],
            scale=self.key.shape[1] ** -0.5,
        ).squeeze(1)
        answer = torch.einsum("nhk,hdk->nhd", answer, self.value)
        query = query + self.out(answer.flatten(1))
        updated: Tensor = query + self.mlp(query)
        return updated
