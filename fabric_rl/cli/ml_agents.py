"""Conversion of Unity ML-Agents' trainer, curriculum and sampler files to a configuration of this project."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fabric_rl.base.config_files import place_of, read_yaml
from fabric_rl.base.foreign_names import ForeignSetting, is_curriculum, is_ml_agents, ml_agents_settings
from fabric_rl.base.settings import is_number
from fabric_rl.base.text import did_you_mean, escape_control_characters
from fabric_rl.types import HasParameters

_RENAMED = {
    "trainer_type": "trainer",
    "vis_encoder_type": "vis_encode_type",
    "pretraining": "behavioral_cloning",
    "play_against_current_self_ratio": "play_against_latest_model_ratio",
    "play_against_current_best_ratio": "play_against_latest_model_ratio",
}
"""Names in other versions of ML-Agents -> the names in `foreign_names.yaml`."""
_WITHOUT_NAME = ("hyperparameters", "network_settings", "memory")
"""Sections of the new layout whose settings the old layout has without a section."""
_SIGNALS = {"curiosity": "Curiosity", "rnd": "RND", "gail": "GAIL"}
_SAMPLERS = {"uniform": "Uniform", "gaussian": "Gaussian", "multirange_uniform": "MultirangeUniform"}
_SAMPLERS |= {"multirangeuniform": "MultirangeUniform", "constant": "Constant"}
_DEFAULTS = {"uniform": {"min_value": 0.0, "max_value": 1.0}, "gaussian": {"mean": 1.0, "st_dev": 1.0}}
_COMPUTED = ("trainer", "buffer_size", "time_horizon", "hidden_units", "num_layers", "learning_rate_schedule")
_COMPUTED += ("use_recurrent", "beta", "epsilon", "beta_schedule", "epsilon_schedule", "steps_per_update")
_COMPUTED += ("reward_signal_steps_per_update", "reward_signal_num_update", "measure", "min_lesson_length")
_COMPUTED += ("signal_smoothing",)
"""Settings that are not simply renamed."""
_OF_SIGNAL = {
    "strength": "strength",
    "gamma": "gamma",
    "encoding_size": "encoding_size",
    "learning_rate": "learning_rate",
}
_OF_SIGNAL |= {"network_settings.hidden_units": "encoding_size", "network_settings.num_layers": "hidden_sizes"}
_LARGEST, _LEAST_RATIO = 1e18, 1e-3


@dataclass(frozen=True)
class Given:
    """A setting that was found in a file."""

    value: Any
    file: str
    names: tuple[str, ...]
    """Names of the sections and of the setting, from outside in."""

    @property
    def place(self) -> str:
        """File and line."""
        flag = "--" + ".".join(self.names)
        return place_of(flag, self.file) or self.file

    def fail(self, problem: str) -> ValueError:
        """Return an error with file and line."""
        return ValueError(f"{self.place}: {' > '.join(self.names)}: {problem}")


Settings = dict[str, Given]
"""Path of a setting, as in `foreign_names.yaml` -> the setting."""


@dataclass
class Project:
    """Everything that ML-Agents' files say, before it is converted."""

    behaviors: dict[str, Settings] = field(default_factory=dict)
    run: Settings = field(default_factory=dict)
    """Settings of the whole run."""
    curricula: dict[str, dict[str, Given]] = field(default_factory=dict)
    """Behavior -> name of a setting -> setting, in the old layout."""
    lessons: dict[str, Given] = field(default_factory=dict)
    """Parameter -> list of lessons, in the new layout."""
    samplers: dict[str, Given] = field(default_factory=dict)
    """Parameter -> sampler."""


def read_project(files: Sequence[Path]) -> Project:
    """Read files of ML-Agents; a folder stands for the files in it, as with its metacurricula.

    Raises:
        ValueError: A file is malformed or not of ML-Agents, or has a setting that ML-Agents does not know; the message
            begins with file and line.
    """
    project = Project()
    for path in files:
        inside = sorted(each for each in path.glob("*") if each.suffix in (".json", ".yaml", ".yml"))
        for file in inside if path.is_dir() else [path]:
            try:
                content = read_yaml(file, foreign=True)
            except ValueError as error:
                raise ValueError(str(error).removeprefix("--config ")) from error
            if not is_ml_agents(content):
                raise ValueError(f"{file}, line 1: this is not a trainer, curriculum or sampler file of ML-Agents")
            _add_file(project, str(file), content)
    return project


def _add_file(project: Project, file: str, content: dict[str, Any]) -> None:
    if is_curriculum(content):  # one file per behavior
        _add_curriculum(project, Path(file).stem, Given(content, file, ()))
        return
    new = not content.keys().isdisjoint(("behaviors", "default_settings"))
    trainers: dict[str, Given] = {}
    default = Given({}, file, ())
    for name, value in content.items():
        given = Given(value, file, (str(name),))
        if name in ("default", "default_settings"):
            default = given
        elif name in ("behaviors", "curriculum"):
            for each, inner in _section(given).items():
                target = Given(inner, file, (name, str(each)))
                if name == "behaviors":
                    trainers[str(each)] = target
                else:
                    _add_curriculum(project, str(each), target)
        elif name in ("environment_parameters", "parameter_randomization"):
            for each, inner in _section(given).items():
                _add_parameter(project, str(each), Given(inner, file, (name, str(each))))
        elif name in ("env_settings", "engine_settings", "checkpoint_settings", "torch_settings", "debug"):
            project.run |= flatten(given, (str(name),))
        elif isinstance(value, dict) and is_curriculum(value):
            _add_curriculum(project, str(name), given)
        elif name == "resampling-interval" or (isinstance(value, dict) and {"sampler-type", "sampler_type"} & {*value}):
            _add_parameter(project, str(name), given)
        elif not new and (isinstance(value, dict) or (isinstance(value, str) and value in content)):
            while isinstance(given.value, str) and given.value != name:  # another name for a behavior
                given = Given(content[given.value], file, (given.value,))
            trainers[str(name)] = given
        else:
            raise given.fail(
                f"ML-Agents has no such section{did_you_mean(str(name), ['behaviors', 'default_settings'])}"
            )
    defaults = flatten(default)
    for name, given in trainers.items():
        own = flatten(given)
        sections = set() if new else {path.partition(".")[0] for path in own if "." in path}
        kept = {path: each for path, each in defaults.items() if path.partition(".")[0] not in sections}
        project.behaviors[name] = _checked({**kept, **own})


def _section(given: Given) -> dict[str, Any]:
    if given.value is None:
        return {}
    if not isinstance(given.value, dict):
        raise given.fail(f"must be a section with settings, got {given.value!r:.60}")
    return given.value


def _add_parameter(project: Project, name: str, given: Given) -> None:
    if name in ("resampling-interval", "resampling_interval"):
        project.run["resampling_interval"] = given
    elif isinstance(given.value, dict) and "curriculum" in given.value:
        project.lessons[name] = Given(given.value["curriculum"], given.file, (*given.names, "curriculum"))
    else:
        project.samplers[name] = given


def _add_curriculum(project: Project, behavior: str, given: Given) -> None:
    known = ("measure", "thresholds", "min_lesson_length", "signal_smoothing", "parameters")
    found = {name: Given(value, given.file, (*given.names, name)) for name, value in _section(given).items()}
    for name, each in found.items():
        if name not in known:
            raise each.fail(f"a curriculum has no such setting{did_you_mean(name, list(known))}")
    for name, kind in {"thresholds": list, "parameters": dict}.items():
        if name not in found or not isinstance(found[name].value, kind):
            raise found.get(name, given).fail(f"a curriculum needs {name}")
    for name, values in found["parameters"].value.items():
        if not isinstance(values, list) or len(values) != len(found["thresholds"].value) + 1:
            raise Given(values, given.file, (*found["parameters"].names, name)).fail(
                f"must be a list with one value more than there are thresholds ({len(found['thresholds'].value)})"
            )
    project.curricula[behavior] = found


def flatten(given: Given, path: tuple[str, ...] = ()) -> Settings:
    """Return the settings of a section by path; a section without any stands for itself, with the value None."""
    found: Settings = {}
    if not isinstance(given.value, dict):
        return {".".join(path): given}
    for name, value in given.value.items():
        inner = Given(value, given.file, (*given.names, str(name)))
        own = _RENAMED.get(str(name), str(name))
        bare = own in _WITHOUT_NAME and path[:1] != ("reward_signals",)
        if own == "memory" and value is not None:
            found["use_recurrent"] = Given(True, inner.file, inner.names)
        found |= flatten(inner, path if bare and isinstance(value, dict) else (*path, own))
    return found if found or not path else {".".join(path): Given(None, given.file, given.names)}


def find_row(path: str, trainer: str) -> ForeignSetting | None:
    """Return the row of a setting in `foreign_names.yaml`, or None if the trainer, ppo or sac, has no such setting."""
    rows, (first, *others) = ml_agents_settings(trainer), path.split(".")
    return rows.get(path, rows.get(".".join([first, "*", *others[1:]])))


def _checked(settings: Settings) -> Settings:
    """Return settings with values of the right types; raise a ValueError for those that ML-Agents does not know."""
    checked: Settings = {}
    for path, given in settings.items():
        rows = [row for row in (find_row(path, "ppo"), find_row(path, "sac")) if row]
        is_section = given.value is None and any(find_row(f"{path}.{name}", "ppo") for name in ("gamma", "window"))
        if not rows and not is_section and path not in ("reward_signals", "behavioral_cloning", *_WITHOUT_NAME):
            known = [*{name.rpartition(".")[2] for kind in ("ppo", "sac") for name in ml_agents_settings(kind)}]
            raise given.fail(f"ML-Agents has no such setting{did_you_mean(path.rpartition('.')[2], known)}")
        value = _converted(given, rows[0].default) if rows and given.value is not None else given.value
        checked[path] = Given(value, given.file, given.names)
    if "trainer" in checked and checked["trainer"].value not in ("ppo", "sac", "poca"):
        raise checked["trainer"].fail(f"must be ppo, sac or poca, got {_as_text(checked['trainer'].value)}")
    return checked


def _converted(given: Given, like: Any) -> Any:  # noqa: ANN401 - of the type of `like`
    """Return the value of a setting as the type of `like`; YAML reads 5.0e5 as a text."""
    value = given.value
    if like is None:
        return value
    if isinstance(like, bool | str):
        if not isinstance(value, type(like)):
            raise given.fail(
                f"must be {'true or false' if isinstance(like, bool) else 'a word'}, got {_as_text(value)}"
            )
        return value
    with suppress(TypeError, ValueError):
        number = float(value)
        if not isinstance(value, bool) and abs(number) < _LARGEST:  # not NaN
            return int(number) if isinstance(like, int) else number
    raise given.fail(f"must be a number, got {_as_text(value)}")


def _as_text(value: Any) -> str:  # noqa: ANN401 - any YAML
    return escape_control_characters(json.dumps(value, default=str))[:80]


@dataclass
class Target:
    """The environment to train in, as far as a conversion depends on it."""

    env: dict[str, Any]
    """Section `env`: class path and settings."""
    name: str
    """Name for messages."""
    copies: str | None = None
    """Its setting for the number of copies; None: it has none."""
    given_copies: int | None = None
    """The number of copies, if it was given."""
    agents: int = 1
    """Agents in each copy."""
    images: bool = False
    teams: bool = False
    parameters: HasParameters | None = None
    """The environment itself, if it has parameters."""


class Conversion:
    """Conversion of one behavior.

    Attributes:
        config: Content of the configuration.
        remarks: Setting of the configuration -> comment.
        same: Settings taken over as they are.
        other: Settings taken over with another meaning, followed by the meaning there and here.
        impossible: Settings that have no counterpart, and why.
    """

    def __init__(
        self,
        project: Project,
        behavior: str | None,
        target: Target,
        demos: Sequence[Path],
        can_clone: Callable[[str], bool],
    ) -> None:
        """Convert a behavior.

        Args:
            project: The files.
            behavior: Name of the behavior; None: ML-Agents' defaults.
            target: The environment to train in.
            demos: Demonstrations in place of Unity's.
            can_clone: Function that says of a class path whether the agent can imitate while it learns.
        """
        self.config: dict[str, Any] = {}
        self.remarks: dict[str, str] = {}
        self.same: list[str] = []
        self.other: list[tuple[str, str, str]] = []
        self.impossible: list[str] = []
        self._given = project.behaviors[behavior] if behavior else {}
        self._target, self._demos = target, [demo.as_posix() for demo in demos]
        self._used: dict[str, list[str]] = {}
        self._denied: dict[str, str] = {}
        trainer = self._given["trainer"].value if "trainer" in self._given else "ppo"
        self._kind = "sac" if trainer == "sac" else "ppo"
        if trainer == "poca":
            self._denied["trainer"] = "no critic here sees a whole team; the behavior trains with PPO"
        agent = self._convert_trainer()
        self._convert_signals()
        if self._has("behavioral_cloning"):
            reason = (
                "" if can_clone(agent) else f"{agent} cannot imitate while it learns; fabric-rl clone does it before"
            )
            self._convert_section("behavioral_cloning", "cloning", "fabric_rl.imitation.Cloning", reason, self._demos)
        if self._has("self_play"):
            reason = "" if target.teams else f"{target.name} has no teams"
            self._convert_section("self_play", "self_play", "fabric_rl.selfplay.SelfPlay", reason)
        self._note_settings(self._given)
        self._convert_curricula(project, behavior)
        self._convert_samplers(project)
        self._convert_run(project)
        if others := [name for name in project.behaviors if name != behavior]:
            self.impossible.append(
                f"behaviors {', '.join(others)}: a run trains one behavior; --behavior NAME converts another one, "
                "--behavior all each to a file of its own (two agents in one game: docs/two_policies.md)"
            )
        self.config["env"] = target.env

    def _has(self, section: str) -> bool:
        return any(f"{path}.".startswith(f"{section}.") for path in self._given)

    def _value(self, path: str) -> Any:  # noqa: ANN401 - of the setting's type
        """Return the value of a setting, or ML-Agents' default; None if there is none."""
        if path in self._given and self._given[path].value not in (None, ""):
            return self._given[path].value
        row = find_row(path, self._kind)
        return None if row is None or row.default == "" else row.default

    def _put(self, here: str, value: Any, *sources: str) -> None:  # noqa: ANN401 - any YAML
        """Set `agent.actor_lr` or the like, which comes from these settings of ML-Agents."""
        section: dict[str, Any] = self.config
        *outer, name = here.split(".")
        for each in outer:
            section = section.setdefault(each, {}).setdefault("init_args", {})
        section[name] = value
        left_out = [path for path in sources if path not in self._given]
        names = [" > ".join(path.split(".")[-2:]) for path in sources]
        text = "" if names == [name] else ", ".join(names)
        self.remarks[here] = f"{text} (ML-Agents' default)".lstrip() if left_out == [*sources] and sources else text
        for path in sources:
            self._used.setdefault(path, []).append(here if isinstance(value, dict) else f"{here}: {_flow(value)}")

    def _convert_trainer(self) -> str:
        """Convert the settings of PPO or SAC and of the networks, and return the class path of the agent."""
        sac, recurrent, images = self._kind == "sac", bool(self._value("use_recurrent")), self._target.images
        layers = [self._value("hidden_units")] * self._value("num_layers")
        name = "SACLightningAgent" if sac else "RecurrentPPOAgent" if recurrent else "PPOLightningAgent"
        agent = f"agents.{'ConvPPOAgent' if images and not (sac or recurrent) else name}"
        self.config["agent"] = {"class_path": agent, "init_args": {}}
        self._used["trainer"] = self._used["use_recurrent"] = [agent]
        left_out = {*_COMPUTED, *(() if recurrent else ("memory_size", "sequence_length"))}
        left_out |= set() if agent == "agents.PPOLightningAgent" else {"shared_critic"}
        left_out |= {"normalize"} if agent == "agents.ConvPPOAgent" else {"vis_encode_type"}
        for path, row in ml_agents_settings(self._kind).items():
            value = self._value(path)
            if "." not in path and path not in left_out and row.default is not None and value is not None:
                for here in row.to:
                    self._put(here, value, path)
        if agent == "agents.ConvPPOAgent":
            self._denied["normalize"] = "pixels are always scaled to 0..1"
            self._put("agent.hidden_sizes", layers, "hidden_units", "num_layers")
        elif name == "RecurrentPPOAgent":  # heads follow the memory directly, as in ML-Agents
            self._put("agent.hidden_sizes", layers, "hidden_units", "num_layers")
            self._put("agent.actor_hidden_sizes", [])
            self._put("agent.critic_hidden_sizes", [])
        else:
            self._put("agent.actor_hidden_sizes", layers, "hidden_units", "num_layers")
            self._put("agent.critic_hidden_sizes", layers, "hidden_units", "num_layers")
        self._put("agent.activation", "torch.nn.SiLU")
        self.remarks["agent.activation"] = "ML-Agents' activation (swish)"
        self._put("max_grad_norm", 0)
        self.remarks["max_grad_norm"] = "ML-Agents clips no gradients"
        self._put("lr_schedule", self._value("learning_rate_schedule"), "learning_rate_schedule")
        (self._size_sac if sac else self._size_ppo)(recurrent)
        return agent

    def _size_ppo(self, recurrent: bool) -> None:
        """Set the sizes of rollouts and minibatches, and the schedules."""
        buffer, batch = self._value("buffer_size"), self._value("batch_size")
        steps = max(1, min(self._value("time_horizon"), buffer))
        sequence = min(self._value("sequence_length"), steps) if recurrent else 1
        against = self._target.teams and self._has("self_play")  # then one of two teams learns
        agents = max(1, self._target.agents // (2 if against else 1))
        copies = self._target.given_copies
        if copies:
            steps = max(sequence, buffer // (copies * agents))
        steps = steps // sequence * sequence
        copies = copies or max(1, round(buffer / steps / agents))
        batch = max(sequence, min(batch, steps * copies * agents) // sequence * sequence)
        self._put("num_steps", steps, "time_horizon", "buffer_size")
        if self._target.copies:
            self._target.env["init_args"][self._target.copies] = copies
            self._used["buffer_size"].append(f"env.{self._target.copies}: {copies}")
            self.remarks[f"env.{self._target.copies}"] = "buffer_size / time_horizon" + (
                f" / {agents} learning agents each" if agents > 1 else ""
            )
        self._put("minibatch_size", batch, "batch_size")
        if recurrent:
            self._put("agent.sequence_length", sequence, "sequence_length")
        for path, end, schedule in (("epsilon", 0.1, "epsilon_schedule"), ("beta", 1e-5, "beta_schedule")):
            by = schedule if schedule in self._given else "learning_rate_schedule"
            falls = self._value(by) == "linear"
            line = {"start": self._value(path), "end": end}
            value = {"class_path": "fabric_rl.schedules.Linear", "init_args": line} if falls else self._value(path)
            here = "agent.clip_coef" if path == "epsilon" else "agent.entropy_coef"
            self._put(here, value, path, *([by] if falls or by == schedule else []))
        for here, as_there in {"agent.clip_value_loss": True, "combine_advantages": "mean"}.items():
            self._put(here, as_there)
            self.remarks[here] = "as in ML-Agents, which has no setting for it"

    def _size_sac(self, recurrent: bool) -> None:
        """Set the size of the replay buffer, and how often SAC learns."""
        self._put("buffer_size", self._value("buffer_size"), "buffer_size")
        each = self._value("steps_per_update")
        if "steps_per_update" in self._given:
            self._put("train_interval", max(1, round(each)), "steps_per_update")
            self._put("num_update", max(1, round(1 / max(each, _LEAST_RATIO))), "steps_per_update")
        if recurrent:
            length, batch = self._value("sequence_length"), self.config["batch_size"]
            self._put("batch_size", max(1, batch // length) * length, "batch_size")
        if self._target.copies:
            self._target.env["init_args"][self._target.copies] = self._target.given_copies or 1
            self.remarks[f"env.{self._target.copies}"] = "more of them collect faster, with fewer updates for each step"

    def _convert_signals(self) -> None:
        """Convert the reward signals."""
        paths = [path.split(".") for path in self._given if path.startswith("reward_signals.")]
        names = list(dict.fromkeys(path[1] for path in paths if path[1] != "reward_signal_num_update"))
        for name in dict.fromkeys(["extrinsic", *names]):
            base = f"reward_signals.{name}"
            if name == "extrinsic":
                self._put(
                    "extrinsic_strength",
                    self._value(f"{base}.strength") if name in names or not names else 0.0,
                    f"{base}.strength",
                )
                self._put("gamma", self._value(f"{base}.gamma"), f"{base}.gamma")
                continue
            if name not in _SIGNALS:
                raise self._given[next(path for path in self._given if f"{path}.".startswith(f"{base}."))].fail(
                    f"there is no reward signal {name}{did_you_mean(name, [*_SIGNALS, 'extrinsic'])}"
                )
            if name == "gail" and not self._demos:
                self._denied[base] = ml_agents_settings(self._kind)[f"{base}.demo_path"].why
                continue
            if base in self._given and self._given[base].value is None:  # an empty section
                self._used[base] = [f"fabric_rl.signals.{_SIGNALS[name]}"]
            made: dict[str, Any] = {}
            for key in (*_OF_SIGNAL, *(("use_actions", "use_vail") if name == "gail" else ())):
                path = f"{base}.{key}"
                own = _OF_SIGNAL.get(key, key)
                if key.startswith("network_settings") and path not in self._given:
                    continue
                value = self._value(path)
                value = (
                    [self._value(f"{base}.network_settings.hidden_units")] * max(0, value - 1)
                    if own == "hidden_sizes"
                    else value
                )
                made[own] = value
                self._used.setdefault(path, []).append(f"{_SIGNALS[name]} {own}: {_flow(value)}")
            if name == "gail":
                made["demos"] = self._demos
                self._used[f"{base}.demo_path"] = [f"{_SIGNALS[name]} demos: {_flow(self._demos)}"]
            self.config.setdefault("signals", []).append(
                {"class_path": f"fabric_rl.signals.{_SIGNALS[name]}", "init_args": made}
            )
        if self._kind == "sac" and "signals" in self.config:
            for path in ("reward_signals.reward_signal_num_update", "reward_signal_steps_per_update"):
                updates = self._value(path)
                if path in self._given and path.endswith("steps_per_update"):
                    updates = max(1, round(self.config["train_interval"] / max(updates, _LEAST_RATIO)))
                if path in self._given:
                    self._put("reward_signal_num_update", updates, path)

    def _convert_section(
        self, section: str, here: str, class_path: str, reason: str, demos: Sequence[str] | None = None
    ) -> None:
        """Convert a section whose settings keep their names; `reason` says why it is not possible, if it is not."""
        if demos is not None and not demos and not reason:
            reason = ml_agents_settings(self._kind)[f"{section}.demo_path"].why
        if reason:
            self._denied[section] = reason
            return
        self.config[here] = {"class_path": class_path, "init_args": {}}
        for path, row in ml_agents_settings(self._kind).items():
            value = self._value(path)
            if path.startswith(f"{section}.") and row.to and value is not None:
                if path == "self_play.team_change" and path not in self._given:
                    value = 5 * self._value("self_play.save_steps")
                if path.endswith(".demo_path"):
                    value = list(demos or ())
                if value or path.partition(".")[2] not in ("batch_size", "num_epoch"):  # 0: those of PPO
                    self._put(row.to[0], value, path)

    def _note(self, given: Given, row: ForeignSetting, to: Sequence[str], reason: str = "") -> None:
        """File one setting under one of the three lists."""
        said = f"{' > '.join(given.names[-2:])} {_as_text(given.value)}"
        if reason or not row.to:
            self.impossible.append(f"{said}: {reason or row.why}")
            return
        said = f"{said} -> {', '.join(to or row.to)}"
        if row.there and given.value not in row.same:
            self.other.append((said, row.there, row.here))
        else:
            self.same.append(said)

    def _note_settings(self, settings: Settings) -> None:
        """File all settings of a behavior; those of a section that cannot be converted share a line."""
        denied: dict[str, list[str]] = {}
        for path, given in settings.items():
            section = next((name for name in self._denied if f"{path}.".startswith(f"{name}.")), None)
            row = find_row(path, self._kind)
            if section is not None and section != path:
                denied.setdefault(section, []).append(f"{path.removeprefix(f'{section}.')} {_as_text(given.value)}")
            elif section is not None:
                denied.setdefault(section, []).append(_as_text(given.value))
            elif row is None and find_row(path, "ppo" if self._kind == "sac" else "sac"):
                self._note(given, ForeignSetting(why=f"{self._kind.upper()} has no such setting"), ())
            elif given.value in (None, "") or row is None:
                self.same.append(f"{' > '.join(given.names[-2:])} (empty) -> ML-Agents' defaults")
            elif path in self._used or not row.to:
                self._note(given, row, list(dict.fromkeys(self._used.get(path, ()))))
            else:
                no_use = (
                    "it has no effect without use_recurrent" if path in ("memory_size", "sequence_length") else row.why
                )
                self._note(given, row, (), no_use or "it has no effect here")
        for section, parts in denied.items():
            self.impossible.append(f"{section.replace('.', ' > ')} ({', '.join(parts)}): {self._denied[section]}")

    def _missing_parameter(self, name: str, values: Sequence[Any]) -> str:
        """Return the reason why the environment cannot set a parameter to these values, or an empty string."""
        if self._target.parameters is None:
            return f"{self._target.name} has no parameters that can be changed"
        try:
            for value in values:
                self._target.parameters.check_parameters({name: value})
        except (TypeError, ValueError) as error:
            return str(error)
        return ""

    def _convert_curricula(self, project: Project, behavior: str | None) -> None:
        """Convert the curricula of both layouts to lessons."""
        rows, curricula = ml_agents_settings("ppo"), dict[str, Any]()
        for name, found in project.curricula.items():
            if name != behavior and (name in project.behaviors or len(project.curricula) > 1) and project.behaviors:
                whose = f"it belongs to {name}" + ("" if name in project.behaviors else ", which no trainer file has")
                self.impossible.append(f"curriculum {name}: {whose}; see --behavior")
                continue
            parameters = dict(found["parameters"].value)
            for parameter, values in found["parameters"].value.items():
                if reason := self._missing_parameter(parameter, values):
                    del parameters[parameter]
                    self.impossible.append(f"{name} > parameters > {parameter} {_as_text(values)}: {reason}")
            settings = {key: each.value for key, each in found.items()} | {"parameters": parameters}
            settings["min_lesson_length"] = max(1, int(settings.get("min_lesson_length", 100)))
            settings.setdefault("measure", "progress")
            if parameters:
                curricula[name] = settings
                for key, given in found.items():
                    shown = given if key != "parameters" else Given(parameters, given.file, given.names)
                    self._note(shown, rows[key], [f"curricula.{name}.{key}"])
        for parameter, given in project.lessons.items():
            made, reason = self._lessons(parameter, given, behavior)
            if reason:
                self.impossible.append(f"environment_parameters > {parameter}: {reason}")
            else:
                curricula[parameter] = made
                self.same.append(
                    f"environment_parameters > {parameter}, {len(made['thresholds']) + 1} lessons -> curricula.{parameter}"
                )
        if curricula:
            self.config["callbacks"] = [{"class_path": "fabric_rl.Lessons", "init_args": {"curricula": curricula}}]

    def _lessons(self, parameter: str, given: Given, behavior: str | None) -> tuple[dict[str, Any], str]:
        """Return a curriculum for the lessons of one parameter, or the reason why there is none.

        Raises:
            ValueError: The lessons are malformed.
        """
        if not isinstance(given.value, list) or not given.value:
            raise given.fail("must be a list of lessons")
        lessons = []
        for each in given.value:
            inner = next(iter(each.values())) if isinstance(each, dict) and len(each) == 1 else each
            name = str(next(iter(each))) if inner is not each else "value"
            if not isinstance(inner, dict) or "value" not in inner:
                raise Given(inner, given.file, (*given.names, name)).fail("a lesson needs a value")
            lessons.append(inner)
        values, ends = (
            [_lesson_value(lesson["value"]) for lesson in lessons],
            [lesson.get("completion_criteria") or {} for lesson in lessons[:-1]],
        )
        if any("threshold" not in end for end in ends):
            raise given.fail("every lesson but the last needs completion_criteria with a threshold")
        if None in values:
            return {}, "a lesson here has a number or a uniform range, no other sampler"
        whose = {str(end["behavior"]) for end in ends if "behavior" in end}
        if behavior is not None and whose - {behavior}:
            return {}, f"it follows {', '.join(sorted(whose))}, which trains in a run of its own"
        measures = {str(end.get("measure", "reward")) for end in ends}
        if len(measures) > 1:
            return {}, "all lessons of a parameter need the same measure here"
        measure = "".join(measures) or "progress"
        if any(end.get("require_reset") for end in ends):
            self.impossible.append(f"{parameter} > require_reset: a new lesson always waits for the next episode here")
        made = {
            "measure": {"Elo": "selfplay/rating"}.get(measure, measure),
            "thresholds": [end["threshold"] for end in ends],
            "min_lesson_length": max([1, *(int(end.get("min_lesson_length", 0)) for end in ends)]),
            "signal_smoothing": any(end.get("signal_smoothing", True) for end in ends),
            "parameters": {parameter: values},
        }
        return made, self._missing_parameter(parameter, values)

    def _convert_samplers(self, project: Project) -> None:
        """Convert samplers to random parameters of the environment."""
        samplers = {}
        for name, given in project.samplers.items():
            kind, settings = _sampler(given)
            if kind not in _SAMPLERS:
                reason = f"ML-Agents has no sampler {kind}; write a subclass of envs.Sampler (docs/curriculum.md)"
            else:
                middle = settings.get("intervals", [[0]])[0][0] if kind.startswith("multi") else [*settings.values()][0]
                reason = self._missing_parameter(name, [middle])
            said = f"{name} {kind} {_as_text(settings)}"
            if reason:
                self.impossible.append(f"{said}: {reason}")
                continue
            samplers[name] = {"class_path": f"envs.{_SAMPLERS[kind]}", "init_args": settings}
            self.same.append(f"{said} -> env.parameters.samplers.{name}")
        if samplers:
            made: dict[str, Any] = {"samplers": samplers}
            if given_interval := project.run.get("resampling_interval"):
                made["resampling_interval"] = _converted(given_interval, 1)
            self._target.env["init_args"]["parameters"] = {"class_path": "envs.ParameterRandomizer", "init_args": made}

    def _convert_run(self, project: Project) -> None:
        """Convert settings of the whole run."""
        for path, given in project.run.items():
            row = ml_agents_settings("ppo").get(path)
            if row is None:
                raise given.fail("ML-Agents has no such setting")
            if path == "env_settings.seed" and _converted(given, 0) >= 0:
                self.config["seed"] = given.value
                self.same.append(f"seed {given.value} -> seed: {given.value}")
            elif path == "torch_settings.device" and given.value:
                kind, _, number = str(given.value).partition(":")
                self.config["accelerator"] = "cpu" if kind == "cpu" else "gpu"
                self.config |= {"devices": f"{number},"} if number else {}
                self._note(given, row, [f"accelerator: {self.config['accelerator']}"])
            elif row.to and not row.there and given.value not in (None, False):
                self.config[row.to[0]] = given.value
                self._note(given, row, [f"{row.to[0]}: {_flow(given.value)}"])
            elif path == "resampling_interval" and "parameters" not in self._target.env["init_args"]:
                self._note(given, row, (), "there is nothing to sample")
            elif given.value in (None, False):
                self.same.append(f"{' > '.join(given.names[-2:])} {_as_text(given.value)} -> (off here, too)")
            else:
                self._note(given, row, ["seed: 0"] if path == "env_settings.seed" else ())


def _lesson_value(value: Any) -> Any:  # noqa: ANN401 - a number or [min, max]; None if it is neither
    if is_number(value):
        return value
    if isinstance(value, dict) and value.get("sampler_type") == "uniform":
        settings = _DEFAULTS["uniform"] | (value.get("sampler_parameters") or {})
        return [settings["min_value"], settings["max_value"]]
    return None


def _sampler(given: Given) -> tuple[str, dict[str, Any]]:
    """Return the name of a sampler in ML-Agents, and its settings; raise a ValueError if they are malformed."""
    if is_number(given.value):
        return "constant", {"value": given.value}
    settings = dict(_section(given))
    kind = str(settings.pop("sampler-type", settings.pop("sampler_type", "")))
    settings = dict(settings.pop("sampler_parameters", settings) or {})
    settings.pop("seed", None)
    known = {"uniform": ["min_value", "max_value"], "gaussian": ["mean", "st_dev"], "constant": ["value"]}
    known |= dict.fromkeys(("multirange_uniform", "multirangeuniform"), ["intervals"])
    if not kind:
        raise given.fail("needs a sampler-type")
    for name in settings if kind in known else ():
        if name not in known[kind]:
            raise Given(0, given.file, (*given.names, name)).fail(f"the sampler {kind} has no such setting")
    return kind, _DEFAULTS.get(kind, {}) | settings


def _flow(value: Any) -> str:  # noqa: ANN401 - any YAML
    """Return a value as YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False).removesuffix("...\n").strip()


def to_yaml(config: dict[str, Any], remarks: dict[str, str], path: str = "", indent: str = "") -> Iterator[str]:
    """Yield the lines of a configuration, with comments."""
    for name, value in config.items():
        here = path if name == "init_args" else f"{path}.{name}".lstrip(".")
        if isinstance(value, dict) and (path == "" or name == "init_args"):
            yield f"{indent}{name}:"
            yield from to_yaml(value, remarks, here, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{indent}{name}:"
            for each in value:
                first, *others = to_yaml(each, {}, here, indent + "  ")
                yield f"{indent}- {first.strip()}"
                yield from others
        else:
            remark = remarks.get(here, "")
            yield f"{indent}{name}: {_flow(value)}" + (f"  # {remark}" if remark else "")
