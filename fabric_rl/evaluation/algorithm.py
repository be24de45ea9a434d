"""Which algorithm a training runs, and the demonstrations that it and its signals learn from."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from envs.factories import unwrap_partial
from fabric_rl.args import SACArgs
from fabric_rl.evaluation.demonstrations import trajectories_of
from fabric_rl.learning.gae import GAE, Estimator
from fabric_rl.loop import train
from fabric_rl.sac.train import train_off_policy
from fabric_rl.signals.base import SignalFactory
from fabric_rl.types import AgentFactory, EnvFactory, OffPolicyAgent


def with_demonstrations(signal: SignalFactory, env: EnvFactory) -> SignalFactory:
    """Return a signal that learns from demonstrations with what its files hold, any other signal as it is.

    Raises:
        ValueError: A file does not fit the environment; one line that names the flag.
    """
    call = unwrap_partial(signal)
    if not hasattr(call.function, "show"):
        return signal
    name = f"--signals {getattr(call.function, '__name__', '')}: demos"
    found = trajectories_of(call.named().get("demos") or (), env, name)
    return lambda *spaces: signal(*spaces).show(found)  # type: ignore[operator]  # it has that


def choose_algorithm(
    agent: AgentFactory,
    env: EnvFactory,
    estimator: Estimator,
    sac: SACArgs,
    signals: Sequence[SignalFactory],
    inference: bool,
) -> Callable[..., dict[str, Any]]:
    """Return the loop that trains such agents, with its settings: `train_off_policy` or `train`.

    Raises:
        ValueError: Settings of the other loop are given, or a file of `--demonstrations` does not fit.
    """
    made = unwrap_partial(agent).function
    if not (isinstance(made, type) and issubclass(made, OffPolicyAgent)):
        given = [f"--{field.name}" for field in fields(sac) if getattr(sac, field.name) != field.default]
        if given:
            raise ValueError(f"{', '.join(given)}: only agents have that which learn with SAC; leave it out")
        return partial(train, estimator=estimator, signals=signals)
    if type(estimator) is not GAE:
        raise ValueError("--estimator: only PPO estimates advantages, not SAC; leave it out")
    files = () if inference else sac.demonstrations
    shown = trajectories_of(files, env, "--demonstrations", rewards=True) if files else ()
    return partial(train_off_policy, sac=sac, signals=signals, demonstrations=shown)
