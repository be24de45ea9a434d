"""SelfPlay: training against earlier versions of the agent and other opponents."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution

from fabric_rl.base.settings import Between, Count, Share, check_settings
from fabric_rl.base.state_schema import check_structure, state_error_context
from fabric_rl.base.text import did_you_mean
from fabric_rl.callback import Callback, TrainState
from fabric_rl.curricula.phases import Promotion
from fabric_rl.learning.learner import check_weights
from fabric_rl.metrics.log import logger
from fabric_rl.ranks.collectives import all_gather_object
from fabric_rl.ranks.sharding import whole_state
from fabric_rl.selfplay.opponent_pool import (
    LATEST,
    Eviction,
    MostSimilar,
    Oldest,
    OpponentPool,
    Sampling,
    Uniform,
    Weights,
)
from fabric_rl.selfplay.opponents import Opponents
from fabric_rl.selfplay.policies import (
    SnapshotPolicies,
    action_distributions,
    divergence,
    diversity,
    probe_observations,
)
from fabric_rl.types import AgentFactory, EnvFactory, Minibatch, SettingError

_NEVER = -1
_LATER = ("eval/", "sac/")
"""Beginnings of metrics that the first iterations need not measure."""


@dataclass(eq=False, repr=False)
class SelfPlay(Callback):
    """Train against snapshots of the agent and other opponents: `--self_play SelfPlay` (docs/selfplay.md).

    Settings that ML-Agents also has keep its names and meanings. Steps are agent-steps of the run, over all ranks. A
    snapshot or swap that is due during an iteration happens before the next iteration.

    Metrics: `selfplay/rating` (the learner's Elo), `selfplay/win_rate` (its score in the iteration's games against the
    opponent pool; a draw is half a win), `selfplay/opponents`, `selfplay/diversity` (mean KL divergence between the
    snapshots' policies, in nats) and `selfplay/open` (0 until the start conditions in `gate` are met).
    """

    window: Count = 10
    """Maximum number of snapshots in the opponent pool, 1 or more; `guests` are not counted."""
    play_against_latest_model_ratio: Share = 0.5
    """Probability, 0 to 1, that a sampled opponent is the current agent instead of one from the opponent pool."""
    save_steps: Count = 20_000
    """Agent-steps between snapshots, 1 or more; the first snapshot is of the initial agent."""
    swap_steps: Count = 20_000
    """Agent-steps after which new opponents are sampled for the next episodes, 1 or more."""
    team_change: Count | None = None
    """Agent-steps after which the learners of all arenas change sides. Default: each arena changes sides at every
    episode."""
    initial_elo: Annotated[float, Between(0, 1e6)] = 1200.0
    """Initial rating of the learner and of `guests`, 0 to 1,000,000; a snapshot starts with the learner's rating."""
    elo_k: Annotated[float, Between(0, 1e6)] = 16.0
    """Maximum change of a rating by one game (the K-factor of Elo)."""
    share: Share = 1.0
    """Share of the arenas with an opponent, 0 to 1; in the others all cars learn."""
    at_once: Annotated[int, Between(1, 10_000)] = 4
    """Opponent slots: the maximum number of different opponents that play at the same time on a rank, 1 to 10,000. Each
    one costs a little time."""
    sampling: Sampling = Uniform()  # noqa: RUF009 - has no state
    """Rule that samples opponents from the opponent pool."""
    eviction: Eviction = Oldest()  # noqa: RUF009 - has no state
    """Rule that removes a snapshot when there are more than `window`."""
    min_kl: Annotated[float, Between(0, 1e6)] = 0.0
    """Minimum KL divergence, in nats, between the policies of a new snapshot and of every snapshot in the opponent
    pool, on observations of the last rollout; snapshots below it do not join. 0: all join."""
    guests: Sequence[str] = ()
    """External opponents: bots (chaser, shooter...), class paths of bots, or trained agents by run id or path, as in
    `fabric-rl evaluate`."""
    gate: Sequence[Promotion] = ()
    """Start conditions: skills that the agent needs first. Until then it plays against its current policy."""
    force: bool = False
    """Start at once, even if the conditions in `gate` are not met."""

    def __post_init__(self) -> None:
        check_settings(self)
        if twins := [name for name in self.guests if self.guests.count(name) > 1]:
            raise ValueError(f"SelfPlay: --self_play.guests names {twins[0]} twice")
        rules = (self.play_against_latest_model_ratio, self.sampling, self.eviction, self.initial_elo, self.elo_k)
        self.roster = OpponentPool(self.window, *rules, self.guests)
        self._agent: AgentFactory | None = None
        self._streaks = [0] * len(self.gate)
        self._saved_at = self._swapped_at = _NEVER
        self._diversity: float | None = None
        self._probe: tuple[Tensor, Tensor | None] | None = None

    def around(
        self, env: EnvFactory, agent: AgentFactory, bots: Sequence[Any] = (), fixed_sides: bool = False
    ) -> EnvFactory:
        """Return the factory of an environment with opponents, for `fabric_rl.train`.

        Also pass this object to `fabric_rl.train` as a callback.

        Args:
            env: Factory of a pool with teams, see `fabric_rl.types.HasTeams`.
            agent: Factory of the learning agent, also used for its snapshots.
            bots: The players named in `guests`, in the same order: `envs.bots.Bot` for a `RocketSimPool`.
            fixed_sides: Let the same team of an arena always learn: blue in one arena, orange in the next.
        """
        if len(bots) != len(self.guests):
            raise ValueError(f"SelfPlay: guests names {len(self.guests)} players, but around() was given {len(bots)}")
        self._agent = agent
        unfit = {"team_change": self.team_change, "min_kl": self.min_kl}
        unfit["eviction MostSimilar"] = isinstance(self.eviction, MostSimilar)
        if fixed_sides and any(unfit.values()):
            flag = f"--self_play.{next(name for name, value in unfit.items() if value)}"
            raise ValueError(f"SelfPlay: {flag} does not work with agents.RolesAgent, whose roles keep sides; omit it")
        team = None if self.team_change is None else 0
        return partial(Opponents, env, agent, self.roster, self.share, self.at_once, bots, team, fixed_sides)

    @property
    def open(self) -> bool:
        """True if self-play has begun, that is, the start conditions in `gate` are met or skipped."""
        held = all(streak >= skill.for_iterations for streak, skill in zip(self._streaks, self.gate, strict=True))
        return held or self.force or self._saved_at != _NEVER

    def on_train_start(self, state: TrainState) -> None:
        """Check the opponent pool of a resumed run.

        Raises:
            ValueError: The environment was not built with `around`, a snapshot belongs to a different agent, or
                `min_kl` is set for an agent whose policies cannot be compared.
        """
        if self._agent is None or not (isinstance(state.env, Opponents) or state.args.num_players):
            raise ValueError("SelfPlay: pass the result of around(env, agent) to fabric_rl.train, or use --self_play")
        obs_space = state.env.single_observation_space
        self._state = state
        self._comparison_policy = SnapshotPolicies(self._agent, obs_space, state.env.single_action_space)
        self._comparison_policy.to(state.fabric.device)
        self._policy(torch.zeros(1, *(obs_space.shape or ()), device=state.fabric.device))
        for each in self.roster.opponents:
            if each.weights is not None:
                try:
                    check_weights(each.weights, self._comparison_policy.of(LATEST, None))
                except ValueError as error:
                    raise ValueError(f"--self_play: the opponent pool's snapshot of {each.name}: {error}") from error
        if self._probe is not None:
            with state_error_context("the part of the last rollout that --self_play saved"):
                obs, mask = self._probe
                self._probe = obs.to(state.fabric.device), None if mask is None else mask.to(state.fabric.device)
                self._policy(*self._probe)
        if isinstance(state.env, Opponents):
            state.env.policies.to(state.fabric.device)
            played = int(state.env.assignment.played.sum())
            if self.at_once > max(different := (played + 1) // 2, 4):  # the default
                most = f"only {different} opponents can play in {played} arenas, because each plays in two"
                warnings.warn(f"--self_play.at_once {self.at_once}: {most}", RuntimeWarning, stacklevel=2)
        if state.fabric.is_global_zero:
            gate = " and ".join(f"{skill.metric} of {skill.at_least:g}" for skill in self.gate)
            waits = "" if self.open else f"; until the agent reaches {gate}, it plays against its current policy"
            whom = [f"up to {self.window} snapshots ({len(self.roster.snapshots)} so far)", *self.guests]
            logger.info("self-play against %s%s", ", ".join(whom), waits)

    def on_iteration_start(self, state: TrainState) -> None:
        """Update the current agent's copy; take a snapshot, sample opponents and change sides if they are due."""
        weights: Weights = whole_state(state.agent.state_dict(), keep=True)
        env = state.env if isinstance(state.env, Opponents) else None
        if env is not None:
            env.policies.refresh(weights, float(state.agent.progress))
            env.team = None if self.team_change is None else state.steps // self.team_change % 2
        if not self.open:
            return
        if _is_due(self._saved_at, state.steps, self.save_steps):
            if self._saved_at == _NEVER and self.gate and state.fabric.is_global_zero:
                logger.info("self-play begins after %s steps", f"{state.steps:,}")
            self._maybe_add_snapshot(state, weights)
            self._saved_at = state.steps
        if _is_due(self._swapped_at, state.steps, self.swap_steps):
            self._swapped_at = state.steps
            if env is not None:
                env.pairings.swap()

    def on_learn_start(self, state: TrainState) -> Minibatch | None:
        """Store observations on which to compare the next snapshot, the same on all ranks."""
        if state.batch is not None and _is_due(
            self._saved_at, state.steps + state.steps_per_iteration, self.save_steps
        ):
            obs, mask = state.fabric.broadcast(probe_observations(state.batch))
            self._probe = (obs.to(state.fabric.device), None if mask is None else mask.to(state.fabric.device))
        return None

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Update the ratings with the results of all ranks, and return the metrics, the same on every rank."""
        env = self._state.env if isinstance(self._state.env, Opponents) else None
        mine = ([], set()) if env is None else (list(env.results), env.pairings.playing)
        if env is not None:
            env.results.clear()
        everyone = all_gather_object(self._state.fabric, mine)
        results = [result for found, _ in everyone for result in found]
        self.roster.record_results(results)
        scores = [score for number, score in results if number in self.roster.numbers]
        self.roster.remove_retired(set().union(*(playing for _, playing in everyone)))
        found = {
            "selfplay/open": (float(self.open), 1.0),
            "selfplay/rating": (self.roster.rating, 1.0),
            "selfplay/opponents": (float(len(self.roster.active)), 1.0),
        }
        if scores:
            found["selfplay/win_rate"] = sum(scores), float(len(scores))
        if self._diversity is not None:
            found["selfplay/diversity"] = self._diversity, 1.0
        return found

    def on_iteration_end(self, state: TrainState) -> None:
        """Check the start conditions.

        Raises:
            SettingError: `gate` names a metric that is never measured.
        """
        if self.open:
            return
        streaks = [skill.streak(n, state.metrics) for skill, n in zip(self.gate, self._streaks, strict=True)]
        # Only rank 0 has all metrics.
        measured, self._streaks = state.fabric.broadcast(({*state.metrics, *state.sums}, streaks))
        for skill in self.gate:
            if skill.metric not in measured and not skill.metric.startswith(_LATER):
                hint = did_you_mean(skill.metric, sorted(measured))
                raise SettingError(f"--self_play.gate: nothing measures {skill.metric}{hint}")

    def _maybe_add_snapshot(self, state: TrainState, weights: Weights) -> None:
        """Add a snapshot to the pool, unless it acts too similarly to one that is already there."""
        snapshots = self.roster.snapshots
        apart = self._divergence(state, [*(each.weights or {} for each in snapshots), weights])
        if apart is None or min(apart[-1, :-1]) >= self.min_kl:
            snapshot = {name: x.detach().cpu().clone() for name, x in weights.items()}
            self.roster.add_snapshot(state.steps, snapshot, apart)
            snapshots = [*snapshots, self.roster.opponents[-1]]
        if apart is not None:
            kept = [at for at, each in enumerate(snapshots) if not each.retired]
            self._diversity = diversity(apart[np.ix_(kept, kept)])

    def _divergence(self, state: TrainState, everyone: Sequence[Weights]) -> NDArray[np.float64] | None:
        """Return the `divergence` of all weights, the same on all ranks; None without policies or observations."""
        if self._probe is None or len(everyone) < 2:
            return None
        policies = []
        for weights in everyone:
            self._comparison_policy.refresh(weights)
            policies.append(self._policy(*self._probe))
        found = [each for each in policies if each is not None]
        apart: NDArray[np.float64] | None = state.fabric.broadcast(divergence(found) if found else None)
        return apart

    def _policy(self, obs: Tensor, mask: Tensor | None = None) -> list[Distribution] | None:
        """Return the judge's distributions; raise a ValueError if `min_kl` needs them and the agent has none."""
        judge = self._comparison_policy.of(LATEST, None)
        found = action_distributions(judge, obs, mask)
        if self.min_kl and found is None:
            raise ValueError(
                f"--self_play.min_kl: policies of --agent {type(judge).__name__} cannot be compared: it has no "
                "distributions with a torch.distributions.kl_divergence (fabric_rl.types.ActorCritic); leave min_kl out"
            )
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "roster": self.roster.state_dict(),
            "streaks": list(self._streaks),
            "saved_at": self._saved_at,
            "swapped_at": self._swapped_at,
            "diversity": self._diversity,
            "probe": None if self._probe is None else list(self._probe),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Raises:
            ValueError: Self-play had begun, but the opponent pool is empty; or the state is malformed.
        """
        check_structure(state, self.state_dict(), "it")
        self.roster.load_state_dict(state["roster"])
        if state["saved_at"] != _NEVER and not self.roster.snapshots:
            raise ValueError("its pool of opponents is empty")
        if len(state["streaks"]) == len(self.gate):
            self._streaks = list(state["streaks"])
        self._saved_at, self._swapped_at = state["saved_at"], state["swapped_at"]
        self._diversity = state["diversity"]
        self._probe = None if state["probe"] is None else (state["probe"][0], state["probe"][1])


def _is_due(last: int, steps: int, interval: int) -> bool:
    """Return True if a multiple of `interval` lies between `last` and `steps`, or if `last` is `_NEVER`."""
    return last == _NEVER or steps // interval != last // interval
