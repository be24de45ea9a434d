"""Exported agents (ONNX) and bots for RLBot whose files somebody has changed, and what the commands make of them.

    python tests/campaigns/mutated_exports.py --number 200 --seed 0

A command may refuse one in one line, or play it: nobody can say what a weight should be. But there is no traceback, the
process does not crash or hang, and nothing is written into the folder. `flight` starts the bot, so its programs are
changed only by accident here: a bit, a piece that is lost. It waits a minute for a bot that does not answer.
"""

import hashlib
import json
import random
import shutil
import sys
from pathlib import Path

import yaml

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.campaigns.campaign import SECONDS, Case, main, report, run
from tests.campaigns.mutated_checkpoints import dicts, leaves, name_of, replaced
from tests.runs import HIDDEN, POOL

STRANGE = [None, True, 0, -1, 10**30, 1e400, 0.5, "text", "", "../policy.onnx", "a\udc80\x1b[31m", [], {}, [[1], 2]]
STRANGE += [{"a": {}}, "9" * 5000, [10**9, 10**9], 10**9, "torchscript", "int8", "action"]
PLAYED = ("policy.onnx", "metadata.json", "config.yaml")
FLOWN = (*PLAYED, "bot.toml", "loadout.toml", "bot.json", "bot.py", "play.py", "lib/envs/adapters/rlbot_bot.py")


def damaged(content, rng):
    """Other bytes, and how they came about."""
    raw, at = bytearray(content), rng.randrange(len(content))
    end = at + rng.choice([1, 5, 100, len(raw)])
    way = rng.choice(["bit", "bit", "lost", "random", "empty"])
    if way == "bit":
        raw[at] ^= 1 << rng.randrange(8)
    elif way == "lost":
        del raw[at:end]
    elif way == "random":
        raw[at:end] = rng.randbytes(min(end, len(raw)) - at)
    else:
        raw.clear()
    return bytes(raw), f"{way} at {at}"


def other_value(state, rng):
    """The same mapping with a strange value, or without a key."""
    if rng.random() < 0.3:
        path, inside = rng.choice(list(dicts(state)))
        key = rng.choice(list(inside))
        return replaced(state, path, {k: v for k, v in inside.items() if k != key}), f"no {name_of((*path, key))}"
    roots = [leaf for leaf in leaves(state) if "layout" not in leaf[0] or rng.random() < 0.05]
    path, _ = rng.choice(roots)
    path = path[: rng.randint(1, len(path))]
    value = rng.choice(STRANGE)
    return replaced(state, path, value), f"{name_of(path)} {value!r:.40}"


def mutate(folder, name, rng):
    """Changes a file of a folder; returns what was done."""
    path = folder / name
    content = path.read_bytes()
    if rng.random() < 0.1:
        path.unlink()
        if rng.random() < 0.5:
            return f"{name}: missing"
        path.mkdir()
        return f"{name}: a folder"
    if name in ("metadata.json", "bot.json") and rng.random() < 0.8:
        other, what = other_value(json.loads(content), rng)
        path.write_text(json.dumps(other))
    elif name == "config.yaml" and rng.random() < 0.7:
        other, what = other_value(yaml.safe_load(content), rng)
        path.write_text(yaml.safe_dump(other))
    elif name == "bot.toml" and rng.random() < 0.7:
        lines = content.decode().splitlines()
        number = rng.choice([number for number, line in enumerate(lines) if "=" in line])
        value = rng.choice(["1", "[]", '"x"', "{}", "true", '""', f'"{"x" * 70_000}"', '"../.."', "1979-05-27", "nan"])
        lines[number], what = f"{lines[number].partition('=')[0]}= {value}", f"{lines[number]} = {value:.20}"
        path.write_text("\n".join(lines))
    else:
        other, what = damaged(content, rng)
        path.write_bytes(other)
        if name == "policy.onnx" and rng.random() < 0.7:
            about = json.loads((folder / "metadata.json").read_text())
            about["sha256"], what = hashlib.sha256(other).hexdigest(), f"{what}, with its checksum"
            (folder / "metadata.json").write_text(json.dumps(about))
    return f"{name}: {what}"


def files_of(folder):
    """Names and contents of all files but those that Python caches."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def prepared(folder):
    """The folder of a bot, which is that of an ONNX policy, too."""
    flags = [*POOL, *HIDDEN]
    flags += ["--runs_dir", str(folder), "--run_id", "own"]
    bot = folder / "bot"
    words = ["export", "own", str(bot), "--format", "rlbot", "--runs_dir", str(folder)]
    for number, (program, line) in enumerate((("train_fabric.py", flags), ("fabric-rl", words))):
        (folder / f"first{number}").mkdir()
        assert not report(run([Case("base", program, line, lambda err: True, program)], folder / f"first{number}"))
    return bot


def cases(bot, folder, number, seed, before):
    """Makes the cases one by one; `before` gets the files of each."""
    rng = random.Random(seed)
    for index in range(number):
        own = folder / "mutated" / f"{index:04d}"
        shutil.copytree(bot, own)
        flies = index % 3 == 2
        name = rng.choice(FLOWN if flies else PLAYED)
        what = mutate(own, name, rng)
        before[own] = files_of(own)
        words = ["flight", own, "idle"] if flies else ["evaluate", own, "idle", "--matches", "2"]
        words = [str(word) for word in (*words, "--minutes", "0.02", "--runs_dir", folder)]
        kind, what, canary = f"{words[0]}: {name}", f"{index}: {what}", own / "canary"
        yield Case(kind, what, words, lambda err: True, "fabric-rl", canary, seconds=SECONDS + 30 * flies)


def campaign(folder, number, seed):
    """Runs it; returns how many cases ended badly, or have written into their folder."""
    bot, before = prepared(folder), {}
    (folder / "forks").mkdir()
    failed = report(run(cases(bot, folder, number, seed, before), folder / "forks"))
    written = [own.name for own, files in before.items() if files_of(own) != files]
    print(f"{len(written)} have written: {', '.join(written)}")
    return failed + len(written)


if __name__ == "__main__":
    main(__doc__, campaign, 200)
