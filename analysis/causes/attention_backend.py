"""Cost: another attention kernel."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours, refutes
from analysis.causes.commands import compare, relaunch
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts


class AttentionBackendSwitched(Cause):
    """Speculation switched the target to another attention kernel.

    Trees and several query tokens a request are not supported by every kernel, so the engine
    picks another, and all steps pay for it.
    """

    id = "attention-backend-switched"
    kind = Kind.COST
    reports = ("jundot/omlx#2689", "sgl-project/sglang#21212")
    explains = EXPENSIVE
    changes = (("attention_backend", STRONG),)

    def applies(self, facts: Facts) -> bool:
        """Where the kernel is known."""
        return bool(self._backends(facts)[0])

    @staticmethod
    def _backends(facts: Facts) -> tuple[str | None, str | None]:
        without = facts.baseline.arguments.value("attention_backend") if facts.baseline is not None else None
        return facts.flag("attention_backend"), without

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The kernel with and without speculation."""
        yield from step_cost(facts)
        here, without = self._backends(facts)
        if without is not None and here == without:
            yield refutes(f"the kernel is {here} with and without speculation")
        elif without is not None:
            yield favours(STRONG, f"{without} without speculation, {here} with it")
        elif not facts.run.drafting.chain and here == "flashinfer":
            yield favours(CLEAR, "a tree makes SGLang take flashinfer instead of fa3")

    def experiment(self, facts: Facts) -> Experiment:
        """One kernel for both."""
        here, without = self._backends(facts)
        return Experiment(
            "Name one kernel in both runs, with and without speculation",
            (relaunch(facts, f"--attention-backend {without or here}"), compare(facts, "SAME_KERNEL_LOG")),
            {"the step gets cheaper": "the kernel was the cost", "no difference": "the kernel is not the reason"},
        )
