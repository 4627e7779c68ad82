"""Launch commands: what was asked for, under the engine's own names."""

from __future__ import annotations

from collector.launch.commands import parse_launch
from collector.launch.settings import settings_file, with_settings

__all__ = ["parse_launch", "settings_file", "with_settings"]
