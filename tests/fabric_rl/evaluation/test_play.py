"""Games of a person against a bot: the bot plays as in `evaluate`, every tick is the person's, and games are saved."""

import json
import struct
import threading
import time

import numpy as np
import pytest

from envs.bots import BallChaser, IdleBot, TeamBots
from envs.demonstrations.file import Demonstration
from envs.dones import GoalCondition
from envs.matches import real_time
from envs.matches.matches import PAIRS_AT_ONCE, play_matches
from envs.matches.real_time import FullBoostKickoff, RealTimeGame, SlowBot, TickClock
from envs.matches.statistics import MatchKickoffs
from envs.replays.replay import read_replay
from envs.resets import Kickoff
from envs.state.game_state import GameState
from fabric_rl.commands.main import main
from fabric_rl.evaluation import play
from fabric_rl.evaluation.play import PlaySession
from fabric_rl.evaluation.players import load_player
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.viewer.feeds import PlayFeed

MINUTES, SEED = 0.5, 3
STEPS = round(MINUTES * 60 * 15)


def watched(player, seen, row):
    """The player, and in `seen` the observations `[D]` of one of its cars, at every decision."""

    def build(seed):
        bot = player(seed)
        choose = bot.choose

        def watching(obs, begins, mask):
            seen.append((obs[row].copy(), bool(begins[row])))
            return choose(obs, begins, mask)

        bot.choose = watching
        return bot

    return build


class AsChaser:
    """Drives like the bot `chaser` in a pool: a decision acts one tick late and is held."""

    def __init__(self, kickoffs):
        self.bot, self.kickoffs, self.row, self.game = BallChaser(), kickoffs, np.zeros(8, np.float32), None

    def __call__(self):
        state, tick = self.game.pool.state, self.game.ticks % 8
        if tick == 0 and state.episode_ticks[0] == 0:
            self.row = np.zeros(8, np.float32)
        if tick == 1:
            late = self.kickoffs.delay_ticks[0, 0] >= state.episode_ticks[0] + 8
            self.row = np.zeros(8, np.float32) if late else self.bot.act(state)[0, 0]
        return self.row


@pytest.mark.slow
def test_a_bot_sees_what_it_sees_in_evaluate_bit_for_bit():
    player = load_player("school_1v1", sample=False, runs_dir="runs").build(1, 8)
    evaluated, lived = [], []
    orange = 2 * PAIRS_AT_ONCE + 1  # the first match with swapped sides
    play_matches(watched(player, evaluated, orange), lambda seed: BallChaser(), PAIRS_AT_ONCE, MINUTES, seed=SEED)

    pool_seed, own_seed, _ = np.random.SeedSequence(SEED, spawn_key=(1, 0)).generate_state(3).tolist()
    kickoffs = MatchKickoffs([np.random.SeedSequence(SEED, spawn_key=(0, 0))], 2)
    drive = AsChaser(kickoffs)
    bots = TeamBots(IdleBot(), watched(player, lived, 1)(own_seed))
    drive.game = RealTimeGame(bots, drive, lambda: None, kickoffs, [GoalCondition()], seed=pool_seed + PAIRS_AT_ONCE)
    for _ in range(STEPS + 1):
        drive.game.step()
    assert len(evaluated) == len(lived) == STEPS and sum(begins for _, begins in lived) > 1  # there were goals
    for step, (there, here) in enumerate(zip(evaluated, lived, strict=True)):
        assert here[1] == there[1] and np.array_equal(here[0], there[0]), step


# ---------------------------------------------------------------- whole sessions, without a page


class Page(threading.Thread):
    """The page's side of a session: holds the same controls, and sends what it is told to."""

    def __init__(self, feed, values):
        super().__init__(daemon=True)
        self.feed, self.values, self.gone, self.phases, self.number = feed, values, threading.Event(), [], 0

    def run(self):
        while not self.gone.is_set():
            self.number += 1
            self.feed.take(self, struct.pack("<H8b", self.number % 65536, *self.values))
            phase = self.feed.status.get("phase")
            if phase not in self.phases[-1:]:
                self.phases.append(phase)
            time.sleep(0.01)

    def send(self, **command):
        self.feed.take(self, json.dumps(command))


FORWARD = (127, 0, 0, 0, 0, 0, 127, 0)


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Starts a session in a thread, with a page that drives straight ahead with boost."""
    monkeypatch.setattr(play, "COUNTDOWN_SECONDS", 0.05)
    monkeypatch.setattr(play, "GOAL_SECONDS", 0.05)
    started = []

    def start(bot, values=FORWARD, minutes=0.02, record=None, **settings):
        feed = PlayFeed()
        made = PlaySession(feed, bot, PlaySettings(runs_dir=str(tmp_path), **settings), minutes, record)
        page, failed = Page(feed, values), []

        def run():
            try:
                made.run()
            except ValueError as error:
                failed.append(str(error))

        thread = threading.Thread(target=run, daemon=True)
        page.start()
        thread.start()
        started.append((made, page, thread))
        return made, page, failed

    yield start
    for made, page, thread in started:
        made.stop()
        thread.join(30)
        page.gone.set()
        assert not thread.is_alive()


def until(true):
    for _ in range(12_000):
        if true():
            return
        time.sleep(0.01)
    raise TimeoutError


def phase(page, wanted):
    until(lambda: page.feed.status.get("phase") == wanted)


@pytest.mark.slow
def test_a_match_is_played_to_its_end_saved_and_played_again(session, tmp_path):
    """Straight ahead from each kickoff, until one has scored."""
    _, page, _ = session("school_1v1", record=tmp_path / "games")
    phase(page, "over")
    assert {"countdown", "play", "goal"} <= set(page.phases)
    score = page.feed.status["score"]
    until(lambda: page.feed.status["saved"])
    replay = read_replay(page.feed.status["saved"])
    assert replay.games[0].result["score"] == score and replay.about["names"] == ["you", "school_1v1"]
    controls = replay.games[0].columns["car_controls"]
    driven = controls[replay.games[0].columns["begins"] == 0]
    assert driven[:, 0, 0] == pytest.approx(1, abs=0.01) and (driven[:, 0, 6] == 1).all() and not driven[:, 0, 1].any()
    assert "_1v1_school_1v1." in page.feed.status["saved"]
    demonstration = Demonstration(page.feed.status["saved"].replace(".frl", ".frd"))
    assert demonstration.about["demonstrators"] == [0] and demonstration.about["tick_skip"] == 8
    episodes = list(demonstration.episodes())
    assert [episode.terminated for episode in episodes][:-1] == [True] * (len(episodes) - 1)
    assert sum(episode.steps for episode in episodes) * 8 == replay.games[0].columns["ticks"][-1]
    page.send(do="again")
    phase(page, "play")
    assert page.feed.status["score"] == [0, 0]


@pytest.mark.slow
def test_keys_of_training_packs_do_nothing_in_a_match(session):
    made, page, _ = session("idle", values=(0,) * 8, minutes=9)
    phase(page, "play")
    for key in ("retry", "next"):
        page.send(do=key)
        until(lambda: not page.feed.commands)
        ticks = made.clock.ticks
        until(lambda ticks=ticks: made.clock.ticks > ticks + 20)
    assert page.phases.count("countdown") == 1


@pytest.mark.slow
def test_free_play_and_training_packs_begin_again_when_asked(session, tmp_path):
    pytest.importorskip("rlgym_tools")
    made, page, _ = session("idle", minutes=9, record=tmp_path / "games")
    phase(page, "play")
    page.send(do="new", mode="free play", opponent="idle", cars=1, every=1, kind="Striker")
    until(lambda: page.feed.status["teams"] == [0] and page.feed.status["phase"] == "play")
    ticks = made.clock.ticks
    until(lambda: made.clock.ticks > ticks + 20)
    page.values = (0,) * 8
    page.send(do="new", mode="training pack", opponent="idle", cars=1, every=1, kind="Striker")
    phase(page, "ready")  # the clock starts with the first control
    page.values = FORWARD
    phase(page, "play")
    page.values = (0,) * 8
    page.send(do="next")
    phase(page, "ready")
    assert page.feed.status["shot"] == 2
    page.send(do="next")  # before the clock has started
    until(lambda: page.feed.status["shot"] == 3)
    phase(page, "ready")
    page.values = FORWARD
    phase(page, "play")
    page.values = (0,) * 8
    began = page.feed.status["began"]
    page.send(do="retry")
    phase(page, "ready")
    assert page.feed.status["shot"] == 3 and page.feed.status["began"] > began
    made.stop()
    until(lambda: len(list((tmp_path / "games").glob("*_1v0_training_pack.frd"))) == 1)
    assert [file.suffix for file in (tmp_path / "games").glob("*_1v0_free_play.*")] == [".frl"]


@pytest.mark.slow
def test_a_shot_that_one_concedes_comes_again(session):
    pytest.importorskip("rlgym_tools")
    _, page, _ = session("idle", values=(0,) * 8, minutes=9)
    phase(page, "play")
    page.send(do="new", mode="training pack", opponent="idle", cars=1, every=1, kind="Goalie")
    phase(page, "ready")
    page.values = (0, 0, 0, 0, 0, 0, 0, 127)  # stands
    phase(page, "goal")
    assert page.feed.status["scorer"] == 1
    page.values = (0,) * 8
    phase(page, "ready")
    assert page.feed.status["shot"] == 1


@pytest.mark.slow
def test_a_player_who_pauses_or_leaves_finds_the_game_where_it_was(session, monkeypatch):
    made, page, _ = session("idle", values=(0,) * 8, minutes=9)
    phase(page, "play")
    page.send(do="pause", on=True)
    phase(page, "paused")
    ticks = made.clock.ticks
    time.sleep(0.3)
    assert made.clock.ticks == ticks
    page.send(do="pause", on=False)
    phase(page, "play")
    monkeypatch.setattr(play, "AWAY_SECONDS", 0.2)
    page.gone.set()
    page.join()
    page.feed.leave(page)
    phase(page, "paused")
    again = Page(page.feed, (0,) * 8)
    again.start()
    phase(again, "play")
    again.gone.set()


@pytest.mark.slow
def test_what_the_bot_cannot_play_is_said_and_nonsense_is_ignored(session):
    _, page, failed = session("school_1v1", team_size=2)
    until(lambda: failed)
    assert failed == ["school_1v1 was trained for 1v1, not 2v2; choose --team_size 1"]
    assert page.feed.status["phase"] == "error" and page.feed.status["text"] == failed[0]
    _, page, failed = session("idle", values=(0,) * 8, minutes=9)
    phase(page, "play")
    for nonsense in (
        {},
        {"do": 7},
        {"do": "new"},
        {"do": "new", "mode": []},
        {"do": ["pause"]},
        {"do": "pause", "on": 5},
    ):
        page.send(**nonsense)
    page.send(do="new", mode="match", opponent="../../etc", cars=1, every=1, kind="Striker")
    page.send(do="new", mode="match", opponent="idle", cars=1.0, every=True, kind="Striker")
    until(lambda: not page.feed.commands)
    assert page.feed.status["phase"] == "play" and not failed


@pytest.mark.slow
def test_two_against_two_and_milestones(session, tmp_path):
    milestone = tmp_path / "mine/milestones/main/000000001000"
    milestone.mkdir(parents=True)
    (milestone / "meta.json").write_text("{}")
    assert play._milestones("mine", str(tmp_path)) == {"main 1,000": str(milestone)}
    _, page, _ = session("school_2v2", values=(0,) * 8)
    phase(page, "play")
    assert page.feed.status["teams"] == [0, 0, 1, 1] and page.feed.status["options"]["opponent"][0] == "school_2v2"


@pytest.mark.slow
def test_an_opponent_that_is_gone_is_said_and_the_first_one_plays_again(session, monkeypatch):
    made, page, failed = session("idle", values=(0,) * 8, minutes=9)
    phase(page, "play")
    monkeypatch.setattr(play, "GOAL_SECONDS", 0.1)
    made._opponents["gone"] = "runs/gone"
    page.feed.status["options"]["opponent"].append("gone")
    page.send(do="new", mode="match", opponent="gone", cars=1, every=1, kind="Striker")
    phase(page, "error")
    phase(page, "play")
    assert page.feed.status["choice"]["opponent"] == "idle" and not failed


def test_a_slow_bot_decides_in_every_nth_step():
    class Counting(IdleBot):
        decisions = 0

        def act(self, state):
            self.decisions += 1
            return super().act(state) + self.decisions

    state, bot = GameState(1, 1, 1), Counting()
    slow = SlowBot(bot, 3)
    state.clear(np.array([0]))
    assert [slow.act(state)[0, 0, 0] for _ in range(7)] == [1, 1, 1, 2, 2, 2, 3]
    slow.reset(np.ones(1, np.bool_), state)
    assert [slow.act(state)[0, 0, 0] for _ in range(4)] == [4, 4, 4, 5]


def test_late_ticks_are_caught_up_and_a_machine_that_is_too_slow_slows_the_clock(monkeypatch):
    now, slept = [100.0], []
    monkeypatch.setattr(real_time.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(
        real_time.time, "sleep", lambda seconds: (slept.append(seconds), now.__setitem__(0, now[0] + seconds))
    )
    clock = TickClock()
    for _ in range(12):
        clock.wait()
    assert now[0] == pytest.approx(100.1) and len(slept) == 12
    now[0] += 0.05 + 1e-6  # six ticks late: these do not wait
    for _ in range(6):
        clock.wait()
    assert len(slept) == 12
    for _ in range(12):
        clock.wait()
    assert now[0] == pytest.approx(100.25) and clock.lost_seconds == 0
    now[0] += 1
    clock.wait()
    assert clock.lost_seconds == pytest.approx(1 - 1 / 120) and clock.ticks == 31
    clock.wait()
    assert now[0] == pytest.approx(101.25 + 1 / 120)


def test_free_play_begins_with_full_boost():
    bots = TeamBots(IdleBot(), IdleBot())
    game = RealTimeGame(
        bots, lambda: np.zeros(8, np.float32), lambda: None, FullBoostKickoff(), [GoalCondition()], (1, 0)
    )
    game.step()
    assert game.pool.state.boost[0].tolist() == [100] and game.pool.state.world.ball_pos[0, 0] == 0
    game.pool.close()


def test_controls_of_a_step_are_means_and_a_short_jump_counts():
    rows = []

    def drive():
        row = np.zeros(8, np.float32)
        first = game.ticks % 8 < 2
        row[0], row[5], row[6] = (1, 1, 1) if first else (0.5, 0, 0)
        return row

    bots = TeamBots(IdleBot(), IdleBot())
    game = RealTimeGame(bots, drive, lambda: rows.append(game.frame()), Kickoff(), [GoalCondition()])
    assert game.step() and not game.step()
    assert game.pool.state.controls[0, 0].tolist() == [0.625, 0, 0, 0, 0, 1, 0, 0]
    assert [row[0] for row in rows] == list(range(1, 9)) and rows[0].shape == (50 + 2 * 21,)
    state = game.pool.state
    assert rows[-1][1:4] == pytest.approx(state.world.ball_pos[0]) and rows[-1][50:53] == pytest.approx(
        state.world.car_pos[0, 0]
    )
    assert rows[-1][65] == pytest.approx(state.boost[0, 0])
    game.pool.close()


@pytest.mark.parametrize("phase", range(8))
def test_recorded_controls_repeat_a_double_tap(phase):
    """A dodge 100 ms after the first jump, whenever the bot's decisions are: its record makes the car dodge, too."""
    taps = np.zeros((160, 8), np.float32)
    taps[:, 0] = 1
    first, second = 40 + phase, 40 + phase + 21  # held for 9 ticks, released for 12
    taps[first : first + 9, 5] = taps[second : second + 9, 5] = 1
    taps[second - 3 : second + 9, 2] = -1
    shown, ticks = [], iter(taps)

    def flipped(game):
        shown.append(bool(game.pool.simulations[0].car_states[0]().has_flipped))

    bots = TeamBots(IdleBot(), IdleBot())
    game = RealTimeGame(bots, lambda: next(ticks), lambda: flipped(game), Kickoff(), [GoalCondition()], (1, 0))
    game.step()
    recorded = []
    for _ in range(20):
        game.step()
        recorded.append(game.pool.state.controls[0, 0].copy())
    assert any(shown)
    game.pool.close()
    shown.clear()
    ticks = iter(np.repeat(recorded, 8, axis=0))
    game = RealTimeGame(bots, lambda: next(ticks), lambda: flipped(game), Kickoff(), [GoalCondition()], (1, 0))
    for _ in range(21):
        game.step()
    game.pool.close()
    assert any(shown)


def test_the_command_says_what_is_wrong_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["play", "nobody", "--port", "0", "--no_browser", "true", "--runs_dir", str(tmp_path)])
    out, error = capsys.readouterr()
    assert ended.value.code == 2 and not out
    assert error.startswith("fabric-rl play: error: agent nobody: no such checkpoint") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["school_1v1", "--team_size", "2"], "school_1v1 was trained for 1v1, not 2v2; choose --team_size 1"),
        (["--bot", "chaser"], "--bot: no such setting; it comes without a flag"),
        (["chaser", "--record", __file__], f"--record {__file__} must be a folder"),
    ],
)
def test_wrong_words_are_told_before_the_address(words, said, capsys):
    with pytest.raises(SystemExit):
        main(["play", *words, "--port", "0", "--no_browser", "true"])
    assert capsys.readouterr() == ("", f"fabric-rl play: error: {said}\n")
