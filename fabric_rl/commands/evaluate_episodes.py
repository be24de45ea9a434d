"""`fabric-rl evaluate` of an agent that was trained in any other environment than a pool: whole episodes of it."""

from typing import Any

from fabric_rl.evaluation.players import check_positive
from fabric_rl.rollouts.whole_episodes import play_episodes
from fabric_rl.runs.trained import Trained
from fabric_rl.selfplay.ratings.intervals import mean_interval


def evaluate_episodes(trained: Trained, episodes: int, seed: int, sample: bool) -> dict[str, Any]:
    """Plays episodes and prints the means of their returns and lengths, with 95 % confidence intervals.

    Args:
        trained: The agent and its environment.
        episodes: How many are played, at least.
        seed: Of the environment.
        sample: The agent draws actions instead of taking the likeliest.

    Returns:
        The same as numbers.
    """
    check_positive(episodes=episodes)
    envs = trained.env(seed=seed)
    try:
        choose = trained.choose(envs.single_observation_space, envs.single_action_space, not sample, seed)
        played = play_episodes(envs, choose, episodes, seed)
    finally:
        envs.close()
    results: dict[str, Any] = {"player": trained.name, "seed": seed, "sample": sample, "episodes": len(played.returns)}
    how = "samples its actions" if sample else "takes its most probable actions"
    print(f"{results['episodes']} episodes of {trained.name}, which {how}")
    for name, values in (("return", played.returns), ("length", played.lengths)):
        interval = mean_interval(values) if values.std() > 0 else None
        results |= {f"mean_{name}": float(values.mean()), f"{name}_interval_95": interval and list(interval)}
        known = (
            f"95 % {interval.low:,.5g} to {interval.high:,.5g}" if interval else "no interval: too few, or all alike"
        )
        print(f"  mean {name} {values.mean():,.5g} ({known})")
    return results
