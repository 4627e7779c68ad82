"""SGLang. The steps stand in one module per subject; importing a module registers its steps."""

from analysis.resolve.sglang import algorithm, depth, scheduling
from analysis.resolve.sglang.engine import ENGINE

__all__ = ["ENGINE", "algorithm", "depth", "scheduling"]
