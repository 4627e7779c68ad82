"""The cumulative counters of vLLM's V0 engine.

Source: vLLM, ``vllm/spec_decode/metrics.py``, up to 0.9.2.
"""

from __future__ import annotations

from typing import NamedTuple


class LifetimeCounts(NamedTuple):
    """The cumulative counters of a V0 line: draft tokens, emitted tokens (the target's own included), and depth."""

    drafted: int
    emitted: int
    depth: int

    @property
    def verify_steps(self) -> float:
        """Steps times requests: every draft of V0 has full length."""
        return self.drafted / self.depth

    @property
    def accepted(self) -> float:
        """Accepted tokens as the other engines count them.

        What V0 prints as accepted also counts tokens behind a rejected one, so it cannot be used.
        """
        return self.emitted - self.verify_steps
