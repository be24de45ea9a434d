"""RecordGames and ShowGames: real runs, whose weights are the same with and without games."""

import os
import re
import shutil
from functools import partial
from http.client import HTTPConnection
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from agents import PPOLightningAgent, RecurrentPPOAgent
from envs import CombinedReward, GoalReward, PhasedReward, RandomState, RocketSimPool, TouchReward
from envs.replays.replay import read_replay
from fabric_rl import Callback, TrainArgs, train
from fabric_rl.callbacks import observers
from fabric_rl.callbacks.observers import RecordGames, ShowGames

REWARD = CombinedReward([GoalReward(), TouchReward()], [10.0, 1.0])
POOL = partial(RocketSimPool, 2, team_size=[(1, 1), (2, 1)], state_setter=RandomState(), reward=REWARD, num_threads=1)


def weights(fabric, callbacks=(), env=POOL, agent=PPOLightningAgent, **more):
    """The weights after three iterations."""
    kept = []

    class Keep(Callback):
        def on_train_end(self, state):
            kept.append({name: tensor.clone() for name, tensor in state.agent.state_dict().items()})

    args = TrainArgs(total_timesteps=3 * 16 * 5, num_steps=16, update_epochs=1, minibatch_size=16, **more)
    train(fabric, env, agent, args, callbacks=[*callbacks, Keep()], plain=True)
    return kept[0]


@pytest.fixture
def often(monkeypatch):
    """A game of one second, whole, after every iteration."""
    monkeypatch.setattr(observers, "GAME_SECONDS", 1.0)
    monkeypatch.setattr(observers, "MAX_SHARE", 1e9)
    return partial(RecordGames, minutes=1e-9)


@pytest.mark.parametrize(
    "agent", [PPOLightningAgent, partial(RecurrentPPOAgent, sequence_length=16)], ids=["ppo", "memory"]
)
def test_weights_are_the_same_with_games(fabric, tmp_path, often, agent):
    bare = weights(fabric, agent=agent)
    recorded = weights(fabric, [often(tmp_path / "games")], agent=agent)
    assert len(list((tmp_path / "games").iterdir())) == 3
    assert all(torch.equal(bare[name], recorded[name]) for name in bare)


def test_a_game_is_played_as_in_training(fabric, tmp_path, often):
    folder = tmp_path / "a_run" / "games"
    folder.parent.mkdir()
    weights(fabric, [often(folder)])
    first, *_, last = sorted(folder.iterdir())
    assert first.name == "000000000080.frl"
    replay = read_replay(first)
    about, columns = replay.about, replay.games[0].columns
    assert about["title"] == "a_run after 80 steps" and about["rewards"] == ["Goal", "Touch"]
    assert about["teams"] == [0, 0, 1]
    assert replay.games[0].about["cars"] == [True, False, True]  # the first of two numbers of cars after 80 steps
    assert replay.games[0].result["seconds"] == pytest.approx(1, abs=0.07)
    assert np.isfinite(columns["value"][:-1, [0, 2]]).all() and len(about["actions"][0]) == 90
    assert abs(columns["car_pos"][0, 0, 0]) not in (2048, 256, 0)  # no kickoff, the run's own first states
    assert not (columns["ball_pos"][0] == read_replay(last).games[0].columns["ball_pos"][0]).all()


@pytest.mark.slow
def test_the_phase_of_the_run(fabric, tmp_path, often):
    class Second(Callback):
        def on_train_start(self, state):
            state.env.set_phase("second", 2)

    phased = partial(RocketSimPool, 1, reward=PhasedReward({"first": GoalReward(), "second": REWARD}), num_threads=1)
    weights(fabric, [Second(), often(tmp_path / "games")], env=phased)
    assert read_replay(next((tmp_path / "games").iterdir())).about["rewards"] == ["Goal", "Touch"]


def test_the_newest_games_stay(fabric, tmp_path, often):
    weights(fabric, [often(tmp_path / "games", keep=2)])
    assert sorted(path.name for path in (tmp_path / "games").iterdir()) == ["000000000160.frl", "000000000240.frl"]


def test_what_else_lies_among_the_games_stays(fabric, tmp_path, often):
    """Older than all games: a folder, a note, a game that somebody has kept."""
    others = [tmp_path / "games" / name for name in ("folder.frl", "000000000001.frl", "notes.txt", "best.frl")]
    for other in others[:2]:
        other.mkdir(parents=True)
    for other in others[2:]:
        other.write_text("mine")
    for other in others:
        os.utime(other, (1, 1))
    weights(fabric, [often(tmp_path / "games", keep=2)])
    games = {tmp_path / "games" / name for name in ("000000000160.frl", "000000000240.frl")}
    assert set((tmp_path / "games").iterdir()) == {*others, *games}


def test_a_folder_that_is_deleted_comes_back_and_a_file_in_its_place_is_a_warning(fabric, tmp_path, often):
    class Deletes(Callback):
        def on_iteration_end(self, state):
            shutil.rmtree(tmp_path / "games", ignore_errors=True)

    weights(fabric, [Deletes(), often(tmp_path / "games")])
    assert [path.name for path in (tmp_path / "games").iterdir()] == ["000000000240.frl"]
    (tmp_path / "file").write_text("mine")
    with pytest.warns(RuntimeWarning, match="stopped recording games"):
        weights(fabric, [often(tmp_path / "file")])
    assert (tmp_path / "file").read_text() == "mine"


def test_a_game_that_takes_too_long_is_cut_off_and_says_so(fabric, tmp_path, caplog):
    caplog.set_level("INFO", logger="fabric_rl")
    weights(fabric, [RecordGames(tmp_path / "games", minutes=1e-9)])
    replay = read_replay(min((tmp_path / "games").iterdir()))
    game, seconds = replay.games[0], replay.games[0].result["seconds"]
    assert 0 < seconds < 30 and game.result["frames"] == game.num_frames and replay.about["seconds"] == 60
    said = next(record.getMessage() for record in caplog.records if "game recorded" in record.getMessage())
    assert said.endswith(f".frl (its first {seconds:.0f} s; recording may use 2% of the time)")


def test_all_that_games_cost_is_within_their_share(tmp_path, monkeypatch):
    """A clock that goes on only where something is done: an iteration, and building, playing and closing an arena."""
    clock, asked = SimpleNamespace(now=0.0), []
    clock.monotonic = lambda: clock.now

    class Costly:
        game_suffix = ".frl"

        def record_game(self, policy, sink, title, seconds, seed):
            asked.append(clock.now)
            clock.now += 0.3
            try:
                for _ in range(1000):
                    clock.now += 0.05
                    yield 0.0
            finally:
                clock.now += 0.5

    def after(minutes, iterations):
        """Seconds of games and of everything."""
        clock.now, spent = 0.0, 0.0
        record = RecordGames(tmp_path / f"{minutes}", minutes)
        state = SimpleNamespace(
            env=SimpleNamespace(inspector=Costly()), agent=None, args=SimpleNamespace(compile=False)
        )
        state.fabric, state.steps = SimpleNamespace(is_global_zero=True), 0
        record.on_train_start(state)
        for _ in range(iterations):
            clock.now += 1.0
            start = clock.now
            record.on_iteration_end(state)
            spent += clock.now - start
        return spent, clock.now

    monkeypatch.setattr(observers, "time", clock)
    spent, seconds = after(10.0, 3000)  # as in long runs: all games are cut off in time
    assert 0.017 < spent / seconds <= 0.02
    asked.clear()
    spent, seconds = after(1 / 60, 600)  # a game a second: most have to wait
    assert len(asked) > 2 and spent - 0.85 <= 0.02 * asked[-1] and np.diff(asked).min() > 30


def test_what_cannot_be_recorded_ends_no_training(fabric, tmp_path, often):
    (tmp_path / "games" / "000000000080.frl").mkdir(parents=True)  # where the first game would be written
    with pytest.warns(RuntimeWarning, match="stopped recording games"):
        weights(fabric, [often(tmp_path / "games")])


def test_environments_without_games(fabric, tmp_path, counter_env, known_agent):
    with pytest.raises(ValueError, match="watch: CounterEnv does not record games"):
        weights(fabric, [RecordGames(tmp_path / "games"), ShowGames(tmp_path / "games")], counter_env, known_agent)
    assert list(tmp_path.iterdir()) == []


def test_a_run_shows_its_games(fabric, tmp_path, often, capsys):
    pytest.importorskip("websockets")
    asked = []

    class Ask(Callback):
        def on_iteration_end(self, state):
            port = re.search(r"watch it at http://127.0.0.1:(\d+)(/\S*)", capsys.readouterr().out + "".join(asked))
            port, path = port.groups()
            connection = HTTPConnection("127.0.0.1", int(port), timeout=60)
            connection.request("GET", path)
            assert connection.getresponse().status == 200
            state.stop = True
            asked.append(port)

    weights(fabric, [often(tmp_path / "games"), ShowGames(tmp_path / "games"), Ask()])
    with pytest.raises(ConnectionRefusedError):
        HTTPConnection("127.0.0.1", int(asked[0]), timeout=60).request("GET", "/")
