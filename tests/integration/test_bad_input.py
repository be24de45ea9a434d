"""Every mistake a user can make is one line that names the flag, status 2, and leaves no run folder behind."""

import re
from pathlib import Path

import pytest
import torch

from agents import PPOLightningAgent
from fabric_rl import StartArgs
from tests.command import ended
from train_fabric import cli

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
# Arguments, and below them what the line must contain: pieces with .. between them; $ ends the line, {tmp} is a folder
# of the case's own, with FILES in it. "$ " begins those that are processes of their own: some of every kind, and all
# that change a process for good.
TABLE = r"""
$ --nonsense 3
    --nonsense: no such setting; see --help
--agent.nonsense 3
    --agent.nonsense: PPOLightningAgent has no such setting; known: actor_hidden_sizes,
--total_tmesteps 4000
    --total_tmesteps: no such setting; did you mean --total_timesteps?
--total_timestep=4
    --total_timestep: no such setting; did you mean --total_timesteps?
--num-arenas 4
    --num_arenas: no such setting; did you mean --env.num_arenas?
--agent.actor_lrr 1e-3
    error: --agent.actor_lrr: PPOLightningAgent has no such setting; did you mean actor_lr?$
--env.num_arena 3
    --env.num_arena: RocketSimPool has no such setting; did you mean num_arenas?
--env.num_a 3
    --env.num_a: RocketSimPool has no such setting
--env.reward envs.CombinedReward --env.reward.weigths [1]
    --env.reward.weigths: CombinedReward has no such setting; did you mean weights?
--env.reward.weights [1]
    --env.reward: envs.Rew .. is abstract; choose a subclass
--config {tmp}/misspelt.yaml
    --total_timestep: no such setting; did you mean --total_timesteps?
--config {tmp}/misspelt_agent.yaml
    --agent.actor_lrr: PPOLightningAgent has no such setting; did you mean actor_lr?
$ --config {tmp}/misspelt_done.yaml
    --env.done.timeout_secs: TimeoutCondition has no such setting; did you mean timeout_seconds?
--env_id CartPole-v1 --env.num_envs 4 --env.tick_skip=4
    --env.num_envs, --env.tick_skip .. with --env_id .. --num_envs
--env.num_arenas 4 --env-id CartPole-v1
    --env.num_arenas .. --env_id
--env envs.RocketSimPool --env_id CartPole-v1
    --env would .. --env_id
--config {tmp}/cartpole.yaml --env.num_arenas 4
    --env.num_arenas .. env_id: CartPole-v1 in the config file
--config {tmp}/nowhere.yaml
    --config .. nowhere.yaml
--config {tmp}/unknown_key.yaml
    --nonsense: no such setting; see --help
--agent agents.Nope
    --agent .. agents.Nope
$ --env_id Nope-v0
    --env_id .. Nope-v0
--agent envs.DefaultObs
    --agent .. envs.DefaultObs
--env.obs envs.Kickoff
    --env.obs .. ObsBuilder
--agent.actor_lr fast
    --agent .. actor_lr .. fast
--env_id CartPole-v1 --num_steps 16 --agent.squash true
    PPOLightningAgent: --agent.state_dependent_std, squash and log_std_init .. Discrete(2)
--env_id CartPole-v1 --num_steps 16 --agent agents.ConvPPOAgent
    ConvPPOAgent .. Box
--env_id CartPole-v1 --num_steps 16 --agent agents.RecurrentPPOAgent --agent.sequence_length 5
    --num_steps 16 must be a multiple of RecurrentPPOAgent's --agent.sequence_length 5
--env_id CartPole-v1 --num_steps 16 --agent.value_heads 2
    1 reward signal(s) (its reward), but PPOLightningAgent has value_heads=2; set --agent.value_heads
--env_id CartPole-v1 --num_steps 16 --gamma [0.9,0.99]
    --gamma has 2 discounts
--env_id CartPole-v1 --num_steps 16 --accelerator cpu --precision 16-mixed
    16-mixed needs a GPU
--num-steps 0
    --num_steps must be a whole number of at least 1, got 0
--total-timesteps -5
    --total_timesteps must be a whole number of at least 1, got -5
--env-id CartPole-v1 --agent.actor_hidden_sizes [0]
    --agent.actor_hidden_sizes
--env.num_arenas 0
    RocketSimPool: num_arenas (--env.num_arenas) must be a whole number from 1 to 65,536, got 0
--env.team_size 5
    team_size (--env.team_size) must be .. got
--env.tick_skip 0
    tick_skip (--env.tick_skip) must be a whole number from 1 to 1,200, got 0
--env.action_delay_ticks 9
    action_delay_ticks (--env.action_delay_ticks) must be .. got 9
--env.num_threads 0
    num_threads (--env.num_threads) must be a whole number of at least 1, got 0
$ --env.num_arenas 2 --num_steps 8 --minibatch-size 33
    --minibatch_size 33 .. 32 steps .. --num_steps 8
--num-envs 4
    --num_envs .. --env_id
--wrappers+=gymnasium.wrappers.FlattenObservation
    --wrappers: only for --env_id
--env_id CartPole-v1 --wrappers+=gymnasium.wrappers.FilterObservation --wrappers.filter_keys [a]
    --env_id CartPole-v1: FilterObservation: .. only usable with `Dict`
--env_id my_file.Env
    --env_id my_file.Env: .. for a class of your own, pass its import path
$ --config configs/rocket_1v1_processes.yaml --capture-video
    --capture_video works with RocketSimPool and --env_id, not with ProcessPool
--env_id CartPole-v1 --render
    --render works with RocketSimPool, not with GymnasiumEnvs, which has no render_mode
$ --render --num_players 1 --devices 2 --accelerator cpu
    --render needs an environment on rank 0, which has none with --num_players
--env_id CartPole-v1 --signals+=fabric_rl.signals.RND --signals.strength -1
    error: --signals: RND: strength must be a number of at least 0, got -1.0$
--env_id CartPole-v1 --signals+=fabric_rl.signals.GAIL
    error: --signals GAIL: demos: name at least one demonstration
--env_id CartPole-v1 --signals+=fabric_rl.signals.GAIL --signals.demos [{tmp}/none.frd]
    error: --signals GAIL: demos .. none.frd: there is no such file
--env_id Acrobot-v1 --signals+=fabric_rl.signals.GAIL --signals.demos [configs/demonstrations/cartpole.frd]
    error: --signals GAIL: demos .. cartpole.frd was recorded with the env CartPole-v1, not with Acrobot-v1
--env_id CartPole-v1 --signals+=fabric_rl.signals.RND --agent agents.PPOLightningAgent --agent.value_heads 3
    --signals 1 (rnd), but PPOLightningAgent has value_heads=3; set --agent.value_heads 2
--env_id CartPole-v1 --agent agents.SACLightningAgent --signals+=fabric_rl.signals.RND --signals.epochs 2
    error: --signals RND: epochs is only for PPO; for SAC, use --reward_signal_num_update$
--env_id CartPole-v1 --signals+=fabric_rl.signals.RND --signals.strenght 1
    --signals.strenght: RND has no such setting; did you mean strength?
--extrinsic_strength -1
    error: --extrinsic_strength must be a number of at least 0, got -1.0$
--env.render_mode ansi
    --env.render_mode .. human or rgb_array .. ansi
$ --runs_dir {tmp}/file
    --runs_dir .. file
--runs_dir {tmp}/file/runs
    --runs_dir .. file/runs
$ --run_id taken
    --run_id taken .. already exists
--run_id ../elsewhere
    --run_id ../elsewhere
--accelerator cuda
    --accelerator .. CUDA
--devices 0 --accelerator cpu
    --devices
$ --devices 1000 --accelerator cpu
    error: --devices 1000: each is a process that needs half a gigabyte, but this machine has
$ --devices 1000 --num_players 999
    error: --devices 1000: each is a process
--strategy nonsense
    --strategy .. nonsense
--precision 64-true
    --precision .. 64-true
--env.collision_meshes {tmp}
    --env.collision_meshes
--env.num_arenas 2 --minibatch_size 64 --env.reward malformed.OnePerArena
    RocketSimPool.step(): OnePerArena: compute() returned float32 of shape [2], expected [arenas, cars] = [2, 2]
$ --env.num_arenas 2 --minibatch_size 64 --env.reward malformed.NotFinite
    RocketSimPool.step(): .. rewards .. nan
--env malformed.MatrixRewards
    MatrixRewards.step(): the rewards must be numbers of shape [2], got float64 of shape [2, 1]
--env malformed.NextStepReset
    NextStepReset .. SAME_STEP
--env malformed.NoFinalObs
    NoFinalObs.step() .. 'final_obs'
$ --env malformed.NoVector
    --env .. VectorEnv
--callbacks+=fabric_rl.callbacks.Notify
    error: --callbacks: Notify: set command, url or both$
--callbacks fabric_rl.callbacks.AdaptiveBatchSize --callbacks.share 3
    error: --callbacks: AdaptiveBatchSize: share must be a number above 0 and at most 1, got 3.0$
--callbacks+=fabric_rl.callbacks.AdaptiveBatchSize --callbacks.share abc
    error: --callbacks.share: expected a number, got abc$
--callbacks no.such.Class
    --callbacks: no.such.Class: there is no module no;
--callbacks fabric_rl.callbacks.Notfy
    error: --callbacks: there is no class fabric_rl.callbacks.Notfy; did you mean Notify?$
--callbacks builtins.int
    --callbacks: builtins.int is not a subclass of Callback$
--env.reward builtins.int
    --env.reward: builtins.int is not a subclass of Reward$
--callbacks+=malformed.Divides
    --callbacks: Divides: ZeroDivisionError: division by zero (malformed.py, line
--callbacks malformed.NeedsSettings
    malformed.NeedsSettings needs more settings: --callbacks.path, --callbacks.size$
$ --config {tmp}/second.yaml
    --callbacks (number 2 of 2): AdaptiveBatchSize: share must be a number above 0 and at most 1, got 3.0 (
    /second.yaml, line 2)$
--config {tmp}/second_type.yaml
    --callbacks.size: expected a whole number, got abc ( .. /second_type.yaml, line 4)$
--config {tmp}/second_unknown.yaml
    --callbacks: there is no class malformed.Fines; did you mean Fine? ( .. /second_unknown.yaml, line 1)$
--logger lightning.fabric.loggers.CSVLogger
    --logger: lightning.fabric.loggers.CSVLogger needs more settings: --logger.root_dir$
--logger no_such_package.Logger
    --logger: no_such_package.Logger: there is no module no_such_package
--config {tmp}/list.yaml
    --config .. list.yaml: this is not a YAML file of settings
--config {tmp}/broken.yaml
    --config .. broken.yaml, line 2: this is not a YAML file of settings: expected
--total_timesteps abc
    --total_timesteps: expected a whole number, got abc$
--checkpoint_every_minutes x
    --checkpoint_every_minutes: expected a number, got x$
--agent.entropy_coef x
    --agent.entropy_coef: expected a number or the path of a class, got x$
--gamma x
    --gamma: expected a number or a list, got x$
--strategy fdsp --accelerator cpu
    --strategy fdsp: no such strategy; did you mean fsdp?$
--precision 8
    --precision: expected one of 32-true, bf16-mixed, 16-mixed, auto, got 8$
--accelerator gpuu
    --accelerator: expected one of .. gpuu; did you mean gpu?$
--devices x --accelerator cpu
    error: --devices x:
--env_id
    error: --env_id needs a value$
stray
    error: stray: not understood; flags begin with -- (see --help)$
--env_id CartPole-v1 --num_steps 16 --agent malformed.ReturnsTuple
    --agent ReturnsTuple.act() must return a fabric_rl.ActOutput(action, log_prob, ...), got a tuple of 4$
--env_id CartPole-v1 --num_steps 16 --agent malformed.WithoutSpaces
    error: WithoutSpaces: its __init__ takes (size), but must take observation_space and action_space
--env_id CartPole-v1 --num_steps 16 --agent malformed.WithoutSuper
    error: WithoutSuper .. must first call super().__init__(observation_space, action_space) .. malformed.py
--env_id CartPole-v1 --num_steps 16 --agent malformed.WithoutInit
    --agent WithoutInit: its __init__ must call super().__init__(observation_space, action_space)
--env_id CartPole-v1 --num_steps 16 --agent malformed.WithoutMethods
    --agent WithoutMethods lacks value(), training_step(), configure_optimizers(); see fabric_rl.ActorCritic for
--env_id CartPole-v1 --num_steps 16 --agent malformed.FailsToBuild
    error: FailsToBuild: KeyError: 'layers' (malformed.py, line
--env_id CartPole-v1 --num_steps 16 --agent malformed.NothingToOptimize
    error: optimizer got an empty parameter list (malformed.py, line
$ --env_id CartPole-v1 --num_steps 16 --agent malformed.Unused --strategy ddp --accelerator cpu
    --agent Unused.training_step(): the loss does not depend on the parameters extra.weight, extra.bias, but
--env_id CartPole-v1 --num_steps 16 --agent malformed.Optimizers
    --agent Optimizers.configure_optimizers() must return one torch optimizer
--env_id Pendulum-v1 --agent agents.SACLightningAgent --num_steps 64 --gae_lambda 0.9
    error: leave out --num_steps, --gae_lambda, which SAC does not use, or use an SAC preset
    (configs/sac_*.yaml)$
--env_id Pendulum-v1 --agent agents.SACLightningAgent --estimator malformed.Advantages
    error: --estimator is only for PPO, because SAC does not estimate advantages; leave the flag out$
--env_id Pendulum-v1 --agent agents.SACLightningAgent --overlap true
    error: leave out --overlap, which SAC does not use, or use an SAC preset (configs/sac_*.yaml)$
--env_id CartPole-v1 --agent agents.SACLightningAgent --kickstart Kickstart --kickstart.reference school_1v1
    error: --kickstart.reference school_1v1: .. does not fit PPOLightningAgent with the settings of its
--env_id Pendulum-v1 --agent agents.SACLightningAgent --demonstrations [{tmp}/none.frd]
    error: --demonstrations .. none.frd: there is no such file
--config configs/two_policies.yaml --trainers.blue.gamma 0.9
    error: --trainers.gamma: RoleTrainer has no such setting; write settings: {gamma: ...}$
--env_id Pendulum-v1 --agent agents.SACLightningAgent --lr_schedule kl_adaptive
    error: leave out --lr_schedule kl_adaptive, which SAC does not use, or use an SAC preset
    (configs/sac_*.yaml)$
--env_id Pendulum-v1 --tau 0.01 --buffer_size 10
    error: leave out --buffer_size, --tau, which only agents that learn with SAC use$
--config configs/bot_school.yaml --devices 1 --initialize_from school_1v1 --env.obs envs.DefaultObs
    error: --initialize_from school_1v1 was trained with --env.obs envs.AdvancedObsPlus (yours:
    envs.DefaultObs); set these, or omit the flag (the checkpoint is of a different agent than PPO
$ --config configs/sac_rocket_1v1.yaml --initialize_from school_1v1
    error: --initialize_from school_1v1 was trained with --env.action null (yours: envs.ContinuousAction),
    --agent.normalize_obs False (yours: True); set these, or omit the flag (the checkpoint is of a different agent than
--env_id Pendulum-v1 --agent agents.SACLightningAgent --buffer_size 1000000000000
    error: --buffer_size 1000000000000 needs ..  GiB .. , but this machine's memory has
--env_id Pendulum-v1 --agent agents.SACLightningAgent --buffer_size 10 --train_interval 50
    error: --buffer_size 10 is smaller than a rollout, --train_interval 50 x 4 sub-environments$
--env_id Pendulum-v1 --agent agents.SACLightningAgent --tau 0
    --tau must be a number above 0 and at most 1, got 0.0
--env_id Pendulum-v1 --agent agents.SACLightningAgent --init_entcoef 1
    --init_entcoef: no such setting; use --agent.init_entcoef, of agents.SACLightningAgent$
--env_id CartPole-v1 --num_steps 16 --agent malformed.ColumnValues
    ColumnValues.value() must be floats of shape [4], got float32 of shape [4, 1]
--env_id CartPole-v1 --num_steps 16 --agent malformed.LossPerStep
    LossPerStep.training_step(): the loss
--env_id CartPole-v1 --num_steps 16 --agent malformed.NanWeights
    NanWeights.value() must be finite, got nan: sub-environment 0
"""


def cases(table):
    """Arguments -> what the line must contain, and whether it is a process of its own."""
    found, argv = {}, ""
    for line in table.strip().splitlines():
        if line.startswith("    "):
            found[argv][0].extend(piece.replace("$", "\n") for piece in line.strip().split(" .. "))
        else:
            argv = line.removeprefix("$ ")
            found[argv] = ([], argv != line)
    return found


CASES = cases(TABLE)
IN_PROCESS = [argv for argv, (_, own) in CASES.items() if not own]
PROCESSES = [argv for argv, (_, own) in CASES.items() if own]
# A mistake in the code of a part keeps its traceback; the last line says where it is. name: (arguments, that line).
TRACES = {
    "malformed.Misspells": r"error: malformed\.py, line \d+, in (?:Misspells\.)?act\(\): AttributeError: .* 'actr'; "
    r"did you mean actor\?$",
    "malformed.FailsLater": r"error: malformed\.py, line \d+, in (?:FailsLater\.)?on_train_start\(\): LookupError",
}
LEFT = sorted([*FILES, "runs", "runs/taken", "runs/taken/checkpoints"])
MALFORMED = {"malformed.py": Path(__file__).with_name("malformed.py").read_text()}


def words_of(argv, tmp):
    """The words of a command line, and a folder with what it may meet there."""
    for file, text in FILES.items():
        (tmp / file).write_text(text)
    (tmp / "runs/taken/checkpoints").mkdir(parents=True)
    defaults = ["--runs_dir", tmp / "runs", "--total_timesteps", 1]  # ends at once if nothing is noticed
    return [*defaults, *argv.format(tmp=tmp).split()]  # the last of two equal flags counts


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def check(argv, tmp_path, status, out, err):
    assert (status, err.count("\n")) == (2, 1), err
    assert err.startswith("train_fabric.py: error: ")
    assert "Traceback" not in out + err
    assert [text for text in CASES[argv][0] if text not in err] == [], err
    assert files_in(tmp_path) == LEFT


@pytest.mark.parametrize("argv", IN_PROCESS)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, argv):
    if argv == "--accelerator cuda" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    monkeypatch.syspath_prepend(Path(__file__).parent)  # for malformed.py
    monkeypatch.setattr("sys.argv", ["train_fabric.py"])
    status = ended(cli, words_of(argv, tmp_path))
    check(argv, tmp_path, status, *capsys.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize("argv", PROCESSES)
def test_a_process_ends_with_one_line(forks, tmp_path, argv):
    (status,), out, err = forks.wait([forks.start(*words_of(argv, tmp_path), files=MALFORMED)])
    if "--strategy ddp" in argv:
        err = err.splitlines(keepends=True)[-1]  # Lightning says how many ranks it starts
    check(argv, tmp_path, status, out, err)


@pytest.mark.parametrize("part", TRACES)
def test_a_mistake_in_the_code_of_a_part_keeps_its_traceback(forks, tmp_path, part):
    flag = "--agent" if part == "malformed.Misspells" else "--callbacks"
    words = words_of(f"--env_id CartPole-v1 --num_steps 16 {flag} {part}", tmp_path)
    statuses, _, err = forks.wait([forks.start(*words, files=MALFORMED)])
    assert statuses == [1]
    assert err.startswith("Traceback")
    assert re.search(TRACES[part], err.splitlines()[-1]), err


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
        ("{}['x']", r"Ending.step\(\) \(ending.py, line 9\): RuntimeError: {worker}: KeyError: 'x'"),
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
    result = run_python("train_fabric.py", *words_of("--num-steps 0", tmp_path))
    assert result.returncode == 2
    assert result.stderr == "train_fabric.py: error: --num_steps must be a whole number of at least 1, got 0\n"
    assert result.stdout == ""
    assert files_in(tmp_path) == LEFT


def test_a_notebook_gets_the_exception(tmp_path: Path):
    """The one-line exit is the command line's; main() raises what a caller can catch."""
    import train_fabric

    with pytest.raises(ValueError, match=r"^--num_envs: only for --env_id"):
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
