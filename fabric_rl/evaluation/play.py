"""PlaySession: games of a person against bots in real time, one after the other, as the page asks for them."""

import html
import math
import os
import re
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from rlgym.rocket_league.common_values import BALL_RADIUS, BOOST_LOCATIONS, TICKS_PER_SECOND

from envs.bots import Bot, IdleBot, TeamBots
from envs.demonstrations.file import SUFFIX as DEMONSTRATION
from envs.demonstrations.file import DemonstrationWriter, columns_of_states
from envs.demonstrations.record import EPISODE_SECONDS, StateRecorder, states_header
from envs.dones import DoneCondition, GoalCondition, TimeoutCondition
from envs.loggers import StateLogger
from envs.matches.exam import run_exam
from envs.matches.real_time import FullBoostKickoff, NextShots, RealTimeGame, SlowBot, TickClock
from envs.matches.statistics import MatchKickoffs
from envs.pool.recorder import ReplayRecorder
from envs.pool.replay_format import SUFFIX as REPLAY
from envs.replays.replay import read_replay
from envs.resets import StateSetter
from envs.resets.training_packs import TIME_LIMIT_SECONDS, Pack
from envs.state.layout import BLUE, ORANGE, Float
from fabric_rl.evaluation.players import MatchSettings, PlayerSpec, load_player, short_name
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.ranks.devices import single_thread
from fabric_rl.runs.records import load_run
from fabric_rl.viewer.feeds import PlayerInput, PlayFeed
from fabric_rl.viewer.server import ViewerServer

MATCH, FREE, PACKS = "match", "free play", "training pack"
STRIKER, GOALIE = "Striker", "Goalie"
HANDICAPS = (1, 2, 3, 4, 8)
COUNTDOWN_SECONDS, GOAL_SECONDS, SHORT_GOAL_SECONDS = 3.0, 3.0, 1.2
AWAY_SECONDS = 2.0
"""Silence of the page after which the game pauses."""
_LOOK_SECONDS = 0.01
_TICKS_PER_FRAME = 2
_LARGEST = 127  # of a control


class Choice(NamedTuple):
    """Settings of a game."""

    opponent: str
    cars: int
    mode: str = MATCH
    every: int = 1
    """The opponent decides only in every `every`-th step."""
    kind: str = STRIKER
    """Kind of the training packs."""


class _Stop(Exception):
    """Ends the session."""


class _NewGame(Exception):
    """Ends the game, because the page asks for another one."""


class PlaySession:
    """Games of one person, in the order that the page asks for; the first one is a match.

    Attributes:
        clock: Clock of all games.
    """

    def __init__(
        self, feed: PlayFeed, bot: str, play: PlaySettings, minutes: float = 5.0, record: Path | None = None
    ) -> None:
        """Find the bot.

        Args:
            feed: Connection to the page.
            bot: Player as in `load_player`.
            play: Settings of the bots; `team_size` is that of the first game.
            minutes: Game time of a match, in minutes.
            record: Folder for a replay and a demonstration of each game.

        Raises:
            ValueError: There is no such player, or `minutes` is not above 0.
        """
        if not minutes > 0:
            raise ValueError(f"play: minutes must be above 0, got {minutes}")
        self._feed, self._bot, self._play, self._minutes, self._record = feed, bot, play, minutes, record
        self.clock, self._ended = TickClock(), threading.Event()
        spec = self._spec(bot)
        self._rules = MatchSettings.of([spec], play)
        self._opponents = {short_name(bot): bot} | _milestones(bot, play.runs_dir)
        self._opponents |= {name: name for name in ("chaser", "shooter")}
        sizes = {1, 2, 3} if spec.trained_in is None else {max(size) for size in spec.trained_in.playable_sizes()}
        self._choice = Choice(short_name(bot), self._rules.team_size)
        self._options: dict[str, list[Any]] = {
            "mode": [MATCH, FREE, PACKS],
            "opponent": list(self._opponents),
            "cars": sorted(sizes | {self._rules.team_size}),
            "every": list(HANDICAPS),
            "kind": [STRIKER, GOALIE],
        }
        self._paused, self._games, self._lost = False, 0, 0.0
        self._shots_ahead: int | None = None
        self._controls = PlayerInput()
        self._attempted: tuple[int, list[list[float]]] = (-1, [])
        feed.tell(options=self._options, pads=BOOST_LOCATIONS, ball_radius=BALL_RADIUS, speed=1.0, saved="")

    def stop(self) -> None:
        """End the session, and with it the game."""
        self._ended.set()

    def check(self) -> None:
        """Raise a ValueError if the bot cannot play the first game."""
        self._bots(self._choice)

    def run(self) -> None:
        """Play games until `stop`; raise a ValueError if the bot cannot play the first one."""
        with single_thread():
            while not self._ended.is_set():
                try:
                    self._game(self._choice)
                    while True:
                        self._look()
                except _NewGame:
                    continue
                except _Stop:
                    return
                except (ValueError, ImportError) as error:
                    self._feed.tell(phase="error", text=str(error))
                    if self._games == 1:
                        raise
                    self._choice = Choice(short_name(self._bot), self._rules.team_size)
                    time.sleep(GOAL_SECONDS)

    def _spec(self, name: str) -> PlayerSpec:
        play = self._play
        return load_player(name, play.sample, play.runs_dir, play.trust_torchscript, explain=True)

    def _bots(self, choice: Choice) -> TeamBots:
        if choice.mode != MATCH:
            return TeamBots(IdleBot(), IdleBot())
        seed, skip = self._play.seed, self._rules.tick_skip
        opponent: Bot = self._spec(self._opponents[choice.opponent]).build(choice.cars, skip)(seed)
        mate = IdleBot() if choice.cars == 1 else self._spec(self._bot).build(choice.cars, skip)(seed + 1)
        return TeamBots(mate, opponent if choice.every == 1 else SlowBot(opponent, choice.every))

    def _task(self, choice: Choice, seed: int) -> tuple[StateSetter, list[DoneCondition]]:
        """Return initial states and termination conditions."""
        if choice.mode == MATCH:
            return MatchKickoffs([np.random.SeedSequence(seed)], 2 * choice.cars), [GoalCondition()]
        if choice.mode == FREE:
            return FullBoostKickoff(), [GoalCondition()]
        return NextShots([choice.kind], order_seed=seed), [GoalCondition(), TimeoutCondition(TIME_LIMIT_SECONDS)]

    def _game(self, choice: Choice) -> None:
        """Play one game, and save it, even if it ends early."""
        self._games += 1
        length = TIME_LIMIT_SECONDS if choice.mode == PACKS else 60 * self._minutes
        self._feed.tell(phase="loading", choice=choice._asdict(), score=[0, 0], length=length)
        self._feed.tell(began=0, shot=1, speed=1.0, saved="", ghost=[], skip=self._rules.tick_skip)
        self._attempted = (-1, [])
        bots, seed, rules = self._bots(choice), self._play.seed + self._games, self._rules
        sizes = (choice.cars, choice.cars) if choice.mode == MATCH else (1, 0)
        names = ("you", choice.opponent if choice.mode == MATCH else choice.mode)
        teams = [0] * sizes[0] + [1] * sizes[1]
        setter, dones = self._task(choice, seed)
        ended: BaseException | None = None
        with self._files(names, teams, choice.mode) as (sink, loggers):
            about = {"names": names, "seed": seed, "tick_skip": rules.tick_skip}
            recorder = ReplayRecorder(sink, bots, about)
            game = RealTimeGame(
                bots,
                self._drive,
                lambda: None if game.ticks % _TICKS_PER_FRAME else self._show(game),
                setter,
                dones,
                sizes,
                rules.tick_skip,
                rules.action_delay_ticks,
                seed,
                [recorder, *loggers],
            )
            self._feed.tell(names=names, teams=teams)
            try:
                game.step()
                bots.reset(np.ones(1, np.bool_), game.pool.state)
                bots.act(game.pool.state)  # a network's first decision takes long
                self._rounds(game, recorder, choice, setter)
            except (_NewGame, _Stop, KeyboardInterrupt) as error:
                ended = error
            finally:
                recorder.end_game()
                game.pool.close()
        if ended is not None:
            raise ended

    @contextmanager
    def _files(
        self, names: tuple[str, str], teams: list[int], mode: str
    ) -> Iterator[tuple[BinaryIO, list[StateLogger]]]:
        """Open the files of a game, with its team size in their names: the sink of its replay, and loggers."""
        if self._record is None:
            with open(os.devnull, "wb") as nowhere:
                yield nowhere, []
            return
        self._record.mkdir(parents=True, exist_ok=True)
        size = f"{teams.count(0)}v{teams.count(1)}"
        stem = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{size}_{re.sub(r'[^A-Za-z0-9]+', '_', names[1])}"
        replay, demonstration = self._record / f"{stem}{REPLAY}", self._record / f"{stem}{DEMONSTRATION}"
        skip = self._rules.tick_skip
        header = states_header(names, teams, [0], skip)
        columns = columns_of_states(len(teams))
        with DemonstrationWriter(demonstration, columns, header) as writer, replay.open("wb") as sink:
            states = StateRecorder(writer, round(EPISODE_SECONDS * TICKS_PER_SECOND / skip))
            yield sink, [states]
            states.end()
        if mode == FREE or not writer.episodes:  # free play shows no task to learn
            demonstration.unlink()
        if writer.episodes:
            self._feed.tell(saved=str(replay))
        else:
            replay.unlink()

    def _rounds(self, game: RealTimeGame, recorder: ReplayRecorder, choice: Choice, setter: StateSetter) -> None:
        """Play from kickoff to goal, until the match is over."""
        length, freeze = self._minutes * 60 * TICKS_PER_SECOND, SHORT_GOAL_SECONDS
        while True:
            self._shots_ahead = None
            if choice.mode != MATCH:
                self._feed.tell(began=game.ticks / TICKS_PER_SECOND)
            self._show(game)
            if choice.mode == MATCH:
                freeze = GOAL_SECONDS
                self._hold("countdown", COUNTDOWN_SECONDS)
            elif choice.mode == PACKS:
                self._feed.tell(phase="ready", ghost=self._attempt(choice, setter))
                while self._shots_ahead is None and (self._is_away() or not any(self._feed.controls().values)):
                    self._look()
            self._feed.tell(phase="play")
            before, begun = list(recorder.score), False
            while not begun and self._shots_ahead is None:
                begun = game.step()
                if choice.mode == MATCH and game.ticks >= length and recorder.score[0] != recorder.score[1]:
                    break
            scorer = next((team for team in (0, 1) if recorder.score[team] > before[team]), None)
            if begun and (scorer is not None or choice.mode == PACKS):
                self._feed.tell(score=recorder.score[:], scorer=scorer)
                self._hold("goal", freeze)
            if choice.mode == MATCH and game.ticks >= length and recorder.score[0] != recorder.score[1]:
                self._feed.tell(phase="over", speed=1.0)
                return
            if isinstance(setter, NextShots):
                passed = begun and (scorer == BLUE if choice.kind == STRIKER else scorer != ORANGE)
                setter.number += int(passed) if self._shots_ahead is None else self._shots_ahead
                self._feed.tell(shot=setter.number + 1)
            if choice.mode != MATCH:
                game.restart()

    def _attempt(self, choice: Choice, setter: StateSetter) -> list[list[float]]:
        """Let the bot play the shot, too; return position (uu) and quaternion of its car, `[steps, 7]`."""
        assert isinstance(setter, NextShots)
        if setter.number != self._attempted[0]:
            rules = self._rules
            player = self._spec(self._bot).build(rules.team_size, rules.tick_skip)
            pack = Pack({"type": choice.kind}, setter.shot[None], np.array([TIME_LIMIT_SECONDS]))
            about = {"names": ("bot", ""), "seed": 0, "tick_skip": rules.tick_skip}
            with tempfile.TemporaryDirectory() as folder, Path(folder, f"shot{REPLAY}").open("wb") as sink:
                run_exam(
                    player,
                    [pack],
                    (rules.team_size, rules.team_size),
                    self._play.seed,
                    rules.tick_skip,
                    rules.action_delay_ticks,
                    1,
                    1,
                    record=lambda bot: ReplayRecorder(sink, TeamBots(bot, IdleBot()), about),
                )
                sink.flush()
                columns = read_replay(sink.name).games[0].columns
            end = np.append(np.flatnonzero(columns["begins"]), len(columns["begins"]))[1]
            rows = np.concatenate((columns["car_pos"][:end, 0], columns["car_rotation"][:end, 0]), axis=1)
            self._attempted = setter.number, rows.round(3).tolist()
        return self._attempted[1]

    # ---------------------------------------------------------------- time

    def _drive(self) -> Float:
        """Wait for the next tick, and return the person's controls `[8]`."""
        self._obey()
        if self._is_away():
            self._hold("paused", 0.0)
            if self._feed.status["choice"]["mode"] == MATCH:
                self._hold("countdown", COUNTDOWN_SECONDS)
            self._feed.tell(phase="play")
        self.clock.wait()
        if self.clock.ticks % TICKS_PER_SECOND == 0:
            lost, self._lost = self.clock.lost_seconds - self._lost, self.clock.lost_seconds
            self._feed.tell(speed=round(1 / (1 + lost), 2))
        self._controls = self._feed.controls()
        row = np.array(self._controls.values, np.float32) / _LARGEST
        return np.clip(row, -1, 1, out=row)

    def _show(self, game: RealTimeGame) -> None:
        self._feed.show(struct.pack("<f", self._controls.number) + game.frame().tobytes())

    def _is_away(self) -> bool:
        return self._paused or self._feed.silence > AWAY_SECONDS

    def _hold(self, phase: str, seconds: float) -> None:
        """Let no tick pass for `seconds`, and while the page is away."""
        before = time.monotonic()
        while seconds > 0 or self._is_away():
            away = self._is_away()
            self._feed.tell(phase="paused" if away else phase, left=math.ceil(seconds))
            self._look()
            now = time.monotonic()
            seconds, before = seconds - (0.0 if away else now - before), now

    def _look(self) -> None:
        """Obey the page for a moment in which no tick passes."""
        self._obey()
        time.sleep(_LOOK_SECONDS)
        self.clock.restart()

    def _obey(self) -> None:
        """Do what the page asks for."""
        if self._ended.is_set():
            raise _Stop
        while self._feed.commands:
            command = self._feed.commands.popleft()
            do = command.get("do")
            if do == "pause":
                self._paused = command.get("on") is True
            elif do in ("retry", "next") and self._feed.status["choice"]["mode"] != MATCH:
                self._shots_ahead = int(do == "next")
            elif do == "new" and all(_is_one_of(command.get(name), known) for name, known in self._options.items()):
                self._choice = Choice(**{name: command[name] for name in Choice._fields})
                self._paused = False
                raise _NewGame
            elif do == "again":
                self._paused = False
                raise _NewGame


def _is_one_of(value: object, known: Sequence[object]) -> bool:
    return value in known and type(value) is type(known[0])


def _milestones(bot: str, runs_dir: str) -> dict[str, str]:
    """Return the milestones of a run, newest first: name -> folder."""
    folder = next((path for path in (Path(runs_dir, bot), Path(bot)) if (path / "milestones").is_dir()), None)
    found = () if folder is None else load_run(folder).milestones
    return {f"{each.phase} {each.steps:,}": str(each.folder) for each in reversed(found)}


class Playing:
    """Game in a notebook: displays the page if it is the last line of a cell; played until `stop`.

    Attributes:
        url: Address of the page, to play in a tab of its own.
    """

    def __init__(self, session: PlaySession, feed: PlayFeed, height: int) -> None:
        """Start the server and the game in threads."""
        self._session, self._height = session, height
        server = ViewerServer(feed, frame_ancestors="http://localhost:* http://127.0.0.1:* vscode-webview:")
        self.url, self._threads = server.url, ExitStack()
        self._threads.enter_context(server.running())
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(ValueError, ImportError):  # the page shows it
            self._session.run()

    def stop(self) -> None:
        """End the game and the server."""
        self._session.stop()
        self._threads.close()

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self._height}px; border: 0; border-radius: 8px"
        return f'<iframe title="play" allow="gamepad" style="{style}" src="{html.escape(self.url)}"></iframe>'


def play(
    bot: str = "school_1v1",
    minutes: float = 5.0,
    team_size: int | None = None,
    record: str | os.PathLike[str] | None = None,
    seed: int = 0,
    height: int = 560,
    runs_dir: str | Path = "runs",
) -> Playing:
    """Play against a bot in Jupyter or VS Code, on the computer that runs the notebook.

    Args:
        bot: Opponent, as in `fabric-rl play`.
        minutes: Game time of a match, in minutes.
        team_size: Cars per team; default: as in the bot's training, 1 for scripted bots.
        record: Folder for a replay and a demonstration of each game.
        seed: The same seed gives the same kickoffs.
        height: Height of the page in pixels.
        runs_dir: Folder that contains all runs.

    Returns:
        An object that a notebook displays if it is the last line of a cell; `stop` ends the game.

    Raises:
        ValueError: There is no such player.
    """
    feed = PlayFeed()
    settings = PlaySettings(seed=seed, runs_dir=str(runs_dir), team_size=team_size)
    session = PlaySession(feed, bot, settings, minutes, None if record is None else Path(record))
    return Playing(session, feed, height)
