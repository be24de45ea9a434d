"""`fabric-rl record`: a game between two players as a replay, to watch or to look into."""

from pathlib import Path
from shlex import quote
from typing import Annotated

from envs.pool.replay_format import SUFFIX
from envs.pool.videos import FORMATS
from fabric_rl.base.settings import Between
from fabric_rl.commands.export_replay import write_film
from fabric_rl.commands.output import Out, writes
from fabric_rl.evaluation.play import Duel, replay_file
from fabric_rl.evaluation.settings import DEFAULT_PLAY, PlaySettings


@writes(Out("out", [SUFFIX]), Out("mp4", [*FORMATS]))
def record(
    player: str,
    opponent: str = "chaser",
    /,
    minutes: Annotated[float, Between(0, 600, above=True)] = 5.0,
    out: Path = Path("game.frl"),
    mp4: Path | None = None,
    play: PlaySettings = DEFAULT_PLAY,
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
        play: How they play.
    """
    record_game(player, opponent, play, minutes, out)
    if mp4 is not None:
        write_film(out, mp4)
    return 0


def record_game(player: str, opponent: str, play: PlaySettings, minutes: float, out: Path) -> None:
    """Play one game into a replay file, and print the score."""
    duel = Duel.of(player, opponent, play)
    with replay_file(out) as file:
        blue, orange = duel.play(file, minutes, play.seed)
    print(f"{duel.names[0]} {blue} : {orange} {duel.names[1]}")
    print(f"written: {out} ({out.stat().st_size / 1e6:.2f} MB)\nwatch it: fabric-rl watch {quote(out.as_posix())}")
