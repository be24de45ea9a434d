"""render_frames: images of a replay at any frame rate."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.render.frame import SIZE, render_frame
from envs.replays.format import FLAGS
from envs.replays.replay import Game, Replay
from envs.state.game_state import GameState
from envs.state.layout import CAR_BASIS, Float
from envs.state.view import bases

_AT_ONCE = 64


def render_frames(
    replay: Replay, frames_per_second: float, size: tuple[int, int] = SIZE
) -> Iterator[NDArray[np.uint8]]:
    """Yield images `[H, W, 3]` uint8 of all games; motion is interpolated linearly between frames of the replay."""
    teams = replay.about["teams"]
    for game in (game for game in replay.games if game.num_frames):
        times = np.arange(0, float(game.columns["ticks"][-1]) + 1, TICKS_PER_SECOND / frames_per_second)
        for first in range(0, len(times), _AT_ONCE):
            states = states_at(game, teams, times[first : first + _AT_ONCE])
            yield from (render_frame(states, row, size) for row in range(states.num_arenas))


def states_at(game: Game, teams: Sequence[int], times: NDArray[np.float64]) -> GameState:
    """Return the visible state of a game at several times (in ticks), one per row.

    `episode_ticks` count from the beginning of the game.
    """
    columns, blue = game.columns, teams.count(0)
    at = np.maximum(columns["ticks"].searchsorted(times, side="right") - 1, 0)
    after = np.minimum(at + 1, game.num_frames - 1)
    after = np.where(columns["begins"][after] > 0, at, after)  # no interpolation into the next episode
    share = (times - columns["ticks"][at]) / np.maximum(columns["ticks"][after] - columns["ticks"][at], 1)

    def between(name: str) -> Float:
        start, end = columns[name][at], columns[name][after]
        if name == "car_rotation":
            end = end * np.where((start * end).sum(axis=-1, keepdims=True) < 0, -1, 1)  # q and -q are the same
        moved: Float = start + (end - start) * share.reshape(-1, *[1] * (start.ndim - 1)).astype(np.float32)
        return moved

    flags = {name: (columns["car_flags"][at].astype(np.uint8) >> bit & 1) > 0 for bit, name in enumerate(FLAGS)}
    state = GameState(len(times), blue, len(teams) - blue, flags["present"])
    state.clear(np.arange(len(times)))
    state.world.ball_pos[:], state.world.car_pos[:] = between("ball_pos"), between("car_pos")
    state.car_rows[..., 0, CAR_BASIS] = bases(between("car_rotation")).reshape(*flags["present"].shape, 9)
    state.boost[:], state.pad_timers[:] = columns["car_boost"][at], columns["pad_timers"][at]
    state.boost_active_time[:] = flags["is_boosting"]
    state.demo_respawn_timer[:] = flags["is_demoed"]
    state.episode_ticks[:] = times
    for event in game.events:
        if event["kind"] == "goal":
            for team, car in ((0, 0), (1, blue)):
                state.goals[at >= event["frame"], car : car + 1] = event["score"][team]
    return state
