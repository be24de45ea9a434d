"""The tree that draws in proportion to weights, against counts and sums by hand."""

import pytest
import torch

from fabric_rl.sac.replay import SumTree


def tree_of(weights):
    tree = SumTree(len(weights), torch.device("cpu"))
    tree.set(torch.arange(len(weights)), torch.tensor(weights))
    return tree


@pytest.mark.parametrize("size", [1, 2, 5, 8, 1000])
def test_the_root_is_the_sum_of_what_was_set_last(size):
    weights = torch.rand(size, generator=torch.Generator().manual_seed(size)).double()
    tree = tree_of(weights.tolist())
    assert tree.total.item() == pytest.approx(weights.sum().item())
    tree.set(torch.tensor([0, size - 1]), torch.tensor([7.0, 7.0]))
    weights[[0, -1]] = 7
    assert tree.total.item() == pytest.approx(weights.sum().item())
    assert torch.equal(tree.leaves, weights.to(tree.leaves))


def test_of_equal_parts_of_the_sum_each_gives_one():
    """8 draws of weights 1, 0, 5, 2: as many as the weights say, whatever is random."""
    found = tree_of([1.0, 0.0, 5.0, 2.0]).draw(8, torch.Generator().manual_seed(0))
    assert torch.bincount(found, minlength=4).tolist() == [1, 0, 5, 2]


def test_a_weight_of_zero_is_never_drawn():
    weights = torch.rand(999, generator=torch.Generator().manual_seed(0)) * 1e-30
    weights[torch.arange(999) % 3 > 0] = 0
    weights[0] = 1e30  # beside which the others are lost in rounding
    drawn = tree_of(weights.tolist()).draw(10_000, torch.Generator().manual_seed(1))
    assert (weights[drawn] > 0).all() and drawn.max() < 999


def test_one_that_is_set_twice_has_the_greatest():
    tree = tree_of([1.0, 1.0])
    tree.set(torch.tensor([1, 1, 1]), torch.tensor([2.0, 5.0, 3.0]))
    assert tree.leaves.tolist() == [1, 5] and tree.total.item() == 6
