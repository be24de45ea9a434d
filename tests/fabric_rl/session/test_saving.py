"""What a run keeps: milestones and what they say, milestones it has gone back from, a disk that is full at the end."""

import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fabric_rl import Callback, History, Run, Saving, TrainArgs, load_checkpoint, train
from fabric_rl.analysis.curves import final_score
from fabric_rl.cli.report import format_summary
from fabric_rl.metrics.log import BufferedLog, logger
from fabric_rl.runs.records import checkpoint_name, list_checkpoints, load_run

BOTH = Saving(30, milestone_interval=15, keep_checkpoints=100, exact_resume=True)


@pytest.fixture
def known(fabric, counter_env, known_agent, tmp_path):
    """Trains for 15 agent-steps per iteration: episodes of sub-environment 0, 1, 2 return 6, 3, 10."""

    def call(run, total, env=counter_env, callbacks=(), minibatch_size=15, overlap=False, kept=None, freq=None, **more):
        run = run if isinstance(run, Run) else Run.create(tmp_path, run)
        sizes = {"num_steps": 5, "minibatch_size": minibatch_size, "total_timesteps": total, "exp_buffer_size": kept}
        args = TrainArgs(**sizes, update_epochs=1, overlap=overlap, summary_freq=freq)
        return train(fabric, env, known_agent, args, run, callbacks, **({"saving": BOTH, "plain": True} | more))

    return call


def meta_of(run, steps):
    return json.loads((run / f"milestones/main/{steps:012d}/meta.json").read_text())


# ---------------------------------------------------------------- when, and how exactly


def test_what_is_due_is_saved_after_the_iteration_that_passes_it(known, tmp_path):
    """Iterations of 15 steps pass 20, 40, 60 and 80; and 40 and 80."""
    known("a", 90, saving=Saving(20, milestone_interval=40, keep_checkpoints=100, exact_resume=True))
    saved = list_checkpoints(tmp_path / "a/checkpoints")
    assert [path.name for path in saved] == [checkpoint_name(steps) for steps in (30, 45, 60, 90)]
    assert all(load_checkpoint(path)[1]["exact"] for path in saved)
    milestones = (tmp_path / "a/milestones/main").iterdir()
    assert sorted(int(folder.name) for folder in milestones) == [45, 90]


@pytest.mark.parametrize("overlap", [False, True])
def test_the_end_of_a_run_that_collects_ahead_is_not_the_middle_of_a_longer_one(known, tmp_path, overlap):
    known("a", 60, overlap=overlap)
    exact = [load_checkpoint(path)[1]["exact"] for path in list_checkpoints(tmp_path / "a/checkpoints")]
    assert exact == [True, not overlap]


def test_the_minutes_begin_anew_with_every_checkpoint(known, monkeypatch, tmp_path):
    """30 s an iteration: a minute has passed after the second, and after the fourth."""
    seconds = [1000.0]
    monkeypatch.setattr("fabric_rl.session.saving.time", SimpleNamespace(monotonic=lambda: seconds[0]))

    class HalfAMinute(Callback):
        def on_iteration_end(self, state):
            seconds[0] += 30

    known("a", 75, callbacks=[HalfAMinute()], saving=Saving(checkpoint_every_minutes=1, keep_checkpoints=100))
    saved = list_checkpoints(tmp_path / "a/checkpoints")
    assert [path.name for path in saved] == [checkpoint_name(steps) for steps in (30, 60, 75)]
    assert [load_checkpoint(path)[1]["exact"] for path in saved] == [False] * 3  # the clock never says it twice


def test_where_the_time_went_is_written_with_every_checkpoint(known, tmp_path):
    there = []

    class Look(Callback):
        def on_iteration_end(self, state):
            there.append((tmp_path / "a/timers.json").exists())

    known("a", 45, callbacks=[Look()], saving=Saving(checkpoint_every_timesteps=30))
    assert there == [False, False, True]


def test_a_short_run_has_all_of_the_older_rollouts_that_there_are(known, tmp_path):
    """Three are kept; after one iteration there is one, so nothing is missing."""
    known("a", 15, kept=45)
    known(Run(tmp_path / "a"), 60, kept=45, resume=load_checkpoint(tmp_path / "a")[1])
    assert load_checkpoint(tmp_path / "a")[1]["exact"]


# ---------------------------------------------------------------- milestones


RARE = Saving(30, milestone_interval=45, keep_checkpoints=100, exact_resume=True)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_milestone_and_the_summary_tell_the_mean_return_of_the_last_tenth(known, tmp_path, resumed):
    """It is the final score of `fabric-rl compare`; the episodes begin anew at the checkpoint."""
    if resumed:
        known("a", 30, saving=RARE)
        summary = known(Run(tmp_path / "a"), 45, saving=RARE, resume=load_checkpoint(tmp_path / "a")[1])
    else:
        summary = known("a", 45, saving=RARE)
    assert meta_of(tmp_path / "a", 45)["mean_reward"] == summary["mean_return"] == pytest.approx(5.5)


def test_the_mean_return_before_the_first_row(known, tmp_path):
    known("a", 30, freq=1000)
    assert meta_of(tmp_path / "a", 15)["mean_reward"] > 0


def test_the_mean_return_of_many_rows_is_the_final_score(known, tmp_path):
    history, saving = History(), Saving(60)
    known("a", 150, callbacks=[history], saving=saving)
    resume = load_checkpoint(tmp_path / "a")[1]
    summary = known(Run(tmp_path / "a"), 450, resume=resume, callbacks=[history], saving=saving)
    returns = np.array([row["reward/episode_return"] for row in history.rows])
    assert len(returns) == 30 and len(set(returns)) > 1, returns
    assert summary["mean_return"] == final_score((np.arange(30), returns)) == pytest.approx(np.mean(returns[-3:]))


def test_the_seconds_of_a_resumed_run_are_those_of_all_its_parts(known, tmp_path):
    known("a", 30)
    state = load_checkpoint(tmp_path / "a")[1]
    state["seconds"] = {"wall": 5000.0, "collect": 1000.0, "learn": 2000.0}
    summary = known(Run(tmp_path / "a"), 60, resume=state)
    seconds = load_checkpoint(tmp_path / "a")[1]["seconds"]
    for part, before in state["seconds"].items():
        assert before < seconds[part] < before + 500
    assert 5000 < summary["wall_seconds"] < 5500
    for name, before in (("overall", 5000), ("collected", 1000), ("consumed", 2000)):
        assert 60 / (before + 500) < summary[f"{name}_steps_per_second"] < 60 / before


def test_a_rollout_that_lay_ready_took_what_one_takes_on_average(known, tmp_path):
    speeds = []

    class Look(Callback):
        def on_iteration_end(self, state):
            speeds.append(state.metrics["speed/collected_steps_per_second"])

    known("a", 60, overlap=True)
    state = load_checkpoint(tmp_path / "a/checkpoints" / checkpoint_name(30))[1]
    state["seconds"] = {"wall": 5000.0, "collect": 1000.0, "learn": 2000.0}
    known(Run(tmp_path / "a"), 60, overlap=True, resume=state, callbacks=[Look()])
    assert speeds[0] == pytest.approx(15 / 500) and speeds[1] > 1  # 1,000 s in 2 iterations


def test_the_first_and_last_figures_of_a_resumed_run_are_those_of_all_its_parts(
    known, counter_env, tmp_path, monkeypatch
):
    """The row of a later time, which the run has gone back from, does not count."""
    monkeypatch.setattr("fabric_rl.session.monitor.START_STEPS", 20)
    monkeypatch.setattr("fabric_rl.session.monitor.END_STEPS", 40)

    class Touching(counter_env):
        headlines = {"game/touches_per_minute": "touches/min"}  # noqa: RUF012

        def drain_metrics(self):
            return {"game/touches_per_minute": (10.0, 1.0)}

    known("a", 30, env=Touching)
    (tmp_path / "a/metrics.csv").write_text("step,game/touches_per_minute\n15,1\n30,8\n45,999\n")
    summary = known(Run(tmp_path / "a"), 60, env=Touching, resume=load_checkpoint(tmp_path / "a")[1])
    assert summary["touches_per_minute"] == {"start": 1, "end": (8 + 10 + 10) / 3}


def test_without_an_episode_there_is_no_mean_return(known, counter_env, tmp_path):
    known("a", 15, env=partial(counter_env, terminate_after=(99,) * 3, truncate_after=(99,) * 3))
    assert meta_of(tmp_path / "a", 15)["mean_reward"] is None


def test_a_milestone_says_what_a_run_must_share_with_it(known, tmp_path):
    known("a", 15)
    fingerprint = meta_of(tmp_path / "a", 15)["fingerprint"]
    assert fingerprint == load_checkpoint(tmp_path / "a")[1]["fingerprint"]
    assert fingerprint["actions"] == "Discrete(5)"


def test_milestones_of_a_time_that_was_gone_back_from_are_set_aside(known, tmp_path):
    """Twice: the same milestone of the second time does not take the place of the first one's."""
    known("a", 60)
    run = tmp_path / "a"
    state = load_checkpoint(run / "milestones/main" / f"{15:012d}")[1]
    for times in (1, 2):
        known(Run(run), 30, resume=state)
        assert [m.steps for m in load_run(run).milestones] == [15, 30]
        assert load_run(run).abandoned == 2 + times
    aside = run / "milestones/set_aside/main"
    names = {f"{30:012d}", f"{30:012d}-2", f"{45:012d}", f"{60:012d}"}
    assert {path.name for path in aside.iterdir()} == names
    assert [load_checkpoint(aside / name)[1]["steps"] for name in sorted(names)] == [30, 30, 45, 60]


def test_a_run_that_has_nothing_left_to_do_moves_nothing(known, tmp_path):
    known("a", 60)
    known(Run(tmp_path / "a"), 15, resume=load_checkpoint(tmp_path / "a/milestones/main" / f"{15:012d}")[1])
    assert [m.steps for m in load_run(tmp_path / "a").milestones] == [15, 30, 45, 60]


@pytest.mark.parametrize("total", [30, 45])
@pytest.mark.parametrize("left", ["nothing", "a checkpoint without meta.json"])
def test_a_milestone_that_a_run_was_killed_before_is_written_when_it_goes_on(known, tmp_path, left, total):
    known("a", 30)
    folder = tmp_path / "a/milestones/main" / f"{30:012d}"
    content, meta = (folder / checkpoint_name(30)).read_bytes(), meta_of(tmp_path / "a", 30)
    if left == "nothing":
        shutil.rmtree(folder)
    else:
        (folder / "meta.json").unlink()
    known(Run(tmp_path / "a"), total, resume=load_checkpoint(tmp_path / "a")[1])
    assert (folder / checkpoint_name(30)).read_bytes() == content
    assert meta_of(tmp_path / "a", 30) | {"timestamp": ""} == meta | {"timestamp": ""}
    assert [m.steps for m in load_run(tmp_path / "a").milestones] == list(range(15, total + 1, 15))


# ---------------------------------------------------------------- environments that cannot be saved


def test_the_checkpoint_interval_changes_nothing_that_is_learned(known, tmp_path):
    """No episode is cut at a checkpoint: what is collected is the same with many, few, and none."""
    ends = {}
    for name, interval in (("many", 15), ("few", 45), ("none", None)):
        metrics = History()
        known(name, 90, callbacks=[metrics], saving=Saving(interval, keep_checkpoints=100))
        ends[name] = [{k: v for k, v in row.items() if "speed/" not in k} for row in metrics.rows]
    assert len(ends["none"]) == 6 and ends["many"] == ends["few"] == ends["none"]
    assert not any(load_checkpoint(path)[1]["exact"] for path in list_checkpoints(tmp_path / "many/checkpoints"))


def test_new_episodes_at_checkpoints_are_asked_for(known, tmp_path):
    metrics = {exact: History() for exact in (False, True)}
    for exact, history in metrics.items():
        known(f"a{exact}", 90, callbacks=[history], saving=Saving(15, exact_resume=exact))
        assert load_checkpoint(tmp_path / f"a{exact}")[1]["exact"] is exact
    assert metrics[False].rows[-1]["reward/step"] != metrics[True].rows[-1]["reward/step"]


# ---------------------------------------------------------------- playing, full disks


def test_a_run_that_only_plays_says_so(known, tmp_path):
    assert known("a", 30, inference=True)["inference"] is True
    assert load_run(tmp_path / "a").status == "played"
    assert "inference" not in known("b", 30)


class FullDisk(Callback):
    """From an iteration on no file may grow: the disk is full. Until the end, or until another iteration."""

    def __init__(self, begins, ends=None):
        self.begins, self.ends = begins, ends

    def on_iteration_end(self, state):
        import resource

        if state.iteration in (self.begins, self.ends):
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            soft = 1000 if state.iteration == self.begins else resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def file_limit():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_at_the_end(known, file_limit, tmp_path):
    with pytest.warns(RuntimeWarning, match="older checkpoints are kept") as warned:
        summary = known("a", 60, callbacks=[FullDisk(begins=3)])
    assert "training continues" not in str([w.message for w in warned if "checkpoint" in str(w.message)][-1])
    good = tmp_path / "a/checkpoints" / checkpoint_name(30)
    assert (summary["unsaved_steps"], summary["checkpoint"]) == (30, str(good))
    assert list_checkpoints(tmp_path / "a/checkpoints") == [good]
    (line,) = (line for line in format_summary(Run(tmp_path / "a"), summary).splitlines() if "NOT SAVED" in line)
    assert "the last 30 steps" in line and line.endswith(f"the newest good checkpoint is {good}")


def test_a_disk_that_has_room_again_at_the_end(known, file_limit, tmp_path):
    with pytest.warns(RuntimeWarning, match="training continues"):
        summary = known("a", 60, callbacks=[FullDisk(begins=2, ends=4)])
    assert "unsaved_steps" not in summary
    assert summary["checkpoint"] == str(tmp_path / "a/checkpoints" / checkpoint_name(60))


@pytest.mark.parametrize(("damaged", "unsaved", "newest"), [(True, 45, 30), (False, 15, 60)])
def test_the_newest_good_checkpoint_is_none_that_is_damaged(known, file_limit, tmp_path, damaged, unsaved, newest):
    class Damage(Callback):
        def on_iteration_end(self, state):
            if damaged and state.iteration == 5:
                os.truncate(tmp_path / "a/checkpoints" / checkpoint_name(60), 100)

    with pytest.warns(RuntimeWarning, match="cannot be written"):
        summary = known("a", 75, callbacks=[Damage(), FullDisk(begins=5)])
    assert (summary["unsaved_steps"], summary["checkpoint"]) == (
        unsaved,
        str(tmp_path / "a/checkpoints" / checkpoint_name(newest)),
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_a_log_that_cannot_be_written_to_its_end_is_left_out():
    with BufferedLog() as log:
        log.open(Path("/dev/full"))
        logger.debug("something")


def test_a_run_whose_output_was_closed_before_it_began_goes_on(known, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert known("a", 30, plain=None)["total_steps"] == 30


# ---------------------------------------------------------------- another number of sub-environments


def test_a_run_that_goes_on_with_larger_rollouts_does_all_its_steps(known, counter_env, capsys, tmp_path):
    """15 steps are done of 60, in iterations of 10 from now on; then 55 are done, in iterations of 15."""
    known("a", 15)
    two = partial(counter_env, terminate_after=(3, 4), truncate_after=(99, 99))
    summary = known(Run(tmp_path / "a"), 60, env=two, resume=load_checkpoint(tmp_path / "a")[1], minibatch_size=10)
    assert (summary["total_steps"], summary["iterations"]) == (65, 1 + 5) and not summary["stopped_early"]
    assert "65/65 " in capsys.readouterr().out
    summary = known(Run(tmp_path / "a"), 75, resume=load_checkpoint(tmp_path / "a")[1])
    assert (summary["total_steps"], summary["iterations"]) == (80, 1 + 5 + 1)
    assert "80/80 " in capsys.readouterr().out
