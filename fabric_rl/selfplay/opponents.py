"""Opponents: a vector environment around a pool that shows only the learners; assignment of opponents to arenas."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from fabric_rl.base.state_schema import CannotBeSavedError, HasState, check_structure
from fabric_rl.ranks.devices import to_device, to_host
from fabric_rl.rollouts.collect import SingleGroup
from fabric_rl.rollouts.rollout import reward_signals
from fabric_rl.rollouts.step_checks import clip_actions, select_rows
from fabric_rl.selfplay.opponent_pool import LATEST, OpponentPool
from fabric_rl.selfplay.policies import SnapshotPolicies
from fabric_rl.types import AgentFactory, EnvFactory, HasGroups, HasGuests, HasSeeds, HasTeams

Array = NDArray[Any]
Rows = NDArray[np.intp]
_STREAM = 0x0990
"""Number that separates this generator from others with the same seed."""
_HANDED_ON = (
    *("headlines", "drain_metrics", "drain_timers", "timers_are_parallel", "finish_videos"),
    *("check_phases", "set_phase", "check_parameters", "set_parameters", "find_symmetry", "enable_teacher"),
)
"""Optional methods of an environment that are passed on, see `fabric_rl.types`."""


class TeamAssignment:
    """Choice of the `N` learners among a pool's `M` sub-environments.

    In a *played* arena, one team learns and the other one is the opponent; elsewhere, all cars learn (mirror play). `N`
    never changes: teams of equal size may change sides between episodes; with unequal teams, the same team of an arena
    always learns, alternately the first and the second from arena to arena.

    Attributes:
        arena_of: `[M]` arena of each sub-environment.
        team_of: `[M]` team of each sub-environment, 0 or 1.
        played: `[A]` bool, True where an opponent plays one of the teams.
        learns: `[A]` team that learns in a played arena.
        learners: `[N]` rows of the pool that learn, in the order of the arenas; `begin` may change them.
        opponent_rows: `[R]` the other rows.
    """

    def __init__(self, arena_of: Rows, team_of: Rows, share: float, fixed_sides: bool = False) -> None:
        """Choose the first learners, with opponents in a `share` (0..1) of the arenas with two teams, evenly spread.

        `arena_of [M]` and `team_of [M]` are arena and team of each sub-environment, see `fabric_rl.types.HasTeams`.
        With `fixed_sides`, no teams change sides.
        """
        arenas = int(arena_of[-1]) + 1
        sizes = np.stack([np.bincount(arena_of[team_of == team], minlength=arenas) for team in (0, 1)], axis=1)
        both = sizes.all(axis=1)
        turn = np.cumsum(both)  # the k-th arena with two teams is played if k * share passes a whole number
        before = np.floor((turn - 1) * share + 1e-9)
        self.played = both & (np.floor(turn * share + 1e-9) > before)
        self._even = (sizes[:, 0] == sizes[:, 1]) & (not fixed_sides)
        self.learns = np.zeros(arenas, np.intp)
        for kind in (self._even, ~self._even):
            self.learns[self.played & kind] = np.arange((self.played & kind).sum()) % 2
        self.arena_of, self.team_of = arena_of, team_of
        self.learners, self.opponent_rows = np.zeros((2, 0), np.intp)
        self._assign()

    def begin(self, arenas: Rows, team: int | None) -> None:
        """Begin episodes in the arenas; `team` learns there or, if None, the team that did not learn before."""
        change = arenas[self.played[arenas] & self._even[arenas]]
        self.learns[change] = 1 - self.learns[change] if team is None else team
        self._assign()

    def load(self, learns: Rows) -> None:
        """Restore the saved `learns`."""
        self.learns[:] = learns
        self._assign()

    def _assign(self) -> None:
        learning = ~self.played[self.arena_of] | (self.team_of == self.learns[self.arena_of])
        self.learners, self.opponent_rows = np.flatnonzero(learning), np.flatnonzero(~learning)


class Pairings:
    """Assignment of opponents to the played arenas: each arena gets the opponent of its slot when an episode begins.

    Attributes:
        slots: `[at_once]` numbers of the opponents for the episodes that begin from now on.
        slot_of: `[A]` slot of each arena.
        opponent: `[A]` number of the opponent that plays in each arena now.
    """

    def __init__(
        self, assignment: TeamAssignment, roster: OpponentPool, at_once: int, rng: np.random.Generator
    ) -> None:
        self.rng, self._assignment, self._roster = rng, assignment, roster
        self.slots = np.full(at_once, LATEST)
        self.opponent = np.full(len(assignment.played), LATEST)
        # Two consecutive played arenas, in which opposite sides learn, have the same opponent.
        self.slot_of = (np.cumsum(assignment.played) - 1) // 2 % at_once

    def swap(self) -> None:
        """Sample a new opponent for every slot."""
        self.slots[:] = [self._roster.sample(self.rng) for _ in self.slots]

    def begin(self, arenas: Rows) -> None:
        """Begin episodes in the arenas."""
        self.opponent[arenas] = self.slots[self.slot_of[arenas]]

    @property
    def playing(self) -> set[int]:
        """Numbers (ids) of the opponents that are playing, or will play from the next episode on."""
        return {*self.opponent[self._assignment.played].tolist(), *self.slots.tolist()}

    def opponents_in(self, rows: slice) -> list[tuple[int, Rows]]:
        """Return the opponents among the pool's `rows`: the number of each, and its rows `[n]`."""
        rivals = self._assignment.opponent_rows
        rivals = rivals[(rivals >= rows.start) & (rivals < rows.stop)]
        number = self.opponent[self._assignment.arena_of[rivals]]
        return [(each, rivals[number == each]) for each in np.unique(number).tolist()]


class Opponents(VectorEnv):
    """Vectorized environment in which opponents play some of the cars; its sub-environments are only the learners.

    In a share of the arenas, a frozen opponent plays one team (see `TeamAssignment`); in the others, all cars learn.
    Each policy computes the actions for all its arenas in one call. An arena gets its opponent when an episode begins,
    from one of `at_once` slots (see `Pairings`). Frozen policies sample actions with torch's global generator, like the
    learner.

    Attributes:
        pool: The wrapped environment.
        results: Results of finished episodes since the list was last cleared: (number of the opponent, score), where
            the score is 1 if the learners won, 0.5 for a draw, and 0 if they lost.
        team: The team that learns in all arenas with opponents and equal teams; None: it changes with every episode.
    """

    def __init__(
        self,
        env: EnvFactory,
        agent: AgentFactory,
        roster: OpponentPool,
        share: float = 1.0,
        at_once: int = 4,
        guests: Sequence[Any] = (),
        team: int | None = None,
        fixed_sides: bool = False,
        seed: int = 0,
    ) -> None:
        """Build the pool.

        Args:
            env: Factory of the pool.
            agent: Factory of the agent whose weights the snapshots of the roster contain.
            roster: Opponents that may play; shared with `SelfPlay`.
            share: Share of the arenas with two teams in which opponents play, 0..1.
            at_once: Maximum number of opponents that play at the same time; each costs one call of a policy per step.
            guests: The players for the roster's guests, for example bots.
            team: Initial value of the attribute `team`.
            fixed_sides: The same team of an arena always learns, even if both have the same size.
            seed: Seed of the pool.

        Raises:
            ValueError: The environment has no teams, or does not support guests.
        """
        self.pool = pool = env(seed=seed)
        name = type(pool).__name__
        sides = pool.sides if isinstance(pool, HasTeams) else None
        if sides is None or len(set(sides[1].tolist())) < 2:
            pool.close()
            raise ValueError(f"--self_play: --env {name} does not have two teams that could play each other")
        if guests and not isinstance(pool, HasGuests):
            pool.close()
            raise ValueError(
                f"--self_play.guests: --env {name} can only have copies of the agent as opponents; scripted bots and "
                "other agents play in an envs.RocketSimPool"
            )
        self.assignment = TeamAssignment(*sides, share, fixed_sides)
        self.num_envs, self.metadata, self.render_mode = len(self.assignment.learners), pool.metadata, None
        self.single_observation_space = obs_space = pool.single_observation_space
        self.single_action_space = pool.single_action_space
        self.observation_space = batch_space(obs_space, self.num_envs)
        self.action_space = batch_space(pool.single_action_space, self.num_envs)
        self.reward_signals = reward_signals(pool)
        self.layout: dict[str, str] = dict(getattr(pool, "layout", {}))
        self.num_seeds = pool.num_seeds if isinstance(pool, HasSeeds) else pool.num_envs
        for method in _HANDED_ON:
            if hasattr(pool, method):
                setattr(self, method, getattr(pool, method))
        self.roster, self.policies = roster, SnapshotPolicies(agent, obs_space, pool.single_action_space)
        self.pairings = Pairings(self.assignment, roster, at_once, np.random.default_rng((_STREAM, seed)))
        self.results: list[tuple[int, float]] = []
        self.team = team
        if guests and isinstance(pool, HasGuests):
            pool.guests.invite(guests)
        self._grouped: HasGroups = pool if isinstance(pool, HasGroups) else SingleGroup(pool)
        self._pool_rows = list(self._grouped.group_rows)
        dtype = np.uint8 if obs_space.dtype == np.uint8 else np.float32
        self._obs: Array = np.zeros((pool.num_envs, *(obs_space.shape or ())), dtype)  # of all sub-environments
        self._mask: Array | None = None
        self._deciding: list[list[tuple[int, Rows]]] = []  # for each group: the opponents whose policies act
        self._assign_policies()

    @property
    def sides(self) -> tuple[Rows, Rows]:
        """Arena and team of each learner, see `fabric_rl.types.HasTeams`; teammates never change, but their side may.

        With equal teams, the learners of an arena are in the same rows on either side.
        """
        learners = self.assignment.learners
        return self.assignment.arena_of[learners], self.assignment.team_of[learners]

    @property
    def inspector(self) -> Any:  # noqa: ANN401 - the pool's
        """The pool's inspector."""
        return self.pool.inspector  # type: ignore[attr-defined]

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Close the pool."""
        self.pool.close()

    def _begin(self, arenas: Rows) -> None:
        self.assignment.begin(arenas, self.team)
        self.pairings.begin(arenas)
        self._assign_policies()

    def _assign_policies(self) -> None:
        """Update which policies act for which rows, after the pairings have changed."""
        guests, who = self.roster.guests, np.full(self.pool.num_envs, -1)
        pairs = [self.pairings.opponents_in(rows) for rows in self._pool_rows]
        self._deciding = [[pair for pair in group if pair[0] not in guests] for group in pairs]
        if guests and isinstance(self.pool, HasGuests):
            for number, rows in (pair for group in pairs for pair in group if pair[0] in guests):
                who[rows] = number
            self.pool.guests.seat(who)
        self.policies.keep_only(self.pairings.playing)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Array, dict[str, Any]]:  # noqa: ANN401
        """Begin new episodes in all arenas."""
        if seed is not None:
            self.pairings.rng = np.random.default_rng((_STREAM, seed))
        obs, infos = self.pool.reset(seed=seed, options=options)
        self._obs[:] = obs
        self._mask = np.array(infos["action_mask"]) if "action_mask" in infos else None
        self.policies.reset_memory(self.pool.num_envs)
        self._begin(np.arange(len(self.assignment.played)))
        learners = self.assignment.learners
        return obs[learners], select_rows(infos, learners, self.pool.num_envs)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step all arenas with the learners' actions."""
        given = self._with_opponents(range(len(self._pool_rows)), self.assignment.learners, actions)
        return self._learners_results(slice(0, self.pool.num_envs), self.pool.step(given))

    @property
    def group_rows(self) -> tuple[slice, ...]:
        """The learners in each of the pool's groups; a single group if the pool has none."""
        ends = [np.searchsorted(self.assignment.learners, (rows.start, rows.stop)).tolist() for rows in self._pool_rows]
        return tuple(slice(*both) for both in ends)

    def step_group(self, group: int, actions: Array) -> None:
        """Start a step of a group without waiting for it, see `fabric_rl.types.HasGroups`."""
        given = self._with_opponents([group], self.assignment.learners[self.group_rows[group]], actions)
        self._grouped.step_group(group, given[self._pool_rows[group]])

    def wait_group(self, group: int) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Return the result of a group's step, see `fabric_rl.types.HasGroups`."""
        return self._learners_results(self._pool_rows[group], self._grouped.wait_group(group))

    @torch.no_grad()
    def _with_opponents(self, groups: Iterable[int], learners: Rows, actions: Array) -> Array:
        """Return actions `[M, ...]`: the learners' actions, and their opponents' actions in the groups."""
        given = np.zeros((self.pool.num_envs, *np.shape(actions)[1:]), np.asarray(actions).dtype)
        given[learners] = actions
        device, chosen = self.policies.device, []
        for number, rows in (pair for group in groups for pair in self._deciding[group]):
            mask = None if self._mask is None else to_device(self._mask[rows], device)
            weights = None if number == LATEST else self.roster.weights(number)
            chosen.append((rows, self.policies.act(number, weights, to_device(self._obs[rows], device), rows, mask)))
        for rows, action in chosen:  # after all calls, to avoid waiting for a GPU in between
            given[rows] = clip_actions(self.single_action_space, to_host(action))
        return given

    def _learners_results(
        self, rows: slice, results: tuple[Array, Array, Array, Array, dict[str, Any]]
    ) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Return the learners' part of a step's results for these rows of the pool; begin the next episodes."""
        obs, reward, terminated, truncated, infos = results
        own, size = slice(*np.searchsorted(self.assignment.learners, (rows.start, rows.stop))), rows.stop - rows.start
        learners = self.assignment.learners[own] - rows.start
        self._obs[rows] = obs
        if self._mask is not None:
            self._mask[rows] = infos["action_mask"]
        done = terminated | truncated
        found = select_rows(infos, learners, size)
        parts = (reward[learners], terminated[learners], truncated[learners])
        if done.any():
            ended = np.unique(self.assignment.arena_of[rows][done])
            if "result" in infos:
                arena_of = self.assignment.arena_of[rows][learners]
                for arena in ended[self.assignment.played[ended]].tolist():  # one learner's result for each
                    score = found["result"][np.searchsorted(arena_of, arena)]
                    self.results.append((int(self.pairings.opponent[arena]), float(score)))
            self.policies.zero_memory(rows.start + np.flatnonzero(done))
            self._begin(ended)
            learners = self.assignment.learners[own] - rows.start
            for name in {"action_mask", "teacher_action", "present"} & infos.keys():  # of the next episodes
                found[name] = np.asarray(infos[name])[learners]
        return obs[learners], *parts, found

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the pool, the pairings, and the opponents' observations and memories.

        Raises:
            CannotBeSavedError: The pool, or a part of it, cannot be saved.
        """
        if not isinstance(self.pool, HasState):
            raise CannotBeSavedError(f"{type(self.pool).__name__} cannot be saved")
        return {"pool": self.pool.state_dict(), **self._own_state()}

    def _own_state(self) -> dict[str, Any]:
        return {
            "learns": self.assignment.learns.copy(),
            "opponent": self.pairings.opponent.copy(),
            "tables": self.pairings.slots.copy(),
            "team": self.team,
            "obs": self._obs.copy(),
            "mask": None if self._mask is None else self._mask.copy(),
            "memory": self.policies.memory.clone(),
            "rng": dict(self.pairings.rng.bit_generator.state),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; raise a ValueError if it belongs to a different pool."""
        if len(state["tables"]) != len(self.pairings.slots):
            raise ValueError(
                f"--self_play.at_once is {len(self.pairings.slots)}, but the saved state has {len(state['tables'])}"
            )
        check_structure(state, self._own_state() | {"team": None}, "it")  # `team_change` may have changed
        self.pairings.rng.bit_generator.state = state["rng"]
        cast(HasState, self.pool).load_state_dict(state["pool"])
        self.pairings.opponent[:], self.pairings.slots[:], self.team = state["opponent"], state["tables"], state["team"]
        self._obs[:] = state["obs"]
        self._mask = None if state["mask"] is None else np.array(state["mask"])
        self.policies.memory.copy_(state["memory"])
        self.assignment.load(state["learns"])
        self._assign_policies()
