"""How often repeated checks run: a seeded tenth by default, all of them with DRAFTSCOPE_SOAK=1."""

from __future__ import annotations

import os

from hypothesis import settings

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"

checks = settings(max_examples=500 if SOAK else 50, derandomize=not SOAK, database=None)
"""For properties."""
