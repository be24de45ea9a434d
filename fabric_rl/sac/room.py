"""Where the columns of a replay buffer stand, in memory or in files, and whether there is room."""

import math
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def allocated(shape: tuple[int, ...], like: Tensor, folder: str | Path | None) -> Tensor:
    """An empty tensor; if there is a folder, in a file without a name whose space is taken now, if the system can."""
    if folder is None:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    kind = torch.empty(0, dtype=like.dtype).numpy().dtype
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # else a disk that is full one day ends the process, without a word
            os.posix_fallocate(file.fileno(), 0, max(1, math.prod(shape) * kind.itemsize))
        return torch.from_numpy(np.memmap(file, kind, "w+", shape=shape))


def check_room(size: int, needed: int, folder: str | Path | None, device: torch.device) -> None:
    """Raises ValueError where so many bytes of each rank do not fit, or OSError for a folder that cannot be used."""
    ranks = 1  # that share it and have not taken their part yet
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
            f"--buffer_size {size} needs {in_words(needed)}{each}, and {where} has {in_words(free)}; take a smaller "
            f"one{other}"
        )


def in_words(size: int) -> str:
    """So many bytes."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.4g} MiB"
