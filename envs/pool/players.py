"""Players of a pool: the base class of bots, bots with trained policies, guests, and the game loop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.actions import ActionParser, ActionTable
from envs.actions.base import ANALOGUE, BUTTONS, Controls, RowControls, nested_parsers
from envs.actions.nearest import nearest_actions
from envs.component import Component
from envs.obs import ObsBuilder
from envs.state.game_state import GameState
from envs.state.layout import BLUE, Bool, Float
from fabric_rl.base.settings import Count, CountOrZero, check_value, describe_value
from fabric_rl.base.state_schema import HasState

if TYPE_CHECKING:
    from envs.pool.rocket_pool import RocketSimPool


class PolicyOutput(NamedTuple):
    """Output of a policy's last `act`, for viewers and replays."""

    value: Float
    """`[A, C]` expected return; NaN in slots without a car."""
    probabilities: Float | None
    """`[A, C, n]` of its discrete actions; None for other action spaces."""


class Bot(Component, ABC):
    """A scripted policy for every car of every arena."""

    explains: bool = False
    """True if it has `thoughts`."""
    action_rows: Float | None = None
    """`[n, 8]` controls of each of its discrete actions, see `act`; None if unknown."""

    @abstractmethod
    def act(self, state: GameState) -> Float:
        """Choose the next controls of every car.

        Returns:
            `[A, C, 8]` float32 in the columns of `envs.actions`: throttle, steer, pitch, yaw, roll in -1..1, jump,
            boost, handbrake 0 or 1. Rows of slots without a car are ignored.
        """

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        """Return the actions `[N, ...]` for `RocketSimPool.step` that are closest to the controls of `act`.

        Args:
            state: `pool.state`.
            parser: `pool.action_parser`; see `nearest_actions`.

        Raises:
            ValueError: Bots cannot use the parser (`nearest_actions`), or controls are invalid (`compute_controls`).
        """
        controls, here = compute_controls(self, state), state.present
        return nearest_actions(parser, controls[here], state.on_ground[here])

    def thoughts(self) -> PolicyOutput | None:
        """Return the policy's output of the last `act`; None for bots without a policy, and before the first call."""
        return None


def compute_controls(bot: Bot, state: GameState, name: str = "") -> Float:
    """Return `bot.act(state)`; raise a ValueError naming the bot unless it is `[A, C, 8]` and finite for all cars."""
    wanted, shape, name = bot.act(state), state.controls.shape, name or type(bot).__name__
    if not isinstance(wanted, np.ndarray) or wanted.dtype.kind not in "biuf" or wanted.shape != shape:
        raise ValueError(f"{name}: act() must return numbers {list(shape)}, got {describe_value(wanted)}")
    if not np.isfinite(wanted[state.present]).all():
        raise ValueError(f"{name}: act() returned NaN or infinity")
    return wanted


@dataclass(eq=False, repr=False)
class TeamBots(Bot):
    """Bot that lets one bot play blue, and another bot orange."""

    _in_state_dict: ClassVar[dict[str, str]] = {"blue": "blue", "orange": "orange"}

    blue: Bot
    """Plays the blue cars."""
    orange: Bot
    """Plays the orange cars."""

    def split(self, state: GameState) -> tuple[Bool, Bot, Bot]:
        """Return the cars `[A, C]` of the first bot, that bot, and the bot of all other cars."""
        return np.broadcast_to(state.team == BLUE, state.present.shape), self.blue, self.orange

    def act(self, state: GameState) -> Float:
        cars, first, second = self.split(state)
        return np.where(cars[..., None], first.act(state), second.act(state))

    def actions(self, state: GameState, parser: ActionParser) -> NDArray[Any]:
        cars, first, second = self.split(state)
        ours, theirs = first.actions(state, parser), second.actions(state, parser)
        return np.where(cars[state.present].reshape(-1, *[1] * (ours.ndim - 1)), ours, theirs)


PolicyFn = Callable[[Float, Bool, Bool | None], NDArray[Any]]
"""A policy: observations `[N, ...]` float32, `[N]` bool where an episode begins, action mask `[N, n]` bool or None ->
actions `[N, ...]`, for N cars that stay the same from call to call."""


class Diagnostics:
    """Container in which a policy stores the values and probabilities of the cars it controls."""

    value: Float | None = None
    """`[N]` float32, expected return; None before the first action."""
    probabilities: Float | None = None
    """`[N, n]` float32 of the discrete actions; None before the first action, and for other action spaces."""

    def tell(self, value: Float, probabilities: Float | None) -> None:
        """Set the values and the probabilities."""
        self.value, self.probabilities = value, probabilities


@dataclass(eq=False, repr=False)
class PolicyBot(Bot):
    """Play with a trained policy, its own observation builder and its own action parser.

    Policies with different observations and actions can therefore play each other. The bot keeps the state of its
    games: use one bot per pool, and call `reset` for every episode.
    """

    _in_state_dict: ClassVar[dict[str, str]] = {"obs": "obs", "action": "action", "begins": "_begins"}

    choose: PolicyFn
    """The policy; a policy with memory also needs `state_dict` and `load_state_dict`."""
    obs: ObsBuilder
    """Builds its observations."""
    action: ActionParser
    """Turns its actions into controls."""
    tick_skip: Count = 8
    """Physics ticks (1/120 s) per step of the pool that it plays in."""
    action_delay_ticks: CountOrZero = 1
    """Ticks at the start of a step that still run the previous action."""
    mind: Diagnostics | None = None
    """Receives the policy's values and probabilities, if the policy reports them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.action.look_ahead(self.tick_skip, self.action_delay_ticks)
        self.explains = self.mind is not None
        innermost = nested_parsers(self.action)[-1]
        self.action_rows = innermost.table if isinstance(innermost, ActionTable) else None
        self._begins, self._here = np.zeros(0, np.bool_), np.zeros((0, 0), np.bool_)

    def thoughts(self) -> PolicyOutput | None:
        if self.mind is None or self.mind.value is None:
            return None
        value = np.full(self._here.shape, np.nan, np.float32)
        value[self._here] = self.mind.value
        if self.mind.probabilities is None:
            return PolicyOutput(value, None)
        probabilities = np.zeros((*self._here.shape, self.mind.probabilities.shape[1]), np.float32)
        probabilities[self._here] = self.mind.probabilities
        return PolicyOutput(value, probabilities)

    def act(self, state: GameState) -> Float:
        """Choose the next controls; must be called once per step, in order."""
        blue, orange = state.num_blue, state.num_orange
        obs = np.empty((state.num_arenas, state.num_cars, *self.obs.space(blue, orange).shape), np.float32)
        self.obs.build(state, obs)
        here, mask = state.present, self.action.mask(state)
        begins = np.broadcast_to(self._begins[:, None], here.shape)[here]
        chosen = self.choose(obs[here], begins, None if mask is None else mask[here])
        actions = np.zeros((here.size, *chosen.shape[1:]), chosen.dtype)
        actions[here.reshape(-1)] = chosen
        self._begins[:], self._here = False, here
        return self.action.parse(actions, state).rows.reshape(*here.shape, 8)

    def reset(self, mask: Bool, state: GameState) -> None:
        if len(self._begins) != len(mask):
            self._begins = np.zeros(len(mask), np.bool_)
        self._begins |= mask
        super().reset(mask, state)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return state | {"policy": self.choose.state_dict()} if isinstance(self.choose, HasState) else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if isinstance(self.choose, HasState):
            self.choose.load_state_dict(state["policy"])


class CarSlots:
    """Slots `[A, C]`, the same number in every arena, and the cars `[N]` in them, arena by arena, blue before orange.

    Attributes:
        num_blue: Blue slots per arena.
        num_orange: Orange slots per arena.
        present: `[A, C]` bool, True for slots with a car.
        num_cars: `N`.
        slots: `[N]` slot of each car among all `A * C`.
        arena_of: `[N]` arena of each car.
        team_of: `[N]` team of each car, 0 blue and 1 orange.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], num_arenas: int, first_arena: int) -> None:
        """Assign cars to slots; the arenas use the (blue, orange) `sizes` in rotation, beginning at `first_arena`."""
        blue, orange = (max(size[team] for size in sizes) for team in (0, 1))
        turns = [sizes[(first_arena + i) % len(sizes)] for i in range(num_arenas)]
        slot = np.arange(max(blue, orange))
        self.num_blue, self.num_orange = blue, orange
        self.present = np.array([[*(slot[:blue] < b), *(slot[:orange] < o)] for b, o in turns])
        self._full = bool(self.present.all())
        self.slots = np.flatnonzero(self.present)
        self.num_cars = len(self.slots)
        self.arena_of = self.slots // (blue + orange)
        self.team_of = (self.slots % (blue + orange) >= blue).astype(np.intp)

    def cars_of(self, slots: NDArray[Any]) -> NDArray[Any]:
        """Select the slots that have a car: `[A, C, ...]` -> `[N, ...]`."""
        flat = slots.reshape(-1, *slots.shape[2:])
        return flat if self._full else flat[self.slots]

    def all_slots(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Pad with zeros for slots without a car: `[N, ...]` -> `[A * C, ...]`; raise a ValueError for a wrong N."""
        if actions.shape[:1] != (self.num_cars,):
            raise ValueError(
                f"RocketSimPool: actions must have {self.num_cars} rows, one per car, got shape {list(actions.shape)}"
            )
        if self._full:
            return actions
        padded = np.zeros((self.present.size, *actions.shape[1:]), actions.dtype)
        padded[self.slots] = actions
        return padded


class GuestBots(Component):
    """Guests: bots that play some of a pool's cars.

    A guest's controls reach the physics unchanged, whatever the pool's action parser could express: a bot, or an agent
    with another action table, plays here exactly as it does in `envs.matches`.

    Attributes:
        bots: The guests; each is reset for all episodes of the pool, and saved with it.
    """

    def __init__(self, slots: CarSlots) -> None:
        self._slots = slots
        self.bots: tuple[Bot, ...] = ()
        self._who = np.full(slots.num_cars, -1)
        self._controls = RowControls()

    def invite(self, bots: Sequence[Bot]) -> None:
        """Set the guests, before the pool's next `reset`; none of them plays before `seat` is called."""
        self.bots = tuple(check_value("RocketSimPool: a guest", bot, Bot) for bot in bots)
        self.seat(np.full(self._slots.num_cars, -1))

    def seat(self, who: NDArray[np.intp]) -> None:
        """Let guest `who[i]` play car `i` of `[N]` from the next step on; with -1, the pool's action is used."""
        self._who = np.array(who)

    def override_controls(self, controls: Controls, state: GameState) -> Controls:
        """Return the controls of all slots, `[A * C]`, with the guests' choices for the cars that they play."""
        played = np.flatnonzero(self._who >= 0)
        if not len(played):
            return controls
        slots, rows = self._slots.slots[played], controls.rows.copy()
        for guest, bot in enumerate(self.bots):
            own = slots[self._who[played] == guest]
            if len(own):
                name = f"guest {guest} ({type(bot).__name__})"
                rows[own] = compute_controls(bot, state, name).reshape(-1, rows.shape[1])[own]
        rows[slots, ANALOGUE] = np.clip(rows[slots, ANALOGUE], -1, 1)
        rows[slots, BUTTONS] = rows[slots, BUTTONS] > 0.5
        cars = list(controls.cars)
        for slot, car in zip(slots.tolist(), self._controls(rows[slots]).cars, strict=True):
            cars[slot] = car
        return Controls(rows, cars)


def play(
    pool: "RocketSimPool",
    bot: Bot,
    seed: int | None = None,
    change: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
) -> Iterator[GameState]:
    """Reset `pool` and let `bot` play all its cars indefinitely. The pool's components record the game.

    Args:
        pool: Stepped when the next state is requested.
        bot: Plays all cars; reset whenever an episode begins.
        seed: Seed of the reset.
        change: Transforms the bot's actions `[N, ...]` before they are applied.

    Yields:
        `pool.state`, first after the reset, then after every step.
    """
    pool.reset(seed=seed)
    begun = np.ones(pool.num_arenas, np.bool_)
    while True:
        yield pool.state
        if begun.any():
            bot.reset(begun, pool.state)
        actions = bot.actions(pool.state, pool.action_parser)
        pool.step(actions if change is None else change(actions))
        begun = pool.state.episode_ticks == 0
