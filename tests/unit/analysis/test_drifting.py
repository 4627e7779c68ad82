"""Where the drift detector stands at the end of a run."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.differences import changed_arguments
from analysis.drifting import acceptance_drift
from analysis.view import RunView
from collector.domain.runs import Role
from tests.rules.build import bundle

ARGS = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5, "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 6}  # fmt: skip
STEADY = {"count": 1100, "length": 2.8, "spread": 0.1, "running": 8, "throughput": 900.0}
FALLEN = {**STEADY, "count": 400, "length": 2.0, "after": 1200.0}


def view(**given: Any) -> RunView:
    return RunView(bundle({"args": ARGS, **given}).subject, Role.SUBJECT)


def test_a_steady_run_does_not_drift() -> None:
    drift = acceptance_drift(view(windows=STEADY))
    assert drift is not None
    assert drift.statistic < 1
    assert drift.threshold >= 8
    assert not drift.drifted


def test_a_run_that_falls_drifts_since_then() -> None:
    run = view(windows=[STEADY, FALLEN])
    drift = acceptance_drift(run)
    assert drift is not None
    assert drift.drifted
    assert drift.statistic == pytest.approx(drift.threshold)
    fell = run.frame["at"].iloc[STEADY["count"]]
    assert drift.onset is not None
    assert abs(drift.onset - fell) < 40 * run.frame["seconds"].median()


@pytest.mark.parametrize("windows", [{**STEADY, "count": 60}, {"count": 0}, None])
def test_a_young_run_has_nothing_to_be_compared_with(windows: dict[str, Any] | None) -> None:
    assert acceptance_drift(view(**({} if windows is None else {"windows": windows}))) is None


def test_arguments_that_changed_are_those_both_runs_state() -> None:
    before = view(args={**ARGS, "port": 1, "dp_size": 1, "only_before": 1})
    after = view(args={**ARGS, "port": 2, "dp_size": 4, "only_after": 1, "speculative_num_steps": 3})
    assert changed_arguments(before, after) == {"dp_size": (1, 4), "speculative_num_steps": (5, 3)}
