"""`fabric-rl evaluate`: results by hand, games until something is known, by several processes, and as JSON."""

import base64
import errno
import json
import os
import re
from functools import partial
from io import BytesIO
from unittest.mock import ANY, Mock

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from envs import GymnasiumEnvs, ParameterRandomizer, Uniform
from envs.bots import BallChaser, KickoffThenShoot
from envs.matches.matches import PAIRS_AT_ONCE, Matches, play_matches
from fabric_rl.commands.evaluate import difference_line, interval_notes, results_table, statistics_table, verdict
from fabric_rl.evaluation.matches import Block, play_blocks
from fabric_rl.evaluation.players import MatchSettings, load_player
from fabric_rl.evaluation.results import begins_alike, difference_interval, match_summary, statistics_summary
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.rollouts.whole_episodes import play_episodes
from tests.envs.adapters.tasks import Reported, TwoMeasures
from train_fabric import cli


def results(*goals, **settings):
    goals = np.array(goals)
    return Matches(goals, np.zeros_like(goals), **({"minutes": 1.0, "cars": 1, "statistics": {}} | settings))


PAIR = [(2, 1), (0, 0)]
"""Half a goal per match for the player."""


def test_interval_is_over_pairs_and_says_so():
    # Differences 0.5 and -1, five times each: mean -0.25, squares 10 * 0.75^2 + 2 * 0.25 = 6.125; s^2 / 10 = 0.0680556,
    # its root 0.260875; t(0.975, 9) = 2.26216 (any table).
    matches = results(*[PAIR] * 5, *[[(0, 1), (1, 2)]] * 5)
    assert difference_interval(matches) == pytest.approx((-0.25 - 0.59014, -0.25 + 0.59014), abs=1e-5)
    assert difference_line(matches) == (
        "goal difference per match: -0.25 (95 % -0.84 to +0.34, from 10 independent pairs of matches)"
    )


def test_a_verdict_in_words():
    one, names = [[(1, 0), (1, 0)]], ("mine", "yours")
    other = [[(0, 1), (0, 1)]]
    assert verdict(results(*one * 10, *other), names) == "mine is better"
    assert verdict(results(*one, *other * 10), names) == "yours is better"
    # 6 of 10 pairs: mean 0.2, half the interval 2.26216 * sqrt((9.6 + 0.5) / 90) = 0.75781;
    # 10 * ((0.75781 / 0.2)^2 - 1) = 133.6 pairs
    text = "not shown who is better; about 268 more matches might show it"
    assert verdict(results(*one * 6, *other * 4), names) == text
    assert verdict(results(*one * 5, *other * 5), names) == "not shown who is better"
    assert verdict(results(*one * 9), names) == "too few matches to show who is better"


def test_no_interval_from_few_pairs_and_it_says_why():
    matches = results(*[PAIR] * 9)
    assert match_summary(matches)["difference_interval_95"] is None
    assert difference_line(matches) == (
        "goal difference per match: +0.50 (9 pairs of matches are too few for an interval; use --matches 20)"
    )


def test_what_an_interval_will_miss_is_said_before_the_matches():
    few = "there will be no interval: {} of matches are too few; use --matches 20"
    assert interval_notes(1, False) == [few.format("1 pair")]
    assert interval_notes(9, False) == [few.format("9 pairs")]
    assert interval_notes(10, False) == []
    assert interval_notes(10, True)[0].startswith("the player plays itself and samples no action")


def test_summary_is_per_match_and_per_minute():
    goals, touches = np.array([[(3, 1), (1, 1)]]), np.array([[(8, 2), (4, 2)]])
    figures = match_summary(Matches(goals, touches, minutes=2.0, cars=3, statistics={}))
    assert (figures["matches"], figures["pairs"]) == (2, 1)
    assert (figures["wins"], figures["draws"], figures["losses"]) == (1, 1, 0)
    assert figures["goals"] == [2.0, 1.0]
    assert figures["touches_per_minute"] == [1.0, pytest.approx(1 / 3)]  # 12 and 4 in 2 matches x 2 min x 3 cars
    assert figures["difference"] == 1.0


def test_table_tells_shares_and_how_agents_play():
    made = results_table(["mine", "chaser"], results(PAIR, PAIR, PAIR), "agents sample their actions")
    assert made.title == "6 matches of 1 minute, 1v1; agents sample their actions"
    assert [row[:3] for row in made.rows] == [["mine", "3 (50%)", "3 (50%)"], ["chaser", "0 (0%)", "3 (50%)"]]


def test_statistics_have_means_and_intervals_over_pairs():
    """Ten pairs, the first without a touch of the opponent's; 4 or 5 shots."""
    height, shots, nothing = (np.full((10, 2, 2), (0.0, 1.0)) for _ in range(3))
    height[:, 0, 0], height[:, 1, 0], nothing[..., 1] = [100] * 9 + [200], 300, 0
    height[0, 1] = 0  # the first pair had none
    shots[:, 0, 0] = [4, 5] * 5
    found = statistics_summary({"touch_height": height, "shots": shots, "air_time": nothing})
    assert found["touch_height"] == {"means": [110, 300], "intervals_95": [[ANY, ANY], None]}  # all alike, and only 9
    # Squares: 10 * 0.25 + 2 * 0.25 = 3; the root of 3 / 9 / 10 is 0.182574; t(0.975, 9) = 2.26216.
    assert found["shots"]["intervals_95"][0] == pytest.approx([4.5 - 0.41301, 4.5 + 0.41301], abs=1e-4)
    assert found["shots"]["intervals_95"][1] == pytest.approx([-0.168608, 0.168608], abs=1e-4)  # none is not nothing
    assert found["air_time"] == {"means": [None, None], "intervals_95": [None, None]}
    air = np.stack((np.full((10, 2), 0.1), np.broadcast_to((1.0, 0.0), (10, 2))), axis=-1)
    made = statistics_table(["mine", "chaser"], {"shots": shots, "air_time": air})
    assert made.rows == [["hard shots per match", "4.50 ± 0.41", "0.00 ± 0.17"], ["time in the air", "10.0%", "-"]]


@pytest.fixture
def evaluate(call):
    return partial(call, "evaluate")


@pytest.mark.slow
def test_a_page_shows_the_maps_of_all_matches(evaluate, tmp_path):
    """What the pictures show, in the pixels of another decoder; both attack upward, as seen from above."""
    words = ["shooter", "chaser", "--matches", 2, "--minutes", 0.5, "--seed", 3]
    status, out, _ = evaluate(*words, "--html", tmp_path / "page.html")
    assert status == 0 and out.endswith(f"written: {tmp_path / 'page.html'}\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page and "goal difference per match" in page and ">possession<" in page
    players = [lambda seed: KickoffThenShoot(), lambda seed: BallChaser()]
    maps = play_matches(*players, num_pairs=1, minutes=0.5, seed=3).maps[0]
    pictures = re.findall(r'href="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == 6
    for number, picture in enumerate(pictures):
        pixels = np.asarray(Image.open(BytesIO(base64.b64decode(picture))))
        both, one = maps[number // 2], maps[number // 2, number % 2]
        assert pixels.shape == (36, 24)
        for (across, along), value in np.ndenumerate(one):
            level = 255 * (value / max(both.max(), 1e-9)) ** 0.5
            assert abs(int(pixels[35 - along, 23 - across]) - level) <= 0.51
    assert f"{maps[1, 0].sum():,.0f} touches" in page and f"{maps[0, 0].sum() / 7200:,.1f} minutes" in page


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing():
    rules = MatchSettings.of([load_player(name, False, "runs") for name in ("shooter", "random")], PlaySettings(), 0.06)
    blocks = [Block("shooter", "random", 3, number) for number in range(3)]
    alone, told = list(play_blocks(rules, blocks, 1, lambda share: None)), []
    several = list(play_blocks(rules, blocks, 2, told.append))
    assert told == [1 / 3, 2 / 3, 1]
    for one, other in zip(alone, several, strict=True):
        assert (one.goals == other.goals).all() and (one.touches == other.touches).all()
    assert any((one.touches != alone[0].touches).any() for one in alone[1:])  # other pairs


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_fails_says_why_and_nobody_waits_for_the_others():
    rules = MatchSettings.of([load_player("idle", False, "runs")], PlaySettings(), 20.0)
    playing = play_blocks(rules, [Block("nobody", "idle", 0, 0), *[Block("idle", "idle", 0, 0)] * 5], 2, print)
    with pytest.raises(ValueError, match="agent nobody: no such checkpoint"):
        next(playing)


@pytest.mark.slow
def test_it_plays_until_it_is_decided(evaluate, tmp_path):
    words = ["shooter", "idle", "--minutes", 0.25]
    status, output, _ = evaluate(*words, "--sequential", "--json", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert status == 0 and found["better"] == "player" and found["reached"] is True
    assert found["pairs"] % PAIRS_AT_ONCE == 0 and found["pairs"] <= 30
    low, high = found["score_sequence"]
    assert 0.5 < low < found["score"] <= high and found["confidence"] == 0.95
    assert found["difference_interval_95"] is None and found["difference_sequence"][0] > 0
    assert "for any number of checks" in output and "shooter is better" in output and "stopped after" not in output
    # The pairs are those of a fixed number of matches.
    evaluate(*words, "--matches", 20, "--out", tmp_path / "b.json")
    fixed = json.loads((tmp_path / "b.json").read_text())
    assert fixed["differences"] == found["differences"][:10] and fixed["difference_interval_95"] is not None


@pytest.mark.slow
def test_it_stops_at_a_limit(evaluate, tmp_path):
    out = tmp_path / "a.json"
    status, output, _ = evaluate(
        "idle", "idle", "--sequential", "--matches", 44, "--minutes", 0.01, "--json", out, "--confidence", 0.9
    )
    found = json.loads(out.read_text())
    assert status == 0 and (found["matches"], found["better"], found["reached"]) == (44, None, False)
    assert "(90 %, valid for any number" in output and "stopped after 44 matches; --matches allows more" in output
    assert "difference_interval_90" in found and found["confidence"] == 0.9
    assert found["statistics"]["shots"]["intervals_90"] == [None, None] and "half its" not in output


def test_statistics_have_the_confidence_that_is_asked_for(evaluate):
    words = ["idle", "idle", "--matches", 20, "--minutes", 0.01, "--json", "--confidence"]
    _, output, errors = evaluate(*words, 0.9)
    (low, high), _ = json.loads(output)["statistics"]["shots"]["intervals_90"]
    assert low < 0 < high and "mean of 10 pairs of matches, and half its 90 % interval" in errors


@pytest.mark.slow
def test_until_the_interval_is_narrow(evaluate, tmp_path):
    out = tmp_path / "a.json"
    assert evaluate("idle", "idle", "--until-width", 0.25, "--minutes", 0.01, "--json", out)[0] == 0
    found = json.loads(out.read_text())
    assert np.diff(found["difference_sequence"]) <= 0.25 and found["pairs"] == 20 and found["reached"] is True


def test_json_on_standard_output_is_nothing_else(evaluate):
    status, output, errors = evaluate("idle", "idle", "--matches", 2, "--minutes", 0.01, "--json")
    assert status == 0 and json.loads(output)["matches"] == 2 and "goal difference per match" in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sequential", "--until-width", 1], "--sequential and --until_width cannot be combined; choose one"),
        (["--until-width", 0], "--until_width must be a number above 0, got 0"),
        (["--confidence", 1], "--confidence must be a number above 0 and at most 0.999999, got 1"),
        (["--minutes", "1e300"], "--minutes must be a number above 0 and at most 100,000, got 1e+300"),
        (["--team_size", 0], "--team_size must be a whole number from 1 to 100,000, got 0"),
        (["--json", "a.txt"], "--json a.txt must end in .json"),
        (["--seed", -1], "--seed must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_are_one_line(evaluate, words, said):
    status, output, errors = evaluate("idle", "idle", *words)
    assert (status, output, errors.count("\n")) == (2, "", 1) and said in errors


BROKEN = """
import sys

from envs.bots import IdleBot


class Raises(IdleBot):
    def act(self, state):
        return {}["nothing"]


class Ends(IdleBot):
    def act(self, state):
        sys.exit(0)
"""


def test_few_matches_are_noticed_before_they_are_played(evaluate):
    status, _, errors = evaluate("idle", "chaser", "--matches", 2, "--minutes", 0.02)
    assert status == 0 and errors.startswith("there will be no interval: 1 pair of matches")


@pytest.mark.slow
def test_an_agent_against_itself_plays_one_game_twice(evaluate):
    """Without a demolition, each pair is the same game from either side, so the sum of its differences is 0."""
    words = ["school_1v1", "school_1v1", "--matches", 20, "--minutes", 0.1]
    status, out, errors = evaluate(*words)
    assert status == 0 and errors.startswith("the player plays itself and samples no action")
    assert "goal difference per match: +0.00" in out
    assert "plays itself" not in evaluate(*words, "--sample", "true")[2]


@pytest.mark.parametrize("env_id, alike", [("CliffWalking-v1", True), ("CartPole-v1", False)])
def test_environments_without_chance_are_recognized(env_id, alike):
    assert begins_alike(Mock(env=partial(GymnasiumEnvs, env_id, 2)), 3) is alike


@pytest.fixture
def broken_bots(tmp_path, monkeypatch):
    (tmp_path / "broken_bots.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(("bot", "said"), [("Raises", "act(): KeyError: 'nothing'"), ("Ends", "act(): SystemExit: 0")])
def test_a_bot_that_fails_is_named(evaluate, broken_bots, bot, said):
    status, output, errors = evaluate(f"broken_bots.{bot}", "idle", "--matches", 2, "--minutes", 0.01)
    assert (status, output) == (1, "") and "Traceback" in errors
    last = errors.splitlines()[-1]
    assert last.startswith("fabric-rl evaluate: error: broken_bots.py, line ") and last.endswith(said)


@pytest.mark.parametrize("flag, name", [("--json", "a.json"), ("--out", "a.json"), ("--record", "a.frl")])
def test_a_file_that_is_a_folder_is_noticed_before_anything_is_played(evaluate, tmp_path, flag, name):
    (tmp_path / name).mkdir()
    status, output, errors = evaluate("idle", "idle", "--matches", 10**6, flag, tmp_path / name)
    assert (status, output) == (2, "") and f"error: {flag} {tmp_path / name} is not a file" in errors


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may write everywhere")
def test_a_file_that_cannot_be_written_is_noticed_before_anything_is_played(evaluate, tmp_path):
    (tmp_path / "a.json").touch(0o400)
    status, _, errors = evaluate("idle", "idle", "--matches", 10**6, "--json", tmp_path / "a.json")
    assert status == 2 and "a.json cannot be written" in errors


def test_a_full_disk_keeps_the_file_and_names_it(evaluate, tmp_path, monkeypatch):
    out = tmp_path / "a.json"
    out.write_text("of before")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("fabric_rl.base.files.os.replace", Mock(side_effect=full))
    status, _, errors = evaluate("idle", "idle", "--matches", 2, "--minutes", 0.01, "--json", out)
    assert status == 2 and f"No space left on device: '{out}'" in errors and out.read_text() == "of before"


def idle(obs, begins, action_mask):
    return np.zeros(len(obs), np.int64)


def test_every_sub_environment_plays_as_many_episodes(counter_env):
    """Episodes of sub-environment 0, 1, 2 last 3, 2, 4 steps, each worth 1: short ones do not count more often."""
    played = play_episodes(counter_env(), idle, episodes=7, seed=5)
    assert played.returns.tolist() == played.lengths.tolist() == [3, 3, 3, 2, 2, 2, 4, 4, 4]


def test_those_that_share_a_seed_are_one(counter_env):
    class Pairs(counter_env):
        num_seeds = 2

    pairs = Pairs(terminate_after=(3, 3, 4, 4), truncate_after=(9, 9, 9, 9))
    assert play_episodes(pairs, idle, episodes=4, seed=0).returns.tolist() == [3, 3, 4, 4]


def test_episodes_know_nothing_of_one_another():
    """What is kept for many episodes is drawn anew for each; neighbouring seeds share none."""
    numbers = ParameterRandomizer({"force_mag": Uniform(3, 30)}, resampling_interval=2000)
    forces = []

    def watching(obs, begins, action_mask):
        if begins.all():
            forces.append(envs.parameters["force_mag"].tolist())
        return np.zeros(len(obs), np.int64)

    for seed in (0, 1):
        envs = GymnasiumEnvs("CartPole-v1", 4, parameters=numbers)
        play_episodes(envs, watching, episodes=12, seed=seed)
        envs.close()
    assert len(forces) == 6 and len({force for row in forces for force in row}) == 24


def test_success_is_that_of_the_episodes_that_count():
    """Odd steps succeed, so an episode succeeds if its length is odd; other episodes go on until all have ended."""
    time = 0

    def choose(obs, begins, action_mask):
        nonlocal time
        time = 0 if begins.all() else time + 1
        return np.full(len(obs), 1 - time % 2)

    envs = GymnasiumEnvs(Reported, 3)
    played = play_episodes(envs, choose, episodes=9, seed=0)
    envs.close()
    assert set(played.lengths) == {2, 3, 4}
    assert sorted(played.figures["success"]) == sorted(played.lengths % 2)


def test_two_measures_of_success_keep_their_names():
    envs = GymnasiumEnvs(TwoMeasures, 3)
    played = play_episodes(envs, lambda obs, begins, mask: np.ones(len(obs), np.int64), episodes=9, seed=0)
    assert (played.figures["success"] == 1).all()
    assert sorted(played.figures["is_success"]) == sorted(played.lengths == 4)
    assert set(envs.drain_metrics()) >= {"info/success", "info/is_success"}
    envs.close()


@pytest.mark.slow
def test_evaluate_tells_success_with_the_interval_of_a_share(evaluate, tmp_path, capsys):
    words = ["--env_id", "tests.envs.adapters.tasks.Reported", "--num_steps", "16", "--minibatch_size", "32"]
    words += ["--total_timesteps", "128", "--run_id", "r", "--runs_dir", str(tmp_path), "--accelerator", "cpu"]
    cli([*words, "--callbacks+=fabric_rl.Evaluation", "--plain"])
    rows = read_metrics(tmp_path / "r" / "metrics.csv")
    assert 0 <= rows["eval/success"][1][-1] <= 1 and 0 <= rows["eval/sampled_success"][1][-1] <= 1
    flags = ["--sample", "true", "--episodes", 40, "--runs_dir", tmp_path, "--json", tmp_path / "found.json"]
    status, out, _ = evaluate("r", *flags)
    assert status == 0 and "  mean success 0." in out
    found = json.loads((tmp_path / "found.json").read_text())
    successes = round(found["mean_success"] * found["episodes"])
    test = stats.binomtest(successes, found["episodes"]).proportion_ci(0.95, "exact")
    assert found["success_interval_95"] == pytest.approx([test.low, test.high])


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["true", "false"])
def test_episodes_of_equal_return_and_length_are_independent_if_they_begin_differently(
    evaluate, tmp_path, capsys, sample
):
    words = ["--env_id", "tests.envs.adapters.tasks.Seldom", "--num_steps", "16", "--minibatch_size", "32"]
    cli([*words, "--total_timesteps", "64", "--run_id", "r", "--runs_dir", str(tmp_path), "--accelerator", "cpu"])
    flags = ["--sample", sample, "--episodes", 40, "--runs_dir", tmp_path, "--json", tmp_path / "found.json"]
    status, out, _ = evaluate("r", *flags)
    found = json.loads((tmp_path / "found.json").read_text())
    high = stats.binomtest(0, found["success_episodes"]).proportion_ci(0.95, "exact").high
    assert status == 0 and 0 < found["success_episodes"] < 40
    assert f"  mean success 0 (in {found['success_episodes']} of them, 95 % 0 to {high:.5g})\n" in out
    assert "mean return 0 (no interval: too few episodes, or all are alike)" in out
