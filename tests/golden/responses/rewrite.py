"""Writes expected.json anew; read the difference before you keep it."""

from __future__ import annotations

import json

from expected import FOLDER, as_read, files

text = json.dumps({name: as_read(name) for name in files()}, indent=1, allow_nan=False)
(FOLDER / "expected.json").write_text(text + "\n", "utf-8")
