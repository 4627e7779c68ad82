"""DRF005: the draft's window is shorter than what is served."""

from __future__ import annotations

import math

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.models import window
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Question, Severity
from collector.domain.versions import Release

CONTEXT_FLAGS = ("context_length", "max_model_len", "ctx_size", "max_seq_len")
"""How engines call the longest context they serve."""
DRAFT_FLAG = "speculative_config.max_model_len"
"""How vLLM calls the longest request that is drafted for."""
STOPS, RAISED = Release.parse("0.11"), Release.parse("0.27")
"""vLLM stops drafting for a whole batch from the one on, and raises the window of EAGLE drafts from the other on."""


class DraftContextTooShort(Rule):
    """The draft was made for a shorter context than the server accepts.

    Why it matters:
        Beyond its window the draft sees positions it was never trained on; acceptance decays to
        nothing while the server goes on paying for drafts. In vLLM one such request ends drafting
        for its whole batch.

    How to fix:
        Use a draft trained for long contexts, serve shorter ones (`--context-length`), or let
        the draft see a sliding window where the engine can.

    Example:
        A window of 2,048 under a target that serves 131,072: length 2.3 at 2,000 tokens, 1.1 at
        16,000.

    Source:
        sglang issue 6783; the engines do not copy the target's window to the draft. vLLM
        `_input_fits_in_drafter`.
    """

    id, name = "DRF005", "draft-context-too-short"
    question = Question.CONFIG
    severity = Severity.WARNING

    def check(self, speculating: RunView, args: Arguments, draft: ModelConfig) -> Outcome:
        """The draft's window against the served context, else against the target's window."""
        own = window(draft)
        limited = args.value(DRAFT_FLAG)
        limited = int(limited) if isinstance(limited, (int, float)) and 0 < limited < math.inf else None
        if limited is not None and (own is None or limited < own):
            own = limited
        elif limited is not None:
            limited = None
        if own is None:
            raise cannot_look("the draft's config names no window")
        served = next(
            (
                int(value)
                for flag in CONTEXT_FLAGS
                if isinstance(value := args.value(flag), (int, float)) and 0 < value < math.inf
            ),
            None,
        )
        target = speculating.record.target_config
        limit = served or (window(target) if target is not None else None)
        if limit is None:
            raise cannot_look("neither the served context nor the target's window is known", "--target-config FILE")
        if own >= limit:
            return
        seen = _longest_context(speculating)
        fits = seen is not None and seen <= own
        so_far = (
            ""
            if seen is None
            else f" The longest context seen is about {words.count(seen)} tokens{', which fits' if fits else ''}."
        )
        yield self.finding(
            f"The draft's window is {own:,} tokens, {'the server accepts' if served else 'the target takes'} {limit:,}",
            f"{_beyond(speculating, own, limited=limited is not None)}{so_far}",
            values={"draft": own, "target": limit, "longest_context_seen": seen},
            evidence=[
                args[DRAFT_FLAG].requested_evidence if limited else draft.evidence("max_position_embeddings"),
                next((args[flag].effective_evidence for flag in CONTEXT_FLAGS if args.value(flag)), None),
                target.evidence("max_position_embeddings") if target is not None and not served else None,
            ],
            fix=[
                "Use a draft trained for long contexts, or serve no more than it takes.",
                *_fixes(speculating, limited),
            ],
            verify=["Send one prompt shorter and one longer than the draft's window and compare acceptance."],
            severity=Severity.INFO if fits else Severity.WARNING,
        )


def _beyond(run: RunView, own: int, *, limited: bool) -> str:
    """What the engine does with a request that is longer than the draft takes."""
    outside = f"Beyond {own:,} tokens the draft works outside what it was made for."
    if run.record.engine != "vllm":
        return outside
    first, last = run.releases.first, run.releases.last
    raises = run.method in ("eagle", "eagle3") and not limited
    if raises and first is not None and first >= RAISED:
        return f"{outside} vLLM lets it: it raises the draft's window to the one that is served."
    stops = f"Once one request is longer than {own:,} tokens, no request of its batch is drafted for."
    if first is not None and first >= STOPS and (not raises or (last is not None and last < RAISED)):
        return stops
    return (
        f"{outside} In vLLM from {STOPS} on{f' and before {RAISED}' if raises else ''}: {stops[0].lower()}{stops[1:]}"
    )


def _fixes(run: RunView, limited: int | None) -> list[str]:
    if limited is not None:
        return ["Leave max_model_len out of --speculative-config where the draft takes more."]
    if run.record.engine != "sglang":
        return []
    return ["SGLang 0.5.13 and later: --speculative-draft-window-size lets an EAGLE draft see a sliding window."]


def _longest_context(run: RunView) -> float | None:
    """Mean tokens a request held at the fullest window, tokens; ``None`` where no window tells."""
    if not run.record.windows:
        return None
    frame = run.frame
    contexts = frame["tokens_in_use"] / frame["running_requests"].where(frame["running_requests"] > 0)
    return float(contexts.max()) if contexts.notna().any() else None
