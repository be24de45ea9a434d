"""`fabric-rl audit-rewards`: the command line of the audit."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from envs.audit.audit import audit_rewards
from envs.audit.report import report, write
from envs.matches.tape import PoolSettings
from envs.tools import LoadEnv, ToolParser, check_suffixes, console, run


def main(argv: Sequence[str], load: LoadEnv) -> int:
    """Prints the audit of a configuration's reward; of each phase's, if it has phases and `--phase` names none.

    Args:
        argv: Flags.
        load: Reads the configuration.

    Returns:
        The exit status: 0 passed, 1 something pays an own goal or farming more than scoring, 2 wrong usage.
    """
    text = (
        "Plays random and scripted situations and reports what every part of a reward pays for. Status 1: a part, or "
    )
    text += "all together, pay for an own goal, or more for farming than for scoring."
    parser = ToolParser("fabric-rl audit-rewards", text, out="files to write: .json, .png")
    parser.add_argument("--seconds", type=float, default=30.0, help="game time of each situation, 1 to 3600 (30)")
    parser.add_argument("--num_arenas", type=int, default=8, help="arenas of each situation, 2 or more (8)")
    parser.add_argument("--strict", action="store_true", help="status 1 for warnings too")
    return run(parser, _audit, argv, load)


def _audit(args: argparse.Namespace, factory: Callable[..., Any]) -> int:
    check_suffixes(args.out, (".json", ".png"))
    known = PoolSettings(factory, "audit-rewards").phases
    phases = [args.phase] if args.phase is not None or not known else known
    failed = False
    for phase in phases:
        audit = audit_rewards(factory, seconds=args.seconds, seed=args.seed, num_arenas=args.num_arenas, phase=phase)
        console().print(report(audit))
        for path in args.out:
            target = path if len(phases) == 1 else path.with_stem(f"{path.stem}_{phase}")
            write(audit, target)
            print(f"written: {target}")
        failed |= not audit.passed or (args.strict and bool(audit.findings))
    return int(failed)
