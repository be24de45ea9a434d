"""Checks of RocketSimPool's settings, and the layout that tells whether a checkpoint fits a pool."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import gymnasium
import numpy as np

from envs.actions import ActionParser, ActionTable
from envs.actions.base import nested_parsers
from envs.dones import DoneCondition, default_dones
from envs.obs import ObsBuilder
from envs.obs.base import column_range
from envs.state.layout import CONTROL_NAMES
from fabric_rl.base.settings import Between, Count, CountOrZero, check_value, is_integer

_MOST_ARENAS, _LONGEST_SKIP = 2**16, 1200
"""Limits set by one machine's memory, and by at most ten seconds between two decisions."""
ONLY_IN_TRAINING = (
    *("reward", "state_setter", "done", "loggers", "parameters", "num_threads", "collision_meshes", "teacher"),
    *("render_mode", "video_folder"),
)
"""Settings that are only needed in training: exported agents leave them out."""
GIVES_SPACES = ("team_size", "obs", "action")
"""Settings that determine the observation and action spaces."""


def component(name: str, value: Any, kind: type[Any]) -> Any:  # noqa: ANN401 - checked here
    """Return `value`; raise a TypeError unless it is a component of type `kind`."""
    return check_value(f"RocketSimPool: {name} (--env.{name})", value, kind)


def done_conditions(done: Any) -> tuple[DoneCondition, ...]:  # noqa: ANN401 - checked here
    """Return one condition or several as a tuple, the defaults for None; raise a TypeError for anything else."""
    if done is None:
        return default_dones()
    several = isinstance(done, Sequence) and not isinstance(done, str)
    return tuple(component("done", condition, DoneCondition) for condition in (done if several else (done,)))


def check_pool_sizes(
    num_arenas: object, tick_skip: object, action_delay_ticks: object, num_threads: object, first_arena: object
) -> None:
    """Raise a ValueError if a size is not a whole number, or is out of range."""
    owner = "RocketSimPool"
    Between(1, _MOST_ARENAS).check(f"{owner}: num_arenas (--env.num_arenas)", num_arenas, whole=True)
    tick_skip = Between(1, _LONGEST_SKIP).check(f"{owner}: tick_skip (--env.tick_skip)", tick_skip, whole=True)
    if not is_integer(action_delay_ticks) or not 0 <= action_delay_ticks <= tick_skip:
        raise ValueError(
            "RocketSimPool: action_delay_ticks (--env.action_delay_ticks) must be a whole number between 0 and "
            f"tick_skip={tick_skip}, got {action_delay_ticks!r}"
        )
    if num_threads is not None:
        check_value(f"{owner}: num_threads (--env.num_threads)", num_threads, Count)
    check_value(f"{owner}: first_arena (--env.first_arena)", first_arena, CountOrZero)


def observation_space(builder: ObsBuilder, num_blue: int, num_orange: int) -> gymnasium.spaces.Box:
    """Return the builder's space; raise a ValueError unless it is a Box of float32."""
    space = builder.space(num_blue, num_orange)
    if not isinstance(space, gymnasium.spaces.Box) or space.dtype != np.float32:
        raise ValueError(f"{type(builder).__name__}: space() must return a float32 Box, got {space}")
    return space


def layout(builder: ObsBuilder, parser: ActionParser, num_blue: int, num_orange: int) -> dict[str, str]:
    """Describe observation columns and action table, to check that a checkpoint fits a pool.

    Returns texts under `observation columns` (`DefaultObs: ball_pos 0-2, ball_vel 3-5, ...`) and `action table` (see
    `action_table`).
    """
    columns = builder.columns(num_blue, num_orange).items()
    listed = ", ".join(f"{name} {column_range(at.start, at.stop)}" for name, at in columns)
    return {"observation columns": f"{type(builder).__name__}: {listed}", "action table": action_table(parser)}


def layout_as_json(
    builder: ObsBuilder, parser: ActionParser, num_blue: int, num_orange: int
) -> dict[str, dict[str, Any]]:
    """Describe observation columns and action table as JSON, for programs without the builder and the parser.

    Returns:
        `observations`: builder and `columns` (range, name, meaning, unit before the factor, factor); `actions`:
        parser, names of the eight controls, and the rows `[n, 8]` of a table.
    """
    columns, start = [], 0
    for meaning in builder.meanings(num_blue, num_orange):
        factor = np.atleast_1d(np.asarray(meaning.factor, np.float64)).tolist()
        said = {"name": f"{meaning.group}.{meaning.name}".rstrip("."), "meaning": meaning.text, "unit": meaning.unit}
        columns.append({"columns": column_range(start, start + meaning.width), **said, "factor": factor})
        start += meaning.width
    table = getattr(nested_parsers(parser)[-1], "table", None)
    rows = None if table is None else table.tolist()
    return {
        "observations": {"builder": type(builder).__name__, "columns": columns},
        "actions": {"parser": action_table(parser), "controls": list(CONTROL_NAMES), "table": rows},
    }


def action_table(parser: ActionParser) -> str:
    """Return the parser's class and a table's rows: `RepeatAction(LookupTable): 90 rows, sha256 0123456789ab`."""
    parsers = nested_parsers(parser)
    name = "(".join(type(each).__name__ for each in parsers) + ")" * (len(parsers) - 1)
    innermost = parsers[-1]
    if not isinstance(innermost, ActionTable):
        return f"{name}: {parser.action_space}"
    rows = np.ascontiguousarray(innermost.table, "<f4")
    return f"{name}: {len(rows)} rows, sha256 {sha256(rows.tobytes()).hexdigest()[:12]}"
