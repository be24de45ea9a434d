"""Shared by all tests."""

import torch

torch.set_num_threads(1)  # networks this small are slower with more, and very slow where cores are busy


def pytest_collection_modifyitems(items):
    """The integration tests first: their files take longest, and no process shall be left alone at the end."""
    items.sort(key=lambda item: "integration" not in item.path.parts)
