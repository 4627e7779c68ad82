"""What an engine makes of its flags: asked -> runs, by release.

An engine is a module or package here that holds an :class:`Engine` named ``ENGINE``; it is
found by its name. Everything is a pure function of plain values.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from analysis.resolve.base import (
    Change,
    Engine,
    Ignored,
    Launch,
    Rejection,
    Remark,
    Resolution,
    Step,
)
from analysis.resolve.devices import find_gpu
from collector.domain.arguments import Value
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release, ReleaseRange

__all__ = [
    "Change",
    "Ignored",
    "Rejection",
    "Remark",
    "Resolution",
    "Step",
    "engine_names",
    "find_engine",
    "known_releases",
    "resolve",
    "resolve_range",
]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ABSENT: Final = "no such flag"
_PARTS: Final = frozenset({"base", "devices", "table"})


def _module_name(engine: str) -> str:
    return engine.lower().replace("-", "_").replace(".", "")


@cache
def engine_names() -> tuple[str, ...]:
    """The engines whose treatment of flags is known."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    engines = (find_engine(name) for name in modules if name not in _PARTS)
    return tuple(sorted(engine.name for engine in engines if engine is not None))


@cache
def find_engine(name: str) -> Engine | None:
    """The engine of this name (``tensorrt-llm``, ``llama.cpp`` and ``llamacpp`` are all understood), if known."""
    wanted = _module_name(name)
    if wanted in _PARTS or wanted not in {module.name for module in pkgutil.iter_modules(__path__)}:
        return None
    engine = importlib.import_module(f"{__name__}.{wanted}").ENGINE
    assert isinstance(engine, Engine)
    return engine


def known_releases(engine: str) -> tuple[Release, ...]:
    """The releases of an engine whose source was read, oldest first; none for an engine not known."""
    known = find_engine(engine)
    return known.releases if known is not None else ()


def resolve(
    engine: str,
    requested: Mapping[str, Value],
    *,
    release: Release,
    environment: Mapping[str, str] = _NOTHING,
    draft: ModelConfig | None = None,
    target: ModelConfig | None = None,
    device: str | None = None,
) -> Resolution:
    """What one release makes of the requested flags (the engine's own field names, given ones only).

    ``device`` is a GPU by its common name (``h100``), or ``cpu``. A flag whose value is ``None``
    counts as not given. What is not given and is needed ends in ``Resolution.depends``.
    """
    known = find_engine(engine)
    if known is None:
        return Resolution(engine, release, reason=f"what {engine} makes of its flags is not known")
    asked = known.spelled({flag: value for flag, value in requested.items() if value is not None})
    each = [
        known.resolve(
            Launch(
                known.name,
                one,
                asked,
                known.defaults(one),
                environment=environment,
                draft=draft,
                target=target,
                gpu=find_gpu(device),
            )
        )
        for one in known.stands_for(release)
    ]
    return each[0] if len(each) == 1 else replace(_agreement(each), release=release)


def resolve_range(
    engine: str,
    requested: Mapping[str, Value],
    *,
    releases: ReleaseRange,
    environment: Mapping[str, str] = _NOTHING,
    draft: ModelConfig | None = None,
    target: ModelConfig | None = None,
    device: str | None = None,
) -> Resolution:
    """What holds for every known release of a range.

    A flag on which they differ is no prediction: it ends in ``depends``, with the values on
    both sides of the first difference.
    """
    chosen = _chosen(engine, releases)
    if not chosen:
        return Resolution(engine, None, reason=f"what {engine} makes of its flags is not known")
    each = [
        resolve(engine, requested, release=release, environment=environment, draft=draft, target=target, device=device)
        for release in chosen
    ]
    return each[0] if len(each) == 1 else _agreement(each)


def _chosen(engine: str, releases: ReleaseRange) -> list[Release]:
    """One release as it is; of a range those that were read, else its read neighbours."""
    known = known_releases(engine)
    if not known:
        return []
    if releases.first is not None and releases.first == releases.last:
        return [releases.first]
    inside = [release for release in known if release in releases]
    if inside:
        return inside
    before = [release for release in known if releases.first is not None and release < releases.first]
    after = [release for release in known if releases.last is not None and release > releases.last]
    return [*before[-1:], *after[:1]]


def _agreement(each: list[Resolution]) -> Resolution:
    first, last = each[0], each[-1]
    effective: dict[str, Value] = {}
    depends: dict[str, str] = {}
    for flag in dict.fromkeys(flag for one in each for flag in (*one.effective, *one.depends)):
        words = [_word(one, flag) for one in each]
        if _ABSENT in words:
            continue  # a flag that not every release has is nothing they agree or disagree on
        change = next((index for index in range(1, len(each)) if words[index] != words[index - 1]), None)
        if change is not None:
            depends[flag] = (
                f"the release: {each[change - 1].release} gives {words[change - 1]}, "
                f"{each[change].release} gives {words[change]}"
            )
        elif flag in last.depends:
            depends[flag] = last.depends[flag]
        else:
            effective[flag] = last.effective[flag]
    return Resolution(
        engine=last.engine,
        release=None,
        effective=effective,
        changes=_shared(each, "changes", lambda item: (item.flag, repr(item.before), repr(item.after))),
        ignored=_shared(each, "ignored", lambda item: item.flag),
        remarks=_shared(each, "remarks", lambda item: (item.flag, item.text)),
        rejections=_shared(each, "rejections", lambda item: item.message),
        depends=depends,
        announced=tuple(line for line in first.announced if all(line in one.announced for one in each)),
        releases=tuple(one.release for one in each if one.release is not None),
        reason=last.reason,
    )


def _shared(each: list[Resolution], name: str, key: Callable[[Any], Hashable]) -> tuple[Any, ...]:
    """The items of the newest release that every release has."""
    keys = [{key(item) for item in getattr(one, name)} for one in each]
    return tuple(item for item in getattr(each[-1], name) if all(key(item) in known for known in keys))


def _word(resolution: Resolution, flag: str) -> str:
    if flag in resolution.effective:
        return repr(resolution.effective[flag])
    if flag in resolution.depends:
        return f"what depends on {resolution.depends[flag]}"
    return "no start" if resolution.rejections else _ABSENT
