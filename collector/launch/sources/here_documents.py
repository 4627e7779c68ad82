"""Scripts with a manifest inside: ``kubectl apply -f - <<EOF``."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.launch.sources import compose, kubernetes, script
from collector.launch.sources.base import LaunchSource, Snippet

_BEGIN: Final = re.compile(r"(?<!<)<<(?!<)(?P<tabs>-?)\s*(?P<quote>['\"]?)(?P<word>[A-Za-z_]\w*)(?P=quote)")


class HereDocumentSource(LaunchSource):
    """The manifests of a script, then the script without them; every line keeps its number."""

    kind: ClassVar[str] = "a script with a manifest inside"
    order: ClassVar[int] = 2

    def snippets(self, text: str, source: str) -> list[Snippet] | None:
        """Those of the manifests first."""
        inside, outside = _parted(text)
        if not inside.strip():
            return None
        for kind in (compose.SOURCE, kubernetes.SOURCE):
            found = kind.snippets(inside, source)
            if found is not None:
                return [*found, *script.SOURCE.snippets(outside, source)]
        return None


SOURCE: Final = HereDocumentSource()


def _parted(text: str) -> tuple[str, str]:
    """The bodies of here-documents, and everything else; what is left out of each is blank, a body ends a document."""
    inside: list[str] = []
    outside: list[str] = []
    ends = ""
    for line in text.splitlines():
        if ends:
            ended = line.strip() == ends
            inside.append("---" if ended else line)
            outside.append("")
            ends = "" if ended else ends
            continue
        begin = None if line.lstrip().startswith("#") else _BEGIN.search(line)
        ends = begin["word"] if begin is not None else ""
        inside.append("")
        outside.append(line)
    return "\n".join(inside), "\n".join(outside)
