"""What settings are called here that other trainers call otherwise."""

_EXPLORES = "--agent.entropy_coef"
_CLIPS = "--agent.clip_coef"
_EPOCHS = "--update_epochs"
_RATES = "--agent.actor_lr and --agent.critic_lr (SAC: also --agent.temperature_lr)"
_LAYERS = "--agent.actor_hidden_sizes and --agent.critic_hidden_sizes, lists of layers"
_TOTAL = "--total_timesteps, agent-steps over all ranks"
_ROLLOUT = "--num_steps, of each sub-environment: a rollout has num_steps x sub-environments x ranks"
_MINIBATCH = "--minibatch_size, steps of each rank that go through the networks at once"
_HARDWARE = "--accelerator, and --devices for how many"
_SAVES = "--checkpoint_every_timesteps, agent-steps over all ranks"
_FROM = "--resume to go on with a run, or --initialize_from for its weights only"
_COPIES = "--env.num_arenas (in threads), or --num_envs with --env_id, both of each rank"
_TEMPERATURE = "--agent.init_entcoef, of agents.SACLightningAgent"
_WANDB = "--logger lightning.pytorch.loggers.WandbLogger"

OLD_NAMES = {
    # rlgym-ppo
    "n_proc": _COPIES,
    "ts_per_iteration": _ROLLOUT,
    "timestep_limit": _TOTAL,
    "policy_lr": "--agent.actor_lr",
    "critic_lr": "--agent.critic_lr",
    "policy_layer_sizes": "--agent.actor_hidden_sizes",
    "critic_layer_sizes": "--agent.critic_hidden_sizes",
    "ppo_batch_size": "--batch_size, steps of each rank to an optimizer step",
    "ppo_minibatch_size": _MINIBATCH,
    "ppo_epochs": _EPOCHS,
    "ppo_ent_coef": _EXPLORES,
    "ppo_clip_range": _CLIPS,
    "gae_gamma": "--gamma",
    "standardize_obs": "--agent.normalize_obs",
    "save_every_ts": _SAVES,
    "n_checkpoints_to_keep": "--keep_checkpoints",
    "checkpoint_load_folder": _FROM,
    "checkpoints_save_folder": "--runs_dir, the folder of all runs, and --run_id",
    "random_seed": "--seed",
    "device": _HARDWARE,
    "render_delay": "--watch: the browser has the speed, on the arrow keys",
    "min_inference_size": "--env.num_arenas alone: the policy decides for all cars at once",
    "log_to_wandb": _WANDB,
    # ML-Agents
    "beta": _EXPLORES,
    "epsilon": _CLIPS,
    "lambd": "--gae_lambda",
    "num_epoch": _EPOCHS,
    "time_horizon": _ROLLOUT,
    "max_steps": _TOTAL,
    "learning_rate": _RATES,
    "learning_rate_schedule": "--lr_schedule",
    "hidden_units": _LAYERS,
    "num_layers": _LAYERS,
    "normalize": "--agent.normalize_obs",
    "checkpoint_interval": _SAVES,
    "init_path": _FROM,
    "results_dir": "--runs_dir",
    "torch_device": _HARDWARE,
    # of SAC, here and there
    "init_entcoef": _TEMPERATURE,
    "alpha": _TEMPERATURE,
    "learning_starts": "--buffer_init_steps, agent-steps over all ranks",
    "train_freq": "--train_interval, steps of each sub-environment",
    "gradient_steps": "--num_update, optimizer steps in a round",
    "q_lr": "--agent.critic_lr",
    # CleanRL
    "exp_name": "--run_id",
    "num_minibatches": "--minibatch_size, the steps of one on each rank and not their number (default: a sixteenth)",
    "anneal_lr": "--lr_schedule linear (the default), or --lr_schedule constant",
    "norm_adv": "--normalize_advantages",
    "clip_vloss": "--agent.clip_value_loss",
    "ent_coef": f"{_EXPLORES}, or {_TEMPERATURE}",
    "vf_coef": "--agent.value_coef",
    "cuda": _HARDWARE,
    "target_entropy": "--agent.target_entropy, of agents.SACLightningAgent",
    "target_update_interval": "--tau: the targets follow after every optimizer step",
    "track": _WANDB,
    # CleanRL's without its nesting
    "clip_coef": _CLIPS,
    "gym_id": "--env_id",
    "wandb_project_name": _WANDB,
    "wandb_entity": _WANDB,
    "load_wandb": _WANDB,
    # Stable-Baselines3
    "n_timesteps": _TOTAL,
    "n_steps": _ROLLOUT,
    "n_epochs": _EPOCHS,
    "n_envs": _COPIES,
    "clip_range": _CLIPS,
    "clip_range_vf": "--agent.clip_value_loss (true or false), which clips by --agent.clip_coef",
    "normalize_advantage": "--normalize_advantages",
    "net_arch": _LAYERS,
    "tensorboard_log": "--runs_dir",
}
"""Name there -> flag here; behind the flag, what else is different."""
