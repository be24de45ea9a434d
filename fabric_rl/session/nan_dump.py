"""Save the rollout and the weights when training encounters NaN or infinity."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from fabric_rl.base.files import replacing
from fabric_rl.session.session import Session
from fabric_rl.types import NonFiniteError


@contextmanager
def dump_on_nan(session: Session) -> Iterator[None]:
    """Save the rollout and the weights before it if the block encounters NaN or infinity.

    Raises:
        NonFiniteError: The block encountered them. The message names the file, `nonfinite-rank<r>.pt` of the run.
    """
    try:
        yield
    except (NonFiniteError, FloatingPointError) as error:  # the latter from a pool that checks for itself
        where, run = "", session.run
        if run is not None:
            path = run.dir / f"nonfinite-rank{session.fabric.global_rank}.pt"
            rollout = session.collector.rollout_tensors()
            evidence = {"rollout": rollout, "weights_before": session.learner.weights_before, "message": str(error)}
            with suppress(OSError, RuntimeError):  # a full disk
                with replacing(path) as file:
                    torch.save(evidence, file)
                where = f". The rollout and the weights before it are in {path}"
        raise NonFiniteError(f"{error}{where}") from error
