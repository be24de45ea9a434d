"""Trained agents, loaded from the folder of their run or from an exported policy."""

import hashlib
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import gymnasium
import numpy as np
import torch
import yaml
from gymnasium import Space
from jsonargparse import ArgumentError
from lightning import LightningModule
from numpy.typing import NDArray
from torch import Tensor

from fabric_rl.base.config_files import read_sections, refuse_code_beside, to_flag
from fabric_rl.base.files import read_error_context, read_json, write_text
from fabric_rl.base.messages import one_line
from fabric_rl.base.parser import FlagParser
from fabric_rl.base.settings import describe_value
from fabric_rl.learning.learner import check_generator_state, check_weights
from fabric_rl.rollouts.step_checks import clip_actions
from fabric_rl.runs import checkpoint, play
from fabric_rl.runs.provenance import CONFIG, EXPORTED, METADATA, find_config
from fabric_rl.runs.records import list_checkpoints
from fabric_rl.runs.start_or_resume import load_weights, resolve_checkpoint_path
from fabric_rl.types import (
    ActorCritic,
    ActOutput,
    AgentFactory,
    CheckpointError,
    EnvFactory,
    HasRoles,
    ProbeSink,
    accepts_action_mask,
    set_progress,
)

CHECK = "check.npz"
_MOST_MEMORY = 1 << 20
MODELS = {"onnx": "policy.onnx", "torchscript": "policy.pt"}
"""Export format -> file name."""


@dataclass(frozen=True)
class Trained:
    """A trained agent and the environment that it was trained in.

    Attributes:
        name: Name of the agent: the last part of the name or path given to `load_trained`.
        path: File with the weights.
        env: Factory of the environment: call `env(seed=0)`.
    """

    name: str
    path: Path
    env: EnvFactory
    _agent: AgentFactory = field(repr=False)
    _weights: dict[str, Any] = field(repr=False)

    def agent(self, observation_space: Space[Any], action_space: Space[Any]) -> ActorCritic:
        """Return the agent with its weights, for the spaces of one sub-environment; its `progress` is 1.

        Raises:
            CheckpointError: The spaces or the settings in `config.yaml` do not match the checkpoint.
        """
        module = self.untrained(observation_space, action_space)
        try:
            check_weights(self._weights, module)
            module.load_state_dict(self._weights)
        except (CheckpointError, RuntimeError) as error:
            raise CheckpointError(
                f"{self.path} does not fit {type(module).__name__} with the settings of its config.yaml and "
                f"observations {observation_space}: {' '.join(str(error).split())}"
            ) from error
        set_progress(module, 1.0)
        return module.eval()

    def untrained(self, observation_space: Space[Any], action_space: Space[Any]) -> ActorCritic:
        """Return an untrained agent with the same settings, for the spaces of one sub-environment."""
        module = self._agent(observation_space, action_space)
        if not isinstance(module, ActorCritic):
            raise TypeError(f"{self.name}: {type(module).__name__} is not a fabric_rl.ActorCritic")
        return module

    def choose(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        deterministic: bool = True,
        seed: int | None = None,
    ) -> Callable[..., NDArray[Any]]:
        """Return the agent as a function of NumPy arrays (see `fabric_rl.runs.trained.policy`)."""
        return policy(self.agent(observation_space, action_space), deterministic, seed)


def deterministic_agent(agent: AgentFactory) -> AgentFactory:
    """Return a factory of the same agents, which always take the most likely actions."""

    def build(observation_space: Space[Any], action_space: Space[Any]) -> LightningModule:
        module: Any = agent(observation_space, action_space)
        parts: list[Any] = [*module.roles.values()] if isinstance(module, HasRoles) else [module]
        for part in parts:
            part.act = partial(part.act, deterministic=True)
        made: LightningModule = module
        return made

    return build


def load_trained(
    name: str | Path,
    runs_dir: str | Path = "runs",
    env: EnvFactory | None = None,
    agent: AgentFactory | None = None,
    trust_torchscript: bool = False,
) -> Trained:
    """Load a trained agent with the settings of its run.

    Args:
        name: A run id, the path of a run, milestone, checkpoint or exported agent (also as ONNX or TorchScript, which
            cannot be trained further: `fabric_rl.export`), or the name of an included agent (`school_1v1`).
        runs_dir: Folder that contains all runs.
        env: Factory of the environment that the agent was trained in, if `config.yaml` cannot describe it. Default: as
            in `config.yaml`.
        agent: Agent class with its settings, if `config.yaml` cannot describe it. Default: as in `config.yaml`.
        trust_torchscript: Load TorchScript (`policy.pt`), too. It is a program that can write files.

    Raises:
        CheckpointError: There is no such agent, it cannot be read, it has no `config.yaml` or is not trusted.
        ValueError: The settings are wrong or missing.
    """
    path = resolve_checkpoint_path("agent", runs_dir, str(name))
    if model := exported_model(path):
        if model.suffix == ".pt" and not trust_torchscript:
            raise CheckpointError(
                f"{model} is TorchScript, a program that can write files; if you trust it, pass --trust_torchscript "
                "(load_trained: trust_torchscript=True), otherwise use an export with --format onnx"
            )
        env = _factory(model, "env", EnvFactory) if env is None else env
        return Trained(Path(name).name, model, env, partial(ExportedAgent, model), {})
    weights = load_weights(path)
    env = _factory(weights.path, "env", EnvFactory) if env is None else env
    agent = _factory(weights.path, "agent", AgentFactory) if agent is None else agent
    return Trained(Path(name).name, weights.path, env, agent, weights.agent)


def export(name: str | Path, folder: Path, runs_dir: str | Path = "runs") -> None:
    """Export an agent without its run to a new folder, to keep or share it: `weights.ckpt` and `config.yaml`.

    You can use the folder like the path of a run to load weights: `load_trained`, `--initialize_from`,
    `fabric-rl evaluate`. It contains neither the optimizer nor the environments, so it is small but cannot be resumed.
    It also leaves out settings that only matter for training and may need modules that others do not have.

    Args:
        name: Name of the agent, as in `load_trained`.
        folder: The new folder.
        runs_dir: Folder that contains all runs.

    Raises:
        CheckpointError: As in `load_trained`.
        OSError: The folder already exists, or is not writable.
    """
    weights = load_weights(resolve_checkpoint_path("agent", runs_dir, str(name)))
    settings = inference_config(weights.path)
    folder.mkdir(parents=True)
    write_text(folder / CONFIG, settings)
    checkpoint.write(folder / EXPORTED, {"agent": weights.agent})


def inference_config(weights: Path) -> str:
    """Return a `config.yaml` with environment and agent, without settings that only matter for training.

    Raises:
        CheckpointError: There is no `config.yaml` above the weights.
        ValueError: The environment or the agent is missing.
    """
    settings = {"env": _to_play(_section(weights, "env")), "agent": _section(weights, "agent")}
    return str(yaml.safe_dump(settings, sort_keys=False, width=120, allow_unicode=True))


def _section(weights: Path, name: str) -> Any:  # noqa: ANN401 - a class path, or a class with its settings
    """Return the section `env` or `agent` of a run's configuration; raise a one-line ValueError if it is missing."""
    config = find_config(weights)
    section = read_sections([str(config)], name)[-1]
    refuse_code_beside(config, section)
    if section is None:
        raise ValueError(
            f"{config} does not say which {name} the training used; pass it to fabric_rl.load_trained(..., {name}=...)"
        )
    return section


def _to_play(section: Any) -> Any:  # noqa: ANN401
    """Return an environment's section without the settings that its class lists in `only_in_training`."""
    if not isinstance(section, dict) or "class_path" not in section:
        return section
    try:
        unneeded = getattr(resolve_name(section["class_path"]), "only_in_training", ())
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{section['class_path']} cannot be imported: {error}") from error
    given = section.get("init_args") or {}
    if not isinstance(given, dict):
        raise ValueError(f"init_args of {section['class_path']} must be a dict of settings, got {given!r:.100}")
    settings = {name: _to_play(value) for name, value in given.items() if name not in unneeded}
    return section | {"init_args": settings}


def _factory(weights: Path, name: str, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    """Instantiate a section of a configuration with jsonargparse; raise a one-line ValueError if that fails."""
    section = _section(weights, name)
    if isinstance(section, dict) and isinstance(section.get("init_args"), dict):
        section["init_args"].pop("video_folder", None)  # only training writes videos
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # the user's classes, as for `python train_fabric.py` in this folder
    parser = FlagParser(prog="fabric-rl", exit_on_error=False)
    parser.add_argument(f"--{name}", type=kind)
    try:
        # Parsing the defaults of each class would take four times as long.
        found = parser.parse_args([to_flag(name, section)], defaults=False)
        return parser.instantiate(found)[name]
    except (ArgumentError, ValueError, TypeError, OSError, ImportError) as error:
        raise ValueError(one_line(str(error))) from error


class Policy:
    """An agent as a function `(obs [N, ...], begins [N], action_mask [N, n] or None) -> actions [N, ...]`.

    It works on NumPy arrays and keeps the state of agents with memory; `begins` is True at the start of an episode.
    Actions outside of a Box are clipped.
    """

    def __init__(
        self, agent: ActorCritic, deterministic: bool = True, seed: int | None = None, tell: ProbeSink | None = None
    ) -> None:
        """Wrap an agent.

        Args:
            agent: Agent on any device; `seed` only affects sampling on the CPU.
            deterministic: Take the most likely actions instead of sampling.
            seed: Seed of a separate generator for sampling; default: use torch's global generator.
            tell: If given, called at every step with the agent's values and action probabilities.
        """
        self.agent, self._deterministic, self._tell = agent, deterministic, tell
        self._memory = torch.zeros(0)
        self._dice = None if seed is None else torch.Generator().manual_seed(seed).get_state()
        self._masks = accepts_action_mask(agent)

    @torch.no_grad()
    def __call__(
        self, obs: NDArray[Any], begins: NDArray[np.bool_], action_mask: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        agent, given = self.agent, dict[str, Tensor]()
        device = agent.device
        if agent.memory_size:
            state = self._memory.to(device)
            if len(state) != len(obs):  # the number of games has changed
                state = torch.zeros(len(obs), agent.memory_size, device=device)
            given["state"] = torch.where(torch.tensor(begins, device=device)[:, None], 0.0, state)
        if action_mask is not None and self._masks:
            given["action_mask"] = torch.tensor(action_mask, device=device)
        seen = torch.from_numpy(obs).to(device)
        if self._tell is not None:
            self._tell(*_thoughts(agent, seen, given))
        with torch.random.fork_rng(devices=[], enabled=self._dice is not None):
            if self._dice is not None:
                torch.set_rng_state(self._dice)
            chosen = agent.act(seen, deterministic=self._deterministic, **given)
            if self._dice is not None:
                self._dice = torch.get_rng_state()
        if chosen.state is not None:
            self._memory = chosen.state
        return clip_actions(agent.action_space, chosen.action.cpu().numpy())

    def state_dict(self) -> dict[str, NDArray[Any] | None]:
        """Return the agent's memory and the random generator, as arrays."""
        dice = None if self._dice is None else self._dice.numpy().copy()
        return {"memory": self._memory.cpu().numpy().copy(), "dice": dice}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Raises:
            ValueError: The state belongs to a different agent.
        """
        memory = torch.from_numpy(np.array(state["memory"], np.float32))
        if memory.numel() and memory.shape[1:] != (self.agent.memory_size,):
            raise ValueError(f"the memory has shape {list(memory.shape)}, not [cars, {self.agent.memory_size}]")
        self._memory = memory
        if self._dice is not None:
            dice = torch.from_numpy(np.array(state["dice"], np.uint8))
            self._dice = check_generator_state(dice)


policy = Policy
"""Alias of `Policy`, as `policy(agent)` reads like the function that it returns."""


def _thoughts(
    agent: ActorCritic, obs: Tensor, given: dict[str, Tensor]
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Return the arguments of `ProbeSink`: values, summed over value heads, and action probabilities."""
    values = agent.value(obs, **{name: tensor for name, tensor in given.items() if name == "state"})
    found = agent.probabilities(obs, **given)
    return values.reshape(len(obs), -1).sum(dim=1).cpu().numpy(), None if found is None else found.cpu().numpy()


def exported_model(path: Path) -> Path | None:
    """Return the model file of an exported policy, given that file or its folder; None for a folder with weights."""
    if path.is_file():
        return path if path.suffix in (".onnx", ".pt") else None
    if (path / EXPORTED).is_file() or (path / "checkpoints").is_dir() or list_checkpoints(path):
        return None
    return next((path / name for name in MODELS.values() if (path / name).is_file()), None)


def load_policy(folder: Path) -> play.Policy:
    """Load an exported policy, without torch's deprecation warnings for TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return play.Policy(folder)


class ExportedAgent(ActorCritic):
    """An exported agent, which acts like the original agent; it has no value function and cannot learn."""

    def __init__(
        self, model: str | Path, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]
    ) -> None:
        """Load the policy.

        Args:
            model: Model file or its folder, see `exported_model`.
            observation_space: Observation space of one sub-environment.
            action_space: Action space of one sub-environment.

        Raises:
            CheckpointError: The model is damaged, not written by `fabric-rl export`, or made for other spaces.
            ImportError: The runtime of the model is not installed.
            TypeError: A space is none.
        """
        for name, value in {"observation_space": observation_space, "action_space": action_space}.items():
            if not isinstance(value, Space):
                raise TypeError(f"ExportedAgent: {name} must be a gymnasium.Space, got {describe_value(value)}")
        super().__init__(observation_space, action_space)
        model = exported_model(Path(model)) or Path(model)
        self.model, about = model, read_json(model.with_name(METADATA))
        try:
            shape, actions = about["inputs"]["obs"]["shape"][1:], about["action_space"]
            digest, named, form = about["sha256"], about["model"], MODELS[about["format"]]
            _ = about["squash"], about["layout"].items(), about["versions"].get, len(shape)
            self.memory_size = range(_MOST_MEMORY).index(about["memory_size"])
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            beside = f"the {METADATA} next to it is missing or incomplete"
            raise CheckpointError(f"{model} was not written by fabric-rl export: {beside} ({error})") from error
        if not named == form == model.name:  # play.py would load the named file, in that format
            raise CheckpointError(
                f"the {METADATA} next to {model} belongs to {named!r} ({about['format']}), not to this model"
            )
        if hashlib.sha256(model.read_bytes()).hexdigest() != digest:
            raise CheckpointError(f"{model} is damaged: its checksum is not the one in {METADATA}")
        own = observation_space.shape or ()
        fits = len(own) == len(shape) and all(size in (None, here) for size, here in zip(shape, own, strict=True))
        if not fits or actions != str(action_space):
            raise CheckpointError(
                f"{model} needs observations {shape} and actions {actions}, but got {list(own)} and {action_space}"
            )
        try:
            self.policy = load_policy(model.parent)
        except ImportError as error:
            raise ImportError(f"{model} needs {error.name}; pip install {error.name}") from error
        except Exception as error:  # a forged file with a right checksum may fail in any way
            raise CheckpointError(f"{model} cannot be loaded: {error}") from error

    def check_layout(self, layout: dict[str, Any]) -> None:
        """Raise CheckpointError unless columns and actions have the same meaning as when the agent was exported."""
        for part, there in self.policy.about["layout"].items():
            if there != layout.get(part):
                raise CheckpointError(
                    f"{self.model}: the {part} in {METADATA} differ from those that its settings produce here; use "
                    f"fabric-rl {self.policy.about['versions'].get('fabric-rl')}, or export the agent again"
                )

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        """Choose actions as in `ActorCritic.act`; log-probabilities are NaN.

        Raises:
            ValueError: Actions cannot be sampled, as the policy was exported without its distribution; or the model is
                forged.
        """
        out = self._run(obs, state, action_mask)
        with read_error_context(f"{self.model} cannot be played"):
            action = out["action"] if deterministic else self._draw(out)
            discrete = not isinstance(self.action_space, gymnasium.spaces.Box)
            if discrete and not all(map(self.action_space.contains, action.numpy())):
                raise ValueError(f"it chose an action that is not in {self.action_space}")
        return ActOutput(action, torch.full((len(obs),), torch.nan), None, out.get("new_state"))

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return NaN `[N]`: the value function is not exported."""
        return torch.full((len(obs),), torch.nan)

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        if not isinstance(self.action_space, gymnasium.spaces.Discrete) or self.action_space.start:
            return None
        found = self._run(obs, state, action_mask).get("probabilities")
        return None if found is None else found.squeeze(1)

    def _run(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> dict[str, Tensor]:
        with read_error_context(f"{self.model} cannot be played"):
            if action_mask is None and "action_mask" in self.policy.about["inputs"]:
                choices = self.policy.about["inputs"]["action_mask"]["shape"][1]
                action_mask = torch.ones(len(obs), choices, dtype=torch.bool)
            found = self.policy.run({"obs": obs, "state": state, "action_mask": action_mask})
            return {name: torch.from_numpy(array) for name, array in found.items()}

    def _draw(self, out: dict[str, Tensor]) -> Tensor:
        """Return actions `[N, ...]` drawn with torch's global generator."""
        space = self.action_space
        if "probabilities" in out:
            chances = out["probabilities"]
            index = torch.multinomial(chances.flatten(0, 1), 1).reshape(len(chances), *(space.shape or ()))
            return index + torch.as_tensor(np.asarray(getattr(space, "start", 0)))
        if "mean" not in out or not isinstance(space, gymnasium.spaces.Box):
            raise ValueError("it returns only its likeliest actions and cannot sample (--sample, guests)")
        action = torch.normal(out["mean"], out["std"]).reshape(-1, *space.shape)
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        return low + (high - low) * (action.tanh() + 1) / 2 if self.policy.about["squash"] else action
