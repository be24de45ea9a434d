"""Conversion of the settings in Unity ML-Agents' files to a configuration of this project."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import yaml

from fabric_rl.base.foreign_names import SIGNALS, ForeignSetting, foreign_table, ml_agents_settings
from fabric_rl.base.settings import is_number
from fabric_rl.cli.ml_agents_files import Given, Project, as_text, read_sampler
from fabric_rl.types import HasParameters

_OPEN = ("", "agent.roles", "trainers")
"""Sections whose settings are written on separate lines."""
_LEAST = 1e-3
"""Least number of steps per update, so that ratios stay finite."""
_FINEST = 8
"""Largest denominator of a ratio of steps and updates."""


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


def role_of(behavior: str) -> str:
    """Return the name of a behavior's role."""
    return behavior.replace(".", "_")


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
        demos: Sequence[str],
        can_clone: Callable[[str], bool],
        roles: int = 1,
        iteration: int | None = None,
    ) -> None:
        """Convert a behavior.

        Args:
            project: The files.
            behavior: Name of the behavior; None: ML-Agents' defaults.
            target: The environment to train in.
            demos: Demonstrations in place of Unity's.
            can_clone: Function that says of a class path whether the agent can imitate while it learns.
            roles: Number of behaviors that train in the run, each in the sub-environments of one role.
            iteration: Steps of an iteration of all roles: rollouts of PPO have a multiple of it, and the interval of
                SAC divides it. Default: not known.
        """
        self.config: dict[str, Any] = {}
        self.remarks: dict[str, str] = {}
        self.same: list[str] = []
        self.other: list[tuple[str, str, str]] = []
        self.impossible: list[str] = []
        self._project, self._behavior, self._target, self._demos = project, behavior, target, list(demos)
        self._given = project.behaviors[behavior] if behavior else {}
        trainer = self._given["trainer"].value if "trainer" in self._given else "ppo"
        self._kind = "sac" if trainer == "sac" else "ppo"
        self._rows = ml_agents_settings(self._kind)
        self._roles, self._iteration = roles, iteration
        self._steps_per_round = 1  # agent-steps between two rounds of SAC's updates
        self._used: dict[str, list[str]] = {}
        self._denied: dict[str, str] = {}
        agent = self._convert_trainer(trainer == "poca")
        self._convert_signals()
        whose = agent if roles == 1 else "agents.RolesAgent"
        no_cloning = "" if can_clone(whose) else f"{whose} cannot imitate"
        no_teams = "" if target.teams else f"{target.name} has no teams"
        self._convert_section("behavioral_cloning", "cloning", "fabric_rl.imitation.Cloning", no_cloning)
        self._convert_section("self_play", "self_play", "fabric_rl.selfplay.SelfPlay", no_teams)
        self._note_settings()
        self._convert_curricula()
        self._convert_samplers()
        self._convert_run()
        if roles == 1 and (others := [name for name in project.behaviors if name != behavior]):
            self.impossible.append(
                f"behaviors {', '.join(others)}: a run trains one behavior; --behavior NAME converts another one, "
                "--behavior all each to a separate file; an --env.obs with roles, such as envs.TeamRoleObs, trains all "
                "of them in one run (docs/two_policies.md)"
            )
        self.config["env"] = target.env

    def _value(self, path: str) -> Any:  # noqa: ANN401 - of the setting's type
        """Return the value of a setting, or ML-Agents' default; None if there is none."""
        given = self._given.get(path)
        value = self._rows[path].default if given is None or given.value is None else given.value
        return None if value == "" else value

    def _put(self, here: str, value: Any, *sources: str, remark: str = "") -> None:  # noqa: ANN401 - any YAML
        """Set `agent.actor_lr` or the like, which comes from the settings `sources` of ML-Agents."""
        section: dict[str, Any] = self.config
        *outer, name = here.split(".")
        for each in outer:
            section = section.setdefault(each, {}).setdefault("init_args", {})
        section[name] = value
        names = [" > ".join(path.split(".")[-2:]) for path in sources]
        text = remark or ("" if names == [name] or sources[:1] == (here,) else ", ".join(names))
        from_file = not sources or any(path in self._given for path in sources)
        self.remarks[here] = text if from_file else f"{text} (ML-Agents' default)".lstrip()
        for path in sources:
            others = [each for each in self._used.get(path, ()) if each.partition(":")[0] != here]
            self._used[path] = [*others, here if isinstance(value, dict) else f"{here}: {flow(value)}"]

    def _convert_trainer(self, poca: bool) -> str:
        """Convert the settings of the trainer and of the networks, and return the class path of the agent."""
        recurrent = bool(self._value("use_recurrent"))
        name = "RecurrentPPOAgent" if recurrent else "ConvPPOAgent" if self._target.images else "PPOLightningAgent"
        if poca and self._target.teams and self._roles == 1 and name == "PPOLightningAgent":
            name = "POCAAgent"
        elif poca:
            why = "POCAAgent needs teams, has neither memory nor convolutions, and cannot be one of several roles"
            self._denied["trainer"] = f"{why}; the behavior trains with PPO"
        agent = "agents.SACLightningAgent" if self._kind == "sac" else f"agents.{name}"
        self.config["agent"] = {"class_path": agent, "init_args": {}}
        self._used["trainer"] = self._used["use_recurrent"] = [agent]
        lacks = {*(() if recurrent else ("memory_size", "sequence_length"))}
        lacks |= {"normalize"} if agent == "agents.ConvPPOAgent" else {"vis_encode_type"}
        lacks |= set() if agent == "agents.PPOLightningAgent" else {"shared_critic"}
        for path, row in self._rows.items():
            simple = "." not in path and path not in lacks and not row.computed and row.default is not None
            for here in row.to if simple and self._value(path) is not None else ():
                self._put(here, self._value(path), path)
        layers = [self._value("hidden_units")] * self._value("num_layers")
        shared = agent in ("agents.ConvPPOAgent", "agents.RecurrentPPOAgent")
        for each in ("hidden_sizes",) if shared else ("actor_hidden_sizes", "critic_hidden_sizes"):
            self._put(f"agent.{each}", layers, "hidden_units", "num_layers")
        for each in ("actor_hidden_sizes", "critic_hidden_sizes") if agent == "agents.RecurrentPPOAgent" else ():
            self._put(f"agent.{each}", [], remark="memory comes last in ML-Agents")
        self._put("agent.activation", "torch.nn.SiLU", remark="ML-Agents' activation (swish)")
        self._put("max_grad_norm", 0, remark="ML-Agents clips no gradients")
        self._put("lr_schedule", self._value("learning_rate_schedule"), "learning_rate_schedule")
        (self._size_sac if self._kind == "sac" else self._size_ppo)(recurrent)
        return agent

    def _learning_agents(self) -> int:
        """Return the number of agents in each copy that learn here: one of two teams, or those of a role."""
        against = self._target.teams and self._roles == 1 and any(path.startswith("self_play") for path in self._given)
        return max(1, self._target.agents // (2 if against else self._roles))

    def _size_ppo(self, recurrent: bool) -> None:
        """Set the sizes of rollouts and minibatches, and the schedules."""
        buffer, copies = self._value("buffer_size"), self._target.given_copies
        agents = self._learning_agents()
        steps = buffer // (copies * agents) if copies else min(self._value("time_horizon"), buffer)
        sequence = max(1, min(self._value("sequence_length"), steps)) if recurrent else 1
        steps = max(1, steps // sequence) * sequence
        if self._iteration:
            steps = math.ceil(steps / self._iteration) * self._iteration
        copies = copies or max(1, round(buffer / steps / agents))
        batch = min(self._value("batch_size"), steps * copies * agents)
        self._put("num_steps", steps, "time_horizon", "buffer_size")
        each = f" / {agents} learning agents each" if agents > 1 else ""
        self._put_copies(copies, f"buffer_size / time_horizon{each}")
        self._put("minibatch_size", max(1, batch // sequence) * sequence, "batch_size")
        if recurrent:
            self._put("agent.sequence_length", sequence, "sequence_length")
        for path, here, end in (("epsilon", "agent.clip_coef", 0.1), ("beta", "agent.entropy_coef", 1e-5)):
            by = f"{path}_schedule" if self._value(f"{path}_schedule") else "learning_rate_schedule"
            linear = {"start": self._value(path), "end": end}
            falls = {"class_path": "fabric_rl.schedules.Linear", "init_args": linear}
            is_linear = self._value(by) == "linear"
            self._put(
                here, falls if is_linear else self._value(path), path, *([by] if is_linear or by in self._given else [])
            )
        self._put("combine_advantages", "mean", remark="as in ML-Agents, which has no setting for it")
        self._put(
            "agent.clip_value_loss", False, remark="ML-Agents clips it by epsilon, which is slow for large returns"
        )

    def _size_sac(self, recurrent: bool) -> None:
        """Set the size of the replay buffer, and how often SAC learns."""
        self._put("buffer_size", self._value("buffer_size"), "buffer_size")
        copies, iteration = self._target.given_copies or 1, self._iteration
        number = copies * self._learning_agents()
        of_old_layout = not {"train_interval", "num_update"}.isdisjoint(self._given)
        if "steps_per_update" in self._given or not of_old_layout:
            source, remark = "steps_per_update", f"steps_per_update for {number} learning agents" if number > 1 else ""
            each = max(_LEAST, self._value(source)) / number  # steps of a sub-environment for each update
            ratio = Fraction(max(each, 1 / each)).limit_denominator(_FINEST)
            interval = ratio.numerator if each > 1 else ratio.denominator
        else:
            source, remark, interval = "train_interval", "", max(1, self._value("train_interval"))
            each = interval / max(1, self._value("num_update"))
        if iteration and iteration % interval:
            divisors = [n for n in range(1, iteration + 1) if not iteration % n]
            interval = min(divisors, key=lambda n: abs(max(1, round(n / each)) / n - 1 / each))
        self._steps_per_round = interval * number
        for name, value in (("train_interval", interval), ("num_update", max(1, round(interval / each)))):
            if source in self._given or value != self.config[name]:
                self._put(name, value, source, remark=remark)
        if recurrent:
            length = self._value("sequence_length")
            self._put("batch_size", max(1, self._value("batch_size") // length) * length, "batch_size")
        self._put_copies(copies, "more of them collect faster; num_update must grow with them")

    def _put_copies(self, copies: int, remark: str) -> None:
        if self._target.copies is None:
            self.impossible.append(f"{self._target.name} has no setting num_arenas or num_envs; set its size yourself")
            return
        self._target.env["init_args"][self._target.copies] = copies
        self.remarks[f"env.{self._target.copies}"] = remark
        if self._kind == "ppo":
            self._used["buffer_size"].append(f"env.{self._target.copies}: {copies}")

    def _convert_signals(self) -> None:
        """Convert the reward signals; if the file has others and not the environment's own, its strength is 0."""
        base = "reward_signals"
        names = dict.fromkeys(path.split(".")[1] for path in self._given if path.startswith(f"{base}."))
        for name in names:
            if name in SIGNALS:
                self._convert_section(f"{base}.{name}", "signals", f"fabric_rl.signals.{SIGNALS[name]}")
        strength = f"{base}.extrinsic.strength"
        if "extrinsic" in names or "signals" not in self.config:
            self._put("extrinsic_strength", self._value(strength), strength)
        else:
            self._put("extrinsic_strength", 0.0, remark="no extrinsic among reward_signals")
        self._put("gamma", self._value(f"{base}.extrinsic.gamma"), f"{base}.extrinsic.gamma")
        for path in (f"{base}.reward_signal_num_update", "reward_signal_steps_per_update"):
            if self._kind == "sac" and "signals" in self.config and path in self._given:
                value = self._value(path)
                if path.endswith("steps_per_update"):
                    value = max(1, round(self._steps_per_round / max(_LEAST, value)))
                self._put("reward_signal_num_update", value, path)

    def _convert_section(self, section: str, here: str, class_path: str, reason: str = "") -> None:
        """Convert a section, if the file has it, to a class; `reason` says why that is not possible, if it is not."""
        if not any(f"{path}.".startswith(f"{section}.") for path in self._given):
            return
        demo = f"{section}.demo_path"
        if not reason and demo in self._rows and not self._demos:
            reason = self._rows[demo].why
        if reason:
            self._denied[section] = reason
            return
        before, self.config = self.config, {}
        for path, row in self._rows.items():
            if not path.startswith(f"{section}.") or not row.to:
                continue
            name = path.rpartition(".")[2]
            value: Any = self._demos if path == demo else self._value(path)
            if name == "num_layers" and value:
                value = [self._value(f"{section}.network_settings.hidden_units") or 128] * (value - 1)
            if name == "team_change" and path not in self._given:
                value = 5 * self._value("self_play.save_steps")
            unset = value is None or (name in ("batch_size", "num_epoch", "steps") and not value)  # 0: as PPO; never
            if not unset:
                self._put(f"{here}.{row.to[0].partition('.')[2]}", value, path)
        made, self.config = {"class_path": class_path} | self.config[here], before
        self.config[here] = [*self.config.get(here, []), made] if here == "signals" else made
        self._used.setdefault(section, [class_path])

    def _note(self, given: Given, row: ForeignSetting, to: Sequence[str] = (), reason: str = "") -> None:
        """File one setting under one of the three lists."""
        said = f"{' > '.join(given.names[-2:])} {as_text(given.value)}"
        if reason or not row.to:
            self.impossible.append(f"{said}: {reason or row.why}")
            return
        said = f"{said} -> {', '.join(dict.fromkeys(to or row.to))}"
        if row.there and given.value not in row.same:
            self.other.append((said, row.there, row.here))
        else:
            self.same.append(said)

    def _note_settings(self) -> None:
        """File all settings of the behavior; those of a section that cannot be converted share a line."""
        denied: dict[str, list[str]] = {}
        for path, given in self._given.items():
            section = next((name for name in self._denied if f"{path}.".startswith(f"{name}.")), None)
            row = self._rows.get(path)
            if section is not None:
                denied.setdefault(section, []).append(f"{path[len(section) + 1 :]} {as_text(given.value)}".strip())
            elif given.value in (None, ""):
                self.same.append(f"{' > '.join(given.names[-2:])} (empty) -> ML-Agents' defaults")
            elif row is None:
                self._note(given, ForeignSetting(), reason=f"{self._kind.upper()} has no such setting")
            elif path in self._used or not row.to:
                self._note(given, row, self._used.get(path, ()))
            else:
                self._note(given, row, reason=row.why or f"it has no effect with {self.config['agent']['class_path']}")
        for section, parts in denied.items():
            self.impossible.append(f"{section.replace('.', ' > ')} ({', '.join(parts)}): {self._denied[section]}")

    def _missing(self, name: str, values: Sequence[Any]) -> str:
        """Return the reason why the environment cannot set a parameter to these values, or an empty string."""
        if self._target.parameters is None:
            return f"{self._target.name} has no parameters that can be changed"
        try:
            for value in values:
                self._target.parameters.check_parameters({name: value})
        except (TypeError, ValueError) as error:
            return str(error)
        return ""

    def _convert_curricula(self) -> None:
        """Convert the curricula of both layouts to lessons."""
        curricula: dict[str, Any] = {}
        behaviors = self._project.behaviors
        for name, found in self._project.curricula.items():
            if behaviors and name != self._behavior and (name in behaviors or len(self._project.curricula) > 1):
                self.impossible.append(f"curriculum {name}: it belongs to {name}; see --behavior")
                continue
            reasons = {key: self._missing(key, values) for key, values in found["parameters"].value.items()}
            parameters = {key: values for key, values in found["parameters"].value.items() if not reasons[key]}
            self.impossible += [f"{name} > parameters > {key}: {reason}" for key, reason in reasons.items() if reason]
            if parameters:
                settings = {key: given.value for key, given in found.items()}
                measure, length = (
                    settings.get(key, self._rows[key].default) for key in ("measure", "min_lesson_length")
                )
                curricula[name] = settings | {
                    "measure": self._measure(str(measure), name),
                    "min_lesson_length": max(1, int(length)),
                    "parameters": parameters,
                }
                for key, given in found.items():
                    self._note(
                        Given(settings[key], given.file, given.names), self._rows[key], [f"curricula.{name}.{key}"]
                    )
        for parameter, given in self._project.lessons.items():
            made, reason = self._lessons(parameter, given)
            if reason := reason or self._missing(parameter, made["parameters"][parameter]):
                self.impossible.append(f"environment_parameters > {parameter}: {reason}")
                continue
            curricula[parameter] = made
            number = len(made["thresholds"]) + 1
            self.same.append(f"environment_parameters > {parameter}, {number} lessons -> curricula.{parameter}")
        if curricula:
            self.config["callbacks"] = [{"class_path": "fabric_rl.Lessons", "init_args": {"curricula": curricula}}]

    def _lessons(self, parameter: str, given: Given) -> tuple[dict[str, Any], str]:
        """Return a curriculum for the lessons of one parameter, or the reason why there is none.

        Raises:
            ValueError: The lessons are malformed.
        """
        lessons = [_unnamed(each) for each in given.value] if isinstance(given.value, list) else []
        if not lessons or not all(isinstance(each, dict) and "value" in each for each in lessons):
            raise given.fail("must be a list of lessons, each with a value")
        ends = [each.get("completion_criteria") or {} for each in lessons[:-1]]
        if not all(ends):
            raise given.fail("every lesson but the last needs completion_criteria")
        values = [_lesson_value(Given(each["value"], given.file, given.names)) for each in lessons]
        followed = {str(end.get("behavior", self._behavior)) for end in ends}
        whose = followed - {str(self._behavior)} if self._roles == 1 or len(followed) > 1 else set()
        measures = {str(end.get("measure", "reward")) for end in ends}
        if None in values:
            return {}, "a lesson here has a number or a uniform range, no other sampler"
        if self._behavior is not None and whose:
            return {}, f"it follows {', '.join(sorted(whose))}, which trains in a run of its own"
        if len(measures) > 1:
            return {}, "all lessons of a parameter need the same measure here"
        if any(end.get("require_reset") for end in ends):
            self.impossible.append(f"{parameter} > require_reset: a new lesson always waits for the next episode here")
        own = [(int(end.get("min_lesson_length", 0)), bool(end.get("signal_smoothing", True))) for end in ends]
        if len(set(own)) > 1:
            said = f"environment_parameters > {parameter} > min_lesson_length, signal_smoothing"
            self.other.append((said, "of each lesson", "of all its lessons: the largest, and true if any is true"))
        measure = "".join(measures) or "progress"
        return {
            "measure": self._measure(measure, *followed),
            "thresholds": [end.get("threshold", 0.0) for end in ends],
            "min_lesson_length": max([1, *(length for length, _ in own)]),
            "signal_smoothing": any(smooth for _, smooth in own),
            "parameters": {parameter: values},
        }, ""

    def _measure(self, measure: str, *behaviors: str) -> str:
        """Return the name of a measure; with several roles, the reward is that of one behavior."""
        if measure == "reward" and self._roles > 1 and behaviors:
            return f"{role_of(behaviors[0])}/reward/episode_return"
        return {"Elo": "selfplay/rating"}.get(measure, measure)

    def _convert_samplers(self) -> None:
        """Convert samplers to random parameters of the environment."""
        samplers = {}
        for name, given in self._project.samplers.items():
            kind, settings = read_sampler(given)
            known = foreign_table("samplers").get(kind)
            reason = f"ML-Agents itself has no sampler {kind}; write a subclass of envs.Sampler (docs/curriculum.md)"
            if known is not None:
                first = next(iter(settings.values()))
                reason = self._missing(name, [first[0][0] if kind == "multirange_uniform" else first])
            if reason:
                self.impossible.append(f"{name} {kind} {as_text(settings)}: {reason}")
                continue
            samplers[name] = {"class_path": known["class"], "init_args": settings}
            self.same.append(f"{name} {kind} {as_text(settings)} -> env.parameters.samplers.{name}")
        interval = self._project.run.get("resampling_interval")
        if samplers:
            made = {"samplers": samplers} | ({"resampling_interval": interval.value} if interval else {})
            self._target.env["init_args"]["parameters"] = {"class_path": "envs.ParameterRandomizer", "init_args": made}
        if interval:
            self._note(
                interval, self._rows["resampling_interval"], reason="" if samplers else "there is nothing to sample"
            )

    def _convert_run(self) -> None:
        """Convert settings of the whole run."""
        for path, given in self._project.run.items():
            row, value = self._rows[path], given.value
            if path == "resampling_interval":
                continue
            if value in (None, False):
                self.same.append(f"{' > '.join(given.names[-2:])} {as_text(value)} -> (off here, too)")
            elif path == "torch_settings.device":
                kind, _, number = str(value).partition(":")
                self.config |= {"accelerator": "cpu" if kind == "cpu" else "gpu"} | (
                    {"devices": f"{number},"} if number else {}
                )
                self._note(given, row, [f"accelerator: {self.config['accelerator']}"])
            elif path == "env_settings.seed":
                self.config["seed"] = max(0, int(value))
                self._note(given, row if int(value) < 0 else row._replace(there=""), [f"seed: {self.config['seed']}"])
            else:
                if row.to and not row.there:
                    self.config[row.to[0]] = value
                self._note(given, row, [f"{row.to[0]}: {flow(value)}"] if row.to and not row.there else ())


def _unnamed(lesson: Any) -> Any:  # noqa: ANN401 - any YAML
    """Return a lesson without its name, `{name: {value: ...}}` or `{name: ..., value: ...}`."""
    return (
        next(iter(lesson.values()))
        if isinstance(lesson, dict) and len(lesson) == 1 and "value" not in lesson
        else lesson
    )


def _lesson_value(given: Given) -> Any:  # noqa: ANN401
    """Return a number or [min, max]; None for other samplers."""
    if is_number(given.value):
        return given.value
    kind, settings = read_sampler(given)
    return [settings["min_value"], settings["max_value"]] if kind == "uniform" else None


def flow(value: Any) -> str:  # noqa: ANN401 - any YAML
    """Return a value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False)
    return text.removesuffix("...\n").strip()


def to_yaml(config: dict[str, Any], remarks: dict[str, str], path: str = "", indent: str = "") -> Iterator[str]:
    """Yield the lines of a configuration, with comments."""
    for name, value in config.items():
        here = path if name == "init_args" else f"{path}.{name}".lstrip(".")
        if isinstance(value, dict) and (path in _OPEN or name in ("init_args", "roles", "settings")):
            yield f"{indent}{name}:"
            yield from to_yaml(value, remarks, here, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{indent}{name}:"
            for each in value:
                first, *others = to_yaml(each, {}, here, indent + "  ")
                yield from (f"{indent}- {first.strip()}", *others)
        else:
            remark = remarks.get(here)
            yield f"{indent}{name}: {flow(value)}" + (f"  # {remark}" if remark else "")
