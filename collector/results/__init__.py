"""Benchmark results as people keep them."""
