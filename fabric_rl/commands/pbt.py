"""`fabric-rl pbt`: population-based training; the settings change while the agents learn."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from envs.matches.matches import PAIRS_AT_ONCE, SIDES, Matches
from fabric_rl.analysis.comparison import METRICS, chosen_metric
from fabric_rl.analysis.curves import final_score
from fabric_rl.base.argv import flag_names
from fabric_rl.base.tables import format_number
from fabric_rl.commands.output import Section, print_all, section_tables
from fabric_rl.commands.seeds import training_settings
from fabric_rl.evaluation import results
from fabric_rl.evaluation.matches import Block, play_blocks
from fabric_rl.evaluation.players import MatchSettings, load_if_not_rocket_league, load_player
from fabric_rl.evaluation.settings import ContestSettings
from fabric_rl.metrics.metrics_csv import read_metrics
from fabric_rl.sweeps.population import Population, PopulationMember
from fabric_rl.sweeps.sweep import format_params, read_space
from fabric_rl.sweeps.train_processes import TrainProcesses, make_folder

_TRUNCATED = 0.2
"""Without matches, this share of the members copies members of the best share of the same size."""


def pbt(
    training: Sequence[str],
    space: Path = Path("space.yaml"),
    population: int = 4,
    generations: int = 5,
    parallel: int = 1,
    seed: int = 0,
    matches: int = 40,
    metric: str | None = None,
    minimize: bool = False,
    folder: Path | None = None,
) -> int:
    """Train a population of agents; weak ones copy strong ones and change their settings (Jaderberg et al. 2017).

    Every generation is a set of runs that start with the weights of the generation before. Rocket League agents play
    matches: each member meets a random other one and copies its weights and settings if the 95 % interval of the goal
    difference shows that the other one is better. In other environments, the fifth with the worst metric copies members
    of the best fifth. Copied settings are changed: a number of a range is multiplied by 0.8 or 1.25, a choice is drawn
    again in one of four cases. A member whose run fails copies a random other one. Run the same command again to
    continue; a larger --generations adds more.

    Args:
        training: Flags of train_fabric.py: --config X and any others; --total_timesteps is the length of a generation.
        space: YAML file with the settings to try, as for `sweep` (docs/sweeps.md).
        population: Number of members; 2 or more.
        generations: Number of generations; 1 or more.
        parallel: Number of members that train at the same time; they share the CPU cores.
        seed: Seed of the settings; the runs have the seeds SEED, SEED + 1 and so on.
        matches: Matches of five minutes between two members; 20 or more.
        metric: Column of metrics.csv to compare. Default: matches, or the return where there are none.
        minimize: The lowest value of the metric is the best.
        folder: Folder of the population, its runs and `population.json`. Default: populations/NAME, where NAME is the
            name of the space file.

    Raises:
        ValueError: A flag is wrong, all runs of a generation failed, or the folder was started with other settings.
    """
    if "--runs_dir" in flag_names(training) or "--group" in flag_names(training):
        raise ValueError("--runs_dir, --group: the runs are kept in --folder; leave these flags out")
    for name, value, least in (
        ("population", population, 2),
        ("generations", generations, 1),
        ("matches", matches, 20),
    ):
        if value < least:
            raise ValueError(f"--{name} must be at least {least}, got {value}")
    base = training_settings(training, "pbt")
    settings = read_space(space, lambda flags: training_settings([*training, *flags], "pbt"))
    folder = folder or Path("populations") / space.stem
    trainings = TrainProcesses(parallel, folder / "runs")
    make_folder("--folder", folder)
    asked = {"settings": base.arguments["resolved_config"], "space": space.read_text(encoding="utf-8")}
    asked |= {"population": population, "seed": seed, "matches": matches, "metric": metric, "minimize": minimize}
    play = ContestSettings(sample=True, workers=parallel, runs_dir=str(folder / "runs"))
    judge = partial(_judge, play=play, number=matches, metric=metric, sign=-1 if minimize else 1)
    try:
        found = Population(folder, training, settings, population, seed, trainings, judge, asked).train(generations)
    except KeyboardInterrupt:
        print("stopped; run the same command to continue", flush=True)
        raise
    rows = [[each.run_id, format_number(each.score), format_params(each.settings), each.parent] for each in found[-1]]
    print_all(section_tables([Section("Last generation", ["run", "score", "settings", "weights from"], rows)]))
    print(f"all generations: {folder / 'population.json'}; their runs: {folder / 'runs'}")
    return 0


def _judge(
    members: Sequence[PopulationMember],
    rng: np.random.Generator,
    play: ContestSettings,
    number: int,
    metric: str | None,
    sign: int,
) -> None:
    """Set the scores of the members, and which run each place of the population starts from."""
    for each in members:
        each.copied = each.run_id
    if metric is None and load_if_not_rocket_league(members[0].run_id, play) is None:
        _judge_by_matches(members, rng, play, number)
    else:
        _judge_by_metric(members, rng, Path(play.runs_dir), metric, sign)


def _judge_by_matches(
    members: Sequence[PopulationMember], rng: np.random.Generator, play: ContestSettings, number: int
) -> None:
    met: dict[tuple[int, int], Matches] = {}
    if len(members) < 2:  # the others failed
        return
    for place, member in enumerate(members):
        other = int(rng.choice([each for each in range(len(members)) if each != place]))
        pair = min(place, other), max(place, other)
        met[pair] = met.get(pair) or _meet(members[pair[0]], members[pair[1]], play, number)
        side = 1 if place == pair[0] else -1
        member.score = side * float(met[pair].differences.mean())
        interval = results.difference_interval(met[pair], play.confidence)
        if interval and max(side * interval.low, side * interval.high) < 0:
            member.copied = members[other].run_id


def _judge_by_metric(
    members: Sequence[PopulationMember], rng: np.random.Generator, runs_dir: Path, metric: str | None, sign: int
) -> None:
    curves = {each.run_id: read_metrics(runs_dir / each.run_id / "metrics.csv") for each in members}
    scored = {run: own for run, own in curves.items() if (metric or METRICS[-1]) in own}  # where episodes ended
    column = chosen_metric(metric, scored or curves)
    for each in members:
        each.score = final_score(curves[each.run_id][column]) if column in curves[each.run_id] else None
    ranked = sorted(members, key=lambda each: -np.inf if each.score is None else sign * each.score)
    share = max(1, int(_TRUNCATED * len(members)))
    for each in ranked[:share]:
        better = ranked[-1 - int(rng.integers(share))]
        each.copied = better.run_id if better.score != each.score else each.run_id


def _meet(one: PopulationMember, other: PopulationMember, play: ContestSettings, number: int) -> Matches:
    names = one.run_id, other.run_id
    rules = MatchSettings.of([load_player(name, True, play.runs_dir) for name in names], play, play.minutes)
    pairs = -(-number // SIDES)
    blocks = [Block(*names, play.seed, block) for block in range(-(-pairs // PAIRS_AT_ONCE))]
    return Matches.of(list(play_blocks(rules, blocks, play.workers, lambda share: None)), pairs)
