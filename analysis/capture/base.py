"""What a reading of a draft's layer ids is, whatever the engine.

A layer is named by its output: ``-1`` is the embedding, ``i`` the output of layer i. Engines work
with the index of the layer that a state *enters*, which is one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collector.domain.drafts import ModelConfig
from collector.domain.layouts import Layout, layout_of
from collector.domain.versions import Release, ReleaseRange

IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True, slots=True)
class Capture:
    """One way in which a release reads the draft's layer ids.

    ``outputs`` are the layers whose output is captured, as far as the release can; ``enters`` the
    engine's own indices. ``impossible`` says why a server cannot run this way, "" if it can.
    """

    releases: ReleaseRange
    how: str
    enters: tuple[int, ...]
    outputs: tuple[int, ...]
    impossible: str = ""


@dataclass(frozen=True, slots=True)
class IgnoredKey:
    """A setting of the draft that releases before ``since`` do not read; ``None``: no release does."""

    key: str
    value: Any
    since: Release | None


def default_enters(layers: int) -> tuple[int, ...]:
    """The indices engines take where the draft names none: ``[2, n//2, n-3]``."""
    return 2, layers // 2, layers - 3


def nested_ids(draft: ModelConfig) -> list[int] | None:
    """The ids inside ``eagle_config``."""
    nested = draft.raw.get("eagle_config")
    return whole_numbers(nested.get(IDS)) if isinstance(nested, Mapping) else None


def top_level_ids(draft: ModelConfig) -> list[int] | None:
    """The ids at the top level of the config."""
    return whole_numbers(draft.raw.get(IDS))


def uses_one_state(draft: ModelConfig) -> bool:
    """Whether the draft says that it is fed the last hidden state alone."""
    nested = draft.raw.get("eagle_config")
    return isinstance(nested, Mapping) and nested.get("use_aux_hidden_state") is False


def trained_outputs(draft: ModelConfig, layers: int | None) -> tuple[tuple[int, ...], str] | None:
    """The outputs that the draft was trained on by the convention of the tool that wrote its config, and that tool.

    SpecForge and Model Optimizer name the layer whose output is meant, speculators the layer that it
    enters; without ids all of them trained on the outputs of layers 1, n//2 - 1 and n - 4. ``None`` where
    the tool is not known.

    Source: SpecForge, Model Optimizer and speculators main of 2026-08.
    """
    layout = layout_of(draft)
    if layout is Layout.SPECULATORS:
        ids = top_level_ids(draft)
        shift = 1
    elif layout in (Layout.SPECFORGE, Layout.MODEL_OPTIMIZER):
        ids = nested_ids(draft)
        shift = 0
    else:
        return None
    if ids is None:
        return None if layers is None else (tuple(i - 1 for i in default_enters(layers)), str(layout))
    return tuple(i - shift for i in ids), str(layout)


def whole_numbers(value: Any) -> list[int] | None:
    """A list of whole numbers, ``None`` for anything else."""
    whole = isinstance(value, list) and value and all(isinstance(i, int) and not isinstance(i, bool) for i in value)
    return list(value) if whole else None


def states_said_since(
    draft: ModelConfig, ids: list[int] | None, releases: ReleaseRange, *, fixed: ReleaseRange, said: ReleaseRange
) -> frozenset[int]:
    """How many states are expected: three in ``fixed`` releases; in those of ``said`` what the draft says, or its ids."""
    found = set()
    if fixed.intersect(releases) is not None:
        found.add(3)
    if said.intersect(releases) is not None:
        found.add(_positive(draft.raw.get("num_aux_hidden_states")) or (len(ids) if ids else 3))
    return frozenset(found)


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def settings_not_read(
    draft: ModelConfig, releases: ReleaseRange, since: Mapping[str, str | None]
) -> tuple[IgnoredKey, ...]:
    """Settings of the draft that are on, and that some of the releases do not read yet."""
    found = []
    nested = draft.raw.get("eagle_config")
    places = [draft.raw, nested] if isinstance(nested, Mapping) else [draft.raw]
    for key, first in since.items():
        value = next((place[key] for place in places if place.get(key)), None)
        reads = None if first is None else Release.parse(first)
        if value is not None and (reads is None or releases.first is None or releases.first < reads):
            found.append(IgnoredKey(key, value, reads))
    return tuple(found)


def reading(
    releases: ReleaseRange, how: str, enters: tuple[int, ...], wanted: int, layers: int, last: int | None = None
) -> Capture:
    """A reading, and whether it can run: ``last`` is the highest index the engine can capture (default: layers - 1)."""
    reachable = tuple(index for index in enters if 0 <= index <= (layers - 1 if last is None else last))
    lost = wanted - len(set(reachable))
    impossible = (
        f"{len(set(reachable))} of {wanted} states would be captured, so the server would not start" if lost else ""
    )
    return Capture(releases, how, enters, tuple(index - 1 for index in reachable), impossible)


def cannot(releases: ReleaseRange, why: str) -> Capture:
    """A reading of releases that cannot feed such a draft at all."""
    return Capture(releases, why, (), (), f"{why}, so an EAGLE-3 server does not start")


def before(release: str) -> ReleaseRange:
    """All releases up to and with this one."""
    return ReleaseRange(last=Release.parse(release))


def since(release: str) -> ReleaseRange:
    """This release and all later ones."""
    return ReleaseRange(Release.parse(release))
