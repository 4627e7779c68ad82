"""What was judged about runs: verdicts, the outcome of every rule, and findings that open and resolve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, or_, select, update

from collector.domain.errors import UnknownName
from collector.domain.evidence import Evidence
from collector.domain.findings import (
    Confidence,
    Finding,
    RivalExplanation,
    RuleCrash,
    RuledOut,
    Severity,
    Skipped,
    Verdict,
)
from collector.storage.bulk import digest_of
from collector.storage.lines import forget_unused_lines, save_lines
from collector.storage.relations import earlier_in_place, later_in_place
from collector.storage.tables import (
    FINDING_EVIDENCE,
    FINDINGS,
    JUDGEMENTS,
    RULE_OUTCOMES,
    RUNS,
    SOURCE_LINES,
    VERDICTS,
)
from collector.storage.types import storable


class FindingState(StrEnum):
    """Whether the problem is there as far as known."""

    OPEN = "open"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything one look at a run yields.

    ``clear`` names the rules (id, name) that looked and found nothing. ``summary`` holds the figures that
    lists of runs show, in the form of the diagnosis document. ``state`` stands for the data and limits it
    rests on (:mod:`collector.storage.states`).
    """

    headline: str = ""
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    crashes: tuple[RuleCrash, ...] = ()
    clear: tuple[tuple[str, str], ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    state: str = ""


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with its history. Instants are seconds since 1970."""

    id: int
    run_id: int
    fingerprint: str
    state: FindingState
    first_seen: float
    last_seen: float
    resolved_at: float | None
    finding: Finding


@dataclass(frozen=True, slots=True)
class Transitions:
    """Findings that a judgement opened, made graver and resolved: what alerts are about."""

    opened: tuple[StoredFinding, ...] = ()
    raised: tuple[StoredFinding, ...] = ()
    resolved: tuple[StoredFinding, ...] = ()


def save_judgement(connection: Connection, run_id: int, judgement: Judgement, *, at: float) -> Transitions:
    """Replace what was judged about a run; findings open, go on or resolve.

    * A finding is the same one as before if rule, scope and subject are the same.
    * A rule that could not look this time (skipped or crashed) resolves nothing.
    * A run that takes the place of earlier ones continues their findings: what it still has was
      opened before, what it no longer has is resolved.
    * A run whose place another one has taken opens nothing. What is open there stays so until the
      other one is judged, whichever is judged first, so that no end goes untold.

    Queue alerts for the returned transitions in the same transaction.
    """
    _save_verdicts(connection, run_id, judgement, at)
    _save_outcomes(connection, run_id, judgement)
    blind = {item.rule for item in judgement.skipped} | {item.rule for item in judgement.crashes}
    replaced = bool(later_in_place(connection, run_id))
    earlier = {} if replaced else _open_of(connection, earlier_in_place(connection, run_id))
    stored = {row.fingerprint: row for row in connection.execute(_of_runs([run_id]))}

    opened: list[int] = []
    raised: list[int] = []
    present: set[str] = set()
    identities: set[tuple[str, str, str]] = set()
    for finding, fingerprint in _fingerprints(run_id, judgement.findings):
        present.add(fingerprint)
        identities.add(finding.identity)
        before = stored.get(fingerprint)
        first_seen = before.first_seen if before is not None else at
        continued = earlier.get(finding.identity, [])
        if continued:
            first_seen = min(first_seen, *(row.first_seen for row in continued))
        open_before = [row for row in (before, *continued) if row is not None and row.state == FindingState.OPEN]
        state = FindingState.RESOLVED if replaced and not open_before else FindingState.OPEN
        finding_id = _write(connection, run_id, finding, fingerprint, state=state, first_seen=first_seen, at=at)
        if not (replaced or open_before):
            opened.append(finding_id)
        elif not replaced and finding.severity > max(row.severity for row in open_before):
            raised.append(finding_id)

    gone = [
        row
        for row in stored.values()
        if row.state == FindingState.OPEN and row.fingerprint not in present and row.rule not in blind
    ]
    inherited = [row for identity, rows in earlier.items() for row in rows if identity in identities]
    ended = [row for identity, rows in earlier.items() for row in rows
             if identity not in identities and row.rule not in blind]  # fmt: skip
    _resolve(connection, [row.id for row in (*gone, *inherited, *ended)], at)
    forget_unused_lines(connection, [run_id])
    resolved = _once_each([*gone, *ended])
    changed = (opened, raised, [row.id for row in resolved])
    return Transitions(*(tuple(load_findings(connection, ids=ids)) for ids in changed))


def load_findings(
    connection: Connection,
    *,
    ids: Sequence[int] | None = None,
    run_ids: Sequence[int] | None = None,
    state: FindingState | None = None,
    least: Severity = Severity.INFO,
) -> list[StoredFinding]:
    """Findings of this severity and graver ones with their evidence, the gravest first."""
    query = select(FINDINGS)
    if ids is not None:
        query = query.where(FINDINGS.c.id.in_(ids))
    if run_ids is not None:
        query = query.where(FINDINGS.c.run_id.in_(run_ids))
    if state is not None:
        query = query.where(FINDINGS.c.state == state.value)
    if least is not Severity.INFO:
        query = query.where(FINDINGS.c.severity >= int(least))
    rows = connection.execute(
        query.order_by(FINDINGS.c.severity.desc(), FINDINGS.c.last_seen.desc(), FINDINGS.c.id)
    ).all()
    evidence = _load_evidence(connection, [row.id for row in rows])
    return [_stored(row, evidence.get(row.id, ())) for row in rows]


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings to list; what is ``None`` or empty does not restrict.

    ``rule`` is a code or a name, ``severity`` the least grave one, ``model`` a part of the name of the target, the draft
    or what is served.
    """

    rule: str = ""
    severity: Severity | None = None
    state: FindingState | None = None
    run_id: int | None = None
    model: str = ""
    deployment: str = ""


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """A finding, and what the run it is about serves."""

    stored: StoredFinding
    target_model: str
    draft_model: str
    deployment: str | None


def list_findings(
    connection: Connection, wanted: FindingFilter, *, limit: int, offset: int = 0
) -> tuple[list[ListedFinding], int]:
    """Some findings of all runs, the gravest first and of these the latest, and how many match."""
    columns, runs = FINDINGS.c, RUNS.c
    conditions = []
    if wanted.rule:
        conditions.append(or_(columns.rule == wanted.rule.upper(), columns.name == wanted.rule.lower()))
    if wanted.severity is not None:
        conditions.append(columns.severity >= int(wanted.severity))
    if wanted.state is not None:
        conditions.append(columns.state == wanted.state.value)
    if wanted.run_id is not None:
        conditions.append(columns.run_id == wanted.run_id)
    if wanted.deployment:
        conditions.append(runs.deployment == storable(wanted.deployment))
    if wanted.model:
        part = storable(wanted.model)
        names = runs.target_model, runs.draft_model, runs.served_model
        conditions.append(or_(*(name.icontains(part, autoescape=True) for name in names)))
    chosen = select(columns.id, runs.target_model, runs.draft_model, runs.deployment)
    chosen = chosen.join_from(FINDINGS, RUNS, columns.run_id == runs.id).where(*conditions)
    total = connection.execute(select(func.count()).select_from(chosen.subquery())).scalar_one()
    order = columns.severity.desc(), columns.last_seen.desc(), columns.id
    rows = connection.execute(chosen.order_by(*order).limit(limit).offset(offset)).all()
    stored = {item.id: item for item in load_findings(connection, ids=[row.id for row in rows])}
    return [ListedFinding(stored[row.id], *row[1:]) for row in rows], int(total)


def load_finding(connection: Connection, finding_id: int) -> StoredFinding:
    """One finding.

    Raises:
        UnknownName: there is none of this id.
    """
    found = load_findings(connection, ids=[finding_id])
    if not found:
        raise UnknownName(f"no finding has the id {finding_id}", hint="draftscope findings lists them")
    return found[0]


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """How one rule ended on one run: ``found``, ``clear``, ``ruled_out``, ``skipped`` or ``crashed``."""

    rule: str
    name: str
    outcome: str
    reason: str = ""
    provide: str = ""
    evidence: tuple[Evidence, ...] = ()


def load_outcomes(connection: Connection, run_id: int) -> list[RuleOutcome]:
    """How every rule ended on a run, by rule."""
    columns = RULE_OUTCOMES.c
    query = select(RULE_OUTCOMES).where(columns.run_id == run_id).order_by(columns.rule, columns.outcome)
    return [
        RuleOutcome(row.rule, row.name, row.outcome, row.reason, row.provide, tuple(Evidence(*e) for e in row.evidence))
        for row in connection.execute(query)
    ]


def _save_verdicts(connection: Connection, run_id: int, judgement: Judgement, at: float) -> None:
    for table in (JUDGEMENTS, VERDICTS):
        connection.execute(delete(table).where(table.c.run_id == run_id))
    values = {
        "run_id": run_id,
        "judged_at": at,
        "state": judgement.state,
        "headline": judgement.headline,
        "summary": dict(judgement.summary),
    }
    connection.execute(insert(JUDGEMENTS), values)
    rows = [
        {
            "run_id": run_id,
            "question": v.question.value,
            "state": v.state.value,
            "summary": v.summary,
            "provide": v.provide,
        }
        for v in judgement.verdicts
    ]
    if rows:
        connection.execute(insert(VERDICTS), rows)


def _save_outcomes(connection: Connection, run_id: int, judgement: Judgement) -> None:
    outcomes = [
        *(RuleOutcome(f.rule, f.name, "found") for f in judgement.findings),
        *(RuleOutcome(rule, name, "clear") for rule, name in judgement.clear),
        *(RuleOutcome(r.rule, r.name, "ruled_out", r.why, evidence=r.evidence) for r in judgement.ruled_out),
        *(RuleOutcome(s.rule, s.name, "skipped", s.reason, s.provide) for s in judgement.skipped),
        *(RuleOutcome(c.rule, c.name, "crashed", c.error) for c in judgement.crashes),
    ]
    rows = {
        (o.rule, o.outcome): {
            "run_id": run_id, "rule": o.rule, "outcome": o.outcome, "name": o.name, "reason": o.reason,
            "provide": o.provide, "evidence": [[e.source, e.line, e.text] for e in o.evidence],
        }
        for o in outcomes
    }  # fmt: skip
    connection.execute(delete(RULE_OUTCOMES).where(RULE_OUTCOMES.c.run_id == run_id))
    if rows:
        connection.execute(insert(RULE_OUTCOMES), list(rows.values()))


def _fingerprints(run_id: int, findings: Iterable[Finding]) -> Iterable[tuple[Finding, str]]:
    """Findings that would be the same one within a judgement are told apart by their order."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for finding in findings:
        yield finding, digest_of(run_id, *finding.identity, seen[finding.identity])
        seen[finding.identity] += 1


def _of_runs(run_ids: Sequence[int]) -> Any:
    columns = FINDINGS.c
    return select(
        columns.id, columns.fingerprint, columns.run_id, columns.rule, columns.scope, columns.about, columns.state,
        columns.severity, columns.first_seen,
    ).where(columns.run_id.in_(run_ids))  # fmt: skip


def _open_of(connection: Connection, run_ids: Sequence[int]) -> dict[tuple[str, str, str], list[Row[Any]]]:
    found: dict[tuple[str, str, str], list[Row[Any]]] = {}
    for row in connection.execute(_of_runs(run_ids).where(FINDINGS.c.state == FindingState.OPEN.value)):
        found.setdefault((row.rule, row.scope, row.about), []).append(row)
    return found


def _once_each(rows: Iterable[Row[Any]]) -> list[Row[Any]]:
    """One row an identity: several replaced runs may have had the same finding."""
    return list({(row.rule, row.scope, row.about, row.fingerprint): row for row in rows}.values())


def _write(
    connection: Connection, run_id: int, finding: Finding, fingerprint: str, *, state: FindingState,
    first_seen: float, at: float,
) -> int:  # fmt: skip
    rule, scope, about = finding.identity
    values = {
        "fingerprint": fingerprint,
        "run_id": run_id,
        "rule": rule,
        "name": finding.name,
        "severity": int(finding.severity),
        "confidence": int(finding.confidence),
        "scope": scope,
        "about": about,
        "title": finding.title,
        "why": finding.why,
        "figures": dict(finding.values),
        "fix": list(finding.fix),
        "verify": list(finding.verify),
        "ruled_out": [[rival.name, rival.why] for rival in finding.ruled_out],
        "state": state.value,
        "first_seen": first_seen,
        "last_seen": at,
        "resolved_at": at if state is FindingState.RESOLVED else None,
    }
    found = connection.execute(select(FINDINGS.c.id).where(FINDINGS.c.fingerprint == fingerprint)).scalar_one_or_none()
    if found is None:
        found = connection.execute(insert(FINDINGS).values(values).returning(FINDINGS.c.id)).scalar_one()
    else:
        connection.execute(update(FINDINGS).where(FINDINGS.c.id == found).values(values))
        connection.execute(delete(FINDING_EVIDENCE).where(FINDING_EVIDENCE.c.finding_id == found))
    lines = save_lines(connection, run_id, finding.evidence)
    rows = [
        {"finding_id": found, "ordinal": ordinal, "line_id": lines[item]}
        for ordinal, item in enumerate(finding.evidence)
    ]
    if rows:
        connection.execute(insert(FINDING_EVIDENCE), rows)
    return int(found)


def _resolve(connection: Connection, ids: Sequence[int], at: float) -> None:
    if ids:
        values = {"state": FindingState.RESOLVED.value, "resolved_at": at}
        connection.execute(update(FINDINGS).where(FINDINGS.c.id.in_(ids)).values(values))


def _load_evidence(connection: Connection, ids: Sequence[int]) -> dict[int, list[Evidence]]:
    query = (
        select(FINDING_EVIDENCE.c.finding_id, SOURCE_LINES.c.source, SOURCE_LINES.c.line, SOURCE_LINES.c.text)
        .join(SOURCE_LINES, FINDING_EVIDENCE.c.line_id == SOURCE_LINES.c.id)
        .where(FINDING_EVIDENCE.c.finding_id.in_(ids))
        .order_by(FINDING_EVIDENCE.c.finding_id, FINDING_EVIDENCE.c.ordinal)
    )
    found: dict[int, list[Evidence]] = {}
    for row in connection.execute(query):
        found.setdefault(row.finding_id, []).append(Evidence(row.source, row.line, row.text))
    return found


def _stored(row: Row[Any], evidence: Iterable[Evidence]) -> StoredFinding:
    finding = Finding(
        rule=row.rule,
        name=row.name,
        severity=Severity(row.severity),
        confidence=Confidence(row.confidence),
        title=row.title,
        why=row.why,
        scope=row.scope,
        values=row.figures,
        evidence=tuple(evidence),
        fix=tuple(row.fix),
        verify=tuple(row.verify),
        ruled_out=tuple(RivalExplanation(name, why) for name, why in row.ruled_out),
    )
    return StoredFinding(
        row.id,
        row.run_id,
        row.fingerprint,
        FindingState(row.state),
        row.first_seen,
        row.last_seen,
        row.resolved_at,
        finding,
    )
