"""RecurrentPPOAgent: an LSTM or GRU behind an MLP, trained with PPO on sequences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, flat_obs_size, hidden_layers
from agents.parts.memory import RecurrentMemory
from fabric_rl.base.settings import Count, CountOrZero, Positive
from fabric_rl.learning.imitation import DemonstrationBatch
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.types import ActOutput, Minibatch


@dataclass(eq=False, repr=False)
class RecurrentPPOAgent(PPOAgent):
    """PPO with memory: policy and value function share hidden layers and an LSTM or GRU, followed by separate layers.

    The agent is trained on sequences of `sequence_length` steps that start with the memory stored in the rollout. That
    memory was computed with older weights; `burn_in` refreshes it with the current weights over the preceding steps
    (Kapturowski et al. 2019, section 3). Gradients flow only within a sequence, and never from one episode into
    another.

    See `PPOAgent` for the settings that all PPO agents have.
    """

    hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers before the memory."""
    cell: Literal["lstm", "gru"] = "lstm"
    """Type of memory: lstm or gru. On the CPU, an lstm trains faster."""
    memory_size: Count = 128
    """Number of values remembered from step to step. As in ML-Agents, an LSTM uses half of them for its hidden state
    and half for its cell state, and an odd number is rounded up; a GRU has one state of this size."""
    sequence_length: Count = 64
    """Steps per training sequence, and thus how far back gradients reach; must divide num_steps."""
    burn_in: CountOrZero = 0
    """Steps before each sequence that only refresh its memory with the current weights."""
    actor_hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers of the policy after the memory."""
    critic_hidden_sizes: Sequence[Count] = (64,)
    """Sizes of the hidden layers of the value function after the memory."""
    activation: type[nn.Module] = nn.Tanh
    """Class of the activations, for example torch.nn.ReLU."""
    layer_norm: bool = False
    """Layer normalization before each activation."""
    normalize_obs: bool = False
    """Standardize observations with their running mean and standard deviation."""
    clip_obs: Positive = 5.0
    """Bound of normalized observations, in standard deviations; only with `normalize_obs`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        inputs = flat_obs_size(type(self).__name__, self.observation_space)

        self.normalizer = ObsNormalizer((inputs,), self.clip_obs) if self.normalize_obs else nn.Identity()
        shape = (self.activation, self.layer_norm, self.ortho_init)
        self.encoder = hidden_layers(inputs, self.hidden_sizes, *shape)
        self.memory = RecurrentMemory([inputs, *self.hidden_sizes][-1], self.memory_size, self.cell, self.ortho_init)
        self.memory_size = self.memory.memory_size
        self.actor = hidden_layers(self.memory.hidden_size, self.actor_hidden_sizes, *shape)
        self.critic = hidden_layers(self.memory.hidden_size, self.critic_hidden_sizes, *shape)
        size = self.memory.hidden_size
        self.add_heads([size, *self.actor_hidden_sizes][-1], [size, *self.critic_hidden_sizes][-1])

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        features, state = self._step(obs, state)
        action, log_prob = self.policy_head.sample(self.policy_head(self.actor(features)), deterministic, action_mask)
        return ActOutput(action, log_prob, self.value_head(self.critic(features)), state)

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        values: Tensor = self.value_head(self.critic(self._step(obs, state)[0]))
        return values

    def policy_params(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        params: Tensor = self.policy_head(self.actor(self._step(obs, state)[0]))
        return params

    def evaluate_steps(self, minibatch: Minibatch | DemonstrationBatch) -> tuple[Tensor, Tensor]:
        """Evaluate a minibatch of sequences, see `PPOAgent.evaluate_steps`.

        Raises:
            ValueError: The minibatch contains no sequences with stored memory, or lacks the burn-in steps.
        """
        state, starts = minibatch.state, minibatch.episode_start
        lacks = self.burn_in and isinstance(minibatch, Minibatch) and minibatch.burn_in_obs is None
        if state is None or starts is None or lacks:
            raise ValueError(
                f"{type(self).__name__} learns from sequences with state and episode_start (and with burn_in_obs and "
                "burn_in_start if --agent.burn_in is set), but the minibatch lacks them"
            )
        if minibatch.burn_in_obs is not None:
            with torch.no_grad():
                encoded = self._encode(minibatch.burn_in_obs)
                state = self.memory.after(encoded, state, cast(Tensor, minibatch.burn_in_start))
        features = self.memory.unroll(self._encode(minibatch.obs), state, starts)
        return self.policy_head(self.actor(features)), self.value_head(self.critic(features))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        actor = [self.encoder, self.memory, self.actor, self.policy_head]
        return self.adam(actor=actor, critic=[self.critic, self.value_head])

    def _encode(self, obs: Tensor) -> Tensor:
        encoded: Tensor = self.encoder(self.normalizer(obs.float()))
        return encoded

    def _step(self, obs: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return features `[N, hidden_size]` and the memory after the step."""
        if state is None:
            state = torch.zeros(len(obs), self.memory_size, device=obs.device)
        return self.memory.step(self._encode(obs), state)
