"""How likely agents say that their actions are: as likely as they are when they act."""

import pytest
import torch
from gymnasium import spaces

from agents import PPOLightningAgent, RecurrentPPOAgent

OBS = spaces.Box(-1, 1, (6,))


@pytest.mark.parametrize("kind", [PPOLightningAgent, RecurrentPPOAgent])
def test_they_are_those_that_it_acts_by(kind):
    torch.manual_seed(0)
    agent = kind(OBS, spaces.Discrete(5), ortho_init=False)
    obs, mask = torch.randn(400, 6), torch.tensor([[True, True, False, True, True]]).expand(400, 5)
    given = {"state": torch.randn(400, agent.memory_size)} if agent.memory_size else {}
    with torch.no_grad():
        found = agent.probabilities(obs, action_mask=mask, **given)
        acted = agent.act(obs, action_mask=mask, **given)
    assert found.shape == (400, 5) and not found[:, 2].any()
    torch.testing.assert_close(found.sum(dim=1), torch.ones(400))
    torch.testing.assert_close(found.gather(1, acted.action[:, None])[:, 0].log(), acted.log_prob)


@pytest.mark.parametrize("space", [spaces.Box(-1, 1, (2,)), spaces.MultiDiscrete([3, 3]), spaces.Discrete(3, start=1)])
def test_there_are_none_of_other_actions(space):
    assert PPOLightningAgent(OBS, space).probabilities(torch.zeros(1, 6)) is None
