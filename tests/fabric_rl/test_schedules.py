import copy
import math
import pickle

import pytest
import torch

from fabric_rl.base.messages import one_line
from fabric_rl.base.parser import FlagParser
from fabric_rl.schedules import Constant, Cosine, KLAdaptive, Linear, Schedule, as_schedule

START, QUARTER, HALF, END = 0.0, 0.25, 0.5, 1.0


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Constant(0.3), [0.3, 0.3, 0.3, 0.3]),
        (Linear(0.2, 0.1), [0.2, 0.175, 0.15, 0.1]),
        (Linear(-1, 3), [-1, 0, 1, 3]),
        (Cosine(0.2, 0.1), [0.2, 0.1 + 0.1 * (1 + math.sqrt(0.5)) / 2, 0.15, 0.1]),
        (Cosine(0, 8), [0, 4 - math.sqrt(8), 4, 8]),
    ],
    ids=repr,
)
def test_numbers_at_quarters(schedule, expected):
    points = [START, QUARTER, HALF, END]
    assert [schedule(p) for p in points] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    tensors = [schedule(torch.tensor(p)) for p in points]
    assert {(t.shape, t.dtype) for t in tensors} == {(torch.Size([]), torch.float32)}
    torch.testing.assert_close(torch.stack(tensors), torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_the_ends_are_exact_and_hold_beyond(kind):
    schedule = kind(0.3, 1e-5)
    assert (schedule(0.0), schedule(1.0)) == (0.3, 1e-5)
    assert (schedule(-0.5), schedule(1.5)) == (0.3, 1e-5)
    assert float(schedule(torch.tensor(7.0))) == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize("schedule", [Constant(0.3), Linear(0.2, 0.1), Cosine(0.2, 0.1)], ids=repr)
def test_schedules_survive_copying_pickling_and_changing_progress_in_a_compiled_graph(schedule):
    for other in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule)), eval(repr(schedule))):
        assert type(other) is type(schedule)
        assert other(0.3) == schedule(0.3)

    compiled = torch.compile(lambda p: schedule(p), backend="eager", fullgraph=True)  # graph breaks raise
    torch.compiler.reset()
    with torch.compiler.set_stance("default"):
        first = compiled(torch.tensor(0.3))
    with torch.compiler.set_stance("fail_on_recompile"):
        second = compiled(torch.tensor(0.7))
    assert [float(first), float(second)] == pytest.approx([schedule(0.3), schedule(0.7)], rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_must_be_finite(bad):
    with pytest.raises(ValueError, match="clip_coef must be finite"):
        as_schedule(bad, "clip_coef")


def test_a_schedule_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Schedule()


def test_as_schedule_takes_numbers_and_schedules():
    assert as_schedule(2)(0.5) == 2.0
    linear = Linear(1, 0)
    assert as_schedule(linear, at_least=0) is linear
    for wrong in ("0.2", None, True):
        with pytest.raises(TypeError, match="MyAgent: clip_coef must be a number or a fabric_rl"):
            as_schedule(wrong, "MyAgent: clip_coef")


@pytest.mark.parametrize("value", [0.0, -1.0, Linear(0.2, 0), Cosine(0, 0.2)], ids=repr)
def test_as_schedule_checks_both_ends(value):
    with pytest.raises(ValueError, match="clip_coef must be above 0 from start to end, got "):
        as_schedule(value, "clip_coef", above=0)


def test_as_schedule_lets_a_bound_itself_pass_where_it_may():
    assert as_schedule(Linear(0.2, 0), "entropy_coef", at_least=0)(1.0) == 0
    with pytest.raises(ValueError, match=r"entropy_coef must be at least 0 from start to end, got Linear\(0.2, -0.1\)"):
        as_schedule(Linear(0.2, -0.1), "entropy_coef", at_least=0)


# ---------------------------------------------------------------------------------------------- the command line


class Agent:
    """An agent's settings."""

    def __init__(self, size: int = 1, clip_coef: float | Schedule = 0.25):
        self.clip_coef = clip_coef


def parse(*argv):
    parser = FlagParser(exit_on_error=False)
    parser.add_argument("--config", action="config")
    parser.add_class_arguments(Agent, "agent")
    return parser.instantiate(parser.parse_args(list(argv))).agent.clip_coef


def test_a_setting_is_a_number_on_the_command_line():
    assert parse() == 0.25
    assert parse("--agent.clip_coef", "0.2") == 0.2


@pytest.mark.parametrize("name", ["fabric_rl.schedules.Linear", "Linear"])
def test_a_setting_is_a_schedule_on_the_command_line(name):
    schedule = parse("--agent.clip_coef", name, "--agent.clip_coef.start", "0.2", "--agent.clip_coef.end=0.1")
    assert type(schedule) is Linear
    assert (schedule.start, schedule.end) == (0.2, 0.1)


def test_a_setting_is_a_schedule_in_a_file(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "agent:\n  clip_coef:\n    class_path: fabric_rl.schedules.Cosine\n    init_args: {start: 0.2, end: 0.1}\n",
        encoding="utf-8",
    )
    schedule = parse(f"--config={file}")
    assert type(schedule) is Cosine
    assert (schedule.start, schedule.end) == (0.2, 0.1)
    assert parse(f"--config={file}", "--agent.clip_coef", "0.3") == 0.3
    assert parse(f"--config={file}", "--agent.clip_coef.end", "0.05").end == 0.05


@pytest.mark.parametrize(
    "argv",
    [
        ["--agent.clip_coef", "often"],
        ["--agent.clip_coef", "Linear", "--agent.clip_coef.start", "0.2"],
        ["--agent.clip_coef", "Linear", "--agent.clip_coef.start", "much", "--agent.clip_coef.end", "0"],
    ],
)
def test_a_wrong_schedule_is_one_line_that_names_the_flag(argv):
    with pytest.raises(Exception) as caught:
        parse(*argv)
    assert type(caught.value).__name__ == "ArgumentError"
    assert "agent.clip_coef" in one_line(str(caught.value))


# ---------------------------------------------------------------------------------------------- the learning rate


def test_kl_adaptive_divides_and_multiplies_by_one_and_a_half():
    rule = KLAdaptive(desired_kl=0.01, base_lrs=[1e-3])
    assert rule.factor == 1
    assert rule.update(0.0201) == pytest.approx(1 / 1.5)
    assert rule.update(0.5) == pytest.approx(1 / 1.5**2)
    for inside in (0.02, 0.005, 0.01):  # the bounds themselves too
        assert rule.update(inside) == pytest.approx(1 / 1.5**2)
    assert rule.update(0.0049) == pytest.approx(1 / 1.5)
    assert rule.update(1e-9) == pytest.approx(1)
    assert rule.factor == pytest.approx(1)


@pytest.mark.parametrize("kl", [0.0, -1e-9, math.nan])
def test_kl_adaptive_waits_while_the_policy_has_not_moved(kl):
    assert KLAdaptive().update(kl) == 1


def test_kl_adaptive_keeps_every_rate_within_the_bounds():
    rates = [3e-4, 2e-3]
    rule = KLAdaptive(base_lrs=rates)
    for _ in range(50):
        rule.update(1.0)
    assert [lr * rule.factor for lr in rates] == pytest.approx([1e-5, 2e-3 / 30])
    for _ in range(50):
        rule.update(1e-6)
    assert [lr * rule.factor for lr in rates] == pytest.approx([3e-4 * 5, 1e-2])


def test_kl_adaptive_only_comes_back_from_a_rate_outside_of_the_bounds():
    rule = KLAdaptive(base_lrs=[0.1])
    assert rule.update(1e-6) == 1
    assert rule.update(1.0) == pytest.approx(1 / 1.5)


def test_kl_adaptive_goes_on_from_a_saved_state(tmp_path):
    rule = KLAdaptive()
    rule.update(1.0)
    torch.save(rule.state_dict(), tmp_path / "rule.pt")
    other = KLAdaptive()
    other.load_state_dict(torch.load(tmp_path / "rule.pt", weights_only=True))
    assert other.factor == rule.factor == 1 / 1.5
    assert other.update(1.0) == rule.update(1.0)


def test_the_bounds_of_kl_adaptive_are_in_order():
    with pytest.raises(ValueError, match=r"KLAdaptive: min_lr must be a number above 0 and at most 0.1, got 1"):
        KLAdaptive(min_lr=1, max_lr=0.1)
