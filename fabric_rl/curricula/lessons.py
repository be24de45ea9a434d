"""Lessons: environment parameters that get harder during training, like the curricula in Unity's ML-Agents."""

import math
import warnings
from collections import deque
from dataclasses import dataclass
from typing import Any

from fabric_rl.base.settings import Count, Finite, check_settings
from fabric_rl.base.state_schema import load_child_state
from fabric_rl.base.text import did_you_mean
from fabric_rl.callback import Callback, TrainState
from fabric_rl.metrics.log import logger
from fabric_rl.rollouts.collect import EPISODE_RETURN
from fabric_rl.types import HasParameters, ParameterValue

PROGRESS, REWARD = "progress", "reward"


@dataclass(frozen=True)
class Curriculum:
    """Lessons for some environment parameters; there is one more lesson than there are thresholds."""

    parameters: dict[str, list[float | list[float]]]
    """Parameter of the environment -> its value in each lesson: a number, or [min, max] to sample from per episode."""
    thresholds: list[Finite]
    """Values that the measure must exceed for the next lesson to begin, one for each lesson but the last."""
    measure: str = PROGRESS
    """`progress` (completed fraction of the run's steps, 0..1), `reward` (mean return of the last
    `min_lesson_length` episodes), or the name of any logged metric, for example `game/touches_per_minute`."""
    min_lesson_length: Count = 100
    """Number of episodes, over all ranks, that must end in a lesson before the next one can begin."""
    signal_smoothing: bool = True
    """Smooth the measure: 0.25 times its previous smoothed value plus 0.75 times its current value; the first value
    is not smoothed."""

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.parameters:
            raise ValueError("Curriculum: parameters must name at least one parameter and its values")
        for name, values in self.parameters.items():
            if len(values) != self.num_lessons:
                raise ValueError(
                    f"Curriculum: {len(self.thresholds)} thresholds make {self.num_lessons} lessons, but {name} has "
                    f"{len(values)} values"
                )
        if not self.measure:
            raise ValueError("Curriculum: measure must be progress, reward or the name of a logged metric")

    @property
    def num_lessons(self) -> int:
        """Number of lessons."""
        return len(self.thresholds) + 1

    def values(self, lesson: int) -> dict[str, ParameterValue]:
        """Return parameter -> value for one lesson, counted from 0."""
        return {name: values[lesson] for name, values in self.parameters.items()}


class LessonState:
    """Progress of training in a curriculum.

    Attributes:
        curriculum: The lessons.
        lesson: The current lesson, counted from 0.
        measured: The latest value of the measure, smoothed if the curriculum asks for it; None before the first one.
    """

    def __init__(self, curriculum: Curriculum) -> None:
        self.curriculum, self.lesson = curriculum, 0
        self.measured: float | None = None
        self._window: deque[tuple[float, float, float]] = deque()

    def update(self, episodes: float, total: float, count: float) -> bool:
        """Add one iteration, and update the measure if enough episodes have ended in this lesson.

        The measure is m = sum of totals / sum of counts over the newest iterations with `min_lesson_length` episodes;
        for `progress`, it is the value in the newest iteration. With smoothing, m <- 0.25 m' + 0.75 m, where m' is the
        previous value, from any lesson; the first m is not smoothed. The next lesson begins if m exceeds the threshold;
        the count of episodes then starts again.

        Args:
            episodes: Number of episodes that ended in this iteration.
            total: Sum of the measured values.
            count: Number of measured values; 0 if nothing was measured.

        Returns:
            True if a new lesson has begun.
        """
        curriculum, window = self.curriculum, self._window
        if window and not episodes and not window[-1][0]:  # merge SAC's short iterations in which no episode ended
            before = window.pop()
            if curriculum.measure != PROGRESS:
                total, count = total + before[1], count + before[2]
        window.append((episodes, total, count))
        ended = sum(row[0] for row in window)
        while ended - window[0][0] >= curriculum.min_lesson_length:
            ended -= window.popleft()[0]
        if ended < curriculum.min_lesson_length:
            return False
        rows = [window[-1]] if curriculum.measure == PROGRESS else list(window)
        counts = sum(row[2] for row in rows)
        measured = sum(row[1] for row in rows) / counts if counts else math.nan
        if not math.isfinite(measured):
            return False
        if curriculum.signal_smoothing and self.measured is not None:
            measured = 0.25 * self.measured + 0.75 * measured
        self.measured = measured
        if self.lesson >= len(curriculum.thresholds) or not measured > curriculum.thresholds[self.lesson]:
            return False
        self.lesson += 1
        window.clear()
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the lesson, the measure with its name, and the counted episodes."""
        window, measure = [list(row) for row in self._window], self.curriculum.measure
        return {"lesson": self.lesson, "measured": self.measured, "window": window, "measure": measure}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; if the lesson no longer exists, use the last one.

        With another measure, only the lesson is kept.
        """
        self.lesson = min(state["lesson"], self.curriculum.num_lessons - 1)
        if state.get("measure", self.curriculum.measure) != self.curriculum.measure:  # older checkpoints have none
            return
        self.measured = state["measured"]
        self._window = deque((row[0], row[1], row[2]) for row in state["window"])


class Lessons(Callback):
    """Lead a run through curricula, each at its own pace, like ML-Agents' metacurriculum.

    Each curriculum can advance by at most one lesson per iteration. All ranks decide from the same numbers. From the
    next episodes on, the values of a lesson replace those that the environment would sample itself
    (`envs.ParameterRandomizer`). Metrics: `lesson/<curriculum>`, the lesson of the iteration, counted from 0, and
    `lesson/<curriculum>_measure`, the value that is compared with the threshold.
    """

    def __init__(self, curricula: dict[str, Curriculum]) -> None:
        """Store the curricula, given as name -> curriculum.

        Raises:
            ValueError: There are no curricula, or two of them set the same parameter.
        """
        if not curricula:
            raise ValueError("Lessons: curricula must name at least one curriculum")
        owners: dict[str, str] = {}
        for name, curriculum in curricula.items():
            for parameter in curriculum.parameters:
                if parameter in owners:
                    raise ValueError(f"Lessons: both {owners[parameter]} and {name} set {parameter}")
                owners[parameter] = name
        self.lesson_states = {name: LessonState(curriculum) for name, curriculum in curricula.items()}
        self._never_logged: set[str] = set()

    def on_train_start(self, state: TrainState) -> None:
        """Check all lessons, and apply the current ones.

        Raises:
            ValueError: The environment does not have these parameters, or cannot set them to these values.
        """
        if not isinstance(state.env, HasParameters):
            raise ValueError(f"Lessons: {type(state.env).__name__} has no parameters that lessons could set")
        for course in self.lesson_states.values():
            for lesson in range(course.curriculum.num_lessons):
                state.env.check_parameters(course.curriculum.values(lesson))
        state.env.set_parameters(self.values)

    @property
    def values(self) -> dict[str, ParameterValue]:
        """The parameters of the current lessons: parameter -> value."""
        return {
            parameter: value
            for course in self.lesson_states.values()
            for parameter, value in course.curriculum.values(course.lesson).items()
        }

    def on_iteration_end(self, state: TrainState) -> None:
        episodes = state.sums.get(EPISODE_RETURN, (0.0, 0.0))[1]
        pairs = {name: self._measure(course.curriculum.measure, state) for name, course in self.lesson_states.items()}
        changed = False
        for name, course in self.lesson_states.items():
            state.metrics[f"lesson/{name}"] = float(course.lesson)
            of_role = course.curriculum.measure.endswith(f"/{EPISODE_RETURN}")  # only this role's episodes count
            if course.update(pairs[name][1] if of_role else episodes, *pairs[name]):
                changed = True
                if state.fabric.is_global_zero:
                    values = course.curriculum.values(course.lesson)
                    text = ", ".join(f"{key} {value}" for key, value in values.items())
                    logger.info("lesson %s of %s after %s steps: %s", course.lesson, name, f"{state.steps:,}", text)
            if course.measured is not None:
                state.metrics[f"lesson/{name}_measure"] = course.measured
        if changed and isinstance(state.env, HasParameters):
            state.env.set_parameters(self.values)

    def state_dict(self) -> dict[str, Any]:
        return {name: course.state_dict() for name, course in self.lesson_states.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; curricula that are not in it start with their first lesson."""
        for name, course in self.lesson_states.items():
            if name in state:
                load_child_state(course, state[name], f"the saved state of the curriculum {name}")

    def _measure(self, measure: str, state: TrainState) -> tuple[float, float]:
        """Return the (sum, count) of a measure in this iteration, the same on every rank."""
        if measure == PROGRESS:
            return state.steps / state.args.total_timesteps, 1.0
        name = EPISODE_RETURN if measure == REWARD else measure
        if name in state.sums:
            return state.sums[name]
        # A timer or callback logged this metric: ranks may have different numbers, or only rank 0 has one.
        value = state.fabric.broadcast(state.metrics.get(name))
        if value is not None:
            return float(value), 1.0
        if state.fabric.is_global_zero and name not in self._never_logged:
            self._never_logged.add(name)
            hint = did_you_mean(name, list(state.metrics)) or f"; logged: {', '.join(sorted(state.metrics))}"
            text = f"Lessons: nothing has logged {name} yet, so lessons that depend on it do not advance{hint}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        return 0.0, 0.0
