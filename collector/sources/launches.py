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
    folder = Path() if path == STDIN else path.parent
    return tuple(with_its_settings(launch, folder) for launch in find_launches(text_of(path), name))


def read_settings(path: Path, engine: str) -> LaunchCommand:
    """The command that a file of options alone stands for.

    Raises:
        UnreadableInput: it cannot be opened.
        MalformedInput: it is no mapping of options.
    """
    return launch_of_settings(engine, text_of(path), str(path))


def with_its_settings(launch: LaunchCommand, folder: Path | None) -> LaunchCommand:
    """The command with the file of options that it names, where that lies in the folder.

    Without a folder it is looked for where the command says: for a command that is the user's own.

    Raises:
        UnreadableInput: the file cannot be opened.
        MalformedInput: the file is no mapping of options.
    """
    named = settings_file(launch)
    if named is None:
        return launch
    path = Path(named) if folder is None else folder / Path(named).name
    return with_settings(launch, text_of(path), path.name) if path.is_file() else launch
