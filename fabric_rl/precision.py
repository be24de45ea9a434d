"""What a processor really can: some report bfloat16 tiles (AMX) that their system does not let programs use."""

import os
import signal
import subprocess
import sys
import warnings

_ISA = "ONEDNN_MAX_CPU_ISA"
_WITHOUT_TILES = "AVX512_CORE_BF16"
_PROBE = """
import torch
layer, x = torch.nn.Linear(64, 64), torch.randn(64, 64)
with torch.autocast("cpu", torch.bfloat16):
    layer(x).float().sum().backward()
"""


def avoid_illegal_instructions() -> None:
    """Makes bfloat16 on the CPU safe; call it before the first computation in bfloat16.

    A small layer is tried in a process of its own. If the processor refuses an instruction there, oneDNN is told to do
    without tiles (environment variable ONEDNN_MAX_CPU_ISA, which wins if it is set already), with a warning: bfloat16
    is slower than float32 then.
    """
    if _ISA in os.environ or sys.platform == "win32":
        return
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False)
    if probe.returncode == -signal.SIGILL:
        os.environ[_ISA] = _WITHOUT_TILES
        warnings.warn(
            "--precision: this machine does not run the bfloat16 tile instructions that its processor reports; going "
            f"on without them ({_ISA}={_WITHOUT_TILES}), which is slower than --precision 32-true",
            RuntimeWarning,
            stacklevel=2,
        )
