"""Conversion of several behaviors of Unity ML-Agents to one run in which each has its own trainer."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from fabric_rl.args import SACArgs, TrainArgs
from fabric_rl.cli.ml_agents import Conversion, Target, role_of
from fabric_rl.cli.ml_agents_files import Project
from fabric_rl.roles.train import OF_RUN

_OF_ROLE = {each.name for kind in (TrainArgs, SACArgs) for each in fields(kind)} - {*OF_RUN}


def convert_together(
    project: Project, target: Target, demos: Sequence[str], can_clone: Callable[[str], bool]
) -> Conversion:
    """Convert all behaviors to the roles of one run, in the order of the files; the arguments are `Conversion`'s."""
    names = list(project.behaviors)

    def convert(name: str, copies: int | None, iteration: int | None = None) -> Conversion:
        alone = replace(project, curricula={key: each for key, each in project.curricula.items() if key == name})
        if name != names[0]:
            alone = replace(alone, lessons={}, samplers={}, run={})
        own = replace(target, env=copy.deepcopy(target.env), given_copies=copies)
        return Conversion(alone, name, own, demos, can_clone, len(names), iteration)

    each = {name: convert(name, target.given_copies) for name in names}
    copies, own_copies = 1, target.given_copies
    if target.copies:
        copies = max(made.config["env"]["init_args"].get(target.copies, 1) for made in each.values())
        halves = target.teams and any("self_play" in made.config for made in each.values())
        if halves and target.given_copies is None:
            copies *= 2  # each role learns in every second arena
        own_copies = max(1, copies // (2 if halves else 1))
        each = {name: convert(name, own_copies) for name in names}
    steps = _common_steps(each)
    each = {name: convert(name, own_copies, steps) for name in names}
    return _join(each, target, copies, steps)


def _join(each: dict[str, Conversion], target: Target, copies: int, steps: int) -> Conversion:
    """Return the conversion of the first behavior with the roles, and the settings and the lists of all."""
    (first, joint), *_ = each.items()
    config: dict[str, Any] = {"total_timesteps": 0, "num_steps": steps}
    roles: dict[str, Any] = {}
    trainers: dict[str, Any] = {}
    curricula: dict[str, Any] = {}
    remarks, same, other, impossible = dict[str, str](), list[str](), list[tuple[str, str, str]](), list[str]()
    for name, made in each.items():
        role, own = role_of(name), made.config
        same += [f"{name}: {line}" for line in made.same]
        other += [(f"{name}: {said}", there, here) for said, there, here in made.other]
        impossible += [f"{name}: {line}" for line in made.impossible]
        config["total_timesteps"] += own.pop("total_timesteps", 0)
        roles[role] = own.pop("agent")
        if signals := own.pop("signals", []):
            roles[role]["init_args"]["value_heads"] = 1 + len(signals)
        settings = {key: own.pop(key) for key in list(own) if key in _OF_ROLE}
        trainers[role] = {"settings": settings} | ({"signals": signals} if signals else {})
        for callback in own.pop("callbacks", []):
            curricula |= callback["init_args"]["curricula"]
        env = own.pop("env")
        if own.get("self_play", {}).get("init_args", {}).pop("team_change", None):
            impossible.append(f"{name}: team_change: each role keeps its side, and learns in every second arena")
        for key, value in own.items():
            if config.setdefault(key, value) != value:
                impossible.append(f"{name}: a run has one {key}; that of the first behavior with it is used")
        for path, remark in made.remarks.items():
            head, _, rest = path.partition(".")
            where = f"agent.roles.{role}.{rest}" if head == "agent" else f"trainers.{role}.settings.{path}"
            remarks[where if head == "agent" or path in _OF_ROLE else path] = remark
        if name == first:
            config["env"] = env
    if target.copies:
        config["env"]["init_args"][target.copies] = copies
    if curricula:
        config["callbacks"] = [{"class_path": "fabric_rl.Lessons", "init_args": {"curricula": curricula}}]
    config |= {"agent": {"class_path": "agents.RolesAgent", "init_args": {"roles": roles}}, "trainers": trainers}
    remarks["total_timesteps"] = "max_steps, added up over the behaviors"
    remarks["num_steps"] = "steps between two rounds of learning; num_steps of a role is a multiple"
    joint.config, joint.remarks = config, remarks
    joint.same, joint.other, joint.impossible = same, other, impossible
    return joint


def _common_steps(each: dict[str, Conversion]) -> int:
    """Return the steps of an iteration: the shortest rollout of a PPO role, in whole sequences of every role."""
    agents = [made.config["agent"]["init_args"] for made in each.values() if "num_steps" in made.config]
    rollouts: list[int] = [made.config["num_steps"] for made in each.values() if "num_steps" in made.config]
    if not rollouts:
        return max(int(made.config.get("train_interval", 1)) for made in each.values())
    whole = math.lcm(*(int(agent.get("sequence_length", 1)) for agent in agents))
    return max(whole, min(rollouts) // whole * whole)
