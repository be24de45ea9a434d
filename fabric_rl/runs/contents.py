"""What the checkpoint of a run holds, whatever environment and agent it is of."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from fabric_rl.args import MOST_THREADS
from fabric_rl.form import COUNT, Many, Maybe, Named, Number, Whatever, check

_SECONDS = Number(0, 1e12)
_RANK = {
    "env": Whatever(),
    "ahead": True,
    "rollout": {},
    "episodes": {"return": Whatever()},
    "scaler": Maybe({}),
    "torch": Whatever(),
    "cuda": Whatever(),
}
_RUN = {
    "agent": {},
    "callback_names": Many(""),
    "callbacks": Many({}),
    "exact": True,
    "fingerprint": Named(""),
    "iteration": COUNT,
    "kl_adaptive": Maybe({}),
    "metrics": Named(Number(anything=True)),
    "optimizer": {"state": {}, "param_groups": Many({"params": Many(COUNT)})},
    "precision": {},
    "ranks": Many(_RANK),
    "seconds": {"wall": _SECONDS, "collect": _SECONDS, "learn": _SECONDS},
    "steps": COUNT,
    "world_size": Number(1, 2**20, whole=True),
}


def check_contents(state: Mapping[str, Any]) -> None:
    """Checks all that needs no environment and no agent.

    Raises:
        ValueError: It is not the checkpoint of a run; one line.
    """
    missing = [name for name in _RUN if name not in state]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing[:3])}")
    for name, form in _RUN.items():
        check(state[name], form, name)
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state["agent"].items()):
        raise ValueError("its weights are no tensors")
    players = state.get("num_players", 0)  # older ones have none
    check(players, Number(0, state["world_size"] - 1, whole=True), "num_players")
    check(state.get("unpublished", {}), Named([Number(anything=True), Number(anything=True)]), "unpublished")
    check(state.get("signals", []), Many({"name": "", "module": {}, "optimizer": _RUN["optimizer"]}), "signals")
    check(state.get("num_threads", 1), Number(1, MOST_THREADS, whole=True), "num_threads")
    for name, number in (("ranks", state["world_size"]), ("callbacks", len(state["callback_names"]))):
        if len(state[name]) != number:
            raise ValueError(f"{name} has {len(state[name])} entries, not {number}")
    if not (state["iteration"] <= state["steps"] and (state["iteration"] > 0) == (state["steps"] > 0)):
        raise ValueError(f"{state['iteration']} iterations cannot have {state['steps']} steps")
