"""Every metric family that draftscope exports: name, meaning, labels, and where its values come from.

Base units, ratios from 0 to 1, counters that end in ``_total``. The endpoint, the page of metrics and the
checks of boards and rules all read from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from collector.domain.findings import State
from collector.domain.quantities import QUANTITIES
from collector.storage.overview import JudgedRun
from dashboard import names
from dashboard.deployments import deployment_of, model_of, place_of
from dashboard.exporter.choices import TAKEN

MOST_POSITIONS: Final = 16
"""Positions of a draft that have series of their own."""

_STATES: Final = tuple(State)
_number: Final[Callable[[float], str]] = floatToGoString

Values = Iterable[tuple[Sequence[str], float]]
"""Values of the labels of each series, and the series' own."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric family. ``name`` is as it is scraped, ``_total`` included."""

    name: str
    text: str
    labels: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``counter`` or ``gauge``."""
        return "counter" if self.name.endswith("_total") else "gauge"

    def metric(self, values: Values = ()) -> Metric:
        """The family with these series."""
        make = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = make(self.name, self.text, labels=self.labels)
        for labels, value in values:
            metric.add_metric(labels, value)
        return metric


@dataclass(frozen=True, slots=True)
class RunFamily(Family):
    """A family with series of every present run: ``of`` gives them, without their first label, ``run``."""

    of: Callable[[JudgedRun], Values] = lambda _: ()

    def lines(self, judged: JudgedRun) -> str:
        """A run's lines as they stand in either format; the library takes several times as long for them."""
        begin = f'{self.name}{{run="{judged.run.id}"'
        names = self.labels[1:]
        return "".join(
            f"{begin}{''.join(map(_label, names, labels))}}} {_number(value)}\n" for labels, value in self.of(judged)
        )


def _label(name: str, value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        value = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f',{name}="{value}"'


AGE: Final = Family("draftscope_data_age_seconds", "Time since the last sign of life of a run.", ("run",))


def info(allowed: Sequence[str] = ()) -> RunFamily:
    """The names of a run, and those of its free labels that are allowed."""

    def values(judged: JudgedRun) -> Values:
        run = judged.run
        version = "" if run.engine_version is None else str(run.engine_version)
        method = run.summary.get("method", run.serving.method) or ""
        draft = names.model(run.serving.draft_model)
        known = (deployment_of(run), place_of(run), run.engine, version, method, model_of(run), draft)
        yield (*known, *(run.labels.get(label, "") for label in allowed)), 1

    text = "The run at a place (replica); always 1. Joins names to the other families."
    return RunFamily("draftscope_run_info", text, (*TAKEN, *allowed), values)


def _figure(name: str, key: str) -> RunFamily:
    """A family that is one quantity of the judged run."""
    quantity = QUANTITIES[key]
    return RunFamily(name, f"{quantity.label}: {quantity.definition}", ("run",), _once(lambda run: _value(run, key)))


def _by_position(name: str, key: str) -> RunFamily:
    quantity = QUANTITIES[key]

    def values(judged: JudgedRun) -> Values:
        listed = _value(judged, key)
        for position, value in enumerate(listed[:MOST_POSITIONS] if isinstance(listed, list) else (), 1):
            if _is_number(value):
                yield (str(position),), value

    text = f"{quantity.label}: {quantity.definition} The first draft is position 1."
    return RunFamily(name, text, ("run", "position"), values)


def _once(of: Callable[[JudgedRun], Any]) -> Callable[[JudgedRun], Values]:
    """One series without further labels, none where the value is not known."""

    def values(judged: JudgedRun) -> Values:
        value = of(judged)
        if _is_number(value):
            yield (), value

    return values


def _value(judged: JudgedRun, key: str) -> Any:
    return judged.run.summary.get("quantities", {}).get(key, {}).get("value")


def _drift(judged: JudgedRun, key: str) -> Any:
    return (judged.run.summary.get("drift") or {}).get(key)


def _drifted(judged: JudgedRun) -> float | None:
    drifted = _drift(judged, "drifted")
    return None if drifted is None else float(drifted)


def _verdicts(judged: JudgedRun) -> Values:
    for question, verdict in judged.run.verdicts.items():
        for state in _STATES:
            yield (question.value, state.value), float(verdict.state is state)


def _findings(judged: JudgedRun) -> Values:
    for (rule, severity), count in judged.open_findings.items():
        yield (rule, severity.word), count


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


RUN_FAMILIES: Final[tuple[RunFamily, ...]] = (
    RunFamily(
        "draftscope_run_start_time_seconds", "Start of a run, seconds since 1970.", ("run",),
        _once(lambda judged: judged.run.started_at),
    ),
    RunFamily(
        "draftscope_judged_timestamp_seconds", "When a run was judged last, seconds since 1970.", ("run",),
        _once(lambda judged: judged.run.judged_at),
    ),
    RunFamily(
        "draftscope_verdict", "1 for the state a question was answered with, else 0.", ("run", "question", "state"),
        _verdicts,
    ),
    RunFamily("draftscope_open_findings", "Findings that are open.", ("run", "rule", "severity"), _findings),
    _figure("draftscope_acceptance_length_tokens", "acceptance_length"),
    _figure("draftscope_max_acceptance_length_tokens", "max_acceptance_length"),
    _figure("draftscope_expected_acceptance_length_tokens", "expected_acceptance_length"),
    _figure("draftscope_realistic_acceptance_length_tokens", "realistic_acceptance_length"),
    _figure("draftscope_break_even_acceptance_length_tokens", "break_even_acceptance_length"),
    _figure("draftscope_retained_acceptance_ratio", "retained_share"),
    _figure("draftscope_draft_acceptance_ratio", "draft_acceptance_rate"),
    _figure("draftscope_conditional_acceptance_ratio", "conditional_acceptance_rate"),
    _by_position("draftscope_position_acceptance_ratio", "acceptance_rate_at"),
    _by_position("draftscope_conditional_position_acceptance_ratio", "conditional_acceptance_rate_at"),
    _figure("draftscope_draft_depth_tokens", "draft_depth"),
    _figure("draftscope_verify_width_tokens", "verify_width"),
    _figure("draftscope_verify_steps_total", "verify_steps"),
    _figure("draftscope_drafted_tokens_total", "drafted_tokens"),
    _figure("draftscope_accepted_tokens_total", "accepted_tokens"),
    _figure("draftscope_generated_tokens_total", "generated_tokens"),
    _figure("draftscope_generation_throughput_tokens_per_second", "generation_throughput"),
    RunFamily(
        "draftscope_baseline_throughput_tokens_per_second",
        "Throughput of the comparable run without speculation.", ("run",),
        _once(lambda judged: judged.run.summary.get("baseline_throughput")),
    ),
    _figure("draftscope_step_seconds", "step_seconds"),
    _figure("draftscope_running_requests", "running_requests"),
    _figure("draftscope_speedup_ratio", "speedup"),
    _figure("draftscope_step_cost_ratio", "step_cost_ratio"),
    RunFamily(
        "draftscope_drift_statistic",
        "Summed shortfall of acceptance against the start of the run, beyond the allowance; 0 is none.", ("run",),
        _once(lambda judged: _drift(judged, "statistic")),
    ),
    RunFamily(
        "draftscope_drift_threshold", "The drift statistic above which acceptance counts as drifted.", ("run",),
        _once(lambda judged: _drift(judged, "threshold")),
    ),
    RunFamily(
        "draftscope_drifted",
        "1 from when the drift statistic passed its threshold until it is back at 0, else 0.", ("run",),
        _once(_drifted),
    ),
    RunFamily(
        "draftscope_overridden_arguments", "Launch arguments that run with another value than asked.", ("run",),
        _once(lambda judged: judged.run.summary.get("overridden")),
    ),
    RunFamily(
        "draftscope_changed_arguments",
        "Launch arguments that run with another value than in the run before at this place.", ("run",),
        _once(lambda judged: judged.run.summary.get("changed")),
    ),
)  # fmt: skip
"""What is known of a run once it was judged."""


HEALTH_FAMILIES: Final[dict[str, Family]] = {
    family.name: family
    for family in (
        Family("draftscope_present_runs", "Places that gave a sign of life lately; each has one run here."),
        Family("draftscope_left_out_runs", "Present runs beyond the most that are exported."),
        Family("draftscope_runs", "Runs that are stored."),
        Family("draftscope_unjudged_runs", "Stored runs that wait for their first judgement."),
        Family(
            "draftscope_judging_lag_seconds",
            "How far the latest data of any present run is ahead of its judgement; 0 where all are judged.",
        ),
        Family("draftscope_engine_lines", "Lines of engines in the sources that are stored."),
        Family("draftscope_unread_lines", "Those of them that were not understood."),
        Family("draftscope_alert_deliveries", "Stored alerts by where they stand.", ("channel", "status")),
        Family(
            "draftscope_alert_delivery_lag_seconds", "How long the oldest alert that still waits does so.", ("channel",)
        ),
        Family("draftscope_target_up", "1 where the last scrape of an engine succeeded, else 0.", ("target",)),
        Family("draftscope_target_age_seconds", "Time since the last scrape of an engine that succeeded.", ("target",)),
        Family("draftscope_target_scrapes_total", "Scrapes of an engine that were stored.", ("target",)),
        Family("draftscope_target_failures_total", "Scrapes of an engine that failed.", ("target",)),
        Family("draftscope_exporter_scrapes_total", "Scrapes of this exporter that were answered."),
        Family("draftscope_build_info", "The release of draftscope; always 1.", ("version",)),
    )
}
"""How draftscope itself fares; the targets are those that this process watches."""


def all_families() -> tuple[Family, ...]:
    """Every family in the order of the exposition."""
    return (info(), *RUN_FAMILIES, AGE, *HEALTH_FAMILIES.values())
