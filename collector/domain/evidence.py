"""Where a fact was read."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of one source, redacted, as the user would find it.

    ``source`` is the file's or endpoint's name, ``line`` counts from 1 (``None`` where the
    source has no lines), ``text`` is the line or the part of it that matters.
    """

    source: str
    line: int | None
    text: str

    @property
    def place(self) -> str:
        """``input.log:12``, or the source alone."""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def document(self) -> dict[str, object]:
        """The form evidence has in the diagnosis document; long lines are cut."""
        text = self.text if len(self.text) <= LONGEST_TEXT else self.text[: LONGEST_TEXT - 1] + "…"
        return {"source": self.source, "line": self.line, "text": text}
