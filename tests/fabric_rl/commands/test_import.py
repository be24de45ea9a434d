"""`fabric-rl import`: every file of ML-Agents becomes a configuration that trains, and nothing is dropped silently."""

import dataclasses
import inspect
import json
import re
from pathlib import Path

import pytest
import yaml

import train_fabric
from fabric_rl.base.files import read_json
from fabric_rl.base.foreign_names import foreign_names, is_ml_agents
from fabric_rl.cli.ml_agents_files import read_project
from tests.command import command, ended

FILES = Path(__file__).resolve().parents[2] / "fixtures" / "ml_agents"
TASK = ["--env_id", "tests.fabric_rl.commands.ml_agents_task.Task"]
WITHOUT_VELOCITIES = '[{"class_path": "envs.KeepColumns", "init_args": {"columns": [0, 2]}}]'
POOL = ["--env", "envs.RocketSimPool"]


def convert(capsys, tmp_path, *words):
    """Return the three lists as text, and the configuration."""
    out = tmp_path / "ours.yaml"
    assert command("import", *words, "--out", out) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    names = ("Taken over as is", "Taken over with another meaning", "Not possible", "written")
    same, other, impossible = re.fullmatch(
        rf"{names[0]}:\n(.*)\n{names[1]}:\n(.*)\n{names[2]}:\n(.*)\n{names[3]}: .*\n", said, re.DOTALL
    ).groups()
    text = out.read_text(encoding="utf-8")
    assert all(f"# {line}" in text for line in said.splitlines()[:-1])
    return same, other, impossible, yaml.safe_load(text)


CASES = [
    ("trainer_config.yaml", "3DBall"),
    ("trainer_config.yaml", "Hallway"),
    ("trainer_config.yaml", "Basic"),
    ("sac_trainer_config.yaml", "VisualPushBlock"),
    ("gail_config.yaml", "Pyramids"),
    ("all_of_ppo.yaml", "BehaviorPPO"),
    ("all_of_sac.yaml", "BehaviorSAC"),
    ("new_wall_jump.yaml", "SmallWallJump"),
    ("new_sac.yaml", "Pyramids"),
    ("between_layouts.yaml", "3DBall"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "behavior"), CASES)
def test_every_setting_is_in_one_of_the_lists(file, behavior, capsys, tmp_path):
    same, other, impossible, _ = convert(capsys, tmp_path, FILES / file, "--behavior", behavior, *TASK)
    given = read_project([FILES / file]).behaviors[behavior]
    meanings = [line for line in other.splitlines() if not line.startswith("    ")]
    assert len(other.splitlines()) == 3 * len(meanings) or "nothing" in other
    for setting in given.values():
        value = setting.value if setting.value is None else json.dumps(setting.value)
        name = f" > {setting.names[-1]} " if len(setting.names) > 1 else f"{setting.names[-1]} "
        text = "(empty)" if setting.value in (None, "") else value
        whole = sum(
            f"{name}{text}" in f"  {line} " for line in [*same.splitlines(), *meanings, *impossible.splitlines()]
        )
        parts = re.findall(
            rf"[(, ]{setting.names[-1]} {re.escape(value or 'null')}[,)]|> {setting.names[-1]} \(null\)", impossible
        )
        assert whole or parts or f"{setting.names[-1]} (null)" in impossible, (setting.names, value)


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(each.name for each in FILES.iterdir()))
def test_every_behavior_of_every_file_trains(file, capsys, tmp_path):
    demo = "configs/demonstrations/cartpole.frd"
    assert command("import", FILES / file, "--behavior", "all", *TASK, "--out", tmp_path / "ours.yaml") == 0
    behaviors = [*read_project([FILES / file]).behaviors] or [None]
    assert len(list(tmp_path.glob("ours*.yaml"))) == len(behaviors)
    if "gail" in file or "all_of" in file:
        words = ["--env_id", "CartPole-v1", "--demos", demo, "--out", tmp_path / "cartpole.yaml"]
        assert command("import", FILES / file, *words) == 0


TARGETS = {
    "train_ppo.yaml": (["--env_id", "CartPole-v1"], 450),  # of at most 500; without learning it is 22
    "train_sac.yaml": (["--env_id", "CartPole-v1"], 250),
    "train_memory.yaml": (["--env_id", "CartPole-v1", "--wrappers", WITHOUT_VELOCITIES], 200),
}


@pytest.mark.learning
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", TARGETS)
def test_an_imported_run_learns(file, tmp_path):
    words, least = TARGETS[file]
    out = tmp_path / "ours.yaml"
    assert command("import", FILES / file, *words, "--out", out) == 0
    run = ["--config", out, "--run_id", "run", "--runs_dir", tmp_path, "--plain", "--accelerator", "cpu"]
    train_fabric.cli([str(word) for word in run])
    assert read_json(tmp_path / "run" / "summary.json")["mean_return"] >= least


@pytest.mark.slow
def test_sizes_follow_from_buffer_and_horizon(capsys, tmp_path):
    *_, config = convert(capsys, tmp_path, FILES / "trainer_config.yaml", "--behavior", "3DBall", *TASK)
    assert (config["num_steps"], config["env"]["init_args"]["num_envs"], config["minibatch_size"]) == (1000, 12, 64)
    assert config["agent"]["init_args"]["actor_hidden_sizes"] == [128, 128]
    assert config["agent"]["init_args"]["entropy_coef"]["init_args"] == {"start": 0.001, "end": 1e-5}
    assert config["gae_lambda"] == 0.99 and config["total_timesteps"] == 500_000
    words = [FILES / "trainer_config.yaml", "--behavior", "3DBall", *TASK, "--num_envs", 30]
    *_, config = convert(capsys, tmp_path, *words)
    assert (config["num_steps"], config["env"]["init_args"]["num_envs"]) == (400, 30)
    *_, config = convert(capsys, tmp_path, FILES / "trainer_config.yaml", "--behavior", "Hallway", *TASK)
    assert config["agent"]["class_path"] == "agents.RecurrentPPOAgent"
    assert config["agent"]["init_args"]["memory_size"] == 128 and config["num_steps"] == 64


def test_a_metacurriculum_is_divided_among_the_behaviors(capsys, tmp_path):
    words = [FILES / "trainer_config.yaml", FILES / "wall-jump", "--behavior", "BigWallJump", *TASK]
    *_, impossible, config = convert(capsys, tmp_path, *words)
    [lessons] = config["callbacks"]
    curricula = lessons["init_args"]["curricula"]
    assert list(curricula) == ["BigWallJump"] and curricula["BigWallJump"]["thresholds"] == [0.1, 0.3, 0.5]
    assert curricula["BigWallJump"]["parameters"]["big_wall_max_height"] == [4.0, 7.0, 8.0, 8.0]
    assert "curriculum SmallWallJump: it belongs to SmallWallJump" in impossible


@pytest.mark.slow
def test_samplers_and_lessons_become_parameters(capsys, tmp_path):
    words = [FILES / "trainer_config.yaml", FILES / "randomize.yaml", FILES / "custom_sampler.yaml", *TASK]
    _, other, impossible, config = convert(capsys, tmp_path, *words[:2], *TASK)
    made = config["env"]["init_args"]["parameters"]["init_args"]
    assert made["resampling_interval"] == 5000 and "finishes its episode" in other
    assert made["samplers"]["mass"] == {"class_path": "envs.Uniform", "init_args": {"min_value": 0.5, "max_value": 10}}
    assert made["samplers"]["gravity"]["init_args"] == {"intervals": [[7, 10], [15, 20]]}
    *_, impossible, _ = convert(capsys, tmp_path, words[0], words[2], *TASK)
    assert "mass custom-sampler" in impossible and "subclass of envs.Sampler" in impossible


@pytest.mark.slow
def test_teams_and_lessons_in_rocket_league(capsys, tmp_path):
    words = [FILES / "new_everything.yaml", *POOL, "--env.team_size", 2]
    _, _, impossible, config = convert(capsys, tmp_path, *words)
    assert config["env"]["init_args"]["team_size"] == 2 and config["seed"] == 7 and config["accelerator"] == "cpu"
    assert config["self_play"]["init_args"]["swap_steps"] == 2000 and config["runs_dir"] == "results"
    # two of four cars learn: 20480 steps are 960 of each in 11 arenas
    assert (config["num_steps"], config["env"]["init_args"]["num_arenas"]) == (960, 11)
    samplers = config["env"]["init_args"]["parameters"]["init_args"]["samplers"]
    assert list(samplers) == ["gravity", "ball_mass", "ball_drag", "ball_radius"]
    lessons = config["callbacks"][0]["init_args"]["curricula"]["ball_max_speed"]
    assert lessons["parameters"] == {"ball_max_speed": [[3000, 4000], 6000]} and lessons["measure"] == "reward"
    assert config["agent"]["init_args"]["clip_coef"]["init_args"] == {"start": 0.2, "end": 0.1}
    assert config["agent"]["init_args"]["entropy_coef"] == 0.005 and config["lr_schedule"] == "constant"
    assert (
        'trainer ("poca"): POCAAgent needs teams, has neither memory' in impossible
        and "engine_settings > width 84" in impossible
    )
    without_memory = (
        (FILES / "new_everything.yaml").read_text().replace(", memory: {memory_size: 128, sequence_length: 64}", "")
    )
    (tmp_path / "team.yaml").write_text(without_memory)
    _, _, none, config = convert(capsys, tmp_path, tmp_path / "team.yaml", *POOL, "--env.team_size", 2)
    assert config["agent"]["class_path"] == "agents.POCAAgent" and "poca" not in none
    *_, impossible, _ = convert(capsys, tmp_path, FILES / "new_everything.yaml", *TASK)
    assert "Task has no teams" in impossible.replace("tests.fabric_rl.commands.ml_agents_task.", "")


def test_images_get_convolutions(capsys, tmp_path):
    words = [FILES / "trainer_config.yaml", "--behavior", "VisualPyramids", "--env_id"]
    *_, config = convert(capsys, tmp_path, *words, "tests.fabric_rl.commands.ml_agents_task.Pictures")
    assert (
        config["agent"]["class_path"] == "agents.ConvPPOAgent" and config["agent"]["init_args"]["encoder"] == "simple"
    )


@pytest.mark.slow
def test_demonstrations_replace_those_of_unity(capsys, tmp_path):
    demo = "configs/demonstrations/cartpole.frd"
    words = [FILES / "all_of_ppo.yaml", "--env_id", "CartPole-v1"]
    *_, impossible, config = convert(capsys, tmp_path, *words)
    assert "only Unity reads .demo files" in impossible and "cloning" not in config
    *_, config = convert(capsys, tmp_path, *words, "--demos", demo)
    assert config["cloning"]["init_args"]["demos"] == [demo] and config["cloning"]["init_args"]["steps"] == 150_000
    assert [each["class_path"].rpartition(".")[2] for each in config["signals"]] == ["Curiosity", "GAIL"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A:\n  trainer: ppo\n  beta: [3\n", r"\.yaml, line 4: this is not a YAML file"),
        (
            "A:\n  trainer: ppo\n  batch_sise: 3\n",
            r"\.yaml, line 3: A > batch_sise: ML-Agents has no such setting; did you",
        ),
        ("A:\n  trainer: ppo\n  beta: much\n", r'\.yaml, line 3: A > beta: must be a number, got "much"'),
        ("A:\n  trainer: a2c\n", r'\.yaml, line 2: A > trainer: must be ppo, sac or poca, got "a2c"'),
        ("A:\n  trainer: ppo\n  normalize: 3\n", r"\.yaml, line 3: A > normalize: must be true or false"),
        (
            "behaviors:\n  A: {trainer_type: ppo}\nbehaviours: {}\n",
            r"\.yaml, line 3: behaviours: ML-Agents has no such sec",
        ),
        ("total_timesteps: 3\n", r"\.yaml, line 1: this is not a trainer, curriculum or sampler file of ML-Agents"),
        (
            "A:\n  measure: reward\n  thresholds: [1]\n  parameters:\n    x: [1]\n",
            r"line 5: A > parameters > x: must be a li",
        ),
        ("x:\n  sampler-type: uniform\n  min: 3\n", r"line 3: x > min: the sampler uniform has no such setting"),
        ("A:\n  trainer: ppo\n  reward_signals:\n    curios: {}\n", r"line 4: .*curios: "),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(text, message, capsys, tmp_path):
    file = tmp_path / "theirs.yaml"
    file.write_text(text)
    assert command("import", file, *TASK, "--out", tmp_path / "ours.yaml") == 2
    err = capsys.readouterr().err
    assert re.search(message, err) and err.count("\n") == 1, err
    assert not (tmp_path / "ours.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the environment: --env_id CartPole-v1, or --env CLASS"),
        (["--env_id", "CartPole-v1", "--seed", "3"], "--seed: fabric-rl import takes the flags of the environment"),
        ([*TASK, "--behavior", "Nobody"], "--behavior Nobody: there is none; the files have FoodCollector"),
        ([*TASK, "--out", "KEPT"], "this file was not written by fabric-rl import"),
    ],
)
def test_a_wrong_command_line_is_one_line(words, message, capsys, tmp_path):
    kept = tmp_path / "kept.yaml"
    kept.write_text("seed: 1\n")
    words = [str(kept) if word == "KEPT" else word for word in words]
    out = [] if "--out" in words else ["--out", tmp_path / "ours.yaml"]
    assert command("import", FILES / "trainer_config.yaml", *words, *out) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1, err
    assert kept.read_text() == "seed: 1\n" and not (tmp_path / "ours.yaml").exists()


@pytest.mark.parametrize("file", sorted(FILES.glob("*.*")), ids=lambda path: path.name)
def test_the_training_names_the_command(file, capsys):
    assert ended(train_fabric.cli, ["--config", file]) == 2
    err = capsys.readouterr().err
    assert f"--config {file}: this is a file of Unity ML-Agents; convert it: fabric-rl import {file}" in err
    assert err.count("\n") == 1


def test_configurations_of_ours_are_not_taken_for_theirs():
    ours = sorted((Path(train_fabric.__file__).parent / "configs").glob("*.yaml"))
    assert len(ours) > 20
    assert not [path.name for path in ours if is_ml_agents(yaml.safe_load(path.read_text(encoding="utf-8")))]


MLAGENTS_LEARN = (
    "env curriculum lesson sampler keep-checkpoints resume load force run-id initialize-from save-freq seed train "
    "inference base-port num-envs num-areas no-graphics debug multi-gpu cpu docker-target-name env-args width "
    "height quality-level time-scale target-frame-rate capture-frame-rate deterministic max-lifetime-restarts "
    "restarts-rate-limit-n restarts-rate-limit-period-s timeout-wait torch tensorflow results-dir torch-device "
    "trainer batch_size buffer_size hidden_units learning_rate learning_rate_schedule max_steps normalize "
    "num_layers time_horizon vis_encoder_type beta epsilon lambd num_epoch use_recurrent sequence_length "
    "memory_size behavioral_cloning reward_signals self_play window play_against_latest_model_ratio save_steps "
    "swap_steps team_change init_path summary_freq buffer_init_steps tau num_update train_interval init_entcoef "
    "save_replay_buffer reward_signal_num_update demo_path strength gamma encoding_size use_actions use_vail "
    "curiosity gail extrinsic measure thresholds min_lesson_length signal_smoothing parameters "
    "resampling-interval sampler-type "
)
LEARNER = (
    "env_create_function metrics_logger n_proc min_inference_size render render_delay timestep_limit "
    "exp_buffer_size ts_per_iteration standardize_returns standardize_obs max_returns_per_stats_increment "
    "steps_per_obs_stats_increment policy_layer_sizes critic_layer_sizes continuous_var_range ppo_epochs "
    "ppo_batch_size ppo_minibatch_size ppo_ent_coef ppo_clip_range gae_lambda gae_gamma policy_lr critic_lr "
    "log_to_wandb load_wandb wandb_run wandb_project_name wandb_group_name wandb_run_name checkpoints_save_folder "
    "add_unix_timestamp checkpoint_load_folder save_every_ts instance_launch_delay random_seed "
    "n_checkpoints_to_keep shm_buffer_size device "
)
BOT_V2 = (
    "N_PROC_TRAIN SAVE_EVERY POLICY_LAYER_SIZES CRITIC_LAYER_SIZES POLICY_LEARNING_RATE CRITIC_LEARNING_RATE "
    "SELFPLAY_ENABLED MILESTONE_INTERVAL PHASE MECHANICS_WEIGHT CUSTOM_CKPT_PATH opponent_pool global_debug_mode "
    "debug_actions debug_learning debug_checkpoints debug_turtled_start render config "
)


@pytest.fixture(scope="module")
def flags():
    parameters = inspect.signature(train_fabric.main).parameters
    groups = [each.default for each in parameters.values() if dataclasses.is_dataclass(each.default)]
    return {*parameters, "config", *(each.name for group in groups for each in dataclasses.fields(group))}


@pytest.mark.parametrize("names", [MLAGENTS_LEARN, LEARNER, BOT_V2], ids=["mlagents-learn", "rlgym-ppo", "RLGymBot_v2"])
def test_every_name_of_the_other_trainers_is_known(names, flags):
    unknown = [name for name in names.split() if name.lower().replace("-", "_") not in {*flags, *foreign_names()}]
    assert unknown == []
    named = {flag for name in names.split() for flag in re.findall(r"--(\w+)", foreign_names().get(name.lower(), ""))}
    assert named <= {*flags, "demos"}


@pytest.mark.parametrize(
    ("flag", "answer"),
    [
        ("trainer", "use --agent agents.PPOLightningAgent, agents.SACLightningAgent or agents.POCAAgent"),
        ("save-steps", "use --self_play.save_steps, of --self_play SelfPlay"),
        (
            "sampler",
            "use --env.parameters envs.ParameterRandomizer; fabric-rl import TRAINER.yaml SAMPLER.yaml converts",
        ),
        ("base-port", "it belongs to Unity; environments here run in the same process and need no port"),
        ("resampling-interval", "use --env.parameters, steps of one arena or sub-environment, which then finishes its"),
        ("reward_signals.extrinsic.gamma", "use --gamma"),
        ("N_PROC_TRAIN", "use --env.num_arenas (in threads), per rank"),
        ("shm_buffer_size", "envs.ProcessPool measures its shared memory itself; there is nothing to set"),
        ("grail", "see --help"),
    ],
)
def test_an_answer_is_exact(flag, answer, capsys):
    assert ended(train_fabric.cli, [f"--{flag}", "3"]) == 2
    name = flag.replace("-", "_")
    assert capsys.readouterr().err.startswith(f"train_fabric.py: error: --{name}: no such setting; {answer}")


TWO_ROLES = [*POOL, "--env.obs", "envs.TeamRoleObs", "--env.obs.inner", "envs.AdvancedObs"]


@pytest.mark.slow
def test_all_behaviors_train_together_in_an_environment_with_as_many_roles(capsys, tmp_path):
    same, _, impossible, config = convert(capsys, tmp_path, FILES / "strikers_vs_goalie.yaml", *TWO_ROLES)
    roles = config["agent"]["init_args"]["roles"]
    assert [(name, role["class_path"]) for name, role in roles.items()] == [
        ("Goalie", "agents.SACLightningAgent"),
        ("Striker", "agents.PPOLightningAgent"),
    ]
    goalie, striker = (config["trainers"][name]["settings"] for name in roles)
    assert (goalie["gamma"], goalie["train_interval"], goalie["batch_size"]) == (0.98, 1, 128)
    assert goalie["num_update"] == 2  # 16 arenas, and 8 agent-steps for each update
    assert (striker["gamma"], striker["update_epochs"], striker["num_steps"]) == (0.99, 3, 128)
    # 2048 steps for a role that learns in every second arena
    assert config["env"]["init_args"]["num_arenas"] == 2 * 2048 // 128 and config["num_steps"] == 128
    assert config["total_timesteps"] == 500_000 and roles["Striker"]["init_args"]["value_heads"] == 2
    assert config["trainers"]["Striker"]["signals"][0]["class_path"] == "fabric_rl.signals.Curiosity"
    curricula = config["callbacks"][0]["init_args"]["curricula"]
    assert curricula["gravity"]["measure"] == "Striker/reward/episode_return"
    assert config["self_play"]["init_args"]["swap_steps"] == 2000
    assert "Striker: a run has one self_play" in impossible and "Goalie: team_change" in impossible
    assert "Goalie: hyperparameters > batch_size 128 -> batch_size: 128" in same


@pytest.mark.slow
def test_intervals_and_names_of_roles_fit_the_run(capsys, tmp_path):
    text = (FILES / "strikers_vs_goalie.yaml").read_text()
    for old, new in (("steps_per_update: 8", "steps_per_update: 10"), ("Striker", "Striker.v2")):
        text = text.replace(old, new)
    file = tmp_path / "two.yaml"
    file.write_text(text.replace("horizon: 128", "horizon: 64"))
    same, other, _, config = convert(capsys, tmp_path, file, *TWO_ROLES)
    goalie = config["trainers"]["Goalie"]["settings"]
    assert config["num_steps"] == 64
    assert (goalie["train_interval"], goalie["num_update"]) == (
        64,
        205,
    )  # 32 arenas, and 10 agent-steps for each update
    assert "steps_per_update 10.0 -> train_interval: 64, num_update: 205" in same + other
    [curriculum] = config["callbacks"][0]["init_args"]["curricula"].values()
    assert curriculum["measure"] == "Striker_v2/reward/episode_return" and "Striker_v2" in config["trainers"]


def test_a_setting_that_is_rounded_is_listed_once(capsys, tmp_path):
    file = tmp_path / "memory.yaml"
    memory = "{memory: {sequence_length: 64, memory_size: 128}}"
    file.write_text(
        f"behaviors:\n  A:\n    hyperparameters: {{batch_size: 1000, buffer_size: 10240}}\n"
        f"    network_settings: {memory}\nenvironment_parameters:\n  gravity:\n    curriculum:\n"
        "    - {value: 1, completion_criteria: {measure: progress, min_lesson_length: 50}}\n"
        "    - {value: 2, completion_criteria: {measure: progress, min_lesson_length: 100, threshold: 0.5}}\n"
        "    - {value: 3}\n"
    )
    same, other, _, config = convert(capsys, tmp_path, file, "--env_id", "CartPole-v1")
    assert "batch_size 1000 -> minibatch_size: 960" in same and "minibatch_size: 1000" not in same
    [curriculum] = config["callbacks"][0]["init_args"]["curricula"].values()
    assert (curriculum["thresholds"], curriculum["min_lesson_length"]) == ([0.0, 0.5], 100)
    assert "gravity > min_lesson_length, signal_smoothing" in other


@pytest.mark.slow
def test_updates_for_each_agent_step_stay_the_same(capsys, tmp_path):
    """ML-Agents counts the steps of all agents, and one for each update if the file does not say it."""
    for given, envs, expected in (
        ("steps_per_update: 20", 8, (5, 2)),
        ("steps_per_update: 10", 15, (2, 3)),
        ("steps_per_update: 3", 2, (3, 2)),
        ("steps_per_update: 2", 8, (1, 4)),
        ("tau: 0.005", 8, (1, 8)),
        ("train_interval: 4", 8, (4, 1)),  # of the old layout
        ("num_update: 0", 1, (1, 1)),
    ):
        file = tmp_path / "sac.yaml"
        file.write_text(f"behaviors:\n  A:\n    trainer_type: sac\n    hyperparameters: {{{given}}}\n")
        *_, config = convert(capsys, tmp_path, file, "--env_id", "CartPole-v1", "--num_envs", str(envs))
        assert (config["train_interval"], config["num_update"]) == expected, given


def test_a_signal_without_demonstrations_leaves_the_reward_of_the_environment(capsys, tmp_path):
    file = tmp_path / "imitation.yaml"
    gail = "gail: {strength: 1.0, demo_path: Expert.demo}"
    file.write_text(f"behaviors:\n  A:\n    trainer_type: ppo\n    reward_signals: {{{gail}}}\n")
    _, _, impossible, config = convert(capsys, tmp_path, file, "--env_id", "CartPole-v1")
    assert config["extrinsic_strength"] == 1.0 and "signals" not in config and "gail" in impossible


def test_a_curriculum_without_measure_has_the_defaults_of_ml_agents(capsys, tmp_path):
    file = tmp_path / "lessons.yaml"
    file.write_text("thresholds: [4.0, 6.0]\nparameters: {gravity: [1, 5, 9.8]}\n")
    *_, config = convert(capsys, tmp_path, file, "--env_id", "CartPole-v1")
    [curriculum] = config["callbacks"][0]["init_args"]["curricula"].values()
    assert (curriculum["measure"], curriculum["min_lesson_length"]) == ("reward", 1)


@pytest.mark.slow
def test_a_named_behavior_trains_alone(capsys, tmp_path):
    words = [FILES / "strikers_vs_goalie.yaml", *TWO_ROLES, "--behavior", "Striker"]
    *_, impossible, config = convert(capsys, tmp_path, *words)
    assert "trainers" not in config and "behaviors Goalie: a run trains one behavior" in impossible


@pytest.mark.slow
def test_curricula_of_the_old_layout_follow_their_behaviors(capsys, tmp_path):
    trainer, folder = tmp_path / "trainer.yaml", tmp_path / "curricula"
    folder.mkdir()
    trainer.write_text(
        "default: {trainer: ppo, buffer_size: 512, batch_size: 64}\nA: {beta: 0.1}\nB: {num_layers: 1}\n"
    )
    for name, parameter in (("A", "gravity"), ("B", "ball_radius")):
        lessons = {"measure": "reward", "thresholds": [1.0], "parameters": {parameter: [95.0, 93.0]}}
        (folder / f"{name}.json").write_text(json.dumps(lessons))
    *_, config = convert(capsys, tmp_path, trainer, folder, *TWO_ROLES)
    curricula = config["callbacks"][0]["init_args"]["curricula"]
    assert {name: each["measure"] for name, each in curricula.items()} == {
        name: f"{name}/reward/episode_return" for name in "AB"
    }
