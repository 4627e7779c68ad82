"""Which known faults affect a judged run, may affect it, or are fixed in its release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from analysis import words
from analysis.causes.facts import Facts
from analysis.known_faults.base import KnownFault, known_faults
from collector.domain.arguments import UNSEEN
from collector.domain.versions import ReleaseRange


class Standing(StrEnum):
    """What a known fault is to a run."""

    AFFECTS = "affects you"
    MAY_AFFECT = "may affect you"
    FIXED = "fixed in your release"


@dataclass(frozen=True, slots=True)
class Match:
    """A fault that matters: what of its conditions holds, and what could not be told."""

    fault: KnownFault
    standing: Standing
    holds: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The form known faults have in the diagnosis document."""
        fault = self.fault
        document: dict[str, Any] = {
            "id": fault.id,
            "title": fault.title,
            "standing": self.standing.value,
            "releases": str(fault.releases),
            "fixed_in": str(fault.fixed_in) if fault.fixed_in is not None else None,
            "holds": list(self.holds),
            "unknown": list(self.unknown),
            "symptom": fault.symptom,
            "workaround": fault.workaround,
            "established": not fault.suspected,
            "link": fault.link,
        }
        if fault.cause:
            document["cause"] = fault.cause
        return document


@dataclass(frozen=True, slots=True)
class _Check:
    """One condition: met, not met, or (``None``) not known; with its words."""

    met: bool | None
    text: str


_ORDER = list(Standing)


def matched(facts: Facts) -> tuple[Match, ...]:
    """The faults of the run's engine that matter, those that affect it first."""
    found = (match(fault, facts) for fault in known_faults(facts.engine))
    return tuple(sorted((one for one in found if one is not None), key=lambda one: _ORDER.index(one.standing)))


def match(fault: KnownFault, facts: Facts) -> Match | None:
    """One fault against a run; ``None`` where a condition is not met or too little is known."""
    checks = list(_checks(fault, facts))
    if any(check.met is False for check in checks):
        return None
    holds = [check.text for check in checks if check.met]
    unknown = [check.text for check in checks if check.met is None]
    releases = facts.run.releases
    if fault.fixed_in is not None and releases.first is not None and releases.first >= fault.fixed_in:
        fixed = f"fixed in {fault.fixed_in}, and this is {releases}"
        # worth a word only where the run shows what the fault would show
        return Match(fault, Standing.FIXED, (*holds, fixed)) if holds and not unknown and fault.when.symptoms else None
    if fault.releases.intersect(releases) is None:
        return None
    if _inside(releases, fault.releases):
        holds.insert(0, f"release {releases}" if fault.releases != ReleaseRange() else "every release")
    else:
        known = f"the release is {releases}" if releases != ReleaseRange() else "the release is not known"
        unknown.append(f"{known}; affected: {fault.releases}")
    if unknown and (len(unknown) > len(holds) or not any(check.met for check in checks)):
        return None
    sure = not unknown and not fault.suspected
    return Match(fault, Standing.AFFECTS if sure else Standing.MAY_AFFECT, tuple(holds), tuple(unknown))


def _inside(releases: ReleaseRange, affected: ReleaseRange) -> bool:
    if affected.first is not None and (releases.first is None or releases.first < affected.first):
        return False
    return affected.last is None or (releases.last is not None and releases.last in ReleaseRange(None, affected.last))


def _checks(fault: KnownFault, facts: Facts) -> Iterator[_Check]:
    when = fault.when
    if when.methods:
        unclear = facts.method in ("", "unknown") and not facts.run.drafting.known
        yield _Check(None if unclear else facts.method in when.methods, f"method {facts.method or 'not known'}")
    if when.classes or when.names:
        yield _target(when.classes, when.names, facts)
    for name, test in when.flags.items():
        yield _flag(name, test, facts)
    launch = facts.run.record.launch
    for name, test in when.asked.items():
        value = facts.run.arguments[name].requested
        yield _Check(None if launch is None else _passes(value, test), f"{words.flag(name)} as asked")
    for name, test in when.environment.items():
        # a variable that nobody stated says nothing either way
        value = launch.environment.get(name, UNSEEN) if launch is not None else UNSEEN
        yield _Check(launch is not None and _passes(value, test), f"environment {name}")
    for key, test in when.draft.items():
        config = facts.draft_config
        stated = _lookup(config.raw, key) if config is not None else UNSEEN
        # a config that was not given says nothing either way, and most drafts lack the key
        yield _Check(config is not None and _passes(stated, test), f"the draft's config: {key}")
    for key, test in when.figures.items():
        figure = facts.value(key)
        shown = words.significant(figure) if figure is not None else "not known"
        yield _Check(None if figure is None else _passes(figure, test), f"{key.replace('_', ' ')} {shown}")
    if when.rules:
        fired = [rule for rule in when.rules if facts.fired(rule)]
        yield _Check(bool(fired), f"found: {', '.join(fired)}")
    if when.refusals:
        said = [text for text in _refusals(facts) for part in when.refusals if part in text]
        yield _Check(bool(said), f"said: {said[0] if said else when.refusals[0]}")
    if when.symptoms:
        seen = sorted(facts.symptoms & when.symptoms)
        looked = bool(facts.run.record.windows or facts.run.record.results)
        shown = seen[0] if seen else min(when.symptoms)
        yield _Check(True if seen else False if looked else None, shown.value)


def _refusals(facts: Facts) -> Iterator[str]:
    """What the engine said where it did not start; where no log shows that, what it is expected to say."""
    said = facts.run.record.events_of("refused")
    resolution = facts.run.resolution
    if said:
        yield from (event.evidence.text.strip() for event in said)
    elif resolution is not None:
        yield from (rejection.message for rejection in resolution.rejections)


def _target(classes: tuple[str, ...], names: tuple[str, ...], facts: Facts) -> _Check:
    config = facts.target_config
    if config is not None and config.architectures:
        inner = config.text.get("architectures")
        known = (*config.architectures, *(inner if isinstance(inner, list) else ()))
        return _Check(any(name.startswith(classes) for name in known) if classes else False, f"target {known[0]}")
    if not facts.target_name:
        return _Check(None, "which target it is")
    return _Check(any(name in facts.target_name for name in names), f"target {facts.target_name.split('/')[-1]}")


def _flag(name: str, test: Any, facts: Facts) -> _Check:
    arguments = facts.run.arguments
    value = arguments[name].runs
    if value is UNSEEN and not arguments:
        return _Check(None, f"what {words.flag(name)} is")
    shown = "not given" if value is UNSEEN else words.value(value)
    return _Check(_passes(None if value is UNSEEN else value, test), f"{words.flag(name)} {shown}")


def _lookup(raw: Mapping[str, Any], key: str) -> Any:
    """A dotted key of a config; unseen where it is not there."""
    value: Any = raw
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return UNSEEN
        value = value[part]
    return value


def _passes(value: Any, test: Any) -> bool:
    if isinstance(test, Mapping):
        return all(_comparison(value, kind, limit) for kind, limit in test.items())
    if isinstance(test, list):
        return value in test
    return bool(value == test)


def _comparison(value: Any, kind: str, limit: Any) -> bool:
    stated = value not in (UNSEEN, None, False, "")
    if kind == "stated":
        return stated is bool(limit)
    if kind == "contains":
        return stated and str(limit).lower() in str(value).lower()
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (value > limit if kind == "above" else value < limit)
