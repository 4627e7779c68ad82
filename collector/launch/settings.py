"""Files of options that a launch command names (``--config settings.yaml``)."""

from __future__ import annotations

import json
from dataclasses import replace

from collector.domain.arguments import LaunchCommand
from collector.domain.errors import MalformedInput
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_mapping, redact_text
from collector.launch.dialects import dialect_of
from collector.launch.nodes import documents
from collector.launch.options import read_options
from collector.launch.shell import Word


def settings_file(launch: LaunchCommand) -> str | None:
    """The file of options that the command names and that was not read yet."""
    field = dialect_of(launch.engine).settings_field
    named = launch.requested.get(field)
    return named if isinstance(named, str) and named and not launch.settings else None


def with_settings(launch: LaunchCommand, text: str, source: str, first_line: int = 1) -> LaunchCommand:
    """The command with the options of its file; what the command line says itself wins.

    Raises:
        MalformedInput: the file is no YAML mapping of options.
    """
    dialect = dialect_of(launch.engine)
    read = read_options(_words(text, source, first_line), dialect.options(), source)
    requested = redact_mapping(dialect.settled(read.values))
    shown = text.splitlines()
    places = {
        name: Evidence(source, number, redact_text(shown[number - first_line].strip()))
        for name in requested
        if (number := read.lines.get(name) or read.lines.get(name.partition(".")[0])) is not None
    }
    own = {name: launch.evidence_of(name) for name in launch.requested}
    return replace(
        launch,
        requested={**requested, **launch.requested},
        unknown=(*launch.unknown, *read.unknown),
        places={**places, **own},
        settings=source,
    )


def launch_of_settings(engine: str, text: str, source: str) -> LaunchCommand:
    """A launch command from a file of options alone.

    Raises:
        MalformedInput: the file is no YAML mapping of options.
    """
    program = dialect_of(engine).program
    return with_settings(LaunchCommand(engine, text="", requested={}, source=source, program=program), text, source)


def _words(text: str, source: str, first_line: int) -> list[Word]:
    """Options as they would stand on the command line, each with its line: a switch that is off is left away."""
    import yaml

    nodes = documents(text, source, first_line=first_line)
    values = yaml.safe_load(text)
    if len(nodes) != 1 or not isinstance(values, dict):
        raise MalformedInput("this settings file holds no options", why="it is no mapping of names", where=source)
    words: list[Word] = []
    for name, node in nodes[0].items():
        option, value = f"--{name.replace('_', '-')}", values.get(name)
        if value is True:
            parts = [option]
        elif isinstance(value, dict):
            parts = [f"{option}={json.dumps(value, default=str)}"]
        elif isinstance(value, list):
            parts = [option, *map(str, value)]
        else:
            parts = [] if value is None or value is False else [f"{option}={value}"]
        words += [Word(part, node.line, 0, 0) for part in parts]
    return words
