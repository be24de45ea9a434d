"""Plots of recorded games for notebooks. Each function draws on the given Axes or on new ones, and returns them.

replay = read_replay("game.frl")
touch_map(replay)
position_map(replay, car=0, axes=plt.subplots()[1])

Cars are numbered, blue ones first. A ValueError is raised if there is no such car, an ImportError without matplotlib
(`pip install matplotlib`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import (
    BACK_NET_Y,
    BACK_WALL_Y,
    CORNER_CATHETUS_LENGTH,
    GOAL_CENTER_TO_POST,
    SIDE_WALL_X,
)

from envs.pool.replay_format import FLAGS
from envs.replays.replay import Game, Replay
from envs.state.layout import CONTROL_NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EDGES = [np.linspace(-SIDE_WALL_X, SIDE_WALL_X, 33), np.linspace(-BACK_NET_Y, BACK_NET_Y, 49)]
"""Edges of a map's cells, about 256 uu each."""
_COLOURS = {"-1": "#b4451f", "-1 to 0": "#efb08f", "0": "#b9bec6", "0 to 1": "#93bff2", "1": "#1f66e5"}


def draw_field(axes: "Axes | None" = None) -> "Axes":
    """Draw the walls of the field from above, in uu: blue defends below, orange above."""
    axes = _axes(axes, 4.4, 5.2)
    for sign in (1, -1):
        corner = SIDE_WALL_X - CORNER_CATHETUS_LENGTH
        post, wall, edge = GOAL_CENTER_TO_POST, sign * BACK_WALL_Y, sign * (BACK_WALL_Y - CORNER_CATHETUS_LENGTH)
        net = sign * BACK_NET_Y
        outline = [SIDE_WALL_X, SIDE_WALL_X, corner, post, post, -post, -post, -corner, -SIDE_WALL_X, -SIDE_WALL_X]
        axes.plot(outline, [0, edge, wall, wall, net, net, wall, wall, edge, 0], color="black", linewidth=1)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set(xlabel="x (uu)", ylabel="y (uu)", aspect="equal")
    axes.xaxis.set_inverted(True)  # the game's coordinates are left-handed: a car that looks up has -x on its right
    return axes


def touch_map(replay: Replay, car: int | None = None, axes: "Axes | None" = None) -> "Axes":
    """Draw the number of touches in each cell, by one car or by all; a contact over several steps counts once."""
    _check(replay, car)
    places = [
        game.columns["ball_pos"][event["frame"]]
        for game in replay.games
        for event in game.events
        if event["kind"] == "touch" and car in (None, event["car"])
    ]
    return _map(np.array(places).reshape(-1, 3), np.ones(len(places)), "touches", axes)


def position_map(replay: Replay, car: int | None = None, axes: "Axes | None" = None) -> "Axes":
    """Draw the seconds that a car (while not demolished), or by default the ball, spent in each cell."""
    _check(replay, car)
    places, seconds = [np.zeros((0, 3), np.float32)], [np.zeros(0)]
    for game in replay.games:
        passed = np.diff(game.columns["ticks"], prepend=game.columns["ticks"][:1]) / replay.about["ticks_per_second"]
        places.append(game.columns["ball_pos"] if car is None else game.columns["car_pos"][:, car])
        seconds.append(passed if car is None else passed * _there(game, car))
    return _map(np.concatenate(places), np.concatenate(seconds), "seconds", axes)


def reward_by_part(replay: Replay, car: int = 0, episode: int = 0, axes: "Axes | None" = None) -> "Axes":
    """Draw the cumulative reward of a car since the kickoff, for each nonzero term and in total.

    Args:
        replay: Replay of a trained player, which includes rewards.
        car: Index of the car.
        episode: Index of the kickoff, from 0; the plot ends at the next one.
        axes: Axes to draw on.

    Raises:
        ValueError: No rewards were recorded, or there are fewer episodes.
    """
    _check(replay, car)
    if not replay.about["rewards"]:
        raise ValueError("the replay has no rewards; only replays of trained players have them")
    starts = [(game, int(frame)) for game in replay.games for frame in np.flatnonzero(game.columns["begins"])]
    if not 0 <= episode < len(starts):
        raise ValueError(f"there is no episode {episode}: the replay has {len(starts)}, counted from 0")
    game, start = starts[episode]
    end = next((frame for other, frame in starts[episode + 1 :] if other is game), game.num_frames)
    seconds = (game.columns["ticks"][start:end] - game.columns["ticks"][start]) / replay.about["ticks_per_second"]
    paid = np.cumsum(game.columns["rewards"][start:end, car], axis=0, dtype=np.float64)
    axes = _axes(axes, 7, 3.2)
    for name, part in zip(replay.about["rewards"], paid.T, strict=True):
        if part.any():
            axes.plot(seconds, part, label=name)
    axes.plot(seconds, paid.sum(axis=1), "k--", label="sum")
    axes.set(xlabel="seconds since the kickoff", ylabel="cumulative reward")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", frameon=False)
    return axes


def action_histogram(replay: Replay, car: int = 0, axes: "Axes | None" = None) -> "Axes":
    """Draw the distribution of each control's values over a car's steps, except while it was demolished."""
    _check(replay, car)
    told = [np.zeros((0, len(CONTROL_NAMES)), np.float32)]
    for game in replay.games:
        told.append(game.columns["car_controls"][_there(game, car) & (game.columns["begins"] == 0), car])
    values = np.concatenate(told)
    near = 0.5 / 127  # rounding of a replay
    kinds = 2 + np.sign(values) * (1.0 * (np.abs(values) > near) + (np.abs(values) > 1 - near))
    axes, left = _axes(axes, 7, 3.2), np.zeros(len(CONTROL_NAMES))
    for number, (label, colour) in enumerate(_COLOURS.items()):
        share = (kinds == number).sum(axis=0) / max(1, len(kinds))
        axes.barh(CONTROL_NAMES, share, left=left, color=colour, label=label)
        left += share
    axes.set(xlabel="share of steps", xlim=(0, 1), ylim=(len(CONTROL_NAMES) - 0.5, -0.5))
    axes.legend(ncols=len(_COLOURS), loc="lower center", bbox_to_anchor=(0.5, 1), fontsize="small", frameon=False)
    return axes


def _axes(axes: "Axes | None", width: float, height: float) -> "Axes":
    if axes is not None:
        return axes
    try:
        plots = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("pictures need matplotlib; pip install matplotlib") from error
    made: Any = plots.subplots(figsize=(width, height), layout="constrained")[1]
    return made  # type: ignore[no-any-return]


def _map(places: NDArray[np.float32], weights: NDArray[np.float64], unit: str, axes: "Axes | None") -> "Axes":
    """Draw a map of the positions `places [n, 3]`; points beyond the walls count in the nearest cell."""
    axes = draw_field(axes)
    inside = np.stack([np.clip(places[:, i], edges[0], edges[-1]) for i, edges in enumerate(_EDGES)], axis=-1)
    cells = np.histogramdd(inside, _EDGES, weights=weights)[0].T
    mesh = axes.pcolormesh(*_EDGES, np.where(cells > 0, cells, np.nan), cmap="viridis", zorder=0)
    axes.figure.colorbar(mesh, ax=axes, label=unit, shrink=0.8)
    return axes


def _there(game: Game, car: int | None) -> NDArray[np.bool_]:
    """Return `[frames]`, True while a car is on the field."""
    flags = game.columns["car_flags"][:, car].astype(np.uint8)
    present, demoed = (flags >> FLAGS.index(name) & 1 > 0 for name in ("present", "is_demoed"))
    return present & ~demoed


def _check(replay: Replay, car: int | None) -> None:
    count = len(replay.about["teams"])
    if car is not None and not 0 <= car < count:
        raise ValueError(f"there is no car {car}: the replay has {count}, counted from 0, blue cars first")
