"""The diagnosis: the one document that terminal, pages, API, exporter and alerts show."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from analysis.causes.weighing import NONE_OF_THESE, WeighedCause
from analysis.documents import evidence_documents, finding_document, plain
from analysis.known_faults import Match
from analysis.published import PublishedRange
from analysis.theory.payoff import PayOff
from analysis.view import RunView
from collector.domain.arguments import UNSEEN, Argument
from collector.domain.findings import Finding, Question, RuleCrash, RuledOut, Severity, Skipped, State, Verdict
from collector.domain.quantities import Estimate
from collector.domain.runs import Reading, Role, Watched

if TYPE_CHECKING:
    from analysis.traffic import Traffic

SCHEMA: Final = "draftscope.diagnosis/1"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known and judged about one run.

    ``headline`` is the whole answer in one sentence, ``next_steps`` what to do first (at most
    three). ``runs`` has the subject first. ``payoff`` is set where a comparable baseline exists.
    ``watched`` is where the detectors of a watched run stand.
    ``published`` is what others report for this method and depth, as context alone.
    ``causes`` are weighed against each other, the likeliest first; ``refuted_causes`` are ruled out.
    ``known_faults`` of the engine affect this run, may affect it, or are fixed in its release.
    """

    headline: str
    next_steps: tuple[str, ...]
    verdicts: Mapping[Question, Verdict]
    runs: tuple[RunView, ...]
    findings: tuple[Finding, ...]
    ruled_out: tuple[RuledOut, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    crashes: tuple[RuleCrash, ...] = ()
    readings: tuple[Reading, ...] = ()
    payoff: PayOff | None = None
    watched: Watched | None = None
    published: PublishedRange | None = None
    causes: tuple[WeighedCause, ...] = ()
    refuted_causes: tuple[WeighedCause, ...] = ()
    known_faults: tuple[Match, ...] = ()

    @property
    def subject(self) -> RunView:
        """The judged run."""
        return self.runs[0]

    def run(self, role: Role) -> RunView | None:
        """The run in a role, if it is there."""
        return next((view for view in self.runs if view.role is role), None)

    @property
    def leading_causes(self) -> tuple[WeighedCause, ...]:
        """The first two causes, whose experiments are shown."""
        return tuple(cause for cause in self.causes if cause.id != NONE_OF_THESE)[:2]

    @property
    def worst(self) -> Severity | None:
        """The highest severity among the findings."""
        return max((finding.severity for finding in self.findings), default=None)

    @property
    def judged(self) -> bool:
        """Whether at least one verdict could be formed."""
        return any(verdict.state is not State.CANNOT_TELL for verdict in self.verdicts.values())

    def document(self) -> dict[str, Any]:
        """The document of DESIGN section 5, ready for JSON: finite numbers, plain types."""
        return {
            "schema": SCHEMA,
            "headline": self.headline,
            "next": list(self.next_steps),
            "verdicts": {
                question.value: _without_empty({"state": v.state.value, "summary": v.summary, "provide": v.provide})
                for question, v in self.verdicts.items()
            },
            "runs": [_run(view) for view in self.runs],
            "payoff": plain(self.payoff.document()) if self.payoff else None,
            "published": self.published.document() if self.published else None,
            "findings": [finding_document(finding) for finding in self.findings],
            "ruled_out": [
                {"rule": r.rule, "name": r.name, "why": r.why, "evidence": evidence_documents(r.evidence)}
                for r in self.ruled_out
            ],
            "causes": [cause.document() for cause in self.causes],
            "refuted_causes": [cause.document() for cause in self.refuted_causes],
            "known_faults": [match.document() for match in self.known_faults],
            "skipped": [
                _without_empty({"rule": s.rule, "name": s.name, "reason": s.reason, "provide": s.provide})
                for s in self.skipped
            ],
            "crashed": [{"rule": c.rule, "name": c.name, "error": c.error} for c in self.crashes],
            "reading": {reading.source: _reading(reading) for reading in self.readings},
        }


def schema() -> dict[str, Any]:
    """The published JSON Schema of the document."""
    document: dict[str, Any] = json.loads(files("analysis").joinpath("diagnosis.schema.json").read_text("utf-8"))
    return document


def _without_empty(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value not in ("", None)}


def _number(value: Any) -> dict[str, Any]:
    """A figure, and beside it what it was where JSON cannot hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"value": None, "raw": str(value)}
    return {"value": plain(value)}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    document = _number(estimate.value)
    for key in ("low", "high", "method", "windows", "verify_steps"):
        part = getattr(estimate, key)
        if part is not None:
            document[key] = plain(part)
    if estimate.assumed:
        document["assumed"] = True
    if estimate.note:
        document["note"] = estimate.note
    return document


def _argument(argument: Argument, rule: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key in ("requested", "predicted", "effective"):
        value = getattr(argument, key)
        if value is not UNSEEN:
            document[key] = plain(value)
    if rule is not None:
        document["rule"] = rule
    proof = argument.effective_evidence or argument.requested_evidence
    if proof is not None:
        document["evidence"] = proof.document()
    return document


def _run(view: RunView) -> dict[str, Any]:
    record = view.record
    requests = {} if view.traffic is None else {"requests": _requests(view.traffic)}
    return {
        "role": view.role.value,
        "engine": record.engine,
        "engine_version": str(record.engine_version) if record.engine_version else None,
        "engine_release_range": str(record.release_range),
        "method": view.method,
        "source": record.source,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "arguments": {name: _argument(argument, view.rule_of(name)) for name, argument in view.arguments.items()},
        "quantities": {key: _estimate(estimate) for key, estimate in view.quantities.items()},
        "units": {
            unit: {"quantities": {key: _estimate(estimate) for key, estimate in quantities.items()}}
            for unit, quantities in view.units.items()
        },
        **requests,
    }


def _requests(traffic: Traffic) -> dict[str, Any]:
    return {
        "count": len(traffic.results),
        "with_verify_steps": sum(result.counted for result in traffic.results),
        "judged_by": traffic.stand,
        "quantities": {key: _estimate(estimate) for key, estimate in traffic.quantities.items()},
        "strata": [
            {
                "by": stratum.by,
                "value": stratum.value,
                "requests": stratum.requests,
                "share": plain(stratum.share),
                "quantities": {key: _estimate(estimate) for key, estimate in stratum.quantities.items()},
            }
            for stratum in traffic.strata
        ],
    }


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "role": reading.role,
        "kind": reading.kind,
        "lines": reading.lines,
        "engine_lines": reading.engine_lines,
        "understood": reading.understood,
        "unread": reading.unread,
        "torn_samples": reading.torn_samples,
        "oversize_lines": reading.oversize_lines,
        "unread_shapes": [
            {"shape": shape.shape, "count": shape.count, "example": shape.example.document()}
            for shape in reading.unread_shapes
        ],
        "notes": list(reading.notes),
    }
