"""PacketReader: converts packets of RLBot v5 to the `GameState` that observation builders read.

This file only needs numpy, and is copied unchanged into the folder of an exported bot.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league import common_values as game

from envs.state import layout
from envs.state.game_state import GameState
from envs.state.layout import CONTROL_NAMES, Float

MISSING_FIELDS = (
    *("wheels_with_contact", "jump_time", "air_time", "flip_torque", "is_auto_flipping", "auto_flip_timer"),
    *("auto_flip_direction", "bump_cooldown", "bump_victim", "has_world_contact", "world_contact_normal"),
    "boost_pickups",
)
"""Attributes of a `GameState` that packets do not contain and that cannot be derived from them."""
ON_GROUND, JUMPING = 0, 1
"""Values of RLBot's AirState."""
KICKOFF, ACTIVE, PAUSED = 2, 3, 6
"""Values of RLBot's MatchPhase: cars drive in the first two."""
BIG_PAD_SECONDS, SMALL_PAD_SECONDS = 10.0, 4.0
_HANDBRAKE_RISE, _HANDBRAKE_FALL = 5.0, 2.0  # per second
_LEAST_BOOST_TICKS = 12  # minimum duration of a tap on the button
_SOON = 1e-6  # seconds, minimum timer of a pad that is not back yet
_WHEELS_LEAVE_TICKS = 5  # after a jump began
_STAYS_SUPERSONIC, _STAYS_SUPERSONIC_TICKS = 2100.0, 120  # uu/s, once above the minimum speed; and for how long


@dataclass
class _Car:
    """State of a car that the game does not send, derived from all packets since the episode began."""

    boost: float
    on_ground: bool
    touch_seconds: float
    handbrake: float = 0.0
    boost_ticks: int = 0
    jump_ticks: int = 0
    supersonic_ticks: int = 0
    since_jump: float = 0.0
    holds_jump: bool = False
    touched: bool = False
    demolished: bool = False


class PacketReader:
    """Reader of one episode, from a kickoff to a goal, packet by packet.

    Attributes:
        teams: Teams of the players, in the order of the packets.
        slots: `[players]` column of each player in a `GameState`: blue first, in the order of the packets.
        frame: Number of the last packet; physics ticks.
    """

    def __init__(self, packet: Any, pads: Sequence[Any]) -> None:  # noqa: ANN401 - rlbot has no types on Python 3.10
        """Begin an episode with its first `GamePacket`; `pads` are `FieldInfo.boost_pads`, in any order."""
        self.teams = teams_of(packet)
        self._players = sorted(range(len(self.teams)), key=lambda player: (self.teams[player], player))
        self.slots = np.argsort(self._players)
        at = np.array([[pad.location.x, pad.location.y] for pad in pads])
        known = np.array(game.BOOST_LOCATIONS)[:, :2]
        self._pads = np.linalg.norm(at - known[:, None], axis=-1).argmin(axis=1).tolist()
        self._cooldowns = [BIG_PAD_SECONDS if pad.is_full_boost else SMALL_PAD_SECONDS for pad in pads]
        self.frame = self._first_frame = self._noted_frame = packet.match_info.frame_num
        # For pads that are gone in the first packet, assume that the server's timer counts down; see _pads_follow.
        self._left = [0.0 if pad.is_active else float(pad.timer) for pad in packet.boost_pads]
        self._since_touch, self._last_touch = 0, -1
        self._cars = [_new_car(player) for player in packet.players]
        self._counters: NDArray[np.float32] = _counters(packet)

    def follow(self, packet: Any) -> None:  # noqa: ANN401
        """Process the next packet; ticks between packets may be missing."""
        ticks = packet.match_info.frame_num - self.frame
        self.frame += ticks
        self._pads_follow(packet.boost_pads, ticks / game.TICKS_PER_SECOND)
        for number, (car, player) in enumerate(zip(self._cars, packet.players, strict=True)):
            demolished = player.demolished_timeout >= 0
            if car.demolished and not demolished:
                car = self._cars[number] = replace(_new_car(player), touched=car.touched)
            if not car.demolished:
                _follow(car, player, ticks)
            car.demolished = demolished
            if (seconds := _touch_seconds(player)) > car.touch_seconds:
                car.touched, car.touch_seconds = True, seconds
                if seconds >= max(other.touch_seconds for other in self._cars):
                    self._last_touch = int(self.slots[number])

    def _pads_follow(self, pads: Sequence[Any], seconds: float) -> None:
        """Update the seconds until each pad is back.

        According to RLBot's schema, a timer is the time since the pad was taken; RLBot's servers so far send the time
        until it is back. The interpretation that is closer to the time counted here is used.
        """
        for number, (pad, cooldown) in enumerate(zip(pads, self._cooldowns, strict=True)):
            left = self._left[number] - seconds if self._left[number] else cooldown
            both = (max(_SOON, float(each)) for each in (pad.timer, cooldown - pad.timer))
            self._left[number] = 0.0 if pad.is_active else min(both, key=lambda each: abs(each - left))

    def state(self, packet: Any, last_controls: tuple[int, Float] | None = None) -> GameState:  # noqa: ANN401
        """Return the state after `packet`, which must have been passed to `follow`. Call it once per decision.

        Args:
            packet: The last packet.
            last_controls: Index of a player and the controls `[8]` that it chose last. The other players' controls are
                their last inputs in the packet. None at the beginning of an episode.
        """
        players = [packet.players[player] for player in self._players]
        cars = [self._cars[player] for player in self._players]
        ball, (place, vel, ang_vel) = _motion(packet.balls[:1]), _motion(players)
        touched = [car.touched for car in cars]
        state = GameState.from_numbers(
            place,
            self.teams.count(layout.BLUE),
            car_rotation=[(turn.pitch, turn.yaw, turn.roll) for turn in (each.physics.rotation for each in players)],
            car_vel=vel,
            car_ang_vel=ang_vel,
            boost=[player.boost for player in players],
            on_ground=[car.on_ground for car in cars],
            touched=touched,
            demo_respawn_timer=[max(0.0, player.demolished_timeout) for player in players],
            ball_pos=ball[0, 0],
            ball_vel=ball[1, 0],
            ball_ang_vel=ball[2, 0],
            pad_timers=[self._left[there] for there in self._pads],
            episode_ticks=self.frame - self._first_frame,
        )
        self._since_touch = 0 if any(touched) else self._since_touch + self.frame - self._noted_frame
        self._noted_frame = self.frame
        state.ticks_since_touch[0], state.last_touch_car[0] = self._since_touch, self._last_touch
        rows, counters = state.car_rows[0], (_counters(packet) - self._counters)[self._players]
        rows[:, :, layout.GOALS : layout.DEMOS + 1], rows[:, :, 1] = counters[:, None], state.team[:, None]
        for slot, (car, player) in enumerate(zip(cars, players, strict=True)):
            car.touched = False
            state.handbrake[0, slot] = car.handbrake
            state.flip_time[0, slot] = player.dodge_elapsed * player.has_dodged
            state.air_time_since_jump[0, slot] = car.since_jump
            state.boost_active_time[0, slot] = car.boost_ticks / game.TICKS_PER_SECOND
            state.supersonic_time[0, slot] = car.supersonic_ticks / game.TICKS_PER_SECOND
            state.is_holding_jump[0, slot] = car.holds_jump
            state.has_jumped[0, slot] = player.has_jumped
            state.is_jumping[0, slot] = car.jump_ticks > 0
            state.has_flipped[0, slot] = player.has_dodged
            state.has_double_jumped[0, slot] = player.has_double_jumped
            if self.frame > self._first_frame:
                state.controls[0, slot] = [getattr(player.last_input, name) for name in CONTROL_NAMES]
        if last_controls is not None:
            player, row = last_controls
            state.controls[0, self.slots[player]] = row
        state.complete()
        return state


def teams_of(packet: Any) -> list[int]:  # noqa: ANN401
    """Return the team of every player, 0 blue, 1 orange."""
    return [player.team for player in packet.players]


def format_team_sizes(team_sizes: Iterable[Sequence[int]]) -> str:
    """Format team sizes `(blue, orange)` as text, such as `1v1 and 1v2`, the smaller team first."""
    known = sorted({tuple(sorted(sizes)) for sizes in team_sizes})
    return " and ".join(f"{fewer}v{more}" for fewer, more in known)


def layout_mismatch(packet: Any, teams: Sequence[int], pads: Sequence[Any]) -> str:  # noqa: ANN401
    """Return the reason why a packet cannot be used, or an empty string.

    `teams` are the teams of all players of the match, in any order; `pads` are `FieldInfo.boost_pads`.
    """
    if sorted(teams_of(packet)) != sorted(teams):
        blue, now = teams.count(layout.BLUE), teams_of(packet).count(layout.BLUE)
        return f"{now}v{len(packet.players) - now} players instead of {blue}v{len(teams) - blue}"
    if len(packet.boost_pads) != len(pads) or not pads:
        return f"{len(packet.boost_pads)} boost pads instead of {len(pads)}"
    numbers = [pad.timer for pad in packet.boost_pads]
    for each in packet.players:
        turn = each.physics.rotation
        numbers += [each.boost, each.demolished_timeout, each.dodge_timeout, each.dodge_elapsed]
        numbers += [turn.pitch, turn.yaw, turn.roll, *(getattr(each.last_input, name) for name in CONTROL_NAMES)]
    finite = np.isfinite(_motion([*packet.balls[:1], *packet.players])).all() and np.isfinite(numbers).all()
    return "" if finite else "numbers that are not finite"


def _new_car(player: Any) -> _Car:  # noqa: ANN401
    return _Car(player.boost, int(player.air_state) == ON_GROUND, _touch_seconds(player))


def _follow(car: _Car, player: Any, ticks: int) -> None:  # noqa: ANN401
    """Advance `car` by `ticks` ticks with the player's last input, according to the rules of the game."""
    last, seconds = player.last_input, ticks / game.TICKS_PER_SECOND
    rate = _HANDBRAKE_RISE if last.handbrake else -_HANDBRAKE_FALL
    car.handbrake = min(1.0, max(0.0, car.handbrake + rate * seconds))
    goes_on = last.boost or 0 < car.boost_ticks < _LEAST_BOOST_TICKS
    car.boost_ticks = car.boost_ticks + ticks if car.boost > 0 and goes_on else 0
    car.boost = player.boost
    # The game's flag only depends on the minimum speed.
    speed = np.linalg.norm(_motion([player])[1, 0])
    stays = 0 < car.supersonic_ticks < _STAYS_SUPERSONIC_TICKS and speed >= _STAYS_SUPERSONIC
    car.supersonic_ticks = car.supersonic_ticks + ticks if player.is_supersonic or stays else 0
    # Jumping takes precedence over OnGround, although the wheels still touch for a moment, and so does demolition.
    jumps = int(player.air_state) == JUMPING
    car.jump_ticks, car.holds_jump = (car.jump_ticks + ticks) * jumps, last.jump
    if player.demolished_timeout < 0:
        begins = jumps and car.on_ground and car.jump_ticks <= _WHEELS_LEAVE_TICKS
        car.on_ground = int(player.air_state) == ON_GROUND or begins
    if not player.has_jumped or jumps or car.on_ground:
        car.since_jump = 0.0
    elif player.dodge_timeout >= 0:
        car.since_jump = max(0.0, game.DOUBLEJUMP_MAX_DELAY - player.dodge_timeout)
    else:
        car.since_jump += seconds


def _motion(bodies: Sequence[Any]) -> NDArray[np.float64]:
    """Return positions, velocities and angular velocities `[3, n, 3]`."""
    each = [(body.physics.location, body.physics.velocity, body.physics.angular_velocity) for body in bodies]
    return np.array([[(v.x, v.y, v.z) for v in vectors] for vectors in each]).swapaxes(0, 1)


def _counters(packet: Any) -> NDArray[np.float32]:  # noqa: ANN401
    """Return the counters `[players, 4]` since the match began, in the order of a state's columns."""
    scores = [player.score_info for player in packet.players]
    return np.array([(s.goals, s.saves, s.shots, s.demolitions) for s in scores], np.float32)


def _touch_seconds(player: Any) -> float:  # noqa: ANN401
    return -1.0 if player.latest_touch is None else float(player.latest_touch.game_seconds)
