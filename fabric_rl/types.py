"""Contracts between the framework, the agents and the environments."""

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from lightning import LightningModule
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Distribution

from fabric_rl.base.symmetry import Symmetry

ProbeSink = Callable[[NDArray[np.float32], NDArray[np.float32] | None], None]
"""Function that receives the values `[N]` of an agent's observations, and its action probabilities `[N, n]` or None."""
PolicyMaker = Callable[[ProbeSink], Callable[..., NDArray[Any]]]
"""Function that creates a policy (see `fabric_rl.runs.trained.policy`) from a `ProbeSink`."""
Stats = dict[str, Tensor]
"""Named scalars of one minibatch, detached and on the agent's device."""


class ActOutput(NamedTuple):
    """An agent's output for a batch of `N` observations."""

    action: Tensor
    """`[N, ...]` in the format of the action space: int64 for discrete actions, float32 for a Box. Actions outside of a
    Box are clipped before they reach the environment; `log_prob` is for the unclipped action."""
    log_prob: Tensor
    """`[N]` float32, log-probability of `action`."""
    value: Tensor | None = None
    """`[N]` float32, value of the observation; `[N, K]` for an agent with K > 1 value heads. None: the trainer calls
    `value` for the whole rollout afterwards, which is faster if the value function shares no layers with the policy."""
    state: Tensor | None = None
    """`[N, M]` memory of the agent after this step, or None for an agent without memory."""


class Minibatch(NamedTuple):
    """`B` steps of experience, all tensors on the agent's device.

    For an agent with memory, or with a `sequence_length` L above 1, a minibatch consists of `S` sequences of L steps in
    chronological order: `[L, S, ...]` in place of `[B, ...]`. The fields from `reward` on are None unless the agent
    names them in `minibatch_fields`.
    """

    obs: Tensor
    """`[B, ...]` observations, float32, or uint8 if the observation space is uint8 (pixels)."""
    action: Tensor
    """`[B, ...]` actions as returned by `act`."""
    log_prob: Tensor
    """`[B]` log-probabilities of the actions under the policy that collected the steps."""
    value: Tensor
    """`[B]` (or `[B, K]`) values estimated when the rollout was collected."""
    advantage: Tensor
    """`[B]` advantages, summed over the reward signals, normalized if `TrainArgs.normalize_advantages` is True."""
    returns: Tensor
    """`[B]` (or `[B, K]`) regression targets of the value function."""
    action_mask: Tensor | None = None
    """`[B, n]` bool, True where an action was allowed; None if the environment provides no masks."""
    state: Tensor | None = None
    """`[S, M]` memory before each sequence (before its burn-in, if any); for an `OffPolicyAgent`, `[B, M]` per step."""
    episode_start: Tensor | None = None
    """`[L, S]` bool, True for the first step of an episode; the memory is zeroed before it."""
    burn_in_obs: Tensor | None = None
    """`[P, S, ...]` observations of the P = `burn_in` steps before each sequence, or None if P is 0."""
    burn_in_start: Tensor | None = None
    """`[P, S]` bool, `episode_start` of the burn-in steps."""
    reward: Tensor | None = None
    """`[B]` (or `[B, K]`) rewards as used for learning: scaled with `--standardize_returns`."""
    next_value: Tensor | None = None
    """`[B]` (or `[B, K]`) value of the true next state of the same episode; undefined where `terminated`."""
    terminated: Tensor | None = None
    """`[B]` bool, True if the episode terminated with this step."""
    done: Tensor | None = None
    """`[B]` bool, True if the episode terminated or was truncated with this step."""
    time: Tensor | None = None
    """`[B]` int64, index of the step in its rollout, 0..T-1."""
    sub_env: Tensor | None = None
    """`[B]` int64, index of the sub-environment on this rank, 0..N-1."""
    next_obs: Tensor | None = None
    """`[B, ...]` true next observation of the same episode, also at the end of the episode."""
    teacher_action: Tensor | None = None
    """`[B, ...]` actions that the environment's teacher would take, in the format of `action`."""
    next_action_mask: Tensor | None = None
    """`[B, n]` bool, action mask of `next_obs`; where the episode was truncated, the mask of this step instead."""
    team_obs: Tensor | None = None
    """`[B, M, ...]` observations of the agent and its teammates, its own first; M is the size of the largest team."""
    team_action: Tensor | None = None
    """`[B, M, ...]` their actions, in the same order and in the format of `action`."""
    team_present: Tensor | None = None
    """`[B, M]` bool, False for agents that have left the episode and, in smaller teams, for missing ones."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "Minibatch":
        """Return a minibatch with `function` applied to every tensor."""
        return Minibatch(*(None if x is None else function(x) for x in self))  # type: ignore[arg-type]  # None stays None


MINIBATCH_FIELDS = (
    *("reward", "next_value", "terminated", "done", "time", "sub_env", "next_obs", "next_action_mask"),
    *("teacher_action", "team_obs", "team_action", "team_present"),
)
"""Optional fields of `Minibatch`, which an agent can request."""


class ActorCritic(LightningModule):
    """Base class of all agents: an actor-critic that `fabric_rl.train` can train.

    A subclass takes the observation and action space of *one* sub-environment and its own hyperparameters, and
    implements `act`, `value`, `training_step` and `configure_optimizers`. It never sees an environment. Rollouts call
    `act` on the agent itself; only `training_step` uses Fabric's wrapper, so gradients synchronize once per step.

    Attributes:
        value_heads: K, the number of reward signals; each has a value head and a discount factor.
        memory_size: M, size of the memory `state [N, M]`, which is zeroed when an episode begins; 0: no memory.
        sequence_length: L, steps per training sequence, for agents with memory and others that need consecutive steps;
            it must divide `TrainArgs.num_steps`, and the batch size of an `OffPolicyAgent`.
        burn_in: P, steps before each sequence that only refresh the memory.
        minibatch_fields: Names from `MINIBATCH_FIELDS` that the minibatches must contain.
        progress: 0-dim float32, fraction of the training that is done, 0..1, for schedules; updated by the trainer.
        algorithm: First part of the names of the agent's metrics, `<algorithm>/<name>`.
        training_loop: Function that trains the agent, with the arguments of `fabric_rl.train`, or for an
            `OffPolicyAgent` those of `fabric_rl.train_off_policy`. None: that function itself.
    """

    algorithm: ClassVar[str] = "ppo"
    training_loop: ClassVar[Callable[..., dict[str, Any]] | None] = None
    value_heads: int = 1
    memory_size: int = 0
    sequence_length: int = 1
    burn_in: int = 0
    minibatch_fields: Sequence[str] = ()
    progress: Tensor

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.progress = torch.zeros(())  # not a buffer: DDP would broadcast it before every step

    @property
    def learns_sequences(self) -> bool:
        """True if the agent's minibatches are sequences `[L, S, ...]`."""
        return self.memory_size > 0 or self.sequence_length > 1

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        """Choose actions for `obs [N, ...]`: sample them, or take the most likely ones if `deterministic`.

        Only agents with memory get `state [N, M]`; `action_mask [N, n]` (True = allowed) only if actions are masked.
        """
        raise NotImplementedError

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """Return the values of `obs [N, ...]`, `[N]` (or `[N, K]`) float32; `state` is the memory before the step."""
        raise NotImplementedError

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        """Return action probabilities `[N, n]` float32 for the viewer, or None if actions are not numbered 0..n-1."""
        return None

    def distributions(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> list[Distribution]:
        """Return the distributions that `act` samples from: one for all rows, or one per role."""
        return []

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # Fabric allows it
        """Return the loss (a scalar with its graph) and named statistics for the log."""
        raise NotImplementedError

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return one optimizer for all parameters. Its learning rates are the initial ones of the schedule."""
        raise NotImplementedError


class TeamAgent(ActorCritic):
    """Base class of agents without memory whose critic sees the whole team; the environment has teams (`HasTeams`).

    The trainer calls `team_value` for the values of a rollout and, unless `--estimator` is set, takes the advantages
    from `fabric_rl.CounterfactualAdvantage`. `value` is only used to display values.
    """

    minibatch_fields = ("team_obs", "team_action", "team_present")

    def team_value(self, obs: Tensor, present: Tensor) -> Tensor:
        """Return the values `[B]` (or `[B, K]`), float32, of teams with the observations `obs [B, M, ...]`.

        `present [B, M]` is False for agents that do not count; it may be False for all agents of a team.
        """
        raise NotImplementedError

    def baseline(self, obs: Tensor, action: Tensor, present: Tensor) -> Tensor:
        """Return the expected return if the first agent of each team acts by the policy, and the others as they did.

        Args:
            obs: `[B, M, ...]` observations of the teams.
            action: `[B, M, ...]` actions; those of the first agents do not matter.
            present: `[B, M]` bool, as in `team_value`; the first agents always count.

        Returns:
            `[B]` (or `[B, K]`) float32.
        """
        raise NotImplementedError


class Sequences(NamedTuple):
    """Observations of replayed steps: S sequences of G observations in chronological order.

    The last step of a truncated episode is followed by the episode's last observation, then by the next episode, so the
    next observation of every step comes right after it. Sequences with fewer truncations are padded with zeros.
    """

    obs: Tensor
    """`[G, S, ...]`."""
    episode_start: Tensor
    """`[G, S]` bool, memory is zeroed before the observation."""
    now: Tensor
    """`[B]` int64, index in `obs.flatten(0, 1)` of the observation of each step."""
    after: Tensor
    """`[B]` int64, index of the `next_obs` of each step."""
    state: Tensor | None = None
    """`[S, M]` memory before the first observation (of the burn-in, if any), as it was during collection."""
    burn_in_obs: Tensor | None = None
    """`[P, S, ...]` observations of the burn-in, or None if `burn_in` is 0."""
    burn_in_start: Tensor | None = None
    """`[P, S]` bool, `episode_start` of the burn-in."""


class Transitions(NamedTuple):
    """`B` replayed transitions, all tensors on the agent's device. With n-step returns, each covers up to n steps."""

    obs: Tensor
    """`[B, ...]` observations, as in `Minibatch`."""
    action: Tensor
    """`[B, ...]` actions as returned by `act`."""
    reward: Tensor
    """`[B]` float32, sum of the rewards of the transition's steps, discounted; `[B, K]` for K reward signals."""
    next_obs: Tensor
    """`[B, ...]` true observation of the same episode after the steps; if it terminated, the first one of the next."""
    discount: Tensor
    """Factor for the value of `next_obs`, same shape as `reward`: gamma to the power of the number of steps, or 0 where
    the episode terminated (except for a signal whose returns do not end with the episode)."""
    action_mask: Tensor | None = None
    """`[B, n]` bool, or None if the environment provides no masks."""
    next_action_mask: Tensor | None = None
    """`[B, n]` bool, action mask of `next_obs`."""
    weight: Tensor | None = None
    """`[B]` float32, weight of each transition in the critics' loss, or None for equal weights."""
    sequences: Sequences | None = None
    """For an agent with memory, or with `sequence_length` L above 1: its sequences; the steps are `[L, S]`, flat."""
    part: str | None = None
    """The part that learns, see `OffPolicyAgent.update_parts`; None: all."""


class OffPolicyAgent(ActorCritic):
    """Base class of agents that learn from replayed steps, see `fabric_rl.train_off_policy`.

    `training_step` gets `Transitions` and returns a loss and statistics. `value` is only used to display values.
    If `update_parts` names parts, the trainer calls it once for each, with its name in `minibatch.part`.

    Attributes:
        acts_at_random: If True, `act` samples (allowed) actions uniformly, unless `deterministic`. Set by the trainer.
        holds_actions: If True, each sub-environment repeats its first action of a rollout. Set by the trainer.
    """

    algorithm = "sac"
    minibatch_fields = ("reward", "terminated", "done", "next_obs", "next_action_mask")
    acts_at_random: bool = False
    holds_actions: bool = False

    def training_step(self, minibatch: Transitions) -> tuple[Tensor, Stats]:  # type: ignore[override]  # see there
        """Return loss and statistics (see `ActorCritic`); `td_error` may be `[B]`, for `--per_alpha` to sample by."""
        raise NotImplementedError

    def update_parts(self) -> dict[str, list[nn.Parameter]]:
        """Return the parameters of parts that learn one after another from the same minibatch; {}: all at once.

        It is called before training only. Each parameter that learns belongs to exactly one part; its gradients from
        the losses of the others are dropped. A part rests in an update if `training_step` returns a loss without a
        gradient, but not in the first one, and on all ranks at once: decide by a count, not by the minibatch.
        """
        return {}

    def update_targets(self, tau: float) -> None:
        """Update all target networks after each update, in `no_grad`: `target += tau (network - target)`."""
        raise NotImplementedError


def learning_parts(agent: OffPolicyAgent) -> dict[str, list[nn.Parameter]]:
    """Return the parts of an agent that have parameters to learn; a frozen part is left out."""
    parts = {name: list(own) for name, own in agent.update_parts().items()}
    return {name: own for name, own in parts.items() if any(p.requires_grad for p in own)}


@runtime_checkable
class HasRoles(Protocol):
    """An agent that consists of one agent per role; the last column of its observations is the number of the role."""

    roles: nn.ModuleDict
    """Role name -> agent for observations without that column, in the order of the numbers."""


def set_progress(agent: LightningModule, progress: float) -> None:
    """Set `progress` of an agent and of the agents in it."""
    for module in agent.modules():
        if isinstance(module, ActorCritic):
            module.progress.fill_(progress)


def accepts_action_mask(agent: ActorCritic) -> bool:
    """Return True if the agent's `act` accepts an `action_mask`; otherwise it is not given one."""
    parameters = inspect.signature(agent.act).parameters.values()
    return any(p.name == "action_mask" or p.kind is p.VAR_KEYWORD for p in parameters)


class AgentFactory(Protocol):
    """Builds the agent from the spaces of one sub-environment: an agent class, or a partial of one."""

    def __call__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> LightningModule:
        """Build the agent; the weights come from torch's global generator."""


class EnvFactory(Protocol):
    """Builds this rank's environment: a VectorEnv class, or a partial of one."""

    def __call__(self, *, seed: int) -> VectorEnv:
        """Build the environment; `reset(seed=...)` is called next."""


@runtime_checkable
class HasMetrics(Protocol):
    """An environment that reports its own metrics."""

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return name -> (sum, count) since the last call, with the same names on every call and every rank."""


@runtime_checkable
class HasHeadlines(Protocol):
    """An environment that names its most important metrics."""

    @property
    def headlines(self) -> Mapping[str, str]:
        """Metric -> short label. The console shows these metrics; the summary has their first and last values."""


@runtime_checkable
class HasEpisodeFigures(Protocol):
    """An environment that knows figures of single episodes, such as success."""

    def episode_figures(self, sub_env: int) -> Mapping[str, float]:
        """Return label -> value of the last episode that ended in a sub-environment."""


@runtime_checkable
class HasVideos(Protocol):
    """An environment that records videos while it is stepped."""

    def finish_videos(self) -> None:
        """Wait until the videos of finished episodes are written."""


@runtime_checkable
class RecordsGames(Protocol):
    """An environment's `inspector` that lets a policy play games for people to watch, in a separate environment."""

    game_suffix: str
    """File extension of recorded games."""

    def record_game(
        self, policy: PolicyMaker, sink: BinaryIO, title: str, seconds: float, seed: int
    ) -> Generator[float, None, None]:
        """Write a game with a title and length to `sink`, one step per `next`; closing the generator ends the game.

        Yields:
            Seconds played so far.
        """


@runtime_checkable
class HasTimers(Protocol):
    """An environment that measures where its time goes."""

    def drain_timers(self) -> dict[str, tuple[float, int]]:
        """Return name -> (seconds, number of measurements) since the last call."""


@runtime_checkable
class HasGroups(Protocol):
    """An environment whose groups can be stepped separately, so that one is stepped while others wait."""

    @property
    def group_rows(self) -> Sequence[slice]:
        """The sub-environments of each group, in order and without gaps."""

    def step_group(self, group: int, actions: NDArray[Any]) -> None:
        """Start a step of a group with `actions [n, ...]`, without waiting for its end."""

    def wait_group(self, group: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Wait for the step and return the result of `step` for the `n` sub-environments of the group."""


@runtime_checkable
class HasSeeds(Protocol):
    """An environment whose `reset(seed=s)` does not use exactly one seed per sub-environment."""

    @property
    def num_seeds(self) -> int:
        """Number of seeds: `reset(seed=s)` uses `s, s + 1, ..., s + num_seeds - 1`."""


@runtime_checkable
class HasRewardSignals(Protocol):
    """An environment with several reward signals, each with its own value head and discount factor."""

    @property
    def reward_signals(self) -> tuple[str, ...]:
        """Names of the K signals. `infos["reward_signals"]` of `step` is `[N, K]` float32; its sum is the reward."""


@runtime_checkable
class HasPhases(Protocol):
    """An environment whose rewards and initial states change with the phase of training."""

    def check_phases(self, names: Sequence[str]) -> None:
        """Raise ValueError unless the environment has exactly the phases `names`."""

    def set_phase(self, name: str, number: int) -> None:
        """Switch to the phase `name`, which has the number `number` (from 1); do nothing if it is the current phase."""


@runtime_checkable
class HasTeams(Protocol):
    """An environment whose sub-environments are players of one or two teams per arena.

    Self-play needs two teams, and a `TeamAgent` at least one. All players of an arena begin and end their episodes
    together. On a step that ends episodes, `infos["result"]` is `[N]` float32, valid where `infos["_final_obs"]`: 1 for
    players that won, 0 for players that lost, 0.5 for a draw. Only self-play needs it.

    A player that leaves the episode before the others keeps its row, with any observation: `infos["present"]` of
    `reset` and `step` is `[N]` bool, False where the player of the returned observation has left. Its actions then have
    no effect, and a `TeamAgent` does not learn from them.
    """

    @property
    def sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """`[N]` the arena of each sub-environment, 0, 1, 2... in order, and `[N]` its team, 0 or 1; None: no teams."""


class Guests(Protocol):
    """Interface that lets other players, for example scripted bots, play some of the sub-environments."""

    def invite(self, bots: Sequence[Any]) -> None:
        """Add the bots before the next `reset`; the environment steps, resets and saves them."""

    def seat(self, who: NDArray[np.intp]) -> None:
        """Let `bots[who[i]]` control sub-environment `i` from the next step on; -1: the given action is used."""


@runtime_checkable
class HasGuests(Protocol):
    """An environment that can have guests."""

    @property
    def guests(self) -> Guests:
        """Interface to add guests and to choose what they play."""


ParameterValue = float | Sequence[float]
"""Value of an environment parameter: a number, or [min, max] to sample from repeatedly."""


@runtime_checkable
class HasSymmetry(Protocol):
    """An environment that can be reflected, as needed for `fabric_rl.callbacks.SymmetryAugmentation`."""

    def find_symmetry(self) -> Symmetry | str | None:
        """Return the reflection, or the reason why there is none."""


@runtime_checkable
class HasParameters(Protocol):
    """An environment with parameters that lessons can set."""

    def check_parameters(self, values: Mapping[str, ParameterValue]) -> None:
        """Raise a ValueError that names the known parameters unless these values can be set."""

    def set_parameters(self, values: Mapping[str, ParameterValue]) -> None:
        """Set exactly these values instead of sampled ones; other parameters return to the environment's own values.

        Setting the same values again changes nothing. A saved environment includes the set values.
        """


@runtime_checkable
class HasTeacher(Protocol):
    """An environment whose infos can contain the actions of a teacher, as `teacher_action`."""

    def enable_teacher(self, enabled: bool) -> None:
        """Compute these actions from the next `reset` on, or save the time because the agent does not use them."""


@runtime_checkable
class RemoteError(Protocol):
    """An error in another process, such as an environment's worker.

    The message is one complete line; the cause contains the traceback of that process.
    """

    failed_in: str
    """Function that failed, as in `MyEnv.step() (my_env.py, line 12)`."""


class CheckpointError(ValueError):
    """A checkpoint cannot be written or read; the message names the file and the problem in one line."""


class SettingError(ValueError):
    """A setting that turned out to be wrong only during training; the message names its flag."""


class NonFiniteError(RuntimeError):
    """NaN or infinity in training; the message says where, and which file was saved."""
