"""The game's side of RLBot v5's protocol: packets made from a `GameState`, and the connection to a bot's process."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY, create_server, socket
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from rlbot import flat
from rlbot.config import load_player_config
from rlgym.rocket_league import common_values as game

from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES, Float
from fabric_rl.base.files import read_error_context

ANSWER_SECONDS = 60.0
"""Time limit of a bot for starting and for each answer."""
LEAVE_SECONDS = 5.0
"""Time that a bot gets to exit after an error, before it is killed."""


class PacketWriter:
    """Converter of a pool's state to a packet after every tick; players are the cars in the order of the slots."""

    def __init__(self) -> None:
        self.frame = 0
        self._touches: dict[int, flat.Touch] = {}

    def write(self, state: GameState, phase: flat.MatchPhase) -> flat.GamePacket:
        """Return the packet that the game would send now. `state` has one arena; its `controls` are the last inputs."""
        seconds, world = self.frame / game.TICKS_PER_SECOND, state.world
        for car in np.flatnonzero(state.touched[0]).tolist():
            self._touches[car] = flat.Touch(game_seconds=seconds)
        pads = [flat.BoostPadState(left <= 0, max(0.0, left)) for left in state.pad_timers[0].tolist()]
        place, vel, ang_vel = (_vector(each[0]) for each in (world.ball_pos, world.ball_vel, world.ball_ang_vel))
        ball = flat.BallInfo(flat.Physics(place, flat.Rotator(), vel, ang_vel), flat.SphereShape(2 * game.BALL_RADIUS))
        info = flat.MatchInfo(seconds_elapsed=seconds, match_phase=phase, game_speed=1.0, frame_num=self.frame)
        players = [self._player(state, car) for car in range(state.num_cars)]
        return flat.GamePacket(players, pads, [ball], info)

    def _player(self, state: GameState, car: int) -> flat.PlayerInfo:
        world, at, row = state.world, (0, car), state.controls[0, car]
        place, vel, ang_vel = (_vector(each[at]) for each in (world.car_pos, world.car_vel, world.car_ang_vel))
        axes = np.array([world.car_forward[at], world.car_right[at], world.car_up[at]], np.float64)
        # No arcsine: it loses half of the digits for a car that points straight up.
        pitch, yaw = np.arctan2(axes[0, 2], np.hypot(*axes[0, :2])), np.arctan2(axes[0, 1], axes[0, 0])
        flying, wrecked = not state.on_ground[at], bool(state.is_demoed[at])
        jumping = state.is_jumping[at] and not wrecked  # takes precedence over OnGround, as in RLBot's server
        states = (not jumping and (wrecked or not flying), jumping, False, state.is_flipping[at], flying)
        may_dodge = flying and state.has_jumped[at] and state.has_flip[at]
        counters = {name: int(getattr(state, name)[at]) for name in ("goals", "saves", "shots")}
        return flat.PlayerInfo(
            physics=flat.Physics(place, flat.Rotator(pitch, yaw, np.arctan2(-axes[1, 2], axes[2, 2])), vel, ang_vel),
            score_info=flat.ScoreInfo(**counters, demolitions=int(state.demos[at])),
            latest_touch=self._touches.get(car),
            air_state=flat.AirState(states.index(True)),
            dodge_timeout=game.DOUBLEJUMP_MAX_DELAY - float(state.air_time_since_jump[at]) if may_dodge else -1.0,
            demolished_timeout=float(state.demo_respawn_timer[at]) if wrecked else -1.0,
            is_supersonic=bool(np.linalg.norm(world.car_vel[at]) >= game.SUPERSONIC_THRESHOLD),
            is_bot=True,
            team=int(state.team[car]),
            boost=float(state.boost[at]),
            player_id=car + 1,
            last_input=flat.ControllerState(*row[:5].tolist(), *(row[5:] > 0.5).tolist()),
            has_jumped=bool(state.has_jumped[at]),
            has_double_jumped=bool(state.has_double_jumped[at]),
            has_dodged=bool(state.has_flipped[at]),
            dodge_elapsed=float(state.flip_time[at]),
        )


def field() -> flat.FieldInfo:
    """Return the pads of the field, in the order of a `GameState`."""
    pads = [flat.BoostPad(flat.Vector3(*place), place[2] > 71.5) for place in game.BOOST_LOCATIONS]
    return flat.FieldInfo(boost_pads=pads)


def _vector(values: Float) -> flat.Vector3:
    return flat.Vector3(*values.tolist())


class BotProcess:
    """Process of an exported bot, started as RLBot would start it, and the connection to it."""

    def __init__(self, folder: Path, teams: Sequence[int], index: int, environment: Mapping[str, str]) -> None:
        """Start the bot, and wait until it is ready.

        Args:
            folder: Folder with bot.toml. The bot runs with this process's Python, whatever its run command says.
            teams: Teams of all players.
            index: Index of the played car.
            environment: Additional environment variables, besides the variables that RLBot sets.

        Raises:
            OSError: The bot does not start, or does not report that it is ready.
        """
        with read_error_context(f"{folder / 'bot.toml'} cannot be used"):
            players = [load_player_config(folder.absolute() / "bot.toml", team) for team in teams]
            bot = players[index].variety
            assert isinstance(bot, flat.CustomBot)
            words = shlex.split(bot.run_command)[1:]
        configured = [flat.PlayerConfiguration(each.variety, each.team, at + 1) for at, each in enumerate(players)]
        first: tuple[Any, ...] = (
            flat.ControllableTeamInfo(teams[index], [flat.ControllableInfo(index, index + 1)]),
            flat.MatchConfiguration(player_configurations=configured),
            field(),
        )
        self._folder, self._errors = folder, TemporaryFile()  # noqa: SIM115 - open until close()
        self._socket: socket | None = None
        with create_server(("127.0.0.1", 0)) as server:
            given = {"RLBOT_AGENT_ID": bot.agent_id, "RLBOT_SERVER_PORT": str(server.getsockname()[1])}
            inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            self._process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                cwd=bot.root_dir,
                env=inherited | given | dict(environment) | {"RLBOT_LOG_LEVEL": "warn"},
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
            )
            try:
                with self._within_time():
                    self._socket = self._accepted(server)
                    self._socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
                    while not isinstance(message := self._read(), flat.InitComplete):
                        if isinstance(message, flat.ConnectionSettings):
                            for each in first:
                                self._send(each)
            except BaseException:
                self.close(LEAVE_SECONDS)
                raise

    def __enter__(self) -> "BotProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(ANSWER_SECONDS if kind is None else LEAVE_SECONDS)

    def answer(self, packet: flat.GamePacket) -> Float:
        """Return the bot's controls `[8]` for a packet; raise an OSError if it sends none, or they are not finite."""
        with self._within_time():
            self._send(packet)
            while not isinstance(message := self._read(), flat.PlayerInput):
                pass
        said = message.controller_state
        row = np.array([getattr(said, name) for name in CONTROL_NAMES], np.float32)
        if not np.isfinite(row).all():
            raise self._failed("sent controls that are not finite")
        return row

    def close(self, seconds: float) -> None:
        """End the match, and kill the bot unless it exits within `seconds`."""
        self._deadline = time.monotonic() + LEAVE_SECONDS
        try:
            with suppress(OSError):
                self._send(flat.DisconnectSignal())
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds if self._socket else 0)
        finally:
            self._process.kill()  # does nothing if it has exited
            self._process.wait()
            if self._socket is not None:
                self._socket.close()
            self._errors.close()

    @contextmanager
    def _within_time(self) -> Iterator[None]:
        """Limit all sending and reading in the block to `ANSWER_SECONDS` in total; errors name the folder."""
        self._deadline = time.monotonic() + ANSWER_SECONDS
        try:
            yield
        except TimeoutError as error:
            raise self._failed(f"did not answer within {ANSWER_SECONDS:g} s") from error
        except OSError as error:  # the bot has exited
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_SECONDS)  # until its error output is complete
            raise self._failed("did not answer") from error
        except flat.InvalidFlatbuffer as error:
            raise self._failed("sent an invalid message") from error
        except OverflowError as error:
            raise self._failed("has texts in bot.toml that are too long for RLBot's protocol") from error

    def _accepted(self, server: socket) -> socket:
        server.settimeout(0.1)
        while self._left() and self._process.poll() is None:
            with suppress(TimeoutError):
                return server.accept()[0]
        raise ConnectionError

    def _left(self) -> float:
        """Return the remaining seconds; raise a TimeoutError if there are none."""
        if (left := self._deadline - time.monotonic()) <= 0:
            raise TimeoutError
        return left

    def _send(self, message: Any) -> None:  # noqa: ANN401 - of CorePacket
        packed = flat.CorePacket(message).pack()
        if self._socket is not None:
            self._socket.settimeout(self._left())
            self._socket.sendall(len(packed).to_bytes(2, "big") + packed)

    def _read(self) -> Any:  # noqa: ANN401 - of InterfacePacket
        return flat.InterfacePacket.unpack(self._bytes(int.from_bytes(self._bytes(2), "big"))).message

    def _bytes(self, count: int) -> bytes:
        assert self._socket is not None
        found = b""
        while len(found) < count:
            self._socket.settimeout(self._left())
            more = self._socket.recv(count - len(found))
            if not more:
                raise ConnectionError
            found += more
        return found

    def _failed(self, what: str) -> OSError:
        """Return an error with the last line of the bot's output."""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2**16))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return OSError(f"{self._folder}: the bot {what}{f' ({lines[-1][:500]})' if lines else ''}")
