"""RecordedMatch: two players in one arena, step by step, and the replay of it."""

from collections.abc import Iterator, Sequence

import numpy as np
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.dones import GoalCondition
from envs.matches.statistics import MatchKickoffs
from envs.pool.players import TeamBots, play
from envs.pool.rocket_pool import RocketSimPool
from envs.replays.recorder import ReplayRecorder
from envs.replays.replay import CHUNK_FRAMES, Sink
from envs.rewards.parts import Part
from envs.state.game_state import GameState
from fabric_rl.base.settings import Count, check_value


class RecordedMatch:
    """A recorded match with a kickoff at the start and after each goal; every kickoff is different.

    Attributes:
        recorder: Recorder with score and time; ends games.
        step_seconds: Game time of a step.
    """

    def __init__(
        self,
        bots: TeamBots,
        sink: Sink,
        names: tuple[str, str],
        team_size: int = 1,
        seed: int = 0,
        tick_skip: int = 8,
        action_delay_ticks: int = 1,
        rewards: Sequence[Part] = (),
        chunk_frames: int = CHUNK_FRAMES,
    ) -> None:
        """Build the arena.

        Args:
            bots: Players of both teams.
            sink: Receives the bytes of the replay.
            names: Names of the players in the replay.
            team_size: Cars per team.
            seed: Seed of the kickoffs.
            tick_skip: Physics ticks (1/120 s) between decisions.
            action_delay_ticks: Ticks at the start of a step that still run the previous action.
            rewards: Terms of a reward to record.
            chunk_frames: See `ReplayWriter`.

        Raises:
            ValueError: No car.
        """
        check_value("RecordedMatch: team_size", team_size, Count)
        about = {"names": names, "seed": seed, "tick_skip": tick_skip}
        self.recorder = ReplayRecorder(sink, bots, about, rewards, chunk_frames=chunk_frames)
        self._kickoffs = MatchKickoffs([np.random.SeedSequence(seed)], 2 * team_size)
        self._steps: Iterator[GameState] = iter(())
        self._pool = RocketSimPool(
            num_arenas=1,
            team_size=team_size,
            action=ContinuousAction(),
            state_setter=self._kickoffs,
            done=GoalCondition(),
            tick_skip=tick_skip,
            action_delay_ticks=action_delay_ticks,
            num_threads=1,
            seed=seed,
            loggers=[self.recorder],
        )
        self.step_seconds = float(tick_skip / TICKS_PER_SECOND)

    def begin(self, bots: TeamBots | None = None) -> None:
        """End the present game and begin the next one, with new bots if given."""
        self.recorder.end_game()
        self.recorder.bots = bots or self.recorder.bots
        self._steps = play(self._pool, self.recorder.bots, change=self._kickoffs.delayed(self._pool))
        next(self._steps)

    def step(self) -> None:
        """Play one step."""
        next(self._steps)

    def close(self) -> None:
        """End the game and close the pool."""
        self.recorder.end_game()
        self._pool.close()
