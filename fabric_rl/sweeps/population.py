"""Population-based training (Jaderberg et al. 2017): weak runs copy strong ones and explore."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fabric_rl.base.files import write_text
from fabric_rl.sweeps.sweep import Choice, SearchSetting, flags_of
from fabric_rl.sweeps.train_processes import BUSY, TrainProcesses

_FACTORS = (0.8, 1.25)
"""A number of a range is multiplied by one of these (Jaderberg et al. 2017, section 4.1.1: 0.8 or 1.2)."""
_REDRAWN = 0.25
"""Probability to draw a choice from a list again."""


@dataclass
class PopulationMember:
    """A run of one generation."""

    run_id: str
    settings: dict[str, Choice]
    parent: str = ""
    """Run whose weights it starts with; empty in the first generation."""
    score: float | None = None
    """How good it was in the end; None if it was not measured."""
    copied: str = ""
    """Run from which this place of the population starts into the next generation; its own if it was good enough."""
    failed: str = ""
    """Reason why the run failed; empty if it did not."""


@dataclass
class Explorer:
    """Draw settings like an Optuna trial: near those of `parent`, or anywhere in the range without one."""

    parent: Mapping[str, Choice]
    rng: np.random.Generator

    def suggest_categorical(self, name: str, choices: Sequence[Choice]) -> Choice:
        """Return the parent's choice, or with a probability of 25 % any of the choices."""
        if self.parent.get(name) in choices and name in self.parent and self.rng.random() > _REDRAWN:
            return self.parent[name]
        return choices[self.rng.integers(len(choices))]

    def suggest_float(self, name: str, low: float, high: float, log: bool = False) -> float:
        """Return 0.8 or 1.25 times the parent's number, within the range; without a parent a number of the range."""
        if name in self.parent:
            return float(np.clip(float(self.parent[name] or 0.0) * self.rng.choice(_FACTORS), low, high))
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))) if log else self.rng.uniform(low, high))

    def suggest_int(self, name: str, low: int, high: int, log: bool = False) -> int:
        """Return a whole number in the same way; one that stayed the same becomes a neighbour within the range."""
        number = round(self.suggest_float(name, low, high, log))
        if number == self.parent.get(name):
            number = int(np.clip(number + self.rng.choice((-1, 1)), low, high))
        return number

    def draw(self, space: Sequence[SearchSetting]) -> dict[str, Choice]:
        """Return the settings of one member."""
        chosen: dict[str, Choice] = {}
        for setting in space:
            chosen |= setting.draw(self, chosen)
        return chosen


@dataclass
class Population:
    """Population-based training in a folder, where `population.json` contains the generations so far."""

    folder: Path
    words: Sequence[str]
    """Flags of every training."""
    space: Sequence[SearchSetting]
    size: int
    seed: int
    trainings: TrainProcesses
    judge: Callable[[Sequence[PopulationMember], np.random.Generator], None]
    """Set `score` and `copied` of the members of a generation whose runs did not fail."""
    asked: Mapping[str, object]
    """What identifies the training; a folder of another one is refused."""

    def read(self) -> list[list[PopulationMember]]:
        """Return the finished generations; raise a ValueError if the file is damaged or of another training."""
        file = self.folder / "population.json"
        if not file.exists():
            return []
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            generations = [[PopulationMember(**member) for member in members] for members in found["generations"]]
            other = [name for name, value in self.asked.items() if found["asked"][name] != value]
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(f"{file} is damaged ({error}); choose another --folder") from error
        if other:
            raise ValueError(
                f"--folder {self.folder} was started with different {', '.join(other)}; choose another one"
            )
        return generations

    def train(self, number: int) -> list[list[PopulationMember]]:
        """Train until there are `number` generations, and return them all; raise a ValueError if every run fails."""
        generations = self.read()
        for generation in range(len(generations), number):
            rng = np.random.default_rng([self.seed, generation])
            members = [self._member(generation, place, generations, rng) for place in range(self.size)]
            self.trainings.each(self._train, enumerate(members, generation * self.size))
            trained = [each for each in members if not each.failed]
            if not trained:
                raise ValueError(f"{members[0].run_id}: {members[0].failed}")
            self.judge(trained, rng)
            for member in members:
                if member.failed:
                    member.copied = trained[rng.integers(len(trained))].run_id
            generations.append(members)
            content = {"asked": self.asked, "generations": [[asdict(each) for each in one] for one in generations]}
            write_text(self.folder / "population.json", json.dumps(content, indent=1))
            copied = sum(each.copied != each.run_id for each in members)
            print(f"generation {generation}: {copied} of {self.size} members copy another one", flush=True)
        return generations

    def _member(
        self, generation: int, place: int, before: Sequence[Sequence[PopulationMember]], rng: np.random.Generator
    ) -> PopulationMember:
        run_id = f"generation{generation}_member{place}"
        if not before:
            return PopulationMember(run_id, Explorer({}, rng).draw(self.space))
        own = before[-1][place]
        source = next(each for each in before[-1] if each.run_id == own.copied)
        settings = own.settings if source is own else Explorer(source.settings, rng).draw(self.space)
        return PopulationMember(run_id, dict(settings), source.run_id)

    def _train(self, numbered: tuple[int, PopulationMember]) -> None:
        number, member = numbered
        words = [*self.words, *flags_of(member.settings), f"--group={member.run_id}", f"--seed={self.seed + number}"]
        words += [f"--initialize_from={self.trainings.runs_dir / member.parent}"] if member.parent else []
        record, reason = self.trainings.train(member.run_id, words)
        if record is None and not reason:
            raise KeyboardInterrupt
        if reason == BUSY:
            raise ValueError(f"{member.run_id}: {reason}")
        member.failed = reason
        if reason:
            print(f"{member.run_id} failed and will copy another member: {reason}", flush=True)
