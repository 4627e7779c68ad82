"""Sources of the settings: one module a kind, found here."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from collector.domain.errors import InputError, MalformedInput, UnknownName
from dashboard.feeds.base import HttpSource, Source
from dashboard.strict import nearest, read_table


@cache
def source_kinds() -> Mapping[str, type[Source]]:
    """Every kind of source by its name in the settings."""
    modules = [importlib.import_module(info.name) for info in pkgutil.iter_modules(__path__, f"{__name__}.")]
    classes = [item for module in modules for _, item in inspect.getmembers(module, inspect.isclass)]
    return {item.kind: item for item in classes if issubclass(item, Source) and item not in (Source, HttpSource)}


def read_sources(entries: Any, where: str) -> tuple[Source, ...]:
    """The ``[[sources]]`` of the settings.

    Raises:
        UnknownName: a key or kind does not exist.
        MalformedInput: a value does not fit.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise MalformedInput("sources is not a list of tables", where=where, hint="write [[sources]]")
    return tuple(_source(entry, f"{where}, [[sources]] number {number}") for number, entry in enumerate(entries, 1))


def _source(entry: Mapping[str, Any], where: str) -> Source:
    kinds = source_kinds()
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        stated = "the kind of the source is missing" if kind is None else f"no source is of kind {kind!r}"
        raise UnknownName(stated, where=where, hint=nearest(str(kind or ""), kinds))
    source = read_table(kinds[kind], {key: value for key, value in entry.items() if key != "kind"}, where)
    try:
        source.check()
    except InputError as error:
        raise MalformedInput(error.what, why=error.why, where=where, hint=error.hint) from None
    return source
