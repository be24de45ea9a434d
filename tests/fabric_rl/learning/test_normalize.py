import copy

import numpy as np
import pytest
import torch
from lightning import Fabric

from fabric_rl.learning.normalize import ObsNormalizer, ReturnScaler, RunningMoments, combine_moments, moments_of

OFFSET, DEVIATION = 1e6, 1e-3


def samples(seed, *shape, mean=0.0, std=1.0):
    return torch.from_numpy(np.random.default_rng(seed).normal(mean, std, shape))


def assert_moments(moments, data, rtol=1e-12):
    """Against numpy on all the data at once; `data` is `[n, *shape]`."""
    data = data.numpy().astype(np.longdouble)
    assert int(moments.count) == len(data)
    np.testing.assert_allclose(moments.mean.numpy(), data.mean(axis=0).astype(float), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(moments.variance.numpy(), data.var(axis=0, ddof=1).astype(float), rtol=rtol)


# ---------------------------------------------------------------------------------------------- running moments


def test_moments_by_hand():
    moments = RunningMoments(2)
    moments.update(torch.tensor([[1, 10], [2, 10]]))
    moments.update(torch.tensor([[6.0, 40.0]]))
    assert (float(moments.count), moments.mean.tolist()) == (3, [3, 20])
    assert moments.m2.tolist() == [4 + 1 + 9, 100 + 100 + 400]
    assert moments.variance.tolist() == [7, 300]
    assert {b.dtype for b in moments.buffers()} == {torch.float64}


@pytest.mark.parametrize("sizes", [[1000], [1] * 20 + [980], [333, 0, 667], [1, 999]], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)], ids=str)
def test_moments_are_those_of_numpy_however_the_stream_is_cut(shape, sizes):
    data = samples(0, 1000, *shape, mean=3, std=2)
    moments = RunningMoments(shape)
    for part in data.split(sizes):
        moments.update(part)
    assert_moments(moments, data)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_large_mean_costs_no_digits(size):
    """The sum of squares would be 1e16 times the variance: all digits lost."""
    data = samples(2, 10_000, 2, mean=OFFSET, std=DEVIATION)
    moments = RunningMoments(2)
    for part in data.split(size):
        moments.update(part)
    assert_moments(moments, data, rtol=1e-6)  # a sample itself has 1e-7 deviations of rounding


def test_many_chunks_are_one_batch(monkeypatch):
    monkeypatch.setattr("fabric_rl.learning.normalize.CHUNK_NUMBERS", 20)
    data = samples(3, 101, 3)
    moments = RunningMoments(3)
    moments.update(data)
    assert_moments(moments, data)


def test_combining_is_seeing_both():
    data = samples(5, 100, 3)
    one, other, empty = (moments_of(part, dims=1) for part in (data[:30], data[30:], data[:0]))
    both, whole = combine_moments(combine_moments(one, other), empty), moments_of(data, dims=1)
    for combined, expected in zip(both, whole, strict=True):
        torch.testing.assert_close(combined, expected)
    assert torch.equal(combine_moments(empty, other).m2, other.m2)


def test_no_sample_one_sample_and_an_empty_batch():
    moments = RunningMoments(2)
    moments.update(torch.zeros(0, 2))
    moments.update(torch.zeros(4, 0, 2))
    assert (float(moments.count), moments.mean.tolist(), moments.variance.tolist()) == (0, [0, 0], [1, 1])
    moments.update(torch.tensor([5.0, -5.0]))  # one sample without a leading axis
    assert (float(moments.count), moments.mean.tolist(), moments.variance.tolist()) == (1, [5, -5], [1, 1])
    moments.update(torch.zeros(0, 2))
    assert (float(moments.count), moments.mean.tolist()) == (1, [5, -5])


def test_a_batch_of_another_shape_is_refused():
    for shape in ((4, 3), (), (2, 4)):
        with pytest.raises(ValueError, match=r"RunningMoments for samples of shape \[2\] got a batch"):
            RunningMoments(2).update(torch.zeros(shape))


def test_large_batches_do_not_lose_samples_in_float32():
    """A float32 sum over 20 million would stop at 16.7 million."""
    moments = RunningMoments(())
    for _ in range(20):
        moments.update(torch.ones(1_000_000))
    assert float(moments.count) == 20_000_000
    assert (float(moments.mean), float(moments.m2)) == (1, 0)


def test_statistics_stay_wide_when_the_module_changes_its_dtype():
    module = torch.nn.ModuleDict({"moments": RunningMoments(2), "layer": torch.nn.Linear(2, 2)})
    module["moments"].update(samples(6, 50, 2, mean=1000))
    before = copy.deepcopy(module["moments"].state_dict())
    for change in (module.half, module.float, module.bfloat16, lambda: module.to("cpu", torch.float32)):
        change()
        state = module["moments"].state_dict()
        assert {x.dtype for x in state.values()} == {torch.float64}
        assert all(torch.equal(state[name], before[name]) for name in before)
    assert module["layer"].weight.dtype == torch.float32
    assert {x.device.type for x in module.to("meta")["moments"].buffers()} == {"meta"}


def test_a_device_without_float64_gets_float32(monkeypatch):
    monkeypatch.setattr("fabric_rl.learning.normalize.wide_dtype", lambda device: torch.float32)
    normalizer = ObsNormalizer(2).to("cpu")
    data = samples(14, 1000, 2, mean=100, std=0.1).float()
    for part in data.split(100):
        normalizer.update(part)
    assert {x.dtype for x in normalizer.buffers()} == {torch.float32}
    np.testing.assert_allclose(normalizer.variance.numpy(), data.numpy().astype(float).var(axis=0, ddof=1), rtol=1e-3)


# ---------------------------------------------------------------------------------------------- observations


def test_before_the_first_update_observations_are_only_clipped():
    obs = torch.tensor([[0.125, -7.0, 3.3], [5.0, 1e9, -5.0]])
    assert torch.equal(ObsNormalizer(3)(obs), obs.clamp(-5, 5))
    assert torch.equal(ObsNormalizer(3, clip=1)(obs), obs.clamp(-1, 1))


def test_observations_by_hand():
    normalizer = ObsNormalizer(2)
    normalizer.update(torch.tensor([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]]))  # means 3 and 20, variances 7 and 300
    obs = torch.tensor([[[3.0, 20.0]], [[10.0, -1000.0]]])
    out = normalizer(obs)
    torch.testing.assert_close(out, torch.tensor([[[0, 0]], [[7 / 7**0.5, -5]]]))
    assert (out.dtype, out.shape) == (torch.float32, (2, 1, 2))
    assert obs.flatten().tolist() == [3, 20, 10, -1000]


def test_a_constant_feature_becomes_0_and_a_change_of_it_stays_bounded():
    normalizer = ObsNormalizer(3)
    obs = torch.tensor([0.1, 1e6, 0.0]).repeat(1000, 1)
    for part in obs.split(37):
        normalizer.update(part)
    assert torch.equal(normalizer(obs), torch.zeros(1000, 3))
    assert normalizer(torch.tensor([0.2, 2e6, -1.0])).tolist() == [5, 5, -5]


def test_integer_observations():
    normalizer = ObsNormalizer(1)
    normalizer.update(torch.tensor([[0], [200]], dtype=torch.uint8))
    torch.testing.assert_close(normalizer(torch.tensor([[200]], dtype=torch.uint8)), torch.tensor([[0.5**0.5]]))


def test_the_gradient_flows_through_observations_and_no_parameter_is_added():
    normalizer = ObsNormalizer(1)
    normalizer.update(torch.tensor([[0.0], [2.0]]))
    obs = torch.tensor([[1.0], [100.0]], requires_grad=True)
    normalizer(obs).sum().backward()
    torch.testing.assert_close(obs.grad, torch.tensor([[0.5**0.5], [0.0]]))  # 0 where it clips
    assert list(normalizer.parameters()) == []


def test_a_copy_and_a_saved_state_have_statistics_of_their_own(tmp_path):
    normalizer = ObsNormalizer(3)
    normalizer.update(samples(8, 20, 3))
    frozen = copy.deepcopy(normalizer)
    torch.save(normalizer.state_dict(), tmp_path / "state.pt")
    normalizer.update(samples(9, 20, 3, mean=5))
    loaded = ObsNormalizer(3)
    loaded.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    obs = samples(10, 4, 3)
    assert torch.equal(frozen(obs), loaded(obs))
    assert not torch.equal(frozen(obs), normalizer(obs))
    assert (float(frozen.count), float(loaded.count), float(normalizer.count)) == (20, 20, 40)


def test_a_compiled_normalizer_follows_updates_and_loaded_states_without_a_recompilation():
    normalizer = ObsNormalizer(2)
    compiled = torch.compile(normalizer.forward, backend="eager", fullgraph=True)
    obs = samples(11, 5, 2).float()
    torch.compiler.reset()
    compiled(obs)
    state = copy.deepcopy(normalizer.state_dict())
    with torch.compiler.set_stance("fail_on_recompile"):
        normalizer.update(samples(12, 10, 2, mean=3))
        assert torch.equal(compiled(obs), normalizer(obs))
        normalizer.load_state_dict(state)
        assert torch.equal(compiled(obs), obs.clamp(-5, 5))


def test_one_rank_is_the_same_with_and_without_fabric():
    one, other = ObsNormalizer(2), ObsNormalizer(2)
    one.update(samples(13, 10, 2))
    other.update(samples(13, 10, 2), Fabric(accelerator="cpu", devices=1))
    assert torch.equal(one.m2, other.m2)


# ---------------------------------------------------------------------------------------------- returns


def all_returns(rewards, done, gamma):
    """Plain Python: the discounted return of every step, `rewards` and `done` being lists `[steps][envs]`."""
    found = []
    for env in range(len(rewards[0])):
        following = 0.0
        for reward, ended in zip(reversed([r[env] for r in rewards]), reversed([d[env] for d in done]), strict=True):
            following = reward + (0.0 if ended else gamma * following)
            found.append(following)
    return found


def stream(seed, steps, envs):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(0.5, 3, (steps, envs))).float(), torch.from_numpy(
        rng.random((steps, envs)) < 0.05
    )


def test_returns_by_hand():
    """gamma 0.5; the first sub-environment ends after step 0: returns 4; 1 + 2 / 2, 2; the second: 8 + 0 + 0, 0, 0."""
    rewards = torch.tensor([[4.0, 8.0], [1.0, 0.0], [2.0, 0.0]])
    done = torch.tensor([[True, False], [False, False], [False, False]])
    scaler = ReturnScaler(2)
    scaled = scaler.scale(rewards, done, 0.5)
    sigma = np.std([4, 2, 2, 8, 0, 0], ddof=1)
    assert float(scaler.sigma) == pytest.approx(sigma, rel=1e-14)
    torch.testing.assert_close(scaled, rewards / sigma)
    # Going on: reward 16 after steps 1 and 2 of the first one, whose returns become 6 and 10.
    scaler.scale(torch.tensor([[16.0, 0.0]]), torch.tensor([[True, False]]), 0.5)
    assert float(scaler.sigma) == pytest.approx(np.std([4, 6, 10, 16, 8, 0, 0, 0], ddof=1), rel=1e-14)


@pytest.mark.parametrize("steps", [1, 7, 100, 400])
def test_sigma_is_that_of_a_plain_loop_however_rollouts_cut_the_episodes(steps):
    rewards, done = stream(0, 400, 3)
    scaler = ReturnScaler(3)
    for first in range(0, 400, steps):
        part = rewards[first : first + steps]
        scaled = scaler.scale(part, done[first : first + steps], 0.9)
        seen = slice(0, first + steps)
        sigma = np.std(all_returns(rewards[seen].tolist(), done[seen].tolist(), 0.9), ddof=1)
        assert float(scaler.sigma) == pytest.approx(sigma, rel=1e-11)
        torch.testing.assert_close(scaled, (part / sigma).clamp(-10, 10))


def test_every_signal_has_a_deviation_and_a_discount_of_its_own():
    pairs = [stream(seed, 120, 4) for seed in (1, 2)]
    done = pairs[0][1]
    rewards = torch.stack([pairs[0][0], 100 * pairs[1][0]], dim=-1)
    scaler = ReturnScaler(4)
    for part, ends in zip(rewards.split(40), done.split(40), strict=True):
        scaled = scaler.scale(part, ends, torch.tensor([0.5, 0.99], dtype=torch.float64))
    sigma = [np.std(all_returns(rewards[..., k].tolist(), done.tolist(), g), ddof=1) for k, g in enumerate((0.5, 0.99))]
    assert scaler.sigma.tolist() == pytest.approx(sigma, rel=1e-11)
    torch.testing.assert_close(scaled, (rewards[80:] / torch.tensor(sigma, dtype=torch.float32)).clamp(-10, 10))
    alike = ReturnScaler(4)
    alike.scale(rewards, done, 0.9)  # one discount for both
    assert alike.sigma.tolist()[1] == pytest.approx(
        np.std(all_returns(rewards[..., 1].tolist(), done.tolist(), 0.9), ddof=1), rel=1e-11
    )


def test_the_rewards_stay_as_they_are_and_the_result_is_like_them():
    rewards, done = stream(3, 20, 2)
    kept = rewards.clone()
    for given in (rewards, rewards.unsqueeze(-1)):
        scaled = ReturnScaler(2).scale(given, done, 0.9)
        assert (scaled.shape, scaled.dtype) == (given.shape, torch.float32)
        assert scaled.data_ptr() != given.data_ptr()
    assert torch.equal(rewards, kept)


def test_scaled_rewards_are_clipped():
    rewards = torch.zeros(400, 1)
    rewards[7], rewards[9] = 1.0, -1.0
    done = torch.ones(400, 1, dtype=torch.bool)
    sigma = np.std(rewards.flatten().tolist(), ddof=1)
    assert 1 / sigma > 14
    assert ReturnScaler(1).scale(rewards, done, 0.9).unique().tolist() == [-10, 0, 10]
    assert ReturnScaler(1, clip=3).scale(rewards, done, 0.9).unique().tolist() == [-3, 0, 3]


@pytest.mark.parametrize("reward", [0.0, 0.1, 7.7, -3e5])  # sums of squares leave rounding of 0.1 and 7.7
def test_equal_returns_are_not_divided_by_rounding(reward):
    scaler = ReturnScaler(3)
    rewards = torch.full((1000, 3), reward, dtype=torch.float64)
    for _ in range(3):
        scaled = scaler.scale(rewards, torch.ones(1000, 3, dtype=torch.bool), 0.99)
    assert torch.equal(scaled, rewards.clamp(-10, 10))
    assert float(scaler.sigma) == 1


def test_a_single_return_leaves_the_reward_alone():
    assert float(ReturnScaler(1).scale(torch.tensor([[3.0]]), torch.tensor([[False]]), 0.9)) == 3


def test_returns_with_a_large_mean_keep_their_deviation():
    rewards, done = stream(4, 2000, 2)
    scaler = ReturnScaler(2)
    shifted = rewards.double() * 1e-2 + 1e3
    scaler.scale(shifted, done | True, 0.9)
    assert float(scaler.sigma) == pytest.approx(np.std(shifted.numpy(), ddof=1), rel=1e-5)


def test_long_episodes_without_end_stay_exact():
    rewards, _ = stream(5, 3000, 1)
    scaler = ReturnScaler(1)
    for part in rewards.split(100):
        scaler.scale(part, torch.zeros(100, 1, dtype=torch.bool), 0.99)
    sigma = np.std(all_returns(rewards.tolist(), [[False]] * 3000, 0.99), ddof=1)
    assert float(scaler.sigma) == pytest.approx(sigma, rel=1e-10)


def test_a_saved_scaler_goes_on_in_the_middle_of_an_episode(tmp_path):
    rewards, done = stream(6, 90, 3)
    scaler = ReturnScaler(3)
    scaler.scale(rewards[:40], done[:40], 0.9)
    torch.save(scaler.state_dict(), tmp_path / "state.pt")
    copied = copy.deepcopy(scaler)
    loaded = ReturnScaler(3)
    loaded.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(loaded.sigma, scaler.sigma)
    outs = [s.scale(rewards[40:], done[40:], 0.9) for s in (scaler, loaded, copied)]
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])


def test_statistics_go_on_without_the_episodes_that_still_ran():
    rewards, done = stream(8, 60, 2)
    done[29] = torch.tensor([True, False])
    scaler, other = ReturnScaler(2), ReturnScaler(3)  # with another number of sub-environments
    scaler.scale(rewards[:30], done[:30], 0.9)
    other.load_statistics(scaler.state_dict())
    assert torch.equal(other.sigma, scaler.sigma)
    last = int(done[:30, 1].nonzero()[-1]) + 1
    new, ends = rewards[30:].repeat(1, 2)[:, :3], done[30:].repeat(1, 2)[:, :3]
    other.scale(new, ends, 0.9)
    ended = [rewards[:30, :1], rewards[:last, 1:]], [done[:30, :1], done[:last, 1:]]
    parts = [all_returns(r.tolist(), d.tolist(), 0.9) for r, d in zip(*ended, strict=True)]
    expected = [*parts[0], *parts[1], *all_returns(new.tolist(), ends.tolist(), 0.9)]
    assert float(other.sigma) == pytest.approx(np.std(expected, ddof=1), rel=1e-11)


def test_a_saved_state_does_not_change_with_its_scaler():
    rewards, done = stream(7, 40, 2)
    scaler = ReturnScaler(2)
    scaler.scale(rewards[:20], done[:20], 0.9)
    state = scaler.state_dict()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    other = ReturnScaler(2)
    other.load_state_dict(state)
    for each in (scaler, other):
        each.scale(rewards[20:], done[20:], 0.9)
    assert all(torch.equal(state[name], kept[name]) for name in kept)
