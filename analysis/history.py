"""The history of a case: consecutive runs of a deployment, what changed between them, and which hypotheses survived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from analysis.compare import ChangeEffect, Difference, differences, effects
from analysis.view import RunView
from collector.domain.quantities import Estimate
from collector.domain.runs import Role, RunRecord

FIGURES: Final = ("acceptance_length", "conditional_acceptance_rate", "generation_throughput", "step_seconds")
"""The figures whose change a history tells."""
LEADING: Final = 2
"""Causes of a run that the next one is asked about: those whose experiments are shown."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A cause that was offered for a run; ``standing`` is its word."""

    id: str
    title: str
    standing: str


def view_of_figures(record: RunRecord, figures: Mapping[str, Mapping[str, Any]]) -> RunView:
    """A run as the analysis sees it, from quantities as the diagnosis document has them."""
    known = {item.name for item in fields(Estimate)}
    view = RunView(record, Role.SUBJECT)
    view.quantities = {
        key: Estimate(**{name: value for name, value in figure.items() if name in known})
        for key, figure in figures.items()
    }
    return view


@dataclass(frozen=True)
class Judged:
    """One run with what was judged of it; ``figures`` are quantities as the diagnosis document has them."""

    run: str
    record: RunRecord
    figures: Mapping[str, Mapping[str, Any]]
    causes: Sequence[Offered] = ()
    refuted: Sequence[str] = ()

    @cached_property
    def view(self) -> RunView:
        """The run as the analysis sees it, without its windows."""
        return view_of_figures(self.record, self.figures)


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a hypothesis: ``survived``, ``ruled out``, ``gone`` or ``weaker``, and in words."""

    cause: Offered
    word: str
    why: str


@dataclass(frozen=True, slots=True)
class Step:
    """From one run to the next."""

    before: str
    after: str
    changes: tuple[ChangeEffect, ...]
    differences: tuple[Difference, ...]
    fates: tuple[Fate, ...]


def steps(runs: Sequence[Judged]) -> tuple[Step, ...]:
    """Each run against the one before, the earliest first."""
    return tuple(_step(before, after) for before, after in pairwise(runs))


def _step(before: Judged, after: Judged) -> Step:
    changes = tuple(effects(before.view, after.view))
    return Step(
        before.run,
        after.run,
        changes,
        tuple(item for item in differences(before.view, after.view) if item.key in FIGURES),
        tuple(fates(before.causes, after.causes, after.refuted, changes)),
    )


def fates(
    before: Sequence[Offered], after: Sequence[Offered], refuted: Sequence[str], changes: Sequence[ChangeEffect]
) -> Iterator[Fate]:
    """What the next run, with its causes and those it refutes, says about the leading causes of the one before."""
    later = {cause.id: cause for cause in after}
    void = bool(changes) and all(change.effect == "no" for change in changes)
    for cause in before[:LEADING]:
        if cause.id in refuted:
            yield Fate(cause, "ruled out", "the next run refutes it")
        elif cause.id in later:
            why = (
                "what was changed did not take effect, so nothing was tried"
                if void
                else f"now {later[cause.id].standing}"
            )
            yield Fate(cause, "survived", why)
        elif not later:
            yield Fate(cause, "gone", "what it explained is no longer found")
        else:
            yield Fate(cause, "weaker", "no longer among the causes offered")
