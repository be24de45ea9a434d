"""The live arenas of a pool, the threads that step them, and the reader that fills a GameState from them."""

import functools
import operator
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import RocketSim
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.sim.arena import SimArena
from envs.state import layout
from envs.state.game_state import GameState, StateArrays
from envs.state.layout import NUM_PADS
from envs.state.view import quaternions

ARENAS_PER_CHUNK = 8
ARENAS_PER_READ = 16
TICK_SECONDS = np.float32(1 / TICKS_PER_SECOND)


class Arenas:
    """Steps the arenas in threads, with the GIL released, and reads them into a `GameState`.

    Attributes:
        sims: The arenas.
        num_threads: Number of threads that step them, including the caller's.
        delays: For each arena, ticks at the start of a step that still run the previous action.
        broken: `[A]` bool, arenas whose physics produced NaN in this step; their rows are one step old.
        gather_began: `time.perf_counter()` when reading the arenas began in the last step.
    """

    def __init__(self, state: GameState, tick_skip: int, action_delay_ticks: int, num_threads: int) -> None:
        """Create an arena for every row of `state`, with a car in every slot where `present` is True."""
        self.state = state
        self.tick_skip, self.action_delay_ticks = tick_skip, action_delay_ticks
        self.delays = [action_delay_ticks] * state.num_arenas
        self.num_threads = min(num_threads, state.num_arenas)
        self.broken = np.zeros(state.num_arenas, np.bool_)
        self.gather_began = 0.0
        self._chunk = max(1, min(ARENAS_PER_CHUNK, state.num_arenas // (2 * self.num_threads)))
        self._workers = ThreadPoolExecutor(self.num_threads, "rocketsim")  # starts threads on demand
        with ThreadPoolExecutor(self.num_threads) as builders:
            self.sims = list(builders.map(self._build, range(state.num_arenas)))
        self._counted = np.zeros((*state.present.shape, 1, layout.COUNTERS.stop - layout.COUNTERS.start), np.float32)
        """Counters of each car when its arena was restored, where the arena's own begin at zero."""
        self._reader = StateReader(state, self.sims)
        state.read_details = self._reader.read_details

    def _build(self, index: int) -> SimArena:
        slots = np.flatnonzero(self.state.present[index])
        return SimArena(self.state.team[slots].tolist(), slots.tolist())

    def close(self) -> None:
        """Stop the threads."""
        self._workers.shutdown()

    def rebuild(self, index: int) -> None:
        """Replace a broken arena with a new one."""
        self.sims[index] = self._build(index)
        self.broken[index] = False

    def begin(self, index: int) -> None:
        """Set arena `index` to its row of the state, and read it back."""
        state = self.state
        self.sims[index].set_state(state, index)
        self._reader.read(index, index + 1)
        self._counted[index] = 0
        state.details_stale[index] = True
        state.pad_timers[index] = 0
        self._read_pad_timers(index * NUM_PADS + np.flatnonzero(self._reader.pads_active[index, 0] == 0))

    def restore(self, index: int, numbers: NDArray[np.float64]) -> None:
        """Restore a snapshot of arena `index`; its row of the state must match already.

        Read the arena once afterwards, so that the game's record of touches starts again.
        """
        self.sims[index].restore(numbers)
        self.sims[index].arena.get_gym_state()
        self._counted[index] = self.state.car_rows[index, :, :1, layout.COUNTERS]
        self.broken[index] = False

    def step(self, controls: Sequence[Any], rngs: Sequence[np.random.Generator]) -> None:
        """Step every arena, then read them all. Threads fetch chunks on demand, which balances the load.

        Reading needs the GIL, so one thread does it at the end. If each thread read its own arenas, the threads would
        wake each other so often that two of them would hardly be faster than one.

        Args:
            controls: `[A * C]` `RocketSim.CarControls`, one per slot.
            rngs: `[A]` generators, for the respawn positions of demolished cars.
        """
        state = self.state
        timers = state.demo_respawn_timer
        returning = (timers > 0) & (timers < (self.tick_skip + 0.5) / TICKS_PER_SECOND)
        respawning = returning.any(axis=1).tolist()
        work = partial(self._step_chunks, iter(range(0, state.num_arenas, self._chunk)), controls, rngs, respawning)
        others = [self._workers.submit(work) for _ in range(self.num_threads - 1)]
        work()
        for other in others:
            other.result()
        self.gather_began = time.perf_counter()
        for start in range(0, state.num_arenas, ARENAS_PER_READ):
            self._read(start, min(start + ARENAS_PER_READ, state.num_arenas))
        if self._counted.any():
            read = ~self.broken
            state.car_rows[read, :, :, layout.COUNTERS] += self._counted[read]
        self._reader.fix_demolished()
        self._update_pad_timers()
        state.details_stale[:] = True
        state.invalidate()

    def _step_chunks(
        self,
        starts: Iterator[int],
        controls: Sequence[Any],
        rngs: Sequence[np.random.Generator],
        respawning: Sequence[bool],
    ) -> None:
        for start in starts:
            stop = min(start + self._chunk, self.state.num_arenas)
            for index in range(start, stop):
                by_ticks = respawning[index] or self.sims[index].step_tick is not None
                self._step_arena(index, controls, rngs[index] if by_ticks else None)

    def _step_arena(self, index: int, controls: Sequence[Any], rng: np.random.Generator | None) -> None:
        """Step one arena; most of it runs without the GIL."""
        sim, delay = self.sims[index], self.delays[index]
        step = sim.arena.step if rng is None else partial(sim.step_and_respawn, rng=rng)
        first = index * self.state.num_cars
        if delay:
            step(delay)
        for slot, car in zip(sim.slots, sim.cars, strict=True):
            car.set_controls(controls[first + slot])
        if delay < self.tick_skip:
            step(self.tick_skip - delay)

    def _read(self, start: int, stop: int) -> None:
        """Read arenas into the state, or mark arenas as broken if their physics produced NaN."""
        try:
            self._reader.read(start, stop)
        except RuntimeError as error:  # RocketSim detects NaN here, not while stepping
            if "NaN" not in str(error):
                raise
            if stop - start == 1:
                self.broken[start] = True
            else:
                for index in range(start, stop):
                    self._read(index, index + 1)

    def _update_pad_timers(self) -> None:
        """Count down the timers of pads that are still gone, and read the cooldown of pads taken in this step.

        RocketSim subtracts a tick's length in float32 once per tick, and so does this method, to the bit. A pad that
        may have come back during the step may also have been taken again, so its cooldown is read.
        """
        timers = self.state.pad_timers.reshape(-1)
        gone = np.flatnonzero(self._reader.pads_active[:, 0] == 0)
        left = timers[gone]
        unknown = left < (self.tick_skip + 1) * TICK_SECONDS
        for _ in range(self.tick_skip):
            left -= TICK_SECONDS
        timers[:] = 0
        timers[gone] = left
        if unknown.any():
            self._read_pad_timers(gone[unknown])

    def _read_pad_timers(self, pads: NDArray[np.int64]) -> None:
        """Read the cooldowns of some pads, numbered across all arenas."""
        sims = self.sims
        self.state.pad_timers.reshape(-1)[pads] = [
            sims[pad // NUM_PADS].pads[pad % NUM_PADS].get_state().cooldown for pad in pads.tolist()
        ]


# One call reads every attribute of a CarState that the gym state lacks.
_read_car_state = operator.attrgetter(*layout.CAR_TIMERS, *layout.CAR_FLAGS)
_read_car_details = operator.attrgetter(*layout.CAR_DETAIL_ATTRIBUTES.values())


class StateReader:
    """Reads arenas into the rows of a `GameState`, many at a time, which is much faster than reading them one by one.

    Attributes:
        pads_active: `[A, 2, 34]` float32, 1 where a pad can be taken; world order, then mirrored.
    """

    def __init__(self, state: GameState, sims: list[SimArena]) -> None:
        """Prepare to write into `state`; `sims` is the pool's list, whose elements may be replaced."""
        self.state, self.sims = state, sims
        self.pads_active = np.ones((state.num_arenas, 2, layout.NUM_PADS), np.float32)
        self._pads = self.pads_active.reshape(-1, layout.NUM_PADS)
        self._balls = state.ball_rows.reshape(-1, layout.BALL_COLUMNS)
        self._first_car = [0, *np.cumsum(state.present.sum(axis=1)).tolist()]
        self._slots = np.flatnonzero(state.present)
        # The rows of all slots: written directly if every slot has a car, else through dense copies.
        self._all_cars = state.car_rows.reshape(-1, 2, layout.CAR_COLUMNS)
        self._all_states = state.car_states.reshape(-1)
        dense = state.all_present
        self._cars = self._all_cars if dense else np.empty((len(self._slots), 2, layout.CAR_COLUMNS), np.float32)
        self._states = self._all_states if dense else np.zeros(len(self._slots), layout.CAR_STATE)
        self._bytes = self._states.view(np.uint8).data

    def read(self, start: int, stop: int) -> None:
        """Read the arenas `start` to `stop - 1`: ball, cars and pads, without the pad timers.

        Raises:
            RuntimeError: The physics of an arena produced NaN; the rows are unchanged.
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
        """Write the frozen rotation of demolished cars, because the gym state has a newer one and its quaternion."""
        state = self.state
        timers = state.demo_respawn_timer
        if timers.any():
            for index, slot in zip(*(axis.tolist() for axis in np.nonzero(timers)), strict=True):
                sim = self.sims[index]
                basis = sim.car_states[sim.slots.index(slot)]().rot_mat.as_numpy()
                for side, axes in enumerate((basis, basis * layout.MIRROR)):
                    state.car_rows[index, slot, side, layout.CAR_BASIS] = axes.reshape(-1)
                    state.car_rows[index, slot, side, layout.CAR_QUATERNION] = quaternions(axes)

    def read_details(self, state: StateArrays) -> None:
        """Update the stale rows of `details` and `last_touch_car` of the pool's state, or of a part of it."""
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
