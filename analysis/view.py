"""One run as the analysis sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from analysis.benchmarks import drafting_of_rows, latencies_of, latency_quantities
from analysis.drafting import (
    Drafting,
    assume_from,
    assume_width,
    concerns_drafts,
    configuration_quantities,
    drafting_of,
    infer_from_requests,
    infer_width,
)
from analysis.resolve import Resolution, resolve_range
from analysis.thresholds import Thresholds
from collector.domain.arguments import Arguments
from collector.domain.evidence import Evidence
from collector.domain.quantities import Estimate
from collector.domain.runs import Role, RunRecord
from collector.domain.versions import ReleaseRange

if TYPE_CHECKING:
    import pandas as pd

    from analysis.figures import Pooled
    from analysis.printed import PrintedRate
    from analysis.traffic import Traffic

ALWAYS_PREDICTED = frozenset({"disable_overlap_schedule", "enable_two_batch_overlap"})
"""Flags that rules ask about even where nobody gave them and no step touches them."""


@dataclass
class RunView:
    """One run as the analysis sees it: arguments with predictions, windows as a frame, quantities.

    ``judged`` is the subject's view, from which a previous or baseline run without drafting
    arguments takes over method and depth (marked assumed).
    """

    record: RunRecord
    role: Role
    thresholds: Thresholds = field(default_factory=Thresholds)
    judged: RunView | None = None
    prediction_fault: str = ""
    rules_by_flag: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def releases(self) -> ReleaseRange:
        """The releases this run may be: the stated one, else what its lines allow."""
        version = self.record.engine_version
        return ReleaseRange(version, version) if version is not None else self.record.release_range

    @cached_property
    def resolution(self) -> Resolution | None:
        """What the engine is predicted to make of the launch command; ``None`` without one."""
        if not self.record.arguments.any_requested:
            return None
        launch = self.record.launch
        try:
            return resolve_range(
                self.record.engine,
                self.record.arguments.requested(),
                releases=self.releases,
                environment=launch.environment if launch else {},
                draft=self.record.draft_config,
                target=self.record.target_config,
                device=self.record.device,
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours must not hide what the engine itself said
            self.prediction_fault = f"{type(error).__name__}: {error}"
            return None

    @cached_property
    def arguments(self) -> Arguments:
        """Asked, predicted and effective arguments."""
        arguments = self.record.arguments
        if self.resolution is None:
            return arguments
        touched = {change.flag for change in self.resolution.changes} | set(arguments)
        shown = {
            name: value
            for name, value in self.resolution.effective.items()
            if name in touched or concerns_drafts(name) or name in ALWAYS_PREDICTED
        }
        return arguments.with_predicted(shown)

    def predicted_line(self, flag: str) -> str | None:
        """The last line that the engine is predicted to print about a flag, ``None`` where it is silent."""
        changes = self.resolution.changes_of(flag) if self.resolution is not None else ()
        return next((change.line for change in reversed(changes) if change.line is not None), None)

    @cached_property
    def on_cpu(self) -> bool:
        """Whether the engine runs without a GPU, where graphs and speeds mean something else."""
        return bool(self.arguments.value("device") == "cpu")

    @cached_property
    def drafting(self) -> Drafting:
        """Method, depth, width and branching."""
        stated = drafting_of(self.record.engine, self.arguments)
        if stated.known:
            return stated
        if all(window.printed_length is None for window in self.record.windows):
            return drafting_of_rows(self.record.results) or self._drafting_of_requests() or stated
        lengths = self.frame["printed_length"].to_numpy(dtype=float)
        rates = self.frame["printed_rate"].to_numpy(dtype=float)
        if self.judged is not None and self.judged.drafting.method is not None:
            return assume_from(self.judged.drafting, lengths, rates)
        inferred = infer_width(lengths, rates)
        if inferred is None:
            return Drafting(known=False, method="unknown")
        width, definition = inferred
        return Drafting(
            method="unknown",
            depth=width - 1,
            width=width,
            topk=1,
            assumed=True,
            note=f"inferred from the printed pairs: rate = {definition}; taken to be a chain",
        )

    def _drafting_of_requests(self) -> Drafting | None:
        """How the requests draft, where no argument says so; ``None`` where they do not say either."""
        inferred = infer_from_requests(self.record.requests)
        if inferred is None or self.judged is None or self.judged.drafting.method is None:
            return inferred
        return assume_width(self.judged.drafting, inferred)

    @property
    def method(self) -> str | None:
        """The method's name, ``None`` where the run does not speculate."""
        return self.drafting.method

    @property
    def depth(self) -> int | None:
        """Longest run of drafts, k."""
        return self.drafting.depth

    @property
    def width(self) -> int | None:
        """Tokens verified a step, n, the root included."""
        return self.drafting.width

    @property
    def topk(self) -> int | None:
        """Branching; 1 is a chain."""
        return self.drafting.topk

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All windows; see :func:`analysis.frame.window_frame`."""
        from analysis.frame import window_frame

        on_cpu = self.record.arguments.value("device") == "cpu"
        return window_frame(self.record.engine, self.record.windows, self.thresholds, on_cpu=on_cpu)

    @cached_property
    def pooled(self) -> Pooled | None:
        """Acceptance over the requests or windows that count; ``None`` where nothing was verified."""
        if self.traffic is not None and self.traffic.stand:
            return self.traffic.pooled
        if not self.record.windows:
            return None
        from analysis.figures import pooled_acceptance

        return pooled_acceptance(self.frame, self.drafting)

    @cached_property
    def traffic(self) -> Traffic | None:
        """What request results say; ``None`` without any."""
        if not self.record.requests:
            return None
        from analysis.traffic import Traffic, stand_for_the_run

        others = any(window.verify_steps for window in self.record.windows)
        stand = stand_for_the_run(self.record.requests, asked=self.record.requests_asked, others=others)
        return Traffic(self.record.requests, self.drafting, stand)

    @property
    def temperatures(self) -> Mapping[float, float]:
        """Sampling temperatures of the traffic with their shares of the verify steps; empty where they are not known."""
        if self.record.temperature is not None:
            return {self.record.temperature: 1.0}
        return self.traffic.temperatures if self.traffic is not None else {}

    @cached_property
    def printed(self) -> PrintedRate | None:
        """What the engine's printed rate means here; ``None`` where it prints none."""
        if not self.record.windows:
            return None
        from analysis.printed import printed_rate

        return printed_rate(self.frame, self.drafting)

    @cached_property
    def unit_frames(self) -> dict[str, pd.DataFrame]:
        """The windows of each named unit, where there are several."""
        if not self.record.windows:
            return {}
        names = [name for name in self.frame["unit"].unique() if name]
        if len(names) < 2 and self.frame["unit"].nunique() < 2:
            return {}
        return {name: self.frame[self.frame["unit"] == name] for name in sorted(names, key=_natural)}

    @cached_property
    def unit_pooled(self) -> dict[str, Pooled]:
        """Acceptance of each unit that verified anything."""
        if not self.unit_frames:
            return {}
        from analysis.figures import pooled_acceptance

        pooled = {name: pooled_acceptance(frame, self.drafting) for name, frame in self.unit_frames.items()}
        return {name: item for name, item in pooled.items() if item is not None}

    @cached_property
    def units(self) -> dict[str, dict[str, Estimate]]:
        """Quantities of each unit."""
        if not self.unit_frames:
            return {}
        from analysis.figures import acceptance_quantities, load_quantities

        return {
            name: {
                **(acceptance_quantities(self.unit_pooled[name], self.drafting) if name in self.unit_pooled else {}),
                **load_quantities(frame),
            }
            for name, frame in self.unit_frames.items()
        }

    @cached_property
    def measured(self) -> dict[str, Estimate]:
        """Quantities that this run's own inputs give."""
        figures = configuration_quantities(self.drafting)
        figures |= self._latencies()
        if self.traffic is not None and (self.traffic.stand or not self.record.windows):
            figures |= self.traffic.quantities
        if not self.record.windows and not self.record.prefills:
            return figures
        from analysis.figures import acceptance_quantities, coverage_quantities, load_quantities, prompt_quantities
        from analysis.frame import COUNTED_BY_ENGINE

        if self.pooled is not None:
            figures |= acceptance_quantities(self.pooled, self.drafting)
            if self.depth and self.record.events_of("system-efficiency"):  # vLLM's V0 engine prints it
                figures["system_efficiency"] = Estimate(self.pooled.length / (self.depth + 1))
        if self.traffic is None or not self.traffic.stand:
            figures |= coverage_quantities(self.frame, with_first_tokens=self.record.engine in COUNTED_BY_ENGINE)
        figures |= load_quantities(self.frame)
        figures |= prompt_quantities(self.record.prefills)
        if self.printed is not None and self.printed.definition is not None:
            figures["printed_rate_definition"] = Estimate(self.printed.definition)
        return figures

    def _latencies(self) -> dict[str, Estimate]:
        """Latencies of the engine's own histograms, else of responses, else of benchmarks."""
        of_requests = latency_quantities(self.traffic.latencies) if self.traffic is not None else {}
        return latencies_of(self.record.results) | of_requests | latency_quantities(self.record.latencies)

    @cached_property
    def quantities(self) -> dict[str, Estimate]:
        """All quantities; the case adds what follows from validation and baseline."""
        return dict(self.measured)

    def rule_of(self, flag: str) -> str | None:
        """The rule that speaks about a flag, if one does."""
        return self.rules_by_flag.get(flag)

    def window_evidence(self, row: int) -> Evidence | None:
        """The line behind one row of the frame; rebuilt from its figures where the text is no longer at hand."""
        window = self.frame.loc[row].to_dict()
        if not window["line"]:
            return None
        if self.record.line_text is not None and (text := self.record.line_text(int(window["position"]))):
            return Evidence(self.record.source, int(window["line"]), text)
        parts = [f"{label}: {window[key]:g}" for key, label in _SHOWN if window[key] == window[key]]
        unit = f" {window['unit']}" if window["unit"] else ""
        when = datetime.fromtimestamp(window["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        return Evidence(self.record.source, int(window["line"]), f"[{when}{unit}] " + ", ".join(parts))

    @property
    def first_and_last(self) -> list[Evidence | None]:
        """The lines of the first and last window that count."""
        rows = self.frame.index[self.frame["counted"] & self.frame["verify_steps"].gt(0)]
        return [self.window_evidence(int(row)) for row in rows[[0, -1]]] if len(rows) > 1 else []

    @property
    def first_and_last_plain(self) -> list[Evidence | None]:
        """The lines of the first and last steady window of a run without speculation."""
        rows = self.frame.index[self.frame["steady"] & self.frame["generation_throughput"].gt(0)]
        return [self.window_evidence(int(row)) for row in rows[[0, -1]]] if len(rows) > 1 else []

    def figures(self, *keys: str) -> dict[str, float | None]:
        """Several quantities' values by key, for the values of a finding; unknown ones are left out."""
        return {key: value for key in keys if (value := self.value(key)) is not None}

    def value(self, key: str) -> float | None:
        """The value of a numeric quantity, ``None`` if it is not known."""
        estimate = self.quantities.get(key)
        return None if estimate is None or isinstance(estimate.value, str) else float(estimate.value)


_SHOWN = (
    ("running_requests", "#running-req"),
    ("printed_length", "accept len"),
    ("printed_rate", "accept rate"),
    ("generation_throughput", "gen throughput (token/s)"),
)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]
