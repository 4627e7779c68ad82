"""JSON in which a server states how it was launched."""

from __future__ import annotations

import json
from typing import ClassVar, Final

from collector.launch.shell import Word, split_words
from collector.launch.sources.base import LaunchSource, Snippet

_FIELD: Final = "launch_command"


class ServerInfoSource(LaunchSource):
    """``launch_command`` of SGLang's ``/server_info``: a command, or its options alone."""

    kind: ClassVar[str] = "server information"
    order: ClassVar[int] = 1

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """The command that the document states."""
        if _FIELD not in text or not text.lstrip().startswith("{"):
            return None
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return None
        command = document.get(_FIELD)
        line = text.count("\n", 0, text.find(f'"{_FIELD}"')) + 1
        if isinstance(command, list):
            words = [Word(str(part), line, 0, 0) for part in command]
        elif isinstance(command, str):
            words = [word._replace(line=line) for word in split_words(command, source, line)]
        else:
            return None
        if words and words[0].text.startswith("-"):
            # Only SGLang has this field.
            words = [Word("sglang", line, 0, 0), Word("serve", line, 0, 0), *words]
        return [Snippet(words, verbatim=False)]


SOURCE: Final = ServerInfoSource()
