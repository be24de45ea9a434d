"""The side of the game in RLBot v5's protocol: packets made of a `GameState`, and the connection to a bot's process."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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

ANSWER_SECONDS = 60.0
"""A bot that takes longer to start, or to answer, is given up."""


class PacketWriter:
    """Makes packets of a pool's state after every tick; the players are the cars in the order of the slots."""

    def __init__(self) -> None:
        self.frame = 0
        self._touches: dict[int, flat.Touch] = {}

    def write(self, state: GameState, phase: flat.MatchPhase) -> flat.GamePacket:
        """What the game would say now.

        Args:
            state: Of one arena; `state.controls` are the last inputs.
            phase: Of the match.
        """
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
        # Not by an arcsine, which loses half of the digits of a car that points straight up.
        pitch, yaw = np.arctan2(axes[0, 2], np.hypot(*axes[0, :2])), np.arctan2(axes[0, 1], axes[0, 0])
        flying, wrecked = not state.on_ground[at], bool(state.is_demoed[at])
        jumping = state.is_jumping[at] and not wrecked  # which comes before OnGround, as with RLBot's server
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
    """The pads of the field, in the order of a state's."""
    pads = [flat.BoostPad(flat.Vector3(*place), place[2] > 71.5) for place in game.BOOST_LOCATIONS]
    return flat.FieldInfo(boost_pads=pads)


def _vector(values: Float) -> flat.Vector3:
    return flat.Vector3(*values.tolist())


class BotProcess:
    """A bot's folder, started as RLBot starts it, and the connection to it."""

    def __init__(self, folder: Path, teams: Sequence[int], index: int, environment: Mapping[str, str]) -> None:
        """Starts it, and waits until it is ready.

        Args:
            folder: With bot.toml. Its Python is this process's, whatever its run command calls it.
            teams: Of all players.
            index: Of the player that it plays.
            environment: Variables beside those of RLBot.

        Raises:
            OSError: It does not start, or does not say that it is ready.
        """
        players = [load_player_config(folder.absolute() / "bot.toml", team) for team in teams]
        bot = players[index].variety
        assert isinstance(bot, flat.CustomBot)
        configured = [flat.PlayerConfiguration(each.variety, each.team, at + 1) for at, each in enumerate(players)]
        first: tuple[Any, ...] = (
            flat.ControllableTeamInfo(teams[index], [flat.ControllableInfo(index, index + 1)]),
            flat.MatchConfiguration(player_configurations=configured),
            field(),
        )
        self._folder, self._errors = folder, TemporaryFile()  # noqa: SIM115 - until close
        with create_server(("127.0.0.1", 0)) as server:
            given = {"RLBOT_AGENT_ID": bot.agent_id, "RLBOT_SERVER_PORT": str(server.getsockname()[1])}
            inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            self._process = subprocess.Popen(
                [sys.executable, *shlex.split(bot.run_command)[1:]],
                cwd=bot.root_dir,
                env=inherited | given | dict(environment) | {"RLBOT_LOG_LEVEL": "warn"},
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
            )
            self._socket = self._accepted(server)
        try:
            self._socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            self._socket.settimeout(ANSWER_SECONDS)
            self._stream = self._socket.makefile("rb")
            while not isinstance(message := self._read(), flat.InitComplete):
                if isinstance(message, flat.ConnectionSettings):
                    for each in first:
                        self._send(each)
        except BaseException:
            self.close()
            raise

    def answer(self, packet: flat.GamePacket) -> Float:
        """`[8]` the controls that it sends for a packet; an OSError if it sends none."""
        self._send(packet)
        while not isinstance(message := self._read(), flat.PlayerInput):
            pass
        said = message.controller_state
        return np.array([getattr(said, name) for name in CONTROL_NAMES], np.float32)

    def close(self) -> None:
        """Tells it that the match is over, and waits until it has ended."""
        with suppress(OSError):
            self._send(flat.DisconnectSignal())
        try:
            self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()
        self._errors.close()

    def _accepted(self, server: socket) -> socket:
        server.settimeout(0.1)
        deadline = time.monotonic() + ANSWER_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(TimeoutError):
                return server.accept()[0]
        self._process.kill()
        self._process.wait()
        raise self._failed()

    def _send(self, message: Any) -> None:  # noqa: ANN401 - of CorePacket
        packed = flat.CorePacket(message).pack()
        self._socket.sendall(len(packed).to_bytes(2, "big") + packed)

    def _read(self) -> Any:  # noqa: ANN401 - of InterfacePacket
        try:
            size = self._stream.read(2)
            packed = self._stream.read(int.from_bytes(size, "big"))
        except OSError as error:  # too late, or it has gone
            raise self._failed() from error
        if not packed:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)  # so that it has said why
            raise self._failed()
        return flat.InterfacePacket.unpack(packed).message

    def _failed(self) -> OSError:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return OSError(f"{self._folder}: the bot did not answer{f' ({lines[-1]})' if lines else ''}")
