"""Callbacks that stop or pause a run: KeyPress on a key press, StopAfter after a given time."""

import atexit
import os
import re
import sys
import time
from dataclasses import dataclass

from fabric_rl.base.settings import CountOrZero, Positive, check_settings
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import print_lines
from fabric_rl.ranks.collectives import all_reduce_sums

if sys.platform == "win32":
    import msvcrt
else:
    import select
    import termios

PAUSE_SECONDS = 0.2
"""Interval at which all ranks communicate during a pause, so that no collective runs into its time limit."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*.|O.|.)?", re.DOTALL)


@dataclass(eq=False, repr=False)
class StopAfter(Callback):
    """Stop the run after a given time, as Ctrl+C would; a resumed run gets the full time again."""

    minutes: Positive
    """Minutes of training, not including startup."""
    after_iterations: CountOrZero = 0
    """Number of iterations after which the clock starts, for example to exclude compilation."""
    processor: bool = False
    """Count processor time instead of wall-clock time: all threads of this process count, but child processes (as in a
    `ProcessPool`) do not. With several ranks, the first to use up its time ends the run."""

    def __post_init__(self) -> None:
        check_settings(self)
        self._now = time.process_time if self.processor else time.monotonic

    def on_train_start(self, state: TrainState) -> None:
        self._before = self.after_iterations
        self._end = self._now() + 60 * self.minutes

    def on_iteration_end(self, state: TrainState) -> None:
        if self._before:
            self._before -= 1
            self._end = self._now() + 60 * self.minutes
        else:
            state.stop |= self._now() > self._end


class KeyPress(Callback):
    """Control a run with keys in the terminal of rank 0: p pauses or continues, s saves, q stops.

    Keys are read between iterations. A pause stops all ranks; stop signals such as Ctrl+C end it. No keys are read if
    standard input is not a terminal or the process runs in the background. The terminal's settings are restored at the
    end, even if training fails; after `kill -9`, the shell or `stty sane` restores them.
    """

    def __init__(self) -> None:
        self._keys: Terminal | None = None
        self._listening = False  # True on all ranks if rank 0 has a terminal
        self._paused = False
        self._saved = -1  # agent-steps at the last request for a checkpoint

    def on_train_start(self, state: TrainState) -> None:
        """Open the terminal, if there is one."""
        self._paused, self._saved = False, -1
        if state.fabric.is_global_zero:
            self._keys = open_terminal()
            if self._keys is not None:
                atexit.register(self._close)
                self._read(state, 0.0)  # from now on, no Enter is needed
                print_lines("keys (read between iterations): p pauses or continues, s saves a checkpoint, q stops")
        self._listening = state.fabric.broadcast(self._keys is not None)

    def on_iteration_start(self, state: TrainState) -> None:
        if self._listening:
            self._wait_while_paused(state)

    def on_iteration_end(self, state: TrainState) -> None:
        if self._listening:
            self._read(state, 0.0)
            self._wait_while_paused(state)

    def on_train_end(self, state: TrainState, error: BaseException | None = None) -> None:
        self._close()

    on_exception = on_train_end

    def _wait_while_paused(self, state: TrainState) -> None:
        """Wait while rank 0 is paused, until a rank stops or saves."""
        while True:
            leaving = state.stop or state.save
            sums = all_reduce_sums(state.fabric, {"paused": (float(self._paused), 1), "leaving": (float(leaving), 1)})
            if sums["paused"][0] == 0 or sums["leaving"][0] > 0:
                return
            self._read(state, PAUSE_SECONDS)

    def _read(self, state: TrainState, seconds: float) -> None:
        """Read keys for up to `seconds` on rank 0; the other ranks wait for rank 0 in the next reduction."""
        if self._keys is None:
            return
        try:
            typed = self._keys.read(seconds)
        except OSError:  # the terminal was closed, so no key could end a pause
            self._paused = False
            self._close()
            return
        for key in _ESCAPES.sub("", typed).lower():
            if key == "p":
                self._paused = not self._paused
                paused = f"paused after {state.steps:,} steps: p continues, s saves, q stops"
                print_lines(paused if self._paused else "continuing")
            elif key == "s" and self._saved == state.steps:
                print_lines("this checkpoint is already being saved")
            elif key == "s" and state.run_id is None:
                print_lines("nothing can be saved: training has no run folder")
            elif key == "s":
                state.save, self._saved = True, state.steps
                print_lines(f"saving after {state.steps:,} steps")
            elif key == "q":
                state.stop = True
                print_lines("stopping after this iteration")

    def _close(self) -> None:
        if self._keys is not None:
            atexit.unregister(self._close)
            self._keys.close()
            self._keys = None


class Terminal:
    """Terminal of standard input, whose keys are read without Enter and without echo."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    if sys.platform == "win32":

        def read(self, seconds: float) -> str:
            """Return the keys typed within `seconds`."""
            end, typed = time.monotonic() + seconds, ""
            while not msvcrt.kbhit() and time.monotonic() < end:
                time.sleep(0.02)
            while msvcrt.kbhit():
                key = msvcrt.getwch()
                if key in ("\x00", "\xe0"):  # a function key has two codes
                    msvcrt.getwch()
                else:
                    typed += key
            return typed

        def close(self) -> None:
            """Do nothing, because no setting was changed."""
    else:
        _before: list[int | list[bytes | int]] | None = None

        def read(self, seconds: float) -> str:
            """Return the keys typed within `seconds`; raise an OSError if the terminal is gone."""
            if not self._in_foreground():  # using a terminal from the background would suspend the process
                time.sleep(seconds)
                return ""
            self._listen()
            if not select.select([self._descriptor], [], [], seconds)[0]:
                return ""
            typed = os.read(self._descriptor, 1024)
            if not typed:
                raise OSError("end of input")
            return typed.decode(errors="ignore")

        def close(self) -> None:
            """Restore the terminal's settings, if this process is in its foreground."""
            try:
                if self._before is not None and self._in_foreground():
                    termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
            except (OSError, termios.error):
                pass  # the terminal is gone

        def _listen(self) -> None:
            """Turn off line mode and echo if they are on, as after Ctrl+Z and fg; Ctrl+C and Ctrl+Z still work."""
            try:
                settings = termios.tcgetattr(self._descriptor)
                if settings[3] & termios.ICANON:
                    self._before = termios.tcgetattr(self._descriptor)
                    settings[3] &= ~(termios.ICANON | termios.ECHO)
                    termios.tcsetattr(self._descriptor, termios.TCSANOW, settings)
            except termios.error as error:
                raise OSError(*error.args) from error

        def _in_foreground(self) -> bool:
            try:
                return os.tcgetpgrp(self._descriptor) == os.getpgrp()
            except OSError:  # not the controlling terminal of this process
                return True


def open_terminal() -> Terminal | None:
    """Return the terminal of standard input, or None if standard input is not a terminal."""
    try:
        descriptor = sys.stdin.fileno()
        return Terminal(descriptor) if os.isatty(descriptor) else None
    except (AttributeError, OSError, ValueError):  # there is no standard input, or it was replaced
        return None
