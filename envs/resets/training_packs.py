"""Shots of Rocket League training packs, from rlgym-tools' data or a file in the same format."""

import gzip
import hashlib
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rlgym.rocket_league.common_values import BALL_MAX_SPEED

from envs.resets.base import BALL_RELEASE_VEL, CAR_REST_HEIGHT, Double, PerArenaSetter
from envs.resets.initial_states import inside_field
from envs.state.game_state import GameState
from envs.state.layout import BLUE, MIRROR, ORANGE, Float
from fabric_rl.base.files import read_checked, read_error_context

PACK_FILE = Path("rocket_league", "state_mutators", "training_pack_states.jsonl.gz")
"""The data file inside the package rlgym_tools."""
MOST_BYTES = 1 << 26
"""Maximum size of a file, unpacked; the one of rlgym-tools has a few megabytes."""
TIME_LIMIT_SECONDS = 10.0
"""Default time limit of a shot; most shots have this one."""
HELD_OUT_OF = 5
"""One in this many packs is held out: it is for measuring alone, see `Pack.held_out`."""
ON_WHEELS_BELOW = 20.0
"""uu; a car lower than this begins with its wheels down, a higher one drops onto them, as in the game."""


class Pack(NamedTuple):
    """A training pack.

    Attributes:
        metadata: `code`, `title`, `type` ("Striker", "Goalie"), `difficulty`, `tags` and more, as far as known.
        shots: `[S, 4, 3]` float64: ball position (uu) and velocity (uu/s), car position (uu), and the car's pitch, yaw,
            roll (rad); the car attacks +y.
        limits: `[S]` float64, seconds.
    """

    metadata: dict[str, Any]
    shots: Double
    limits: Double

    def names(self, key: str) -> set[str]:
        """Return the values of a key of the metadata: all tags for `tags`, the single value for other keys."""
        value = self.metadata.get(key, [])
        return {str(name) for name in value} if isinstance(value, list) else {str(value)}

    @property
    def held_out(self) -> bool:
        """True for one in five packs, chosen by a hash of the code: for measuring, not for training."""
        code = str(self.metadata.get("code", "")).encode()
        return int.from_bytes(hashlib.sha256(code).digest(), "big") % HELD_OUT_OF == 0

    def in_standard_field(self) -> "Pack":
        """Return the pack without the shots outside the standard field."""
        fits = [inside_field(*shot[0]) and inside_field(*shot[2]) for shot in self.shots.tolist()]
        return self._replace(shots=self.shots[fits], limits=self.limits[fits])


@dataclass(eq=False, repr=False)
class TrainingPack(PerArenaSetter):
    """Begin every episode with a random shot of the game's training packs.

    The first blue car plays the shot, attacking orange's goal (striker packs) or guarding its own (goalie packs); in
    arenas without blue cars it is the first orange car, rotated. Use `MirroredStates` to give shots to both teams.
    Other cars stand at random positions in their own halves, away from everything, and face the ball. Boost is full
    (in the game it is unlimited). Shots outside the standard field are left out. The packs' time limits do not apply;
    use a `TimeoutCondition` instead. `envs.matches.exam` does apply them.
    """

    CLEARANCE = 400.0
    """Minimum distance in uu between an additional car and anything else."""
    MAX_X, MIN_Y, MAX_Y, MAX_SUM = 3500.0, 500.0, 4500.0, 7500.0
    """Area in uu where additional cars stand, in their own half: |x|, |y|, and |x| + |y|, away from the corners."""

    kinds: Sequence[str] | None = None
    """Only packs of these kinds: "Striker", "Goalie". Default: all."""
    difficulties: Sequence[str] | None = None
    """Only packs of these difficulties: "Rookie", "Pro", "All-Star", "Unknown". Default: all."""
    tags: Sequence[str] | None = None
    """Only packs with one of these tags, for example "Aerials", "Saves", "Wall Shots". Default: all."""
    codes: Sequence[str] | None = None
    """Only the packs with these codes, for example "800B-18F9-C2F1-ACEE". Default: all."""
    path: str | Path | None = None
    """A .jsonl or .jsonl.gz file, one pack per line as in rlgym-tools' own file: `metadata` with `type`, `difficulty`,
    `tags`, `code`; `shots` with `ball` and `car`, each with `position` (uu), `linear_velocity` (uu/s) and
    `euler_angles` (pitch, yaw, roll in radians). Default: rlgym-tools' file (an ImportError if it is not installed).
    """
    held_out: bool | None = None
    """True: only the fifth of the packs that is for measuring. False: only the others, so that
    `fabric-rl exam --packs held_out` stays a test. Default: all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = packaged_file() if self.path is None else Path(self.path)
        packs = [pack for pack in read_packs(self.path) if self.held_out in (None, pack.held_out)]
        keys = {"kinds": "type", "difficulties": "difficulty", "codes": "code", "tags": "tags"}
        for name, key in keys.items():
            chosen = getattr(self, name)
            if chosen is None:
                continue
            known = {each for pack in packs for each in pack.names(key)}
            packs = [pack for pack in packs if not pack.names(key).isdisjoint(chosen)]
            if not packs:
                raise ValueError(
                    f"TrainingPack: no pack in {self.path} matches {name}={list(chosen)}; known: "
                    f"{', '.join(sorted(known)[:30]) or 'none'}"
                )
        self._shots: Double = np.concatenate([pack.in_standard_field().shots for pack in packs])
        if not len(self._shots):
            raise ValueError(f"TrainingPack: no shot in {self.path} fits in the standard field")

    def __len__(self) -> int:
        return len(self._shots)

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        shot = self._shots[rng.integers(len(self._shots))]
        place_shot(state, arena, shot, lambda side, placed: self._free_place(placed, side, rng))

    def _free_place(self, placed: Sequence[Float], side: int, rng: np.random.Generator) -> Float:
        """Draw a position `[3]` on the ground of one half, clear of occupied positions."""
        while True:
            x, y = rng.uniform(-self.MAX_X, self.MAX_X), side * rng.uniform(self.MIN_Y, self.MAX_Y)
            spot = np.array((x, y, CAR_REST_HEIGHT), np.float32)
            clear = all(np.linalg.norm(spot - other) > self.CLEARANCE for other in placed)
            if clear and abs(x) + abs(y) <= self.MAX_SUM:
                return spot


def place_shot(state: GameState, arena: int, shot: Double, further: Callable[[int, Sequence[Float]], Float]) -> None:
    """Write the initial state of a shot, with full boost; see `TrainingPack` for the car that plays it.

    Args:
        state: State to write to.
        arena: Row of `state`.
        shot: `[4, 3]`, see `Pack`.
        further: Function that returns the position `[3]` uu of another car, which faces the ball, from its half
            (-1 blue, 1 orange) and the occupied positions.
    """
    world, (ball_pos, ball_vel, car_pos, car_rotation) = state.world, shot
    slots = np.flatnonzero(state.present[arena])
    blue = slots[state.team[slots] == BLUE]
    shooter = int(blue[0] if len(blue) else slots[0])
    turned = MIRROR if state.team[shooter] == ORANGE else np.ones(3, np.float32)
    world.ball_pos[arena], world.ball_vel[arena] = ball_pos * turned, ball_vel * turned
    if not ball_vel.any():
        world.ball_vel[arena] = BALL_RELEASE_VEL
    world.car_pos[arena, shooter] = car_pos * turned
    world.car_pos[arena, shooter, 2] = max(car_pos[2], CAR_REST_HEIGHT)
    rotation = np.zeros((3, state.num_cars))
    rotation[:, shooter] = car_rotation
    rotation[1, shooter] += np.pi if state.team[shooter] == ORANGE else 0
    on_ground = np.ones(state.num_cars, np.bool_)
    on_ground[shooter] = car_pos[2] < ON_WHEELS_BELOW
    placed = [world.ball_pos[arena], world.car_pos[arena, shooter]]
    for slot in slots[slots != shooter].tolist():
        spot = further(1 if state.team[slot] == ORANGE else -1, placed)
        placed.append(spot)
        world.car_pos[arena, slot] = spot
        to_ball = world.ball_pos[arena] - spot
        rotation[1, slot] = math.atan2(to_ball[1], to_ball[0])
    pitch, yaw, roll = rotation.astype(np.float32)
    state.set_car_rotation(arena, pitch, yaw, roll)
    state.set_on_ground(arena, on_ground)
    state.boost[arena] = 100


def packaged_file() -> Path:
    """Return the file of rlgym-tools; raise an ImportError that says what to install."""
    package = find_spec("rlgym_tools")
    file = Path(str(package.origin)).parent / PACK_FILE if package else None
    if file is None or not file.is_file():
        raise ImportError("TrainingPack: the packs are part of rlgym-tools; run pip install -U rlgym-tools")
    return file


def read_packs(path: Path) -> list[Pack]:
    """Read a file of packs, see `TrainingPack`; raise a ValueError or FileNotFoundError if it is not one."""
    if not path.is_file():
        raise FileNotFoundError(f"TrainingPack: there is no file {path}")
    packs = []
    with read_error_context(f"TrainingPack: {path} is not a file of training packs"):
        file = io.BytesIO(read_checked(path, MOST_BYTES))
        content = (gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file).read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip():
                packs.append(_read_pack(json.loads(line), f"line {number}"))
    if not packs:
        raise ValueError(f"TrainingPack: {path} contains no packs")
    return packs


def _read_pack(pack: dict[str, Any], where: str) -> Pack:
    shots = np.zeros((len(pack["shots"]), 4, 3))
    for shot, row in zip(pack["shots"], shots, strict=True):
        ball, car = shot["ball"], shot["car"]
        row[:] = (ball["position"], ball["linear_velocity"], car["position"], car["euler_angles"])
    if not (np.abs(shots) < 1e38).all() or (np.linalg.norm(shots[:, 1], axis=-1) > BALL_MAX_SPEED + 1).any():
        raise ValueError(f"{where}: a shot is not finite, or its ball is faster than {BALL_MAX_SPEED} uu/s")
    limits = np.array([shot.get("time_limit", TIME_LIMIT_SECONDS) for shot in pack["shots"]], np.float64)
    if not (np.isfinite(limits) & (limits > 0)).all():
        raise ValueError(f"{where}: a time limit is not above 0")
    return Pack(dict(pack["metadata"]), shots, limits)
