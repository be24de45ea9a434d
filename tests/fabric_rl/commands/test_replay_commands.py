"""`fabric-rl record`, `export-replay` and `watch` as a user calls them."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection

import pytest
from filelock import FileLock
from imageio_ffmpeg import read_frames

from envs.bots import BOTS, BallChaser
from envs.replays.replay import read_replay
from fabric_rl.commands.watch import _feed
from fabric_rl.viewer.feeds import GamesFeed, LiveFeed
from tests.command import command

ENV = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    file = tmp_path_factory.mktemp("replay") / "game.frl"
    assert command("record", "chaser", "shooter", "--minutes", "0.1", "--out", file, "--seed", "4") == 0
    return file


def test_a_recorded_game(replay, capsys):
    found = read_replay(replay)
    assert found.about["names"] == ["chaser", "shooter"] and found.about["seed"] == 4 and found.about["tick_skip"] == 8
    assert found.games[0].result["seconds"] == 6 and found.games[0].columns["car_pos"].shape[1:] == (2, 3)


def test_a_trained_agent_says_what_it_thinks(tmp_path, capsys):
    file = tmp_path / "game.frl"
    assert command("record", "school_1v1", "idle", "--minutes", "0.02", "--out", file) == 0
    assert re.search(r"school_1v1 0 : 0 idle\nwritten: .*game.frl \(0.01 MB\)\nwatch it: ", capsys.readouterr().out)
    found = read_replay(file)
    game = found.games[0].columns
    assert found.about["rewards"] and game["rewards"].shape[2] == len(found.about["rewards"])
    assert (game["value"][:-1, 0] == game["value"][:-1, 0]).all() and game["action_probabilities"][0, 0].sum() > 0.2
    assert len(found.about["actions"][0]) == 90 and found.about["actions"][1] is None


class Fails(BallChaser):
    """Plays for two seconds."""

    error: type[BaseException] = ValueError
    steps = 0

    def act(self, state):
        type(self).steps += 1
        if self.steps > 30:
            raise self.error("no more ideas")
        return super().act(state)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_played_until_a_failure_is_a_whole_replay(tmp_path, monkeypatch, capsys, error):
    monkeypatch.setattr(Fails, "error", error)
    monkeypatch.setattr(Fails, "steps", 0)
    monkeypatch.setitem(BOTS, "fails", Fails)
    assert command("record", "fails", "--out", tmp_path / "game.frl") == (2 if error is ValueError else 130)
    out, said = capsys.readouterr()
    (game,) = read_replay(tmp_path / "game.frl").games
    assert game.result["seconds"] == 2 and game.num_frames == 31
    line = "fabric-rl record: error: no more ideas\n" if error is ValueError else ""
    assert (out, said) == ("", f"{tmp_path}/game.frl contains the 2 s that were played\n{line}")


def test_where_nothing_was_played_there_is_no_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(BOTS, "fails", Fails)
    monkeypatch.setattr(Fails, "steps", 30)
    monkeypatch.setattr(Fails, "error", ValueError)
    (tmp_path / "game.frl").write_bytes(b"old")
    assert command("record", "fails", "--force", "--out", tmp_path / "game.frl") == 2
    assert list(tmp_path.iterdir()) == [] and "error: no more ideas" in capsys.readouterr().err


@pytest.mark.slow
def test_a_game_of_an_evaluation(tmp_path, capsys):
    file = tmp_path / "game.frl"
    words = ["--matches", "2", "--minutes", "0.05", "--team_size", "2", "--tick_skip", "4", "--record", file]
    assert command("evaluate", "chaser", "idle", *words) == 0
    assert f"written: {file}" in capsys.readouterr().out
    found = read_replay(file)
    assert found.about["names"] == ["chaser", "idle"]
    assert (found.about["tick_skip"], found.about["teams"]) == (4, [0, 0, 1, 1])
    assert found.games[0].result["seconds"] == 3


def test_one_page(replay, tmp_path, capsys):
    page = tmp_path / "game.html"
    assert command("export-replay", replay, page) == 0
    assert page.stat().st_size < 400_000 and "written: " in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["game.html"]


@pytest.mark.slow
def test_a_video_of_a_game(tmp_path, capsys):
    file, video = tmp_path / "game.frl", tmp_path / "game.mp4"
    words = ["chaser", "shooter", "--minutes", "0.02", "--out", file, "--mp4", video]
    assert command("record", *words) == 0
    assert f"written: {video} (" in capsys.readouterr().out
    reader = read_frames(str(video))
    about = next(reader)
    assert (about["size"], about["fps"], len(list(reader))) == ((640, 360), 30.0, 37)  # 1.2 s and the first picture
    moving = tmp_path / "game.gif"
    assert command("export-replay", file, moving, "--width", "160") == 0
    assert moving.read_bytes()[:10] == b"GIF89a" + (160).to_bytes(2, "little") + (90).to_bytes(2, "little")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["game.frl", "game.gif", "game.mp4"]


@pytest.mark.parametrize("words", [["record", "chaser", "--mp4", "a.mp4"], ["export-replay", "game.frl", "a.gif"]])
def test_no_ffmpeg_is_said_before_any_work(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/no/ffmpeg")
    assert command(*words) == 2
    assert "videos need ffmpeg; pip install imageio-ffmpeg" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["record", "chaser", "--out", "game.mp4"], "--out game.mp4 must end in .frl"),
        (["record", "chaser", "--out", "no/where/game.frl"], "there is no folder"),
        (["record", "chaser", "--mp4", "a.avi"], "--mp4 a.avi must end in .mp4 or .gif"),
        (["record", "chaser", "--minutes", "0"], "--minutes must be a number above 0 and at most 600"),
        (["record", "chaser", "--team_size", "0"], "--team_size must be a whole number"),
        (["record", "nobody"], "nobody"),
        (["watch", "nobody"], "nobody"),
        (["record", "school_1v1", "--team_size", "3"], "school_1v1 was trained for 1v1, not 3v3; choose --team_size 1"),
        (["evaluate", "chaser", "--record", "game.mp4"], "--record game.mp4 must end in .frl"),
        (["export-replay", "absent.frl", "x.html"], "absent.frl: there is no such file"),
        (["export-replay", "damaged.frl", "x.html"], "damaged.frl: the replay is damaged"),
        (["export-replay", "damaged.frl", "x.pdf"], "must end in .html or .mp4 or .gif"),
        (["export-replay", "damaged.frl", "x.mp4"], "damaged.frl: the replay is damaged"),
        (["export-replay", "empty.frl", "x.mp4"], "empty.frl: there are no frames to draw"),
        (["export-replay", "damaged.frl", "x.mp4", "--width", "333"], "--width must be a multiple of 32"),
        (["watch", "absent.frl"], "absent.frl: there is no such file"),
        (["watch", "damaged.frl"], "damaged.frl: the replay is damaged"),
        (["watch", "chaser", "--port", "99999"], "--port must be a whole number from 0 to 65,535"),
        (["watch", "chaser", "--minutes", "-1"], "--minutes must be a number above 0"),
    ],
)
def test_mistakes_are_one_line(words, message, replay, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = bytearray(replay.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged.frl").write_bytes(data)
    (tmp_path / "empty.frl").write_bytes(data[: data.index(b"B", 100)])
    assert command(*words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.startswith(f"fabric-rl {words[0]}: error: ")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["damaged.frl", "empty.frl"]


def test_a_port_in_use(replay, capsys):
    pytest.importorskip("websockets")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command("watch", replay, "--port", port) == 2
        assert f"--port {port} is in use; choose another port" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("what", ["replay", "chaser", "school_1v1", "run"])
def test_watching_until_interrupted(what, replay, tmp_path):
    """A run is one that has ended."""
    pytest.importorskip("websockets")
    (tmp_path / "games").mkdir()
    shutil.copy(replay, tmp_path / "games")
    words = [{"replay": str(replay), "run": str(tmp_path)}.get(what, what), "--port", "0", "--no-browser"]
    script = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in the background
    script += "; from fabric_rl.commands.main import main; main(sys.argv[1:])"
    ran = subprocess.Popen(
        [sys.executable, "-c", script, "watch", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENV,
    )
    line = ran.stdout.readline()
    if what == "run":
        said = f"{tmp_path.name} has ended: fabric-rl watch {tmp_path} chaser plays its newest agent.\n"
        assert ran.stdout.readline() == said
    port, path = re.search(r"http://127.0.0.1:(\d+)(/\S*)", line).groups()
    connection = HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    ran.send_signal(signal.SIGINT)
    out, error = ran.communicate(timeout=60)
    assert (ran.returncode, out, error) == (0, "\n", "")


def test_of_a_run_that_has_ended_without_games_the_newest_checkpoint_plays(tmp_path):
    (tmp_path / "games").mkdir()
    assert isinstance(_feed(str(tmp_path), None, "runs"), LiveFeed)
    with FileLock(tmp_path / ".lock"):  # it trains, and will have games
        assert isinstance(_feed(str(tmp_path), None, "runs"), GamesFeed)
    (tmp_path / "games/1.frl").touch()
    assert isinstance(_feed(str(tmp_path), None, "runs"), GamesFeed)


def test_a_replay_is_shown_without_waiting_for_torch():
    script = "import fabric_rl.commands.watch, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], env=ENV, timeout=120).returncode == 0


@pytest.mark.parametrize(("what", "late"), [("school_1v1", True), ("chaser", True), ("no.such.Bot", False)])
def test_the_address_of_a_live_match_comes_before_torch(what, late):
    """Unless the player may not exist: then no page opens in vain."""
    pytest.importorskip("websockets")
    script = (
        "import sys, fabric_rl.commands.watch as watch\n"
        "def stop(*_): raise KeyboardInterrupt\n"
        "watch.print = lambda *words, **_: print('torch' in sys.modules, *words)\n"
        "watch.import_slow_module = stop\n"
        f"sys.exit(watch.watch({what!r}, None, port=0, no_browser=True))"
    )
    ran = subprocess.run([sys.executable, "-c", script], env=ENV, timeout=120, capture_output=True, text=True)
    assert ran.returncode == 0
    assert ran.stdout.startswith("False watch it at http://") == late


@pytest.mark.parametrize("error", [PermissionError, IsADirectoryError])
def test_a_file_that_cannot_be_opened_is_left_alone(tmp_path, monkeypatch, capsys, replay, error):
    """Tests may run as root, who may open all files."""
    file = tmp_path / "mine.frl"
    file.write_bytes(replay.read_bytes())
    opens = type(file).open

    def no(path, mode="r", *args):
        if path == file and "w" in mode:
            raise error(13, "Permission denied", str(path))
        return opens(path, mode, *args)

    monkeypatch.setattr(type(file), "open", no)
    assert command("record", "idle", "idle", "--minutes", "0.01", "--out", file, "--force") == 2
    assert "Permission denied" in (said := capsys.readouterr().err) and "were played" not in said
    assert file.read_bytes() == replay.read_bytes()


def test_a_pipe_is_no_replay_and_no_place_for_one(tmp_path, capsys):
    os.mkfifo(tmp_path / "game.frl")
    for words in (
        ["record", "idle", "--out", tmp_path / "game.frl"],
        ["watch", tmp_path / "game.frl"],
        ["export-replay", tmp_path / "game.frl", tmp_path / "game.html"],
    ):
        assert command(*words) == 2
        assert re.search(r"game.frl(: this)? is not a file\n$", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "where"), [(["export-replay", "{}", "a.mp4"], "render_frames"), (["watch", "{}"], "read_replay")]
)
def test_ctrl_c_is_no_error(words, where, replay, tmp_path, monkeypatch, capsys):
    """While it is drawn, and while a replay is read."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"fabric_rl.commands.watch.{where}", interrupted)
    assert command(*[word.format(replay) for word in words]) == 130
    assert capsys.readouterr() == ("", "") and list(tmp_path.iterdir()) == []
