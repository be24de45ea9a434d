"""ReplayBuffer: the newest steps of a rank's sub-environments, or, in a separate one, demonstrations."""

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.state_schema import check_structure
from fabric_rl.base.trajectory import Trajectory
from fabric_rl.signals.base import Steps
from fabric_rl.types import Minibatch, Sequences, Transitions

_COLUMNS = ("obs", "action", "reward", "terminated", "done", "action_mask", "state")
_ALSO_AFTER = ("obs", "action_mask")
"""Columns that the row after the newest steps also has."""
_INITIAL_LAST = 64
"""Initial capacity for last observations of episodes; it grows by doubling."""
_MIN_ERROR = 1e-6


def _allocate(shape: tuple[int, ...], like: Tensor, folder: str | Path | None) -> Tensor:
    """Return a tensor of zeros; with a folder, in an unnamed file there, whose disk space is reserved if possible."""
    if folder is None:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    kind = torch.empty(0, dtype=like.dtype).numpy().dtype
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # otherwise a full disk would kill the process later, without a message
            os.posix_fallocate(file.fileno(), 0, max(1, math.prod(shape) * kind.itemsize))
        return torch.from_numpy(np.memmap(file, kind, "w+", shape=shape))


def _check_memory(size: int, needed: int, folder: str | Path | None, device: torch.device) -> None:
    """Raise a ValueError if `needed` bytes per rank do not fit, or an OSError if the folder cannot be used."""
    ranks = 1  # ranks that share the memory and have not allocated their part yet
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        where, free = f"the disk of --buffer_folder {folder}", shutil.disk_usage(folder).free
    elif device.type == "cuda":
        where, free = f"{device}", torch.cuda.mem_get_info(device)[0]
    elif hasattr(os, "sysconf"):
        where, free = "this machine's memory", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    else:
        return
    if needed * ranks > free:
        other = "" if folder is not None else ", or keep it on disk with --buffer_folder"
        each = f" for each of {ranks} ranks" if ranks > 1 else ""
        raise ValueError(
            f"--buffer_size {size} needs {_format(needed)}{each}, but {where} has {_format(free)}; use a smaller "
            f"buffer{other}"
        )


def _format(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.4g} MiB"


class SumTree:
    """A binary tree whose nodes are the sums of their two children (Schaul et al. 2016, appendix B.2.1).

    Sampling or changing `B` of `n` leaves takes `log2 n` operations on tensors `[B]`. Weights are float64, or
    float32 on MPS.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        """Allocate `size` leaves of weight 0."""
        self._depth = max(1, (size - 1).bit_length())
        wide = torch.float32 if device.type == "mps" else torch.float64
        self._nodes = torch.zeros(2 << self._depth, dtype=wide, device=device)  # node i has the children 2i, 2i + 1
        self.leaves = self._nodes[1 << self._depth :][:size]

    @property
    def total(self) -> Tensor:
        """0-dim sum of all weights."""
        return self._nodes[1]

    def clear(self) -> None:
        """Set all weights to 0."""
        self._nodes.zero_()

    def set(self, at: Tensor, weights: Tensor) -> None:
        """Set the weights, 0-dim or `[B]`, of the leaves `at [B]`; a leaf that occurs twice gets the larger one."""
        at = at.to(self._nodes.device)
        self.leaves.scatter_reduce_(0, at, weights.to(self._nodes).expand(len(at)), "amax", include_self=False)
        node = at + (1 << self._depth)
        for _ in range(self._depth):
            node = node // 2
            self._nodes[node] = self._nodes[2 * node] + self._nodes[2 * node + 1]

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Sample `[count]` leaves, one from each of `count` equal parts of the sum; weight 0 only if all are 0."""
        shares = (torch.arange(count) + torch.rand(count, generator=generator, dtype=torch.float64)) / count
        left_over = shares.to(self._nodes) * self.total
        node = torch.ones(count, dtype=torch.int64, device=self._nodes.device)
        for _ in range(self._depth):
            left = self._nodes[2 * node]
            right = (left_over >= left) & (self._nodes[2 * node + 1] > 0)  # rounding must not select a weight of 0
            left_over = torch.where(right, left_over - left, left_over)
            node = 2 * node + right
        return node - (1 << self._depth)


class ReplayBuffer:
    """Ring buffer of `rows x N` steps in preallocated tensors, time-major.

    Each observation is stored once: the one after a step is in the next row. The row that will be written next has the
    observations after the newest steps, so there is one row more than the steps need. After a step that ended an
    episode, the next row begins another episode (SAME_STEP autoreset); the last observations of truncated episodes,
    from which values are bootstrapped, are stored separately, in chronological order.

    Steps are identified by flat indices into rows and sub-environments, as returned by `sample`.
    """

    def __init__(
        self,
        size: int,
        like: Minibatch,
        num_envs: int,
        generator: torch.Generator,
        folder: str | Path | None = None,
        keep_ends: bool = False,
        alpha: float = 0.0,
    ) -> None:
        """Allocate the buffer.

        Args:
            size: Capacity in steps.
            like: A flat rollout, for shapes, dtypes and device.
            num_envs: Number of sub-environments, N.
            generator: CPU generator for sampling.
            folder: Folder for temporary files that store the steps instead of the device's memory.
            keep_ends: Also keep the last observations of terminated episodes, which reward signals need.
            alpha: Sample steps in proportion to `|td_error|^alpha` (Schaul et al. 2016, "Prioritized Experience
                Replay", equation 1); 0: uniformly. New steps get the highest priority so far.

        Raises:
            ValueError: Fewer than two steps of each sub-environment fit in, or memory or disk space is too small.
        """
        self.num_envs, self._generator, self._device = num_envs, generator, like.obs.device
        self._keep_ends, self._alpha = keep_ends, alpha
        self._rows = size // num_envs + 1
        if self._rows < 3:
            raise ValueError(f"--buffer_size {size} holds fewer than two steps of each of {num_envs} sub-environments")
        given = {name: tensor for name in _COLUMNS if (tensor := getattr(like, name)) is not None}
        shapes = {name: (self._rows, num_envs, *tensor.shape[1:]) for name, tensor in given.items()}
        needed = sum(math.prod(shape) * given[name].element_size() for name, shape in shapes.items())
        beside = 8 * self._rows * num_envs * (5 if alpha else 1)  # `_number`, and the nodes of the tree
        try:
            if folder is not None:
                _check_memory(size, needed, folder, self._device)
            _check_memory(size, beside + (needed if folder is None else 0), None, self._device)
            self._columns = {name: _allocate(shape, given[name], folder) for name, shape in shapes.items()}
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"--buffer_folder {folder} cannot be used for {_format(needed)}: {reason}") from error
        self._flat = {name: x.flatten(0, 1) for name, x in self._columns.items()}  # views
        self._home = self._columns["obs"].device
        self._last = torch.empty(_INITIAL_LAST, *like.obs.shape[1:], dtype=like.obs.dtype, device=self._home)
        self._number = torch.zeros(self._rows, num_envs, dtype=torch.int64, device=self._home)  # of last observations
        self._tree = SumTree(self._rows * num_envs, self._home) if alpha else None
        self._highest: Tensor  # priority
        self._clear()

    def __len__(self) -> int:
        return self._filled * self.num_envs

    def add(self, batch: Minibatch) -> None:
        """Add the next steps of all sub-environments, replacing the oldest ones if the buffer is full.

        Args:
            batch: Flat `[T * N]` batch with the fields in `OffPolicyAgent.minibatch_fields`.

        Raises:
            ValueError: The batch does not consist of whole rows, or has more than fit in.
        """
        steps, rest = divmod(len(batch.obs), self.num_envs)
        if rest or not 0 < steps < self._rows:
            raise ValueError(
                f"--buffer_size: {len(batch.obs)} steps of {self.num_envs} sub-environments do not fit into "
                f"{self._rows - 1} rows; a rollout has --train_interval steps each"
            )
        columns = {name: _rows(getattr(batch, name), steps) for name in self._columns}
        assert batch.next_obs is not None
        following = {"obs": _rows(batch.next_obs, steps)}
        if batch.next_action_mask is not None:
            following["action_mask"] = _rows(batch.next_action_mask, steps)
        self._truncate_reset_episodes(columns["obs"][0])
        ends = self._kept(columns["done"], columns["terminated"])
        self._write(columns, {name: tensor[-1] for name, tensor in following.items()}, following["obs"][ends])

    def sample(self, count: int) -> Tensor:
        """Sample the indices `[count]` of steps with replacement, by their priorities or uniformly."""
        if self._tree is not None:
            return self._tree.sample(count, self._generator)
        drawn = torch.randint(len(self), (count,), generator=self._generator).to(self._home)
        age, env = drawn // self.num_envs, drawn % self.num_envs  # age 0 is the oldest row
        return (self._position - self._filled + age) % self._rows * self.num_envs + env

    def weights(self, at: Tensor, beta: float) -> Tensor:
        """Return importance-sampling weights `[B]` float32 of the steps `at [B]`: `(n P(i))^-beta` over their maximum.

        See Schaul et al. 2016, section 3.4.
        """
        assert self._tree is not None
        found = (len(self) * self._tree.leaves[at] / self._tree.total) ** -beta
        return (found / found.max()).float().to(self._device)

    def update_priorities(self, at: Tensor, errors: Tensor, least: float = _MIN_ERROR) -> None:
        """Set the priorities of the steps `at [B]` by their errors `[B]`, 0 or more, to which `least` is added.

        Where an error is not finite, as in 16-bit precision before the loss scale has settled, the priority is kept.
        """
        assert self._tree is not None
        priorities = (errors.to(self._tree.leaves) + least) ** self._alpha
        priorities = torch.where(priorities.isfinite(), priorities, self._tree.leaves[at])
        self._highest = torch.maximum(self._highest, priorities.max())
        self._tree.set(at, priorities)

    def steps(self, at: Tensor) -> Steps:
        """Return the single steps `at [B]` for reward signals; needs `keep_ends`."""
        flat = self._flat
        found = (flat["obs"][at], flat["action"][at], self._obs_after(at, flat["done"][at]))
        return Steps(*(x.to(self._device) for x in found))

    def transitions(
        self,
        at: Tensor,
        n_step: int,
        gamma: Tensor,
        episodic: Tensor | None = None,
        pay: Callable[[Steps], Tensor] | None = None,
    ) -> Transitions:
        """Return the steps `at` with n-step returns, which are shorter before an episode's end and the newest step.

        Args:
            at: `[B]` indices of steps, see `sample`.
            n_step: Maximum number of rewards in a return.
            gamma: Discount factor, or `[K]` for K reward signals.
            episodic: `[K]` bool, True for signals whose returns end with an episode; None: all.
            pay: Function from `M` steps to the current rewards `[M, S]` of the last S signals.
        """
        size, flat = self._rows * self.num_envs, self._flat
        chain, counts = self._chain(at, n_step)
        end = chain[-1]
        reward = flat["reward"].view(size, -1)[chain].to(self._device)  # [n, B, K]
        if pay is not None:
            paid = pay(self.steps(chain.flatten())).view(n_step, len(at), -1)
            reward = torch.cat((reward[..., : -paid.shape[-1]], paid), dim=-1)
        own, gammas = counts.to(self._device), gamma.view(-1).to(self._device)  # [K]
        if n_step == 1:
            reward = reward[0]
        else:
            powers = gammas ** torch.arange(n_step, device=self._device)[:, None]
            reward = (reward * powers[:, None] * own[..., None]).sum(dim=0)
        terminated = flat["terminated"][end]
        alive = ~terminated.to(self._device)[:, None]
        alive = alive if episodic is None else alive | ~episodic
        discount = gammas ** own.sum(dim=0)[:, None] * alive
        cut = flat["done"][end] & ~terminated
        next_obs, mask, next_mask = self._obs_after(end, cut), None, None
        if "action_mask" in flat:  # the mask of a last observation is not known
            mask, allowed = flat["action_mask"][at], flat["action_mask"]
            next_mask = torch.where(cut[:, None], allowed[end], allowed[(end + self.num_envs) % size])
        shape = (len(at), *self._columns["reward"].shape[2:])
        returns = (reward.view(shape), next_obs, discount.view(shape))
        found = (flat["obs"][at], flat["action"][at], *returns, mask, next_mask)
        return Transitions(*(None if x is None else x.to(self._device) for x in found))  # type: ignore[arg-type]

    def sample_sequences(self, count: int, length: int, burn_in: int, n_step: int, *how: Any) -> Transitions:  # noqa: ANN401
        """Sample sequences of steps for agents with memory.

        Each sequence begins at any step, with the memory stored when it was collected (Kapturowski et al. 2019,
        "Recurrent Experience Replay in Distributed Reinforcement Learning", section 3), and may continue in the next
        episode. The priorities of the steps become their weights.

        Args:
            count: Number of sequences, S.
            length: Steps to learn from, L.
            burn_in: Steps before them that only refresh the memory, P.
            n_step: See `transitions`.
            how: Further arguments of `transitions`.
        """
        home, num_envs, flat = self._home, self.num_envs, self._flat
        begins_at = torch.randint(  # [S] the first step of each sequence, counted from the oldest
            (self._filled - burn_in - length + 1) * num_envs, (count,), generator=self._generator
        )
        age = (torch.arange(burn_in + length + n_step)[:, None] + begins_at // num_envs).to(home)  # [P + L + n, S] rows
        step = (self._position - self._filled + age) % self._rows * num_envs + (begins_at % num_envs).to(home)
        episode_start = torch.cat((torch.zeros_like(step[:1], dtype=torch.bool), flat["done"][step[:-1]]))
        before, after = slice(0, burn_in), slice(burn_in, None)  # [P], [L + n]
        obs, starts, place = self._with_last_observations(step[after], episode_start[after], age[after] < self._filled)

        learned = step[burn_in : burn_in + length].flatten()  # [B] = [L * S]
        sequence = torch.arange(count, device=home).repeat(length)  # [B] column of each step
        row = torch.arange(length, device=home).repeat_interleave(count)  # [B]
        end = row + self._chain(learned, n_step)[1].sum(dim=0) - 1  # [B] row of the last step whose reward counts
        now = place[row, sequence] * count + sequence  # [B] in obs.flatten(0, 1)
        following = (place[end, sequence] + 1) * count + sequence  # [B]
        state = flat["state"][step[0]] if "state" in flat else None  # [S, M]
        burned = (flat["obs"][step[before]], episode_start[before]) if burn_in else ()
        moved = (None if x is None else x.to(self._device) for x in (obs, starts, now, following, state, *burned))
        weight = None if self._tree is None else self._tree.leaves[learned].float().to(self._device)
        found = self.transitions(learned, n_step, *how)
        return found._replace(sequences=Sequences(*moved), weight=weight)  # type: ignore[arg-type]

    def _with_last_observations(self, step: Tensor, starts: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Insert the last observations of truncated episodes after their steps.

        Args:
            step: `[R, S]` indices of the steps.
            starts: `[R, S]` bool, True where an episode begins.
            known: `[R, S]` bool, True if the step is in the buffer.

        Returns:
            Observations `[G, S, ...]` and episode starts `[G, S]` of G rows, and the row of each step `[R, S]`.
        """
        done, terminated, all_obs = (self._flat[name] for name in ("done", "terminated", "obs"))
        done, terminated = done[step], terminated[step]
        cut = done & ~terminated & known  # [R, S]
        cut[-1] = False  # nothing follows it here
        rows, count = step.shape
        column = torch.arange(count, device=step.device).expand_as(step)  # [R, S]
        place = torch.arange(rows, device=step.device)[:, None] + cut.cumsum(dim=0) - cut.long()  # [R, S]
        length = rows + int(cut.sum(dim=0).max())
        obs = all_obs.new_zeros(length, count, *all_obs.shape[1:])
        obs[place, column] = all_obs[step]
        obs[place[cut] + 1, column[cut]] = self._obs_after(step[cut], cut[cut])
        episode_start = starts.new_zeros(length, count)
        episode_start[place, column] = starts
        return obs, episode_start, place

    def _chain(self, at: Tensor, n_step: int) -> tuple[Tensor, Tensor]:
        """Return `[n, B]` indices of the n steps from each `at [B]` on, and bools, False after an episode's end.

        After an end, the last index is repeated.
        """
        age = (at // self.num_envs - self._position + self._filled) % self._rows
        done, size = self._flat["done"], self._rows * self.num_envs
        chain, there = [at], [torch.ones_like(at, dtype=torch.bool)]
        for number in range(1, n_step):
            there.append(there[-1] & ~done[chain[-1]] & (age + number < self._filled))
            chain.append(torch.where(there[-1], (chain[-1] + self.num_envs) % size, chain[-1]))
        return torch.stack(chain), torch.stack(there)

    def _obs_after(self, at: Tensor, ended: Tensor) -> Tensor:
        """Return the observations after the steps `at [B]`: the last one of the episode if `ended`, else the next."""
        obs = self._flat["obs"]
        after = obs[(at + self.num_envs) % len(obs)]
        if self._next == self._first:
            return after
        last = self._last[self._number.flatten()[at] % len(self._last)]
        return torch.where(ended.view(-1, *[1] * (after.dim() - 1)), last, after)

    def _kept(self, done: Tensor, terminated: Tensor) -> Tensor:
        """Return True for the steps after which a last observation is kept."""
        return done if self._keep_ends else done & ~terminated

    def state_dict(self) -> dict[str, Tensor]:
        """Return all steps in chronological order, and the observations after the newest ones."""
        rows = (self._position - self._filled + torch.arange(self._filled + 1)) % self._rows
        state = {name: x[rows if name in _ALSO_AFTER else rows[:-1]] for name, x in self._columns.items()}
        ends = self._number[rows[:-1]][self._kept(state["done"], state["terminated"])]
        state["last"] = self._last[ends % len(self._last)]
        if self._tree is None:
            return state
        priority = self._tree.leaves.view(self._rows, -1)[rows[:-1]]  # sampling depends on positions, so they are kept
        return state | {"priority": priority, "highest": self._highest, "position": torch.tensor(self._position)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state of a buffer with any number of steps; raise a ValueError if the columns differ."""
        rows = self._check_state(state)
        self._clear(int(state["position"] - rows) % self._rows if "position" in state else 0)
        if rows:
            following = {name: state[name][-1] for name in self._columns if name in _ALSO_AFTER}
            self._write({name: state[name][:rows] for name in self._columns}, following, state["last"])
            if self._tree is not None and "priority" in state:
                written = (self._position - rows + torch.arange(rows)) % self._rows
                self._tree.set(self._indices(written), state["priority"].flatten())
                self._highest = state["highest"].to(self._highest)

    def _check_state(self, state: Mapping[str, Tensor]) -> int:
        """Return the number of rows of a saved state; raise a ValueError if it does not fit."""
        rows, ends = len(state["reward"]), int(self._kept(state["done"], state["terminated"]).sum())
        if rows >= self._rows:
            raise ValueError(
                f"--buffer_size is too small for the steps in the checkpoint; set it to at least {rows * self.num_envs}"
            )
        if len(state["last"]) != ends:
            raise ValueError(f"it has {len(state['last'])} last observations for {ends} episodes that ended")
        lengths = {name: rows + (name in _ALSO_AFTER) for name in self._columns}
        own = {name: x.new_zeros(()).expand(lengths[name], *x.shape[1:]) for name, x in self._columns.items()}
        own["last"] = self._last.new_zeros(()).expand(ends, *self._last.shape[1:])
        if self._tree is not None:
            own |= {"priority": self._tree.leaves.new_zeros(()).expand(rows, self.num_envs), "highest": self._highest}
        check_structure(state, own, "it")
        return rows

    def _clear(self, position: int = 0) -> None:
        self._position, self._filled = position, 0
        if self._tree is not None:
            self._highest = torch.ones_like(self._tree.total)
            self._tree.clear()
        self._first = self._next = 0  # range of the numbers of the kept last observations, which are never reused

    def _indices(self, rows: Tensor) -> Tensor:
        """Return the indices `[T * N]` of all steps in the rows `[T]`."""
        return (rows[:, None] * self.num_envs + torch.arange(self.num_envs)).flatten().to(self._home)

    def _write(self, columns: Mapping[str, Tensor], following: Mapping[str, Tensor], last: Tensor) -> None:
        """Write rows `[T, N, ...]`, the row after the newest, and the last observations to keep."""
        steps, home = len(columns["reward"]), self._home
        dropped = max(0, self._filled + steps - (self._rows - 1))
        if dropped:
            oldest = (self._position - self._filled + torch.arange(dropped)) % self._rows
            self._first += int(self._kept(*(self._columns[name][oldest] for name in ("done", "terminated"))).sum())
        rows = (self._position + torch.arange(steps)) % self._rows
        where = self._position if steps == 1 else rows  # an integer is faster
        for name, tensor in columns.items():
            self._columns[name][where] = tensor.to(home)
        self._position = (self._position + steps) % self._rows
        self._filled += steps - dropped
        for name, tensor in following.items():
            self._columns[name][self._position] = tensor.to(home)
        self._store_last(rows, self._kept(columns["done"], columns["terminated"]).to(home), last.to(home))
        if self._tree is not None:  # the row that will be written next has no steps yet
            self._tree.set(self._indices(rows), self._highest)
            self._tree.set(self._indices(torch.tensor([self._position])), torch.zeros(()))

    def _truncate_reset_episodes(self, obs: Tensor) -> None:
        """Truncate the episodes that do not continue with `obs [N, ...]`, because the environment was reset."""
        if not self._filled:
            return
        newest = (self._position - 1) % self._rows
        after, done = self._columns["obs"][self._position], self._columns["done"][newest]
        cut = (after != obs.to(self._home)).flatten(1).any(dim=1) & ~done
        if cut.any():
            self._columns["done"][newest] = done | cut
            self._store_last(torch.tensor([newest]), cut[None], after[cut])

    def _store_last(self, rows: Tensor, ends: Tensor, last: Tensor) -> None:
        """Store the last observations `last [M, ...]` of the steps in `rows [T]` where `ends [T, N]`."""
        if not len(last):
            return
        size, needed = len(self._last), self._next - self._first + len(last)
        if needed > size:
            kept = torch.arange(self._first, self._next, device=self._home)
            larger = self._last.new_empty(max(2 * size, needed), *self._last.shape[1:])
            larger[kept % len(larger)] = self._last[kept % size]
            self._last = larger
        numbers = torch.arange(self._next, self._next + len(last), device=self._home)
        self._last[numbers % len(self._last)] = last
        number = self._number[rows]
        number[ends] = numbers
        self._number[rows] = number
        self._next += len(last)


def _rows(flat: Tensor, steps: int) -> Tensor:
    return flat.reshape(steps, len(flat) // steps, *flat.shape[1:])


def demonstration_buffer(
    trajectories: Sequence[Trajectory],
    strength: float,
    like: Minibatch,
    generator: torch.Generator,
    folder: str | Path | None,
    keep_ends: bool,
) -> ReplayBuffer:
    """Return a buffer with all demonstrations one after another, sampled in proportion to their steps' weights.

    Demonstrations do not show what an agent would have remembered: the stored memory is zero at every step, and the
    burn-in of a sequence fills it. Sequences are sampled evenly, and the weights become those of their steps.
    Rewards are multiplied by `strength`; the other arguments are those of `ReplayBuffer`. Raise a ValueError if the
    steps have no rewards, there are fewer than two, or they do not fit into memory.
    """
    if any(each.reward is None for each in trajectories) or sum(len(each.action) for each in trajectories) < 2:
        raise ValueError("--demonstrations: at least two steps are needed, each with its reward")

    def column(parts: Sequence[NDArray[Any]]) -> Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(like.obs.device)

    def ends(really: bool) -> list[NDArray[np.bool_]]:
        return [(np.arange(1, len(x.action) + 1) == len(x.action)) & (really or x.terminated) for x in trajectories]

    assert like.reward is not None
    reward = strength * column([x.reward for x in trajectories])  # type: ignore[misc]
    if like.reward.dim() > 1:  # rewards of signals are computed when a step is sampled
        known = reward.view(len(reward), -1)
        reward = torch.cat((known, known.new_zeros(len(known), like.reward.shape[1] - known.shape[1])), dim=1)
    mask = None
    if like.action_mask is not None:
        width = like.action_mask.shape[1]
        masks = ((x.action_mask, (len(x.action), width)) for x in trajectories)  # not every demonstration has masks
        mask = column([np.ones(shape, np.bool_) if known is None else known for known, shape in masks])
    steps = like._replace(
        obs=column([x.obs[:-1] for x in trajectories]),
        action=column([x.action for x in trajectories]),
        reward=reward,
        next_obs=column([x.obs[1:] for x in trajectories]),
        terminated=column(ends(False)),
        done=column(ends(True)),
        action_mask=mask,
        next_action_mask=mask,
        state=None if like.state is None else like.state.new_zeros(len(reward), like.state.shape[1]),
    )
    replay = ReplayBuffer(len(reward), steps, 1, generator, folder, keep_ends, alpha=1.0)
    replay.add(steps)
    weight = column([x.weight for x in trajectories])
    if not weight.any():
        raise ValueError("--demonstrations: all of their steps have weight 0")
    replay.update_priorities(torch.arange(len(reward)), weight, least=0.0)
    return replay


def concat_sequences(first: Transitions, second: Transitions, length: int) -> Transitions:
    """Return the sequences of both minibatches, each of `length` L steps, side by side; see `Transitions`.

    A minibatch without weights has weights of 1 if the other has any.
    """
    parts = [first, second]
    if any(part.weight is not None for part in parts):
        parts = [p if p.weight is not None else p._replace(weight=torch.ones(len(p.obs))) for p in parts]
        parts = [p._replace(weight=cast(Tensor, p.weight).to(p.obs.device)) for p in parts]

    def joined(fields: Sequence[Any]) -> Tensor | None:  # [L * S, ...]
        if any(x is None for x in fields):
            return None
        return torch.cat([x.view(length, -1, *x.shape[1:]) for x in fields], dim=1).flatten(0, 1)

    inner = [cast(Sequences, part.sequences) for part in parts]
    counts, rows = [x.obs.shape[1] for x in inner], max(len(x.obs) for x in inner)  # S, G

    def padded(x: Tensor) -> Tensor:  # [G, S, ...]
        return torch.cat((x, x.new_zeros(rows - len(x), *x.shape[1:])))

    def moved(name: str) -> Tensor | None:  # indices in obs.flatten(0, 1)
        at = [getattr(x, name) for x in inner]
        offsets = (0, counts[0])
        new = [i // s * sum(counts) + i % s + offset for i, s, offset in zip(at, counts, offsets, strict=True)]
        return joined(new)

    def beside(name: str, dim: int) -> Tensor | None:
        found = [getattr(x, name) for x in inner]
        return None if found[0] is None else torch.cat(found, dim=dim)

    sequences = Sequences(
        torch.cat([padded(x.obs) for x in inner], dim=1),
        torch.cat([padded(x.episode_start) for x in inner], dim=1),
        cast(Tensor, moved("now")),
        cast(Tensor, moved("after")),
        beside("state", 0),
        beside("burn_in_obs", 1),
        beside("burn_in_start", 1),
    )
    columns = [joined(pair) for pair in zip(*(part[:-2] for part in parts), strict=True)]  # before `sequences`
    return Transitions(*columns)._replace(sequences=sequences)  # type: ignore[arg-type]  # None only where it was
