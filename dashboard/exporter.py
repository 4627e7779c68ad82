"""``/metrics``: the stored judgements as Prometheus metrics.

Everything comes from what was stored when a run was judged, so a scrape costs a few queries. The
number of series is bounded: the latest runs of every place, and no labels but those below. Sample
runs never appear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from collector.domain.findings import State
from collector.domain.quantities import QUANTITIES
from collector.storage.engine import Database
from collector.storage.overview import Overview, load_overview
from collector.storage.runs import StoredRun
from dashboard import names
from dashboard.deployments import deployment_of, model_of
from dashboard.pages.templating import product_version

RUNS_PER_PLACE: Final = 2
"""The present run and the one before it."""
MOST_RUNS: Final = 1000

FIGURES: Final[Mapping[str, str]] = {
    "draftscope_acceptance_length_tokens": "acceptance_length",
    "draftscope_expected_acceptance_length_tokens": "expected_acceptance_length",
    "draftscope_realistic_acceptance_length_tokens": "realistic_acceptance_length",
    "draftscope_retained_acceptance_ratio": "retained_share",
    "draftscope_draft_acceptance_ratio": "draft_acceptance_rate",
    "draftscope_conditional_acceptance_ratio": "conditional_acceptance_rate",
    "draftscope_generation_throughput_tokens_per_second": "generation_throughput",
    "draftscope_step_cost_ratio": "step_cost_ratio",
    "draftscope_speedup_ratio": "speedup",
}
"""Metrics that are one quantity of the judged run each."""


class RunCollector(Collector):
    """Collects from the database at every scrape."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """No names ahead of time: registering must not ask the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families.

        Raises:
            StorageError: the database refused.
        """
        with self._database.reading() as connection:
            overview = load_overview(connection, per_place=RUNS_PER_PLACE, most_runs=MOST_RUNS)
        judged = [run for run in overview.runs if run.judged_at is not None]
        yield _info(overview.runs)
        yield _verdicts(judged)
        for name, quantity in FIGURES.items():
            yield _figure(name, quantity, judged)
        yield _open_findings(overview)
        yield _overridden(judged)
        yield _age(overview.runs, self._clock())
        yield from _own_health(overview)


def metrics_router(database: Database, clock: Callable[[], float] = time.time) -> APIRouter:
    """The endpoint, with a registry of its own: nothing of this process or its libraries is exported by accident."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunCollector(database, clock))
    router = APIRouter()

    @router.get("/metrics", summary="Verdicts and figures for Prometheus", response_class=Response)
    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type})

    return router


def _info(runs: Iterable[StoredRun]) -> Metric:
    labels = ("run", "deployment", "engine", "engine_version", "method", "model", "draft")
    family = GaugeMetricFamily("draftscope_run_info", "A run of an engine; always 1.", labels=labels)
    for run in runs:
        version = "" if run.engine_version is None else str(run.engine_version)
        method = run.summary.get("method", run.serving.method) or ""
        draft = names.model(run.serving.draft_model)
        family.add_metric([str(run.id), deployment_of(run), run.engine, version, method, model_of(run), draft], 1)
    return family


def _verdicts(runs: Iterable[StoredRun]) -> Metric:
    family = GaugeMetricFamily(
        "draftscope_verdict",
        "1 for the state a question was answered with, else 0.",
        labels=("run", "question", "state"),
    )
    for run in runs:
        for question, verdict in run.verdicts.items():
            for state in State:
                family.add_metric([str(run.id), question.value, state.value], float(verdict.state is state))
    return family


def _figure(name: str, key: str, runs: Iterable[StoredRun]) -> Metric:
    quantity = QUANTITIES[key]
    family = GaugeMetricFamily(name, f"{quantity.label}: {quantity.definition}", labels=("run",))
    for run in runs:
        value = run.summary["quantities"].get(key, {}).get("value")
        if _is_number(value):
            family.add_metric([str(run.id)], value)
    return family


def _open_findings(overview: Overview) -> Metric:
    family = GaugeMetricFamily(
        "draftscope_open_findings", "Findings that are open.", labels=("run", "rule", "severity")
    )
    for item in overview.findings:
        family.add_metric([str(item.run_id), item.rule, item.severity.word], item.count)
    return family


def _overridden(runs: Iterable[StoredRun]) -> Metric:
    family = GaugeMetricFamily(
        "draftscope_overridden_arguments", "Launch arguments that run with another value than asked.", labels=("run",)
    )
    for run in runs:
        family.add_metric([str(run.id)], run.summary["overridden"])
    return family


def _age(runs: Iterable[StoredRun], now: float) -> Metric:
    family = GaugeMetricFamily(
        "draftscope_data_age_seconds", "Time since the last sign of life of a run.", labels=("run",)
    )
    for run in runs:
        if run.ended_at is not None:
            family.add_metric([str(run.id)], round(now - run.ended_at, 3))
    return family


def _own_health(overview: Overview) -> Iterator[Metric]:
    yield _single("draftscope_runs", "Runs that are stored.", overview.stored_runs)
    yield _single(
        "draftscope_unjudged_runs", "Stored runs that wait for their first judgement.", overview.unjudged_runs
    )
    yield _single("draftscope_engine_lines", "Lines of engines in the sources that are stored.", overview.engine_lines)
    yield _single("draftscope_unread_lines", "Those of them that were not understood.", overview.unread_lines)
    deliveries = GaugeMetricFamily(
        "draftscope_alert_deliveries", "Alerts by channel: pending, sent, failed.", labels=("channel", "status")
    )
    for (channel, status), count in overview.deliveries.items():
        deliveries.add_metric([channel, status], count)
    yield deliveries
    build = GaugeMetricFamily("draftscope_build_info", "The release of draftscope; always 1.", labels=("version",))
    build.add_metric([product_version()], 1)
    yield build


def _single(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
