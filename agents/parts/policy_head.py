"""PolicyHead: the last layer of a policy and its distribution's maths, in closed form and in float32.

A head turns features `[..., inputs]` into the parameters `[..., P]` of a distribution over one action space, samples
from them, and evaluates actions. Leading dimensions are arbitrary: `[N]` in a rollout, `[B]` or `[L, S]` in training.
The log-probability of a sample is computed from the action as returned, by the same operations as in `evaluate`, so
PPO's first ratios are 1 up to the rounding of the network itself.
"""

from abc import ABC, abstractmethod

from torch import Tensor, nn
from torch.distributions import Distribution


def linear(inputs: int, outputs: int, gain: float | None) -> nn.Linear:
    """A linear layer, with orthogonal weights of that gain and zero biases, or torch's own ones if `gain` is None."""
    layer = nn.Linear(inputs, outputs)
    if gain is not None:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layer


class PolicyHead(nn.Module, ABC):
    """The policy of one action space over features `[..., inputs]`."""

    def __init__(self, inputs: int, outputs: int, gain: float | None) -> None:
        super().__init__()
        self.layer = linear(inputs, outputs, gain)

    def forward(self, features: Tensor) -> Tensor:
        """The distribution's parameters `[..., P]`, float32 under any precision."""
        params: Tensor = self.layer(features).float()
        return params

    @abstractmethod
    def sample(
        self, params: Tensor, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draws actions with torch's global generator, or takes the most likely ones if `deterministic`.

        Args:
            params: `[..., P]` from `forward`.
            deterministic: No randomness: the mode (of a squashed Gaussian the median).
            action_mask: `[..., n]`, True where an action is allowed; discrete spaces only.

        Returns:
            Actions `[..., *action_space.shape]`, int64 or (Box) float32, and log-probabilities `[...]` float32.
        """

    @abstractmethod
    def evaluate(self, params: Tensor, action: Tensor, action_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log-probabilities of `action` and entropies, both `[...]` float32.

        Args:
            params: `[..., P]` from `forward`.
            action: `[..., *action_space.shape]` as `sample` returned it.
            action_mask: The one that `sample` got.
        """

    @abstractmethod
    def distribution(self, params: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """What `sample` draws from, of batch shape `[...]`, to be compared with others of the same kind.

        Args:
            params: `[..., P]` from `forward`.
            action_mask: The one that `sample` gets.
        """
