"""Learning curves: bands against scipy, minutes by hand."""

import sys

import numpy as np
import pytest
from scipy import stats

import fabric_rl
from fabric_rl.analysis.plots import learning_curves, mean_with_interval

pyplot = pytest.importorskip("matplotlib.pyplot")
RETURN, SPEED = "reward/episode_return", "speed/overall_steps_per_second"


@pytest.fixture(autouse=True)
def without_a_display():
    before = pyplot.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture
def runs(tmp_path):
    """Three runs; the last one has logged at other steps, ends earlier, and was half as fast in its second row."""
    tables = {
        "a": [(100, 1.0, 10), (200, 2.0, 10), (300, 4.0, 10)],
        "b": [(100, 3.0, 10), (200, 2.0, 10), (300, 6.0, 10)],
        "c": [(150, 2.0, 10), (250, 5.0, 5)],
    }
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        lines = [f"step,{RETURN},{SPEED}", *(",".join(map(str, row)) for row in rows)]
        (tmp_path / name / "metrics.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_band_is_student_s_over_runs(runs):
    axes = fabric_rl.learning_curves(["a", "b", "c"], runs_dir=runs)
    x, mean = axes.lines[0].get_data()
    assert x.tolist() == [150, 200, 250]  # what all of them cover
    samples = np.array([[1.5, 2, 3], [2.5, 2, 4], [2, 3.5, 5]])
    low, high = stats.t.interval(0.95, 2, loc=samples.mean(axis=0), scale=stats.sem(samples, axis=0))
    _, means, half = mean_with_interval([(np.array([1.0, 2]), np.array([k, k + 1.0])) for k in (0.0, 1, 5)])
    assert means.tolist() == [2, 3] and half[0] == pytest.approx(4.302652729911275 * np.sqrt(7 / 3))
    assert np.allclose(mean, samples.mean(axis=0))
    vertices = axes.collections[0].get_paths()[0].vertices
    for at, bottom, top in zip(x, low, high, strict=True):
        drawn = vertices[vertices[:, 0] == at, 1]
        assert drawn.min() == pytest.approx(bottom) and drawn.max() == pytest.approx(top)
    assert "95 % interval of the mean" in axes.get_legend().get_texts()[0].get_text()


def test_two_runs_have_no_band(runs):
    axes = learning_curves({"old": ["a", "b"], "new": [runs / "c"]}, runs_dir=runs)
    assert [line.get_label() for line in axes.lines] == ["old a", "old b", "new c"] and not axes.collections
    assert axes.lines[0].get_ydata().tolist() == [1, 2, 4] and axes.lines[0].get_color() == axes.lines[1].get_color()
    assert learning_curves(["a"], runs_dir=runs, axes=axes) is axes


def test_minutes_of_training(runs):
    axes = learning_curves(["c"], minutes=True, runs_dir=runs)
    assert axes.lines[0].get_xdata() == pytest.approx([15 / 60, 35 / 60])  # 150 steps at 10/s, 100 at 5/s
    assert axes.get_xlabel() == "minutes of training"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"runs": ["nobody"]}, "there is no run nobody"),
        ({"runs": ["a"], "metric": "reward/total"}, "run a has no metric reward/total; it has reward/episode_return"),
        ({"runs": ["a", "b", "late"]}, "have steps in common"),
        ({"runs": ["late"], "minutes": True}, f"run late has no metric {SPEED}"),
    ],
)
def test_mistakes(asked, message, runs):
    (runs / "late").mkdir()
    (runs / "late/metrics.csv").write_text(f"step,{RETURN}\n900,1\n")
    with pytest.raises(ValueError, match=message):
        learning_curves(**asked, runs_dir=runs)
    with pytest.raises(ValueError, match="two or more runs"):
        mean_with_interval([(np.arange(2.0), np.arange(2.0))])


def test_without_matplotlib(runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pictures need matplotlib; pip install matplotlib"):
        learning_curves(["a"], runs_dir=runs)
