"""What each release makes of a launch command, flag by flag: one bar for each stretch of releases that agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from analysis.check import ABSENT, STARTS, Check, outcome, overridden_defaults, resolve_each, short
from analysis.drafting import concerns_drafts
from analysis.resolve import Resolution
from collector.domain.arguments import METHOD_FLAGS, UNSEEN, LaunchCommand, Seen, same_meaning
from collector.domain.versions import Release


class Standing(StrEnum):
    """How what runs stands to what was asked."""

    AS_ASKED = "as asked"
    AGAINST = "not as asked"
    SET = "set by the engine"
    DEFAULT = "the engine's default"
    ABSENT = "no such flag"
    OPEN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Span:
    """Releases in a row in which one flag ends the same; ``columns`` counts columns of the matrix."""

    text: str
    standing: Standing
    releases: str
    columns: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One flag; ``asked`` is unseen where the command does not give it."""

    flag: str
    asked: Seen
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Releases in a row that treat every shown flag alike. ``last`` stands for them, ``chosen`` marks the asked one's."""

    releases: str
    last: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class ReleaseMatrix:
    """Flags by releases: first whether it starts, then what is not as asked, then what differs, then what drafting runs with.

    ``alike`` are flags that run as asked in every release.
    """

    columns: tuple[Column, ...]
    starts: tuple[Span, ...]
    rows: tuple[FlagRow, ...]
    alike: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    standing: Standing


def release_matrix(check: Check) -> ReleaseMatrix | None:
    """The matrix of a checked command; ``None`` where no release of its engine was read."""
    each = check.by_release or resolve_each(check.launch, check.given)
    if not each:
        return None
    launch = check.launch
    names = dict.fromkeys([*launch.requested, *(name for one in each for name in overridden_defaults(one))])
    cells = {name: [_cell(launch, one, name) for one in each] for name in names}
    alike = tuple(name for name in names if all(cell.standing is Standing.AS_ASKED for cell in cells[name]))
    shown = sorted(
        (name for name in names if name not in alike or _about_drafts(name)), key=lambda name: _rank(cells[name], name)
    )
    starts = [_start(one) for one in each]
    groups = _columns([starts, *(cells[name] for name in shown)])
    chosen = _chosen(check.given.release, [one.release for one in each])
    columns = tuple(
        Column(_range(each[first].release, each[last].release), str(each[last].release), first <= chosen <= last)
        for first, last in groups
    )
    return ReleaseMatrix(
        columns,
        _spans(starts, groups, columns),
        tuple(
            FlagRow(name, launch.requested.get(name, UNSEEN), _spans(cells[name], groups, columns)) for name in shown
        ),
        tuple(name for name in alike if name not in shown),
    )


def _about_drafts(name: str) -> bool:
    return concerns_drafts(name) or name in METHOD_FLAGS


def _rank(cells: Sequence[_Cell], name: str) -> tuple[int, bool]:
    standings = {cell.standing for cell in cells}
    order = 0 if Standing.AGAINST in standings else 1 if len(set(cells)) > 1 else 2
    return order, not _about_drafts(name)


def _start(resolution: Resolution) -> _Cell:
    if not resolution.rejections:
        return _Cell(STARTS, Standing.AS_ASKED)
    return _Cell(f"refused: {short(resolution.rejections[0].message)}", Standing.AGAINST)


def _cell(launch: LaunchCommand, resolution: Resolution, name: str) -> _Cell:
    text = outcome(resolution, name)
    asked = launch.requested.get(name, UNSEEN)
    if name in resolution.effective:
        runs = resolution.effective[name]
        ignored = any(item.flag == name for item in resolution.ignored)
        if asked is not UNSEEN and (ignored or not same_meaning(name, asked, runs)):
            return _Cell(text, Standing.AGAINST)
        if asked is not UNSEEN:
            return _Cell(text, Standing.AS_ASKED)
        return _Cell(text, Standing.SET if resolution.changes_of(name) else Standing.DEFAULT)
    if name in resolution.depends:
        return _Cell(text, Standing.OPEN)
    if resolution.rejections:
        return _Cell("does not start", Standing.OPEN)
    return _Cell(ABSENT, Standing.ABSENT)


def _columns(rows: Sequence[Sequence[_Cell]]) -> list[tuple[int, int]]:
    """First and last index of each stretch of releases that are alike in every row."""
    found: list[tuple[int, int]] = []
    for index, column in enumerate(zip(*rows, strict=True)):
        if found and column == tuple(row[index - 1] for row in rows):
            found[-1] = found[-1][0], index
        else:
            found.append((index, index))
    return found


def _spans(cells: Sequence[_Cell], groups: Sequence[tuple[int, int]], columns: Sequence[Column]) -> tuple[Span, ...]:
    spans = []
    pairs = zip(groups, columns, strict=True)
    for cell, members in groupby(pairs, key=lambda pair: cells[pair[0][0]]):
        covered = [column for _, column in members]
        releases = _joined(column.releases for column in covered)
        spans.append(Span(cell.text, cell.standing, releases, len(covered), any(column.chosen for column in covered)))
    return tuple(spans)


def _chosen(release: Release | None, known: Sequence[Release | None]) -> int:
    """The place of the newest release that was read up to this one; -1 where none is chosen or it is older than all."""
    if release is None:
        return -1
    return sum(one is not None and one <= release for one in known) - 1


def _range(first: Release | None, last: Release | None) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _joined(ranges: Iterable[str]) -> str:
    parts = [part for text in ranges for part in text.split(" to ")]
    return parts[0] if len(parts) == 1 else f"{parts[0]} to {parts[-1]}"
