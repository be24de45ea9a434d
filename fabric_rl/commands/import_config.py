"""`fabric-rl import`: converts files of Unity ML-Agents to a configuration."""

import inspect
import re
from collections.abc import Sequence
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from jsonargparse import ArgumentError

from agents.parts.encoders import is_image
from envs.factories import unwrap_partial
from envs.obs.combinators import RoleObs
from fabric_rl.args import check_run_id
from fabric_rl.base.argv import DEFAULT_CONFIG, flag_names, last_flag_value
from fabric_rl.base.config_files import to_flag
from fabric_rl.base.files import write_text
from fabric_rl.base.text import escape_control_characters
from fabric_rl.callback import Callback, TrainState
from fabric_rl.cli.command_line import read_settings
from fabric_rl.cli.ml_agents import Conversion, Target, to_yaml
from fabric_rl.cli.ml_agents_files import Project, read_project
from fabric_rl.cli.ml_agents_roles import convert_together
from fabric_rl.commands.output import check_file
from fabric_rl.learning.imitation import CanImitate
from fabric_rl.types import EnvFactory, HasParameters, HasTeams

_FIRST = "# Converted from Unity ML-Agents by fabric-rl import"
_WITH_ID = {"--env_id": "env_id", "--num_envs": "num_envs", "--env_kwargs": "settings", "--wrappers": "wrappers"}
"""Flags of the training -> settings of `envs.GymnasiumEnvs`."""
_TITLES = ("Taken over as is", "Taken over with another meaning", "Not possible")


class _Ready(Exception):
    """Everything is built and checked."""


class _DryRun(Callback):
    """Stop before the first rollout."""

    def on_iteration_start(self, state: TrainState) -> None:
        raise _Ready


def import_config(
    files: Sequence[Path],
    training: Sequence[str],
    out: Path = Path("ours.yaml"),
    behavior: str | None = None,
    demos: Sequence[Path] = (),
) -> int:
    """Convert files of Unity ML-Agents to a configuration, and say what became of every setting.

    The files can have the old layout (trainer, curriculum and sampler files; a folder of curricula) or the new one
    (behaviors, environment_parameters, ...). Everything is built once as for a training before the result is written.

    Args:
        files: Trainer, curriculum and sampler files, .yaml or .json, or folders with them.
        training: The environment, as in train_fabric.py: --env_id CartPole-v1, or --env CLASS with its settings.
        out: YAML file to write; with --behavior all, OUT_BEHAVIOR.yaml for each behavior.
        behavior: Name of the behavior to convert, or all. Default: the first; with --env.obs for as many roles as there
            are behaviors, such as envs.TeamRoleObs, one run for all.
        demos: Demonstrations (.frd) in place of Unity's .demo files.
    """
    check_file(out, "--out")
    pairs = zip(["", *training], training, strict=False)
    training = [word for before, word in pairs if word.startswith("--") or before.startswith("--")]  # without the files
    project = read_project(files)
    names: list[str | None] = [*project.behaviors] or [None]
    if behavior is not None and behavior not in ("all", *names):
        raise ValueError(f"--behavior {behavior}: there is none; the files have {', '.join(map(str, names))}")
    names = names if behavior == "all" else [behavior or names[0]]
    made = []
    for name in names:
        path = out.with_name(f"{out.stem}_{name}{out.suffix}") if behavior == "all" else out
        check_run_id(path.name, "--out")
        if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(_FIRST):
            raise FileExistsError(f"--out {path}: this file was not written by fabric-rl import; choose another name")
        found = _convert(project, name, training, demos, together=behavior is None and len(names) == 1)
        text = _with_header(found, files, ", ".join(project.behaviors) if "trainers" in found.config else name)
        _dry_run(text)
        made.append((path, found, text))
    for path, found, text in made:
        print("\n".join(_lists(found)))
        write_text(path, text)
        print(f"written: {path}; train with fabric-rl train --config {path}")
    return 0


def _convert(
    project: Project, name: str | None, training: Sequence[str], demos: Sequence[Path], together: bool
) -> Conversion:
    """Convert a behavior; with `together`, all of them if the observations have as many roles."""
    target, env = _target(training)
    shown = [demo.as_posix() for demo in demos]
    with closing(env(seed=0)) as made:
        space = made.single_observation_space
        target.images = len(space.shape or ()) > 1 and is_image(space)
        target.teams = isinstance(made, HasTeams) and made.sides is not None
        target.parameters = made if isinstance(made, HasParameters) else None
        if target.copies:
            target.agents = max(1, made.num_envs // target.given_copies) if target.given_copies else made.num_envs
        arguments: Any = (target, shown, lambda path: isinstance(resolve_name(path), CanImitate))
        obs = getattr(made, "obs_builder", None)
        roles = obs.roles if isinstance(obs, RoleObs) else 1
        if together and roles == len(project.behaviors) > 1:
            return convert_together(project, *arguments)
        return Conversion(project, name, *arguments)


def _target(training: Sequence[str]) -> tuple[Target, EnvFactory]:
    """Return the environment that the flags name, and its factory, for one copy unless the flags set their number."""
    names = flag_names(training)
    for name in names:
        if name.partition(".")[0] != "--env" and name not in _WITH_ID:
            raise ValueError(f"{name}: fabric-rl import takes the flags of the environment; add others to the file")
    if {"--env", "--env_id"}.isdisjoint(names):
        raise ValueError("name the environment: --env_id CartPole-v1, or --env CLASS such as envs.RocketSimPool")
    section: dict[str, Any] = {
        "class_path": last_flag_value(training, "--env") or "envs.GymnasiumEnvs",
        "init_args": {},
    }
    for name in (name for name in names if name != "--env"):
        inner, (*outer, last) = section, _WITH_ID.get(name, name.removeprefix("--env.")).split(".")
        for each in outer:  # settings of a part: its class may stand alone so far
            part = inner["init_args"].setdefault(each, {})
            inner["init_args"][each] = inner = {"class_path": part, "init_args": {}} if isinstance(part, str) else part
        inner.setdefault("init_args", {})[last] = yaml.safe_load(last_flag_value(training, name) or "true")
    settings = read_settings(import_module("train_fabric").main, [to_flag("env", section)], "", DEFAULT_CONFIG)
    factory, own = settings.arguments["env"], section["init_args"]
    target = Target(section, str(own.get("env_id", section["class_path"].rpartition(".")[2])))
    parameters = inspect.signature(unwrap_partial(factory).function).parameters
    target.copies = next((each for each in ("num_arenas", "num_envs") if each in parameters), None)
    target.given_copies = own.get(target.copies)
    if target.copies and target.given_copies is None:
        factory = partial(factory, **{target.copies: 1})
    return target, factory


def _lists(found: Conversion) -> list[str]:
    """Return the lines of the three lists."""
    others = [
        line for said, there, here in found.other for line in (said, f"    ML-Agents: {there}", f"    here: {here}")
    ]
    lines: list[str] = []
    for title, entries in zip(_TITLES, (found.same, others, found.impossible), strict=True):
        lines += [f"{title}:", *(f"  {entry}" for entry in entries or ["nothing"])]
    return lines


def _with_header(found: Conversion, files: Sequence[Path], behavior: str | None) -> str:
    """Return the text of the configuration, with the lists as comments."""
    order = sorted(found.config, key=lambda name: isinstance(found.config[name], dict | list))
    body = to_yaml({name: found.config[name] for name in order}, found.remarks)
    whose = "ML-Agents' default settings" if behavior is None else f"behavior {behavior}"
    first = f"{_FIRST}: {', '.join(file.name for file in files)}, {whose}."
    comments = [f"# {line}" if line.startswith(" ") else f"#\n# {line}" for line in _lists(found)]
    return "\n".join([escape_control_characters(first), *comments, *body]) + "\n"


def _dry_run(text: str) -> None:
    """Build and check everything that a training with this configuration needs, without its first rollout.

    Raises:
        ValueError: The configuration cannot be trained.
    """
    main = import_module("train_fabric").main
    with TemporaryDirectory() as folder:
        file = Path(folder, "dry_run.yaml")
        write_text(file, text)
        try:
            settings = read_settings(main, ["--config", str(file)], "", DEFAULT_CONFIG).arguments
        except (ArgumentError, ValueError) as error:  # the file that the message names will be gone
            raise ValueError(re.sub(rf" \({re.escape(str(file))}, line \d+\)$", "", str(error))) from error
        callbacks = settings["callbacks"]
        settings["callbacks"] = [*([callbacks] if isinstance(callbacks, Callback) else callbacks), _DryRun()]
        settings["start"] = replace(settings["start"], runs_dir=folder, run_id="dry_run", force=False, resume=False)
        settings |= {"plain": True, "logger": []}
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(_Ready):
            main(**settings)
