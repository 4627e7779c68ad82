"""Cost: steps run without captured graphs."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import (
    CLEAR,
    DECISIVE,
    HINT,
    STRONG,
    Cause,
    Experiment,
    Kind,
    Reason,
    favours,
    opposes,
    refutes,
)
from analysis.causes.commands import compare, relaunch
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts

OFF_SWITCHES = ("disable_cuda_graph", "enforce_eager")


class GraphsOff(Cause):
    """Verification or draft run without captured graphs.

    Graphs are captured up to a batch size, for the verify width, and for target and draft apart.
    Above it, or on a backend that cannot, every kernel is launched one by one, and a draft of
    many small kernels feels that most.
    """

    id = "graphs-off"
    kind = Kind.COST
    reports = ("sgl-project/sglang#5274", "SafeAILab/EAGLE#298", "vllm-project/vllm#35387", "NVIDIA/TensorRT-LLM#7363")
    explains = EXPENSIVE
    changes = (
        ("disable_cuda_graph", STRONG),
        ("enforce_eager", STRONG),
        ("cuda_graph_max_bs", STRONG),
        ("release", HINT),
    )

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What the windows and flags say about graphs."""
        yield from step_cost(facts)
        if facts.run.on_cpu:
            yield refutes("a CPU has no graphs")
        if facts.fired("PAY007"):
            yield favours(DECISIVE, "windows decoded without a graph", "PAY007")
        switched = [name for name in OFF_SWITCHES if facts.flag(name) is True]
        if switched:
            yield favours(STRONG, f"{switched[0]} is on")
        captured, running = facts.flag("cuda_graph_max_bs"), facts.running
        if isinstance(captured, int) and running is not None and running > captured:
            yield favours(STRONG, f"graphs are captured up to {captured} requests, and {running:.0f} run")
        told = next((text for text in facts.announcements if "cudagraph" in text.lower()), "")
        if told:
            yield favours(STRONG, f"the engine says: {told}")
        graph = facts.run.frame["graph"].dropna() if facts.run.record.windows else None
        if graph is not None and not graph.empty and bool(graph.all()):
            yield opposes(CLEAR, "every window decoded from a graph, as far as the target goes")

    def experiment(self, facts: Facts) -> Experiment:
        """Capture larger batches."""
        running = max(8, round(2 * (facts.running or 4)))
        option = f"--cuda-graph-max-bs {running}" if facts.engine == "sglang" else "--max-cudagraph-capture-size 2048"
        return Experiment(
            "Look for capture lines of draft and verification at the start of the log, and capture larger batches once",
            (
                relaunch(facts, option, without=("--disable-cuda-graph", "--enforce-eager")),
                compare(facts, "GRAPHS_LOG"),
            ),
            {"the step gets cheaper": "steps ran without graphs", "no difference": "graphs were there"},
        )
