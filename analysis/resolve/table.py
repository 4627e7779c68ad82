"""All steps of an engine as rows: for the command line, and as the generated page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from analysis.resolve import engine_names, find_engine
from analysis.resolve.base import Engine, Step
from collector.domain.errors import UnknownName
from collector.domain.versions import Release

COLUMNS: Final = ("id", "title", "condition", "effect", "announced", "releases", "source")
"""The columns of a table of steps, in order."""
_SILENT: Final = "silent"


@dataclass(frozen=True, slots=True)
class Row:
    """One step as people read it; ``announced`` is ``silent`` where the engine prints nothing."""

    id: str
    title: str
    condition: str
    effect: str
    announced: str
    releases: str
    source: str

    def cells(self) -> tuple[str, ...]:
        """The values in the order of :data:`COLUMNS`."""
        return tuple(getattr(self, column) for column in COLUMNS)


def rows(engine: str, release: Release | None = None) -> tuple[Row, ...]:
    """The steps of one release, or of all, in the order the engine takes them.

    Raises:
        UnknownName: what this engine makes of its flags is not known.
    """
    known = _engine(engine)
    steps = known.steps if release is None else tuple(known.steps_of(release))
    return tuple(_row(step) for step in steps)


def page(engine: str) -> str:
    """The generated page of one engine, Markdown.

    Raises:
        UnknownName: what this engine makes of its flags is not known.
    """
    known = _engine(engine)
    lines = [
        f"# What {known.title} makes of its flags",
        "",
        f"Read in {len(known.releases)} releases, {known.releases[0]} to {known.releases[-1]}.",
        "A range holds in every release read from its first to its last.",
        *(
            ["Builds are samples: what changed between two of them changed somewhere in between."]
            if known.sampled
            else []
        ),
        "The steps stand in the order the engine takes them; one that moved between releases stands in both places.",
        '"Silent" means that the engine prints nothing about it. `{}` stands for a value in a line.',
        "",
    ]
    return "\n".join(lines) + "\n" + markdown(rows(engine))


def markdown(table: Iterable[Row]) -> str:
    """Rows as a Markdown table."""
    lines = [
        "| step | when | then | the engine prints | releases | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.id}: {row.title} | {_cell(row.condition)} | {_cell(row.effect)} | {_line(row.announced)} "
        f"| {row.releases} | {_cell(row.source)} |"
        for row in table
    ]
    return "\n".join(lines) + "\n"


def _engine(name: str) -> Engine:
    known = find_engine(name)
    if known is None:
        raise UnknownName(f"what {name} makes of its flags is not known", hint=f"known are {', '.join(engine_names())}")
    return known


def _row(step: Step) -> Row:
    announced = _SILENT if step.announced is None else step.announced
    return Row(step.id, step.title, step.condition, step.effect, announced, str(step.releases), step.source)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _line(announced: str) -> str:
    if announced == _SILENT:
        return _SILENT
    plain = "".join(character for character in announced if character.isprintable())
    return f"`{_cell(plain).replace('`', chr(39)).strip()}`"
