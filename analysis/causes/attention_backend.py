"""Cost: speculation switched the attention kernel."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class AttentionBackendSwitched(Cause):
    """Speculation switched the target to another attention kernel."""

    id, title = "attention-backend-switched", "Speculation switched the target to another attention kernel"
    kind = Kind.COST
    reports = 3
    explains = frozenset({Symptom.COST, Symptom.SLOW})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        topk = facts.run.topk
        backend = facts.flag("attention_backend")
        yield from when(
            topk is not None and topk > 1 and backend == "flashinfer",
            "a tree makes SGLang take flashinfer instead of fa3",
            CLEAR,
        )
        baseline = next((view for view in facts.case.views if view.role.value == "baseline"), None)
        other = baseline.arguments.value("attention_backend") if baseline is not None else None
        yield from when(
            backend and other and backend != other, f"{other} without speculation, {backend} with it", STRONG
        )
        yield from when(
            backend and other and backend == other, "the kernel is the same with and without speculation", -STRONG
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Name the kernel explicitly (--attention-backend) in both runs, then: draftscope compare WITHOUT WITH",
            {"the step gets cheaper": "the kernel was the cost", "no difference": "the kernel is not the reason"},
        )
