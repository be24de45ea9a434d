"""Phases: the rule with numbers by hand, and runs that are promoted, resumed and begun later."""

import json
import shutil
import warnings
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from agents import PPOLightningAgent
from envs import (
    EpisodeRatios,
    Kickoff,
    KickoffThenShoot,
    MechanicsLanes,
    PhasedReward,
    PhasedStates,
    RocketSimPool,
    StrongHitReward,
    TimeoutCondition,
    TouchReward,
)
from fabric_rl import History, Phase, Phases, Promotion, Run, Saving, TrainArgs, load_checkpoint, train
from fabric_rl.runs.checkpoint import read
from fabric_rl.runs.records import list_checkpoints
from tests.envs.fakes import Dropped

TOUCH = Promotion("game/touch_ratio", 0.8, for_iterations=3)
GOAL = Promotion("game/goal_ratio", 0.1, for_iterations=2)


def test_a_streak_is_broken_by_a_worse_value_but_not_by_a_missing_one():
    values = [0.8, 0.9, None, 0.85, 0.79, 1.0]
    streak, seen = 0, []
    for value in values:
        streak = TOUCH.streak(streak, {} if value is None else {"game/touch_ratio": value})
        seen.append(streak)
    assert seen == [1, 2, 2, 3, 0, 1]


@pytest.mark.parametrize(
    ("phase", "streaks", "steps", "done"),
    [
        (Phase("a", promotions=[TOUCH]), [2], 10**9, False),
        (Phase("a", promotions=[TOUCH]), [3], 1, True),
        (Phase("a", promotions=[TOUCH, GOAL]), [9, 1], 1, False),
        (Phase("a", promotions=[TOUCH, GOAL]), [3, 2], 1, True),
        (Phase("a", promotions=[TOUCH], after_steps=500), [0], 499, False),
        (Phase("a", promotions=[TOUCH], after_steps=500), [0], 500, True),
        (Phase("a"), [], 10**9, False),
    ],
)
def test_the_rule(phase, streaks, steps, done):
    assert phase.is_done(streaks, steps) is done


def walk(phases, metrics, steps_each=100, first_rank=False):
    """The phase's number after every iteration."""
    rank = SimpleNamespace(is_global_zero=first_rank, broadcast=lambda streaks: streaks)
    state = SimpleNamespace(
        env=None, agent=torch.nn.Linear(1, 1), steps=0, metrics={}, sums={}, phase="", learning_rate=None, fabric=rank
    )
    phases.on_train_start(state)
    numbers = []
    for each in metrics:
        phases.on_iteration_start(state)
        state.steps += steps_each
        state.metrics = dict(each)
        phases.on_iteration_end(state)
        numbers.append(phases.number)
    return numbers, state


def three(**settings):
    first = Phase("BallTouching", "touch", 2e-4, promotions=[Promotion("touch", 0.5, 2)])
    second = Phase("BronzeSkills1", "score", 1e-4, promotions=[Promotion("goal", 0.1, 2)], after_steps=400)
    return Phases([first, second, Phase("SilverSkills1", learning_rate=0.8e-4)], **settings)


def test_skills_count_from_the_beginning_of_their_phase():
    good = {"touch": 0.9, "goal": 0.5}
    numbers, state = walk(three(), [good, {"touch": 0.4}, good, good, good, good, good])
    assert numbers == [1, 1, 1, 2, 2, 3, 3]
    assert (state.phase, state.learning_rate) == ("Phase3-SilverSkills1", 0.8e-4)
    assert state.metrics["phase/number"] == 3 and state.metrics["phase/steps"] == 100


def test_the_factor_multiplies_the_rates_of_all_phases():
    _, state = walk(three(learning_rate_factor=5.0), [{"touch": 0.9}] * 3)  # promoted after the second
    assert (state.phase, state.learning_rate) == ("Phase2-BronzeSkills1", pytest.approx(5e-4))
    _, state = walk(Phases([Phase("a")], learning_rate_factor=5.0), [{}])
    assert state.learning_rate is None  # the optimizer's own


def test_a_metric_that_nobody_measures_is_a_warning():
    misspelt = Phases([Phase("a", promotions=[Promotion("game/touch", 0.5)]), Phase("b")])
    with pytest.warns(RuntimeWarning, match=r"phase a waits for game/touch, .*did you mean game/touches") as warned:
        walk(misspelt, [{"game/touches": 1.0}] * 60, first_rank=True)
    assert len(warned) == 1 and misspelt.number == 1


def test_each_phase_has_its_own_patience():
    """The second one is waited for anew: 20 iterations more, not 20 in all."""
    waiting = Phase("b", promotions=[Promotion("game/touch", 0.5)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walk(Phases([Phase("a", after_steps=1500), waiting, Phase("c")]), [{}] * 34, first_rank=True)
    with pytest.warns(RuntimeWarning, match="phase b waits for game/touch"):
        walk(Phases([Phase("a", after_steps=1500), waiting, Phase("c")]), [{}] * 35, first_rank=True)


def test_steps_count_from_the_beginning_of_their_phase():
    numbers, _ = walk(three(), [{"touch": 1.0, "goal": 0.0}] * 7)
    assert numbers == [1, 2, 2, 2, 2, 3, 3]  # 400 steps in phase 2


@pytest.mark.parametrize("start", [2, "BronzeSkills1"])
def test_begun_by_hand(start):
    numbers, _ = walk(three(start_phase=start), [{"goal": 1.0}] * 2)
    assert numbers == [2, 3]


def test_a_loaded_state_goes_on_unless_the_start_is_another_now():
    phases = three()
    walk(phases, [{"touch": 1.0}] * 3 + [{"goal": 1.0}])
    saved = phases.state_dict()
    streaks = {"goal >= 0.1": 1}
    begun = {"start_phase": "BallTouching", "start_number": 1, "begun_at": 200}
    assert saved == {"phase": "BronzeSkills1", "streaks": streaks} | begun
    again = three()
    again.load_state_dict(saved)
    assert again.number == 2 and again.state_dict() == saved
    by_hand = three(start_phase=3)
    by_hand.load_state_dict(saved)
    assert by_hand.number == 3
    first, second, third = three().phases
    for edited in ([second, third], [Phase("New"), first, second, third], [Phase("Touching"), second, third]):
        renamed = Phases(edited)  # the first phase has another name now, but none was chosen
        renamed.load_state_dict(saved)
        assert renamed.phase.name == "BronzeSkills1"
    with pytest.raises(ValueError, match="the checkpoint's phase BronzeSkills1 is not one of the phases in"):
        Phases([Phase("BallTouching")]).load_state_dict(saved)


def test_two_skills_of_one_metric_keep_their_own_streaks():
    skills = [Promotion("touch", at_least=20, for_iterations=3), Promotion("touch", at_least=5, for_iterations=6)]
    phases, again, older = (Phases([Phase("a", promotions=skills), Phase("b")]) for _ in range(3))
    walk(phases, [{"touch": 6.0}] * 4 + [{"touch": 30.0}])
    saved = phases.state_dict()
    again.load_state_dict(saved)
    assert again.state_dict() == saved
    assert walk(again, [{"touch": 30.0}] * 2)[0] == [1, 2]
    older.load_state_dict(saved | {"streaks": {"touch": 1}})  # as it was saved by metric alone
    assert older.state_dict()["streaks"] == {"touch >= 20.0": 1, "touch >= 5.0": 1}


class Listener:
    """An environment that only listens."""

    def check_phases(self, names):
        self.names = names

    def set_phase(self, name, number):
        self.told = (name, number)


def test_the_environment_is_told_all_phases_and_the_present_one():
    phases, told = [Phase(name) for name in "abcd"], []
    for number in range(1, 5):
        env = Listener()
        state = SimpleNamespace(
            env=env, agent=torch.nn.Linear(1, 1), steps=0, fabric=SimpleNamespace(is_global_zero=False)
        )
        Phases(phases, number).on_train_start(state)
        told.append(env.told)
        assert env.names == ["a", "b", "c", "d"]
    assert told == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Phases([]), "Phases: set at least one phase, with unique names, got none"),
        (lambda: Phases([Phase("a"), Phase("a")]), "Phases: set at least one phase, with unique names, got a, a"),
        (lambda: Phases([Phase("a")], 2), "there is no start_phase 2; choose one of 1 a"),
        (lambda: Phase("Silver/Gold"), "Phase: name must consist of letters"),
        (lambda: Promotion("", 1), "Promotion: metric must name a logged metric"),
    ],
)
def test_settings_that_cannot_work(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# ---------------------------------------------------------------- real runs

STEPS = 4 * 16  # of an iteration: 2 arenas with 2 cars


def school(seed):
    setter = PhasedStates({"touch": Dropped(), "air": Kickoff()})
    return RocketSimPool(
        2,
        reward=PhasedReward({"touch": TouchReward(), "air": StrongHitReward()}),
        state_setter=MechanicsLanes(setter, mechanics_weight=0.25, phase_weights={"air": 0.5}),
        done=TimeoutCondition(0.5),
        loggers=[EpisodeRatios()],
        seed=seed,
        num_threads=1,
        teacher=KickoffThenShoot(),
    )


def lessons(**settings):
    skill = Promotion("game/touch_ratio", 0.9, for_iterations=2)
    first = Phase("touch", "hit the ball", 2e-4, teacher_factor=2.0, promotions=[skill])
    return Phases([first, Phase("air", "jump", 1e-4, teacher_factor=0.0)], **settings)


def run_school(fabric, folder, iterations, callbacks, resume=None, every=1, teacher_coef=0.5):
    sizes = {"actor_hidden_sizes": [8], "critic_hidden_sizes": [8]}
    run = Run.create(folder, "r") if resume is None else Run.find(folder, "r")
    args = TrainArgs(
        total_timesteps=iterations * STEPS, num_steps=16, minibatch_size=32, update_epochs=1, lr_schedule="constant"
    )
    saving = Saving(checkpoint_every_timesteps=every * STEPS, keep_checkpoints=100, milestone_interval=STEPS)
    agent = partial(PPOLightningAgent, **sizes, teacher_coef=teacher_coef)
    train(fabric, school, agent, args, run, callbacks, plain=True, saving=saving, resume=resume)
    return run


def test_a_run_is_promoted_and_everything_follows(fabric, tmp_path, capsys):
    history = History()
    run = run_school(fabric, tmp_path, 4, [lessons(), history])
    rows = {name: [row.get(name) for row in history.rows] for row in history.rows for name in row}
    assert rows["phase/number"] == [1, 1, 2, 2]
    assert rows["phase/steps"] == [STEPS, 2 * STEPS, STEPS, 2 * STEPS]
    assert rows["ppo/learning_rate"] == pytest.approx([2e-4, 2e-4, 1e-4, 1e-4])
    assert rows["game/touch_ratio"][:2] == [1, 1]
    assert 0 < rows["reward/step"][0] < 0.5  # a touch in some of the 8 steps of an episode
    folders = sorted(path.relative_to(run.milestones).as_posix() for path in run.milestones.glob("*/*"))
    steps = [f"{n * STEPS:012d}" for n in range(1, 5)]
    # The milestone of the iteration that is promoted is the last one of the phase that it ends.
    expected = [*(f"Phase1-touch/{number}" for number in steps[:2]), *(f"Phase2-air/{number}" for number in steps[2:])]
    assert folders == expected
    assert json.loads((run.milestones / folders[1] / "meta.json").read_text())["phase"] == "Phase1-touch"
    assert "phase 2 of 2, jump, after 128 steps" in capsys.readouterr().out
    saved = load_checkpoint(run.dir)[1]
    number = saved["callback_names"].index("Phases")
    assert saved["callbacks"][number]["phase"] == "air"


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resumed_before_at_and_after_the_promotion_it_is_the_same_run(fabric, tmp_path, stop_after):
    whole = run_school(fabric, tmp_path / "whole", 5, [lessons(), History()])
    saved = read(list_checkpoints(whole.checkpoints)[stop_after - 1])
    assert saved["iteration"] == stop_after
    Run.create(tmp_path / "broken", "r")
    history = History()
    broken = run_school(fabric, tmp_path / "broken", 5, [lessons(), history], resume=saved)
    assert [row["phase/number"] for row in history.rows] == [1, 1, 2, 2, 2][stop_after:]
    expected, got = (read(list_checkpoints(run.checkpoints)[-1]) for run in (whole, broken))
    for name, weight in expected["agent"].items():
        assert torch.equal(got["agent"][name], weight), name
    assert got["callbacks"][0] == expected["callbacks"][0]


def test_a_milestone_that_is_missing_at_the_promotion_is_filed_under_the_phase_that_ended(fabric, tmp_path):
    run = run_school(fabric, tmp_path, 2, [lessons()])
    milestone = run.milestones / f"Phase1-touch/{2 * STEPS:012d}"
    saved = read(list_checkpoints(run.checkpoints)[-1])
    shutil.rmtree(milestone)
    run_school(fabric, tmp_path, 3, [lessons()], resume=saved)
    folders = sorted(path.relative_to(run.milestones).as_posix() for path in run.milestones.glob("*/*"))
    steps = [f"{n * STEPS:012d}" for n in range(1, 4)]
    assert folders == [f"Phase1-touch/{steps[0]}", f"Phase1-touch/{steps[1]}", f"Phase2-air/{steps[2]}"]
    # A run of an earlier version filed it under the next phase: it is not written a second time.
    milestone.rename(run.milestones / f"Phase2-air/{steps[1]}")
    run_school(fabric, tmp_path, 3, [lessons()], resume=saved)
    assert not milestone.exists()


def test_a_run_begun_later_plays_the_later_phase(fabric, tmp_path):
    history = History()
    run_school(fabric, tmp_path, 2, [lessons(start_phase="air"), history])
    assert [row["phase/number"] for row in history.rows] == [2, 2]
    assert history.rows[0]["ppo/learning_rate"] == pytest.approx(1e-4)
    lanes = [name for name in history.rows[-1] if name.startswith("lane/")]
    assert lanes  # the lanes were on


def test_an_environment_with_other_phases_is_refused_before_training(fabric, tmp_path):
    with pytest.raises(ValueError, match="has the phases touch, air, but the training has touch, fly"):
        run_school(fabric, tmp_path, 1, [Phases([Phase("touch"), Phase("fly")])])


@pytest.mark.slow
def test_each_phase_weighs_the_teacher(fabric, tmp_path):
    """As an agent with that weight would, in the first phase and in a later one."""

    def trained(start_phase, coef, **factors):
        phases = [Phase(name, teacher_factor=factors.get(name, 1.0)) for name in ("touch", "air")]
        folder = tmp_path / f"{start_phase}{coef}{len(factors)}"
        run = run_school(fabric, folder, 1, [Phases(phases, start_phase)], teacher_coef=coef)
        return torch.cat([weight.flatten() for weight in load_checkpoint(run.dir)[1]["agent"].values()])

    doubled = trained("touch", 0.5, touch=2.0, air=0.0)
    assert torch.equal(doubled, trained("touch", 1.0))
    assert not torch.equal(doubled, trained("touch", 0.0))
    assert torch.equal(trained("air", 0.5, touch=2.0, air=0.0), trained("air", 0.0))
