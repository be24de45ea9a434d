"""How OpenMP's threads wait is settled before torch is loaded, which reads it once."""

import os
import subprocess
import sys

import pytest

ENDS_AT_TORCH = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"), flush=True)
            os._exit(0)

sys.meta_path.insert(0, Watch())
import MODULE
"""
MODULES = ("train_fabric", "fabric_rl.types", "fabric_rl.loop", "agents", "agents.ppo")


PASSIVE = ({}, "PASSIVE 10000")
OWN = [({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"), ({"GOMP_SPINCOUNT": "7"}, "None 7")]


@pytest.mark.parametrize(
    ("module", "own", "expected"),
    [
        *((module, *PASSIVE) for module in MODULES),
        *((MODULES[0], *own) for own in OWN),
        *(pytest.param(module, *own, marks=pytest.mark.slow) for module in MODULES[1:] for own in OWN),
    ],
)
def test_it_is_settled_before_torch_and_your_setting_wins(module, own, expected, request):
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    code = ENDS_AT_TORCH.replace("MODULE", module)
    root = request.config.rootpath
    told = subprocess.run([sys.executable, "-c", code], cwd=root, env=clean | own, capture_output=True, text=True)
    assert (told.stdout.strip(), told.stderr) == (expected, "")
