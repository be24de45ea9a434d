"""Faults put into the code one by one, and the tests that notice them.

    python tests/campaigns/behavioural_faults.py
    python tests/campaigns/behavioural_faults.py --only gae-trace sac-target --json faults.json

Each fault is a small change of behaviour, of the kind that happens: a sign, a lost mask, a stale buffer, a missing
reset. It is made in a copy of the tracked files, in which the tests of its package then run until one fails; that one
has to pass without the fault. With `--json` the results are kept, and what is in the file already is not done again.
The exit status is 0 if every fault is caught.

When it was written (November 2026), the tests caught 34 of the 40; with the six tests that were missing, all 40.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # for one run of pytest
Row = dict[str, Any]


class Fault(NamedTuple):
    """One change of behaviour."""

    name: str
    files: list[str]  # globs; one of the files holds the old text, once
    targets: list[str]  # folders and files of tests
    pairs: list[tuple[str, str]]  # (old text, new text); the first that fits is made


FAULTS = """
ball-travel-reset | envs/rewards/*.py | tests/envs/rewards
- np.where(hit, ZERO, travelled)
+ travelled
potential-gamma | envs/rewards/*.py | tests/envs/rewards
- np.float32(self.gamma) * now - self._before
+ now - np.float32(self.gamma) * self._before
obs-absent-cars | envs/obs/entity.py | tests/envs/obs
- seen.zero_padding_(cars)
+ pass
delay-copy | envs/actions/*.py | tests/envs/actions
- waiting[:, 0].reshape(-1, 8).copy()
+ waiting[:, 0].reshape(-1, 8)
terminated-truncated | envs/pool/*.py | tests/envs/test_dones.py tests/envs/pool
- (truncated if condition.truncates else terminated)
+ (terminated if condition.truncates else truncated)
bounce-reset | envs/dones.py envs/dones/*.py | tests/envs/test_dones.py
- self._ticks_before[mask] = state.episode_ticks[mask]
+ pass
mirrored-spin | envs/resets/*.py | tests/envs/resets
- spins[arena] *= MIRROR_X_SPIN
+ spins[arena] *= MIRROR_X
final-obs-copy | envs/pool/*.py | tests/envs/pool
- cars_of(obs.copy())
+ cars_of(obs)
pool-generators | envs/pool/*.py | tests/envs/pool
- rng.bit_generator.state = saved
+ pass
boost-rate | envs/sim/*.py | tests/envs/sim
- = game.BOOST_CONSUMPTION_RATE
+ = 100 / 3
absent-controls | envs/state/*.py | tests/envs/state tests/envs/pool
- self.controls[~self.present] = 0
+ pass
mirrored-pads | envs/state/*.py | tests/envs/state tests/envs/obs
- self.pad_timers[:, ::-1]
+ self.pad_timers
bot-damping | envs/bots/*.py | tests/envs/bots
- + TURN_DAMPING * dot(spin, own.car_right)
+ - TURN_DAMPING * dot(spin, own.car_right)
replay-goals | envs/pool/*.py | tests/envs/replays
- demos.copy(), scoring >= 0
+ demos.copy(), False
demolished-weight | envs/demonstrations/*.py | tests/envs/demonstrations
- self.states.is_demoed[:-1, car]
+ self.states.is_demoed[1:, car]
process-seeds | envs/processes/process_pool.py | tests/envs/processes/test_process_pool.py
- None if seed is None else seed + start for start in self._starts[:-1]
+ None if seed is None else seed + k for k in range(self.num_workers)
rlgym-contact | envs/adapters/rlgym_pool.py | tests/envs/adapters/test_rlgym_pool.py
- self._touching[own] = False
+ pass
resampling-interval | envs/parameters/*.py | tests/envs/parameters
- self._due[index] = self.steps, False
+ self._due[index] = 0, False
field-position | envs/matches/*.py | tests/envs/matches
- (sides[:, 0] - sides[:, 1])
+ (sides[:, 0] + sides[:, 1])
squashed-scale | agents/parts/*.py | tests/agents/test_heads.py
- squash_log_det(raw) - self._half.log()
+ squash_log_det(raw)
multidiscrete-mask | agents/parts/*.py | tests/agents/test_heads.py
- _masked(params, action_mask), max(self.sizes)
+ params, max(self.sizes)
memory-reset | agents/parts/*.py | tests/agents/test_recurrent_agent.py
- state.masked_fill(start.unsqueeze(-1), 0)
+ state
attention-mask | agents/*.py agents/parts/*.py | tests/agents/test_attention_agent.py
- else present[:, None, None, :]
+ else None
sac-target | agents/*.py | tests/agents/test_sac_agent.py tests/fabric_rl/sac/test_memory.py
- _of(self.target_critics, target_obs)
+ _of(self.critics, target_obs)
- bind_obs(self.target_critics, target_obs)
+ bind_obs(self.critics, target_obs)
gae-trace | fabric_rl/learning/*.py | tests/fabric_rl/learning
- (gamma * lam) * (~done)
+ (gamma * lam) * (~terminated)
gamma-for-lambda | fabric_rl/learning/*.py | tests/fabric_rl/learning
- (gamma * lam) * (~done)
+ (gamma * gamma) * (~done)
kl-sign | fabric_rl/learning/*.py | tests/fabric_rl/learning
- (ratio - 1 - log_ratio).mean()
+ (ratio - 1 + log_ratio).mean()
advantages-of-a-minibatch | fabric_rl/learning/*.py | tests/fabric_rl/learning
- advantages.reshape(count // accumulate, -1)
+ advantages.reshape(count, -1)
- advantages.reshape(len(order) // accumulate, -1)
+ advantages.reshape(len(order), -1)
return-reset | fabric_rl/learning/*.py | tests/fabric_rl/learning
- state[:, last] = 0
+ pass
bootstrap | fabric_rl/rollouts/*.py | tests/fabric_rl/rollouts
- self._truncated[t] & ~self._terminated[t]
+ self._terminated[t]
rollout-memory | fabric_rl/rollouts/*.py | tests/fabric_rl/rollouts
- _state.masked_fill(to_device(done, device)[:, None], 0)
+ _state
importance | fabric_rl/sac/*.py | tests/fabric_rl/sac/test_replay.py
- self._tree.total) ** -beta
+ self._tree.total) ** beta
target-update | fabric_rl/sac/*.py | tests/fabric_rl/sac/test_train.py
- self.agent.update_targets(self._sac.tau)
+ pass
n-step-discount | fabric_rl/sac/*.py | tests/fabric_rl/sac/test_replay.py
- gammas ** own.sum(dim=0)[:, None]
+ gammas**n_step
opponents-mask | fabric_rl/selfplay/*.py | tests/fabric_rl/selfplay/test_opponents.py
- self._mask[rows] = infos["action_mask"]
+ pass
opponents-memory | fabric_rl/selfplay/*.py | tests/fabric_rl/selfplay/test_opponents.py
- zero_memory(rows.start + np.flatnonzero(done))
+ zero_memory(np.flatnonzero(done))
signals-generator | fabric_rl/signals/*.py | tests/fabric_rl/signals
- self._draws.set_state(state["draws"])
+ pass
- self._draws.set_state(check_generator_state(state["draws"]))
+ pass
padded-weight | fabric_rl/imitation/*.py | tests/fabric_rl/imitation
- x[-1:] * 0 if zeros else x[-1:]
+ x[-1:]
lesson-window | fabric_rl/curricula/*.py | tests/fabric_rl/curricula
- window.clear()
+ pass
resumed-generator | fabric_rl/session/*.py | tests/fabric_rl/runs/test_run_of_0_1_0.py
- torch.set_rng_state(mine["torch"])
+ pass
- torch.set_rng_state(check_generator_state(mine["torch"]))
+ pass
"""
"""Name | files | tests, then what is replaced (-) by what (+); further pairs are for other versions of the code."""


def faults() -> list[Fault]:
    """Those of `FAULTS`, in order."""
    found: list[Fault] = []
    for line in FAULTS.strip().splitlines():
        if line.startswith("- "):
            old = line[2:]
        elif line.startswith("+ "):
            found[-1].pairs.append((old, line[2:]))
        else:
            name, files, targets = line.split(" | ")
            found.append(Fault(name, files.split(), targets.split(), []))
    return found


def change(tree: Path, fault: Fault) -> tuple[Path, str]:
    """The file that a fault is in, and its text with the fault."""
    texts = {path: path.read_text() for glob in fault.files for path in sorted(tree.glob(glob))}
    for old, new in fault.pairs:
        holding = [path for path, text in texts.items() if old in text]
        if len(holding) == 1 and texts[holding[0]].count(old) == 1:
            return holding[0], texts[holding[0]].replace(old, new)
    raise SystemExit(f"{fault.name}: error: no old text of it stands exactly once in {' '.join(fault.files)}")


def copy_of(tree: Path, copy: Path) -> Path:
    """The tracked files as they are now, in another folder."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=tree, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (tree / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, copy / name)
    return copy


def run_tests(tree: Path, targets: list[str], *options: str) -> Row:
    """How pytest ended, the first test that failed (or what it said last), and the seconds."""
    settings = ["-q", "-p", "no:cacheprovider", "-n", "0", "--timeout", "180", f"--basetemp={tree.parent / 'pytest'}"]
    command = [sys.executable, "-m", "pytest", *options, *settings, *targets]
    environment, began = os.environ | {"PYTHONPATH": str(tree)}, time.monotonic()
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"status": -1, "test": f"no end within {SECONDS} s", "seconds": SECONDS}
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    last = "" if done.returncode == 0 else failed[0] if failed else (done.stdout + done.stderr).strip()[-300:]
    return {"status": done.returncode, "test": last, "seconds": round(time.monotonic() - began, 1)}


def campaign(tree: Path, only: list[str], results: Path | None) -> int:
    """Prints a line for each fault and a summary; returns how many were not caught."""
    known = {each.name: each for each in faults()}
    if unknown := set(only) - known.keys():
        raise SystemExit(f"behavioural_faults.py: error: no fault is called {', '.join(sorted(unknown))}")
    found: dict[str, Row] = json.loads(results.read_text()) if results and results.exists() else {}
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        copy, kept = copy_of(tree, Path(folder).resolve() / "tree"), Path(folder) / "kept"
        changes = [(each, *change(copy, each)) for each in (known[name] for name in only or known)]
        for each, path, text in changes:
            if each.name not in found:
                shutil.copy2(path, kept)
                path.write_text(text)
                row = run_tests(copy, each.targets, "-x")
                shutil.copy2(kept, path)
                row["without"] = run_tests(copy, [row["test"]])["status"] if row["status"] == 1 else 0
                found[each.name] = row
            row = found[each.name]
            outcome = "error" if row["without"] else {0: "missed", 1: "caught"}.get(row["status"], "error")
            outcomes[each.name] = outcome
            print(f"{each.name:26} {outcome:7} {row['seconds']:6.1f} s  {row['test']}", flush=True)
            if results is not None:
                results.write_text(json.dumps(found, indent=1))
    wrong = [name for name, outcome in outcomes.items() if outcome != "caught"]
    print(f"{len(outcomes) - len(wrong)} of {len(outcomes)} faults caught; not caught: {', '.join(wrong) or 'none'}")
    return len(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these faults; default: all")
    parser.add_argument("--json", type=Path, metavar="OUT", help="file of results, read first where there is one")
    parser.add_argument("--tree", type=Path, default=ROOT, help="working tree to copy; default: that of this file")
    words = parser.parse_args()
    sys.exit(min(1, campaign(words.tree.resolve(), words.only, words.json)))
