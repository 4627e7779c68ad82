"""Before a launch: what a command asks for, what the engine will make of it, and what is to be said about that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Final

from analysis import words
from analysis.base import catalogue
from analysis.case import Case
from analysis.correction import Correction, correct
from analysis.documents import finding_document, plain
from analysis.drafting import concerns_drafts
from analysis.outcomes import outcomes
from analysis.resolve import Change, Resolution, known_releases, resolve_range
from analysis.view import ALWAYS_PREDICTED, RunView
from collector.domain.arguments import METHOD_FLAG, METHOD_FLAGS, UNSEEN, Arguments, LaunchCommand, Seen, same_meaning
from collector.domain.drafts import ModelConfig
from collector.domain.evidence import Evidence
from collector.domain.findings import Confidence, Finding, RuleCrash, RuledOut, Severity, Skipped
from collector.domain.runs import Bundle, RunRecord
from collector.domain.versions import Release, ReleaseRange

SCHEMA: Final = "draftscope.check/1"
FAMILIES: Final = ("flags", "drafts")
"""The families of rules that need no log."""
SETTINGS: Final = "settings"
"""Stands for a rule where a file of options is missing."""
PREDICTION: Final = "resolve"
"""Stands for a rule where a prediction could not be made."""
NOT_ACTIVE: Final = "FLG006"
ABSENT: Final = "no such flag"
STARTS: Final = "starts"
_LONGEST: Final = 120
"""Characters of an engine's message in the headline."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is known beside the command: release, accelerator, models.

    ``release_source`` says who stated the release (``--engine-version``, ``the image's tag``),
    ``missing_settings`` is a file of options that the command names and that was not found.
    """

    release: Release | None = None
    release_source: str = ""
    device: str | None = None
    draft: ModelConfig | None = None
    target: ModelConfig | None = None
    missing_settings: str = ""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: what is asked and what will run.

    Attributes:
        name: the engine's own.
        requested: as asked; unseen where the command does not give it.
        effective: what will run; unseen where it hangs on something unknown, or nothing starts.
        depends: what it hangs on, "" where it is known.
        changes: what the engine does to it, in order.
        ignored: why it has no effect, "" where it has one.
        remarks: what it does less, or otherwise, than it says.
        confidence: how sure the effective value is; ``None`` where there is none.
        evidence: where the command gives it.
    """

    name: str
    requested: Seen = UNSEEN
    effective: Seen = UNSEEN
    depends: str = ""
    changes: tuple[Change, ...] = ()
    ignored: str = ""
    remarks: tuple[str, ...] = ()
    confidence: Confidence | None = None
    evidence: Evidence | None = None

    @property
    def asked(self) -> bool:
        """Whether the command gives it."""
        return self.requested is not UNSEEN

    @property
    def overridden(self) -> bool:
        """Whether it was given and something else will run."""
        known = self.asked and self.effective is not UNSEEN
        return known and not same_meaning(self.name, self.requested, self.effective)

    @property
    def deciding(self) -> Change | None:
        """The last thing the engine does to it."""
        return self.changes[-1] if self.changes else None

    @property
    def announced(self) -> str | None:
        """The last line the engine prints about it, ``None`` where it is silent."""
        return next((change.line for change in reversed(self.changes) if change.line is not None), None)

    @property
    def replaces_a_default(self) -> bool:
        """Whether the engine overrides a default of its own that was more than "not set"."""
        return not self.asked and bool(self.changes) and self.changes[0].before not in (None, "auto")


@dataclass(frozen=True, slots=True)
class Difference:
    """A flag that releases treat differently: a value or outcome in words for each stretch of releases."""

    flag: str
    stretches: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Check:
    """What is to be said about one launch command.

    ``flags`` has those that were asked for first, then the others whose value is known or hangs
    on something. Where the release is not known, ``resolution`` holds for the newest releases in a row that take the
    command and make the same of it, ``starts`` says which take it, ``differences`` where these differ. ``corrected`` is a
    command of which nothing is overridden, ignored or refused, ``None`` where none is needed or
    known; ``corrections`` say what was done to get there. ``by_release`` has what each release that was read makes of the
    command, where the release is not known.
    """

    launch: LaunchCommand
    given: Given
    resolution: Resolution
    flags: Mapping[str, Flag]
    findings: tuple[Finding, ...]
    ruled_out: tuple[RuledOut, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    crashes: tuple[RuleCrash, ...] = ()
    starts: tuple[tuple[str, str], ...] = ()
    differences: tuple[Difference, ...] = ()
    corrected: LaunchCommand | None = None
    corrections: tuple[Correction, ...] = field(default=())
    by_release: tuple[Resolution, ...] = field(default=(), repr=False)

    @property
    def engine(self) -> str:
        """The engine that the command launches."""
        return self.launch.engine

    @property
    def predicted(self) -> bool:
        """Whether anything could be predicted at all."""
        return bool(self.resolution.releases)

    @property
    def refused(self) -> bool:
        """Whether the engine will not start."""
        return bool(self.resolution.rejections)

    @property
    def worst(self) -> Severity | None:
        """The highest severity among the findings."""
        return max((finding.severity for finding in self.findings), default=None)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        if not self.predicted:
            return f"Nothing can be predicted: {self.resolution.reason}."
        if self.refused:
            message = self.resolution.rejections[0].message or self.resolution.rejections[0].step.condition
            return f"The engine will refuse to start: {short(message)}."
        critical = [finding for finding in self.findings if finding.severity is Severity.CRITICAL]
        if critical:
            return f"{critical[0].title}."
        asked = [flag for flag in self.flags.values() if flag.asked]
        overridden = [flag for flag in asked if flag.overridden]
        ignored = [flag for flag in asked if flag.ignored and not flag.overridden]
        silent = sum(flag.announced is None for flag in overridden) + len(ignored)
        open_ones = [flag for flag in asked if flag.depends]
        if overridden or ignored:
            number = len(overridden) + len(ignored)
            how = f", {silent} of them without a word" if silent else ", all announced in the log"
            return f"{number} of {words.plural(len(asked), 'flag')} will not run as asked{how}."
        serious = [finding for finding in self.findings if finding.severity >= Severity.WARNING]
        if serious:
            return f"{serious[0].title}."
        if len(self.starts) > 1:
            return f"It starts only in some releases: {words.listing([span for span, said in self.starts if said == STARTS])}."
        if METHOD_FLAG.get(self.engine) in {item.flag for item in self.differences}:
            return "Whether and how it drafts depends on the release (--engine-version)."
        differing = [item.flag for item in self.differences if item.flag in self.flags and self.flags[item.flag].asked]
        if differing:
            return f"What becomes of {_flags_in_words(differing)} depends on the release (--engine-version)."
        if open_ones:
            flags = _flags_in_words(flag.name for flag in open_ones)
            return f"Nothing is known to be changed; what becomes of {flags} cannot be told yet."
        return (
            f"All {words.plural(len(asked), 'flag')} will run as asked." if len(asked) > 1 else "It will run as asked."
        )

    def document(self) -> dict[str, Any]:
        """The document of one command, ready for JSON."""
        release = self.given.release
        return {
            "schema": SCHEMA,
            "headline": self.headline,
            "engine": self.engine,
            "engine_version": str(release) if release is not None else None,
            "releases": [str(item) for item in self.resolution.releases],
            "device": self.given.device,
            "command": {
                "source": self.launch.source,
                "line": self.launch.line,
                "label": self.launch.label,
                "text": self.launch.text,
                "environment": dict(self.launch.environment),
            },
            "starts": None if not self.predicted else not self.refused,
            "arguments": {name: _flag_document(flag) for name, flag in self.flags.items()},
            "rejections": [
                {"message": item.message, "kind": item.kind, "step": item.step.id, "why": item.step.condition}
                for item in self.resolution.rejections
            ],
            "unknown": {name: self.launch.nearest.get(name) for name in self.launch.unknown},
            "announced": list(self.resolution.announced),
            "starts_by_release": dict(self.starts),
            "differences": {item.flag: dict(item.stretches) for item in self.differences},
            "corrected": None if self.corrected is None else self.corrected.text,
            "corrections": [item.document() for item in self.corrections],
            "caution": self.resolution.reason,
            "findings": [finding_document(finding) for finding in self.findings],
            "ruled_out": [{"rule": item.rule, "name": item.name, "why": item.why} for item in self.ruled_out],
            "skipped": [
                {"rule": item.rule, "name": item.name, "reason": item.reason, "provide": item.provide}
                for item in self.skipped
            ],
            "crashed": [{"rule": item.rule, "name": item.name, "error": item.error} for item in self.crashes],
        }


def check(launch: LaunchCommand, given: Given, render: Callable[[LaunchCommand], str]) -> Check:
    """Judge a launch command; ``render`` writes the corrected one as text."""
    each = resolve_each(launch, given) if given.release is None else ()
    taking = [one for one in each if not one.rejections]
    span = _newest_that_agree(launch, each)
    record = RunRecord(
        engine=launch.engine,
        source=launch.source,
        engine_version=given.release,
        release_range=span,
        arguments=Arguments().with_launch(launch),
        launch=launch,
        draft_config=given.draft,
        target_config=given.target,
        device=given.device,
    )
    case = Case(Bundle(record))
    found = outcomes(case, catalogue(*FAMILIES))
    resolution = case.run.resolution or Resolution(
        launch.engine, given.release, reason=case.run.prediction_fault or "the command asks for nothing"
    )
    corrected, corrections = correct(launch, resolution, lambda asked: _resolve(asked, given, case.run.releases))
    if any(finding.rule == NOT_ACTIVE for finding in found.findings):
        corrected, corrections = None, ()  # leaving out what is ignored would not bring the speculation that is wanted
    return Check(
        launch=launch,
        given=given,
        resolution=resolution,
        flags=_flags(case.run, resolution),
        findings=found.findings,
        ruled_out=tuple(found.ruled_out),
        skipped=(*_open(resolution, record, given), *found.skipped),
        crashes=tuple(found.crashes),
        starts=_starts(each),
        differences=_differences(launch, taking),
        corrected=None if corrected is None else replace(corrected, text=render(corrected)),
        corrections=corrections,
        by_release=each,
    )


def resolve_each(launch: LaunchCommand, given: Given) -> tuple[Resolution, ...]:
    """What each release that was read makes of the command, oldest first."""
    releases = known_releases(launch.engine)
    return tuple(_resolve(launch, given, ReleaseRange(release, release)) for release in releases)


def document(checks: Sequence[Check]) -> dict[str, Any]:
    """The document of one command; of several that of the first, with the findings of all, and each under ``checks``."""
    first = checks[0].document()
    if len(checks) == 1:
        return first
    each = [item.document() for item in checks]
    findings = [finding for one in each for finding in one["findings"]]
    return {**first, "findings": findings, "checks": each}


def schema() -> dict[str, Any]:
    """The published JSON Schema of the document."""
    published: dict[str, Any] = json.loads(files("analysis").joinpath("check.schema.json").read_text("utf-8"))
    return published


def _resolve(launch: LaunchCommand, given: Given, releases: ReleaseRange) -> Resolution:
    return resolve_range(
        launch.engine,
        launch.requested,
        releases=releases,
        environment=launch.environment,
        draft=given.draft,
        target=given.target,
        device=given.device,
    )


def _flags(run: RunView, resolution: Resolution) -> Mapping[str, Flag]:
    """Every flag that was asked for, then every other that the prediction speaks about."""
    requested = run.record.arguments
    names = dict.fromkeys([*requested, *resolution.effective, *resolution.depends])
    ignored = {item.flag: item.reason for item in resolution.ignored}
    sure = Confidence.HIGH if resolution.release is not None and not resolution.reason else Confidence.MEDIUM
    found = {}
    for name in names:
        effective = resolution.effective.get(name, UNSEEN)
        found[name] = Flag(
            name=name,
            requested=requested[name].requested,
            effective=effective,
            depends=resolution.depends.get(name, ""),
            changes=resolution.changes_of(name),
            ignored=ignored.get(name, ""),
            remarks=tuple(item.text for item in resolution.remarks if item.flag == name),
            confidence=None if effective is UNSEEN else sure,
            evidence=requested[name].requested_evidence,
        )
    return found


def _open(resolution: Resolution, record: RunRecord, given: Given) -> list[Skipped]:
    """What cannot be told about flags that were asked for; it must not look as if they ran as asked."""
    if not resolution.releases:
        return [Skipped(PREDICTION, "what-becomes-of-the-flags", resolution.reason or "nothing could be predicted")]
    found = []
    if given.missing_settings:
        reason = f"the file of options {given.missing_settings} was not found"
        found.append(Skipped(SETTINGS, "what-the-file-asks-for", reason, "the file beside the command"))
    for name in record.arguments:
        hangs_on = resolution.depends.get(name)
        if hangs_on is not None:
            option = "--engine-version" if hangs_on.startswith("the release") else _option_in(hangs_on)
            found.append(
                Skipped(PREDICTION, f"what-becomes-of-{words.flag(name)}", f"it depends on {hangs_on}", option)
            )
    return found


def _option_in(text: str) -> str:
    """The option that would tell, as the engines' steps name it in brackets."""
    match = re.search(r"\((?:[\w ]+ )?(--[\w-]+)\)", text)
    return match[1] if match is not None else ""


def _flag_document(flag: Flag) -> dict[str, Any]:
    deciding = flag.deciding
    document: dict[str, Any] = {
        "requested": None if flag.requested is UNSEEN else plain(flag.requested),
        "effective": None if flag.effective is UNSEEN else plain(flag.effective),
        "step": deciding.step.id if deciding is not None else None,
        "announced": flag.announced,
        "confidence": flag.confidence.word if flag.confidence is not None else None,
        "asked": flag.asked,
    }
    if flag.depends:
        document["depends"] = flag.depends
    if deciding is not None:
        document["why"] = deciding.step.condition
        document["origin"] = deciding.step.source
    if flag.ignored:
        document["ignored"] = flag.ignored
    if flag.remarks:
        document["remarks"] = list(flag.remarks)
    if flag.evidence is not None:
        document["line"] = flag.evidence.line
    return document


def _newest_that_agree(launch: LaunchCommand, each: Sequence[Resolution]) -> ReleaseRange:
    """The newest releases in a row that take the command and make the same of what it asks.

    Where none takes it, the newest in a row that refuse it for the same reason.
    """
    if each and all(one.rejections for one in each):
        said = [one.rejections[0].message for one in each]
        alike = next((index for index in range(len(said), 0, -1) if said[index - 1] != said[-1]), 0)
        return ReleaseRange(each[alike].release, each[-1].release)
    names = [*launch.requested, *(name for name in [METHOD_FLAG.get(launch.engine)] if name is not None)]
    newest: list[Release | None] = []
    agreed: list[str] = []
    for one in reversed(each):
        made = [outcome(one, name) for name in names]
        if not one.rejections and (not newest or made == agreed):
            newest.append(one.release)
            agreed = made
        elif newest:
            break
    return ReleaseRange(newest[-1], newest[0]) if newest else ReleaseRange()


def _starts(each: Sequence[Resolution]) -> tuple[tuple[str, str], ...]:
    """Which releases take the command, and why others refuse it."""
    return _stretches(
        (one.release, f"refused: {short(one.rejections[0].message)}" if one.rejections else STARTS) for one in each
    )


def _differences(launch: LaunchCommand, each: Sequence[Resolution]) -> tuple[Difference, ...]:
    """Where the releases that take the command treat it differently: flags asked for, and defaults overridden."""
    found = []
    for name in dict.fromkeys([*launch.requested, *(name for one in each for name in overridden_defaults(one))]):
        said = ((one.release, outcome(one, name)) for one in each)
        stretches = _stretches(pair for pair in said if pair[1] != ABSENT)
        if len(stretches) > 1:
            found.append(Difference(name, stretches))
    return tuple(found)


def _stretches(said: Iterable[tuple[Release | None, str]]) -> tuple[tuple[str, str], ...]:
    """What releases have in common, oldest first: ``0.4.4 to 0.5.2`` and what is said of them."""
    found: list[tuple[Release, Release, str]] = []
    for release, text in said:
        assert release is not None
        first = found.pop()[0] if found and found[-1][2] == text else release
        found.append((first, release, text))
    return tuple((_span(first, last), text) for first, last, text in found)


def overridden_defaults(resolution: Resolution) -> list[str]:
    """Defaults that were more than "not set" and are replaced, or whose replacement the engine tells."""
    return [
        change.flag
        for change in resolution.changes
        if change.flag in ALWAYS_PREDICTED
        or change.flag in METHOD_FLAGS
        or (change.line is not None and (change.before is not None or concerns_drafts(change.flag)))
    ]


def _flags_in_words(names: Iterable[str]) -> str:
    return words.listing([words.flag(name) for name in names])


def short(text: str) -> str:
    """An engine's message on one line, cut where it is long."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _span(first: Release, last: Release) -> str:
    return str(first) if first == last else f"{first} to {last}"


def outcome(resolution: Resolution, name: str) -> str:
    """What one release makes of a flag, in words."""
    if name in resolution.effective:
        ignored = any(item.flag == name for item in resolution.ignored)
        return words.value(resolution.effective[name]) + (", without effect" if ignored else "")
    if name in resolution.depends:
        return f"depends on {resolution.depends[name]}"
    return ABSENT
