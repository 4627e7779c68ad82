"""SGLang: an id names the output of a layer, which most models shift by one.

Source: SGLang's `set_eagle3_layers_to_capture` of each model, `models/llama_eagle3.py`,
`model_executor/model_runner.py`, releases 0.4.4 to 0.5.23.
"""

from __future__ import annotations

from collections.abc import Iterator

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
)
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release, ReleaseRange

KIMI_K25_LIKE = ("KimiK25",)
DEEPSEEK_LIKE = ("DeepseekV2", "DeepseekV3", "KimiK2", *KIMI_K25_LIKE)
QWEN_MOE_LIKE = ("Qwen2Moe", "Qwen3Moe")
GLM4_MOE_LIKE = ("Glm4Moe",)
GPT_OSS_LIKE = ("GptOss",)
SAFE_UNDER_TWO_BATCH_OVERLAP = ("MiMoV2", "DeepseekV4", "Glm5Next")
"""Models that leave two-batch overlap off in passes that capture."""

FIRST_CAPTURE = (
    (KIMI_K25_LIKE, "0.5.10"),
    (DEEPSEEK_LIKE, "0.5.4"),
    (GLM4_MOE_LIKE, "0.5.5"),
    (("Qwen3Moe",), "0.4.9"),
)
"""The first release whose model code can capture; the first family that fits counts."""

READS_SINCE = {
    "bias": "0.4.9",
    "fc_norm": "0.5.12",
    "use_aux_norm": "0.5.12",
    "norm_output": "0.5.12",
    "norm_before_fc": "0.5.17",
    "norm_before_residual": None,
}
"""The first release that reads a setting of the draft's own computation."""

ONE_LAYER_BEFORE = Release.parse("0.5.12")
"""Releases before it refuse drafts with more than one layer."""


def declared_ids(draft: ModelConfig) -> list[int] | None:
    """The ids under the one key that SGLang reads for capture; ``None`` where it is absent."""
    return nested_ids(draft)


def misplaced_ids(draft: ModelConfig) -> list[int] | None:
    """Ids at the top level of the config, where SGLang does not read them for capture."""
    return top_level_ids(draft)


def is_like(target: ModelConfig | None, families: tuple[str, ...]) -> bool:
    """Whether the target is of one of these model families, by its class names."""
    return target is not None and any(name.startswith(families) for name in target.architectures)


def captures(target: ModelConfig, draft: ModelConfig, releases: ReleaseRange) -> tuple[Capture, ...]:
    """Every reading of the draft's ids that the known releases allow, oldest first."""
    layers = target.layers
    if layers is None:
        return ()
    first = next((release for families, release in FIRST_CAPTURE if is_like(target, families)), "0.4.4")
    possible = []
    for span, capture in _readings(target, declared_ids(draft), layers, first):
        both = span.intersect(releases)
        if both is not None:
            possible.append(Capture(both, capture.how, capture.enters, capture.outputs, capture.impossible))
    alone = since("0.5.9").intersect(releases) if uses_one_state(draft) else None
    if alone is None:
        return tuple(possible)
    older = before("0.5.8").intersect(releases)
    last = Capture(alone, "the last state alone, as use_aux_hidden_state is false", (layers,), (layers - 1,))
    kept = [
        Capture(within, item.how, item.enters, item.outputs, item.impossible)
        for item in possible
        if older is not None and (within := item.releases.intersect(older)) is not None
    ]
    return (*kept, last)


def _readings(
    target: ModelConfig, ids: list[int] | None, layers: int, first: str
) -> Iterator[tuple[ReleaseRange, Capture]]:
    default = default_enters(layers)
    start = Release.parse(first)
    if start > Release.parse("0.4.9"):
        span = _until(start)
        yield span, cannot(span, f"releases before {first} cannot capture for this model")
    if ids is None:
        known = since(first) if start > Release.parse("0.4.9") else ReleaseRange()
        yield known, reading(known, "the engine's default, as the draft names none", default, len(default), layers)
        return
    if start <= Release.parse("0.4.9"):
        span = before("0.4.8")
        yield span, reading(span, "the engine's default; this release does not read the ids", default, 3, layers)
        start = Release.parse("0.4.9")
    shifted = tuple(i + 1 for i in ids)
    if is_like(target, DEEPSEEK_LIKE):
        later = shifted if ids[0] == 1 else tuple(ids)
        change, last = "0.5.13", None
    elif is_like(target, GPT_OSS_LIKE):
        later = tuple(ids) if max(ids) == layers else shifted
        change, last = "0.5.23", layers
    else:
        later, change, last = shifted, "", None
    if not change:
        yield ReleaseRange(start), reading(ReleaseRange(start), "ids + 1", shifted, len(ids), layers)
        return
    until = ReleaseRange(start, _last_before(change))
    yield until, reading(until, "ids + 1", shifted, len(ids), layers)
    how = "ids + 1" if later == shifted else "ids as given"
    yield since(change), reading(since(change), how, later, len(ids), layers, last)


def _until(start: Release) -> ReleaseRange:
    return ReleaseRange(last=_last_before(str(start)))


def _last_before(release: str) -> Release:
    """The release before one of the form ``0.5.N``."""
    *outer, last = Release.parse(release).numbers
    return Release((*outer, last - 1))


def expected_states(draft: ModelConfig, releases: ReleaseRange) -> frozenset[int]:
    """Three before 0.5.12; later what the draft says, else as many as it names layers, else three."""
    return states_said_since(draft, declared_ids(draft), releases, fixed=before("0.5.11"), said=since("0.5.12"))


def ignored_keys(draft: ModelConfig, releases: ReleaseRange) -> tuple[IgnoredKey, ...]:
    """Settings of the draft's own computation that the release does not read."""
    return settings_not_read(draft, releases, READS_SINCE)


def loses_capture_under_two_batch_overlap(target: ModelConfig | None, releases: ReleaseRange) -> bool | None:
    """Whether this model's two-batch-overlap path skips the capture; ``None`` where it is not known."""
    if target is None:
        return None
    if is_like(target, SAFE_UNDER_TWO_BATCH_OVERLAP):
        return False
    for families, first in ((DEEPSEEK_LIKE, "0.5.4"), (QWEN_MOE_LIKE, "0.5.3"), (GLM4_MOE_LIKE, "0.5.5")):
        if is_like(target, families):
            return ReleaseRange(Release.parse(first)).intersect(releases) is not None
    return None
