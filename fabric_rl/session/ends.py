"""How a run begins and how it ends, whatever it learns with."""

from typing import Any

from fabric_rl.args import Saving
from fabric_rl.metrics.record import Record
from fabric_rl.runs.folder import Run
from fabric_rl.session.saving import NoSaver, Saver
from fabric_rl.session.session import Session
from fabric_rl.session.stopping import StopSignals


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
