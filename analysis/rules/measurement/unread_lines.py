"""MEA009: a share of the engine's lines was not understood."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import words
from analysis.base import Outcome, Rule
from analysis.thresholds import Thresholds
from collector.domain.findings import Question, Severity
from collector.domain.runs import Reading


class LinesNotUnderstood(Rule):
    """A share of the engine's own lines was not read, or a sample line was torn.

    Why it matters:
        What was not read cannot be judged. A new release may have changed its wording, and a
        verdict could rest on the part that still looks familiar.

    How to fix:
        Look at the shapes listed. If they carry figures, a format needs a new variant; please
        report them.

    Example:
        3% of the lines have a shape no release that is known prints.

    Source:
        The share is that of lines with the engine's own prefix.
    """

    id, name = "MEA009", "lines-not-understood"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, readings: Sequence[Reading], thresholds: Thresholds) -> Outcome:
        """One finding per source."""
        for reading in readings:
            share = reading.unread / reading.engine_lines if reading.engine_lines else 0.0
            if share <= thresholds.unread_share and not reading.torn_samples:
                continue
            torn = (
                f" {words.plural(reading.torn_samples, 'line')} began like a decode line and could not be read."
                if reading.torn_samples
                else ""
            )
            yield self.finding(
                f"{words.plural(reading.unread + reading.torn_samples, 'line')} of {reading.source} not understood",
                f"{words.percent(share)} of its {words.count(reading.engine_lines)} engine lines have an unknown shape.{torn}",
                values={
                    "metric": reading.source,
                    "lines": reading.engine_lines,
                    "unread": reading.unread,
                    "torn_samples": reading.torn_samples,
                    "shapes": [shape.shape for shape in reading.unread_shapes[:5]],
                },
                evidence=[shape.example for shape in reading.unread_shapes[:5]],
                fix=["Report the shapes, so that the format learns them."],
                verify=['draftscope diagnose LOG --format json   # its part "reading" lists all shapes'],
            )
