"""Rows of a benchmark: what somebody measured at one setting."""

from __future__ import annotations

from dataclasses import dataclass

from collector.domain.evidence import Evidence


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One setting and its figures; ``None`` where the table does not say.

    Attributes:
        speculating: whether drafts were used.
        concurrency: requests at a time (batch size). depth, topk, width: of the draft.
        throughput: tokens per second.
        relative_low, relative_high: throughput over that without speculation, as a range (equal ends for one figure).
        acceptance_length: with the target's own token. accepted_tokens, drafted_tokens, verify_steps: counts.
        acceptance_rate_at: shares by position, if stated.
    """

    evidence: Evidence
    speculating: bool | None = None
    concurrency: float | None = None
    depth: int | None = None
    topk: int | None = None
    width: int | None = None
    throughput: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    acceptance_length: float | None = None
    accepted_tokens: float | None = None
    drafted_tokens: float | None = None
    verify_steps: float | None = None
    acceptance_rate_at: tuple[float, ...] = ()
