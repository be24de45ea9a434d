"""Notify: messages about a run through a command or a webhook."""

import http.client
import json
import math
import os
import re
import subprocess
import urllib.request
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from fabric_rl.base.settings import Finite, Positive, check_settings
from fabric_rl.callback import Callback, TrainState


@dataclass(eq=False, repr=False)
class Notify(Callback):
    """Send a message from rank 0 when a run ends, stops or fails, or when a metric reaches a value.

    If a message cannot be sent, training continues with a warning.
    """

    _in_state_dict: ClassVar = {"reached": "_reached"}

    command: Sequence[str] | None = None
    """Program and its arguments, run without a shell; {run_id}, {steps} and {message} are filled in."""
    url: str | None = None
    """Webhook that receives a POST request with JSON: `text` and `content` (both contain the message, as different
    services expect it), `event` (ended, stopped, failed or reached), `run_id`, `steps`, `metrics`. Environment
    variables ($NAME) in the address are expanded, so that the configuration need not contain secrets."""
    at_least: dict[str, Finite] | None = None
    """Metrics to report once when they reach at least this value, for example {"reward/episode_return": 195}."""
    at_most: dict[str, Finite] | None = None
    """Metrics to report once when they fall to at most this value."""
    timeout_seconds: Positive = 10.0
    """Time limit for the command and for the webhook; training waits for them."""

    def __post_init__(self) -> None:
        if not self.command and not self.url:
            raise ValueError("Notify: set command, url or both")
        if isinstance(self.command, str):
            example = '["notify-send", "{message}"]'
            raise ValueError(f"Notify: command must be a list such as {example}, got {self.command!r}")
        check_settings(self)
        self._url = os.path.expandvars(self.url) if self.url else None
        if self._url and (urlsplit(self._url).scheme not in ("http", "https") or not urlsplit(self._url).hostname):
            raise ValueError(f"Notify: url must begin with http:// or https:// and name a host, got {self.url}")
        self._reached: list[str] = []

    def on_iteration_end(self, state: TrainState) -> None:
        for limits, word in ((self.at_least or {}, "at least"), (self.at_most or {}, "at most")):
            for name, limit in limits.items():
                aim, number = f"{name} {word} {limit:g}", state.metrics.get(name, math.nan)
                there = number >= limit if word == "at least" else number <= limit
                if there and aim not in self._reached:
                    self._reached.append(aim)
                    self._tell(state, "reached", f"reached {name} {number:.4g} ({word} {limit:g})")

    def on_train_end(self, state: TrainState) -> None:
        stopped = state.stop and state.steps < state.args.total_timesteps
        self._tell(state, "stopped" if stopped else "ended", "was stopped" if stopped else "has ended")

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        """Report the error, unless it is a second Ctrl+C."""
        if not isinstance(error, KeyboardInterrupt):
            self._tell(state, "failed", f"has failed with {type(error).__name__}: {error}")

    def _tell(self, state: TrainState, event: str, what: str) -> None:
        if not state.fabric.is_global_zero:
            return
        run_id = state.run_id or ""
        message = f"run {run_id}".rstrip() + f" {what}, after {state.steps:,} steps"
        if self.command:
            words = {"{run_id}": run_id, "{steps}": str(state.steps), "{message}": message}
            names = re.compile("|".join(map(re.escape, words)))  # in one pass, so inserted text is not replaced again
            self._run([names.sub(lambda found: words[found[0]], part) for part in self.command])
        if self._url:
            metrics = {name: number if math.isfinite(number) else None for name, number in state.metrics.items()}
            facts = {"event": event, "run_id": run_id, "steps": state.steps, "metrics": metrics}
            self._post(self._url, {"text": message, "content": message} | facts)

    def _run(self, command: list[str]) -> None:
        # No pipes: a grandchild process that kept one open would exceed the time limit.
        silent: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        try:
            status = subprocess.run(command, timeout=self.timeout_seconds, check=False, **silent).returncode
        except subprocess.TimeoutExpired:
            _warn(f"command {command[0]} took longer than {self.timeout_seconds:g} s and was killed")
        except (OSError, ValueError) as error:
            _warn(f"command {command[0]}: {error}")
        else:
            if status != 0:
                _warn(f"command {command[0]} exited with status {status}")

    def _post(self, url: str, content: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "fabric-rl"}
        try:
            request = urllib.request.Request(url, json.dumps(content).encode(), headers, method="POST")
            with urllib.request.urlopen(request, timeout=self.timeout_seconds):
                pass
        except (OSError, ValueError, http.client.HTTPException) as error:
            _warn(f"webhook at {urlsplit(url).hostname}: {error}")  # the rest of the address may be a secret


def _warn(message: str) -> None:
    warnings.warn(f"Notify: {message}", RuntimeWarning, stacklevel=3)
