"""MilestoneMatches: matches between milestones during training, for ratings, the best weights, and an alarm."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from fabric_rl.base.files import open_regular, read_json, replacing, write_json
from fabric_rl.base.settings import Between, Count, CountOrZero, Positive, check_settings
from fabric_rl.base.state_schema import state_error_context
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.runs.folder import move_newer_best
from fabric_rl.runs.records import BEST, SET_ASIDE, list_checkpoints
from fabric_rl.selfplay.ratings.ladder import MEAN_RATING, rate
from fabric_rl.selfplay.ratings.sequential import least_samples

RATINGS = "ratings.json"
"""File with all matches and ratings in the folder of a run."""
_SAID, _ERRORS = ".match.json", ".match.log"
_PLAY = """
import os
from importlib.metadata import entry_points
from fabric_rl.base.processes import end_with_parent
end_with_parent(lambda: os.read(0, 1))
entry_points(group="console_scripts")["fabric-rl"].load()()
"""
"""Program that ends with training, even if training is killed, because that closes its standard input."""
_RATED = ("elo", "openskill_mu", "openskill_sigma")
_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f]+/[0-9]+")
"""Phase and steps of a milestone: a path in `milestones/`."""
_SCORES = {"l": 0.0, "d": 0.5, "w": 1.0}


@dataclass(eq=False, repr=False)
class MilestoneMatches(Callback):
    """Let every milestone play the one before it and the best one so far, in a separate process at low priority.

    Matches are played as by `fabric-rl evaluate --sequential`. Milestones are rated on one ladder, where the first one
    has 1200 (`fabric_rl.selfplay.ratings.ladder.fit_ladder`), and with OpenSkill. The best one is copied to `best/` in
    the folder of the run. All matches and ratings are in `ratings.json`, and `fabric-rl runs` shows the ratings. The
    log reports a milestone that is significantly worse than the one before or the best one.

    Metrics of the newest milestone that has played: `rating/elo`, `rating/openskill_mu`, `rating/openskill_sigma`
    (with `team_sizes`: `rating/elo_2v2`...), and `rating/worse`: 1 if it is worse, else 0.

    By default, results arrive at any time and do not affect training. With `in_step`, which `stop` and `lower_rate`
    imply, the results of a milestone take effect at the next milestone, where training waits for them, so the same
    settings and seed still give the same weights. Interrupted matches are played again.
    """

    _in_state_dict: ClassVar = {"played": "_played", "judged": "_judged", "best": "_best", "factor": "_factor"}

    matches: Annotated[int, Between(20)] = 400
    """Maximum number of matches between two milestones; fewer if the winner is clear earlier. At a confidence of 0.99,
    fewer than 34 cannot decide: they only give ratings."""
    minutes: Positive = 5.0
    """Game time of each match, in minutes."""
    team_sizes: Sequence[Count] = ()
    """Cars per team; every size in the list is played. Default: the size of the training."""
    confidence: Annotated[float, Between(0, 0.999999, above=True)] = 0.99
    """Confidence level of the decision. At 0.99, one in 100 milestones that are as good as the one before is wrongly
    called better or worse."""
    stop: bool = False
    """End training when a milestone is worse."""
    lower_rate: Annotated[float, Between(0, 1, above=True)] = 1.0
    """Factor for the learning rates when a milestone is worse. Not useful with `--lr_schedule kl_adaptive`."""
    in_step: bool = False
    """Make training wait for the results, for example because phases or lessons depend on them."""
    seed: CountOrZero = 0
    """Seed of the matches; each pair of milestones has its own kickoffs."""

    def __post_init__(self) -> None:
        check_settings(self)
        self.in_step = self.in_step or self.stop or self.lower_rate < 1
        self._sizes = {size: f"_{size}v{size}" for size in self.team_sizes} or {0: ""}
        self._words = ["--sequential", "--json", f"--matches={self.matches}", f"--minutes={self.minutes}"]
        self._words.append(f"--confidence={self.confidence}")
        self._played: list[dict[str, Any]] = []
        self._judged: list[dict[str, Any]] = []
        self._best, self._factor = "", 1.0
        self._process: subprocess.Popen[bytes] | None = None
        self._game: dict[str, Any] = {}
        self._given_up = self._alarm = False
        self._folder = Path()
        self._metrics: dict[str, float] = {}

    def on_train_start(self, state: TrainState) -> None:
        """Continue with the matches and ratings of a resumed run; warn if `matches` are too few to decide.

        Raises:
            ValueError: The run has no folder, or the restored results do not fit the settings.
        """
        if state.folder is None:
            raise ValueError("MilestoneMatches: this run has no folder, so there are no milestones that could play")
        least = 2 * least_samples(self.confidence)
        if self.matches < least and state.fabric.is_global_zero:
            warnings.warn(
                f"MilestoneMatches: {self.matches} matches cannot decide with a confidence of {self.confidence}, even "
                f"if one milestone wins all; set matches to at least {least}",
                RuntimeWarning,
                stacklevel=2,
            )
        self._folder, state.learning_rate_factor = state.folder, self._factor
        if self._judged and state.fabric.is_global_zero:
            move_newer_best(self._folder, state.steps)
            with state_error_context("the saved state of MilestoneMatches, with these team_sizes,"):
                self._publish()

    def on_iteration_start(self, state: TrainState) -> None:
        """Collect results and start matches; stop or lower the learning rates after a worse milestone."""
        if state.fabric.is_global_zero:
            self._advance(may_wait=1 if self.in_step else None)
        if self.in_step and state.fabric.broadcast(self._alarm):
            self._alarm, state.stop = False, state.stop or self.stop
            self._factor *= self.lower_rate
            state.learning_rate_factor = self._factor

    def on_train_end(self, state: TrainState) -> None:
        """Wait for the last results, unless the run was stopped: a resumed run plays the missing matches."""
        if state.fabric.is_global_zero:
            if not state.stop:
                self._advance(may_wait=None)
                if self._process is not None:
                    said = "waiting for the matches of milestone %s and later ones; after Ctrl+C, --resume plays them"
                    logger.info(said, self._game["player"])
            while self._process is not None and not state.stop:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=0.2)
                self._advance(may_wait=None)
            self._end()

    def on_exception(self, state: TrainState, error: BaseException) -> None:
        self._end()

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        names = ["rating/worse", *(f"rating/{name}{suffix}" for suffix in self._sizes.values() for name in _RATED)]
        return {name: (self._metrics.get(name, 0.0), float(name in self._metrics)) for name in names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for name in (*(each["milestone"] for each in self._judged), *filter(None, [self._best])):
            if not _NAME.fullmatch(name):  # names become paths
                raise ValueError(f"{name!r} is not the name of a milestone")

    def _advance(self, may_wait: int | None) -> None:
        """Play and judge milestones in order.

        Args:
            may_wait: Wait for results until at most this number of the newest milestones is left to judge, then stop.
                None: judge every milestone whose results are available, without waiting.
        """
        milestones = self._unrated_milestones()
        while milestones and not self._given_up:
            must = may_wait is not None and len(milestones) > may_wait
            game = self._next_game(milestones[0])
            if game is not None:
                self._process = self._process or self._start(*game)
                if not must and self._process.poll() is None:
                    return
                self._collect(self._process)
            elif may_wait is None or must:
                self._judge(milestones.pop(0))
            else:
                return

    def _unrated_milestones(self) -> list[str]:
        judged = {each["milestone"] for each in self._judged}
        folders = [path for path in self._folder.glob("milestones/*/*") if path.name.isdecimal()]
        there = sorted((path.name, path.parent.name) for path in folders if (path / "meta.json").is_file())
        names = (f"{phase}/{steps}" for steps, phase in there if phase != SET_ASIDE)
        return [name for name in names if name not in judged]

    def _next_game(self, milestone: str) -> tuple[str, str, int] | None:
        """Return (milestone, opponent, team size) of the next unplayed game, or None if all have been played."""
        before = self._judged[-1]["milestone"] if self._judged else ""
        opponents = dict.fromkeys(filter(None, (before, self._best)))
        played = [(each["player"], each["opponent"], each["team_size"]) for each in self._played]
        games = [(milestone, opponent, size) for opponent in opponents for size in self._sizes]
        return next((game for game in games if game not in played), None)

    def _start(self, player: str, opponent: str, team_size: int) -> "subprocess.Popen[bytes]":
        self._game = {"player": player, "opponent": opponent, "team_size": team_size}
        names = [str(self._folder / "milestones" / name) for name in (player, opponent)]
        self._forget_files()  # a match left over from a killed run may still have them open
        steps = [int(name.rpartition("/")[2]) for name in (player, opponent)]
        (seed,) = np.random.SeedSequence([self.seed, *steps, team_size]).generate_state(1)
        words = ["evaluate", *names, f"--seed={seed}", *self._words, *[f"--team_size={team_size}"][: team_size > 0]]
        with (self._folder / _SAID).open("xb") as said, (self._folder / _ERRORS).open("xb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", _PLAY, *words],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=errors,
                env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
                creationflags=getattr(subprocess, "IDLE_PRIORITY_CLASS", 0),
            )
        if sys.platform != "win32":
            os.setpriority(os.PRIO_PROCESS, process.pid, 19)
            with suppress(OSError):  # Linux desktops share processors between sessions first, and this is a new one
                Path(f"/proc/{process.pid}/autogroup").write_text("19", encoding="ascii")
        return process

    def _collect(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait for the match and store its result; if it failed, warn and play no more matches."""
        status, self._process = process.wait(), None
        found = read_json(self._folder / _SAID)
        if "results" in found:
            self._played.append(self._game | {"better": found["better"] or "", "results": found["results"]})
            return
        self._given_up = True
        why = (self._folder / _ERRORS).read_text(errors="replace").strip().rpartition("\n")[2] or f"status {status}"
        warnings.warn(f"MilestoneMatches: this run plays no more matches: {why}", RuntimeWarning, stacklevel=2)

    def _judge(self, milestone: str) -> None:
        mine = [each for each in self._played if each["player"] == milestone]
        worse = dict.fromkeys(each["opponent"] for each in mine if each["better"] == "opponent")
        against_best = {each["better"] for each in mine if each["opponent"] == self._best}
        if not self._best or ("player" in against_best and "opponent" not in against_best):
            self._best = milestone
        self._judged.append({"milestone": milestone, "worse": bool(worse)})
        self._alarm |= bool(worse)
        if worse:
            logger.warning("milestone %s plays worse than %s; best: %s", milestone, " and ".join(worse), self._best)
        self._publish()

    def _publish(self) -> None:
        """Rate all judged milestones; update metrics and files."""
        names = [each["milestone"] for each in self._judged]
        self._metrics, tables = {"rating/worse": float(self._judged[-1]["worse"])}, {}
        for size, suffix in self._sizes.items():
            results = {}
            for each in self._played:
                if each["team_size"] == size and each["player"] in names:
                    scores = [_SCORES[letter] for letter in each["results"]]
                    results[names.index(each["player"]), names.index(each["opponent"])] = np.reshape(scores, (-1, 2))
            rated, _ = rate(results, len(names), first=MEAN_RATING)
            ratings = [{"milestone": name} | each._asdict() for name, each in zip(names, rated, strict=True)]
            tables[f"ratings{suffix}"] = ratings
            newest = {"elo": rated[-1].rating} | ratings[-1]
            self._metrics |= {f"rating/{name}{suffix}": newest[name] for name in _RATED}
        try:
            write_json(self._folder / RATINGS, {"best": self._best, **tables, "matches": self._played})
            meta = self._folder / "milestones" / names[-1] / "meta.json"
            if meta.is_file():
                write_json(meta, read_json(meta) | {"rating": next(iter(tables.values()))[-1]["rating"]})
            _copy_newest(self._folder / "milestones" / self._best, self._folder / BEST)
        except OSError as error:
            warnings.warn(f"MilestoneMatches: {error}; training continues", RuntimeWarning, stacklevel=2)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget_files()

    def _forget_files(self) -> None:
        for name in (_SAID, _ERRORS):
            (self._folder / name).unlink(missing_ok=True)


def _copy_newest(source: Path, folder: Path) -> None:
    """Replace the checkpoints in `folder` with the newest one of the milestone `source`, and copy its metadata."""
    newest = list_checkpoints(source)[-1:]
    if newest and not (folder / newest[0].name).is_file():
        folder.mkdir(exist_ok=True)
        write_json(folder / "meta.json", {"milestone": "/".join(source.parts[-2:])} | read_json(source / "meta.json"))
        with open_regular(newest[0]) as old, replacing(folder / newest[0].name) as new:
            shutil.copyfileobj(old, new)
    for other in list_checkpoints(folder):
        if newest and other.name != newest[0].name:
            other.unlink()
