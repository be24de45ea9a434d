"""`python -m envs.rewards`: print the table of all rewards for docs/rewards.md."""

import inspect
import math

import envs as library
from envs.rewards.base import Reward
from envs.rewards.combinators import CombinedReward, PhasedReward, RewardSignals, RoleRewards, WrappedReward


def all_classes() -> list[type[Reward]]:
    """Return every reward class of this package that `envs` exports, sorted by name; not the one for phases."""
    found = (c for c in vars(library).values() if isinstance(c, type) and issubclass(c, Reward))
    package = Reward.__module__.removesuffix("base")
    own = (c for c in found if c.__module__.startswith(package) and not inspect.isabstract(c))
    return sorted((c for c in own if c not in (WrappedReward, PhasedReward)), key=lambda reward: reward.__name__)


def rewards_to_choose_from() -> list[str]:
    """Return the names of rewards that contain no other rewards."""
    return [c.__name__ for c in all_classes() if not takes_rewards(c)]


def rewards_table() -> str:
    """Return two Markdown tables: rewards, and rewards made of other rewards."""
    classes = all_classes()
    around = [c for c in classes if takes_rewards(c)]
    head = "| Name | Pays | Range | Unit |\n|---|---|---|---|"
    tables = ["\n".join([head, *map(row, group)]) for group in ([c for c in classes if c not in around], around)]
    return "## Rewards\n\n{}\n\n## Made of other rewards\n\n{}\n".format(*tables)


def takes_rewards(reward: type[Reward]) -> bool:
    """Return True for a reward made of other rewards."""
    return (
        issubclass(reward, CombinedReward | RewardSignals | RoleRewards)
        or "reward" in inspect.signature(reward).parameters
    )


def row(reward: type[Reward]) -> str:
    """Return the table row of a reward."""
    pays = (reward.__doc__ or "").partition("\n\n")[0].replace("\n    ", " ").strip().rstrip(".").replace("|", "\\|")
    return f"| `{reward.__name__}` | {pays} | {range_of(reward)} | {reward.unit} |"


def range_of(reward: type[Reward]) -> str:
    """Return the minimum and maximum reward of a step as text."""
    low, high = reward.value_range
    if math.isinf(low) and math.isinf(high):
        return "any"
    return f"{low:.3g} upward" if math.isinf(high) else f"{low:.3g}..{high:.3g}"


if __name__ == "__main__":
    print(rewards_table())
