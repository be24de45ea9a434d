"""RecurrentPPOAgent: an LSTM or GRU behind an MLP, trained with PPO on sequences."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import gymnasium
import torch
from torch import Tensor, nn

from agents.parts.base import PPOAgent, ValueHead, check_sizes, hidden_layers, vector_size
from agents.parts.heads import GaussianOptions, policy_head
from agents.parts.memory import RecurrentMemory, check_memory
from fabric_rl.learning.imitation import Shown
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.schedules import Schedule
from fabric_rl.types import ActOutput, Minibatch


class RecurrentPPOAgent(PPOAgent):
    """PPO with memory: policy and value function share hidden layers and an LSTM or GRU, then have layers of their own.

    The agent is trained on sequences of `sequence_length` steps that start with the memory stored in the rollout. That
    memory was computed with older weights; `burn_in` refreshes it with the current weights over the preceding steps
    (Kapturowski et al. 2019, section 3). Gradients flow only within a sequence, and never from one episode into
    another.

    See `PPOAgent` for the settings that all PPO agents have.

    Args:
        observation_space: Observation space of one sub-environment, a Box with one axis.
        hidden_sizes: Sizes of the hidden layers before the memory.
        cell: Type of memory: lstm or gru. On the CPU an lstm trains faster.
        memory_size: Numbers remembered from step to step. As in ML-Agents, an LSTM uses half of them for its hidden
            state and half for its cell state, so it must be even; a GRU has one state of this size.
        sequence_length: Steps per training sequence, and so the reach of the gradients; must divide num_steps.
        burn_in: Steps before each sequence that only refresh its memory with the current weights.
        actor_hidden_sizes: Sizes of the hidden layers of the policy after the memory.
        critic_hidden_sizes: Sizes of the hidden layers of the value function after the memory.
        activation: Class of the activations, for example torch.nn.ReLU.
        layer_norm: Layer normalization before each activation.
        ortho_init: Orthogonal initialization (gain sqrt 2, memory 1, last layers 0.01 for the policy and 1 for the
            value) and zero biases, except 1 for the forget gate of an lstm.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        hidden_sizes: Sequence[int] = (64,),
        cell: Literal["lstm", "gru"] = "lstm",
        memory_size: int = 128,
        sequence_length: int = 64,
        burn_in: int = 0,
        actor_hidden_sizes: Sequence[int] = (64,),
        critic_hidden_sizes: Sequence[int] = (64,),
        activation: type[nn.Module] = nn.Tanh,
        layer_norm: bool = False,
        ortho_init: bool = True,
        actor_lr: float = 1e-3,
        critic_lr: float = 1e-3,
        clip_coef: float | Schedule = 0.2,
        value_coef: float = 0.5,
        entropy_coef: float | Schedule = 0.0,
        clip_value_loss: bool = False,
        value_heads: int = 1,
        normalize_obs: bool = False,
        state_dependent_std: bool = False,
        squash: bool = False,
        log_std_init: float = 0.0,
    ) -> None:
        """Build the networks; raise ValueError if a space or a setting is not supported."""
        super().__init__(
            observation_space, action_space, actor_lr, critic_lr, clip_coef, value_coef, entropy_coef, clip_value_loss
        )
        name = type(self).__name__
        inputs = vector_size(name, observation_space)
        check_sizes(
            name,
            hidden_sizes=hidden_sizes,
            actor_hidden_sizes=actor_hidden_sizes,
            critic_hidden_sizes=critic_hidden_sizes,
            memory_size=memory_size,
            sequence_length=sequence_length,
            value_heads=value_heads,
        )
        check_memory(name, cell, memory_size, burn_in)
        self.value_heads = value_heads
        self.memory_size, self.sequence_length, self.burn_in = memory_size, sequence_length, burn_in

        self.normalizer = ObsNormalizer((inputs,)) if normalize_obs else nn.Identity()
        shape = (activation, layer_norm, ortho_init)
        self.encoder = hidden_layers(inputs, hidden_sizes, *shape)
        self.memory = RecurrentMemory([inputs, *hidden_sizes][-1], memory_size, cell, ortho_init)
        self.actor = hidden_layers(self.memory.hidden_size, actor_hidden_sizes, *shape)
        self.critic = hidden_layers(self.memory.hidden_size, critic_hidden_sizes, *shape)
        gaussian = GaussianOptions(state_dependent_std, squash, log_std_init)
        actor_size, critic_size = (
            [self.memory.hidden_size, *sizes][-1] for sizes in (actor_hidden_sizes, critic_hidden_sizes)
        )
        self.policy_head = policy_head(name, actor_size, action_space, gaussian, ortho_init)
        self.value_head = ValueHead(critic_size, value_heads, ortho_init)

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        """Choose actions, see `ActorCritic.act`; without `state`, an episode begins."""
        features, state = self._step(obs, state)
        action, log_prob = self.policy_head.sample(self.policy_head(self.actor(features)), deterministic, action_mask)
        return ActOutput(action, log_prob, self.value_head(self.critic(features)), state)

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return values, see `ActorCritic.value`; without `state`, an episode begins."""
        values: Tensor = self.value_head(self.critic(self._step(obs, state)[0]))
        return values

    def policy_params(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        params: Tensor = self.policy_head(self.actor(self._step(obs, state)[0]))
        return params

    def evaluate_steps(self, minibatch: Minibatch | Shown) -> tuple[Tensor, Tensor]:
        """Evaluate a minibatch of sequences, see `PPOAgent.evaluate_steps`.

        Raises:
            ValueError: The minibatch contains no sequences with their memory, or lacks the burn-in.
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
        """Return Adam with one parameter group for the value function's own layers and one for everything else."""
        actor = [self.encoder, self.memory, self.actor, self.policy_head]
        return self.adam(actor=actor, critic=[self.critic, self.value_head])

    def _encode(self, obs: Tensor) -> Tensor:
        encoded: Tensor = self.encoder(self.normalizer(obs.float()))
        return encoded

    def _step(self, obs: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Features `[N, hidden_size]` and the memory after the step."""
        if state is None:
            state = torch.zeros(len(obs), self.memory_size, device=obs.device)
        return self.memory.step(self._encode(obs), state)
