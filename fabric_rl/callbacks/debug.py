"""Debug: diagnostics of a run by topic; each topic is a callback."""

import math
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fabric_rl.base.files import write_text
from fabric_rl.base.settings import Count, checks_arguments
from fabric_rl.callback import Callback, TrainState
from fabric_rl.hooks import Callbacks
from fabric_rl.metrics.log import logger
from fabric_rl.metrics.metrics_csv import csv_text
from fabric_rl.runs import checkpoint
from fabric_rl.runs.records import list_checkpoints
from fabric_rl.runs.trained import policy
from fabric_rl.types import Minibatch, OffPolicyAgent

_WARNED: dict[Any, Any] = {}
"""Warnings that are shown once, as in `warnings.warn_explicit`."""

TOP_ACTIONS = 10
FALLBACKS = "action/fallback_share"
"""Metric of action parsers that may replace an impossible action."""
DECILES = 10
SATURATED = 0.99
RESETS = "resets.csv"
LOW_ENTROPY = 0.02
"""Share of the highest entropy so far, below which a policy hardly explores."""
KL_SPIKE = 0.1
"""Large KL divergence in nats; PPO aims at about 0.01."""
LONG = 10
"""Iterations in a row with negative explained variance that are worth a warning."""
ZERO_GRADIENTS = 0.95


@runtime_checkable
class Inspector(Protocol):
    """An environment's attribute `inspector`, which describes the environment's state for `Debug`."""

    def describe_actions(self) -> list[str]:
        """Return lines about the action table, or the reason why there is none."""

    def first_states(self) -> int:
        """Record the initial states of the episodes that have just begun, and return their number."""

    def describe_resets(self) -> list[str]:
        """Return lines about the recorded states, or the reason why there are none."""

    def reset_rows(self) -> list[dict[str, Any]]:
        """Return the recorded states as rows of a table, all with the same keys."""

    def reset_problems(self) -> list[str]:
        """Return one line for each problem in the recorded states."""


@runtime_checkable
class HasProbe(Protocol):
    """An inspector that can test a policy."""

    def probe(self, choose: Callable[..., NDArray[Any]]) -> list[str]:
        """Return lines about the test; `choose` is a policy, see `fabric_rl.runs.trained.policy`."""


class _DebugTopic(Callback):
    name: ClassVar[str]

    def __init__(self, every_iterations: int = 10) -> None:
        self.every = every_iterations

    def log(self, state: TrainState, *lines: str) -> None:
        """Log lines on rank 0."""
        if state.fabric.is_global_zero:
            for line in lines:
                logger.info("debug %s: %s", self.name, line)

    def warn(self, state: TrainState, *lines: str, again: bool = False) -> None:
        """Warn on rank 0, once for each line, or `again`."""
        if state.fabric.is_global_zero:
            for line in lines:
                registry: dict[Any, Any] = {} if again else _WARNED
                warnings.warn_explicit(f"debug {self.name}: {line}", RuntimeWarning, __file__, 1, registry=registry)

    def is_due(self, state: TrainState) -> bool:
        """Return True in the first of every `every` iterations."""
        return self.every == 1 or state.iteration % self.every == 1


class DebugActions(_DebugTopic):
    """Describe the action table at the start, then report which actions are chosen.

    Metrics of rank 0's rollout: `debug/action_entropy` (nats, of the distribution over all steps, so never below the
    mean entropy of the policy), `debug/actions_unused` (in this iteration), `debug/actions_never_used` (in the run),
    `debug/top_action_share`.
    """

    name = "actions"
    _in_state_dict: ClassVar = {"used": "_used"}

    def __init__(self, every_iterations: int = 10) -> None:
        super().__init__(every_iterations)
        self._used: NDArray[np.int64] = np.zeros(0, np.int64)
        self._first: int | None = None  # number of the first action, if actions are counted

    def on_train_start(self, state: TrainState) -> None:
        inspector = getattr(state.env, "inspector", None)
        unknown = [f"no action table: {type(state.env).__name__} cannot be inspected; see python -m envs.actions"]
        self.log(state, *(inspector.describe_actions() if isinstance(inspector, Inspector) else unknown))
        space = state.env.single_action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            self._first = None
            self.log(state, f"shares of actions are counted only for Discrete action spaces, not for {space}")
            return
        self._first = int(space.start)
        if len(self._used) != space.n or not state.iteration:
            self._used = np.zeros(int(space.n), np.int64)

    def on_iteration_end(self, state: TrainState) -> None:
        if self._first is None or state.batch is None:  # without `on_learn_start`, there is no batch
            return
        actions = state.batch.action.flatten().cpu() - self._first
        chosen = torch.bincount(actions, minlength=len(self._used)).numpy()
        self._used = self._used + chosen
        state.metrics |= action_metrics(chosen, self._used)
        if self.is_due(state):
            self.log(state, *self._lines(state, chosen))
            if chosen.max() == chosen.sum():
                self.warn(state, f"only action {chosen.argmax()} was chosen in {chosen.sum():,} steps")

    def _lines(self, state: TrainState, chosen: NDArray[np.int64]) -> list[str]:
        order = np.argsort(-chosen, kind="stable")[:TOP_ACTIONS]
        shares = ", ".join(f"{n}: {chosen[n] / chosen.sum():.1%}" for n in order.tolist() if chosen[n])
        never = np.flatnonzero(self._used == 0).tolist()
        some = " ".join(map(str, never[:TOP_ACTIONS])) + (" ..." if len(never) > TOP_ACTIONS else "")
        lines = [f"most used {shares}", f"never used so far: {len(never)} of {len(self._used)} {some}".rstrip()]
        if FALLBACKS in state.metrics:
            lines.append(f"fell back to another action: {state.metrics[FALLBACKS]:.2%}")
        elif state.iteration <= self.every:
            lines.append("the environment does not count fallbacks")
        return lines


def action_metrics(chosen: NDArray[np.int64], used: NDArray[np.int64]) -> dict[str, float]:
    """Return metrics of the counts of each action: `chosen [n]` in an iteration, `used [n]` in the whole run."""
    shares = chosen[chosen > 0] / max(1, chosen.sum())
    return {
        "debug/action_entropy": float(-sum(p * math.log(p) for p in shares.tolist())),
        "debug/actions_unused": float((chosen == 0).sum()),
        "debug/actions_never_used": float((used == 0).sum()),
        "debug/top_action_share": float(shares.max(initial=0.0)),
    }


class DebugLearning(_DebugTopic):
    """Watch the gradients and activations of this rank, and report them on rank 0.

    Metrics of rank 0: `debug/grad_norm_<part>` (root mean square over the backward passes, before clipping; a part is
    a first-level module such as `actor`), `debug/grad_zero_share`, `debug/relu_dead_share` (units that were 0 in the
    whole iteration), `debug/tanh_saturated_share` (outputs beyond 0.99), `debug/max_logit` (largest absolute
    output of the module `policy_head`), `debug/advantage_mean`, `_std`, `_max` (before normalization), and
    `debug/value_error_decile_<k>`, the root mean square of return minus value in each tenth of the returns.

    Inspecting every gradient and activation takes time. `--compile` bypasses the hooks of modules, and sharded
    parameters (`--strategy fsdp`) have no hooks: metrics that cannot be measured are left out, and the log says once if
    there are no gradients.
    """

    name = "learning"

    def __init__(self, every_iterations: int = 10) -> None:
        super().__init__(every_iterations)
        self._signs = WarningSigns()
        self._handles: list[RemovableHandle] = []
        self._learning, self._reported = False, False
        self._clear()

    def _clear(self) -> None:
        self._squares: dict[str, Tensor] = {}  # part -> sum of squared gradients
        self._counts: dict[str, int] = {}  # parameter -> backward passes
        self._zeros: list[Tensor] = []
        self._numbers = 0
        self._units: dict[str, Tensor] = {}  # module -> [units] largest output
        self._saturated: list[Tensor] = []
        self._logits: list[Tensor] = []

    def on_train_start(self, state: TrainState) -> None:
        self._signs, self._reported = WarningSigns(), False
        for name, parameter in state.agent.named_parameters():
            if parameter.requires_grad:
                register = parameter.register_post_accumulate_grad_hook
                self._handles.append(register(self._gradient_hook(name)))  # type: ignore[no-untyped-call]  # torch's
        for name, module in state.agent.named_modules():
            if isinstance(module, nn.ReLU | nn.Tanh) or name == "policy_head":
                self._handles.append(module.register_forward_hook(self._output_hook(name)))

    def on_learn_start(self, state: TrainState) -> None:
        self._clear()
        self._learning = True

    def on_iteration_end(self, state: TrainState) -> None:
        learned, self._learning = self._learning, False
        found = self._figures()
        if learned and state.batch is not None and not isinstance(state.agent, OffPolicyAgent):  # it has no advantages
            found |= batch_metrics(state.batch)
        if learned and not self._squares and not self._reported:
            self.log(state, "no gradients were observed: the parameters are sharded, or this rank does not learn")
        self._reported = True
        state.metrics |= found
        if self.is_due(state):
            pieces = [f"{name.removeprefix('debug/')} {number:.3g}" for name, number in found.items()]
            self.log(state, ", ".join(pieces) or "nothing was observed")
        self.warn(state, *self._signs.new(state.metrics), again=True)

    def on_train_end(self, state: TrainState, error: BaseException | None = None) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    on_exception = on_train_end

    def _gradient_hook(self, name: str) -> Any:  # noqa: ANN401 - torch's type of a hook
        part = name.partition(".")[0]

        def look(parameter: Tensor) -> None:
            if self._learning and parameter.grad is not None:
                grad = parameter.grad.detach()
                square = grad.float().square().sum()
                self._squares[part] = self._squares[part] + square if part in self._squares else square
                self._counts[name] = self._counts.get(name, 0) + 1
                self._zeros.append((grad == 0).sum())
                self._numbers += grad.numel()

        return look

    def _output_hook(self, name: str) -> Any:  # noqa: ANN401 - torch's type of a hook
        def look(module: nn.Module, inputs: Any, output: Any) -> None:  # noqa: ANN401 - torch's signature
            if not (self._learning and torch.is_grad_enabled() and isinstance(output, Tensor)):
                return
            seen = output.detach()
            if isinstance(module, nn.Tanh):
                self._saturated.append((seen.abs() > SATURATED).float().mean())
            elif isinstance(module, nn.ReLU):  # [..., units], or [B, channels, height, width]
                most = seen.amax(dim=(0, 2, 3)) if seen.dim() == 4 else seen.flatten(0, -2).amax(dim=0)
                self._units[name] = torch.maximum(self._units[name], most) if name in self._units else most
            else:
                self._logits.append(seen.abs().max())

        return look

    def _figures(self) -> dict[str, float]:
        passes, found = max(self._counts.values(), default=1), dict[str, float]()
        for part, square in self._squares.items():
            found[f"debug/grad_norm_{part}"] = math.sqrt(float(square) / passes)
        if self._zeros:
            found["debug/grad_zero_share"] = float(torch.stack(self._zeros).sum()) / self._numbers
        if self._units:
            found["debug/relu_dead_share"] = float((torch.cat([*self._units.values()]) <= 0).float().mean())
        if self._saturated:
            found["debug/tanh_saturated_share"] = float(torch.stack(self._saturated).mean())
        if self._logits:
            found["debug/max_logit"] = float(torch.stack(self._logits).max())
        return found


def batch_metrics(batch: Minibatch) -> dict[str, float]:
    """Return metrics of the advantages (before normalization), and of value errors in each tenth of the returns."""
    advantage = batch.advantage.float()
    returns, values = batch.returns.float(), batch.value.float()
    if returns.dim() > advantage.dim():  # several value heads
        returns, values = returns.sum(dim=-1), values.sum(dim=-1)
    found = {
        "debug/advantage_mean": float(advantage.mean()),
        "debug/advantage_std": float(advantage.std(correction=0)),
        "debug/advantage_max": float(advantage.abs().max()),
    }
    order = returns.flatten().argsort(stable=True)
    errors = (returns - values).flatten()[order].square()
    for number, tenth in enumerate(errors.tensor_split(DECILES)):
        if len(tenth):
            found[f"debug/value_error_decile_{number + 1}"] = math.sqrt(float(tenth.mean()))
    return found


class WarningSigns:
    """Signs of common problems in a run's metrics; each is reported when it appears, and again if it reappears."""

    def __init__(self) -> None:
        self._entropy, self._bad_values = 0.0, 0
        self._kls: deque[float] = deque(maxlen=20)
        self._shown: set[str] = set()

    def new(self, metrics: Mapping[str, float]) -> list[str]:
        """Return the signs in these metrics that the previous iteration did not have."""
        found: dict[str, str] = {}
        broken = sorted(name for name, number in metrics.items() if not math.isfinite(number))
        if broken:
            found["nan"] = f"NaN or infinity in {', '.join(broken)}"
        entropy = metrics.get("ppo/entropy", math.nan)
        self._entropy = max(self._entropy, entropy if math.isfinite(entropy) else 0.0)
        if 0 <= entropy < LOW_ENTROPY * self._entropy:
            found["entropy"] = (
                f"entropy collapsed to {entropy:.3g} from {self._entropy:.3g}: the policy hardly explores; raise "
                "--agent.entropy_coef or lower the learning rate"
            )
        kl = metrics.get("ppo/approx_kl", math.nan)
        usual = sorted(self._kls)[len(self._kls) // 2] if self._kls else 0.0
        if kl > max(KL_SPIKE, 5 * usual):
            found["kl"] = (
                f"the policy moved by a KL of {kl:.3g} in one iteration (usually {usual:.3g}); lower the learning "
                "rate or --update_epochs, or set --target_kl"
            )
        if math.isfinite(kl):
            self._kls.append(kl)
        self._bad_values = self._bad_values + 1 if metrics.get("ppo/explained_variance", 0.0) < 0 else 0
        if self._bad_values >= LONG:
            found["values"] = (
                f"explained variance has been below 0 for {self._bad_values} iterations: the values predict worse than "
                "the mean return; check the reward's scale (--standardize_returns) and the critic's learning rate"
            )
        if metrics.get("debug/advantage_std", 1.0) < 1e-8:
            found["advantages"] = "all advantages are equal, so there is nothing to learn; does the reward ever change?"
        zero = metrics.get("debug/grad_zero_share", 0.0)
        if zero > ZERO_GRADIENTS:
            found["gradients"] = f"{zero:.1%} of the gradients are zero: dead units, or a constant loss"
        new = [text for name, text in found.items() if name not in self._shown]
        self._shown = set(found)
        return new


class DebugCheckpoints(_DebugTopic):
    """Report every checkpoint and milestone once it is written, and where a resumed run begins.

    Each line contains the file's size, the seconds from the end of the iteration until it was written, and its content:
    steps, world size, whether a run resumed from it is bit-identical, and the fingerprint that another run must share.
    Each file is read again, which also verifies its checksum.
    """

    name = "checkpoints"
    _in_state_dict: ClassVar = {"known": "_known"}

    def __init__(self) -> None:
        super().__init__()
        self._heard = BufferingHandler(sys.maxsize)
        self._ended = time.time()
        self._known = False  # saved as True, so that a resumed run knows that callbacks were restored

    def on_train_start(self, state: TrainState) -> None:
        restored, self._known = self._known, True
        if not state.fabric.is_global_zero:
            return
        logger.addHandler(self._heard)
        if state.iteration:
            whole = " and the callbacks' state" if restored else "; Debug was not among the saved callbacks"
            end = f"{state.steps:,} of {state.args.total_timesteps:,} steps, iteration {state.iteration}"
            self.log(state, f"resumed at {end}: weights, optimizer, counters{whole}")
        else:
            self.log(state, "nothing was resumed")
        if state.run_id is None:
            self.log(state, "this run saves nothing")

    def on_iteration_start(self, state: TrainState) -> None:
        self._report(state)

    def on_iteration_end(self, state: TrainState) -> None:
        self._ended = time.time()  # saving begins after this

    def on_train_end(self, state: TrainState) -> None:
        self._report(state)
        logger.removeHandler(self._heard)

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        logger.removeHandler(self._heard)

    def _report(self, state: TrainState) -> None:
        records, self._heard.buffer = self._heard.buffer, []
        for record in records:
            kind, _, where = record.getMessage().partition(" ")
            if kind in ("checkpoint", "milestone") and Path(where).exists():
                path = Path(where) if kind == "checkpoint" else next(iter(list_checkpoints(where)), Path(where))
                try:
                    self.log(state, f"{kind} {path}: {record.created - self._ended:.2f} s, {_contents(path)}")
                except checkpoint.CheckpointError as error:
                    self.warn(state, str(error))


def _contents(path: Path) -> str:
    saved = checkpoint.read(path)
    exact = "resumes bit-identically" if saved.get("exact") else "a resumed run is equivalent, not bit-identical"
    environment = "with" if any(rank.get("env") is not None for rank in saved["ranks"]) else "without"
    texts = ((name, " ".join(str(text).split())) for name, text in saved["fingerprint"].items())
    prints = "; ".join(f"{name} {text if len(text) <= 80 else f'{text[:77]}...'}" for name, text in texts)
    return (
        f"{path.stat().st_size / 1e6:.2f} MB, {saved['steps']:,} steps, iteration {saved['iteration']}, world size "
        f"{saved['world_size']}, {environment} the environment's state, {exact}; {prints}"
    )


class DebugResets(_DebugTopic):
    """Write a table of the initial states of `episodes` episodes of rank 0, and warn of impossible ones.

    Only episodes that begin with the run, or in the last step of an iteration, are included.
    """

    name = "resets"

    def __init__(self, episodes: int = 64, folder: str | Path | None = None) -> None:
        super().__init__()
        self.episodes, self.folder = episodes, folder
        self._inspector: Inspector | None = None  # only on rank 0
        self._seen, self._done = 0, False

    def on_train_start(self, state: TrainState) -> None:
        self._inspector, self._seen, self._done = None, 0, False
        if not state.fabric.is_global_zero:
            return
        inspector = getattr(state.env, "inspector", None)
        if not isinstance(inspector, Inspector):
            self.log(
                state, f"no initial states: {type(state.env).__name__} cannot be inspected; see fabric-rl show-resets"
            )
            return
        self._inspector = inspector
        self._look(state, inspector)
        if not self._seen:
            self.log(state, *inspector.describe_resets())

    def on_iteration_start(self, state: TrainState) -> None:
        if state.iteration and not self._done and self._inspector:
            self._look(state, self._inspector)

    def on_train_end(self, state: TrainState) -> None:
        if self._seen and not self._done and self._inspector:
            self._report(state, self._inspector)

    def _look(self, state: TrainState, inspector: Inspector) -> None:
        self._seen += inspector.first_states()
        if self._seen >= self.episodes:
            self._report(state, inspector)

    def _report(self, state: TrainState, inspector: Inspector) -> None:
        self._done = True
        lines, rows = inspector.describe_resets(), inspector.reset_rows()
        folder = Path(self.folder) if self.folder is not None else state.folder
        if rows and folder is not None:
            write_text(folder / RESETS, csv_text(list(rows[0]), rows))
            lines.append(f"written: {folder / RESETS}")
        self.log(state, *lines)
        self.warn(state, *inspector.reset_problems())


class DebugProbe(_DebugTopic):
    """Report the environment's own test of the agent: at the start, every `every_iterations`, and at the end.

    A `RocketSimPool` tests whether cars recover from their roofs. The agent samples its actions, as in training, and
    torch's random number generators are restored afterwards.
    """

    name = "probe"

    def on_train_start(self, state: TrainState) -> None:
        self._test(state)

    def on_iteration_end(self, state: TrainState) -> None:
        if state.iteration % self.every == 0 or state.done:
            self._test(state)

    def _test(self, state: TrainState) -> None:
        if not state.fabric.is_global_zero:
            return
        inspector = getattr(state.env, "inspector", None)
        if not isinstance(inspector, HasProbe):
            self.log(state, f"{type(state.env).__name__} has no test of its own")
            return
        device = state.agent.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(0)
            lines = inspector.probe(policy(state.agent, deterministic=False))
        self.log(state, f"after {state.steps:,} steps", *lines)


class Debug(Callbacks):
    """Print diagnostics on rank 0 and log them as `debug/...` during training.

    On the command line: `--callbacks+=fabric_rl.callbacks.Debug --callbacks.actions true`. See docs/debugging.md for
    the topics. If an environment does not support a topic, the log reports it. Training stays bit-identical.
    """

    @checks_arguments
    def __init__(
        self,
        actions: bool = False,
        learning: bool = False,
        checkpoints: bool = False,
        resets: bool = False,
        probe: bool = False,
        everything: bool = False,
        every_iterations: Count = 10,
        episodes: Count = 64,
        folder: str | None = None,
    ) -> None:
        """Choose the topics.

        Args:
            actions: Report the action table at the start, which actions are used, and how many are replaced.
            learning: Report gradients, activations, advantages, value errors, and signs of problems.
            checkpoints: Report when checkpoints are written, and what was restored.
            resets: Write a table of initial states, and warn of impossible ones.
            probe: Run the environment's own test of the agent; a RocketSimPool tests if cars recover from their roofs.
            everything: Report all topics.
            every_iterations: Iterations between two printed reports; metrics are logged in every iteration.
            episodes: Number of initial states in the table.
            folder: Folder for the table; default: the folder of the run.

        Raises:
            ValueError: No topic is chosen.
        """
        topics: list[tuple[bool, _DebugTopic]] = [
            (actions, DebugActions(every_iterations)),
            (learning, DebugLearning(every_iterations)),
            (checkpoints, DebugCheckpoints()),
            (resets, DebugResets(episodes, folder)),
            (probe, DebugProbe(every_iterations)),
        ]
        super().__init__({topic.name: topic for chosen, topic in topics if chosen or everything})
        if not self.parts:
            names = ", ".join(topic.name for _, topic in topics)
            raise ValueError(f"Debug: no topic is chosen; set one of {names} or everything to true")

    def on_train_start(self, state: TrainState) -> None:
        if state.fabric.is_global_zero:
            logger.info("debug topics: %s; rank 0 of %s", ", ".join(self.parts), state.fabric.world_size)
        super().on_train_start(state)
