"""SumTree: draws numbers in proportion to their weights."""

import torch
from torch import Tensor


class SumTree:
    """A binary tree whose nodes are the sums of their two children (Schaul et al. 2016, appendix B.2.1).

    Drawing and changing `B` of `n` leaves takes `log2 n` operations on tensors of `B` numbers.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        """All weights are 0.

        Args:
            size: Leaves.
            device: Where it lives; float64, but float32 on MPS, which has nothing wider.
        """
        self._depth = max(1, (size - 1).bit_length())
        wide = torch.float32 if device.type == "mps" else torch.float64
        self._nodes = torch.zeros(2 << self._depth, dtype=wide, device=device)  # node i has the children 2i, 2i + 1
        self.leaves = self._nodes[1 << self._depth :][:size]

    @property
    def total(self) -> Tensor:
        """0-dim, the sum of all weights."""
        return self._nodes[1]

    def clear(self) -> None:
        """All weights are 0 again."""
        self._nodes.zero_()

    def set(self, at: Tensor, weights: Tensor) -> None:
        """Gives the leaves `at [B]` the weights, 0-dim or `[B]`, 0 or more; one that comes twice gets the greatest."""
        at = at.to(self._nodes.device)
        self.leaves.scatter_reduce_(0, at, weights.to(self._nodes).expand(len(at)), "amax", include_self=False)
        node = at + (1 << self._depth)
        for _ in range(self._depth):
            node = node // 2
            self._nodes[node] = self._nodes[2 * node] + self._nodes[2 * node + 1]

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """`[count]` leaves, one from each of as many equal parts of the sum; no leaf of weight 0, but all are 0."""
        shares = (torch.arange(count) + torch.rand(count, generator=generator, dtype=torch.float64)) / count
        left_over = shares.to(self._nodes) * self.total
        node = torch.ones(count, dtype=torch.int64, device=self._nodes.device)
        for _ in range(self._depth):
            left = self._nodes[2 * node]
            right = (left_over >= left) & (self._nodes[2 * node + 1] > 0)  # rounding must not lead to a weight of 0
            left_over = torch.where(right, left_over - left, left_over)
            node = 2 * node + right
        return node - (1 << self._depth)
