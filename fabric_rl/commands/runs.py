"""The command `fabric-rl runs`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from fabric_rl.runs.curves import choose_metrics, draw_png, draw_text, read_metrics
from fabric_rl.runs.records import RunRecord, find_run, list_runs
from fabric_rl.runs.tables import comparison_table, milestones_table, run_table, runs_table


def runs_command(argv: Sequence[str] | None = None) -> int:
    """`fabric-rl runs [show ID | compare ID ID ...]`.

    Args:
        argv: The words after `fabric-rl runs`. Default: `sys.argv[2:]`.

    Returns:
        Exit status: 0, or 2 after one line on standard error.

    Raises:
        BrokenPipeError: Nobody reads the output any more.
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
    except BrokenPipeError:
        raise
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
