"""What a cause is, and how its evidence is weighed.

Weights are log-odds. A cause begins with its frequency among public reports (:data:`REPORTS`),
and every reason adds or takes away: 0.5 is a hint, 1 a clear sign, 2 strong, 3 nearly decides.
The sum ranks; it is not a probability that was measured, and no cause is called established
unless one reason suffices by itself.
"""

from __future__ import annotations

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

    ``sufficient`` marks evidence that establishes the cause by itself, ``refutes`` evidence that rules it out.
    """

    text: str
    weight: float
    sufficient: bool = False
    refutes: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """The one command or change that separates this cause best, and what each outcome would mean."""

    command: str
    outcomes: Mapping[str, str] = field(default_factory=dict)


class Cause(ABC):
    """A hypothesis about what is wrong.

    Class attributes:
        id: stable name. title: the hypothesis in a short sentence.
        reports: how many of the public reports it explains; gives the prior.
        explains: symptoms it could explain; without one of them it is not offered.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind]
    reports: ClassVar[int]
    explains: ClassVar[frozenset[Symptom]]

    @abstractmethod
    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Reasons for and against, from findings, figures and configuration."""

    @abstractmethod
    def experiment(self, facts: Facts) -> Experiment:
        """The cheapest test that separates it from its rivals."""

    @classmethod
    def prior(cls) -> float:
        """Log-odds of the frequency among the reports."""
        return math.log(cls.reports / (REPORTS - cls.reports))


def when(
    condition: object, text: str, weight: float, *, sufficient: bool = False, refutes: bool = False
) -> Iterator[Reason]:
    """One reason where the condition holds, none otherwise."""
    if condition:
        yield Reason(text, weight, sufficient, refutes)
