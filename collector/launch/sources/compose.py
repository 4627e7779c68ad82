"""Compose files: the command of each service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from collector.launch.nodes import Node, documents
from collector.launch.shell import Word
from collector.launch.sources.base import LaunchSource, Snippet

_SERVICES: Final = re.compile(r"(?m)^[\"']?services[\"']?\s*:|^\s*\{\s*\"(?:\w+\"\s*:.*)?services\"\s*:")
_ABSENT: Final[list[Word]] = []


class ComposeSource(LaunchSource):
    """``services`` with image, entrypoint, command and environment."""

    kind: ClassVar[str] = "a compose file"
    order: ClassVar[int] = 3

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """One for each service."""
        if text.startswith("#!") or not _SERVICES.search(text):
            return None
        services = [
            (name, service)
            for document in documents(text, source)
            for name, service in (document.get("services") or document).items()
            if document.get("services") is not None
        ]
        return [_service(name, service, source) for name, service in services]


SOURCE: Final = ComposeSource()


def _service(name: str, service: Node, source: str) -> Snippet:
    image = service.get("image")
    words = [*_argv(service.get("entrypoint"), source), *_argv(service.get("command"), source)]
    return Snippet(
        [word._replace(text=word.text.replace("$$", "$")) for word in words],
        verbatim=False,
        environment=_environment(service.get("environment")),
        image=(image.scalar or "") if image is not None else "",
        replaced=service.get("entrypoint") is not None,
        label=f"service {name}",
    )


def _argv(node: Node | None, source: str) -> list[Word]:
    """A list as it is; a text split into words, in which a new line means no more than a blank."""
    if node is None:
        return _ABSENT
    if node.scalar is None:
        return node.texts()
    words = node.shell_words(source)
    return [word._replace(operator=False) for word in words if word.text != "\n"]


def _environment(node: Node | None) -> Mapping[str, str]:
    """A mapping, or a list of assignments; variables that are only passed on are left out."""
    if node is None:
        return {}
    pairs = [(name, value.scalar) for name, value in node.items()]
    for item in node.members():
        name, given, value = (item.scalar or "").partition("=")
        pairs.append((name, value if given else None))
    return {name: value.replace("$$", "$") for name, value in pairs if value is not None}
