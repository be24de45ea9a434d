"""Shared by all tests."""

import torch

torch.set_num_threads(1)  # networks this small are slower with more, and very slow where cores are busy
