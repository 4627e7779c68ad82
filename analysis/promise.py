"""What the draft's validation figures promise, and what a healthy deployment keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from analysis.figures import Pooled
from analysis.theory import training
from analysis.theory.divergence import Divergence, divergence_test, margin, mixed_temperature_factor, realistic_length
from collector.domain.drafts import Measure, Validation, Vocabulary
from collector.domain.errors import ImpossibleFigure
from collector.domain.quantities import Estimate


@dataclass(frozen=True, slots=True)
class Promise:
    """Expected and realistic length of one draft at one depth.

    ``margin`` is the share of the expected accepted drafts below which a run diverges.
    """

    validation: Validation
    depth: int
    expected_length: float
    realistic_length: float
    margin: float
    note: str

    def test(self, pooled: Pooled) -> Divergence:
        """The divergence test of theory section 4.4."""
        return divergence_test(pooled.interval, self.expected_length - 1, self.margin)

    def quantities(self, pooled: Pooled | None) -> dict[str, Estimate]:
        """The figures as quantities; the share kept only where something was measured."""
        figures = {
            "expected_acceptance_length": Estimate(self.expected_length, note=self.note),
            "realistic_acceptance_length": Estimate(self.realistic_length, assumed=True),
        }
        if self.validation.accuracy is not None:
            figures["validation_accuracy"] = Estimate(self.validation.accuracy)
        if self.validation.accuracy_at:
            figures["validation_accuracy_at"] = Estimate(list(self.validation.accuracy_at))
        if pooled is not None and self.expected_length > 1:
            test = self.test(pooled)
            figures["retained_share"] = Estimate(
                test.retained_share, test.low, test.high, pooled.interval.method, pooled.windows, pooled.verify_steps
            )
        return figures


def promise_of(validation: Validation, depth: int, temperature: float | Mapping[float, float] | None) -> Promise:
    """Work out the promise of a validation at a depth.

    ``temperature`` is that of the traffic, or several with their shares of the verify steps; ``None`` or none is read as
    greedy.
    """
    try:
        promised = promised_by(validation, depth)
    except ImpossibleFigure:
        validation = replace(
            validation,
            measure=Measure.UNKNOWN,
            remarks=(*validation.remarks, "its figures by position cannot be what they are said to be"),
        )
        promised = promised_by(validation, depth)
    shares = temperature if isinstance(temperature, Mapping) else {} if temperature is None else {temperature: 1.0}
    kept = mixed_temperature_factor(shares, validation.temperature)
    least = 1.0
    if promised.length > 1:
        least = (promised.length_low - 1) / (promised.length - 1)
    return Promise(
        validation=validation,
        depth=depth,
        expected_length=promised.length,
        realistic_length=1 + kept * (realistic_length(promised.length, depth, None, replayed=validation.replayed) - 1),
        margin=least * kept * margin(depth, None, replayed=validation.replayed),
        note=promised.note,
    )


def promised_by(validation: Validation, depth: int) -> training.Promise:
    """The promise of figures as their trainer counts them, its vocabulary allowed for.

    Raises:
        ImpossibleFigure: the figures cannot be what the source says they are.
    """
    stated = validation.length
    if stated is not None and (validation.accuracy is None or (validation.replayed and not validation.accuracy_at)):
        return training.promised_by_length(stated, validation.length_depth, depth)
    accuracy, at = validation.accuracy or 0.0, validation.accuracy_at
    coverage = validation.draft_vocabulary_coverage
    inside = coverage if validation.vocabulary is Vocabulary.INSIDE else None
    if coverage is None or validation.vocabulary is not Vocabulary.LEFT_OUT:
        return training.promised_length(accuracy, at, str(validation.measure), depth, inside)
    powers = range(1, len(at) + 1) if validation.measure is Measure.PREFIX else [1] * len(at)
    counted = [value * coverage**power for value, power in zip(at, powers, strict=True)]
    promised = training.promised_length(accuracy * coverage, counted, str(validation.measure), depth)
    note = f"tokens outside the draft's vocabulary were left out, so the figures are multiplied by {coverage:.3g}"
    return replace(promised, note="; ".join(filter(None, (promised.note, note))))
