"""`fabric-rl report`: what its page says is what lies in the run's folder, and nothing of it is HTML."""

import base64
import io
import json
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from envs.pool.replay_format import ReplayWriter
from envs.replays.replay import read_replay
from fabric_rl.commands.main import main
from fabric_rl.commands.report import read_games, stages_of
from fabric_rl.metrics.metrics_csv import read_metrics

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ATTACK = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
"""As a file's name without the slash."""


@pytest.fixture
def runs(tmp_path):
    """A folder with a run that has phases and milestones, and a recorded game with a goal."""
    shutil.copytree(FIXTURES / "run_of_0_1_0/tiny", tmp_path / "runs/tiny")
    (tmp_path / "runs/tiny/games").mkdir()
    shutil.copy(FIXTURES / "replays/one_goal.frl", tmp_path / "runs/tiny/games/000000002048.frl")
    return tmp_path / "runs"


def excerpt_of(replay):
    """The file again, with what the header now says."""
    said = {name: value for name, value in replay.about.items() if name != "columns"}
    sink = io.BytesIO()
    game = replay.games[0]
    writer = ReplayWriter(sink, game._columns, said)
    writer.begin({})
    for frame in range(game.num_frames):
        writer.add({name: values[frame] for name, values in game.columns.items()})
    writer._events = game.events
    writer.end({})
    return sink.getvalue()


def report(runs, run="tiny", out=None):
    """The status of `fabric-rl report`."""
    with pytest.raises(SystemExit) as ended:
        main(["report", str(run), "--runs_dir", str(runs), *([] if out is None else ["--out", str(out)])])
    return ended.value.code


class Page(HTMLParser):
    """The parts of a page: tags with their attributes, and texts."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.texts, self.inside = [], [], None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = dict(attributes).get("id", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside == "data":
            self.data = json.loads(text)
        elif not self.inside and text.strip():
            self.texts.append(" ".join(text.split()))


def test_a_row_of_two_phases_belongs_to_the_new_one():
    curves = {"phase/number": (np.array([1e5, 2e5, 3e5, 4e5]), np.array([1, 1.25, 2, 2.5]))}
    assert [(name, begin, end) for _, name, begin, end in stages_of(curves, {})] == [
        ("1", 0, 1e5),
        ("2", 1e5, 3e5),
        ("3", 3e5, 4e5),
    ]


def test_what_the_page_says_is_in_the_run(runs, capsys):
    assert report(runs) == 0
    assert re.fullmatch(r"written: .*tiny.report.html \(0\.\d\d MB\)\n", capsys.readouterr().out)
    page = Page(runs / "tiny/report.html")
    curves = read_metrics(runs / "tiny/metrics.csv")
    assert page.data["curves"].keys() == curves.keys()
    for name, (steps, values) in curves.items():
        assert page.data["curves"][name] == [pytest.approx(steps), pytest.approx(values, rel=1e-5)]
    assert page.data["stages"] == [[1024, "phase 1 First"]]
    assert page.data["milestones"] == [[1024, "Phase2-Second"], [2048, "Phase2-Second"]]
    for text in ("tiny", "finished", "2,048", "of 2,048", "2 Second", "0.4188", "torch", "2.13.0+cpu", "num_steps"):
        assert text in page.texts, text
    assert any("2026-11-22 02:03 to " in text for text in page.texts)
    shown = [json.loads(attributes["data-names"]) for tag, attributes in page.tags if tag == "figure"]
    assert {name for names in shown for name in names} == set(curves)
    assert any(re.fullmatch(r"\w+, 000000002048.frl at \d+:\d\d", text) for text in page.texts)
    game, goal = map(base64.b64decode, page.data["replays"])
    assert game == (runs / "tiny/games/000000002048.frl").read_bytes() and len(goal) < len(game)
    assert (
        page.texts.count("school_1v1") == 4
        and "1 : 0" in page.texts
        and (runs / "tiny/report.html").stat().st_size < 400_000
    )


def test_nonsense_in_a_run_leaves_a_page_that_can_be_read(runs, capsys):
    """Huge numbers, half a character in a name, a link to nowhere and a pipe among the games."""
    folder = runs / "tiny"
    (folder / "summary.json").write_text('{"total_steps": 1' + "0" * 400 + "}")
    (folder / "metrics.csv").write_text("step,loss\n" + "".join(f"{step},1.7e308\n" for step in range(1, 801)))
    (folder / "environment.json").write_text('{"python": "\\ud800"}')
    (folder / "league.json").write_text('{"names": ["a"], "payoff": [[1' + "0" * 400 + "]]}")
    (folder / "games/gone.frl").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "games/pipe.frl")
    assert report(runs) == 0
    text = (folder / "report.html").read_text()
    assert "Infinity" not in text and Page(folder / "report.html").data["curves"]["loss"][1] == [1.7e308] * 400
    with pytest.raises(SystemExit) as ended:
        main(["runs", "--runs_dir", str(runs)])
    assert ended.value.code == 0 and "tiny" in capsys.readouterr().out


def test_long_curves_are_thinned_to_means(runs):
    lines = ["step,loss", *(f"{step},{step % 10}" for step in range(1, 4001))]
    (runs / "tiny/metrics.csv").write_text("\n".join(lines) + "\n")
    assert report(runs) == 0
    steps, losses = Page(runs / "tiny/report.html").data["curves"]["loss"]
    assert len(steps) == 400 and steps[0] == 5.5 and losses == [4.5] * 400


def test_a_run_without_a_game(tmp_path):
    """Of a Gymnasium task, killed before its summary, without settings."""
    folder = tmp_path / "cart"
    folder.mkdir()
    (folder / "metrics.csv").write_text(
        "step,reward/episode_return,speed/overall_steps_per_second\n600,20,10\n1200,30,5\n1800,"
    )
    assert report(tmp_path, "cart", tmp_path / "page.html") == 0
    page = Page(tmp_path / "page.html")
    for text in ("unfinished", "1,200", "3 min", "config.yaml is missing or cannot be read."):
        assert text in page.texts, text
    assert not {"goals", "parts", "stages", "milestones", "league"}.intersection(a.get("id") for _, a in page.tags)
    assert "iframe" not in [tag for tag, _ in page.tags]


def test_a_run_of_rocket_league_without_a_game_says_how_to_record_one(runs):
    shutil.rmtree(runs / "tiny/games")
    assert report(runs) == 0
    page = Page(runs / "tiny/report.html")
    assert f"fabric-rl record {runs}/tiny --out {runs}/tiny/game.frl" in page.texts and not page.data["replays"]


def test_figures_are_of_the_players_of_the_newest_game(runs):
    """Two games of the same players count, one of others does not; the roof is a metric of the training."""
    games = runs / "tiny/games"
    whole = read_replay(games / "000000002048.frl")
    os.utime(games / "000000002048.frl", (3, 3))
    (games / "again.frl").write_bytes(excerpt_of(whole))
    os.utime(games / "again.frl", (2, 2))
    (games / "others.frl").write_bytes(excerpt_of(replace(whole, about=whole.about | {"names": ["a", "b"]})))
    os.utime(games / "others.frl", (1, 1))
    clips, measured, _ = read_games(runs / "tiny")
    assert list(measured) == [("school_1v1", "idle"), ("a", "b")] and len(clips) == 6
    (counts, maps), (more, _) = measured["school_1v1", "idle"]
    assert np.array_equal(counts, more) and maps[0].sum() == pytest.approx(2 * whole.games[0].columns["ticks"][-1])
    (runs / "tiny/metrics.csv").write_text("step,turtle/recovery_rate\n10,0.2\n")
    assert report(runs) == 0
    texts = Page(runs / "tiny/report.html").texts
    assert f"{2 * maps[0, 0].sum() / 7200:.1f} minutes" in texts and f"{2 * maps[1, 0].sum():.0f} touches" in texts
    assert "Next: school_1v1 stays on its roof (20.0%): docs/recover_from_the_roof.md" in texts
    assert texts[texts.index("kickoffs won") + 1].endswith("%")


def test_parts_lessons_and_a_league(runs):
    names = "reward/Touch,reward_percent/Touch,reward/step,lesson/speed,lesson/speed_measure"
    (runs / "tiny/metrics.csv").write_text(f"step,{names}\n10,0.25,75,0.3,0,0.1\n20,0.5,80,0.6,0,0.3\n30,1,90,1,1,0\n")
    rows = [{"rating": 30, "low": 25, "high": 35}, {"rating": 20, "low": 15, "high": 25}]
    league = {"names": ["a", "b"], "payoff": [[None, 0.75], [0.25, None]], "ratings": rows}
    (runs / "tiny/league.json").write_text(json.dumps(league))
    assert report(runs) == 0
    texts = Page(runs / "tiny/report.html").texts
    at = texts.index("part")
    assert texts[at + 4 : at + 8] == ["Touch", "0.25", "1", "90.0 %"]
    assert texts[texts.index("speed 0") :][:3] == ["speed 0", "0", "20"] and "speed 1" in texts
    assert texts[texts.index("75 %") - 1] == "-" and "25 to 35" in texts
    (runs / "tiny/league.json").write_text(json.dumps(league | {"names": ["a"]}))
    assert report(runs) == 0 and "25 to 35" not in Page(runs / "tiny/report.html").texts


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file names")
def test_nothing_of_a_run_is_html(runs):
    """Names of runs, phases, settings, metrics, players, files: all of it may be a stranger's."""
    name = ATTACK.replace("/", "")
    folder = (runs / "tiny").rename(runs / name)
    (folder / "milestones/Phase2-Second").rename(folder / "milestones" / name)
    (folder / "games/000000002048.frl").rename(folder / f"games/{name}.frl")
    (folder / "metrics.csv").write_text(
        f'step,"reward/{ATTACK.replace(chr(34), chr(34) * 2)}",phase/number\n1,2,1\n2,3,2\n'
    )
    settings = {ATTACK: ATTACK, "agent": ATTACK, "seed": ATTACK, "total_timesteps": ATTACK}
    settings["callbacks"] = [{"init_args": {"phases": [{"name": ATTACK}]}}]
    (folder / "config.yaml").write_text(json.dumps(settings))
    (folder / "environment.json").write_text(json.dumps({ATTACK: ATTACK, "packages": {ATTACK: ATTACK}}))
    (folder / "league.json").write_text(json.dumps({"names": [ATTACK], "payoff": [[1]]}))
    out = runs / "page.html"
    assert report(runs, folder, out) == 0
    page = Page(out)
    assert [tag for tag, _ in page.tags].count("script") == 3 and "img" not in [tag for tag, _ in page.tags]
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert page.texts.count(ATTACK) >= 6 and page.data["stages"] == [[1, f"phase 1 {ATTACK}"]]
    assert not re.search(r'(src|href)="(?!data:,|data:image/png;base64,[\w+/=]+")', out.read_text(encoding="utf-8"))


def test_the_fastest_goals_are_shown_whenever_they_fell(tmp_path):
    """Twenty in one game, each slower than the one before."""
    whole = read_replay(FIXTURES / "replays/one_goal.frl")
    game = whole.games[0]
    goal = next(event for event in game.events if event["kind"] == "goal")
    game.columns["ball_vel"][:] = np.linspace(3000, 1000, game.num_frames)[:, None] * (0, 1, 0)
    game.events[:] = [goal | {"frame": frame} for frame in range(10, 30)]
    (tmp_path / "game.frl").write_bytes(excerpt_of(whole))
    clips, _, unread = read_games(tmp_path)
    fastest = game.columns["ball_vel"][10:22, 1]
    speeds = [float(shown.split()[0].replace(",", "")) for shown, *_ in clips[1:]]
    assert speeds == pytest.approx(fastest, abs=1) and not unread


def test_games_that_cannot_be_read_are_counted(runs):
    games = runs / "tiny/games"
    data = bytearray((games / "000000002048.frl").read_bytes())
    data[len(data) // 2] ^= 1
    (games / "damaged.frl").write_bytes(data)
    (games / "empty.frl").write_bytes(b"")
    whole = read_replay(games / "000000002048.frl")
    for number, nonsense in enumerate(({"tick_skip": 0}, {"names": None}, {"names": []}, {"ticks_per_second": "many"})):
        strange = replace(whole, about=whole.about | nonsense)
        (games / f"strange{number}.frl").write_bytes(excerpt_of(strange))
    frameless = replace(whole.games[0], num_frames=0)
    (games / "frameless.frl").write_bytes(excerpt_of(replace(whole, games=[frameless])))
    assert report(runs) == 0
    page = Page(runs / "tiny/report.html")
    assert "7 of the recorded games cannot be read." in page.texts and len(page.data["replays"]) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the run has logged no metrics"),
        ("step,loss\n", "run tiny has logged no metrics yet; try again after its first iteration"),
        ("loss\n1\n", "has no column 'step'"),
        ("step,loss\n1," + "9" * 200_000 + "\n", "metrics.csv cannot be read (field larger than field limit"),
    ],
)
def test_mistakes_are_one_line(content, message, runs, capsys):
    file = runs / "tiny/metrics.csv"
    file.unlink() if content is None else file.write_text(content)
    assert report(runs) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("fabric-rl report: error: ") and error.count("\n") == 1
    assert report(runs, "nobody") == 2 and "there is no run nobody" in capsys.readouterr().err
    assert report(runs, out=runs / "page.pdf") == 2 and "must end in .html" in capsys.readouterr().err
    assert not list(runs.rglob("*.html*"))
