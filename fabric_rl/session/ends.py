"""How a run begins and how it ends, whatever it learns with: in order, or with NaN, of which evidence is kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from fabric_rl.args import Saving
from fabric_rl.runs.folder import Run
from fabric_rl.session.monitor import Record
from fabric_rl.session.saving import NoSaver, Saver
from fabric_rl.session.session import Session
from fabric_rl.session.stopping import StopSignals
from fabric_rl.types import NonFiniteError


def begin(
    session: Session,
    run: Run | None,
    plain: bool | None,
    saving: Saving,
    resume: dict[str, Any] | None,
    weights: dict[str, Any] | None,
) -> tuple[Record, NoSaver]:
    """Goes on from a checkpoint or begins; arguments and errors are those of `fabric_rl.train`.

    Returns:
        What notes the run, and what saves it.
    """
    exact = session.begin(resume, weights)  # whether it goes on to the bit as if it had never stopped
    if run is not None:
        session.state.run_id, session.state.folder = run.name, run.dir
    record = Record(session, run, plain, resume)
    saver = Saver(run, saving, session, record, exact) if run is not None and not session.inference else NoSaver()
    return record, saver


def finish(session: Session, record: Record, saver: NoSaver) -> dict[str, Any]:
    """Ends a run in order; returns its summary. Callbacks that wait for something see `state.stop` after a signal."""
    with StopSignals(session.state):
        summary = record.finish(saver.unsaved())
        session.hooks.on_train_end()
    record.close()
    session.collector.envs.close()
    return summary


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
