"""Memory layout of a `GameState`: the columns of RocketSim's rows, and the additional fields of a car."""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float32]
Bool = NDArray[np.bool_]

NUM_PADS = 34
BLUE, ORANGE = 0, 1
CONTROL_NAMES = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
"""Columns of a car's controls; attributes of `RocketSim.CarControls`."""

# Columns of the ball's block in RocketSim's gym state; a car's block is the same from column CAR_PHYSICS on.
BALL_COLUMNS, CAR_COLUMNS, CAR_PHYSICS = 25, 36, 11
POS, QUATERNION, VEL, ANG_VEL = slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 13)
FORWARD, RIGHT, UP = slice(13, 16), slice(16, 19), slice(19, 22)
CAR_ID, GOALS, SAVES, SHOTS, DEMOS, BOOST_PICKUPS = 0, 2, 3, 4, 5, 6
COUNTERS = slice(GOALS, BOOST_PICKUPS + 1)
IS_DEMOED, ON_GROUND, TOUCHED, BOOST = 7, 8, 9, 10

MIRROR = np.array([-1, -1, 1], np.float32)
"""Factor on a vector that rotates it by 180 degrees about z."""

# Attributes of RocketSim.CarState that the gym state lacks and every step reads, packed into one row of CAR_STATE.
CAR_TIMERS = (
    "handbrake_val",
    "flip_time",
    "air_time_since_jump",
    "demo_respawn_timer",
    "time_spent_boosting",
    "supersonic_time",
)
CAR_FLAGS = ("last_controls.jump", "has_jumped", "is_jumping", "has_flipped", "has_double_jumped")
CAR_STATE = np.dtype(
    {"names": ["timers", "flags"], "formats": [("<f4", 6), ("?", 5)], "offsets": [0, 24], "itemsize": 32}
)
CAR_STATE_FORMAT = "6f5?3x"
"""`CAR_STATE` for the struct module."""

# Read only on demand: fields of CAR_DETAILS, the attributes of CarState, and their types.
_DETAILS = {
    "wheels": ("wheels_with_contact", "?", 4),
    "jump_time": ("jump_time", "<f4"),
    "air_time": ("air_time", "<f4"),
    "flip_torque": ("flip_rel_torque", "<f4", 3),
    "is_auto_flipping": ("is_auto_flipping", "?"),
    "auto_flip_timer": ("auto_flip_timer", "<f4"),
    "auto_flip_direction": ("auto_flip_torque_scale", "<f4"),
    "bump_cooldown": ("car_contact_cooldown_timer", "<f4"),
    "has_world_contact": ("has_world_contact", "?"),
    "world_contact_normal": ("world_contact_normal", "<f4", 3),
    "bump_victim": ("car_contact_id", "<i4"),
}
CAR_DETAIL_ATTRIBUTES = {name: str(source[0]) for name, source in _DETAILS.items()}
CAR_DETAILS = np.dtype([*((name, *source[1:]) for name, source in _DETAILS.items()), ("got_flip_reset", "?")])


def _shift(columns: slice) -> slice:
    return slice(columns.start + CAR_PHYSICS, columns.stop + CAR_PHYSICS)


CAR_POS, CAR_VEL, CAR_ANG_VEL = _shift(POS), _shift(VEL), _shift(ANG_VEL)
CAR_QUATERNION = _shift(QUATERNION)
CAR_FORWARD, CAR_RIGHT, CAR_UP = _shift(FORWARD), _shift(RIGHT), _shift(UP)
CAR_BASIS = slice(CAR_FORWARD.start, CAR_UP.stop)
VECTORS = (POS, VEL, ANG_VEL, FORWARD, RIGHT, UP)
"""The ball's columns that rotate with the field; a car's columns are `CAR_PHYSICS` further on."""
