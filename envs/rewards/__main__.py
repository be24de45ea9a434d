"""`python -m envs.rewards`: the table of all rewards, as docs/rewards.md has it."""

import inspect
import math

from envs import rewards
from envs.rewards import CombinedReward, Reward, RewardSignals, WrappedReward


def all_classes() -> list[type[Reward]]:
    """Every reward that can be chosen, by name."""
    found = (c for c in vars(rewards).values() if isinstance(c, type) and issubclass(c, Reward))
    chosen = (c for c in found if not inspect.isabstract(c) and c is not WrappedReward)
    return sorted(chosen, key=lambda reward: reward.__name__)


def rewards_to_choose_from() -> list[str]:
    """Names of those that are not made of other rewards."""
    return [c.__name__ for c in all_classes() if not takes_rewards(c)]


def table() -> str:
    """Two Markdown tables: rewards, and rewards made of rewards."""
    classes = all_classes()
    around = [c for c in classes if takes_rewards(c)]
    head = "| Name | Pays | Range | Unit |\n|---|---|---|---|"
    tables = ["\n".join([head, *map(row, group)]) for group in ([c for c in classes if c not in around], around)]
    return "## Rewards\n\n{}\n\n## Made of other rewards\n\n{}\n".format(*tables)


def takes_rewards(reward: type[Reward]) -> bool:
    """Whether it is made of other rewards."""
    return issubclass(reward, CombinedReward | RewardSignals) or "reward" in inspect.signature(reward).parameters


def row(reward: type[Reward]) -> str:
    """One line of a table."""
    pays = (reward.__doc__ or "").partition("\n\n")[0].replace("\n    ", " ").strip().rstrip(".").replace("|", "\\|")
    return f"| `{reward.__name__}` | {pays} | {range_of(reward)} | {reward.unit} |"


def range_of(reward: type[Reward]) -> str:
    """Least and greatest reward of a step."""
    low, high = reward.value_range
    if math.isinf(low) and math.isinf(high):
        return "any"
    return f"{low:.3g} upward" if math.isinf(high) else f"{low:.3g}..{high:.3g}"


if __name__ == "__main__":
    print(table())
