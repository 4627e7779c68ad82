"""SGLang. The steps stand in one module per subject; importing a module registers its steps."""

from analysis.resolve.sglang import (
    algorithm,
    attention,
    capture,
    checks,
    depth,
    disaggregation,
    loading,
    memory,
    parallel,
    scheduling,
    start,
)
from analysis.resolve.sglang.engine import ENGINE

__all__ = [
    "ENGINE",
    "algorithm",
    "attention",
    "capture",
    "checks",
    "depth",
    "disaggregation",
    "loading",
    "memory",
    "parallel",
    "scheduling",
    "start",
]
