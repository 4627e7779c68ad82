"""Every quantity draftscope speaks of, defined once.

Axis titles, explanations on pages, API descriptions, exporter help and the README table all
read from here. Source of the definitions: the theory page, section 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measured or derived figure: its key, unit and meaning.

    ``low`` and ``high`` bound what is possible (``None`` = unbounded). ``formula`` is written
    in plain text; ``label`` is the name people read.
    """

    key: str
    label: str
    unit: str
    definition: str
    formula: str = ""
    low: float | None = 0.0
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure of one run, with its interval where it was estimated.

    ``low`` and ``high`` bound the 95% interval, ``method`` names how it was made
    (``ewc``, ``jackknife``, ``conservative``), ``windows`` and ``verify_steps`` what it rests on.
    ``assumed`` marks a figure taken over from elsewhere instead of read.
    """

    value: Any
    low: float | None = None
    high: float | None = None
    method: str | None = None
    windows: int | None = None
    verify_steps: float | None = None
    assumed: bool = False
    note: str = ""

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def _table(*quantities: Quantity) -> Mapping[str, Quantity]:
    return {quantity.key: quantity for quantity in quantities}


QUANTITIES: Final[Mapping[str, Quantity]] = _table(
    # Acceptance
    Quantity(
        "acceptance_length",
        "Acceptance length",
        "tokens/step",
        "Tokens a verify step yields, the one the target adds included. Between 1 and depth + 1.",
        "1 + accepted / verify steps",
        1.0,
    ),
    Quantity(
        "accepted_per_step",
        "Accepted per step",
        "tokens/step",
        "Drafted tokens accepted in a verify step, the target's own token not counted.",
        "accepted / verify steps",
    ),
    Quantity(
        "draft_acceptance_rate",
        "Accepted of drafted",
        "ratio",
        "Accepted tokens over drafted tokens, the target's own not counted. Falls with depth, so compare only at one depth.",
        "accepted / drafted",
        0.0,
        1.0,
    ),
    Quantity(
        "acceptance_rate_at",
        "Accepted up to each position",
        "ratio",
        "Share of verify steps in which all drafts up to this position were accepted. Falls with the position.",
        "P_i = steps that accepted at least i drafts / verify steps",
        0.0,
        1.0,
    ),
    Quantity(
        "conditional_acceptance_rate_at",
        "Accepted at each position, given the one before",
        "ratio",
        "How often the draft at this position was accepted when all before it were.",
        "a_i = P_i / P_(i-1)",
        0.0,
        1.0,
    ),
    Quantity(
        "conditional_acceptance_rate",
        "Conditional acceptance",
        "ratio",
        "How often a drafted token is accepted when all before it were: the one constant that gives this length at this depth.",
        "a with 1 + a + a^2 + ... + a^k = acceptance length",
        0.0,
        1.0,
    ),
    Quantity(
        "verify_steps", "Verify steps", "steps", "Target forward passes that verified drafts, counted once per request."
    ),
    Quantity(
        "drafted_tokens",
        "Drafted tokens",
        "tokens",
        "Tokens proposed by the draft; the root of each step is not counted.",
    ),
    Quantity(
        "accepted_tokens",
        "Accepted tokens",
        "tokens",
        "Drafted tokens the target agreed with; its own token is not counted.",
    ),
    Quantity("generated_tokens", "Generated tokens", "tokens", "Tokens given to users."),
    Quantity(
        "tokens_per_target_pass",
        "Tokens per target pass",
        "tokens/step",
        "Generated tokens over target passes, also where only some passes drafted.",
        "generated / target passes",
        1.0,
    ),
    Quantity(
        "draft_coverage",
        "Draft coverage",
        "ratio",
        "Share of target passes that had a draft to verify.",
        "passes with a draft / all passes",
        0.0,
        1.0,
    ),
    Quantity("draft_depth", "Draft depth", "tokens", "k: the longest run of drafts a step can accept.", "", 0.0),
    Quantity(
        "verify_width",
        "Verify width",
        "tokens",
        "Tokens the target verifies per request and step, the root included.",
        "",
        1.0,
    ),
    Quantity(
        "max_acceptance_length",
        "Largest possible length",
        "tokens/step",
        "Depth + 1: every draft accepted, and the target's own token.",
        "k + 1",
        1.0,
    ),
    Quantity(
        "printed_rate_definition",
        "Printed accept rate",
        "",
        "Which of the known formulas the engine's printed rate follows.",
    ),
    Quantity(
        "system_efficiency",
        "System efficiency",
        "ratio",
        "Acceptance length over the largest possible one.",
        "acceptance length / (k + 1)",
        0.0,
        1.0,
    ),
    # Throughput and latency
    Quantity(
        "generation_throughput",
        "Throughput",
        "tok/s",
        "Tokens generated per second over steady windows, summed over the ranks of a server.",
    ),
    Quantity("prompt_throughput", "Prompt throughput", "tok/s", "Prompt tokens processed per second."),
    Quantity("time_to_first_token_seconds", "Time to first token", "s", "From a request's arrival to its first token."),
    Quantity("inter_token_latency_seconds", "Inter-token latency", "s", "Time between two tokens of one request."),
    Quantity(
        "time_per_output_token_seconds",
        "Time per output token",
        "s",
        "A request's decode time over its tokens after the first.",
    ),
    Quantity("request_latency_seconds", "Request latency", "s", "From a request's arrival to its last token."),
    Quantity(
        "step_seconds",
        "Step time",
        "s",
        "Time of one iteration of the batch: running requests x acceptance length / throughput.",
    ),
    # Load
    Quantity(
        "running_requests", "Running requests", "requests", "Requests that decode together, averaged over windows."
    ),
    Quantity("waiting_requests", "Waiting requests", "requests", "Requests in the queue."),
    Quantity("kv_cache_usage", "Cache usage", "ratio", "Share of the key-value cache in use.", "", 0.0, 1.0),
    Quantity(
        "cached_token_share",
        "Cached share of prompts",
        "ratio",
        "Share of prompt tokens found in the prefix cache.",
        "cached / (cached + new)",
        0.0,
        1.0,
    ),
    # Training
    Quantity(
        "validation_accuracy",
        "Validation accuracy",
        "ratio",
        "Held-out top-1 agreement of the draft with the target.",
        "",
        0.0,
        1.0,
    ),
    Quantity(
        "validation_accuracy_at",
        "Validation accuracy by position",
        "ratio",
        "The same at each position, as the training log states it.",
        "",
        0.0,
        1.0,
    ),
    Quantity(
        "expected_acceptance_length",
        "Promised by validation",
        "tokens/step",
        "The length that the validation figures imply at this depth.",
        "1 + a + a^2 + ... + a^k",
        1.0,
    ),
    Quantity(
        "realistic_acceptance_length",
        "Healthy",
        "tokens/step",
        "What a healthy deployment delivers of that: steps start where drafts failed, and sampling costs a share.",
        "1 + f_k f_T (promised - 1)",
        1.0,
    ),
    Quantity(
        "retained_share",
        "Kept of promised drafts",
        "ratio",
        "Accepted per step over what validation implies. About 82% is healthy at depth 5.",
        "(acceptance length - 1) / (promised - 1)",
    ),
    # Pay-off
    Quantity(
        "speedup",
        "Speed-up",
        "x",
        "Throughput over throughput without speculation at equal load.",
        "acceptance length / step cost",
    ),
    Quantity(
        "step_cost_ratio",
        "Step cost",
        "plain steps",
        "Time of a speculative step in plain decode steps at the same batch.",
        "acceptance length x baseline throughput / throughput",
    ),
    Quantity(
        "break_even_acceptance_length",
        "Break-even length",
        "tokens/step",
        "The length at which speculation neither gains nor loses: the step cost.",
        "= step cost",
    ),
    Quantity(
        "break_even_conditional_acceptance_rate",
        "Break-even conditional acceptance",
        "ratio",
        "The conditional acceptance that gives the break-even length at this depth.",
        "a with 1 + a + ... + a^k = step cost",
        0.0,
        1.0,
    ),
    Quantity(
        "loss_share_acceptance",
        "Loss to acceptance",
        "ratio",
        "Share of the lost speed that rejected drafts explain.",
        "ln(healthy / length) / ln(reachable / speed-up)",
        0.0,
        1.0,
    ),
    Quantity(
        "loss_share_step_cost",
        "Loss to step cost",
        "ratio",
        "Share of the lost speed that a dear step explains.",
        "ln(step cost / usual) / ln(reachable / speed-up)",
        0.0,
        1.0,
    ),
    Quantity(
        "best_draft_depth",
        "Best depth",
        "tokens",
        "The depth with the highest speed-up; 0 means: turn speculation off.",
    ),
)
