"""ReplayRecorder: record one arena of a pool as a replay."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_RADIUS, BOOST_LOCATIONS, TICKS_PER_SECOND

from envs.dones import PastGoal
from envs.loggers import StateLogger
from envs.pool.players import TeamBots
from envs.pool.replay_format import CHUNK_FRAMES, FLAGS, MOST_ACTIONS, Event, ReplayWriter, Sink, game_columns
from envs.rewards.base import Reward
from envs.rewards.parts import RewardTerm, term_label
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float


class ReplayRecorder(StateLogger):
    """Logger that records the games of one arena; a game with a kickoff after each goal has many episodes.

    Attributes:
        score: Goals of blue and orange in this game.
        seconds: Game time so far.
    """

    def __init__(
        self,
        sink: Sink,
        bots: TeamBots,
        about: Mapping[str, Any],
        rewards: Sequence[RewardTerm] = (),
        arena: int = 0,
        chunk_frames: int = CHUNK_FRAMES,
        holds: Sequence[PastGoal] = (),
    ) -> None:
        """Set up the recorder; nothing is written before the first game begins.

        Args:
            sink: Receives the bytes.
            bots: The players; their values and action probabilities are recorded.
            about: Header without columns, as JSON: `names` of both players, `ball_radius` (uu) if unusual, settings.
            rewards: Terms of a reward, which are computed again for the replay.
            arena: Index of the arena.
            chunk_frames: See `ReplayWriter`.
            holds: Conditions of the pool; while they keep an episode going past its goal, nothing is paid or scored.
        """
        self.score, self.bots = [0, 0], bots
        self._sink, self._arena, self._chunk_frames = sink, arena, chunk_frames
        self._about = {"ball_radius": BALL_RADIUS, **about}
        self._part_names = [term_label(part.name) for part in rewards]
        self._rewards: list[Reward] = [part.copy_weighted() for part in rewards]
        self._holds, self._is_over = holds, False
        self._writer: ReplayWriter | None = None
        self._pending: tuple[dict[str, NDArray[Any]], list[Event]] | None = None
        self._playing = False
        self._begin_game()

    def _begin_game(self) -> None:
        self.score, self._frame, self._ticks, self._episode_ticks = [0, 0], 0, 0, 0

    @property
    def seconds(self) -> float:
        """Game time so far."""
        return float(self._ticks / TICKS_PER_SECOND)

    def update(self, state: GameState, done: Bool) -> None:
        one = self._one(state)
        self._emit(decided=True)
        self._ticks += int(one.episode_ticks[0]) - self._episode_ticks
        self._episode_ticks = int(one.episode_ticks[0])
        paid = [reward(one)[0] * (not self._is_over) for reward in self._rewards]
        self._keep(one, self._events(one), paid)
        self._is_over = any(hold.held[self._arena] for hold in self._holds)

    def reset(self, mask: Bool, state: GameState) -> None:
        if not mask[self._arena]:
            return
        one = self._one(state)
        writer = self._start(one)
        self._emit(decided=False)
        if not self._playing:
            writer.begin({"cars": one.present[0].tolist()})
            self._playing = True
        for reward in self._rewards:
            reward.reset(np.ones(1, np.bool_), one)
        self._episode_ticks = 0
        self._touched, self._demos, self._scored = np.zeros(one.num_cars, np.bool_), one.demos[0].copy(), False
        self._last_touch: list[int | None] = [None, None]
        self._is_over = False
        self._keep(one, [], [np.zeros(one.num_cars, np.float32)] * len(self._rewards), begins=1)

    def end_game(self) -> None:
        """Write the rest of the game; the next reset of the pool begins another one."""
        if self._writer is not None and self._playing:
            self._emit(decided=False)
            self._writer.end({"score": self.score, "seconds": self.seconds, "frames": self._frame})
        self._playing = False
        self._begin_game()

    def _one(self, state: GameState) -> GameState:
        return state if state.num_arenas == 1 else state.select(np.array([self._arena]))

    def _start(self, state: GameState) -> ReplayWriter:
        """Return the writer; the first call writes the header."""
        if self._writer is None:
            bots = (self.bots.blue, self.bots.orange)
            tables = [None if bot.action_rows is None else bot.action_rows.tolist() for bot in bots]
            explained, tabled = any(bot.explains for bot in bots), any(table is not None for table in tables)
            made = game_columns(state.num_cars, len(self._rewards), explained, explained and tabled)
            about = self._about | {
                "teams": state.team.tolist(),
                "ticks_per_second": TICKS_PER_SECOND,
                "flags": FLAGS,
                "rewards": self._part_names,
                "actions": tables,
                "pads": BOOST_LOCATIONS,
            }
            self._writer = ReplayWriter(self._sink, made, about, self._chunk_frames)
            self._names, self._teams = {column.name for column in made}, state.team.copy()
        return self._writer

    def _keep(self, state: GameState, events: list[Event], paid: Sequence[Float], begins: int = 0) -> None:
        world = state.world
        flags = [np.asarray(getattr(state, name)[0], np.uint8) << bit for bit, name in enumerate(FLAGS)]
        frame: dict[str, NDArray[Any]] = {
            "ticks": np.array(self._ticks),
            "begins": np.array(begins),
            "ball_pos": world.ball_pos[0].copy(),
            "ball_vel": world.ball_vel[0].copy(),
            "ball_ang_vel": world.ball_ang_vel[0].copy(),
            "car_pos": world.car_pos[0].copy(),
            "car_rotation": world.car_quaternion[0].copy(),
            "car_vel": world.car_vel[0].copy(),
            "car_boost": state.boost[0].copy(),
            "car_flags": np.bitwise_or.reduce(flags) * state.present[0],
            "car_controls": state.controls[0].copy(),
            "pad_timers": world.pad_timers[0].copy(),
        }
        if paid:
            frame["rewards"] = np.stack(paid, axis=-1)
        self._pending = frame, events

    def _emit(self, decided: bool) -> None:
        """Write the previous frame, with the bots' values and probabilities if they acted in it."""
        if self._pending is None or self._writer is None:
            return
        frame, events = self._pending
        if "value" in self._names:
            frame |= self._thoughts(len(frame["car_boost"]), decided)
        self._writer.add(frame, events)
        self._pending = None
        self._frame += 1

    def _thoughts(self, num_cars: int, decided: bool) -> dict[str, NDArray[Any]]:
        value = np.full(num_cars, np.nan, np.float32)
        actions = np.zeros((num_cars, MOST_ACTIONS), np.int64)
        probabilities = np.zeros((num_cars, MOST_ACTIONS), np.float32)
        for bot, team in ((self.bots.blue, 0), (self.bots.orange, 1)):
            thought = bot.thoughts() if decided else None
            if thought is None:
                continue
            own = self._teams == team
            value[own] = thought.value[self._arena, own]
            if thought.probabilities is not None:
                all_of_them = thought.probabilities[self._arena, own]
                likeliest = np.argsort(-all_of_them, axis=1, kind="stable")[:, :MOST_ACTIONS]
                count = likeliest.shape[1]
                actions[own, :count] = likeliest
                probabilities[own, :count] = np.take_along_axis(all_of_them, likeliest, axis=1)
        found: dict[str, NDArray[Any]] = {"value": value}
        return found | ({"actions": actions, "action_probabilities": probabilities} if "actions" in self._names else {})

    def _events(self, state: GameState) -> list[Event]:
        """Return the events of the step that led to `state`."""
        found: list[Event] = []
        touched, demos, team = state.touched[0], state.demos[0], state.team.tolist()
        for car in np.flatnonzero(touched & ~self._touched).tolist():
            found.append({"kind": "touch", "team": team[car], "car": car})
        for car in np.flatnonzero(touched).tolist():
            self._last_touch[team[car]] = car
        for car in np.flatnonzero(demos > self._demos).tolist():
            found.append({"kind": "demo", "team": team[car], "car": car})
        scoring = int(state.scoring_team[0])
        if scoring >= 0 and not self._scored and not self._is_over:
            self.score[scoring] += 1
            found.append({"kind": "goal", "team": scoring, "car": self._last_touch[scoring], "score": self.score[:]})
        self._touched, self._demos, self._scored = touched.copy(), demos.copy(), scoring >= 0
        return [event | {"frame": self._frame, "seconds": round(self.seconds, 3)} for event in found]
