"""MultiInputPPOAgent: every entry goes through its own encoder, and nothing else does."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from torch import nn

from agents import ConvPPOAgent, MultiInputPPOAgent, PPOLightningAgent
from envs.adapters.gymnasium_envs import ConcatenatedBox

GRID, OWN = Box(0, 255, (5, 6, 3), np.uint8), Box(-1, 1, (2, 2))
SPACE = ConcatenatedBox({"own": OWN, "grid": GRID})


def agent_with(space=SPACE, **settings):
    torch.manual_seed(0)
    return MultiInputPPOAgent(space, Discrete(3), **{"encoder": "match3", **settings})


def test_every_entry_has_an_encoder_of_its_own():
    agent = agent_with(entry_sizes=(8,), hidden_sizes=(7,))
    obs = torch.randint(256, (4, 94)).float()
    got = []
    for encoder in agent.encoders:
        encoder.register_forward_hook(lambda _, inputs, out: got.append((inputs[0], out)))
    agent.value(obs)
    (own, own_out), (grid, grid_out) = got
    assert torch.equal(own, obs[:, :4].reshape(4, 2, 2)) and torch.equal(grid, obs[:, 4:].reshape(4, 5, 6, 3))
    assert own_out.shape == grid_out.shape == (4, 8) and agent.hidden[0].in_features == 16
    convolutions = [layer for layer in agent.encoders[1].modules() if isinstance(layer, nn.Conv2d)]
    assert [tuple(layer.weight.shape) for layer in convolutions] == [(35, 3, 3, 3), (144, 35, 3, 3)]
    assert not any(isinstance(layer, nn.Conv2d) for layer in agent.encoders[0].modules())


def test_images_are_scaled_by_their_bounds_or_standardised():
    seen = []
    for normalize in (False, True):
        agent = agent_with(normalize_obs=normalize)
        agent.encoders[1][1].register_forward_hook(lambda _, inputs, out: seen.append(inputs[0]))
        agent.value(torch.full((1, 94), 51.0))
    assert torch.allclose(seen[0], torch.tensor(0.2)) and torch.equal(seen[1], torch.full_like(seen[1], 5.0))


CAMERA = ConcatenatedBox({"camera": Box(0, 255, (84, 84, 3), np.uint8), "own": Box(-1, 1, (2,))})
CUBE = ConcatenatedBox({"cube": Box(0, 255, (8, 8, 8), np.uint8)})
VECTOR, IMAGE = Box(-1, 1, (2,)), Box(0, 255, (84, 84), np.uint8)


@pytest.mark.parametrize(
    ("agent", "space", "message"),
    [
        (PPOLightningAgent, CAMERA, "the observation camera is an image; choose --agent agents.MultiInputPPOAgent"),
        (PPOLightningAgent, IMAGE, "choose --agent agents.ConvPPOAgent"),
        (PPOLightningAgent, Dict(a=VECTOR), "--env_id turns Dict, Tuple and Discrete into"),
        (ConvPPOAgent, VECTOR, "choose --agent agents.PPOLightningAgent"),
        (ConvPPOAgent, CAMERA, "choose --agent agents.MultiInputPPOAgent"),
        (MultiInputPPOAgent, VECTOR, "choose --agent agents.PPOLightningAgent"),
        (MultiInputPPOAgent, CUBE, r"cube: .*\(8, 8, 8\) contains the channels; pad or flatten it with a wrapper"),
        (lambda *spaces: MultiInputPPOAgent(*spaces, encoder="simple"), SPACE, "MultiInputPPOAgent: grid: .*match3"),
    ],
)
def test_a_space_that_does_not_fit_names_the_agent_that_does(agent, space, message):
    with pytest.raises(ValueError, match=message) as caught:
        agent(space, Discrete(2))
    assert "\n" not in str(caught.value)


def test_an_entry_may_be_a_number():
    agent = agent_with(ConcatenatedBox({"height": Box(-1, 1, ()), "own": OWN}))
    assert agent.value(torch.zeros(3, 5)).shape == (3,)


def test_small_grids_may_be_vectors():
    assert PPOLightningAgent(SPACE, Discrete(2)).value(torch.zeros(1, 94, dtype=torch.uint8)).shape == (1,)
