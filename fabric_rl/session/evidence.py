"""What a run that met NaN leaves behind."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from fabric_rl.runs.folder import Run
from fabric_rl.session.session import Session
from fabric_rl.types import NonFiniteError


@contextmanager
def keep_evidence_of_nan(session: Session, run: Run | None) -> Iterator[None]:
    """Keeps the rollout and the weights before it where the block meets NaN or infinity.

    Raises:
        NonFiniteError: It has; the message says where the evidence is, `nonfinite-rank<r>.pt` in the run's folder.
    """
    try:
        yield
    except (NonFiniteError, FloatingPointError) as error:  # the latter from a pool that checks for itself
        raise NonFiniteError(f"{error}{_written(session, run, str(error))}") from error


def _written(session: Session, run: Run | None, message: str) -> str:
    """Writes the evidence; returns where it is, in words, or nothing."""
    if run is None:
        return ""
    path = run.dir / f"nonfinite-rank{session.fabric.global_rank}.pt"
    rollout = {name: value for name, value in vars(session.collector.rollout).items() if isinstance(value, Tensor)}
    evidence = {"rollout": rollout, "weights_before": session.learner.weights_before, "message": message}
    try:
        torch.save(evidence, path)
    except (OSError, RuntimeError):  # a full disk
        return ""
    return f". Rollout and the weights before it are in {path}"
