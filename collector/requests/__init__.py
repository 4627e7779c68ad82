"""Responses of engines to request results: one module per engine in ``engines``, found in the package."""

from __future__ import annotations

from collector.requests.reader import Responses, holds_responses, read_responses

__all__ = ["Responses", "holds_responses", "read_responses"]
