"""vLLM: an id is the index of the layer that the state enters; 0 is the embedding, n the last layer's output.

Source: vLLM's `get_eagle3_aux_hidden_state_layers` and successors, releases 0.8.5 to 0.32.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.capture.base import Capture, default_enters, reading, whole_numbers
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release, ReleaseRange

READS_IDS = Release.parse("0.11.1")
"""Releases before ignore the ids and always take the default, silently."""


def declared_ids(draft: ModelConfig) -> list[int] | None:
    """The ids in the order of the keys that vLLM reads; ``None`` where none is there."""
    nested = draft.raw.get("eagle_config")
    if (
        isinstance(nested, Mapping)
        and (ids := whole_numbers(nested.get("eagle_aux_hidden_state_layer_ids"))) is not None
    ):
        return ids
    if (ids := whole_numbers(draft.raw.get("eagle_aux_hidden_state_layer_ids"))) is not None:
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
    if ids is None:
        return (
            reading(releases, "the engine's default, as the draft names none", default, len(default), layers, layers),
        )
    found = []
    before = ReleaseRange(last=Release.parse("0.11.0")).intersect(releases)
    if before is not None:
        found.append(
            reading(before, "the engine's default; this release does not read the ids", default, 3, layers, layers)
        )
    since = ReleaseRange(READS_IDS).intersect(releases)
    if since is not None:
        # Captured in the order of layers whatever the list's order, and each once.
        enters = tuple(sorted(set(ids)))
        found.append(reading(since, "ids as given", enters, len(ids), layers, layers))
    return tuple(found)
