"""What stands in the command: old and short flags, unknown settings, whether speculation is asked for at all."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.vllm.engine import (
    ARGUMENTS,
    BATCH_LIMIT,
    DRAFT,
    FIELDS,
    METHOD,
    SPECULATION,
    SPECULATIVE,
    TOKENS,
    V1,
    Stage,
    field_of,
    speculates,
    step,
)
from collector.domain.arguments import Value

_OLD: Final = (
    "speculative_model",
    "speculative_model_quantization",
    "num_speculative_tokens",
    "speculative_disable_mqa_scorer",
    "speculative_draft_tensor_parallel_size",
    "speculative_max_model_len",
    "speculative_disable_by_batch_size",
    "ngram_prompt_lookup_max",
    "ngram_prompt_lookup_min",
    "spec_decoding_acceptance_method",
    "typical_acceptance_sampler_posterior_threshold",
    "typical_acceptance_sampler_posterior_alpha",
    "disable_logprobs_during_spec_decoding",
)
_SHORT: Final = {"spec_method": METHOD, "spec_model": DRAFT, "spec_tokens": TOKENS}
_IGNORED_BY_V1: Final = (
    "disable_logprobs",
    "acceptance_method",
    "posterior_threshold",
    "posterior_alpha",
    "disable_mqa_scorer",
)


def _unrecognized(launch: Launch, flags: tuple[str, ...]) -> None:
    given = [flag for flag in flags if launch.given(flag)]
    if given:
        options = " ".join(f"--{flag.replace('_', '-')} {launch.requested[flag]}" for flag in given)
        launch.reject(f"unrecognized arguments: {options}", "SystemExit")


@step(
    "vllm-15",
    "Flags of the first engine are gone",
    when="one of the single flags of vLLM 0.5 to 0.8.2: --speculative-model, --num-speculative-tokens, "
    "--ngram-prompt-lookup-max and their like",
    then="refused by the parser; the settings stand in --speculative-config",
    releases="0.8.5-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def old_flags(launch: Launch) -> None:
    """One JSON argument took their place."""
    _unrecognized(launch, _OLD)


@step(
    "vllm-14",
    "Short flags",
    when="--spec-method, --spec-model or --spec-tokens",
    then="they set method, model and num_speculative_tokens; refused where speculative_config has the same",
    releases="0.22-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
    sets=(METHOD, DRAFT, TOKENS),
)
def short_flags(launch: Launch) -> None:
    """Three settings have flags of their own."""
    for flag, field in _SHORT.items():
        if not launch.given(flag):
            continue
        if launch.given(field):
            name = field.removeprefix(f"{SPECULATION}.")
            launch.reject(f"--{flag.replace('_', '-')} and --speculative-config['{name}'] are mutually exclusive")
        launch[field] = launch[flag]


@step(
    "vllm-14",
    "No short flags yet",
    when="--spec-method, --spec-model or --spec-tokens",
    then="refused by the parser",
    releases="-0.21.0",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def no_short_flags(launch: Launch) -> None:
    """They came with 0.22."""
    _unrecognized(launch, tuple(_SHORT))


@step(
    "vllm-16",
    "Unknown setting",
    when="speculative_config has a key that the release does not know",
    then="refused",
    releases="-0.9.0.1",
    source=SPECULATIVE,
    stage=Stage.CONFIGURED,
)
@step(
    "vllm-16",
    "Unknown setting",
    when="speculative_config has a key that the release does not know",
    then="refused",
    releases="0.9.1-",
    source=SPECULATIVE,
    stage=Stage.CONFIGURED,
)
def unknown_setting(launch: Launch) -> None:
    """Every key must be a setting of the release."""
    prefix = f"{SPECULATION}."
    for flag in launch.requested:
        if flag.startswith(prefix) and not launch.has(flag):
            name = flag.removeprefix(prefix)
            if launch.since("0.9.1"):
                launch.reject(f"{name}\n  Unexpected keyword argument", "ValidationError")
            launch.reject(f"SpeculativeConfig.__init__() got an unexpected keyword argument '{name}'", "TypeError")


_WHOLE: Final = (
    "num_speculative_tokens",
    "draft_tensor_parallel_size",
    "tensor_parallel_size",
    "max_model_len",
    "disable_by_batch_size",
    "prompt_lookup_max",
    "prompt_lookup_min",
    "suffix_decoding_max_tree_depth",
    "suffix_decoding_max_cached_requests",
    "dspark_draft_topk",
)
_TEXT: Final = ("method", "model", "revision", "code_revision", "quantization", "rejection_sample_method")


@step(
    "vllm-113",
    "Value of the wrong kind",
    when="a setting that counts is given a word, a switch another number than 0 or 1, a name a number",
    then="refused; before 0.9.1 taken as it is, and wrong later on",
    source=SPECULATIVE,
    stage=Stage.CONFIGURED,
    sets=FIELDS,
)
def wrong_kind(launch: Launch) -> None:
    """Numbers in quotes are taken for numbers."""
    for field in FIELDS:
        if not launch.given(field) or field in launch.depends or launch[field] is None:
            continue
        name, value = field.removeprefix(f"{SPECULATION}."), launch[field]
        kind = _misfit(name, value, launch.defaults.get(field))
        if kind is not None and launch.since("0.9.1"):
            launch.reject(f"{name}\n  Input should be a valid {kind}", "ValidationError")
        if kind is not None:
            raise Unsettled(f"what {name}={value!r} does, which is no {kind}")
        if name in _WHOLE and type(value) is not int:
            launch[field] = int(value)


def _misfit(name: str, value: Value, default: Value) -> str | None:
    """What kind of value a setting takes, where the one given is another."""
    if name in _WHOLE:
        try:
            whole = isinstance(value, (int, str)) and int(value) is not None
        except ValueError:
            whole = False
        return None if whole else "integer"
    if name in _TEXT:
        return None if isinstance(value, str) else "string"
    if isinstance(default, bool):
        return None if value in (True, False) else "boolean"
    return None


@step(
    "vllm-90",
    "Speculation or none",
    when="always",
    then="the settings exist where at least one of them is given; else speculative_config is null",
    source=ARGUMENTS,
    stage=Stage.CONFIGURED,
    sets=FIELDS,
)
def configured(launch: Launch) -> None:
    """Nothing drafts unless a setting says so."""
    if SPECULATION in launch.depends:
        launch[SPECULATION]  # a variable of the shell: what it holds decides everything
    if launch.given(SPECULATION) or any(launch.given(field) for field in FIELDS) or _set_so_far(launch):
        launch.leave_out(SPECULATION)
    else:
        launch.leave_out(*FIELDS)


def _set_so_far(launch: Launch) -> bool:
    return any(change.flag in FIELDS for change in launch.changes) or any(field in launch.depends for field in FIELDS)


@step(
    "vllm-112",
    "Name served",
    when="always",
    then="served_model_name becomes the first one given, or the model's",
    source="vllm/config/model.py (vllm/config.py before 0.11)",
    stage=Stage.CONFIGURED,
    sets=("served_model_name",),
)
def name_served(launch: Launch) -> None:
    """Further names are aliases."""
    given = launch["served_model_name"]
    if isinstance(given, list) and given:
        launch["served_model_name"] = given[0]
    elif given is None and launch["model"] is not None:
        launch["served_model_name"] = launch["model"]


@step(
    "vllm-17",
    "Batch limit in vain",
    when="disable_by_batch_size, and the V1 engine runs",
    then="ignored: only the first engine reads it",
    releases="-0.16.0",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def batch_limit_in_vain(launch: Launch) -> None:
    """The V1 engine never switches drafting off by load."""
    if speculates(launch) and launch[BATCH_LIMIT] is not None and (not launch.has(V1) or launch[V1]):
        launch.ignore(BATCH_LIMIT, "only the first engine (V0) reads it; speculation stays on at any load")


@step(
    "vllm-18",
    "Acceptance settings in vain",
    when="disable_logprobs, acceptance_method, posterior_threshold, posterior_alpha or disable_mqa_scorer, and the "
    "V1 engine runs",
    then="ignored",
    releases="-0.11.0",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def acceptance_in_vain(launch: Launch) -> None:
    """They belong to the first engine's sampler."""
    if speculates(launch) and launch[V1]:
        for name in _IGNORED_BY_V1:
            launch.ignore(field_of(name), "only the first engine (V0) reads it")
