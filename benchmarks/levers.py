"""Ideas for faster learning that fabric-rl does not have, as agents and observations for `learning_speed.py`.

The arm with starts from human games needs `python levers.py ../build/human_states.npz A.replay B.replay` before.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, one_hot

from agents import PPOLightningAgent
from agents.parts.heads import linear
from envs import KickoffThenShoot, save_states
from envs.demonstrations.convert import convert
from envs.demonstrations.file import states_from_columns
from envs.obs import AdvancedObsPlus
from envs.obs.base import Meaning
from envs.obs.blocks import PREVIOUS_ACTION
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Float
from fabric_rl.learning.imitation import DemonstrationBatch
from fabric_rl.schedules import Schedule
from fabric_rl.types import Minibatch, Stats


class SPOAgent(PPOLightningAgent):
    """A quadratic penalty on the ratio in place of PPO's clip (Xie et al. 2024, Simple Policy Optimization)."""

    def evaluate_steps(self, minibatch: Minibatch | DemonstrationBatch) -> tuple[Tensor, Tensor]:
        """As the agent's, but remembers the policy parameters."""
        self.params, values = super().evaluate_steps(minibatch)
        return self.params, values

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]
        """PPO's loss, with the policy's part exchanged."""
        loss, stats = super().training_step(minibatch)
        log_prob, _ = self.policy_head.evaluate(self.params, minibatch.action, minibatch.action_mask)
        ratio, advantage = (log_prob.float() - minibatch.log_prob.float()).exp(), minibatch.advantage
        clip = cast(Schedule, self.clip_coef)(self.progress)
        clipped = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
        surrogate = (ratio * advantage - advantage.abs() / (2 * clip) * (ratio - 1).square()).mean()
        return loss + clipped - surrogate, stats | {"policy_loss": -surrogate.detach()}


class _TwoHot(nn.Module):
    """A value as the mean of a categorical distribution over 41 numbers from -10 to 10; keeps its last result."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.layer = linear(inputs, 41, 0.01)
        self.register_buffer("bins", torch.linspace(-10, 10, 41), persistent=False)
        self.logits = self.value = torch.zeros(0)

    def forward(self, features: Tensor) -> Tensor:
        self.logits = self.layer(features).float()
        self.value = (self.logits.softmax(-1) * self.bins).sum(-1)
        return self.value

    def loss(self, returns: Tensor) -> Tensor:
        """Cross-entropy with the two neighbouring bins of each return, weighted by nearness."""
        place = (returns.clamp(-10, 10) + 10) * 2
        low = place.floor().long().clamp(max=39)
        share = (place - low).unsqueeze(-1)
        target = one_hot(low, 41) * (1 - share) + one_hot(low + 1, 41) * share
        return -(target * self.logits.log_softmax(-1)).sum(-1).mean()


class TwoHotAgent(PPOLightningAgent):
    """Values as classification (Farebrother et al. 2024), of returns in standard deviations of the reward's returns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.value_head = _TwoHot(self.value_head.layer.in_features)  # type: ignore[assignment]

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]
        """PPO's loss, with the value's part exchanged."""
        loss, stats = super().training_step(minibatch)
        head = cast(_TwoHot, self.value_head)
        squares = 0.5 * mse_loss(head.value, minibatch.returns)
        return loss + self.value_coef * (head.loss(minibatch.returns) - squares), stats


class MuonAgent(PPOLightningAgent):
    """Muon (Jordan et al. 2024) for all matrices but those of the heads, with Adam's learning rate; Adam for the rest.

    A resumed run begins with new moments.
    """

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """See `PPOLightningAgent.configure_optimizers`."""
        return _MuonAndAdam(self)


class _MuonAndAdam(torch.optim.Optimizer):
    """Both optimizers as one."""

    def __init__(self, agent: MuonAgent) -> None:
        inner = [agent.actor, agent.critic]
        muon = [p for part in inner if part is not None for p in part.parameters() if p.ndim == 2]
        rest = [p for p in agent.parameters() if all(p is not q for q in muon)]
        rate = agent.actor_lr
        self.parts = (
            torch.optim.Muon(muon, lr=rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
            torch.optim.Adam(rest, lr=rate, eps=1e-5),
        )
        super().__init__([{"params": muon}, {"params": rest}], {"lr": rate})
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ANN401
        """Makes a step with both."""
        for part in self.parts:
            part.step()


class GrowingBatchAgent(PPOLightningAgent):
    """Batches that grow: Adam with the mean clipped gradient of 1, 2, 4 and 8 minibatches in the quarters of a run.

    A resumed run begins with a new batch.
    """

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """See `PPOLightningAgent.configure_optimizers`."""
        return _AdamOnMeans(self)


class _AdamOnMeans(torch.optim.Adam):
    """Adam that makes a step when it has seen enough minibatches."""

    def __init__(self, agent: GrowingBatchAgent) -> None:
        super().__init__(agent.parameters(), lr=agent.actor_lr, eps=1e-5, fused=True)
        self.agent, self.seen, self.totals = agent, 0, list[Tensor]()

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ANN401
        """Adds the gradient, and makes a step with the mean when the batch is complete."""
        wanted = 2 ** min(3, int(4 * float(self.agent.progress)))
        parameters = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        self.totals = self.totals or [torch.zeros_like(p) for p in parameters]
        for p, total in zip(parameters, self.totals, strict=True):
            total += cast(Tensor, p.grad)
        self.seen += 1
        if self.seen < wanted:
            return
        for p, total in zip(parameters, self.totals, strict=True):
            p.grad = total / self.seen
        super().step()
        self.totals, self.seen = [], 0


class NextStateAgent(PPOLightningAgent):
    """Also predicts how the first 24 columns of the observation change, from the policy's features and the action.

    For the quickstart's 90 actions, without `normalize_obs` or `shared_trunk`.
    """

    field, outputs = "next_obs", 24

    def __post_init__(self) -> None:
        super().__post_init__()
        self.minibatch_fields = (*self.minibatch_fields, self.field)
        self.predictor = linear(self.actor_hidden_sizes[-1] + 90, self.outputs, 1.0)

    def target(self, minibatch: Minibatch) -> Tensor:
        """What is predicted, `[B, outputs]`."""
        return (cast(Tensor, minibatch.next_obs) - minibatch.obs)[:, :24].float()

    def evaluate(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """As the agent's, but remembers the features."""
        self.features = self.actor(obs.float())
        return self.policy_head(self.features), self.value_head(cast(nn.Module, self.critic)(obs.float()))

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]
        """PPO's loss, and the error of the prediction with weight 0.1."""
        loss, stats = super().training_step(minibatch)
        inputs = torch.cat((self.features, one_hot(minibatch.action, 90).to(self.features.dtype)), -1)
        target = self.target(minibatch)
        error = mse_loss(self.predictor(inputs).float(), target / target.std(0).clamp_min(1e-4))
        return loss + 0.1 * error, stats | {"prediction_loss": error.detach()}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """As the agent's, and the predictor."""
        return self.adam(
            actor=[self.actor, self.policy_head, self.predictor], critic=[cast(nn.Module, self.critic), self.value_head]
        )


class RewardAgent(NextStateAgent):
    """Predicts the reward of the step instead."""

    field, outputs = "reward", 1

    def target(self, minibatch: Minibatch) -> Tensor:
        """The scaled reward."""
        return cast(Tensor, minibatch.reward).float().unsqueeze(-1)


class SlowShooter(KickoffThenShoot):
    """The shooter with a handicap: it decides at every `pause`-th step only, and holds its controls in between."""

    _in_state_dict: ClassVar = {"count": "_count", "held": "_held"}
    pause = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self._count, self._held = 0, np.zeros((0, 0, 8), np.float32)

    def act(self, state: GameState) -> Float:
        """The controls of the last decision."""
        if self._count % self.pause == 0:
            self._held = super().act(state)
        self._count += 1
        return self._held


class VerySlowShooter(SlowShooter):
    """Decides about once a second."""

    pause = 16


@dataclass(eq=False, repr=False)
class ControlsObs(AdvancedObsPlus):
    """AdvancedObsPlus for 1v1, with what the opponent pressed in the last step."""

    def table(self, num_blue: int, num_orange: int) -> list[Meaning]:
        """The columns of AdvancedObsPlus, then those of the opponent's controls."""
        more = [meaning._replace(group="opponent_action") for meaning in PREVIOUS_ACTION]
        return [*super().table(num_blue, num_orange), *more]

    def build(self, state: GameState, out: Float) -> None:
        """Writes both."""
        super().build(state, out[..., :-8])
        out[..., -8:] = state.controls[:, ::-1]


def save_human_states(out: Path, replays: Iterable[Path]) -> int:
    """Writes states (two per second) of human games of equal team size for `ReplayedStates`; returns their number."""
    games = [convert(path, tick_skip=60) for path in replays]
    frames = [frame for game in games for episode, _ in game.episodes for frame in episode]
    columns = {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}
    return save_states(out, states_from_columns(columns, games[0].teams.count(BLUE)))


if __name__ == "__main__":
    print(save_human_states(Path(sys.argv[1]), map(Path, sys.argv[2:])), "states")
