"""GAE against literals computed by hand and against its definition as a double sum."""

import pytest
import torch

from fabric_rl import gae


def column(*numbers: float) -> torch.Tensor:
    """`[T, 1]`."""
    return torch.tensor(numbers, dtype=torch.float32).unsqueeze(1)


def flags(*numbers: int) -> torch.Tensor:
    return column(*numbers).bool()


def advantages(**changes) -> list[float]:
    """Three steps, gamma 0.5, lambda 0.5, nothing ends unless `changes` say so."""
    arguments = {
        "rewards": column(1, 2, 3),
        "values": column(4, 6, 4),
        "next_values": column(6, 8, 10),
        "terminated": flags(0, 0, 0),
        "done": flags(0, 0, 0),
        "gamma": 0.5,
        "lam": 0.5,
    }
    return gae(**(arguments | changes)).squeeze(1).tolist()


def test_an_episode_that_goes_on():
    # deltas: 1 + 0.5 * 6 - 4 = 0, 2 + 0.5 * 8 - 6 = 0, 3 + 0.5 * 10 - 4 = 4, which reaches back with 0.25 and 0.0625
    assert advantages() == [0.25, 1.0, 4.0]


def test_termination_kills_the_bootstrap_and_the_trace():
    # delta_1 = 2 - 6 = -4 without its next value; A_0 = 0 + 0.25 * -4; A_2 = 3 + 5 - 4 = 4 stays out of A_1.
    ended = flags(0, 1, 0)
    assert advantages(terminated=ended, done=ended) == [-1.0, -4.0, 4.0]


def test_truncation_bootstraps_from_the_final_observation_and_cuts_the_trace():
    # V(final_obs) = 20: delta_1 = 2 + 0.5 * 20 - 6 = 6; A_0 = 0 + 0.25 * 6; A_2 = 4 stays out of A_1.
    found = advantages(next_values=column(6, 20, 10), done=flags(0, 1, 0))
    assert found == [1.5, 6.0, 4.0]


def test_termination_on_the_last_step_does_not_bootstrap():
    ended = flags(0, 0, 1)
    assert advantages(terminated=ended, done=ended) == [-0.0625, -0.25, -1.0]  # delta_2 = 3 - 4


@pytest.mark.parametrize("truncated", [False, True])
def test_after_autoreset_nothing_of_the_next_episode_leaks(truncated):
    """Whatever follows an episode's end, rewards and values of the next episode, leaves its advantages alone."""
    done = flags(0, 1, 0)
    terminated = flags(0, 0, 0) if truncated else done
    next_values = column(6, 20, 10)
    one = advantages(next_values=next_values, terminated=terminated, done=done)
    other = advantages(
        rewards=column(1, 2, -700),
        values=column(4, 6, 900),
        next_values=column(6, 20, 5000),
        terminated=terminated,
        done=done,
    )
    assert one[:2] == other[:2]
    assert one[2] != other[2]


def test_the_next_value_of_a_terminated_step_is_never_read():
    ended = flags(0, 1, 0)
    one = advantages(next_values=column(6, 8, 10), terminated=ended, done=ended)
    assert one == advantages(next_values=column(6, 12345, 10), terminated=ended, done=ended)


def definition(rewards, values, next_values, terminated, done, gamma, lam):
    """A_t = sum over l of (gamma lam)^l delta_{t+l}, up to the first end of an episode; float64, O(T^2)."""
    result = torch.zeros_like(rewards, dtype=torch.float64)
    for n in range(rewards.shape[1]):
        for t in range(len(rewards)):
            for last in range(t, len(rewards)):
                delta = rewards[last, n].double() - values[last, n].double()
                if not terminated[last, n]:
                    delta = delta + gamma * next_values[last, n].double()
                result[t, n] += (gamma * lam) ** (last - t) * delta
                if done[last, n]:
                    break
    return result


@pytest.mark.parametrize("shape", [(17, 5), (17, 5, 3), (1, 4), (6, 1)])
@pytest.mark.parametrize(("gamma", "lam"), [(0.99, 0.95), (1.0, 1.0), (0.9, 0.0)])
def test_random_data_against_the_definition(shape, gamma, lam):
    generator = torch.Generator().manual_seed(7)
    rewards, values, next_values = (torch.randn(shape, generator=generator) for _ in range(3))
    terminated, truncated = (torch.rand(shape[:2], generator=generator) < 0.2 for _ in range(2))
    data = (rewards, values, next_values, terminated, terminated | truncated, gamma, lam)
    copies = [x.clone() for x in data[:5]]

    found = gae(*data)

    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), definition(*data), rtol=1e-5, atol=1e-5)
    assert all(torch.equal(x, copy) for x, copy in zip(data[:5], copies, strict=True))  # nothing is changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": torch.zeros(3)}, r"must have one shape, got \[3, 1\], \[3\], \[3, 1\]"),
        ({"next_values": torch.zeros(2, 1)}, r"must have one shape, got \[3, 1\], \[3, 1\], \[2, 1\]"),
        ({"terminated": torch.zeros(1, 3, dtype=torch.bool)}, r"terminated \[1, 3\] and done \[3, 1\]"),
        ({"done": torch.zeros(3, dtype=torch.bool)}, r"done \[3\] must be \[T, N\] = \[3, 1\]"),
    ],
)
def test_shapes_that_do_not_match_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        advantages(**changes)
