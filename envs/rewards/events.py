"""Rewards for counted events: goals, touches, shots, saves, demolitions, boost pads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import CAR_MAX_SPEED

from envs.rewards.base import (
    ZERO,
    RememberingReward,
    Reward,
    TermStatistics,
    team_sums,
    team_to_cars,
    zero_absent_cars,
    zeros,
)
from envs.state.game_state import GameState
from envs.state.layout import BOOST_PICKUPS, DEMOS, SAVES, SHOTS, Bool, Float
from envs.state.quantities import length
from fabric_rl.base.settings import Finite, NonNegative

_DEMOS = DEMOS - SAVES
_COUNTED = {"save": 0, "shot": SHOTS - SAVES, "boost_pickup": BOOST_PICKUPS - SAVES}
"""Columns of `Quantities.counters`."""


def counter_increments(now: Float, before: Float) -> Float:
    """Return the increments of the game's counters `[A, C, ...]`, which restart when an arena is restored."""
    return np.where(now >= before, now - before, now)


def demolitions(state: GameState, was_demoed: Bool, demos: Float) -> tuple[Float, Bool]:
    """Find the demolitions since a state with `was_demoed [A, C]` and `demos [A, C]`.

    Returns:
        Demolitions `[A, C]` float32 by each car, as the game counts them; and `[A, C]` bool, the cars demolished. If
        the count is lost, on the first step after an arena was restored from a snapshot, the demolition is credited to
        the car that the victim met last.
    """
    victims, counts = state.is_demoed & ~was_demoed & state.present, counter_increments(state.demos, demos)
    for arena in np.flatnonzero(victims.any(axis=1) & ~counts.any(axis=1)).tolist():
        met = state.bump_victim[arena, victims[arena]]
        np.add.at(counts[arena], met[met >= 0], 1)
    return counts, victims


@dataclass(eq=False, repr=False)
class EventReward(RememberingReward):
    """Weighted sum of events: goal, team goal, concede, touch, shot, save, demo, demoed, boost pickup.

    Range: sums of the weights; per event, at any tick skip. RocketSim counts shots and saves: a shot is faster than
    1,750 uu/s, on its way into the goal, and 0.3 s old, so slow or close goals are no shots. A touch counts when a
    contact begins. A goal belongs to the last car of the scoring team that touched the ball. Source: RLGym's first
    version; here `concede` counts only the opponents' goals, regardless of the order of the cars. Metrics: the reward
    of each event with a weight as `reward/<event>`, its share of all events as `reward_percent/<event>`; inside a sum
    `reward/EventReward/<event>`.
    """

    unit = "per event"
    needs_a_weight = True

    goal: Finite = 0.0
    """For the scorer."""
    team_goal: Finite = 0.0
    """For every car of the team that scored."""
    concede: Finite = 0.0
    """For every car of the other team; a negative weight to discourage it."""
    touch: Finite = 0.0
    """For the start of a contact with the ball."""
    shot: Finite = 0.0
    """For a shot on goal."""
    save: Finite = 0.0
    """For a save of such a shot by an opponent's car; not of a ball that no car has hit, as in training packs
    (`SaveReward` counts those)."""
    demo: Finite = 0.0
    """For demolishing an opponent."""
    demoed: Finite = 0.0
    """For being demolished; a negative weight to discourage it."""
    boost_pickup: Finite = 0.0
    """For picking up a boost pad."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._parts = TermStatistics([event for event, weight in self.weights.items() if weight])

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        now = state.quantities
        return {"touched": now.touched, "scorer": now.touched, "demoed": now.is_demoed, "counters": now.counters}

    def compute(self, state: GameState) -> Float:
        kept, weights, now = self._recall(), self.weights, state.quantities
        touched, demoed, counters, scorer = now.touched, now.is_demoed, now.counters, kept["scorer"]
        happened: dict[str, NDArray[Any]] = {}
        if now.any_touched:
            scorer = np.where(team_to_cars(state, team_sums(state, touched) > 0), touched, scorer)
            happened["touch"] = touched & ~kept["touched"]
        if (counters != kept["counters"]).any():
            more = counter_increments(counters, kept["counters"])
            happened |= {event: more[..., column] for event, column in _COUNTED.items()}
        if (weights["demo"] or weights["demoed"]) and now.any_demoed:
            made, suffered = demolitions(state, kept["demoed"], kept["counters"][..., _DEMOS])
            happened |= {"demo": made, "demoed": suffered}
        if now.any_goal:
            scoring = state.scoring_team[:, None]
            ours = scoring == state.team
            happened |= {"goal": ours & scorer, "team_goal": ours, "concede": (scoring >= 0) & ~ours}
        self._hold(touched=touched, scorer=scorer, demoed=demoed, counters=counters)
        total, sums = zeros(state), np.zeros(len(self._parts.names))
        for number, event in enumerate(self._parts.names):
            if event in happened:
                paid = zero_absent_cars(state, np.float32(weights[event]) * happened[event])
                sums[number] = paid.sum()
                total += paid
        self._parts.add(sums, np.abs(sums), int(np.count_nonzero(state.present)))  # all cars get the same sign
        return total

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        return self._parts.drain()

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"events": self._parts.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a `state_dict`; state dicts of older versions lack the sums."""
        super().load_state_dict({name: kept for name, kept in state.items() if name != "events"})
        if "events" in state:
            self._parts.load_state_dict(state["events"])


@dataclass(eq=False, repr=False)
class DemoReward(RememberingReward):
    """`attacker` for demolishing an opponent, `-victim` for being demolished, and `bump` for hard bumps.

    The reward of a bump is `bump` times the change of the victim's velocity over 2300, negative if the victim is a
    teammate. Range: the weights; per event. Source: rlgym-tools' `DemoReward`, which rewards a bump in every step of
    the quarter second after it, so also for the victim's own driving, and credits a demolition to every car, even a
    teammate, that met the victim last; here a bump is rewarded once, in its step, and the game counts demolitions.
    """

    unit = "per event"
    needs_a_weight = True
    value_range = (-1, 1)

    attacker: Finite = 1.0
    """For demolishing an opponent."""
    victim: NonNegative = 1.0
    """Penalty for being demolished, at least 0."""
    bump: Finite = 0.0
    """For bumps, see above. If not zero, every step reads more from the simulation (2 us per car)."""

    def _first(self, state: GameState) -> dict[str, NDArray[np.generic]]:
        cooldown = state.bump_cooldown if self.weights["bump"] else zeros(state)
        now = state.quantities
        events = {"demoed": now.is_demoed, "demos": now.counters[..., _DEMOS]}
        return {"velocity": now.car_vel, "cooldown": cooldown, **events}

    def compute(self, state: GameState) -> Float:
        kept, weights, now, paid = self._recall(), self.weights, state.quantities, zeros(state)
        demoed = now.is_demoed
        if now.any_demoed:
            made, suffered = demolitions(state, kept["demoed"], kept["demos"])
            paid += np.float32(weights["attacker"]) * made - np.float32(weights["victim"]) * suffered
        if weights["bump"]:
            cooldown, victims = state.bump_cooldown, state.bump_victim
            arenas, cars = np.nonzero((victims >= 0) & (cooldown > kept["cooldown"]) & state.present)
            hit = victims[arenas, cars]
            push = length(now.car_vel[arenas, hit] - kept["velocity"][arenas, hit]) / np.float32(CAR_MAX_SPEED)
            push = np.where(state.team[hit] == state.team[cars], -push, push)
            paid[arenas, cars] += np.where(demoed[arenas, hit], ZERO, np.float32(weights["bump"]) * push)
            self._keep(cooldown=cooldown)
            self._hold(velocity=now.car_vel)
        self._hold(demoed=demoed, demos=now.counters[..., _DEMOS])
        return zero_absent_cars(state, paid)


class GoalReward(Reward):
    """+1 for every car of the team that scored, -1 for every car of the other team.

    Range -1..1; per event, at any tick skip. Source: RLGym's `GoalReward`.
    """

    unit = "per event"
    value_range = (-1, 1)

    def compute(self, state: GameState) -> Float:
        if not state.quantities.any_goal:
            return zeros(state)
        scoring = state.scoring_team[:, None]
        return zero_absent_cars(state, np.where(scoring < 0, 0, np.where(scoring == state.team, 1, -1)))
