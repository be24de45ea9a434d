"""Trains with rlgym-learn 1.0.5 and prints one JSON line per iteration; peers.py runs it in an environment of its own.

    python benchmarks/rlgym_learn_run.py '{"hidden_sizes": [256, 256, 256], "batch": 20000, "epochs": 2,
        "minibatches": 10, "buffer": 1, "iterations": 8, "device": "cpu", "processes": 16}'

rlgym-learn's own PPO, learners and process manager as they are. Imports stand inside `main`, so that its environment
processes, which import this file, stay as small as they can be.
"""

import json
import os
import sys
from typing import Any

from rlgym_guide import build_env

LEARNING_RATE = 3e-4


def learner_config(work: dict[str, Any]) -> dict[str, Any]:
    """rlgym-learn's settings of PPO for this work."""
    return {
        "timesteps_per_iteration": work["batch"],
        "save_every_ts": 10**12,
        "save_mid_iteration_data_in_checkpoint": False,
        "learner_config": {
            "n_epochs": work["epochs"],
            "batch_size": work["batch"],
            "n_minibatches": work["minibatches"],
            "ent_coef": 0.01,
            "actor_lr": LEARNING_RATE,
            "critic_lr": LEARNING_RATE,
            "device": work["device"],
        },
        "experience_buffer_config": {
            "max_size": work["buffer"] * work["batch"],
            "device": work["device"],
            "save_experience_buffer_in_checkpoint": False,
            "trajectory_processor_config": {"gamma": 0.99, "lmbda": 0.95, "standardize_returns": False},
        },
    }


def main() -> None:
    """Trains for some iterations."""
    import numpy as np
    from rlgym_learn import (
        BaseConfigModel,
        LearningCoordinator,
        LearningCoordinatorConfigModel,
        ProcessConfigModel,
        PyAnySerdeType,
        SerdeTypesModel,
    )
    from rlgym_learn_algos.ppo import (
        BasicCritic,
        DiscreteFF,
        ExperienceBuffer,
        GAETrajectoryProcessor,
        PPOAgentController,
        PPOMetricsLogger,
    )

    work = json.loads(sys.argv[1])
    if hasattr(os, "openpty"):  # it reads the keyboard and fails without a terminal
        _, terminal = os.openpty()
        os.dup2(terminal, 0)
    iterations_done = 0

    class Lines(PPOMetricsLogger):  # type: ignore[misc]
        """Prints the figures of every iteration; after the last one the loop ends."""

        def report_metrics(self) -> None:
            nonlocal iterations_done
            iterations_done += 1
            timing, steps = self.agent_metrics["Timing"], self.agent_metrics["Timestep Collection"]
            figures = {
                "steps": steps["Cumulative Timesteps"],
                "collected": timing["Collected Steps per Second"],
                "consumed": steps["Timesteps Collected"] / timing["Timestep Consumption Time"],
                "updates": self.agent_metrics["PPO Metrics"]["Cumulative Model Updates"],
            }
            print(json.dumps(figures), flush=True)
            if iterations_done >= work["iterations"]:
                coordinator.config.base_config.timestep_limit = 0

    sizes = work["hidden_sizes"]
    controller = PPOAgentController(
        actor_factory=lambda obs, actions, device: DiscreteFF(obs[1], actions[1], sizes, device),
        critic_factory=lambda obs, device: BasicCritic(obs[1], sizes, device),
        experience_buffer=ExperienceBuffer(GAETrajectoryProcessor()),
        metrics_logger=Lines(),
    )
    space = PyAnySerdeType.TUPLE((PyAnySerdeType.STRING(), PyAnySerdeType.INT()))
    serdes = SerdeTypesModel(
        agent_id_serde_type=PyAnySerdeType.STRING(),
        action_serde_type=PyAnySerdeType.NUMPY(np.int64),
        obs_serde_type=PyAnySerdeType.NUMPY(np.float64),
        reward_serde_type=PyAnySerdeType.FLOAT(),
        obs_space_serde_type=space,
        action_space_serde_type=space,
    )
    coordinator = LearningCoordinator(
        build_env,
        agent_controllers={"ppo": controller},
        config=LearningCoordinatorConfigModel(
            base_config=BaseConfigModel(serde_types=serdes),
            process_config=ProcessConfigModel(n_proc=work["processes"]),
            agent_controllers_config={"ppo": learner_config(work)},
        ),
    )
    coordinator.start()


if __name__ == "__main__":
    main()
