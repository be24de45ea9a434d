"""ReplayBuffer: the newest steps of a rank's sub-environments, to draw from."""

import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fabric_rl.form import Numbers, check, fitting
from fabric_rl.types import Minibatch, Transitions

_COLUMNS = ("obs", "action", "reward", "terminated", "done", "action_mask")
_FEW = 64
"""Last observations of truncated episodes that there is room for at first; it grows by doubling."""


class ReplayBuffer:
    """A ring of `rows x N` steps in tensors that are allocated once, time-major.

    An observation is kept once: what follows a step is the observation of the row after it. The row that will be
    written next holds what follows the newest step, so one row more is allocated than steps fit in. Behind a step that
    ended an episode another one begins (SAME_STEP autoreset); the last observations of truncated episodes, from which
    values are bootstrapped, are kept apart, in the order of time.
    """

    def __init__(
        self, size: int, like: Minibatch, num_envs: int, generator: torch.Generator, folder: str | Path | None = None
    ) -> None:
        """Allocates.

        Args:
            size: Steps.
            like: A flat rollout, for shapes, dtypes and device.
            num_envs: N, sub-environments.
            generator: Draws; on the CPU.
            folder: Keep the steps in files there, which vanish with the process, instead of on the device.

        Raises:
            ValueError: Not two steps of each sub-environment fit in, or memory or disk are too small.
        """
        self.num_envs, self._generator, self._device = num_envs, generator, like.obs.device
        self._rows = size // num_envs + 1
        if self._rows < 3:
            raise ValueError(f"--buffer_size {size} holds less than two steps of {num_envs} sub-environments")
        given = {name: tensor for name in _COLUMNS if (tensor := getattr(like, name)) is not None}
        shapes = {name: (self._rows, num_envs, *tensor.shape[1:]) for name, tensor in given.items()}
        needed = sum(math.prod(shape) * given[name].element_size() for name, shape in shapes.items())
        _check_room(size, needed, folder, self._device)
        self._columns = {name: _allocated(shape, given[name], folder) for name, shape in shapes.items()}
        home = self._columns["obs"].device
        self._last = torch.empty(_FEW, *like.obs.shape[1:], dtype=like.obs.dtype, device=home)
        self._number = torch.zeros(self._rows, num_envs, dtype=torch.int64, device=home)  # which of those, since ever
        self._begin()

    def __len__(self) -> int:
        return self._filled * self.num_envs

    def add(self, batch: Minibatch) -> None:
        """Takes the next steps of all sub-environments, over the oldest ones where it is full.

        Args:
            batch: Flat, `[T * N]`, with all that `OffPolicyAgent.minibatch_fields` names.

        Raises:
            ValueError: They are no whole rows, or more than fit in.
        """
        steps, rest = divmod(len(batch.obs), self.num_envs)
        if rest or not 0 < steps < self._rows:
            raise ValueError(
                f"--buffer_size: {len(batch.obs)} steps of {self.num_envs} sub-environments do not fit into "
                f"{self._rows - 1} rows; a rollout has --train_interval steps of each"
            )
        columns = {name: _rows(getattr(batch, name), steps) for name in self._columns}
        assert batch.next_obs is not None
        following = {"obs": _rows(batch.next_obs, steps)}
        if batch.next_action_mask is not None:
            following["action_mask"] = _rows(batch.next_action_mask, steps)
        cut = columns["done"] & ~columns["terminated"]
        self._write(columns, {name: tensor[-1] for name, tensor in following.items()}, following["obs"][cut])

    def sample(self, count: int, n_step: int, gamma: float) -> Transitions:
        """Draws steps, each as likely, with replacement.

        Returns of up to `n_step` rewards are cut short by the end of an episode and by the newest step.

        Args:
            count: B.
            n_step: At most so many rewards.
            gamma: Discount.
        """
        drawn = torch.randint(len(self), (count,), generator=self._generator).to(self._last.device)
        age, env = drawn // self.num_envs, drawn % self.num_envs  # age 0 is the oldest row
        at = (self._position - self._filled + age) % self._rows * self.num_envs + env
        size = self._rows * self.num_envs
        flat = {name: tensor.flatten(0, 1) for name, tensor in self._columns.items()}
        end, reward = at, flat["reward"][at]
        steps = torch.ones_like(at)
        for number in range(1, n_step):
            goes_on = ~flat["done"][end] & (age + number < self._filled) & (steps == number)
            end = torch.where(goes_on, (end + self.num_envs) % size, end)
            reward = torch.where(goes_on, reward + gamma**number * flat["reward"][end], reward)
            steps = steps + goes_on
        terminated = flat["terminated"][end]
        following = (end + self.num_envs) % size
        next_obs, mask, next_mask = flat["obs"][following], None, None
        cut = flat["done"][end] & ~terminated
        if self._next > self._first:
            last = self._last[self._number.flatten()[end] % len(self._last)]
            next_obs = torch.where(cut.view(-1, *[1] * (next_obs.dim() - 1)), last, next_obs)
        if "action_mask" in flat:  # nothing says what was allowed in a last observation
            mask, allowed = flat["action_mask"][at], flat["action_mask"]
            next_mask = torch.where(cut[:, None], allowed[end], allowed[following])
        discount = gamma ** steps.float() * ~terminated
        drawn_steps = (flat["obs"][at], flat["action"][at], reward, next_obs, discount, mask, next_mask)
        return Transitions(*(None if x is None else x.to(self._device) for x in drawn_steps))  # type: ignore[arg-type]

    def state_dict(self) -> dict[str, Tensor]:
        """All steps in the order of time, and what follows the newest one."""
        rows = (self._position - self._filled + torch.arange(self._filled + 1)) % self._rows
        whole = ("obs", "action_mask")  # the others end a row before
        state = {name: x[rows if name in whole else rows[:-1]] for name, x in self._columns.items()}
        return state | {"last": self._last[torch.arange(self._first, self._next) % len(self._last)]}

    def check(self, state: Mapping[str, Any], where: str) -> None:
        """Raises ValueError unless `state_dict` of a buffer like this one, of any fill, gave that."""
        with fitting(where):
            rows, last = len(state["reward"]), len(state["last"])
            cut = int((state["done"] & ~state["terminated"]).sum())
        if rows >= self._rows:
            raise ValueError(f"{where} has {rows} rows of steps, --buffer_size makes {self._rows - 1}")
        form = {
            name: Numbers(x.new_zeros(()).expand(rows + (name in ("obs", "action_mask")), *x.shape[1:]))
            for name, x in self._columns.items()
        }
        check(state, form | {"last": Numbers(self._last.new_zeros(()).expand(last, *self._last.shape[1:]))}, where)
        if cut != last:
            raise ValueError(f"{where} has {last} last observations of {cut} truncated episodes")

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from what `state_dict` gave."""
        self._begin()
        rows = len(state["reward"])
        if rows:
            following = {name: state[name][-1] for name in ("obs", "action_mask") if name in state}
            self._write({name: state[name][:rows] for name in self._columns}, following, state["last"])

    def _begin(self) -> None:
        """Empties it."""
        self._position = self._filled = 0
        self._first = self._next = 0  # numbers of the last observations that are kept, since ever

    def _write(self, columns: Mapping[str, Tensor], following: Mapping[str, Tensor], last: Tensor) -> None:
        """Writes rows `[T, N, ...]`, what follows the newest, and the last observations of truncated episodes."""
        steps = len(columns["reward"])
        home = self._last.device
        dropped = max(0, self._filled + steps - (self._rows - 1))
        if dropped:
            oldest = (self._position - self._filled + torch.arange(dropped)) % self._rows
            ends = self._columns["done"][oldest] & ~self._columns["terminated"][oldest]
            self._first += int(ends.sum())
        rows = (self._position + torch.arange(steps)) % self._rows
        for name, tensor in columns.items():
            self._columns[name][rows] = tensor.to(home)
        self._position = (self._position + steps) % self._rows
        self._filled += steps - dropped
        for name, tensor in following.items():
            self._columns[name][self._position] = tensor.to(home)
        if len(last):
            self._make_room(len(last))
            numbers = torch.arange(self._next, self._next + len(last), device=home)
            self._last[numbers % len(self._last)] = last.to(home)
            cut = (columns["done"] & ~columns["terminated"]).to(home)
            number = torch.zeros(cut.shape, dtype=torch.int64, device=home)
            number[cut] = numbers
            self._number[rows] = number
            self._next += len(last)

    def _make_room(self, more: int) -> None:
        """For so many more last observations."""
        kept, size = self._next - self._first, len(self._last)
        if kept + more <= size:
            return
        numbers = torch.arange(self._first, self._next, device=self._last.device)
        larger = self._last.new_empty(max(2 * size, kept + more), *self._last.shape[1:])
        larger[numbers % len(larger)] = self._last[numbers % size]
        self._last = larger


def _rows(flat: Tensor, steps: int) -> Tensor:
    return flat.reshape(steps, -1, *flat.shape[1:])


def _allocated(shape: tuple[int, ...], like: Tensor, folder: str | Path | None) -> Tensor:
    """An empty tensor, in a file without a name if there is a folder."""
    if folder is None:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    kind = torch.empty(0, dtype=like.dtype).numpy().dtype
    with tempfile.TemporaryFile(dir=folder) as file:
        return torch.from_numpy(np.memmap(file, kind, "w+", shape=shape))


def _check_room(size: int, needed: int, folder: str | Path | None, device: torch.device) -> None:
    """Raises ValueError where so many bytes do not fit."""
    if folder is not None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            where, free = f"the disk of --buffer_folder {folder}", shutil.disk_usage(folder).free
        except OSError as error:
            raise ValueError(f"--buffer_folder {folder} cannot be used: {error.strerror or error}") from error
    elif device.type == "cuda":
        where, free = f"{device}", torch.cuda.mem_get_info(device)[0]
    elif hasattr(os, "sysconf"):
        where, free = "this machine's memory", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    else:
        return
    if needed > free:
        other = "" if folder is not None else ", or keep it on disk with --buffer_folder"
        raise ValueError(
            f"--buffer_size {size} needs {needed / 2**30:.1f} GiB, and {where} has {free / 2**30:.1f}; take a smaller "
            f"one{other}"
        )
