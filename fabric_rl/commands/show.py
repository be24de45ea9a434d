"""`fabric_rl.show`: a game inside of a notebook."""

import html
import io
import os
from pathlib import Path

from envs.replays.replay import SUFFIX, Replay, excerpt, read_replay
from fabric_rl.commands.export_replay import check_size
from fabric_rl.commands.record import Duel
from fabric_rl.runs.trained import Trained
from fabric_rl.viewer.page import page_with


class Shown:
    """A game that a notebook shows as the viewer's page, when it is the last line of a cell.

    The page is in the notebook, about half a megabyte, and needs neither this Python nor the internet.

    Attributes:
        replay: The content of its file.
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
    """Shows a recorded game, or records one and shows it: in Jupyter, VS Code, Colab.

    Args:
        what: A replay, or the path of one (.frl); or who plays blue: a player as in `fabric-rl record` (a run id, a
            path, school_1v1, a bot), or what `fabric_rl.load_trained` returned.
        opponent: Plays orange, where a player is shown.
        minutes: Game time to play.
        team_size: Cars in a team; default: as the player was trained, 1 for bots.
        seed: Of the kickoffs.
        height: Of the page, pixels.
        runs_dir: Folder of the run ids.

    Returns:
        What a notebook shows as the last line of a cell; elsewhere give it to `IPython.display.display`.

    Raises:
        ValueError: There is no such player, or it is no replay.
        OSError: There is no such file.
    """
    if isinstance(what, Replay):
        return Shown(excerpt(what), height)
    if not isinstance(what, Trained) and (path := Path(what)).suffix == SUFFIX:
        check_size(path)
        read_replay(path)
        return Shown(path.read_bytes(), height)
    if not 0 < minutes <= 60:
        raise ValueError(f"show: minutes must be above 0 and at most 60, got {minutes}")
    name = str(what.path) if isinstance(what, Trained) else os.fspath(what)
    duel = Duel.of(name, opponent, team_size, False, None, str(runs_dir))
    if isinstance(what, Trained):
        duel = duel._replace(names=(what.name, duel.names[1]))
    played = io.BytesIO()
    duel.play(played, minutes, seed)
    return Shown(played.getvalue(), height)
