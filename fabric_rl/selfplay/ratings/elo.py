"""Elo's ratings; pure maths."""


def expected_score(rating: float, opponent: float) -> float:
    r"""What one may expect of a game, 0..1: :math:`E = 1 / (1 + 10^{(R_o - R) / 400})` (Elo 1978)."""
    return 1 / (1 + 10 ** max(-50.0, min(50.0, (opponent - rating) / 400)))


def elo_update(rating: float, opponent: float, score: float, k: float) -> tuple[float, float]:
    r"""The ratings of both after a game: :math:`R + K (S - E)`, and as much less for the opponent.

    Args:
        rating: Of the player.
        opponent: Of its opponent.
        score: The player's: 1 for a win, 0.5 for a draw, 0 for a loss.
        k: The most that a game can change.
    """
    change = k * (score - expected_score(rating, opponent))
    return rating + change, opponent - change
