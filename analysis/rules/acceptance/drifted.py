"""ACC004: acceptance fell during the run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.case import Case
from analysis.figures import Pooled, pooled_acceptance, varying_rows
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.theory.replicas import ReplicaVerdict
from analysis.thresholds import Thresholds
from analysis.view import RunView
from analysis.watching import Drift, among_siblings, drift_in, outliers_of
from collector.domain.findings import Confidence, Finding, Question, Severity
from collector.domain.runs import Watched


class AcceptanceDrifted(Rule):
    """Acceptance fell while the server ran.

    Why it matters:
        What was measured after the start no longer holds. Either the traffic changed, or the
        server did (longer contexts, a swapped adapter, a cache that filled).

    How to fix:
        Look at what changed at that time: routes, prompt and output lengths, temperature. If
        the traffic is the same, restart one replica and compare.

    Example:
        Length 2.9 in the first third of the windows, 2.4 in the last.

    Source:
        Theory section 4.6. Of a watched run, and of its fleet as a whole, an online detector takes in every
        minute; in a log the last third is compared with the first by both intervals.
    """

    id, name = "ACC004", "acceptance-drifted"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    needs = ("ACC006",)

    def check(
        self, speculating: RunView, acceptance: Pooled, thresholds: Thresholds, findings: Sequence[Finding],
        watched: Watched | None, case: Case,
    ) -> Outcome:  # fmt: skip
        """Where the detectors stand; of a log, the last third of the counted blocks against the first."""
        if watched is not None and watched.state.get("origin") is not None:
            yield from self._live(speculating, watched, case.drift, findings)
        else:
            yield from self._in_a_log(speculating, acceptance, thresholds, findings)

    def _live(
        self, speculating: RunView, watched: Watched, drift: Drift | None, findings: Sequence[Finding]
    ) -> Outcome:
        fleet = drift_in(watched.fleet_state) if len(watched.recent) > 1 else None
        if drift is None and fleet is None:
            raise cannot_look("what is normal is still being learnt", "traffic of about an hour")
        if any(finding.rule == "ACC006" for finding in findings):
            return
        if drift is not None and drift.drifted:
            others = "" if fleet is None else _beside(fleet, among_siblings(watched))
            yield self._of_detector(speculating, drift, "run", "of this run", others)
        if watched.leads and fleet is not None and fleet.drifted:
            others = f" {len(watched.recent)} runs of {watched.fleet} are watched."
            if behind := outliers_of(watched):
                others += f" Look first at {words.listing(behind)}, far below the others (ACC007)."
            yield self._of_detector(speculating, fleet, "fleet", f"of the whole fleet {watched.fleet}", others)

    def _of_detector(self, speculating: RunView, drift: Drift, scope: str, whose: str, others: str) -> Finding:
        latest = drift.normal if drift.latest is None else drift.latest
        since = "" if drift.onset is None else f" since {words.instant(drift.onset)}"
        lost = 1 - latest / drift.normal if drift.normal > 0 else 0.0
        return self.finding(
            f"Acceptance {whose} fell{since}: length {words.length(1 + drift.normal)} was normal, "
            f"{words.length(1 + latest)} of late",
            f"Sums of what lacks, minute by minute, passed what chance makes.{others} "
            "This ends when acceptance has been back for as long as it takes to be sure.",
            scope=scope,
            values={
                **speculating.figures(*ACCEPTANCE_VALUES),
                "previous": 1 + drift.normal,
                "last": 1 + latest,
                "lost_share": lost,
                "onset": drift.onset,
            },
            evidence=speculating.first_and_last,
            fix=[
                "Compare the traffic before and after: routes, prompt and output lengths, temperature.",
                "Same traffic: restart one replica and compare it with the others.",
            ],
            verify=["Look at the acceptance length of its siblings over the same hours."],
        )

    def _in_a_log(
        self, speculating: RunView, acceptance: Pooled, thresholds: Thresholds, findings: Sequence[Finding]
    ) -> Outcome:
        """The last third of the counted blocks against the first."""
        frame = speculating.frame[varying_rows(speculating.frame)]
        block = frame["block"].to_numpy()
        blocks = np.unique(block[frame["counted"].to_numpy(dtype=bool)])
        if len(blocks) < thresholds.drift_windows:
            needed = f"{thresholds.drift_windows} windows; {len(blocks)} were read"
            raise cannot_look(f"a drift takes {needed}", "a longer log")
        if any(finding.rule == "ACC006" for finding in findings):
            return
        third = len(blocks) // 3
        first = pooled_acceptance(frame, speculating.drafting, np.isin(block, blocks[:third]))
        last = pooled_acceptance(frame, speculating.drafting, np.isin(block, blocks[-third:]))
        if first is None or last is None or first.accepted_per_step <= 0:
            return
        fell = first.accepted_per_step - last.accepted_per_step
        lost = fell / first.accepted_per_step
        if fell <= math.hypot(first.interval.half, last.interval.half) or lost < thresholds.regression_share:
            return
        yield self.finding(
            f"Acceptance fell during the run: length {words.length(first.length)} at first, {words.length(last.length)} at the end",
            f"{words.percent(lost)} of the accepted drafts are gone between the first and the last third of "
            f"{words.plural(acceptance.windows, 'window')}. It may be the traffic and not the server.",
            values={
                **speculating.figures(*ACCEPTANCE_VALUES),
                "previous": first.length,
                "last": last.length,
                "lost_share": lost,
            },
            evidence=speculating.first_and_last,
            fix=[
                "Compare the traffic of both ends: routes, prompt and output lengths, temperature.",
                "Same traffic: restart one replica and compare it with the others.",
            ],
            verify=["Split the log at the change and run draftscope diagnose LATER --previous EARLIER."],
        )


def _beside(fleet: Drift, own: ReplicaVerdict | None) -> str:
    """What the fleet as a whole, and its own standing in it, says of a run that fell."""
    if not fleet.drifted:
        return " The fleet as a whole did not fall, so it is this run and not the traffic, if all get the same."
    if own is not None and own.outlier:
        return " The fleet as a whole fell, but this run is far below its siblings (ACC007): look at this run first."
    return " The fleet as a whole fell as well: look at what all of it shares."
