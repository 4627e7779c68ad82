"""Cost: a kernel or graph computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class KernelComputesWrongly(Cause):
    """A kernel or captured graph computes wrongly at this batch.

    An attention kernel whose mask or lengths are wrong with several query tokens, or a graph that
    replays an earlier batch. Acceptance then depends on the batch, which it has no reason to; with
    numbers that overflow all or nothing is accepted and the text degenerates.
    """

    id = "kernel-computes-wrongly"
    kind = Kind.WIRING
    reports = ("sgl-project/sglang#21212", "NVIDIA/TensorRT-LLM#5146", "NVIDIA/TensorRT-LLM#7363")
    explains = LOW_ACCEPTANCE | {Symptom.CONTRADICTED}
    changes = (
        ("attention_backend", STRONG),
        ("speculative_attention_mode", STRONG),
        ("disable_cuda_graph", STRONG),
        ("enforce_eager", STRONG),
    )

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether acceptance depends on the batch."""
        fall = facts.lost_at_large_batch
        if fall is not None and fall > 0:
            yield favours(STRONG, f"{100 * fall:.0f}% of the accepted drafts are lost at the larger batches")
        elif fall is not None:
            yield opposes(CLEAR, "acceptance does not depend on the batch")
        if facts.works_in_part and not fall:
            yield opposes(CLEAR, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Another kernel, then without graphs."""
        option = "--attention-backend triton" if facts.engine == "sglang" else "--enforce-eager"
        return Experiment(
            "Send the same prompts at temperature 0 one at a time and together, then once with another kernel",
            (relaunch(facts, option), compare(facts, "OTHER_KERNEL_LOG")),
            {
                "acceptance is equal in both": "the kernel is sound",
                "it falls with the batch on one kernel only": "that kernel is at fault; keep the other and report it",
            },
        )
