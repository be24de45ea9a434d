"""`fabric-rl record`: a game between two players as a replay, to watch or to look into."""

from pathlib import Path
from shlex import quote

from envs.render.videos import FORMATS
from envs.replays.replay import SUFFIX
from fabric_rl.commands.output import check_out
from fabric_rl.evaluation.play import Duel, replay_file
from fabric_rl.evaluation.players import Rules, short_name
from fabric_rl.evaluation.show import write_film


def record(
    player: str,
    opponent: str = "chaser",
    /,
    minutes: float = 5.0,
    out: Path = Path("game.frl"),
    mp4: Path | None = None,
    team_size: int | None = None,
    seed: int = 0,
    sample: bool = False,
    tick_skip: int | None = None,
    runs_dir: str = "runs",
) -> int:
    """Record a match on real physics as a replay file, with a kickoff after each goal.

    Watch it with `fabric-rl watch FILE`, or share it as a page: `fabric-rl export-replay FILE OUT.html`. The replay
    also contains a trained player's value estimates, action probabilities and training rewards; annealed reward weights
    start from their initial values. If you stop with Ctrl+C, or an error occurs, the file contains what was played so
    far and can be watched; if nothing was played, there is no file.

    Args:
        player: Player of the blue team: a run id, a path (run, milestone, checkpoint, exported agent), school_1v1 or
            school_2v2 (included), a bot (idle, random, chaser, shooter, circle, hover, hop), or the class path of a
            bot.
        opponent: Player of the orange team, with the same choices.
        minutes: Game time in minutes, above 0 and at most 600.
        out: Replay file, .frl.
        mp4: File for a video of the match, .mp4 or .gif. Default: no video.
        team_size: Cars per team. Default: as in the training of the first agent; 1 for bots.
        seed: Seed of the kickoffs.
        sample: Sample the actions of agents from their policies. Default: take the most probable action.
        tick_skip: Physics ticks (1/120 s) per decision. Default: as in the training of the first agent; 8 for bots.
        runs_dir: Folder that contains all runs.
    """
    check_out([out], [SUFFIX])
    if mp4 is not None:
        check_out([mp4], list(FORMATS), "--mp4")
    if not 0 < minutes <= 600:
        raise ValueError(f"--minutes must be above 0 and at most 600, got {minutes}")
    duel = Duel.of(player, opponent, team_size, sample, tick_skip, runs_dir)
    with replay_file(out) as file:
        blue, orange = duel.play(file, minutes, seed)
    print(f"{short_name(player)} {blue} : {orange} {short_name(opponent)}")
    print(f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)\nwatch it: fabric-rl watch {quote(out.as_posix())}")
    if mp4 is not None:
        write_film(out, mp4)
    return 0


def record_by(rules: Rules, player: str, opponent: str, out: Path, seed: int) -> None:
    """Records one game more by the rules of other matches, see `record`."""
    record(
        player,
        opponent,
        minutes=rules.minutes,
        out=out,
        team_size=rules.team_size,
        seed=seed,
        sample=rules.sample,
        tick_skip=rules.tick_skip,
        runs_dir=rules.runs_dir,
    )
