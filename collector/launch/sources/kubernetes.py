"""Kubernetes manifests: every container with a command or arguments, and scripts in config maps.

Containers are looked for wherever they stand, so that Deployment, StatefulSet, Pod, Job,
LeaderWorkerSet and the resources of operators are all read, also several in one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from collector.domain.errors import MalformedInput
from collector.launch.dialects import mentions_engine
from collector.launch.nodes import Node, documents
from collector.launch.shell import Word
from collector.launch.sources.base import LaunchSource, SettingsText, Snippet

_MANIFEST: Final = re.compile(r"(?m)^\s*[{,]?\s*[\"']?(?:apiVersion|kind|containers)[\"']?\s*:\s*\S?")
_LIST_OF_CONTAINERS: Final = re.compile(r"(?m)^\s*(?:-\s+)?[\"']?(?:command|args)[\"']?\s*:\s*(?:\[|$)")
_SETTINGS: Final = (".yaml", ".yml", ".json")


class KubernetesSource(LaunchSource):
    """Manifests of one or several resources, rendered charts, and parts of them."""

    kind: ClassVar[str] = "a Kubernetes manifest"
    order: ClassVar[int] = 4

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """One for each container with a command or arguments, then one for each script of a config map."""
        if text.startswith("#!"):
            return None
        sure = _MANIFEST.search(text) is not None
        if not sure and not _LIST_OF_CONTAINERS.search(text):
            return None
        try:
            found = documents(text, source, _of_interest)
        except MalformedInput:
            if sure:
                raise
            return None
        settings = {name: part for document in found for name, part in _settings(document)}
        return [
            *(snippet for document in found for snippet in _containers(document, settings)),
            *(snippet for document in found for snippet in _scripts(document, source, settings)),
        ]


SOURCE: Final = KubernetesSource()


def _of_interest(document: str) -> bool:
    return "ConfigMap" in document or mentions_engine(document)


def _containers(document: Node, settings: Mapping[str, SettingsText]) -> Iterator[Snippet]:
    for node in document.walk():
        parts = {name: value for name, value in node.items() if name in ("command", "args", "image", "name", "env")}
        words = [word for part in ("command", "args") if part in parts for word in _argv(parts[part])]
        if not words:
            continue
        image = parts["image"].scalar if "image" in parts else None
        yield Snippet(
            words,
            verbatim=False,
            image=image or "",
            replaced="command" in parts,
            environment=_environment(parts.get("env")),
            label=_label(document, parts["name"].scalar if "name" in parts else None),
            settings=settings,
        )


def _argv(node: Node) -> list[Word]:
    if node.scalar:
        return [Word(node.scalar, node.content_line, 0, 0)]
    return node.texts()


def _environment(node: Node | None) -> Mapping[str, str]:
    """Variables with a value of their own; those taken from secrets and fields are left out."""
    if node is None:
        return {}
    pairs = [(item.get("name"), item.get("value")) for item in node.members()]
    return {
        name.scalar: value.scalar
        for name, value in pairs
        if name is not None and value is not None and name.scalar is not None and value.scalar is not None
    }


def _label(document: Node, container: str | None) -> str:
    kind, name = document.get("kind"), document.get("metadata", "name")
    parts = [" ".join(part.scalar for part in (kind, name) if part is not None and part.scalar is not None)]
    parts += [f"container {container}"] if container else []
    return ", ".join(part for part in parts if part)


def _data(document: Node) -> Iterator[tuple[str, Node]]:
    kind = document.get("kind")
    if kind is not None and kind.scalar == "ConfigMap":
        yield from (document.get("data") or document).items()


def _settings(document: Node) -> Iterator[tuple[str, SettingsText]]:
    for name, value in _data(document):
        if name.endswith(_SETTINGS) and value.scalar is not None:
            yield name, SettingsText(value.scalar, value.content_line)


def _scripts(document: Node, source: str, settings: Mapping[str, SettingsText]) -> Iterator[Snippet]:
    for name, value in _data(document):
        if not name.endswith(_SETTINGS) and value.scalar is not None and mentions_engine(value.scalar):
            words = value.shell_words(source)
            yield Snippet(words, verbatim=True, label=f"{_label(document, None)}, {name}", settings=settings)
