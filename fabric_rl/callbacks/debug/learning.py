"""DebugLearning: gradients, activations, advantages and values of every iteration, and signs of trouble."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fabric_rl.callback import Callback, TrainState
from fabric_rl.callbacks.debug.lines import tell, warn
from fabric_rl.callbacks.debug.signs import Signs
from fabric_rl.types import Minibatch

DECILES = 10
SATURATED = 0.99


class DebugLearning(Callback):
    """Looks at the learning of this rank by hooks of its parameters and modules, and prints it for rank 0.

    Metrics, of rank 0: `debug/grad_norm_<part>` (root mean square over the backward passes, before clipping; a part is
    a first-level module such as `actor`), `debug/grad_zero_share`, `debug/relu_dead_share` (units that were 0 in the
    whole iteration), `debug/tanh_saturated_share` (outputs beyond 0.99), `debug/max_logit` (largest size of a number
    that the module `policy_head` gave), `debug/advantage_mean`, `_std`, `_max` (before normalisation), and
    `debug/value_error_decile_<k>`, the root mean square of return minus value in each tenth of the returns.

    It costs time: a look at every gradient and activation. `--compile` goes round the hooks of modules, sharded
    parameters (`--strategy fsdp`) have no hooks: what is not seen is left out, and said once.
    """

    def __init__(self, every_iterations: int = 10) -> None:
        """Prints figures every so many iterations; signs of trouble at once."""
        self.every, self._signs = every_iterations, Signs()
        self._handles: list[RemovableHandle] = []
        self._learning, self._said = False, False
        self._forget()

    def _forget(self) -> None:
        self._squares: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        self._zeros: list[Tensor] = []
        self._numbers = 0
        self._units: dict[str, Tensor] = {}
        self._saturated: list[Tensor] = []
        self._logits: list[Tensor] = []

    def on_train_start(self, state: TrainState) -> None:
        """Hangs the hooks."""
        self._signs, self._said = Signs(), False
        for name, parameter in state.agent.named_parameters():
            if parameter.requires_grad:
                hang = parameter.register_post_accumulate_grad_hook
                self._handles.append(hang(self._gradient_hook(name)))  # type: ignore[no-untyped-call]  # torch's
        for name, module in state.agent.named_modules():
            if isinstance(module, nn.ReLU | nn.Tanh) or name == "policy_head":
                self._handles.append(module.register_forward_hook(self._output_hook(name)))
        ratios = (
            "percentiles of the ratios need the policy's log-probabilities after learning, which agents do not give"
        )
        tell(state, "learning", f"{ratios}: see ppo/approx_kl and ppo/clip_fraction")

    def on_learn_start(self, state: TrainState) -> None:
        """Forgets the last iteration."""
        self._forget()
        self._learning = True

    def on_iteration_end(self, state: TrainState) -> None:
        """Adds the metrics, prints them when it is time, and tells signs of trouble."""
        learned, self._learning = self._learning, False
        found = self._figures()
        if learned and state.batch is not None:
            found |= batch_metrics(state.batch)
        if learned and not self._squares and not self._said:
            tell(state, "learning", "no gradients are seen: the parameters are sharded, or this rank does not learn")
        self._said = True
        state.metrics |= found
        if state.iteration % self.every == 1 or self.every == 1:
            pieces = [f"{name.removeprefix('debug/')} {number:.3g}" for name, number in found.items()]
            tell(state, "learning", ", ".join(pieces) or "nothing is seen")
        warn(state, "learning", *self._signs.new(state.metrics))

    def on_train_end(self, state: TrainState, error: BaseException | None = None) -> None:
        """Takes the hooks off."""
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
        """What the hooks have seen since `on_learn_start`."""
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
    """Metrics of advantages (before normalisation) and of the values' errors, by tenths of the returns."""
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
