"""PAY007: captured graphs are off in the steps that matter."""

from __future__ import annotations

import pandas as pd

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class CudaGraphDowngraded(Rule):
    """Decoding runs without a captured graph in a share of the steps.

    Why it matters:
        Without a graph the CPU launches every kernel of draft and target one by one. A
        speculative step launches several times as many as a plain one, so it suffers most.

    How to fix:
        Capture the batch sizes that occur (`--cuda-graph-max-bs` on SGLang), and look for lines
        that disable graphs.

    Example:
        `cuda graph: False` in 40% of the decode lines at 96 running requests.

    Source:
        SGLang 0.4.6 to 0.5.23: the flag of the decode line.
    """

    id, name = "PAY007", "cuda-graph-downgraded"
    question = Question.PAYOFF
    severity = Severity.WARNING

    def check(self, run: RunView, windows: pd.DataFrame, thresholds: Thresholds) -> Outcome:
        """The share of counted windows without a graph; a CPU has none."""
        rows = windows[windows["graph"].notna() & windows["running_requests"].gt(0)]
        if rows.empty or run.on_cpu:
            raise cannot_look("the engine runs without a GPU" if run.on_cpu else "no window states whether a graph ran")
        off = ~rows["graph"].astype(bool)
        share = float(off.mean())
        if share < thresholds.graphless_share:
            return
        with_graph = rows[~off]["running_requests"].max() if not off.all() else None
        batch = float(rows[off]["running_requests"].median())
        limit = (
            f" The largest batch with a graph was {with_graph:g}."
            if with_graph is not None
            else " No window ran from one."
        )
        yield self.finding(
            f"{words.percent(share)} of the windows decoded without a captured graph",
            f"They ran {words.significant(batch)} requests.{limit}",
            values={
                "graphless_share": share,
                "running_requests": batch,
                "cuda_graph_max_bs": run.arguments.value("cuda_graph_max_bs"),
            },
            evidence=[run.window_evidence(rows.index[int(off.to_numpy().argmax())])],
            fix=[
                "Raise --cuda-graph-max-bs above the batch sizes that occur.",
                "Look for --disable-cuda-graph and for lines that say graphs are disabled.",
            ],
            verify=["grep -c 'cuda graph: False' LOG"],
        )
