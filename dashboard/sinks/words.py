"""Notices in the words of people: what, where, the two figures, the likely cause, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from collector.domain.quantities import QUANTITIES
from dashboard import names
from dashboard.pages import figures
from dashboard.sinks.notice import Notice, NoticeType

SHORT: Final = 240
"""Characters of a line in a list of findings."""
_PAIRS: Final = (
    ("effective", "requested", "asked"),
    ("acceptance_length", "realistic_acceptance_length", "healthy"),
    ("acceptance_length", "siblings_acceptance_length", "its siblings"),
    ("generation_throughput", "baseline_throughput", "without speculation"),
    ("step_cost_ratio", "usual_step_cost", "usual"),
    ("last", "previous", "at first"),
    ("acceptance_length", "previous", "before"),
    ("cached_token_share", "previous", "before"),
    ("draft_depth", "best_draft_depth", "best"),
    ("accepted_per_step_long", "accepted_per_step_short", "at short contexts"),
    ("draft_ids", "previous_ids", "before"),
    ("draft_ids", "engine_default_ids", "the engine's own"),
    ("draft", "target", "the target's"),
)
"""What was found, what it is held against, and the word for that; the first pair a finding has is shown."""
_FORMS: Final = {"last": "acceptance_length", "accepted_per_step_long": "accepted_per_step"}
"""Figures that are a quantity under another key."""


@dataclass(frozen=True, slots=True)
class Told:
    """A notice in words; a part that is not known is ""."""

    headline: str
    where: str
    figures: str
    cause: str
    fix: str
    why: str
    link: str

    def lines(self) -> list[str]:
        """The parts below the headline, for plain text."""
        parts = (
            ("", self.where),
            ("", self.figures),
            ("", self.why),
            ("Likely cause: ", self.cause),
            ("Do: ", self.fix),
        )
        return [label + text for label, text in parts if text]


def told(notice: Notice) -> Told:
    """One notice in words."""
    finding = notice.finding
    ended = notice.type is NoticeType.RESOLVED
    severity = names.SEVERITIES.get(finding.severity, finding.severity)
    start = {NoticeType.RESOLVED: "Resolved", NoticeType.REMINDED: f"Still open, {severity.lower()}"}
    cause = notice.cause
    return Told(
        headline=_line(f"{start.get(notice.type, severity)}: {finding.title}"),
        where=_line(where(notice)),
        figures="" if ended else two_figures(finding.values),
        cause="" if cause is None else f"{cause.title} ({cause.standing})",
        fix="" if ended or not finding.fix else finding.fix[0],
        why="" if ended else finding.why,
        link=notice.link,
    )


def where(notice: Notice) -> str:
    """Deployment, engine with release, method, run, and the unit a finding is about."""
    run = notice.run
    parts = [notice.deployment]
    if run.id:
        parts += [" ".join(filter(None, (names.engine(run.engine), run.engine_version)))]
        parts += [names.method(run.method)] if run.method else []
        parts += [f"run {run.id}"]
    parts += [notice.finding.scope] if notice.finding.scope != "run" else []
    return ", ".join(part for part in parts if part)


def two_figures(values: Mapping[str, Any]) -> str:
    """What was measured and what it is held against: ``Acceptance length 1.80 tokens, healthy 2.86``.

    A finding without such a pair gives up to two of its quantities; "" where it has none.
    """
    for key, against, word in _PAIRS:
        if key in values and against in values:
            form = _FORMS.get(key, key)
            return _line(
                f"{_label(key, form, values)} {_figure(form, values[key])}, {word} {_words(form, values[against])}"
            )
    quantities = [key for key, value in values.items() if key in QUANTITIES and figures.is_number(value)]
    return ", ".join(f"{QUANTITIES[key].label} {_figure(key, values[key])}" for key in quantities[:2])


def subject_of(notices: Sequence[Notice]) -> str:
    """One line for a whole message."""
    if len(notices) == 1:
        return told(notices[0]).headline
    verbs = {NoticeType.OPENED: "opened", NoticeType.RESOLVED: "resolved", NoticeType.REMINDED: "still open"}
    counts = Counter(verbs.get(notice.type, "sent") for notice in notices)
    places = {notice.deployment for notice in notices}
    at = next(iter(places)) if len(places) == 1 else figures.plural(len(places), "deployment")
    return _line(f"{', '.join(f'{count} {verb}' for verb, count in counts.items())}: {at}")


def plain_text(notices: Sequence[Notice]) -> str:
    """The body of a message where there is no markup."""
    if len(notices) > 1:
        return "\n\n".join(f"{cut(told(n).headline, SHORT)}\n{cut(told(n).where, SHORT)}\n{n.link}" for n in notices)
    one = told(notices[0])
    return "\n\n".join(part for part in ("\n".join(one.lines()), one.link) if part)


def cut(text: str, longest: int) -> str:
    """At most so many characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _label(key: str, form: str, values: Mapping[str, Any]) -> str:
    if key == "effective":
        return f"{values.get('flag', 'The flag')} runs with"
    return QUANTITIES[form].label if form in QUANTITIES else key.replace("_", " ").capitalize()


def _figure(key: str, value: Any) -> str:
    if not figures.is_number(value) or key not in QUANTITIES:
        return _words(key, value)
    form = figures.form(key, value)
    return f"{form.text(value)} {form.unit}".rstrip()


def _words(key: str, value: Any) -> str:
    return cut(figures.words(key, value), SHORT)


def _line(text: str) -> str:
    """Without line breaks, which mail headers refuse."""
    return " ".join(text.split())
