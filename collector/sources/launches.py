"""Launch commands from files, with the settings files that they name and that lie beside them."""

from __future__ import annotations

from pathlib import Path

from collector.domain.arguments import LaunchCommand
from collector.launch import find_launches, launch_of_settings, settings_file, with_settings
from collector.sources.file import STDIN, text_of


def read_launches(path: Path, source: str | None = None) -> tuple[LaunchCommand, ...]:
    """Every launch command of a file or of the standard input (``-``), at least one.

    Raises:
        UnreadableInput: it cannot be opened, or no engine is launched there.
        MalformedInput: a command or manifest is broken.
    """
    name = source or ("standard input" if path == STDIN else str(path))
    return tuple(_with_settings_beside(launch, path) for launch in find_launches(text_of(path), name))


def read_settings(path: Path, engine: str) -> LaunchCommand:
    """The command that a file of options alone stands for.

    Raises:
        UnreadableInput: it cannot be opened.
        MalformedInput: it is no mapping of options.
    """
    return launch_of_settings(engine, text_of(path), str(path))


def _with_settings_beside(launch: LaunchCommand, path: Path) -> LaunchCommand:
    name = settings_file(launch)
    beside = path.parent / name if name and path != STDIN else None
    if beside is None or not beside.is_file():
        return launch
    return with_settings(launch, text_of(beside), beside.name)
