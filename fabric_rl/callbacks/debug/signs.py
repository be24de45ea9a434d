"""What usually goes wrong in learning, read from the metrics of an iteration."""

import math
from collections import deque
from collections.abc import Mapping

LOW_ENTROPY = 0.02
"""Share of the greatest entropy seen, below which a policy hardly explores."""
KL_SPIKE = 0.1
"""nats; PPO aims at about 0.01."""
LONG = 10
"""Iterations in a row for which explained variance below zero is no longer a beginning."""
ZERO_GRADIENTS = 0.95


class Signs:
    """Watches the metrics of a run; each sign is told when it appears, and again only after it was gone."""

    def __init__(self) -> None:
        self._entropy, self._bad_values = 0.0, 0
        self._kls: deque[float] = deque(maxlen=20)
        self._shown: set[str] = set()

    def new(self, metrics: Mapping[str, float]) -> list[str]:
        """Signs that these metrics show and the iteration before did not."""
        found = self._all(metrics)
        told = [text for name, text in found.items() if name not in self._shown]
        self._shown = set(found)
        return told

    def _all(self, metrics: Mapping[str, float]) -> dict[str, str]:
        found: dict[str, str] = {}
        broken = sorted(name for name, number in metrics.items() if not math.isfinite(number))
        if broken:
            found["nan"] = f"NaN or infinity in {', '.join(broken)}"
        entropy = metrics.get("ppo/entropy", math.nan)
        self._entropy = max(self._entropy, entropy if math.isfinite(entropy) else 0.0)
        if 0 <= entropy < LOW_ENTROPY * self._entropy:
            found["entropy"] = (
                f"entropy collapsed to {entropy:.3g} from {self._entropy:.3g}: the policy hardly explores; raise "
                "--agent.entropy_coef or lower the learning rate"
            )
        kl = metrics.get("ppo/approx_kl", math.nan)
        usual = sorted(self._kls)[len(self._kls) // 2] if self._kls else 0.0
        if kl > max(KL_SPIKE, 5 * usual):
            found["kl"] = (
                f"the policy moved by a KL of {kl:.3g} in one iteration (usually {usual:.3g}); lower the learning "
                "rate or --update_epochs, or set --target_kl"
            )
        if math.isfinite(kl):
            self._kls.append(kl)
        self._bad_values = self._bad_values + 1 if metrics.get("ppo/explained_variance", 0.0) < 0 else 0
        if self._bad_values >= LONG:
            found["values"] = (
                f"explained variance is below 0 for {self._bad_values} iterations: the values are worse than their "
                "mean; look at the reward's scale (--standardize_returns) and the critic's learning rate"
            )
        if metrics.get("debug/advantage_std", 1.0) < 1e-8:
            found["advantages"] = "all advantages are equal: there is nothing to learn; does the reward ever differ?"
        zero = metrics.get("debug/grad_zero_share", 0.0)
        if zero > ZERO_GRADIENTS:
            found["gradients"] = f"{zero:.1%} of the gradients are zero: dead units, or a loss that depends on nothing"
        return found
