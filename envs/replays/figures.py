"""measure_replay: the statistics of recorded games, computed as in matches."""

import numpy as np

from envs.matches.statistics import Counts, GameStatistics
from envs.pool.replay_format import FLAGS
from envs.replays.replay import Game, Replay
from envs.state.game_state import GameState
from envs.state.layout import TOUCHED, Float

NOT_RECORDED = ("shots", "saves")
"""Statistics that only the game itself counts."""


def measure_replay(replay: Replay) -> tuple[Counts, Float]:
    """Return the counts `[K, 2]` and maps `[3, 2, *CELLS]` of `GameStatistics`, but `NOT_RECORDED`, over all games.

    Raise a ValueError if there are no frames, or a chunk is damaged.
    """
    measured = [_measure(game, replay.about["teams"]) for game in replay.games if game.num_frames]
    if not measured:
        raise ValueError("the replay has no frames")
    return np.sum([each.counts[:, 0] for each in measured], 0), np.sum([each.maps[:, 0] for each in measured], 0)


def _measure(game: Game, teams: list[int]) -> GameStatistics:
    logger, columns, frames = GameStatistics(), game.columns, game.num_frames
    bits = columns["car_flags"].astype(np.uint8)
    flags = {name: (bits >> bit & 1) > 0 for bit, name in enumerate(FLAGS)}
    states = GameState(frames, teams.count(0), teams.count(1), flags["present"])
    states.clear(np.arange(frames))
    for name in ("ball_pos", "ball_vel", "car_pos", "pad_timers"):
        getattr(states.world, name)[:] = columns[name]
    states.boost[:], states.episode_ticks[:] = columns["car_boost"], columns["ticks"]
    states.demo_respawn_timer[:] = flags["is_demoed"]
    states.car_rows[..., TOUCHED] = flags["touched"][..., None]
    states.set_on_ground(slice(None), flags["on_ground"])
    for event in game.events:
        if event["kind"] == "demo":
            states.demos[event["frame"] :, event["car"]] += 1
    states.complete()
    begins, playing = np.append(columns["begins"], 1) > 0, False
    for frame in range(frames):
        state = states.select(np.array([frame]))
        if begins[frame]:
            logger.reset(np.ones(1, np.bool_), state)
            playing = True
        elif playing:  # a recording may go on after a goal
            logger.update(state, begins[frame + 1 : frame + 2] & (frame + 1 < frames) | state.goal_scored)
            playing = not state.goal_scored[0]
    return logger
