"""--num_players: some ranks only play, the others only train, and the weights are those of one rank that overlaps."""

import pytest
import torch

from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import list_checkpoints
from tests.runs import assert_same, kill, outcome, saved, until

SMALL = ["--agent.actor_hidden_sizes", "[8]", "--agent.critic_hidden_sizes", "[8]", "--plain", "--seed", 10]
ROCKET = ["--env.num_arenas", 2, "--env.state_setter", "envs.RandomState", "--num_steps", 16, "--minibatch_size", 32]
ROCKET += ["--agent.normalize_obs", "true", "--standardize_returns", "true", "--update_epochs", 2, *SMALL]
RND = "[fabric_rl.signals.RND]"
PARTS = "tests.integration.players_parts"
MEMORY = ["--env", f"{PARTS}.Masked", "--agent", "agents.RecurrentPPOAgent", "--agent.sequence_length", 8, *SMALL]
MEMORY += ["--agent.burn_in", 4, "--agent.memory_size", 8, "--num_steps", 16, "--minibatch_size", 32]
MEMORY += ["--agent.normalize_obs", "true", "--update_epochs", 2, "--exp_buffer_size", 128]
MEMORY += ["--lr_schedule", "kl_adaptive", "--batch_size", 64, "--exact_resume"]
CARTPOLE = ["--env", f"{PARTS}.Masked", "--agent", f"{PARTS}.Certain", "--num_steps", 32, "--update_epochs", 2]
CARTPOLE += ["--agent.normalize_obs", "true", "--standardize_returns", "true", *SMALL]


def play(forks, runs, tasks, *flags):
    """Trains with so many ranks; what rank 0 has printed."""
    statuses, out, err = forks.wait(forks.srun(*flags, "--runs_dir", runs, "--run_id", "r", tasks=tasks))
    assert statuses == [0] * tasks, err
    return out


def assert_close(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], rtol=1e-4, atol=1e-6, msg=lambda text, name=name: name + text)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [ROCKET, MEMORY])
def test_a_trainer_and_a_player_are_one_rank_that_overlaps(forks, tmp_path, settings):
    flags = [*settings, "--total_timesteps", 512]
    play(forks, tmp_path / "one", 1, *flags, "--overlap")
    out = play(forks, tmp_path / "two", 2, *flags, "--num_players", 1)
    assert "2 ranks on cpu, " in out and "; rank 0 trains, rank 1 plays" in out
    (one, table), (two, other_table) = outcome(tmp_path / "one"), outcome(tmp_path / "two")
    assert len(table) == 512 // (16 * 4)
    assert table == other_table
    for name in ("agent", "optimizer", "kl_adaptive", "steps", "iteration", "metrics"):
        assert_same(two[name], one[name], name)
    for name in ("env", "episodes", "torch"):
        assert_same(two["ranks"][1][name], one["ranks"][0][name], name)


@pytest.mark.slow
def test_each_player_is_a_block_of_columns(forks, tmp_path, monkeypatch):
    """Sub-environment i of player k is that of number 2 k + i, and a trainer never builds one."""
    flags = [*CARTPOLE, "--total_timesteps", 1024, "--minibatch_size", 32]
    play(forks, tmp_path / "one", 1, *flags, "--env.num_envs", 4, "--overlap")
    (tmp_path / "built").mkdir()
    started = []
    start = forks.start
    monkeypatch.setattr(forks, "start", lambda *f, **v: started.append(1) or start(*f, BUILT=tmp_path / "built", **v))
    out = play(forks, tmp_path / "three", 3, *flags, "--env.num_envs", 2, "--num_players", 2, "--final_model", "none")
    assert "; rank 0 trains, ranks 1 to 2 play" in out
    assert sorted(path.name for path in (tmp_path / "built").iterdir()) == ["1", "2"]
    one, three = (saved(tmp_path / name / "r") for name in ("one", "three"))
    assert (three["steps"], three["iteration"]) == (one["steps"], one["iteration"]) == (1024, 8)
    assert_close(three["agent"], one["agent"])
    assert three["metrics"]["reward/episode_return"] == one["metrics"]["reward/episode_return"]


@pytest.mark.slow
@pytest.mark.parametrize(("players", "more"), [(2, []), (3, []), (2, ["--callbacks+", f"{PARTS}.Imitating"])])
def test_two_trainers_are_one(forks, tmp_path, players, more):
    """Minibatches of the whole rollout, so that no order matters; of three players one has columns for both."""
    flags = [*CARTPOLE, *more, "--env.num_envs", 2, "--num_players", players, "--total_timesteps", 4 * 64 * players]
    whole = 32 * 2 * players
    play(forks, tmp_path / "one", 1 + players, *flags, "--minibatch_size", whole)
    out = play(forks, tmp_path / "two", 2 + players, *flags, "--minibatch_size", whole // 2)
    assert f"; ranks 0 to 1 train, ranks 2 to {1 + players} play" in out
    one, two = (saved(tmp_path / name / "r") for name in ("one", "two"))
    assert one["iteration"] == two["iteration"] == 4
    assert ("cloning/loss" in two["metrics"]) == bool(more)
    assert_close(two["agent"], one["agent"])
    for name in ("ppo/value_loss", "ppo/grad_norm", "reward/episode_return", "game/episode_length"):
        assert two["metrics"][name] == pytest.approx(one["metrics"][name], rel=1e-4), name


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "tasks"), [(ROCKET, 3), (MEMORY, 2), ([*ROCKET, "--signals", RND], 2)])
def test_killed_and_resumed_is_bit_identical(forks, tmp_path, settings, tasks):
    flags = [*settings, "--total_timesteps", 1024 * (tasks - 1), "--checkpoint_every_timesteps", 128 * (tasks - 1)]
    flags += ["--num_players", tasks - 1]
    play(forks, tmp_path / "whole", tasks, *flags)
    folder = tmp_path / "killed/r/checkpoints"
    ranks = forks.srun(*flags, "--runs_dir", tmp_path / "killed", "--run_id", "r", tasks=tasks)
    until(lambda: list_checkpoints(folder))
    for rank in ranks:
        kill(rank.pid)
    forks.wait(ranks)
    assert read(list_checkpoints(folder)[-1])["steps"] < 1024 * (tasks - 1)
    play(forks, tmp_path / "killed", tasks, *flags, "--resume")
    (whole, table), (killed, other_table) = outcome(tmp_path / "whole"), outcome(tmp_path / "killed")
    assert_same(killed, whole)
    assert table == other_table


@pytest.mark.slow
def test_other_numbers_of_players_go_on_but_not_bit_identical(forks, tmp_path):
    flags = [*CARTPOLE, "--minibatch_size", 32, "--total_timesteps", 256]
    play(forks, tmp_path, 2, *flags, "--num_players", 1)
    more = ["--resume", "--total_timesteps", 512]
    play(forks, tmp_path, 3, *flags, *more, "--num_players", 2)
    state = saved(tmp_path / "r")
    assert (state["steps"], state["num_players"], state["exact"]) == (512, 2, False)
    play(forks, tmp_path, 1, *flags, "--resume", "--total_timesteps", 640, "--num_players", 0)
    state = saved(tmp_path / "r")
    assert (state["steps"], state["num_players"], state["exact"]) == (640, 0, False)
    assert state["ranks"][0]["scaler"]["count"] > 0  # which only the players had


@pytest.mark.slow
def test_it_plays_without_learning_too(forks, tmp_path):
    flags = [*CARTPOLE, "--minibatch_size", 32, "--total_timesteps", 256]
    play(forks, tmp_path, 2, *flags, "--num_players", 1)
    inference = ["--inference", "--initialize_from", "r", "--runs_dir", tmp_path, "--run_id", "i"]
    statuses, out, err = forks.wait(forks.srun(*flags, *inference, "--num_players", 1, tasks=2))
    assert statuses == [0, 0], err
    assert "256/256" in out and "collected" in out and "consumed" not in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "tasks", "words"),
    [
        (["--num_players", 1], 1, "--num_players 1 leaves no rank that trains, as there is 1 rank in all"),
        (["--num_players", 3], 2, "--num_players 3 leaves no rank that trains, as there are 2 ranks in all"),
        (["--num_players", 1, "--overlap"], 2, "--num_players always collects one rollout ahead; leave --overlap out"),
        (["--num_players", 1, "--strategy", "fsdp"], 2, "--num_players works only with --strategy ddp, not with fsdp"),
        (["--num_players", -1], 2, "--num_players must be a whole number of at least 0, got -1"),
        (
            ["--num_players", 1, "--env.num_envs", 3],
            3,
            "--num_players: 2 trainers cannot share the players' 3 sub-environments evenly",
        ),
        (
            ["--num_players", 1, "--agent.value_heads", 2],
            2,
            "Masked has 1 reward signal(s) (its reward), but Certain has value_heads=2",
        ),
        (["--num_players", 1, "--env", "envs.GymnasiumEnvs", "--env.env_id", "Nothing-v0"], 2, "Nothing"),
    ],
)
def test_what_cannot_work_is_one_line(forks, tmp_path, flags, tasks, words):
    started = forks.srun(*CARTPOLE, *flags, "--runs_dir", tmp_path, tasks=tasks)
    statuses, _, _ = forks.wait(started)
    lines = [line for line in started[0].err.splitlines() if "share 2 cores" not in line]  # three ranks on two cores
    assert statuses == [2] * tasks
    assert len(lines) == 1 and lines[0].startswith("train_fabric.py: error: ") and words in lines[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_players_leave_the_size_of_minibatches_to_the_trainers(forks, tmp_path):
    flags = [*CARTPOLE, "--num_players", 1, "--total_timesteps", 512, "--batch_size", 64, "--minibatch_size", 16]
    flags += [f"--callbacks+={PARTS}.ScarceForPlayers", "--callbacks.smallest", 8]
    play(forks, tmp_path, 2, *flags)
    assert [row["ppo/minibatch_size"] for row in outcome(tmp_path)[1]] == ["16.0", "32.0", "64.0", "64.0"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("callback", "told"),
    [
        ("FailsOnPlayers", "FailsOnPlayers: there is nothing to learn here"),
        ("FailsOnPlayersWithoutAWord", "ValueError"),
    ],
)
def test_what_only_a_player_can_refuse_is_told(forks, tmp_path, callback, told):
    flags = [*CARTPOLE, "--num_players", 1, "--total_timesteps", 512, f"--callbacks+={PARTS}.{callback}"]
    statuses, _, err = forks.wait(forks.srun(*flags, "--runs_dir", tmp_path, "--run_id", "r", tasks=2))
    assert statuses == [2, 2]
    assert err.splitlines()[-1] == f"train_fabric.py: error: {told}"
    assert not (tmp_path / "r").exists()
