"""vLLM: an id is the index of the layer that the state enters; 0 is the embedding, n the last layer's output.

Source: vLLM's `get_eagle3_aux_hidden_state_layers` and successors, `SpeculativeConfig._verify_args`,
releases 0.8.5 to 0.32.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.capture.base import (
    Capture,
    IgnoredKey,
    before,
    cannot,
    default_enters,
    nested_ids,
    reading,
    settings_not_read,
    since,
    states_said_since,
    top_level_ids,
    uses_one_state,
    whole_numbers,
)
from collector.domain.drafts import ModelConfig
from collector.domain.versions import ReleaseRange

READS_SINCE: Mapping[str, str | None] = {"norm_before_fc": "0.18.0", "fc_norm": "0.22.0", "norm_output": "0.22.0"}
"""The first release that reads a setting of the draft's own computation."""

TARGETS = (
    ("0.8.5", "0.10.0", ("llama",)),
    ("0.10.1", "0.10.2", ("llama", "qwen")),
    ("0.11.0", "0.16", ("llama", "qwen", "minicpm", "gpt_oss")),
    ("0.17.0", "0.20", ("llama", "qwen", "minicpm", "gpt_oss", "hunyuan_vl", "hunyuan_v1_dense", "afmoe", "nemotron_h")),
    (
        "0.21.0",
        "0.21",
        (
            "llama", "qwen", "minicpm", "gpt_oss", "hunyuan_vl", "hunyuan_v1_dense", "afmoe", "nemotron_h", "deepseek_v2",
            "deepseek_v3", "kimi_k2", "kimi_k25", "minimax_m2", "gemma4", "laguna",
        ),
    ),
)  # fmt: skip
"""First and last release, and the parts of model types whose targets it takes; later ones have no list."""


def declared_ids(draft: ModelConfig) -> list[int] | None:
    """The ids in the order of the keys that vLLM reads; ``None`` where none is there."""
    if (ids := nested_ids(draft)) is not None:
        return ids
    if (ids := top_level_ids(draft)) is not None:
        return ids
    dflash = draft.raw.get("dflash_config")
    ids = whole_numbers(dflash.get("target_layer_ids")) if isinstance(dflash, Mapping) else None
    return None if ids is None else [i + 1 for i in ids]


def misplaced_ids(draft: ModelConfig) -> list[int] | None:
    """No place is known where a draft may keep ids that vLLM overlooks."""
    del draft
    return None


def captures(target: ModelConfig, draft: ModelConfig, releases: ReleaseRange) -> tuple[Capture, ...]:
    """Every reading of the draft's ids that the known releases allow, oldest first."""
    layers = target.layers
    if layers is None:
        return ()
    ids = declared_ids(draft)
    default = default_enters(layers)
    found: list[Capture] = []
    if ids is None:
        how = "the engine's default, as the draft names none"
        found.append(reading(releases, how, default, len(default), layers, layers))
    else:
        how = "the engine's default; this release does not read the ids"
        if (span := before("0.11.0").intersect(releases)) is not None:
            found.append(reading(span, how, default, 3, layers, layers))
        # Captured in the order of layers whatever the list's order, and each once.
        if (span := since("0.11.1").intersect(releases)) is not None:
            enters = tuple(sorted(set(ids)))
            found.append(reading(span, "ids as given", enters, len(ids), layers, layers))
    if uses_one_state(draft) and (span := since("0.12.0").intersect(releases)) is not None:
        alone = Capture(span, "the last state alone, as use_aux_hidden_state is false", (layers,), (layers - 1,))
        found = [*_within(found, before("0.11.2")), alone]
    return (*_refused(target, releases), *found)


def _within(readings: list[Capture], span: ReleaseRange) -> list[Capture]:
    kept = []
    for item in readings:
        both = item.releases.intersect(span)
        if both is not None:
            kept.append(Capture(both, item.how, item.enters, item.outputs, item.impossible))
    return kept


def _refused(target: ModelConfig, releases: ReleaseRange) -> list[Capture]:
    """Releases that refuse the target, where all of the releases it may be do."""
    kind = str(target.raw.get("model_type") or target.text.get("model_type") or "")
    if not kind or releases.first is None:
        return []
    for first, last, parts in TARGETS:
        span = ReleaseRange.parse(f"{first}-{last}.99")
        if releases.first in span and releases.last is not None and releases.last in span:
            listed = any(part in kind for part in parts)
            why = f"this release takes EAGLE-3 drafts for {', '.join(parts)} targets only, this one is {kind}"
            return [] if listed else [cannot(releases, why)]
    return []


def expected_states(draft: ModelConfig, releases: ReleaseRange) -> frozenset[int]:
    """Three before 0.22; later what the draft says, else as many as ``eagle_config`` names, else three."""
    return states_said_since(draft, nested_ids(draft), releases, fixed=before("0.21.99"), said=since("0.22.0"))


def ignored_keys(draft: ModelConfig, releases: ReleaseRange) -> tuple[IgnoredKey, ...]:
    """Settings of the draft's own computation that the release does not read."""
    return settings_not_read(draft, releases, READS_SINCE)
