"""`fabric-rl record`: a game between two players as a replay, to watch or to look into."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import BinaryIO, NamedTuple

from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.bots.base import TeamBots
from envs.matches.matches import Player, PoolFactory
from envs.matches.recorded import RecordedMatch
from envs.render.videos import FORMATS
from envs.replays.replay import CHUNK_FRAMES, SUFFIX, Sink, read_replay
from envs.rewards.parts import Part, parts_of
from fabric_rl.commands.entrants import Rules, check_positive, entrant, short_name
from fabric_rl.commands.export_replay import write_film
from fabric_rl.commands.output import check_out
from fabric_rl.ranks.threads import one_thread


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


@contextmanager
def replay_file(out: Path) -> Iterator[BinaryIO]:
    """A file for a replay; of one that the block fails to write, keeps what has been played, if any, and says so."""
    with out.open("wb") as file:  # before what may remove it: what cannot be written is not ours
        try:
            yield file
            file.flush()
        except BaseException as error:
            if isinstance(error, OSError):  # of a full disk names no file
                error.filename = error.filename or str(out)
            with suppress(OSError):
                file.close()
            seconds = 0.0
            with suppress(OSError, ValueError):
                games = read_replay(out).games
                seconds = sum(game.columns["ticks"].max(initial=0) for game in games) / TICKS_PER_SECOND
            if seconds:
                print(f"{out}: holds the {seconds:.0f} s that were played", file=sys.stderr)
            else:
                out.unlink(missing_ok=True)
            raise


class Duel(NamedTuple):
    """Two players and the settings that both can play with."""

    names: tuple[str, str]
    players: tuple[Player, Player]
    team_size: int
    tick_skip: int
    action_delay_ticks: int
    trained_in: PoolFactory | None

    @classmethod
    def of(
        cls, player: str, opponent: str, team_size: int | None, sample: bool, tick_skip: int | None, runs_dir: str
    ) -> "Duel":
        """Looks for the players; a ValueError names the flag or the player that cannot be."""
        check_positive(team_size=team_size, tick_skip=tick_skip)
        both = [entrant(name, sample, runs_dir, explain=True) for name in (player, opponent)]
        rules = Rules.of(both, None, team_size, tick_skip, sample, runs_dir)
        first, second = (each.build(rules.team_size, rules.tick_skip) for each in both)
        trained_in = both[0].recipe or both[1].recipe
        names = short_name(player), short_name(opponent)
        return cls(names, (first, second), rules.team_size, rules.tick_skip, rules.action_delay_ticks, trained_in)

    def bots(self, seed: int) -> TeamBots:
        """Both, new, for another game: blue the player, orange its opponent."""
        return TeamBots(self.players[0](seed), self.players[1](seed + 1))

    def match(self, sink: Sink, seed: int, chunk_frames: int = CHUNK_FRAMES) -> RecordedMatch:
        """A match between them, which writes its replay to `sink`."""
        return RecordedMatch(
            self.bots(seed),
            sink,
            self.names,
            team_size=self.team_size,
            seed=seed,
            tick_skip=self.tick_skip,
            action_delay_ticks=self.action_delay_ticks,
            rewards=self._rewards(),
            chunk_frames=chunk_frames,
        )

    def play(self, sink: Sink, minutes: float, seed: int) -> list[int]:
        """Plays a match, which writes its replay to `sink`; returns the goals of both."""
        match = self.match(sink, seed)
        try:
            with one_thread():
                match.begin()
                for _ in range(max(1, round(minutes * 60 * TICKS_PER_SECOND / self.tick_skip))):
                    match.step()
        finally:
            score = match.recorder.score
            match.close()
        return score

    def _rewards(self) -> list[Part]:
        """What the first agent was paid for, in the last phase of its training, anew; nothing for two bots."""
        recipe = self.trained_in
        if recipe is None:
            return []
        if recipe.phases:
            recipe = PoolFactory(partial(recipe.pool_class, **recipe.arguments), "record", recipe.phases[-1])
        return parts_of(recipe.reward())
