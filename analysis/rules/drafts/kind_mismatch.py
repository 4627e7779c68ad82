"""DRF003: the states or the kind of draft do not fit what the engine feeds."""

from __future__ import annotations

from analysis.base import Outcome, Rule
from analysis.view import RunView
from collector.domain.findings import Question, Severity
from collector.domain.runs import Event


class HiddenStateWidthMismatch(Rule):
    """Number, width or kind of the hidden states that the draft expects differ from what it is fed.

    Why it matters:
        An EAGLE-3 head started as EAGLE gets one state instead of three, skips its projection
        and runs without a word at about half the acceptance.

    How to fix:
        Name the method that the draft was trained for: `--speculative-algorithm EAGLE3` for an
        EAGLE-3 head.

    Example:
        `--speculative-algorithm EAGLE` while the log says `type=LlamaForCausalLMEagle3`: first
        drafts accepted 31% instead of 66% of the time.

    Source:
        SGLang 0.5.9, `models/llama_eagle3.py` and a running server of that release.
    """

    id, name = "DRF003", "hidden-state-width-mismatch"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, speculating: RunView) -> Outcome:
        """Compare the method with the class that was loaded, or with the draft's config."""
        loaded = next((event for event in speculating.record.events_of("weights-loaded") if _eagle3(event)), None)
        config = speculating.record.draft_config
        kinds = [str(loaded.values["type"])] if loaded is not None else []
        kinds += [name for name in config.architectures if "Eagle3" in name] if config is not None else []
        if speculating.method != "eagle" or not kinds:
            return
        kind = kinds[0]
        argument = speculating.arguments["speculative_algorithm"]
        yield self.finding(
            "An EAGLE-3 head runs as EAGLE",
            f"The draft is a {kind}, made for hidden states of three layers; method EAGLE feeds it one. It loads and runs "
            "without an error, and accepts about half as often.",
            values={"draft": kind, "target": "EAGLE", "flag": "speculative_algorithm"},
            evidence=[argument.effective_evidence or argument.requested_evidence, loaded.evidence if loaded else None],
            fix=["Start with --speculative-algorithm EAGLE3."],
            verify=["Compare acceptance length after the restart: it should rise at the first window."],
        )


def _eagle3(event: Event) -> bool:
    return "Eagle3" in str(event.values.get("type", ""))
