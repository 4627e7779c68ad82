"""Traffic: prompts have another format than in validation."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class PromptFormatDiffers(Cause):
    """Prompts have another format than in validation: template, system prompt, thinking mode."""

    id, title = (
        "prompt-format-differs",
        "Prompts have another format than in validation: template, system prompt, thinking mode",
    )
    kind = Kind.TRAFFIC
    reports = 4
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(
            facts.earlier_was_better and facts.differs("release", "--dp", "--disaggregation"),
            "the server changed, so the prompts need not have",
            -CLEAR,
        )
        yield from when(
            facts.fired("ACC001") and not facts.near_zero,
            "a share of the promise is kept, as with another prompt format (0.29 in one report)",
            HINT,
        )
        yield from when(facts.near_zero, "another format alone never took everything", -STRONG)
        yield from when(facts.ngram, "n-gram drafts follow the text whatever its format", -CLEAR)
        yield from when(
            facts.cliff_position == 1,
            "the first position fails most (ACC005)",
            HINT,
        )
        yield from when(facts.fired("ACC007"), "all units share the traffic, and one lags behind", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        accuracy = facts.value("validation_accuracy")
        option = f" --validation-accuracy {accuracy:g}" if accuracy is not None else ""
        return Experiment(
            f"Replay the validation prompts through this server at temperature 0, then: draftscope diagnose REPLAY_LOG{option} --temperature 0",
            {
                "replay matches validation": "the wiring is right: the traffic differs (format, language, temperature)",
                "replay is as low": "the wiring or the checkpoint is at fault, not the traffic",
            },
        )
