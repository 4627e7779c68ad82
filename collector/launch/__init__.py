"""Launch commands: what was asked for, under the engine's own names."""

from __future__ import annotations

from collector.launch.commands import parse_launch

__all__ = ["parse_launch"]
