"""SACLightningAgent: a policy and two critics trained with SAC."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

import gymnasium
import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.func import functional_call

from agents.parts.base import actor_obs_size, flat_obs_size, hidden_layers
from agents.parts.heads import demonstrated_log_prob, linear
from agents.parts.memory import RecurrentMemory
from agents.parts.sac_heads import Critics, DiscreteSACHead, make_sac_head
from fabric_rl.base.settings import Between, Count, CountOrZero, Finite, Positive, check_settings
from fabric_rl.learning.imitation import DemonstrationBatch, cloning_loss
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.learning.sac import critic_loss, polyak, soft_value, temperature_loss
from fabric_rl.types import ActOutput, OffPolicyAgent, Sequences, Stats, Transitions


class TwinCritics(nn.Module):
    """Two Q-functions with the same architecture, `[B, inputs]` -> `[2, B, outputs]` float32, and their memory."""

    def __init__(
        self,
        inputs: int,
        hidden_sizes: Sequence[int],
        outputs: int,
        memory: RecurrentMemory | None,
        *shape: Any,  # noqa: ANN401
    ) -> None:
        super().__init__()
        self.memory = memory
        features = [inputs, *hidden_sizes][-1]
        self.networks = nn.ModuleList(
            nn.Sequential(hidden_layers(inputs, hidden_sizes, *shape), linear(features, outputs, None))
            for _ in range(2)
        )
        self.weights = dict(self.named_parameters())  # used in every update, but slow to collect

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.stack([network(inputs) for network in self.networks]).float()

    def frozen(self, inputs: Tensor) -> Tensor:
        """Return the Q-values of all outputs, with a gradient for the inputs only."""
        fixed = {name: p.detach() for name, p in self.weights.items()}
        q: Tensor = functional_call(self, fixed, (inputs,), tie_weights=False)  # none are tied, and searching is slow
        return q


@dataclass(eq=False, repr=False)
class SACLightningAgent(OffPolicyAgent):
    """SAC over vector observations, for Box, Discrete and MultiDiscrete actions (docs/sac.md)."""

    observation_space: gymnasium.Space[Any]
    """Observation space of one sub-environment, a Box with one axis. If it has an attribute `actor_features`, as with
    `envs.PrivilegedObs`, the actor reads only the first `actor_features` columns; the critics read all."""
    action_space: gymnasium.Space[Any]
    """Action space of one sub-environment. A Box needs finite bounds."""
    actor_hidden_sizes: Sequence[Count] = (256, 256)
    """Sizes of the hidden layers of the policy."""
    critic_hidden_sizes: Sequence[Count] = (256, 256)
    """Sizes of the hidden layers of each critic."""
    activation: type[nn.Module] = nn.ReLU
    """Class of the activations, for example torch.nn.ReLU."""
    layer_norm: bool = False
    """Layer normalization before each activation of the critics."""
    actor_lr: Positive = 3e-4
    """Learning rate of the policy."""
    critic_lr: Positive = 3e-4
    """Learning rate of the critics."""
    temperature_lr: Positive = 3e-4
    """Learning rate of the logarithm of the temperature."""
    init_entcoef: Positive = 1.0
    """Initial temperature: the reward that a nat of entropy is worth, above 0."""
    target_entropy: Finite | None = None
    """Entropy in nats that the temperature is tuned to; for Box actions, in units of half the width of the Box.
    Default: minus the number of dimensions of a Box; for other actions, `entropy_share` of the maximum entropy that
    the mask allows."""
    entropy_share: Annotated[float, Between(0, 1, above=True, below=True)] = 0.2
    """Default target of Discrete and MultiDiscrete actions, as a share of the maximum entropy, between 0 and 1."""
    normalize_obs: bool = False
    """Standardize observations with their running mean and standard deviation."""
    clip_obs: Positive = 5.0
    """Bound of normalized observations, in standard deviations; only with `normalize_obs`."""
    value_heads: Count = 1
    """Number of reward signals (K). Each has its own Q-values and discount; the policy maximizes their sum."""
    memory_size: CountOrZero = 0
    """Number of values remembered from step to step, see `RecurrentPPOAgent`; 0: no memory. Policy and critics read the
    same memory in addition to the observation. Only the critics' loss trains it; the target networks have a copy."""
    cell: Literal["lstm", "gru"] = "lstm"
    """Type of memory: lstm or gru."""
    sequence_length: Count = 32
    """Steps per training sequence, and thus how far back gradients of the memory reach; must divide the batch size."""
    burn_in: CountOrZero = 16
    """Steps before each training sequence that refresh the memory stored in the buffer with the current weights."""

    reference: ClassVar[Any] = None
    """See `fabric_rl.imitation.kickstart.Reference`, whose callback sets it."""

    def __post_init__(self) -> None:
        super().__init__(self.observation_space, self.action_space)
        check_settings(self, f"{type(self).__name__}: --agent.")
        name = type(self).__name__
        inputs = flat_obs_size(name, self.observation_space, privileged=True)
        self.columns = actor_obs_size(self.observation_space)
        memory, remembered = None, 0
        if self.memory_size:
            memory = RecurrentMemory(self.columns, self.memory_size, self.cell, ortho_init=True)
            remembered, self.memory_size = memory.hidden_size, memory.memory_size
        else:
            self.sequence_length, self.burn_in = 1, 0  # single steps
        self.actor_inputs = remembered + self.columns
        self.normalizer = ObsNormalizer((inputs,), self.clip_obs) if self.normalize_obs else nn.Identity()
        self.actor = hidden_layers(self.actor_inputs, self.actor_hidden_sizes, self.activation, ortho_init=False)
        features = [self.actor_inputs, *self.actor_hidden_sizes][-1]
        self.policy_head = head = make_sac_head(name, features, self.action_space, self.entropy_share)
        shape = (self.activation, self.layer_norm, False)
        self.critics = TwinCritics(
            remembered + inputs + head.inputs, self.critic_hidden_sizes, self.value_heads * head.outputs, memory, *shape
        )
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(self.init_entcoef)))
        if self.target_entropy is not None and self.target_entropy >= head.greatest_entropy:
            raise ValueError(
                f"{name}: --agent.target_entropy must be below the maximum entropy, {head.greatest_entropy:.3g}, got "
                f"{self.target_entropy}"
            )

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        seen, state = self._encode_step(obs, state)
        params = self._params(seen)
        if self.acts_at_random and not deterministic:
            return ActOutput(*self.policy_head.sample_evenly(params, action_mask), state=state)
        return ActOutput(*self.policy_head.sample(params, deterministic, action_mask), state=state)

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return the soft value (for a Box, the value of the mean action), which is not used for learning."""
        seen, _ = self._encode_step(obs, state)
        expected = self.policy_head.value(self._params(seen), None, bind_obs(self.critics, seen), True)
        found = soft_value(*expected, self.log_temperature.exp())
        return found if self.value_heads > 1 else found.squeeze(-1)

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        if not isinstance(self.action_space, gymnasium.spaces.Discrete) or self.action_space.start:
            return None
        policy = cast(DiscreteSACHead, self.policy_head).policy
        return policy.log_probs(self._params(self._encode_step(obs, state)[0]), action_mask).exp().squeeze(-2)

    def distributions(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> list[Distribution]:
        return [self.policy_head.distribution(self._params(self._encode_step(obs, state)[0]), action_mask)]

    def update_parts(self) -> dict[str, list[nn.Parameter]]:
        """Return the critics, with the memory, and then policy and temperature, which learn from the new critics."""
        policy = [*self.actor.parameters(), *self.policy_head.parameters(), self.log_temperature]
        return {"critics": list(self.critics.parameters()), "policy": policy}

    def training_step(self, minibatch: Transitions) -> tuple[Tensor, Stats]:  # type: ignore[override]  # as the base's
        """Return the loss of the part that learns, or the sum of both; they share no parameters."""
        steps = {"critics": self._critic_step, "policy": self._policy_step}
        found = [step(minibatch) for name, step in steps.items() if minibatch.part in (None, name)]
        stats = {name: figure.detach() for _, stats in found for name, figure in stats.items()}
        return torch.stack([loss for loss, _ in found]).sum(), stats

    def _critic_step(self, minibatch: Transitions) -> tuple[Tensor, Stats]:
        obs, next_obs = self._encode_minibatch(minibatch, self.critics)
        head, next_fixed = self.policy_head, next_obs.detach()
        with torch.no_grad():
            target_obs = self._encode_minibatch(minibatch, self.target_critics)[1] if self.memory_size else next_fixed
            expected = head.value(
                self._params(next_fixed), minibatch.next_action_mask, bind_obs(self.target_critics, target_obs)
            )
            reward, discount = (x.reshape(len(x), -1) for x in (minibatch.reward, minibatch.discount))
            target = reward + discount * soft_value(*expected, self.log_temperature.exp())
        q = head.q_of(minibatch.action, bind_obs(self.critics, obs))
        loss = critic_loss(q, target, minibatch.weight)
        error = (q - target).abs().mean(dim=0).sum(dim=-1)
        return loss, {"critic_loss": loss, "q": q.sum(dim=-1).mean(), "td_error": error}

    def _policy_step(self, minibatch: Transitions) -> tuple[Tensor, Stats]:
        with torch.no_grad():  # the policy loss does not train the memory
            obs = self._encode_minibatch(minibatch, self.critics)[0]
        head, temperature = self.policy_head, self.log_temperature.exp().detach()
        params = self._params(obs)
        expected_q, entropy = head.value(params, minibatch.action_mask, bind_obs(self.critics.frozen, obs))
        policy_loss = -soft_value(expected_q, entropy, temperature).sum(dim=1).mean()
        aim: float | Tensor | None = self.target_entropy
        if aim is None:
            aim = head.default_target_entropy(params, minibatch.action_mask)
        stats = {"policy_loss": policy_loss, "entropy": entropy.mean(), "temperature": temperature}
        if self.reference is not None:
            kl = self.reference.divergence(head, params, minibatch)
            policy_loss = policy_loss + self.reference.coef(self.progress.to(params.device)) * kl
            stats |= {"policy_loss": policy_loss, "reference_kl": kl}
        return policy_loss + temperature_loss(self.log_temperature, entropy, aim), stats

    def policy_params(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return the policy parameters `[N, P]` for the inputs of `act`."""
        return self._params(self._encode_step(obs, state)[0])

    def imitate(self, shown: DemonstrationBatch) -> tuple[Tensor, Stats]:
        """Return the imitation loss of the policy, see `fabric_rl.learning.imitation.CanImitate`.

        It also trains the memory. Other layers of the critics and the temperature get gradients of 0, as DDP needs.
        """
        seen, memory = self.normalizer(shown.obs.float()), self.critics.memory
        if memory is not None:
            state, starts = cast(Tensor, shown.state), cast(Tensor, shown.episode_start)
            seen = torch.cat((memory.unroll(seen[..., : self.columns], state, starts), seen), dim=-1)
        head = getattr(self.policy_head, "policy", self.policy_head)
        log_prob = demonstrated_log_prob(head, self._params(seen), shown)
        others = self.log_temperature + torch.stack([p.sum() for p in self.critics.weights.values()]).sum()
        return cloning_loss(log_prob, shown.weight) + 0 * others, {}

    def update_targets(self, tau: float) -> None:
        polyak(list(self.target_critics.weights.values()), list(self.critics.weights.values()), tau)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        groups: list[dict[str, Any]] = [
            {"params": [*self.actor.parameters(), *self.policy_head.parameters()], "lr": self.actor_lr},
            {"params": list(self.critics.parameters()), "lr": self.critic_lr},
            {"params": [self.log_temperature], "lr": self.temperature_lr},
        ]
        fused = all(p.device.type in ("cpu", "cuda") for p in self.parameters())
        return torch.optim.Adam(groups, fused=fused or None)

    def _encode_step(self, obs: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the networks' inputs (hidden state, then observations) and the memory after the step."""
        seen, memory = self.normalizer(obs.float()), self.critics.memory
        if memory is None:
            return seen, None
        state = seen.new_zeros(len(seen), self.memory_size) if state is None else state
        remembered, state = memory.step(seen[..., : self.columns], state)
        return torch.cat((remembered, seen), dim=-1), state

    def _encode_minibatch(self, minibatch: Transitions, critics: TwinCritics) -> tuple[Tensor, Tensor]:
        """Return the networks' inputs `[B, ...]` of the replayed and the next steps, with the memory of `critics`."""
        seen, after = (self.normalizer(x.float()) for x in (minibatch.obs, minibatch.next_obs))
        memory = critics.memory
        if memory is None:
            return seen, after
        sequences = cast(Sequences, minibatch.sequences)
        state = cast(Tensor, sequences.state)
        if sequences.burn_in_obs is not None:
            before = self.normalizer(sequences.burn_in_obs.float())[..., : self.columns]
            with torch.no_grad():
                state = memory.after(before, state, cast(Tensor, sequences.burn_in_start))
        read = self.normalizer(sequences.obs.float())[..., : self.columns]
        known = memory.unroll(read, state, sequences.episode_start).flatten(0, 1)
        return torch.cat((known[sequences.now], seen), dim=-1), torch.cat((known[sequences.after], after), dim=-1)

    def _params(self, seen: Tensor) -> Tensor:
        params: Tensor = self.policy_head(self.actor(seen[..., : self.actor_inputs]))
        return params


def bind_obs(critics: Any, seen: Tensor) -> Critics:  # noqa: ANN401 - a module, or a function
    """Return the critics of these observations as a function of the action."""
    return lambda action: critics(seen if action is None else torch.cat((seen, action), dim=-1))
