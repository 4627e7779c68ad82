"""What llama.cpp's server tells of itself: build, model, and whether it drafts.

``/slots`` alone tells whether a server drafts: ``/props`` says ``none`` whatever it does, and the
types in both are those that were asked for.

Source: llama.cpp, ``tools/server/server-context.cpp``, builds b7551 to b11549.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from collector.domain.arguments import Argument, Arguments, Value
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text
from collector.domain.versions import Release
from collector.metrics.base import Document, EngineInfo

PROPERTIES: Final = "/props"
SLOTS: Final = "/slots"
UNKNOWN_DRAFT: Final = "draft"
"""The type of a server that drafts and does not say of which kind."""

_PROPERTIES: Final = {
    "model_path": "model",
    "model_alias": "alias",
    "total_slots": "parallel",
}
_TYPES: Final = ("speculative.types", "speculative.type")  # later builds, earlier builds
_SETTINGS: Final = {  # as each request has them; in builds that say so
    "speculative.n_max": "spec_draft_n_max",
    "speculative.n_min": "spec_draft_n_min",
    "speculative.p_min": "spec_draft_p_min",
}


def read_documents(documents: Sequence[Document]) -> EngineInfo:
    """Build and effective arguments, as far as the server tells."""
    version: Release | None = None
    found: dict[str, Argument] = {}
    for document in documents:
        if document.path == PROPERTIES:
            version = _build(document.content.get("build_info"))
            values = {name: document.content[key] for key, name in _PROPERTIES.items() if document.content.get(key)}
        else:
            values = dict(_drafting(document.content))
        for name, value in values.items():
            shown = redact_text(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
            found[name] = Argument(name, effective=value, effective_evidence=Evidence(document.url, None, shown))
    return EngineInfo(engine_version=version, arguments=Arguments(found))


def depth_option(spec_type: Any) -> str | None:
    """The option that sets how many tokens a draft of this type has; ``None`` where several types draft, or none."""
    if spec_type is None or spec_type == "none" or "," in str(spec_type):
        return None
    kind = str(spec_type)
    return "spec_draft_n_max" if kind.startswith("draft") else f"spec_{kind.replace('-', '_')}_n_max"


def _drafting(slots: Any) -> Iterator[tuple[str, Value]]:
    """Whether the slots draft, and how: settings are told by a slot that has served a request."""
    known = [slot for slot in slots if isinstance(slot, dict)] if isinstance(slots, list) else []
    if not known or not isinstance(known[0].get("speculative"), bool):
        return
    if not any(slot["speculative"] for slot in known if "speculative" in slot):
        yield "spec_type", "none"
        return
    settings: Mapping[str, Any] = next((slot["params"] for slot in known if isinstance(slot.get("params"), dict)), {})
    stated = next((str(settings[key]) for key in _TYPES if key in settings), "")
    types = [kind for kind in stated.replace("_", "-").split(",") if kind not in ("", "none")]
    yield "spec_type", ",".join("draft-simple" if kind == "draft" else kind for kind in types) or UNKNOWN_DRAFT
    for key, name in _SETTINGS.items():
        if isinstance(settings.get(key), (int, float)):
            yield name, settings[key]


def _build(text: Any) -> Release | None:
    """The build of ``b11434-unknown``; ``b0`` stands for one that nobody numbered."""
    try:
        release = Release.parse(str(text).partition("-")[0])
    except ValueError:
        return None
    return release if release.build and any(release.numbers) else None
