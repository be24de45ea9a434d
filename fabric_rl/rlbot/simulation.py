"""Matches of an exported RLBot bot, with RocketSim in place of the game."""

import copy
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ContinuousAction
from envs.adapters.rlbot_packets import format_team_sizes
from envs.dones import GoalCondition
from envs.matches.matches import SIDES, Player, PoolFactory
from envs.matches.statistics import MatchKickoffs
from envs.pool.rocket_pool import RocketSimPool
from envs.state.layout import Float
from fabric_rl.evaluation.players import load_player

if TYPE_CHECKING:
    from envs.adapters.rlbot_game import BotProcess

TOLERANCE = 1e-3
"""Tolerance for observations and controls: RLBot sends angles, and axes computed from them are rounded differently."""
MIN_EQUAL_ACTIONS = 0.99
"""Required share of equal decisions: rounding may decide between two actions."""
MIN_EQUAL_OBSERVATIONS = 0.98
"""Required share of equal observations: a bot can only guess when the wheels of a jumping car leave the ground."""


class SimulationSettings(NamedTuple):
    """Settings of all matches of a flight."""

    folder: Path
    policy: Player
    """Policy of the bot, as it plays in a pool."""
    opponent: Player
    recipe: PoolFactory
    team_size: int
    delay: int
    """Ticks from an observation to the first tick with its action: as in training, but at least the game's delay."""
    steps: int
    """Decisions per match."""

    @classmethod
    def of(cls, folder: Path, opponent: str, minutes: float, runs_dir: str) -> "SimulationSettings":
        """Find and build the players."""
        from envs.adapters.rlbot_bot import GAME_DELAY_TICKS

        ours, theirs = load_player(str(folder), False, runs_dir), load_player(opponent, False, runs_dir)
        assert ours.trained_in is not None
        recipe = ours.trained_in
        sizes, skip = recipe.playable_sizes() or recipe.team_sizes, recipe.tick_skip
        blue = next((blue for blue, orange in sizes if blue == orange), None)
        if blue is None:
            known = format_team_sizes(sizes)
            raise ValueError(f"{folder} was trained for {known}, but a flight needs teams of the same size")
        players = ours.build(blue, skip), theirs.build(blue, skip)
        steps = max(1, round(minutes * 60 * TICKS_PER_SECOND / skip))
        delay = max(GAME_DELAY_TICKS, ours.trained_in.action_delay_ticks)
        return cls(folder, *players, ours.trained_in, blue, delay, steps)

    def cars(self, side: int) -> list[int]:
        """Return the indices of the bot's cars if its team is `side`."""
        return [side * self.team_size + car for car in range(self.team_size)]

    def pool(self, tick_skip: int, action_delay_ticks: int, seed: int, pair: int, **parts: object) -> RocketSimPool:
        """Return a pool of one arena; the two matches of a pair get the same kickoffs."""
        kickoffs = MatchKickoffs([np.random.SeedSequence(seed, spawn_key=(0, pair))], SIDES * self.team_size)
        return RocketSimPool(
            num_arenas=1,
            team_size=self.team_size,
            action=ContinuousAction(),
            state_setter=kickoffs,
            done=GoalCondition(),
            tick_skip=tick_skip,
            action_delay_ticks=action_delay_ticks,
            num_threads=1,
            seed=seed + pair,
            **parts,  # type: ignore[arg-type]
        )

    @contextmanager
    def processes(self, side: int, log: Path | None = None) -> "Iterator[list[BotProcess]]":
        """Start the bot's team, one process per car; meanwhile, SIGTERM acts as Ctrl+C so that all processes end."""
        from envs.adapters.rlbot_bot import LOG
        from envs.adapters.rlbot_game import BotProcess

        teams = [0] * self.team_size + [1] * self.team_size
        with ExitStack() as ending:
            ending.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.default_int_handler))
            found = []
            for car in self.cars(side):
                given = {} if log is None else {LOG: str(log / f"{car}.npz")}
                found.append(ending.enter_context(BotProcess(self.folder, teams, car, given)))
            yield found


def play_match(
    course: SimulationSettings,
    bots: "Sequence[BotProcess]",
    side: int,
    seed: int,
    pair: int,
    latency: int = 0,
    loss: float = 0.0,
) -> tuple[int, NDArray[np.float32]]:
    """Play one match tick by tick, in simulated time.

    Args:
        course: Settings of the match.
        bots: Processes of the bot's team.
        side: Team of the bot, 0 or 1.
        seed: Seed of the flight.
        pair: Number of the pair of matches; both have the same kickoffs.
        latency: Delay of answers in ticks, in addition to the game's own.
        loss: Share of packets that do not arrive, 0 to 1.

    Returns:
        Goals of the bot minus those of its opponent; controls `[steps, C, 8]` that the opponent chose for all cars.
    """
    from rlbot.flat import MatchPhase

    from envs.adapters.rlbot_bot import GAME_DELAY_TICKS
    from envs.adapters.rlbot_game import PacketWriter

    skip, cars = course.recipe.tick_skip, course.cars(side)
    dice = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, pair, side)))
    opponent = course.opponent(seed + pair)
    writer = PacketWriter()
    idle = np.zeros((SIDES * course.team_size, 8), np.float32)
    told: list[Float] = []
    ahead, begins = 0, True
    with closing(course.pool(1, 0, seed, pair)) as pool:
        pool.reset()
        state = pool.state
        for _ in range(course.steps * skip):
            if begins:
                opponent.reset(np.ones(1, np.bool_), state)
                answered, wanted = idle, idle
                answers = deque([idle] * (GAME_DELAY_TICKS + latency))  # in transit to the game
                orders = deque([idle] * course.delay)
                countdown = writer.write(state, MatchPhase.Countdown)
                for bot in bots:
                    bot.answer(countdown)
            packet, answered = writer.write(state, MatchPhase.Kickoff if begins else MatchPhase.Active), answered.copy()
            for car, bot in zip(cars, bots, strict=True):
                if dice.random() >= loss:
                    answered[car] = bot.answer(packet)
            if int(state.episode_ticks[0]) % skip == 0:
                wanted = opponent.act(state)[0].astype(np.float32)
                told.append(wanted)
            answers.append(answered)
            orders.append(wanted)
            rows: NDArray[Any] = orders.popleft().copy()
            rows[cars] = answers.popleft()[cars]
            *_, terminated, truncated, infos = pool.step(rows)
            writer.frame += 1
            begins = bool((terminated | truncated).any())
            if terminated.any():
                ahead += 1 if infos["result"][cars[0]] else -1
    return ahead, np.array(told)


def compare_with_policy(course: SimulationSettings, side: int, seed: int) -> tuple[int, Float]:
    """Compare the bot in one match, without extra delays or lost packets, with its policy in a pool.

    The pool gets the recorded controls of all cars, so it goes through the same states.

    Returns:
        Number of equal decisions; largest difference in each observation, `[steps, cars]`.
    """
    cars = course.cars(side)
    with TemporaryDirectory() as folder:
        with course.processes(side, Path(folder)) as bots:
            _, told = play_match(course, bots, side, seed, 0)
        try:
            logs = [dict(np.load(Path(folder, f"{car}.npz"))) for car in cars]
        except (OSError, BadZipFile) as error:
            raise OSError(f"{course.folder}: the bot ended without writing its log") from error
    seen, done = (np.stack([log[name] for log in logs], axis=1) for name in ("obs", "controls"))
    recipe, policy = course.recipe, course.policy(seed)
    equal, differences, begins = 0, np.zeros(done.shape[:2], np.float32), np.ones(1, np.bool_)
    parts = {"obs": copy.deepcopy(recipe.arguments.get("obs"))}
    with closing(course.pool(recipe.tick_skip, course.delay, seed, 0, **parts)) as pool:
        obs, _ = pool.reset()
        for step in range(len(done)):
            if begins.any():
                policy.reset(begins, pool.state)
            differences[step] = np.abs(obs[cars] - seen[step]).reshape(len(cars), -1).max(axis=1)
            wanted = policy.act(pool.state)[0, cars]
            equal += int((np.abs(wanted - done[step]) <= TOLERANCE).all(axis=-1).sum())
            rows = told[step].copy()
            rows[cars] = done[step]
            obs, _, terminated, truncated, _ = pool.step(rows)
            begins = (terminated | truncated)[:1]
    return equal, differences
