"""The replay buffer against a list of steps that knows every episode, and its corners."""

import os
import random
import re
import shutil
import subprocess
import sys

import pytest
import torch

from fabric_rl.sac.replay import ReplayBuffer, SumTree
from fabric_rl.types import Minibatch


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
    found = tree_of([1.0, 0.0, 5.0, 2.0]).sample(8, torch.Generator().manual_seed(0))
    assert torch.bincount(found, minlength=4).tolist() == [1, 0, 5, 2]


def test_a_weight_of_zero_is_never_drawn():
    weights = torch.rand(999, generator=torch.Generator().manual_seed(0)) * 1e-30
    weights[torch.arange(999) % 3 > 0] = 0
    weights[0] = 1e30  # beside which the others are lost in rounding
    drawn = tree_of(weights.tolist()).sample(10_000, torch.Generator().manual_seed(1))
    assert (weights[drawn] > 0).all() and drawn.max() < 999


def test_one_that_is_set_twice_has_the_greatest():
    tree = tree_of([1.0, 1.0])
    tree.set(torch.tensor([1, 1, 1]), torch.tensor([2.0, 5.0, 3.0]))
    assert tree.leaves.tolist() == [1, 5] and tree.total.item() == 6


GAMMA = 0.5


class Episodes:
    """Random episodes of N sub-environments; every observation is a number that never comes again."""

    def __init__(self, num_envs, seed, masked=False):
        self.rng, self.num_envs, self.masked = random.Random(seed), num_envs, masked
        self.fresh = 0.0
        self.obs = [self.new() for _ in range(num_envs)]
        self.steps = [[] for _ in range(num_envs)]  # (obs, action, reward, next_obs, terminated, done)

    def new(self):
        self.fresh += 1
        return self.fresh

    def rollout(self, length):
        """The next steps, flat, as a rollout gives them."""
        rows = []
        for _ in range(length):
            for env in range(self.num_envs):
                end = self.rng.choice(["", "", "", "terminated", "truncated"])
                obs, after = self.obs[env], self.new()
                step = (obs, self.rng.random(), self.rng.random(), after, end == "terminated", end != "")
                self.obs[env] = self.new() if end else after  # SAME_STEP: the next row shows another episode
                self.steps[env].append(step)
                rows.append(step)
        columns = [torch.tensor(column) for column in zip(*rows, strict=True)]
        obs, action, reward, after, terminated, done = columns
        zeros = torch.zeros_like(reward)
        masks = {}
        if self.masked:  # what is allowed can be told from the observation
            allowed = {"action_mask": mask_of(obs), "next_action_mask": mask_of(torch.where(done, obs, after))}
            masks = allowed
        return Minibatch(
            obs[:, None], action, zeros, zeros, zeros, zeros, reward=reward, next_obs=after[:, None],
            terminated=terminated, done=done, **masks,
        )  # fmt: skip

    def expected(self, n_step, kept):
        """Observation -> (action, reward, next_obs, discount) of the newest `kept` steps of each sub-environment."""
        found = {}
        for steps in self.steps:
            newest = steps[-kept:]
            for first, (obs, action, *_) in enumerate(newest):
                reward, discount = 0.0, 1.0
                for step in newest[first : first + n_step]:
                    reward, discount = reward + discount * step[2], discount * GAMMA
                    *_, after, terminated, done = step
                    if done:
                        break
                found[obs] = (action, reward, after, 0.0 if terminated else discount)
        return found


def mask_of(obs):
    return (obs[:, None].long() >> torch.arange(3) & 1).bool()


def buffer_of(size, batch, num_envs, folder=None):
    return ReplayBuffer(size, batch, num_envs, torch.Generator().manual_seed(0), folder)


def sampled(replay, count=3000, n_step=1):
    return replay.transitions(replay.sample(count), n_step, torch.tensor(GAMMA))


def drawn(replay, n_step=1, count=3000):
    """All that a buffer has to give, by observation."""
    sample = sampled(replay, count, n_step)
    columns = (sample.action, sample.reward, sample.next_obs[:, 0], sample.discount)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(sample.obs[:, 0].tolist(), rows, strict=True))


def same(found, expected):
    assert found.keys() == expected.keys()
    for obs, (action, reward, after, discount) in expected.items():
        assert found[obs][:2] == pytest.approx((action, reward), abs=1e-6)
        assert found[obs][3] == pytest.approx(discount)
        if discount:
            assert found[obs][2] == after


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize(("num_envs", "length", "size"), [(1, 1, 9), (2, 3, 20), (3, 7, 21), (4, 2, 400)])
def test_random_episodes_as_a_list_would_keep_them(n_step, num_envs, length, size):
    episodes = Episodes(num_envs, seed=n_step)
    batch = episodes.rollout(length)
    replay = buffer_of(size, batch, num_envs)
    for number in range(40):
        replay.add(batch)
        kept = min(size // num_envs, (number + 1) * length)
        assert len(replay) == kept * num_envs
        if number % 6 == 0 or number > 36:
            same(drawn(replay, n_step), episodes.expected(n_step, kept))
        batch = episodes.rollout(length)


def test_every_step_is_as_likely():
    episodes = Episodes(2, seed=0)
    batch = episodes.rollout(5)
    replay = buffer_of(8, batch, 2)
    replay.add(episodes.rollout(3))
    replay.add(episodes.rollout(3))
    counts = torch.unique(sampled(replay, 80_000).obs, return_counts=True)[1]
    assert len(counts) == 8 and counts.min() > 9500 and counts.max() < 10500


def test_more_truncated_episodes_than_there_was_room_for():
    episodes = Episodes(4, seed=1)
    episodes.rng.choice = lambda _: "truncated"
    replay = buffer_of(800, Episodes(4, seed=0).rollout(1), 4)
    for _ in range(60):
        replay.add(episodes.rollout(5))
    same(drawn(replay, count=20_000), episodes.expected(1, 200))
    assert len(replay._last) < 2048  # those of steps that are gone make room


def test_masks_go_with_their_observations():
    episodes = Episodes(2, seed=3, masked=True)
    batch = episodes.rollout(4)
    replay = buffer_of(20, batch, 2)
    for _ in range(9):
        replay.add(batch)
        batch = episodes.rollout(4)
    sample = sampled(replay, 500)
    assert torch.equal(sample.action_mask, mask_of(sample.obs[:, 0]))
    going_on = sample.discount == GAMMA
    goes_on = going_on & (sample.next_obs[:, 0] == sample.obs[:, 0] + 2)  # of two in turn, without a new episode
    assert goes_on.any()
    truncated_ones = {step[0] for steps in episodes.steps for step in steps if step[5] and not step[4]}
    cut = torch.tensor([obs in truncated_ones for obs in sample.obs[:, 0].tolist()])
    assert torch.equal(sample.next_action_mask[going_on & ~cut], mask_of(sample.next_obs[:, 0])[going_on & ~cut])
    assert cut.any() and torch.equal(sample.next_action_mask[cut], sample.action_mask[cut])


@pytest.mark.parametrize("added", [0, 1, 2, 30])
def test_a_restored_buffer_draws_the_same(added):
    episodes = Episodes(3, seed=5, masked=True)
    like = episodes.rollout(2)
    replay, again = buffer_of(24, like, 3), buffer_of(24, like, 3)
    for _ in range(added):
        replay.add(episodes.rollout(2))
    state = replay.state_dict()
    again.add(episodes.rollout(3))  # what it held before is gone
    again.load_state_dict(state)
    more = episodes.rollout(2)
    for each in (replay, again):
        each.add(more)
    again._generator.set_state(replay._generator.get_state())
    for left, right in zip(sampled(replay, 200, 3), sampled(again, 200, 3), strict=True):
        assert left is right is None or torch.equal(left, right)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: s.pop("obs"), "obs"),
        (lambda s: s.update(reward=s["reward"] * torch.nan), r"it\['reward'\] contains NaN"),
        (lambda s: s.update(obs=s["obs"][:-1]), r"it\['obs'\] is torch.float32 of shape \[6, 2, 1\]"),
        (lambda s: s.update(done=torch.zeros_like(s["done"])), "last observations for 0 episodes that ended"),
        (lambda s: s.update({k: v.repeat(9, *[1] * (v.dim() - 1)) for k, v in s.items()}), "set it to at least 108"),
    ],
)
def test_a_state_of_something_else_is_refused(spoil, message):
    episodes = Episodes(2, seed=2)
    replay = buffer_of(20, episodes.rollout(1), 2)
    replay.add(episodes.rollout(6))
    state = replay.state_dict()
    spoil(state)
    with pytest.raises((KeyError, ValueError), match=message):
        replay.load_state_dict(state)


def test_on_disk_it_is_the_same_and_leaves_nothing_behind(tmp_path):
    episodes = Episodes(2, seed=4)
    batch = episodes.rollout(3)
    replay = buffer_of(20, batch, 2, tmp_path / "new")
    replay.add(batch)
    same(drawn(replay), episodes.expected(1, 3))
    assert list((tmp_path / "new").iterdir()) == []


def test_a_buffer_that_does_not_fit_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    batch = Episodes(2, seed=0).rollout(1)
    with pytest.raises(
        ValueError, match=r"^--buffer_size 1000000000000000 needs .* GiB, but this machine's memory has"
    ):
        buffer_of(10**15, batch, 2)
    with pytest.raises(ValueError, match=r"but the disk of --buffer_folder .* has [\d.]+ GiB; use a smaller buffer$"):
        buffer_of(10**15, batch, 2, tmp_path)
    with pytest.raises(ValueError, match=r"--buffer_size 3 holds fewer than two steps of each of 2 sub-environments"):
        buffer_of(3, batch, 2)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"--buffer_folder .*file cannot be used for 0.\d+ MiB: File exists"):
        buffer_of(100, batch, 2, tmp_path / "file")


def test_the_ranks_of_a_machine_share_its_memory(monkeypatch):
    batch = Episodes(2, seed=0).rollout(1)
    steps = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 18  # bytes of each
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "100000")
    buffer_of(size := steps * 18 // 4_000_000, batch, 2)  # 40 bytes for each step are there, of which it needs 26
    with pytest.raises(ValueError, match=r"needs .* for each of 100000 ranks"):  # and with the tree 58
        ReplayBuffer(size, batch, 2, torch.Generator(), alpha=0.6)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    with pytest.raises(ValueError, match=r"needs .* MiB for each of 1000 ranks, but this machine's memory has .* GiB"):
        buffer_of(steps // 100, batch, 2)


_ON_A_SMALL_DISK = """
import torch
from fabric_rl.sac.replay import ReplayBuffer
from fabric_rl.types import Minibatch
zeros = torch.zeros(2)
like = Minibatch(torch.zeros(2, 64), zeros.long(), *[zeros] * 4, reward=zeros, terminated=zeros > 0, done=zeros > 0)
one = ReplayBuffer(16_000, like, 2, torch.Generator(), "{folder}")
try:
    two = ReplayBuffer(16_000, like, 2, torch.Generator(), "{folder}")
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_buffer_takes_its_space_on_the_disk_when_it_is_made(tmp_path):
    """Two of 4 MiB on a disk of 6 MiB; the steps would fill it later, when no error can tell."""
    small = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=6m none {tmp_path} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*small, "true"], capture_output=True).returncode:
        pytest.skip("nobody may mount a disk here")
    script = _ON_A_SMALL_DISK.format(folder=tmp_path)
    done = subprocess.run([*small, sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    needed = rf"^--buffer_size 16000 needs 4.* MiB, but the disk of --buffer_folder {tmp_path} has 1.* MiB; use a"
    assert re.match(needed, done.stdout), done.stdout + done.stderr


def test_a_folder_that_nothing_can_be_kept_in(tmp_path):
    resource = pytest.importorskip("resource")  # as on a disk that fills in between
    batch, limits = Episodes(2, seed=0).rollout(1), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        with pytest.raises(ValueError, match=r"--buffer_folder .* cannot be used for 8[.]\d* MiB: File too large"):
            buffer_of(600_000, batch, 2, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_rollout_that_does_not_fit():
    episodes = Episodes(2, seed=0)
    replay = buffer_of(8, episodes.rollout(1), 2)
    with pytest.raises(ValueError, match=r"--buffer_size: 10 steps of 2 sub-environments do not fit into 4 rows"):
        replay.add(episodes.rollout(5))
    replay.add(episodes.rollout(4))
    assert len(replay) == 8


# ---------------------------------------------------------------------- priorities


def prioritized(batch, size=8, num_envs=2):
    return ReplayBuffer(size, batch, num_envs, torch.Generator().manual_seed(0), alpha=0.5)


def test_steps_are_drawn_by_their_errors_and_weigh_less_for_it():
    """Errors of 0, 4, 16, 4 are priorities of 0.001, 2, 4, 2."""
    episodes = Episodes(2, seed=0)
    batch = episodes.rollout(2)
    replay = prioritized(batch)
    replay.add(batch)
    at = torch.tensor([0, 1, 2, 3])
    replay.update_priorities(at, torch.tensor([0.0, 4.0, 16.0, 4.0]))
    shares = torch.bincount(replay.sample(8001)).div(8001).tolist()
    assert shares == pytest.approx([0.001 / 8, 0.25, 0.5, 0.25], abs=0.001)
    weights = replay.weights(torch.tensor([1, 2]), 0.4).tolist()
    assert weights == pytest.approx([1.0, (2 / 4) ** 0.4])


def test_new_steps_have_the_highest_priority_and_dropped_ones_none():
    episodes = Episodes(2, seed=0)
    batch = episodes.rollout(3)
    replay = prioritized(batch)
    replay.add(batch)
    replay.update_priorities(replay.sample(50), torch.full((50,), 9.0))
    for _ in range(5):
        newest = episodes.rollout(3)
        replay.add(newest)
        found = replay.transitions(replay.sample(4000), 1, torch.tensor(GAMMA))
        assert len(set(found.obs[:, 0].tolist())) == 8  # as many as it holds
        counts = {obs: int((found.obs == obs).sum()) for obs in newest.obs[:, 0].tolist()}
        assert all(count == 4000 / 8 for count in counts.values())


def test_errors_that_are_not_finite_change_nothing():
    episodes = Episodes(2, seed=0)
    batch = episodes.rollout(2)
    replay = prioritized(batch)
    replay.add(batch)
    replay.update_priorities(torch.arange(4), torch.tensor([4.0, torch.nan, 16.0, torch.inf]))
    state = replay.state_dict()
    assert state["priority"].flatten().tolist() == pytest.approx([2, 1, 4, 1]) and state["highest"] == pytest.approx(4)
    shares = torch.bincount(replay.sample(8000)).div(8000).tolist()
    assert shares == pytest.approx([2 / 8, 1 / 8, 4 / 8, 1 / 8], abs=0.001)


@pytest.mark.parametrize("added", [0, 1, 2, 5])
def test_a_restored_buffer_draws_by_the_same_priorities(added):
    episodes = Episodes(2, seed=1)
    like = episodes.rollout(3)
    replay, again = prioritized(like), prioritized(like)
    for number in range(added):
        replay.add(episodes.rollout(3))
        drawn = replay.sample(5)
        replay.update_priorities(drawn, drawn.float() + number)
    state = replay.state_dict()
    again.add(episodes.rollout(3))
    again.load_state_dict(state)
    more = episodes.rollout(3)
    for each in (replay, again):
        each.add(more)
    again._generator.set_state(replay._generator.get_state())
    assert torch.equal(replay.sample(200), again.sample(200))
    assert torch.equal(replay._tree._nodes, again._tree._nodes)


# ---------------------------------------------------------------------- what reward signals need


def test_steps_for_signals_have_the_last_observations_of_all_episodes():
    episodes = Episodes(3, seed=2)
    batch = episodes.rollout(4)
    replay = ReplayBuffer(30, batch, 3, torch.Generator().manual_seed(0), keep_ends=True)
    for _ in range(9):
        replay.add(batch)
        batch = episodes.rollout(4)
    after = {step[0]: step[3] for steps in episodes.steps for step in steps}
    found = replay.steps(replay.sample(600))
    assert [after[obs] for obs in found.obs[:, 0].tolist()] == found.next_obs[:, 0].tolist()
    again = ReplayBuffer(30, batch, 3, torch.Generator().manual_seed(0), keep_ends=True)
    again.load_state_dict(replay.state_dict())
    found = again.steps(again.sample(600))
    assert [after[obs] for obs in found.obs[:, 0].tolist()] == found.next_obs[:, 0].tolist()


def test_an_environment_that_began_anew_in_between_has_cut_its_episodes():
    """As where it cannot be saved, at a checkpoint: what follows there is no next observation."""
    episodes = Episodes(3, seed=3)
    episodes.rng.choice = lambda _: ""
    batch = episodes.rollout(2)
    replay = buffer_of(30, batch, 3)
    replay.add(batch)
    last = [steps[-1][0] for steps in episodes.steps]
    episodes.obs[0], episodes.obs[2] = episodes.new(), episodes.new()
    replay.add(episodes.rollout(1))
    again = buffer_of(30, batch, 3)
    again.load_state_dict(replay.state_dict())
    for each in (replay, again):
        found = drawn(each, n_step=3)
        for env, obs in enumerate(last):
            _, reward, after, discount = found[obs]
            step = episodes.steps[env][1]
            if env == 1:
                assert discount == GAMMA**2 and reward == pytest.approx(step[2] + GAMMA * episodes.steps[1][2][2])
            else:
                assert (discount, after) == (GAMMA, step[3]) and reward == pytest.approx(step[2])
