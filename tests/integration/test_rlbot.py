"""`fabric-rl export --format rlbot` and `fabric-rl flight`: bots' folders as real processes, in RLBot's protocol."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from contextlib import closing

import pytest

pytest.importorskip("rlbot")
from rlbot import flat
from rlbot.config import load_player_config

from envs import DefaultObs, LookupTable, RocketSimPool
from envs.adapters.rlbot_game import BotProcess, PacketWriter
from envs.state.game_state import GameState
from fabric_rl.rlbot.bot_files import fields_not_sent
from tests.command import command
from tests.runs import HELD, HIDDEN, MEMORY, POOL, STACKED
from train_fabric import cli

OWN = '''
from envs import DefaultObs
from own_parts.more import FACTOR


class OwnObs(DefaultObs):
    """Doubled."""

    def build(self, state, out):
        super().build(state, out)
        out *= FACTOR
'''


@pytest.fixture(scope="module")
def bots(tmp_path_factory):
    """A bot with observations of its user's own, its run, and the folder of runs."""
    folder = tmp_path_factory.mktemp("bots")
    (folder / "own_parts").mkdir()
    (folder / "own_parts" / "__init__.py").write_text(OWN)
    (folder / "own_parts" / "more.py").write_text("FACTOR = 2\n")
    sys.path.insert(0, str(folder))
    flags = ["--env.obs", "own_parts.OwnObs", "--runs_dir", str(folder), "--run_id", "own"]
    cli([*POOL, *HIDDEN, *flags])
    assert command("export", "own", folder / "Überflieger", "--format", "rlbot", "--runs_dir", folder) == 0
    yield folder
    sys.path.remove(str(folder))


def test_a_folder_has_what_rlbot_reads_and_needs_nothing_of_this_framework(bots, tmp_path):
    folder = shutil.copytree(bots / "Überflieger", tmp_path / "copied")
    player = load_player_config(folder / "bot.toml", 1)
    assert (player.variety.name, player.variety.agent_id) == ("Überflieger", "fabric-rl/Überflieger")
    assert player.variety.run_command == "python3 bot.py" and player.variety.loadout.car_id == 23
    assert "rlbot>=2.0.0b56" in (folder / "requirements.txt").read_text()
    away = ["torch", "fabric_rl.types", "agents", "RocketSim", "lightning", "scipy", "jsonargparse", "yaml"]
    away += ["own_parts.gone"]
    code = f"import sys, runpy; sys.modules.update(dict.fromkeys({away})); sys.path.insert(0, '.'); "
    code += "sys.argv = ['bot.py', '--check']; runpy.run_path('bot.py', run_name='__main__')"
    line = [sys.executable, "-c", code]
    shown = subprocess.run(line, cwd=folder, env={"PATH": ""}, capture_output=True, text=True, timeout=100)
    assert shown.returncode == 0 and "observations [172]" in shown.stdout, shown.stderr


@pytest.mark.slow
def test_a_name_with_control_characters_is_toml(bots, tmp_path):
    assert command("export", "own", tmp_path / 'a"\x7f\tb', "--format", "rlbot", "--runs_dir", bots) == 0
    player = load_player_config(tmp_path / 'a"\x7f\tb' / "bot.toml", 1)
    assert (player.variety.name, player.variety.agent_id) == ('a"\x7f\tb', 'fabric-rl/a"\x7f\tb')


def test_a_bot_that_cannot_play_a_match_says_why(bots):
    with pytest.raises(
        OSError, match=r"the bot did not answer \(ValueError: .* was trained for 1v1, but this match is 2v2"
    ):
        BotProcess(bots / "Überflieger", [0, 0, 1, 1], 0, {})


BAD = """
import os, signal, sys, time
from rlbot import flat
from rlbot.interface import SocketRelay

relay = SocketRelay("bad")
relay.connect(wants_match_communications=False, wants_ball_predictions=False,
              rlbot_server_port=int(os.environ["RLBOT_SERVER_PORT"]))
relay.send_msg(flat.InitComplete())


def on_packet(packet):
    {}


relay.packet_handlers.append(on_packet)
relay.run()
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("name = nan", "bot.toml cannot be used: 'name' has value nan. Expected a string."),
        ("name = [", "bot.toml cannot be used: "),
        (f'name = "{"x" * 70_000}"', "the bot has texts in bot.toml that are too long for RLBot's protocol"),
        ("run_command = 'python \"bot.py'", "bot.toml cannot be used: No closing quotation"),
        ("run_command = ''", "the bot did not answer"),
    ],
)
def test_a_changed_bot_toml_ends_in_one_line(bots, tmp_path, line, said):
    folder = shutil.copytree(bots / "Überflieger", tmp_path / "bot")
    lines = (folder / "bot.toml").read_text(encoding="utf-8").splitlines()
    key, value = line.split(" = ")
    changed = [f"{each.split(' ')[0]} = {value}" if each.startswith(key) else each for each in lines]
    assert changed != lines
    (folder / "bot.toml").write_text("\n".join(changed), encoding="utf-8")
    with pytest.raises((OSError, ValueError)) as failed:
        BotProcess(folder, [0, 1], 0, {})
    assert said in str(failed.value) and str(folder) in str(failed.value) and "\n" not in str(failed.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("while True: relay.send_msg(flat.InitComplete())", "did not answer within 1 s"),
        ("while True: relay.socket.sendall(bytes([1])); time.sleep(0.3)", "did not answer within 1 s"),
        ("relay.send_bytes(b'garbage')", "sent an invalid message"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "did not answer"),
        (
            "relay.send_msg(flat.PlayerInput(0, flat.ControllerState(float('nan'))))",
            "sent controls that are not finite",
        ),
        ("sys.stderr.write('x' * 10**7); os._exit(1)", f"did not answer ({'x' * 500})"),
    ],
)
def test_bots_that_do_not_answer_are_given_up_in_one_line(tmp_path, monkeypatch, does, said):
    bot = process(tmp_path, BAD.format(does))
    monkeypatch.setattr("envs.adapters.rlbot_game.ANSWER_SECONDS", 1)
    monkeypatch.setattr("envs.adapters.rlbot_game.LEAVE_SECONDS", 0.5)
    packet = PacketWriter().write(GameState.from_numbers([[0, 0, 17], [0, 99, 17]], 1), flat.MatchPhase.Active)
    with pytest.raises(OSError) as failed, bot:
        bot.answer(packet)
    assert str(failed.value) == f"{tmp_path}: the bot {said}"
    assert bot._process.returncode is not None


def test_a_bot_that_talks_but_never_begins_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("envs.adapters.rlbot_game.ANSWER_SECONDS", 1)
    monkeypatch.setattr("envs.adapters.rlbot_game.LEAVE_SECONDS", 0.5)
    talks = "while True: relay.send_msg(flat.StopCommand())"
    with pytest.raises(OSError, match=r"the bot did not answer within 1 s$"):
        process(tmp_path, BAD.replace("relay.send_msg(flat.InitComplete())", talks))


def test_a_flight_that_is_ended_while_its_bot_starts_ends_that_too(bots, tmp_path):
    folder = shutil.copytree(bots / "Überflieger", tmp_path / "starts")
    code = "import os, signal, time\nopen('pid', 'w').write(str(os.getpid()))\n"
    (folder / "bot.py").write_text(code + "os.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(600)\n")
    before = signal.getsignal(signal.SIGTERM)
    assert command("flight", folder) == 130
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


def process(folder, code):
    (folder / "bot.py").write_text(code)
    (folder / "bot.toml").write_text('[settings]\nname = "bad"\nagent_id = "bad"\nrun_command = "python bot.py"\n')
    return BotProcess(folder, [0, 1], 0, {})


class SeesWheels(DefaultObs):
    """Reads what no packet tells."""

    def build(self, state, out):
        super().build(state, out)
        out[..., 0] = state.wheels_with_contact[..., 0] + state.boost_pickups


def test_what_the_game_does_not_send_is_found_out():
    for obs, asked in ((DefaultObs(), []), (SeesWheels(), ["wheels_with_contact", "boost_pickups"])):
        with closing(RocketSimPool(2, obs=obs, action=LookupTable())) as pool:
            pool.reset()
            assert fields_not_sent(pool) == asked


def test_mistakes_with_bots_are_one_line(bots, tmp_path, capsys, monkeypatch):
    def error(*words):
        assert command(*words, "--runs_dir", bots) == 2
        text = capsys.readouterr().err
        assert text.count("\n") == 1
        return text

    export = ["export", "own", tmp_path / "new", "--format", "rlbot"]
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "rlbot", None)
        assert "--format rlbot needs rlbot; pip install --pre rlbot" in error(*export)
        assert "fabric-rl flight needs rlbot; pip install --pre rlbot" in error("flight", tmp_path)
    with monkeypatch.context() as old:
        version = namedtuple("version", "major minor micro")(3, 10, 9)
        old.setattr("fabric_rl.rlbot.bot_files.sys.version_info", version)
        assert "--format rlbot needs Python 3.11 or later, as RLBot does; this is 3." in error(*export)
    with monkeypatch.context() as lacking:
        lacking.setattr("fabric_rl.rlbot.bot_files.MISSING_FIELDS", ("air_time", "handbrake", "is_flipping"))
        assert "the game does not send data that this agent needs: handbrake, is_flipping" in error(*export)
    assert not (tmp_path / "new").exists()
    assert "has no bot.toml; create it with fabric-rl export NAME" in error("flight", tmp_path)
    bot = bots / "Überflieger"
    assert "--latency must be whole ticks from 0 to 120, separated by commas" in error(
        "flight", bot, "--latency", "0,x"
    )
    assert "--latency must be whole ticks" in error("flight", bot, "--latency", "0.5")
    assert "--loss must be shares of packets from 0 to 0.99" in error("flight", bot, "--loss", "1.0")
    assert "--matches must be even" in error("flight", bot, "--matches", 3)
    cli(["--env_id", "CartPole-v1", *POOL[4:], "--runs_dir", str(bots), "--run_id", "pole"])
    capsys.readouterr()
    assert "does not play Rocket League" in error("export", "pole", tmp_path / "new", "--format", "rlbot")


@pytest.mark.slow
def test_a_bot_flies_as_it_plays_in_a_pool(bots, capsys):
    assert command("flight", bots / "Überflieger", "--minutes", 0.02) == 0
    shown = capsys.readouterr().out
    assert "observations: 36 of 36 within 0.001 of the pool's: good (98% are enough)\nactions: 36 of 36 equal" in shown


@pytest.mark.slow
def test_a_bot_that_is_spoilt_does_not(bots, tmp_path, capsys):
    folder = shutil.copytree(bots / "Überflieger", tmp_path / "spoilt")
    (folder / "lib" / "own_parts" / "more.py").write_text("FACTOR = 3\n")
    assert command("flight", folder, "--minutes", 0.05) == 1
    assert "WRONG" in capsys.readouterr().out


LAYOUTS = {
    "school": [],
    "2v2, masks, frames, late controls": [
        *(*HIDDEN, *STACKED, *HELD),
        *("--env.team_size", "2", "--env.tick_skip", "4", "--env.action_delay_ticks", "3"),
    ],
    "memory, controls one step late": [*MEMORY, "--env.obs", "envs.DefaultObs", "--env.action_delay_ticks", "8"],
    "objects": ["--agent", "agents.AttentionPPOAgent", "--env.obs", "envs.EntityObs", "--env.action_delay_ticks", "2"],
    "continuous, at once": [*HIDDEN, "--env.action", "envs.ContinuousAction", "--env.action_delay_ticks", "0"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_kind_of_agent_flies(name, tmp_path, capsys):
    if LAYOUTS[name]:
        cli([*POOL, *LAYOUTS[name], "--runs_dir", str(tmp_path), "--run_id", "school_1v1"])
    bot = tmp_path / "bot"
    assert command("export", "school_1v1", bot, "--format", "rlbot", "--runs_dir", tmp_path) == 0
    costs = ["--matches", 2, "--latency", "0,4", "--loss", "0,0.1"] if name == "school" else []
    assert command("flight", bot, "--minutes", 0.2, *costs) == 0
    shown = capsys.readouterr().out
    assert shown.count("good") == 2
    rows = [line.split() for line in shown.splitlines() if re.match(r" +\d+ +\d", line)]
    assert [row[:2] for row in rows] == ([["0", "0"], ["4", "0"], ["0", "0.1"], ["4", "0.1"]] if costs else [])
