"""A head in the speculators format, named where the target belongs: the engine looks up the target in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.vllm.engine import (
    DRAFT,
    FIELDS,
    METHOD,
    PARALLEL_DRAFTING,
    SPECULATION,
    TOKENS,
    Stage,
    step,
)

_LOOKUP: Final = "vllm/transformers_utils/config.py"
_FORMAT: Final = "vllm/transformers_utils/configs/speculators/base.py"
_CLOUD: Final = ("s3://", "gs://", "az://")
_SETS: Final = (SPECULATION, "model", "tokenizer", *FIELDS)


def _head(launch: Launch) -> Mapping[str, Any] | None:
    """The config of a head named as the target, ``None`` where the target is a model of its own, or not known."""
    if not launch.has_target or "speculators_config" not in launch.target.raw:
        return None
    return launch.target.raw


@step(
    "vllm-13",
    "Heads in cloud storage are not looked into",
    when="model is an address of S3, GCS or Azure",
    then="a head in the speculators format is served as a plain model, without speculation",
    releases="0.11.1-",
    source="vllm/engine/arg_utils.py",
    stage=Stage.HEAD,
)
def cloud_heads(launch: Launch) -> None:
    """Only a config that can be read says that it is a head."""
    if _in_cloud(launch) and _head(launch) is not None:
        launch.remark("model", "the head's config is not looked into in cloud storage: it is served as a plain model")


def _in_cloud(launch: Launch) -> bool:
    return launch.since("0.11.1") and str(launch["model"]).startswith(_CLOUD)


@step(
    "vllm-11",
    "Target and method from the head",
    when="model is a head in the speculators format",
    then="model and tokenizer become its verifier's, also where a tokenizer was given; without a speculative_config "
    "method, model and number of tokens come from the file",
    releases="0.10.1-0.10.1.1",
    source=_LOOKUP,
    stage=Stage.HEAD,
    sets=_SETS,
)
@step(
    "vllm-11",
    "Target from the head, without speculation",
    when="model is a head in the speculators format",
    then="model and tokenizer become its verifier's, and speculation stays off unless speculative_config is given",
    releases="0.10.2",
    source=_LOOKUP,
    stage=Stage.HEAD,
    sets=_SETS,
)
@step(
    "vllm-11",
    "Target and method from the head",
    when="model is a head in the speculators format",
    then="model and tokenizer become its verifier's, and the file takes the place of the whole speculative_config",
    releases="0.11.0-0.28.0",
    source=_LOOKUP,
    stage=Stage.HEAD,
    sets=_SETS,
)
@step(
    "vllm-11",
    "Target and method from the head",
    when="model is a head in the speculators format",
    then="model and tokenizer become its verifier's; method and model come from the file, other settings only where "
    "speculative_config does not give them",
    releases="0.29.0-",
    source=_LOOKUP,
    stage=Stage.HEAD,
    sets=_SETS,
)
def target_from_head(launch: Launch) -> None:
    """The head names the target it was trained for."""
    config = _head(launch)
    if config is None or _in_cloud(launch):
        return
    head = launch["model"]
    proposed = _proposed(launch, config)
    own = {field: launch.requested[field] for field in FIELDS if launch.given(field)}
    launch["model"] = launch["tokenizer"] = config["speculators_config"]["verifier"]["name_or_path"]
    launch.target_is_a_draft()
    if not launch.since("0.11.0") and (own or launch.since("0.10.2")):
        return
    if launch.since("0.11.0") and not launch.since("0.29.0"):
        for field, value in own.items():
            launch[field] = launch.defaults.get(field)
            launch.ignore(field, f"the head's own config takes the place of speculative_config (here {value!r})")
        own = {}
    launch[METHOD] = proposed[METHOD]
    launch[DRAFT] = head
    for field, value in proposed.items():
        if field not in own and launch.has(field):
            launch[field] = value


def _proposed(launch: Launch, config: Mapping[str, Any]) -> dict[str, Any]:
    speculators = config["speculators_config"]
    try:
        tokens = speculators["proposal_methods"][0]["speculative_tokens"]
        speculators["verifier"]["name_or_path"]
        kind = config["speculators_model_type"]
    except (KeyError, IndexError, TypeError):
        launch.reject("Invalid speculators config structure")
    if "transformer_layer_config" not in config:
        launch.reject("Must provide transformer_layer_config")
    return {METHOD: kind, TOKENS: tokens}


@step(
    "vllm-12",
    "Formats of one method",
    when="the head's speculators_model_type is peagle (from 0.22) or dflash2 (from 0.29)",
    then="peagle drafts as eagle3 with parallel_drafting, dflash2 as dflash",
    releases="0.22-",
    source=_FORMAT,
    stage=Stage.HEAD,
    sets=(METHOD, PARALLEL_DRAFTING),
)
def formats_of_a_method(launch: Launch) -> None:
    """A head's format is not always the name of its method."""
    if launch["model"] is None or launch.values[METHOD] not in ("peagle", "dflash2"):
        return
    if launch.given(METHOD) and launch.requested[METHOD] == launch.values[METHOD]:
        return  # asked for by hand it is no method at all
    if launch[METHOD] == "peagle":
        launch[METHOD] = "eagle3"
        launch[PARALLEL_DRAFTING] = True
    elif launch.since("0.29.0"):
        launch[METHOD] = "dflash"
    else:
        raise Unsettled("whether the release reads heads of the format dflash2")
