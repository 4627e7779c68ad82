"""What a check shows of flags, and in which order; the same on the terminal and in Markdown."""

from __future__ import annotations

from typing import Final

from analysis import words
from analysis.check import SETTINGS, Check, Flag
from analysis.drafting import concerns_drafts
from analysis.resolve import known_releases
from collector.domain.arguments import UNSEEN
from collector.domain.findings import Finding, Skipped

_FILES: Final = ("--draft-config", "--target-config")


def subject_line(check: Check) -> str:
    """Engine, release and where it is known from, accelerator."""
    release = check.given.release
    if release is None:
        first, last = (check.resolution.releases or ("", ""))[0], (check.resolution.releases or ("", ""))[-1]
        every = len(check.resolution.releases) == len(known_releases(check.engine))
        which = "all that were read" if every else "the newest that do the same"
        version = f"release not given: what holds for {which}, {first} to {last}" if first else "release not given"
    else:
        version = f"{release} ({check.given.release_source})" if check.given.release_source else str(release)
    return " · ".join(part for part in (f"{check.engine} {version}", check.given.device or "") if part)


def place_line(check: Check) -> str:
    """Where the command stands."""
    return ", ".join(part for part in (check.launch.evidence.place, check.launch.label) if part)


def correction_lines(check: Check) -> list[str]:
    """What was changed to get the corrected command."""
    lines = []
    for item in check.corrections:
        if item.after is UNSEEN:
            done = f"without {words.flag(item.flag)}"
        elif item.before is UNSEEN:
            done = f"{words.flag(item.flag)} {words.value(item.after)} added"
        else:
            done = f"{words.flag(item.flag)} {words.value(item.after)} instead of {words.value(item.before)}"
        lines.append(f"{done}: {item.why}")
    return lines


def not_as_asked(check: Check) -> list[Flag]:
    """Flags that were given and run otherwise, or have no effect."""
    return [flag for flag in check.flags.values() if flag.asked and (flag.overridden or flag.ignored)]


def remark_lines(check: Check) -> list[str]:
    """Flags that were given, run, and do less or something else than they say."""
    return [
        f"{words.flag(flag.name)} {words.value(flag.requested)}: {remark}"
        for flag in check.flags.values()
        if flag.asked
        for remark in flag.remarks
    ]


def set_by_the_engine(check: Check) -> list[Flag]:
    """Flags that nobody gave and that the engine sets otherwise than its own default, or says that it sets."""
    return [
        flag
        for flag in check.flags.values()
        if not flag.asked and flag.effective is not UNSEEN and (flag.replaces_a_default or flag.announced is not None)
    ]


def depending_lines(check: Check) -> list[str]:
    """What hangs on something: each flag that was given or belongs to speculation, the others counted by what they hang on."""
    lines: list[str] = []
    others: dict[str, int] = {}
    shown_by_release = {item.flag for item in check.differences}
    for flag in check.flags.values():
        by_release = flag.depends.startswith("the release")
        if flag.depends and not by_release and (flag.asked or concerns_drafts(flag.name)):
            asked = f" {words.value(flag.requested)}" if flag.asked else ""
            lines.append(f"{words.flag(flag.name)}{asked}: depends on {flag.depends}")
        elif flag.depends and flag.name not in shown_by_release:
            what = "the release (--engine-version)" if by_release else flag.depends
            others[what] = others.get(what, 0) + 1
    return [*lines, *(f"{words.plural(count, 'other flag')}: on {what}" for what, count in others.items())]


def difference_lines(check: Check) -> list[str]:
    """Where releases differ: which of them start, then one flag a line."""
    starts = [f"{span}: {said}" for span, said in check.starts] if len(check.starts) > 1 else []
    return [
        *starts,
        *(
            f"{words.flag(item.flag)}: {'; '.join(f'{span}: {said}' for span, said in item.stretches)}"
            for item in check.differences
        ),
    ]


def refusal_lines(check: Check) -> list[str]:
    """Why the engine does not start, in its own words and ours."""
    return [f"{item.kind}: {item.message} ({item.step.condition})" for item in check.resolution.rejections]


def decided_by_files(check: Check) -> list[Skipped]:
    """Rules that could not look and would with a file that can be given before a launch."""
    return [item for item in check.skipped if item.rule == SETTINGS or item.provide.startswith(_FILES)]


def as_asked(check: Check) -> list[Flag]:
    """Flags that will run as they were given."""
    odd = {flag.name for flag in not_as_asked(check)}
    return [
        flag for flag in check.flags.values() if flag.asked and flag.name not in odd and flag.effective is not UNSEEN
    ]


def reason(flag: Flag) -> str:
    """Why a flag runs as it does, and whether the engine says so."""
    deciding = flag.deciding
    if flag.ignored:
        return f"no effect: {flag.ignored}"
    parts = []
    if deciding is not None and (flag.overridden or not flag.asked):
        parts.append(f"{'announced' if flag.announced is not None else 'silent'}: {deciding.step.condition}")
    return "; ".join(parts)


def finding_about(check: Check, flag: Flag) -> Finding | None:
    """The finding that speaks about a flag, if one does."""
    return next((finding for finding in check.findings if finding.values.get("flag") == flag.name), None)
