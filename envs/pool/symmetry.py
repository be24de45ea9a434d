"""Left-right symmetry of a pool: how observations and actions change when the field is mirrored at x = 0."""

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from numpy.typing import NDArray

from envs.actions import ActionParser, ContinuousAction
from envs.actions.base import ROLL, STEER, YAW, get_action_mask, nested_parsers
from envs.component import Phased
from envs.dones import TimeoutCondition
from envs.obs import ObsBuilder
from envs.resets import MixedStates, RandomState, mirror_left_right
from envs.resets.mixtures import MIRROR_X
from envs.resets.simple import Scramble
from envs.rewards import Reward
from envs.rewards.parts import reward_terms
from envs.state.game_state import GameState
from envs.state.layout import NUM_PADS, Float
from fabric_rl.base.symmetry import Symmetry

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

ARENAS, SECONDS, HELD_STEPS = 24, 3.0, 4
REVERSED = [STEER, YAW, ROLL]
"""Controls that change their sign."""
CLOSE, MOST_WRONG = 5e-3, 0.02
"""Tolerated difference of an observation, relative to the largest value of its column, and share of larger ones: small
pads are up to 2 uu off their mirror images, so another one may be the nearest."""
TOLERANCE = 1e-2
"""Tolerated relative difference of a reward term."""


def find_symmetry(pool: "RocketSimPool") -> Symmetry | str:
    """Compare observations, controls and rewards of a short game with those of the mirrored game.

    The game is played in a separate pool, with random controls, from random states and cars that fly at the ball. A
    column of the observation may become its own or another column, with either sign.

    Returns:
        The symmetry; or one line about the first thing that has no mirror image.
    """
    game = _play(pool)
    mirrored = [reflect_state(state) for state in game]
    try:
        obs_index, obs_sign = _match_columns(pool.obs_builder, game, mirrored)
        actions = _match_actions(copy.deepcopy(nested_parsers(pool.action_parser)[-1]), game, mirrored)
        _check_rewards(pool.reward, game, mirrored)
    except _AsymmetryError as error:
        return str(error)
    return Symmetry(obs_index, obs_sign, actions)


class _AsymmetryError(Exception):
    """Error for a component that treats left and right differently."""


def reflect_state(state: GameState) -> GameState:
    """Return a copy of the state, mirrored at the plane x = 0; see `mirror_left_right`."""
    other = state.copy()
    for arena in range(other.num_arenas):
        mirror_left_right(other, arena)
    other.controls[..., REVERSED] *= -1
    other.details["world_contact_normal"] *= MIRROR_X
    other.complete()
    return other


def _play(pool: "RocketSimPool") -> list[GameState]:
    """Return the states of a game with the pool's team sizes; the first one begins the episodes."""
    sizes = pool.team_sizes
    spare = type(pool)(
        max(ARENAS, len(sizes)),
        sizes,
        action=ContinuousAction(),
        state_setter=MixedStates([RandomState(), Scramble()], [1, 1]),  # no kickoffs: two pads may be equally near
        done=TimeoutCondition(2 * SECONDS),
        tick_skip=pool.tick_skip,
        action_delay_ticks=pool.action_delay_ticks,
        num_threads=1,
    )
    spare.reset(seed=0)
    rng, states, steps = np.random.default_rng(0), [], max(4, round(SECONDS * spare.metadata["render_fps"]))
    for step in range(steps):
        states.append(spare.state.copy())
        states[-1].pad_timers[:] = rng.uniform(0, 10, states[-1].pad_timers.shape) * (rng.random(NUM_PADS) < 0.5)
        states[-1].complete()
        if step % HELD_STEPS == 0:
            actions: NDArray[Any] = rng.uniform(-1, 1, (spare.num_envs, 8)).astype(np.float32)
            actions[:, 0] = 1
        spare.step(actions)
    spare.close()
    return states


def _match_columns(
    builder: ObsBuilder, game: list[GameState], mirrored: list[GameState]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return for each column of the mirrored observations the column that it comes from, and its sign."""
    here = np.stack([state.present for state in game])
    one, other = (_observations(copy.deepcopy(builder), states)[here] for states in (game, mirrored))
    one, other = one.reshape(len(one), -1), other.reshape(len(other), -1)
    near = CLOSE * np.maximum(np.abs(one).max(axis=0), np.abs(other).max(axis=0))
    index, sign = np.arange(one.shape[1]), np.ones(one.shape[1], np.float32)
    wrong = np.stack([(np.abs(other - s * one) > near).mean(axis=0) for s in (1, -1)])
    sign[wrong[1] < wrong[0]] = -1
    for column in np.flatnonzero(wrong.min(axis=0) > MOST_WRONG):
        away = np.stack([(np.abs(other[:, [column]] - s * one) > near[column]).mean(axis=0) for s in (1, -1)])
        which, index[column] = np.unravel_index(away.argmin(), away.shape)
        sign[column] = (1, -1)[which]
        if away.min() > MOST_WRONG:
            blue, orange = game[0].num_blue, game[0].num_orange
            width = builder.space(blue, orange).shape[-1]
            groups = builder.columns(blue, orange).items()
            name = next((name for name, at in groups if at.start <= column % width < at.stop), "obs")
            raise _AsymmetryError(f"column {column} ({name}) of {type(builder).__name__} has no mirror image")
    return index, sign


def _observations(builder: ObsBuilder, states: list[GameState]) -> Float:
    """Return the observations `[steps, A, C, ...]` of an episode."""
    first = states[0]
    space = builder.space(first.num_blue, first.num_orange)
    obs = np.empty((len(states), first.num_arenas, first.num_cars, *space.shape), np.float32)
    builder.reset(np.ones(first.num_arenas, np.bool_), first)
    for out, state in zip(obs, states, strict=True):
        builder.build(state, out)
    return obs


def _match_actions(
    parser: ActionParser, game: list[GameState], mirrored: list[GameState]
) -> tuple[NDArray[np.int64], ...] | NDArray[np.float32]:
    """Return the `actions` of the symmetry: mirrored actions must give mirrored controls, and be masked alike."""
    space, (state, image) = parser.action_space, (game[-1], mirrored[-1])
    size, here = state.num_arenas * state.num_cars, state.present.reshape(-1)

    def controls(actions: NDArray[np.generic], seen: GameState) -> Float:
        rows: Float = parser.parse(actions, seen).rows[here].copy()
        rows[:, REVERSED] *= 1 if seen is image else -1
        rows += 0  # no negative zeros
        return rows

    name = type(parser).__name__
    if isinstance(space, Discrete):
        number = int(space.n)
        found = {controls(np.full(size, a), image).tobytes(): a for a in range(number)}
        column = np.array([found.get(controls(np.full(size, a), state).tobytes(), -1) for a in range(number)])
        if len(np.unique(column[column >= 0])) < number:
            raise _AsymmetryError(f"some of the {number} actions of {name} have no mirror image of their own")
        for one, other in zip(game, mirrored, strict=True):
            masks = get_action_mask(parser, one), get_action_mask(parser, other)
            if masks[0] is not None and masks[1] is not None and not np.array_equal(masks[0], masks[1][..., column]):
                raise _AsymmetryError(f"the action masks of {name} have no mirror image")
        return (column,)
    rng = np.random.default_rng(0)
    if isinstance(space, MultiDiscrete) and space.shape == (8,):
        choices = tuple(np.arange(n)[::-1].copy() if k in REVERSED else np.arange(n) for k, n in enumerate(space.nvec))
        played = rng.integers(0, space.nvec, (size, 8))
        reflected: NDArray[np.generic] = np.stack([c[played[:, k]] for k, c in enumerate(choices)], axis=1)
        actions: tuple[NDArray[np.int64], ...] | NDArray[np.float32] = choices
    elif isinstance(space, Box) and space.shape == (8,):
        actions = np.array([-1 if k in REVERSED else 1 for k in range(8)], np.float32)
        played = rng.uniform(-1, 1, (size, 8)).astype(np.float32)
        reflected = played * actions
    else:
        raise _AsymmetryError(f"the mirror image of an action of {name} ({space}) is unknown")
    if not np.array_equal(controls(played, state), controls(reflected, image)):
        raise _AsymmetryError(f"{name} gives other controls for mirrored actions")
    return actions


def _check_rewards(reward: Reward, game: list[GameState], mirrored: list[GameState]) -> None:
    """Raise an error for a term, in any phase, that pays differently for the mirrored game."""
    phased = [part for part in reward.walk() if isinstance(part, Phased)]
    names = list(dict.fromkeys(name for part in phased for name in part.phases))
    for number, phase in enumerate(names or [""], 1):
        whole = copy.deepcopy(reward)
        for part in whole.walk() if names else ():
            if isinstance(part, Phased):
                part.begin_phase(phase, number, game[0])
        for term in reward_terms(whole):
            one, other = (_rewards(term.copy_weighted(), states) for states in (game, mirrored))
            size = np.linalg.norm(one) + np.linalg.norm(other)
            if size and np.linalg.norm(one - other) > TOLERANCE * size:
                raise _AsymmetryError(f"{term.name} pays differently for the mirror image of a game")


def _rewards(reward: Reward, states: list[GameState]) -> NDArray[np.float64]:
    reward.reset(np.ones(states[0].num_arenas, np.bool_), states[0])
    return np.stack([np.where(state.present, reward(state), 0).astype(np.float64) for state in states[1:]])
