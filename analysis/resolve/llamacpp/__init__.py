"""llama.cpp: what ``llama-server`` makes of its options, builds b7551 to b11549.

Builds are sampled: what changed between two of them is known to have changed in between, not where.
The modules follow the server's own stations; importing them registers their steps.

Source: ``common/arg.cpp``, ``common/speculative.cpp`` and ``tools/server/server-context.cpp`` of the
builds in ``engine.READ``.
"""

from __future__ import annotations

from analysis.resolve.llamacpp import drafting, options, types
from analysis.resolve.llamacpp.engine import ENGINE

__all__ = ["ENGINE", "drafting", "options", "types"]
