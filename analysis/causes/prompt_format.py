"""Traffic: prompts have another format than in validation."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch, replay
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class PromptFormatDiffers(Cause):
    """Prompts have another format than in validation: chat template, system prompt, thinking mode.

    A benchmark without the chat template, few-shot prompts, or a thinking mode that was absent
    from the training data. Kept 0.29 of the accepted drafts on one and the same server; a model
    may accept more than twice as much with thinking on.
    """

    id = "prompt-format-differs"
    kind = Kind.TRAFFIC
    reports = ("NVIDIA/TensorRT-LLM#4802", "SafeAILab/EAGLE#264")
    explains = LOW_ACCEPTANCE
    changes = (("chat_template", STRONG), ("reasoning_parser", CLEAR), ("default_chat_template_kwargs", STRONG))

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The share kept, and the shape over positions."""
        if facts.copies:
            yield opposes(CLEAR, "copied drafts follow the text whatever its format")
        if facts.lost:
            yield opposes(CLEAR, "another format leaves more (0.29 in one report)")
        elif facts.partly_kept:
            yield favours(STRONG, "as much is kept as another prompt format keeps")
        if facts.later_positions_fail:
            yield opposes(STRONG, "another format fails at the first draft, not after it", "ACC005")
        elif facts.first_position_fails and not facts.lost:
            yield favours(HINT, "already the first draft fails more often", "ACC005")
        if facts.earlier_was_better and facts.differences:
            yield opposes(CLEAR, "the server changed since the better run", "ACC003")
        if facts.works_in_part:
            yield opposes(STRONG, "short contexts or other units do well")

    def experiment(self, facts: Facts) -> Experiment:
        """Replay the validation prompts."""
        return Experiment(
            "Replay the validation prompts through this server at temperature 0",
            (relaunch(facts), replay(facts), compare(facts, "REPLAY_LOG")),
            {
                "the replay matches validation": "the wiring is right; the traffic differs (format, language, temperature)",
                "the replay is as low": "the wiring or the checkpoint is at fault, not the traffic",
            },
        )
