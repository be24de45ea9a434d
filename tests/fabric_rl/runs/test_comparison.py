"""Comparing groups of runs: the statistics against published and enumerated numbers, and runs made by hand."""

import csv
import json
import re
from dataclasses import asdict
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

import fabric_rl
from fabric_rl.analysis import comparison
from fabric_rl.analysis.comparison import (
    ALL,
    chosen_metric,
    compare,
    estimate,
    iqm,
    permutation_p,
    probability_of_improvement,
)
from tests.command import command

# The examples that rliable publishes with its metrics: runs x tasks.
X = np.array([[1.0, 2], [2, 2], [1, 1], [2, 1]])
Y = np.array([[1.0, 1], [2, 2], [3, 3]])


def test_the_published_examples_of_rliable():
    assert iqm(*X.T) == 1.5 and iqm(*Y.T) == 2.0
    assert probability_of_improvement(*X.T, *Y.T) == pytest.approx(1 / 3)
    runs = np.arange(80.0).reshape(5, 16)
    assert iqm(*runs.T) == 39.5 and probability_of_improvement(*runs.T, *runs[::-1].T) == 0.5


def resamples(*tasks):
    """Every way to draw the runs of each task anew, all equally likely."""
    return product(*(product(task, repeat=len(task)) for task in tasks))


SCORES = [3.1, 9.4, 5.2, 7.7, 4.0]


def naive_iqm(numbers):
    cut = len(numbers) // 4
    return np.mean(sorted(numbers)[cut : len(numbers) - cut])


@pytest.mark.parametrize("tasks", [[SCORES], [[1.2, 2.5, 2.9], [0.4, 3.3, 1.9, 2.2]]])
def test_intervals_of_the_interquartile_mean_are_those_of_all_resamples(tasks):
    every = [naive_iqm([score for task in drawn for score in task]) for drawn in resamples(*tasks)]
    found = estimate(iqm, [np.array(task) for task in tasks], resamples=50_000)
    assert found.value == pytest.approx(naive_iqm([score for task in tasks for score in task]))
    assert [found.low, found.high] == pytest.approx(np.percentile(every, [2.5, 97.5]), rel=0.01)


def test_intervals_of_the_probability_of_improvement_are_those_of_all_resamples():
    a, b = [1.0, 4.0, 6.0, 7.0], [2.0, 3.0, 5.0, 4.0]
    wins = {pair: (pair[0] > pair[1]) + (pair[0] == pair[1]) / 2 for pair in product(a, b)}
    every = [sum(wins[x, y] for x in xs for y in ys) / 16 for xs, ys in resamples(a, b)]
    found = estimate(probability_of_improvement, [np.array(a), np.array(b)], confidence=0.9, resamples=50_000)
    assert found.value == (3 * 1 + 0.5 + 4 + 4 - 1) / 16  # 1 beats none, 4 two and ties one, 6 and 7 all
    assert [found.low, found.high] == pytest.approx(np.percentile(every, [5, 95]), rel=0.01)


@pytest.mark.parametrize(("runs", "others"), [(5, 5), (3, 10), (8, 8)])
def test_p_is_that_of_the_exact_rank_test(runs, others):
    x, y = np.random.default_rng(0).normal(size=runs) + 1, np.random.default_rng(1).normal(size=others)
    exact = stats.mannwhitneyu(x, y, method="exact").pvalue
    assert permutation_p([x], [y]) == pytest.approx(exact, abs=0.01)


def test_p_of_ties_and_of_several_tasks_is_that_of_all_permutations():
    tasks = [([1.0, 3.0, 3.0], [3.0, 0.0, 0.0]), ([5.0, 6.0], [1.0, 5.0, 2.0])]

    def away(x, y):
        return probability_of_improvement(np.array(x), np.array(y)) - 0.5

    every = []
    for x, y in tasks:
        pooled, places = [*x, *y], range(len(x) + len(y))
        chosen = [set(some) for some in combinations(places, len(x))]
        every.append([away(*([pooled[i] for i in places if (i in c) == own] for own in (True, False))) for c in chosen])
    dealt = [abs(sum(each)) for each in product(*every)]
    exact = np.mean([each >= abs(sum(away(*task) for task in tasks)) - 1e-9 for each in dealt])
    first, second = ([np.array(scores) for scores in each] for each in zip(*tasks, strict=True))
    assert permutation_p(first, second) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(("tasks", "runs", "others"), [(1, 5, 5), (1, 3, 10), (4, 2, 2)])
def test_no_more_than_one_of_twenty_groups_alike_are_told_apart(tasks, runs, others):
    draw = np.random.default_rng(0).normal
    found = [
        permutation_p(draw(size=(tasks, runs)), draw(size=(tasks, others)), permutations=1000) for _ in range(1000)
    ]
    assert 0.02 < np.mean(np.array(found) <= 0.05) < 0.065  # 0.05, give or take two standard errors


# ---------------------------------------------------------------- runs


def make_run(base, name, values, task="CartPole-v1", steps=100, summary=True, **settings):
    """A run folder that logged `values`, one every so many steps, at 10 steps per second."""
    folder = base / name
    (folder / "checkpoints").mkdir(parents=True)
    with open(folder / "metrics.csv", "w", newline="") as file:
        rows = [[steps * (i + 1), value, 10] for i, value in enumerate(values)]
        csv.writer(file).writerows([["step", "reward/episode_return", "speed/overall_steps_per_second"], *rows])
    lines = {"env_id": task, "seed": int(name.rpartition("seed")[2] or 0), **settings}
    (folder / "config.yaml").write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
    if summary:
        done = {"total_steps": steps * len(values), "stopped_early": False}
        (folder / "summary.json").write_text(json.dumps(done))


@pytest.fixture
def runs(tmp_path):
    """Groups of seeds on a task or two: b ends 100 higher than a, and knows another gamma, and a null."""
    base = tmp_path / "runs"
    for seed in range(5):
        rising = np.linspace(10, 100 + seed, 20)
        make_run(base, f"a_seed{seed}", rising, group="a", gamma=0.99)
        make_run(base, f"b_seed{seed}", 2 * rising, group="b", gamma=0.9, num_envs="null")
        for task in ("CartPole-v1", "Acrobot-v1"):
            make_run(base, f"two_{task}_seed{seed}", rising, task, group="two", gamma=0.99)
            make_run(base, f"too_{task}_seed{seed}", rising - seed, task, group="too", gamma=0.99)
    for seed in range(3):
        make_run(base, f"few_seed{seed}", np.linspace(10, 100, 20), group="few", gamma=0.99)
    make_run(base, "lonely_seed0", [1, 2], group="lonely")
    return base


def test_two_groups(runs):
    found = compare(["a", "b"], runs_dir=runs)
    assert found.differences == {"gamma": {"a": "0.99", "b": "0.9"}}
    assert [note[:17] for note in found.notes] == ["group a has 5 run", "group b has 5 run"]
    a, b = found.scores
    # The last two of 20 rows: 100 + seed, and 1/19 of the way before; the middle three of five seeds are 101 to 103.
    last = [10 + (90 + seed) * (19 + 18) / 38 for seed in range(5)]
    assert list(a.scores.values()) == pytest.approx(last) and list(a.scores) == [f"a_seed{seed}" for seed in range(5)]
    assert a.iqm.value == pytest.approx(np.mean(last[1:4])) and b.iqm.value == pytest.approx(2 * np.mean(last[1:4]))
    assert last[0] <= a.iqm.low < a.iqm.value < a.iqm.high <= last[4]
    (pair,) = found.improvements
    assert (pair.group, pair.than, pair.probability.value, pair.tells) == ("a", "b", 0.0, True)
    assert found.thresholds == {"CartPole-v1": pytest.approx(a.iqm.value)}
    higher = compare(["a", "b"], runs_dir=runs, threshold=98.5).scores[0]  # which the last row but one of seed 4 has
    assert [reached and reached[0] for reached in higher.reached.values()] == [2000, 2000, 2000, 2000, 1900]
    assert compare(["a", "b"], runs_dir=runs, threshold=101).scores[0].reached["a_seed0"] is None
    assert b.reached["b_seed0"] == (1000, pytest.approx(1000 / 10 / 60))
    curve = found.curves["CartPole-v1"]["b"]
    assert (curve.x[0], curve.x[-1], len(curve.x)) == (100, 2000, 101)
    assert curve.value[0] == 20 and curve.value[-1] == pytest.approx(204) and curve.low[-1] < 204 < curve.high[-1]
    assert json.loads(json.dumps(asdict(found)), parse_constant=pytest.fail)


def test_lower_is_better_on_demand(runs):
    found = compare(["a", "b"], runs_dir=runs, minimize=True, threshold=15)
    assert found.improvements[0].probability.value == 1.0
    assert [next(iter(row.reached.values())) for row in found.scores] == [(100, pytest.approx(1 / 6)), None]
    assert found.profiles["a"].value[0] == 1.0 and found.profiles["b"].value[-30] == 0.0


def test_runs_and_labels_of_ones_own_and_patterns(runs):
    own = {"one": ["a_seed0", runs / "a_seed1"], "other": ["b_seed0", "b_seed1"]}
    found = fabric_rl.compare(own, runs_dir=runs)
    assert [list(row.scores) for row in found.scores] == [["a_seed0", "a_seed1"], ["b_seed0", "b_seed1"]]
    with pytest.raises(ValueError, match="group one contains a run twice, or two runs of the same name"):
        compare({"one": ["a_seed0", runs / "a_seed0"]}, runs_dir=runs)
    found = compare(["a_seed[12]", "b"], runs_dir=runs)
    assert [len(row.scores) for row in found.scores] == [2, 5]


def test_evaluations_count_where_all_runs_have_them():
    logged = {"a": dict.fromkeys(("reward/episode_return", "eval/return")), "b": {"reward/episode_return": None}}
    assert chosen_metric(None, logged) == "reward/episode_return"
    assert chosen_metric(None, {"a": logged["a"]}) == "eval/return"


def test_costs_are_scaled_so_that_the_lowest_is_best():
    finals = {"a": np.array([100.0, 110.0]), "b": np.array([400.0, 390.0])}
    scaled = comparison._scaled(finals, -1, (0, 500))
    np.testing.assert_allclose(scaled["a"], [0.8, 0.78])
    np.testing.assert_allclose(scaled["b"], [0.2, 0.22])


def test_several_tasks_are_scaled_and_counted_alike(runs):
    found = compare(["two", "too"], runs_dir=runs, ranges={"CartPole-v1": (0, 200), "Acrobot-v1": (0, 100)})
    assert [(row.task, row.group) for row in found.scores] == [
        *(("Acrobot-v1", group) for group in ("two", "too")),
        *(("CartPole-v1", group) for group in ("two", "too")),
        *((ALL, group) for group in ("two", "too")),
    ]
    last = np.array([10 + (90 + seed) * 37 / 38 for seed in range(5)])
    both = found.scores[4]
    assert both.iqm.value == pytest.approx(naive_iqm([*(last / 200), *(last / 100)])) and len(both.scores) == 10
    assert found.profiles["two"].value[0] == 1 and found.profiles["two"].value[70] == 0.5  # half of them above 0.7
    assert found.improvements[0].tells  # alike in the first seed, better in all others; and no settings differ
    assert found.differences == {}


def test_versions_of_a_module_are_told_among_those_that_have_it(runs):
    """Groups without the module, and runs of older versions, which do not know theirs, are no difference."""
    for name, versions in (("a", ["11", "11"]), ("b", ["22", None]), ("two", [])):
        for seed, version in enumerate(versions):
            made = {} if version is None else {"modules": {"m": {"file": "m.py", "sha256": version}}}
            (runs / f"{name}_seed{seed}" / "environment.json").write_text(json.dumps(made))
    settings = ("gamma", "num_envs")
    found = compare(["a", "b"], runs_dir=runs).differences
    assert {name: each for name, each in found.items() if name not in settings} == {"code of m": {"a": "11", "b": "22"}}
    more = {"a": ["a_seed0", "a_seed1"], "b": ["b_seed0", "b_seed1"], "older": ["a_seed2", "a_seed3"]}
    assert compare(more, runs_dir=runs).differences["code of m"] == {"a": "11", "b": "22", "older": "-"}
    assert "code of m" not in compare({"a": more["a"], "older": more["older"]}, runs_dir=runs).differences


def test_what_few_seeds_cannot_tell_is_said(runs):
    make_run(runs, "few_seed9", [1, 2], group="low", summary=False)
    make_run(runs, "low_seed9", [1, 2], group="low")
    for name, values in (("c_seed0", 50), ("c_seed1", 200), ("c_seed2", 300)):
        make_run(runs, name, np.linspace(1, values, 20), group="c", gamma=0.99)
    few = "runs on CartPole-v1; intervals of fewer than 10 runs are too narrow: a 95 % interval covers about"
    few += " 75 % with 3, 89 % with 5"
    assert compare(["few", "c"], runs_dir=runs).notes == [
        f"group few has 3 {few}",
        f"group c has 3 {few}",
        "these seeds cannot distinguish few from c",
    ]
    clear = compare(
        {"few": [f"few_seed{seed}" for seed in range(3)], "b": [f"b_seed{seed}" for seed in range(3)]}, runs_dir=runs
    )
    assert clear.improvements[0].probability.high == 0 and not clear.improvements[0].tells  # 3 against 3: p is 0.1
    assert compare(["few", "low"], runs_dir=runs).notes[1:4] == [
        "run few_seed9 is unfinished",
        "group low has runs with the same seed on CartPole-v1, so they are not independent",
        f"group low has 2 {few}",
    ]
    assert any(
        note.startswith("CartPole-v1: runs are compared up to 200 steps")
        for note in compare(["few", "low"], runs_dir=runs).notes
    )


def test_runs_of_both_groups_and_settings_that_differ_within_one_are_said(runs):
    make_run(runs, "odd_seed7", np.linspace(10, 100, 20), gamma=0.5, num_threads=3)
    odd = ["a_seed0", "a_seed1", "odd_seed7"]
    found = compare({"odd": odd, "b": [*(f"b_seed{seed}" for seed in range(3)), runs / "a_seed1"]}, runs_dir=runs)
    assert "runs of group odd on CartPole-v1 differ in more than their seed: gamma" in found.notes
    assert "run a_seed1 is in groups odd and b, so they are not independent" in found.notes
    assert not [note for note in compare(["two", "too"], runs_dir=runs).notes if "differ" in note or " is in " in note]


def test_a_run_that_plays_is_no_member_and_numbers_are_equal_however_they_are_written(runs):
    for name in ("a_seed1", "b_seed1"):
        with open(runs / name / "config.yaml", "a") as file:
            file.write("record_minutes: 10.0\nlr: 1.0e-3\n" if name == "a_seed1" else "record_minutes: 10\nlr: 0.001\n")
    found = compare({"a": ["a_seed0", "a_seed1"], "b": ["b_seed0", "b_seed1"]}, runs_dir=runs)
    assert found.differences == {"gamma": {"a": "0.99", "b": "0.9"}}
    make_run(runs, "plays_seed9", [500.0] * 20, group="a", gamma=0.99)
    played = {"total_steps": 2000, "stopped_early": False, "inference": True}
    (runs / "plays_seed9/summary.json").write_text(json.dumps(played))
    assert list(compare(["a", "b"], runs_dir=runs).scores[0].scores) == [f"a_seed{seed}" for seed in range(5)]
    assert "plays_seed9" in compare(["[ap]*_seed[19]", "b"], runs_dir=runs).scores[0].scores  # by its name


def test_what_is_reached_after_the_shortest_run_does_not_count(runs):
    make_run(runs, "short_seed0", np.linspace(10, 60, 12), group="short")
    make_run(runs, "short_seed1", np.linspace(10, 60, 12), group="short")
    reached = compare(["a", "short"], runs_dir=runs, threshold=90).scores[0].reached  # which a has at step 1,800
    assert list(reached.values()) == [None] * 5


def test_a_range_of_an_unknown_task_is_one_line(runs):
    with pytest.raises(ValueError, match="ranges: no run was trained on CartPole, only on CartPole-v1"):
        compare(["a", "b"], runs_dir=runs, ranges={"CartPole": (0, 500)})


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["a", "bb"], "no run in RUNS belongs to group bb; did you mean b?"),
        (["a", "lonely"], "group lonely has only one run on CartPole-v1, lonely_seed0; it needs two or more"),
        (["a", "two"], "groups have runs on different tasks: a on CartPole-v1; two on Acrobot-v1, CartPole-v1"),
        (
            ["a", "b", "--metric", "reward/episode_returns"],
            "--metric reward/episode_returns: run RUNS/a_seed0 has no such metric; did you mean reward/episode_return?",
        ),
        (["two", "too", "--threshold", "3"], "--threshold is for one task, but these groups were trained on several"),
        (["a", "b", "--confidence", "95"], "--confidence must be from 0.5 to below 1, got 95.0"),
        (["a", "b", "--out", "RUNS/a_seed0/config.yaml"], "--out RUNS/a_seed0/config.yaml is not a folder"),
    ],
)
def test_bad_input_is_one_line(runs, capsys, words, line):
    words = [word.replace("RUNS", str(runs)) for word in words]
    assert command("compare", *words, "--runs_dir", runs) == 2
    assert capsys.readouterr().err == f"fabric-rl compare: error: {line.replace('RUNS', str(runs))}\n"


@pytest.mark.slow
def test_the_command_says_and_writes_it(runs, capsys, tmp_path):
    assert command("compare", "a", "b", "--runs_dir", runs, "--out", tmp_path / "out" / "ab") == 0
    out = capsys.readouterr().out
    assert (
        out.index("gamma")
        < out.index("Final reward/episode_return (mean of the last 10 %)")
        < out.index("a better than b")
    )
    assert json.loads((tmp_path / "out" / "ab" / "compare.json").read_text())["improvements"][0]["tells"] is True
    assert (tmp_path / "out" / "ab" / "compare.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "out" / "ab" / "compare.html").read_text()
    dark, light = re.findall(r'src(?:set)?="data:image/png;base64,([^"]+)"', page)
    assert 'media="(prefers-color-scheme: dark)"' in page and dark != light
    assert "a against b" in page and "data:image/png;base64," in page and page.count("<table>") == 4


@pytest.mark.slow
def test_text_of_runs_is_no_html(runs, tmp_path):
    for seed in (0, 1):
        make_run(runs, f"evil_seed{seed}", range(1, 21), group="evil", gamma="'<script>alert(1)</script>'")
    assert command("compare", "a", "evil", "--runs_dir", runs, "--out", tmp_path) == 0
    assert "<script>" not in (tmp_path / "compare.html").read_text()
