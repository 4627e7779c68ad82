"""Runs and findings as the analysis would store them, made by hand."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from collector.domain.arguments import Argument, Arguments
from collector.domain.findings import Confidence, Finding, Question, Severity, State, Verdict
from collector.domain.runs import RunRecord
from collector.domain.versions import Release
from collector.storage.findings import Judgement, Transitions, save_judgement
from collector.storage.runs import load_stored, save_run
from collector.storage.sources import source_at
from dashboard.alerts import Alerting, queue_alerts


def save(
    connection: Connection, *, host: str = "gpu7", port: int | None = 30000, started: float = 1000.0, ended: float = 1500.0,
    sample: bool = False, model: str = "/models/Kimi-K2.5", source: str = "input.log", **others: Any,
) -> int:  # fmt: skip
    """A run of SGLang with EAGLE-3."""
    stated = {
        "model_path": model,
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": "/models/kimi-k25-eagle3",
    }
    record = RunRecord(
        engine="sglang",
        source=source,
        engine_version=Release.parse("0.5.10"),
        started_at=started,
        ended_at=ended,
        host=host,
        port=port,
        arguments=Arguments({name: Argument(name, effective=value) for name, value in stated.items()}),
        labels=others.pop("labels", {"team": "search"}),
    )
    source_id = source_at(connection, f"{host}:{port} {started} {source}", at=1.0)
    return save_run(connection, record, source_id=source_id, sample=sample, at=1.0, **others)


def finding(rule: str = "PAY001", severity: Severity = Severity.WARNING, **others: Any) -> Finding:
    defaults: dict[str, Any] = {
        "name": "slower-than-baseline",
        "confidence": Confidence.HIGH,
        "title": "Speculation makes this server 39% slower",
        "why": "54.8 tok/s against 89.9 tok/s.",
        "values": {"speedup": 0.609},
        "fix": ("Repair acceptance.",),
    }
    return Finding(rule=rule, severity=severity, **{**defaults, **others})


def judge(
    connection: Connection, run_id: int, *findings: Finding, alerting: Alerting | None = None, at: float, **others: Any
) -> Transitions:
    """Store a judgement, and queue its alerts, as the product does."""
    states = {
        Question.CONFIG: State.OK,
        Question.ACCEPTANCE: State.CANNOT_TELL,
        Question.PAYOFF: State.PROBLEM,
        Question.DATA: State.OK,
    }
    verdicts = tuple(Verdict(question, state, f"{question}: {state}") for question, state in states.items())
    judgement = Judgement(headline="Slower.", verdicts=verdicts, findings=findings, **others)
    transitions = save_judgement(connection, run_id, judgement, at=at)
    if alerting is not None:
        queue_alerts(connection, load_stored(connection, run_id), transitions, alerting, at=at)
    return transitions
