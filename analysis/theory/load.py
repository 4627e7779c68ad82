"""How batch size, context and experts change the pay-off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from analysis.theory.chain import expected_length


@dataclass(frozen=True, slots=True)
class StepTimeModel:
    """Time of a step as a fixed part, a part per verified token and a part per cached token, in seconds.

    ``draft`` is the time of all drafts of a step, ``draft_position`` that of each further position
    (autoregressive drafts), ``overhead`` what every step pays, plain ones too.
    """

    fixed: float
    per_token: float
    per_cached_token: float
    draft: float
    overhead: float
    draft_position: float = 0.0

    def plain(self, batch: int, context: float) -> float:
        """A plain decode step of ``batch`` requests with ``context`` cached tokens each."""
        return self._target(batch, context) + self.overhead

    def speculative(self, batch: int, context: float, depth: int) -> float:
        """A speculative step: the target verifies ``depth + 1`` tokens per request."""
        drafting = self.draft + self.draft_position * depth
        return self._target(batch * (depth + 1), batch * context / (batch * (depth + 1))) + drafting + self.overhead

    def speedup(self, rate: float, depth: int, batch: int, context: float) -> float:
        """Expected speed-up of a chain with a constant acceptance rate; 1 at depth 0.

        Raises:
            ImpossibleFigure: the rate is not between 0 and 1.
        """
        if depth == 0:
            return 1.0
        return expected_length(rate, depth) * self.plain(batch, context) / self.speculative(batch, context, depth)

    def best_depth(self, rate: float, batch: int, context: float, longest: int) -> int:
        """The depth with the highest speed-up at this load; 0 where none pays.

        Raises:
            ImpossibleFigure: the rate is not between 0 and 1.
        """
        return max(range(longest + 1), key=lambda depth: (self.speedup(rate, depth, batch, context), -depth))

    def _target(self, tokens: int, cached_per_token: float) -> float:
        return self.fixed + self.per_token * tokens + self.per_cached_token * tokens * cached_per_token


PUBLISHED_STEP_TIME: Final = StepTimeModel(
    fixed=5.89e-3, per_token=21.0e-6, per_cached_token=39e-9, draft=2.14e-3, overhead=1.21e-3
)
"""Llama-3.1-8B on one H100. Source: SpecDecode-Bench/simulator, ``predictor.py``. Its draft time hardly
depends on the depth; real autoregressive drafts add a part per position."""


def expected_experts(experts: int, active_per_token: int, tokens: float) -> float:
    """Distinct experts that ``tokens`` tokens touch under independent uniform routing: ``E (1 - (1 - K/E)^t)``."""
    return experts * (1 - math.pow(1 - active_per_token / experts, tokens))


def expert_growth(experts: int, active_per_token: int, batch: int, width: int) -> float:
    """Expert weights read by a verify step over those of a plain step at the same batch.

    Why a mixture of experts pays its penalty at small batch. Correlated routing makes it smaller.
    Source: MoESD, arXiv 2505.19645.
    """
    return expected_experts(experts, active_per_token, batch * width) / expected_experts(
        experts, active_per_token, batch
    )
