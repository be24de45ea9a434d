"""`fabric-rl clone`: an agent that does what demonstrations show, as a run to evaluate, watch, or go on from."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote

import torch
import yaml

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, RocketSimPool
from envs.demonstrations.file import SUFFIX, Demonstration
from envs.factories import to_config
from fabric_rl.base.argv import DEFAULT_CONFIG
from fabric_rl.base.files import write_text
from fabric_rl.evaluation.demonstrations import trajectories_of
from fabric_rl.imitation.cloning import CloneArgs, pretrain
from fabric_rl.metrics.csv_tables import csv_text
from fabric_rl.ranks.devices import one_thread
from fabric_rl.runs import checkpoint
from fabric_rl.runs.folder import Run
from fabric_rl.runs.provenance import EXPORTED
from fabric_rl.types import ActorCritic, AgentFactory, EnvFactory

_DEFAULTS = CloneArgs()


def preset(words: Sequence[str]) -> str | None:
    """Return the preset of a training, for words that name a demonstration of states: the clone gets its agent."""
    files = [Path(word) for word in words if word.endswith(SUFFIX) and Path(word).is_file()]
    return str(DEFAULT_CONFIG) if files and Demonstration(files[0]).of_states else None


def clone(
    demos: Sequence[Path],
    env: EnvFactory | None = None,
    agent: AgentFactory = PPOLightningAgent,
    args: CloneArgs = _DEFAULTS,
    soft_labels: bool = False,
    run_id: str | None = None,
    runs_dir: str = "runs",
) -> int:
    """Train an agent to imitate demonstrations, without playing; on one CPU thread.

    Some episodes are held back for validation; training stops when the loss on them no longer improves. The result is a
    run folder. Play with it (`fabric-rl evaluate RUN chaser`), watch it, or train it further (`--config RUN/config.yaml
    --initialize_from RUN`).

    Args:
        demos: Demonstration files (.frd) from `fabric-rl demos`.
        env: Environment that the agent is for. Default: that of configs/rocket_1v1.yaml, as in training, or the
            Gymnasium id that the demonstrations name.
        agent: Agent class with its settings; must be a PPO agent. Default: that of the same preset.
        args: How it learns.
        soft_labels: Controls between two rows of an action table count for both rows. Default: only for the nearest
            row.
        run_id: Name of the run and its folder. Default: date and time.
        runs_dir: Folder that contains all runs.
    """
    first = Demonstration(demos[0])
    if env is None:
        env = RocketSimPool if first.of_states else partial(GymnasiumEnvs, str(first.about.get("env")))
    found = trajectories_of(demos, env, "DEMOS", soft_labels)
    envs = env(seed=args.seed)
    spaces = envs.single_observation_space, envs.single_action_space
    envs.close()
    torch.manual_seed(args.seed)
    with one_thread():
        module = agent(*spaces)
        if not isinstance(module, ActorCritic):
            raise TypeError(f"--agent {type(module).__name__} is not a fabric_rl.ActorCritic")
        settings = {"env": to_config(env), "agent": to_config(agent)}
        run = Run.create(runs_dir, run_id, config=yaml.safe_dump(settings, sort_keys=False))
        try:
            rows = pretrain(module, found, args, _tell)
            write_text(run.dir / "clone.csv", csv_text(list(rows[0]), rows))
            checkpoint.write(run.dir / EXPORTED, {"agent": module.state_dict()})
        except BaseException:
            run.discard_if_empty()
            raise
        finally:
            run.release()
    best = min(row["validation_loss"] for row in rows)
    steps = sum(len(each.action) for each in found)
    shown = f"{len(found)} trajectories (one of each demonstrator and episode)"
    print(f"cloned {steps:,} steps of {shown}: -log p {best:.4f} after {len(rows)} epochs")
    made, config = (quote(path.as_posix()) for path in (run.dir, run.provenance.config))
    print(f"written: {run.dir}\nplay with it: fabric-rl evaluate {made}{' chaser' if first.of_states else ''}")
    print(f"train on: python train_fabric.py --config {config} --initialize_from {made}")
    return 0


def _tell(row: dict[str, float]) -> None:
    loss, judged = row["loss"], row["validation_loss"]
    print(f"epoch {row['epoch']}: loss {loss:.4f}, on what is held back {judged:.4f}", file=sys.stderr, flush=True)
