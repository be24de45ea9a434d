"""The contracts between the framework, the agents and the environments."""

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from lightning import LightningModule
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution

from fabric_rl.sac.sequences import Sequences

Tell = Callable[[NDArray[np.float32], NDArray[np.float32] | None], None]
"""Is told the values `[N]` of what an agent sees, and the probabilities `[N, n]` of its actions if it has them."""
PolicyMaker = Callable[[Tell], Callable[..., NDArray[Any]]]
"""Makes a policy (see `fabric_rl.runs.trained.policy`) with what it is to tell."""
Stats = dict[str, Tensor]
"""Named scalars of one minibatch, detached and on the agent's device."""


class ActOutput(NamedTuple):
    """An agent's output for a batch of `N` observations."""

    action: Tensor
    """`[N, ...]` as the action space wants it: int64 for discrete actions, float32 for a Box. Actions outside of a Box
    are clipped on their way to the environment; `log_prob` is that of the action as returned."""
    log_prob: Tensor
    """`[N]` float32, log-probability of `action`."""
    value: Tensor | None = None
    """`[N]` float32, value of the observation; `[N, K]` for an agent with K > 1 value heads. None: the trainer asks
    `value` for the whole rollout afterwards, which is faster for networks that share nothing with the policy."""
    state: Tensor | None = None
    """The agent's memory after this step, `[N, M]`, or None for an agent without memory."""


class Minibatch(NamedTuple):
    """`B` steps of experience, all tensors on the agent's device.

    An agent with memory, or with a `sequence_length` L above 1, gets `S` sequences of L steps instead, in the order of
    time: `[L, S, ...]` wherever `[B, ...]` is written. The last fields come to agents that name them in
    `minibatch_fields`, and are None for others.
    """

    obs: Tensor
    """`[B, ...]` float32, or uint8 where the observation space is uint8 (pixels)."""
    action: Tensor
    """`[B, ...]` as `act` returned it."""
    log_prob: Tensor
    """`[B]` under the policy that collected the step."""
    value: Tensor
    """`[B]` (or `[B, K]`) estimated when the rollout was collected."""
    advantage: Tensor
    """`[B]`, summed over the reward signals, normalised if `TrainArgs.normalize_advantages`."""
    returns: Tensor
    """`[B]` (or `[B, K]`) regression target of the value function."""
    action_mask: Tensor | None = None
    """`[B, n]` bool, True where an action was allowed; None if the environment gives no masks."""
    state: Tensor | None = None
    """`[S, M]` memory before each sequence (before its burn-in, if any); of an `OffPolicyAgent` `[B, M]`, each step."""
    episode_start: Tensor | None = None
    """`[L, S]` bool: the step is the first one of its episode, memory is zeroed before it."""
    burn_in_obs: Tensor | None = None
    """`[P, S, ...]` the P = `burn_in` steps before each sequence, or None if P is 0."""
    burn_in_start: Tensor | None = None
    """`[P, S]` bool, their `episode_start`."""
    reward: Tensor | None = None
    """`[B]` (or `[B, K]`) what was learned from: scaled with `--standardize_returns`."""
    next_value: Tensor | None = None
    """`[B]` (or `[B, K]`) value of the same episode's true next state; means nothing where `terminated`."""
    terminated: Tensor | None = None
    """`[B]` bool, the episode ended for good with the step."""
    done: Tensor | None = None
    """`[B]` bool, it ended, for good or by truncation."""
    time: Tensor | None = None
    """`[B]` int64, the step's place in its rollout, 0..T-1."""
    sub_env: Tensor | None = None
    """`[B]` int64, the sub-environment of this rank that it comes from, 0..N-1."""
    next_obs: Tensor | None = None
    """`[B, ...]` the same episode's true next observation, also where it ended."""
    next_action_mask: Tensor | None = None
    """`[B, n]` bool, what is allowed there; of a truncated episode's last one, which has no mask, what was before."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "Minibatch":
        """Applies `function` to every tensor."""
        return Minibatch(*(None if x is None else function(x) for x in self))  # type: ignore[arg-type]  # None stays None


MINIBATCH_FIELDS = ("reward", "next_value", "terminated", "done", "time", "sub_env", "next_obs", "next_action_mask")
"""What an agent may ask for beside the other fields of `Minibatch`."""


class ActorCritic(LightningModule):
    """Base of all agents: an actor-critic that `fabric_rl.train` can train.

    A subclass takes the observation and action space of *one* sub-environment and its own hyperparameters, and
    implements four of the methods below. It never sees an environment. Rollouts call `act` on the bare module; only
    `training_step` goes through Fabric's wrapper, so gradients synchronise exactly once per step.

    Attributes:
        value_heads: K, the number of reward signals, each with a value head and a discount.
        memory_size: M, numbers an agent remembers from step to step, or 0: its `state [N, M]`, zeros as episodes begin.
        sequence_length: L, steps per training sequence, for agents with memory and for others that want steps in the
            order of time; divides `TrainArgs.num_steps`, and the batch size of an `OffPolicyAgent`.
        burn_in: P, steps before each sequence that only refresh its memory.
        minibatch_fields: Which of `MINIBATCH_FIELDS` its minibatches are to have.
        progress: 0-dim float32, share of the training that is done, 0..1; for schedules. The trainer fills it in place.
    """

    value_heads: int = 1
    memory_size: int = 0
    sequence_length: int = 1
    burn_in: int = 0
    minibatch_fields: Sequence[str] = ()
    progress: Tensor

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.progress = torch.zeros(())  # no buffer: DDP would broadcast it before every step

    @property
    def learns_sequences(self) -> bool:
        """True if its minibatches are sequences `[L, S, ...]`."""
        return self.memory_size > 0 or self.sequence_length > 1

    def act(
        self, obs: Tensor, state: Tensor | None = None, deterministic: bool = False, action_mask: Tensor | None = None
    ) -> ActOutput:
        """Chooses actions for `obs [N, ...]`: samples, or takes the most likely one if `deterministic`.

        `state [N, M]` only comes to agents with memory, `action_mask [N, n]` (True = allowed) where actions are masked.
        """
        raise NotImplementedError

    def value(self, obs: Tensor, state: Tensor | None = None) -> Tensor:
        """`[N]` (or `[N, K]`) float32, values of `obs [N, ...]`; `state` is the memory before the step."""
        raise NotImplementedError

    def probabilities(
        self, obs: Tensor, state: Tensor | None = None, action_mask: Tensor | None = None
    ) -> Tensor | None:
        """`[N, n]` float32 for people who watch, given what `act` is; None where actions are not numbered 0..n-1."""
        return None

    def distributions(self, obs: Tensor, state: Tensor | None, action_mask: Tensor | None) -> list[Distribution]:
        """Return the distributions that `act` samples from, for all rows or for each role."""
        return []

    def training_step(self, minibatch: Minibatch) -> tuple[Tensor, Stats]:  # type: ignore[override]  # Fabric allows it
        """The loss (a scalar with a graph) and named statistics for the log."""
        raise NotImplementedError

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One optimizer over all parameters. Its learning rates are the initial ones of the schedule."""
        raise NotImplementedError


class Transitions(NamedTuple):
    """`B` replayed steps, all tensors on the agent's device; with n-step returns each stands for up to n steps."""

    obs: Tensor
    """`[B, ...]` as in `Minibatch`."""
    action: Tensor
    """`[B, ...]` as `act` returned it."""
    reward: Tensor
    """`[B]` float32, of all its steps, discounted to the first; or `[B, K]` for K reward signals."""
    next_obs: Tensor
    """`[B, ...]` the same episode's true observation after them; where it has terminated, the next one's first."""
    discount: Tensor
    """As `reward`, what the value of `next_obs` counts: gamma to the number of steps; 0 where the episode has
    terminated, but not for a signal whose returns go on."""
    action_mask: Tensor | None = None
    """`[B, n]` bool, or None if the environment gives no masks."""
    next_action_mask: Tensor | None = None
    """`[B, n]` bool, of `next_obs`."""
    weight: Tensor | None = None
    """`[B]` float32, what each counts in the critics' loss, or None: all the same."""
    sequences: Sequences | None = None
    """Of an agent with memory, or with a `sequence_length` L above 1: the steps are `[L, S]`, flat."""


class OffPolicyAgent(ActorCritic):
    """Base of agents that learn from replayed steps, see `fabric_rl.train_off_policy`.

    `training_step` gets `Transitions` and returns one loss for all networks. `value` is for people who watch only.

    Attributes:
        acts_at_random: `act` draws evenly from all (allowed) actions, unless `deterministic`. The trainer sets it.
        holds_actions: Also set by it: the collector repeats each sub-environment's first action of a rollout.
    """

    minibatch_fields = ("reward", "terminated", "done", "next_obs", "next_action_mask")
    acts_at_random: bool = False
    holds_actions: bool = False

    def training_step(self, minibatch: Transitions) -> tuple[Tensor, Stats]:  # type: ignore[override]  # see there
        """See `ActorCritic`. The statistic `td_error` may be `[B]`, each step's, by which `--per_alpha` draws."""
        raise NotImplementedError

    def update_targets(self, tau: float) -> None:
        """After each optimizer step: `target += tau (network - target)` for all target networks."""
        raise NotImplementedError


def reads_masks(agent: ActorCritic) -> bool:
    """Whether the agent's `act` takes an `action_mask`; one that does not is given none."""
    parameters = inspect.signature(agent.act).parameters.values()
    return any(p.name == "action_mask" or p.kind is p.VAR_KEYWORD for p in parameters)


class AgentFactory(Protocol):
    """Builds the agent from the spaces of one sub-environment: an agent class, or a partial of one."""

    def __call__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> LightningModule:
        """Builds it; the weights come from torch's global generator."""


class EnvFactory(Protocol):
    """Builds this rank's environment: a VectorEnv class, or a partial of one."""

    def __call__(self, *, seed: int) -> VectorEnv:
        """Builds it; `reset(seed=...)` follows."""


@runtime_checkable
class HasMetrics(Protocol):
    """An environment that reports metrics of its own."""

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Name -> (sum, count) since the last call. The names are the same on every call and on every rank."""


@runtime_checkable
class HasHeadlines(Protocol):
    """An environment that says which of its metrics people look at first."""

    @property
    def headlines(self) -> Mapping[str, str]:
        """Metric -> short label. The console's lines show them; the summary has them at the start and at the end."""


@runtime_checkable
class HasVideos(Protocol):
    """An environment that records videos while it is stepped."""

    def finish_videos(self) -> None:
        """Waits until those of episodes that have ended are written."""


@runtime_checkable
class RecordsGames(Protocol):
    """The `inspector` of an environment that lets a policy play a game for people to watch, beside those that train."""

    game_suffix: str
    """What the names of files with games end with."""

    def record_game(
        self, policy: PolicyMaker, sink: BinaryIO, title: str, seconds: float, seed: int
    ) -> Generator[float, None, None]:
        """Writes a game of that title and length to `sink`, a step at each `next`; closed, the game is over there.

        Yields the seconds that have been played, in an environment of its own: the present one does not change.
        """


@runtime_checkable
class HasTimers(Protocol):
    """An environment that knows where its time goes."""

    def drain_timers(self) -> dict[str, tuple[float, int]]:
        """Name -> (seconds, how often) since the last call."""


@runtime_checkable
class HasState(Protocol):
    """An environment that can be saved and restored exactly."""

    def state_dict(self) -> dict[str, Any]:
        """Its state; a TypeError if a part of it cannot be saved. It goes on as one that loads this state does."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a saved state."""


@runtime_checkable
class HasGroups(Protocol):
    """An environment of which groups can be stepped on their own, so that one is stepped while others wait."""

    @property
    def group_rows(self) -> Sequence[slice]:
        """The sub-environments of each group, in order and without gaps."""

    def step_group(self, group: int, actions: NDArray[Any]) -> None:
        """Starts a step of a group with `actions [n, ...]`, without waiting for its end."""

    def wait_group(self, group: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Waits for the step and returns what `step` does, for the `n` sub-environments of the group."""


@runtime_checkable
class HasSeeds(Protocol):
    """An environment whose `reset(seed=s)` uses another number of seeds than one per sub-environment."""

    @property
    def num_seeds(self) -> int:
        """`reset(seed=s)` uses `s, s + 1, ..., s + num_seeds - 1`."""


@runtime_checkable
class HasRewardSignals(Protocol):
    """An environment with several reward signals, each with a value head and a discount of its own."""

    @property
    def reward_signals(self) -> tuple[str, ...]:
        """Their K names. `infos["reward_signals"]` of `step` is `[N, K]` float32; its sum is the reward."""


@runtime_checkable
class HasPhases(Protocol):
    """Environment whose rewards and initial states change with the phase of training."""

    def check_phases(self, names: Sequence[str]) -> None:
        """Raises ValueError unless it knows just the phases `names`."""

    def set_phase(self, name: str, number: int) -> None:
        """Goes on in the phase `name`, the `number`th of them, from 1; in the present phase nothing changes."""


@runtime_checkable
class HasTeams(Protocol):
    """An environment whose sub-environments are players of two teams, which meet in arenas: what self-play needs.

    All players of an arena begin and end their episodes together. On a step that ends some, `infos["result"]` is `[N]`
    float32, valid where `infos["_final_obs"]`: 1 for those who have won, 0 for those who have lost, 0.5 for a draw.
    """

    @property
    def sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """`[N]` the arena of each sub-environment, 0, 1, 2... in order, and `[N]` its team, 0 or 1; None: no teams."""


class Guests(Protocol):
    """What lets others than the policies of this framework play some sub-environments: scripted players, say."""

    def invite(self, bots: Sequence[Any]) -> None:
        """Takes them, before the next `reset`; the environment steps, tells and saves them."""

    def seat(self, who: NDArray[np.intp]) -> None:
        """From the next step on `bots[who[i]]` decides for sub-environment `i`; -1: the action that is given does."""


@runtime_checkable
class HasGuests(Protocol):
    """An environment that can have guests."""

    @property
    def guests(self) -> Guests:
        """Takes them and says who plays what."""


ParameterValue = float | Sequence[float]
"""What a parameter of an environment is set to: a number, or [min, max] for one that is drawn anew again and again."""


@runtime_checkable
class HasParameters(Protocol):
    """An environment with parameters that lessons can set."""

    def check_parameters(self, values: Mapping[str, ParameterValue]) -> None:
        """Raises ValueError, and names the parameters that there are, unless it could be given these."""

    def set_parameters(self, values: Mapping[str, ParameterValue]) -> None:
        """Sets just these, in the place of what the environment would draw itself; other parameters are its own again.

        The same values again change nothing. Environments that are saved remember what was set.
        """


@runtime_checkable
class FailedElsewhere(Protocol):
    """An error of another process, as an environment's: no line of this one has to do with it.

    What is raised says it all in one line; its cause holds the traceback from over there.
    """

    failed_in: str
    """The function, as in `MyEnv.step() (my_env.py, line 12)`."""


class SettingError(ValueError):
    """A setting that only training could show to be wrong; the message names its flag."""


class NonFiniteError(RuntimeError):
    """NaN or infinity arose in training; the message says where and what was saved."""
