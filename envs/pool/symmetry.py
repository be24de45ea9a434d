"""Left-right symmetry of a pool: how observations and actions change when the field is mirrored at x = 0."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BOOST_LOCATIONS

from envs.actions import ActionParser, ContinuousAction
from envs.actions.base import REVERSED, get_action_mask, mirror_controls, nested_parsers
from envs.component import Phased
from envs.dones import DoneCondition, TimeoutCondition, check_done
from envs.obs import ObsBuilder
from envs.pool.inspector import spare_pool
from envs.resets import MixedStates, RandomState, mirror_left_right
from envs.resets.mixtures import MIRROR_X
from envs.resets.simple import Scramble
from envs.rewards.base import Reward
from envs.rewards.combinators import AnnealedReward
from envs.rewards.parts import reward_terms
from envs.state.game_state import GameState
from envs.state.layout import NUM_PADS, Float
from fabric_rl.base.symmetry import Symmetry

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool

ARENAS, SECONDS, HELD_STEPS = 24, 3.0, 4
CLOSE, MOST_WRONG = 5e-3, 0.05
"""Tolerated difference of an observation, relative to the range of its column, and share of larger ones (among
the values that are not the column's usual one): small pads are up to 2 uu off their mirror images, so another one may
be the nearest."""
ROUNDING = 1e-5
TOLERANCE = 1e-3
"""Tolerated relative difference of a reward term."""


def find_symmetry(pool: "RocketSimPool") -> Symmetry | str:
    """Compare observations, controls, rewards and ends of episodes of a short game with those of the mirrored game.

    The game is played in a separate pool, with random controls, from random states and cars that fly at the ball. A
    column of the observation may become its own or another column, with either sign.

    Returns:
        The symmetry; or one line about the first thing that has no mirror image.
    """
    game = _play(pool)
    mirrored = [reflect_state(state) for state in game]
    try:
        obs_index, obs_sign = _match_columns(pool.obs_builder, game, mirrored)
        innermost = copy.deepcopy(nested_parsers(pool.action_parser)[-1])  # others only delay, repeat or clip
        actions = _match_actions(innermost, game[-1], mirrored[-1])
        _check_actions(pool.action_parser, actions, game, mirrored)
        _check_rewards(pool.reward, game, mirrored)
        _check_dones(pool.given_dones, game, mirrored)
    except _AsymmetryError as error:
        return str(error)
    except Exception as error:  # of a component of the user's, which need not work in another pool
        return f"its parts failed in a game of {game[0].num_arenas} arenas ({type(error).__name__}: {error})"
    return Symmetry(obs_index, obs_sign, actions)


class _AsymmetryError(Exception):
    """Error for a component that treats left and right differently."""


def reflect_state(state: GameState) -> GameState:
    """Return a copy of the state, mirrored at the plane x = 0; see `mirror_left_right`."""
    other = state.copy()
    for arena in range(other.num_arenas):
        mirror_left_right(other, arena)
    other.controls[:] = mirror_controls(other.controls)
    other.details["world_contact_normal"] *= MIRROR_X
    other.complete()
    return other


def _play(pool: "RocketSimPool") -> list[GameState]:
    """Return the states of a game with the pool's team sizes; the first one begins the episodes."""
    sizes, setter = pool.team_sizes, MixedStates([RandomState(), Scramble()], [1, 1])  # at kickoffs, pads may tie
    parts = None, ContinuousAction(), None, setter, TimeoutCondition(2 * SECONDS)
    spare = spare_pool(pool, max(ARENAS, len(sizes)), sizes, *parts)
    spare.reset(seed=0)
    rng, states, steps = np.random.default_rng(0), [], max(4, round(SECONDS * spare.metadata["render_fps"]))
    for step in range(steps):
        states.append(spare.state.copy())
        _add_rare_situations(states[-1], rng)
        if step % HELD_STEPS == 0:
            actions: NDArray[Any] = rng.uniform(-1, 1, (spare.num_envs, 8)).astype(np.float32)
            actions[:, 0] = 1
        spare.step(actions)
    spare.close()
    return states


def _add_rare_situations(state: GameState, rng: np.random.Generator) -> None:
    """Take half of the pads, move some cars to pads, and some balls into goals and elsewhere."""
    arenas = state.num_arenas
    state.pad_timers[:] = rng.uniform(0, 10, (arenas, NUM_PADS)) * (rng.random((arenas, NUM_PADS)) < 0.5)
    pads = np.array(BOOST_LOCATIONS, np.float32)[rng.integers(NUM_PADS, size=state.present.shape)]
    moved = rng.random(state.present.shape) < 0.1
    state.world.car_pos[moved] = (pads + rng.uniform(-60, 60, pads.shape))[moved]
    size = np.array([[800], [5300], [600]]), np.array([[4000], [5000], [1800]])
    for least, most in ((size[0] * [[-1], [1], [0.2]], size[0]), (size[1] * [[-1], [-1], [0.1]], size[1])):
        moved = rng.random(arenas) < 0.1
        places = rng.uniform(least, most, (3, arenas)) * [[1], [rng.choice([-1, 1])], [1]]
        state.world.ball_pos[moved] = places.T[moved]
    state.complete()


def _match_columns(
    builder: ObsBuilder, game: list[GameState], mirrored: list[GameState]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return for each column of the mirrored observations the column that it comes from, and its sign."""
    here = np.stack([state.present for state in game])
    one, other = (_observations(copy.deepcopy(builder), states)[here] for states in (game, mirrored))
    one, other = one.reshape(len(one), -1), other.reshape(len(other), -1)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise _AsymmetryError(f"{type(builder).__name__} observes NaN or infinity in the mirror image of a game")
    near = CLOSE * np.maximum(np.ptp(one, axis=0), np.ptp(other, axis=0)) + ROUNDING * np.abs(one).max(axis=0)
    unusual = [np.abs(x - np.median(x, axis=0)) > near for x in (one, other)]

    def wrong(column: int, source: slice) -> Float:
        """Return the share of the rows with an unusual value that differ from a source, for both signs."""
        found = other[:, [column]]
        rows = unusual[1][:, [column]] | unusual[0][:, source]
        apart = [np.abs(found - factor * one[:, source]) > near[column] for factor in (1, -1)]
        # A column that is always the same tells nothing; it must still be the same in the mirror image.
        share: Float = np.stack([np.where(rows, x, False).sum(axis=0) / np.maximum(rows.sum(axis=0), 1) for x in apart])
        return np.where(np.stack(apart).all(axis=1) & ~rows.any(axis=0), 1, share)

    index, sign = np.arange(one.shape[1]), np.ones(one.shape[1], np.float32)
    for column in range(one.shape[1]):
        own = wrong(column, slice(column, column + 1))[:, 0]
        if own.min() <= MOST_WRONG:
            sign[column] = (1, -1)[own.argmin()]
            continue
        every = wrong(column, slice(None))
        which, index[column] = np.unravel_index(every.argmin(), every.shape)
        sign[column] = (1, -1)[which]
        if every.min() > MOST_WRONG:
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
    parser: ActionParser, state: GameState, image: GameState
) -> tuple[NDArray[np.int64], ...] | NDArray[np.float32]:
    """Return the `actions` of the symmetry: a row of a table by the controls that it gives in a state and its image."""
    space, size, here = parser.action_space, state.num_arenas * state.num_cars, state.present.reshape(-1)
    if isinstance(space, Discrete):
        number, name = int(space.n), type(parser).__name__
        rows = [[parser.parse(np.full(size, a), s).rows[here] for a in range(number)] for s in (state, image)]
        found = {_key(each): action for action, each in enumerate(rows[1])}
        column = np.array([found.get(_key(mirror_controls(each)), -1) for each in rows[0]])
        if len(np.unique(column[column >= 0])) < number:
            raise _AsymmetryError(f"some of the {number} actions of {name} have no mirror image of their own")
        return (column,)
    if isinstance(space, MultiDiscrete) and space.shape == (8,):
        return tuple(np.arange(n)[::-1].copy() if k in REVERSED else np.arange(n) for k, n in enumerate(space.nvec))
    if isinstance(space, Box) and space.shape == (8,):
        return np.array([-1 if k in REVERSED else 1 for k in range(8)], np.float32)
    raise _AsymmetryError(f"the mirror image of an action of {type(parser).__name__} ({space}) is unknown")


def _key(controls: Float) -> bytes:
    return (controls + np.float32(0)).tobytes()  # no negative zeros


def _check_actions(
    parser: ActionParser,
    actions: tuple[NDArray[np.int64], ...] | NDArray[np.float32],
    game: list[GameState],
    mirrored: list[GameState],
) -> None:
    """Raise an error unless mirrored actions give mirrored controls, and are allowed alike, through the whole game."""
    one, other = copy.deepcopy(parser), copy.deepcopy(parser)
    for each, states in ((one, game), (other, mirrored)):
        each.reset(np.ones(game[0].num_arenas, np.bool_), states[0])
    space, here = batch_space(parser.action_space, game[0].present.size), game[0].present.reshape(-1)
    space.seed(0)
    if isinstance(actions, tuple):
        starts = np.cumsum([0, *map(len, actions)])
        image_of = np.concatenate([column + at for column, at in zip(actions, starts, strict=False)])
    for state, image in zip(game, mirrored, strict=True):
        masks = get_action_mask(one, state), get_action_mask(other, image)
        played: Any = space.sample()
        if isinstance(actions, tuple):
            columns = played.reshape(len(played), -1)
            reflected = np.stack([c[columns[:, k]] for k, c in enumerate(actions)], axis=1).reshape(played.shape)
        else:
            reflected = played * actions
        rows = one.parse(played, state).rows[here], other.parse(reflected, image).rows[here]
        if not np.array_equal(mirror_controls(rows[0]), rows[1]):
            raise _AsymmetryError(f"{type(parser).__name__} gives other controls for mirrored actions")
        if masks[0] is not None and masks[1] is not None and not np.array_equal(masks[0], masks[1][..., image_of]):
            raise _AsymmetryError(f"the action masks of {type(parser).__name__} have no mirror image")


def _check_rewards(reward: Reward, game: list[GameState], mirrored: list[GameState]) -> None:
    """Raise an error for a term, in any phase, that pays differently for the mirrored game."""
    phased = [part for part in reward.walk() if isinstance(part, Phased)]
    names = list(dict.fromkeys(name for part in phased for name in part.phases))
    for number, phase in enumerate(names or [""], 1):
        whole = copy.deepcopy(reward)
        for part in whole.walk():
            if isinstance(part, Phased) and phase:
                part.begin_phase(phase, number, game[0])
            if isinstance(part, AnnealedReward):  # its weight may be 0 at first
                part.hold(1.0)
        for term in reward_terms(whole):
            one, other = (_rewards(term.copy_weighted(), states) for states in (game, mirrored))
            size = np.linalg.norm(one - one.mean()) + np.linalg.norm(other - other.mean())
            if not np.linalg.norm(one - other) <= TOLERANCE * size + ROUNDING * np.abs(one).max():
                raise _AsymmetryError(f"{term.name} pays differently for the mirror image of a game")


def _rewards(reward: Reward, states: list[GameState]) -> NDArray[np.float64]:
    reward.reset(np.ones(states[0].num_arenas, np.bool_), states[0])
    return np.stack([np.where(state.present, reward(state), 0).astype(np.float64) for state in states[1:]])


def _check_dones(conditions: Sequence[DoneCondition], game: list[GameState], mirrored: list[GameState]) -> None:
    """Raise an error for a condition that ends an episode, but not its mirror image."""
    for condition in conditions:
        ends = []
        for states in (game, mirrored):
            own = copy.deepcopy(condition)
            own.reset(np.ones(states[0].num_arenas, np.bool_), states[0])
            ends.append([check_done(own, state) for state in states[1:]])
        if not np.array_equal(ends[0], ends[1]):
            raise _AsymmetryError(f"{type(condition).__name__} ends an episode, but not its mirror image")
