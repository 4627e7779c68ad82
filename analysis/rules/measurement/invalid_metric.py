"""MEA002: an impossible value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis import words
from analysis.base import Outcome, Rule
from analysis.theory.rates import RateDefinition
from analysis.view import RunView
from collector.domain.findings import Question, Severity

ROUNDING = 0.005
"""Half a unit of the last printed digit; acceptance figures are printed to two decimals."""

DEPTH_IN_LOG = {
    "sglang": "speculative_num_steps[^,]*",
    "vllm": "num_speculative_tokens[^,}]*",
    "llamacpp": "n_max=[0-9]+",
    "tensorrt-llm": "max_draft_len[^,]*",
}
"""Where an engine's log states the draft depth."""


class MetricInvalid(Rule):
    """A figure has a value that its definition makes impossible.

    Why it matters:
        A length above depth + 1, a length below 1 or a rate above 1 cannot come from counting.
        It means a wrong depth, another definition than assumed, or a fault in the engine's
        reporter, and every verdict that rests on it is void.

    How to fix:
        Check the depth that runs (argument line) and the release; the figure is reported as it
        is and never cut to what would be possible.

    Example:
        Length 4.6 with 3 draft steps.

    Source:
        Theory section 1.1: 1 <= acceptance length <= k + 1.
    """

    id, name = "MEA002", "metric-invalid"
    question = Question.DATA
    severity = Severity.WARNING

    def check(self, speculating: RunView, windows: pd.DataFrame) -> Outcome:
        """Length against 1 and depth + 1, rate against 1, both against NaN."""
        for metric, column, wrong, reason in _impossible(speculating, windows):
            values = windows[column].to_numpy(dtype=float)
            rows = np.flatnonzero(wrong)
            if rows.size == 0:
                continue
            # The worst is the one furthest from 1; a value that is no number has no rank, so the first is shown.
            distance = np.nan_to_num(np.abs(values[rows] - 1), nan=np.inf)
            row = int(rows[distance.argmax()])
            value = float(values[row])
            yield self.finding(
                f"Impossible {metric} {value:g}",
                f"{words.plural(rows.size, 'window')} of {len(windows)}: {reason}.",
                values={
                    "metric": column,
                    "printed": value,
                    "windows": int(rows.size),
                    "draft_depth": speculating.depth,
                },
                evidence=[speculating.window_evidence(row)],
                fix=["Check the depth that runs against the one that was assumed, and the engine's release."],
                verify=[f"grep -oE '{DEPTH_IN_LOG[speculating.record.engine]}' LOG"]
                if speculating.record.engine in DEPTH_IN_LOG
                else ["draftscope diagnose LOG --launch LAUNCH_COMMAND"],
            )


def _impossible(run: RunView, windows: pd.DataFrame) -> Iterator[tuple[str, str, pd.Series[bool], str]]:
    """Metric in words, its column, the windows in which it cannot be, and why it cannot."""
    lengths = windows["acceptance_length"]
    if run.depth is not None:
        most = run.depth + 1
        reason = f"at depth {run.depth} no step can yield more than {most}"
        yield "acceptance length", "acceptance_length", lengths > most + ROUNDING, reason
    below = (lengths < 1 - ROUNDING) & windows["verify_steps"].gt(0)
    yield "acceptance length", "acceptance_length", below, "every step yields at least the target's own token"
    definition = run.printed.definition if run.printed is not None else None
    if definition is not RateDefinition.LENGTH_DEPTH:
        too_high = windows["printed_rate"] > 1 + ROUNDING
        yield "accept rate", "printed_rate", too_high, "no definition in use here allows more than 1"
    yield "acceptance length", "printed_length", windows["printed_nan"], "the engine printed nan"
