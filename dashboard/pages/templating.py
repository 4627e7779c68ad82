"""The templates' environment: everything is escaped, an undefined name is an error."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from collector.domain.quantities import QUANTITIES, Quantity
from dashboard import names
from dashboard.pages.verdicts import STATES

HERE: Final = Path(__file__).parent.parent
STATIC: Final = HERE / "static"
_WORD: Final = re.compile(r"\S+")


class Terms:
    """The quantities a page speaks of: each label opens a definition that is printed once."""

    def __init__(self) -> None:
        self._used: dict[str, Quantity] = {}

    def use(self, key: str) -> Quantity:
        """The quantity behind a label; its definition will stand at the end of the page."""
        return self._used.setdefault(key, QUANTITIES[key])

    @property
    def used(self) -> tuple[Quantity, ...]:
        """Those whose labels were printed so far."""
        return tuple(self._used.values())


@cache
def asset(path: str) -> str:
    """Address of a static file; it changes with the content, so that browsers may keep it for good."""
    digest = hashlib.sha256((STATIC / path).read_bytes()).hexdigest()[:12]
    return f"/static/{path}?v={digest}"


@cache
def product_version() -> str:
    """The installed version, "" where it runs from a checkout that was never installed."""
    try:
        return version("draftscope")
    except PackageNotFoundError:
        return ""


@cache
def environment() -> Environment:
    """Built once: templates are compiled on first use."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["unbroken"] = unbroken
    made.globals.update(
        asset=asset,
        version=product_version(),
        standalone=False,
        layout="base.html",
        states={state.value: words for state, words in STATES.items()},
        severities=names.SEVERITIES,
    )
    return made


def unbroken(text: str) -> Markup:
    """Each word in an element of its own: browsers break lines at the hyphens of flags as well."""
    return Markup(_WORD.sub(r"<span>\g<0></span>", str(escape(text))))  # noqa: S704 - escaped


def compile_all() -> None:
    """Compile every template, so that no page waits for it."""
    for name in environment().list_templates():
        environment().get_template(name)


def render(template: str, context: Mapping[str, Any]) -> str:
    """One page as text."""
    return environment().get_template(template).render(context, terms=Terms())
