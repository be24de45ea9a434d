"""Matches between two players: pairs with swapped sides, replays, traces of states; PoolFactory for their pools."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.checks import check_seed, parse_team_sizes
from envs.component import Phased
from envs.dones import GoalCondition, PastGoal
from envs.factories import unwrap_partial
from envs.matches.statistics import CELLS, MAPS, Counts, GameStatistics, MatchKickoffs, get_count, pair_totals
from envs.pool.players import Bot, TeamBots, play
from envs.pool.recorder import ReplayRecorder
from envs.pool.replay_format import CHUNK_FRAMES, Sink
from envs.pool.rocket_pool import RocketSimPool, bot_pool
from envs.processes.process_pool import ProcessPool
from envs.rewards.base import Reward
from envs.rewards.car import default_reward
from envs.rewards.combinators import AnnealedReward
from envs.rewards.parts import RewardTerm
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Bool, Float
from fabric_rl.base.settings import Count, Positive, check_value

PAIRS_AT_ONCE = 10
SIDES = 2

Player = Callable[[int], Bot]
"""Function that builds a new bot from a seed, for one block of matches."""


@dataclass(frozen=True)
class Matches:
    """Results of pairs of matches; pairs are independent of each other, but the two matches of a pair are not.

    Attributes:
        goals: `[P, 2, 2]` int64: pair; the player as blue, then as orange; goals of the player, then of its opponent.
        touches: Contacts with the ball, in the format of `goals`; each contact counts once.
        minutes: Game time of each match, in minutes.
        cars: Cars per team.
        statistics: Name in `envs.matches.statistics.STATISTICS` -> `[P, 2, 2]` float64: pair; the player, its opponent;
            numerator and denominator (see `envs.matches.statistics.pair_totals`).
        maps: `[P, 3, 2, *CELLS]` float32: pair; one of `MAPS`; the player, its opponent; cells of the field.
    """

    goals: NDArray[np.int64]
    touches: NDArray[np.int64]
    minutes: float
    cars: int
    statistics: Mapping[str, NDArray[np.float64]]
    maps: Float = field(default_factory=lambda: np.zeros((0, len(MAPS), SIDES, *CELLS), np.float32))

    @classmethod
    def of(cls, parts: "Sequence[Matches]", num_pairs: int | None = None) -> "Matches":
        """Concatenate matches with the same settings; keep only the first `num_pairs`, if given."""
        goals = np.concatenate([part.goals for part in parts])[:num_pairs]
        touches = np.concatenate([part.touches for part in parts])[:num_pairs]
        statistics = {
            name: np.concatenate([part.statistics[name] for part in parts])[:num_pairs] for name in parts[0].statistics
        }
        maps = np.concatenate([part.maps for part in parts])[:num_pairs]
        return cls(goals, touches, parts[0].minutes, parts[0].cars, statistics, maps)

    @property
    def match_scores(self) -> NDArray[np.float64]:
        """`[P, 2]` 1 for a match that the player won, 0.5 for a draw, 0 for a defeat."""
        scores: NDArray[np.float64] = np.sign(self.goals[..., 0] - self.goals[..., 1]) / 2 + 0.5
        return scores

    @property
    def scores(self) -> NDArray[np.float64]:
        """`[P]` mean score of each pair, one independent sample per pair."""
        means: NDArray[np.float64] = self.match_scores.mean(axis=1)
        return means

    @property
    def differences(self) -> NDArray[np.float64]:
        """`[P]` goal difference per match, one independent sample per pair."""
        means: NDArray[np.float64] = (self.goals[..., 0] - self.goals[..., 1]).mean(axis=1)
        return means

    @property
    def wins(self) -> int:
        """Number of matches that the player won."""
        return int((self.goals[..., 0] > self.goals[..., 1]).sum())

    @property
    def losses(self) -> int:
        """Number of matches that the opponent won."""
        return int((self.goals[..., 0] < self.goals[..., 1]).sum())

    @property
    def draws(self) -> int:
        """Number of matches without a winner."""
        return SIDES * len(self.goals) - self.wins - self.losses


def play_matches(
    player: Player,
    opponent: Player,
    num_pairs: int = 100,
    minutes: float = 5.0,
    team_size: int = 1,
    seed: int = 0,
    tick_skip: int = 8,
    action_delay_ticks: int = 1,
    num_threads: int | None = None,
    progress: Callable[[float], None] | None = None,
    first_block: int = 0,
) -> Matches:
    """Play pairs of matches between two players, with a kickoff at the start and after each goal.

    The player is blue in the first match of a pair, and orange in the second, with the same `MatchKickoffs`. A match
    lasts `minutes` of play; there is no overtime. Every pair has its own kickoffs; players sample separately for each
    match.

    A pair only depends on the seed and its number, not on the number of pairs or threads. Therefore pairs are played in
    blocks of `PAIRS_AT_ONCE`, and the last block is played in full, because the last bits of a network's outputs depend
    on the batch size. The same arguments give the same results on the same processor.

    Args:
        player: Function that builds the bot for all cars of one side from a seed.
        opponent: Function that builds the bot for the other side from a seed.
        num_pairs: Number of pairs of matches.
        minutes: Game time of each match, in minutes.
        team_size: Cars per team.
        seed: Seed of kickoffs and players.
        tick_skip: Physics ticks (1/120 s) between decisions.
        action_delay_ticks: Ticks at the start of a step that still use the previous action.
        num_threads: Threads that step the arenas, see `RocketSimPool`.
        progress: If given, called after each step with the share of all steps that is done, 0..1.
        first_block: Index of the first block, so that several processes can share the blocks: begin with pair
            `first_block * PAIRS_AT_ONCE`.

    Raises:
        ValueError: The number of pairs, the time, the team size or the seed is out of range.
    """
    check_seed("play_matches", seed)
    check_value("play_matches: num_pairs", num_pairs, Count)
    check_value("play_matches: minutes", minutes, Positive)
    check_value("play_matches: team_size", team_size, Count)
    steps = max(1, round(minutes * 60 * TICKS_PER_SECOND / tick_skip))
    blocks = -(-num_pairs // PAIRS_AT_ONCE)
    found: list[Counts] = []
    maps: list[Float] = []
    for block in range(blocks):
        number = first_block + block
        pairs = range(number * PAIRS_AT_ONCE, (number + 1) * PAIRS_AT_ONCE)
        own_seeds = [np.random.SeedSequence(seed, spawn_key=(0, pair)) for pair in pairs]
        pool_seed, *dice = np.random.SeedSequence(seed, spawn_key=(1, number)).generate_state(3).tolist()
        kickoffs, score = MatchKickoffs(SIDES * own_seeds, SIDES * team_size), GameStatistics()
        arenas, timing = SIDES * PAIRS_AT_ONCE, (tick_skip, action_delay_ticks)
        pool = bot_pool(arenas, team_size, kickoffs, GoalCondition(), *timing, num_threads, pool_seed, [score])
        bots = _BothSides(player(dice[0]), opponent(dice[1]))
        with closing(pool):
            for step, _ in enumerate(islice(play(pool, bots, change=kickoffs.delay_actions(pool)), steps + 1)):
                if progress is not None and step:
                    progress((block + step / steps) / blocks)
        as_blue, as_orange = np.split(score.counts, SIDES, axis=1)
        found.append(np.stack((as_blue, as_orange[..., ::-1]), axis=2))  # [K, P, 2, 2]: the player, its opponent
        first, second = np.split(score.maps, SIDES, axis=1)
        maps.append((first + second[:, :, ::-1]).swapaxes(0, 1))
    counts = np.concatenate(found, axis=1)[:, :num_pairs]
    goals, touches = get_count(counts, "goals"), get_count(counts, "touches")
    every_map = np.concatenate(maps)[:num_pairs]
    return Matches(goals, touches, minutes, team_size, pair_totals(counts), every_map)


class _BothSides(TeamBots):
    """Bot that plays the player as blue in the first half of the arenas, and as orange in the others."""

    def split(self, state: GameState) -> tuple[Bool, Bot, Bot]:
        as_blue = np.arange(state.num_arenas) < PAIRS_AT_ONCE
        return (state.team == BLUE) == as_blue[:, None], self.blue, self.orange


class RecordedMatch:
    """A recorded match with a kickoff at the start and after each goal; every kickoff is different.

    Attributes:
        recorder: Recorder of the games, with score and time.
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
        rewards: Sequence[RewardTerm] = (),
        chunk_frames: int = CHUNK_FRAMES,
    ) -> None:
        """Build the arena; `seed` seeds the kickoffs. See `ReplayRecorder` and `RocketSimPool` for the rest."""
        check_value("RecordedMatch: team_size", team_size, Count)
        about = {"names": names, "seed": seed, "tick_skip": tick_skip}
        goal = PastGoal(GoalCondition())
        self.recorder = ReplayRecorder(sink, bots, about, rewards, chunk_frames=chunk_frames, holds=[goal])
        self._kickoffs = MatchKickoffs([np.random.SeedSequence(seed)], 2 * team_size)
        self._steps: Iterator[GameState] = iter(())
        self._pool = bot_pool(
            1, team_size, self._kickoffs, goal, tick_skip, action_delay_ticks, seed=seed, loggers=[self.recorder]
        )
        self.step_seconds = float(tick_skip / TICKS_PER_SECOND)

    def begin(self, bots: TeamBots | None = None) -> None:
        """End the current game and begin the next one, with new bots if given."""
        self.recorder.end_game()
        self.recorder.bots = bots or self.recorder.bots
        self._steps = play(self._pool, self.recorder.bots, change=self._kickoffs.delay_actions(self._pool))
        next(self._steps)

    def step(self) -> None:
        """Play one step."""
        next(self._steps)

    def close(self) -> None:
        """End the game and close the pool."""
        self.recorder.end_game()
        self._pool.close()


class PoolFactory:
    """Settings of a `RocketSimPool`, to build it repeatedly with some of them changed.

    Attributes:
        pool_class: `RocketSimPool`, or a subclass.
        arguments: Arguments of the pool.
    """

    def __init__(self, factory: Callable[..., Any], owner: str = "PoolFactory", phase: str | None = None) -> None:
        """Read the settings of a factory.

        Args:
            factory: `RocketSimPool`, a `functools.partial` of it, or a partial of `ProcessPool` with such a factory.
            owner: Name of the caller, for messages.
            phase: Phase of training, if the reward or the state setter has phases; default: the first.

        Raises:
            TypeError: The factory builds something else.
            ValueError: There is no such phase.
        """
        call = unwrap_partial(factory)
        while call.function is ProcessPool and "factory" in call.arguments():
            call = unwrap_partial(call.arguments()["factory"])
        pool_class = call.function
        if not (isinstance(pool_class, type) and issubclass(pool_class, RocketSimPool)):
            name = getattr(pool_class, "__name__", type(pool_class).__name__)
            raise TypeError(f"{owner}: env must build an envs.RocketSimPool, got {name}")
        self.pool_class = pool_class
        left_out = ("seed", "first_arena", "render_mode", "video_folder")
        self.arguments = {name: value for name, value in call.arguments().items() if name not in left_out}
        if phase is not None or self.phases:
            self._begin_phase(self.phases[0] if phase is None else phase)

    def build(self, **changes: Any) -> RocketSimPool:  # noqa: ANN401 - the settings of a pool
        """Build a pool with copies of all components, so that pools share no state."""
        kept = {name: copy.deepcopy(value) for name, value in self.arguments.items() if name not in changes}
        return self.pool_class(**(kept | changes))

    @property
    def phases(self) -> list[str]:
        """Phases of training that the reward or the state setter knows, in order."""
        return list(dict.fromkeys(name for part in self._phased() for name in part.phases))

    def _begin_phase(self, name: str) -> None:
        """Begin a phase, given by its name or its number from 1."""
        numbers = {str(number): phase for number, phase in enumerate(self.phases, 1)}
        name = numbers.get(name, name)
        if name not in self.phases:
            known = f"known: {', '.join(self.phases)}" if self.phases else "this configuration has none"
            raise ValueError(f"--phase {name}: there is no such phase; {known}")
        self.arguments = {key: copy.deepcopy(value) for key, value in self.arguments.items()}
        blue, orange = self.team_sizes[0]
        state = GameState(1, blue, orange)
        state.clear(np.array([0]))
        for part in self._phased():
            part.begin_phase(name, self.phases.index(name) + 1, state)

    def _phased(self) -> list[Phased]:
        parts = [self.arguments.get(name) for name in ("reward", "state_setter")]
        return [each for part in parts if part is not None for each in part.walk() if isinstance(each, Phased)]

    def reward(self) -> Reward:
        """Return a new copy of the reward; annealed weights stay at their initial values."""
        given = self.arguments.get("reward")
        reward = default_reward() if given is None else copy.deepcopy(given)
        for part in reward.walk():
            if isinstance(part, AnnealedReward):
                part.hold(part.weight)
        return reward

    @property
    def team_sizes(self) -> list[tuple[int, int]]:
        """(blue, orange) pairs that the arenas use in rotation."""
        return parse_team_sizes(self.arguments.get("team_size", 1))

    def playable_sizes(self) -> list[tuple[int, int]]:
        """Return the team sizes that a policy can play in a pool of only this size: its observations have its shape."""
        if len(self.team_sizes) == 1:
            return self.team_sizes
        with closing(self.build(num_arenas=len(self.team_sizes))) as pool:
            shape = pool.single_observation_space.shape
            return [sizes for sizes in self.team_sizes if pool.obs_builder.space(*sizes).shape == shape]

    @property
    def tick_skip(self) -> int:
        """Ticks per step."""
        return int(self.arguments.get("tick_skip", 8))

    @property
    def action_delay_ticks(self) -> int:
        """Ticks at the start of a step that still run the previous action."""
        return int(self.arguments.get("action_delay_ticks", 1))


@dataclass(frozen=True)
class MatchTrace:
    """Recorded states of a game, to compute any reward from them later.

    Attributes:
        states_with_resets: In order: (mask `[A]`, initial states) when episodes begin, (None, state) after every step.
        tick_skip: Ticks per step.
    """

    states_with_resets: list[tuple[Bool | None, GameState]]
    tick_skip: int

    @property
    def first(self) -> GameState:
        """Initial state."""
        return self.states_with_resets[0][1]

    @property
    def steps(self) -> list[GameState]:
        """States after steps."""
        return [state for mask, state in self.states_with_resets if mask is None]

    @property
    def minutes(self) -> float:
        """Game time in one arena, in minutes."""
        return float(len(self.steps) * self.tick_skip / TICKS_PER_SECOND / 60)


class _Recorder(Reward):
    """Reward of zero that keeps a copy of every state, as in `MatchTrace.states_with_resets`."""

    def __init__(self) -> None:
        self.frames: list[tuple[Bool | None, GameState]] = []

    def reset(self, mask: Bool, state: GameState) -> None:
        self.frames.append((mask.copy(), state.copy()))

    def compute(self, state: GameState) -> Float:
        self.frames.append((None, state.copy()))
        return np.zeros((state.num_arenas, state.num_cars), np.float32)


def record_trace(factory: PoolFactory, bot: Bot, seconds: float, seed: int, **changes: Any) -> MatchTrace:  # noqa: ANN401
    """Record the states while `bot` plays all cars; see `record_traces`."""
    return record_traces(factory, {"": bot}, seconds, seed, **changes)[""]


def record_traces(
    factory: PoolFactory,
    bots: Mapping[str, Bot],
    seconds: float,
    seed: int,
    **changes: Any,  # noqa: ANN401 - the settings of a pool
) -> dict[str, MatchTrace]:
    """Let each bot in turn play all cars, from the same seed, and record the states.

    Each bot plays `seconds` of game time in each arena, at least one step. The pool's observations and reward are
    replaced; `changes` are other settings of the pool.
    """
    recorder = _Recorder()
    pool = factory.build(**({"obs": None, "seed": seed} | changes | {"reward": recorder}))
    steps = max(1, round(seconds * TICKS_PER_SECOND / pool.tick_skip))
    traces = {}
    with closing(pool):
        for name, bot in bots.items():
            recorder.frames = []
            for _ in islice(play(pool, bot, seed), steps + 1):
                pass
            traces[name] = MatchTrace(recorder.frames, pool.tick_skip)
    return traces
