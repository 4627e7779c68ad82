"""What an engine makes of its flags: asked -> runs, by release.

An engine is a module or package here that holds an :class:`Engine` named ``ENGINE``; it is
found by its name. Everything is a pure function of plain values.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from analysis.resolve.base import (
    Change,
    Engine,
    Ignored,
    Launch,
    Rejection,
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
    "Resolution",
    "Step",
    "engine_names",
    "find_engine",
    "known_releases",
    "resolve",
    "resolve_range",
]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
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

    ``device`` is a GPU by its common name (``h100``). What is not given and is needed ends in
    ``Resolution.depends``.
    """
    known = find_engine(engine)
    if known is None:
        return Resolution(engine, release, reason=f"what {engine} makes of its flags is not known")
    launch = Launch(
        known.name,
        release,
        requested,
        known.defaults(release),
        environment=environment,
        draft=draft,
        target=target,
        gpu=find_gpu(device),
    )
    return known.resolve(launch)


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
    chosen = [release for release in known_releases(engine) if release in releases]
    if not chosen:
        reason = f"no release of {engine} in this range ({releases}) was read"
        return Resolution(engine, None, reason=reason)
    each = [
        resolve(engine, requested, release=release, environment=environment, draft=draft, target=target, device=device)
        for release in chosen
    ]
    if len(each) == 1:
        return each[0]
    return _agreement(each)


def _agreement(each: list[Resolution]) -> Resolution:
    first, last = each[0], each[-1]
    effective: dict[str, Value] = {}
    depends: dict[str, str] = {}
    flags = dict.fromkeys(flag for one in each for flag in (*one.effective, *one.depends))
    for flag in flags:
        unknown = next((one.depends[flag] for one in each if flag in one.depends), None)
        words = [_word(one, flag) for one in each]
        change = next((index for index in range(1, len(each)) if words[index] != words[index - 1]), None)
        if change is not None:
            before, after = each[change - 1], each[change]
            depends[flag] = (
                f"the release: {before.release} gives {words[change - 1]}, {after.release} gives {words[change]}"
            )
        elif unknown is not None:
            depends[flag] = unknown
        elif flag in last.effective:
            effective[flag] = last.effective[flag]
    return Resolution(
        engine=last.engine,
        release=None,
        effective=effective,
        changes=tuple(change for change in last.changes if all(_has_change(one.changes, change) for one in each)),
        ignored=tuple(
            item for item in last.ignored if all(item.flag in {other.flag for other in one.ignored} for one in each)
        ),
        rejections=tuple(
            item
            for item in last.rejections
            if all(item.message in {other.message for other in one.rejections} for one in each)
        ),
        depends=depends,
        announced=tuple(line for line in first.announced if all(line in one.announced for one in each)),
        releases=tuple(one.release for one in each if one.release is not None),
    )


def _word(resolution: Resolution, flag: str) -> str:
    if flag in resolution.effective:
        return repr(resolution.effective[flag])
    if flag in resolution.depends:
        return f"what depends on {resolution.depends[flag]}"
    return "no start" if resolution.rejections else "no such flag"


def _has_change(changes: Iterable[Change], wanted: Change) -> bool:
    return any(
        (change.flag, change.before, change.after) == (wanted.flag, wanted.before, wanted.after) for change in changes
    )
