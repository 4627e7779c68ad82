"""Cost: the target is so fast that a draft cannot pay."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class SmallTarget(Cause):
    """The target is so fast that drafting cannot pay."""

    id, title = "small-target", "The target is so fast that drafting cannot pay"
    kind = Kind.COST
    reports = 3
    explains = frozenset({Symptom.SLOW, Symptom.COST})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        plain = facts.case.payoff_or_none
        step = None
        for view in facts.case.views:
            if view.role.value == "baseline":
                step = view.value("step_seconds")
        yield from when(
            step is not None and step < 0.006, f"a plain step takes {1000 * step:.1f} ms" if step else "", STRONG
        )
        yield from when(
            step is not None and step > 0.010,
            f"a plain step takes {1000 * step:.0f} ms, time enough for a draft" if step else "",
            -STRONG,
        )
        target = facts.run.record.target_config
        hidden = target.number("hidden_size") if target is not None else None
        yield from when(
            hidden is not None and hidden <= 2048 and not facts.experts,
            f"the target is small (width {hidden:.0f})" if hidden else "",
            STRONG,
        )
        name = str(facts.flag("model") or facts.flag("model_path") or facts.flag("model_tag") or "").lower()
        small = any(
            f"{size}b" in name.replace("-", " ").replace("_", " ").split("/")[-1].split()
            for size in ("0.5", "0.6", "0.8", "1", "1.5", "1.7", "2")
        )
        yield from when(small, "the target's name says at most 2 B parameters", STRONG)
        yield from when(
            plain is not None and plain.length > 1.5 and not facts.low_acceptance,
            "drafts are accepted, and it is slower all the same",
            HINT,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Compare time per step with and without drafts; try depth 1",
            {"even depth 1 loses": "turn speculation off for this target", "depth 1 gains": "keep it at 1"},
        )
