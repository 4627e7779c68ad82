"""Launch commands: what was asked for, under the engine's own names."""

from __future__ import annotations

from collector.launch.commands import find_launches, launches_of_words, parse_launch
from collector.launch.render import render
from collector.launch.settings import launch_of_settings, settings_file, with_settings

__all__ = [
    "find_launches",
    "launch_of_settings",
    "launches_of_words",
    "parse_launch",
    "render",
    "settings_file",
    "with_settings",
]
