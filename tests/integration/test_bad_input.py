"""Every mistake a user can make is one line that names the flag, status 2, and leaves no run folder behind."""

import re
from pathlib import Path

import pytest
import torch

from agents import PPOLightningAgent
from fabric_rl import StartArgs

FILES = {
    "file": "in the way",
    "unknown_key.yaml": "nonsense: 3\n",
    "misspelt.yaml": "total_timestep: 3\n",
    "misspelt_agent.yaml": "agent: {class_path: agents.PPOLightningAgent, init_args: {actor_lrr: 0.1}}\n",
    "misspelt_done.yaml": """
env:
  class_path: envs.RocketSimPool
  init_args:
    done: [{class_path: envs.TimeoutCondition, init_args: {timeout_secs: 3}}]
""",
    "cartpole.yaml": "env_id: CartPole-v1\n",
    "list.yaml": "- total_timesteps\n",
    "broken.yaml": "total_timesteps: [3\n",
    "second.yaml": """
callbacks:
- class_path: malformed.Fine
- {class_path: fabric_rl.callbacks.AdaptiveBatchSize, init_args: {share: 3}}
""",
    "second_type.yaml": """
callbacks:
- class_path: malformed.Fine
- {class_path: malformed.Fine, init_args: {size: abc}}
""",
    "second_unknown.yaml": "callbacks: [{class_path: malformed.Fine}, {class_path: malformed.Fines}]\n",
}
ON_CARTPOLE = "--env_id CartPole-v1 --num_steps 16"
ON_PENDULUM = "--env_id Pendulum-v1"
SAC = "--agent agents.SACLightningAgent"
# name: (arguments, what the line must contain). {tmp} is a folder of the case's own, with FILES in it.
OF_SAC = " of SAC (configs/sac_*.yaml)\n"
CASES = {
    "unknown key": ("--nonsense 3", ["--nonsense: no such setting; see --help"]),
    "unknown key of the agent": (
        "--agent.nonsense 3",
        ["--agent.nonsense: PPOLightningAgent has no such setting; known: actor_hidden_sizes, "],
    ),
    "misspelt key": ("--total_tmesteps 4000", ["--total_tmesteps: no such setting; did you mean --total_timesteps?"]),
    "abbreviated key": ("--total_timestep=4", ["--total_timestep: no such setting; did you mean --total_timesteps?"]),
    "key without its group": ("--num-arenas 4", ["--num_arenas: no such setting; did you mean --env.num_arenas?"]),
    "misspelt key of the agent": (
        "--agent.actor_lrr 1e-3",
        ["error: --agent.actor_lrr: PPOLightningAgent has no such setting; did you mean actor_lr?\n"],
    ),
    "misspelt key of the environment": (
        "--env.num_arena 3",
        ["--env.num_arena: RocketSimPool has no such setting; did you mean num_arenas?"],
    ),
    "abbreviated key of the environment": ("--env.num_a 3", ["--env.num_a: RocketSimPool has no such setting"]),
    "misspelt key of a reward": (
        "--env.reward envs.CombinedReward --env.reward.weigths [1]",
        ["--env.reward.weigths: CombinedReward has no such setting; did you mean weights?"],
    ),
    "key of a reward that is not chosen": ("--env.reward.weights [1]", ["--env.reward: choose a subclass of envs.Rew"]),
    "misspelt key in a config file": (
        "--config {tmp}/misspelt.yaml",
        ["--total_timestep: no such setting; did you mean --total_timesteps?"],
    ),
    "misspelt key of the agent in a config file": (
        "--config {tmp}/misspelt_agent.yaml",
        ["--agent.actor_lrr: PPOLightningAgent has no such setting; did you mean actor_lr?"],
    ),
    "misspelt key in a list of a config file": (
        "--config {tmp}/misspelt_done.yaml",
        ["--env.done.timeout_secs: TimeoutCondition has no such setting; did you mean timeout_seconds?"],
    ),
    "environment flags beside an id": (
        "--env_id CartPole-v1 --env.num_envs 4 --env.tick_skip=4",
        ["--env.num_envs, --env.tick_skip", "beside --env_id", "--num_envs"],
    ),
    "an id beside environment flags": ("--env.num_arenas 4 --env-id CartPole-v1", ["--env.num_arenas", "--env_id"]),
    "an environment beside an id": ("--env envs.RocketSimPool --env_id CartPole-v1", ["--env would", "--env_id"]),
    "environment flags beside a config file's id": (
        "--config {tmp}/cartpole.yaml --env.num_arenas 4",
        ["--env.num_arenas", "env_id: CartPole-v1 in the config file"],
    ),
    "missing config file": ("--config {tmp}/nowhere.yaml", ["--config", "nowhere.yaml"]),
    "unknown key in a config file": ("--config {tmp}/unknown_key.yaml", ["--nonsense: no such setting; see --help"]),
    "unknown class": ("--agent agents.Nope", ["--agent", "agents.Nope"]),
    "unknown environment id": ("--env_id Nope-v0", ["--env_id", "Nope-v0"]),
    "wrong base class of the agent": ("--agent envs.DefaultObs", ["--agent", "envs.DefaultObs"]),
    "wrong base class of a component": ("--env.obs envs.Kickoff", ["--env.obs", "ObsBuilder"]),
    "wrong type": ("--agent.actor_lr fast", ["--agent", "actor_lr", "fast"]),
    "settings for another action space": (
        f"{ON_CARTPOLE} --agent.squash true",
        ["PPOLightningAgent: --agent.state_dependent_std, squash and log_std_init", "Discrete(2)"],
    ),
    "observation space that does not fit": (f"{ON_CARTPOLE} --agent agents.ConvPPOAgent", ["ConvPPOAgent", "Box"]),
    "sequences that do not fit the rollout": (
        f"{ON_CARTPOLE} --agent agents.RecurrentPPOAgent --agent.sequence_length 5",
        ["--num_steps 16 must be a multiple of RecurrentPPOAgent's --agent.sequence_length 5"],
    ),
    "value heads without reward signals": (
        f"{ON_CARTPOLE} --agent.value_heads 2",
        ["1 reward signals (its reward), PPOLightningAgent 2 value heads; set --agent.value_heads"],
    ),
    "discounts without reward signals": (f"{ON_CARTPOLE} --gamma [0.9,0.99]", ["--gamma has 2 discounts"]),
    "16-mixed on a processor": (f"{ON_CARTPOLE} --accelerator cpu --precision 16-mixed", ["16-mixed needs a GPU"]),
    "zero steps": ("--num-steps 0", ["--num_steps must be at least 1, got 0"]),
    "negative steps": ("--total-timesteps -5", ["--total_timesteps must be at least 1, got -5"]),
    "zero hidden units": ("--env-id CartPole-v1 --agent.actor_hidden_sizes [0]", ["--agent.actor_hidden_sizes"]),
    "zero arenas": (
        "--env.num_arenas 0",
        ["RocketSimPool: num_arenas (--env.num_arenas) must be a whole number from 1 to 65,536, got 0"],
    ),
    "too many cars": ("--env.team_size 5", ["team_size (--env.team_size) must be", "got "]),
    "no ticks": ("--env.tick_skip 0", ["tick_skip (--env.tick_skip) must be a whole number from 1 to 1,200, got 0"]),
    "long delay": ("--env.action_delay_ticks 9", ["action_delay_ticks (--env.action_delay_ticks) must be", "got 9"]),
    "no threads": (
        "--env.num_threads 0",
        ["num_threads (--env.num_threads) must be a whole number of at least 1, got 0"],
    ),
    "minibatch too large": (
        "--env.num_arenas 2 --num_steps 8 --minibatch-size 33",
        ["--minibatch_size 33", "32 steps", "--num_steps 8"],
    ),
    "number of copies without an id": ("--num-envs 4", ["--num_envs", "--env_id"]),
    "wrappers without an id": ("--wrappers+=gymnasium.wrappers.FlattenObservation", ["--wrappers goes with --env_id"]),
    "a wrapper that does not fit": (
        "--env_id CartPole-v1 --wrappers+=gymnasium.wrappers.FilterObservation --wrappers.filter_keys [a]",
        ["--env_id CartPole-v1: FilterObservation: ", "only usable with `Dict`"],
    ),
    "no such class": ("--env_id my_file.Env", ["--env_id my_file.Env: ", "a class of your own goes by its path"]),
    "video of something that cannot be drawn": (
        "--config configs/rocket_1v1_processes.yaml --capture-video",
        ["--capture_video: RocketSimPool, and what --env_id names, can be shown, ProcessPool cannot"],
    ),
    "picture of something that cannot be drawn": (
        "--env_id CartPole-v1 --render",
        ["--render: RocketSimPool can be shown, GymnasiumEnvs cannot: it has no setting render_mode"],
    ),
    "picture without an environment": (
        "--render --num_players 1 --devices 2 --accelerator cpu",
        ["--render needs an environment on rank 0, which has none with --num_players"],
    ),
    "signal of negative strength": (
        "--env_id CartPole-v1 --signals+=fabric_rl.signals.RND --signals.strength -1",
        ["error: --signals RND: strength must be 0 or more, and finite, got -1.0\n"],
    ),
    "imitation of nothing": (
        "--env_id CartPole-v1 --signals+=fabric_rl.signals.GAIL",
        ["error: --signals GAIL: demos: name at least one demonstration"],
    ),
    "imitation of a file that is not there": (
        "--env_id CartPole-v1 --signals+=fabric_rl.signals.GAIL --signals.demos [{tmp}/none.frd]",
        ["error: --signals GAIL: demos", "none.frd: there is no such file"],
    ),
    "imitation of another environment": (
        "--env_id Acrobot-v1 --signals+=fabric_rl.signals.GAIL --signals.demos [configs/demonstrations/cartpole.frd]",
        ["error: --signals GAIL: demos", "cartpole.frd: its env is CartPole-v1, not Acrobot-v1"],
    ),
    "too many heads for the signals": (
        "--env_id CartPole-v1 --signals+=fabric_rl.signals.RND --agent agents.PPOLightningAgent --agent.value_heads 3",
        ["--signals 1 (rnd), PPOLightningAgent 3 value heads; set --agent.value_heads 2"],
    ),
    "passes of a signal beside SAC": (
        "--env_id CartPole-v1 --agent agents.SACLightningAgent --signals+=fabric_rl.signals.RND --signals.epochs 2",
        ["error: --signals RND: epochs are PPO's passes; SAC has --reward_signal_num_update\n"],
    ),
    "misspelt setting of a signal": (
        "--env_id CartPole-v1 --signals+=fabric_rl.signals.RND --signals.strenght 1",
        ["--signals.strenght: RND has no such setting; did you mean strength?"],
    ),
    "environment's reward of negative strength": (
        "--extrinsic_strength -1",
        ["error: --extrinsic_strength must be 0 or more, and finite, got -1.0\n"],
    ),
    "unknown way to draw": ("--env.render_mode ansi", ["--env.render_mode", "human or rgb_array", "ansi"]),
    "runs folder that is a file": ("--runs_dir {tmp}/file", ["--runs_dir", "file"]),
    "runs folder inside a file": ("--runs_dir {tmp}/file/runs", ["--runs_dir", "file/runs"]),
    "run id that exists": ("--run_id taken", ["--run_id taken", "already exists"]),
    "run id that is a path": ("--run_id ../elsewhere", ["--run_id ../elsewhere"]),
    "no GPU": ("--accelerator cuda", ["--accelerator", "CUDA"]),
    "no devices": ("--devices 0 --accelerator cpu", ["--devices"]),
    "devices without end": (
        "--devices 1000 --accelerator cpu",
        ["error: --devices 1000: each is a process with half a gigabyte of its own, but this machine has "],
    ),
    "players without end": ("--devices 1000 --num_players 999", ["error: --devices 1000: each is a process"]),
    "unknown strategy": ("--strategy nonsense", ["--strategy", "nonsense"]),
    "precision that is not supported": ("--precision 64-true", ["--precision", "64-true"]),
    "no collision meshes": ("--env.collision_meshes {tmp}", ["--env.collision_meshes"]),
    "reward of the wrong shape": (
        "--env.num_arenas 2 --minibatch_size 64 --env.reward malformed.OnePerArena",
        ["RocketSimPool.step(): OnePerArena: compute() returned shape [2], expected [arenas, cars] = [2, 2]"],
    ),
    "reward that is NaN": (
        "--env.num_arenas 2 --minibatch_size 64 --env.reward malformed.NotFinite",
        ["RocketSimPool.step(): ", "rewards", "nan"],
    ),
    "environment with rewards of the wrong shape": (
        "--env malformed.MatrixRewards",
        ["MatrixRewards.step(): the rewards must be numbers of shape [2], got float64 of shape [2, 1]"],
    ),
    "environment with another autoreset": ("--env malformed.NextStepReset", ["NextStepReset", "SAME_STEP"]),
    "environment without final observations": ("--env malformed.NoFinalObs", ["NoFinalObs.step()", "'final_obs'"]),
    "environment that is no vector": ("--env malformed.NoVector", ["--env", "VectorEnv"]),
    "callback that refuses": (
        "--callbacks+=fabric_rl.callbacks.Notify",
        ["error: --callbacks: Notify: nobody is told; give it a command, a url or both\n"],
    ),
    "setting that a callback refuses": (
        "--callbacks fabric_rl.callbacks.AdaptiveBatchSize --callbacks.share 3",
        ["error: --callbacks: AdaptiveBatchSize: share must be above 0 and at most 1, got 3.0\n"],
    ),
    "setting of a callback of the wrong type": (
        "--callbacks+=fabric_rl.callbacks.AdaptiveBatchSize --callbacks.share abc",
        ["error: --callbacks.share: expected a number, got abc\n"],
    ),
    "module of a callback": ("--callbacks no.such.Class", ["--callbacks: no.such.Class: there is no module no; "]),
    "class of a callback": (
        "--callbacks fabric_rl.callbacks.Notfy",
        ["error: --callbacks: there is no class fabric_rl.callbacks.Notfy; did you mean Notify?\n"],
    ),
    "callback that is none": ("--callbacks builtins.int", ["--callbacks: builtins.int is no subclass of Callback\n"]),
    "reward that is none": ("--env.reward builtins.int", ["--env.reward: builtins.int is no subclass of Reward\n"]),
    "callback that divides by zero": (
        "--callbacks+=malformed.Divides",
        ["--callbacks: Divides: ZeroDivisionError: division by zero (malformed.py, line "],
    ),
    "callback that lacks settings": (
        "--callbacks malformed.NeedsSettings",
        ["malformed.NeedsSettings lacks settings; give --callbacks.path, --callbacks.size\n"],
    ),
    "second callback of a file": (
        "--config {tmp}/second.yaml",
        [
            "--callbacks (number 2 of 2): AdaptiveBatchSize: share must be above 0 and at most 1, got 3.0 (",
            "/second.yaml, line 2)\n",
        ],
    ),
    "type of a second callback": (
        "--config {tmp}/second_type.yaml",
        ["--callbacks.size: expected a whole number, got abc (", "/second_type.yaml, line 4)\n"],
    ),
    "class of a second callback": (
        "--config {tmp}/second_unknown.yaml",
        ["--callbacks: there is no class malformed.Fines; did you mean Fine? (", "/second_unknown.yaml, line 1)\n"],
    ),
    "logger that lacks settings": (
        "--logger lightning.fabric.loggers.CSVLogger",
        ["--logger: lightning.fabric.loggers.CSVLogger lacks settings; give --logger.root_dir\n"],
    ),
    "logger of a package that is missing": (
        "--logger no_such_package.Logger",
        ["--logger: no_such_package.Logger: there is no module no_such_package"],
    ),
    "config file of a list": ("--config {tmp}/list.yaml", ["--config: this is no YAML file of settings"]),
    "config file that is no YAML": (
        "--config {tmp}/broken.yaml",
        ["--config ", "broken.yaml, line 2: this is no YAML file of settings: expected "],
    ),
    "steps that are no number": ("--total_timesteps abc", ["--total_timesteps: expected a whole number, got abc\n"]),
    "minutes that are no number": (
        "--checkpoint_every_minutes x",
        ["--checkpoint_every_minutes: expected a number, got x\n"],
    ),
    "number or schedule": (
        "--agent.entropy_coef x",
        ["--agent.entropy_coef: expected a number or the path of a class, got x\n"],
    ),
    "number or list": ("--gamma x", ["--gamma: expected a number or a list, got x\n"]),
    "misspelt strategy": (
        "--strategy fdsp --accelerator cpu",
        ["--strategy fdsp: no such strategy; did you mean fsdp?\n"],
    ),
    "unknown precision": ("--precision 8", ["--precision: expected one of 32-true, bf16-mixed, 16-mixed, got 8\n"]),
    "misspelt accelerator": ("--accelerator gpuu", ["--accelerator: expected one of ", "gpuu; did you mean gpu?\n"]),
    "devices that are none": ("--devices x --accelerator cpu", ["error: --devices x: "]),
    "flag without a value": ("--env_id", ["error: --env_id needs a value\n"]),
    "word without a flag": ("stray", ["error: stray: not understood; flags begin with --, see --help\n"]),
    "agent that returns a tuple": (
        f"{ON_CARTPOLE} --agent malformed.ReturnsTuple",
        ["--agent ReturnsTuple.act() must return a fabric_rl.ActOutput(action, log_prob, ...), got a tuple of 4\n"],
    ),
    "agent that takes no spaces": (
        f"{ON_CARTPOLE} --agent malformed.WithoutSpaces",
        ["--agent: WithoutSpaces: its __init__ takes (size), but must take observation_space and action_space"],
    ),
    "agent that forgets super": (
        f"{ON_CARTPOLE} --agent malformed.WithoutSuper",
        ["--agent: WithoutSuper", "must first call super().__init__(observation_space, action_space)", "malformed.py"],
    ),
    "agent that is not initialised": (
        f"{ON_CARTPOLE} --agent malformed.WithoutInit",
        ["--agent WithoutInit: its __init__ must call super().__init__(observation_space, action_space)"],
    ),
    "agent that lacks methods": (
        f"{ON_CARTPOLE} --agent malformed.WithoutMethods",
        ["--agent WithoutMethods lacks value(), training_step(), configure_optimizers(); fabric_rl.ActorCritic says"],
    ),
    "agent that cannot be built": (
        f"{ON_CARTPOLE} --agent malformed.FailsToBuild",
        ["--agent: FailsToBuild: KeyError: 'layers' (malformed.py, line "],
    ),
    "agent that optimizes nothing": (
        f"{ON_CARTPOLE} --agent malformed.NothingToOptimize",
        ["--agent NothingToOptimize.configure_optimizers() (malformed.py, line ", "empty parameter list"],
    ),
    "agent with a parameter that DDP would wait for": (
        f"{ON_CARTPOLE} --agent malformed.Unused --strategy ddp --accelerator cpu",
        ["--agent Unused.training_step(): the loss does not depend on the parameters extra.weight, extra.bias, but"],
    ),
    "agent with a list of optimizers": (
        f"{ON_CARTPOLE} --agent malformed.Optimizers",
        ["--agent Optimizers.configure_optimizers() must return one torch optimizer"],
    ),
    "settings of PPO beside SAC": (
        f"{ON_PENDULUM} {SAC} --num_steps 64 --gae_lambda 0.9",
        [f"error: --num_steps, --gae_lambda: only PPO has that, not SAC; leave it out, or take a preset{OF_SAC}"],
    ),
    "estimator beside SAC": (
        f"{ON_PENDULUM} {SAC} --estimator malformed.Advantages",
        ["error: --estimator: only PPO estimates advantages, not SAC; leave it out\n"],
    ),
    "a rollout ahead beside SAC": (
        f"{ON_PENDULUM} {SAC} --overlap true",
        [f"error: --overlap: only PPO has that, not SAC; leave it out, or take a preset{OF_SAC}"],
    ),
    "kickstarting beside SAC": (
        f"--env_id CartPole-v1 {SAC} --kickstart Kickstart --kickstart.reference school_1v1",
        ["error: --kickstart: SACLightningAgent takes no reference; take one of the PPO agents\n"],
    ),
    "demonstrations of nothing beside SAC": (
        f"{ON_PENDULUM} {SAC} --demonstrations [{{tmp}}/none.frd]",
        ["error: --demonstrations", "none.frd: there is no such file"],
    ),
    "schedule of PPO beside SAC": (
        f"{ON_PENDULUM} {SAC} --lr_schedule kl_adaptive",
        [f"error: --lr_schedule kl_adaptive: only PPO has that, not SAC; leave it out, or take a preset{OF_SAC}"],
    ),
    "settings of SAC beside PPO": (
        f"{ON_PENDULUM} --tau 0.01 --buffer_size 10",
        ["error: --buffer_size, --tau: only agents have that which learn with SAC; leave it out\n"],
    ),
    "weights of other observations": (
        "--config configs/bot_school.yaml --devices 1 --initialize_from school_1v1 --env.obs envs.DefaultObs",
        [
            "error: --initialize_from school_1v1: it was trained with --env.obs envs.AdvancedObsPlus "
            "(yours: envs.DefaultObs); set these, or begin without it (the checkpoint is of another agent than PPO"
        ],
    ),
    "weights of other actions beside SAC": (
        "--config configs/sac_rocket_1v1.yaml --initialize_from school_1v1",
        [
            "error: --initialize_from school_1v1: it was trained with --env.action null "
            "(yours: envs.ContinuousAction); set these, or begin without it (the checkpoint is of another agent than "
        ],
    ),
    "buffer larger than the machine": (
        f"{ON_PENDULUM} {SAC} --buffer_size 1000000000000",
        ["error: --buffer_size 1000000000000 needs ", " GiB", ", and this machine's memory has "],
    ),
    "buffer smaller than a rollout": (
        f"{ON_PENDULUM} {SAC} --buffer_size 10 --train_interval 50",
        ["error: --buffer_size 10 holds fewer steps than a rollout, --train_interval 50 x 4 sub-environments\n"],
    ),
    "target networks that never move": (f"{ON_PENDULUM} {SAC} --tau 0", ["--tau must be above 0 and at most 1, got 0"]),
    "SAC's temperature as a flag of the run": (
        f"{ON_PENDULUM} {SAC} --init_entcoef 1",
        ["--init_entcoef: no such setting; use --agent.init_entcoef, of agents.SACLightningAgent\n"],
    ),
    "values of the wrong shape": (
        f"{ON_CARTPOLE} --agent malformed.ColumnValues",
        ["ColumnValues.value() must be floats of shape [4], got float32 of shape [4, 1]"],
    ),
    "loss that is no scalar": (
        f"{ON_CARTPOLE} --agent malformed.LossPerStep",
        ["LossPerStep.training_step(): the loss"],
    ),
    "agent that begins with NaN": (
        f"{ON_CARTPOLE} --agent malformed.NanWeights",
        ["NanWeights.value() must be finite, got nan: sub-environment 0"],
    ),
}
# A mistake in the code of a part keeps its traceback; the last line says where it is. name: (arguments, that line).
TRACES = {
    "agent that misspells": (
        f"{ON_CARTPOLE} --agent malformed.Misspells",
        r"error: --agent Misspells\.act\(\) \(malformed\.py, line \d+\): AttributeError: .* no attribute 'actr'$",
    ),
    "callback that fails": (
        f"{ON_CARTPOLE} --callbacks+=malformed.FailsLater",
        r"error: --callbacks FailsLater\.on_train_start\(\) \(malformed\.py, line \d+\): LookupError: no such key$",
    ),
}
LEFT = sorted([*FILES, "runs", "runs/taken", "runs/taken/checkpoints"])
MALFORMED = {"malformed.py": Path(__file__).with_name("malformed.py").read_text()}


def arguments_of(name, tmp):
    """The case's arguments, and a folder with what it may meet there."""
    for file, text in FILES.items():
        (tmp / file).write_text(text)
    (tmp / "runs/taken/checkpoints").mkdir(parents=True)
    arguments = (CASES | TRACES)[name][0].format(tmp=tmp).split()
    defaults = ["--runs_dir", str(tmp / "runs"), "--total_timesteps", "1"]  # ends at once if nothing is noticed
    return [*defaults, *arguments]  # the last of two equal flags counts


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(forks, tmp_path, name):
    if name == "no GPU" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    statuses, out, err = forks.wait([forks.start(*arguments_of(name, tmp_path), files=MALFORMED)])
    if "--strategy ddp" in CASES[name][0]:
        err = err.splitlines(keepends=True)[-1]  # Lightning says how many ranks it starts
    assert (statuses, err.count("\n")) == ([2], 1), err
    assert err.startswith("train_fabric.py: error: ")
    assert "Traceback" not in out + err
    assert [text for text in CASES[name][1] if text not in err] == [], err
    assert files_in(tmp_path) == LEFT


@pytest.mark.parametrize("name", TRACES)
def test_a_mistake_in_the_code_of_a_part_keeps_its_traceback(forks, tmp_path, name):
    statuses, _, err = forks.wait([forks.start(*arguments_of(name, tmp_path), files=MALFORMED)])
    assert statuses == [1]
    assert err.startswith("Traceback")
    assert re.search(TRACES[name][1], err.splitlines()[-1]), err


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (
            "sys.exit('no more')",
            r"--env {worker}: Ending.step\(\) \(ending.py, line 9\) raised SystemExit: no more; it must ",
        ),
        (
            "os.kill(os.getpid(), 9)",
            r"--env {worker}: Ending.step\(\) was killed by SIGKILL .*; restart=True \(--env.restart",
        ),
        ("{}['x']", r"--env Ending.step\(\) \(ending.py, line 9\): RuntimeError: {worker}: KeyError: 'x'"),
    ],
    ids=["exits", "killed", "fails"],
)
def test_a_worker_that_is_lost_in_training_is_one_line_and_one_that_fails_keeps_its_traceback(
    forks, tmp_path, trouble, told
):
    ending = f"""import os, sys
from envs import GymnasiumEnvs
class Ending(GymnasiumEnvs):
    def __init__(self, num_envs: int = 2, seed: int = 0):
        super().__init__("CartPole-v1", num_envs, seed)
        self.left = 40
    def step(self, actions):
        self.left -= 1
        self.left or {trouble}
        return super().step(actions)
"""
    flags = "--env envs.ProcessPool --env.factory ending.Ending --env.num_workers 1 --num_steps 64 --accelerator cpu"
    run = forks.start(*flags.split(), "--runs_dir", tmp_path, files={"ending.py": ending})
    (status,), _, err = forks.wait([run])
    last = err.splitlines()[-1]
    told = told.replace("{worker}", r"ProcessPool worker 0 \(arenas 0 to 1\)")
    assert status == 1 and re.match(f"train_fabric.py: error: {told}", last), err
    assert ("Traceback in the worker" in err) is ("KeyError" in told) is (err.count("\n") > 1)


@pytest.mark.slow
def test_a_process_of_its_own_ends_the_same_way(run_python, tmp_path):
    """What imports might print would show here."""
    name = "zero steps"
    result = run_python("train_fabric.py", *arguments_of(name, tmp_path))
    assert result.returncode == 2
    assert result.stderr == "train_fabric.py: error: --num_steps must be at least 1, got 0\n"
    assert result.stdout == ""
    assert files_in(tmp_path) == LEFT


def test_a_notebook_gets_the_exception(tmp_path: Path):
    """The one-line exit is the command line's; main() raises what a caller can catch."""
    import train_fabric

    with pytest.raises(ValueError, match=r"^num_envs goes with env_id"):
        train_fabric.main(num_envs=3, start=StartArgs(runs_dir=str(tmp_path)))


def test_a_failed_trial_leaves_no_video_behind(tmp_path: Path, monkeypatch):
    import train_fabric

    class NoScalar(PPOLightningAgent):
        def training_step(self, minibatch):
            return self.value(minibatch.obs), {}

    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")  # which main() sets
    with pytest.raises(ValueError, match="the loss must be"):
        start = StartArgs(runs_dir=str(tmp_path))
        train_fabric.main(agent=NoScalar, start=start, env_id="CartPole-v1", capture_video=True)
    assert list(tmp_path.iterdir()) == []
