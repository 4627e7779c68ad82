"""The engine: builds read, stations of a start, options with their defaults, what steps ask often."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto
from functools import cache
from typing import Final

from analysis.resolve.base import Engine, Launch
from collector.domain.arguments import Value
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release

_READ: Final = """
b7551 b8672 b9093 b9246 b9326 b9442 b9601 b9702 b9851 b10001 b10204 b10331 b10502 b11003 b11434 b11549
"""
READ: Final = tuple(Release.parse(text) for text in _READ.split())
"""The builds that were read or run."""

ARGUMENTS: Final = "common/arg.cpp"
SPECULATIVE: Final = "common/speculative.cpp"
SERVER: Final = "tools/server/server-context.cpp"


class Stage(IntEnum):
    """The stations of a start."""

    PARSE = auto()
    TYPES = auto()
    DRAFT = auto()
    SIZES = auto()
    SERVE = auto()
    REQUEST = auto()


TYPE: Final = "spec_type"
DRAFT: Final = "spec_draft_model"
DRAFT_REPOSITORY: Final = "spec_draft_hf"
N_MAX: Final = "spec_draft_n_max"
N_MIN: Final = "spec_draft_n_min"
P_MIN: Final = "spec_draft_p_min"
NONE: Final = "none"

_HISTORIES: Final[Mapping[str, tuple[tuple[str, Value] | tuple[str], ...]]] = {
    "spec_type": (("b7551", NONE),),
    "draft_max": (("b7551", 16), ("b9093",)),
    "draft_min": (("b7551", 0), ("b9093",)),
    "spec_draft_model": (("b7551", None),),
    "spec_draft_hf": (("b7551", None),),
    "spec_draft_n_max": (("b9093", 16), ("b9246", 3)),
    "spec_draft_n_min": (("b9093", 0),),
    "spec_draft_p_min": (("b7551", 0.75), ("b9246", 0.0)),
    "spec_draft_p_split": (("b7551", 0.1),),
    "spec_draft_sampling": (("b11434", "greedy"),),
    "spec_ngram_simple_size_n": (("b9246", 12),),
    "spec_ngram_simple_size_m": (("b9246", 48),),
    "spec_ngram_simple_min_hits": (("b9246", 1),),
    "spec_ngram_map_k_size_n": (("b9246", 12),),
    "spec_ngram_map_k_size_m": (("b9246", 48),),
    "spec_ngram_map_k_min_hits": (("b9246", 1),),
    "spec_ngram_map_k4v_size_n": (("b9246", 12),),
    "spec_ngram_map_k4v_size_m": (("b9246", 48),),
    "spec_ngram_map_k4v_min_hits": (("b9246", 1),),
    "spec_ngram_mod_n_match": (("b9246", 24),),
    "spec_ngram_mod_n_min": (("b9246", 48),),
    "spec_ngram_mod_n_max": (("b9246", 64),),
    "spec_synth_len": (("b11003", None),),
    "spec_synth_rates": (("b11003", None),),
}
"""Options with the builds from which a default holds; an entry without a default says from when it is gone."""


@cache
def defaults(release: Release) -> Mapping[str, Value]:
    """The options of a build that steps decide or ask, with their defaults."""
    asked = max(release, READ[0])
    found: dict[str, Value] = {}
    for flag, history in _HISTORIES.items():
        current = [entry for entry in history if Release.parse(entry[0]) <= asked]
        if current and len(current[-1]) == 2:
            found[flag] = current[-1][1]
    return found


ENGINE: Final = Engine("llamacpp", "llama.cpp", releases=READ, defaults=defaults, sampled=True)
step = ENGINE.step

ORDER: Final = (
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "draft-dflash",
    "draft-dspark",
)
"""Types in the order in which a step asks them for a draft."""

WIRED: Final = ("draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark")
"""Types whose draft reads the target's hidden states."""


def types_of(launch: Launch) -> list[str]:
    """The types that are asked for, in the order of the command."""
    return [name for name in str(launch[TYPE] or NONE).replace(" ", "").split(",") if name]


def set_types(launch: Launch, types: list[str]) -> None:
    """Say which types run."""
    launch[TYPE] = ",".join(types) or NONE


def drafts_with(launch: Launch, *types: str) -> bool:
    """Whether one of these types runs."""
    return any(name in types for name in types_of(launch))


def names_draft(launch: Launch) -> bool:
    """Whether a draft is named."""
    return launch[DRAFT] is not None or launch[DRAFT_REPOSITORY] is not None


def kind_of(config: ModelConfig) -> str:
    """What a draft file is: ``dflash``, ``eagle3``, ``mtp``, or ``plain``; from GGUF metadata or ``config.json``."""
    named = str(config.raw.get("general.architecture") or config.raw.get("model_type") or "").lower()
    words = " ".join((named, *config.architectures)).lower()
    for kind in ("dspark", "dflash", "eagle3"):
        if kind in words:
            return kind
    return "mtp" if has_heads(config) else "plain"


def has_heads(config: ModelConfig) -> bool:
    """Whether a model has layers that predict further tokens."""
    keys = ("nextn_predict_layers", "num_nextn_predict_layers", "mtp_num_hidden_layers")
    found = [value for key, value in {**config.raw, **config.text}.items() if key.rpartition(".")[2] in keys]
    return any(isinstance(value, int) and value > 0 for value in found)


def trained_block(config: ModelConfig) -> int | None:
    """The block that a DFlash or DSpark draft was trained for, ``None`` where it does not say."""
    nested = config.raw.get("dflash_config")
    parts = (nested if isinstance(nested, Mapping) else {}, config.raw)
    sizes = [value for part in parts for key, value in part.items() if key.rpartition(".")[2] == "block_size"]
    return sizes[0] if sizes and isinstance(sizes[0], int) else None
