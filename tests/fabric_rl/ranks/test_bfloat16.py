"""bfloat16 on processors that report instructions they do not run: slower, or one line, never a crash."""

import signal
import sys

import pytest

from fabric_rl.ranks.devices import _PROBE

COMPUTE_FIRST = """
import torch
torch.nn.Conv2d(3, 8, 3)(torch.randn(2, 3, 16, 16)).sum().backward()
"""
USE = f"""
from fabric_rl.ranks.devices import avoid_illegal_instructions
try:
    avoid_illegal_instructions()
except ValueError as error:
    print("refused:", error)
else:
    {_PROBE.strip().replace(chr(10), chr(10) + "    ")}
    print("computed")
import os
print(os.environ.get("ONEDNN_MAX_CPU_ISA"))
"""


@pytest.fixture
def run(forks):
    def run(code):
        own = "import os\nos.environ.pop('ONEDNN_MAX_CPU_ISA', None)\n"  # oneDNN has not read it yet
        (status,), out, _ = forks.wait([forks.start(own + code, program="builtins:exec")])
        return status, out.splitlines()

    return run


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_bfloat16_computes_or_is_refused_in_one_line(run):
    refuses = run(_PROBE)[0] == -signal.SIGILL
    assert run(USE) == (0, ["computed", "AVX512_CORE_BF16" if refuses else "None"])
    status, lines = run(COMPUTE_FIRST + USE)  # oneDNN has read the variable
    assert status == 0
    if refuses:
        assert lines[0].startswith("refused: --precision bf16-mixed: ")
        assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before Python starts" in lines[0]
        assert lines[1] == "None"  # the next call is refused as well
    else:
        assert lines == ["computed", "None"]
