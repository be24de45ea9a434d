"""Lessons: when the next one begins, with numbers by hand, and how they reach an environment in training."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from agents import PPOLightningAgent
from envs import GymnasiumEnvs, ParameterRandomizer, ProcessPool, RocketSimPool, TimeoutCondition, Uniform
from fabric_rl import Callback, Curriculum, History, Lessons, Run, Saving, TrainArgs, load_checkpoint, train
from fabric_rl.curricula.lessons import LessonState
from fabric_rl.types import HasParameters


def course(measure="reward", thresholds=(10.0, 20.0), min_lesson_length=4, signal_smoothing=False):
    values = {"gravity": [600.0 - 100 * lesson for lesson in range(len(thresholds) + 1)]}
    return LessonState(Curriculum(values, list(thresholds), measure, min_lesson_length, signal_smoothing))


# ---------------------------------------------------------------- one curriculum, by hand


def test_a_lesson_waits_for_enough_episodes():
    c = course()
    assert not c.update(3, 3 * 50, 3)  # three of four episodes
    assert (c.lesson, c.measured) == (0, None)
    assert c.update(1, 50, 1)
    assert (c.lesson, c.measured) == (1, 50)


def test_episodes_are_counted_anew_in_a_new_lesson():
    c = course()
    assert c.update(4, 4 * 50, 4)
    assert not c.update(3, 3 * 50, 3)
    assert c.update(1, 50, 1)
    assert c.lesson == 2
    assert not c.update(40, 40 * 50, 40)  # the last lesson
    assert c.lesson == 2


def test_the_threshold_must_be_exceeded():
    c = course()
    assert not c.update(4, 4 * 10, 4)
    assert c.measured == 10
    assert c.update(4, 4 * 10 + 0.01, 4)


def test_only_the_newest_episodes_count():
    c = course(min_lesson_length=4)
    assert not c.update(2, 2 * -100, 2)
    assert not c.update(3, 3 * 5, 3)  # five episodes; without the first two there would be three
    assert c.measured == (-200 + 15) / 5
    assert not c.update(1, 14, 1)  # the first two are not needed any more
    assert c.measured == (15 + 14) / 4


def test_smoothing_takes_a_quarter_of_the_last_look():
    c = course(signal_smoothing=True)
    assert not c.update(4, 4 * 4, 4)
    assert c.measured == 4  # the first one as it is
    assert not c.update(4, 4 * 12, 4)
    assert c.measured == 10  # 0.25 * 4 + 0.75 * 12, not above 10
    assert c.update(4, 4 * 12, 4)
    assert c.measured == 11.5  # 0.25 * 10 + 0.75 * 12
    assert not c.update(4, 4 * 20, 4)
    assert c.measured == 17.875  # the new lesson goes on with what was measured in the old one


def test_negative_returns_below_the_threshold_never_promote():
    c = course(thresholds=(-80.0,), signal_smoothing=True)
    for _ in range(20):
        assert not c.update(4, 4 * -100, 4)  # from 0 it would begin with -75, above the threshold
    assert (c.lesson, c.measured) == (0, -100)


def test_progress_needs_episodes_too():
    c = course("progress", (0.1, 0.3), 2)
    assert not c.update(1, 0.2, 1)
    assert c.update(1, 0.25, 1)
    assert c.measured == 0.25  # the newest, no mean
    assert not c.update(0, 0.5, 1)
    assert not c.update(1, 0.6, 1)
    assert c.update(1, 0.7, 1)


def test_what_was_not_measured_decides_nothing():
    c = course("game/touches")
    assert not c.update(4, 0, 0)
    assert not c.update(4, float("nan"), 1)
    assert (c.lesson, c.measured) == (0, None)
    c = course("game/touches", thresholds=(-5.0,))
    assert c.update(4, 0, 10)  # zero is a number like others


def test_iterations_without_an_end_are_kept_as_one():
    c = course("game/touches", thresholds=(3.0,), min_lesson_length=2)
    for _ in range(1000):
        assert not c.update(0, 2.0, 1)
    assert not c.update(1, 0, 0) and len(c.state_dict()["window"]) == 2
    assert not c.update(1, 5.0, 2)  # two episodes: the touches before them are over
    assert c.measured == 5 / 2
    c = course("progress", (0.5,), min_lesson_length=1)
    c.update(0, 0.9, 1)
    assert not c.update(0, 0.2, 1) and not c.update(1, 0.3, 1) and c.measured == 0.3


def test_a_course_goes_on_where_it_was_saved():
    c, other = course(signal_smoothing=True), course(signal_smoothing=True)
    c.update(4, 4 * 12, 4), c.update(3, 3 * 12, 3)
    other.load_state_dict(c.state_dict())
    assert c.update(1, 12, 1) == other.update(1, 12, 1)
    assert vars(c) | {"curriculum": None} == vars(other) | {"curriculum": None}
    by_progress = course("progress", signal_smoothing=True)
    by_progress.load_state_dict(c.state_dict())
    assert (by_progress.lesson, by_progress.measured, len(by_progress._window)) == (c.lesson, None, 0)
    shorter = course(thresholds=())
    c.lesson = 2
    shorter.load_state_dict(c.state_dict())
    assert shorter.lesson == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parameters": {"gravity": [1.0, 2.0]}, "thresholds": [1.0, 2.0]}, "make 3 lessons, but gravity has 2 values"),
        ({"parameters": {}, "thresholds": []}, "at least one parameter"),
        ({"parameters": {"a": [1.0]}, "thresholds": [], "measure": ""}, "measure must be progress, reward or"),
    ],
)
def test_curricula_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Curriculum(**settings)


# ---------------------------------------------------------------- the callback


class World:
    """An environment with two parameters that keeps what it was told."""

    def __init__(self):
        self.told = []

    def check_parameters(self, values):
        for name, value in values.items():
            if name not in ("height", "mass") or value == 99:
                raise ValueError(f"World: no {name} {value}; known: height, mass")

    def set_parameters(self, values):
        self.told.append(dict(values))


@pytest.fixture
def state(fabric):
    """As training would show it."""
    return SimpleNamespace(
        env=World(), fabric=fabric, steps=0, args=TrainArgs(total_timesteps=100), metrics={}, sums={}
    )


def iteration(state, lessons, episodes, mean_return, **sums):
    state.steps += 10
    state.sums = {"reward/episode_return": (episodes * mean_return, float(episodes)), **sums}
    state.metrics = {name: total / count for name, (total, count) in state.sums.items() if count}
    lessons.on_iteration_end(state)
    return {name: value for name, value in state.metrics.items() if name.startswith("lesson/")}


def test_several_curricula_go_on_at_their_own_pace(state, capsys):
    wall = Curriculum({"height": [1.5, 2.0, [2.0, 3.0]]}, [0.1, 0.3], "progress", 2, False)
    heavy = Curriculum({"mass": [1.0, 5.0]}, [7.0], "reward", 3, False)
    lessons = Lessons({"wall": wall, "heavy": heavy})
    assert isinstance(state.env, HasParameters)
    lessons.on_train_start(state)
    assert state.env.told == [{"height": 1.5, "mass": 1.0}]
    assert iteration(state, lessons, 2, 9.0) == {"lesson/wall": 0, "lesson/wall_measure": 0.1, "lesson/heavy": 0}
    assert iteration(state, lessons, 2, 8.0) == {
        "lesson/wall": 0,  # played in lesson 0, after which lesson 1 begins: progress 0.2
        "lesson/wall_measure": 0.2,
        "lesson/heavy": 0,
        "lesson/heavy_measure": 8.5,
    }
    assert state.env.told[1:] == [{"height": 2.0, "mass": 5.0}]
    assert iteration(state, lessons, 0, 0.0)["lesson/wall"] == 1
    iteration(state, lessons, 2, 0.0)
    assert state.env.told[2:] == [{"height": [2.0, 3.0], "mass": 5.0}]
    assert iteration(state, lessons, 2, 0.0)["lesson/wall"] == 2
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "lesson 1 of wall after 20 steps: height 2.0"
    assert printed[2] == "lesson 2 of wall after 40 steps: height [2.0, 3.0]"


def test_any_logged_metric_can_measure(state):
    touches = Curriculum({"mass": [1.0, 5.0, 6.0]}, [3.0, 0.5], "game/touches", 2, False)
    lessons = Lessons({"touches": touches})
    lessons.on_train_start(state)
    iteration(state, lessons, 1, 0.0, **{"game/touches": (20.0, 4.0)})
    iteration(state, lessons, 1, 0.0, **{"game/touches": (5.0, 5.0)})
    assert (lessons.lesson_states["touches"].lesson, lessons.lesson_states["touches"].measured) == (0, 25 / 9)
    iteration(state, lessons, 1, 0.0, **{"game/touches": (40.0, 5.0)})
    assert (lessons.lesson_states["touches"].lesson, lessons.lesson_states["touches"].measured) == (1, 45 / 10)


def test_only_the_episodes_of_a_role_count_for_its_return(state):
    name = "striker/reward/episode_return"
    lessons = Lessons({"striker": Curriculum({"mass": [1.0, 5.0]}, [3.0], name, 4, False)})
    lessons.on_train_start(state)
    iteration(state, lessons, 4, 0.0, **{name: (10.0, 2.0)})
    assert lessons.lesson_states["striker"].measured is None
    iteration(state, lessons, 4, 0.0, **{name: (10.0, 2.0)})
    assert (lessons.lesson_states["striker"].lesson, lessons.lesson_states["striker"].measured) == (1, 5.0)


def test_a_metric_of_another_callback_counts_as_one_number(state):
    lessons = Lessons({"by_rating": Curriculum({"mass": [1.0, 5.0]}, [1300.0], "rating/elo", 1, False)})
    lessons.on_train_start(state)
    with pytest.warns(RuntimeWarning, match="nothing has logged rating/elo yet.*logged: .*reward/episode_return"):
        iteration(state, lessons, 1, 0.0)
    state.sums, state.metrics = {"reward/episode_return": (0.0, 1.0)}, {"rating/elo": 1301.0}
    lessons.on_iteration_end(state)
    assert lessons.lesson_states["by_rating"].lesson == 1


def test_what_cannot_be_set_is_found_before_training(state, counter_env):
    for value in ([1.0, 99.0], [99.0, 1.0]):
        with pytest.raises(ValueError, match=r"World: no mass 99\.0; known: height, mass"):
            Lessons({"x": Curriculum({"mass": value}, [1.0])}).on_train_start(state)
    assert state.env.told == []
    state.env = counter_env()
    with pytest.raises(ValueError, match="CounterEnv has no parameters that lessons could set"):
        Lessons({"x": Curriculum({"mass": [1.0]}, [])}).on_train_start(state)
    with pytest.raises(ValueError, match="both a and b set mass"):
        Lessons({"a": Curriculum({"mass": [1.0]}, []), "b": Curriculum({"mass": [2.0]}, [])})
    with pytest.raises(ValueError, match="at least one curriculum"):
        Lessons({})


def test_pools_and_gymnasium_environments_have_parameters():
    pool = RocketSimPool(1)
    assert isinstance(pool, HasParameters)
    assert isinstance(GymnasiumEnvs("CartPole-v1", 1), HasParameters)
    assert all(hasattr(ProcessPool, name) for name in ("check_parameters", "set_parameters"))


# ---------------------------------------------------------------- in training


class Gravities(Callback):
    """What CartPole's gravity is after every iteration."""

    def __init__(self):
        self.seen = []

    def on_iteration_end(self, state):
        self.seen.append(state.env.env.envs[0].unwrapped.gravity)


def test_training_leads_cartpole_through_lessons(fabric):
    lessons = Lessons({"moon": Curriculum({"gravity": [1.6, 5.0, 9.8]}, [0.3, 0.6], "progress", 3, False)})
    history, gravities = History(), Gravities()
    args = TrainArgs(total_timesteps=5 * 256, num_steps=64, minibatch_size=256, update_epochs=1)
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    train(fabric, env, PPOLightningAgent, args, callbacks=[lessons, history, gravities], plain=True)
    assert gravities.seen == [1.6, 5.0, 5.0, 9.8, 9.8]  # progress 0.2, 0.4, 0.6, 0.8, 1
    assert [row["lesson/moon"] for row in history.rows] == [0, 0, 1, 1, 2]


def pool(seed):
    parameters = ParameterRandomizer({"ball_mass": Uniform(20, 40)})
    return RocketSimPool(2, done=[TimeoutCondition(0.4)], parameters=parameters, num_threads=1, seed=seed)


@pytest.mark.slow
def test_a_run_that_goes_on_ends_as_without_the_break(fabric, tmp_path):
    def lessons():
        curricula = {
            "lighter": Curriculum({"gravity": [600.0, [300.0, 500.0], 100.0]}, [0.2, 0.55], "progress", 4),
            "by_return": Curriculum({"boost_accel_air": [900.0, 2000.0]}, [-1000.0], "reward", 20),
        }
        return [Lessons(curricula)]

    args = TrainArgs(total_timesteps=10 * 64, num_steps=16, minibatch_size=64, update_epochs=1)
    agent = partial(PPOLightningAgent, actor_hidden_sizes=[8], critic_hidden_sizes=[8])
    whole = Run.create(tmp_path, "whole")
    saving = Saving(checkpoint_every_timesteps=128, keep_checkpoints=20)
    train(fabric, pool, agent, args, whole, lessons(), plain=True, saving=saving)
    paths = sorted(whole.checkpoints.glob("*.ckpt"))
    ended = load_checkpoint(paths[-1])[1]
    assert ended["callbacks"][0]["lighter"]["lesson"] == 2 and ended["callbacks"][0]["by_return"]["lesson"] == 1
    for number, path in enumerate(paths[:-1]):
        again, saved = Run.create(tmp_path, f"again{number}"), load_checkpoint(path)[1]
        train(fabric, pool, agent, args, again, lessons(), plain=True, saving=saving, resume=saved)
        other = load_checkpoint(sorted(again.checkpoints.glob("*.ckpt"))[-1])[1]
        assert other["callbacks"] == ended["callbacks"]
        assert all(torch.equal(other["agent"][name], weights) for name, weights in ended["agent"].items())
