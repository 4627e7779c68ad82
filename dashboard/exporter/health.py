"""How draftscope itself fares, as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from collector.storage.overview import Health, Present
from dashboard.collecting import TargetState
from dashboard.exporter.families import HEALTH_FAMILIES, Values
from dashboard.pages.templating import product_version


def health_metrics(
    health: Health, present: Present, targets: Sequence[TargetState], *, scrapes: int, now: float
) -> Iterator[Metric]:
    """The families of :data:`HEALTH_FAMILIES`, each with its series."""
    targets = list({state.address: state for state in targets}.values())
    lags = [run.ended_at - run.judged_at for run in present.runs if run.ended_at and run.judged_at]
    values: dict[str, Values] = {
        "draftscope_present_runs": _single(len(present.runs) + present.left_out),
        "draftscope_left_out_runs": _single(present.left_out),
        "draftscope_runs": _single(health.stored_runs),
        "draftscope_unjudged_runs": _single(health.unjudged_runs),
        "draftscope_judging_lag_seconds": _single(round(max(0.0, *lags, 0.0), 3)),
        "draftscope_engine_lines": _single(health.engine_lines),
        "draftscope_unread_lines": _single(health.unread_lines),
        "draftscope_alert_deliveries": health.deliveries.items(),
        "draftscope_alert_delivery_lag_seconds": (
            ((channel,), round(now - since, 3)) for channel, since in health.pending_since.items()
        ),
        "draftscope_target_up": (
            ((state.address,), float(not state.error)) for state in targets if state.scrapes or state.failures
        ),
        "draftscope_target_age_seconds": (
            ((state.address,), round(now - state.last_success_at, 3))
            for state in targets
            if state.last_success_at is not None
        ),
        "draftscope_target_scrapes_total": (((state.address,), state.scrapes) for state in targets),
        "draftscope_target_failures_total": (((state.address,), state.failures) for state in targets),
        "draftscope_exporter_scrapes_total": _single(scrapes),
        "draftscope_build_info": [((product_version(),), 1.0)],
    }
    for name, family in HEALTH_FAMILIES.items():
        yield family.metric(values[name])


def _single(value: float) -> Values:
    return [((), value)]
