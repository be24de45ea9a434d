"""RecurrentPPOAgent and RecurrentMemory against plain loops over the published equations, in float64."""

import itertools
import math

import gymnasium
import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from agents.parts.memory import RecurrentMemory
from agents.recurrent import RecurrentPPOAgent
from fabric_rl.types import Minibatch

OBS = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float32)
ACTIONS = gymnasium.spaces.Discrete(5)
LENGTH, ROWS, MEMORY = 12, 5, 16
CELLS = pytest.mark.parametrize("cell", ["lstm", "gru"])


def agent_with(seed=0, **settings) -> RecurrentPPOAgent:
    """An agent whose policy is far from uniform."""
    torch.manual_seed(seed)
    small = {"hidden_sizes": (10,), "memory_size": MEMORY, "sequence_length": LENGTH}
    small |= {"actor_hidden_sizes": (9,), "critic_hidden_sizes": (7,)}
    agent = RecurrentPPOAgent(OBS, ACTIONS, **(small | settings))
    with torch.no_grad():
        agent.policy_head.layer.weight *= 100
        for parameter in agent.memory.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return agent


def episode_starts(length=LENGTH, rows=ROWS):
    """Row 0 has none; row 1 one at the first step; the others some inside, two of them in consecutive steps."""
    starts = torch.zeros(length, rows, dtype=torch.bool)
    starts[0, 1] = starts[4, 2] = starts[5, 2] = starts[length - 1, 3] = True
    starts[0, 4] = starts[2, 4] = starts[6, 4] = starts[9, 4] = True
    return starts


def randoms(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def reference_step(memory, x, state):
    """One row. LSTM: Gers et al. 2000, gates in torch's order i, f, g, o; GRU: torch's variant, r, z, n."""
    cell = memory.cell
    w_ih, w_hh, b_ih, b_hh = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    size = memory.hidden_size
    if memory.is_lstm:
        h, c = state[:size], state[size:]
        gates = linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)
        i, f, g, o = (gates[k * size : (k + 1) * size] for k in range(4))
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, torch.cat([h, c])
    a, b = linear(x, w_ih, b_ih), linear(state, w_hh, b_hh)
    r = torch.sigmoid(a[:size] + b[:size])
    z = torch.sigmoid(a[size : 2 * size] + b[size : 2 * size])
    n = torch.tanh(a[2 * size :] + r * b[2 * size :])
    h = (1 - z) * n + z * state
    return h, h


def reference(agent, obs, state, starts):
    """h `[L, S, H]` and the last memory `[S, M]`, row by row and step by step."""
    columns, last = [], []
    for row in range(obs.shape[1]):
        memory, outputs = state[row], []
        for step in range(len(obs)):
            if starts[step, row]:
                memory = torch.zeros_like(memory)
            encoded = obs[step, row]
            for layer in agent.encoder:
                encoded = layer(encoded)
            hidden, memory = reference_step(agent.memory, encoded, memory)
            outputs.append(hidden)
        columns.append(torch.stack(outputs))
        last.append(memory)
    return torch.stack(columns, dim=1), torch.stack(last)


def sequences(agent, seed=3, burn_in=0) -> Minibatch:
    """Acts step by step as the trainer does; the first `burn_in` of the steps become the burn-in."""
    steps = burn_in + LENGTH
    obs, starts = randoms(steps, ROWS, 6), episode_starts(steps)
    first = state = randoms(ROWS, MEMORY, seed=7) / 2
    acted = []
    torch.manual_seed(seed)
    with torch.no_grad():
        for t in range(steps):
            acted.append(agent.act(obs[t], state.masked_fill(starts[t].unsqueeze(-1), 0)))
            state = acted[-1].state
    action, log_prob, value = (torch.stack(rows)[burn_in:] for rows in list(zip(*acted, strict=True))[:3])
    advantage, returns = randoms(2, LENGTH, ROWS, seed=8)
    batch = Minibatch(obs[burn_in:], action, log_prob, value, advantage, returns, None, first, starts[burn_in:])
    return batch._replace(burn_in_obs=obs[:burn_in], burn_in_start=starts[:burn_in]) if burn_in else batch


def in_double(batch):
    return Minibatch(*(x.double() if x is not None and x.is_floating_point() else x for x in batch))


def reference_loss(agent, batch, hidden):
    """PPO's loss from `hidden [L, S, H]`: Schulman et al. 2017, equations 7 and 9, with torch's Categorical."""
    policy = torch.distributions.Categorical(logits=agent.policy_head.layer(agent.actor(hidden)))
    ratio = (policy.log_prob(batch.action) - batch.log_prob).exp()
    surrogate = torch.minimum(ratio * batch.advantage, ratio.clamp(0.8, 1.2) * batch.advantage)
    values = agent.value_head.layer(agent.critic(hidden))[..., 0]
    return -surrogate.mean() + 0.25 * (values - batch.returns).square().mean() - 0.02 * policy.entropy().mean()


@CELLS
@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("by_steps", [False, True])
def test_unrolling_is_the_plain_loop_in_float64(cell, resets, by_steps):
    """Outputs, last memory and gradients (weights, inputs, first memory), also where episodes end inside."""
    agent = agent_with(cell=cell).double()
    starts = episode_starts() if resets else torch.zeros(LENGTH, ROWS, dtype=torch.bool)
    obs = randoms(LENGTH, ROWS, 6, dtype=torch.float64)
    state = randoms(ROWS, MEMORY, seed=7, dtype=torch.float64).requires_grad_()
    expected, last = reference(agent, obs, state, starts)
    encoded = agent.encoder(obs)
    memory = agent.memory  # `_loop` is what `unroll` does on a GPU
    got = memory._loop(encoded, state, starts)[0] if by_steps else memory.unroll(encoded, state, starts)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(agent.memory.after(encoded, state, starts), last, rtol=0, atol=1e-13)
    weight = randoms(*expected.shape, seed=9, dtype=torch.float64)
    sources = [*agent.memory.parameters(), *agent.encoder.parameters(), state]
    for one, other in zip(
        torch.autograd.grad((got * weight).sum(), sources),
        torch.autograd.grad((expected * weight).sum(), sources),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@CELLS
def test_training_step_is_the_loss_and_gradient_of_the_plain_loop(cell):
    agent = agent_with(cell=cell, entropy_coef=0.02)
    batch = sequences(agent)
    batch = batch._replace(log_prob=batch.log_prob + 0.3 * batch.returns)  # ratios on both sides of the clip range
    agent, batch = agent.double(), in_double(batch)
    agent_float = agent_with(cell=cell, entropy_coef=0.02)

    expected = reference_loss(agent, batch, reference(agent, batch.obs, batch.state, batch.episode_start)[0])
    gradients = torch.autograd.grad(expected, list(agent.parameters()))
    loss, stats = agent_float.training_step(
        Minibatch(*(x.float() if x is not None and x.is_floating_point() else x for x in batch))
    )
    assert 0 < stats["clip_fraction"] < 1
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
    for (name, parameter), gradient in zip(agent_float.named_parameters(), gradients, strict=True):
        (got,) = torch.autograd.grad(loss, parameter, retain_graph=True)
        torch.testing.assert_close(got.double(), gradient, rtol=1e-4, atol=1e-5, msg=name)


@CELLS
def test_burn_in_is_running_from_the_earlier_memory_with_the_present_weights(cell):
    agent = agent_with(cell=cell, burn_in=3)
    batch = sequences(agent, burn_in=3)
    with torch.no_grad():
        for parameter in agent.parameters():  # learning has changed them since the rollout
            parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(4))
    loss, _ = agent.training_step(batch)
    gradients = torch.autograd.grad(loss, list(agent.parameters()))

    with torch.no_grad():
        state = batch.state
        for obs, start in zip(batch.burn_in_obs, batch.burn_in_start, strict=True):
            state = agent.act(obs, state.masked_fill(start.unsqueeze(-1), 0)).state
    later = batch._replace(state=state, burn_in_obs=None, burn_in_start=None)
    with pytest.raises(ValueError, match=r"RecurrentPPOAgent learns from sequences .*burn_in_obs") as caught:
        agent.training_step(later)
    assert "\n" not in str(caught.value)
    agent.burn_in = 0
    expected, _ = agent.training_step(later)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    for one, other in zip(gradients, torch.autograd.grad(expected, list(agent.parameters())), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)  # no gradient through the burn-in
    ignored, _ = agent.training_step(later._replace(state=batch.state))
    assert abs(ignored.item() - loss.item()) > 1e-4


@CELLS
def test_nothing_passes_from_one_episode_to_the_next(cell):
    agent = agent_with(cell=cell)
    obs, starts = randoms(LENGTH, ROWS, 6).requires_grad_(), episode_starts()
    state = randoms(ROWS, MEMORY, seed=7).requires_grad_()
    hidden = agent.memory.unroll(agent.encoder(obs), state, starts)
    for step, row in starts.nonzero().tolist():
        alone = agent.memory.step(agent.encoder(obs[step, row][None]), torch.zeros(1, MEMORY))[0][0]
        torch.testing.assert_close(hidden[step, row], alone, rtol=0, atol=1e-6)
        if step:
            (back,) = torch.autograd.grad(hidden[step:, row].sum(), obs, retain_graph=True)
            assert not back[:step].any() and back[step, row].any()
            (kept,) = torch.autograd.grad(hidden[step - 1, row].sum(), state, retain_graph=True)
            begins_before = starts[:step, row].any()
            assert bool(kept[row].any()) != bool(begins_before)
    (kept,) = torch.autograd.grad(hidden[-1, 0].sum(), state)
    assert kept[0].any() and not kept[1:].any()


def test_a_gate_as_large_as_training_can_make_it_does_not_keep_a_forgotten_memory():
    """The fused LSTM forgets through its gates: large weights must not reopen them."""
    agent = agent_with()
    with torch.no_grad():
        for weight in agent.memory.parameters():
            weight *= 30
    starts = episode_starts()
    encoded = agent.encoder(randoms(LENGTH, ROWS, 6))
    state = randoms(ROWS, MEMORY, seed=7)
    expected = agent.memory._loop(encoded, state, starts)[0]
    torch.testing.assert_close(agent.memory.unroll(encoded, state, starts), expected, rtol=0, atol=1e-4)


@CELLS
def test_autocast_leaves_the_memory_in_float32(cell):
    """Rounding to bfloat16 at every step would add up."""
    memory = agent_with(cell=cell).memory
    inputs, state, starts = randoms(LENGTH, ROWS, 10), randoms(ROWS, MEMORY, seed=7), episode_starts()

    def results():
        return *memory.step(inputs[0], state), memory.unroll(inputs, state, starts), memory.after(inputs, state, starts)

    expected = results()
    with torch.autocast("cpu", torch.bfloat16):
        got = results()
        halved = memory.unroll(inputs.bfloat16(), state, starts)
    assert all(map(torch.equal, got, expected))
    assert halved.dtype == torch.float32


def test_memory_is_carried_and_read():
    agent = agent_with()
    obs, state = randoms(ROWS, 6), randoms(ROWS, MEMORY)
    acted = agent.act(obs, state)
    assert acted.state.shape == (ROWS, MEMORY) and acted.state.dtype == torch.float32
    hidden, cell = acted.state.chunk(2, dim=-1)
    torch.testing.assert_close(acted.value, agent.value_head(agent.critic(hidden)))  # h first, then c
    assert cell.abs().max() > hidden.abs().max()
    torch.testing.assert_close(agent.value(obs, state), acted.value)
    assert (agent.value(obs, acted.state) - acted.value).abs().min() > 1e-4
    beginning = agent.act(obs, torch.zeros(ROWS, MEMORY), deterministic=True)
    for one, other in zip(agent.act(obs, deterministic=True), beginning, strict=True):
        assert torch.equal(one, other)


@CELLS
def test_initialisation(cell):
    torch.manual_seed(0)
    memory = RecurrentMemory(8, MEMORY, cell, ortho_init=True)
    size = memory.hidden_size
    gates = [weight.split(size) for weight in (memory.cell.weight_ih, memory.cell.weight_hh)]
    assert [len(blocks) for blocks in gates] == [4 if cell == "lstm" else 3] * 2
    for block in itertools.chain(*gates):
        square = block @ block.T if block.shape[0] <= block.shape[1] else block.T @ block
        torch.testing.assert_close(square, torch.eye(len(square)), rtol=0, atol=1e-5)
    bias = memory.cell.bias_ih + memory.cell.bias_hh
    if cell == "lstm":
        assert (bias[size : 2 * size] == 1).all() and bias.sum() == size
    else:
        assert not bias.any()
    # Input 0 and memory 1, seen by no gate: a step keeps sigmoid(1) of an LSTM's c and sigmoid(0) of a GRU's h.
    with torch.no_grad():
        memory.cell.weight_hh.zero_()
        state = memory.step(torch.zeros(1, 8), torch.ones(1, MEMORY))[1]
    kept = 1 / (1 + math.exp(-1)) if cell == "lstm" else 0.5
    torch.testing.assert_close(state[0, -size:], torch.full((size,), kept))
    torch.manual_seed(0)
    plain = RecurrentMemory(8, MEMORY, cell, ortho_init=False)
    torch.manual_seed(0)
    own = (torch.nn.LSTMCell if cell == "lstm" else torch.nn.GRUCell)(8, size)
    assert all(map(torch.equal, plain.cell.parameters(), own.parameters()))


@pytest.mark.parametrize(("cell", "size"), [("lstm", 16), ("gru", 15)])
def test_an_odd_memory_is_rounded_up_where_it_has_two_halves(cell, size):
    agent = agent_with(memory_size=15, cell=cell)
    assert agent.memory_size == size
    assert agent.act(randoms(ROWS, 6)).state.shape == (ROWS, size)


def test_steps_without_memory_are_refused():
    agent = agent_with()
    batch = sequences(agent)
    for missing in ("state", "episode_start"):
        with pytest.raises(ValueError, match="RecurrentPPOAgent learns from sequences with state and episode_start"):
            agent.training_step(batch._replace(**{missing: None}))


@pytest.mark.slow
@CELLS
def test_learns_what_only_memory_can_tell(cell):
    """The first observation of an episode shows the action that pays ten steps later; the others are noise."""
    agent = agent_with(cell=cell, actor_lr=5e-3, critic_lr=5e-3, hidden_sizes=(16,), memory_size=32)
    with torch.no_grad():
        agent.policy_head.layer.weight /= 100
    optimizer = agent.configure_optimizers()
    torch.manual_seed(5)
    rows, accuracy = 64, 0.0
    for _ in range(60):
        answer = torch.randint(5, (rows,))
        obs = 0.1 * torch.randn(LENGTH, rows, 6)
        obs[0, torch.arange(rows), answer] += 2
        starts = torch.zeros(LENGTH, rows, dtype=torch.bool)
        starts[0] = True
        state, acted = torch.zeros(rows, 32), []
        with torch.no_grad():
            for t in range(LENGTH):
                acted.append(agent.act(obs[t], state))
                state = acted[-1].state
        action, log_prob, value = (torch.stack(column) for column in list(zip(*acted, strict=True))[:3])
        reward = (action == answer).float()
        accuracy = reward[-2:].mean().item()
        memory = torch.zeros(rows, 32)
        batch = Minibatch(obs, action, log_prob, value, reward - reward.mean(), reward, None, memory, starts)
        for _ in range(4):
            loss, _ = agent.training_step(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert accuracy > 0.8  # chance is 0.2
