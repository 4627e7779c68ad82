"""Reads a page as a person would: the text of its parts, and what it points to."""

import json
import re
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "input", "br", "hr", "img", "wbr"}


class Page(HTMLParser):
    """Text by element id, all links and resources, all tags, and the data of charts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text_of: dict[str, str] = {}
        self.charts: dict[str, Any] = {}
        self._open: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        self.tags.append((tag, named))
        if tag not in VOID:
            chart = named.get("data-for", "") if tag == "script" else ""
            self._open.append((tag, f"@{chart}" if chart else named.get("id", "")))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attributes}))

    def handle_data(self, data: str) -> None:
        inside = [name for _, name in self._open if name]
        if self._open and self._open[-1][0] == "script":
            if inside and inside[-1].startswith("@"):
                self.charts[inside[-1][1:]] = json.loads(data)
            return
        self.text += f" {data}"
        for name in inside:
            self.text_of[name] = f"{self.text_of.get(name, '')} {data}"

    def said(self, part: str = "") -> str:
        """The text of a part (or of all), with single spaces."""
        return re.sub(r"\s+", " ", self.text_of[part] if part else self.text).strip()

    def values(self, *names: str) -> list[str]:
        """All values of some attributes."""
        return [attributes[name] for _, attributes in self.tags for name in names if name in attributes]
