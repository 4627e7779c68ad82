"""Rows of a benchmark: what somebody measured at one setting."""

from __future__ import annotations

from dataclasses import dataclass

from collector.domain.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency over the requests of a benchmark, seconds; ``None`` where it is not stated."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


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
        acceptance_rate: as the report states it, in its own definition.
        time_to_first_token, time_per_output_token, inter_token_latency, request_latency: over the requests.
        output_tokens, requests, seconds: what was generated, by how many requests, in which time.
        tool, dataset, label: the tool that wrote it, the prompts, and the row's own name.
        remarks: what a reader must know of these figures.
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
    acceptance_rate: float | None = None
    time_to_first_token: Latency | None = None
    time_per_output_token: Latency | None = None
    inter_token_latency: Latency | None = None
    request_latency: Latency | None = None
    output_tokens: float | None = None
    requests: float | None = None
    seconds: float | None = None
    tool: str = ""
    dataset: str = ""
    label: str = ""
    remarks: tuple[str, ...] = ()
