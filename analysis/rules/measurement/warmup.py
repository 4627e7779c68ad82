"""MEA005: a window was left out because its figure would have misled."""

from __future__ import annotations

import pandas as pd

from analysis import words
from analysis.base import Outcome, Rule
from analysis.frame import FIRST, IDLE, PREFILL
from analysis.view import RunView
from collector.domain.findings import Question, Severity

MISLEADING = 0.25
"""How far a window's throughput must lie from the steady one to be worth a note. Ratio."""


class WarmupWindowExcluded(Rule):
    """A window was left out: start-up, idle time or a prompt lay inside its clock.

    Why it matters:
        Its throughput is far from what the server does, and a mean over all lines, or the first
        line alone, would report a collapse that never was.

    How to fix:
        Nothing. Judge by the windows that count; pages show the others as grey rings.

    Example:
        The first decode line prints 0.39 tok/s where the next print 165 to 189.

    Source:
        SGLang's clock runs from the previous decode line; sglang issue 11948.
    """

    id, name = "MEA005", "warmup-window-excluded"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, run: RunView, windows: pd.DataFrame) -> Outcome:
        """The window whose throughput would have misled most, and how many there are."""
        steady = run.value("generation_throughput")
        units = max(1, windows["unit"].nunique())
        if not steady:
            return
        out = windows[windows["left_out"].isin([FIRST, IDLE, PREFILL]) & windows["generation_throughput"].gt(0)]
        apart = (out["generation_throughput"] * units / steady - 1).abs()
        misleading = out[apart > MISLEADING]
        if misleading.empty:
            return
        row = misleading.index[int(apart[misleading.index].argmax())]
        value = float(windows.loc[row, "generation_throughput"])
        others = f" So were {words.plural(len(misleading) - 1, 'other window')}." if len(misleading) > 1 else ""
        per_unit = steady / units
        yield self.finding(
            f"A window at {words.speed(value)} was left out",
            f"{str(windows.loc[row, 'left_out']).capitalize()}. Steady windows show {words.speed(per_unit)}.{others}",
            values={"generation_throughput": value, "steady_throughput": per_unit, "windows": len(misleading)},
            evidence=[run.window_evidence(row)],
            fix=["Nothing to do: it does not count."],
            verify=["Look at the lines before it: start-up, a pause or a prompt."],
        )
