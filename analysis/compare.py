"""Two or more runs side by side: what differs, whether it is more than chance, and whether changes took effect."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from analysis import words
from analysis.capture import captures, declared_ids
from analysis.case import Case
from analysis.differences import PER_LAUNCH
from analysis.documents import plain
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.arguments import UNSEEN, Argument, Seen
from collector.domain.errors import InputError
from collector.domain.quantities import Estimate
from collector.domain.runs import Bundle

SCHEMA: Final = "draftscope.comparison/1"

COMPARED: Final = (
    "acceptance_length",
    "conditional_acceptance_rate",
    "draft_acceptance_rate",
    "generation_throughput",
    "step_seconds",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "retained_share",
    "running_requests",
)
AT_EQUAL_DEPTH: Final = frozenset({"acceptance_length", "draft_acceptance_rate"})
"""Figures that a deeper draft changes by itself."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of two runs.

    ``change`` is the later minus the first, ``half`` the half width of its 95% interval (``None``
    where one of the figures has none). ``word`` is ``rose``, ``fell``, ``no difference``,
    ``not known`` or ``not comparable``; ``note`` says why.
    """

    key: str
    before: Estimate | None
    after: Estimate | None
    change: float | None
    half: float | None
    word: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """Something that was changed between two runs, and whether the change runs: ``yes``, ``no`` or ``cannot tell``."""

    what: str
    before: str
    after: str
    effect: str
    why: str


@dataclass(frozen=True, slots=True)
class Setting:
    """An argument, a release or a field of a draft's config that runs do not share; one value a run, unseen where not known."""

    name: str
    values: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Against:
    """One run against the first."""

    label: str
    differences: tuple[Difference, ...]
    effects: tuple[ChangeEffect, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A run's place. ``tied`` names the better ones from which its interval cannot tell it apart."""

    label: str
    figure: Estimate
    tied: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs in the order given; the first is what the others are compared with.

    ``ranked_by`` is the quantity of the ranking: the length where all depths agree, else the
    conditional rate.
    """

    labels: tuple[str, ...]
    views: tuple[RunView, ...]
    against: tuple[Against, ...]
    ranked_by: str
    ranking: tuple[Ranked, ...]
    settings: tuple[Setting, ...] = ()

    def document(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "schema": SCHEMA,
            "runs": [
                {"label": label, "engine": view.record.engine, "method": view.method, "source": view.record.source}
                for label, view in zip(self.labels, self.views, strict=True)
            ],
            "against": [
                {
                    "run": item.label,
                    "differences": [
                        {
                            "key": one.key,
                            "before": _figure(one.before),
                            "after": _figure(one.after),
                            "change": plain(one.change),
                            "half": plain(one.half),
                            "word": one.word,
                            "note": one.note,
                        }
                        for one in item.differences
                    ],
                    "effects": [
                        {"what": e.what, "before": e.before, "after": e.after, "effect": e.effect, "why": e.why}
                        for e in item.effects
                    ],
                }
                for item in self.against
            ],
            "settings": [
                {"name": one.name, "values": [None if value is UNSEEN else plain(value) for value in one.values]}
                for one in self.settings
            ],
            "ranked_by": self.ranked_by,
            "ranking": [
                {"run": item.label, "figure": _figure(item.figure), "tied_with": list(item.tied)}
                for item in self.ranking
            ],
        }


def schema() -> dict[str, Any]:
    """The published JSON Schema of the document."""
    document: dict[str, Any] = json.loads(files("analysis").joinpath("comparison.schema.json").read_text("utf-8"))
    return document


def _figure(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else plain({"value": estimate.value, "low": estimate.low, "high": estimate.high})


def compare(bundles: Sequence[Bundle], labels: Sequence[str], thresholds: Thresholds | None = None) -> Comparison:
    """Compare the subjects of the bundles; the first is the reference.

    Raises:
        InputError: fewer than two runs.
    """
    if len(bundles) < 2:
        raise InputError("a comparison takes two runs", hint="draftscope compare RUN RUN")
    return compare_views([Case(bundle, thresholds).run for bundle in bundles], labels)


def compare_views(views: Sequence[RunView], labels: Sequence[str]) -> Comparison:
    """The same for runs that were looked at already; there are at least two."""
    first = views[0]
    by_length = len({view.depth for view in views if "acceptance_length" in view.quantities}) == 1
    key = "acceptance_length" if by_length else "conditional_acceptance_rate"
    return Comparison(
        labels=tuple(labels),
        views=tuple(views),
        against=tuple(
            Against(label, tuple(differences(first, view)), tuple(effects(first, view)))
            for label, view in zip(labels[1:], views[1:], strict=True)
        ),
        ranked_by=key,
        ranking=_rank(labels, views, key),
        settings=tuple(_settings(views)),
    )


def _settings(views: Sequence[RunView]) -> Iterator[Setting]:
    """What the runs do not share, of what at least two of them state: releases, arguments, fields of the draft's config."""
    stated: dict[str, list[Seen]] = {}
    for place, view in enumerate(views):
        found: dict[str, Seen] = (
            {} if view.record.engine_version is None else {"release": str(view.record.engine_version)}
        )
        found |= {
            words.flag(name): argument.runs for name, argument in view.arguments.items() if name not in PER_LAUNCH
        }
        draft = view.record.draft_config
        found |= {} if draft is None else {f"draft config {key}": value for key, value in draft.raw.items()}
        for name, value in found.items():
            stated.setdefault(name, [UNSEEN] * len(views))[place] = value
    for name, values in stated.items():
        known = [value for value in values if value is not UNSEEN]
        if any(value != known[0] for value in known[1:]):
            yield Setting(name, tuple(values))


def differences(before: RunView, after: RunView) -> Iterator[Difference]:
    """Each compared figure, with the interval of its difference and the word for it."""
    same_depth = before.depth == after.depth or before.depth is None or after.depth is None
    for key in COMPARED:
        old, new = before.quantities.get(key), after.quantities.get(key)
        if old is None and new is None:
            continue
        if old is None or new is None:
            yield Difference(key, old, new, None, None, "not known", "only one of the runs states it")
            continue
        change = float(new.value) - float(old.value)
        half = None if old.half is None or new.half is None else math.hypot(old.half, new.half)
        if key in AT_EQUAL_DEPTH and not same_depth:
            note = f"depth {before.depth} against {after.depth}; compare the conditional rate"
            yield Difference(key, old, new, change, half, "not comparable", note)
        elif half is None or not math.isfinite(half):
            yield Difference(key, old, new, change, None, "not known", "one of the figures has no interval")
        elif abs(change) <= half:
            windows = min(old.windows or 0, new.windows or 0)
            note = f"none that {words.plural(windows, 'window')} can show"
            yield Difference(key, old, new, change, half, "no difference", note)
        else:
            yield Difference(key, old, new, change, half, "rose" if change > 0 else "fell")


def effects(before: RunView, after: RunView) -> Iterator[ChangeEffect]:
    """For everything that was asked differently: does something else run?

    Where only one launch command is known, what runs differently is listed instead.
    """
    asked = before.arguments.any_requested and after.arguments.any_requested
    for name in sorted(set(before.arguments) | set(after.arguments)):
        old, new = before.arguments[name], after.arguments[name]
        if name in PER_LAUNCH:
            continue
        if asked and old.requested != new.requested:
            yield _argument_effect(name, old, new)
        elif not asked and UNSEEN not in (old.effective, new.effective) and old.effective != new.effective:
            ran, runs = words.value(old.effective), words.value(new.effective)
            yield ChangeEffect(
                words.flag(name), ran, runs, "yes", "runs differently; what was asked is not known for both"
            )
    yield from _capture_effect(before, after)


def _argument_effect(name: str, old: Argument, new: Argument) -> ChangeEffect:
    asked = [words.value(item.requested) if item.requested_seen else "not asked" for item in (old, new)]
    runs = [item.effective if item.effective is not UNSEEN else item.predicted for item in (old, new)]
    if UNSEEN in runs:
        effect, why = "cannot tell", "what runs is not known for both"
    elif runs[0] == runs[1]:
        effect, why = "no", f"{words.value(runs[1])} runs before and after"
    else:
        effect, why = "yes", f"{words.value(runs[0])} ran, {words.value(runs[1])} runs"
    return ChangeEffect(words.flag(name), asked[0], asked[1], effect, why)


def _capture_effect(before: RunView, after: RunView) -> Iterator[ChangeEffect]:
    """Changed layer ids take effect where the captured layers differ on every release it may be."""
    configs = before.record.draft_config, after.record.draft_config
    if configs[0] is None or configs[1] is None:
        return
    engine = after.record.engine
    ids = declared_ids(engine, configs[0]), declared_ids(engine, configs[1])
    if ids[0] == ids[1]:
        return
    target = after.record.target_config or before.record.target_config
    effect, why = "cannot tell", "the target's config is not known"
    if target is not None:
        sides = [
            {reading.outputs for reading in captures(engine, target, config, view.releases) if not reading.impossible}
            for view, config in ((before, configs[0]), (after, configs[1]))
        ]
        if len(sides[0]) == len(sides[1]) == 1:
            same = sides[0] == sides[1]
            effect = "no" if same else "yes"
            layers = [list(next(iter(side))) for side in sides]
            why = f"outputs {layers[1]} feed the draft" + (" before and after" if same else f", {layers[0]} did before")
        else:
            why = "the releases these runs may be read the ids differently"
    yield ChangeEffect("draft layer ids", str(ids[0]), str(ids[1]), effect, why)


def _rank(labels: Sequence[str], views: Sequence[RunView], key: str) -> tuple[Ranked, ...]:
    figures = [
        (label, view.quantities[key]) for label, view in zip(labels, views, strict=True) if key in view.quantities
    ]
    figures.sort(key=lambda item: -float(item[1].value))
    ranking = []
    for place, (label, figure) in enumerate(figures):
        tied = tuple(
            other
            for other, better in figures[:place]
            if figure.half is None
            or better.half is None
            or better.value - figure.value <= math.hypot(better.half, figure.half)
        )
        ranking.append(Ranked(label, figure, tied))
    return tuple(ranking)
