"""MEA001: what a printed figure really means here."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.printed import PrintedRate, usual_definition
from analysis.theory.rates import RateDefinition
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.evidence import Evidence
from collector.domain.findings import Finding, Question, Severity

_SPOKEN = {
    "length/width": "length / {width}",
    "length/max_length": "length / {max_length}",
    "accepted/depth": "(length - 1) / {depth}",
    "length/depth": "length / {depth}",
}


class MetricDefinitionNote(Rule):
    """A figure the engine prints follows another definition than its name suggests.

    Why it matters:
        "Accept rate" has had three formulas in one engine. Two of them count the target's own
        token, so they never reach 0, and none compares with a validation accuracy.

    How to fix:
        Compare the figures that draftscope shows: they are converted once, from counts.

    Example:
        Accept rate 0.30 with 6 draft tokens is 1.80 / 6; of 5 drafted tokens 16% are accepted.

    Source:
        SGLang 0.5.3 to 0.5.23, `scheduler_metrics_mixin.py` and successors; theory section 1.2.
    """

    id, name = "MEA001", "metric-definition-note"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, speculating: RunView, args: Arguments | None = None, printed: PrintedRate | None = None) -> Outcome:
        """Note every definition that differs from ours."""
        if args is not None and args.value("enable_beta_spec") is True and speculating.pooled is not None:
            yield self._beta_spec(speculating)
        if printed is None or printed.definition is None:
            return
        usual = usual_definition(speculating.record.engine, speculating.record.engine_version)
        contradicted = speculating.record.events_of("release-contradicted")
        if usual is not None and usual not in printed.ties:
            yield self._unusual(speculating, printed, usual)
        elif contradicted:
            yield self._unclear_release(speculating, printed, contradicted[-1].evidence)
        if printed.definition is RateDefinition.ACCEPTED_DRAFTED:
            return
        definition = str(printed.definition)
        strict = speculating.value("draft_acceptance_rate")
        formula = _SPOKEN[definition].format(
            width=speculating.width, max_length=(speculating.depth or 0) + 1, depth=speculating.depth
        )
        ours = f" Of the drafted tokens {words.percent(strict)} are accepted." if strict is not None else ""
        bonus = " and counts the target's own token" if printed.definition.counts_bonus else ""
        yield self.finding(
            f"The printed accept rate {printed.rate:.2f} is {formula}{bonus}",
            f"{printed.length:.2f} over its denominator gives {printed.rate:.2f}.{ours} Neither compares with a validation accuracy.",
            values={
                "metric": "accept rate",
                "printed_rate_definition": definition,
                "printed": printed.rate,
                **speculating.figures("draft_acceptance_rate", "acceptance_length"),
            },
            evidence=[speculating.window_evidence(printed.row)],
            fix=["Compare acceptance length, or accepted of drafted, as shown here."],
            verify=[
                f"{printed.rate:.2f} x {_denominator(definition, speculating)} = {printed.rate * _denominator(definition, speculating):.2f}"
            ],
        )

    def _unusual(self, run: RunView, printed: PrintedRate, usual: RateDefinition) -> Finding:
        return self.finding(
            f"The printed accept rate follows {printed.definition}; release {run.record.engine_version} prints {usual}",
            "Either the release is another than stated, or the engine is patched. The figures here use the one that fits.",
            values={"metric": "accept rate", "printed_rate_definition": str(printed.definition), "usual": str(usual)},
            evidence=[run.window_evidence(printed.row)],
            fix=["Check the engine's release."],
            verify=['curl ENGINE/server_info   # its part "version"'],
        )

    def _unclear_release(self, run: RunView, printed: PrintedRate, clues: Evidence) -> Finding:
        return self.finding(
            f"The printed accept rate follows {printed.definition}, the form of the lines is that of another release",
            f"The rate fits {run.record.release_range}; against that speaks: {clues.text}. Either the engine is patched, or "
            "the log is of several releases. The figures here use the definition that fits.",
            values={"metric": "accept rate", "printed_rate_definition": str(printed.definition)},
            evidence=[run.window_evidence(printed.row), clues],
            fix=["Check the engine's release, and do not compare printed rates of this server with others."],
            verify=['curl ENGINE/server_info   # its part "version"'],
        )

    def _beta_spec(self, run: RunView) -> Finding:
        shown = float(run.frame["printed_length"].dropna().iloc[-1])
        return self.finding(
            "The printed accept length is 1.0 too high on this release",
            "With --enable-beta-spec this release counts the target's own token twice, in the log, in the metrics and in "
            "avg_spec_accept_length. The figures here are corrected.",
            values={"metric": "accept len", "printed": shown, **run.figures("acceptance_length")},
            evidence=run.first_and_last,
            fix=["Subtract 1 from every printed accept length of this server, or move to 0.5.4 or later."],
            verify=["Compare with completion_tokens / spec_verify_ct of a few responses."],
            severity=Severity.WARNING,
        )


def _denominator(definition: str, run: RunView) -> int:
    depth, width = run.depth or 0, run.width or 0
    return {"length/width": width, "length/max_length": depth + 1}.get(definition, depth)
