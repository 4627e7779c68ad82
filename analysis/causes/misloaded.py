"""Draft: its weights are loaded wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts

HEADS_IN_THE_CHECKPOINT = ("mtp", "medusa")
"""Methods whose heads were misloaded more often than others in the reports."""


class DraftMisloaded(Cause):
    """The draft's weights are loaded wrongly: names, scales or quantisation.

    Weights whose names do not match stay random without an error; block scales that are left out,
    packed values read as another type, or the target's quantisation applied to an unquantised
    draft give noise. Next to nothing is accepted from the first window on, on any text.
    """

    id = "draft-misloaded"
    kind = Kind.DRAFT
    reports = (
        "sgl-project/sglang#32440",
        "vllm-project/llm-compressor#1843",
        "kekzl/imp#1428",
        "mratsim/sglang-qwen38fn-sm120-turbo#3",
        "vllm-project/vllm#41745",
        "vllm-project/vllm#11126",
        "vllm-project/vllm#8620",
        "vllm-project/vllm#6768",
        "sgl-project/SpecForge#455",
    )
    explains = LOW_ACCEPTANCE
    changes = (
        ("quantization", STRONG),
        ("speculative_draft_model_quantization", STRONG),
        ("dtype", STRONG),
        ("speculative_config.quantization", STRONG),
        ("speculative_draft_model_path", CLEAR),
        ("speculative_config.model", CLEAR),
        ("release", CLEAR),
    )

    def applies(self, facts: Facts) -> bool:
        """Drafts with weights."""
        return not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether next to nothing is accepted, and what is quantised."""
        if facts.near_zero:
            yield favours(CLEAR, "practically nothing is accepted, as with random or unscaled weights", "ACC002")
        elif not facts.lost:
            yield opposes(STRONG, "misloaded drafts accept next to nothing")
        if facts.fired("DRF007"):
            yield favours(CLEAR, "precision or quantisation of the two sides differ", "DRF007")
        if facts.run.record.events_of("weights-missing"):
            yield favours(STRONG, "the log names weights that were not found")
        if facts.lost and facts.run.drafting.one_module and facts.flag("quantization"):
            yield favours(HINT, f"the checkpoint that holds the draft is quantised ({facts.flag('quantization')})")
        if facts.method in HEADS_IN_THE_CHECKPOINT:
            yield favours(HINT, f"{facts.method} heads were misloaded more often than others in the reports")
        if facts.later_positions_fail:
            yield opposes(STRONG, "the first draft is good", "ACC005")
        if facts.works_in_part:
            yield opposes(STRONG, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Unquantised."""
        start = f"grep -iE 'skip|missing|unexpected|not found' {facts.run.record.source}"
        unquantised = relaunch(facts, "--speculative-draft-model-quantization unquant")
        return Experiment(
            "Serve draft and target unquantised once, and read the start of the log for weights that were skipped",
            (start, *([unquantised] if facts.engine == "sglang" else []), compare(facts, "UNQUANTISED_LOG")),
            {
                "acceptance returns": "the quantised loading is at fault",
                "still near zero": "weight names, or what feeds the draft",
            },
        )
