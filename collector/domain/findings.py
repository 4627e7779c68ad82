"""What rules say about a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from collector.domain.evidence import Evidence


class Severity(IntEnum):
    """How much a finding matters; ordered."""

    INFO = 1
    WARNING = 2
    CRITICAL = 3

    @property
    def word(self) -> str:
        """``info``, ``warning`` or ``critical``."""
        return self.name.lower()

    @classmethod
    def parse(cls, word: str) -> Severity:
        """Read a severity's word.

        Raises:
            ValueError: no severity of that name.
        """
        try:
            return cls[word.upper()]
        except KeyError:
            raise ValueError(f"no severity named {word!r}: info, warning or critical") from None


class Confidence(IntEnum):
    """How sure a finding is of itself; ordered."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3

    @property
    def word(self) -> str:
        """``low``, ``medium`` or ``high``."""
        return self.name.lower()


class Question(StrEnum):
    """The four questions asked of every run."""

    CONFIG = "config"
    ACCEPTANCE = "acceptance"
    PAYOFF = "payoff"
    DATA = "data"


class State(StrEnum):
    """The answer to a question. ``cannot_tell`` is never shown as ``ok``."""

    OK = "ok"
    PROBLEM = "problem"
    CANNOT_TELL = "cannot_tell"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question's answer in one sentence; ``provide`` names the option or file that would decide it."""

    question: Question
    state: State
    summary: str
    provide: str = ""


RUN = "run"
"""Scope of a finding about the judged run as a whole."""


@dataclass(frozen=True, slots=True)
class RivalExplanation:
    """Another explanation of the same figures, and what speaks against it."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or note, with the figures it rests on.

    ``scope`` is :data:`RUN`, a unit's name, ``previous`` or ``baseline``. ``values`` use
    quantity keys where one exists. ``verify`` holds commands or experiments that would confirm
    or refute it.
    """

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    title: str
    why: str
    scope: str = RUN
    values: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    fix: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    ruled_out: tuple[RivalExplanation, ...] = ()

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two findings the same one: rule, scope and the flag, unit or metric it is about."""
        about = next((str(self.values[key]) for key in ("flag", "unit", "metric") if key in self.values), "")
        return self.rule, self.scope, about


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A suspicion that these inputs invite and the evidence refutes."""

    rule: str
    name: str
    why: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that could not look, why, and what would let it."""

    rule: str
    name: str
    reason: str
    provide: str = ""


@dataclass(frozen=True, slots=True)
class RuleCrash:
    """A rule that failed: our fault, reported as such while the others go on."""

    rule: str
    name: str
    error: str
