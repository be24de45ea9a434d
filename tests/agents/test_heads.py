"""Policy heads against torch.distributions, hand-computed numbers, autograd and numerical integration."""

import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from torch import distributions as td

from agents.parts.heads import (
    BernoulliHead,
    CategoricalHead,
    GaussianHead,
    GaussianOptions,
    policy_head,
    sample_categorical,
    squash_log_det,
)

LOW, HIGH = np.array([-2, -0.3, 0], np.float32), np.array([4, 0.1, 1], np.float32)
BOX = Box(LOW, HIGH)
SQUASH = GaussianOptions(squash=True)
SPACES = {
    "discrete": (Discrete(5, start=2), None),
    "multi": (MultiDiscrete([3, 5, 2], start=[0, 1, -4]), None),
    "multi_equal": (MultiDiscrete([[3, 3], [3, 3]]), None),
    "binary": (MultiBinary((2, 3)), None),
    "box": (BOX, None),
    "box_scalar": (Box(-1, 1, ()), None),
    "box_matrix": (Box(-np.inf, np.inf, (2, 3)), None),
    "state_dependent": (BOX, GaussianOptions(state_dependent_std=True)),
    "squash": (BOX, SQUASH),
    "squash_state_dependent": (BOX, GaussianOptions(state_dependent_std=True, squash=True)),
}
EVERY = pytest.mark.parametrize("name", list(SPACES))


def make(name, inputs=4, ortho_init=False):
    torch.manual_seed(0)
    space, options = SPACES[name]
    return policy_head("Agent", inputs, space, options, ortho_init)


def features(*lead, inputs=4):
    return 2 * torch.randn(*lead, inputs, generator=torch.Generator().manual_seed(1))


def reference(name, head, params):
    """The same distribution from torch.distributions, over the actions as indices."""
    if name == "discrete":
        return td.Categorical(logits=params)
    if name == "binary":
        return td.Independent(td.Bernoulli(logits=params.reshape(*params.shape[:-1], 2, 3)), 2)
    mean, log_std = params.chunk(2, dim=-1)
    normal = td.Normal(mean, log_std.exp())
    if name.startswith("squash"):
        center, half = torch.tensor((LOW + HIGH) / 2), torch.tensor((HIGH - LOW) / 2)
        normal = td.TransformedDistribution(normal, [td.TanhTransform(), td.AffineTransform(center, half)])
    return td.Independent(normal, 1)


@EVERY
@pytest.mark.parametrize(("lead", "deterministic"), [((7,), False), ((3, 5), True)])
def test_shapes_types_and_spaces(name, lead, deterministic):
    head, space = make(name), SPACES[name][0]
    params = head(features(*lead))
    action, log_prob = head.sample(params, deterministic)
    again, entropy = head.evaluate(params, action)
    assert params.shape[:-1] == lead and params.dtype == torch.float32
    assert action.shape == (*lead, *space.shape)
    assert action.dtype == (torch.float32 if isinstance(space, Box) else torch.int64)
    assert [x.shape for x in (log_prob, again, entropy)] == [lead] * 3
    assert [x.dtype for x in (log_prob, again, entropy)] == [torch.float32] * 3
    assert torch.equal(log_prob, again)  # exactly: PPO's first ratio is 1
    assert not action.requires_grad and log_prob.requires_grad
    if not isinstance(space, Box) or name.startswith("squash"):
        rows = action.reshape(-1, *space.shape).numpy().astype(space.dtype)
        assert all(space.contains(row) for row in rows)


@pytest.mark.parametrize("name", ["discrete", "binary", "box", "state_dependent", "squash", "squash_state_dependent"])
def test_log_prob_entropy_and_gradients_are_those_of_torch_distributions(name):
    head = make(name)
    params = head(features(50)).detach().requires_grad_()
    with torch.no_grad():
        action, _ = head.sample(params)
    log_prob, entropy = head.evaluate(params, action)
    expected = reference(name, head, params)
    expected_log_prob = expected.log_prob(action - 2 if name == "discrete" else action.to(params.dtype))
    squashed = name.startswith("squash")
    # TransformedDistribution inverts tanh less exactly in float32.
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if squashed else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(log_prob, expected_log_prob, **tolerance)
    pairs = [(log_prob, expected_log_prob)]
    if not squashed:
        expected_entropy = expected.entropy()
        torch.testing.assert_close(entropy, expected_entropy, rtol=1e-5, atol=1e-5)
        pairs.append((entropy, expected_entropy))
    for ours, theirs in pairs:
        (gradient,) = torch.autograd.grad(ours.sum(), params, retain_graph=True)
        (expected_gradient,) = torch.autograd.grad(theirs.sum(), params, retain_graph=True)
        torch.testing.assert_close(gradient, expected_gradient, **tolerance)


@pytest.mark.parametrize("name", ["multi", "multi_equal"])
def test_multi_categorical_is_the_product_of_categoricals(name):
    head, space = make(name), SPACES[name][0]
    params = head(features(6, 20)).detach().requires_grad_()
    action, _ = head.sample(params)
    log_prob, entropy = head.evaluate(params, action)
    parts = params.split(space.nvec.flatten().tolist(), dim=-1)
    index = (action - torch.as_tensor(space.start)).flatten(2)
    policies = [td.Categorical(logits=part) for part in parts]
    expected = sum(policy.log_prob(index[..., i]) for i, policy in enumerate(policies))
    expected_entropy = sum(policy.entropy() for policy in policies)
    torch.testing.assert_close(log_prob, expected)
    torch.testing.assert_close(entropy, expected_entropy)
    (gradient,) = torch.autograd.grad((log_prob + entropy).sum(), params, retain_graph=True)
    (expected_gradient,) = torch.autograd.grad((expected + expected_entropy).sum(), params)
    torch.testing.assert_close(gradient, expected_gradient)


def test_the_deviation_starts_as_asked_and_learns():
    head = GaussianHead(4, BOX, GaussianOptions(log_std_init=-1.5))
    params = head(features(6))
    assert torch.equal(params[:, 3:], torch.full((6, 3), -1.5))
    head.evaluate(params, torch.zeros(6, 3))[0].sum().backward()
    assert (head.log_std.grad != 0).all()


@pytest.mark.parametrize("saturation", [-30.0, 0.0, 30.0])
def test_state_dependent_deviation_lies_in_a_tenth_to_one_half_width(saturation):
    head = GaussianHead(4, BOX, GaussianOptions(state_dependent_std=True))
    with torch.no_grad():
        head.layer.weight.zero_()
        head.layer.bias[:3], head.layer.bias[3:] = saturation, saturation
    mean, log_std = head(features(1))[0].chunk(2)
    std, center, half = {-30.0: 0.1, 0.0: 0.55, 30.0: 1.0}[saturation], (LOW + HIGH) / 2, (HIGH - LOW) / 2
    torch.testing.assert_close(log_std.exp(), torch.tensor(std * half))
    torch.testing.assert_close(mean, torch.tensor(center + np.sign(saturation) * half))


def test_state_dependent_deviation_without_bounds_leaves_the_mean_free():
    head = GaussianHead(4, Box(-np.inf, np.inf, (1,)), GaussianOptions(state_dependent_std=True))
    with torch.no_grad():
        head.layer.weight.zero_()
        head.layer.bias[:] = torch.tensor([7.0, 30.0])
    torch.testing.assert_close(head(features(1))[0], torch.tensor([7.0, 0.0]))


def test_squash_log_det_is_the_derivative_of_the_transformation():
    u = torch.linspace(-6, 6, 101, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(u.tanh().sum(), u)
    torch.testing.assert_close(squash_log_det(u.detach()), slope.log(), rtol=1e-9, atol=1e-9)
    (curve,) = torch.autograd.grad(squash_log_det(u).sum(), u)
    torch.testing.assert_close(curve, -2 * u.tanh().detach())  # d/du log(1 - tanh^2 u) = -2 tanh u


@pytest.mark.parametrize("u", [-20.0, 20.0, -500.0, 500.0])
def test_squash_log_det_is_exact_where_tanh_is_saturated(u):
    value = torch.tensor(u, requires_grad=True)
    log_det = squash_log_det(value)  # 1 - tanh^2 u = 4 exp(-2 |u|) (1 + O(exp(-2 |u|)))
    assert log_det.item() == pytest.approx(2 * math.log(2) - 2 * abs(u), rel=1e-6)
    log_det.backward()
    assert value.grad.item() == pytest.approx(-2 * np.sign(u))


@pytest.mark.parametrize("mean", [-20.0, 20.0])
def test_saturated_squashed_actions_have_finite_log_probs_and_gradients(mean):
    head = GaussianHead(4, BOX, SQUASH)
    params = torch.tensor([[mean] * 3 + [0.0] * 3]).repeat(1000, 1).requires_grad_()
    action, log_prob = head.sample(params)
    again, entropy = head.evaluate(params, action)
    assert ((action >= torch.tensor(LOW)) & (action <= torch.tensor(HIGH))).all()
    assert torch.equal(log_prob, again)
    (again + entropy).sum().backward()
    assert all(x.isfinite().all() for x in (again, entropy, params.grad))
    bounds = torch.tensor(np.stack([LOW, HIGH]))
    assert head.evaluate(params[:2] * 0, bounds)[0].isfinite().all()


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.1), (0.0, 1.0), (1.5, 0.5), (-2.0, 1.0), (0.7, 2.0)])
def test_density_and_entropy_of_the_squashed_gaussian_by_integration(mean, std):
    low, high = -0.5, 1.5
    head = GaussianHead(1, Box(low, high, (1,)), SQUASH)
    # Substitution a = 0.5 + tanh u, da = (1 - tanh^2 u) du: fine steps where the density is high.
    u = torch.linspace(mean - 7 * std, mean + 7 * std, 40_001, dtype=torch.float64)
    width = (u[1] - u[0]) * (1 - u.tanh() ** 2)
    inside = u.abs() < 5  # beyond, float32 actions do not resolve u
    params = torch.tensor([[mean, math.log(std)]]).expand(len(u), 2)
    log_prob, entropy = head.evaluate(params, (0.5 + u.tanh()).float().unsqueeze(-1))
    density = log_prob.double().exp()
    share = td.Normal(mean, std).cdf(torch.tensor(5.0)) - td.Normal(mean, std).cdf(torch.tensor(-5.0))
    assert (density * width)[inside].sum().item() == pytest.approx(share.item(), abs=1e-3)
    exact_log_prob = td.Normal(mean, std).log_prob(u) - torch.log(1 - u.tanh() ** 2)
    expected = -(exact_log_prob.exp() * exact_log_prob * width).sum().item()
    assert entropy[0].item() == pytest.approx(expected, abs=0.02)
    base = 0.5 + 0.5 * math.log(2 * math.pi) + math.log(std)
    assert entropy[0] < base  # log h = 0 here: squashing contracts


def test_entropy_of_the_squashed_gaussian_counts_the_bounds():
    params = torch.tensor([[0.3, -0.2]])
    narrow, wide = (
        GaussianHead(1, Box(-half, half, (1,)), SQUASH).evaluate(params, torch.zeros(1, 1))[1] for half in (1, 5)
    )
    assert (wide - narrow).item() == pytest.approx(math.log(5), rel=1e-5)


@pytest.mark.parametrize("name", ["box", "squash"])
def test_gaussian_samples_have_mean_and_deviation(name):
    head = make(name)
    params = torch.tensor([0.3, -0.2, 0.1, -1.0, -2.0, -0.5]).repeat(100_000, 1)
    torch.manual_seed(0)
    action, _ = head.sample(params)
    if name == "squash":
        center, half = torch.tensor((LOW + HIGH) / 2), torch.tensor((HIGH - LOW) / 2)
        action = ((action - center) / half).atanh()
    torch.testing.assert_close(action.mean(0), params[0, :3], atol=0.01, rtol=0)
    torch.testing.assert_close(action.std(0), params[0, 3:].exp(), atol=0.01, rtol=0)
    assert torch.corrcoef(action.T).fill_diagonal_(0).abs().max() < 0.02


def test_squashed_actions_stay_inside_despite_rounding():
    low, high = np.float32(2.73), np.float32(7.01)
    assert (high + low) / 2 - (high - low) / 2 < low
    head = GaussianHead(1, Box(low, high, (1,)), SQUASH)
    action, _ = head.sample(torch.tensor([[-50.0, 0.0]]))
    assert action.item() == low


def test_greedy_actions_by_hand():
    params = torch.tensor([[0.1, 3.0, -1.0, 2.0, 0.0, 1.0, 4.0, -2.0, -1.0, 5.0]])
    assert CategoricalHead(1, Discrete(10, start=-3)).sample(params, deterministic=True)[0].tolist() == [6]
    multi = CategoricalHead(1, MultiDiscrete([3, 5, 2], start=[0, 1, -4]))
    assert multi.sample(params, deterministic=True)[0].tolist() == [[1, 4, -3]]
    binary = BernoulliHead(1, MultiBinary(10)).sample(params, deterministic=True)[0]
    assert binary.tolist() == [[1, 1, 0, 1, 0, 1, 1, 0, 0, 1]]
    gaussian = GaussianHead(1, Box(-1, 3, (5,))).sample(params, deterministic=True)[0]
    assert torch.equal(gaussian, params[:, :5])
    squashed = GaussianHead(1, Box(-1, 3, (5,)), SQUASH).sample(params, deterministic=True)[0]
    torch.testing.assert_close(squashed, 1 + 2 * params[:, :5].tanh())


def test_draw_follows_the_probabilities():
    probs = torch.tensor([0.0, 0.5, 1e-3, 0.0, 0.199, 0.3, 0.0])
    torch.manual_seed(0)
    n = 400_000
    counts = torch.bincount(sample_categorical(probs.expand(n, 7)), minlength=7)
    assert counts[probs == 0].sum() == 0
    deviation = (n * probs * (1 - probs)).sqrt()
    assert ((counts - n * probs).abs() <= 4 * deviation).all()


def test_draw_never_takes_probability_zero_even_where_the_point_is_on_a_boundary():
    torch.manual_seed(0)
    probs = torch.tensor([0.0, 2.0, 0.0, 1.0, 0.0]) / 2**30  # units: the points are 0, 1 and 2
    counts = torch.bincount(sample_categorical(probs.expand(30_000, 5)), minlength=5)
    assert counts[[0, 2, 4]].sum() == 0
    assert counts[1].item() == pytest.approx(20_000, abs=400)


def test_draw_is_independent_between_rows_and_places():
    torch.manual_seed(0)
    first, second = sample_categorical(torch.full((50_000, 2, 2), 0.5)).T
    assert ((first == 1) & (second == 1)).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert ((first[1:] == 1) & (first[:-1] == 1)).float().mean().item() == pytest.approx(0.25, abs=0.01)


def test_draw_always_gives_an_index():
    certain = torch.eye(6).repeat(2000, 1)
    assert torch.equal(sample_categorical(certain), torch.arange(6).repeat(2000))
    many = sample_categorical(torch.full((100, 5000), 1 / 5000))
    assert many.min() >= 0 and many.max() < 5000 and len(many.unique()) > 80
    assert 0 <= sample_categorical(torch.full((1, 4), math.nan)).item() < 4


def mask_of(space, rows):
    """Random masks that allow something of everything."""
    generator = torch.Generator().manual_seed(5)
    sizes = [int(space.n)] if isinstance(space, Discrete) else space.nvec.tolist()
    parts = []
    for size in sizes:
        allowed = torch.rand(rows, size, generator=generator) < 0.4
        allowed[torch.arange(rows), torch.randint(size, (rows,), generator=generator)] = True
        parts.append(allowed)
    return torch.cat(parts, dim=-1), sizes


def chosen(space, action):
    """The indices within the mask's columns, `[B, D]`."""
    if isinstance(space, Discrete):
        return (action - int(space.start)).unsqueeze(-1)
    offsets = torch.tensor([0, *np.cumsum(space.nvec)[:-1].tolist()])
    return action - torch.as_tensor(space.start) + offsets


@pytest.mark.parametrize("name", ["discrete", "multi"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int8])
def test_forbidden_actions_are_never_sampled_and_get_no_gradient(name, dtype):
    head, space = make(name), SPACES[name][0]
    mask, sizes = mask_of(space, 100_000)
    params = (5 * torch.randn(100_000, sum(sizes), generator=torch.Generator().manual_seed(2))).requires_grad_()
    for deterministic in (False, True):
        action, log_prob = head.sample(params, deterministic, mask.to(dtype))
        assert mask.gather(1, chosen(space, action)).all()
    again, entropy = head.evaluate(params, action, mask.to(dtype))
    assert torch.equal(log_prob, again)
    (again + entropy).sum().backward()
    assert params.grad.isfinite().all()
    assert not params.grad[~mask].any()
    assert params.grad[mask].any()


@pytest.mark.parametrize("name", ["discrete", "multi"])
def test_masked_policy_is_the_policy_over_the_allowed_actions(name):
    head, space = make(name), SPACES[name][0]
    mask, sizes = mask_of(space, 40)
    params = head(features(40))
    action, _ = head.sample(params, action_mask=mask)
    log_prob, entropy = head.evaluate(params, action, mask)
    ends = np.cumsum(sizes).tolist()
    for row in range(40):
        expected_log_prob = expected_entropy = 0.0
        for start, end, pick in zip([0, *ends], ends, chosen(space, action)[row].tolist(), strict=False):
            allowed = mask[row, start:end].nonzero()[:, 0]
            policy = td.Categorical(logits=params[row, start:end][allowed])
            expected_log_prob += policy.log_prob((allowed == pick - start).nonzero()[0, 0])
            expected_entropy += policy.entropy()
        torch.testing.assert_close(log_prob[row], expected_log_prob, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(entropy[row], expected_entropy, rtol=1e-5, atol=1e-6)


def test_all_but_one_masked_is_certain():
    head = CategoricalHead(1, Discrete(4))
    params = torch.tensor([[9.0, -50.0, 3.0, 1e4]]).requires_grad_()
    mask = torch.tensor([[False, True, False, False]])
    action, log_prob = head.sample(params, action_mask=mask)
    _, entropy = head.evaluate(params, action, mask)
    (log_prob + entropy).sum().backward()
    assert (action.item(), log_prob.item(), entropy.item()) == (1, 0.0, 0.0)
    assert torch.equal(params.grad, torch.zeros(1, 4))


def test_a_mask_that_allows_nothing_counts_as_none_at_all_likely():
    head = CategoricalHead(1, Discrete(4))
    log_prob, entropy = head.evaluate(
        torch.tensor([[9.0, -50.0, 3.0, 0.0]]), torch.tensor([2]), torch.zeros(1, 4).bool()
    )
    assert log_prob.exp().item() == pytest.approx(0.25)
    assert entropy.item() == pytest.approx(math.log(4))


def test_a_part_of_which_a_mask_allows_nothing_is_drawn_evenly_from_its_own_choices():
    """Not from the padding that makes parts of 2, 5 and 3 choices equally long."""
    space, rows = MultiDiscrete([2, 5, 3], start=[0, 1, -4]), 6000
    head = CategoricalHead(1, space)
    params = torch.tensor([9.0, -50.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1e4, -1e4]).repeat(rows, 1).requires_grad_()
    mask = torch.tensor([False] * 2 + [False, True, False, False, False] + [False] * 3).expand(rows, -1)
    torch.manual_seed(0)
    action, log_prob = head.sample(params, action_mask=mask)
    assert space.contains(action.amin(0).numpy()) and space.contains(action.amax(0).numpy())
    assert action[:, 1].unique().tolist() == [2]
    for part, choices in ((0, [0, 1]), (2, [-4, -3, -2])):
        values, counts = action[:, part].unique(return_counts=True)
        assert values.tolist() == choices
        assert counts.tolist() == pytest.approx([rows / len(choices)] * len(choices), rel=0.08)
    again, entropy = head.evaluate(params, action, mask)
    torch.testing.assert_close(log_prob, torch.full((rows,), -math.log(6)))
    torch.testing.assert_close(entropy, torch.full((rows,), math.log(6)))
    assert torch.equal(log_prob, again)
    (again + entropy).sum().backward()
    assert not params.grad.any()
    greedy, _ = head.sample(params, deterministic=True, action_mask=mask)
    assert space.contains(greedy[0].numpy())


def test_masked_coins_stay_zero():
    head = BernoulliHead(1, MultiBinary(3))
    params = torch.tensor([[8.0, 0.0, 8.0]]).repeat(1000, 1).requires_grad_()
    mask = torch.tensor([[True, True, False]]).expand(1000, 3)
    action, log_prob = head.sample(params, action_mask=mask)
    again, entropy = head.evaluate(params, action, mask)
    (again + entropy).sum().backward()
    assert not action[:, 2].any() and action[:, 0].any() and action[:, 1].any()
    assert torch.equal(log_prob, again)
    assert params.grad.isfinite().all() and not params.grad[:, 2].any()


@pytest.mark.parametrize("name", ["discrete", "multi", "binary"])
def test_extreme_logits_stay_finite(name):
    head = make(name)
    params = head(features(64)).detach().sign() * 1e4
    params[::2] *= torch.rand(params.shape[-1], generator=torch.Generator().manual_seed(4))
    params.requires_grad_()
    action, _ = head.sample(params)
    log_prob, entropy = head.evaluate(params, action)
    (log_prob + entropy).sum().backward()
    assert all(x.isfinite().all() for x in (log_prob, entropy, params.grad))
    assert (entropy >= 0).all()


@pytest.mark.parametrize("name", [name for name in SPACES if "squash" not in name])
def test_the_distribution_is_what_is_drawn_from(name):
    head = make(name)
    params = head(features(6)).detach()
    action, log_prob = head.sample(params)
    index = head.index(action) if hasattr(head, "index") else action.reshape(6, -1)
    found = head.distribution(params)
    assert found.batch_shape == (6,)
    torch.testing.assert_close(found.log_prob(index.float()), log_prob, rtol=1e-5, atol=1e-5)


def test_divergences_by_hand():
    def apart(space, p, q, mask=None):
        head = policy_head("A", 4, space)
        return td.kl_divergence(*(head.distribution(torch.tensor([x]), mask) for x in (p, q))).item()

    half = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)  # 1/2, 1/2 against 1/4, 3/4
    assert apart(Discrete(2), [0.0, 0.0], [0.0, math.log(3)]) == pytest.approx(half)
    mask = torch.tensor([[True, True, False]])
    assert apart(Discrete(3, start=1), [0.0, 0.0, 9.0], [0.0, math.log(3), -9.0], mask) == pytest.approx(half)
    parts = [[0.0, 0.0, 1.0, 1.0, 1.0], [0.0, math.log(3), 5.0, 5.0, 5.0]]
    assert apart(MultiDiscrete([2, 3]), *parts) == pytest.approx(half)
    assert apart(MultiBinary(2), [0.0, 0.0], [math.log(3)] * 2) == pytest.approx(2 * half)
    gaussian = math.log(2) + (1 + 3**2) / (2 * 2**2) - 0.5  # N(0, 1) against N(3, 2)
    assert apart(Box(-1, 1, (1,)), [0.0, 0.0], [3.0, math.log(2)]) == pytest.approx(gaussian)


@EVERY
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_float32_under_bf16_autocast(name):
    head = make(name)
    # Without oneDNN: it would use AMX, which some virtual machines announce and then forbid.
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", torch.bfloat16):
        params = head(features(9))
        action, log_prob = head.sample(params)
        again, entropy = head.evaluate(params, action)
    assert [x.dtype for x in (params, log_prob, again, entropy)] == [torch.float32] * 4
    assert torch.equal(log_prob, again)
    plain, plain_entropy = head.evaluate(params, action)  # the maths itself is not autocast
    assert torch.equal(plain, again) and torch.equal(plain_entropy, entropy)


@EVERY
def test_orthogonal_heads_start_near_nothing(name):
    layer = make(name, inputs=30, ortho_init=True).layer
    torch.testing.assert_close(
        layer.weight @ layer.weight.T, 1e-4 * torch.eye(layer.out_features), atol=1e-8, rtol=1e-4
    )
    assert not layer.bias.any()


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        (Dict(a=BOX), None, "supports Discrete, MultiDiscrete, MultiBinary and .* Box actions, but .* has Dict"),
        (Tuple([BOX]), None, "but the environment has Tuple"),
        (Box(0, 255, (3,), np.uint8), None, r"but the environment has Box\(0, 255"),
        (Box(-np.inf, 1, (2,)), SQUASH, r"--agent.squash needs an action Box with finite bounds, got Box\(-inf"),
        (Box(np.float32([0, 1]), np.float32([1, 1])), SQUASH, "the bounds of an action Box must differ"),
        (Box(-3e38, 3e38, (1,)), SQUASH, "the bounds of an action Box must differ, and by less than 1e38"),
        (Discrete(3), SQUASH, r"--agent.state_dependent_std, squash .* environment has Discrete\(3\)"),
    ],
)
def test_what_cannot_work_is_refused(space, options, message):
    with pytest.raises(ValueError, match=f"^Agent:? .*{message}") as caught:
        policy_head("Agent", 4, space, options)
    assert "\n" not in str(caught.value)


def test_box_actions_take_no_mask():
    head = make("box")
    with pytest.raises(ValueError, match="Box actions do not support action masks"):
        head.sample(head(features(2)), action_mask=torch.ones(2, 3, dtype=torch.bool))
