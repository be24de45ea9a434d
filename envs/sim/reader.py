"""StateReader: live arenas into the rows of a GameState."""

import functools
import operator
import struct
from collections.abc import Callable
from itertools import chain

import numpy as np
import RocketSim

from envs.sim.arena import SimArena
from envs.state import layout
from envs.state.arrays import StateArrays
from envs.state.game_state import GameState

# One call reads every attribute of a CarState that the gym state lacks.
_read_car_state = operator.attrgetter(*layout.CAR_TIMERS, *layout.CAR_FLAGS)
_read_car_details = operator.attrgetter(*layout.CAR_DETAIL_ATTRIBUTES.values())


class StateReader:
    """Reads arenas into the rows of a `GameState`, many at a time, which is far faster than one by one.

    Attributes:
        pads_active: `[A, 2, 34]` float32, 1 where a pad can be taken; world order, then mirrored.
    """

    def __init__(self, state: GameState, sims: list[SimArena]) -> None:
        """Prepares to write into `state`; `sims` is the pool's list, of which elements may be replaced."""
        self.state, self.sims = state, sims
        self.pads_active = np.ones((state.num_arenas, 2, layout.NUM_PADS), np.float32)
        self._pads = self.pads_active.reshape(-1, layout.NUM_PADS)
        self._balls = state.ball_rows.reshape(-1, layout.BALL_COLUMNS)
        self._first_car = [0, *np.cumsum(state.present.sum(axis=1)).tolist()]
        self._slots = np.flatnonzero(state.present)
        # The rows of all slots; without gaps they are read into at once, with gaps by way of dense copies.
        self._all_cars = state.car_rows.reshape(-1, 2, layout.CAR_COLUMNS)
        self._all_states = state.car_states.reshape(-1)
        dense = state.all_present
        self._cars = self._all_cars if dense else np.empty((len(self._slots), 2, layout.CAR_COLUMNS), np.float32)
        self._states = self._all_states if dense else np.zeros(len(self._slots), layout.CAR_STATE)
        self._bytes = self._states.view(np.uint8).data

    def read(self, start: int, stop: int) -> None:
        """Reads the arenas `start` to `stop - 1`: ball, cars and pads, without the pads' timers.

        Raises:
            RuntimeError: NaN physics in one of them; the rows are left as they were.
        """
        sims = self.sims[start:stop]
        first, last = self._first_car[start], self._first_car[stop]
        gym = [sim.arena.get_gym_state() for sim in sims]
        states = map(_read_car_state, [get() for sim in sims for get in sim.car_states])
        np.concatenate([g[1] for g in gym], out=self._pads[2 * start : 2 * stop])
        np.concatenate([g[2] for g in gym], out=self._balls[2 * start : 2 * stop])
        rows = self._cars[first:last].reshape(-1, layout.CAR_COLUMNS)
        np.concatenate([car for g in gym for car in g[3:]], out=rows)
        _packer(last - first)(self._bytes, first * layout.CAR_STATE.itemsize, *chain.from_iterable(states))
        if self._cars is not self._all_cars:
            slots = self._slots[first:last]
            self._all_cars[slots] = self._cars[first:last]
            self._all_states[slots] = self._states[first:last]

    def fix_demolished(self) -> None:
        """A demolished car's state is frozen, but the gym state's rotation is newer: writes the frozen one."""
        state = self.state
        timers = state.demo_respawn_timer
        if timers.any():
            for index, slot in zip(*(axis.tolist() for axis in np.nonzero(timers)), strict=True):
                sim = self.sims[index]
                basis = sim.car_states[sim.slots.index(slot)]().rot_mat.as_numpy()
                state.car_rows[index, slot, 0, layout.CAR_BASIS] = basis.reshape(-1)
                state.car_rows[index, slot, 1, layout.CAR_BASIS] = (basis * layout.MIRROR).reshape(-1)

    def read_details(self, state: StateArrays) -> None:
        """Fills the stale rows of `details` and `last_touch_car` of the pool's state or of a part of it."""
        for row in np.flatnonzero(state.details_stale).tolist():
            sim = self.sims[int(state.arena_index[row])]
            for slot, get in zip(sim.slots, sim.car_states, strict=True):
                car = get()
                values = [tuple(v) if isinstance(v, RocketSim.Vec) else v for v in _read_car_details(car)]
                victim = sim.slot_of_id.get(car.car_contact_id, -1) if car.car_contact_cooldown_timer > 0 else -1
                state.details[row, slot] = (*values[:-1], victim, car.got_flip_reset())
            state.last_touch_car[row] = sim.slot_of_id.get(sim.arena.ball.get_state().last_hit_car_id, -1)
        state.details_stale[:] = False


@functools.lru_cache(maxsize=64)
def _packer(num_cars: int) -> Callable[..., None]:
    return struct.Struct("=" + layout.CAR_STATE_FORMAT * num_cars).pack_into
