"""Callbacks: when hooks are called, checkpoints on demand, keys on a real terminal, memory, notifications, videos."""

import ctypes
import gc
import json
import math
import os
import re
import select
import sys
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import gymnasium
import pytest
import torch
from lightning import Fabric
from lightning.fabric.loggers import TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import PPOLightningAgent
from envs import GymnasiumEnvs
from envs.adapters.gymnasium_envs import RecordVideos
from fabric_rl import Callback, Evaluation, History, Run, TrainArgs, TrainState, load_checkpoint, train
from fabric_rl.callbacks import AdaptiveBatchSize, Callbacks, EarlyStopping, KeyPress, Notify, StopAfter, VideoLogger
from fabric_rl.callbacks.batch_size import RAM, GPUMemory, allowed_sizes, choose_size
from fabric_rl.hooks import Hooks
from fabric_rl.learning.update import NotEnoughMemoryError
from fabric_rl.runs.records import list_checkpoints
from fabric_rl.session.saving import Saving
from tests.forks import ROOT, SECONDS

if sys.platform != "win32":
    import termios

PTY_RUNS = "tests.fabric_rl.callbacks.pty_runs"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
CARTPOLE = partial(GymnasiumEnvs, "CartPole-v1", 2)


class Consecutive(PPOLightningAgent):
    """Learns from sequences without a memory."""

    sequence_length = 16


def trained(fabric, callbacks, run=None, agent=PPOLightningAgent, iterations=3, **settings):
    settings = {
        "total_timesteps": 64 * iterations,
        "num_steps": 32,
        "update_epochs": 1,
        "minibatch_size": 64,
    } | settings
    saving = Saving(keep_checkpoints=100)
    return train(fabric, CARTPOLE, agent, TrainArgs(**settings), run, callbacks, plain=True, saving=saving)


def state_of(fabric, **settings):
    args = TrainArgs(total_timesteps=1000)
    return TrainState(fabric, None, None, args, **({"run_id": "bots", "steps": 1000} | settings))


# ---------------------------------------------------------------- hooks


class Calls(Callback):
    """Writes down which hook was called after how many steps."""

    def __init__(self, fail_in=None):
        self.seen, self.fail_in = [], fail_in

    def note(self, hook, state):
        self.seen.append((hook, state.iteration))
        if hook == self.fail_in:
            raise ValueError(f"{hook} fails")

    def on_train_start(self, state):
        self.note("train_start", state)

    def on_iteration_start(self, state):
        self.note("iteration_start", state)

    def on_learn_start(self, state):
        self.note("learn_start", state)

    def on_iteration_end(self, state):
        self.note("iteration_end", state)

    def on_train_end(self, state):
        self.note("train_end", state)

    def on_exception(self, state, error):
        self.note(f"exception {error}", state)


def test_the_order_of_the_hooks(fabric):
    calls = Calls()
    trained(fabric, [calls], iterations=2)
    iteration = ["iteration_start", "learn_start", "iteration_end"]
    assert [hook for hook, _ in calls.seen] == ["train_start", *iteration, *iteration, "train_end"]
    assert [count for _, count in calls.seen] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_an_evaluation_is_read_by_callbacks_that_are_listed_before_it(fabric):
    history, evaluation = History(), Evaluation(every_steps=64, episodes=2, env=CARTPOLE)
    trained(fabric, [history, evaluation], iterations=2)
    assert all("eval/return" in row for row in history.rows)


def test_several_callbacks_as_one(fabric):
    class Named(Calls):
        def __init__(self, name, seen):
            super().__init__()
            self.name, self.seen, self.kept = name, seen, f"of {name}"

        def note(self, hook, state):
            self.seen.append((hook, self.name))

        def drain_metrics(self):
            return {f"custom/{self.name}": (1.0, 2.0)}

        def state_dict(self):
            return {"kept": self.kept}

        def load_state_dict(self, state):
            self.kept = state["kept"]

    seen, history = [], History()
    both = Callbacks({name: Named(name, seen) for name in ("first", "second")})
    trained(fabric, [both, history], iterations=1)
    hooks = ["train_start", "iteration_start", "learn_start", "iteration_end", "train_end"]
    assert seen == [(hook, name) for hook in hooks for name in ("first", "second")]
    both.on_exception(None, ValueError("x"))
    assert seen[-2:] == [("exception x", "first"), ("exception x", "second")]
    assert {name for name in vars(Callback) if name.startswith("on_")} <= vars(Callbacks).keys()
    assert history.rows[0]["custom/first"] == history.rows[0]["custom/second"] == 0.5

    assert both.state_dict() == {"first": {"kept": "of first"}, "second": {"kept": "of second"}}
    later = Callbacks({name: Named(name, seen) for name in ("second", "third")})
    later.load_state_dict(both.state_dict() | {"second": {"kept": "loaded"}})
    assert [part.kept for part in later.parts.values()] == ["loaded", "of third"]
    assert later.state_dict()["first"] == {"kept": "of first"}  # for a run that has it again


def test_the_batch_that_one_of_several_callbacks_returns_is_learned_from():
    class Other(Callback):
        def __init__(self, batch):
            self.batch = batch

        def on_learn_start(self, state):
            self.saw = state.batch
            return self.batch

    parts = {name: Other(batch) for name, batch in (("a", None), ("b", "other"), ("c", None))}
    state = SimpleNamespace(batch="collected")
    assert Callbacks(parts).on_learn_start(state) == "other"
    assert [part.saw for part in parts.values()] == ["collected", "collected", "other"]
    assert Callbacks({"a": Other(None)}).on_learn_start(state) is None


@pytest.mark.parametrize("hook", ["train_start", "iteration_end"])
def test_every_callback_hears_of_a_failure_and_the_error_goes_on(fabric, hook):
    first, second = Calls(hook), Calls(f"exception {hook} fails")
    last = Calls()
    with (
        pytest.raises(ValueError, match=f"^{hook} fails$"),
        pytest.warns(RuntimeWarning, match=r"Calls.on_exception\(\) failed"),
    ):
        trained(fabric, [second, first, last])
    assert [calls.seen[-1][0] for calls in (first, second, last)] == [f"exception {hook} fails"] * 3


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"custom/x": 3}, r"--callbacks Own.drain_metrics\(\): custom/x must be two numbers \(sum, count\), got 3"),
        ({"custom/x": (1.0, "2")}, r"custom/x must be two numbers \(sum, count\), got \(1.0, '2'\)"),
        (None, r"--callbacks Own.drain_metrics\(\) must return a dict of name -> \(sum, count\), got NoneType"),
    ],
)
def test_wrong_metrics_are_those_of_a_callback(metrics, message):
    class Own(Callback):
        def drain_metrics(self):
            return metrics

    with pytest.raises(TypeError, match=message):
        Hooks(TrainState(None, None, None, None), [Own()]).drain_metrics()


def test_a_checkpoint_on_demand(fabric, tmp_path):
    class Save(Callback):
        def on_iteration_end(self, state):
            state.save |= state.iteration == 2

    trained(fabric, [Save()], Run.create(tmp_path, "a"), iterations=4)
    assert [path.name for path in list_checkpoints(tmp_path / "a/checkpoints")] == [
        "step_000000000128.ckpt",
        "step_000000000256.ckpt",
    ]
    assert load_checkpoint(tmp_path / "a/checkpoints/step_000000000128.ckpt")[1]["exact"] is False
    trained(fabric, [Save()])  # nowhere to save: nothing happens


def test_the_callback_of_the_docs(fabric):
    text = (ROOT / "docs/callbacks.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(# my_callbacks.py.*?)```", text, re.DOTALL)
    assert sum(line.strip() != "" for line in block.splitlines()) <= 14
    names = {}
    exec(block, names)
    callback, history = names["WeightNorm"](limit=0.1), History()
    summary = trained(fabric, [callback, history], iterations=3)
    assert summary["total_steps"] == 64  # above the limit at once
    # It is drained before it sees the end of its first iteration.
    assert history.rows[0]["custom/weight_norm"] > 1


# ---------------------------------------------------------------- keys


@pytest.fixture
def begin(forks, session, tmp_path):
    """Starts what pty_runs.py has under that name, at the terminal of the session."""
    return lambda name: forks.start(tmp_path, program=f"{PTY_RUNS}:{name}", TERMINAL=os.ttyname(session.slave))


class Session:
    """Somebody at a terminal in which a training runs."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.screen = ""

    def types(self, keys):
        os.write(self.master, keys.encode())

    def until(self, pattern):
        """Reads the screen up to a pattern; returns what came before it, and the match."""
        while not (found := re.search(pattern, self.screen)):
            assert select.select([self.master], [], [], SECONDS)[0], f"no {pattern} after {self.screen}"
            self.screen += os.read(self.master, 65536).decode().replace("\r\n", "\n")
        before, self.screen = self.screen[: found.start()], self.screen[found.end() :]
        return before, found

    def drain(self):
        """Goes on reading, so that a process which writes does not wait for it."""

        def read():
            while select.select([self.master], [], [], 0.5)[0]:
                self.screen += os.read(self.master, 65536).decode()

        thread = threading.Thread(target=read)
        thread.start()
        return thread

    @property
    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def session():
    session = Session()
    yield session
    session.close()


@pytest.fixture
def ended(forks, session):
    """Waits for a process; its exit status."""

    def ended(*processes):
        reading = session.drain()
        statuses, _, _ = forks.wait(processes)
        reading.join()
        return statuses

    return ended


def steps_shown(text):
    return [int(number.replace(",", "")) for number in re.findall(r"^ *([\d,]+)/1,000,000,000", text, re.MULTILINE)]


@POSIX
def test_pause_save_go_on_and_stop(begin, ended, session, tmp_path):
    run = begin("play")
    session.until(r"keys \(read between iterations\): p pauses or continues, s saves a checkpoint, q stops")
    session.until("/1,000,000,000.*\n")
    flags = termios.tcgetattr(session.slave)[3]
    assert not flags & (termios.ICANON | termios.ECHO) and flags & termios.ISIG
    session.types("\x1bOP\x1b[3~x")  # F1, Delete and a key without a meaning
    session.types("p")
    _, found = session.until(r"paused after ([\d,]+) steps: p continues, s saves, q stops\n")
    paused = int(found[1].replace(",", ""))
    session.types("s")
    session.until(f"saving after {found[1]} steps\n")
    session.types("s")
    shown, _ = session.until("this checkpoint is already being saved\n")
    assert steps_shown(shown) == [paused]  # this iteration is logged and saved, the next one waits
    assert [path.name for path in list_checkpoints(tmp_path / "run/checkpoints")] == [f"step_{paused:012d}.ckpt"]
    session.types("p")
    shown, _ = session.until("continuing\n")
    assert steps_shown(shown) == []
    shown, _ = session.until(r"/1,000,000,000.*\n")
    assert int(shown.replace(",", "")) == paused + 64
    session.types("Q")
    session.until("stopping after this iteration\n")
    assert ended(run) == [0]
    assert session.is_restored
    steps = load_checkpoint(tmp_path / "run")[1]["steps"]
    assert json.loads((tmp_path / "run/summary.json").read_text())["total_steps"] == steps > paused


@POSIX
def test_control_c_ends_a_pause(begin, ended, session, tmp_path):
    run = begin("play")
    session.until(r"keys \(")
    session.types("p")
    _, found = session.until(r"paused after ([\d,]+) steps")
    session.types("\x03")
    assert ended(run) == [0]
    assert session.is_restored
    assert load_checkpoint(tmp_path / "run")[1]["steps"] == int(found[1].replace(",", ""))


@POSIX
def test_the_terminal_is_given_back_when_training_fails(begin, ended, session, tmp_path):
    run = begin("fails")
    session.until("RuntimeError: on purpose")
    assert ended(run) == [1]
    assert session.is_restored


@POSIX
def test_in_the_background_the_terminal_is_left_alone(begin, ended, session, tmp_path):
    """Reading or setting it would suspend the process."""
    run = begin("background")
    session.types("q")
    session.until(" 128/192")
    assert session.is_restored
    assert ended(run) == [0]
    assert load_checkpoint(tmp_path / "run")[1]["steps"] == 192


def test_without_a_terminal_nothing_is_read(fabric, capsys):
    assert trained(fabric, [KeyPress()])["total_steps"] == 192
    assert "keys" not in capsys.readouterr().out


@POSIX
def test_two_ranks_pause_save_shrink_and_stop_together(forks, ended, session, tmp_path):
    ranks = forks.ranks(2, tmp_path, program=f"{PTY_RUNS}:two_ranks", TERMINAL=os.ttyname(session.slave))
    session.until(" 384/1,000,000,000.*\n")
    session.types("p")
    _, found = session.until(r"paused after ([\d,]+) steps")
    session.types("p")
    session.until("continuing\n")
    session.until(r" [\d,]+/1,000,000,000.*\n *[\d,]+/1,000,000,000.*\n")
    session.types("q")
    session.until("stopping after this iteration\n")
    assert ended(*ranks) == [0, 0]
    assert session.is_restored
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    assert ranks == [{"size": 4, "stopped": True}] * 2
    first, *_, last = list_checkpoints(tmp_path / "run/checkpoints")
    assert first.name == "step_000000000256.ckpt"  # the second iteration, asked for by rank 1
    assert load_checkpoint(last)[1]["steps"] > int(found[1].replace(",", ""))


# ---------------------------------------------------------------- memory


class Hungry(PPOLightningAgent):
    """Takes 8 MiB for each step of a minibatch."""

    def training_step(self, minibatch):
        torch.ones(len(minibatch.obs) * 2**21)
        return super().training_step(minibatch)


class Scarce(Callback):
    """About 192 MiB are left whenever a size is chosen: room for 16 steps of 8 MiB, not for 32."""

    def __init__(self, adaptive):
        self.adaptive = adaptive

    def on_iteration_end(self, state):
        self.adaptive.share = 192 * 2**20 / RAM().free()


def test_the_sizes_that_make_up_a_batch():
    assert allowed_sizes(12) == [1, 2, 3, 4, 6, 12]
    assert allowed_sizes(16) == [1, 2, 4, 8, 16]
    assert allowed_sizes(12, sequence_length=3) == [3, 6, 12]
    assert allowed_sizes(12, smallest=4) == [4, 6, 12]
    assert allowed_sizes(12, smallest=13) == [12]


@pytest.mark.parametrize(
    ("free", "per_step", "size"),
    [(1000, 10, 100), (999, 10, 50), (2000, 10, 200), (1e9, 10, 200), (249, 10, 25), (0, 10, 25), (0, 0, 200)],
)
def test_the_largest_size_that_fits(free, per_step, size):
    assert choose_size(free, per_step, [25, 50, 100, 200]) == size
    assert choose_size(free, per_step, [200, 25, 100, 50]) == size


def test_minibatches_double_and_the_weights_stay_those_of_whole_batches(fabric):
    def weights(**settings):
        history = History()
        trained(fabric, [*settings.pop("callbacks", ()), history], iterations=4, batch_size=64, **settings)
        return torch.cat([p.detach().flatten() for p in history.agent.parameters()]), history.rows

    adaptive = AdaptiveBatchSize(smallest=8)
    changed, rows = weights(callbacks=[adaptive], minibatch_size=16)
    assert [row["ppo/minibatch_size"] for row in rows] == [16, 32, 64, 64]
    assert adaptive.state_dict() == {"size": 64, "growing": False}
    whole, _ = weights(minibatch_size=64)
    torch.testing.assert_close(changed, whole, rtol=1e-4, atol=1e-5)
    assert (weights(minibatch_size=64, seed=1)[0] - whole).abs().max() > 1e-2


@pytest.mark.slow
def test_minibatches_shrink_where_memory_is_short_and_stay_small(fabric, trimmed):
    history, adaptive = History(), AdaptiveBatchSize(smallest=8)
    trained(fabric, [Scarce(adaptive), adaptive, history], agent=Hungry, iterations=4)
    assert [row["ppo/minibatch_size"] for row in history.rows][:2] == [64, 16]
    assert adaptive.state_dict()["growing"] is False
    assert history.rows[-1]["ppo/minibatch_size"] <= 16
    adaptive.share = 0.8
    again = History()
    trained(fabric, [adaptive, again], agent=Hungry)
    assert {row["ppo/minibatch_size"] for row in again.rows} == {adaptive.state_dict()["size"]}


def said(caplog):
    return [record.getMessage() for record in caplog.records if "AdaptiveBatchSize" in record.getMessage()]


@pytest.mark.slow
def test_minibatches_that_do_not_grow_say_why_once(fabric, caplog, trimmed):
    caplog.set_level("INFO", logger="fabric_rl")
    trained(fabric, [AdaptiveBatchSize(smallest=8)], iterations=3, minibatch_size=16)
    (line,) = said(caplog)
    assert "minibatches of 16 steps already fill --batch_size and cannot grow; set a larger --batch_size or" in line

    caplog.clear()
    trained(fabric, [AdaptiveBatchSize(smallest=8)], iterations=4, minibatch_size=16, batch_size=64)
    (line,) = said(caplog)
    assert "minibatches now have 64 steps and fill --batch_size" in line

    caplog.clear()
    scarce = AdaptiveBatchSize(smallest=8)
    trained(fabric, [Scarce(scarce), scarce], agent=Hungry, iterations=3, minibatch_size=16, batch_size=64)
    (line,) = said(caplog)
    assert re.search(
        r"steps; more would not fit in memory \([\d,]+ MiB for (16|32) steps; [\d,]+ MiB free, of which", line
    )


def test_a_size_that_nothing_but_three_times_as_much_contains_grows(fabric):
    history, adaptive = History(), AdaptiveBatchSize(smallest=8)
    trained(fabric, [adaptive, history], iterations=2, minibatch_size=21, batch_size=63)
    assert [row["ppo/minibatch_size"] for row in history.rows] == [21, 63]


def test_where_minibatches_begin(fabric):
    def first_size(adaptive, **settings):
        history = History()
        trained(fabric, [adaptive, history], iterations=1, batch_size=64, **settings)
        return history.rows[0]["ppo/minibatch_size"]

    assert first_size(AdaptiveBatchSize(smallest=4, start=20)) == 16
    assert first_size(AdaptiveBatchSize(smallest=4)) == 64
    assert first_size(AdaptiveBatchSize(smallest=4, start=10), agent=Consecutive) == 16
    restored = AdaptiveBatchSize(smallest=4, start=20)
    restored.load_state_dict({"size": 32, "growing": True})
    assert first_size(restored) == 32
    of_another_batch = AdaptiveBatchSize(smallest=4)
    of_another_batch.load_state_dict({"size": 48, "growing": True})
    assert first_size(of_another_batch) == 64


def test_without_psutil_nothing_changes(fabric, monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)  # as if it were not installed
    history = History()
    with pytest.warns(RuntimeWarning, match="has no effect: without a GPU, it needs psutil") as warned:
        trained(fabric, [AdaptiveBatchSize(smallest=4), history], minibatch_size=16, batch_size=64)
    assert len(warned) == 1
    assert {row["ppo/minibatch_size"] for row in history.rows} == {16}


@pytest.fixture
def trimmed():
    """What other tests have left is given back; a step would take its memory from there, or free it meanwhile."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def test_what_a_container_only_caches_is_free(tmp_path, monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert RAM(tmp_path).free() > 2**26
    files = {"max": 2**30, "current": 2**30 - 2**20, "stat": f"anon 5\ninactive_file {2**25}\n"}
    for name, content in files.items():
        (tmp_path / f"memory.{name}").write_text(str(content))
    assert RAM(tmp_path).free() == 2**20 + 2**25
    (tmp_path / "memory.max").write_text("max\n")
    assert RAM(tmp_path).free() > 2**26


def test_how_much_ram_a_step_takes(trimmed):
    memory = RAM()
    memory.begin()
    block = torch.ones(50 * 2**18)  # 50 MiB
    del block
    assert memory.needed() >= 45 * 2**20
    if sys.platform == "linux":
        assert memory.needed() < 150 * 2**20
        memory.begin()
        assert memory.needed() < 45 * 2**20
    assert 0 < memory.free() < 2**50


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_how_much_gpu_memory_a_step_takes():
    device = torch.device("cuda", 0)
    memory = GPUMemory(device)
    memory.begin()
    block = torch.ones(50 * 2**18, device=device)
    held = memory.free()
    del block
    assert memory.needed() == 50 * 2**20
    assert memory.free() - held == pytest.approx(50 * 2**20, abs=2**21)  # what torch keeps is free


def test_too_little_memory_is_one_line_that_names_the_flag(fabric):
    class Endless(PPOLightningAgent):
        steps = 0

        def training_step(self, minibatch):
            Endless.steps += 1
            if Endless.steps > 3:
                torch.empty(2**60)
            return super().training_step(minibatch)

    calls = Calls()
    with pytest.raises(NotEnoughMemoryError) as raised:
        trained(fabric, [calls], agent=Endless, minibatch_size=16, batch_size=32)
    message = str(raised.value)
    assert re.match(r"--minibatch_size 16 needs more memory than cpu has left; use a smaller one", message)
    assert "(with --batch_size 32, optimizer steps stay the same)" in message and "\n" not in message
    assert calls.seen[-1][0].startswith("exception --minibatch_size 16")


def test_a_rollout_beyond_memory_is_one_line_that_names_the_flag(fabric):
    with pytest.raises(NotEnoughMemoryError, match=r"^a rollout of --num_steps \d+ in \d+ sub-environments needs more"):
        trained(fabric, [], num_steps=2**50)


def test_other_errors_of_a_training_step_stay_what_they_are(fabric):
    class Failing(PPOLightningAgent):
        steps = 0

        def training_step(self, minibatch):
            Failing.steps += 1
            return super().training_step(minibatch) if Failing.steps < 3 else torch.ones(2) @ torch.ones(3)

    with pytest.raises(RuntimeError, match=r"size mismatch|inconsistent tensor size"):
        trained(fabric, [], agent=Failing)


def test_minibatches_that_make_no_whole_batch(fabric):
    class Odd(Callback):
        def on_iteration_end(self, state):
            state.minibatch_size = 48

    with pytest.raises(ValueError, match="minibatches of 48 steps do not make up a whole batch of 64 steps"):
        trained(fabric, [Odd()])


# ---------------------------------------------------------------- notifications


@pytest.fixture
def webhook():
    """A server on this machine: its address, what it has got, and the status that it answers with."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *args):
            pass

    got, status = [], [200]
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", got, status
    server.shutdown()
    server.server_close()


def writes(path):
    """A command that adds its arguments to a file as one line of JSON."""
    return [
        sys.executable,
        "-c",
        "import json, sys; print(json.dumps(sys.argv[2:]), file=open(sys.argv[1], 'a'))",
        path,
    ]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_that_ends(fabric, webhook, tmp_path, monkeypatch):
    address, got, _ = webhook
    monkeypatch.setenv("HOOK", "s3cret")
    command = [*writes(str(tmp_path / "told")), "{run_id}", "{steps}", "{message}", "$(touch {steps}); {other}"]
    notify = Notify(command, f"{address}/$HOOK", at_least={"reward/step": 0.5}, at_most={"reward/step": 0.5})
    trained(fabric, [notify], Run.create(tmp_path, "bots"), iterations=2)
    reached = "run bots reached reward/step 1 (at least 0.5), after 64 steps"
    has_ended = "run bots has ended, after 128 steps"
    assert lines(tmp_path / "told") == [
        ["bots", "64", reached, "$(touch 64); {other}"],
        ["bots", "128", has_ended, "$(touch 128); {other}"],
    ]
    assert [(path, kind) for path, kind, _ in got] == [("/s3cret", "application/json")] * 2
    first, last = (json.loads(body) for _, _, body in got)
    assert (first["event"], first["text"], first["content"]) == ("reached", reached, reached)
    assert (last["event"], last["run_id"], last["steps"], last["text"]) == ("ended", "bots", 128, has_ended)
    assert last["metrics"]["reward/step"] == 1
    again = Notify(command, at_least={"reward/step": 0.5})
    again.load_state_dict(notify.state_dict())
    trained(fabric, [again], iterations=1)
    assert [line[2] for line in lines(tmp_path / "told")[2:]] == ["run has ended, after 64 steps"]


def test_a_run_that_is_stopped_or_fails(fabric, webhook):
    address, got, _ = webhook

    class Stop(Callback):
        def on_iteration_end(self, state):
            state.stop = True

    trained(fabric, [Stop(), Notify(url=address)])
    with pytest.raises(ValueError, match="iteration_end fails"):
        trained(fabric, [Calls("iteration_end"), Notify(url=address)])
    assert [(said["event"], said["text"]) for said in (json.loads(body) for _, _, body in got)] == [
        ("stopped", "run was stopped, after 64 steps"),
        ("failed", "run has failed with ValueError: iteration_end fails, after 64 steps"),
    ]


def test_a_limit_is_reached_by_what_equals_it_and_told_once(fabric, webhook):
    address, got, _ = webhook
    notify = Notify(url=address, at_least={"a": 0.5}, at_most={"b": -0.5})
    for a, b in ((0.4, -0.4), (0.5, -0.4), (0.4, -0.5), (0.6, -0.6)):
        notify.on_iteration_end(state_of(fabric, metrics={"a": a, "b": b}))
    said = [json.loads(body)["text"] for _, _, body in got]
    assert said == [
        "run bots reached a 0.5 (at least 0.5), after 1,000 steps",
        "run bots reached b -0.5 (at most -0.5), after 1,000 steps",
    ]


def test_a_run_that_was_to_stop_when_all_was_done_has_ended(fabric, webhook):
    address, got, _ = webhook
    for steps in (999, 1000):
        Notify(url=address).on_train_end(state_of(fabric, steps=steps, stop=True))
    assert [json.loads(body)["event"] for _, _, body in got] == ["stopped", "ended"]


def test_what_is_filled_in_is_not_filled_in_again(fabric, tmp_path):
    notify = Notify([*writes(str(tmp_path / "told")), "{message} {steps}"])
    notify.on_exception(state_of(fabric), RuntimeError("{run_id} {steps}"))
    message = "run bots has failed with RuntimeError: {run_id} {steps}, after 1,000 steps"
    assert lines(tmp_path / "told") == [[f"{message} 1000"]]


def test_numbers_that_json_does_not_know(fabric, webhook):
    address, got, _ = webhook
    Notify(url=address).on_train_end(state_of(fabric, metrics={"a": float("nan"), "b": float("inf"), "c": 1.5}))
    assert json.loads(got[0][2])["metrics"] == {"a": None, "b": None, "c": 1.5}


def test_a_second_control_c_is_nobodys_business(fabric, webhook):
    address, got, _ = webhook
    Notify(url=address).on_exception(state_of(fabric), KeyboardInterrupt())
    assert got == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([sys.executable, "-c", "import sys; sys.exit(3)"], "exited with status 3"),
        (["no-such-program-anywhere"], "command no-such-program-anywhere: "),
        ([sys.executable, "-c", "import time; time.sleep(1000)"], "took longer than 0.5 s and was killed"),
    ],
)
def test_a_command_that_fails_is_a_warning(fabric, command, message):
    with pytest.warns(RuntimeWarning, match=message) as warned:
        Notify(command, timeout_seconds=0.5 if "1000" in command[-1] else 60).on_train_end(state_of(fabric))
    assert len(warned) == 1


def test_a_webhook_that_fails_is_a_warning_without_its_secret(fabric, webhook):
    address, _, status = webhook
    status[0] = 500
    with pytest.warns(RuntimeWarning, match=r"^Notify: webhook at 127.0.0.1: HTTP Error 500") as warned:
        Notify(url=f"{address}/s3cret").on_train_end(state_of(fabric))
    assert len(warned) == 1 and "s3cret" not in str(warned[0].message)
    with pytest.warns(RuntimeWarning, match=r"^Notify: webhook at 127.0.0.1: .*refused"):
        Notify(url="http://127.0.0.1:9/s3cret").on_train_end(state_of(fabric))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Notify: set command, url or both"),
        ({"command": "notify-send {message}"}, "Notify: command must be a list"),
        ({"url": "file:///etc/passwd"}, "Notify: url must begin with http:// or https:// and name a host"),
        ({"url": "http://"}, "Notify: url must begin with http:// or https:// and name a host"),
    ],
)
def test_notifications_that_cannot_work(settings, message):
    with pytest.raises(ValueError, match=message):
        Notify(**settings)


# ---------------------------------------------------------------- command line


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--callbacks", "fabric_rl.callbacks.KeyPress"],
        ["--callbacks+=fabric_rl.callbacks.KeyPress", "--callbacks+=fabric_rl.callbacks.Notify", "--callbacks.command"],
    ],
)
def test_callbacks_of_the_command_line(forks, flags, tmp_path):
    if flags[-1] == "--callbacks.command":
        flags = [*flags, json.dumps([*writes(str(tmp_path / "told")), "{message}"])]
    task = ["--env_id", "CartPole-v1", "--num_envs", "2", "--num_steps", "32", "--total_timesteps", "64"]
    here = ["--runs_dir", tmp_path, "--run_id", "cli", "--accelerator", "cpu", "--plain"]
    statuses, _, err = forks.wait([forks.start(*task, *here, *flags)])
    assert (statuses, err) == ([0], "")
    if len(flags) > 2:
        assert lines(tmp_path / "told") == [["run cli has ended, after 64 steps"]]


# ---------------------------------------------------------------- videos


def shown(logger):
    logger.finalize("success")
    accumulator = EventAccumulator(logger.log_dir)
    accumulator.Reload()
    return [(image.step, image.width, image.height) for image in accumulator.Images("video/episode")]


def watched(tmp_path, *contents):
    """The logger after a run of one iteration for each content of a new video file."""
    logger = TensorBoardLogger(tmp_path, name="tb", version="")
    fabric = Fabric(accelerator="cpu", devices=1, loggers=[logger])
    callback, state = VideoLogger(tmp_path), state_of(fabric)
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.mp4").write_bytes(content)
        callback.on_iteration_end(state)
    callback.on_train_end(state)
    return logger


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    folder = tmp_path_factory.mktemp("video")
    env = RecordVideos(gymnasium.make("CartPole-v1", render_mode="rgb_array"), folder)
    env.reset(seed=0)
    for _ in range(8):
        env.step(0)
    env.close()
    return (folder / "rl-video-episode-0.mp4").read_bytes()


def test_a_video_is_shown_small(tmp_path, video):
    (tmp_path / "gone.mp4").symlink_to(tmp_path / "nowhere")
    assert (1000, 320, 214) in shown(watched(tmp_path, video, video))


def test_a_video_that_cannot_be_shown_is_one_warning(tmp_path):
    with pytest.warns(RuntimeWarning, match="videos cannot be shown in TensorBoard") as warned:
        watched(tmp_path, b"no video", b"no video", b"no video")
    assert len(warned) == 1


def test_callbacks_of_one_name_get_back_what_was_their_own(fabric):
    class Remembers(Callback):
        def __init__(self, number):
            self.number = number

        def state_dict(self):
            return {"number": self.number}

        def load_state_dict(self, state):
            self.number = state["number"]

    saved = Hooks(state_of(fabric), [Remembers(1), History(), Remembers(2)]).state_dict()
    again = [Remembers(number) for number in (7, 8, 9)]
    Hooks(state_of(fabric), again).load_state_dict(saved)
    assert [callback.number for callback in again] == [1, 2, 9]  # nothing was saved of a third one


def test_a_run_ends_when_its_time_is_over(fabric):
    summary = trained(fabric, [StopAfter(minutes=1e-6)], iterations=3)
    assert summary["stopped_by"] == "StopAfter" and summary["total_steps"] == 64
    assert "stopped_by" not in trained(fabric, [StopAfter(minutes=60)], iterations=2)
    summary = trained(fabric, [StopAfter(minutes=1e-6, after_iterations=2)], iterations=5)
    assert summary["stopped_by"] == "StopAfter" and summary["total_steps"] == 3 * 64


@pytest.mark.slow
def test_minutes_of_the_processor_pass_only_when_it_works(fabric):
    class Sleep(Callback):
        def on_iteration_end(self, state):
            time.sleep(1.3)

    assert trained(fabric, [Sleep(), StopAfter(minutes=0.02)], iterations=3)["total_steps"] == 64
    assert "stopped_by" not in trained(fabric, [Sleep(), StopAfter(minutes=0.02, processor=True)], iterations=2)
    summary = trained(fabric, [StopAfter(minutes=1e-6, processor=True)], iterations=3)
    assert summary["stopped_by"] == "StopAfter" and summary["total_steps"] == 64


class Scores(Callback):
    """Reports the next of some values as the metric `score` in each iteration; None: no measurement."""

    def __init__(self, *values):
        self.values = list(values)

    def on_iteration_end(self, state):
        value = self.values[state.iteration - 1]
        if value is not None:
            state.metrics["score"] = float(value)


@pytest.mark.parametrize(
    ("settings", "values", "iterations"),
    [
        ({"patience": 2}, [1, 3, 2, None, 3, 9], 5),  # only a new best value counts
        ({"patience": 2}, [1, 2, 1, 3, 2, 4], None),
        ({"patience": 1, "mode": "min"}, [3, 2, 2.5, 1], 3),
        ({"threshold": 5, "for_iterations": 2}, [5, 4, 6, None, 5, 1], 5),
        ({"threshold": -1, "for_iterations": 1, "mode": "min"}, [0, -0.5, -1, 3], 3),
        ({"threshold": 5, "patience": 3}, [9, 8, 7, 6, 5], 4),  # what comes first
    ],
)
def test_a_run_stops_when_a_metric_is_good_or_improves_no_more(fabric, settings, values, iterations, caplog):
    stopping = EarlyStopping("score", **settings)
    summary = trained(fabric, [Scores(*values), stopping], iterations=len(values))
    assert summary.get("stopped_by") == ("EarlyStopping" if iterations else None)
    assert summary["total_steps"] == 64 * (iterations or len(values))
    assert ("EarlyStopping: score has" in caplog.text) == bool(iterations)


def test_a_run_says_why_it_stopped(fabric, caplog):
    trained(fabric, [Scores(5, 6), EarlyStopping("score", threshold=5, for_iterations=2)], iterations=3)
    assert "EarlyStopping: score has reached 5 (for_iterations: 2); a resumed run" in caplog.text
    trained(fabric, [Scores(3, 4), EarlyStopping("score", patience=1, mode="min")], iterations=3)
    assert "EarlyStopping: score has not improved on 3 (patience: 1); a resumed run" in caplog.text
    trained(fabric, [Scores(math.nan, math.nan), EarlyStopping("score", patience=2)], iterations=3)
    assert "EarlyStopping: score was never a number (patience: 2); a resumed run" in caplog.text


def test_counts_of_another_metric_are_not_continued():
    stopping = EarlyStopping("score", threshold=5)
    stopping._best, stopping._since_best = 9.0, 3
    saved = stopping.state_dict()
    for settings, kept in (({}, 9.0), ({"mode": "min"}, -math.inf), ({"metric": "loss"}, -math.inf)):
        again = EarlyStopping(**{"metric": "score", "threshold": 5} | settings)
        again.load_state_dict(saved)
        assert (again._best, again.metric, again.mode) == (kept, settings.get("metric", "score"), again.mode)
        again.load_state_dict({"best": 4.0, "reached": 0, "since_best": 1})  # of an older version
        assert again._best == 4.0


def test_a_resumed_run_counts_on(fabric, tmp_path):
    values = [5, 4, 3, 2, 1]
    run = Run(tmp_path / "run")
    trained(fabric, [Scores(*values), EarlyStopping("score", patience=3)], run, iterations=3)
    resume = load_checkpoint(run.checkpoints / "step_000000000192.ckpt")[1]
    args = TrainArgs(total_timesteps=320, num_steps=32, update_epochs=1, minibatch_size=64)
    callbacks = [Scores(*values), EarlyStopping("score", patience=3)]
    summary = train(fabric, CARTPOLE, PPOLightningAgent, args, run, callbacks, plain=True, resume=resume)
    assert summary["stopped_by"] == "EarlyStopping" and summary["total_steps"] == 256


def test_a_metric_that_nobody_measures_is_a_warning(fabric):
    with pytest.raises(ValueError, match="EarlyStopping: set threshold, patience or both"):
        EarlyStopping("score")
    with pytest.warns(RuntimeWarning, match="no iteration has measured scoer; did you mean score?"):
        trained(fabric, [Scores(1, 2, 3), EarlyStopping("scoer", patience=2)])
