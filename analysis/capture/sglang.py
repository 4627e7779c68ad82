"""SGLang: an id names the output of a layer, which most models shift by one.

Source: SGLang's `set_eagle3_layers_to_capture` of each model, releases 0.4.4 to 0.5.23.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.capture.base import Capture, default_enters, reading, whole_numbers
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release, ReleaseRange

DEEPSEEK_LIKE = ("DeepseekV2", "DeepseekV3", "KimiK2", "KimiK25")
QWEN_MOE_LIKE = ("Qwen2Moe", "Qwen3Moe")
GLM4_MOE_LIKE = ("Glm4Moe",)


def declared_ids(draft: ModelConfig) -> list[int] | None:
    """The ids under the one key that SGLang reads for capture; ``None`` where it is absent."""
    nested = draft.raw.get("eagle_config")
    return whole_numbers(nested.get("eagle_aux_hidden_state_layer_ids")) if isinstance(nested, Mapping) else None


def misplaced_ids(draft: ModelConfig) -> list[int] | None:
    """Ids at the top level of the config, where SGLang does not read them for capture."""
    return whole_numbers(draft.raw.get("eagle_aux_hidden_state_layer_ids"))


def is_like(target: ModelConfig | None, families: tuple[str, ...]) -> bool:
    """Whether the target is of one of these model families, by its class names."""
    return target is not None and any(name.startswith(families) for name in target.architectures)


def captures(target: ModelConfig, draft: ModelConfig, releases: ReleaseRange) -> tuple[Capture, ...]:
    """Every reading of the draft's ids that the known releases allow, oldest first."""
    layers = target.layers
    if layers is None:
        return ()
    ids = declared_ids(draft)
    if ids is None:
        enters = default_enters(layers)
        return (reading(releases, "the engine's default, as the draft names none", enters, len(enters), layers),)
    shifted = tuple(i + 1 for i in ids)
    if not is_like(target, DEEPSEEK_LIKE):
        return (reading(releases, "ids + 1", shifted, len(ids), layers),)
    readings = [(ReleaseRange(last=Release.parse("0.5.12")), "ids + 1", shifted)]
    later = shifted if ids and ids[0] == 1 else tuple(ids)
    readings.append((ReleaseRange(Release.parse("0.5.13")), "ids + 1" if later == shifted else "ids as given", later))
    possible = []
    for span, how, enters in readings:
        both = span.intersect(releases)
        if both is not None:
            possible.append(reading(both, how, enters, len(ids), layers))
    return tuple(possible)


def loses_capture_under_two_batch_overlap(target: ModelConfig | None, releases: ReleaseRange) -> bool | None:
    """Whether this model's two-batch-overlap path skips the capture; ``None`` where it is not known."""
    if target is None:
        return None
    for families, first in ((DEEPSEEK_LIKE, "0.5.4"), (QWEN_MOE_LIKE, "0.5.3"), (GLM4_MOE_LIKE, "0.5.5")):
        if is_like(target, families):
            return ReleaseRange(Release.parse(first)).intersect(releases) is not None
    return None
