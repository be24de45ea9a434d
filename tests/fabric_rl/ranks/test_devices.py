"""bfloat16 on processors that report instructions they do not run: one line, never a crash."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from fabric_rl.ranks.devices import check_bfloat16


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_processor_that_refuses_its_own_bfloat16_is_told_before_anything_is_computed(monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    stopped = SimpleNamespace(returncode=-signal.SIGILL)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: stopped)
    with pytest.raises(ValueError, match=r"--precision bf16-mixed: .* set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before"):
        check_bfloat16()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    check_bfloat16()
