"""Weighs every cause that could explain the symptoms; a short list, ranked, with "none of these" in it."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from analysis import causes
from analysis.causes.base import HINT, REPORTS, STRONG, Cause, Experiment, Reason, favours
from analysis.causes.facts import Facts, Symptom
from analysis.known_faults import Match, Standing
from collector.domain.findings import RuleCrash

LISTED: Final = 5
"""At most so many causes are shown, "none of these" beside them."""
NONE_OF_THESE: Final = "none-of-these"
UNEXPLAINED: Final = (
    "vllm-project/vllm#26191",
    "vllm-project/vllm#40551",
    "vllm-project/vllm#41789",
    "vllm-project/vllm#55605",
    "ggml-org/llama.cpp#27151",
    "vllm-project/vllm#33330",
)
"""Reports whose cause nobody found."""
UNEXPLAINED_WEIGHT: Final = math.log((len(UNEXPLAINED) + 1) / (REPORTS - len(UNEXPLAINED)))
"""Log-odds of "none of these"; a cause that weighs less is not worth a reader's time."""
LIKELY: Final = 0.0
"""Log-odds from which a cause is called likely."""


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

    @property
    def standing(self) -> str:
        """The weight in a word: ``certain``, ``likely`` or ``possible``."""
        if self.established:
            return "certain"
        return "likely" if self.weight >= LIKELY else "possible"

    def document(self) -> dict[str, Any]:
        """The form causes have in the diagnosis document."""
        document: dict[str, Any] = {
            "cause": self.id,
            "title": self.title,
            "kind": self.kind,
            "weight": round(self.weight, 2),
            "standing": self.standing,
            "certain": self.established,
            "for": [_reason(reason) for reason in self.reasons_for],
            "against": [_reason(reason) for reason in self.reasons_against],
        }
        if self.experiment is not None:
            document["next"] = {
                "what": self.experiment.what,
                "command": "\n".join(self.experiment.commands),
                "if": dict(self.experiment.outcomes),
            }
        return document


def _reason(reason: Reason) -> dict[str, Any]:
    document: dict[str, Any] = {"text": reason.text, "weight": reason.weight}
    if reason.rule:
        document["rule"] = reason.rule
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


def weigh(facts: Facts, faults: Sequence[Match] = ()) -> Differential:
    """Weigh the causes; nothing is offered where nothing is wrong. Known faults speak for the causes they name."""
    if not facts.symptoms:
        return Differential()
    weighed: list[tuple[Cause, WeighedCause]] = []
    out: list[WeighedCause] = []
    crashes: list[RuleCrash] = []
    for cause in known_causes():
        try:
            if not cause.explains & facts.symptoms or not cause.applies(facts):
                continue
            one, refuted = _weighed(cause, facts, faults)
        except Exception as error:  # noqa: BLE001 - one cause that fails is reported, and the others go on
            crashes.append(RuleCrash("cause", cause.id, f"{type(error).__name__}: {error}"))
        else:
            if refuted:
                out.append(one)
            elif one.reasons_for and one.weight > UNEXPLAINED_WEIGHT:
                weighed.append((cause, one))
    weighed.sort(key=lambda pair: (-pair[1].weight, pair[1].id))
    listed = weighed[:LISTED]
    unexplained = facts.symptoms - frozenset().union(*(cause.explains for cause, _ in listed))
    closing = () if _all_certain(listed, facts.symptoms) else (_none_of_these(sorted(unexplained)),)
    return Differential((*(one for _, one in listed), *closing), tuple(out), tuple(crashes))


def _weighed(cause: Cause, facts: Facts, faults: Sequence[Match]) -> tuple[WeighedCause, bool]:
    reasons = [*cause.reasons(facts), *_known(cause, faults)]
    refuted = any(reason.refuting for reason in reasons)
    one = WeighedCause(
        id=cause.id,
        title=cause.title,
        kind=cause.kind.value,
        weight=cause.prior() + sum(reason.weight for reason in reasons),
        reasons_for=tuple(reason for reason in reasons if reason.weight > 0),
        reasons_against=tuple(reason for reason in reasons if reason.weight < 0),
        established=any(reason.sufficient for reason in reasons) and not refuted,
        experiment=cause.experiment(facts),
    )
    return one, refuted


def _known(cause: Cause, faults: Sequence[Match]) -> Iterator[Reason]:
    """The known faults that name this cause; several count once, the surest first."""
    for match in faults:
        if match.fault.cause == cause.id and match.standing is not Standing.FIXED:
            weight = STRONG if match.standing is Standing.AFFECTS else HINT
            yield favours(weight, f"known upstream: {match.fault.title} ({match.fault.link})")
            return


def _all_certain(listed: Sequence[tuple[Cause, WeighedCause]], symptoms: frozenset[Symptom]) -> bool:
    """Whether certain causes explain every symptom, so that nothing is left to be none of these."""
    explained = frozenset().union(*(cause.explains for cause, one in listed if one.established))
    return symptoms <= explained


def _none_of_these(unexplained: Sequence[Symptom]) -> WeighedCause:
    reasons = [Reason(f"nothing else here explains that {symptom}", 0.0) for symptom in unexplained]
    reasons.append(Reason(f"in {len(UNEXPLAINED)} of {REPORTS} public reports nobody found the cause", 0.0))
    return WeighedCause(
        id=NONE_OF_THESE,
        title="None of these explains it",
        kind="unknown",
        weight=UNEXPLAINED_WEIGHT,
        reasons_for=tuple(reasons),
        reasons_against=(),
        established=False,
        experiment=None,
    )
