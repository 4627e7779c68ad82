"""SGLang. The steps stand in one module per subject; importing a module registers its steps."""

from analysis.resolve.sglang import (
    adaptive,
    algorithm,
    attention,
    blocks,
    capture,
    checks,
    depth,
    determinism,
    disaggregation,
    late,
    memory,
    parallel,
    scheduling,
    start,
    targets,
    verification,
)
from analysis.resolve.sglang.engine import ENGINE

__all__ = [
    "ENGINE",
    "adaptive",
    "algorithm",
    "attention",
    "blocks",
    "capture",
    "checks",
    "depth",
    "determinism",
    "disaggregation",
    "late",
    "memory",
    "parallel",
    "scheduling",
    "start",
    "targets",
    "verification",
]
