"""The code blocks of README.md and docs/, and what their commands do within seconds instead of hours."""

import os
import re
import runpy
import shlex
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
BLOCK = re.compile(
    r"(?:^ *<!-- not run: (?P<why>.+?) -->\n+)?^ *```(?P<language>\w*)(?: title=.*)?\n(?P<text>.*?)^ *```$", re.M | re.S
)

TRAINS = "--accelerator cpu --devices 1 --num_threads 1 --plain --record_minutes null"
PPO = "--total_timesteps {total} --num_steps 16 --minibatch_size 16 --batch_size 16 --update_epochs 1"
SAC = "--total_timesteps {total} --buffer_init_steps 40 --batch_size 16"
SHORTER = {
    "audit-rewards": "--seconds 1 --num_arenas 2",
    "clone": "--epochs 1 --validation 0",
    "demos record": "--minutes 0.5",
    "evaluate": "--matches 2 --minutes 0.01 --workers 1",
    "flight": "--minutes 0.05",
    "exam": "--packs 800B-18F9-C2F1-ACEE",
    "league": "--matches 2 --minutes 0.01",
    "record": "--minutes 0.02 --force",
    "search": "--budget 3_000",
    "show-resets": "--episodes 4",
    "trace-rewards": "--seconds 1",
    "play": "--no_browser true --port 0 --minutes 0.02",
    "watch": "--no-browser --port 0 --minutes 0.02",
}
"""What is added to the words of a page: later flags win."""
NUMBERS = {
    r"total_timesteps=[\d_]+": "total_timesteps=64",
    r"num_steps=\d+": "num_steps=16",
    r"minibatch_size=[\d_]+": "minibatch_size=32",
    r"exp_buffer_size=[\d_]+": "exp_buffer_size=64",
    r"num_(envs|arenas)=(16|32)": r"num_\1=2",
    r"minutes=[\d.]+": "minutes=0.02",
    r"seconds=10\b": "seconds=1",
    r"range\(15 \* 60\)": "range(3)",
    r"episodes=100": "episodes=1",
}
"""The same for Python."""


class Block(NamedTuple):
    """A code block of a page."""

    language: str
    text: str
    why: str | None
    """Why it is not run, as the page says it."""


def blocks(page):
    """All blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [Block(m["language"], dedent(m["text"]), m["why"]) for m in BLOCK.finditer(text)]
    assert 2 * len(found) == len(re.findall(r"^ *```", text, re.M)), f"{page}: a block that does not end"
    return found


def named(block):
    """The file that a block is: what its first line says in a comment."""
    first = re.match(r"# (\w+\.(?:py|yaml))\n", block.text)
    return first and first[1]


def commands(block):
    """The commands of a shell block, each as its words; of shown output those behind `$`."""
    text = block.text.replace("\\\n", " ")
    if block.language in ("", "text"):
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    variables, found = {}, []
    for line in text.splitlines():
        line = re.sub(r"\$([A-Z]+)", lambda name: variables.get(name[1], name[0]), line)
        words = shlex.split(re.sub(r"(^|\s)#.*", "", line))
        if words and (setting := re.fullmatch(r"([A-Z]+)=(.*)", words[0])):
            variables[setting[1]] = setting[2]
        elif words:
            found.append(words[: words.index("|")] if "|" in words else words)
    return found


def shortened(words, number):
    """The same command, done within a second; `number` is that of the command on its page."""
    words = ["2" if before.endswith("num_arenas") else word for before, word in zip(["", *words], words, strict=False)]
    program, *rest = words
    if words[:2] in (["python", "train_fabric.py"], ["fabric-rl", "train"]):
        if {"--help", "--print_config"} & set(words) or any(word.endswith(".help") for word in words):
            return words
        sac = any(re.search("sac_|SAC|TD3|DQN", word) for word in words)
        total = (60 if sac else 1) if "--resume" not in words else 200 * number
        force = ["--force"] if "--run_id" in words and "--resume" not in words else []
        often = ["--milestone_interval", "64"] if "--milestone_interval" in words else []
        trains = TRAINS.split()[: -2 if "--watch" in words else None]
        return [*words, *often, *trains, *(SAC if sac else PPO).format(total=total).split(), *force]
    if program == "fabric-rl":
        name = " ".join(rest[:2]) if rest[0] in ("demos", "runs") else rest[0]
        extra = SHORTER.get(name, "").split()
        if "--episodes" in rest and name in ("evaluate", "demos record"):
            extra = ["--episodes", "2"]
        if {"--sequential", "--until-width"} & set(rest):
            extra = ["--matches", "20", *extra[2:]]
        if name == "flight" and "--matches" in rest:
            extra += ["--matches", "2"]
        return [*words, *extra]
    return words


def python(text):
    """A Python block with smaller numbers."""
    for pattern, smaller in NUMBERS.items():
        text = re.sub(pattern, smaller, text)
    return text


def perform(*words):
    """Runs a command in the folder that PAGE names; a process of tests/forks.py begins here."""
    folder = os.environ["PAGE"]
    os.chdir(folder)
    sys.path.insert(0, folder)
    program, *rest = words
    sys.argv = [*rest] if program == "python" else [*words]
    if program == "fabric-rl":
        from fabric_rl.commands.main import main

        return main(rest)
    if program == "pytest":
        os.execv(sys.executable, [sys.executable, "-m", "pytest", "--ignore=.said", *rest])
    if rest[0] == "train_fabric.py":
        from train_fabric import cli

        return cli(rest[1:])
    if rest[0] == "-m":
        sys.argv = rest[1:]
        return runpy.run_module(rest[1], run_name="__main__") and 0
    return runpy.run_path(rest[0], run_name="__main__") and 0
