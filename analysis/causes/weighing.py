"""Weighs every cause that could explain the symptoms; a short list, ranked, with "none of these" in it."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from analysis import causes
from analysis.causes.base import REPORTS, Cause, Experiment, Reason
from analysis.causes.facts import Facts
from collector.domain.findings import RuleCrash

LISTED: Final = 5
"""At most so many causes are shown."""
FLOOR: Final = -2.5
"""Log-odds below which a cause is not worth a reader's time."""
UNEXPLAINED_REPORTS: Final = 6
"""Reports whose cause nobody found."""


@dataclass(frozen=True, slots=True)
class WeighedCause:
    """A cause with its sum and the reasons behind it; ``established`` only where one of them suffices by itself."""

    id: str
    title: str
    kind: str
    weight: float
    reasons_for: tuple[Reason, ...]
    reasons_against: tuple[Reason, ...]
    established: bool
    experiment: Experiment | None

    def document(self) -> dict[str, Any]:
        """The form causes have in the diagnosis document."""
        document: dict[str, Any] = {
            "cause": self.id,
            "title": self.title,
            "kind": self.kind,
            "weight": round(self.weight, 2),
            "certain": self.established,
            "for": [{"text": reason.text, "weight": reason.weight} for reason in self.reasons_for],
            "against": [{"text": reason.text, "weight": reason.weight} for reason in self.reasons_against],
        }
        if self.experiment is not None:
            document["next"] = {"command": self.experiment.command, "if": dict(self.experiment.outcomes)}
        return document


@dataclass(frozen=True, slots=True)
class Differential:
    """The ranked list, the best first, and the causes that the evidence rules out."""

    causes: tuple[WeighedCause, ...] = ()
    ruled_out: tuple[WeighedCause, ...] = ()
    crashes: tuple[RuleCrash, ...] = ()


@cache
def known_causes() -> tuple[Cause, ...]:
    """One instance of every cause, by id."""
    found: dict[str, Cause] = {}
    for info in pkgutil.iter_modules(causes.__path__, f"{causes.__name__}."):
        module = importlib.import_module(info.name)
        for _, item in inspect.getmembers(module, inspect.isclass):
            if issubclass(item, Cause) and item is not Cause and item.__module__ == module.__name__:
                found[item.id] = item()
    return tuple(found[name] for name in sorted(found))


def weigh(facts: Facts) -> Differential:
    """Weigh the causes; nothing is offered where nothing is wrong."""
    if not facts.symptoms:
        return Differential()
    weighed: list[WeighedCause] = []
    out: list[WeighedCause] = []
    crashes: list[RuleCrash] = []
    for cause in known_causes():
        if not cause.explains & facts.symptoms:
            continue
        try:
            one, refuted = _weighed(cause, facts)
        except Exception as error:  # noqa: BLE001 - one cause that fails is reported, and the others go on
            crashes.append(RuleCrash("cause", cause.id, f"{type(error).__name__}: {error}"))
        else:
            (out if refuted else weighed).append(one)
    weighed.append(_unexplained())
    ranked = sorted(weighed, key=lambda item: (-item.established, -item.weight, item.id))
    listed = [item for item in ranked if item.weight >= FLOOR][:LISTED]
    return Differential(tuple(listed), tuple(sorted(out, key=lambda item: item.id)), tuple(crashes))


def _weighed(cause: Cause, facts: Facts) -> tuple[WeighedCause, bool]:
    reasons = list(cause.weigh(facts))
    weight = cause.prior() + sum(reason.weight for reason in reasons)
    one = WeighedCause(
        id=cause.id,
        title=cause.title,
        kind=cause.kind.value,
        weight=weight,
        reasons_for=tuple(reason for reason in reasons if reason.weight > 0),
        reasons_against=tuple(reason for reason in reasons if reason.weight <= 0),
        established=any(reason.sufficient for reason in reasons) and not any(reason.refutes for reason in reasons),
        experiment=cause.experiment(facts),
    )
    return one, any(reason.refutes for reason in reasons)


def _unexplained() -> WeighedCause:
    prior = math.log(UNEXPLAINED_REPORTS / (REPORTS - UNEXPLAINED_REPORTS))
    return WeighedCause(
        id="none-of-these",
        title="None of these explains it",
        kind="unknown",
        weight=prior,
        reasons_for=(Reason(f"in {UNEXPLAINED_REPORTS} of {REPORTS} public reports nobody found the cause", 0.0),),
        reasons_against=(),
        established=False,
        experiment=None,
    )
