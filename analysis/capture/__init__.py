"""Which layers of the target feed an EAGLE-3-like draft, and which of its settings an engine reads.

One module an engine, found by its name.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from analysis.capture.base import Capture, IgnoredKey, default_enters, trained_outputs
from collector.domain.drafts import ModelConfig
from collector.domain.versions import ReleaseRange

__all__ = [
    "Capture",
    "IgnoredKey",
    "captures",
    "declared_ids",
    "default_enters",
    "expected_states",
    "ignored_keys",
    "misplaced_ids",
    "trained_outputs",
]


def _module(engine: str) -> ModuleType | None:
    name = engine.replace("-", "_")
    known = name != "base" and any(module.name == name for module in pkgutil.iter_modules(__path__))
    return importlib.import_module(f"{__name__}.{name}") if known else None


def declared_ids(engine: str, draft: ModelConfig) -> list[int] | None:
    """The ids under the keys that this engine reads; ``None`` where there are none."""
    module = _module(engine)
    ids: list[int] | None = module.declared_ids(draft) if module else None
    return ids


def misplaced_ids(engine: str, draft: ModelConfig) -> list[int] | None:
    """Ids in a place that this engine does not read for capture."""
    module = _module(engine)
    ids: list[int] | None = module.misplaced_ids(draft) if module else None
    return ids


def captures(engine: str, target: ModelConfig, draft: ModelConfig, releases: ReleaseRange) -> tuple[Capture, ...]:
    """Every reading of the draft's ids that the known releases allow, oldest first; none for an engine not known."""
    module = _module(engine)
    found: tuple[Capture, ...] = module.captures(target, draft, releases) if module else ()
    return found


def expected_states(engine: str, draft: ModelConfig, releases: ReleaseRange) -> frozenset[int]:
    """How many states the draft's projection is built for on the releases it may be; empty for an engine not known."""
    module = _module(engine)
    found: frozenset[int] = module.expected_states(draft, releases) if module else frozenset()
    return found


def ignored_keys(engine: str, draft: ModelConfig, releases: ReleaseRange) -> tuple[IgnoredKey, ...]:
    """Settings of the draft that change its computation and that some of the releases it may be do not read."""
    module = _module(engine)
    found: tuple[IgnoredKey, ...] = module.ignored_keys(draft, releases) if module else ()
    return found
