"""Every metric family that draftscope exports: name, meaning, labels, and where its values come from.

Base units, ratios from 0 to 1, counters that end in ``_total``. The endpoint, the page of metrics and the
checks of boards and rules all read from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
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

_STATES: Final = tuple(state.value for state in State)
_EXPONENT_FROM: Final = 1e6
"""Where the library begins to write exponents; smaller numbers it leaves to Python."""
_with_exponent: Final[Callable[[float], str]] = floatToGoString
_ANY_RUN: Final = "\0"
"""Stands for the number of a run."""

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
    """A family with series of every present run.

    ``lines`` writes those of a run letter by letter as the library does, labels sorted, in a third of the time. Either
    format has the same.
    """

    lines: Callable[[JudgedRun], str] = lambda _: ""


def line_of(name: str, run: int, value: Any) -> str:
    """A series that has no label but the run's number; none where its value is not known."""
    number = _number(value)
    return f'{name}{{run="{run}"}} {number}\n' if number else ""


def _number(value: Any) -> str:
    """A finite number, "" for all else."""
    if type(value) not in (int, float) or not math.isfinite(value):
        return ""
    return repr(float(value)) if value < _EXPONENT_FROM else _with_exponent(value)


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


AGE: Final = Family("draftscope_data_age_seconds", "Time since the last sign of life of a run.", ("run",))


def info(allowed: Sequence[str] = ()) -> RunFamily:
    """The names of a run, and those of its free labels that are allowed."""
    labels = tuple(sorted((*TAKEN, *allowed)))

    def lines(judged: JudgedRun) -> str:
        known = {
            **judged.labels,
            "run": str(judged.id),
            "deployment": deployment_of(judged),
            "replica": place_of(judged),
            "engine": judged.engine,
            "engine_version": judged.engine_version or "",
            "method": judged.summary.get("method", judged.serving.method) or "",
            "model": model_of(judged),
            "draft": names.model(judged.serving.draft_model),
        }
        shown = ",".join([f'{label}="{_escaped(known.get(label, ""))}"' for label in labels])
        return f"draftscope_run_info{{{shown}}} 1.0\n"

    text = "The run at a place (replica); always 1. Joins names to the other families."
    return RunFamily("draftscope_run_info", text, labels, lines)


def _figure(name: str, text: str, of: Callable[[JudgedRun], Any]) -> RunFamily:
    return RunFamily(name, text, ("run",), lambda judged: line_of(name, judged.id, of(judged)))


def _quantity(name: str, key: str) -> RunFamily:
    quantity = QUANTITIES[key]
    return _figure(name, f"{quantity.label}: {quantity.definition}", lambda judged: judged.figures.get(key))


def _by_position(name: str, key: str) -> RunFamily:
    quantity = QUANTITIES[key]

    def lines(judged: JudgedRun) -> str:
        listed = judged.figures.get(key)
        values = map(_number, listed[:MOST_POSITIONS] if isinstance(listed, list) else ())
        run = f'run="{judged.id}"'
        positions = [
            f'{name}{{position="{position}",{run}}} {value}\n' for position, value in enumerate(values, 1) if value
        ]
        return "".join(positions)

    text = f"{quantity.label}: {quantity.definition} The first draft is position 1."
    return RunFamily(name, text, ("position", "run"), lines)


def _drift(judged: JudgedRun, key: str) -> Any:
    return (judged.summary.get("drift") or {}).get(key)


def _drifted(judged: JudgedRun) -> float | None:
    drifted = _drift(judged, "drifted")
    return None if drifted is None else float(drifted)


@lru_cache(maxsize=1024)
def _verdicts(verdicts: tuple[tuple[str, str], ...]) -> str:
    """The lines of all runs with these verdicts, but for their numbers."""
    return "".join(
        f'draftscope_verdict{{question="{question}",run="{_ANY_RUN}",state="{state}"}} {float(state == answer)}\n'
        for question, answer in verdicts
        for state in _STATES
    )


@lru_cache(maxsize=1024)
def _open_findings(findings: tuple[tuple[str, str, int], ...]) -> str:
    """The lines of all runs with these findings, but for their numbers."""
    return "".join(
        f'draftscope_open_findings{{rule="{rule}",run="{_ANY_RUN}",severity="{severity}"}} {float(count)}\n'
        for rule, severity, count in findings
    )


RUN_FAMILIES: Final[tuple[RunFamily, ...]] = (
    _figure(
        "draftscope_run_start_time_seconds", "Start of a run, seconds since 1970.",
        lambda judged: judged.started_at,
    ),
    _figure(
        "draftscope_judged_timestamp_seconds", "When a run was judged last, seconds since 1970.",
        lambda judged: judged.judged_at,
    ),
    RunFamily(
        "draftscope_verdict", "1 for the state a question was answered with, else 0.", ("question", "run", "state"),
        lambda judged: _verdicts(judged.verdicts).replace(_ANY_RUN, str(judged.id)),
    ),
    RunFamily(
        "draftscope_open_findings", "Findings that are open.", ("rule", "run", "severity"),
        lambda judged: _open_findings(judged.open_findings).replace(_ANY_RUN, str(judged.id)),
    ),
    _quantity("draftscope_acceptance_length_tokens", "acceptance_length"),
    _quantity("draftscope_max_acceptance_length_tokens", "max_acceptance_length"),
    _quantity("draftscope_expected_acceptance_length_tokens", "expected_acceptance_length"),
    _quantity("draftscope_realistic_acceptance_length_tokens", "realistic_acceptance_length"),
    _quantity("draftscope_break_even_acceptance_length_tokens", "break_even_acceptance_length"),
    _quantity("draftscope_retained_acceptance_ratio", "retained_share"),
    _quantity("draftscope_draft_acceptance_ratio", "draft_acceptance_rate"),
    _quantity("draftscope_conditional_acceptance_ratio", "conditional_acceptance_rate"),
    _by_position("draftscope_position_acceptance_ratio", "acceptance_rate_at"),
    _by_position("draftscope_conditional_position_acceptance_ratio", "conditional_acceptance_rate_at"),
    _quantity("draftscope_draft_depth_tokens", "draft_depth"),
    _quantity("draftscope_verify_width_tokens", "verify_width"),
    _quantity("draftscope_verify_steps_total", "verify_steps"),
    _quantity("draftscope_drafted_tokens_total", "drafted_tokens"),
    _quantity("draftscope_accepted_tokens_total", "accepted_tokens"),
    _quantity("draftscope_generated_tokens_total", "generated_tokens"),
    _quantity("draftscope_generation_throughput_tokens_per_second", "generation_throughput"),
    _figure(
        "draftscope_baseline_throughput_tokens_per_second",
        "Throughput of the comparable run without speculation.",
        lambda judged: judged.summary.get("baseline_throughput"),
    ),
    _quantity("draftscope_step_seconds", "step_seconds"),
    _quantity("draftscope_running_requests", "running_requests"),
    _quantity("draftscope_speedup_ratio", "speedup"),
    _quantity("draftscope_step_cost_ratio", "step_cost_ratio"),
    _figure(
        "draftscope_drift_statistic",
        "Summed shortfall of acceptance against the start of the run, beyond the allowance; 0 is none.",
        lambda judged: _drift(judged, "statistic"),
    ),
    _figure(
        "draftscope_drift_threshold", "The drift statistic above which acceptance counts as drifted.",
        lambda judged: _drift(judged, "threshold"),
    ),
    _figure(
        "draftscope_drifted",
        "1 from when the drift statistic passed its threshold until it is back at 0, else 0.",
        _drifted,
    ),
    _figure(
        "draftscope_overridden_arguments", "Launch arguments that run with another value than asked.",
        lambda judged: judged.summary.get("overridden"),
    ),
    _figure(
        "draftscope_changed_arguments",
        "Launch arguments that run with another value than in the run before at this place.",
        lambda judged: judged.summary.get("changed"),
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
