"""The page that checks launch commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from analysis import words
from analysis.check import Check, Flag
from analysis.release_matrix import ReleaseMatrix, Span, Standing, release_matrix
from analysis.resolve import known_releases
from analysis.resolve.devices import GPUS
from collector.domain.arguments import UNSEEN, Seen
from collector.domain.errors import DraftscopeError
from collector.domain.findings import Severity, Skipped, State
from collector.launch.dialects import dialects
from dashboard import names
from dashboard.pages.findings import FindingView, finding_views
from dashboard.report import flags

EXAMPLE: Final = """python3 -m sglang.launch_server \\
  --model-path /models/DeepSeek-V3 --trust-remote-code --tp 8 \\
  --speculative-algorithm EAGLE3 \\
  --speculative-draft-model-path /models/eagle3 \\
  --speculative-num-steps 1 \\
  --speculative-eagle-topk 1 \\
  --speculative-num-draft-tokens 16"""
"""What the form holds before anything was typed: a command that does not run as asked."""

_LOOKS: Final = {
    Standing.AGAINST: "against",
    Standing.SET: "set",
    Standing.ABSENT: "absent",
    Standing.OPEN: "open",
    Standing.AS_ASKED: "asked",
    Standing.DEFAULT: "plain",
}


@dataclass(frozen=True, slots=True)
class Form:
    """What the form holds."""

    command: str = EXAMPLE
    engine: str = ""
    engine_version: str = ""
    device: str = ""
    engines: Sequence[tuple[str, str]] = field(
        default_factory=lambda: tuple((one.engine, one.title) for one in dialects())
    )
    devices: Sequence[str] = tuple(GPUS)


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of releases with the same value. ``look`` is how it is drawn; ``title`` says all of it in words."""

    text: str
    look: str
    title: str
    columns: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One flag: its name as an option, what was asked, a bar for each stretch of releases."""

    flag: str
    asked: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class FlagLine:
    """One flag that will not run as it was given, or that the engine sets: the text report's row."""

    flag: str
    asked: str
    runs: str
    why: str
    rule: str


@dataclass(frozen=True, slots=True)
class CheckView:
    """One command. ``state`` is a verdict: ``cannot_tell`` where what was asked hangs on something unknown."""

    id: str
    place: str
    state: str
    headline: str
    subject: str
    caution: str
    matrix: ReleaseMatrix | None
    starts: tuple[Bar, ...]
    rows: tuple[MatrixRow, ...]
    alike: str
    refusals: tuple[str, ...]
    changed: tuple[FlagLine, ...]
    remarks: tuple[str, ...]
    depending: tuple[str, ...]
    findings: tuple[FindingView, ...]
    open: tuple[Skipped, ...]
    crashes: tuple[str, ...]
    announced: tuple[str, ...]
    corrections: tuple[str, ...]
    corrected: str


@dataclass(frozen=True, slots=True)
class CheckPage:
    """The form and, once something was asked, the answers or what is wrong with the question."""

    form: Form
    checks: tuple[CheckView, ...] = ()
    problem: DraftscopeError | None = None
    releases: tuple[str, ...] = ()


def check_page(form: Form, checks: Sequence[Check] = (), problem: DraftscopeError | None = None) -> CheckPage:
    """The page; it offers the releases of the engines that were recognised, newest first."""
    engines = dict.fromkeys(check.engine for check in checks)
    releases = [str(release) for engine in engines for release in reversed(known_releases(engine))]
    return CheckPage(
        form, tuple(_view(check, number) for number, check in enumerate(checks, 1)), problem, tuple(releases)
    )


def _view(check: Check, number: int) -> CheckView:
    matrix = release_matrix(check)
    document: list[dict[str, Any]] = check.document()["findings"]
    return CheckView(
        id=f"check-{number}",
        place=flags.place_line(check),
        state=_state(check).value,
        headline=check.headline,
        subject=flags.subject_line(check).replace(check.engine, names.engine(check.engine), 1),
        caution=check.resolution.reason if check.predicted else "",
        matrix=matrix,
        starts=_bars(matrix.starts) if matrix is not None else (),
        rows=tuple(
            MatrixRow(words.flag(row.flag), _shown(row.asked, "not asked"), _bars(row.spans)) for row in matrix.rows
        )
        if matrix is not None
        else (),
        alike=", ".join(words.flag(name) for name in matrix.alike) if matrix is not None else "",
        refusals=tuple(flags.refusal_lines(check)),
        changed=tuple(_line(check, flag) for flag in (*flags.not_as_asked(check), *flags.set_by_the_engine(check))),
        remarks=tuple(flags.remark_lines(check)),
        depending=tuple(flags.depending_lines(check)),
        findings=finding_views(document, prefix=f"check-{number}-"),
        open=tuple(flags.decided_by_files(check)),
        crashes=tuple(f"{item.rule} {item.name}: {item.error}" for item in check.crashes),
        announced=check.resolution.announced,
        corrections=tuple(flags.correction_lines(check)),
        corrected=check.corrected.text if check.corrected is not None else "",
    )


def _state(check: Check) -> State:
    """A verdict on the command; what hangs on something unknown is never OK."""
    serious = check.worst is not None and check.worst >= Severity.WARNING
    if check.refused or serious or flags.not_as_asked(check):
        return State.PROBLEM
    hangs = any(flag.asked and flag.depends for flag in check.flags.values())
    if not check.predicted or check.resolution.reason or hangs or len(check.starts) > 1 or check.differences:
        return State.CANNOT_TELL
    return State.OK


def _line(check: Check, flag: Flag) -> FlagLine:
    finding = flags.finding_about(check, flag)
    return FlagLine(
        words.flag(flag.name),
        _shown(flag.requested, "not asked"),
        _shown(flag.effective, ""),
        flags.reason(flag),
        finding.rule if finding is not None else "",
    )


def _bars(spans: Sequence[Span]) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            span.text,
            _LOOKS[span.standing],
            f"{span.releases}: {span.text}, {span.standing.value}",
            span.columns,
            span.chosen,
        )
        for span in spans
    )


def _shown(value: Seen, otherwise: str) -> str:
    return otherwise if value is UNSEEN else words.value(value)
