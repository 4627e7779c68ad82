"""Options that are gone, exclude one another, or stand in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.llamacpp.engine import ARGUMENTS, N_MAX, READ, Stage, defaults, set_types, step, types_of

_INSTEAD: Final = {
    "draft_max": ("--draft-max", "--spec-draft-n-max or --spec-ngram-mod-n-max"),
    "draft_min": ("--draft-min", "--spec-draft-n-min or --spec-ngram-mod-n-min"),
    "spec_ngram_size_n": ("--spec-ngram-size-n", "the respective --spec-ngram-*-size-n or --spec-ngram-mod-n-match"),
    "spec_ngram_size_m": ("--spec-ngram-size-m", "the respective --spec-ngram-*-size-m"),
    "spec_ngram_min_hits": ("--spec-ngram-min-hits", "the respective --spec-ngram-*-min-hits"),
}
_VARIABLES: Final = {
    "LLAMA_ARG_SPEC_TYPE": "spec_type",
    "LLAMA_ARG_SPEC_DRAFT_MODEL": "spec_draft_model",
    "LLAMA_ARG_SPEC_DRAFT_HF_REPO": "spec_draft_hf",
    "LLAMA_ARG_SPEC_DRAFT_N_MAX": "spec_draft_n_max",
    "LLAMA_ARG_SPEC_DRAFT_N_MIN": "spec_draft_n_min",
    "LLAMA_ARG_SPEC_DRAFT_P_MIN": "spec_draft_p_min",
    "LLAMA_ARG_SPEC_DRAFT_P_SPLIT": "spec_draft_p_split",
    "LLAMA_ARG_SPEC_DRAFT_SAMPLING": "spec_draft_sampling",
    "LLAMA_ARG_SPEC_SYNTH_LEN": "spec_synth_len",
    "LLAMA_ARG_SPEC_SYNTH_RATES": "spec_synth_rates",
}
_NUMBERS: Final[Mapping[str, type]] = {
    "parallel": int,
    "spec_synth_len": float,
    **{
        flag: type(value)
        for release in READ
        for flag, value in defaults(release).items()
        if isinstance(value, int | float)
    },
}
_WHOLE: Final = re.compile(r"\s*[+-]?\d+")
_REAL: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TEXT: Final = ("spec_type", "spec_draft_model", "spec_draft_hf", "spec_draft_sampling", "spec_synth_rates")


@step(
    "llamacpp-31",
    "Variables stand in",
    when="a variable such as LLAMA_ARG_SPEC_TYPE or LLAMA_ARG_SPEC_DRAFT_N_MAX, and the option is not given",
    then="the option takes its value",
    releases="b9246-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
    sets=tuple(_VARIABLES.values()),
)
def variables(launch: Launch) -> None:
    """What the command does not say, the environment may."""
    for name, flag in _VARIABLES.items():
        text = launch.environment.get(name)
        if text is None or launch.given(flag) or not launch.has(flag):
            continue
        launch[flag] = text if flag in _TEXT else _read(launch, flag, text, f'environment variable "{name}"')


@step(
    "llamacpp-33",
    "Value that is no number",
    when="an option that counts or weighs is given a text",
    then="the number that the text begins with is taken; a text that begins with none is refused",
    source=ARGUMENTS,
    stage=Stage.PARSE,
    sets=tuple(_NUMBERS),
)
def texts(launch: Launch) -> None:
    """``std::stoi`` and ``std::stof`` stop at the first character that is none of a number's."""
    for flag in _NUMBERS:
        text = launch.requested.get(flag)
        if isinstance(text, str) and flag not in launch.depends:
            launch[flag] = _read(launch, flag, text, f'argument "--{flag.replace("_", "-")}"')


def _read(launch: Launch, flag: str, text: str, named: str) -> int | float:
    """The number that an option's text begins with."""
    real = _NUMBERS[flag] is float
    found = (_REAL if real else _WHOLE).match(text)
    if found is None:
        launch.reject(f"error while handling {named}: {'stof' if real else 'stoi'}", "SystemExit")
    return float(found[0]) if real else int(found[0])


_STATES: Final = frozenset({"on", "enabled", "true", "1", "off", "disabled", "false", "0", "auto", "-1"})


@step(
    "llamacpp-34",
    "Flash attention takes a value",
    when="-fa or --flash-attn without on, off or auto",
    then="the server does not start: the option takes whatever comes next for its value",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def flash_attention(launch: Launch) -> None:
    """A switch up to the middle of 2025."""
    given = launch.requested.get("flash_attn")
    if given is True or (given is not None and str(given) not in _STATES):
        taken = "" if given is True else f": '{given}'"
        launch.reject(
            f'error while handling argument "--flash-attn": error: unknown value for --flash-attn{taken}', "SystemExit"
        )


@step(
    "llamacpp-15",
    "Renamed options are refused",
    when="--draft, --draft-n, --draft-max, --draft-min, --draft-n-min, --spec-ngram-size-n, --spec-ngram-size-m or "
    "--spec-ngram-min-hits, or LLAMA_ARG_DRAFT_MAX or LLAMA_ARG_DRAFT_MIN",
    then="the server does not start",
    releases="b9093-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def renamed(launch: Launch) -> None:
    """The message names what took their place."""
    for flag, (option, instead) in _INSTEAD.items():
        variable = f"LLAMA_ARG_{flag.upper()}"
        if launch.given(flag) or variable in launch.environment:
            named = option if launch.given(flag) else variable
            launch.reject(
                f'error while handling argument "{named}": the argument has been removed. use {instead}', "SystemExit"
            )


@step(
    "llamacpp-16",
    "Options without a successor",
    when="--ctx-size-draft or --spec-draft-replace",
    then="refused: the draft's context is the target's",
    releases="b9246-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
@step(
    "llamacpp-17",
    "Option of the documentation only",
    when="--spec-draft-conf-min, which is described for DSpark",
    then="refused; --spec-draft-p-min does it",
    releases="b11434-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def unknown_options(launch: Launch) -> None:
    """The parser does not know them."""
    flags = ("ctx_size_draft", "spec_draft_replace") if launch.step.id == "llamacpp-16" else ("spec_draft_conf_min",)
    for flag in flags:
        if launch.given(flag):
            launch.reject(f"error: invalid argument: --{flag.replace('_', '-')}", "SystemExit")


@step(
    "llamacpp-30",
    "Default speculation",
    when="--spec-default",
    then="ngram-mod is added to the types, with n_match 24, n_min 48 and n_max 64",
    releases="b11434-",
    source=ARGUMENTS,
    stage=Stage.PARSE,
    sets=("spec_type", "spec_ngram_mod_n_match", "spec_ngram_mod_n_min", "spec_ngram_mod_n_max"),
)
def default_speculation(launch: Launch) -> None:
    """Nothing has to be loaded for it."""
    if not launch["spec_default"]:
        return
    launch["spec_ngram_mod_n_match"], launch["spec_ngram_mod_n_min"] = 24, 48
    launch["spec_ngram_mod_n_max"] = 64
    types = [name for name in types_of(launch) if name != "none" or launch.given("spec_type")]
    if "ngram-mod" not in types:
        set_types(launch, [*types, "ngram-mod"])


@step(
    "llamacpp-27",
    "Acceptance made up",
    when="--spec-synth-len or --spec-synth-rates",
    then="drafts are accepted by chance: output means nothing; refused where both are given, or where the rates are not "
    "as many as the draft is long",
    says="synthetic speculative acceptance is enabled for benchmarking; generated output is not valid",
    releases="b11003-",
    source="common/speculative.cpp",
    stage=Stage.SIZES,
)
def made_up(launch: Launch) -> None:
    """A way to measure the server without a good draft."""
    length, rates = launch["spec_synth_len"], launch["spec_synth_rates"]
    if length is None and rates is None:
        return
    if length is not None and rates is not None:
        launch.reject("--spec-synth-len and --spec-synth-rates are mutually exclusive", "SystemExit")
    if rates is not None and len(str(rates).split(",")) != launch[N_MAX]:
        launch.reject(f"--spec-synth-rates needs {launch[N_MAX]} rates, one for each drafted token", "SystemExit")
    launch.announce()
    flag = "spec_synth_len" if length is not None else "spec_synth_rates"
    launch.remark(flag, "drafts are accepted by chance: acceptance figures and output mean nothing")
