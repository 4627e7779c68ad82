"""Benchmark tools: one module each, found by walking this package."""
