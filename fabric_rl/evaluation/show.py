"""`fabric_rl.show`: shows a game in a notebook."""

import html
import io
import os
from pathlib import Path

from envs.pool.replay_format import SUFFIX
from envs.replays.replay import Replay, extract_games, read_replay
from fabric_rl.evaluation.matches import Duel
from fabric_rl.evaluation.settings import PlaySettings
from fabric_rl.runs.trained import Trained
from fabric_rl.viewer.page import check_size, page_with


class Shown:
    """A game that a notebook displays as the viewer's page if it is the last line of a cell.

    The page is stored in the notebook (about half a megabyte) and needs neither Python nor an internet connection.

    Attributes:
        replay: Contents of the replay file.
    """

    def __init__(self, replay: bytes, height: int) -> None:
        self.replay, self._height = replay, height

    def _repr_html_(self) -> str:
        page = html.escape(page_with(self.replay))
        style = f"width: 100%; height: {self._height}px; border: 0; border-radius: 8px"
        return f'<iframe title="a game" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


def show(
    what: str | os.PathLike[str] | Replay | Trained,
    opponent: str = "chaser",
    minutes: float = 1.0,
    team_size: int | None = None,
    seed: int = 0,
    height: int = 520,
    runs_dir: str | Path = "runs",
) -> Shown:
    """Show a recorded game, or record a game and show it, in Jupyter, VS Code or Colab.

    Args:
        what: A replay or its path (.frl), or the player of the blue team: a name as in `fabric-rl record` (a run id, a
            path, school_1v1, a bot), or the result of `fabric_rl.load_trained`.
        opponent: The player of the orange team, if `what` is a player.
        minutes: Game time to play, in minutes.
        team_size: Cars per team; default: as in the player's training, 1 for bots.
        seed: Seed of the kickoffs.
        height: Height of the page in pixels.
        runs_dir: Folder that contains all runs.

    Returns:
        An object that a notebook displays if it is the last line of a cell. Elsewhere, pass it to
        `IPython.display.display`.

    Raises:
        ValueError: There is no such player, or the file is not a replay.
        OSError: There is no such file.
    """
    if isinstance(what, Replay):
        return Shown(extract_games(what), height)
    if not isinstance(what, Trained) and (path := Path(what)).suffix == SUFFIX:
        check_size(path)
        read_replay(path)
        return Shown(path.read_bytes(), height)
    if not 0 < minutes <= 60:
        raise ValueError(f"show: minutes must be above 0 and at most 60, got {minutes}")
    player = what if isinstance(what, Trained) else os.fspath(what)
    duel = Duel.of(player, opponent, PlaySettings(seed=seed, runs_dir=str(runs_dir), team_size=team_size))
    played = io.BytesIO()
    duel.play(played, minutes, seed)
    return Shown(played.getvalue(), height)
