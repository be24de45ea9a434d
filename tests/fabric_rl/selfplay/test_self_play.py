"""SelfPlay in runs: snapshots, opponents, gate, ratings; killed and resumed to the bit."""

from functools import partial

import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily

from agents import PPOLightningAgent
from envs import ContinuousAction, GameMetrics, GymnasiumEnvs, LookupTable, NoTouchCondition, RocketSimPool
from envs.bots import BallChaser, HopBot, PolicyBot
from fabric_rl import Run, Saving, TrainArgs, load_checkpoint, train
from fabric_rl.callbacks import Callback
from fabric_rl.curricula.phases import Phase, Phases, Promotion
from fabric_rl.evaluation.players import load_guests
from fabric_rl.runs import checkpoint
from fabric_rl.runs.records import load_run
from fabric_rl.selfplay import MostSimilar, SelfPlay
from fabric_rl.selfplay.opponent_pool import LATEST
from fabric_rl.types import ActorCritic
from train_fabric import cli

STEPS = 128  # of an iteration: 4 arenas, one learner each, 32 steps
ENV = partial(RocketSimPool, num_arenas=4, done=[NoTouchCondition(0.6)], num_threads=1, loggers=[GameMetrics()])
AGENT = partial(PPOLightningAgent, actor_hidden_sizes=[8], critic_hidden_sizes=[8], actor_lr=0.02)


def settings(**changes):
    every = {"save_steps": STEPS, "swap_steps": STEPS, "window": 3, "play_against_latest_model_ratio": 0.3}
    return SelfPlay(**(every | changes))


class Watch(Callback):
    """What self-play did after each iteration."""

    def __init__(self, look=lambda state: None):
        self.seen, self.look = [], look

    def on_iteration_end(self, state):
        self.seen.append((dict(state.metrics), self.look(state)))


def run(fabric, self_play, iterations=6, env=ENV, agent=AGENT, look=lambda state: None, bots=(), **more):
    watch = Watch(look)
    args = TrainArgs(total_timesteps=iterations * STEPS, num_steps=32, minibatch_size=64, seed=4)
    train(fabric, self_play.around(env, agent, bots), agent, args, callbacks=[self_play, watch], plain=True, **more)
    return watch.seen


def test_snapshots_join_the_pool_in_a_window(fabric):
    self_play = settings()
    seen = run(fabric, self_play, look=lambda state: [each.steps for each in self_play.roster.active])
    window = [[0], [0, 128], [0, 128, 256], [128, 256, 384], [256, 384, 512], [384, 512, 640]]
    assert [steps for _, steps in seen] == window
    assert [metrics["selfplay/opponents"] for metrics, _ in seen] == [1, 2, 3, 3, 3, 3]
    assert seen[-1][0]["selfplay/diversity"] > 0 and "selfplay/diversity" not in seen[0][0]
    played = sum("selfplay/win_rate" in metrics for metrics, _ in seen)
    assert played and seen[-1][0]["selfplay/rating"] > 0


def test_opponents_are_the_snapshots_and_the_latest_is_the_agent(fabric):
    self_play = settings(save_steps=2 * STEPS)

    def look(state):
        latest = state.env.policies.of(LATEST, None).state_dict()
        first = self_play.roster.opponents[0].weights
        same = [all(torch.equal(x, y[name]) for name, x in latest.items()) for y in (first, state.agent.state_dict())]
        return same, state.env.pairings.playing

    seen = run(fabric, self_play, 3, look=look)
    assert [same for _, (same, _) in seen] == [[True, False], [False, False], [False, False]]
    assert [each.steps for each in self_play.roster.opponents] == [0, 256]
    assert seen[-1][1][1] <= {LATEST, 0, 1}


def test_more_tables_than_arenas_are_a_warning(fabric):
    what = "--self_play.at_once 50: only 2 opponents can play in 4 arenas"
    with pytest.warns(RuntimeWarning, match=what):
        run(fabric, settings(at_once=50), 1)


def test_learners_change_sides_together_every_team_change(fabric):
    def look(state):
        return state.env.team, state.env.assignment.learns[state.env.assignment.played].tolist()

    seen = run(fabric, settings(team_change=2 * STEPS), look=look)
    assert [team for _, (team, _) in seen] == [0, 0, 1, 1, 0, 0]
    assert not any(seen[0][1][1])  # from the first episode on


@pytest.mark.slow
@pytest.mark.parametrize("action", [LookupTable(), ContinuousAction()])
def test_a_snapshot_that_acts_like_one_of_the_pool_does_not_join(fabric, action):
    env = partial(ENV, action=action)
    self_play = settings(min_kl=1e6)
    run(fabric, self_play, env=env)
    assert [each.steps for each in self_play.roster.opponents] == [0]
    self_play = settings(min_kl=1e-9, eviction=MostSimilar())
    run(fabric, self_play, env=env)
    assert len(self_play.roster.active) == 3 and self_play.roster.active[-1].steps == 5 * STEPS


class Silent(PPOLightningAgent):
    """Does not say how it acts."""

    distributions = ActorCritic.distributions


class Incomparable(PPOLightningAgent):
    """Says it, but nobody knows how far two such are apart."""

    def distributions(self, obs, state, action_mask):
        logits = torch.zeros(len(obs), 2, 90)
        return [MixtureSameFamily(Categorical(logits=logits[..., 0]), Categorical(logits=logits))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Silent, Incomparable])
def test_min_kl_of_an_agent_that_cannot_be_compared_is_one_line_at_once(fabric, kind):
    with pytest.raises(ValueError, match=rf"self_play\.min_kl: policies of --agent {kind.__name__} cannot be compared"):
        run(fabric, settings(min_kl=0.1), 1, agent=kind)
    self_play = settings()
    run(fabric, self_play, 3, agent=kind)
    assert len(self_play.roster.active) == 3


@pytest.mark.slow
def test_behind_the_gate_opponents_are_the_agent_as_it_is(fabric, caplog):
    skill = Promotion("game/episodes_per_minute", 1.0, for_iterations=2)
    self_play = settings(gate=[skill])
    seen = run(fabric, self_play, look=lambda state: (len(self_play.roster.opponents), state.env.pairings.playing))
    assert [metrics["selfplay/open"] for metrics, _ in seen] == [0, 0, 1, 1, 1, 1]
    assert [count for _, (count, _) in seen[:3]] == [0, 0, 1] and seen[1][1][1] == {LATEST}
    said = "self-play against up to 3 snapshots (0 so far); until the agent reaches game/episodes_per_minute of 1"
    assert said in caplog.text and "self-play begins after 256 steps" in caplog.text
    never = settings(gate=[Promotion("game/touches_per_minute", 1e9)])
    run(fabric, never, 3)
    assert not never.open and not never.roster.opponents
    forced = settings(gate=never.gate, force=True)
    run(fabric, forced, 2)
    assert forced.open and len(forced.roster.opponents) == 2


def test_phases_and_lessons_know_the_results_wherever_they_are_listed(fabric):
    """The command line puts self-play after the callbacks of the user."""
    self_play = settings()
    phases = Phases([Phase("a", promotions=[Promotion("selfplay/rating", 0.0, 2)]), Phase("b")])
    args = TrainArgs(total_timesteps=3 * STEPS, num_steps=32, minibatch_size=64, seed=4)
    train(fabric, self_play.around(ENV, AGENT), AGENT, args, callbacks=[phases, self_play], plain=True)
    assert phases.phase.name == "b"


def test_a_gate_waits_for_a_metric_that_is_not_measured_in_every_iteration(fabric):
    waiting = settings(gate=[Promotion("eval/return", 1.0)])
    run(fabric, waiting, 2)
    assert not waiting.open


def test_a_gate_that_waits_for_nothing_is_one_line(fabric):
    wrong = settings(gate=[Promotion("game/touches_per_minut", 1.0)])
    with pytest.raises(ValueError, match=r"self_play.gate: nothing measures game/touches_per_minut.*per_minute"):
        run(fabric, wrong)


def test_what_self_play_cannot_go_with_is_one_line(fabric):
    with pytest.raises(ValueError, match="--self_play: --env GymnasiumEnvs does not have two teams"):
        run(fabric, settings(), env=partial(GymnasiumEnvs, "CartPole-v1", 2))
    with pytest.raises(ValueError, match=r"--self_play\.guests names shooter twice"):
        settings(guests=["shooter", "idle", "shooter"])
    with pytest.raises(ValueError, match=r"guests names 1 players, but around\(\) was given 0"):
        run(fabric, settings(guests=["chaser"]))
    with pytest.raises(ValueError, match=r"pass the result of around\(env, agent\) to fabric_rl.train"):
        train(fabric, ENV, AGENT, TrainArgs(total_timesteps=64, num_steps=8), callbacks=[settings()], plain=True)


def test_mirror_play_trains_as_without(fabric):
    def weights(env, callbacks):
        last = Watch(lambda state: {name: x.clone() for name, x in state.agent.state_dict().items()})
        args = TrainArgs(total_timesteps=1024, num_steps=32, minibatch_size=64, seed=4)
        train(fabric, env, AGENT, args, callbacks=[*callbacks, last], plain=True)
        return last.seen[-1][1]

    self_play = settings(share=0.0)
    ours, theirs = weights(self_play.around(ENV, AGENT), [self_play]), weights(ENV, [])
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def saved_after(fabric, folder, self_play, iterations=4):
    """The checkpoint of a short run."""
    kept = Run.create(folder, "r")
    run(fabric, self_play, iterations, run=kept, saving=Saving())
    return load_checkpoint(kept.dir)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda own: own["roster"]["opponents"][1]["weights"].popitem(), "pool's snapshot of 256 steps: .* missing"),
        (
            lambda own: own["roster"]["opponents"][1]["weights"]["policy_head.layer.bias"].fill_(float("nan")),
            "pool's snapshot of 256 steps: .*policy_head.layer.bias contains NaN",
        ),
        (lambda own: own["roster"]["opponents"].clear(), "SelfPlay does not fit: its pool of opponents is empty"),
        (lambda own: own["roster"].update(rating="much"), r"SelfPlay does not fit: .*\['rating'\] is 'much'"),
        (
            lambda own: own["roster"]["opponents"][1]["weights"].update({"policy_head.layer.bias": "x"}),
            "pool's snapshot of 256 steps: .*policy_head.layer.bias: a str in the checkpoint",
        ),
        (lambda own: own.update(streaks="abc"), r"it\['streaks'\] is 'abc', a str"),
        (lambda own: own.update(probe=[torch.zeros(3, 5), None]), "the last rollout that --self_play saved"),
        (lambda own: own["probe"].__setitem__(1, torch.ones(3)), "the last rollout that --self_play saved"),
    ],
)
def test_a_corrupt_pool_of_a_resumed_run_is_one_line(fabric, tmp_path, spoil, words):
    state = saved_after(fabric, tmp_path, settings())
    spoil(state["callbacks"][0])
    with pytest.raises(ValueError, match=words) as error:
        run(fabric, settings(), 6, resume=state)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.slow
def test_a_smaller_window_of_a_resumed_run_holds_from_its_beginning(fabric, tmp_path):
    state = saved_after(fabric, tmp_path, settings())
    state["callbacks"][0]["saved_at"] = 2**53  # would never come
    self_play = settings(window=1)
    run(fabric, self_play, 6, resume=state, look=lambda state: self_play.roster.active[0].steps)
    assert [each.steps for each in self_play.roster.active] == [640]


def test_a_resumed_run_may_begin_to_change_sides(fabric, tmp_path):
    state = saved_after(fabric, tmp_path, settings(), 2)
    run(fabric, settings(team_change=2 * STEPS), 3, resume=state)


def test_a_run_keeps_its_guests(fabric, tmp_path):
    state = saved_after(fabric, tmp_path, settings(), 1)
    words = "its guests were nobody, but --self_play.guests are chaser; only a new run"
    with pytest.raises(ValueError, match=words):
        run(fabric, settings(guests=["chaser"]), 2, resume=state, bots=[BallChaser()])


def test_milestones_keep_the_rating(fabric, tmp_path):
    kept = Run.create(tmp_path, "r")
    seen = run(fabric, settings(), 2, run=kept, saving=Saving(milestone_interval=STEPS))
    assert [each.rating for each in load_run(kept.dir).milestones] == [m["selfplay/rating"] for m, _ in seen]


@pytest.mark.slow
def test_another_number_of_tables_is_one_line(fabric, tmp_path):
    state = saved_after(fabric, tmp_path, settings())
    with pytest.raises(ValueError, match=r"self_play\.at_once is 7, but the saved state has 4"):
        run(fabric, settings(at_once=7), 6, resume=state)


@pytest.mark.slow
def test_guests_by_name(fabric, tmp_path):
    saved_after(fabric, tmp_path, settings(), 1)
    (tmp_path / "r/config.yaml").write_text(
        "env: {class_path: envs.RocketSimPool}\nagent: {class_path: agents.PPOLightningAgent, init_args: "
        "{actor_hidden_sizes: [8], critic_hidden_sizes: [8]}}\n"
    )
    names = ["chaser", "envs.bots.HopBot", "r"]
    self_play = settings(guests=names, play_against_latest_model_ratio=0.0, save_steps=10**9)
    bots = load_guests(names, ENV, str(tmp_path), seed=0)
    assert [type(bot) for bot in bots] == [BallChaser, HopBot, PolicyBot]
    seen = run(fabric, self_play, look=lambda state: state.env.pairings.playing, bots=bots)
    assert set().union(*(playing for _, playing in seen)) >= {0, 1, 2}


@pytest.mark.parametrize(
    "name, words",
    [
        ("nobody", "'nobody': agent nobody: no such checkpoint"),
        ("envs.bots.Bot", "'envs.bots.Bot': Can't instantiate abstract class"),
        ("", "'': "),
        ("json.dumps", "is not a subclass of Bot"),
        ("{torn}", "torn.ckpt"),
        ("envs.bots.BallChaser", "'envs.bots.BallChaser': the same player as 'chaser'"),
    ],
)
def test_guests_that_cannot_play_are_one_line(tmp_path, name, words):
    torn = tmp_path / "torn.ckpt"
    torn.write_bytes(b"half of a checkpoint")
    with pytest.raises(ValueError, match=f"^--self_play.guests: .*{words}"):
        load_guests(["chaser", name.format(torn=torn)], ENV, str(tmp_path), seed=0)


def test_a_run_cannot_be_a_guest_of_itself(tmp_path):
    with pytest.raises(ValueError, match=r"^--self_play\.guests: 'r': this is the run itself; export its agent"):
        load_guests(["r"], ENV, str(tmp_path), seed=0, run=tmp_path / "r")


SMALL = ["--env", "envs.RocketSimPool", "--env.num_arenas", "2", "--num_steps", "32", "--self_play", "SelfPlay"]
SMALL += ["--agent.actor_hidden_sizes", "[8]", "--agent.critic_hidden_sizes", "[8]", "--accelerator", "cpu", "--plain"]


def refused(capsys, folder, *flags):
    """What the command line says where it ends with status 2."""
    with pytest.raises(SystemExit) as ended:
        cli([*SMALL, "--runs_dir", str(folder), "--run_id", "r", *flags])
    error = capsys.readouterr().err
    assert ended.value.code == 2 and "Traceback" not in error
    return error.splitlines()[-1]


@pytest.mark.slow
def test_what_only_training_shows_to_be_wrong_is_one_line_on_the_command_line(capsys, tmp_path):
    cli([*SMALL, "--runs_dir", str(tmp_path), "--run_id", "r", "--total_timesteps", "64"])
    path, state = load_checkpoint(tmp_path / "r")
    own = next(each for each in state["callbacks"] if "roster" in each)
    own["roster"]["opponents"][0]["weights"]["policy_head.layer.bias"].fill_(float("nan"))
    checkpoint.write(path, state)
    (path.parent / "step_000000000999.ckpt").write_bytes(b"torn")
    said = refused(capsys, tmp_path, "--total_timesteps", "256", "--resume")
    assert "pool's snapshot of 0 steps: " in said
    assert (path.parent / "step_000000000999.ckpt").is_file()  # nothing has begun
    gate = "[{metric: game/foo, at_least: 1, for_iterations: 1}]"
    said = refused(capsys, tmp_path, "--total_timesteps", "256", "--force", "--self_play.gate", gate)
    assert said.startswith("train_fabric.py: error: --self_play.gate: nothing measures game/foo")


@pytest.mark.slow
def test_the_win_rate_counts_games_against_a_snapshot_that_leaves(fabric, monkeypatch):
    self_play, played, left = settings(window=1), [], 0
    record, drain = self_play.roster.record_results, self_play.drain_metrics

    def recorded(results):
        played.append([(number, score) for number, score in results if number != LATEST])
        record(results)

    def drained():
        nonlocal left
        before, found = set(self_play.roster.numbers), drain()
        left += sum(number in before - set(self_play.roster.numbers) for number, _ in played[-1])
        rate = sum(score for _, score in played[-1]), len(played[-1])
        assert found.get("selfplay/win_rate", (0, 0)) == pytest.approx(rate)
        return found

    monkeypatch.setattr(self_play.roster, "record_results", recorded)
    monkeypatch.setattr(self_play, "drain_metrics", drained)
    run(fabric, self_play, 12)
    assert left
