"""Run the policy in this folder with only numpy and onnxruntime (torch for policy.pt).

`python play.py` prints some of its decisions; `python play.py --check` compares its outputs with those in check.npz.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


class Policy:
    """Policy as a function of observations, with its memory; metadata.json describes inputs and outputs."""

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self.about: dict[str, Any] = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        self._memory = np.zeros((0, self.about["memory_size"]), np.float32)
        model = folder / self.about["model"]
        if self.about["format"] == "onnx":
            import onnxruntime as ort

            threads = ort.SessionOptions()
            threads.intra_op_num_threads = 1
            session = ort.InferenceSession(model.read_bytes(), threads, providers=["CPUExecutionProvider"])
            self._call = lambda inputs: session.run(self.about["outputs"], inputs)
        else:
            import torch

            module = torch.jit.load(model)
            self._call = lambda inputs: [out.numpy() for out in module(*map(torch.from_numpy, inputs.values()))]

    def run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return all outputs by name for all inputs by name: arrays `[N, ...]`."""
        inputs = {name: np.array(given[name], at["dtype"]) for name, at in self.about["inputs"].items()}
        return dict(zip(self.about["outputs"], self._call(inputs), strict=True))

    def __call__(self, obs: Any, begins: Any = None, action_mask: Any = None) -> Any:  # noqa: ANN401 - arrays
        """Return the likeliest actions `[N, ...]` for `obs [N, ...]`; `begins [N]` is True at the start of a game."""
        if len(self._memory) != len(obs):
            self._memory = np.zeros((len(obs), self.about["memory_size"]), np.float32)
        if begins is not None:
            self._memory[np.asarray(begins, bool)] = 0
        if action_mask is None and "action_mask" in self.about["inputs"]:
            action_mask = np.ones((len(obs), self.about["inputs"]["action_mask"]["shape"][1]), bool)
        out = self.run({"obs": obs, "action_mask": action_mask, "state": self._memory})
        self._memory = out.get("new_state", self._memory)
        return out["action"]


if __name__ == "__main__":
    policy, known = Policy(), dict(np.load(Path(__file__).parent / "check.npz"))
    out, tolerance = policy.run(known), policy.about["tolerance"]
    if "--check" not in sys.argv:
        print(*(f"state {row}: action {action}" for row, action in enumerate(out["action"][:10].tolist())), sep="\n")
    elif wrong := [name for name in out if not np.allclose(out[name], known[name], tolerance, tolerance)]:
        sys.exit(f"different from check.npz: {', '.join(wrong)}")
    print(f"{len(known['obs'])} states" + ": all outputs match check.npz" * ("--check" in sys.argv))
