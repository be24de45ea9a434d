"""Phases: a run that goes through several sets of rewards, initial states and learning rates, from easy to hard."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabric_rl.base.settings import Count, Finite, NonNegative, Positive, check_settings, checks_arguments
from fabric_rl.base.state_schema import check_structure
from fabric_rl.base.text import did_you_mean
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.types import HasPhases

PATIENCE = 20
"""Iterations of a phase after which a metric that it waits for and that was never measured causes a warning."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Promotion:
    """A condition that ends a phase: a metric is high enough for some iterations in a row."""

    metric: str
    """Name of a logged metric, for example `game/touch_ratio`."""
    at_least: Finite
    """Value that the metric must reach."""
    for_iterations: Count = 10
    """Number of iterations in a row. Iterations without a measurement (no episode ended) do not reset the count."""

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.metric:
            raise ValueError("Promotion: metric must name a logged metric, for example game/touch_ratio")

    @property
    def condition(self) -> str:
        """The condition as text, for example `game/touch_ratio >= 0.5`. Equal conditions share a streak."""
        return f"{self.metric} >= {float(self.at_least)}"

    def streak(self, before: int, metrics: Mapping[str, float]) -> int:
        """Return the number of iterations in a row for which the condition holds.

        Args:
            before: This number after the previous iteration.
            metrics: Metrics of this iteration.
        """
        if self.metric not in metrics:
            return before
        return before + 1 if metrics[self.metric] >= self.at_least else 0


@dataclass(frozen=True)
class Phase:
    """Settings of one phase of a run; the environment has rewards and initial states under the same name."""

    name: str
    """Letters, digits, `_`, `.` and `-`; the same name as in the environment's `PhasedReward` and `PhasedStates`."""
    label: str = ""
    """Description for the log."""
    learning_rate: Positive | None = None
    """Learning rate in this phase for all parameters, multiplied by the `learning_rate_factor` of `Phases`;
    `--lr_schedule` multiplies it, too. Default: the agent's own learning rates, without that factor."""
    teacher_factor: NonNegative = 1.0
    """Factor for the agent's `teacher_coef` in this phase; 0 stops the imitation of the teacher."""
    promotions: Sequence[Promotion] = ()
    """Conditions that must all be met for the next phase to begin. Empty: metrics do not end this phase."""
    after_steps: Count | None = None
    """Agent-steps (over all ranks) in this phase after which the next phase begins in any case. Default: never."""

    def __post_init__(self) -> None:
        check_settings(self)
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"Phase: name must consist of letters, digits, _, . and -, got {self.name!r}")

    def is_done(self, streaks: Sequence[int], steps: int) -> bool:
        """Return True if the next phase should begin.

        Args:
            streaks: For each of `promotions`, the number of iterations in a row for which it holds.
            steps: Agent-steps in this phase.
        """
        if self.after_steps is not None and steps >= self.after_steps:
            return True
        rows = zip(self.promotions, streaks, strict=True)
        return bool(self.promotions) and all(streak >= skill.for_iterations for skill, streak in rows)


class Phases(Callback):
    """Lead a run through phases: by measured skill, by steps, or by hand.

    Every phase sets the learning rate, and the rewards and initial states of environments that support phases
    (`fabric_rl.types.HasPhases`), such as pools with `envs.PhasedReward` or `envs.PhasedStates`. Networks, optimizer,
    observations and actions stay the same. Milestones are filed under the phase that they were trained in,
    `Phase<number>-<name>`; the metrics are `phase/number` (from 1) and `phase/steps` (agent-steps in the phase,
    including this iteration).

    To choose the phase by hand, set `start_phase`, optionally together with the weights of another run
    (`--initialize_from`). A resumed run continues in its phase, unless `start_phase` has changed.

    Attributes:
        phases: The phases in order; the last one lasts until the run ends.
        number: Number of the current phase, from 1.
        learning_rate_factor: Factor for the `learning_rate` of every phase that has one.
    """

    @checks_arguments
    def __init__(
        self, phases: Sequence[Phase], start_phase: int | str = 1, learning_rate_factor: Positive = 1.0
    ) -> None:
        """Check and store the phases.

        Args:
            phases: The phases in order.
            start_phase: Number (from 1) or name of the phase in which this run starts.
            learning_rate_factor: Factor for the `learning_rate` of every phase that has one; adapt it if your
                minibatches differ in size from those that the rates were tuned for.

        Raises:
            ValueError: There are no phases, two have the same name, or `start_phase` does not exist.
        """
        self.learning_rate_factor = learning_rate_factor
        self.phases = tuple(phases)
        names = [phase.name for phase in self.phases]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"Phases: set at least one phase, with unique names, got {', '.join(names) or 'none'}")
        numbers = {name: number for number, name in enumerate(names, 1)} | {n: n for n in range(1, len(names) + 1)}
        if start_phase not in numbers:
            numbered = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1))
            raise ValueError(f"Phases: there is no start_phase {start_phase!r}; choose one of {numbered}")
        self.number = self._start = numbers[start_phase]
        self._begun_at = 0
        self._streaks = [0] * len(self.phase.promotions)
        self._waited = 0
        self._measured: set[str] = set()

    @property
    def phase(self) -> Phase:
        """The current phase."""
        return self.phases[self.number - 1]

    def on_train_start(self, state: TrainState) -> None:
        """Check that the environment knows the phases, and set the current one.

        Raises:
            ValueError: The environment has other phases.
        """
        if isinstance(state.env, HasPhases):
            state.env.check_phases([phase.name for phase in self.phases])
        if self._begun_at < 0:  # the phase was chosen by hand for a resumed run
            self._begun_at = state.steps
        if self._begun_at > state.steps:
            raise ValueError(f"Phases: the saved phase begins at step {self._begun_at}, after the run's {state.steps}")
        promoted = self.number > self._start and self._begun_at == state.steps  # the checkpoint ended another phase
        state.phase = self._folder(self.number - promoted)
        self._enter(state)

    def on_iteration_start(self, state: TrainState) -> None:
        state.phase = self._folder(self.number)

    def on_iteration_end(self, state: TrainState) -> None:
        phase, steps = self.phase, state.steps - self._begun_at
        state.metrics |= {"phase/number": float(self.number), "phase/steps": float(steps)}
        streaks = [skill.streak(n, state.metrics) for skill, n in zip(phase.promotions, self._streaks, strict=True)]
        self._streaks = state.fabric.broadcast(streaks)  # some metrics differ by rank
        self._waited += 1
        self._measured |= {*state.metrics, *state.sums}  # fewer metrics if no episode ends in the iteration
        if self._waited == PATIENCE and state.fabric.is_global_zero:
            for name in (skill.metric for skill in phase.promotions if skill.metric not in self._measured):
                hint = did_you_mean(name, sorted(self._measured))
                text = f"Phases: phase {phase.name} waits for {name}, which no iteration has measured so far{hint}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        if self.number < len(self.phases) and phase.is_done(self._streaks, steps):
            self._begin(self.number + 1, state.steps)
            self._enter(state)

    def state_dict(self) -> dict[str, Any]:
        """Return the current and the start phase, the step at which the current one began, and streaks."""
        return {
            "phase": self.phase.name,
            "start_phase": self.phases[self._start - 1].name,
            "start_number": self._start,
            "begun_at": self._begun_at,
            "streaks": {skill.condition: row for skill, row in zip(self.phase.promotions, self._streaks, strict=True)},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue in the saved phase, or in `start_phase` if another one is chosen: neither its number nor its name.

        Raises:
            ValueError: The saved phase no longer exists.
        """
        state = {"start_number": 0} | state  # older checkpoints have none
        check_structure(state, own := self.state_dict(), "it")
        if all(state[name] != own[name] for name in ("start_phase", "start_number")):
            self._begin(self._start, -1)
            return
        numbers = [number for number, phase in enumerate(self.phases, 1) if phase.name == state["phase"]]
        if not numbers:
            raise ValueError(f"Phases: the checkpoint's phase {state['phase']} is not one of the phases in --callbacks")
        self._begin(numbers[0], int(state["begun_at"]))
        rows = state["streaks"]  # older checkpoints name them by metric only
        self._streaks = [int(rows.get(each.condition, rows.get(each.metric, 0))) for each in self.phase.promotions]

    def _begin(self, number: int, steps: int) -> None:
        self.number, self._begun_at, self._waited = number, steps, 0
        self._streaks = [0] * len(self.phase.promotions)

    def _folder(self, number: int) -> str:
        return f"Phase{number}-{self.phases[number - 1].name}"

    def _enter(self, state: TrainState) -> None:
        phase = self.phase
        rate = phase.learning_rate
        state.learning_rate = None if rate is None else rate * self.learning_rate_factor
        for module in state.agent.modules():  # one agent per role
            if hasattr(module, "teacher_factor"):
                vars(module)["teacher_factor"] = phase.teacher_factor
        if isinstance(state.env, HasPhases):
            state.env.set_phase(phase.name, self.number)
        if state.fabric.is_global_zero:
            name, count = phase.label or phase.name, len(self.phases)
            logger.info("phase %s of %s, %s, after %s steps", self.number, count, name, f"{state.steps:,}")
