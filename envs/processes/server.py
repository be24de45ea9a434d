"""What runs in a worker process of a ProcessPool."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from envs.processes.protocol import FLAGS, HAS_FINAL, HAS_MASK, HAS_PAYLOAD, IS_STEP, REWARD_DTYPE, Failure, ShardSpec
from envs.processes.shared_arrays import SharedArrays

_IN_ARRAYS = {"final_obs", "_final_obs", "action_mask"}


def run_shard(conn: Connection, go: Semaphore, done: Semaphore, factory: bytes) -> None:
    """Builds the environments and serves until told to end. Ends by itself when the parent process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the whole terminal; the parent decides
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        env = _build(factory)
    except BaseException as error:  # one that wants to end the process is to be told, too
        conn.send(Failure.of(error))
        return
    try:
        spec = _spec_of(env)
        conn.send(spec)
        arrays = SharedArrays(spec.layout, conn.recv())
        done.release()
        _Server(env, arrays, conn).serve(go, done)
        arrays.close()
    except (TypeError, ValueError) as error:
        conn.send(Failure.of(error))
    finally:
        env.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _build(factory: bytes) -> VectorEnv[Any, Any, Any]:
    try:
        build = pickle.loads(factory)
    except Exception as error:
        raise TypeError(
            f"ProcessPool: a worker process cannot load the factory ({error}). Define it, and every class it uses, "
            "at the top level of a module file; what exists only in a notebook or an interactive session cannot be sent"
        ) from error
    env = build()
    if not isinstance(env, VectorEnv):
        raise TypeError(f"ProcessPool: the factory built a {type(env).__name__}, not a gymnasium.vector.VectorEnv")
    return env


def _spec_of(env: VectorEnv[Any, Any, Any]) -> ShardSpec:
    name, mode = type(env).__name__, env.metadata.get("autoreset_mode")
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(f"{name}: metadata['autoreset_mode'] must be AutoresetMode.SAME_STEP, got {mode}")
    obs, action = env.single_observation_space, env.single_action_space
    if any(space.shape is None or space.dtype is None for space in (obs, action)):
        raise TypeError(f"{name}: observations and actions must be single arrays, got {obs} and {action}")
    signals = tuple(getattr(env, "reward_signals", ()))
    resumable = hasattr(env, "state_dict") and hasattr(env, "load_state_dict")
    seeds, layout = getattr(env, "num_seeds", env.num_envs), dict(getattr(env, "layout", {}))
    headlines = dict(getattr(env, "headlines", {}))
    sides = getattr(env, "sides", None)
    return ShardSpec(env.num_envs, obs, action, seeds, resumable, signals, layout, headlines, sides, name)


class _Server:
    """Answers the parent's commands with one environment."""

    def __init__(self, env: VectorEnv[Any, Any, Any], arrays: SharedArrays, conn: Connection) -> None:
        self.env, self.arrays, self.conn = env, arrays, conn

    def serve(self, go: Semaphore, done: Semaphore) -> None:
        header = self.arrays["header"]
        while True:
            go.acquire()
            header[FLAGS] = 0
            try:
                if header[IS_STEP]:
                    reply: Any = self._step()
                else:
                    command, arguments = self.conn.recv()
                    if command == "close":
                        return
                    reply = self._answer(command, arguments)
                payload = b"" if reply is None else pickle.dumps(reply)
            except BaseException as error:  # as above
                payload = pickle.dumps(Failure.of(error))
            if payload:
                header[FLAGS] |= HAS_PAYLOAD
            done.release()
            if payload:
                self.conn.send_bytes(payload)

    def _step(self) -> dict[str, Any] | None:
        arrays = self.arrays
        obs, rewards, terminated, truncated, infos = self.env.step(arrays["actions"].copy())
        self._store("obs", obs)
        self._store("rewards", rewards)
        self._store("terminated", terminated)
        self._store("truncated", truncated)
        arrays["header"][REWARD_DTYPE] = ord(np.asarray(rewards).dtype.char)
        if "final_obs" in infos:
            ended, final = infos["_final_obs"], infos["final_obs"]
            self._store("_final_obs", ended)
            if final.dtype == object:  # Gymnasium's own: a row each, None where the episode goes on
                rows = np.asarray(obs).copy()
                for index in np.flatnonzero(ended):
                    rows[index] = final[index]
                final = rows
            self._store("final_obs", final)
            arrays["header"][FLAGS] |= HAS_FINAL
        return self._store_mask(infos)

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> dict[str, Any] | None:
        obs, infos = self.env.reset(seed=seed, options=options)
        self._store("obs", obs)
        return self._store_mask(infos)

    def _answer(self, command: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401 - what can be pickled
        """What the environment's own method returns; one that it lacks has no metrics, and nothing to do."""
        if command == "reset":
            return self._reset(*arguments)
        if command.endswith("_parameters") and not hasattr(self.env, command):
            raise ValueError(f"{type(self.env).__name__}: it has no parameters that could be set")
        if command == "set_parameters":
            self._answer("check_parameters", arguments)
        if not hasattr(self.env, command):
            return {} if command.startswith("drain_") else None
        return getattr(self.env, command)(*arguments)

    def _store(self, name: str, value: NDArray[Any]) -> None:
        value, target = np.asarray(value), self.arrays[name]
        if value.shape != target.shape:
            raise ValueError(
                f"{type(self.env).__name__}: {name} have shape {list(value.shape)}, expected {list(target.shape)}"
            )
        np.copyto(target, value, casting="same_kind")

    def _store_mask(self, infos: dict[str, Any]) -> dict[str, Any] | None:
        """Puts the action mask into its array and returns the infos that have no array."""
        rest = {key: value for key, value in infos.items() if key not in _IN_ARRAYS}
        mask = infos.get("action_mask")
        if mask is not None:
            self._store("action_mask", mask)
            self.arrays["header"][FLAGS] |= HAS_MASK
        return rest or None
