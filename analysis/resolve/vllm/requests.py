"""What single requests may ask for while the engine drafts. Nothing of it changes a flag."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.vllm.engine import (
    ASYNC,
    METHOD,
    V1,
    Stage,
    drafts_with,
    field_of,
    speculates,
    step,
)

_PROCESSOR: Final = "vllm/v1/engine/input_processor.py (processor.py before 0.12)"
_PARAMETERS: Final = "vllm/sampling_params.py"
_LOGITS: Final = "vllm/v1/sample/logits_processor/__init__.py"


def _drafts(launch: Launch) -> bool:
    return speculates(launch) and not (launch.has(V1) and not launch[V1])


@step(
    "vllm-53",
    "Requests that cannot be scheduled ahead",
    when="async_scheduling by request, and a request with penalties, bad words or structured output",
    then="the request is refused: async scheduling with spec decoding doesn't yet support penalties, bad words or "
    "structured outputs in sampling parameters.",
    releases="0.11.1-0.13.0",
    source=_PROCESSOR,
    stage=Stage.REQUEST,
)
def not_scheduled_ahead(launch: Launch) -> None:
    """They need the accepted tokens on the host."""
    if _drafts(launch) and launch[ASYNC]:
        launch.remark(ASYNC, "requests with penalties, bad words or structured output are refused (HTTP 400)")


@step(
    "vllm-76",
    "Requests with min_p or logit_bias",
    when="a request with min_p or logit_bias",
    then="refused: The min_p and logit_bias sampling parameters are not yet supported with speculative decoding.",
    says="min_p and logit_bias parameters won't work with speculative decoding.",
    releases="0.17-",
    source=_PARAMETERS,
    stage=Stage.REQUEST,
)
@step(
    "vllm-77",
    "Requests with min_tokens, min_p or logit_bias",
    when="a request with min_tokens above 1, min_p or logit_bias",
    then="refused: The min_tokens, min_p, and logit_bias sampling parameters are not yet supported with speculative "
    "decoding.",
    says="min_p, logit_bias, and min_tokens parameters won't currently work with speculative decoding.",
    releases="0.14-0.16.0",
    source=_PROCESSOR,
    stage=Stage.REQUEST,
)
@step(
    "vllm-78",
    "Requests with min_tokens, min_p or logit_bias",
    when="a request with min_tokens, min_p or logit_bias",
    then="not applied to drafted tokens, without a word to the request",
    says="min_p, logit_bias, and min_tokens parameters won't currently work with speculative decoding.",
    releases="0.11-0.13.0",
    source=_LOGITS,
    stage=Stage.REQUEST,
)
def sampling_parameters(launch: Launch) -> None:
    """The line comes at every start, whether or not a request asks."""
    if not _drafts(launch):
        return
    launch.announce()
    if launch.since("0.17"):
        launch.remark(METHOD, "requests with min_p or logit_bias are refused (HTTP 400)")
    elif launch.since("0.14"):
        launch.remark(METHOD, "requests with min_tokens above 1, min_p or logit_bias are refused (HTTP 400)")
    else:
        launch.remark(METHOD, "min_tokens, min_p and logit_bias of requests are not applied to drafted tokens")


@step(
    "vllm-79",
    "Requests that are never drafted for",
    when="method ngram (or suffix), and a request with penalties, min_p or logprobs",
    then="no drafts for that request: fewer drafts, the same acceptance rate",
    releases="-0.13.0",
    source="vllm/v1/spec_decode/utils.py",
    stage=Stage.REQUEST,
)
def never_drafted(launch: Launch) -> None:
    """Their sampling was not taught to verify."""
    if _drafts(launch) and drafts_with(launch, "ngram", "suffix"):
        launch.remark(METHOD, "requests with penalties, min_p or logprobs get no drafts")


@step(
    "vllm-80",
    "Requests with structured output",
    when="a request with structured output",
    then="drafts are cut at the first token the grammar forbids",
    releases="0.9-",
    source="vllm/v1/core/sched/scheduler.py",
    stage=Stage.REQUEST,
)
def structured_output(launch: Launch) -> None:
    """The draft knows no grammar."""
    if _drafts(launch):
        launch.remark(METHOD, "with structured output drafts are cut at the first token the grammar forbids")


@step(
    "vllm-81",
    "Requests at a temperature",
    when="a request with a temperature above 0, and drafts that are chosen greedily",
    then="fewer drafts are accepted, by construction",
    source="vllm/v1/sample/rejection_sampler.py",
    stage=Stage.REQUEST,
)
def temperature(launch: Launch) -> None:
    """A greedy draft is accepted with the target's probability for it."""
    if _drafts(launch) and launch[field_of("draft_sample_method")] in (None, "greedy"):
        launch.remark(METHOD, "above temperature 0 greedy drafts are accepted less, by construction")


@step(
    "vllm-82",
    "Requests that trace tokens",
    when="a request with trace_decode_token_ids",
    then="refused: trace_decode_token_ids is not supported with speculative decoding.",
    releases="0.29.0-",
    source=_PARAMETERS,
    stage=Stage.REQUEST,
)
def traced_tokens(launch: Launch) -> None:
    """A trace replays tokens one by one."""
    if _drafts(launch):
        launch.remark(METHOD, "requests with trace_decode_token_ids are refused (HTTP 400)")


@step(
    "vllm-83",
    "Figures of requests with several answers",
    when="per_request_spec_decode_metrics, and a request with n above 1",
    then="the response has no figures",
    releases="0.29.0-",
    source="vllm/entrypoints",
    stage=Stage.REQUEST,
)
def several_answers(launch: Launch) -> None:
    """The figures are those of one answer."""
    if _drafts(launch) and launch["per_request_spec_decode_metrics"] != "none":
        launch.remark("per_request_spec_decode_metrics", "a request with n above 1 gets no figures")
