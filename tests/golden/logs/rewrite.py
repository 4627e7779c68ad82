"""Writes every expected.json anew; read the difference before you keep it."""

from __future__ import annotations

import json

from expected import as_read, recordings

for folder in recordings():
    text = json.dumps(as_read(folder), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "expected.json").write_text(text + "\n", "utf-8")
