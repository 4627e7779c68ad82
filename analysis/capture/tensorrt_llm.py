"""TensorRT-LLM: the layers are an option of the server, `eagle3_layers_to_capture`, and name outputs.

Source: TensorRT-LLM 1.3.0rc27 to 1.4.0rc4: unset, they are `{1, n//2-1, n-4}`, and `{-1}` for `mistral_large3`.
"""

from __future__ import annotations

from analysis.capture.base import Capture, IgnoredKey, default_enters, nested_ids, reading, top_level_ids
from collector.domain.drafts import ModelConfig
from collector.domain.versions import ReleaseRange


def declared_ids(draft: ModelConfig) -> list[int] | None:
    """The draft's config is not asked."""
    del draft
    return None


def misplaced_ids(draft: ModelConfig) -> list[int] | None:
    """Ids in the draft's config, which is not asked."""
    nested = nested_ids(draft)
    return nested if nested is not None else top_level_ids(draft)


def captures(target: ModelConfig, draft: ModelConfig, releases: ReleaseRange) -> tuple[Capture, ...]:
    """The default; an option of the server may say otherwise."""
    del draft
    layers = target.layers
    if layers is None:
        return ()
    how = "the engine's default, unless eagle3_layers_to_capture is set"
    if "mistral_large3" in (target.raw.get("model_type"), target.text.get("model_type")):
        return (reading(releases, how, (0,), 1, layers, layers),)
    default = default_enters(layers)
    return (reading(releases, how, default, 3, layers, layers),)


def expected_states(draft: ModelConfig, releases: ReleaseRange) -> frozenset[int]:
    """As many as the option names, which is not known here."""
    del draft, releases
    return frozenset()


def ignored_keys(draft: ModelConfig, releases: ReleaseRange) -> tuple[IgnoredKey, ...]:
    """Which settings are read is not known."""
    del draft, releases
    return ()
