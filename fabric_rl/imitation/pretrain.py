"""pretrain(): an agent that imitates, until it gets no better on episodes that it does not learn from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from lightning import Fabric

from fabric_rl.base.settings import Between, Count, CountOrZero, NonNegative, check_settings
from fabric_rl.imitation.batches import Trajectory, check_imitates, learn_pass, shown
from fabric_rl.learning.imitation import CanImitate, Shown
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.types import ActorCritic, NonFiniteError


@dataclass(frozen=True)
class CloneArgs:
    """Settings of cloning before any training."""

    epochs: Count = 100
    """Maximum number of passes over the demonstrations."""
    batch_size: Count = 256
    """Steps per optimizer step."""
    learning_rate: Annotated[float, Between(0, 1, above=True, below=True)] = 1e-3
    """Learning rate of Adam."""
    validation: Annotated[float, Between(0, 1, below=True)] = 0.1
    """Share of the episodes that is held back, at least one episode. 0: none, and training runs for all epochs."""
    patience: Count = 5
    """Epochs without a lower validation loss after which training stops, with the best weights."""
    max_grad_norm: NonNegative = 0.5
    """Clip the norm of the gradient to this; 0 does not clip."""
    seed: CountOrZero = 0
    """Seed of the weights, the order of steps and the choice of validation episodes."""

    def __post_init__(self) -> None:
        check_settings(self, "--")


def pretrain(
    agent: ActorCritic,
    trajectories: Sequence[Trajectory],
    args: CloneArgs,
    tell: Callable[[dict[str, float]], None] = lambda row: None,
) -> list[dict[str, float]]:
    """Lets an agent learn what it is shown, on the CPU in this process. It ends with the weights of its best epoch.

    Whole episodes are held back, with all their players; those in which no step counts are left out.

    Args:
        agent: A new one, or one that knows something.
        trajectories: What it is shown.
        args: Settings.
        tell: Is told each epoch's row.

    Returns:
        A row for each epoch: `epoch`, `loss`, and `validation_loss`, the means of -log p of what was shown.

    Raises:
        TypeError: An agent that cannot imitate.
        ValueError: Too few episodes to hold one back.
        NonFiniteError: The loss became NaN or infinite.
    """
    check_imitates(agent, "--agent")
    draws = torch.Generator().manual_seed(args.seed)
    episodes: dict[str | int, list[Trajectory]] = {}
    for number, each in enumerate(trajectories):
        if each.weight.any():
            episodes.setdefault(each.episode or number, []).append(each)
    groups = list(episodes.values())
    order = torch.randperm(len(groups), generator=draws).tolist()
    held = max(1, round(args.validation * len(order))) if args.validation else 0
    if held >= len(order):
        raise ValueError(
            f"--validation {args.validation}: {len(order)} episodes with steps that count, too few to hold {held} back"
        )
    held_back, learned = ([x for number in part for x in groups[number]] for part in (order[:held], order[held:]))
    unseen, seen = shown(held_back, agent) if held else None, shown(learned, agent)
    fabric = Fabric(accelerator="cpu", devices=1)
    for module in agent.modules():
        if isinstance(module, ObsNormalizer):
            module.update(seen.obs, fabric)
    model, optimizer = fabric.setup(agent, torch.optim.Adam(agent.parameters(), args.learning_rate, eps=1e-5))
    model.mark_forward_method("imitate")
    size, rows = max(1, args.batch_size // agent.sequence_length), list[dict[str, float]]()
    best, weights = float("inf"), agent.state_dict()
    while len(rows) < args.epochs:
        part = torch.randperm(seen.size, generator=draws)
        loss = learn_pass(fabric, model, optimizer, seen, part, size, args.max_grad_norm)
        judged = loss if unseen is None else loss_on(agent, unseen)
        rows.append({"epoch": len(rows) + 1, "loss": loss, "validation_loss": judged})
        tell(rows[-1])
        if not abs(loss) < float("inf"):
            raise NonFiniteError(f"the loss became {loss} in epoch {len(rows)}; take a lower --learning_rate")
        if judged < best or unseen is None:
            best, at = judged, len(rows)
            weights = {name: tensor.clone() for name, tensor in agent.state_dict().items()}
        elif len(rows) - at >= args.patience:
            break
    agent.load_state_dict(weights)
    return rows


@torch.no_grad()
def loss_on(agent: ActorCritic, steps: Shown) -> float:
    """The mean of -log p of what was shown."""
    assert isinstance(agent, CanImitate)
    return float(agent.imitate(steps)[0])
