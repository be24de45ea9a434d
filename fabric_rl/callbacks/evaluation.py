"""Evaluation: returns in separate episodes during training, and the best weights."""

import math
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from gymnasium.vector import VectorEnv
from lightning.pytorch.utilities.seed import isolate_rng

from fabric_rl.base.files import read_json, write_json
from fabric_rl.base.settings import Count, CountOrZero, check_settings
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.collectives import raised_on_all_ranks
from fabric_rl.ranks.devices import single_thread
from fabric_rl.ranks.sharding import whole_state
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs import checkpoint
from fabric_rl.runs.provenance import EXPORTED
from fabric_rl.runs.records import BEST
from fabric_rl.runs.trained import policy
from fabric_rl.types import EnvFactory


@dataclass(eq=False, repr=False)
class Evaluation(Callback):
    """Play whole episodes in separate environments, on rank 0, and keep the best weights.

    Every evaluation plays the same episodes: their seeds are separate from the training's and never change, so two
    evaluations differ only in the agent. Evaluation does not affect training; other ranks wait for it.

    Metrics after each evaluation: `eval/return` and `eval/length`, undiscounted means over episodes with the most
    likely actions; `eval/sampled_return` and `eval/sampled_length` with sampled actions; `eval/best_return`; and
    `eval/success`, `eval/sampled_success` (or `is_success`) if the environment reports success.

    The best weights by `eval/return` are saved in `best/` in the folder of the run; use `NAME/best` wherever a command
    takes an agent. If a run goes back to an earlier milestone, best weights from after that point are set aside.
    """

    _in_state_dict: ClassVar = {"best": "_best", "worse": "_worse"}
    comes_first: ClassVar = True

    every_steps: Count = 50_000
    """Agent-steps (over all ranks) between evaluations; there is also one after the last iteration."""
    episodes: Count = 20
    """Minimum number of episodes; every sub-environment plays the same number."""
    sampled: bool = True
    """Also play the same number of episodes with sampled actions."""
    patience: Count | None = None
    """End training after this many evaluations in a row without a new best return. None: never."""
    seed: CountOrZero = 0
    """Seed of the episodes."""
    env: EnvFactory | None = None
    """Factory of the environment to evaluate in, for example without clipped rewards. Default: the environment of the
    run."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._envs: VectorEnv | None = None
        self._best: list[float] = []
        self._worse = 0

    def play_in(self, env: EnvFactory) -> None:
        """Use the run's environment, unless one was passed to the constructor."""
        self.env = self.env or env

    def on_train_start(self, state: TrainState) -> None:
        """Build the environments; raise a ValueError if no factory was given, or they do not fit the agent."""
        if self.env is None:
            raise ValueError("Evaluation: there is no environment; pass one as Evaluation(env=...)")
        if not state.fabric.is_global_zero:
            return
        with isolate_rng():
            self._envs = self.env(seed=self.seed)
        own, agent = self._envs, state.agent
        spaces = own.single_observation_space.shape, own.single_action_space
        if spaces != (agent.observation_space.shape, agent.action_space):
            raise ValueError(f"Evaluation: observations or actions of env ({spaces}) differ from those of the agent")

    def on_iteration_end(self, state: TrainState) -> None:
        """Evaluate if an evaluation is due; all ranks get the metrics and stop together."""
        before = state.steps - state.steps_per_iteration
        due = state.steps // self.every_steps > before // self.every_steps
        if not (due or state.iteration >= state.iterations):
            return
        with raised_on_all_ranks(state.fabric):
            found = {} if self._envs is None else self._play(state, self._envs)
        kept = state.folder / BEST if state.folder is not None else None
        before_it = read_json(kept / "meta.json").get("return", -math.inf) if kept is not None else math.inf
        keep = bool(found) and found["eval/return"] > before_it
        found, keep = state.fabric.broadcast((found, keep))
        better = not self._best or found["eval/return"] > self._best[0]
        if better:
            self._best = [found["eval/return"]]
        if keep:
            weights = whole_state(state.agent.state_dict(), keep=state.fabric.is_global_zero)
            if state.fabric.is_global_zero and kept is not None:
                self._keep(state, weights, kept, found["eval/return"])
        self._worse = 0 if better else self._worse + due
        state.metrics |= found | {"eval/best_return": self._best[0]}
        if due and self._worse >= (self.patience or math.inf):
            logger.info("evaluation: none of the last %s returns beat %.5g; training ends", self._worse, self._best[0])
            state.stop = True

    def _play(self, state: TrainState, envs: VectorEnv) -> dict[str, float]:
        found, training = {}, state.agent.training
        with isolate_rng(), single_thread(), ExitStack() as stack:
            if state.args.compile:  # other batch sizes would recompile the graphs of training
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            state.agent.eval()
            for prefix in ("", "sampled_") if self.sampled else ("",):
                played = play_episodes(envs, policy(state.agent, not prefix, self.seed), self.episodes, self.seed)
                found[f"eval/{prefix}return"] = float(played.returns.mean())
                found[f"eval/{prefix}length"] = float(played.lengths.mean())
                found |= {f"eval/{prefix}{name}": float(values.mean()) for name, values in played.figures.items()}
            state.agent.train(training)
        return found

    def _keep(self, state: TrainState, weights: dict[str, Any], folder: Path, found: float) -> None:
        """Write the weights as an agent without a run, replacing the previous ones atomically."""
        try:
            folder.mkdir(exist_ok=True)
            checkpoint.write(folder / EXPORTED, {"agent": weights})
            write_json(folder / "meta.json", {"steps": state.steps, "phase": state.phase, "return": found})
        except (OSError, checkpoint.CheckpointError) as error:
            warnings.warn(f"Evaluation: {error}; training continues", RuntimeWarning, stacklevel=2)

    def on_train_end(self, state: TrainState, error: BaseException | None = None) -> None:
        if self._envs is not None:
            self._envs.close()
            self._envs = None

    on_exception = on_train_end
