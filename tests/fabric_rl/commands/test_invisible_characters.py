"""Names with terminal escapes, marks that turn text round and halves of characters: shown as escapes everywhere."""

import csv
import json
import logging
import os
import re
import warnings
from html.parser import HTMLParser

import gymnasium
import pytest
import yaml

from fabric_rl.metrics.console import TrainConsole
from fabric_rl.metrics.log import RunLog, log_warnings, logger, print_lines
from tests.command import command

EVIL = "a\x1b[31m\u202eb\u200f\udc80\x9bc"
SHOWN = r"a\x1b[31m\u202eb\u200f\udc80\x9bc"
METRIC = "reward/episode\x1b[2J\u202ereturn"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="such a folder cannot be made")


@pytest.fixture
def runs(tmp_path):
    """Two groups of two runs, all with names that nobody should be able to type."""
    for group in ("x", "y"):
        for seed in range(2):
            folder = tmp_path / "runs" / f"{group}{EVIL}{seed}"
            meta = folder / "milestones" / f"p{EVIL}" / "10"
            meta.mkdir(parents=True)
            (meta / "meta.json").write_text(json.dumps({"mean_reward": 1.0}))
            with open(folder / "metrics.csv", "w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([["step", METRIC, "ppo/entropy"], *([n, n + seed, 1] for n in range(1, 40))])
            settings = {"env_id": f"Task{EVIL}", "group": f"{group}{EVIL}", "gamma": seed if group == "x" else 0.5}
            (folder / "config.yaml").write_text(yaml.safe_dump(settings | {"seed": seed}))
            summary = {"total_steps": 39, "stopped_early": False, "mean_return": 1.0, "stopped_by": f"by{EVIL}"}
            (folder / "summary.json").write_text(json.dumps(summary))
            (folder / "environment.json").write_text(json.dumps({"python": EVIL}))
            (folder / "league.json").write_text(json.dumps({"names": [f"l{EVIL}"], "payoff": [[0.5]]}))
    return tmp_path / "runs"


def hidden(text):
    """The characters that nobody sees."""
    return {letter for letter in text if not (letter.isprintable() or letter == "\n")}


class Attributes(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.shown = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.shown += [str(value) for _, value in attributes]

    def handle_data(self, text):
        self.shown.append(text)


def strings(data):
    """All strings of some JSON, keys included."""
    if isinstance(data, dict):
        return [*data, *(found for value in data.values() for found in strings(value))]
    if isinstance(data, list):
        return [found for value in data for found in strings(value)]
    return [data] if isinstance(data, str) else []


def check_page(path, *wanted):
    text = path.read_text(encoding="utf-8")
    parsed = Attributes(text)
    for shown in parsed.shown:
        assert not hidden(shown), shown[:200]
    for figures in re.findall(r'data-names="([^"]*)"', text):
        assert not hidden("".join(strings(json.loads(figures.replace("&#34;", '"').replace("&#39;", "'")))))
    if data := re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL):
        assert not hidden("".join(strings(json.loads(data[1]))))
    for each in wanted:
        assert any(each in shown for shown in parsed.shown), each


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["runs"], SHOWN),
        (["runs", "show", f"x{EVIL}0"], f"by{SHOWN}"),
        (["runs", "compare", f"x{EVIL}0", f"x{EVIL}1", "--metrics", METRIC], None),
        (["runs", "show", f"q{EVIL}"], None),
        (["compare", f"x{EVIL}", f"y{EVIL}", "--metric", METRIC], None),
        (["demos"], "refused"),
    ],
    ids=["runs", "show", "curves", "unknown", "groups", "demos"],
)
def test_consoles_show_escapes(runs, tmp_path, capsys, monkeypatch, words, wanted):
    for module in ("matplotlib", "plotext"):
        pytest.importorskip(module)
    monkeypatch.setenv("COLUMNS", "250")
    (tmp_path / f"d{EVIL}.frd").write_bytes(b"FRLREP")
    more = ["--folder", tmp_path] if words == ["demos"] else ["--runs_dir", runs]
    status = command(*words, *more)
    out, err = capsys.readouterr()
    assert not hidden(out + err) and SHOWN in out + err and (wanted or "") in out
    assert status == (2 if "q" in words[-1][:1] else 0), err


@pytest.mark.slow
def test_pages_show_escapes(runs, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert command("report", f"x{EVIL}0", "--runs_dir", runs) == 0
    check_page(
        runs / f"x{EVIL}0" / "report.html",
        f"x{SHOWN}0",
        f"p{SHOWN}",
        f"l{SHOWN}",
        rf"Task{SHOWN}",
        r"episode\x1b[2J\u202ereturn",
    )
    groups, out = [f"x{EVIL}", f"y{EVIL}"], tmp_path / "out\u202e"
    assert command("compare", *groups, "--metric", METRIC, "--runs_dir", runs, "--out", out) == 0
    check_page(out / "compare.html", f"x{SHOWN} against y{SHOWN}")
    assert not hidden("".join(capsys.readouterr()))


def test_lines_of_a_training_show_escapes(tmp_path, capsys):
    with TrainConsole(10, plain=True, headlines={"game/x": f"x{EVIL}"}) as console:
        console.show(5, {"game/x": 1.0})
    print_lines("two\nlines", EVIL)
    handler = RunLog(tmp_path / "log.txt", encoding="utf-8")
    logger.addHandler(handler)
    try:
        logger.info("starting run %s", EVIL)
        logger.log(logging.WARNING, EVIL)
    finally:
        logger.removeHandler(handler)
        handler.close()
    out, err = capsys.readouterr()
    assert not hidden(out + err)
    assert out.splitlines()[1:] == ["two", "lines", SHOWN, f"starting run {SHOWN}"] and f"x{SHOWN} 1" in out
    assert err.endswith(f": warning: {SHOWN}\n")
    assert (tmp_path / "log.txt").read_text().splitlines() == [f"starting run {SHOWN}", SHOWN]


def test_coloured_warnings_are_plain_text(capsys):
    with log_warnings():
        gymnasium.logger.warn("it is late")
    assert capsys.readouterr().err.endswith("warning: WARN: it is late\n")


def test_warnings_of_other_kinds_lose_nothing(capsys):
    with log_warnings():
        warnings.warn(f"runs/a\r{EVIL}", stacklevel=1)
    assert capsys.readouterr().err.endswith(rf"warning: runs/a\r{SHOWN}" + "\n")
