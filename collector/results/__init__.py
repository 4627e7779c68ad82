"""Results of benchmarks: plain tables, and the files that benchmark tools write."""

from __future__ import annotations

from collector.results.reading import Results, holds_results, read_results, tool_of

__all__ = ["Results", "holds_results", "read_results", "tool_of"]
