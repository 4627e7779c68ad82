"""llama.cpp: ids are indices of the layers that the states enter, fixed when the draft is converted.

Source: llama.cpp b11434, `conversion/llama.py`: ids at the top level alone are looked at, those inside
`eagle_config` are replaced by the default without a word; `src/models/eagle3.cpp` takes three.
"""

from __future__ import annotations

from analysis.capture.base import (
    Capture,
    IgnoredKey,
    default_enters,
    nested_ids,
    reading,
    top_level_ids,
    whole_numbers,
)
from collector.domain.drafts import ModelConfig
from collector.domain.versions import ReleaseRange


def declared_ids(draft: ModelConfig) -> list[int] | None:
    """The ids in a GGUF header, or those that the converter would take from a config."""
    converted = whole_numbers(draft.raw.get("extract_layers"))
    return converted if converted is not None else top_level_ids(draft)


def misplaced_ids(draft: ModelConfig) -> list[int] | None:
    """Ids inside ``eagle_config``, which the converter does not look at."""
    return nested_ids(draft)


def captures(target: ModelConfig, draft: ModelConfig, releases: ReleaseRange) -> tuple[Capture, ...]:
    """The one reading that is known."""
    layers = target.layers
    if layers is None:
        return ()
    ids = declared_ids(draft)
    if ids is None:
        default = default_enters(layers)
        return (reading(releases, "the converter's default, as the draft names none", default, 3, layers, layers),)
    return (reading(releases, "ids as given", tuple(ids), len(ids), layers, layers),)


def expected_states(draft: ModelConfig, releases: ReleaseRange) -> frozenset[int]:
    """Three."""
    del draft, releases
    return frozenset({3})


def ignored_keys(draft: ModelConfig, releases: ReleaseRange) -> tuple[IgnoredKey, ...]:
    """Which settings the converter drops is not known."""
    del draft, releases
    return ()
