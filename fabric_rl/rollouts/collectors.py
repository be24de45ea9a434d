"""Where rollouts come from: collected in turn with learning, or one ahead of it in a thread (`--overlap`)."""

import copy
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning import Fabric
from torch import Tensor, nn

from fabric_rl.metrics.timers import Timers
from fabric_rl.ranks.sharding import gathered
from fabric_rl.rollouts.collect import EpisodeStats, collect
from fabric_rl.rollouts.rollout import Rollout
from fabric_rl.types import ActorCritic


class Collector:
    """Fills this rank's rollout.

    With `overlap` a thread collects the next rollout while the last one is learned from, with a copy of the policy as
    it was before: data that is one update old, which PPO's ratio to the stored log-probabilities accounts for. The
    thread alone uses torch's global generator meanwhile, and no collectives, so the same seed still gives the same
    weights.

    Attributes:
        ready: The rollout has been collected ahead and not been taken yet.
        seconds: What collecting the last rollout took.
        plays: This rank has an environment.
        learns: This rank learns; see `fabric_rl.rollouts.players` for ranks that do only one of the two.
        ahead: The next rollout is collected `meanwhile`.
    """

    plays = learns = True

    def __init__(
        self,
        fabric: Fabric,
        envs: VectorEnv,
        module: ActorCritic,
        rollout: Rollout,
        episodes: EpisodeStats,
        overlap: bool = False,
    ) -> None:
        """Prepares; with `overlap` before Fabric changes `module`, which is copied.

        Raises:
            ValueError: The agent's training step draws random numbers too, so that no two runs would be the same.
        """
        self.fabric, self.envs, self.module, self.rollout, self.episodes = fabric, envs, module, rollout, episodes
        self.ready, self.seconds = False, 0.0
        self.ahead = overlap
        self._error: BaseException | None = None
        if not overlap:
            return
        random = [part for part in module.modules() if isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0]
        if random:
            raise ValueError(
                f"--overlap: --agent {type(module).__name__} uses {type(random[0]).__name__}, which draws random "
                "numbers while the policy that plays does; leave one of them out"
            )
        # Its parameters keep asking for gradients, which no_grad denies: autocast casts others anew at every use.
        self._actor = copy.deepcopy(module).to(fabric.device)
        self._actor.progress = self._actor.progress.to(fabric.device)
        on_gpu = fabric.device.type == "cuda"
        self._stream = torch.cuda.Stream(fabric.device) if on_gpu else None  # type: ignore[no-untyped-call]

    def compile(self) -> None:
        """Compiles the copy's methods, too."""
        for name in ("act", "value"):
            setattr(self._actor, name, torch.compile(getattr(self._actor, name)))

    def collect(self, timers: Timers) -> None:
        """Sees to it that the rollout is filled: here and now, unless it has been already.

        Raises:
            NonFiniteError, ValueError: See `fabric_rl.collect`.
        """
        if not self.ready:
            began = time.perf_counter()
            with torch.no_grad(), self.fabric.autocast(), gathered(self.module):
                collect(self.envs, self.module, self.rollout, self.episodes, timers)
            self.seconds = time.perf_counter() - began
        self.ready = False

    def share(self, rewards: Tensor, timers: Timers) -> Tensor:
        """The rewards to learn from, after those that collect and those that learn have got their parts."""
        return rewards

    @contextmanager
    def meanwhile(self, enabled: bool, timers: Timers) -> Iterator[None]:
        """Collects the next rollout while the block runs, which must touch neither environment nor rollout.

        Raises:
            NonFiniteError, ValueError: See `fabric_rl.collect`.
        """
        if not enabled:
            yield
            return
        self._actor.load_state_dict(self.module.state_dict())
        self._actor.progress.copy_(self.module.progress)
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self.fabric.device))
        thread = threading.Thread(target=self._run, name="collects-ahead", daemon=True)
        thread.start()
        try:
            yield
        except Exception:
            thread.join()
            raise
        with timers("wait_for_the_next_rollout"):
            while thread.is_alive():
                thread.join(0.1)  # a signal gets through, also on Windows
        error, self._error = self._error, None
        if error is not None:
            raise error
        self.ready = True

    def _run(self) -> None:
        began = time.perf_counter()
        try:
            stream: Any = nullcontext() if self._stream is None else torch.cuda.stream(self._stream)
            with stream, torch.no_grad(), self.fabric.autocast():
                collect(self.envs, self._actor, self.rollout, self.episodes)
            if self._stream is not None:
                self._stream.synchronize()
        except BaseException as error:  # raised again by `meanwhile`
            self._error = error
        self.seconds = time.perf_counter() - began
