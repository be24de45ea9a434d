"""What two runs must share for one to go on from the other's checkpoints."""

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pkgutil import resolve_name
from typing import Any, cast

from gymnasium.vector import VectorEnv

from fabric_rl.base.settings import changed
from fabric_rl.import_names import class_path
from fabric_rl.ranks.sharding import class_of
from fabric_rl.types import ActorCritic, AgentFactory, CheckpointError, EnvFactory


def fingerprint(envs: VectorEnv, agent: ActorCritic) -> dict[str, str]:
    """What a run's environment and agent are for a checkpoint: name -> text."""
    weights, kind = agent.state_dict(), class_of(agent)
    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in weights.items())
    return {
        "observations": str(envs.single_observation_space),
        "actions": str(envs.single_action_space),
        "agent": class_path(kind),
        "networks": f"{sum(t.numel() for t in weights.values()):,} numbers, {sha256(shapes.encode()).hexdigest()[:8]}",
    } | {name: str(text) for name, text in getattr(envs, "layout", {}).items()}


def fingerprint_of(env: EnvFactory, agent: AgentFactory, seed: int) -> dict[str, str]:
    """The fingerprint of an environment and an agent that are built for it and thrown away."""
    envs = env(seed=seed)
    try:
        module = agent(envs.single_observation_space, envs.single_action_space)
        return fingerprint(envs, cast(ActorCritic, module))
    finally:
        envs.close()


def check_fits(theirs: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Raises CheckpointError where fingerprints differ, but for the networks: of those `check_weights` says more."""
    differ = changed(theirs, own, "nothing")
    differ.pop("networks", None)
    if differ:
        lines = (f"{name} {there} there, {here} here" for name, (there, here) in differ.items())
        raise CheckpointError(f"the checkpoint does not fit --env and --agent: {'; '.join(lines)}")


def other_world(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Settings on which the spaces depend where they differ, as `--flag theirs (yours: own), ...`; empty if none does.

    Args:
        theirs: Settings of another run, see `provenance.flat_settings`.
        own: Of this one.
    """
    (there, kind), (here, own_kind) = _world(theirs), _world(own)
    apart = {}
    if kind != own_kind:
        apart["--env_id" if theirs.get("env_id") else "--env"] = (kind, own_kind)
    else:
        names: tuple[str, ...] = ()
        with suppress(AttributeError, ImportError, ValueError):  # an env_id; a class that is nowhere to be found
            names = getattr(resolve_name(str(kind)), "gives_spaces", ())
        for name in (name for name in there if name in here and name.split(".")[0] in names):
            inside = any(f"--env.{name}".startswith(f"{other}.") for other in apart)  # settings of another class
            if there[name] != here[name] and not inside:
                apart[f"--env.{name}"] = (there[name], here[name])
    said = (
        f"{flag} {'null' if x is None else x} (yours: {'the default' if y is None else y})"
        for flag, (x, y) in apart.items()
    )
    return ", ".join(said)


def _world(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Settings of the environment, or of the one that it is a factory's copies of, by their names in it; its class."""
    prefix = "env."
    while f"{prefix}factory.class_path" in settings:
        prefix += "factory."
    names = [name for name in settings if name.startswith(prefix)]
    inner = {name.removeprefix(prefix).removesuffix(".class_path"): settings[name] for name in names}
    return inner, settings.get("env_id") or inner.get("class_path")
