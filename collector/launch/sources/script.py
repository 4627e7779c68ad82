"""Shell text: a command as it was typed, or a script."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.launch.shell import split_words
from collector.launch.sources.base import LaunchSource, Snippet

_PROMPT: Final = re.compile(r"(?m)^[ \t]*(?:\$|>>>|[\w.-]+@[\w.-]+:[^\n#$]{0,80}[#$])[ \t]+(?=\S)")


class ScriptSource(LaunchSource):
    """Anything that no other kind knows."""

    kind: ClassVar[str] = "shell text"
    order: ClassVar[int] = 9

    def snippets(self, text: str, source: str) -> list[Snippet]:
        """The whole text, prompts left out."""
        return [Snippet(split_words(_PROMPT.sub(_blank, text), source), verbatim=True)]


SOURCE: Final = ScriptSource()


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
