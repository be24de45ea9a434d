"""The workers of a ProcessPool, with what becomes of those that fail."""

import logging
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from envs.processes.protocol import Failure, ShardSpec, WorkerLostError
from envs.processes.worker import START_SECONDS, ShardWorker

logger = logging.getLogger(__name__)

_RESTART_SEED = 1_000_003
"""Added to a worker's seed with every restart, so that it does not play the same episodes again."""

MOST_RESTARTS = 3
"""Restarts of one worker without `GOOD_STEPS` steps in between; the next failure ends the pool."""
GOOD_STEPS = 1000


class SupervisedWorkers:
    """Worker processes that are started and ended together; lost ones are reported, or started again.

    A worker in which something fails ends all of them, or with `restart` is started again. They end with this object,
    or with this process however it ends.

    Attributes:
        restart: Whether failed workers are started again.
        timeout_seconds: How long a worker may take for one step.
        specs: What each worker says about its environments.
        seed: Of the last reset. A worker that is started again begins with one derived from it,
        phase: goes on in this phase (the arguments of `set_phase`),
        parameters: and with these parameters; None for both where there was none.
        new_restarts: Restarts since it was last set to 0.
    """

    def __init__(
        self, factories: Sequence[bytes], starts: Sequence[int], seed: int, timeout_seconds: float, restart: bool
    ) -> None:
        """Starts the workers and waits for them.

        Args:
            factories: For each worker the pickled factory of its part.
            starts: `[workers + 1]` number of each part's first arena, and of all arenas.
            seed: See the attributes, as for the rest.
            timeout_seconds: As above.
            restart: As above.

        Raises:
            WorkerLostError: A worker ended while it was built.
            Exception: What the factory raised, see `ShardWorker.connect`.
        """
        self.timeout_seconds, self.restart, self.seed = timeout_seconds, restart, seed
        self.phase: tuple[str, int] | None = None
        self.parameters: dict[str, Any] | None = None
        self.new_restarts = 0
        self._factories, self._starts = factories, starts
        self._restarts, self._restarts_in_a_row = [0] * len(factories), [0] * len(factories)
        self._workers: list[ShardWorker] = []
        self.stop = weakref.finalize(self, _stop_all, self._workers)
        """Ends all of them; a second call does nothing."""
        try:
            self._workers += [ShardWorker(self._name_of(k), f) for k, f in enumerate(factories)]
            self.specs: list[ShardSpec] = [worker.connect() for worker in self._workers]
        except BaseException:
            self.stop()
            raise

    def __len__(self) -> int:
        return len(self._workers)

    def __getitem__(self, k: int) -> ShardWorker:
        return self._workers[k]

    def __iter__(self) -> Iterator[ShardWorker]:
        return iter(self._workers)

    def settle(self, workers: Iterable[int] | None = None) -> None:
        """Waits for what an interrupted call has left behind in these workers, by default in all.

        Raises:
            RuntimeError: They are stopped, or one is lost.
        """
        if not self._workers:
            raise RuntimeError("ProcessPool: it is closed")
        for k in range(len(self._workers)) if workers is None else workers:
            try:
                self._workers[k].settle(self.timeout_seconds)
            except WorkerLostError as error:
                if not self.restart:
                    self._fail(k, error)
                self.start_again(k, error)

    def replies(self, workers: Iterable[int], timeout_seconds: float = START_SECONDS) -> dict[int, Any]:
        """What these workers answer to what was posted, a `Failure` or a `WorkerLostError` where one has failed."""
        replies: dict[int, Any] = {}
        for k in workers:
            try:
                replies[k] = self._workers[k].receive(timeout_seconds)
            except WorkerLostError as error:
                replies[k] = error
        return replies

    def ask_all(self, command: str, *arguments: Any) -> list[Any]:  # noqa: ANN401 - the command's
        """The answers of all workers to one command.

        Raises:
            Exception: The first that one of them raised; they go on.
            RuntimeError: A worker is lost.
        """
        self.settle()
        for worker in self._workers:
            worker.post(command, *arguments)
        replies = self.replies(range(len(self._workers)))
        self.raise_failures(replies, stop=False)
        return list(replies.values())

    def raise_failures(self, replies: dict[int, Any], stop: bool = True) -> None:
        """Raises the first failure; with `stop` false the others go on if the workers could answer."""
        for k, reply in replies.items():
            if isinstance(reply, WorkerLostError) or (isinstance(reply, Failure) and stop):
                self._fail(k, reply)
        for k, reply in replies.items():
            if isinstance(reply, Failure):
                raise reply.as_error(self._name_of(k))

    def start_again(self, k: int, problem: Failure | WorkerLostError) -> None:
        """Starts a worker again after `problem`, with a warning, in the present phase and with the parameters.

        Raises:
            RuntimeError: It has failed too often, or fails at once.
        """
        what = problem.summary if isinstance(problem, Failure) else str(problem)
        logger.warning("%s failed: %s", self._name_of(k), problem.traceback if isinstance(problem, Failure) else what)
        if self._workers[k].steps >= GOOD_STEPS:
            self._restarts_in_a_row[k] = 0
        if self._restarts_in_a_row[k] >= MOST_RESTARTS:
            self._fail(k, problem, f"failed {MOST_RESTARTS + 1} times without {GOOD_STEPS:,} good steps in between")
        self._restarts_in_a_row[k] += 1
        warnings.warn(
            f"ProcessPool: started worker {k} again, its episodes are cut off: {what}", RuntimeWarning, stacklevel=3
        )
        self._workers[k].kill()
        self._workers[k].stop()
        self._restarts[k] += 1
        self.new_restarts += 1
        worker = self._workers[k] = ShardWorker(self._name_of(k), self._factories[k])
        try:
            worker.connect()
            if self.phase is not None:
                worker.post("set_phase", *self.phase)
                worker.receive(START_SECONDS)
            if self.parameters is not None:
                worker.post("set_parameters", self.parameters)
                worker.receive(START_SECONDS)
            worker.post("reset", self.seed + self._starts[k] + _RESTART_SEED * self._restarts[k], None)
            reply = worker.receive(START_SECONDS)
        except WorkerLostError as error:
            reply = error
        if isinstance(reply, Failure | WorkerLostError):
            self._fail(k, reply)

    def _name_of(self, k: int) -> str:
        return f"ProcessPool worker {k} (arenas {self._starts[k]} to {self._starts[k + 1] - 1})"

    def _fail(self, k: int, problem: Failure | WorkerLostError, given_up: str = "") -> NoReturn:
        self.stop()
        if isinstance(problem, Failure):
            raise problem.as_error(f"{self._name_of(k)} {given_up}".rstrip())
        advice = f"it {given_up}" if given_up else "restart=True (--env.restart true) would start it again"
        raise WorkerLostError(f"{problem}; {advice}", problem.failed_in) from None


def _stop_all(workers: list[ShardWorker]) -> None:
    for worker in workers:
        worker.request_close()
    for worker in workers:
        worker.stop()
    workers.clear()
