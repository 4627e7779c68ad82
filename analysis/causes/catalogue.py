"""The causes as a page; ``docs/causes.md`` is its output, and a test keeps the two equal."""

from __future__ import annotations

from analysis.causes.base import CLEAR, DECISIVE, HINT, REPORTS, STRONG, SUFFICIENT, Cause, Kind
from analysis.causes.weighing import LIKELY, LISTED, UNEXPLAINED, UNEXPLAINED_WEIGHT, known_causes

_KINDS = {
    Kind.WIRING: "Wiring: the draft is fed something else than in training",
    Kind.DRAFT: "Draft: the checkpoint, or how it is loaded and run",
    Kind.TRAFFIC: "Traffic: other text than in validation",
    Kind.COST: "Cost: the step is dear",
    Kind.LOAD: "Load: the batch, the queue",
    Kind.SETTINGS: "Settings: flags that do not do what is meant",
    Kind.MEASUREMENT: "Measurement: the figures, not the server",
}

_METHOD = f"""\
# The causes

Generated from the causes themselves (`make docs`). Rules say what is wrong; causes say what could be behind it, and
which test would tell them apart.

## How they are weighed

A cause is offered where it could explain a symptom that was found. It begins with its frequency among {REPORTS} public
reports of speculation that disappointed, as log-odds: `ln((n + 1) / ({REPORTS} - n))` for n reports whose thread names or
suspects it. One is added so that a cause that nobody reported can be weighed too. A report may stand with several causes.

Every reason then adds or takes away. The weights are log-odds set by judgement, not measured, and the same for all causes:

| weight | word | example |
| --- | --- | --- |
| {HINT:g} | hint | the traffic samples |
| {CLEAR:g} | clear sign | precision of draft and target differ |
| {STRONG:g} | strong | the better run had another release |
| {DECISIVE:g} | nearly decides | acceptance falls with the context |
| {SUFFICIENT:g} | suffices by itself, or rules out | the engine's own argument line shows another value |

The strongest reason of all is a better run of the same deployment: what differs from it is incriminated, everything else
speaks against the other causes.

The sum ranks. At most {LISTED} causes are listed, and only those that weigh more than "none of these", whose own log-odds
({UNEXPLAINED_WEIGHT:.2f}) come from the {len(UNEXPLAINED)} reports whose cause nobody found. From {LIKELY:g} on a cause is
called likely, below it possible. It is called certain only where one reason suffices by itself. A cause that the evidence
refutes is shown as ruled out, with that evidence; one that cannot arise in such a deployment is not shown at all.
"""


def page() -> str:
    """The method, then every cause by kind."""
    lines = [_METHOD]
    for kind, title in _KINDS.items():
        members = [cause for cause in known_causes() if cause.kind is kind]
        lines += [f"## {title}", ""]
        for cause in members:
            lines += _cause(cause)
    return "\n".join(lines).rstrip() + "\n"


def _cause(cause: Cause) -> list[str]:
    _, _, rest = cause.description.partition("\n\n")
    lines = [f"### {cause.id}", "", f"**{cause.title}.** {' '.join(rest.split())}", ""]
    lines += [f"*Explains.* {'; '.join(sorted(cause.explains))}.", ""]
    if cause.changes:
        changed = ", ".join(f"{name.replace('_', ' ')}" for name, _ in cause.changes)
        lines += [f"*Incriminated by a change of.* {changed}.", ""]
    reports = "; ".join(cause.reports) or "none"
    lines += [f"*Reports ({len(cause.reports)}, prior {cause.prior():.2f}).* {reports}.", ""]
    return lines
