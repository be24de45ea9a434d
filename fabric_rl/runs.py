"""Run folders for people: `fabric-rl runs`, `fabric-rl runs show ID`, `fabric-rl runs compare A B`.

Reads only what a run leaves behind (`summary.json`, `metrics.csv`, `checkpoints/`, `milestones/`), so it works while
the run is going on and on folders that were copied from elsewhere. What is missing or damaged is shown as a dash.
"""

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabric_rl.checkpoint import checkpoints, steps_of

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Steps and values of one metric, `[points]` each, by rising steps."""

DEFAULT_METRICS = ("reward/episode_return", "game/touches_per_minute", "game/goals_per_minute", "ppo/entropy")
"""What `compare` shows if nothing is asked for; runs without any of these: their first four metrics."""

_LATEST = 3
_MARKERS = "ox+*#@%&"


@dataclass(frozen=True)
class Milestone:
    """A full copy of a run, `milestones/<phase>/<steps>/`; None where its `meta.json` does not say."""

    folder: Path
    phase: str
    steps: int
    mean_reward: float | None = None
    entropy: float | None = None
    kl: float | None = None
    rating: float | None = None
    timestamp: datetime | None = None


@dataclass(frozen=True)
class RunRecord:
    """What a run folder tells.

    Attributes:
        folder: `runs/<run_id>`.
        summary: `summary.json`; empty while the run goes on.
        steps: Agent-steps, the largest that summary, metrics or checkpoints know.
        changed: Last time that one of these files changed.
        milestones: By phase, then steps.
    """

    folder: Path
    summary: dict[str, Any]
    steps: int
    changed: datetime
    milestones: tuple[Milestone, ...]

    @property
    def name(self) -> str:
        """The run id."""
        return self.folder.name

    @property
    def status(self) -> str:
        """`finished`, `stopped` (in order, before its end), or `unfinished` (running, or killed)."""
        if not self.summary or self.steps > (_number(self.summary.get("total_steps")) or 0):
            return "unfinished"
        return "stopped" if self.summary.get("stopped_early") else "finished"


# ---------------------------------------------------------------- reading


def list_runs(runs_dir: str | Path) -> list[RunRecord]:
    """All runs of a folder, the one that changed last first."""
    folders = [folder for folder in Path(runs_dir).iterdir() if _is_run(folder)]
    return sorted((load_run(folder) for folder in folders), key=lambda run: (run.changed, run.name), reverse=True)


def find_run(runs_dir: str | Path, run_id: str) -> RunRecord:
    """The run of that name, or in that folder.

    Raises:
        ValueError: There is none; the message names similar ones.
    """
    for folder in (Path(runs_dir) / run_id, Path(run_id)):
        if _is_run(folder):
            return load_run(folder)
    names = [folder.name for folder in Path(runs_dir).glob("*") if _is_run(folder)]
    close = get_close_matches(run_id, names, n=1)
    hint = (
        f"did you mean {close[0]}?" if close else "`fabric-rl runs` lists what there is (--runs_dir FOLDER elsewhere)"
    )
    raise ValueError(f"there is no run {run_id} in {runs_dir}; {hint}")


def load_run(folder: str | Path) -> RunRecord:
    """Reads one run folder."""
    folder = Path(folder)
    summary = _read_json(folder / "summary.json")
    saved = checkpoints(folder / "checkpoints")
    files = [folder / "summary.json", folder / "metrics.csv", *saved[-1:]]
    times = [file.stat().st_mtime for file in files if file.is_file()]
    steps = [_number(summary.get("total_steps")), _last_step(folder / "metrics.csv"), *map(steps_of, saved[-1:])]
    return RunRecord(
        folder=folder,
        summary=summary,
        steps=int(max((step for step in steps if step is not None), default=0)),
        changed=datetime.fromtimestamp(max(times, default=folder.stat().st_mtime)),
        milestones=tuple(sorted(_milestones(folder / "milestones"), key=lambda m: (m.phase, m.steps))),
    )


def read_metrics(file: str | Path) -> dict[str, Curve]:
    """The curves of a `metrics.csv` (header `step,<metric names...>`).

    Where a step occurs twice (a killed run was resumed from an earlier checkpoint) the later row counts. Empty cells,
    NaN and a last row that was cut off are left out.

    Raises:
        ValueError: The file is missing or has no column `step`.
    """
    file = Path(file)
    points: dict[str, dict[float, float]] = {}
    try:
        with open(file, newline="", encoding="utf-8", errors="replace") as lines:
            rows = csv.DictReader(line for line in lines if line.endswith("\n"))
            if "step" not in (rows.fieldnames or ()):
                raise ValueError(f"{file} has no column 'step'; it is no metrics file of a run")
            for row in rows:
                step = _parse(row.pop("step"))
                for name, cell in row.items():
                    value = _parse(cell) if isinstance(name, str) else None
                    if step is not None and value is not None:
                        points.setdefault(name, {})[step] = value
    except OSError as error:
        raise ValueError(f"{file} cannot be read ({error.strerror}); the run has logged no metrics") from error
    return {
        name: (np.array(sorted(curve)), np.array([curve[step] for step in sorted(curve)]))
        for name, curve in points.items()
    }


def _is_run(folder: Path) -> bool:
    return not folder.name.startswith(".") and (  # hidden: what --force has put out of the way
        (folder / "checkpoints").is_dir() or any((folder / f).is_file() for f in ("summary.json", "metrics.csv"))
    )


def _milestones(folder: Path) -> Iterator[Milestone]:
    for path in folder.glob("*/*"):
        if path.is_dir() and path.name.isdecimal():
            meta = _read_json(path / "meta.json")
            numbers = {key: _number(meta.get(key)) for key in ("mean_reward", "entropy", "kl", "rating")}
            yield Milestone(path, path.parent.name, int(path.name), timestamp=_time(meta.get("timestamp")), **numbers)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # missing, or damaged
        return {}
    return content if isinstance(content, dict) else {}


def _last_step(file: Path, tail_bytes: int = 1 << 16) -> float | None:
    """The step of the last complete row, without reading a long file from its beginning."""
    try:
        with open(file, "rb") as stream:
            header = next(csv.reader([stream.readline().decode("utf-8", "replace")]), [])
            stream.seek(max(stream.tell(), stream.seek(0, io.SEEK_END) - tail_bytes))
            rows = [row for row in stream.read().decode("utf-8", "replace").splitlines(True) if row.endswith("\n")]
    except OSError:
        return None
    if "step" not in header or not rows:
        return None
    cells = next(csv.reader(rows[-1:]), [])
    return _parse(cells[header.index("step")]) if len(cells) == len(header) else None


def _parse(cell: str | None) -> float | None:
    try:
        return _number(float(cell or "nan"))
    except (TypeError, ValueError):
        return None


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None  # type: ignore[arg-type]


def _time(value: object) -> datetime | None:
    """Seconds since 1970 or ISO 8601, as local time without a zone."""
    try:
        if isinstance(value, str):  # Python 3.10 does not know the Z
            return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone().replace(tzinfo=None)
        return None if _number(value) is None else datetime.fromtimestamp(float(value))  # type: ignore[arg-type]
    except (ValueError, OverflowError, OSError):
        return None


# ---------------------------------------------------------------- tables


def runs_table(runs: Sequence[RunRecord]) -> Table:
    """Runs with their latest milestones below them; fits 80 columns."""
    table = _table("Run", "State", ">Steps", ">Return", ">Rating", "Changed")
    for run in runs:
        row = (run.status, f"{run.steps:,}", _figure(run.summary.get("mean_return")), "", _when(run.changed))
        table.add_row(Text(run.name, "bold"), *row)
        for milestone in sorted(run.milestones, key=lambda m: m.steps)[-_LATEST:]:
            figures = (_figure(milestone.mean_reward), _figure(milestone.rating), _when(milestone.timestamp))
            table.add_row(Text(f"  {milestone.phase}"), "milestone", f"{milestone.steps:,}", *figures)
        if len(run.milestones) > _LATEST:
            table.add_row("", Text(f"{len(run.milestones) - _LATEST} more", "dim"))
    return table


def run_table(run: RunRecord) -> Table:
    """The figures of one run, from its summary."""
    table = Table.grid(padding=(0, 2))
    table.add_row("run", Text(run.name, "bold"))
    table.add_row("folder", Text(str(run.folder)))
    table.add_row("state", run.status)
    table.add_row("steps", f"{run.steps:,}")
    table.add_row("changed", _when(run.changed))
    saved = checkpoints(run.folder / "checkpoints")
    table.add_row("checkpoints", ", ".join(f"{steps_of(path):,}" for path in saved) or "-")
    for key, value in run.summary.items():
        if isinstance(value, dict):
            value = ", ".join(f"{_figure(part)} at the {name}" for name, part in value.items())
        if key not in ("run_id", "total_steps", "stopped_early", "checkpoint"):
            table.add_row(Text(key.replace("_", " ")), Text(value if isinstance(value, str) else _figure(value)))
    return table


def milestones_table(milestones: Sequence[Milestone]) -> Table:
    """All milestones of a run; fits 80 columns."""
    table = _table("Phase", ">Steps", ">Reward", ">Entropy", ">KL", ">Rating", "When")
    for m in milestones:
        figures = map(_figure, (m.mean_reward, m.entropy, m.kl, m.rating))
        table.add_row(Text(m.phase), f"{m.steps:,}", *figures, _when(m.timestamp))
    return table


def comparison_table(curves: dict[str, dict[str, Curve]], metrics: Sequence[str]) -> Table:
    """Each metric's mean over the last tenth of each run's points (at least one point)."""
    table = _table("Mean of the last 10 %", *(f">{name}" for name in curves), fold=True)
    for metric in metrics:
        last = [
            run[metric][1][-max(1, len(run[metric][1]) // 10) :] if metric in run else None for run in curves.values()
        ]
        table.add_row(Text(metric), *(_figure(None if part is None else part.mean()) for part in last))
    return table


def _table(first: str, *others: str, fold: bool = False) -> Table:
    """A table whose first column folds where the terminal is narrow; `>` aligns to the right."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(Text(first), overflow="fold")
    for header in others:
        justify = "right" if header.startswith(">") else "left"
        table.add_column(Text(header.lstrip(">")), justify=justify, no_wrap=not fold, overflow="fold")  # type: ignore[arg-type]
    return table


def _figure(value: object) -> str:
    number = _number(value)
    if number is None:
        return "-"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _when(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


# ---------------------------------------------------------------- curves


def choose_metrics(curves: dict[str, dict[str, Curve]], asked: Sequence[str] = ()) -> list[str]:
    """The metrics to compare, in order.

    Args:
        curves: Run -> metric -> curve.
        asked: Names, or patterns such as `ppo/*`. Default: `DEFAULT_METRICS`.

    Raises:
        ValueError: No run has one that was asked for.
    """
    known = sorted({name for run in curves.values() for name in run})
    if not asked:
        return [name for name in DEFAULT_METRICS if name in known] or known[:4]
    chosen: list[str] = []
    for pattern in asked:
        found = [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            close = get_close_matches(pattern, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
            raise ValueError(f"--metrics {pattern}: no run has it; {hint}")
        chosen += [name for name in found if name not in chosen]
    return chosen


def draw_png(path: str | Path, curves: dict[str, dict[str, Curve]], metrics: Sequence[str]) -> None:
    """Draws one panel per metric and one line per run; needs matplotlib.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    columns = 1 if len(metrics) == 1 else 2
    rows = math.ceil(len(metrics) / columns)
    figure = import_module("matplotlib.figure").Figure(figsize=(6.5 * columns, 3.5 * rows), layout="constrained")
    for i, metric in enumerate(metrics):
        axes = figure.add_subplot(rows, columns, i + 1)
        for number, (name, run) in enumerate(curves.items()):
            if metric in run:
                axes.plot(*run[metric], color=f"C{number % 10}", label=name.replace("$", r"\$"))
        axes.set(title=metric, xlabel="agent-steps")
        axes.grid(alpha=0.3)
        axes.legend(*axes.get_legend_handles_labels())
    figure.savefig(path, format="png", dpi=120)


def draw_text(curves: dict[str, dict[str, Curve]], metric: str, width: int = 79, height: int = 15) -> str:
    """Draws one metric of all runs with characters, without colours; needs plotext.

    Raises:
        ImportError: plotext is not installed.
    """
    plot = import_module("plotext")
    shown = {name: run[metric] for name, run in curves.items() if metric in run}
    largest = max(float(steps[-1]) for steps, _ in shown.values())
    unit, label = next((u for u in ((1e6, "million "), (1e3, "thousand ")) if largest >= u[0]), (1.0, ""))
    plot.clear_figure()
    plot.theme("clear")
    plot.plotsize(width, height)
    plot.title(metric)
    plot.xlabel(f"{label}agent-steps")
    for marker, (name, (steps, values)) in zip(_MARKERS * len(shown), shown.items(), strict=False):
        stride = max(1, len(steps) // (2 * width))  # more points than columns only cost time
        plot.plot((steps[::stride] / unit).tolist(), values[::stride].tolist(), label=name, marker=marker)
    drawing: str = plot.uncolorize(plot.build())
    return drawing


# ---------------------------------------------------------------- command


def runs_command(argv: Sequence[str] | None = None) -> int:
    """`fabric-rl runs [show ID | compare ID ID ...]`.

    Args:
        argv: The words after `fabric-rl runs`. Default: `sys.argv[2:]`.

    Returns:
        Exit status: 0, or 2 after one line on standard error.
    """
    try:
        args = _parser().parse_args(sys.argv[2:] if argv is None else argv)
        runs_dir = Path(getattr(args, "runs_dir", "runs"))
        if not runs_dir.is_dir():
            raise ValueError(f"--runs_dir {runs_dir}: there is no such folder")
        if args.command == "show":
            _show(find_run(runs_dir, args.id))
        elif args.command == "compare":
            _compare(runs_dir, args)
        else:
            runs = list_runs(runs_dir)
            Console().print(runs_table(runs) if runs else Text(f"there are no runs in {runs_dir}"))
    except (ValueError, OSError, ImportError) as error:
        print(f"fabric-rl runs: error: {error}", file=sys.stderr)
        return 2
    except SystemExit as end:  # --help
        return int(end.code or 0)
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raises instead of printing the usage, too."""
        raise ValueError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument("--runs_dir", "--runs-dir", default=argparse.SUPPRESS, help="folder of all runs (runs)")
    parser = _Parser("fabric-rl runs", description="Lists runs and milestones.", parents=[common], allow_abbrev=False)
    commands = parser.add_subparsers(dest="command")
    show = commands.add_parser("show", help="one run with all its milestones", parents=[common], allow_abbrev=False)
    show.add_argument("id", help="run id or folder")
    text = "draws the curves of several runs into a PNG and the terminal"
    compare = commands.add_parser("compare", help=text, parents=[common], allow_abbrev=False)
    compare.add_argument("ids", nargs="+", metavar="id", help="run ids or folders, two or more")
    compare.add_argument("--metrics", nargs="+", default=(), help="names or patterns such as 'ppo/*'")
    compare.add_argument("--output", type=Path, help="the PNG (compare.png in --runs_dir)")
    return parser


def _show(run: RunRecord) -> None:
    console = Console()
    console.print(run_table(run))
    console.print(milestones_table(run.milestones) if run.milestones else "no milestones")


def _compare(runs_dir: Path, args: argparse.Namespace) -> None:
    folders = list(dict.fromkeys(find_run(runs_dir, run_id).folder.resolve() for run_id in args.ids))
    if len(folders) < 2:
        raise ValueError("compare: give two or more different runs")
    names = [folder.name for folder in folders]
    labels = [name if names.count(name) == 1 else str(folder) for name, folder in zip(names, folders, strict=True)]
    curves = {label: read_metrics(folder / "metrics.csv") for label, folder in zip(labels, folders, strict=True)}
    metrics = choose_metrics(curves, args.metrics)
    console = Console()
    console.print(comparison_table(curves, metrics))
    missing = []
    try:
        for metric in metrics:
            drawing = draw_text(curves, metric, width=min(console.width, 100) - 1)
            encoding = sys.stdout.encoding or "utf-8"
            print(drawing.encode(encoding, "replace").decode(encoding))
    except ImportError:
        missing.append("plotext")
    try:
        output = args.output or runs_dir / "compare.png"
        draw_png(output, curves, metrics)
        print(f"curves: {output}")
    except ImportError:
        missing.append("matplotlib")
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(f'{" and ".join(missing)} {verb} not installed; pip install "fabric-rl[plots]"')
