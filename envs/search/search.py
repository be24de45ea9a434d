"""search: find action sequences that reach a goal from given initial states, and replay them.

Each arena plays one attempt after another. An attempt is new, or a variation of one of the best attempts from the
same initial state: cut at a random decision and continued by the guide, with actions replaced, or with actions repeated
or left out. Now and then a random action interrupts the guide. With several guides, each attempt draws one.

An attempt that reaches the goal is played again with small changes of the initial state, because an agent cannot learn
what works only by chance. Where the guide alone played the last part of the attempt, it plays that part again and
reacts to the changes, or its actions are repeated: whichever has reached the goal more often from this initial state.
If repeating is not better, more of the variations that follow are cut and continued by a guide.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import BALL_MAX_SPEED, CAR_MAX_SPEED, TICKS_PER_SECOND

from envs.actions.tables import lookup_rows
from envs.checks import check_seed
from envs.dones import BallOnGroundCondition, DoneCondition, TimeoutCondition
from envs.loggers import StateLogger
from envs.matches.exam import LONGEST_FLIGHT_SECONDS, shot_over
from envs.pool.players import Bot, TeamBots, compute_controls, play
from envs.pool.rocket_pool import bot_pool
from envs.resets.base import PerArenaSetter
from envs.resets.initial_states import inside_field
from envs.search.goals import Goal, check_progress
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.settings import Between, Count, Share, check_settings

ELITE = 8
"""Number of best attempts that are kept per initial state and varied."""
LONGEST_HOLD, LONGEST_CHANGE = 6, 4
"""Maximum number of decisions for which a random action is held; maximum number that a variation changes."""
INTERRUPTIONS = (0.0, 0.1, 0.3)
"""Probabilities per decision that a random action interrupts the guide; an attempt draws one of them."""
INTERRUPTED = (5, 15, 1_000)
"""Numbers of decisions, after those prescribed, in which the guide may be interrupted; an attempt draws one of them."""
REPLAYS, SCREENED = 16, 4
"""Number of replays with a changed initial state; they stop early if the first `SCREENED` all fail."""
SPEED_NOISE, PLACE_NOISE = 0.01, 5.0
"""Standard deviations of the changes: velocities (relative), and the car's position (uu). The ball is up to a tick
ahead or behind."""
Seconds = Annotated[float, Between(0, 300, above=True)]
"""Game time of an attempt."""


class SearchStart(NamedTuple):
    """Initial state of a search.

    Attributes:
        place: Function that writes the initial state to one row of a `GameState`.
        seconds: Time limit; the attempt ends when the ball touches the ground after it, as in `run_exam`.
    """

    place: Callable[[GameState, int], None]
    seconds: float


class Solution(NamedTuple):
    """Result of a search from one initial state.

    Attributes:
        start: Number of the initial state.
        controls: `[T, 8]` float32 of the first blue car, in the columns of `envs.actions`; T = 0 if none was found.
        robust: Share of the replays with a changed initial state that reached the goal. In these
            replays the guide played after the controls, or instead of their last part. The share is slightly too high,
            because attempts near the limit are tried again.
        cost: Decisions played from this state, in all attempts and replays.
    """

    start: int
    controls: Float
    robust: float
    cost: int


@dataclass(frozen=True)
class Rules:
    """Settings of a search."""

    budget: Count = 200_000
    """Maximum number of decisions to play from each initial state; the replays of an attempt that is being tested may
    exceed it."""
    robust: Share = 0.5
    """Share of 16 replays with a slightly changed initial state that must reach the goal, too. 0: no replays."""
    num_arenas: Count = 128
    """Attempts that are played at the same time."""
    tick_skip: Count = 8
    """Physics ticks (1/120 s) per decision."""
    action_delay_ticks: int = 1
    """Ticks at the start of a step that still run the previous action."""
    seconds: Seconds = 10.0
    """Maximum game time of an attempt, without the ball's last flight."""

    def __post_init__(self) -> None:
        check_settings(self, "Rules")

    @property
    def horizon(self) -> int:
        """Maximum number of decisions of an attempt."""
        return int((self.seconds + LONGEST_FLIGHT_SECONDS) * TICKS_PER_SECOND / self.tick_skip) + 1


def search(
    starts: Sequence[SearchStart],
    goal: Goal,
    guides: Sequence[Bot],
    opponent: Bot,
    rules: Rules,
    team_size: tuple[int, int],
    seed: int = 0,
    num_threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Solution]:
    """Search from all initial states at the same time. The same arguments give the same result on the same processor.

    Args:
        starts: Initial states.
        goal: Goal of the first blue car.
        guides: Bots that play this car wherever no action is prescribed; each attempt draws one of them. At least one
            should sample its actions.
        opponent: Bot that plays all other cars. It must be deterministic, so that solutions can be replayed.
        rules: Settings.
        team_size: Cars (blue, orange) in the arena.
        seed: Seed of the attempts.
        num_threads: See `RocketSimPool`.
        progress: Called with the share of the work that is done, 0..1.

    Returns:
        A solution for each initial state.
    """
    attempts = _Attempts(starts, goal, guides, rules, check_seed("search", seed))
    bot = _FirstCar(_Guides(guides, attempts.guide), opponent)
    timing = rules.tick_skip, rules.action_delay_ticks
    with closing(bot_pool(rules.num_arenas, team_size, attempts, attempts, *timing, num_threads)) as pool:
        steps = play(pool, bot, seed, attempts.vary)
        next(steps)
        while attempts.open:
            next(steps)
            if progress is not None:
                progress(1 - sum(max(0.0, 1 - each.cost / rules.budget) for each in attempts.open) / len(starts))
    return [each.solution for each in attempts.works]


def replay(
    start: SearchStart,
    controls: Float,
    goal: Goal,
    opponent: Bot,
    rules: Rules,
    team_size: tuple[int, int],
    loggers: Sequence[StateLogger] = (),
) -> Iterator[tuple[GameState, bool]]:
    """Play a solution in one arena; yield every state, first the initial one, and True when the goal is reached.

    The loggers, such as an `envs.ReplayRecorder`, see every state.
    """
    setter, timing = _Placed(start), (rules.tick_skip, rules.action_delay_ticks)
    limit = np.array([min(start.seconds, rules.seconds)])
    with closing(bot_pool(1, team_size, setter, TimeoutCondition(1e6), *timing, loggers=loggers)) as pool:
        steps = play(pool, _FirstCar(_Played(controls), opponent))
        yield next(steps), False
        goal.reset(np.ones(1, np.bool_), pool.state)
        ground = BallOnGroundCondition()
        ground.reset(np.ones(1, np.bool_), pool.state)
        for step in range(1, len(controls) + 1):
            state = next(steps)
            ended = shot_over(state, limit, ground) | (step >= rules.horizon)
            reached = bool(check_progress(goal, state, ended)[0] >= 1)
            yield state, reached
            if reached:
                return


class _Attempt(NamedTuple):
    """Finished attempt."""

    progress: float
    """Best progress; after replays 1 and the share of them that reached the goal."""
    cause: int
    """Decision of the last touch before the best progress; of the progress itself if there was no touch."""
    guided: int
    """Decisions until the guide plays alone."""
    guide: int
    """Number of the guide that played it."""
    controls: Float


@dataclass(eq=False)
class _Work:
    """Work on one initial state."""

    number: int
    elite: list[_Attempt] = field(default_factory=list)
    """Best attempts."""
    cost: int = 0
    arenas: int = 0
    """Arenas that play it now."""
    tested: _Attempt | None = None
    """Attempt that is being replayed."""
    repeated: int = 0
    """Decisions of `tested` that the replays repeat; the guide plays the rest."""
    unplayed: int = 0
    """Replays that have not begun."""
    passed: int = 0
    failed: int = 0
    replays: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 2), np.int64))
    """`[2, 2]`: successes and failures of all replays that the guide ends, and of those that only repeat."""
    solution: Solution = field(init=False)

    def __post_init__(self) -> None:
        self.solution = Solution(self.number, np.zeros((0, 8), np.float32), 0.0, 0)

    @property
    def repeats_work(self) -> bool:
        """True if replays that only repeat have reached the goal more often than those that the guide ends."""
        expected = (self.replays[:, 0] + 1) / (self.replays.sum(axis=1) + 2)
        return bool(expected[1] > expected[0])


class _Attempts(PerArenaSetter, DoneCondition):
    """Setter and condition that begins attempts, judges them, and keeps the best ones of each initial state."""

    def __init__(
        self, starts: Sequence[SearchStart], goal: Goal, guides: Sequence[Bot], rules: Rules, seed: int
    ) -> None:
        arenas = rules.num_arenas
        self.works = [_Work(number) for number in range(len(starts))]
        self.open = list(self.works)
        self._starts, self.goal, self._rules = starts, goal, rules
        rows = [each.action_rows for each in guides if each.action_rows is not None]
        self._rows = np.unique(np.concatenate(rows or [lookup_rows()]), axis=0)
        self._num_guides, self.guide = len(guides), np.zeros(arenas, np.int64)
        self._rng = np.random.default_rng(seed)
        self.ground = BallOnGroundCondition()
        self._work = [self.works[0]] * arenas
        self._step, self._prescribed, self._hold = np.zeros((3, arenas), np.int64)
        self._cause, self._touch_at, self._guided, self._calm = np.zeros((4, arenas), np.int64)
        self._best, self._interruptions, self._seconds = np.zeros((3, arenas))
        self._repeats: list[_Attempt | None] = [None] * arenas
        self._runs = np.zeros(arenas, np.bool_)
        self._held = np.zeros((arenas, 8), np.float32)
        self._controls = np.zeros((arenas, rules.horizon, 8), np.float32)

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        if self._runs[arena]:  # its physics broke
            self._best[arena] = 0
            self._judge(arena)
        self._runs[arena] = True
        work = min(self.open or self.works[:1], key=lambda each: each.arenas)
        work.arenas += 1
        self._work[arena], start = work, self._starts[work.number]
        start.place(state, arena)
        self._seconds[arena] = min(start.seconds, self._rules.seconds)
        self._step[arena] = self._cause[arena] = self._touch_at[arena] = self._hold[arena] = 0
        self._best[arena] = 0
        tested = self._repeats[arena] = work.tested if work.unplayed else None
        if tested is not None:
            work.unplayed -= 1
            self._disturb(state, arena)
            self._interruptions[arena], planned = 0, tested.controls[: work.repeated]
            self.guide[arena] = tested.guide
        else:
            self._interruptions[arena] = self._rng.choice(INTERRUPTIONS)
            self.guide[arena] = guide = int(self._rng.integers(self._num_guides))
            planned, self._guided[arena] = self._variation(work, guide)
        self._prescribed[arena] = len(planned)
        self._calm[arena] = len(planned) + self._rng.choice(INTERRUPTED)
        self._controls[arena, : len(planned)] = planned

    def _disturb(self, state: GameState, arena: int) -> None:
        world, draw = state.world, self._rng.standard_normal
        ball = world.ball_pos[arena] + world.ball_vel[arena] * self._rng.uniform(-1, 1) / TICKS_PER_SECOND
        if inside_field(*ball.tolist()):
            world.ball_pos[arena] = ball
        car = world.car_pos[arena, 0] + np.append(PLACE_NOISE * draw(2), 0)
        if inside_field(*car.tolist()):
            world.car_pos[arena, 0] = car
        for velocity, limit in ((world.ball_vel[arena], BALL_MAX_SPEED), (world.car_vel[arena, 0], CAR_MAX_SPEED)):
            velocity *= 1 + SPEED_NOISE * draw(3)
            velocity *= min(1.0, limit / max(float(np.linalg.norm(velocity)), 1.0))

    def _variation(self, work: _Work, guide: int) -> tuple[Float, int]:
        """Return the prescribed first decisions of a new attempt, `[t, 8]`, and how many are not this guide's."""
        rng = self._rng
        if not work.elite or rng.random() < 0.05:
            return self._held[:0], 0
        _, cause, guided, its_guide, parent = work.elite[rng.integers(len(work.elite))]
        changed: Float
        at = cause if rng.random() < 0.8 else len(parent)
        cut, width = int(rng.integers(at + 1)), int(rng.integers(1, LONGEST_CHANGE + 1))
        unsteady = work.elite[0].progress >= 1 and not work.repeats_work  # it succeeds, but not after small changes
        if rng.random() < (0.75 if unsteady else 0.4):
            return parent[:cut], min(cut, guided) if guide == its_guide else cut
        before, after, kind = parent[:cut], parent[cut:], rng.random()
        if kind < 0.5:
            changed = np.concatenate((before, np.repeat(self._draw(1), width, axis=0), after[width:]))
        elif kind < 0.75:
            changed = np.concatenate((before, np.repeat(after[:1], width, axis=0), after))
        else:
            changed = np.concatenate((before, after[width:]))
        changed = changed[: self._rules.horizon]
        return changed, len(changed)

    def _draw(self, count: int) -> Float:
        drawn: Float = self._rows[self._rng.integers(len(self._rows), size=count)]
        return drawn

    def vary(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Replace the guide's actions `[N, 8]` where something else is prescribed, and record them."""
        arenas = np.arange(len(self._step))
        own = actions.reshape(len(arenas), -1, 8)[:, 0]
        free = self._step >= self._prescribed
        begin = free & (self._hold == 0) & (self._step < self._calm)
        begin &= self._rng.random(len(arenas)) < self._interruptions
        self._held[begin] = self._draw(int(begin.sum()))
        self._hold[begin] = self._rng.integers(1, LONGEST_HOLD + 1, int(begin.sum()))
        holding = free & (self._hold > 0)
        self._hold -= holding
        self._guided[holding] = self._step[holding] + 1
        planned = self._controls[arenas, self._step]
        chosen = np.where(free[:, None], np.where(holding[:, None], self._held, own), planned)
        self._controls[arenas, self._step] = chosen
        changed: NDArray[Any] = actions.copy()
        changed.reshape(len(arenas), -1, 8)[:, 0] = chosen
        return changed

    def check(self, state: GameState) -> Bool:
        self._step += 1
        for work in self._work:
            work.cost += work in self.open
        over: Bool = shot_over(state, self._seconds, self.ground) | (self._step >= self._rules.horizon)
        self._touch_at = np.where(state.quantities.touched[:, 0], self._step, self._touch_at)
        progress = check_progress(self.goal, state, over)
        better = progress > self._best
        self._best = np.where(better, progress, self._best)
        last = np.where(self._touch_at > 0, self._touch_at, self._step)  # later decisions do not move the ball
        self._cause = np.where(better, last, self._cause)
        over |= (self._best >= 1) | [self._is_obsolete(arena) for arena in range(len(over))]
        for arena in np.flatnonzero(over).tolist():
            self._judge(arena)
        for work in [each for each in self.open if each.cost >= self._rules.budget and each.tested is None]:
            work.solution = work.solution._replace(cost=work.cost)
            self.open.remove(work)
        return over

    def _is_obsolete(self, arena: int) -> bool:
        """Return whether the result no longer matters: the initial state or the repeated attempt has been decided."""
        work, repeats = self._work[arena], self._repeats[arena]
        return work not in self.open or (repeats is not None and repeats is not work.tested)

    def _judge(self, arena: int) -> None:
        work, steps, reached = self._work[arena], int(self._step[arena]), self._best[arena] >= 1
        work.arenas -= 1
        self._runs[arena] = False
        if work not in self.open:
            return
        repeats = self._repeats[arena]
        if repeats is None:
            guided, controls = min(int(self._guided[arena]), steps), self._controls[arena, :steps].copy()
            cause, guide = int(self._cause[arena]), int(self.guide[arena])
            attempt = _Attempt(float(self._best[arena]), cause, guided, guide, controls)
            spent = bool(self._rules.robust) and work.cost >= self._rules.budget
            if not reached or work.tested is not None or spent:
                self._keep(work, attempt)
            else:
                work.repeated = steps if work.repeats_work else guided
                work.tested, work.unplayed = attempt, SCREENED if self._rules.robust else 0
                work.passed = work.failed = 0
                self._test(work)
        elif repeats is work.tested:
            work.passed, work.failed = work.passed + bool(reached), work.failed + (not reached)
            if work.tested.guided < len(work.tested.controls):  # else both ways are the same
                work.replays[int(work.repeated > work.tested.guided), int(not reached)] += 1
            self._test(work)

    def _test(self, work: _Work) -> None:
        """Accept or reject the controls that are being replayed, as soon as that is certain."""
        assert work.tested is not None
        wanted = self._rules.robust * REPLAYS
        played = work.passed + work.failed
        if played == REPLAYS * bool(self._rules.robust) and work.passed >= wanted:
            work.solution = Solution(work.number, work.tested.controls, work.passed / max(1, played), work.cost)
            self.open.remove(work)
        elif REPLAYS - work.failed < wanted or (played == SCREENED == work.failed):
            self._keep(work, work.tested._replace(progress=1 + work.passed / played))
            work.tested, work.unplayed = None, 0
        elif played == SCREENED:
            work.unplayed = REPLAYS - SCREENED

    @staticmethod
    def _keep(work: _Work, attempt: _Attempt) -> None:
        work.elite = sorted([*work.elite, attempt], key=lambda each: -each.progress)[:ELITE]


class _FirstCar(TeamBots):
    """Bot that lets one bot play the first car, and another bot the rest."""

    def split(self, state: GameState) -> tuple[Bool, Bot, Bot]:
        first = np.arange(state.num_cars) == 0
        return np.broadcast_to(first, state.present.shape), self.blue, self.orange


class _Guides(Bot):
    """Bot that lets one of several bots play each arena."""

    def __init__(self, bots: Sequence[Bot], chosen: NDArray[np.int64]) -> None:
        super().__init__()
        self.bots, self._chosen = list(bots), chosen

    def act(self, state: GameState) -> Float:
        wanted = np.stack([compute_controls(bot, state) for bot in self.bots])
        chosen: Float = wanted[self._chosen, np.arange(state.num_arenas)]
        return chosen


class _Played(Bot):
    """Bot that plays prescribed controls `[T, 8]`, and then none."""

    def __init__(self, controls: Float) -> None:
        super().__init__()
        self._left = iter(controls)

    def act(self, state: GameState) -> Float:
        return np.broadcast_to(next(self._left, np.zeros(8, np.float32)), state.controls.shape)


class _Placed(PerArenaSetter):
    def __init__(self, start: SearchStart) -> None:
        self._start = start

    def _apply_one(self, state: GameState, arena: int, rng: np.random.Generator) -> None:
        self._start.place(state, arena)
