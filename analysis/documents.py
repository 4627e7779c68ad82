"""Parts that several documents share, ready for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from collector.domain.evidence import Evidence
from collector.domain.findings import Finding


def plain(value: Any) -> Any:
    """A value as JSON can hold it: tuples become lists, non-finite numbers ``None``."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def evidence_documents(items: Iterable[Evidence]) -> list[dict[str, object]]:
    """Places with their lines."""
    return [item.document() for item in items]


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding."""
    document: dict[str, Any] = {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity.word,
        "confidence": finding.confidence.word,
        "scope": finding.scope,
        "title": finding.title,
        "why": finding.why,
        "values": plain(finding.values),
        "evidence": evidence_documents(finding.evidence),
        "fix": list(finding.fix),
        "verify": list(finding.verify),
    }
    if finding.ruled_out:
        document["ruled_out"] = [{"name": rival.name, "why": rival.why} for rival in finding.ruled_out]
    return document
