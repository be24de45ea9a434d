"""Measures what an agent learns from searched solutions: search, train with them, play the exam; arms and seeds.

    python benchmarks/expert_iteration.py --folder runs/expert          # hours on two cores; stop and start as you like
    python benchmarks/expert_iteration.py --folder runs/expert --seeds 0 --minutes 4 --number 16

A search (`fabric-rl search`, guided by `--player`) finds solutions for shots of training packs that are not held out,
and for kickoffs against the shooter. Every arm then trains from the weights of `--player` for the same minutes of
processor time: self-play alone, with starts on the way to the goals, with cloning beside PPO, with both. Measured on
shots that are held out (likeliest actions), and in sampled matches against the chaser.
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import children
import yaml
from machine import describe_machine
from reports import write_report
from school import ONE_CORE, evaluate, for_one_rank
from signals import band

CONFIG, RATE = "configs/rocket_1v1_advanced.yaml", 1e-4
SEARCHES = {
    "striker": ["Striker", "--goal", "score"],
    "goalie": ["Goalie", "--goal", "save"],
    "kickoff": ["kickoff", "--goal", "first_to_ball", "--opponent", "shooter"],
}
ARMS = {"self-play": (False, False), "starts": (True, False), "cloning": (False, True), "both": (True, True)}
"""With starts on the way, with cloning."""
STARTS = 0.4
"""Share of the episodes that begin on the way to a goal, if any do."""
COLUMNS = ("striker", "goalie", "chaser")


def search(folder: Path, player: str, number: int, budget: int) -> dict[str, dict[str, Any]]:
    """Searches, unless that is done; returns the results by kind."""
    found = {}
    for kind, words in SEARCHES.items():
        out = folder / f"{kind}.json"
        if not out.exists():
            files = ["--out", f"{folder / kind}.frd", "--states", f"{folder / kind}.npz", "--json", str(out)]
            limits = ["--number", str(number), "--budget", str(budget), "--player", player]
            _fabric_rl(["search", *words, *limits, *files])
        found[kind] = json.loads(out.read_text(encoding="utf-8"))
    return found


def _fabric_rl(words: Sequence[str]) -> None:
    command = [*children.FABRIC_RL, *words]
    subprocess.run(command, cwd=children.ROOT, env=children.environment(), check=True, stdout=subprocess.DEVNULL)


def settings_of(folder: Path, starts: bool, cloning: bool) -> dict[str, Any]:
    """The settings of an arm: those of the preset, with a low learning rate and one opponent more."""
    settings = for_one_rank(CONFIG)
    settings["agent"]["init_args"] |= {"actor_lr": RATE, "critic_lr": RATE}
    settings["self_play"]["init_args"]["guests"].append("school_1v1")
    given = settings["env"]["init_args"]
    if starts:
        files = [folder / f"{kind}.npz" for kind in SEARCHES if (folder / f"{kind}.npz").exists()]
        each = [{"class_path": "envs.ReplayedStates", "init_args": {"path": str(file.resolve())}} for file in files]
        mixed = {"class_path": "envs.MixedStates", "init_args": {"setters": each, "weights": [1.0] * len(each)}}
        setters = [given["state_setter"], {"class_path": "envs.MirroredStates", "init_args": {"inner": mixed}}]
        both = {"setters": setters, "weights": [1 - STARTS, STARTS]}
        given["state_setter"] = {"class_path": "envs.MixedStates", "init_args": both}
    if cloning:
        files = [folder / f"{kind}.frd" for kind in SEARCHES if (folder / f"{kind}.frd").exists()]
        shown = {"demos": [str(file.resolve()) for file in files], "strength": 0.1, "samples_per_update": 2048}
        settings["cloning"] = {"class_path": "fabric_rl.imitation.Cloning", "init_args": shown}
    return settings


def train(run: Path, settings: dict[str, Any], player: str, seed: int, minutes: float) -> None:
    """Trains an arm, unless that is done."""
    if (run / "summary.json").exists():
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    config = run.parent / f"{run.name}.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    flags = [f"--config={config}", *ONE_CORE, f"--seed={seed}", "--force", "--total_timesteps=10000000000", "--plain"]
    flags += [f"--runs_dir={run.parent}", f"--run_id={run.name}", f"--initialize_from={player}"]
    children.train([*flags, children.processor_minutes(minutes)], run.parent / f"{run.name}.txt")


def measure(player: str, kept: Path, matches: int) -> dict[str, float]:
    """Shares of the shots that are held out, and the goal difference against the chaser."""
    out = kept.with_name(f"{kept.name}_exam.json")
    if not out.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        _fabric_rl(["exam", player, "--packs", "held_out", "--json", str(out)])
    groups = json.loads(out.read_text(encoding="utf-8"))["groups"]
    found = {group["type"].lower(): 100 * group["share"] for group in groups if group["difficulty"] == "all"}
    return found | {"chaser": evaluate(player, "chaser", matches, kept)["difference"]}


def report(args: argparse.Namespace, found: dict[str, dict[str, Any]], rows: dict[str, list[dict[str, float]]]) -> str:
    """The results as Markdown; bands are Student's 95 % over seeds."""
    lines = ["# Expert iteration", "", f"`python benchmarks/expert_iteration.py`. {describe_machine()}", ""]
    lines += [f"Search guided by {args.player}, {args.budget:,} decisions for each initial state:", ""]
    lines += ["| search | initial states | solved | 95 % | median decisions until solved |", "|---|---|---|---|---|"]
    for kind, result in found.items():
        low, high = (100 * end for end in result["interval_95"])
        share = 100 * result["solved"] / result["searched"]
        costs = [each["cost"] for each in result["solutions"] if each["seconds"]]
        searched = f"{result['searched']} | {share:.0f} % | {low:.0f} % to {high:.0f} %"
        lines.append(f"| {kind} | {searched} | {f'{median(costs):,.0f}' if costs else '-'} |")
    lines += [
        "",
        f"Then {args.minutes:g} minutes of processor time from the weights of {args.player}, seeds {args.seeds}.",
        "",
    ]
    lines += ["| arm | striker packs | goalie packs | against the chaser |", "|---|---|---|---|"]
    for arm, measured in rows.items():
        cells = []
        for name in COLUMNS:
            over = band([row[name] for row in measured])
            width = f" ± {over['half_width']:.1f}" if "half_width" in over else ""
            cells.append(f"{over['mean']:+.2f}{width}" if name == "chaser" else f"{over['mean']:.1f} %{width}")
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs what is missing, and writes the report after each arm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/expert"))
    parser.add_argument("--player", default="advanced_1v1", help="a bot or run; for another round, an arm of the last")
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--budget", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--matches", type=int, default=60)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/expert_iteration.md"))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    found = search(args.folder, args.player, args.number, args.budget)
    rows = {args.player: [measure(args.player, args.folder / "before", args.matches)]}
    for seed in args.seeds:
        for arm, (starts, cloning) in ARMS.items():
            run = args.folder / f"{arm}_{seed}"
            train(run, settings_of(args.folder, starts, cloning), args.player, seed, args.minutes)
            rows.setdefault(arm, []).append(measure(str(run), run / "matches" / "chaser", args.matches))
            write_report(args.out, report(args, found, rows))


if __name__ == "__main__":
    main()
