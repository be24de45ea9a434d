"""Convert `.replay` files of Rocket League, played by humans, to demonstrations (needs rlgym-tools).

Recorded and inferred data are kept apart. The file has positions, speeds, throttle, steer, boost, handbrake, jumps and
dodges. A car may be missing for one to three frames, which RocketSim interpolates. Pitch, yaw and roll inputs are never
recorded; they are inferred from the car's rotation.
"""

import copy
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import GOAL_THRESHOLD

from envs.adapters.rlgym_pool import LoggedGames
from envs.demonstrations.file import WEIGHT, columns_of_states, frame_from_state
from envs.pool.replay_format import Column
from envs.state.layout import TOUCHED, Float

INFERRED = "inferred"
"""Column `[C]` of bits: 1, the car's state at the decision is interpolated; 2, the pitch, yaw and roll of its action
are inferred, and matter because it was in the air."""
_REFUSALS = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, TypeError, ValueError)


def converted_columns(num_cars: int) -> list[Column]:
    """Return the columns of states, and `INFERRED`."""
    return [*columns_of_states(num_cars), Column(INFERRED, "|u1", (num_cars,))]


class HumanGame(NamedTuple):
    """A game played by humans."""

    names: list[str]
    """Names of the players, blue first."""
    teams: list[int]
    """Team of each car: 0 blue, 1 orange."""
    episodes: list[tuple[list[dict[str, NDArray[Any]]], bool]]
    """Frames from kickoff to goal or end, with the columns of `converted_columns`; and True if it ended with a goal."""


def convert(path: Path, tick_skip: int = 8, air_weight: float = 0.5) -> HumanGame:
    """Read a replay.

    A replay has 20 to 30 frames per second (4 or 6 ticks apart); the frames nearest to every `tick_skip`th
    tick are used unchanged. The action of a step comes from its first frame or, if jump is pressed before the next one,
    from the frame with the jump.

    Args:
        path: A `.replay` file of Rocket League.
        tick_skip: Physics ticks (1/120 s) from frame to frame.
        air_weight: Weight of a step with inferred pitch, yaw and roll. A step with an interpolated state has weight 0,
            all others 1.

    Raises:
        ValueError: The parser fails, or the file has too few frames for `tick_skip`; the message names the file.
        ImportError: rlgym-tools is missing.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Numba/scipy not found")  # fast enough without them
            parsed_replay = import_module("rlgym_tools.rocket_league.replays.parsed_replay")
            tools = import_module("rlgym_tools.rocket_league.replays.convert")
    except ImportError as error:
        needed = "rlgym-tools pandas 'pyarrow<26'"
        raise ImportError(f"converting replays needs rlgym-tools ({error}); pip install {needed}") from error
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    try:
        parsed = parsed_replay.ParsedReplay.load(path.absolute())
        players = {int(player["unique_id"]): str(player["name"]) for player in parsed.metadata["players"]}
        episodes = list(_episodes(tools.replay_to_rlgym(parsed)))
        cars, teams = episodes[0].cars, episodes[0].teams
        found = [(episode.frames(tick_skip, air_weight), episode.terminated) for episode in episodes]
    except _REFUSALS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: the replay parser cannot read it ({reason:.200})") from error
    _check_spacing(path, episodes, tick_skip)
    return HumanGame([players[car] for car in cars], teams, [each for each in found if len(each[0]) > 1])


class _HumanEpisode:
    """All frames of a replay from kickoff to goal."""

    def __init__(self, first: Any) -> None:  # noqa: ANN401 - rlgym-tools' frame
        order = sorted(first.state.cars.items(), key=lambda item: item[1].team_num)  # stable, like that of the slots
        self.cars, self.teams = [uid for uid, _ in order], [int(car.team_num) for _, car in order]
        self._begin, self.terminated = first.state.tick_count, False
        self._games = LoggedGames([], [first.state])
        self._frames: list[dict[str, NDArray[Any]]] = []
        self._actions: list[Float] = []
        self._inferred: list[NDArray[np.uint8]] = []

    def add(self, frame: Any) -> None:  # noqa: ANN401
        """Add a frame with the numbers that rlgym-tools computed."""
        state = copy.copy(frame.state)
        state.tick_count = round(state.tick_count - self._begin)
        self._games.copy_state(0, state)
        self._games.update(np.zeros(1, np.bool_))
        self._frames.append(frame_from_state(self._games.state))
        self._actions.append(np.stack([np.clip(frame.actions[uid], -1, 1) for uid in self.cars]).astype(np.float32))
        interpolated = np.array([frame.update_age[uid] > 0 for uid in self.cars])
        self._inferred.append((interpolated + 2 * ~self._games.state.on_ground[0]).astype(np.uint8))
        self.terminated = bool(frame.state.goal_scored)

    @property
    def ticks(self) -> NDArray[np.int64]:
        """Tick of each frame since the kickoff."""
        return np.array([frame["episode_ticks"] for frame in self._frames], np.int64)

    def frames(self, tick_skip: int, air_weight: float) -> list[dict[str, NDArray[Any]]]:
        """Return the frames to learn from: touches of a whole step count, and a goal puts the ball behind the line."""
        ticks = self.ticks
        grid = np.arange(0, ticks[-1] + tick_skip / 2, tick_skip)
        rows = np.unique(np.abs(ticks[:, None] - grid).argmin(axis=0)).tolist()
        taken = []
        for number, row in enumerate(rows):
            before = rows[max(0, number - 1)]
            told = self._told(before, row) if number else np.zeros_like(self._actions[0])
            inferred = self._inferred[before]
            weight = np.where(inferred & 1, 0, np.where(inferred & 2, air_weight, 1)).astype(np.float32)
            cars = self._frames[row]["cars"].copy()
            for passed in self._frames[before + 1 : row if row < rows[-1] else None]:
                cars[:, TOUCHED] = np.maximum(cars[:, TOUCHED], passed["cars"][:, TOUCHED])
            taken.append(self._frames[row] | {"cars": cars, "controls": told, WEIGHT: weight, INFERRED: inferred})
        ball = taken[-1]["ball"].copy()
        if self.terminated and abs(ball[1]) > GOAL_THRESHOLD - 1000:  # usually it is not yet behind the line
            ball[1] = np.copysign(max(abs(ball[1]), GOAL_THRESHOLD + 1), ball[1])
            taken[-1]["ball"] = ball
        return taken

    def _told(self, first: int, stop: int) -> Float:
        """Return the controls `[C, 8]` of the cars between two frames."""
        actions = np.stack(self._actions[first:stop])
        jumps = actions[:, :, 5] > 0.5
        when = np.where(jumps[0], 0, jumps.argmax(axis=0))
        told: Float = actions[when, np.arange(actions.shape[1])]
        return told


def _check_spacing(path: Path, episodes: list[_HumanEpisode], tick_skip: int) -> None:
    """Raise a ValueError if `tick_skip` is shorter than the spacing of frames; ignore one gap in ten, as lag."""
    gaps = np.concatenate([np.diff(episode.ticks) for episode in episodes])
    most = int(np.quantile(gaps, 0.9)) if len(gaps) else 0
    if tick_skip < most:
        raise ValueError(f"{path}: frames are {most} ticks apart; use --tick_skip {most} or more, got {tick_skip}")


def _episodes(frames: Any) -> Iterator[_HumanEpisode]:  # noqa: ANN401
    episode: _HumanEpisode | None = None
    for frame in frames:
        episode = episode or _HumanEpisode(frame)
        episode.add(frame)
        if frame.scoreboard.go_to_kickoff:
            yield episode
            episode = None
    if episode is not None:
        yield episode
