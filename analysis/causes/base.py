"""What a cause is, and how its evidence is weighed.

Weights are log-odds. A cause begins with its frequency among public reports, and every reason
adds or takes away: :data:`HINT`, :data:`CLEAR`, :data:`STRONG` or :data:`DECISIVE`. The sum
ranks; it is not a probability that was measured, and no cause is called certain unless one
reason suffices by itself.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from analysis.causes.facts import Facts, Symptom

REPORTS: Final = 80
"""Public reports that the prior frequencies come from."""

HINT: Final = 0.5
CLEAR: Final = 1.0
STRONG: Final = 2.0
DECISIVE: Final = 3.0
SUFFICIENT: Final = 5.0
"""Weight of a reason that establishes or rules out a cause by itself."""


class Kind(StrEnum):
    """What part of a deployment a cause belongs to."""

    WIRING = "wiring"
    DRAFT = "draft"
    TRAFFIC = "traffic"
    COST = "cost"
    LOAD = "load"
    SETTINGS = "settings"
    MEASUREMENT = "measurement"


@dataclass(frozen=True, slots=True)
class Reason:
    """Something that speaks for (positive) or against (negative) a cause.

    ``rule`` is the rule whose finding says it, "" where a figure or flag does. ``sufficient``
    marks evidence that establishes the cause by itself, ``refuting`` evidence that rules it out.
    """

    text: str
    weight: float
    rule: str = ""
    sufficient: bool = False
    refuting: bool = False


def favours(weight: float, text: str, rule: str = "") -> Reason:
    """Evidence for the cause."""
    return Reason(text, weight, rule)


def opposes(weight: float, text: str, rule: str = "") -> Reason:
    """Evidence against it."""
    return Reason(text, -weight, rule)


def establishes(text: str, rule: str = "") -> Reason:
    """Evidence that suffices by itself."""
    return Reason(text, SUFFICIENT, rule, sufficient=True)


def refutes(text: str, rule: str = "") -> Reason:
    """Evidence that rules the cause out."""
    return Reason(text, -SUFFICIENT, rule, refuting=True)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The test that separates a cause best from its rivals: what to do, its commands, what each outcome would mean."""

    what: str
    commands: tuple[str, ...] = ()
    outcomes: Mapping[str, str] = field(default_factory=dict)


class Cause(ABC):
    """A hypothesis about what is wrong. The docstring's first line is its title.

    Class attributes:
        id: stable name.
        reports: the public threads that name or suspect it; their number gives the prior.
        explains: symptoms it could explain; without one of them it is not offered.
        changes: what, changed since a better run, points at it: flags and words of a difference, with their weight.
    """

    id: ClassVar[str]
    kind: ClassVar[Kind]
    reports: ClassVar[tuple[str, ...]] = ()
    explains: ClassVar[frozenset[Symptom]]
    changes: ClassVar[tuple[tuple[str, float], ...]] = ()

    @property
    def title(self) -> str:
        """The hypothesis in a short sentence."""
        return self.description.splitlines()[0].removesuffix(".")

    @property
    def description(self) -> str:
        """The title, and how the cause comes about and shows."""
        return inspect.getdoc(type(self)) or ""

    def applies(self, facts: Facts) -> bool:
        """Whether it can arise in a deployment of this kind at all; where not, it is not even ruled out."""
        del facts
        return True

    @abstractmethod
    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Reasons for and against, from findings, figures and configuration."""

    @abstractmethod
    def experiment(self, facts: Facts) -> Experiment:
        """The cheapest test that separates it from its rivals."""

    def reasons(self, facts: Facts) -> Iterator[Reason]:
        """All reasons: its own, and what changed since a better run."""
        yield from self.weigh(facts)
        yield from self._changed(facts)

    def _changed(self, facts: Facts) -> Iterator[Reason]:
        """A better run of the same deployment incriminates what differs from it, and clears what does not."""
        worse = Symptom.REGRESSED in self.explains and facts.earlier_was_better
        dearer = Symptom.DEARER in self.explains and facts.earlier_was_cheaper
        if not worse and not dearer:
            yield from self._tried(facts)
            return
        rule = "ACC003" if worse else ""
        for name, weight in self.changes:
            for difference in facts.changed(name):
                yield favours(weight, f"the better run differs in {difference}", rule)
                return
        if facts.differences:
            yield opposes(CLEAR, "what differs from the better run is something else", rule)

    def _tried(self, facts: Facts) -> Iterator[Reason]:
        """An earlier run that was no better although the suspected flag stood otherwise clears it."""
        same = Symptom.REGRESSED in self.explains and facts.accepted_alike
        same = same or (Symptom.DEARER in self.explains and facts.cost_alike)
        flags = [name for name, weight in self.changes if weight >= STRONG and " " not in name and name != "release"]
        for difference in (text for name in flags if same for text in facts.changed(name)):
            yield opposes(DECISIVE, f"it was tried: {difference} made no difference")
            return

    @classmethod
    def prior(cls) -> float:
        """Log-odds of its frequency among the reports; one is added, so that what nobody reported can be weighed too."""
        seen = len(cls.reports)
        return math.log((seen + 1) / (REPORTS - seen))
