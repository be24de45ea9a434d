"""Rewards for the position and motion of the ball."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game
from rlgym.rocket_league.common_values import BALL_MAX_SPEED

from envs.rewards.base import ONE, ZERO, RememberingReward, Reward, team_sums, team_to_cars, zero_absent_cars, zeros
from envs.state.game_state import GameState
from envs.state.layout import POS, Bool, Float
from envs.state.quantities import length
from fabric_rl.base.settings import Finite

_NET_MIDDLE = np.array([0, game.BACK_NET_Y, game.GOAL_HEIGHT / 2], np.float32)
_NET_DEPTH = np.float32(game.BACK_NET_Y - game.BACK_WALL_Y + game.BALL_RADIUS)
FIELD_LENGTH = 2 * game.BACK_WALL_Y


class NegativeVelocityTowardOwnGoalReward(Reward):
    """Penalty for the ball's speed toward the car's own net: `-max(0, v_ball . d_own / 6000)`.

    Range -1..0; per step, so it depends on the tick skip. The reward is already negative, so give it a positive weight.
    Some public pipelines give it a negative weight, and so reward own goals; `CombinedReward` raises an error.
    """

    value_range = (-1, 0)

    def compute(self, state: GameState) -> Float:
        # One team's target is the other team's own net: the speeds are identical, to the bit.
        share = state.quantities.ball_speed_to_net[:, ::-1] / np.float32(game.BALL_MAX_SPEED)
        return zero_absent_cars(state, team_to_cars(state, -np.maximum(share, ZERO)))


class LiuDistanceBallToGoalReward(Reward):
    """Closeness of the ball to the opponents' goal: `min(1, exp(-(|ball - net| - 971.25) / 12000))`.

    The middle of the net is at (0, 6000, 321); 971.25 is the net's depth plus the ball's radius. Range 0..1; per step,
    so it depends on the tick skip. It also rewards a resting ball, so wrap it in `PotentialReward`. Source:
    RLGym's first version, after Liu et al. 2021, "From Motor Control to Team Play in Simulated Humanoid Football".
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        gap = length(_NET_MIDDLE - state.ball_rows[..., POS]) - _NET_DEPTH
        near = np.minimum(np.exp(gap * np.float32(-0.5 / game.BALL_MAX_SPEED)), ONE)
        return zero_absent_cars(state, team_to_cars(state, near))


@dataclass(eq=False, repr=False)
class BallTravelReward(RememberingReward):
    """Distance of the ball from one touch to the next, in field lengths, weighted by who touched it next.

    For `L` = the path length, over 10240 uu, since the last touch: the car that touched last earns `L` times
    `own_touch`, `pass_made` or `giveaway` when itself, a mate or an opponent touches next, or `goal` or `own_goal` when
    the ball goes in; the one that touches next earns `pass_received` from a mate, `interception` from an opponent. With
    several cars at the ball in one step every pair counts, divided by the number of pairs.

    Range 0 upward with positive weights; per event. The path is measured once a step, so a bounce within a step is cut
    short: a little less at higher tick skips. Source: rlgym-tools' `BallTravelReward`, which credits a goal to the
    second to last toucher if the last touch is in the same step as the goal; here the distance of such a goal is 0.
    """

    unit = "per event"
    needs_a_weight = True

    own_touch: Finite = 0.0
    """Weight when the same car touches again."""
    pass_made: Finite = 0.0
    """Weight for the passer when a teammate touches next."""
    pass_received: Finite = 0.0
    """Weight for the receiver of a teammate's pass."""
    giveaway: Finite = 0.0
    """Weight for the last toucher when an opponent touches next; a negative one discourages it."""
    interception: Finite = 0.0
    """Weight for the car that takes the ball from an opponent."""
    goal: Finite = 1.0
    """Weight when the last touch leads to a goal."""
    own_goal: Finite = -1.0
    """Weight when it leads to an own goal."""
    by_height: bool = False
    """Measure the area under the path, over half the field times half its height, so that a high ball counts more."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        travelled = np.zeros(state.num_arenas, np.float32)
        shared = state.quantities
        return {"ball": shared.ball_pos, "last": shared.touched, "travelled": travelled}

    def compute(self, state: GameState) -> Float:
        kept, shared = self._recall(), state.quantities
        ball, touched = shared.ball_pos, shared.touched
        way = length(ball - kept["ball"])
        if self.by_height:
            way = way * (ball[:, 2] + kept["ball"][:, 2]) * np.float32(0.5 * 2 / (game.BACK_WALL_Y * game.CEILING_Z))
        else:
            way = way * np.float32(1 / FIELD_LENGTH)
        travelled, last = kept["travelled"] + way, kept["last"]
        if not shared.any_touched and not shared.any_goal:
            self._hold(ball=ball, travelled=travelled)
            return zeros(state)
        rated, hit, goals = zeros(state), shared.hit, shared.goal_scored
        if shared.any_touched:
            rated += self._touches(state, last, touched)
        if shared.any_goal:
            weights = self.weights
            own = state.scoring_team[:, None] != state.team
            paid = np.where(own, np.float32(weights["own_goal"]), np.float32(weights["goal"]))
            rated += np.where(last & (goals & ~hit)[:, None], paid, ZERO)
        self._hold(ball=ball, last=np.where(hit[:, None], touched, last), travelled=np.where(hit, ZERO, travelled))
        return zero_absent_cars(state, rated * travelled[:, None])

    def _touches(self, state: GameState, last: Bool, touched: Bool) -> Float:
        """Return the weights `[A, C]` of the touches that follow the `last` ones."""
        weights, same = self.weights, last & touched
        now_by, last_by = team_sums(state, touched), team_sums(state, last)
        of_mates: list[NDArray[np.int64]] = [team_to_cars(state, by) - same for by in (now_by, last_by)]
        of_opponents: list[NDArray[np.int64]] = [team_to_cars(state, by[:, ::-1]) for by in (now_by, last_by)]
        (mates_now, mates_last), (opponents_now, opponents_last) = of_mates, of_opponents
        rated = same * weights["own_touch"]
        rated = rated + last * (mates_now * weights["pass_made"] + opponents_now * weights["giveaway"])
        rated = rated + touched * (mates_last * weights["pass_received"] + opponents_last * weights["interception"])
        pairs = now_by.sum(axis=1) * last_by.sum(axis=1)
        shared: Float = (rated / np.maximum(pairs, 1)[:, None]).astype(np.float32)
        return shared


class PossessionReward(RememberingReward):
    """+1 for the team that touched the ball last, -1 for the other, 0 before the first touch.

    Range -1..1; per step, so it depends on the tick skip. If both teams touch in the same step, neither has the ball.
    Source: zero-sum form of the last-touch information of RLGym's game state.
    """

    value_range = (-1, 1)

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        return {"owner": np.zeros((state.num_arenas, 2), np.float32)}

    def compute(self, state: GameState) -> Float:
        owner, shared = self._recall()["owner"], state.quantities
        if shared.any_touched:
            now = (team_sums(state, shared.touched) > 0).astype(np.float32)
            owner = np.where(now.any(axis=1, keepdims=True), now - now[:, ::-1], owner)
            self._hold(owner=owner)
        return zero_absent_cars(state, team_to_cars(state, owner).copy())


class VelocityBallToGoalReward(Reward):
    """Speed of the ball toward the opponents' net: `max(0, v_ball . d_goal / 6000)`, `d_goal` to the back of the net.

    Range 0..1; per step, so it depends on the tick skip. Source: RLGym's training guide, whose code rewards orange for
    shooting into its own net; here both teams are rewarded for speed toward the *opponents'* net.
    """

    value_range = (0, 1)

    def compute(self, state: GameState) -> Float:
        share = state.quantities.ball_speed_to_net / np.float32(BALL_MAX_SPEED)
        return zero_absent_cars(state, team_to_cars(state, np.maximum(share, ZERO)))
