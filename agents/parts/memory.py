"""RecurrentMemory: an LSTM or GRU, stepped in rollouts and unrolled over whole sequences in training."""

from typing import Literal

import torch
from torch import Tensor, nn

_SHUT = -1e4
"""Gate input whose sigmoid is exactly 0, whatever the gate's other inputs add to it."""


class RecurrentMemory(nn.Module):
    """One layer of LSTM (Gers et al. 2000) or GRU (Cho et al. 2014).

    The memory `[N, M]` is h and c side by side for an LSTM, h for a GRU. `step`, `unroll` and `after` are the same
    function of the same weights, computed in the weights' dtype even under autocast, because rounding to bfloat16 would
    accumulate over the steps.
    """

    def __init__(self, inputs: int, memory_size: int, cell: Literal["lstm", "gru"], ortho_init: bool) -> None:
        """Build the cell.

        Args:
            inputs: Size of the input vectors.
            memory_size: M; for an LSTM, an odd number is rounded up.
            cell: Type of the cell. Training with an LSTM is faster on the CPU, see `unroll`.
            ortho_init: True for orthogonal weights with gain 1 (one matrix per gate) and zero biases, but 1 for the
                forget gate of an LSTM, so that it initially remembers (Jozefowicz et al. 2015); False for torch's
                defaults.
        """
        super().__init__()
        self.is_lstm = cell == "lstm"
        self.hidden_size = (memory_size + 1) // 2 if self.is_lstm else memory_size
        self.memory_size = 2 * self.hidden_size if self.is_lstm else memory_size
        self.cell = nn.LSTMCell(inputs, self.hidden_size) if self.is_lstm else nn.GRUCell(inputs, self.hidden_size)
        if ortho_init:
            with torch.no_grad():
                for weight in (self.cell.weight_ih, self.cell.weight_hh):
                    for gate in weight.chunk(4 if self.is_lstm else 3):
                        nn.init.orthogonal_(gate)
                nn.init.zeros_(self.cell.bias_ih)
                nn.init.zeros_(self.cell.bias_hh)
                if self.is_lstm:  # the gates are i, f, g, o
                    self.cell.bias_ih[self.hidden_size : 2 * self.hidden_size] = 1

    def step(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance every row by one step.

        Args:
            inputs: `[N, inputs]`.
            state: `[N, M]` memory before the step.

        Returns:
            h `[N, hidden_size]`, and the memory after the step `[N, M]`.
        """
        with torch.autocast(inputs.device.type, enabled=False):
            weights = self._weights()
            inputs, state = inputs.to(weights[0].dtype), state.to(weights[0].dtype)
            if self.is_lstm:
                hidden, kept = torch.lstm_cell(inputs, state.chunk(2, dim=-1), *weights)
                return hidden, torch.cat([hidden, kept], dim=-1)
            hidden = torch.gru_cell(inputs, state, *weights)
            return hidden, hidden

    @torch.compiler.disable  # type: ignore[untyped-decorator, unused-ignore]
    def unroll(self, inputs: Tensor, state: Tensor, episode_start: Tensor) -> Tensor:
        """Step through sequences, with the memory reset where an episode begins.

        On the CPU, an LSTM uses one fused call, about three times as fast as a loop over the steps; for a GRU, torch
        has nothing faster than the loop. On other devices, the loop calls the kernels of `step` and never synchronizes
        with the device. Under `torch.compile`, the graph breaks here instead of unrolling L steps.

        Args:
            inputs: `[L, S, inputs]`.
            state: `[S, M]` memory before the first step.
            episode_start: `[L, S]` bool, True where the memory is zeroed before the step.

        Returns:
            h after every step, `[L, S, hidden_size]`.
        """
        if self.is_lstm and inputs.is_cpu:
            return self._fused(inputs, state, episode_start)
        return self._loop(inputs, state, episode_start)[0]

    @torch.compiler.disable  # type: ignore[untyped-decorator, unused-ignore]
    def after(self, inputs: Tensor, state: Tensor, episode_start: Tensor) -> Tensor:
        """Return the memory `[S, M]` after a sequence; for the arguments see `unroll`."""
        return self._loop(inputs, state, episode_start)[1]

    def _loop(self, inputs: Tensor, state: Tensor, episode_start: Tensor) -> tuple[Tensor, Tensor]:
        outputs = []
        for row, start in zip(inputs.unbind(), episode_start.unbind(), strict=True):
            hidden, state = self.step(row, state.masked_fill(start.unsqueeze(-1), 0))
            outputs.append(hidden)
        return torch.stack(outputs), state

    def _fused(self, inputs: Tensor, state: Tensor, episode_start: Tensor) -> Tensor:
        """Compute `unroll` with one call of an LSTM over all steps; additional steps reset its memory.

        Before each start of an episode, a step is inserted that closes the gates: f = i = o = 0 leaves exactly
        h = c = 0, and blocks all gradients. An additional input column, 1 in the inserted steps and 0 in the others,
        has the weights that do this. All sequences grow by the largest number of resets in any of them, at most to
        twice their length.
        """
        length, sequences, size = inputs.shape
        with torch.autocast("cpu", enabled=False):
            weight_ih, *others = self._weights()
            inputs, state = inputs.to(weight_ih.dtype), state.to(weight_ih.dtype)
            state = state.masked_fill(episode_start[0].unsqueeze(-1), 0).unsqueeze(0)
            halves = [half.contiguous() for half in state.chunk(2, dim=-1)]

            resets = episode_start.long()
            resets[0] = 0
            shift = resets.cumsum(dim=0)
            place = torch.arange(length).unsqueeze(-1) + shift, torch.arange(sequences)
            padded = inputs.new_zeros(length + int(shift[-1].max()), sequences, size + 1)
            padded[..., -1] = 1
            padded = padded.index_put(place, nn.functional.pad(inputs, (0, 1)))
            shut = weight_ih.new_full((len(weight_ih), 1), _SHUT)
            weights = [torch.cat([weight_ih, shut], dim=-1), *others]

            # Biases, number of layers, dropout, training, bidirectional, batch first.
            options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)
            return torch.lstm(padded, halves, weights, *options)[0][place]

    def _weights(self) -> list[Tensor]:
        return [self.cell.weight_ih, self.cell.weight_hh, self.cell.bias_ih, self.cell.bias_hh]
