"""What the draft's validation figures promise, and what a healthy deployment keeps of it."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.figures import Pooled
from analysis.theory.divergence import Divergence, divergence_test, margin, realistic_length
from analysis.theory.training import promised_length
from collector.domain.drafts import Validation
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
            "validation_accuracy": Estimate(self.validation.accuracy),
            "expected_acceptance_length": Estimate(self.expected_length, note=self.note),
            "realistic_acceptance_length": Estimate(self.realistic_length, assumed=True),
        }
        if self.validation.accuracy_at:
            figures["validation_accuracy_at"] = Estimate(list(self.validation.accuracy_at))
        if pooled is not None and self.expected_length > 1:
            test = self.test(pooled)
            figures["retained_share"] = Estimate(
                test.retained_share, test.low, test.high, pooled.interval.method, pooled.windows, pooled.verify_steps
            )
        return figures


def promise_of(validation: Validation, depth: int, temperature: float | None) -> Promise:
    """Work out the promise of a validation at a depth; temperature ``None`` is read as greedy."""
    promised = promised_length(validation.accuracy, validation.accuracy_at, str(validation.measure), depth)
    return Promise(
        validation=validation,
        depth=depth,
        expected_length=promised.length,
        realistic_length=realistic_length(promised.length, depth, temperature),
        margin=margin(depth, temperature),
        note=promised.note,
    )
