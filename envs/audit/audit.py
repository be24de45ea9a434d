"""The reward audit: measure which behaviour each term of a reward rewards, and find unintended incentives.

Games of scripted bots are recorded once; then every term of the reward is computed from the recordings, and also from
their mirror images, with the cars in another order, and in longer steps. `fabric-rl audit-rewards` prints the results
(docs/audit_rewards.md).
"""

from collections.abc import Callable
from typing import Any

from envs.audit.games import AuditGames
from envs.audit.report import Audit, Finding, PartReport
from envs.checks import check_seed
from envs.matches.matches import PoolFactory
from envs.rewards.base import Reward
from envs.rewards.parts import INVARIANT_UNITS, reward_terms
from fabric_rl.base.settings import Between, is_number

TOLERANCE, SKIP_TOLERANCE = 1e-3, 0.2
"""Tolerated relative differences: mirrored or reordered play, and tick skip 4 against 8."""
TOTAL = "total"


def audit_rewards(
    factory: Callable[..., Any],
    seconds: float = 30.0,
    seed: int = 0,
    num_arenas: int = 8,
    reward: Reward | None = None,
    phase: str | None = None,
) -> Audit:
    """Audit the reward of a pool.

    Args:
        factory: `RocketSimPool`, or a `functools.partial` of it with settings.
        seconds: Game time in each arena of each situation.
        seed: Seed of all games.
        num_arenas: Arenas of each situation; at least two, so that both teams act.
        reward: Reward to audit instead of the pool's.
        phase: Phase of training, for a pool with phases; default: the first.

    Raises:
        ValueError: A number is out of range, the phase is unknown, or the reward is invalid.
        TypeError: The factory does not build a `RocketSimPool`.
    """
    owner = "audit-rewards"
    if not is_number(seconds) or not 1 <= seconds <= 3600:
        raise ValueError(f"{owner}: --seconds must be from 1 to 3600, got {seconds!r}")
    check_seed(owner, seed, "--seed")
    recipe = PoolFactory(factory, owner, phase)
    recipe.arguments["num_arenas"] = max(
        Between(2).check(f"{owner}: --num_arenas", num_arenas, whole=True), len(recipe.team_sizes)
    )
    if reward is not None:
        recipe.arguments["reward"] = reward
    games = AuditGames(recipe, float(seconds), seed)
    whole = recipe.reward()
    made: list[tuple[str, str, float, Callable[[], Reward]]] = [
        (part.name, part.unit, part.weight, part.copy_weighted) for part in reward_terms(whole)
    ]
    reports = [games.report(*part) for part in [*made, (TOTAL, "", 1.0, recipe.reward)]]
    *parts, total = _with_shares(reports)
    return Audit(
        parts=parts,
        total=total,
        findings=_findings(parts, total, games),
        notes=_notes(parts, total, games),
        goals_per_minute=games.goals_per_minute,
        tick_skip=recipe.tick_skip,
        seconds=float(seconds),
        seed=seed,
        phase=phase or "",
    )


def _with_shares(reports: list[PartReport]) -> list[PartReport]:
    """Divide each report's sum (stored in `share`) by the sum over all terms; the last report is the total."""
    everything = sum(report.share for report in reports[:-1])
    shares = [report.share / everything if everything else 0.0 for report in reports[:-1]]
    return [PartReport(**(vars(r) | {"share": s})) for r, s in zip(reports, [*shares, float(sum(shares))], strict=True)]


def _findings(parts: list[PartReport], total: PartReport, games: AuditGames) -> list[Finding]:
    found = []
    rows = [*parts, total] if len(parts) > 1 else parts
    for row in rows:
        if row.own_goal > 0:
            text = f"{row.name} pays for an own goal: {row.own_goal:.3g} more than for the same touch to the side"
            found.append(Finding("own goal", row.name, text))
    scoring = total.per_minute["score"]
    for row in rows:
        what, earned = row.farmed
        if games.goals_per_minute and earned > max(scoring, 0.0) + 1e-6:
            text = f"{row.name} pays more for farming than for scoring: {earned:.3g} a minute to a car that plays "
            text += f"`{what}`; one that scores earns {scoring:.3g} from all parts together"
            found.append(Finding("farming", row.name, text))
    for row in rows:
        for kind, value, text in (
            ("mirror", row.mirror, "pays blue and orange differently for mirrored play"),
            ("order", row.order, "pays a car by its place in the list of cars"),
        ):
            if value > TOLERANCE:
                found.append(Finding(kind, row.name, f"{row.name} {text} (difference {value:.1%})"))
        if row.unit in INVARIANT_UNITS and row.skip_change > SKIP_TOLERANCE:
            each = ", ".join(f"{pay:.3g} at {skip}" for skip, pay in row.tick_skip.items())
            text = f"{row.name} is paid {row.unit}, but its pay per minute depends on the tick skip: {each}"
            found.append(Finding("tick skip", row.name, text))
    return found


def _notes(parts: list[PartReport], total: PartReport, games: AuditGames) -> list[str]:
    notes = [f"{part.name} paid nothing in any situation" for part in parts if part.sign == "0"]
    if not games.goals_per_minute:
        notes.append("nobody scored from kickoffs (too few seconds, or odd actions), so farming could not be judged")
    elif total.per_minute["chase"] > total.per_minute["score"]:
        notes.append(
            f"a car that only chases the ball earns {total.per_minute['chase']:.3g} a minute; one that scores earns "
            f"{total.per_minute['score']:.3g}"
        )
    if not games.own_goals():
        notes.append("no own goal happened, so the reward for one could not be judged")
    return notes
