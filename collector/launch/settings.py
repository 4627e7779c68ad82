"""Files of options that a launch command names (``--config settings.yaml``)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from collector.domain.arguments import LaunchCommand
from collector.domain.errors import MalformedInput
from collector.domain.redaction import redact_mapping
from collector.launch.commands import dialect_of
from collector.launch.options import read_options
from collector.launch.shell import Word


def settings_file(launch: LaunchCommand) -> str | None:
    """The name of the file of options that the command names, without its folders."""
    field = dialect_of(launch.engine).settings_field
    named = launch.requested.get(field)
    return PurePath(named).name if isinstance(named, str) and named else None


def with_settings(launch: LaunchCommand, text: str, source: str) -> LaunchCommand:
    """The command with the options of its file; what the command line says itself wins.

    Raises:
        MalformedInput: the file is no YAML mapping of options.
    """
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else None
        raise MalformedInput(
            "this settings file is not valid YAML",
            why=error.problem or "",
            where=f"{source}:{line}" if line else source,
        ) from error
    if not isinstance(document, dict):
        raise MalformedInput("this settings file holds no options", why="it is no mapping of names", where=source)
    dialect = dialect_of(launch.engine)
    read = read_options(_words(document), dialect.options(), source)
    return replace(
        launch,
        requested={**redact_mapping(dialect.settled(read.values)), **launch.requested},
        unknown=(*launch.unknown, *read.unknown),
    )


def _words(document: dict[Any, Any]) -> list[Word]:
    """Options as they would stand on the command line: a switch that is off is left away."""
    texts: list[str] = []
    for name, value in document.items():
        option = f"--{str(name).replace('_', '-')}"
        if value is True:
            texts.append(option)
        elif isinstance(value, dict):
            texts.append(f"{option}={json.dumps(value, default=str)}")
        elif isinstance(value, list):
            texts += [option, *map(str, value)]
        elif value is not None and value is not False:
            texts.append(f"{option}={value}")
    return [Word(text, 1, 0, 0) for text in texts]
